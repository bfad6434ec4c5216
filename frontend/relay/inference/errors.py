"""Errors of type inference."""

from relayc.dialects.relay.errors import RelayError


class TypeInferenceError(RelayError):
    """A program whose types do not fit, or one that is not known; with the expression and its place in the source."""
