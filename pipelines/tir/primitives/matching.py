"""Matches a block in loops against the description of a tensor intrinsic, and maps its tensors to regions of buffers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.editing.intrinsics import TensorIntrin
from relayc.pipelines.tir.tree.guards import holds
from relayc.pipelines.tir.tree.indices import equal, substitute, variables
from relayc.pipelines.tir.tree.members import Block, Loop, ScheduleError
from relayc.pipelines.tir.tree.steps import COMMUTATIVE, Access, Constant, Step, numbered_operands
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Size, name_of, proves, symbols_of
from relayc.symbolic import substitute as substitute_sizes


@dataclass(frozen=True)
class Binding:
    """The region of a buffer that matches a tensor of an intrinsic's description.

    Attributes:
      name: of the tensor in the description.
      buffer: the memref that contains it.
      shape: of the tensor, with the sizes of this use.
      low: indices in the buffer of its first element.
      steps: for each dimension of the tensor, the increment of each index of the buffer from one element to the next.
      is_output: whether the description computes it.
      loops: the same increments for each loop of the description, by its name.
    """

    name: str
    buffer: ir.Value
    shape: tuple[Size, ...]
    low: tuple[Index, ...]
    steps: tuple[tuple[Size, ...], ...]
    is_output: bool
    loops: Mapping[str, tuple[Size, ...]]

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for equal regions."""
        return self.buffer, tuple(i.key for i in self.low), self.steps

    def strides(self, strides: Sequence[Size]) -> tuple[Size, ...]:
        """Strides of the tensor, in elements, given the strides of the buffer."""
        return tuple(sum((a * b for a, b in zip(steps, strides, strict=True)), start=0) for steps in self.steps)


@dataclass(frozen=True)
class Partial:
    """The limit of a partial tile: `outer` + `inner` < `limit`.

    Attributes:
      outer: over the loops around the tile; inner: over the loops of the tile.
    """

    outer: Index
    inner: Index
    limit: Size


@dataclass(frozen=True)
class Match:
    """The match of a block with an intrinsic.

    Attributes:
      operands: one for each tensor of the description, in order.
      sizes: of its symbols.
      accumulates: whether the block accumulates into the contents of its outputs, as the description, a reduction, does after its init.
      extents: of the loops of the description, by name.
      counts: maximum extents of the partial dimensions, by the intrinsic's names for them.
      partial: limits of partial tiles, by these names.
    """

    operands: tuple[Binding, ...]
    sizes: Mapping[str, Size]
    accumulates: bool
    extents: Mapping[str, Size]
    counts: Mapping[str, Size]
    partial: Mapping[str, Partial]


class Mismatch(Exception):
    """A difference between a block and a description."""


def match_block(nest: Nest, block: Block, intrin: TensorIntrin) -> Match:
    """Matches the block inside a blockized block (see blockize) with an intrinsic, over the iterators of the outer one.

    Raises ScheduleError, which describes the difference.
    """
    from relayc.pipelines.tir.primitives.blockize import nest_in

    inner, loops = nest_in(block)
    return match(nest, inner, loops, intrin)


def match(nest: Nest, block: Block, loops: Sequence[Loop], intrin: TensorIntrin) -> Match:
    """Matches a block in loops with an intrinsic.

    Args:
      loops: the loops of the tile, outermost first.

    Raises ScheduleError, which describes the difference.
    """
    try:
        return _Matcher(nest, block, loops, intrin.description.nest, intrin).run()
    except Mismatch as error:
        raise ScheduleError(f"block {block.name}: expected what tensor intrinsic {intrin.name} computes: {error}") from None


_Bindings = dict[str, Binding]


class _Matcher:
    def __init__(self, nest: Nest, block: Block, loops: Sequence[Loop], wanted: Nest, intrin: TensorIntrin) -> None:
        self.nest, self.block, self.loops, self.wanted, self.intrin = nest, block, loops, wanted, intrin
        (self.wanted_block,) = wanted.outer_blocks()
        self.sizes: dict[str, Size] = {}
        self.partial: dict[str, Partial] = {}
        self.shorter: dict[str, Size] = {}
        """Extents of loops with fewer iterations than the loops of the description, by the names of the latter."""
        self.tile: dict[Var, Var] = {}
        """The iterator of the description that corresponds to a loop."""

    def run(self) -> Match:
        wanted = self.wanted_block
        self._pair_loops()
        self._read_guards()
        self.point: dict[Var, Index] = dict(zip(self.block.vars, self.block.points, strict=True))
        self._check_kinds()
        bound: _Bindings = {}
        starts = self.block.has_init
        if starts and not wanted.has_init:
            raise Mismatch("expected no reduction, found one")
        if starts:
            bound = self._bodies(is_init=True, bound=bound)
        bound = self._bodies(is_init=False, bound=bound)
        tensors = self.wanted.buffers()
        unused = next((name for name in tensors if name not in bound), None)
        if unused is not None:
            raise Mismatch(f"expected that {unused} is used, found that it is not")
        operands = [bound[name] for name in tensors]
        self._check_outputs(operands)
        splits = any(self._goes_on(i) for i in self.block.reduction)
        accumulates = wanted.has_init and (splits or not starts)
        return Match(tuple(operands), dict(self.sizes), accumulates, self._extents(), self._counts(), self.partial)

    # ---- loops

    def _pair_loops(self) -> None:
        """Pairs loops and iterators in order; loops and iterators of extent 1 may be missing on either side."""
        wanted = self._wanted_order()
        loops = list(self.loops)
        if len(loops) != len(wanted):
            loops = [loop for loop in loops if loop.extent != 1]
            wanted = [v for v in wanted if v.extent != 1]
        if len(loops) != len(wanted):
            expected = ", ".join(f"{v.name} of {v.extent}" for v in wanted)
            found = ", ".join(f"{loop.name} of {loop.extent}" for loop in loops) or "none"
            raise Mismatch(f"expected {len(wanted)} loops ({expected}), found {found}")
        for var, loop in zip(wanted, loops, strict=True):
            name = name_of(var.extent)
            if name is not None and name not in self.sizes:
                self.sizes[name] = loop.extent
            self.tile[loop.var] = var
        for var, loop in zip(wanted, loops, strict=True):
            if self._size(var.extent) != loop.extent:
                self._check_shorter(var, loop)
                self.shorter[var.name] = loop.extent

    def _check_shorter(self, var: Var, loop: Loop) -> None:
        """Checks that a loop may have fewer iterations than the description's."""
        forms = self.intrin.partial.values()
        outermost = any(var.name in form and form[var.name] == max(form.values()) for form in forms)
        if not outermost or not proves(lambda: loop.extent <= var.extent):
            raise Mismatch(f"loop {loop.name}: expected an extent of {self._size(var.extent)}, found {loop.extent}")

    def _wanted_order(self) -> list[Var]:
        """The iterators of the description in the order of its loops."""
        found: list[Var] = []
        for loop in self.wanted_block.around:
            var = next(
                (v for v, p in zip(self.wanted_block.vars, self.wanted_block.points, strict=True) if equal(p, Index.of(loop.var))), None
            )
            if var is None:
                raise Mismatch(f"expected a description with an iterator for each loop, found none of {loop.name}")
            var.name = loop.name
            found.append(var)
        return found

    def _size(self, size: Size) -> Size:
        """A size of the description with its symbols replaced."""
        if isinstance(size, int):
            return size
        unknown = [s for s in symbols_of(size) if s not in self.sizes]
        if unknown:
            raise Mismatch(f"expected the extent of a loop that is {unknown[0]}, found none")
        return substitute_sizes(size, self.sizes)

    def _extents(self) -> dict[str, Size]:
        """Extents of the loops of the description."""
        return {v.name: self._size(v.extent) for v in self.wanted_block.vars}

    def _counts(self) -> dict[str, Size]:
        """Maximum extents of the partial dimensions."""
        extents = {**self._extents(), **self.shorter}
        return {name: sum((c * (extents[loop] - 1) for loop, c in form.items()), start=1) for name, form in self.intrin.partial.items()}

    def _read_guards(self) -> None:
        """Reads the guards of the tile as limits of partial dimensions; others are not allowed."""
        for guard in self.block.guards:
            inside = {v for v in variables(guard.index) if v in self.tile or v in {loop.var for loop in self.loops if loop.extent != 1}}
            if not inside or holds(guard):
                continue
            inner = Index(0, {v: c for v, c in guard.index.terms.items() if v in inside})
            name = self._partial_name(inner)
            if name is None or name in self.partial or variables(guard.index - inner) & inside:
                raise Mismatch(
                    f"expected a tile that is always full, found one that ends at {guard.limit}: "
                    "split by what divides the extent, or peel the rest"
                )
            self.partial[name] = Partial(guard.index - inner, inner, guard.limit)

    def _partial_name(self, inner: Index) -> str | None:
        """The partial dimension of the intrinsic that a guard over loops of the tile bounds; None if it must be full."""
        found = {self.tile[v].name: c for v, c in inner.terms.items() if v in self.tile}
        paired = {v.name for v in self.tile.values()}
        for name, form in self.intrin.partial.items():
            if len(found) == len(inner.terms) and found == {loop: c for loop, c in form.items() if loop in paired}:
                return name
        return None

    def _check_kinds(self) -> None:
        """Checks that the loops have the kinds (parallel or reduction) of the description."""
        kinds: dict[Var, str] = dict(zip(self.wanted_block.vars, self.wanted_block.iterators, strict=True))
        for var, kind in zip(self.block.vars, self.block.iterators, strict=True):
            for of in variables(self.point[var]):
                if of in self.tile and kinds[self.tile[of]] != kind:
                    raise Mismatch(f"loop {of.name}: expected a {kinds[self.tile[of]]} one, found that it is {kind}")

    def _goes_on(self, position: int) -> bool:
        """Whether a reduction continues outside the tile."""
        return bool(variables(self.point[self.block.vars[position]]) - set(self.tile) - {loop.var for loop in self.loops})

    def _check_outputs(self, operands: Sequence[Binding]) -> None:
        written = [o for o in operands if o.is_output]
        for output in written:
            for other in operands:
                if other is not output and other.buffer == output.buffer:
                    raise Mismatch(f"expected {output.name} and {other.name} in different buffers, found one for both")

    # ---- accesses

    def _local(self, access: Access) -> list[tuple[dict[Var, Size], Index]]:
        """The indices of an access of the block: the coefficient of each iterator of the description, and the rest."""
        found = []
        for index in access.indices:
            full = substitute(index, self.point)
            inner = {v: c for v, c in full.terms.items() if v in self.tile}
            rest = Index(full.const, {v: c for v, c in full.terms.items() if v not in self.tile})
            if variables(rest) & {loop.var for loop in self.loops if loop.extent != 1}:
                raise Mismatch(f"expected linear indices of {self.nest.buffer_name(access.buffer)}, found {full}")
            found.append(({self.tile[v]: c for v, c in inner.items()}, rest))
        return found

    def _bind(self, wanted: Access, found: Access, bound: _Bindings) -> _Bindings:
        """The bindings with an access of the description mapped to an access of the block."""
        name, label = self.wanted.buffer_name(wanted.buffer), self.nest.buffer_name(found.buffer)
        if str(wanted.buffer.type.element_type) != str(found.buffer.type.element_type):
            raise Mismatch(f"{name}: expected {wanted.buffer.type.element_type}, found {found.buffer.type.element_type} of {label}")
        local = self._local(found)
        columns: dict[Var, tuple[Size, ...]] = {v: tuple(terms.get(v, 0) for terms, _ in local) for v in self.wanted_block.vars}
        shape = self.wanted.shape(wanted.buffer)
        rank = len(local)
        steps: list[tuple[Size, ...]] = []
        for dim, index in enumerate(wanted.indices):
            others = {v for i, other in enumerate(wanted.indices) if i != dim for v in other.terms}
            alone = next((v for v, c in index.terms.items() if c == 1 and v not in others), None)
            if alone is None and index.terms:
                raise Mismatch(f"{name}: expected a description with an iterator of its own for dimension {dim}, found {index}")
            steps.append(columns[alone] if alone is not None else (0,) * rank)
        for var in self.wanted_block.vars:
            total = [sum((i.terms.get(var, 0) * s[t] for i, s in zip(wanted.indices, steps, strict=True)), start=0) for t in range(rank)]
            if tuple(total) != columns[var]:
                raise Mismatch(
                    f"{name}: expected indices {list(wanted.indices)}, found {label}{[substitute(i, self.point) for i in found.indices]}"
                )
        moves = shape[-1] != 1 and bool(wanted.indices[-1].terms) if steps else False
        apart = name in self.intrin.strided or name in self.intrin.fragments
        if moves and not apart and steps[-1] != (*(0,) * (rank - 1), 1):
            raise Mismatch(
                f"{name}: expected that its last dimension is contiguous in {label}, found steps {list(steps[-1])} of its indices"
            )
        low = [rest for _, rest in local]
        for index, step in zip(wanted.indices, steps, strict=True):
            low = [i - self._size(index.const) * s for i, s in zip(low, step, strict=True)]
        loops = {v.name: steps for v, steps in columns.items()}
        sizes, is_output = tuple(map(self._size, shape)), self.wanted.is_output(wanted.buffer)
        made = Binding(name, found.buffer, sizes, tuple(low), tuple(steps), is_output, loops)
        if name in bound and bound[name].place != made.place:
            raise Mismatch(f"{name}: expected one place for all its uses, found {label}{list(low)} and {list(bound[name].low)}")
        return {**bound, name: made}

    # ---- bodies

    def _bodies(self, is_init: bool, bound: _Bindings) -> _Bindings:
        wanted, found = _Code.of(self.wanted_block, is_init), _Code.of(self.block, is_init)
        if len(wanted.stores) != len(found.stores):
            raise Mismatch(f"expected {len(wanted.stores)} stores, found {len(found.stores)}")
        for a, b in zip(wanted.stores, found.stores, strict=True):
            bound = self._bind(wanted.access(a), found.access(b), bound)
            bound = self._value(wanted.operands[a][0], found.operands[b][0], wanted, found, bound)
        return bound

    def _value(self, a: Any, b: Any, wanted: "_Code", found: "_Code", bound: _Bindings) -> _Bindings:
        """Compares two expressions."""
        types = wanted.type_of(a), found.type_of(b)
        if types[0] != types[1]:
            raise Mismatch(f"expected a value of {types[0]}, found one of {types[1]}")
        if wanted.is_load(a) and found.is_load(b):
            return self._bind(wanted.access(a), found.access(b), bound)
        if isinstance(a, Index) and isinstance(b, Index):
            return self._index(a, b, bound)
        if wanted.operation(a) is None or wanted.operation(a) != found.operation(b):
            raise Mismatch(f"expected {wanted.text(a)}, found {found.text(b)}")
        if not isinstance(a, int):
            return bound
        one, other = wanted.operands[a], found.operands[b]
        try:
            return self._operands(one, other, wanted, found, bound)
        except Mismatch:
            if wanted.steps[a].name not in COMMUTATIVE:
                raise
            try:
                return self._operands(one, other[::-1], wanted, found, bound)
            except Mismatch:
                pass
            raise

    def _operands(self, a: Sequence[Any], b: Sequence[Any], wanted: "_Code", found: "_Code", bound: _Bindings) -> _Bindings:
        for one, other in zip(a, b, strict=True):
            bound = self._value(one, other, wanted, found, bound)
        return bound

    def _index(self, a: Index, b: Index, bound: _Bindings) -> _Bindings:
        """Compares two indices that are used as numbers in the body."""
        full = substitute(b, self.point)
        names = {v: Index.of(self.tile[v]) for v in variables(full) if v in self.tile}
        sized = Index(self._size(a.const), {v: self._size(c) for v, c in a.terms.items()})
        if not equal(sized, substitute(full, names)):
            raise Mismatch(f"expected the number {a}, found {full}")
        return bound


@dataclass(frozen=True)
class _Code:
    """The steps of an init or a body. The description is of another context: types and attributes are compared as texts.

    Attributes:
      operands: of each step (see numbered_operands).
    """

    steps: Sequence[Step]
    operands: Sequence[Sequence[Any]]

    @staticmethod
    def of(block: Block, is_init: bool) -> "_Code":
        steps = block.steps(is_init) or ()
        return _Code(steps, numbered_operands(steps))

    @property
    def stores(self) -> list[int]:
        return [number for number, step in enumerate(self.steps) if step.name == "memref.store"]

    def access(self, number: int) -> Access:
        found = self.steps[number].access
        assert found is not None
        return found

    def is_load(self, operand: Any) -> bool:
        return isinstance(operand, int) and self.steps[operand].name == "memref.load"

    def type_of(self, operand: Any) -> str:
        if isinstance(operand, Index):
            return "index"
        return str(self.steps[operand].type if isinstance(operand, int) else operand.type)

    def operation(self, operand: Any) -> tuple[str, dict[str, str]] | None:
        """Name and attributes, except fast-math flags, of the operation of an operand; None if it has none."""
        if isinstance(operand, Constant):
            return "arith.constant", {"value": str(operand.attribute)}
        if not isinstance(operand, int):
            return None
        step = self.steps[operand]
        return step.name, {name: str(value) for name, value in step.attributes.items() if name != "fastmath"}

    def text(self, operand: Any) -> str:
        if isinstance(operand, Constant):
            return str(operand.attribute)
        return self.steps[operand].name if isinstance(operand, int) else "an iterator"
