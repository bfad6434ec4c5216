"""Recognizes products with blockwise quantized weights of a few bits."""

from dataclasses import dataclass
from math import prod
from typing import Any

from relayc.dialects.discardable import ACCURACY_LEVEL
from relayc.dialects.mlir import ir
from relayc.pipelines.te.read.body import Body, Constant, LoopIndex
from relayc.pipelines.te.read.graph import Kernel, Node, NotStructured
from relayc.pipelines.te.read.reduction import multiply_add_casts
from relayc.symbolic import Size, proves

ROW, STRIP, LANE, BLOCK, WORD, NUMBER = range(6)
"""Loops of the product."""
_NUMBER_OF_WEIGHT = 3
"""The loop over the numbers of a word in the dequantization."""


@dataclass(frozen=True)
class DenseBlocks:
    """A kernel whose result is a product of floats with weights of a few bits, or an elementwise function of one (the epilogue).

    Attributes:
      product, root: the product [rows, strips, lanes], and the result [..., columns] with the same rows.
      data: source of the rows, [rows, blocks, words, numbers of a word].
      weights: the dequantized weights: a generic node over strips, blocks, words, numbers and lanes, of words, scales and zeros.
      bits: of a number.
      level: the least accuracy (accuracy_level of nn.dense_blocks).
    """

    product: Node
    root: Node
    data: Node
    weights: Node
    bits: int
    level: int

    @property
    def rows(self) -> Size:
        return self.product.shape[0]

    @property
    def columns(self) -> int:
        columns = self.root.shape[-1]
        assert isinstance(columns, int)
        return columns


def match(kernel: Kernel) -> DenseBlocks | None:
    """The product of a kernel; None for another kernel."""
    reductions = [n for n in kernel.nodes() if n.is_reduction]
    if len(kernel.results) != 1 or len(reductions) != 1 or len(reductions[0].structured.inputs) != 2:
        return None
    product, root = reductions[0], kernel.results[0]
    structured = product.structured
    data, weights = structured.inputs
    dims = [[e.position for e in m.results if isinstance(e, ir.AffineDimExpr)] for m in (*structured.maps, *structured.output_maps)]
    if dims != [[ROW, BLOCK, WORD, NUMBER], [STRIP, BLOCK, WORD, NUMBER, LANE], [ROW, STRIP, LANE]]:
        return None
    if weights.kind != "generic" or weights.is_reduction or multiply_add_casts(structured) != [[], []]:
        return None
    strips, *_, lanes = weights.static_shape
    while not _has_rows(root, product.shape[0], strips, lanes):
        if root.kind != "view":
            return None
        root = root.inputs[0]
    try:
        return DenseBlocks(product, root, data, weights, _bits(weights.structured.body), ACCURACY_LEVEL.get(structured.op, 0))
    except NotStructured:
        return None


def _has_rows(node: Node, rows: Size, strips: int, lanes: int) -> bool:
    """Whether a tensor is [..., columns] with that many rows, and columns that end in the last strip."""
    columns = node.shape[-1] if node.shape else None
    is_whole = isinstance(columns, int) and (strips - 1) * lanes < columns <= strips * lanes
    return is_whole and proves(lambda: prod(node.shape[:-1]) == rows)


def _bits(body: Body) -> int:
    """Bits of a number if a body is (number - zero) * scale, number = (word >> bits * place) & mask; otherwise raises NotStructured."""
    word, scale, zero = range(3)
    centred, factor = body.operands_of(body.yielded[0], "arith.mulf")
    number, centre = body.operands_of(centred, "arith.subf")
    if centre != zero:
        [centre] = body.operands_of(centre, "arith.uitofp")
    shifted, mask = body.operands_of(body.operands_of(number, "arith.uitofp")[0], "arith.andi")
    source, shift = body.operands_of(shifted, "arith.shrui")
    place, step = body.operands_of(shift, "arith.muli")
    for conversion in ("arith.trunci", "arith.index_cast"):
        [place] = body.operands_of(place, conversion)
    bits = _integer(step)
    if (source, factor, centre, place, _integer(mask)) != (word, scale, zero, LoopIndex(_NUMBER_OF_WEIGHT), (1 << bits) - 1):
        raise NotStructured("a body that is no weight of a few bits")
    return bits


def _integer(operand: Any) -> int:
    if not isinstance(operand, Constant):
        raise NotStructured(f"expected arith.constant, found {operand}")
    return ir.IntegerAttr(operand.attribute).value
