"""A real Linux kernel in virtual time.

The stages: `kernels` (on this machine, or downloaded by `fetch`) -> `image` -> `state` (booted and saved once) ->
`run`.
"""

from bufferscope.engines.guest.errors import GuestError

__all__ = ["GuestError"]
