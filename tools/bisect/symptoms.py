"""What becomes of a program in a process of its own: results, an error, or the end of the process."""

import multiprocessing
import os
import re
import signal
from collections.abc import Callable
from typing import Any

TIME_LIMIT = 300.0
"""Seconds after which a process is ended."""
HANGS = "hangs"


def symptom_of(work: Callable[[], Any], seconds: float = TIME_LIMIT) -> str | None:
    """How `work` fails in a forked process: the error in one line without numbers and names, which differ between parts of a model, a
    signal ("SIGFPE"), or HANGS; None if it returns.

    Args:
      seconds: the time limit for HANGS.
    """
    receiver, sender = multiprocessing.get_context("fork").Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        try:
            work()
            sender.send(None)
        except BaseException as error:
            sender.send(symptom(error))
        finally:
            os._exit(0)
    sender.close()
    found: str | None = HANGS
    try:
        if receiver.poll(seconds):
            found = receiver.recv()
        else:
            os.kill(pid, signal.SIGKILL)
    except EOFError:
        found = None
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status) and found is None:
        return signal.Signals(os.WTERMSIG(status)).name
    return found


def symptom(error: BaseException) -> str:
    """An error without details of a single program: its kind, and the words of its message."""
    words = re.findall(r"[A-Za-z]{2,}", re.sub(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\S*[\d_/#]\S*", " ", str(error)))
    return f"{type(error).__name__}: {' '.join(words[:12])}"
