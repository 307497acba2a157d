"""The error of guests, whose message says what to do about it."""

from bufferscope.base.errors import EngineError


class GuestError(EngineError):
    """A guest cannot be built or run; the message names what is missing and how to get it."""
