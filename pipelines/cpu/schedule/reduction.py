"""Reductions at a point: loops over the reduction dimensions with the accumulators as loop-carried values."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.kernel.access import Analysis, collapse
from relayc.pipelines.kernel.graph import Node, Structured
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.kernel.reduction import COMBINERS, combiners
from relayc.pipelines.tir import emit
from relayc.pipelines.tir.evaluator import Evaluator

Value = ir.Value

UNROLL_LIMIT = 49
"""Reductions over at most this many points (a pooling or depthwise window) are unrolled, so that index checks fold."""
UNROLLED_LOADS = 512
"""Loads that an unrolled reduction may take; LLVM's time grows with the square of their number."""
ACCUMULATORS = 4
"""Vectors accumulated side by side when the lanes run along the reduction, to hide the latency of the combiner."""


class Reduction:
    """Emits one reduction node; `points` are the output points computed side by side (their accumulators share the loops)."""

    def __init__(self, evaluator: Evaluator, node: Node) -> None:
        self.evaluator = evaluator
        self.node = node
        self.structured: Structured = node.structured
        self.dims = self.structured.reduction_dims

    def loop_point(self, indices: Sequence[Index]) -> list[Index]:
        point: list[Index] = [Index()] * len(self.structured.extents)
        for index, loop in zip(indices, self.structured.output_dims(self.node.position), strict=True):
            if loop is not None:
                point[loop] = index
        return point

    def initial(self, indices: Sequence[Index]) -> list[Value]:
        """Initial accumulators of a point, widened to the evaluator's lanes."""
        values = [self.evaluator.at(init, indices) if init.shape else self.evaluator.at(init, []) for init in self.structured.inits]
        return [emit.broadcast(v, self.evaluator.width) for v in values] if self.evaluator.width > 1 else values

    def across(self, points: Sequence[Sequence[Index]]) -> list[list[Value]]:
        """Every point (a lane of points where the evaluator has lanes) by itself: the lanes run along the outputs."""
        bases = [self.loop_point(p) for p in points]
        accumulators = [v for p in points for v in self.initial(p)]
        extents = [self.structured.extents[d] for d in self.dims]
        total = 1
        for extent in extents:
            total *= extent
        if total <= UNROLL_LIMIT and total * self._loads(points) <= UNROLLED_LOADS:
            for position in range(total):
                index, rest = {}, position
                for d, extent in reversed(list(zip(self.dims, extents, strict=True))):
                    index[d], rest = Index(rest % extent), rest // extent
                accumulators = self._step(bases, index, accumulators)
        else:
            accumulators = self._nest(bases, list(zip(self.dims, extents, strict=True)), {}, accumulators)
        return self._by_point(accumulators, len(points))

    def _loads(self, points: Sequence[Sequence[Index]]) -> int:
        """Loads of one step of the reduction; those without a vector load of their stride count once per lane."""
        analysis = Analysis(list(self.evaluator.buffers))
        for point in points:
            analysis.visit(self.node, point)
        lane, width = self.evaluator.lane, self.evaluator.width
        return sum(1 if offset.coefficient(lane) in (-1, 0, 1, 2) else width for _, offset in analysis.found.offsets)

    def _by_point(self, values: Sequence[Value], count: int) -> list[list[Value]]:
        outputs = len(self.structured.inits)
        return [list(values[i * outputs : (i + 1) * outputs]) for i in range(count)]

    def _step(self, bases: Sequence[list[Index]], index: dict[int, Index], accumulators: Sequence[Value]) -> list[Value]:
        result: list[Value] = []
        with self.evaluator.scope():
            for base, values in zip(bases, self._by_point(accumulators, len(bases)), strict=True):
                point = [index.get(d, i) for d, i in enumerate(base)]
                found = self.evaluator.body(self.node, point, values)
                result += [emit.broadcast(v, self.evaluator.width) if emit.is_vector(a) else v for v, a in zip(found, values, strict=True)]
        return result

    def _nest(self, bases: Sequence[list[Index]], loops: list[tuple[int, int]], index: dict, accumulators: list[Value]) -> list[Value]:
        if not loops:
            return self._step(bases, index, accumulators)
        (dim, extent), *inner = loops
        if extent == 1:
            return self._nest(bases, inner, {**index, dim: Index()}, accumulators)
        var = Var(0, extent - 1, name=f"r{dim}")
        with emit.for_loop(0, extent, 1, var, accumulators) as loop:
            emit.yield_values(self._nest(bases, inner, {**index, dim: Index.of(var)}, list(loop.inner_iter_args)))
        return list(loop.results)

    def along(self, indices: Sequence[Index], width: int) -> list[Value]:
        """One scalar point with the lanes along the innermost reduction dimension, joined at the end."""
        names = combiners(self.structured)
        if names is None or width == 1 or not all(self.structured.extents[d] for d in self.dims):
            return self.across([indices])[0]
        base = self.loop_point(indices)
        groups = self._groups(indices)
        *outer, (inner_dims, extent) = groups
        start = [self._neutral(name, init, width) for name, init in zip(names, self.initial(indices), strict=True)]
        blocks = min(ACCUMULATORS, extent // width) or 1
        vectors = [v for _ in range(blocks) for v in start]
        tail = extent % width if extent >= width else extent

        def inner(index: dict[int, Index], accumulators: list[Value]) -> list[Value]:
            wide, scalars = accumulators[: len(vectors)], accumulators[len(vectors) :]
            step, done = width * blocks, 0
            if extent // step:
                done = extent // step * step
                var = Var(0, done - step, step=step, name="r")
                with emit.for_loop(0, done, step, var, wide) as loop:
                    emit.yield_values(self._lanes(base, index, inner_dims, Index.of(var), blocks, width, list(loop.inner_iter_args)))
                wide = list(loop.results)
            while extent - done >= width:
                count = len(start)
                wide = self._lanes(base, index, inner_dims, Index(done), 1, width, wide[:count]) + wide[count:]
                done += width
            for position in range(done, extent):
                scalars = self._step([base], {**index, **_only_last(inner_dims, Index(position))}, scalars)
            return wide + scalars

        scalars = [self._neutral(name, init, 1) for name, init in zip(names, self.initial(indices), strict=True)] if tail else []
        found = self._outer(outer, {}, vectors + scalars, inner)
        return [self._join(name, k, found, len(start), blocks, bool(tail), indices) for k, name in enumerate(names)]

    def _groups(self, indices: Sequence[Index]) -> list[tuple[list[int], int]]:
        analysis = Analysis(list(self.evaluator.buffers))
        analysis.visit(self.node, indices)
        variables = analysis.reduction_vars[id(self.structured)]
        dims = dict(zip(map(id, variables), self.dims, strict=True))
        kept = [v for v, d in zip(variables, self.dims, strict=True) if self.structured.extents[d] > 1] or variables[-1:]
        groups = collapse(kept, [v.high + 1 for v in kept], analysis.found)
        return [([dims[id(v)] for v in members], extent) for members, extent in groups]

    def _outer(self, loops: list, index: dict[int, Index], accumulators: list[Value], inner) -> list[Value]:
        if not loops:
            return inner(index, accumulators)
        (dims, extent), *rest = loops
        var = Var(0, extent - 1, name="r")
        with emit.for_loop(0, extent, 1, var, accumulators) as loop:
            emit.yield_values(self._outer(rest, {**index, **_only_last(dims, Index.of(var))}, list(loop.inner_iter_args), inner))
        return list(loop.results)

    def _lanes(self, base, index, dims, start: Index, blocks: int, width: int, accumulators: list[Value]) -> list[Value]:
        count = len(self.structured.inits)
        result: list[Value] = []
        for block in range(blocks):
            with self.evaluator.lanes(width) as lane:
                at = {**index, **_only_last(dims, start + block * width + Index.of(lane))}
                result += self._step([base], at, accumulators[block * count : (block + 1) * count])
        return result

    def _neutral(self, name: str, init: Value, width: int) -> Value:
        neutral = COMBINERS[name][1]
        type_ = init.type
        if neutral is not None:
            attribute = ir.FloatAttr.get(type_, neutral) if isinstance(type_, ir.FloatType) else ir.IntegerAttr.get(type_, neutral)
            init = emit.constant(attribute, type_)
        return emit.broadcast(init, width) if width > 1 else init

    def _join(self, name: str, k: int, found: list[Value], count: int, blocks: int, tail: bool, indices: Sequence[Index]) -> Value:
        kind, neutral = COMBINERS[name]
        wide = [found[b * count + k] for b in range(blocks)]
        while len(wide) > 1:
            wide = [emit.create(name, [a.type], [a, b]) for a, b in zip(wide[::2], wide[1::2], strict=False)] + wide[len(wide) & ~1 :]
        attributes = {"kind": ir.Attribute.parse(f"#vector.kind<{kind}>")}
        if name == "arith.addf" or name == "arith.mulf":
            attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<reassoc>")
        value = emit.create("vector.reduction", [wide[0].type.element_type], [wide[0]], attributes)
        if tail:
            value = emit.create(name, [value.type], [value, found[blocks * count + k]])
        if neutral is not None:
            value = emit.create(name, [value.type], [value, self.initial(indices)[k]])
        return value


def _only_last(dims: Sequence[int], index: Index) -> dict[int, Index]:
    """Loop indices of a collapsed group: all of it in the last dimension."""
    return {**{d: Index() for d in dims[:-1]}, dims[-1]: index}
