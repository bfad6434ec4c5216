"""The schedules of contractions of 8-bit integers: sums of 32 bits, exact but for their overflow, which wraps.

Instructions take fours along the reduction, unsigned of one operand and signed of the other: AMX tiles, which take any A and signed B, or
vectors of sums: VNNI (AVX-512, or AVX-VNNI on 256 bits), and on CPUs without it products of pairs: pmaddubsw, whose results of 16 bits
saturate unless the signed operand is a parameter of seven bits, or else pmaddwd, for which both operands are widened in registers. Of a
parameter of eight bits most pairs fit pmaddubsw all the same, and the groups that have another pair come last (see `SortedNest`). Where
both operands are signed, the elements of A become unsigned by adding 128, and the sums begin at -128 times the sums of the columns of B,
which are packed with B, a parameter (see `layout.PairsLayout.shift`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.bf16.amx import AmxSums, tile_block, tile_cycles, tile_lower
from relayc.pipelines.targets.cpu.strategies.bf16.dot import VectorSums
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, SumBlock, head_offset
from relayc.pipelines.targets.cpu.strategies.bf16.nest import PairsNest, Point, Values
from relayc.pipelines.targets.cpu.strategies.bf16.plan import Instructions, Plan, best_plan, cheapest, column_tiles, lower_rows
from relayc.pipelines.te.read.contraction import Contraction, is_bytes, is_signed
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled, has_seven_bits
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.pipelines.tir.values import nest, vectors

GROUP = 4
"""Elements that are multiplied and added to one sum."""
MAX_STEP = 64
"""Reduction steps of a multiplication of tiles: bytes of a row."""
MAX_VECTORS = 4
"""Blocks of columns of a tile of vectors, at most: panels of more would leave room for few rows."""
MAX_ROWS = 14
"""Rows of a tile, at most: more may lie in a few sets of the cache, and save next to no loads."""
LATENCY = 6
"""Cycles that a sum waits for its last value."""
SHIFT = 128
"""What makes signed bytes unsigned."""
FOURS, PAIRS, HALVES, SORTED = "fours", "pairs", "halves", "sorted"
"""How vectors multiply: four products of bytes are added to a sum; or two give 16 bits, in which they must fit; or two of bytes widened in
registers are added; or pairs are multiplied where they fit, and halves elsewhere."""
_INSTRUCTIONS = {
    FOURS: ("llvm.x86.avx512.vpdpbusd.256", "llvm.x86.avx512.vpdpbusd.512"),
    PAIRS: ("llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx512.pmaddubs.w.512"),
    HALVES: ("llvm.x86.avx2.pmadd.wd", "llvm.x86.avx512.pmaddw.d.512"),
}
"""The instructions on vectors of 256 and of 512 bits."""


def schedule_int8_tiles(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a contraction of 8-bit integers with an elementwise epilogue on a CPU with AMX; None for any other kernel."""
    takes = lambda c: is_bytes(c) and is_signed(c.b)  # noqa: E731 (short)
    plan = best_plan(kernel, Instructions(takes, GROUP, MAX_STEP, tile_block, tile_cycles, tile_lower))
    on_vectors = None if plan is None else _on_vectors(kernel, target)
    if plan is None or (on_vectors is not None and plan.cycles >= on_vectors[1].cycles):
        return None
    unsigned = not is_signed(plan.contraction.a)
    return PairsNest(kernel, plan, lambda block: ByteTiles(block, plan.layout.step, unsigned), target, tuning).emit()


def schedule_int8_dots(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a contraction of 8-bit integers with an elementwise epilogue on vectors; None for any other kernel, or without AVX2."""
    found = _on_vectors(kernel, target)
    if found is None:
        return None
    dots, plan = found
    if dots.products == SORTED:
        return SortedNest(kernel, plan, dots, target, tuning).emit()
    swapped = not is_signed(plan.contraction.b)
    return PairsNest(kernel, plan, lambda block: ByteDots(block, dots, plan.layout.shift, swapped), target, tuning).emit()


def _on_vectors(kernel: Kernel, target: Target) -> "tuple[Dots, Plan] | None":
    """The plan of a kernel on vectors that takes the fewest cycles; None where it fits none."""
    found, most = [], dots_of(target)
    others = [replace(most, products=p) for p in (SORTED, PAIRS)] if most is not None and most.products == HALVES else []
    for dots in (most, *others):
        if dots is not None:
            plan = best_plan(kernel, dots.instructions(partial(_takes, kernel, dots)))
            found += [(dots, plan)] if plan is not None else []
    return min(found, key=lambda one: one[1].cycles, default=None)


def _takes(kernel: Kernel, dots: "Dots", contraction: Contraction) -> bool:
    """Whether vectors multiply a contraction: bytes, signed ones of an operand at least."""
    if not is_bytes(contraction):
        return False
    signed = [operand for operand in (contraction.b, contraction.a) if is_signed(operand)]
    if dots.products == SORTED:
        return is_signed(contraction.b)
    return bool(signed) and (dots.products != PAIRS or has_seven_bits(kernel, signed[0].node))


class ByteTiles(AmxSums):
    """Sums of 8-bit products in tile registers."""

    def __init__(self, block: SumBlock, step: int, unsigned: bool) -> None:
        super().__init__(block, step, "i8", "i32")
        self.attributes = {"isZextLhs": ir.UnitAttr.get()} if unsigned else {}

    def multiply(self, a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
        return emit.create("x86.amx.tile_muli", [self.sum_type], [a, b, total], self.attributes)


@dataclass(frozen=True)
class Dots:
    """How vectors multiply and add groups of elements.

    Attributes:
      lanes: sums of a vector.
      registers: vectors that there are.
      products: how they are multiplied, FOURS, PAIRS, HALVES or SORTED.
    """

    lanes: int
    registers: int
    products: str

    @property
    def fused(self) -> bool:
        """Whether one instruction does it (VNNI)."""
        return self.products == FOURS

    def instructions(self, takes: Callable[[Contraction], bool]) -> Instructions:
        """What contractions are planned for."""
        shift = lambda c: SHIFT if is_signed(c.a) and is_signed(c.b) else 0  # noqa: E731 (short)
        lower = partial(lower_rows, cycles=self.cycles)
        return Instructions(takes, GROUP, GROUP, self.block, self.cycles, lower, shift, self.products == SORTED)

    @property
    def spare(self) -> int:
        """Registers for other things than sums and columns of B: elements of A, a product, constants."""
        return {FOURS: 2, PAIRS: 3, HALVES: 5, SORTED: 3}[self.products]

    def most_rows(self, tiles: int) -> int:
        """Rows of a tile of so many blocks of columns."""
        width = tiles * COLUMNS // self.lanes
        return max(1, min(MAX_ROWS, (self.registers - self.spare - width) // width))

    def cycles(self, block: SumBlock) -> float:
        """A product of a group, of two loads at most, a cycle, and no sum sooner than its last value; what widens B is mostly hidden.
        Nearly all sorted groups are taken to fit."""
        width = block.column_tiles * COLUMNS // self.lanes
        products = {FOURS: 1, PAIRS: 1.5, HALVES: 2, SORTED: 1.6}[self.products] * block.rows * width
        widening = (block.rows + 2 * width) / 4 if self.products == HALVES else 0
        return max(products + widening, LATENCY)

    def block(self, rows: int, outer: int, columns: int) -> SumBlock:
        """The tile of fewest cycles, then of fewest loads."""
        wide = column_tiles(columns)
        # Each block of columns has an order of its own.
        most = 1 if self.products == SORTED else min(wide, MAX_VECTORS, max(1, self.registers // 8 * self.lanes // COLUMNS))
        blocks = (SumBlock(n, 1, v) for v in range(1, most + 1) for n in range(1, min(rows, self.most_rows(v)) + 1))
        return cheapest(blocks, rows, wide, self.cycles)

    def add(self, total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        """Sums with the products of the groups of two vectors: bytes, unsigned of `a` and signed of `b`."""
        if self.fused:
            return vectors.intrinsic(self.instruction(FOURS), total.type, total, a, b)
        if self.products == PAIRS:
            words = emit.vector_of(2 * self.lanes, ir.IntegerType.get_signless(16))
            products = [(vectors.intrinsic(self.instruction(PAIRS), words, a, b), emit.number(1, words))]
        else:
            products = list(zip(_halves(a, "shrui"), _halves(b, "shrsi"), strict=True))
        for x, y in products:
            total = emit.arith("addi", total, vectors.intrinsic(self.instruction(HALVES), total.type, x, y))
        return total

    def instruction(self, products: str) -> str:
        """LLVM's name of the instruction that multiplies."""
        return _INSTRUCTIONS[products][self.lanes == COLUMNS]


def _halves(fours: ir.Value, shift: str) -> list[ir.Value]:
    """The even and the odd bytes of a vector, widened to 16 bits by a shift that is arithmetic or not."""
    words = vectors.bitcast(fours, ir.IntegerType.get_signless(16))
    eight = emit.number(8, words.type)
    return [emit.arith(shift, emit.arith("shli", words, eight), eight), emit.arith(shift, words, eight)]


def dots_of(target: Target) -> Dots | None:
    """How a target multiplies bytes; None without AVX2."""
    if target.has("avx512bw") and target.lanes(32) == COLUMNS:
        return Dots(COLUMNS, 32, FOURS if target.has("avx512vnni") else HALVES)
    if target.has("avx2"):
        fused = target.has("avxvnni") or (target.has("avx512vnni") and target.has("avx512vl"))
        return Dots(COLUMNS // 2, target.num_vector_registers, FOURS if fused else HALVES)
    return None


class ByteDots(VectorSums):
    """Sums of 32-bit integers; `swapped` where elements of A are signed and those of B are not."""

    def __init__(self, block: SumBlock, dots: Dots, shift: int, swapped: bool = False) -> None:
        super().__init__(block, dots.lanes, ir.IntegerType.get_signless(32), GROUP)
        self.dots, self.shift, self.swapped = dots, shift, swapped

    def add(self, total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.dots.add(total, b, a) if self.swapped else self.dots.add(total, a, b)

    def _group(self, buffer: ir.Value, at: Index) -> ir.Value:
        """A group of elements of A for all lanes, shifted."""
        group = super()._group(buffer, at)
        return emit.arith("xori", group, emit.number(-SHIFT, group.type)) if self.shift else group


class SortedNest(PairsNest):
    """Emits a contraction whose groups are sorted (see `layout.packed_shape`), in blocks of sums of one block of columns: exact products
    of bytes by pmaddubsw where the signed ones are a parameter of eight bits.

    The instruction multiplies pairs of unsigned bytes by pairs of signed ones and adds each pair up to 16 bits, in which the sum may not
    fit: two products by 255 fit if the signed bytes of one sign add up to 128 at most. In each block of columns, packing puts first the
    groups whose pairs all fit: two thirds of the groups in a ResNet-50 of normally distributed weights. The other groups are widened and
    multiplied by pmaddwd. The block says how many groups fit, and where the elements of each group are in the other operand.

    Attributes:
      halves: the instructions for the groups whose pairs do not all fit.
    """

    def __init__(self, kernel: Kernel, plan: Plan, dots: Dots, target: Target, tuning: Tuning) -> None:
        pairs, self.halves = (replace(dots, products=products) for products in (PAIRS, HALVES))
        super().__init__(kernel, plan, lambda block: ByteDots(block, pairs, plan.layout.shift), target, tuning)

    def _reduce(self, loops: list[Var], points: Sequence[Point], sums: Values) -> Values:
        """Two loops in turn, which carry the sums."""
        layout = self.layout
        count = int(layout.depth) // layout.group
        ends = [int(stride) * int(v.high) for stride, v in zip(layout.strides, layout.outer, strict=True)]
        low, high = sum(min(0, end) for end in ends), sum(max(0, end) for end in ends) + int(layout.run)
        head = head_offset(self.c, layout, self.blocks, points[0], points[0][self.column_block])
        order = head + layout.start * layout.group * COLUMNS
        fit = self._word(order)
        rest = ByteDots(self.block, self.halves, layout.shift)
        for kernel, first, end in ((self.instructions, 0, fit), (rest, fit, count)):
            with nest.carrying(first, end, self.evaluator, sums, below=count, name="group") as (group, op):
                where = Index.of(Var(low, high, self._word(order + (group + 1) * layout.group), name="where"))
                columns = [head + (group + layout.head) * (layout.group * COLUMNS)]
                if self.prefetches:
                    self._prefetch(columns)
                rows = [layout.offset.at(p) + where for p in points]
                emit.yield_values(kernel.step(self.a, rows, self._stride(), self.b, columns, list(op.inner_iter_args)))
            sums = list(op.results)
        return sums

    def _word(self, at: Index) -> ir.Value:
        """An integer of 32 bits between the bytes of B."""
        bits = vectors.bitcast(vectors.load(self.b, at, 4), ir.IntegerType.get_signless(32))
        return emit.create("arith.index_cast", [ir.IndexType.get()], [vectors.extract(bits, 0)])
