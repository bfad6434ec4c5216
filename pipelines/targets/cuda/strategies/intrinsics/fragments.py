"""Between fragments in registers and memory: ldmatrix_a, ldmatrix_b, both transposed, mma_store, wgmma_store."""

from dataclasses import dataclass

from relayc import te
from relayc.dialects.mlir import ir, lasting_context
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.hopper.instructions import GROUP_THREADS
from relayc.pipelines.targets.cuda.strategies.hopper.instructions import ROWS as GROUP_ROWS
from relayc.pipelines.targets.cuda.strategies.product.instructions import COLUMNS, ROWS, STEP_BYTES, load_matrices
from relayc.pipelines.tir.editing.intrinsics import Fragments, Operand, TensorCall, TensorIntrin
from relayc.pipelines.tir.gpu.aligned import is_multiple
from relayc.pipelines.tir.gpu.aligned import store as store_run
from relayc.pipelines.tir.gpu.copies import SHARED, pointer
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.values import vectors

LINE_BYTES = 16
"""Of a line of a matrix that ldmatrix reads."""
_MATRIX = 8
"""Lines of such a matrix."""
TYPES = {"f16": ("float16", 16), "bf16": ("bfloat16", 16), "tf32": ("float32", 32), "s8": ("int8", 8), "u8": ("uint8", 8)}
"""Element types of operands, by their names in PTX: the dtype in te, and the bits."""
SUM_TYPES = {"f32": "float32", "i32": "int32"}


def operand_fragments(which: str, bits: int, transposed: bool = False) -> Fragments:
    """The layout of A ("a") or B ("b"): lines along the depth, or across it."""
    lines = ROWS if which == "a" else COLUMNS
    tile = (("line", lines), ("depth", STEP_BYTES * 8 // bits))
    return Fragments(f"mma.{which}", tile[::-1] if transposed else tile, lines * STEP_BYTES // (32 * 4), "i32")


def sum_fragments(element: str) -> Fragments:
    """The layout of sums."""
    return Fragments("mma.sums", (("row", ROWS), ("column", COLUMNS)), ROWS * COLUMNS // 32, element)


def group_sums(element: str) -> Fragments:
    """The layout of the sums of a group of warps: registers hold 8 columns (see hopper.instructions.sum_of)."""
    return Fragments(
        "wgmma.sums", (("row", GROUP_ROWS), ("column", COLUMNS)), GROUP_ROWS * COLUMNS // GROUP_THREADS, element, GROUP_THREADS
    )


@dataclass(frozen=True)
class LoadMatrix:
    """Fragments of an operand from shared memory: one or two groups of eight lines, and two pieces of 16 bytes of the depth at once.

    Attributes:
      which: "a" or "b".
      lines, steps: of the operand.
      bits: of an element.
      transposed: whether contiguous elements run across the depth.
    """

    name: str
    which: str
    lines: int
    steps: int
    bits: int
    transposed: bool

    def __call__(self, call: TensorCall) -> None:
        """Emits the loads of all fragments."""
        assert call.lane is not None
        source, piece = call["S"], LINE_BYTES * 8 // self.bits
        self._check(source, piece)
        depth = STEP_BYTES * 8 // self.bits
        at_once = ROWS if self.lines % ROWS == 0 or self.which == "a" else COLUMNS
        load = self._words if self.transposed and self.bits == 32 else self._matrices
        for first in range(0, self.lines, at_once):
            for step in range(0, self.steps, depth):
                self._keep(call, first, step // depth, load(source, call.lane, first, step, at_once))

    def _matrices(self, source: Operand, lane: ir.Value, first: int, step: int, lines: int) -> list[ir.Value]:
        line, part = self._place(lane, LINE_BYTES * 8 // self.bits)
        place = (part + step, line + first) if self.transposed else (line + first, part + step)
        return load_matrices(pointer(source.buffer, source.placed(source.at(*place)), SHARED), lines // 4, self.transposed)

    def _words(self, source: Operand, lane: ir.Value, first: int, step: int, lines: int) -> list[ir.Value]:
        """The words that matrices would have, one by one: ldmatrix transposes elements of 16 bits only."""
        line = Index.of(Var.below(_MATRIX, _bits(lane, 2, _MATRIX), name="line")) + first
        part = Index.of(Var.below(4, _bits(lane, 0, 4), name="part")) + step
        found = []
        for number in range(lines // 4):
            half, later = (number % 2, number // 2) if self.which == "a" else (number // 2, number % 2)
            at = source.placed(source.at(part + later * 4, line + half * _MATRIX))
            value = emit.create("memref.load", [source.element], [source.buffer, emit.materialize(at)])
            found.append(emit.create("arith.bitcast", [ir.IntegerType.get_signless(32)], [value]))
        return found

    def _check(self, source: Operand, piece: int) -> None:
        where = f"tensor intrinsic {self.name}: S"
        if str(source.buffer.type.memory_space) != "#gpu.address_space<workgroup>":
            raise ScheduleError(f"{where}: expected a shared buffer, found one of another scope")
        if not is_multiple(source.at(0, 0), piece) or not is_multiple(Index(source.strides[0]), piece):
            raise ScheduleError(
                f"{where}: expected lines at multiples of {LINE_BYTES} bytes, {piece} elements, found them from {source.at(0, 0)} on "
                f"and {source.strides[0]} apart"
            )

    def _place(self, lane: ir.Value, piece: int) -> tuple[Index, Index]:
        """(line, step) of the piece of 16 bytes whose address a lane gives."""
        within = Index.of(Var.below(_MATRIX, _bits(lane, 0, _MATRIX), name="lane"))
        eight, sixteen = (Index.of(Var(0, 1, _bits(lane, shift, 2), name="half")) for shift in (3, 4))
        # A's second matrix is the next eight lines, B's the next piece of the depth.
        second, third = (eight, sixteen) if self.which == "a" else (sixteen, eight)
        if self.which == "b" and self.lines % ROWS:
            second = Index()
        if self.transposed:
            return second * _MATRIX, within + third * _MATRIX
        return within + second * _MATRIX, third * piece

    def _keep(self, call: TensorCall, first: int, step: int, words: list[ir.Value]) -> None:
        tile = ROWS if self.which == "a" else COLUMNS
        each = tile // 4
        for i in range(0, len(words), each):
            line = (first + i // each * tile) // tile
            call.fragments["W"].store(words[i : i + each], *((step, line) if self.transposed else (line, step)))


def _bits(lane: ir.Value, shift: int, count: int) -> ir.Value:
    """Some bits of a lane's number: as many as count to `count`."""
    value = emit.arith("shrui", lane, emit.index_constant(shift)) if shift else lane
    return emit.arith("andi", value, emit.index_constant(count - 1))


@dataclass(frozen=True)
class StoreSums:
    """Sums to memory, in pairs of neighbours: each warp has 16 rows of a fragment."""

    name: str
    rows: int
    columns: int
    fragments: Fragments

    def __call__(self, call: TensorCall) -> None:
        """Emits the stores of all fragments."""
        assert call.lane is not None
        to, lane, tile = call["D"], call.lane, dict(self.fragments.tile)["row"]
        row = Index.of(Var.below(_MATRIX, _bits(lane, 2, _MATRIX), name="row"))
        if tile != ROWS:
            row += Index.of(Var.below(tile // ROWS, emit.arith("shrui", lane, emit.index_constant(5)), name="warp")) * ROWS
        pair = Index.of(Var(0, 3, _bits(lane, 0, 4), name="pair"))
        for i in range(self.rows // tile):
            for j in range(self.columns // COLUMNS):
                sums = call.fragments["C"].load(i, j)
                for half in range(2):
                    place = to.at(row + (i * tile + half * _MATRIX), pair * 2 + j * COLUMNS)
                    store_run(vectors.from_elements(sums[2 * half : 2 * half + 2]), to.buffer, place)


def _load_matrix(which: str, transposed: str | None, kind: str, first: str, second: str) -> TensorIntrin:
    name = f"ldmatrix_{which}_{transposed or ''}{kind}_{first}x{second}"
    lines, steps = (int(second), int(first)) if transposed else (int(first), int(second))
    type_, bits = TYPES[kind]
    fragments = operand_fragments(which, bits, bool(transposed))
    check_tile(name, {"line": lines, "depth": steps}, fragments)
    if transposed and bits < 16:
        raise ScheduleError(f"tensor intrinsic {name}: expected elements of 16 or 32 bits, which alone are transposed, found {kind}")
    s = te.placeholder((int(first), int(second)), type_, name="S")
    copied = te.create_prim_func([s, te.compute((int(first), int(second)), lambda i, j: s[i, j], name="W")], context=lasting_context())
    implementation = LoadMatrix(name, which, lines, steps, bits, bool(transposed))
    return TensorIntrin.register(name, copied, implementation, fragments={"W": fragments}, swizzled="S")


def _store(instruction: str, kind: str, rows: str, columns: str) -> TensorIntrin:
    name = f"{instruction}_store_{kind}_{rows}x{columns}"
    fragments = sum_fragments(kind) if instruction == "mma" else group_sums(kind)
    check_tile(name, {"row": int(rows), "column": int(columns)}, fragments)
    c = te.placeholder((int(rows), int(columns)), SUM_TYPES[kind], name="C")
    copied = te.create_prim_func([c, te.compute((int(rows), int(columns)), lambda i, j: c[i, j], name="D")], context=lasting_context())
    return TensorIntrin.register(name, copied, StoreSums(name, int(rows), int(columns), fragments), fragments={"C": fragments})


def check_tile(name: str, extents: dict[str, int], *fragments: Fragments) -> None:
    """That a tile is whole fragments. Raises ScheduleError."""
    for axis, tile in (tile for some in fragments for tile in some.tile):
        if extents[axis] % tile:
            raise ScheduleError(f"tensor intrinsic {name}: expected a multiple of {tile} ({axis}), found {extents[axis]}")


_NUMBERS = r"([1-9]\d{0,2})x([1-9]\d{0,2})"
for _which, _lines in (("a", "rows"), ("b", "columns")):
    _name, _pattern = f"ldmatrix_{_which}", rf"ldmatrix_({_which})_(trans_)?"
    TensorIntrin.register_family(f"{_name}_{{type}}_{{{_lines}}}x{{steps}}", rf"{_pattern}(f16|bf16|tf32|s8|u8)_{_NUMBERS}", _load_matrix)
for _name in ("mma", "wgmma"):
    TensorIntrin.register_family(f"{_name}_store_{{type}}_{{rows}}x{{columns}}", rf"({_name})_store_(f32|i32)_{_NUMBERS}", _store)
