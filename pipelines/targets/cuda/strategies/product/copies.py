"""Copies of operands from memory to a stage of shared memory: asynchronous copies, and copies through registers."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.product.operands import Part, Places, Way
from relayc.pipelines.targets.cuda.strategies.product.problem import Point, Problem, divided, hoisted, is_below
from relayc.pipelines.targets.cuda.strategies.product.shared import CHUNK, SharedMemory, SharedTile, added, element_of, store
from relayc.pipelines.tir.gpu.copies import GLOBAL, as_pointer, copy_asynchronously
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, proves


@dataclass(frozen=True)
class Unit:
    """The unit that a thread copies at once: `part` of `line`, and its offset in the tile, in bytes."""

    line: Index
    part: Index
    place: ir.Value


class Copy(ABC):
    """Copies of one operand, tile by tile along the depth.

    `prepare` computes values that all tiles of a block share. Then for each tile `issue` starts the copy to a stage, and `finish`
    completes the copy with the result of `issue`.
    """

    def __init__(self, problem: Problem, way: Way, tile: SharedTile, start: int, threads: int) -> None:
        """
        Args:
          start: of the tile in a stage, in bytes.
        """
        self.problem, self.way, self.tile, self.start, self.threads = problem, way, tile, start, threads
        self.places = Places(problem, way)

    def prepare(self, thread: Var, shared: SharedMemory, first: Index, batch: Point, evaluator: Evaluator) -> None:
        """At the start of a block, whose lines begin at `first`."""
        self.shared, self.evaluator = shared, evaluator
        self.active = self._is_active(thread)
        self._prepare(thread, first, batch)

    @abstractmethod
    def _prepare(self, thread: Var, first: Index, batch: Point) -> None:
        """What holds for all tiles of a block."""

    @property
    @abstractmethod
    def per_line(self) -> int:
        """Units of a line."""

    @abstractmethod
    def issue(self, depth: Index, stage: ir.Value) -> list[ir.Value]:
        """Starts the copy of the tile at `depth` to the stage that begins at a byte of shared memory."""

    @abstractmethod
    def finish(self, values: list[ir.Value], stage: ir.Value) -> None:
        """Completes a copy."""

    def _units(self, thread: Var) -> list[tuple[Index, Index]]:
        """(line, part) of the units of a thread; lines, parts of a line and threads are powers of two."""
        lines, threads, per_line, by_lines = self.tile.lines, self.threads, self.per_line, self.way.is_read_by_lines(self.problem)
        count = max(1, lines * per_line // threads)
        fast, slow = (lines, per_line) if by_lines else (per_line, lines)
        number = divided(Index.of(thread), fast * slow)[1]
        if apart := threads // fast:
            outer, inner = map(hoisted, divided(number, fast))
            found = [(outer + i * apart, inner) for i in range(count)]
        else:
            wide = fast // threads
            found = [(Index(i // wide), number + (i % wide) * threads) for i in range(count)]
        return [(inner, outer) if by_lines else (outer, inner) for outer, inner in found]

    def _is_active(self, thread: Var) -> list[ir.Value]:
        """Whether a thread has units to copy; nothing if all threads have."""
        total = self.tile.lines * self.per_line
        return [] if total >= self.threads else [emit.below(Index.of(thread), total)]

    def _clamped(self, line: Index, most: Size) -> Index:
        """Clamps a line to the last one: lines after the last are computed with the elements of another line, and are not stored."""
        return line if is_below(line, most + 1) else emit.at_most(line, most)

    @property
    def is_whole(self) -> bool:
        """Whether the depth is whole tiles."""
        depth, step = self.problem.depth, self.steps
        return proves(lambda: depth % step == 0)

    @property
    def steps(self) -> int:
        """Steps of the depth of a tile."""
        return self.tile.chunks * self.tile.chunk_elements if self.way.along_depth else self.tile.lines


class AsynchronousCopy(Copy):
    """cp.async: the thread continues, and later waits for groups of copies."""

    @property
    def per_line(self) -> int:
        return self.tile.chunks * CHUNK // self.way.copied

    def _prepare(self, thread: Var, first: Index, batch: Point) -> None:
        way, run, tile = self.way, self.way.run, self.tile
        per_chunk = CHUNK // way.copied
        memory = self.evaluator.memory(way.operand.node)
        self.base = emit.create("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [memory])
        self.units: list[tuple[Unit, Part]] = []
        known: dict[tuple, Part] = {}
        for line, part in self._units(thread):
            chunk, rest = divided(part, per_chunk)
            place = tile.place(emit.materialize(line), emit.materialize(chunk))
            place = added(added(place, emit.materialize(rest * way.copied)), self.start)
            number = first + line if way.along_depth else first + part * run
            if number.key not in known:
                known[number.key] = self.places.of_line(self._clamped(number, way.extent - (1 if way.along_depth else run)), batch)
            self.units.append((Unit(line, part, place), known[number.key]))

    def issue(self, depth: Index, stage: ir.Value) -> list[ir.Value]:
        with nest.if_all(self.active, self.evaluator):
            self._copy(depth, stage)
        return []

    def _copy(self, depth: Index, stage: ir.Value) -> None:
        way, known = self.way, dict[tuple, tuple[Part, ir.Value | None]]()
        for unit, outer in self.units:
            number = depth + (unit.part * way.run if way.along_depth else unit.line)
            if number.key not in known:
                known[number.key] = self._at_depth(hoisted(number))
            inner, is_inside = known[number.key]
            conditions = [] if is_inside is None else [is_inside]
            for (_, extent), a, b in zip(way.operand.checks, outer.checks, inner.checks, strict=True):
                conditions.append(emit.below(a + b, extent))
            offset = emit.materialize((outer.offset + inner.offset) * way.element_bytes)
            source = as_pointer(added(self.base, offset), GLOBAL)
            is_there = emit.all_of(conditions) if conditions else None
            place = added(stage, unit.place)
            if is_there is None or not way.operand.fill:
                copy_asynchronously(self.shared.pointer(place), source, way.copied, is_there)
                continue
            # Copies write zeros for elements that they do not read; padding of any other value is stored.
            nest.when(
                is_there,
                self.evaluator,
                lambda: copy_asynchronously(self.shared.pointer(place), source, way.copied),  # noqa: B023 (called at once)
                lambda: self._fill(place),  # noqa: B023 (called at once)
            )

    def _fill(self, place: ir.Value) -> None:
        """Stores the value of the padding, also after the end of the depth, where B is 0."""
        way = self.way
        value = emit.number(way.operand.fill, emit.vector_of(way.run, way.element))
        store(value, self.shared.elements(way.element), element_of(place, way.element_bytes))

    def _at_depth(self, number: Index) -> tuple[Part, ir.Value | None]:
        part = self.places.of_depth(number)
        part = Part(hoisted(part.offset), tuple(hoisted(check) for check in part.checks), ())
        return part, None if self.is_whole else emit.below(number, self.problem.depth)

    def finish(self, values: list[ir.Value], stage: ir.Value) -> None:
        pass


class GatheredCopy(Copy):
    """Elements are read one by one, or computed, into registers, and stored in chunks: for operands that are not contiguous, and for
    operands that the kernel computes."""

    @property
    def per_line(self) -> int:
        return self.tile.chunks

    def _prepare(self, thread: Var, first: Index, batch: Point) -> None:
        way, tile = self.way, self.tile
        self.elements = self.shared.elements(way.element)
        self.units: list[tuple[Unit, Part]] = []
        known: dict[tuple, Part] = {}
        for line, chunk in self._units(thread):
            place = added(tile.place(emit.materialize(line), emit.materialize(chunk)), self.start)
            number = first + line
            if number.key not in known:
                known[number.key] = self.places.of_line(self._clamped(number, way.extent - 1), batch)
            self.units.append((Unit(line, chunk, place), known[number.key]))

    def issue(self, depth: Index, stage: ir.Value) -> list[ir.Value]:
        known, found = dict[tuple, tuple[list[Part], list[ir.Value | None]]](), []
        count = self.tile.chunk_elements
        with self.evaluator.scope():
            for unit, outer in self.units:
                number = depth + unit.part * count
                if number.key not in known:
                    known[number.key] = self._at_depth(hoisted(number))
                parts, inside = known[number.key]
                found.append(vectors.from_elements([self._element(outer, part, flag) for part, flag in zip(parts, inside, strict=True)]))
        return found

    def _at_depth(self, number: Index) -> tuple[list[Part], list[ir.Value | None]]:
        """The parts of the indices that depend on the steps of a chunk, and whether each step exists; the last step is repeated."""
        depth, count = self.problem.depth, self.tile.chunk_elements
        inner = self.problem.reduction[-1].extent
        # Then a chunk is all there, or not at all, and in one run.
        together = not self.places.is_computed and proves(lambda: inner % count == 0)
        if together:
            first = self.places.of_depth(emit.at_most(number, depth - count))
            step = self.places.of_depth(Index(1))
            parts = [
                Part(first.offset + step.offset * e, tuple(a + b * e for a, b in zip(first.checks, step.checks, strict=True)), ())
                for e in range(count)
            ]
            flag = None if self.is_whole else emit.below(number, depth)
            return parts, [flag] * count
        parts, flags = [], list[ir.Value | None]()
        for e in range(count):
            flags.append(emit.below(number + e, depth))
            parts.append(self.places.of_depth(emit.at_most(number + e, depth - 1)))
        return parts, flags

    def _element(self, outer: Part, inner: Part, is_inside: ir.Value | None) -> ir.Value:
        operand, evaluator = self.way.operand, self.evaluator
        conditions = [] if is_inside is None else [is_inside]
        if self.places.is_computed:
            if operand.checks:
                return self._checked(outer, inner, conditions)
            value = evaluator.at(operand.node, [a + b for a, b in zip(outer.indices, inner.indices, strict=True)])
        else:
            offset = outer.offset + inner.offset
            for (_, extent), a, b in zip(operand.checks, outer.checks, inner.checks, strict=True):
                conditions.append(emit.below(a + b, extent))
            if operand.checks:
                at = emit.select(emit.all_of(conditions[-len(operand.checks) :]), emit.materialize(offset), emit.index_constant(0))
                offset = Index.of(Var(0, operand.node.size, at, name="at"))
            value = evaluator.load_from(evaluator.memory(operand.node), operand.node.element, offset)
        return self._converted(value, conditions)

    def _checked(self, outer: Part, inner: Part, conditions: list[ir.Value]) -> ir.Value:
        """An element of a computed operand, outside its padding."""
        operand = self.way.operand
        indices = [hoisted(a + b) for a, b in zip(outer.indices, inner.indices, strict=True)]
        checked = {index.key: extent for index, extent in operand.checks}
        inside = []
        for d, original in enumerate(operand.indices):
            if original.key in checked:
                extent = checked[original.key]
                inside.append(emit.below(indices[d], extent))
                value = emit.select(inside[-1], emit.materialize(indices[d]), emit.index_constant(0))
                indices[d] = Index.of(Var.below(extent, value, name="at"))
        value = self.evaluator.at(operand.node, indices)
        return self._converted(value, [*conditions, *inside])

    def _converted(self, value: ir.Value, conditions: list[ir.Value]) -> ir.Value:
        if value.type != self.way.element:
            value = emit.convert(value, self.way.operand.casts)
        if conditions:
            value = emit.select(emit.all_of(conditions), value, emit.number(self.way.operand.fill, value.type))
        return value

    def finish(self, values: list[ir.Value], stage: ir.Value) -> None:
        with nest.if_all(self.active, self.evaluator):
            for value, (unit, _) in zip(values, self.units, strict=True):
                at = element_of(added(stage, unit.place), self.way.element_bytes)
                store(value, self.elements, at)


def copy_of(problem: Problem, way: Way, tile: SharedTile, start: int, threads: int) -> Copy:
    """The copies of an operand that go a way."""
    made = AsynchronousCopy if way.copied else GatheredCopy
    return made(problem, way, tile, start, threads)
