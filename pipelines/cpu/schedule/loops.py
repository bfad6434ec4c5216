"""The default schedule: one parallel, vectorised loop nest for whatever a kernel computes.

The loops of the output are split in rows and an inner part. Everything a reduction depends on is a row: its value is computed once per
row and the inner loops read it from registers (softmax and the normalisations need no more than this). Without reductions there are no
rows, with nothing but a reduction there is no inner part. Lanes run along the last dimension of the output, or along the reduction where
that is how memory lies. Chains of elementwise operations, broadcasts, transposes, slices and gathers are evaluated in place.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import func, ir
from relayc.pipelines.cpu.schedule.reduction import Reduction
from relayc.pipelines.cpu.schedule.transpose import Turned, emit_turned, find_turned
from relayc.pipelines.kernel.access import Accesses, Analysis, collapse
from relayc.pipelines.kernel.graph import Kernel, Node, NotStructured, sources
from relayc.pipelines.kernel.index import Index, Var, linearize
from relayc.pipelines.kernel.reduction import combiners
from relayc.pipelines.schedule.strategy import Scheduled, begin_function, flat
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.pipelines.tir import emit
from relayc.pipelines.tir.evaluator import Evaluator

Value = ir.Value
Point = list[Index]


@dataclass(frozen=True)
class LoopParameters:
    """Tunable numbers of the default schedule.

    Attributes:
      vector_bytes: width of a vector.
      parallel_grain: work (elements times operations) below which a nest stays on one thread.
      parallel_chunks: iterations a parallel loop is cut into where it can be.
      unroll: vectors computed side by side along the last dimension.
    """

    vector_bytes: int = 32
    parallel_grain: int = 1 << 15
    parallel_chunks: int = 32
    unroll: int = 4


def schedule_loops(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled:
    """Schedules any kernel: parallel, vectorised loops. Raises NotStructured for a few, which are left to the fallback."""
    function, arguments = begin_function(kernel, {})
    with ir.InsertionPoint(function.entry_block):
        count = len(kernel.args)
        evaluator = Evaluator({node: flat(buffer) for node, buffer in zip(kernel.args, arguments[:count], strict=True)})
        names = {"parallel_grain": "grain", "parallel_chunks": "chunks", "unroll": "unroll"}
        parameters = tuning.replace(LoopParameters(vector_bytes=target.vector_bytes), **names)
        outputs = [flat(b) for b in arguments[count:]]
        for node, buffer in zip(kernel.results, outputs, strict=True):
            fill(node, evaluator, parameters, buffer)
        func.ReturnOp([])
    return Scheduled(function)


def fill(node: Node, evaluator: Evaluator, parameters: LoopParameters, buffer: Value) -> None:
    """Emits the computation of one node into a flat buffer."""
    _emit_root(node, evaluator, parameters, buffer, lambda point: linearize(point, node.shape))


def _emit_root(node: Node, evaluator: Evaluator, parameters: LoopParameters, buffer: Value, offset: Callable[[Point], Index]) -> None:
    """Writes `node` to `buffer` at `offset(point)`: tensors made of pieces (concatenation, padding) piece by piece."""
    if node.kind == "view" and node.inputs[0].kind != "arg":
        shape, source = node.shape, node.inputs[0]
        probe = [Index.of(Var(0, e - 1)) for e in shape]
        if offset(probe).key == linearize(probe, shape).key:  # the same memory under another shape
            _emit_root(source, evaluator, parameters, buffer, lambda point: linearize(point, source.shape))
            return
    if node.kind == "concat":
        start = 0
        for piece in node.inputs:
            at = start

            def shifted(point: Point, at: int = at) -> Index:
                return offset([i + at if d == node.axis else i for d, i in enumerate(point)])

            _emit_root(piece, evaluator, parameters, buffer, shifted)
            start += piece.shape[node.axis]
        return
    if node.kind == "pad":
        source = node.inputs[0]
        _emit_root(source, evaluator, parameters, buffer, lambda point: offset([i + low for i, low in zip(point, node.low, strict=True)]))
        _emit_border(node, evaluator, parameters, buffer, offset)
        return
    _Nest(node, evaluator, parameters, buffer, offset).emit()


def _emit_border(node: Node, evaluator: Evaluator, parameters: LoopParameters, buffer: Value, offset: Callable[[Point], Index]) -> None:
    """Fills the border of a padding: for each dimension the slabs before and after, within what earlier dimensions left."""
    source = node.inputs[0].shape
    begins, ends = [0] * len(node.shape), list(node.shape)
    for d, (low, inner, extent) in enumerate(zip(node.low, source, node.shape, strict=True)):
        for begin, end in ((0, low), (low + inner, extent)):
            if begin < end:
                starts = [*begins[:d], begin, *begins[d + 1 :]]
                sizes = tuple(e - b for b, e in zip(starts, [*ends[:d], end, *ends[d + 1 :]], strict=True))
                slab = Node("splat", sizes, node.element, op=node.pad_value)

                def shifted(point: Point, starts: list[int] = starts) -> Index:
                    return offset([i + s for i, s in zip(point, starts, strict=True)])

                if 0 not in sizes:
                    _Nest(slab, evaluator, parameters, buffer, shifted).emit()
        begins[d], ends[d] = low, low + inner


def _element_bytes(type_: ir.Type) -> int:
    return 8 if isinstance(type_, ir.IndexType) else max(1, type_.width // 8)


class _Nest:
    """One loop nest that writes one node."""

    def __init__(
        self, node: Node, evaluator: Evaluator, parameters: LoopParameters, buffer: Value, offset: Callable[[Point], Index]
    ) -> None:
        self.node, self.evaluator, self.parameters, self.buffer, self.offset = node, evaluator, parameters, buffer, offset
        self.variables = [Var(0, e - 1, name=f"d{i}") for i, e in enumerate(node.shape)]
        self.accesses = self._analyse(node, [Index.of(v) for v in self.variables])
        self.reductions = _unique_reductions(self.accesses)
        used = {v for _, point in self.accesses.reductions for i in point for v in i.terms}
        if not used <= set(self.variables):
            raise NotStructured(f"a reduction of what another one computes, at {node.kind}")
        self.is_row = [bool(self.reductions) and (v in used or self._outer_of_row(i, used)) for i, v in enumerate(self.variables)]
        self.width = self._width()

    def _outer_of_row(self, position: int, used: set[Var]) -> bool:
        # Where only the reduction is left inside, every dimension is a row.
        return not any(v.high > 0 and v not in used for v in self.variables)

    def _analyse(self, node: Node, point: Point) -> Accesses:
        analysis = Analysis(list(self.evaluator.buffers))
        analysis.visit(node, point)
        return analysis.found

    def _width(self) -> int:
        sizes = [_element_bytes(node.element) for node, _ in self.accesses.offsets] + [_element_bytes(self.node.element)]
        sizes += [_element_bytes(node.element) for node, _ in self.accesses.reductions]
        return max(1, self.parameters.vector_bytes // max(sizes))

    # ---- plan

    def emit(self) -> None:
        if self.node.size == 0:
            return
        rows = [(v, v.high + 1) for v, row in zip(self.variables, self.is_row, strict=True) if row and v.high > 0]
        inner = [(v, v.high + 1) for v, row in zip(self.variables, self.is_row, strict=True) if not row and v.high > 0]
        self.lanes_along_reduction = bool(self.reductions) and self._reduction_lanes(rows, inner)
        store = self.offset([Index.of(v) for v in self.variables])
        row_groups = collapse([v for v, _ in rows], [e for _, e in rows], self.accesses, [store]) if rows else []
        inner_groups = collapse([v for v, _ in inner], [e for _, e in inner], self.accesses, [store]) if inner else []
        self.inner_groups = inner_groups
        self.stash = self._stash()
        work = self.node.size * max(1, self.accesses.operations)
        for node, _ in self.accesses.reductions:
            work += prod(node.structured.extents)
        turned = None if self.reductions else find_turned(inner_groups, self.accesses, store, self.width, _element_bytes(self.node.element))
        if turned is not None:
            self._turned(turned, inner_groups, work)
        else:
            self._parallel(row_groups if self.reductions else inner_groups, work)

    def _reduction_lanes(self, rows, inner) -> bool:
        """Whether lanes run along the reductions: memory is contiguous there, and is not along the last row dimension."""
        if any(combiners(node.structured) is None for node in self.reductions):
            return False
        innermost = [v for node in self.reductions for v in [self._last_reduction_var(node)] if v is not None]
        last_row = rows[-1][0] if rows and (not inner or self.variables.index(rows[-1][0]) > self.variables.index(inner[-1][0])) else None
        along_reduction = all(s in (0, 1) for v in innermost for s in self.accesses.strides(v)) and bool(innermost)
        if last_row is None:
            return True
        strides = self.accesses.strides(last_row)
        along_row = all(s in (0, 1, 2) for s in strides) and last_row not in self.accesses.irregular
        if along_row and along_reduction:
            extents = max((v.high + 1 for v in innermost), default=1)
            return last_row.high + 1 < self.width <= extents
        return along_reduction and not along_row

    def _last_reduction_var(self, node: Node) -> Var | None:
        names = {v for _, offset in self.accesses.offsets for v in offset.terms if v not in self.variables}
        last = node.structured.reduction_dims[-1]
        return next((v for v in names if v.name == f"r{last}" and v.high + 1 == node.structured.extents[last]), None)

    def _stash(self) -> Node | None:
        """An elementwise node of the output's shape that is costly and read both by a reduction and afterwards: kept in the output.

        Each of its elements must be read, last, where it is kept.
        """
        place = linearize([Index.of(v) for v in self.variables], self.node.shape)
        if not self.reductions or not self.inner_groups or self.offset([Index.of(v) for v in self.variables]).key != place.key:
            return None
        for reduction in self.reductions:
            for candidate in reduction.structured.inputs:
                if (
                    candidate.kind == "generic"
                    and not candidate.is_reduction
                    and candidate.shape == self.node.shape
                    and candidate.element == self.node.element
                    and candidate is not self.node
                    and _is_costly(candidate)
                    and self._is_read_at(candidate, place)
                ):
                    return candidate
        return None

    def _is_read_at(self, candidate: Node, place: Index) -> bool:
        """Whether what follows the reductions reads `candidate`, all of it at `place`."""
        analysis = Analysis([*self.evaluator.buffers, candidate, *(node for node, _ in self.accesses.reductions)])
        analysis.visit(self.node, [Index.of(v) for v in self.variables])
        found = [offset.key for node, offset in analysis.found.offsets if node is candidate]
        return bool(found) and all(key == place.key for key in found) and not analysis.found.irregular

    # ---- emission

    def _parallel(self, loops: list[tuple[list[Var], int]], work: int) -> None:
        """Emits the outer loops, in parallel where the work is worth it, with `_inside` within."""
        lane_loop_is_outer = not self.reductions or (not self.lanes_along_reduction and not self.inner_groups)
        if self.reductions and not self.lanes_along_reduction and self._row_is_last():
            lane_loop_is_outer = True
        outer, last = (loops[:-1], loops[-1:]) if lane_loop_is_outer else (loops, [])
        if work < self.parameters.parallel_grain:
            self._serial(outer, last, {})
            return
        count, taken = 1, 0
        while taken < len(outer) and count < self.parameters.parallel_chunks:
            count *= outer[taken][1]
            taken += 1
        if taken and (count >= 4 or not last):
            group, rest = outer[:taken], outer[taken:]
            variables = [Var(0, extent - 1, name="p") for _, extent in group]

            def body() -> None:
                point: dict[Var, Index] = {}
                for (members, _), var in zip(group, variables, strict=True):
                    point.update(_assign(members, Index.of(var)))
                with self.evaluator.scope():
                    self._serial(rest, last, point)

            emit.parallel_loop([e for _, e in group], variables, body)
        elif last:
            self._chunked(outer, last[0])
        else:
            self._serial(outer, last, {})

    def _turned(self, turned: Turned, groups: list[tuple[list[Var], int]], work: int) -> None:
        """Tiles of the lanes' loop and the one that is turned against it; the last ones start early rather than ending early."""
        lane_members, lane_extent = groups[-1]
        members, extent = groups[turned.position]
        outer = [g for i, g in enumerate(groups[:-1]) if i != turned.position]
        across, along = turned.lanes * turned.across, turned.lanes * turned.along
        lane_tiles = -(-lane_extent // along)
        chunk = -(-lane_tiles // -(-lane_tiles // turned.chunk))
        variables = [Var(0, e - 1, name="p") for _, e in outer]
        chunks, tile = Var(0, -(-lane_tiles // chunk) - 1, name="c"), Var(0, -(-extent // across) - 1, name="t")
        inner = Var(0, chunk - 1, name="l")
        loops = [*variables, chunks, tile]

        def block() -> None:
            point: dict[Var, Index] = {}
            for (others, _), var in zip(outer, variables, strict=True):
                point.update(_assign(others, Index.of(var)))
            first = emit.at_most(Index(0, {tile: across}), extent - across)
            lanes = emit.at_most(Index(0, {chunks: chunk * along, inner: along}), lane_extent - along)
            with self.evaluator.scope():
                assign = lambda at, lane: {**point, **_assign(members, at), **_assign(lane_members, lane)}  # noqa: E731
                emit_turned(turned, self.evaluator, first, lanes, assign, self._store)

        def serial(rest: list[Var]) -> None:
            with ExitStack() as nest:
                for var in rest:
                    nest.enter_context(emit.for_loop(0, var.high + 1, 1, var))
                    nest.enter_context(self.evaluator.scope())
                block()

        if work < self.parameters.parallel_grain:
            serial([*loops, inner])
        else:
            emit.parallel_loop([v.high + 1 for v in loops], loops, lambda: serial([inner]))

    def _row_is_last(self) -> bool:
        last = max((i for i, v in enumerate(self.variables) if v.high > 0), default=-1)
        return last >= 0 and self.is_row[last]

    def _chunked(self, outer: list, last: tuple[list[Var], int]) -> None:
        """The lane loop itself cut in blocks that run in parallel; what is left over runs after them."""
        members, extent = last
        vector = self.width * self.parameters.unroll
        block = max(vector, -(-extent // (self.parameters.parallel_chunks * vector)) * vector)
        blocks = extent // block
        if blocks < 2 or any(v in self._checked() for v in members):
            self._serial(outer, [last], {})
            return
        var = Var(0, blocks - 1, name="p")

        def body() -> None:
            with self.evaluator.scope():
                self._serial(outer, [(members, block)], {}, Index(0, {var: block}))

        emit.parallel_loop([blocks], [var], body)
        if extent % block:
            self._serial(outer, [(members, extent % block)], {}, Index(blocks * block))

    def _checked(self) -> set[Var]:
        return {v for index, _ in self.accesses.bounds for v in index.terms}

    def _serial(self, loops: list, last: list, point: dict[Var, Index], start: Index | None = None) -> None:
        if loops:
            (members, extent), *rest = loops
            var = Var(0, extent - 1, name="s")
            with emit.for_loop(0, extent, 1, var), self.evaluator.scope():
                self._serial(rest, last, {**point, **_assign(members, Index.of(var))}, start)
        elif last:
            self._lane_loop(last[0], start or Index(), point, self._inside)
        else:
            self._inside([point])

    def _lane_loop(self, group: tuple[list[Var], int], start: Index, point: dict[Var, Index], body: Callable[[list[dict]], None]) -> None:
        """A loop with lanes: whole vectors (several side by side), then the rest in shorter ones; padding checks only at the borders."""
        members, extent = group
        low, high = self._unchecked_range(members[-1], extent)
        for begin, end, width in ((0, low, 1), (low, high, self.width), (high, extent, 1)):
            self._segment(members, start, begin, end, width, point, body)

    def _unchecked_range(self, var: Var, extent: int) -> tuple[int, int]:
        low, high = 0, extent
        for index, limit in self.accesses.bounds:
            c = index.coefficient(var)
            if c > 0:
                rest_low, rest_high = (index - Index(0, {var: c})).bounds()
                low = max(low, -(rest_low // c))
                high = min(high, -((rest_high - limit) // c))
            elif c < 0:
                return 0, 0
        low = min(low, extent)
        return low, max(low, high)

    def _segment(self, members, start: Index, begin: int, end: int, width: int, point: dict, body: Callable[[list[dict]], None]) -> None:
        while width > 1 and end - begin < width:
            width //= 2
        if end <= begin:
            return
        unroll = max(1, min(self.parameters.unroll, (end - begin) // width)) if width > 1 else 1
        step = width * unroll
        done = begin + (end - begin) // step * step
        if done - begin > step:
            var = Var(begin, done - step, step=step if begin % step == 0 else 1, name="l")
            with emit.for_loop(begin, done, step, var), self.evaluator.scope():
                self._block(members, start + var, width, unroll, point, body)
        else:
            with self.evaluator.scope():
                self._block(members, start + begin, width, unroll, point, body)
        self._segment(members, start, done, end, width if width == 1 else max(1, width if end - done >= width else width // 2), point, body)

    def _block(self, members, start: Index, width: int, unroll: int, point: dict, body: Callable[[list[dict]], None]) -> None:
        with self.evaluator.lanes(width) as lane:
            lanes = Index.of(lane) if width > 1 else Index()
            body([{**point, **_assign(members, start + k * width + lanes)} for k in range(unroll)])

    def _point(self, assigned: dict[Var, Index]) -> Point:
        return [assigned.get(v, Index()) for v in self.variables]

    def _inside(self, assigned: list[dict[Var, Index]]) -> None:
        """Everything within the row loops: reductions of the row(s), then the inner loops or the store."""
        if not self.reductions:
            self._store(assigned)
            return
        if self.inner_groups:
            for one in assigned:
                with self.evaluator.scope():
                    self._row(one)
            return
        self._reduce([self._point(a) for a in assigned])
        self._store(assigned)

    def _row(self, assigned: dict[Var, Index]) -> None:
        stash, bound = self.stash, None
        for node in self.reductions:
            if stash is not None and bound is None and _depends(node, stash):
                self._inner_loops(self.inner_groups, assigned, lambda points: self._write(stash, points))
                self.evaluator.bind(stash, self.buffer)
                bound = stash
            self._reduce([self._point(assigned)], only=node)
        self._inner_loops(self.inner_groups, assigned, self._store)
        if bound is not None:
            del self.evaluator.buffers[bound]

    def _inner_loops(self, groups: list, assigned: dict, body: Callable[[list[dict]], None]) -> None:
        row_lanes = self.evaluator.width > 1
        if not groups:
            body([assigned])
            return
        (members, extent), *rest = groups
        if not rest and not row_lanes:
            self._lane_loop((members, extent), Index(), assigned, body)
            return
        var = Var(0, extent - 1, name="k")
        with emit.for_loop(0, extent, 1, var), self.evaluator.scope():
            self._inner_loops(rest, {**assigned, **_assign(members, Index.of(var))}, body)

    def _reduce(self, points: list[Point], only: Node | None = None) -> None:
        """Computes the reductions at the points where the output at `points` reads them, and remembers their values."""
        for node in [only] if only is not None else self.reductions:
            at = [found for p in points for found in self._reduction_points(node, p)]
            unique = {tuple(i.key for i in p): p for p in at}
            if self.evaluator.width > 1 or not self.lanes_along_reduction:
                found = Reduction(self.evaluator, node).across(list(unique.values()))
            else:
                found = [Reduction(self.evaluator, node).along(p, self.width) for p in unique.values()]
            for point, values in zip(unique.values(), found, strict=True):
                for sibling in self._siblings(node):
                    self.evaluator.remember(sibling, point, values[sibling.position])

    def _siblings(self, node: Node) -> list[Node]:
        return [n for n, _ in self.accesses.reductions if n.structured is node.structured]

    def _reduction_points(self, node: Node, point: Point) -> list[Point]:
        """Where a reduction is read by what is computed at `point`."""
        values = dict(zip(self.variables, point, strict=True))
        result = []
        for read, template in self.accesses.reductions:
            if read.structured is node.structured:
                at = [index.at(values) for index in template]
                result.append(at)
        return result

    def _store(self, assigned: list[dict[Var, Index]]) -> None:
        self._write(self.node, assigned)

    def _write(self, node: Node, assigned: list[dict[Var, Index]]) -> None:
        points = [self._point(a) for a in assigned]
        values = [self.evaluator.at(node, p) for p in points]
        for point, value in zip(points, values, strict=True):
            self.evaluator.store(value, self.buffer, self.offset(point))


def _assign(members: Sequence[Var], index: Index) -> dict[Var, Index]:
    """Indices of a collapsed group of loops: all of it in the last one."""
    return {**{v: Index() for v in members[:-1]}, members[-1]: index}


def _unique_reductions(accesses: Accesses) -> list[Node]:
    """Reduction nodes in order of evaluation, one of those that share an operation."""
    found: dict[int, Node] = {}
    for node, _ in accesses.reductions:
        found.setdefault(id(node.structured), node)
    return list(found.values())


def _is_costly(node: Node) -> bool:
    return any(op.operation.name.startswith("math.") or op.operation.name == "arith.divf" for op in node.structured.block.operations)


def _depends(node: Node, wanted: Node) -> bool:
    return any(s is wanted or _depends(s, wanted) for s in sources(node))
