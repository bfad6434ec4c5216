"""Relay programs as text: `#[version = "0.0.5"]`, functions, data types, and a metadata section for data without a textual form."""

from relayc.frontend.relay.text.lexer import ParseError
from relayc.frontend.relay.text.parser import parse_expr, parse_module
from relayc.frontend.relay.text.printer import astext, pretty
