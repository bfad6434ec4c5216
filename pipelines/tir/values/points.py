"""Indices and values at points: lanes, scopes that keep what was emitted, and arithmetic on indices that lanes and loops move."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, affine_index
from relayc.symbolic import Dim, Size, proves

Emitted = TypeVar("Emitted")


class Points:
    """Emits indices and operations at points. `lane` is the variable that runs over the lanes of a vector of `width` elements (1: scalars).

    Values are cached per scope, so a scope must span one basic block or blocks that it dominates; `scope()` opens an inner one.

    Attributes:
      mask: which lanes are active; None for all of them.
    """

    def __init__(self) -> None:
        self.lane = Var(0, 0, name="lane")
        self.width = 1
        self.mask: ir.Value | None = None
        self.scopes: list[dict[Hashable, Any]] = [{}]
        self._blocks: list[tuple[ir.Block, dict[frozenset[tuple[Var, Size]], dict[Size, ir.Value]]]] = []

    @contextmanager
    def scope(self) -> Iterator[None]:
        self.scopes.append({})
        yield
        self.scopes.pop()

    @contextmanager
    def lanes(self, width: int, mask: ir.Value | None = None) -> Iterator[Var]:
        """A scope in which `lane` runs over `width` lanes; with a mask only active lanes are loaded and stored."""
        saved = self.lane, self.width, self.mask
        self.lane, self.width, self.mask = Var.below(width, name="lane"), width, mask
        with self.scope():
            yield self.lane
        self.lane, self.width, self.mask = saved

    @contextmanager
    def along(self, width: int, mask: ir.Value | None = None) -> Iterator[Index]:
        """A scope with lanes; yields the lane as an index, 0 for a single lane."""
        with self.lanes(width, mask):
            yield self.lane_index

    @property
    def lane_index(self) -> Index:
        """The lane as an index; 0 for a single lane."""
        return Index.of(self.lane) if self.width > 1 else Index()

    def once(self, key: Hashable, make: Callable[[], Emitted]) -> Emitted:
        """The cached value of a key in this scope or an enclosing one; otherwise emits it with `make` and caches it here."""
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        value = make()
        self.scopes[-1][key] = value
        return value

    def placed(self, index: Index) -> ir.Value:
        """An index without lanes as a value; if this block has a value that differs by a constant, the sum of both. So neighbours share the
        computations over loop variables, from the first compiler pass on."""
        if not index.terms:
            return emit.materialize(index)
        const, key = index.key
        found = self._placed_in_block().setdefault(key, {})
        if not found and len(index.terms) == 1:
            ((var, factor),) = index.terms.items()
            if factor == 1:
                found[0] = var.value
        if const not in found:
            first = next(iter(found), None)
            distance = None if first is None else const - first
            if first is not None and isinstance(distance, int):
                base = found[first]
                found[const] = emit.create("arith.addi", [base.type], [base, emit.index_constant(distance)], emit.no_overflow())
            else:
                found[const] = emit.materialize(index)
        return found[const]

    def _placed_in_block(self) -> dict[frozenset[tuple[Var, Size]], dict[Size, ir.Value]]:
        """The cache of `placed` for the current block: by the terms of an index the values for its constants; others are derived from the
        first."""
        block = ir.InsertionPoint.current.block
        for depth, (known, values) in enumerate(self._blocks):
            if known == block:
                del self._blocks[depth + 1 :]
                return values
        self._blocks.append((block, {}))
        return self._blocks[-1][1]

    def index_value(self, index: Index) -> ir.Value:
        """An index as a value: of type index, or a vector of index if it depends on the lane."""
        lane = index.coefficient(self.lane)
        vectors = {v: c for v, c in index.terms.items() if v.is_vector}
        if lane == 0 and not vectors:
            return emit.materialize(index)
        base = Index(index.const, {v: c for v, c in index.terms.items() if v is not self.lane and not v.is_vector})
        type_ = emit.vector_of(self.width, ir.IndexType.get())
        value = emit.broadcast(emit.materialize(base), self.width)
        if isinstance(lane, Dim):
            steps = ir.DenseElementsAttr.get([ir.IntegerAttr.get(ir.IndexType.get(), i) for i in range(self.width)], type=type_)
            scaled = emit.arith("muli", emit.constant(steps, type_), emit.broadcast(emit.index_constant(lane), self.width))
            value = emit.arith("addi", value, scaled)
        elif lane:
            steps = ir.DenseElementsAttr.get([ir.IntegerAttr.get(ir.IndexType.get(), lane * i) for i in range(self.width)], type=type_)
            value = emit.arith("addi", value, emit.constant(steps, type_))
        for v, c in vectors.items():
            scaled = v.value
            if c != 1:
                factor = emit.broadcast(emit.index_constant(c), self.width)
                scaled = emit.arith("muli", scaled, factor)
            value = emit.arith("addi", value, scaled)
        return value

    def opaque(self, value: ir.Value, low: Size = 0, high: Size = 1 << 40, step: Size = 1) -> Index:
        """An index for a value computed at run time, a multiple of a step."""
        return Index.of(Var(low, high, value, step, is_vector=emit.is_vector(value), name="value"))

    def divide(self, index: Index, divisor: Size, want: str) -> Index:
        """Floor division ("quotient") by a positive size or its remainder ("remainder"), emitted if it does not fold."""
        split = index.split(divisor)
        if split is not None:
            return split[want == "remainder"]
        return self.once((want, index.key, divisor), lambda: self._divided(index, divisor, want))

    def _divided(self, index: Index, divisor: Size, want: str) -> Index:
        value = self.index_value(index)
        by = emit.index_constant(divisor)
        if emit.is_vector(value):
            by = emit.broadcast(by, self.width)
        low, high = index.bounds()
        # Unsigned division is several times cheaper, and correct for nonnegative values.
        quotient = emit.arith("divui" if proves(lambda: low >= 0) else "floordivsi", value, by)
        if want == "quotient":
            return self.opaque(quotient, low // divisor, high // divisor)
        product = emit.arith("muli", quotient, by)
        return self.opaque(emit.arith("subi", value, product), 0, divisor - 1)

    def quotient_and_rest(self, index: Index, divisor: Size) -> tuple[Index, Index]:
        """Quotient and remainder of a division, emitted if they do not fold."""
        return self.divide(index, divisor, "quotient"), self.divide(index, divisor, "remainder")

    def apply(self, amap: ir.AffineMap, point: Sequence[Index]) -> list[Index]:
        """The results of an affine map at a point."""
        return [affine_index(e, point, self.quotient_and_rest) for e in amap.results]

    def clamp(self, index: Index, extent: Size) -> tuple[ir.Value, Index]:
        """(whether 0 <= index < extent, the index clamped to that range), once per scope: rows and columns of a window share them."""
        return self.once(("clamp", index.key, extent), lambda: self._clamped(index, extent))

    def _clamped(self, index: Index, extent: Size) -> tuple[ir.Value, Index]:
        value = self.index_value(index)
        last, first = emit.index_constant(extent - 1), emit.index_constant(0)
        if emit.is_vector(value):
            last, first = emit.broadcast(last, self.width), emit.broadcast(first, self.width)
        inside = emit.compare("ule", value, last)  # negatives are large
        clamped = emit.arith("minsi", emit.arith("maxsi", value, first), last)
        return inside, self.opaque(clamped, 0, extent - 1)

    def broadcast(self, value: ir.Value) -> ir.Value:
        """Broadcasts a scalar to all lanes; returns vectors unchanged."""
        if self.width == 1 or emit.is_vector(value):
            return value
        return self.once(("broadcast", value, self.width), lambda: emit.broadcast(value, self.width))

    def both(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Whether two conditions hold, of which either may be a vector of lanes."""
        if emit.is_vector(a) or emit.is_vector(b):
            a, b = emit.broadcast(a, self.width), emit.broadcast(b, self.width)
        return emit.arith("andi", a, b)

    def operation(self, name: str, result: ir.Type, operands: Sequence[ir.Value], attributes: dict[str, ir.Attribute]) -> ir.Value:
        """An operation on elements, or on vectors if an operand is one."""
        if any(map(emit.is_vector, operands)):
            is_choice = name == "arith.select" and not emit.is_vector(operands[0])
            operands = [v if is_choice and i == 0 else self.broadcast(v) for i, v in enumerate(operands)]
            result = emit.vector_of(self.width, result)
        return emit.create(name, [result], operands, attributes)
