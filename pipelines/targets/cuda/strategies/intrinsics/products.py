"""Products of fragments in registers of a warp: mma_{type}_{rows}x{columns}x{steps}, and mma_{type}{type}_... of two types of integers."""

from dataclasses import dataclass

from relayc import te
from relayc.dialects.mlir import ir, lasting_context
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.cuda.strategies.intrinsics.fragments import SUM_TYPES, TYPES, check_tile, operand_fragments, sum_fragments
from relayc.pipelines.targets.cuda.strategies.product.instructions import COLUMNS, ROWS, Instruction, operand_words
from relayc.pipelines.tir.editing.intrinsics import TensorCall, TensorIntrin
from relayc.pipelines.tir.tree.members import ScheduleError

_FEATURES = {32: "mma-bf16", 16: "mma-bf16", 8: "mma-s8"}
"""What a target must have, by the bits of an element: 16 steps of f16 came with bf16."""


@dataclass(frozen=True)
class MultiplyAdd:
    """Sums of products of fragments, tile by tile."""

    name: str
    instruction: Instruction
    rows: int
    columns: int
    steps: int

    def __call__(self, call: TensorCall) -> None:
        """Emits the products of all fragments, step by step."""
        feature = _FEATURES[self.instruction.bits]
        if not call.target.has(feature):
            raise ScheduleError(f"tensor intrinsic {self.name}: expected a target with {feature}, found {call.target}")
        a, b, c = (call.fragments[name] for name in "ABC")
        tiles = [(i, j) for i in range(self.rows // ROWS) for j in range(self.columns // COLUMNS)]
        start = [emit.zero(ir.Type.parse(self.instruction.sums))] * 4
        sums = {tile: c.load(*tile) if call.accumulates else start for tile in tiles}
        for step in range(self.steps // self.instruction.depth):
            left = [operand_words(a.load(i, step), self.instruction.a) for i in range(self.rows // ROWS)]
            right = [operand_words(b.load(j, step), self.instruction.b) for j in range(self.columns // COLUMNS)]
            for i, j in tiles:
                sums[i, j] = self.instruction.multiply_add(left[i], right[j], sums[i, j])
        for tile, found in sums.items():
            c.store(found, *tile)


def _multiply_add(kind: str, other: str | None, *sizes: str) -> TensorIntrin:
    name = f"mma_{kind}{other or ''}_{'x'.join(sizes)}"
    rows, columns, steps = map(int, sizes)
    (type_, bits), (other_type, other_bits) = TYPES[kind], TYPES[other or kind]
    if other and (bits != 8 or other_bits != 8):
        raise ScheduleError(f"tensor intrinsic {name}: expected two types of integers or one type of both operands, found {kind}, {other}")
    instruction = Instruction(kind, other or kind, bits, "i32" if bits == 8 else "f32")
    fragments = {"A": operand_fragments("a", bits), "B": operand_fragments("b", bits), "C": sum_fragments(instruction.sums)}
    check_tile(name, {"line": rows, "depth": steps}, fragments["A"])
    check_tile(name, {"row": rows, "column": columns}, fragments["C"])
    a, b = te.placeholder((rows, steps), type_, name="A"), te.placeholder((columns, steps), other_type, name="B")
    k, of = te.reduce_axis((0, steps), "k"), SUM_TYPES[instruction.sums]
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k].astype(of) * b[j, k].astype(of), axis=k), name="C")
    implementation = MultiplyAdd(name, instruction, rows, columns, steps)
    return TensorIntrin.register(
        name, te.create_prim_func([a, b, c], context=lasting_context()), implementation, starts=True, fragments=fragments
    )


_NUMBER = r"([1-9]\d{0,2})"
_TYPE = "f16|bf16|tf32|s8|u8"
TensorIntrin.register_family(
    "mma_{type}_{rows}x{columns}x{steps}", rf"mma_({_TYPE})({_TYPE})?_{_NUMBER}x{_NUMBER}x{_NUMBER}", _multiply_add
)
