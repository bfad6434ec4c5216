"""The packed functions of a module of the tir stage: its public programs and its kernels."""

from collections.abc import Mapping

from relayc.dialects.relay.errors import RelayError
from relayc.pipelines.program.packed_entry import PackedEntry
from relayc.pipelines.program.tir import TirModule
from relayc.runtime.artifact import TensorSpec
from relayc.runtime.shapes import find_sources


def packed_entries(program: TirModule, ranges: Mapping[str, tuple[int, int]]) -> dict[str, PackedEntry]:
    """The arguments of every packed function.

    Raises RelayError for a program with a symbol that does not follow from the shapes of its arguments.
    """
    found = {k.name: PackedEntry((*k.inputs, *k.outputs), k.symbols, ranges=ranges) for k in program.kernels}
    params = TensorSpec("params", (program.params_bytes,), "uint8")
    for p in program.programs:
        if p.public:
            try:
                sources = find_sources(p.inputs, p.symbols)
            except ValueError as error:
                raise RelayError(f"@{p.name}: {error}") from None
            outputs = tuple(spec for i, spec in enumerate(p.outputs) if i not in p.late)
            given = [TensorSpec("given", (len(p.late) + len(p.defined),), "int64")] if p.late else []
            tensors = (*p.inputs, *outputs, TensorSpec("arena", (p.arena_bytes,), "uint8"), params, *given)
            found[p.name] = PackedEntry(tensors, p.symbols, 2, sources, ranges, p.max_depth, len(p.late), len(p.defined) if p.late else 0)
    return found
