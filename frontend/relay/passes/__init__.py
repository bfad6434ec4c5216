"""Passes on expressions: those about the language itself, a subject each. `relayc.relay.transform` has them under Relay's names."""
