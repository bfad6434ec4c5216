"""Where an operation came from, as its MLIR location says: the names of the ONNX nodes, say."""

from relayc.dialects.mlir import ir


def named_location(label: str, location: ir.Location) -> ir.Location:
    """A location with a label for what is made there; the names that it carries are the same."""
    return ir.Location.name(label, childLoc=location)


def label_of(location: ir.Location) -> str:
    """The label of a location, or the first name that it carries; "" where it has neither."""
    if isinstance(location, ir.NameLoc):
        return location.name_str
    names = sources_of(location)
    return names[0] if names else ""


def source_of(location: ir.Location) -> str:
    """The name a location carries (an ONNX node's, say), or its text where it has none."""
    if isinstance(location, ir.NameLoc) and not isinstance(location.child_loc, ir.UnknownLoc):
        return source_of(location.child_loc)
    text = str(location)
    return text[len("loc(") : -1] if text.startswith("loc(") else text


def sources_of(location: ir.Location) -> tuple[str, ...]:
    """The names that a location carries, each once: several for operations fused into one."""
    if isinstance(location, ir.FusedLoc):
        return tuple(dict.fromkeys(name for part in location.locations for name in sources_of(part)))
    if isinstance(location, ir.NameLoc):
        return (location.name_str,) if isinstance(location.child_loc, ir.UnknownLoc) else sources_of(location.child_loc)
    return () if isinstance(location, ir.UnknownLoc) else (source_of(location).strip('"'),)
