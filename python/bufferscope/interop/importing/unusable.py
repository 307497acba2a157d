"""The error of a content that can't be used."""


class Unusable(Exception):
    """A file does not hold what its format demands; the text says what was found, where, and what is allowed."""
