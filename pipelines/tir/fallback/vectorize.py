"""Vectorizes loops of the fallback schedule over contiguous elements with independent iterations (see te.read.updates).

Buffers whose innermost index is the variable of such a loop plus an invariant are accessed in vectors. All other varying values must be
float arithmetic. An inner loop with invariant bounds is vectorized if it carries floats. Loops with any other operation are left unchanged.
"""

from collections.abc import Sequence

from relayc.dialects.discardable import DISTINCT
from relayc.dialects.mlir import ir, scf
from relayc.dialects.operations import element_bytes, walk
from relayc.pipelines.emission import emit

_ELEMENTWISE = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf", "math.fma")
_ALL_LANES = 8
"""On a target that masks elements of this many bits, a masked vector costs no more than an unmasked one."""


class _NoVectors(Exception):
    """A loop has an operation without a vector form."""


def vectorize_loops(module: ir.Module, vector_bytes: int, mask_bits: int) -> None:
    """Replaces the innermost loops over contiguous elements in a module by vectorized loops, in place.

    Args:
      vector_bytes, mask_bits: of the target.
    """
    with module.context:
        for loop in walk(module.operation, scf.ForOp):
            operation = loop.operation
            if DISTINCT.on(operation) and not operation.results:
                with operation.location, ir.InsertionPoint(operation):
                    _vectorize(operation, vector_bytes, mask_bits == _ALL_LANES)


def _vectorize(loop: ir.Operation, vector_bytes: int, masks: bool) -> None:
    stores = [o.opview for o in loop.regions[0].blocks[0].operations if o.operation.name == "memref.store"]
    elements = {o.operation.operands[0].type for o in stores}
    if len(elements) != 1 or not isinstance(element := next(iter(elements)), ir.FloatType):
        return
    width = vector_bytes // element_bytes(element)
    low, high, _ = loop.operands
    before = len(loop.block.operations)
    step = emit.index_constant(width)
    # Without masks the remainder after the last full vector stays a scalar loop.
    end = high if masks else emit.arith("addi", low, emit.arith("andi", emit.arith("subi", high, low), emit.index_constant(-width)))
    try:
        _Vectors(loop, width, high if masks else None).build(low, end, step)
    except _NoVectors:
        operations = [o.operation for o in loop.block.operations]
        end_of_made = operations.index(loop)
        for op in reversed(operations[end_of_made - (len(operations) - before) : end_of_made]):
            op.erase()
        return
    if masks:
        loop.erase()
    else:
        loop.operands[0] = end


class _Vectors:
    """The vectorized form of a loop.

    Args:
      loop: the loop.
      width: lanes of a vector.
      end: the end of the active lanes of the last vector; None if all lanes are active.
    """

    def __init__(self, loop: ir.Operation, width: int, end: ir.Value | None) -> None:
        self._loop, self._width, self._end = loop, width, end
        self._values: dict[ir.Value, ir.Value] = {}
        """The values in the loop by their originals: a vector, or a scalar shared by all lanes."""
        self._neighbours: set[ir.Value] = set()
        """Indices that increase by one per lane."""
        self._mask: ir.Value | None = None

    def build(self, low: ir.Value, high: ir.Value, step: ir.Value) -> None:
        """Emits the loop. Raises _NoVectors; operations emitted until then remain."""
        made = emit.serial_loop([low, high, step])
        body = self._loop.regions[0].blocks[0]
        variable = made.regions[0].blocks[0].arguments[0]
        self._values[body.arguments[0]] = variable
        self._neighbours.add(body.arguments[0])
        with ir.InsertionPoint(made.regions[0].blocks[0]):
            if self._end is not None:
                self._mask = emit.first_lanes(emit.arith("subi", self._end, variable), self._width)
            self._block(body)
            emit.yield_values([])

    def _value(self, value: ir.Value) -> ir.Value:
        return self._values.get(value, value)

    def _vector(self, value: ir.Value) -> ir.Value:
        return emit.broadcast(self._value(value), self._width)

    def _block(self, block: ir.Block) -> ir.Operation:
        """Emits the operations of a block; returns its terminator."""
        *operations, terminator = (o.operation for o in block.operations)
        for op in operations:
            if op.name == "memref.load":
                self._load(op)
            elif op.name == "memref.store":
                value, buffer, *indices = op.operands
                if not self._is_along(buffer, indices):
                    raise _NoVectors(op.name)
                self._access("store", [], buffer, indices, [self._vector(value)])
            elif op.name == "scf.for":
                self._inner(op)
            elif not any(v in self._neighbours or emit.is_vector(self._value(v)) for v in op.operands) and not op.regions:
                self._clone(op)
            elif op.name == "arith.addi" and sum(v in self._neighbours for v in op.operands) == 1:
                self._clone(op)
                self._neighbours.add(op.results[0])
            elif op.name in _ELEMENTWISE:
                operands = [self._vector(v) for v in op.operands]
                self._values[op.results[0]] = emit.create(op.name, [operands[0].type], operands, dict(op.attributes.items()))
            else:
                raise _NoVectors(op.name)
        return terminator

    def _clone(self, op: ir.Operation) -> None:
        clone = op.clone()
        for i, v in enumerate(op.operands):
            clone.operands[i] = self._value(v)
        self._values.update(zip(op.results, clone.results, strict=True))

    def _is_along(self, buffer: ir.Value, indices: Sequence[ir.Value]) -> bool:
        """Whether lanes access contiguous elements; otherwise they access the same element. Raises _NoVectors in other cases."""
        is_plain = buffer.type.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(buffer.type.rank))
        if not is_plain or not indices or any(v in self._neighbours for v in indices[:-1]):
            raise _NoVectors("an index of an outer dimension")
        return indices[-1] in self._neighbours

    def _load(self, op: ir.Operation) -> None:
        buffer, *indices = op.operands
        if any(v in self._neighbours for v in indices) and self._is_along(buffer, indices):
            type_ = emit.vector_of(self._width, op.results[0].type)
            self._values[op.results[0]] = self._access("load", [type_], buffer, indices, [])
        else:
            self._clone(op)

    def _access(
        self, kind: str, results: Sequence[ir.Type], buffer: ir.Value, indices: Sequence[ir.Value], stored: Sequence[ir.Value]
    ) -> ir.Value:
        place = [buffer, *map(self._value, indices)]
        if self._mask is None:
            return emit.create(f"vector.{kind}", results, [*stored, *place])
        others = [emit.zero(results[0])] if results else list(stored)
        return emit.create(f"vector.masked{kind}", results, [*place, self._mask, *others])

    def _inner(self, op: ir.Operation) -> None:
        low, high, step, *carried = op.operands
        if any(v in self._neighbours for v in (low, high, step)):
            raise _NoVectors("bounds that change")
        is_float = [isinstance(v.type, ir.FloatType) for v in carried]
        begin = [self._vector(v) if wide else self._value(v) for v, wide in zip(carried, is_float, strict=True)]
        made = emit.serial_loop([self._value(v) for v in (low, high, step)], begin)
        inner, body = made.regions[0].blocks[0], op.regions[0].blocks[0]
        self._values.update(zip(body.arguments, inner.arguments, strict=True))
        with ir.InsertionPoint(inner):
            yielded = list(self._block(body).operands)
            emit.yield_values([self._vector(v) if wide else self._value(v) for v, wide in zip(yielded, is_float, strict=True)])
        self._values.update(zip(op.results, made.results, strict=True))
