"""Relay programs: built from Python in operators of the dialect (`builder`), or in the Relay language.

Of the language, `ast` has the nodes, `text` reads and prints them, `op` has the operators, `inference` the types, and `lowering` makes them
programs of the dialect.
"""

from relayc.frontend.relay.builder import Expr, Program
from relayc.frontend.relay.importer import from_relay
