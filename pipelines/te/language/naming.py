"""Names and docstrings of generated functions."""

from collections.abc import Callable
from typing import Any, TypeVar

Made = TypeVar("Made", bound=Callable[..., Any])

FLOAT_FUNCTIONS = {
    "exp": "e to the power of x.",
    "log": "The natural logarithm.",
    "log2": "The logarithm to base 2.",
    "log10": "The logarithm to base 10.",
    "sqrt": "The square root.",
    "rsqrt": "1 / sqrt(x).",
    "sigmoid": "1 / (1 + exp(-x)).",
    "erf": "The error function.",
    "sin": "The sine.",
    "cos": "The cosine.",
    "tan": "The tangent.",
    "asin": "The arc sine.",
    "acos": "The arc cosine.",
    "atan": "The arc tangent.",
    "sinh": "The hyperbolic sine.",
    "cosh": "The hyperbolic cosine.",
    "tanh": "The hyperbolic tangent.",
    "asinh": "The inverse hyperbolic sine.",
    "acosh": "The inverse hyperbolic cosine.",
    "atanh": "The inverse hyperbolic tangent.",
}
"""Functions of one float, in their order in the languages."""


def called(function: Made, name: str, doc: str) -> Made:
    """Sets the name and the docstring of a function."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
