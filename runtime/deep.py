"""Calls on a stack that has room for deep recursion."""

import contextvars
import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

STACK_BYTES = 512 << 20
"""Of address space: unused pages take no memory."""
PYTHON_BYTES = 64 << 20
"""Of a deep stack, what Python and the compiler have of it in functions that a program calls."""
_IDLE_SECONDS = 1.0
"""After which a thread ends that has nothing to do, and the memory of its stack goes."""
_SIZE = threading.Lock()
_idle: list["_Worker"] = []


class _Worker:
    """A thread with a stack of its own. It stays for the next call: a thread costs more, and OpenMP has a team for each."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        with _SIZE:  # the size applies to all threads started meanwhile
            before = threading.stack_size(STACK_BYTES)
            try:
                threading.Thread(target=self._work, name="relayc-deep", daemon=True).start()
            finally:
                threading.stack_size(before)

    def _work(self) -> None:
        while True:
            try:
                task = self._tasks.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                try:
                    _idle.remove(self)
                except ValueError:  # a caller has just taken it: its task will arrive
                    task = self._tasks.get()
                else:
                    return
            task()
            del task

    def run(self, task: Callable[[], None]) -> None:
        """Runs a task and waits for its end."""
        done = threading.Lock()
        done.acquire()

        def work() -> None:
            task()
            _idle.append(self)
            done.release()

        self._tasks.put(work)
        done.acquire()


def on_deep_stack(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The result of a function, called in a thread with a stack of its own, in the context of the caller."""
    given = list(args)
    found: list[Any] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            found.append(context.run(function, *given))
        except BaseException as error:
            errors.append(error)

    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.run(run)
    given.clear()  # the thread may hold `run` a little longer
    if errors:
        raise errors.pop()
    return found.pop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # the child has the thread that forked only
