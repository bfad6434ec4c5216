"""Why a program has no value."""


class Outside(IndexError):
    """An access outside of a buffer or tensor, or a block at a point outside of its iteration space."""


class Refused(ValueError):
    """The program requires other sizes than the given ones."""


class Unknown(NotImplementedError):
    """An operation that the interpreters do not support."""
