"""Edits of block bodies that primitives share: accesses, buffers by position, inits as blocks, inverse indices."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.editing.intrinsics import ANNOTATION
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import QUOTIENT, REMAINDER, Divided, canonical, divide, equal, substitute
from relayc.pipelines.tir.tree.members import Block, ScheduleError, blocks_of
from relayc.pipelines.tir.tree.operations import operations_in
from relayc.pipelines.tir.tree.steps import Access, Copy, Recorder
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Size


def accesses_of(nest: Nest, buffer: ir.Value) -> Iterator[tuple[Block, Access]]:
    """All loads and stores of a buffer, each with its innermost enclosing block."""
    for block in nest.blocks().values():
        for access in block.accesses():
            if access.buffer == buffer and not blocks_of(block.starts if access.is_init else block.inside):
                yield block, access


def find_buffer(nest: Nest, block: Block, kind: str, which: int | str) -> ir.Value:
    """A buffer that a block reads or writes, by its position among them or by its name. Raises ScheduleError.

    Args:
      kind: "read" or "write".
    """
    found = block.outputs() if kind == "write" else block.inputs()
    labels = [nest.buffer_name(b) for b in found]
    if isinstance(which, str) and which in labels:
        return found[labels.index(which)]
    if isinstance(which, int) and not isinstance(which, bool) and 0 <= which < len(found):
        return found[which]
    verb = "writes" if kind == "write" else "reads"
    raise ScheduleError(
        f"block {block.name}: expected one of the {len(found)} buffers it {verb} ({', '.join(labels) or 'none'}), found {which}"
    )


def check_plain(block: Block) -> None:
    """Raises ScheduleError if a block holds loops or blocks."""
    if blocks_of([*block.starts, *block.inside]):
        raise ScheduleError(f"block {block.name}: expected a block without loops inside, found a blockized one")


def check_changeable(blocks: Sequence[Block]) -> None:
    """Raises ScheduleError if a block is computed by a tensor intrinsic."""
    for block in blocks:
        if ANNOTATION in block.annotations:
            raise ScheduleError(
                f"block {block.name}: expected a block whose body may change, found one of the tensor intrinsic "
                f"{ir.StringAttr(block.annotations[ANNOTATION]).value}"
            )


def take_init(nest: Nest, block: Block, name: str, kept: Sequence[int]) -> Block:
    """Makes the init of a block a block of its own, which has no place yet, with the iterators at some positions; the others are 0."""
    kinds, extents, steps = [block.iterators[i] for i in kept], [block.extents[i] for i in kept], block.steps(True)

    def body(record: Recorder, at: Sequence[Index]) -> None:
        Copy(record, point_at(block.vars, kept, at)).run(steps or ())

    with block.operation.location:
        made = nest.new_block(name, kinds, extents, None if block.starts else body)
    if block.starts:
        _move_nested(nest, block, made, kept)
    block.remove_init()
    return made


def point_at(iterators: Sequence[Var], kept: Sequence[int], values: Sequence[Index]) -> dict[Var, Index]:
    """The values of iterators: given at some positions, 0 at the others."""
    known = dict(zip(kept, values, strict=True))
    return {v: known.get(i, Index()) for i, v in enumerate(iterators)}


def _move_nested(nest: Nest, block: Block, made: Block, kept: Sequence[int]) -> None:
    """Moves the loops and blocks of an init to another block."""
    init = block.init
    assert init is not None  # it holds blocks
    point = point_at(block.iterators_in(init), kept, list(map(Index.of, made.vars)))
    for inner in blocks_of(block.starts):
        points, guards = inner.read_place()
        inner.place([substitute(p, point) for p in points], [Guard(substitute(g.index, point), g.limit) for g in guards])
    new = dict(zip(kept, made.body.arguments, strict=True))
    for i, argument in enumerate(init.arguments):
        if next(iter(argument.uses), None) is not None:
            with nest.building():
                argument.replace_all_uses_with(new[i] if i in new else emit.index_constant(0))
    for op in operations_in(init):
        made.body.append(op)
    made.inside, block.starts = block.starts, []


def set_buffer(block: Block, access: Access, buffer: ir.Value) -> None:
    """Changes the buffer of a load or store of a block, at the same indices."""
    access.buffer = buffer
    block.changed()


def reindex_accesses(uses: Sequence[tuple[Block, Access]], buffer: ir.Value, indices: Callable[[Access], Sequence[Index]]) -> None:
    """Replaces loads and stores of blocks by accesses to another buffer, at other indices."""
    for block, access in uses:
        access.indices = tuple(map(canonical, indices(access)))
        set_buffer(block, access, buffer)


Rule = Callable[[Sequence[Index]], Index]
"""Computes an iterator of a block from the indices of an element."""
Inverse = Callable[[Sequence[Index]], list[Index]]
"""Computes the iterators of a block from the indices of an element."""


def inverse_of(nest: Nest, block: Block, access: Access) -> Inverse:
    """The inverse of an access: computes the iterators of a block from the indices of the accessed element.

    Raises ScheduleError if the access is not injective, or does not cover the buffer.
    """
    shape = nest.shape(access.buffer)
    name = nest.buffer_name(access.buffer)
    rules: list[Rule] = []
    used: set[int] = set()
    for var, extent in zip(block.vars, block.extents, strict=True):
        made = _plain(access.indices, var) or _divided(access.indices, var) or _digit(access.indices, var, shape)
        if made is None and extent == 1:
            rules.append(lambda indices: Index())
            continue
        if made is None:
            raise ScheduleError(f"block {block.name}: expected another element of {name} at each point, found {name}{list(access.indices)}")
        dims, rule = made
        if len(dims) == 1 and len(access.indices[dims[0]].terms) == 1 and shape[dims[0]] != extent:
            raise ScheduleError(
                f"block {block.name}: expected it to go over all {shape[dims[0]]} elements of dimension {dims[0]} of {name}, found {extent}"
            )
        if len(dims) == 2 and shape[dims[0]] * shape[dims[1]] != extent:
            raise ScheduleError(f"block {block.name}: expected a layout of {name} without elements that pad it, found {list(shape)}")
        used |= set(dims)
        rules.append(rule)
    for dim, extent in enumerate(shape):
        if dim not in used and extent != 1:
            raise ScheduleError(
                f"block {block.name}: expected it to go over all {extent} elements of dimension {dim} of {name}, "
                f"found those at {access.indices[dim]}"
            )
    return lambda indices: [rule(indices) for rule in rules]


def _plain(indices: Sequence[Index], var: Var) -> tuple[tuple[int, ...], Rule] | None:
    """An iterator that is itself an index."""
    for dim, index in enumerate(indices):
        if equal(index, Index.of(var)):
            return (dim,), itemgetter(dim)
    return None


def _divided(indices: Sequence[Index], var: Var) -> tuple[tuple[int, ...], Rule] | None:
    """An iterator of which one index is the quotient and another the remainder by the same number."""
    for dim, index in enumerate(indices):
        only = next(iter(index.terms), None)
        if (
            not isinstance(only, Divided)
            or only.kind != QUOTIENT
            or not equal(only.index, Index.of(var))
            or not equal(index, Index.of(only))
        ):
            continue
        divisor = only.divisor
        rest = Index.of(Divided(REMAINDER, only.index, divisor))
        other = next((i for i, found in enumerate(indices) if equal(found, rest)), None)
        if other is not None:
            return (dim, other), partial(_joined, dim, other, divisor)
    return None


def _digit(indices: Sequence[Index], var: Var, shape: Sequence[Size]) -> tuple[tuple[int, ...], Rule] | None:
    """An iterator that is a digit of an index: the index counts over several iterators, the last of which varies fastest."""
    for dim, index in enumerate(indices):
        if var not in index.terms or len(index.terms) < 2 or index.const != 0:
            continue
        left = dict(index.terms)
        count: Size = 1
        while (v := next((v for v, factor in left.items() if factor == count), None)) is not None:
            del left[v]
            count = count * v.extent
        return ((dim,), partial(_digit_of, dim, index.terms[var], var.extent)) if not left and count == shape[dim] else None
    return None


def _digit_of(dim: int, factor: Size, extent: Size, indices: Sequence[Index]) -> Index:
    return divide(divide(indices[dim], factor)[0], extent)[1]


def _joined(quotient: int, remainder: int, divisor: Size, indices: Sequence[Index]) -> Index:
    high, low = indices[quotient], indices[remainder]
    of = next((v.index for v in high.terms if isinstance(v, Divided)), None)
    if of is not None and equal(high, divide(of, divisor)[0]) and equal(low, divide(of, divisor)[1]):
        return of
    return high * divisor + low
