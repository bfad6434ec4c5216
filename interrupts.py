"""Interrupts (SIGINT) that wait for a moment at which the work can be left.

Imports and callbacks from MLIR are no such moments: a module that is imported halfway stays broken, and MLIR makes a RuntimeError of what a
callback raises, or drops it.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class _Waiting:
    """A handler that keeps an interrupt for the one that was there before. A second interrupt does not wait."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self._handler = handler
        self._frames: list[FrameType | None] = []

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._frames.append(frame)
        if len(self._frames) > 1:
            self.deliver()

    def deliver(self) -> None:
        if self._frames:
            frame = self._frames[0]
            self._frames.clear()
            self._handler(signal.SIGINT, frame)


@contextmanager
def deferred() -> Iterator[None]:
    """Delays an interrupt to the end of the block, in nested blocks to that of the innermost one: Python's handler raises KeyboardInterrupt
    there, in place of any error of the block. Threads other than the main one get no signals from Python and are left alone."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    waiting = handler if isinstance(handler, _Waiting) else _Waiting(handler)
    try:
        if waiting is not handler:
            signal.signal(signal.SIGINT, waiting)
        yield
    finally:
        if waiting is not handler:
            signal.signal(signal.SIGINT, handler)
        waiting.deliver()
