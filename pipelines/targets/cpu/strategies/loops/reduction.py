"""Reductions at a point: loops over the reduction dimensions with the accumulators as loop-carried values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.te.read.access import Analysis, MergedLoop, collapse
from relayc.pipelines.te.read.graph import Node
from relayc.pipelines.te.read.reduction import COMBINERS, combiners
from relayc.pipelines.tir.values import vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.pipelines.tir.values.lanes import LaneCover, cover_sums
from relayc.symbolic import Dim, Size

Values = list[ir.Value]
Steps = Mapping[int, Index]
"""Indices of reduction loops, by their positions among the loops of the operation."""

UNROLL_LIMIT = 49
"""Reductions over at most this many points (a pooling or depthwise window) are unrolled, so that index checks fold."""
UNROLLED_LOADS = 512
"""Loads that an unrolled reduction may take; LLVM's time grows with the square of their number."""
ACCUMULATORS = 4
"""Vectors accumulated side by side when the lanes run along the reduction, to hide the latency of the combiner."""


class Reduction:
    """Emits one reduction node; `points` are the output points computed side by side (their accumulators share the loops).

    `visit` is called with each point of the loops once its elements are evaluated.
    """

    def __init__(self, evaluator: Evaluator, node: Node, visit: Callable[[list[Index]], None] = lambda point: None) -> None:
        self.evaluator, self.node, self.structured, self.visit = evaluator, node, node.structured, visit
        self.dims = self.structured.reduction_dims

    def _loop_point(self, indices: Sequence[Index]) -> list[Index]:
        return self.structured.loop_point(self.node.position, indices)

    def _initial(self, indices: Sequence[Index]) -> Values:
        """Initial accumulators of a point, widened to the evaluator's lanes."""
        values = [self.evaluator.at(init, indices if init.shape else []) for init in self.structured.inits]
        return [emit.broadcast(v, self.evaluator.width) for v in values]

    def across(self, points: Sequence[Sequence[Index]]) -> list[Values]:
        """Every point (a lane of points where the evaluator has lanes) by itself: the lanes run along the outputs."""
        bases = [self._loop_point(p) for p in points]
        accumulators = [v for p in points for v in self._initial(p)]
        extents = [self.structured.extents[d] for d in self.dims]
        total = prod(extents)
        if isinstance(total, int) and total <= UNROLL_LIMIT and total * self._loads(points) <= UNROLLED_LOADS:
            for position in range(total):
                index: dict[int, Index] = {}
                rest: Size = position
                for d, extent in reversed(list(zip(self.dims, extents, strict=True))):
                    index[d], rest = Index(rest % extent), rest // extent
                accumulators = self._step(bases, index, accumulators)
        else:
            fixed = {d: Index() for d, extent in zip(self.dims, extents, strict=True) if extent == 1}
            variables = {d: Var.below(extent, name=f"r{d}") for d, extent in zip(self.dims, extents, strict=True) if extent != 1}
            index = {**fixed, **{d: Index.of(v) for d, v in variables.items()}}
            accumulators = _carried(list(variables.values()), accumulators, lambda values: self._step(bases, index, values))
        return self._by_point(accumulators, len(points))

    def _loads(self, points: Sequence[Sequence[Index]]) -> int:
        """Loads of one step of the reduction; those without a vector load of their stride count once per lane."""
        analysis = Analysis(list(self.evaluator.buffers))
        for point in points:
            analysis.visit(self.node, point)
        lane, width = self.evaluator.lane, self.evaluator.width
        return sum(1 if offset.coefficient(lane) in (-1, 0, 1, 2) else width for _, offset in analysis.found.offsets)

    def _by_point(self, values: Sequence[ir.Value], count: int) -> list[Values]:
        outputs = len(self.structured.inits)
        return [list(values[i * outputs : (i + 1) * outputs]) for i in range(count)]

    def _step(self, bases: Sequence[list[Index]], index: Steps, accumulators: Sequence[ir.Value]) -> Values:
        result: Values = []
        with self.evaluator.scope():
            for base, values in zip(bases, self._by_point(accumulators, len(bases)), strict=True):
                point = [index.get(d, i) for d, i in enumerate(base)]
                found = self.evaluator.body(self.node, point, values)
                self.visit(point)
                result += [emit.broadcast(v, self.evaluator.width) if emit.is_vector(a) else v for v, a in zip(found, values, strict=True)]
        return result

    def along(self, indices: Sequence[Index], lanes: LaneCover) -> Values:
        """One scalar point with the lanes along the innermost reduction dimension, joined at the end."""
        width = lanes.width
        names = combiners(self.structured)
        if names is None or width == 1 or 0 in (self.structured.extents[d] for d in self.dims):
            return self.across([indices])[0]
        base = self._loop_point(indices)
        positions, merged = self._merged(indices)
        *outer, inner = merged
        extent = inner.extent
        start = [self._neutral(name, init, width) for name, init in zip(names, self._initial(indices), strict=True)]
        if isinstance(extent, int):
            blocks = min(ACCUMULATORS, extent // width) or 1
            tail = extent % width > 0
        else:
            blocks, tail = 1, not lanes.masked
        wide_count = blocks * len(start)
        variables = [Var.below(loop.extent, name="r") for loop in outer]
        around = {v: i for loop, var in zip(outer, variables, strict=True) for v, i in loop.at(Index.of(var)).items()}

        def at(index: Index) -> Steps:
            return {positions[v]: i for v, i in {**around, **inner.at(index)}.items()}

        def some(first: Index, width: int, unroll: int, mask: ir.Value | None, accumulators: Values) -> Values:
            if width == 1:
                return self._step([base], at(first), accumulators)
            found = self._lanes(base, at, first, unroll, width, accumulators, mask)
            return found if mask is None else [emit.select(mask, new, old) for new, old in zip(found, accumulators, strict=True)]

        def side_by_side(sums: list[Values]) -> Values:
            return [self._pairwise(name, list(same)) for name, same in zip(names, zip(*sums, strict=True), strict=True)]

        def innermost(accumulators: Values) -> Values:
            wide, scalars = accumulators[:wide_count], accumulators[wide_count:]
            if isinstance(extent, Dim):
                several = replace(lanes, unroll=ACCUMULATORS)
                wide, scalars = cover_sums(Index(extent), several, self.evaluator, some, wide, scalars, start, side_by_side)
                return wide + scalars
            step, done = width * blocks, 0
            if extent // step:
                done = extent // step * step
                var = Var(0, done - step, step=step, name="r")
                with emit.for_loop(0, done, step, var, wide) as loop:
                    emit.yield_values(self._lanes(base, at, Index.of(var), blocks, width, list(loop.inner_iter_args)))
                wide = list(loop.results)
            while extent - done >= width:
                wide = self._lanes(base, at, Index(done), 1, width, wide[: len(start)]) + wide[len(start) :]
                done += width
            for position in range(done, extent):
                scalars = self._step([base], at(Index(position)), scalars)
            return wide + scalars

        scalars = [self._neutral(name, init, 1) for name, init in zip(names, self._initial(indices), strict=True)] if tail else []
        found = _carried(variables, start * blocks + scalars, innermost)
        return [
            self._join(name, found[k : wide_count : len(start)], found[wide_count + k] if tail else None, k, indices)
            for k, name in enumerate(names)
        ]

    def _merged(self, indices: Sequence[Index]) -> tuple[dict[Var, int], list[MergedLoop]]:
        """The position of each reduction loop, and these loops merged; those of one step are left out."""
        analysis = Analysis(list(self.evaluator.buffers))
        analysis.visit(self.node, indices)
        variables = analysis.reduction_vars[id(self.structured)]
        positions = dict(zip(variables, self.dims, strict=True))
        kept = [v for v, d in positions.items() if self.structured.extents[d] != 1] or variables[-1:]
        return positions, collapse(kept, analysis.found)

    def _lanes(
        self,
        base: list[Index],
        at: Callable[[Index], Steps],
        start: Index,
        blocks: int,
        width: int,
        accumulators: Values,
        mask: ir.Value | None = None,
    ) -> Values:
        count = len(self.structured.inits)
        result: Values = []
        for block in range(blocks):
            with self.evaluator.lanes(width, mask) as lane:
                steps = at(start + block * width + Index.of(lane))
                result += self._step([base], steps, accumulators[block * count : (block + 1) * count])
        return result

    def _neutral(self, name: str, init: ir.Value, width: int) -> ir.Value:
        neutral = COMBINERS[name][1]
        return emit.broadcast(init if neutral is None else emit.number(neutral, init.type), width)

    def _pairwise(self, name: str, wide: Values) -> ir.Value:
        return vectors.pairwise(wide, lambda a, b: emit.create(name, [a.type], [a, b]))

    def _join(self, name: str, wide: Values, tail: ir.Value | None, position: int, indices: Sequence[Index]) -> ir.Value:
        """Combines the sums of the lanes, of the remainder, and the initial value if the sums started without it."""
        kind, neutral = COMBINERS[name]
        combine = lambda a, b: emit.create(name, [a.type], [a, b])  # noqa: E731 (an argument, not a definition)
        vector = self._pairwise(name, wide)
        attributes = {"kind": ir.Attribute.parse(f"#vector.kind<{kind}>")}
        if name in ("arith.addf", "arith.mulf"):
            attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<reassoc>")
        value = emit.create("vector.reduction", [vector.type.element_type], [vector], attributes)
        if tail is not None:
            value = combine(value, tail)
        if neutral is not None:
            value = combine(value, self._initial(indices)[position])
        return value


def _carried(variables: Sequence[Var], values: Values, body: Callable[[Values], Values]) -> Values:
    """Nested loops that carry values, outermost first; `body` returns the values for the next iteration."""
    if not variables:
        return body(values)
    var, *rest = variables
    with emit.for_loop(0, var.extent, 1, var, values) as loop:
        emit.yield_values(_carried(rest, list(loop.inner_iter_args), body))
    return list(loop.results)
