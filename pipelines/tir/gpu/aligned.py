"""Loads and stores with alignment attributes, without which a device accesses vectors element by element."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.values import vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import proves

VECTOR_BYTES = 16
"""Widest access of a thread, and the alignment of buffers."""
_WORD = 32
"""Bits of a register."""


class AlignedEvaluator(Evaluator):
    """An evaluator that annotates vector accesses aligned to their size."""

    def _load_run(self, buffer: ir.Value, type_: ir.Type, first: Index) -> ir.Value:
        value = super()._load_run(buffer, type_, first)
        align(value.owner.operation, first)
        return value

    def _store_run(self, value: ir.Value, buffer: ir.Value, first: Index) -> ir.Operation:
        stored = super()._store_run(value, buffer, first)
        align(stored, first)
        return stored

    def operation(self, name: str, result: ir.Type, operands: Sequence[ir.Value], attributes: dict[str, ir.Attribute]) -> ir.Value:
        is_choice = name == "arith.select" and not emit.is_vector(operands[0]) and any(map(emit.is_vector, operands))
        if is_choice and not isinstance(result, ir.IndexType) and result.width < _WORD and self.width * result.width % _WORD == 0:
            # A choice between vectors of narrow elements takes an instruction for each word.
            word = ir.IntegerType.get_signless(_WORD)
            words = [vectors.bitcast(self.broadcast(v), word) for v in operands[1:]]
            return vectors.bitcast(emit.select(operands[0], *words), result)
        return super().operation(name, result, operands, attributes)


def align(op: ir.Operation, start: Index) -> None:
    """Sets the alignment of a vector.load or vector.store, if it is known to exceed the alignment of an element."""
    type_ = next(v.type for v in (*op.results, *op.operands) if isinstance(v.type, ir.VectorType))
    lanes, element_bytes = type_.shape[0], type_.element_type.width // 8
    found = lanes
    while found > 1 and not is_multiple(start, found):
        found //= 2
    if found > 1:
        alignment = min(VECTOR_BYTES, found * element_bytes)
        op.attributes["alignment"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), alignment)


def is_multiple(index: Index, number: int) -> bool:
    """Whether an index is a multiple of a number for all values of its variables."""
    parts = [index.const, *(factor * var.step for var, factor in index.terms.items())]
    return all(proves(lambda: part % number == 0) for part in parts)  # noqa: B023


def load(buffer: ir.Value, start: Index, lanes: int) -> ir.Value:
    """Loads a contiguous vector of a flat buffer."""
    value = emit.create("vector.load", [emit.vector_of(lanes, buffer.type.element_type)], [buffer, emit.materialize(start)])
    align(value.owner.operation, start)
    return value


def store(value: ir.Value, buffer: ir.Value, start: Index) -> None:
    """Stores a contiguous vector to a flat buffer."""
    made = ir.Operation.create("vector.store", operands=[value, buffer, emit.materialize(start)])
    align(made, start)
