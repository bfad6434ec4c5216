"""Copies by the tensor memory accelerator, whose bytes barriers count (PTX ISA, "cp.async.bulk.tensor", "Tensors").

A copy is executed as late as possible: when no thread can continue without it, or at a wait for products (see warp_groups). A thread that
reads the data without waiting therefore reads the old data.
"""

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.mlir_text import constants, loaded_word, mlir_texts
from relayc.pipelines.targets.cuda.emulate.mbarriers import UPDATE, UPDATE_TEXT
from relayc.pipelines.targets.gpu.emulate.pointers import to_word, word
from relayc.pipelines.targets.gpu.emulate.registry import instruction
from relayc.pipelines.targets.gpu.emulate.thread import WaitingThread
from relayc.pipelines.tir.gpu.tensor_maps import MOST_RANK
from relayc.pipelines.tir.gpu.tensor_maps import word as map_word

COPIES = "tma"
"""The queue of copies of a block."""

_PIXEL_RANK = 4
"""Dimensions of a tensor whose pixels are copied: channels, two spatial dimensions, and images."""
_CORNER_BITS, _OFFSET_BITS = 8, 16

PERMUTED = "__relayc_cuda.permuted"
_MLIR = mlir_texts(__file__)
PERMUTED_TEXT = _MLIR["permuted"].substitute(permuted=PERMUTED)

_LINE = "__relayc_cuda.tma.line"
_LINE_TEXT = _MLIR["line"].substitute(line=_LINE, permuted=PERMUTED)


@instruction("nvvm.cp.async.bulk.tensor.shared.cluster.global", waits=True)
def copy_box(op: ir.Operation, thread: WaitingThread) -> None:
    """The box of a tensor, or pixels of one of four dimensions, in lines of 128 bytes that are permuted."""
    counts = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    rank, offset_count = counts[2], counts[4]
    is_tiled = "im2col" not in str(op.attributes["mode"])
    is_known = offset_count == 0 if is_tiled else rank == _PIXEL_RANK and offset_count == rank - 2
    if counts[5:] != [0] * len(counts[5:]) or not is_known:
        raise ValueError(
            f"kernel {thread.kernel} at {op.location}: expected a copy of a box, of up to {MOST_RANK} dimensions, or of pixels, "
            f"of 4, found {op}"
        )
    to, tensor_map, *numbers = op.operands
    at, barrier, offsets = numbers[:rank], numbers[rank], numbers[rank + 1 :]
    if is_tiled:
        name, text, words = f"__relayc_cuda.tma.{rank}", _box_text, at
    else:
        channel, x, y, image = at
        words = [_pair(channel, image, 32), _pair(x, y, 32), _pair(offsets[0], offsets[1], _OFFSET_BITS)]
        name, text = "__relayc_cuda.tma.pixels", _pixels_text
    function = thread.function(name, text(name, rank) + UPDATE_TEXT + _LINE_TEXT + PERMUTED_TEXT)
    thread.defer(thread.queue(COPIES, per="block"), function, [to, tensor_map, barrier, *words])


def _pair(low: ir.Value, high: ir.Value, bits: int) -> ir.Value:
    """Two numbers of so many bits in one word."""
    return emit.arith("ori", to_word(low), emit.arith("shli", to_word(high), word(bits)))


def _begin(name: str, rank: int, words: int, boxes: int) -> list[str]:
    """The beginning of a function of (destination, map, barrier, further words): it loads these, and the fields of the map."""
    lines = [f"func.func private @{name}(%words: !llvm.ptr) {{", constants(0, 1)]
    for i, what in enumerate(("to", "map", "barrier")):
        lines.append(loaded_word(what, "%words", i, "!llvm.ptr"))
    lines += ["  %base = llvm.load %map : !llvm.ptr -> i64", "  %first = llvm.ptrtoint %to : !llvm.ptr to i64"]
    lines += [loaded_word(f"word{i}", "%words", 3 + i) for i in range(words)]
    facts = [("size", d) for d in range(rank)] + [("stride", d) for d in range(rank)] + [("box", d) for d in range(boxes)]
    return lines + [loaded_word(f"{what}{d}", "%map", map_word(rank, what, d)) for what, d in facts]


def _signed(result: str, word: str, shift: int, bits: int) -> list[str]:
    """Some bits of a word as a number with a sign."""
    return [
        f"  %{result}_shift = arith.constant {shift} : i64",
        f"  %{result}_all = arith.shrui {word}, %{result}_shift : i64",
        f"  %{result}_low = arith.trunci %{result}_all : i64 to i{bits}",
        f"  %{result} = arith.extsi %{result}_low : i{bits} to i64",
    ]


def _line(inside: str, offset: str, place: str) -> list[str]:
    """Copies a line: of the tensor at a number of bytes, to one of the box by its number."""
    return [
        f"  %line_place = arith.muli {place}, %box_bytes : i64",
        "  %line_to = arith.addi %first, %line_place : i64",
        f"  %line_from = arith.addi %base, {offset} : i64",
        f"  func.call @{_LINE}(%line_to, %line_from, {inside}, %at_bytes, %size_bytes, %box_bytes) : (i64, i64, i1, i64, i64, i64) -> ()",
    ]


def _end(total: str) -> list[str]:
    """Tells the barrier the bytes."""
    return [
        f"  %come = arith.subi %c0, {total} : i64",
        f"  func.call @{UPDATE}(%barrier, %c0, %come) : (!llvm.ptr, i64, i64) -> ()",
        "  return",
        "}",
    ]


_INNERMOST = [f"  %{what}_bytes = arith.muli %{what}0, %stride0 : i64" for what in ("at", "size", "box")]
"""Coordinate, size and box of the innermost dimension in bytes."""


def _box_text(name: str, rank: int) -> str:
    """A function that copies a box; the further words are its coordinates."""
    lines = _begin(name, rank, rank, rank)
    for d in range(rank):
        lines += _signed(f"at{d}", f"%word{d}", 0, 32)
    lines += [*_INNERMOST, "  %true = arith.constant true"]
    lines += [f"  scf.for %i{d} = %c0 to %box{d} step %c1 : i64 {{" for d in reversed(range(1, rank))]
    inside, offset, place = "%true", "%c0", "%c0"
    for d in reversed(range(1, rank)):
        lines += [
            f"  %g{d} = arith.addi %at{d}, %i{d} : i64",
            f"  %in{d} = arith.cmpi ult, %g{d}, %size{d} : i64",
            f"  %all{d} = arith.andi {inside}, %in{d} : i1",
            f"  %o{d} = arith.muli %g{d}, %stride{d} : i64",
            f"  %offset{d} = arith.addi {offset}, %o{d} : i64",
            f"  %q{d} = arith.muli {place}, %box{d} : i64",
            f"  %r{d} = arith.addi %q{d}, %i{d} : i64",
        ]
        inside, offset, place = f"%all{d}", f"%offset{d}", f"%r{d}"
    lines += [*_line(inside, offset, place), *["  }"] * (rank - 1)]
    total = "%box_bytes"
    for d in range(1, rank):
        lines += [f"  %total{d} = arith.muli {total}, %box{d} : i64"]
        total = f"%total{d}"
    return "\n".join([*lines, *_end(total)])


def _pixels_text(name: str, rank: int) -> str:
    """A function that copies pixels; the further words are pairs: first channel and image, the coordinates of the first pixel, and the
    offsets of the pixels that are read from the pixels that are traversed (PTX ISA, "im2col mode")."""
    lines = _begin(name, rank, 3, 2)
    for result, at, shift in (("at0", 0, 0), ("image", 0, 32), ("x", 1, 0), ("y", 1, 32)):
        lines += _signed(result, f"%word{at}", shift, 32)
    lines.append(loaded_word("window", "%map", map_word(rank, "window")))
    for i, result in enumerate(("lower_x", "lower_y", "upper_x", "upper_y", "step_x", "step_y")):
        lines += _signed(result, "%window", i * _CORNER_BITS, _CORNER_BITS)
    lines += [
        f"  %offset_mask = arith.constant {(1 << _OFFSET_BITS) - 1} : i64",
        f"  %offset_shift = arith.constant {_OFFSET_BITS} : i64",
        "  %offset_x = arith.andi %word2, %offset_mask : i64",
        "  %offset_high = arith.shrui %word2, %offset_shift : i64",
        "  %offset_y = arith.andi %offset_high, %offset_mask : i64",
        # The first pixels that are not gone over.
        "  %end_x = arith.addi %size1, %upper_x : i64",
        "  %end_y = arith.addi %size2, %upper_y : i64",
        *_INNERMOST,
        "  %last:3 = scf.for %i = %c0 to %box1 step %c1 iter_args(%ix = %x, %iy = %y, %in = %image) -> (i64, i64, i64) : i64 {",
        "  %gx = arith.addi %ix, %offset_x : i64",
        "  %gy = arith.addi %iy, %offset_y : i64",
        "  %in_x = arith.cmpi ult, %gx, %size1 : i64",
        "  %in_y = arith.cmpi ult, %gy, %size2 : i64",
        "  %in_n = arith.cmpi ult, %in, %size3 : i64",
        "  %in_both = arith.andi %in_x, %in_y : i1",
        "  %inside = arith.andi %in_both, %in_n : i1",
        "  %ox = arith.muli %gx, %stride1 : i64",
        "  %oy = arith.muli %gy, %stride2 : i64",
        "  %on = arith.muli %in, %stride3 : i64",
        "  %oxy = arith.addi %ox, %oy : i64",
        "  %offset = arith.addi %oxy, %on : i64",
        *_line("%inside", "%offset", "%i"),
        "  %next_x = arith.addi %ix, %step_x : i64",
        "  %ends_row = arith.cmpi sge, %next_x, %end_x : i64",
        "  %new_x = arith.select %ends_row, %lower_x, %next_x : i64",
        "  %below = arith.addi %iy, %step_y : i64",
        "  %next_y = arith.select %ends_row, %below, %iy : i64",
        "  %ends_image = arith.cmpi sge, %next_y, %end_y : i64",
        "  %new_y = arith.select %ends_image, %lower_y, %next_y : i64",
        "  %after = arith.addi %in, %c1 : i64",
        "  %new_n = arith.select %ends_image, %after, %in : i64",
        "  scf.yield %new_x, %new_y, %new_n : i64, i64, i64",
        "  }",
        "  %total = arith.muli %box_bytes, %box1 : i64",
    ]
    return "\n".join([*lines, *_end("%total")])
