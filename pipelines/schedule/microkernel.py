"""The schedule of contractions: tiles of the output held in registers across the reduction loops.

A tile is a few rows by a few vectors of columns; its accumulators are loop-carried values of the reduction loops. Each step loads the
vectors of B and, for each row, broadcasts one element of A. Parameters come packed in blocks of columns, so that B is read in order; other
operands are read in place where their columns are contiguous, and else packed into scratch memory by the kernel itself. After the
reduction the epilogue is evaluated on the accumulators, and the tile is stored once.

Paddings cost nothing: outer reduction loops get bounds that depend on the row, and at the ends of a row tiles leave out what lies outside.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import func, ir, scf
from relayc.pipelines.schedule import emit
from relayc.pipelines.schedule.contraction import Contraction, match, pack
from relayc.pipelines.schedule.evaluate import Evaluator
from relayc.pipelines.schedule.graph import Kernel, NotStructured
from relayc.pipelines.schedule.index import Index, Var, linearize
from relayc.pipelines.schedule.strategy import STRATEGIES, Packing, Scheduled, begin_function, flat, is_param
from relayc.pipelines.target import Target

Value = ir.Value
Accumulators = dict[tuple[int, int], Value]  # by (row, column vector)

PARALLEL_GRAIN = 1 << 17
"""Multiply-adds below which a contraction stays on one thread (about 2 us of work)."""
PARALLEL_TASKS = 8
"""Iterations that the parallel loop should have at least, so that threads get equal shares."""


_COLUMN = Var(0, 0, name="column")
"""Key of the first column of the block in a point."""


@dataclass(frozen=True)
class Tile:
    """Tunable numbers: rows and vectors of columns of a tile, lanes of a vector."""

    rows: int
    vectors: int
    lanes: int

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return self.vectors * self.lanes


def default_tile(contraction: Contraction, target: Target) -> Tile:
    """The tile with the fewest cycles for the contraction's rows and columns that fits the register file.

    A step of a tile of r rows and v vectors needs r * v multiply-adds at two a cycle, r + v loads at two a cycle, and, as each accumulator
    waits for its own last value, four cycles at least. It holds the accumulators, the vectors of B and one broadcast element.
    """
    lanes = max(1, target.vector_bytes * 8 // contraction.node.element.width)
    registers = target.num_vector_registers
    extent = contraction.rows[-1][1] if contraction.rows else 1
    vectors_needed = -(-contraction.column_extent // lanes)

    def cycles(rows: int, vectors: int) -> float:
        return max(rows * vectors / 2, (rows + vectors) / 2, 4)

    def cost(rows: int, vectors: int) -> float:
        count = -(-extent // rows)
        base, larger = divmod(extent, count)
        blocks, left = divmod(vectors_needed, vectors)
        return sum(
            tiles * times * cycles(r, v)
            for tiles, r in ((larger, base + 1), (count - larger, base))
            for times, v in ((blocks, vectors), (1, left))
            if tiles and times and v
        )

    candidates = [
        (rows, vectors)
        for vectors in range(1, min(vectors_needed, 8) + 1)
        for rows in range(1, min(extent, (registers - 1 - vectors) // vectors) + 1)
    ]
    # Among equals the narrower: its panel of B is smaller.
    rows, vectors = min(candidates, key=lambda c: (round(cost(*c), 3), c[1]))
    return Tile(rows, vectors, lanes)


def _is_contiguous(contraction: Contraction) -> bool:
    return len(contraction.columns) == 1 and contraction.b.offset.coefficient(contraction.column) == 1


def _efficiency(contraction: Contraction, kernel: Kernel, target: Target) -> float:
    """Share of lanes and rows that do useful work in these roles, lower where B would have to be packed at run time."""
    tile = default_tile(contraction, target)
    columns = contraction.column_extent
    lanes = columns / (-(-columns // tile.lanes) * tile.lanes) if columns >= tile.lanes else columns / tile.lanes / 2
    if contraction.b.node.kind == "arg" and is_param(kernel, contraction.b.node.position):
        ready = 1.0
    else:
        ready = 1.0 if _is_contiguous(contraction) else 0.6
    contiguous = 1.0 if contraction.store_stride(contraction.column) == 1 else 0.9
    return lanes * ready * contiguous


def schedule_contraction(kernel: Kernel, target: Target) -> Scheduled | None:
    """Schedules a kernel whose result is a contraction with an elementwise epilogue; None for any other."""
    found = match(kernel)
    if not found:
        return None
    contraction = max(found, key=lambda c: _efficiency(c, kernel, target))
    if contraction.column_extent < 2 or contraction.node.element.width < 16:
        return None
    return _Emission(kernel, contraction, default_tile(contraction, target)).emit()


STRATEGIES.append(schedule_contraction)


class _Emission:
    """Emits one contraction kernel."""

    def __init__(self, kernel: Kernel, contraction: Contraction, tile: Tile) -> None:
        self.kernel, self.c, self.tile = kernel, contraction, tile
        self.blocks = -(-contraction.column_extent // tile.width)
        b = contraction.b
        self.packs_param = b.node.kind == "arg" and is_param(kernel, b.node.position)
        self.in_place = not self.packs_param and b.node.kind == "arg" and _is_contiguous(contraction)
        self.panel = contraction.depth * tile.width
        self.element_bytes = b.node.element.width // 8

    def emit(self) -> Scheduled:
        c = self.c
        packings = {}
        workspace = 0
        batches = prod(v.high + 1 for v in c.batch)
        if self.packs_param:
            width = self.tile.width
            shape = (*(v.high + 1 for v in c.batch), self.blocks, *(v.high + 1 for v in c.reduction), width)
            name = f"columns{width}:{c.b.offset.const}:" + ",".join(
                f"{c.b.offset.coefficient(v)}*{v.high + 1}" for v in (*c.batch, c.column, *c.reduction)
            )
            packings[c.b.node.position] = Packing(name, shape, lambda array, out: pack(c, array, out))
        elif not self.in_place:
            workspace = batches * self.blocks * self.panel * self.element_bytes
        function, arguments = begin_function(self.kernel, packings, workspace)
        with ir.InsertionPoint(function.entry_block):
            count = len(self.kernel.args)
            self.evaluator = Evaluator({node: flat(buffer) for node, buffer in zip(self.kernel.args, arguments[:count], strict=True)})
            self.output = flat(arguments[count])
            if self.packs_param:
                self.packed = flat(arguments[c.b.node.position])
            elif workspace:
                type_ = ir.MemRefType.get([workspace // self.element_bytes], c.b.node.element)
                self.packed = emit.create("memref.view", [type_], [arguments[-1], emit.index_constant(0)])
            self.nest()
            func.ReturnOp([])
        return Scheduled(function, packings, workspace)

    # ---- outer loops

    def nest(self) -> None:
        """Parallel loops over batch, column blocks and, where these are few, rows; then the tiles of each."""
        c = self.c
        loops: list[tuple[list[Var], int]] = [([v], v.high + 1) for v in c.batch]
        block = Var(0, self.blocks - 1, name="block")
        loops.append(([block], self.blocks))
        tasks = prod(extent for _, extent in loops)
        rows = list(c.rows)
        may_split = self.packs_param or self.in_place  # else each task packs the block of columns it works on
        while may_split and tasks < PARALLEL_TASKS and len(rows) > 1:
            loops.append(rows.pop(0))
            tasks *= loops[-1][1]
        serial = prod(v.high + 1 for v in c.variables) < PARALLEL_GRAIN

        def inside(point: dict[Var, Index]) -> None:
            self.block_code(block, point, rows)

        live = [(members, extent) for members, extent in loops if extent > 1]
        self.loops(live, {m: Index() for members, _ in loops for m in members}, inside, parallel=not serial and bool(live))

    def loops(self, loops: list, point: dict[Var, Index], body: Callable[[dict], None], parallel: bool = False) -> None:
        """Loops over groups (members, extent), outermost first, in one parallel loop or nested ones."""
        if parallel:
            variables = [Var(0, extent - 1, name="p") for _, extent in loops]

            def inside() -> None:
                inner = dict(point)
                for (members, _), var in zip(loops, variables, strict=True):
                    inner[members[-1]] = Index.of(var)
                with self.evaluator.scope():
                    body(inner)

            emit.parallel_loop([extent for _, extent in loops], variables, inside)
        elif loops:
            (members, extent), *rest = loops
            var = Var(0, extent - 1, name="s")
            with emit.for_loop(0, extent, 1, var), self.evaluator.scope():
                self.loops(rest, {**point, members[-1]: Index.of(var)}, body)
        else:
            body(point)

    def block_code(self, block: Var, point: dict[Var, Index], rows: list) -> None:
        """The code of one block of columns: full blocks and the shorter last one are told apart once."""
        full = self.c.column_extent // self.tile.width
        left = self.c.column_extent % self.tile.width
        at = point.get(block, Index())
        if not left:
            self.columns_code(at, _columns(self.tile.width, self.tile.lanes), point, rows)
        elif not full:
            self.columns_code(Index(), _columns(left, self.tile.lanes), point, rows)
        else:
            predicate = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 6)}  # ult
            flag = emit.create("arith.cmpi", [ir.IntegerType.get_signless(1)], [emit.materialize(at), emit.index_constant(full)], predicate)
            branch = scf.IfOp(flag, has_else=True)
            whole = Index.of(Var(0, full - 1, emit.materialize(at)))
            for region, code in (
                (branch.then_block, lambda: self.columns_code(whole, _columns(self.tile.width, self.tile.lanes), point, rows)),
                (branch.else_block, lambda: self.columns_code(Index(full), _columns(left, self.tile.lanes), point, rows)),
            ):
                with ir.InsertionPoint(region), self.evaluator.scope():
                    code()
                    scf.YieldOp([])

    def columns_code(self, block: Index, columns: list[tuple[int, int]], point: dict[Var, Index], rows: list) -> None:
        point = {**point, _COLUMN: block * self.tile.width}
        self.panel_start = self.panel_offset(block, point)
        if not self.packs_param and not self.in_place:
            self.pack_panel(columns, point)
        *outer, last = rows or [([], 1)]
        self.loops([g for g in outer if g[1] > 1], point, lambda inner: self.row_code(last, columns, inner))

    def panel_offset(self, block: Index, point: dict[Var, Index]) -> Index:
        """Offset of a packed block of columns."""
        offset = Index()
        for v in self.c.batch:
            offset = offset * (v.high + 1) + point.get(v, Index())
        return (offset * self.blocks + block) * self.panel

    def pack_panel(self, columns: list[tuple[int, int]], point: dict[Var, Index]) -> None:
        """Copies a block of columns of B into scratch memory in the order in which the tiles read it."""
        width = self.tile.width

        def inside(inner: dict[Var, Index]) -> None:
            step = linearize([inner.get(v, Index()) for v in self.c.reduction], [v.high + 1 for v in self.c.reduction])
            for start, lanes in columns:
                with self.evaluator.lanes(lanes) as lane:
                    column = inner[_COLUMN] + start + (Index.of(lane) if lanes > 1 else Index())
                    value = self.evaluator.at(self.c.b.node, self.substitute(self.c.b.indices, {**inner, **self.c.column_point(column)}))
                    at = self.panel_start + step * width + start + (Index.of(lane) if lanes > 1 else Index())
                    self.evaluator.store(value, self.packed, at)

        self.loops([([v], v.high + 1) for v in self.c.reduction], point, inside)

    # ---- rows

    def row_code(self, last: tuple[list[Var], int], columns: list[tuple[int, int]], point: dict[Var, Index]) -> None:
        """The tiles of the innermost row loop: equal ones in loops, those that a padding touches one by one."""
        members, extent = last
        var = members[-1] if members else None
        tiles = _split(extent, self.tile.rows)
        start = 0
        position = 0
        while position < len(tiles):
            size = tiles[position]
            count = 0
            while (
                position + count < len(tiles) and tiles[position + count] == size and self.inside_padding(var, start + count * size, size)
            ):
                count += 1
            if count > 1:
                loop = Var(start, start + (count - 1) * size, step=size if start % size == 0 else 1, name="t")
                with emit.for_loop(start, start + count * size, size, loop), self.evaluator.scope():
                    self.tile_code(var, Index.of(loop), size, columns, point, edge=False)
            else:
                count = 1
                with self.evaluator.scope():
                    self.tile_code(var, Index(start), size, columns, point, edge=not self.inside_padding(var, start, size))
            position += count
            start += count * size

    def inside_padding(self, var: Var | None, start: int, size: int) -> bool:
        """Whether no index that moves along the row loop leaves its dimension in rows [start, start + size)."""
        for index, extent in self.c.a.checks:
            c = index.coefficient(var) if var is not None else 0
            if c:
                low, high = (index + Index(start * c, {var: -c})).bounds()  # type: ignore[dict-item]
                reach = (size - 1) * c
                if low + min(reach, 0) < 0 or high + max(reach, 0) >= extent:
                    return False
        return True

    def tile_code(self, var, start: Index, size: int, columns: list[tuple[int, int]], point: dict[Var, Index], edge: bool) -> None:
        """One tile: accumulators, reduction, epilogue and store."""
        points = [{**point, **({var: start + r} if var is not None else {})} for r in range(size)]
        accumulators = self.initial(points, columns)
        accumulators = self.reduce(list(self.c.reduction), points, columns, accumulators, var if edge else None)
        self.finish(points, columns, accumulators, var)

    def initial(self, points: Sequence[dict], columns: list[tuple[int, int]]) -> Accumulators:
        init = self.c.structured.inits[0]
        result = {}
        for j, (start, lanes) in enumerate(columns):
            with self.evaluator.lanes(lanes) as lane:
                for i, point in enumerate(points):
                    value = self.evaluator.at(init, self.output_point(point, start, lane) if init.shape else [])
                    result[i, j] = emit.broadcast(value, lanes) if lanes > 1 else value
        return result

    def reduce(self, loops: list[Var], points, columns, accumulators: Accumulators, edge: Var | None) -> Accumulators:
        """The reduction loops; `edge` is the row variable where rows of the tile may lie outside for some steps of a checked loop."""
        if not loops:
            return self.step(points, columns, accumulators)
        var, *rest = loops
        checks = [(index, extent) for index, extent in self.c.a.checks if index.coefficient(var)]
        if edge is not None and any(index.coefficient(edge) for index, _ in checks):
            return self.unrolled(var, rest, checks, points, columns, accumulators, edge)
        low: Value | int = 0
        high: Value | int = var.high + 1
        for index, extent in checks:
            if not self.is_inside(index, extent, points[0], edge):
                low, high = self.bounds(index, extent, var, points[0])
        loop = Var(0, var.high, name=var.name)
        keys = list(accumulators)
        with emit.for_loop(low, high, 1, loop, [accumulators[k] for k in keys]) as op, self.evaluator.scope():
            inner = [{**p, var: Index.of(loop)} for p in points]
            found = self.reduce(rest, inner, columns, dict(zip(keys, op.inner_iter_args, strict=True)), edge)
            emit.yield_values([found[k] for k in keys])
        return dict(zip(keys, op.results, strict=True))

    def is_inside(self, index: Index, extent: int, point: dict[Var, Index], edge: Var | None) -> bool:
        """Whether a checked index stays within its dimension at this row, for every step of the loop it depends on."""
        known = self.substitute([index], point, keep_unknown=True)[0]
        low, high = known.bounds()
        return (low >= 0 and high < extent) or any(self.row_variable(v) for v in index.terms)

    def row_variable(self, var: Var) -> bool:
        # Interior tiles were chosen so that checks along the innermost row loop hold.
        return bool(self.c.rows) and var is self.c.rows[-1][0][-1]

    def bounds(self, index: Index, extent: int, var: Var, point: dict[Var, Index]) -> tuple[Value, Value]:
        """First and one-past-last step of `var` for which 0 <= index < extent."""
        c = index.coefficient(var)
        rest = self.substitute([index - Index(0, {var: c})], point)[0]
        type_ = ir.IndexType.get()

        def steps(limit: Index) -> Value:  # ceil(limit / |c|)
            value = emit.materialize(limit)
            return value if abs(c) == 1 else emit.create("arith.ceildivsi", [type_], [value, emit.index_constant(abs(c))])

        first, end = (rest * -1, rest * -1 + extent) if c > 0 else (rest - (extent - 1), rest + 1)
        low = emit.create("arith.maxsi", [type_], [steps(first), emit.index_constant(0)])
        high = emit.create("arith.minsi", [type_], [steps(end), emit.index_constant(var.high + 1)])
        return low, high

    def unrolled(self, var: Var, rest, checks, points, columns, accumulators: Accumulators, edge: Var) -> Accumulators:
        """A checked loop at the end of a row: each step for the rows of the tile that are inside."""
        for position in range(var.high + 1):
            inside = []
            for i, p in enumerate(points):
                at = {**p, var: Index(position)}
                values = [(self.substitute([index], at)[0], extent) for index, extent in checks]
                if any(not v.is_constant for v, _ in values):
                    raise NotStructured("a padding that depends on two row loops")
                if all(0 <= v.const < extent for v, extent in values):
                    inside.append((i, at))
            if not inside:
                continue
            chosen = {(n, j): accumulators[i, j] for n, (i, _) in enumerate(inside) for j in range(len(columns))}
            found = self.reduce(rest, [at for _, at in inside], columns, chosen, edge)
            accumulators = {**accumulators, **{(i, j): found[n, j] for n, (i, _) in enumerate(inside) for j in range(len(columns))}}
        return accumulators

    # ---- the innermost step

    def step(self, points, columns, accumulators: Accumulators) -> Accumulators:
        """Multiply-adds of one reduction step."""
        c = self.c
        result = {}
        with self.evaluator.scope():
            vectors = [self.load_b(points[0], start, lanes) for start, lanes in columns]
            for i, point in enumerate(points):
                scalar = self.cast(self.evaluator.at(c.a.node, self.substitute(c.a.indices, point)), c.a.casts)
                for j, (_, lanes) in enumerate(columns):
                    factor = emit.broadcast(scalar, lanes) if lanes > 1 else scalar
                    result[i, j] = _multiply_add(factor, vectors[j], accumulators[i, j])
        return result

    def load_b(self, point: dict[Var, Index], start: int, lanes: int) -> Value:
        c = self.c
        with self.evaluator.lanes(lanes) as lane:
            along = Index.of(lane) if lanes > 1 else Index()
            if self.in_place:
                at = {**point, **c.column_point(point[_COLUMN] + start + along)}
                value = self.evaluator.at(c.b.node, self.substitute(c.b.indices, at))
            else:
                step = linearize([point.get(v, Index()) for v in c.reduction], [v.high + 1 for v in c.reduction])
                offset = self.panel_start + step * self.tile.width + start + along
                value = self.evaluator.load_from(self.packed, c.b.node.element, offset)
            return self.cast(value, c.b.casts)

    def cast(self, value: Value, casts: Sequence[tuple[str, ir.Type]]) -> Value:
        for name, type_ in casts:
            wide = emit.vector_of(value.type.shape[0], type_) if emit.is_vector(value) else type_
            value = emit.create(name, [wide], [value])
        return value

    # ---- epilogue

    def finish(self, points, columns, accumulators: Accumulators, var: Var | None) -> None:
        c = self.c
        stride = c.store_stride(c.column)
        row_stride = c.store_stride(var) if var is not None else 0
        for j, (start, lanes) in enumerate(columns):
            with self.evaluator.lanes(lanes) as lane:
                offsets, values = [], []
                for i, point in enumerate(points):
                    at = self.output_point(point, start, lane)
                    self.evaluator.remember(c.node, at, accumulators[i, j])
                    offset = linearize(at, c.node.shape)
                    values.append(self.evaluator.at(c.root, c.root_point(at)))
                    offsets.append(offset)
                if lanes > 1 and stride != 1 and row_stride == 1 and len(points) > 1:
                    self.store_transposed(values, offsets[0] - Index(0, {lane: stride}), stride, lanes)
                else:
                    for value, offset in zip(values, offsets, strict=True):
                        self.evaluator.store(value, self.output, offset)

    def store_transposed(self, values: Sequence[Value], base: Index, stride: int, lanes: int) -> None:
        """Stores rows of lanes so that each lane's values, neighbours in memory along the rows, go out as vectors."""
        for first in range(0, len(values), lanes):
            group = [emit.broadcast(v, lanes) for v in values[first : first + lanes]]
            columns = emit.transpose(group + [group[-1]] * (lanes - len(group)))
            for k, column in enumerate(columns):
                for begin, width in _columns(len(group), lanes):
                    part = column
                    if width < lanes:
                        type_ = emit.vector_of(width, column.type.element_type)
                        mask = {"mask": ir.DenseI64ArrayAttr.get(list(range(begin, begin + width)))}
                        part = emit.create("vector.shuffle", [type_], [column, column], mask)
                    offset = base + k * stride + first + begin
                    emit.create("vector.store", [], [part, self.output, emit.materialize(offset)])

    def output_point(self, point: dict[Var, Index], start: int, lane: Var) -> list[Index]:
        c = self.c
        at = {**point, **c.column_point(point[_COLUMN] + start + (Index.of(lane) if self.evaluator.width > 1 else Index()))}
        dims = c.structured.output_dims(c.node.position)
        return [Index() if d is None else at.get(c.variables[d], Index()) for d in dims]

    def substitute(self, indices: Sequence[Index], point: dict[Var, Index], keep_unknown: bool = False) -> list[Index]:
        """Index expressions over the contraction's variables at a point; variables without an index there are 0 (or stay)."""
        result = []
        for index in indices:
            total = Index(index.const)
            for v, c in index.terms.items():
                total += (point[v] if v in point else Index.of(v) if keep_unknown else Index()) * c
            result.append(total)
        return result


def _columns(count: int, lanes: int) -> list[tuple[int, int]]:
    """(start, lanes) of the vectors that cover `count` columns: whole ones, then halves of halves."""
    found, start = [], 0
    while start < count:
        while lanes > count - start:
            lanes //= 2
        found.append((start, lanes))
        start += lanes
    return found


def _split(extent: int, size: int) -> list[int]:
    """`extent` as the fewest tiles of at most `size` rows, of sizes that differ by one at most."""
    count = -(-extent // size)
    base, extra = divmod(extent, count)
    return [base + 1] * extra + [base] * (count - extra)


def _multiply_add(a: Value, b: Value, accumulator: Value) -> Value:
    type_ = accumulator.type
    element = type_.element_type if emit.is_vector(accumulator) else type_
    if not isinstance(element, ir.FloatType):
        return emit.create("arith.addi", [type_], [emit.create("arith.muli", [type_], [a, b]), accumulator])
    return emit.create("vector.fma" if emit.is_vector(accumulator) else "math.fma", [type_], [a, b, accumulator])
