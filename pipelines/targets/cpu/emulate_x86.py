"""Operations of the x86 dialect, and intrinsics that schedules emit, as ordinary loops and vectors, for CPUs without the instructions:
tests, and a look at other targets.

Sums of integers are those of the instructions. Sums of floats are so up to rounding and denormal numbers: the two products of a pair are
added one after the other with one rounding each, where the instructions round differently, and denormal numbers count, where the
instructions take them as zeros.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from relayc.dialects.mlir import ir
from relayc.dialects.operations import find_operations
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.values import vectors
from relayc.pipelines.tir.values.buffers import buffer_of_thread

_TILE = re.compile(r"!x86\.amx\.tile<(\d+)x(\d+)x(\w+)>")


def emulate_x86(module: ir.Module) -> None:
    """Expands AMX tiles into buffers on the stack and loops over them, dot products into multiply-adds, in place."""
    with module.context, ir.Location.unknown():
        ops = find_operations(
            module.operation,
            lambda op: op.name in (*_EXPANSIONS, *_MULTIPLICATIONS, "scf.for") or _intrinsic(op) in _INTRINSICS,
            ir.WalkOrder.PRE_ORDER,
        )
        # Whether an operation is the only one to read an operand, which it may then write to.
        alone = [[len(list(operand.uses)) == 1 for operand in op.operands] for op in ops]
        for op, mine in zip(ops, alone, strict=True):
            with op.location, ir.InsertionPoint(op):
                if op.name == "scf.for":
                    _carry_buffers(op, mine)
                    continue
                expand = _EXPANSIONS.get(op.name) or _INTRINSICS.get(_intrinsic(op))
                value = expand(op) if expand is not None else _multiply(op, mine[2])
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
    row = Var.below(count, name="row")
    with emit.for_loop(0, count, 1, row):
        yield row.value


def _row(buffer: ir.Value, row: ir.Value, start: int = 0, count: int | None = None) -> ir.Value:
    """A row of a tile, or a part of it."""
    type_ = emit.vector_of(count or buffer.type.shape[1], buffer.type.element_type)
    return emit.create("vector.load", [type_], [buffer, row, emit.index_constant(start)])


def _set_row(value: ir.Value, buffer: ir.Value, row: ir.Value) -> None:
    emit.create("vector.store", [], [value, buffer, row, emit.index_constant(0)])


def _filled(shape: tuple[int, int, ir.Type] | None, value: Callable[[ir.Value, ir.Type], ir.Value]) -> ir.Value:
    """A buffer for a tile; `value(row, type)` gives the content of a row."""
    assert shape is not None
    count, columns, element = shape
    buffer = _buffer(shape)
    with _rows(count) as row:
        _set_row(value(row, emit.vector_of(columns, element)), buffer, row)
    return buffer


def _copy(value: ir.Value) -> ir.Value:
    """Another buffer with the contents of a tile."""
    return _filled((*value.type.shape, value.type.element_type), lambda row, type_: _row(value, row))


def _carry_buffers(loop: ir.Operation, alone: Sequence[bool]) -> None:
    """Changes a loop that carries tiles to carry their buffers; `alone` gives for each operand whether it has no other use."""
    arguments = list(loop.regions[0].blocks[0].arguments)[1:]
    for i, (argument, result) in enumerate(zip(arguments, loop.results, strict=True)):
        if _shape(argument.type) is not None:
            initial = loop.operands[3 + i]
            buffer = initial if alone[3 + i] else _copy(initial)
            loop.operands[3 + i] = buffer
            argument.set_type(buffer.type)
            result.set_type(buffer.type)


def _tile_zero(op: ir.Operation) -> ir.Value:
    return _filled(_shape(op.results[0].type), lambda row, type_: emit.zero(type_))


def _place(index: ir.Value, row: ir.Value, stride: ir.Value) -> ir.Value:
    """The position of a row of a tile in a flat buffer."""
    return emit.arith("addi", index, emit.arith("muli", row, stride))


def _tile_load(op: ir.Operation) -> ir.Value:
    source, index, stride = op.operands
    load = lambda row, type_: emit.create("vector.load", [type_], [source, _place(index, row, stride)])  # noqa: E731
    return _filled(_shape(op.results[0].type), load)


def _tile_store(op: ir.Operation) -> None:
    target, index, tile, stride = op.operands
    with _rows(tile.type.shape[0]) as row:
        emit.create("vector.store", [], [_row(tile, row), target, _place(index, row, stride)])


def _multiply(op: ir.Operation, alone: bool) -> ir.Value:
    """Accumulates in the buffer of the sum if it has no other use."""
    a, b, total = op.operands
    total = total if alone else _copy(total)
    group, widen = _MULTIPLICATIONS[op.name]
    extensions = [widen if f"isZext{side}" not in op.attributes else "arith.extui" for side in ("Lhs", "Rhs")]
    with _rows(total.type.shape[0]) as row:
        number = Var.below(b.type.shape[0], name="group")
        with emit.for_loop(0, b.type.shape[0], 1, number, [_row(total, row)]) as loop:
            places = [emit.materialize(Index.of(number) * group + i) for i in range(group)]
            elements = [emit.create("memref.load", [a.type.element_type], [a, row, at]) for at in places]
            factors = [emit.broadcast(element, total.type.shape[1]) for element in elements]
            emit.yield_values([_dot(factors, _parts(_row(b, number.value), group), loop.inner_iter_args[0], extensions)])
        _set_row(loop.results[0], total, row)
    return total


def _dot_of(group: int, *extensions: str) -> Callable[[ir.Operation], ir.Value]:
    """What adds the products of groups of elements, widened: to the first of three operands, or to zeros."""

    def expand(op: ir.Operation) -> ir.Value:
        *totals, a, b = op.operands
        parts = _parts(a, group), _parts(b, group)
        return _dot(*parts, totals[0] if totals else emit.zero(op.results[0].type), extensions)

    return expand


def _parts(groups: ir.Value, group: int) -> list[ir.Value]:
    """The first, the second, ... elements of a vector of groups."""
    count = groups.type.shape[0]
    return [vectors.shuffle(groups, groups, range(first, count, group)) for first in range(group)]


def _dot(a: Sequence[ir.Value], b: Sequence[ir.Value], total: ir.Value, extensions: Sequence[str]) -> ir.Value:
    for pair in zip(a, b, strict=True):
        x, y = (emit.create(name, [total.type], [v]) for name, v in zip(extensions, pair, strict=True))
        total = emit.multiply_add(x, y, total)
    return total


def _intrinsic(op: ir.Operation) -> str:
    """The intrinsic that an operation calls; empty if it calls none."""
    return ir.StringAttr(op.attributes["intrin"]).value if op.name == INTRINSIC else ""


INTRINSIC = "llvm.call_intrinsic"
_MULTIPLICATIONS = {"x86.amx.tile_mulf": (2, "arith.extf"), "x86.amx.tile_muli": (4, "arith.extsi")}
"""Elements per group, and the default operation that widens an element."""
_EXPANSIONS: dict[str, Callable[[ir.Operation], ir.Value | None]] = {
    "x86.amx.tile_zero": _tile_zero,
    "x86.amx.tile_load": _tile_load,
    "x86.amx.tile_store": _tile_store,
    "x86.avx512.dot": _dot_of(2, "arith.extf", "arith.extf"),
}
_INTRINSICS: dict[str, Callable[[ir.Operation], ir.Value]] = {
    "llvm.x86.avx512.vpdpbusd.512": _dot_of(4, "arith.extui", "arith.extsi"),
    "llvm.x86.avx512.vpdpbusd.256": _dot_of(4, "arith.extui", "arith.extsi"),
    "llvm.x86.avx512.pmaddw.d.512": _dot_of(2, "arith.extsi", "arith.extsi"),
    "llvm.x86.avx2.pmadd.wd": _dot_of(2, "arith.extsi", "arith.extsi"),
    # Sums that fit 16 bits: the instruction saturates others, which no kernel has.
    "llvm.x86.avx512.pmaddubs.w.512": _dot_of(2, "arith.extui", "arith.extsi"),
    "llvm.x86.avx2.pmadd.ub.sw": _dot_of(2, "arith.extui", "arith.extsi"),
}
