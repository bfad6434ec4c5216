"""Operations of the x86 dialect as ordinary loops and vectors, for CPUs without the instructions: tests, and a look at other targets.

The sums are those of the instructions up to rounding and denormal numbers: the two products of a pair are added one after the other with
one rounding each, where the instructions round differently, and denormal numbers count, where the instructions take them as zeros.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from relayc.dialects.mlir import ir
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.tir import emit, vectors
from relayc.pipelines.tir.buffers import buffer_of_thread

_TILE = re.compile(r"!x86\.amx\.tile<(\d+)x(\d+)x(\w+)>")


def emulate_x86(module: ir.Module) -> None:
    """Expands AMX tiles into buffers on the stack and loops over them, dot products of pairs into fused multiply-adds, in place."""
    with module.context, ir.Location.unknown():
        ops: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name in (*_EXPANSIONS, _MULTIPLY, "scf.for"):
                ops.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        # Whether an operation is the only one to read an operand, which it may then write to.
        alone = [[len(list(operand.uses)) == 1 for operand in op.operands] for op in ops]
        for op, mine in zip(ops, alone, strict=True):
            with op.location, ir.InsertionPoint(op):
                if op.name == "scf.for":
                    _carry_buffers(op, mine)
                    continue
                value = _tile_mulf(op, mine[2]) if op.name == _MULTIPLY else _EXPANSIONS[op.name](op)
                if value is not None:
                    op.results[0].replace_all_uses_with(value)
                op.erase()


def _shape(type_: ir.Type) -> tuple[int, int, ir.Type] | None:
    """Rows, columns and element type of a tile type; None for any other."""
    found = _TILE.fullmatch(str(type_))
    return (int(found[1]), int(found[2]), ir.Type.parse(found[3])) if found else None


def _buffer(shape: tuple[int, int, ir.Type]) -> ir.Value:
    """A buffer for a tile: on the stack of the iteration of the innermost parallel loop, or of the function."""
    *extents, element = shape
    return buffer_of_thread(extents, element)


@contextmanager
def _rows(count: int) -> Iterator[ir.Value]:
    """A loop over the rows of a tile."""
    row = Var(0, count - 1, name="row")
    with emit.for_loop(0, count, 1, row):
        yield row.value


def _row(buffer: ir.Value, row: ir.Value, start: int = 0, count: int | None = None) -> ir.Value:
    """A row of a tile, or a part of it."""
    type_ = emit.vector_of(count or buffer.type.shape[1], buffer.type.element_type)
    return emit.create("vector.load", [type_], [buffer, row, emit.index_constant(start)])


def _set_row(value: ir.Value, buffer: ir.Value, row: ir.Value) -> None:
    emit.create("vector.store", [], [value, buffer, row, emit.index_constant(0)])


def _copy(value: ir.Value) -> ir.Value:
    """Another buffer with the contents of a tile."""
    copy = _buffer((*value.type.shape, value.type.element_type))
    with _rows(copy.type.shape[0]) as row:
        _set_row(_row(value, row), copy, row)
    return copy


def _carry_buffers(loop: ir.Operation, alone: Sequence[bool]) -> None:
    """Makes a loop that carries tiles carry their buffers; `alone` says of each operand whether nothing else reads it."""
    arguments = list(loop.regions[0].blocks[0].arguments)[1:]
    for i, (argument, result) in enumerate(zip(arguments, loop.results, strict=True)):
        if _shape(argument.type) is not None:
            initial = loop.operands[3 + i]
            buffer = initial if alone[3 + i] else _copy(initial)
            loop.operands[3 + i] = buffer
            argument.set_type(buffer.type)
            result.set_type(buffer.type)


def _tile_zero(op: ir.Operation) -> ir.Value:
    buffer = _buffer(_shape(op.results[0].type))  # type: ignore[arg-type]
    with _rows(buffer.type.shape[0]) as row:
        _set_row(emit.zero(emit.vector_of(buffer.type.shape[1], buffer.type.element_type)), buffer, row)
    return buffer


def _place(index: ir.Value, row: ir.Value, stride: ir.Value) -> ir.Value:
    """Where a row of a tile is in a flat buffer."""
    return emit.arith("addi", index, emit.arith("muli", row, stride))


def _tile_load(op: ir.Operation) -> ir.Value:
    source, index, stride = op.operands
    buffer = _buffer(_shape(op.results[0].type))  # type: ignore[arg-type]
    with _rows(buffer.type.shape[0]) as row:
        type_ = emit.vector_of(buffer.type.shape[1], buffer.type.element_type)
        _set_row(emit.create("vector.load", [type_], [source, _place(index, row, stride)]), buffer, row)
    return buffer


def _tile_store(op: ir.Operation) -> None:
    target, index, tile, stride = op.operands
    with _rows(tile.type.shape[0]) as row:
        emit.create("vector.store", [], [_row(tile, row), target, _place(index, row, stride)])


def _tile_mulf(op: ir.Operation, alone: bool) -> ir.Value:
    """Works on the buffer of the sum where nothing else reads that."""
    a, b, total = op.operands
    total = total if alone else _copy(total)
    with _rows(total.type.shape[0]) as row:
        pair = Var(0, b.type.shape[0] - 1, name="pair")
        with emit.for_loop(0, b.type.shape[0], 1, pair, [_row(total, row)]) as loop:
            first = emit.materialize(Index.of(pair) * 2)
            elements = [emit.create("memref.load", [a.type.element_type], [a, row, at]) for at in (first, _next(first))]
            factors = [emit.broadcast(element, total.type.shape[1]) for element in elements]
            emit.yield_values([_dot(factors, _halves(_row(b, pair.value)), loop.inner_iter_args[0])])
        _set_row(loop.results[0], total, row)
    return total


def _next(index: ir.Value) -> ir.Value:
    return emit.arith("addi", index, emit.index_constant(1))


def _dot_product(op: ir.Operation) -> ir.Value:
    total, a, b = op.operands
    return _dot(_halves(a), _halves(b), total)


def _halves(pairs: ir.Value) -> list[ir.Value]:
    """The first and the second elements of a vector of pairs."""
    count = pairs.type.shape[0]
    return [vectors.shuffle(pairs, pairs, range(first, count, 2)) for first in (0, 1)]


def _dot(a: Sequence[ir.Value], b: Sequence[ir.Value], total: ir.Value) -> ir.Value:
    for x, y in zip(a, b, strict=True):
        wide = [emit.create("arith.extf", [total.type], [v]) for v in (x, y)]
        total = emit.create("vector.fma", [total.type], [*wide, total])
    return total


_MULTIPLY = "x86.amx.tile_mulf"
_EXPANSIONS: dict[str, Callable[[ir.Operation], ir.Value | None]] = {
    "x86.amx.tile_zero": _tile_zero,
    "x86.amx.tile_load": _tile_load,
    "x86.amx.tile_store": _tile_store,
    "x86.avx512.dot": _dot_product,
}
