"""The elements that a block writes: whether they determine its iterators, so that no two iterations write the same element."""

from collections.abc import Collection, Sequence

from relayc.dialects.tir.block import PARALLEL, REDUCTION
from relayc.pipelines.emission.index import Index, Var, of_terms
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import QUOTIENT, REMAINDER, Divided, Extremal, equal, variables
from relayc.pipelines.tir.tree.members import Block, ScheduleError
from relayc.pipelines.tir.tree.steps import Access
from relayc.symbolic import Size, bounds, exact, maximum, minimum, proves


def check_elements(block: Block) -> None:
    """Checks the kinds of a block's iterators: written elements determine the parallel iterators, no reduction iterator occurs in their
    indices, and the block reads elements that it writes only at the same parallel iterators. Raises ScheduleError.

    These are TVM's conditions for complete blocks and reduction blocks; TVM assumes that written elements are distinct.
    """
    if block.contents.is_checked:
        return
    moving = [v for v, extent in zip(block.vars, block.extents, strict=True) if extent != 1]
    elements = [v for v, kind in zip(block.vars, block.iterators, strict=True) if kind == PARALLEL and v in moving]
    steps = {v for v, kind in zip(block.vars, block.iterators, strict=True) if kind == REDUCTION and v in moving}
    accesses = block.accesses()
    stores = [a for a in accesses if a.is_store]
    for store in stores:
        for index in store.indices:
            if found := variables(index) & steps:
                raise ScheduleError(
                    f"expected a reduction of {block} that ends in one element, found that {_names(block, found)} is in the index "
                    f"{_text(store)} of what it writes"
                )
        if not tell(store.indices, elements):
            raise ScheduleError(
                f"expected each element of {block} to be written for one value of its parallel iterators, found {_text(store)} "
                f"for {_names(block, elements)}"
            )
    for load in accesses:
        for store in stores:
            if load is store or load.buffer != store.buffer:
                continue
            both = [_both(i, j, block.vars) for i, j in zip(load.indices, store.indices, strict=True)]
            if not tell([index for index in both if index is not None], elements):
                raise ScheduleError(
                    f"expected {block} to access what it writes at one value of its parallel iterators, found {_text(load)} and "
                    f"{_text(store)}"
                )
    block.contents.is_checked = True


def _both(a: Index, b: Index, iterators: Sequence[Var]) -> Index | None:
    """An index with the values of two, if their parts over the iterators are equal; the other parts are over loops inside the block."""
    outer = [of_terms(i.const, {v: c for v, c in i.terms.items() if variables(Index.of(v)) <= set(iterators)}) for i in (a, b)]
    if not equal(*outer):
        return None
    ends = [(i - o).bounds() for i, o in zip((a, b), outer, strict=True)]
    inner = Var(minimum(*(low for low, _ in ends)), maximum(*(high for _, high in ends)))
    return outer[0] + inner


def _names(block: Block, found: Collection[Var]) -> str:
    return ", ".join(v.name for v in block.vars if v in found)


def _text(access: Access) -> str:
    return f"[{', '.join(map(str, access.indices))}]"


class _Guarded(Var):
    """The index of a guard, as one variable below the limit."""

    def __init__(self, guard: Guard) -> None:
        low, high = guard.index.bounds()
        super().__init__(low, minimum(high, guard.limit - 1))
        self.index = guard.index


def tell(indices: Sequence[Index], wanted: Collection[Var], known: Collection[Var] = (), guards: Sequence[Guard] = ()) -> bool:
    """Whether indices determine `wanted` variables, given `known` ones: whether no two points agree in the indices and differ in these
    variables.

    Args:
      guards: hold at these points.
    """
    limits = [_Guarded(g) for g in sorted(guards, key=lambda g: len(g.index.terms)) if g.index.terms]
    found = set(known)
    pending = [_guarded(index, limits) for index in indices]
    seen = {index.key for index in pending}
    while not found.issuperset(wanted):
        told = [var for index in pending for var in _told(index, found)]
        if not told:
            return False
        found.update(told)
        for var in list(found):
            if isinstance(var, _Guarded) or (isinstance(var, Divided) and _is_whole(var, found)):
                more = var.index
                if more.key not in seen:
                    seen.add(more.key)
                    pending.append(more if isinstance(var, _Guarded) else _guarded(more, limits))
    return True


def _guarded(index: Index, limits: Sequence[_Guarded]) -> Index:
    """Replaces the parts of an index that guards bound by one variable each."""
    for limit in limits:
        part = limit.index
        if not part.terms.keys() < index.terms.keys():
            continue
        factors = {exact(index.terms[v], c) for v, c in part.terms.items()}
        factor = factors.pop()
        if not factors and factor is not None:
            index = index - part * factor + Index.of(limit) * factor
    return index


def _told(index: Index, known: Collection[Var]) -> list[Var]:
    """Further variables that the value of an index determines: variables whose step exceeds the range of all others; none where the sign of
    a factor is unknown, and with it the range."""
    steps = {v: _magnitude(c) for v, c in index.terms.items() if not _is_known(v, known)}
    if 0 in steps.values():
        return []
    reach: dict[Var, Size] = {v: (v.high - v.low) * step for v, step in steps.items()}
    return [v for v, step in steps.items() if _exceeds(step, [r for u, r in reach.items() if u is not v])]


def _exceeds(step: Size, reach: Sequence[Size]) -> bool:
    return proves(lambda: step > sum(reach))


def _is_known(var: Var, known: Collection[Var]) -> bool:
    return var in known or (isinstance(var, (Divided, Extremal)) and variables(Index.of(var)) <= set(known))


def _magnitude(factor: Size) -> Size:
    """The absolute value of a factor; 0 if its sign is unknown."""
    low, high = bounds(factor)
    return factor if low >= 0 else -factor if high <= 0 else 0


def _is_whole(var: Divided, known: Collection[Var]) -> bool:
    """Whether the quotient and remainder of a variable's dividend are known, and thus the dividend."""
    index, divisor = var.index, var.divisor
    if Divided(REMAINDER, index, divisor) not in known:
        return False
    quotients = [Divided(QUOTIENT, index, divisor)]
    only = next(iter(index.terms), None)
    if isinstance(only, Divided) and only.kind == QUOTIENT and index.key == Index.of(only).key:
        quotients.append(Divided(QUOTIENT, only.index, only.divisor * divisor))
    return any(q in known for q in quotients)
