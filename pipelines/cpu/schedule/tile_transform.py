"""The schedule of small constant matrices applied to tiles from both sides, P d P^T: the transforms of Winograd convolutions.

Lanes run along the innermost dimension. A tile's elements are loaded once; the two products are unrolled into additions and
multiply-adds, in which zeros and ones of the matrix cost nothing; then every element goes to its place, through the epilogue if there is
one.
"""

from collections.abc import Sequence
from math import prod

from relayc.dialects.mlir import func, ir, scf
from relayc.pipelines.kernel.access import split_exactly
from relayc.pipelines.kernel.graph import Kernel, NotStructured
from relayc.pipelines.kernel.index import Index, Var, affine_index, linearize, reshape
from relayc.pipelines.kernel.tile_transform import TileTransform, match
from relayc.pipelines.schedule.strategy import Scheduled, begin_function, flat
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.pipelines.tir import emit
from relayc.pipelines.tir.evaluator import Evaluator

Value = ir.Value

PARALLEL_GRAIN = 1 << 15
"""Elements written below which the kernel stays on one thread."""


def schedule_tile_transform(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a kernel that is a tile transform with an elementwise epilogue; None for any other."""
    found = match(kernel)
    if found is None:
        return None
    function, arguments = begin_function(kernel, {})
    with ir.InsertionPoint(function.entry_block):
        count = len(kernel.args)
        evaluator = Evaluator({node: flat(buffer) for node, buffer in zip(kernel.args, arguments[:count], strict=True)})
        _Emission(found, evaluator, flat(arguments[count]), target).emit(tuning.number("grain", PARALLEL_GRAIN))
        func.ReturnOp([])
    return Scheduled(function)


class _Emission:
    def __init__(self, found: TileTransform, evaluator: Evaluator, output: Value, target: Target) -> None:
        self.t, self.evaluator, self.output = found, evaluator, output
        structured = found.node.structured
        self.structured = structured
        self.dims = [d for d in structured.output_dims(found.node.position) if d is not None]
        self.lane_dim = self.dims[-1]
        self.width = min(target.vector_bytes * 8 // found.node.element.width, structured.extents[self.lane_dim])
        if self.lane_dim in (found.a, found.b) or structured.extents[self.lane_dim] % self.width:
            raise NotStructured("lanes that do not divide the innermost dimension")
        self.whole = self._whole_shape()
        self.crop = self._crop()

    def _crop(self) -> dict[int, tuple[int, int]]:
        """For each row loop of the matrix that the crop cuts: (loop over its tiles, extent that is kept)."""
        whole, kept = self.whole, self.t.root.shape
        if whole is None:
            return {}
        found = {}
        shape = self.t.node.shape
        for d, (have, want) in enumerate(zip(whole, kept, strict=True)):
            if want < have:
                # Dimension d is (tile, place in the tile) side by side in the transform.
                place = next(
                    (i for i in range(1, len(shape)) if prod(shape[:i]) == prod(whole[:d]) and shape[i] * shape[i + 1] == have), None
                )
                if place is None:
                    raise NotStructured("a crop of something else than tiles")
                found[self.dims[place + 1]] = (self.dims[place], want)
        return found

    def _whole_shape(self) -> tuple[int, ...] | None:
        """Shape before the crop between the transform and the result; None where there is no crop."""
        pending, whole = [self.t.root], None
        while pending:
            node = pending.pop()
            if node.kind == "slice":
                if any(node.offsets) or any(s != 1 for s in node.strides):
                    raise NotStructured("a crop that does not start at 0")
                whole = node.inputs[0].shape
            if node is not self.t.node:
                pending += node.structured.inputs if node.kind == "generic" else node.inputs
        return whole

    def emit(self, grain: int) -> None:
        """Parallel loops over all but the last tile loop, which is inside, as are the lanes; none below `grain` elements."""
        extents = self.structured.extents
        outer = [d for d in self.dims if d not in (self.t.a, self.t.b, self.lane_dim) and extents[d] > 1]
        inner = outer.pop() if outer else None
        parallel = prod(extents) >= grain
        self._loops(outer, {}, inner, parallel and bool(outer))

    def _loops(self, dims: list[int], point: dict[int, Index], inner: int | None, parallel: bool) -> None:
        if parallel:
            variables = [Var(0, self.structured.extents[d] - 1, name="p") for d in dims]

            def body() -> None:
                with self.evaluator.scope():
                    self._inner({d: Index.of(v) for d, v in zip(dims, variables, strict=True)}, inner)

            emit.parallel_loop([self.structured.extents[d] for d in dims], variables, body)
        elif dims:
            var = Var(0, self.structured.extents[dims[0]] - 1, name="s")
            with emit.for_loop(0, var.high + 1, 1, var), self.evaluator.scope():
                self._loops(dims[1:], {**point, dims[0]: Index.of(var)}, inner, False)
        else:
            self._inner(point, inner)

    def _inner(self, point: dict[int, Index], inner: int | None) -> None:
        """The last tile loop: its ends apart, where a padding or a crop is, so that the tiles between need no checks."""
        if inner is None:
            self._tile(point)
            return
        extent = self.structured.extents[inner]
        for begin, end in ((0, 1), (1, extent - 1), (extent - 1, extent)):
            if begin >= end or (extent == 1 and begin):
                continue
            if end - begin == 1:
                with self.evaluator.scope():
                    self._tile({**point, inner: Index(begin)})
            else:
                var = Var(begin, end - 1, name="t")
                with emit.for_loop(begin, end, 1, var), self.evaluator.scope():
                    self._tile({**point, inner: Index.of(var)})

    def _tile(self, point: dict[int, Index]) -> None:
        lanes = self.structured.extents[self.lane_dim]
        for start in range(0, lanes, self.width):
            with self.evaluator.lanes(self.width) as lane:
                at = {**point, self.lane_dim: Index(start) + lane if self.width > 1 else Index(start)}
                self._store(at, self._transform(self._load(at)))

    def _load(self, point: dict[int, Index]) -> list[list[Value]]:
        data, amap = self.structured.inputs[2], self.structured.maps[2]
        size = len(self.t.matrix[0])
        rows = []
        for i in range(size):
            row = []
            for j in range(size):
                at = {**point, self.t.i: Index(i), self.t.j: Index(j)}
                loops = [at.get(d, Index()) for d in range(len(self.structured.extents))]
                value = self.evaluator.at(data, [affine_index(e, loops, split_exactly) for e in amap.results])
                row.append(emit.broadcast(value, self.width) if self.width > 1 else value)
            rows.append(row)
        return rows

    def _transform(self, data: list[list[Value]]) -> list[list[Value]]:
        """P d P^T."""
        matrix, size = self.t.matrix, len(data)
        half = [[self._combine(row, [data[i][j] for i in range(size)]) for j in range(size)] for row in matrix]
        return [[self._combine(row, line) for row in matrix] for line in half]

    def _combine(self, factors: Sequence[float], values: Sequence[Value]) -> Value:
        """sum(factor * value), positive units first so that the rest are multiply-adds or subtractions."""
        terms = sorted(((f, v) for f, v in zip(factors, values, strict=True) if f), key=lambda t: (abs(t[0]) != 1, t[0] < 0))
        type_ = values[0].type
        total: Value | None = None
        for factor, value in terms:
            if total is None:
                total = value if factor == 1 else emit.create("arith.mulf", [type_], [value, self._constant(factor, type_)])
            elif abs(factor) == 1:
                total = emit.create("arith.addf" if factor > 0 else "arith.subf", [type_], [total, value])
            else:
                total = emit.create("math.fma", [type_], [value, self._constant(factor, type_), total])
        assert total is not None, "a row of zeros"
        return total

    def _constant(self, value: float, type_: ir.Type) -> Value:
        element = type_.element_type if isinstance(type_, ir.VectorType) else type_
        scalar = emit.constant(ir.FloatAttr.get(element, value), element)
        return emit.broadcast(scalar, self.width) if self.width > 1 else scalar

    def _store(self, point: dict[int, Index], values: list[list[Value]]) -> None:
        rows, columns = self._kept(point, self.t.a), self._kept(point, self.t.b)
        if columns is None:
            raise NotStructured("a crop within the innermost loop over tiles")
        for p, line in enumerate(values):
            if rows is not None and p >= rows:
                break
            guard = self._guard(point, p) if rows is None else None
            if guard is None:
                self._store_row(point, p, line[:columns])
                continue
            branch = scf.IfOp(guard)
            with ir.InsertionPoint(branch.then_block), self.evaluator.scope():
                self._store_row(point, p, line[:columns])
                scf.YieldOp([])

    def _store_row(self, point: dict[int, Index], p: int, line: Sequence[Value]) -> None:
        for q, value in enumerate(line):
            at = {**point, self.t.a: Index(p), self.t.b: Index(q)}
            indices = [Index() if d is None else at.get(d, Index()) for d in self.structured.output_dims(self.t.node.position)]
            self.evaluator.remember(self.t.node, indices, value)
            root = self._root_point(indices)
            self.evaluator.store(self.evaluator.at(self.t.root, root), self.output, linearize(root, self.t.root.shape))

    def _kept(self, point: dict[int, Index], loop: int) -> int | None:
        """Rows of the matrix whose results are kept at a tile; None where that depends on the tile."""
        size = self.structured.extents[loop]
        if loop not in self.crop:
            return size
        tile, extent = self.crop[loop]
        low, high = point.get(tile, Index()).bounds()
        if (high + 1) * size <= extent:
            return size
        return extent - low * size if low == high else None

    def _guard(self, point: dict[int, Index], row: int) -> Value | None:
        """Whether a row is kept at this tile; None where every tile keeps it."""
        tile, extent = self.crop[self.t.a]
        size = self.structured.extents[self.t.a]
        position = point[tile] * size + row
        if position.bounds()[1] < extent:
            return None
        return emit.below(position, extent)

    def _root_point(self, indices: list[Index]) -> list[Index]:
        return reshape(indices, self.t.node.shape, self.whole or self.t.root.shape, split_exactly)
