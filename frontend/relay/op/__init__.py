"""Relay's operators: their signatures, the Python functions that call them, and how they are computed."""

from relayc.frontend.relay.op.functions import Operators, call, op
from relayc.frontend.relay.op.table import Signature, UnsupportedOperator, operators, signature
