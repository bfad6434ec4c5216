"""Control of Relay programs as machine code."""

from relayc.relay.native.program import NativeProgram, is_native

__all__ = ["NativeProgram", "is_native"]
