"""The schedule of small constant matrices applied to tiles from both sides, P d P^T: the transforms of Winograd convolutions.

Lanes run along the innermost dimension. A tile's elements are loaded once; the two products are unrolled into additions and
multiply-adds, in which zeros and ones of the matrix cost nothing; then every element goes to its place, through the epilogue if there is
one. Where the epilogue is many instructions, and only a call knows how many elements are kept, elements wait in memory for a loop, so that
there is one copy of the epilogue.
"""

from collections.abc import Sequence
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, affine_index, linearize, reshape
from relayc.pipelines.te.read.access import split_exactly
from relayc.pipelines.te.read.graph import Kernel, NotStructured, is_costly_after
from relayc.pipelines.te.read.tile_transform import TileTransform, match
from relayc.pipelines.te.read.window import number
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, grains
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.buffers import local_buffer
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, minimum, proves

PARALLEL_GRAIN = 1 << 15
"""Elements written below which the kernel stays on one thread."""


def schedule_tile_transform(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a kernel that is a tile transform with an elementwise epilogue; None for any other."""
    found = match(kernel)
    if found is None:
        return None
    with kernel_function(kernel) as body:
        emission = _TransformKernel(found, body.evaluator, body.outputs[0], target)
        emission.emit(tuning.number("grain", PARALLEL_GRAIN, lambda: grains(PARALLEL_GRAIN, emission.work)))
    return Scheduled(body.function)


class _TransformKernel:
    """Emits a tile transform. Points are indices by the positions of loops of the transform.

    Attributes:
      tile: buffer for the elements of a tile before the epilogue; None if the epilogue runs in registers.
    """

    def __init__(self, transform: TileTransform, evaluator: Evaluator, output: ir.Value, target: Target) -> None:
        self.t, self.evaluator, self.output = transform, evaluator, output
        self.structured = structured = transform.node.structured
        self.lane_dim = transform.dims[-1]
        self.lanes = number(structured.extents[self.lane_dim])
        self.width = min(target.lanes(transform.node.element.width), self.lanes)
        if self.lane_dim in (transform.a, transform.b) or self.lanes % self.width:
            raise NotStructured("lanes that do not divide the innermost dimension")
        self.tile: ir.Value | None = None

    @property
    def work(self) -> Size:
        """Elements written."""
        return prod(self.structured.extents)

    def emit(self, grain: int) -> None:
        """Parallel loops over all but the last tile loop, which is inside, as are the lanes; none below `grain` elements."""
        extents = self.structured.extents
        outer = [d for d in self.t.dims if d not in (self.t.a, self.t.b, self.lane_dim) and extents[d] != 1]
        inner = outer.pop() if outer else None
        variables = [Var.below(extents[d], name="p") for d in outer]
        point = {d: Index.of(v) for d, v in zip(outer, variables, strict=True)}
        is_static = all(isinstance(extent, int) for extent in extents)
        with nest.tasks(variables, self.evaluator, self.work, grain):
            if not is_static and is_costly_after(self.t.node, self.t.root):
                self.tile = local_buffer(len(self.t.matrix) ** 2 * self.width, self.t.node.element)
            self._inner(point, inner)

    def _inner(self, point: dict[int, Index], inner: int | None) -> None:
        """The last tile loop: its ends apart, where a padding or a crop is, so that the tiles between need no checks."""
        if inner is None:
            self._tile(point)
            return
        extent = self.structured.extents[inner]
        if not isinstance(extent, int):
            self._any_number(point, inner, extent)
            return
        # The first one may be the last one, too, or there is none.
        last = max(extent - 1, 0)
        for part in filter(None, dict.fromkeys((range(min(extent, 1)), range(1, last), range(last, extent)))):
            if len(part) == 1:
                with self.evaluator.scope():
                    self._tile({**point, inner: Index(part[0])})
            else:
                with nest.loop(part[0], part.stop, self.evaluator, name="t") as tile:
                    self._tile({**point, inner: tile})

    def _any_number(self, point: dict[int, Index], inner: int, extent: Size) -> None:
        """The same for a number of tiles that only a call knows: the ends in one code, whose indices may be any."""
        with nest.loop(0, minimum(extent, 2), self.evaluator, below=2, name="end") as end:
            place = emit.materialize(end * (extent - 1))
            self._tile({**point, inner: Index.of(Var.below(extent, place, name="t"))})
        with nest.loop(1, extent - 1, self.evaluator, name="t") as tile:
            self._tile({**point, inner: tile})

    def _tile(self, point: dict[int, Index]) -> None:
        for start in range(0, self.lanes, self.width):
            with self.evaluator.along(self.width) as lane:
                at = {**point, self.lane_dim: lane + start}
                self._store(at, self._transform(self._load(at)))

    def _load(self, point: dict[int, Index]) -> list[list[ir.Value]]:
        data, amap = self.structured.inputs[2], self.structured.maps[2]
        size = len(self.t.matrix[0])
        rows = []
        for i in range(size):
            row = []
            for j in range(size):
                at = {**point, self.t.i: Index(i), self.t.j: Index(j)}
                loops = [at.get(d, Index()) for d in range(len(self.structured.extents))]
                value = self.evaluator.at(data, [affine_index(e, loops, split_exactly) for e in amap.results])
                row.append(emit.broadcast(value, self.width))
            rows.append(row)
        return rows

    def _transform(self, data: list[list[ir.Value]]) -> list[list[ir.Value]]:
        """P d P^T."""
        matrix, size = self.t.matrix, len(data)
        half = [[self._combine(row, [data[i][j] for i in range(size)]) for j in range(size)] for row in matrix]
        return [[self._combine(row, line) for row in matrix] for line in half]

    def _combine(self, factors: Sequence[float], values: Sequence[ir.Value]) -> ir.Value:
        """sum(factor * value), positive units first so that the rest are multiply-adds or subtractions."""
        terms = sorted(((f, v) for f, v in zip(factors, values, strict=True) if f), key=lambda t: (abs(t[0]) != 1, t[0] < 0))
        type_ = values[0].type
        total: ir.Value | None = None
        for factor, value in terms:
            if total is None:
                total = value if factor == 1 else emit.arith("mulf", value, self._constant(factor, type_))
            elif abs(factor) == 1:
                total = emit.arith("addf" if factor > 0 else "subf", total, value)
            else:
                total = emit.create("math.fma", [type_], [value, self._constant(factor, type_), total])
        assert total is not None, "a row of zeros"
        return total

    def _constant(self, value: float, type_: ir.Type) -> ir.Value:
        return emit.broadcast(emit.number(value, emit.element_of(type_)), self.width)

    def _store(self, point: dict[int, Index], values: list[list[ir.Value]]) -> None:
        if self.tile is not None:
            self._store_in_loops(self.tile, point, values)
            return
        rows, columns = self._kept(point, self.t.a), self._kept(point, self.t.b)
        for p, line in enumerate(values[:rows]):
            with nest.if_all(self._guards(point, self.t.a, p) if rows is None else [], self.evaluator):
                for q, value in enumerate(line[:columns]):
                    with nest.if_all(self._guards(point, self.t.b, q) if columns is None else [], self.evaluator):
                        self._store_element(point, Index(p), Index(q), value)

    def _store_in_loops(self, tile: ir.Value, point: dict[int, Index], values: list[list[ir.Value]]) -> None:
        """The epilogue of the elements of a tile that are kept, in a loop over its rows and one over those of a row."""
        size = len(values)
        for n, value in enumerate(v for line in values for v in line):
            vectors.store(value, tile, Index(n * self.width))
        rows, columns = self._count(point, self.t.a), self._count(point, self.t.b)
        with (
            nest.loop(0, rows, self.evaluator, below=size, name="p") as p,
            nest.loop(0, columns, self.evaluator, below=size, name="q") as q,
        ):
            self._store_element(point, p, q, vectors.load(tile, (p * size + q) * self.width, self.width))

    def _count(self, point: dict[int, Index], loop: int) -> ir.Value:
        """How many rows of the matrix have results that are kept at a tile."""
        kept, size = self._kept(point, loop), number(self.structured.extents[loop])
        if kept is not None:
            return emit.index_constant(kept)
        tile, extent = self.t.crop[loop]
        return emit.smaller(emit.materialize(point.get(tile, Index()) * -size + extent), size)

    def _store_element(self, point: dict[int, Index], p: Index, q: Index, value: ir.Value) -> None:
        at = {**point, self.t.a: p, self.t.b: q}
        indices = self.structured.output_indices(self.t.node.position, [at.get(d, Index()) for d in range(len(self.structured.extents))])
        self.evaluator.remember(self.t.node, indices, value)
        root = reshape(indices, self.t.node.shape, self.t.whole, split_exactly)
        self.evaluator.store(self.evaluator.at(self.t.root, root), self.output, linearize(root, self.t.root.shape))

    def _kept(self, point: dict[int, Index], loop: int) -> int | None:
        """Rows of the matrix whose results are kept at a tile; None if this depends on the tile."""
        size = number(self.structured.extents[loop])
        if loop not in self.t.crop:
            return size
        tile, extent = self.t.crop[loop]
        low, high = point.get(tile, Index()).bounds()
        if proves(lambda: (high + 1) * size <= extent):
            return size
        return extent - low * size if isinstance(extent, int) and isinstance(low, int) and low == high else None

    def _guards(self, point: dict[int, Index], loop: int, row: int) -> list[ir.Value]:
        """Whether a row of the matrix is kept at this tile; nothing if every tile keeps it."""
        tile, extent = self.t.crop[loop]
        position = point.get(tile, Index()) * number(self.structured.extents[loop]) + row
        if proves(lambda: position.bounds()[1] < extent):
            return []
        return [emit.below(position, extent)]
