"""Operations of a function of blocks and loops: loops, blocks, allocations, computations of indices, and annotations."""

from collections.abc import Iterator, Mapping

from relayc.dialects.mlir import ir
from relayc.dialects.tir import names
from relayc.pipelines.tir.tree.indices import Reader
from relayc.symbolic import Size

COMPUTATIONS = ("affine.", "arith.")
ELEMENTARY = (*COMPUTATIONS, "math.", "memref.")
"""Prefixes of the names of operations without regions."""
STATEMENTS = ("scf.for", "tir.block", "memref.alloc")


def size_of(value: ir.Value, sizes: Mapping[ir.Value, Size]) -> Size:
    """The size that a value of the function holds."""
    return Reader({}, sizes).size(value)


def operations_in(block: ir.Block) -> list[ir.Operation]:
    """The operations of a block, in order."""
    return [op.operation for op in block.operations]


def walk(block: ir.Block) -> Iterator[ir.Operation]:
    """The operations of a block and of its nested regions, outer ones first."""
    for op in operations_in(block):
        yield op
        for region in op.regions if not op.name.startswith(ELEMENTARY) else ():
            for inner in region.blocks:
                yield from walk(inner)


def read_annotations(operation: ir.Operation) -> dict[str, ir.Attribute]:
    """The annotations of a loop or block, by name."""
    attributes = operation.attributes
    return {a.name: a.attr for a in ir.DictAttr(attributes[names.ANNOTATIONS])} if names.ANNOTATIONS in attributes else {}


def write_annotations(operation: ir.Operation, annotations: dict[str, ir.Attribute]) -> None:
    """Replaces the annotations of a loop or block."""
    if annotations:
        operation.attributes[names.ANNOTATIONS] = ir.DictAttr.get(annotations, operation.context)
    elif names.ANNOTATIONS in operation.attributes:
        del operation.attributes[names.ANNOTATIONS]
