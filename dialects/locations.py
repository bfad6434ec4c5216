"""Sources of operations in their MLIR locations, for example the names of the ONNX nodes."""

from relayc.dialects.mlir import ir


def named_location(label: str, location: ir.Location) -> ir.Location:
    """A location with a label for what is created there; its names are unchanged."""
    return ir.Location.name(label, childLoc=location)


def label_of(location: ir.Location) -> str:
    """The label of a location, or its first name; "" if it has neither."""
    if isinstance(location, ir.NameLoc):
        return location.name_str
    names = sources_of(location)
    return names[0] if names else ""


def source_of(location: ir.Location) -> str:
    """The name in a location (for example of an ONNX node), or its text if it has none."""
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
