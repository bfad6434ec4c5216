"""Calls that nest deeper than Python's stack."""

from collections.abc import Generator, Iterable
from typing import Any, TypeAlias, TypeVar

Result = TypeVar("Result")
Call: TypeAlias = Generator["Call[Any]", Any, Result]
"""A call of a function that makes its recursive calls with `yield` and ends with its result: `left = yield depth(node.left)`."""


def each(calls: Iterable[Call[Result]]) -> Call[list[Result]]:
    """The results of several calls, in order."""
    found = []
    for call in calls:
        found.append((yield call))
    return found


def trampoline(call: Call[Result]) -> Result:
    """The result of a call, whose recursive calls wait on a list instead of on Python's stack: graphs are deeper than that.

    An error leaves all calls that wait at once: none of them sees it.
    """
    waiting: list[Call[Any]] = [call]
    result: Any = None
    while True:
        try:
            waiting.append(waiting[-1].send(result))
            result = None
        except StopIteration as done:
            waiting.pop()
            if not waiting:
                return done.value
            result = done.value
