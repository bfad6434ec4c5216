"""Relay programs from Python: functions, branches, loops and calls, in Relay's operators."""

from relayc.frontend.relay.builder import Expr, Program
from relayc.frontend.relay.importer import from_relay

__all__ = ["Expr", "Program", "from_relay"]
