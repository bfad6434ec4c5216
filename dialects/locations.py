"""Where an operation came from, as its MLIR location says: the names of the ONNX nodes, say."""

from relayc.dialects.mlir import ir


def source_of(location: ir.Location) -> str:
    """The name a location carries (an ONNX node's, say), or its text where it has none."""
    text = str(location)
    return text[len("loc(") : -1] if text.startswith("loc(") else text


def sources_of(location: ir.Location) -> tuple[str, ...]:
    """The names that a location carries, each once: several for operations fused into one."""
    if isinstance(location, ir.FusedLoc):
        return tuple(dict.fromkeys(name for part in location.locations for name in sources_of(part)))
    return () if isinstance(location, ir.UnknownLoc) else (source_of(location).strip('"'),)
