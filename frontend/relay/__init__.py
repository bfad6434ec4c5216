"""Relay programs from Python: functions, branches, loops and calls, in Relay's operators."""

from relayc.frontend.relay.builder import Expr, Program

__all__ = ["Expr", "Program"]
