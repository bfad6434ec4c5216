"""Operations of a function of blocks and loops: loops, blocks, allocations, computations of indices, and annotations."""

from collections.abc import Iterable, Iterator, Mapping

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
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.operation.name == "arith.constant":
        return ir.IntegerAttr(owner.operation.attributes["value"]).value
    return Reader({}, sizes).size(value)


def enclosing_block(operation: ir.Operation) -> ir.Operation | None:
    """The innermost tir.block around a block or loop, if any."""
    parent = operation.parent
    while parent is not None and parent.operation.name != "func.func":
        if parent.operation.name == "tir.block":
            return parent.operation
        parent = parent.operation.parent
    return None


def point_computations(operation: ir.Operation) -> list[ir.Operation]:
    """The operations before a block that compute its points, in order; an empty list for a loop."""
    found: dict[ir.Operation, None] = {}
    here = operation.block

    def visit(op: ir.Operation) -> None:
        for value in op.operands:
            owner = value.owner
            if not isinstance(owner, ir.Block) and owner.operation.block == here and owner.operation.name.startswith(COMPUTATIONS):
                visit(owner.operation)
                found[owner.operation] = None

    if operation.name == "tir.block" and operation.parent.name != "func.func":
        visit(operation)
    return list(found)


def drop(operation: ir.Operation) -> None:
    """Erases an operation, and the index computations in loops that become unused. Computations of the function stay (see editing)."""
    sources = list(operation.operands)
    operation.erase()
    drop_computations(sources)


def drop_computations(values: Iterable[ir.Value]) -> None:
    """Erases index computations in loops that have no uses."""
    left, gone = list(values)[::-1], set()
    while left:
        value = left.pop()
        if value in gone:
            continue
        owner = value.owner
        if isinstance(owner, ir.Block) or next(iter(value.uses), None) is not None:
            continue
        operation = owner.operation
        if operation.name.startswith(COMPUTATIONS) and operation.parent.operation.name != "func.func":
            gone.add(value)
            left += operation.operands
            operation.erase()


def is_statement(op: ir.Operation) -> bool:
    """Whether an operation is a loop, a block or an allocation, and neither a computation of an index nor a terminator."""
    return op.name in STATEMENTS


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
