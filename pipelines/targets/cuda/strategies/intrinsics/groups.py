"""Products of groups of four warps out of shared memory: wgmma_{type}_{rows}x{columns}x{steps}, and of operands across the depth."""

from dataclasses import dataclass

from relayc import te
from relayc.dialects.mlir import ir, lasting_context
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.cuda.strategies.hopper import instructions as hopper
from relayc.pipelines.targets.cuda.strategies.intrinsics.fragments import SUM_TYPES, TYPES, check_tile, group_sums
from relayc.pipelines.targets.cuda.strategies.product.instructions import COLUMNS, STEP_BYTES, Instruction
from relayc.pipelines.tir.editing.intrinsics import Asynchronous, Operand, TensorCall, TensorIntrin
from relayc.pipelines.tir.gpu.aligned import is_multiple
from relayc.pipelines.tir.gpu.bulk_copies import EIGHT_BYTES, LINE_BYTES
from relayc.pipelines.tir.tree.members import ScheduleError

_MOST_COLUMNS, _FEW_COLUMNS = 256, 24
"""Columns of an instruction at most, and the number beyond which columns of integers are multiples of 16 (PTX ISA, "Matrix Shape")."""


@dataclass(frozen=True)
class _SharedOperand:
    """An operand in shared memory.

    Attributes:
      across: whether its lines run along rows or columns, and not along the depth.
      bytes: of an element.
    """

    operand: Operand
    across: bool
    bytes: int

    def check(self, where: str) -> None:
        """That instructions can read it. Raises ScheduleError."""
        operand, lines = self.operand, self.operand.lines
        assert lines is not None  # the lowering checks it
        if operand.strides != (lines.elements, 1) or not is_multiple(operand.offset, EIGHT_BYTES // self.bytes):
            raise ScheduleError(
                f"{where}: {operand.name}: expected lines that follow each other, from every eighth on, found them "
                f"{operand.strides[0]} elements apart from {operand.offset} on"
            )
        if self.within % STEP_BYTES or (self.across and self.within):
            wanted = "the first element of a line" if self.across else f"a multiple of {STEP_BYTES} bytes"
            raise ScheduleError(
                f"{where}: {operand.name}: expected it from {wanted} on, found it {self.within} bytes after the start of a line"
            )

    @property
    def within(self) -> int:
        """The first byte of a line."""
        return self.operand.within * self.bytes

    def descriptor(self) -> ir.Value:
        """Of the lines from the first one on."""
        base = emit.create("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [self.operand.buffer])
        address = emit.arith("addi", base, emit.materialize(self.operand.offset * self.bytes))
        return hopper.descriptor(address, self._block if self.across else 0)

    def step(self, descriptor: ir.Value, step: int, first: int) -> ir.Value:
        """The descriptor of the tile some steps of the depth, and `first` rows or columns (a multiple of 64), further."""
        if self.across:
            return hopper.moved(descriptor, first * self.bytes // LINE_BYTES * self._block + step * LINE_BYTES)
        block, within = divmod(self.within + step * self.bytes, LINE_BYTES)
        return hopper.moved(descriptor, block * self._block + within + first * LINE_BYTES)

    @property
    def _block(self) -> int:
        """Bytes of a block of lines."""
        assert self.operand.lines is not None
        return self.operand.lines.block * self.bytes


@dataclass(frozen=True)
class MultiplyAdd:
    """Sums of products of tiles in shared memory, 64 rows and some steps at a time."""

    name: str
    instruction: Instruction
    rows: int
    columns: int
    steps: int
    across: tuple[bool, bool]

    def __call__(self, call: TensorCall) -> None:
        """Begins the products of all tiles, step by step."""
        where = f"tensor intrinsic {self.name}"
        if not call.target.has("wgmma"):
            raise ScheduleError(f"{where}: expected a target with wgmma, found {call.target}")
        tiles = [_SharedOperand(call[name], across, self.instruction.bits // 8) for name, across in zip("AB", self.across, strict=True)]
        for tile in tiles:
            tile.check(where)
        c, element = call.fragments["C"], ir.Type.parse(self.instruction.sums)
        groups, eights = range(self.rows // hopper.ROWS), range(self.columns // COLUMNS)
        start = hopper.no_sums(self.columns, element)
        sums = [hopper.sums_of([v for j in eights for v in c.load(i, j)]) if call.accumulates else start for i in groups]
        a, b = (tile.descriptor() for tile in tiles)
        along = (not self.across[0], not self.across[1])
        hopper.begin_products()
        for step in range(0, self.steps, self.instruction.depth):
            for i in groups:
                pair = tiles[0].step(a, step, i * hopper.ROWS), tiles[1].step(b, step, 0)
                sums[i] = hopper.multiply_add(*pair, sums[i], self.columns, self.instruction, along)
        for i in groups:
            for j in eights:
                c.store([hopper.sum_of(sums[i], j * 4 + n, element) for n in range(4)], i, j)


_PRODUCTS = Asynchronous(hopper.commit_products, hopper.wait_products)


def _multiply_add(a: str | None, b: str | None, kind: str, *sizes: str) -> TensorIntrin:
    name = f"wgmma_{a or ''}{b or ''}{kind}_{'x'.join(sizes)}"
    rows, columns, steps = map(int, sizes)
    type_, bits = TYPES[kind]
    instruction = Instruction(kind, kind, bits, "i32" if kind == "s8" else "f32")
    sums = group_sums(instruction.sums)
    check_tile(name, {"row": rows, "column": columns}, sums)
    if steps % instruction.depth or columns > _MOST_COLUMNS or (kind == "s8" and columns > _FEW_COLUMNS and columns % 16):
        few = f" and of 16 beyond {_FEW_COLUMNS}" if kind == "s8" else ""
        wanted = f"columns up to {_MOST_COLUMNS}{few}, steps that are a multiple of {instruction.depth}"
        raise ScheduleError(f"tensor intrinsic {name}: expected {wanted}, found {columns} and {steps}")
    across = a is not None, b is not None
    if any(across) and bits != 16:
        raise ScheduleError(f"tensor intrinsic {name}: expected elements of 16 bits, which alone may lie across the depth, found {kind}")
    left, right = ((steps, n) if turned else (n, steps) for turned, n in zip(across, (rows, columns), strict=True))
    x, y = te.placeholder(left, type_, name="A"), te.placeholder(right, type_, name="B")
    k, of = te.reduce_axis((0, steps), "k"), SUM_TYPES[instruction.sums]
    one, other = ((lambda t, i: t[k, i]) if turned else (lambda t, i: t[i, k]) for turned in across)
    c = te.compute((rows, columns), lambda i, j: te.sum(one(x, i).astype(of) * other(y, j).astype(of), axis=k), name="C")
    implementation = MultiplyAdd(name, instruction, rows, columns, steps, across)
    described = te.create_prim_func([x, y, c], context=lasting_context())
    return TensorIntrin.register(name, described, implementation, starts=True, fragments={"C": sums}, lines="AB", asynchronous=_PRODUCTS)


_NUMBER = r"([1-9]\d{0,2})"
TensorIntrin.register_family(
    "wgmma_{type}_{rows}x{columns}x{steps}",
    rf"wgmma_(trans_a_)?(trans_b_)?(f16|bf16|tf32|s8)_{_NUMBER}x{_NUMBER}x{_NUMBER}",
    _multiply_add,
)
