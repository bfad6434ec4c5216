# PYTHON_ARGCOMPLETE_OK
"""The entry points of the commands `relayc` and `relayc-opt`: on an interrupt, also during imports, they print a message and exit with
130."""

import sys
from importlib import import_module

from relayc.interrupts import deferred


def _run(module: str) -> int:
    try:
        with deferred():  # a module that is imported halfway raises other errors than the interrupt
            main = import_module(module).main
        return main()
    except KeyboardInterrupt:
        print("relayc: interrupted", file=sys.stderr)
        return 130


def relayc() -> int:
    """The command `relayc`."""
    return _run("relayc.tools.cli")


def relayc_opt() -> int:
    """The command `relayc-opt`."""
    return _run("relayc.tools.opt")
