"""A real Linux kernel in virtual time.

The way of things: `kernels` (at hand, or brought by `fetch`) -> `image` -> `state` (booted and saved once) -> `run`.
"""

from .errors import GuestError

__all__ = ["GuestError"]
