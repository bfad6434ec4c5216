"""The body of a block at a point: scalar operations, or vectors where a lane runs along one of the iterators."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from relayc.dialects.mlir import ir
from relayc.pipelines.blocks.indices import Divided, Extremal
from relayc.pipelines.blocks.lower.registers import Registers
from relayc.pipelines.blocks.structure import ScheduleError
from relayc.pipelines.kernel.index import Index, Var, linearize
from relayc.pipelines.tir import emit, vectors
from relayc.pipelines.tir.evaluator import Evaluator
from relayc.symbolic import Size, proves

Made = TypeVar("Made")


@dataclass
class Memory:
    """A buffer in memory.

    Attributes:
      buffer: flat, row-major.
      shape: of what is kept; lows: the index of its first element, over the loops around it.
      full: the shape of the whole buffer: indices that may reach over it are clipped.
      version: grows with each store, and where loops that store begin and end: what was loaded before is then another value.
    """

    buffer: ir.Value
    shape: Sequence[Size]
    lows: Sequence[Index]
    full: Sequence[Size]
    version: int = 0


@dataclass
class File:
    """A buffer in registers: see Registers; `shape` and `lows` as of Memory."""

    registers: Registers
    shape: Sequence[Size]
    lows: Sequence[Index]
    full: Sequence[Size]


Storage = Memory | File


@dataclass
class Lanes:
    """Lanes along a loop: the first element, how many, and which of them count (None: all)."""

    var: Var
    width: int
    mask: ir.Value | None = None


@dataclass
class State:
    """Where the emission stands.

    Attributes:
      point: the index of each loop variable of the source.
      lanes: of the vectorized loop around; None outside of one.
      facts: guards that hold here: keys of indices with their limits.
    """

    point: dict[Var, Index]
    lanes: Lanes | None = None
    facts: frozenset[tuple[Hashable, Size]] = frozenset()


class Bodies:
    """Emits bodies of blocks. Values are shared inside of a scope: one basic block, or what it dominates."""

    def __init__(self, storage: Mapping[ir.Value, Storage], sizes: Mapping[ir.Value, Size]) -> None:
        self.storage, self.sizes = storage, sizes
        self.evaluator = Evaluator({})
        self.scopes: list[dict[Hashable, Any]] = [{}]
        self._lanes: dict[int, Lanes] = {}

    def lanes_of(self, width: int) -> Lanes:
        """The lanes of vectors of a width: the same each time, so that what is computed for one vector serves another."""
        if width not in self._lanes:
            self._lanes[width] = Lanes(Var(0, width - 1, name="lane"), width)
        return self._lanes[width]

    @contextmanager
    def scope(self) -> Iterator[None]:
        self.scopes.append({})
        with self.evaluator.scope():
            yield
        self.scopes.pop()

    @contextmanager
    def along(self, lanes: Lanes | None) -> Iterator[None]:
        """In it the evaluator reads and writes vectors along lanes."""
        e = self.evaluator
        saved = e.lane, e.width, e.mask
        if lanes is not None:
            e.lane, e.width, e.mask = lanes.var, lanes.width, lanes.mask
        yield
        e.lane, e.width, e.mask = saved

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` emitted for a key in this scope or one around it; else it emits that now."""
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        made = self.scopes[-1][key] = make()
        return made

    # ---- indices

    def at(self, index: Index, point: Mapping[Var, Index]) -> Index:
        """An index of the source over what is emitted; quotients and remainders that do not fold are computed."""
        total = Index(index.const)
        for var, factor in index.terms.items():
            total += self._of(var, point) * factor
        return total

    def _of(self, var: Var, point: Mapping[Var, Index]) -> Index:
        if isinstance(var, Divided):
            index = self.at(var.index, point)
            return self.once((var.kind, index.key, var.divisor), lambda: self.evaluator.divide(index, var.divisor, var.kind))
        if isinstance(var, Extremal):
            a, b = (self.evaluator.index_value(self.at(i, point)) for i in (var.a, var.b))
            a, b = self._alike(a, b)
            return self.evaluator.opaque(emit.arith(f"{var.kind}si", a, b), var.low, var.high)
        return point[var]

    def _alike(self, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
        if emit.is_vector(a) or emit.is_vector(b):
            return emit.broadcast(a, self.evaluator.width), emit.broadcast(b, self.evaluator.width)
        return a, b

    # ---- memory

    def load(self, source: ir.Value, indices: Sequence[Index], lows: Sequence[Index], safe: bool) -> ir.Value:
        """An element (a vector of them) of a buffer; with `safe` one that may lie outside is any element."""
        storage = self.storage[source]
        local = [i - low for i, low in zip(indices, lows, strict=True)]
        if isinstance(storage, File):
            first, lanes = self._slot(storage, local)
            return storage.registers.load(first, lanes)
        if safe and self.evaluator.mask is None:
            local = [self._clipped(i, extent) for i, extent in zip(local, storage.shape, strict=True)]
        offset = linearize(local, storage.shape)
        width = self.evaluator.width if offset.coefficient(self.evaluator.lane) != 0 or offset.has_vector() else 1
        key = ("load", source, storage.version, offset.key, width, self.evaluator.mask)
        return self.once(key, lambda: self.evaluator.load_from(storage.buffer, storage.buffer.type.element_type, offset))

    def _clipped(self, index: Index, extent: Size) -> Index:
        """An index that is inside: itself, or the nearest."""
        if index.is_within(0, extent - 1):
            return index
        if index.coefficient(self.evaluator.lane) != 0 or index.has_vector():
            value = self.evaluator.index_value(index)
            width = self.evaluator.width
            value = emit.arith("minsi", value, emit.broadcast(emit.index_constant(extent - 1), width))
            return self.evaluator.opaque(emit.arith("maxsi", value, emit.broadcast(emit.index_constant(0), width)), 0, extent - 1)
        low, high = index.bounds()
        value = emit.materialize(index)
        if not proves(lambda: high < extent):
            value = emit.smaller(value, extent - 1)
        if not proves(lambda: low >= 0):
            value = emit.larger(value, 0)
        return self.evaluator.opaque(value, 0, extent - 1)

    def store(self, value: ir.Value, target: ir.Value, indices: Sequence[Index], lows: Sequence[Index]) -> None:
        storage = self.storage[target]
        local = [i - low for i, low in zip(indices, lows, strict=True)]
        if isinstance(storage, File):
            first, lanes = self._slot(storage, local)
            if lanes > 1 and self.evaluator.mask is not None:
                value = emit.select(self.evaluator.mask, emit.broadcast(value, lanes), storage.registers.load(first, lanes))
            storage.registers.store(value, first, lanes)
            return
        storage.version += 1
        self.evaluator.store(value, storage.buffer, linearize(local, storage.shape))

    def _slot(self, storage: File, local: Sequence[Index]) -> tuple[int, int]:
        """First element and lanes of an access to registers."""
        offset = linearize(local, storage.shape)
        lane = self.evaluator.lane
        stride = offset.coefficient(lane)
        rest = offset - Index(0, {lane: stride})
        if not rest.is_constant or not isinstance(rest.const, int) or stride not in (0, 1):
            raise ScheduleError(f"a buffer in registers: expected elements at numbers, one after the other along lanes, found {offset}")
        return rest.const, self.evaluator.width if stride else 1

    # ---- bodies

    def run(
        self, body: ir.Block, known: Mapping[ir.Value, Index], lows: Mapping[ir.Value, Sequence[Index]], safe: bool, contract: bool
    ) -> None:
        """Emits the operations of a body whose iterators are `known`.

        Args:
          lows: of each buffer the index of the first element kept, over what is emitted.
          safe: whether it may run at points that a guard excludes: loads there give anything, and it stores to local buffers only.
          contract: whether products that are added may round once.
        """
        _Body(self, dict(known), lows, safe, contract).run(body)


class _Body:
    """One body at one point."""

    def __init__(
        self, bodies: Bodies, known: dict[ir.Value, Index], lows: Mapping[ir.Value, Sequence[Index]], safe: bool, contract: bool
    ) -> None:
        self.bodies, self.indices, self.lows, self.safe, self.contract = bodies, known, lows, safe, contract
        self.values: dict[ir.Value, ir.Value] = {}
        self.evaluator = bodies.evaluator

    def run(self, body: ir.Block) -> None:
        for view in body.operations:
            op = view.operation
            if op.name == "memref.load":
                buffer, *at = op.operands
                self.values[op.results[0]] = self.bodies.load(buffer, [self.index(v) for v in at], self.lows[buffer], self.safe)
            elif op.name == "memref.store":
                self._store(op)
            elif len(op.results) == 1 and isinstance(op.results[0].type, ir.IndexType):
                continue  # computed where it is used
            elif len(op.regions) or len(op.results) != 1:
                raise ScheduleError(f"expected operations on elements, found {op.name}")
            else:
                self.values[op.results[0]] = self._clone(op)

    def _store(self, op: ir.Operation) -> None:
        value, buffer, *at = op.operands
        indices = [self.index(v) for v in at]
        evaluator = self.evaluator
        moves = any(i.coefficient(evaluator.lane) != 0 or i.has_vector() for i in indices)
        if evaluator.width > 1 and not moves:
            self._across(op, value, buffer, indices)
            return
        self.bodies.store(self.value(value), buffer, indices, self.lows[buffer])

    def _across(self, op: ir.Operation, value: ir.Value, buffer: ir.Value, indices: list[Index]) -> None:
        """A store of one element from all lanes: they are combined, where the body adds something to what the element was."""
        combine = value.owner.operation if not isinstance(value.owner, ir.Block) else None
        found = self.value(value)
        if not emit.is_vector(found):
            self.bodies.store(found, buffer, indices, self.lows[buffer])
            return
        operands = list(combine.operands) if combine is not None else []
        held = [i for i, v in enumerate(operands) if self._is_load_of(v, buffer, indices)]
        if combine is None or len(operands) != 2 or len(held) != 1 or combine.name not in _COMMUTATIVE:
            raise ScheduleError(
                f"vectorize: expected one operation that combines an element with another one, found {combine and combine.name}"
            )
        if self.evaluator.mask is not None:
            raise ScheduleError("vectorize: expected a reduction whose extent is a whole number of vectors, found one with a guard")
        added = self.value(operands[1 - held[0]])
        element = op.operands[0].type
        attributes = dict(combine.attributes.items())
        make = lambda a, b: emit.create(combine.name, [a.type], [a, b], attributes)  # noqa: E731
        total = vectors.across_halves(emit.broadcast(added, self.evaluator.width), make)
        before = self.value(operands[held[0]])
        self.bodies.store(emit.create(combine.name, [element], [before, total], attributes), buffer, indices, self.lows[buffer])

    def _is_load_of(self, value: ir.Value, buffer: ir.Value, indices: Sequence[Index]) -> bool:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation.name != "memref.load" or owner.operation.operands[0] != buffer:
            return False
        found = [self.index(v) for v in list(owner.operation.operands)[1:]]
        return all(a.key == b.key for a, b in zip(found, indices, strict=True))

    def value(self, value: ir.Value) -> ir.Value:
        """What a value of the source is."""
        if value not in self.values:
            if isinstance(value.type, ir.IndexType):
                self.values[value] = self.evaluator.index_value(self.index(value))
            else:
                owner = value.owner
                if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
                    raise ScheduleError(f"expected a body that uses its iterators, buffers and constants, found {value}")
                self.values[value] = emit.constant(owner.operation.attributes["value"], value.type)
        return self.values[value]

    def index(self, value: ir.Value) -> Index:
        """What a value of type index is."""
        if value not in self.indices:
            self.indices[value] = self._computed(value)
        return self.indices[value]

    def _computed(self, value: ir.Value) -> Index:
        if value in self.bodies.sizes:
            return Index(self.bodies.sizes[value])
        owner = value.owner
        op = owner.operation
        if op.name == "arith.constant":
            return Index(ir.IntegerAttr(op.attributes["value"]).value)
        if op.name == "affine.apply":
            amap = ir.AffineMapAttr(op.attributes["map"]).value
            operands = [self.index(v) for v in op.operands]
            return self._affine(amap.results[0], operands[: amap.n_dims], operands[amap.n_dims :])
        if op.name in ("arith.addi", "arith.subi"):
            a, b = map(self.index, op.operands)
            return a + b if op.name == "arith.addi" else a - b
        if op.name == "arith.muli":
            a, b = map(self.index, op.operands)
            if a.is_constant or b.is_constant:
                return b * a.const if a.is_constant else a * b.const
        divided = _DIVISIONS.get(op.name)
        if divided is not None:
            a, b = map(self.index, op.operands)
            low, _ = a.bounds()
            if b.is_constant and proves(lambda: b.const >= 1) and (op.name == "arith.floordivsi" or proves(lambda: low >= 0)):
                return self.evaluator.divide(a, b.const, divided)
        operands = [self.value(v) for v in op.operands]
        return self.evaluator.opaque(self._made(op, operands), -(1 << 40))

    def _affine(self, e: ir.AffineExpr, dims: Sequence[Index], symbols: Sequence[Index]) -> Index:
        if isinstance(e, ir.AffineDimExpr):
            return dims[e.position]
        if isinstance(e, ir.AffineSymbolExpr):
            return symbols[e.position]
        if isinstance(e, ir.AffineConstantExpr):
            return Index(e.value)
        left, right = self._affine(e.lhs, dims, symbols), self._affine(e.rhs, dims, symbols)
        if isinstance(e, ir.AffineAddExpr):
            return left + right
        if isinstance(e, ir.AffineMulExpr):
            return left * right.const if right.is_constant else right * left.const
        if isinstance(e, ir.AffineCeilDivExpr):
            left += right.const - 1
        return self.evaluator.divide(left, right.const, "remainder" if isinstance(e, ir.AffineModExpr) else "quotient")

    def _clone(self, op: ir.Operation) -> ir.Value:
        return self._made(op, [self.value(v) for v in op.operands])

    def _made(self, op: ir.Operation, operands: list[ir.Value]) -> ir.Value:
        """The operation on values, widened to vectors where one is a vector."""
        width, result = self.evaluator.width, op.results[0].type
        if any(emit.is_vector(v) for v in operands):
            scalar = op.name == "arith.select" and not emit.is_vector(operands[0])
            operands = [v if scalar and i == 0 else self._wide(v) for i, v in enumerate(operands)]
            result = emit.vector_of(width, result)
        if op.name == "arith.constant":
            return emit.constant(op.attributes["value"], result)
        attributes = dict(op.attributes.items())
        if self.contract and op.name in ("arith.mulf", "arith.addf"):
            attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<contract>")
        key = (op.name, result, *operands, *(str(a) for a in attributes.values()))
        return self.bodies.once(key, lambda: emit.create(op.name, [result], operands, attributes))

    def _wide(self, value: ir.Value) -> ir.Value:
        if emit.is_vector(value):
            return value
        width = self.evaluator.width
        return self.bodies.once(("broadcast", value, width), lambda: emit.broadcast(value, width))


_COMMUTATIVE = frozenset(
    f"arith.{name}"
    for name in (
        "addf",
        "mulf",
        "maximumf",
        "minimumf",
        "maxnumf",
        "minnumf",
        "addi",
        "muli",
        "maxsi",
        "maxui",
        "minsi",
        "minui",
        "andi",
        "ori",
        "xori",
    )
)
_DIVISIONS = {
    "arith.floordivsi": "quotient",
    "arith.divui": "quotient",
    "arith.divsi": "quotient",
    "arith.remui": "remainder",
    "arith.remsi": "remainder",
}
