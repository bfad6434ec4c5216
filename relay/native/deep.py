"""Calls on a stack that has room for deep recursion."""

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any

STACK_BYTES = 512 << 20
"""Of address space: what is not used takes no memory."""
_SIZE = threading.Lock()


def on_deep_stack(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The result of a function, called in a thread with a stack of its own, in the context of the caller."""
    found: list[Any] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            found.append(context.run(function, *args))
        except BaseException as error:
            errors.append(error)

    with _SIZE:  # the size holds for all threads that start
        before = threading.stack_size(STACK_BYTES)
        try:
            thread = threading.Thread(target=run, name="relayc-deep")
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    if errors:
        raise errors[0]
    return found[0]
