"""`tir.block`: the computation at one point of the enclosing loops."""

from collections.abc import Sequence

from relayc.dialects.declaration import load_operations
from relayc.dialects.mlir import ext, ir, on_new_context, register_operation
from relayc.dialects.size_attribute import read_size_attribute, size_attribute
from relayc.symbolic import Size

PARALLEL, REDUCTION, OPAQUE = "parallel", "reduction", "opaque"
ITERATORS = (PARALLEL, REDUCTION, OPAQUE)


class TirDialect(ext.Dialect, name="tir"):  # type: ignore[call-arg] # mypy knows nothing of ext
    """The namespace of the operations."""


class Block(TirDialect.Operation, name="block", traits=[ir.NoTerminatorTrait]):  # type: ignore[name-defined, call-arg] # a class made at run time
    """A computation at one point of an iteration space, and how the loops around it reach that point (TensorIR's block).

    Operands, all of type index: the value of each iterator; then, two and two, a value and its limit: the block does nothing where a value
    is not smaller than its limit (as signed numbers). Loops whose extents a split did not divide end there.

    Regions of one block each, without terminator, whose arguments are the iterators: `init` (empty if there is none) is what happens before
    the first step of the reduction, `body` every step. They load from buffers and store to buffers; they use nothing else from around them
    but buffers, sizes and constants.

    Attributes:
      name: a string, which no other block of the function has.
      iterators: an array of "parallel" (each value by itself, in any order), "reduction" (steps that add up, in any order) and "opaque" (in
        order).
      extents: an array of the sizes of the iteration space: integers, or texts of expressions over symbols.
    """

    points: Sequence[ext.Operand[ir.IndexType]]
    init: ext.Region
    body: ext.Region

    def verify_invariants(self) -> bool:
        operation = self.operation
        name = f"tir.block at {operation.location}"
        for key in ("name", "iterators", "extents"):
            if key not in operation.attributes:
                raise ValueError(f"{name}: expected an attribute {key}, found none")
        iterators, extents = iterators_of(operation), extents_of(operation)
        name = f"tir.block {block_name(operation)!r}"
        if unknown := [i for i in iterators if i not in ITERATORS]:
            raise ValueError(f"{name}: iterators: expected some of {', '.join(ITERATORS)}, found {unknown[0]!r}")
        if len(extents) != len(iterators):
            raise ValueError(f"{name}: extents: expected {len(iterators)}, one for each iterator, found {len(extents)}")
        count = len(operation.operands)
        if count < len(iterators) or (count - len(iterators)) % 2:
            raise ValueError(f"{name}: expected {len(iterators)} operands and pairs of a value and its limit, found {count} operands")
        for which, region in zip(("init", "body"), operation.regions, strict=True):
            blocks = list(region.blocks)
            if len(blocks) != 1 and (which == "body" or blocks):
                raise ValueError(f"{name}: {which}: expected one block, found {len(blocks)}")
            for found in blocks:
                if [str(a.type) for a in found.arguments] != ["index"] * len(iterators):
                    raise ValueError(f"{name}: {which}: expected {len(iterators)} arguments of type index, found {len(found.arguments)}")
        return True


def block_name(operation: ir.Operation) -> str:
    """The name of a block."""
    return ir.StringAttr(operation.attributes["name"]).value


def iterators_of(operation: ir.Operation) -> list[str]:
    """The kinds of the iterators of a block."""
    return [ir.StringAttr(a).value for a in ir.ArrayAttr(operation.attributes["iterators"])]


def extents_of(operation: ir.Operation) -> list[Size]:
    """The sizes of the iteration space of a block."""
    return [read_size_attribute(a) for a in ir.ArrayAttr(operation.attributes["extents"])]


def make_block(
    name: str,
    iterators: Sequence[str],
    extents: Sequence[Size],
    points: Sequence[ir.Value],
    guards: Sequence[tuple[ir.Value, ir.Value]] = (),
) -> ir.Operation:
    """A block at the ambient insertion point, whose body is empty and whose init has no block; see Block for the arguments."""
    operation = ir.Operation.create(
        "tir.block",
        operands=[*points, *(v for pair in guards for v in pair)],
        attributes={
            "name": ir.StringAttr.get(name),
            "iterators": ir.ArrayAttr.get([ir.StringAttr.get(i) for i in iterators]),
            "extents": ir.ArrayAttr.get(list(map(size_attribute, extents))),
        },
        regions=2,
    )
    operation.regions[1].blocks.append(*[ir.IndexType.get()] * len(iterators))
    return operation


register_operation(TirDialect, Block)
on_new_context(lambda context: load_operations(context, TirDialect.DIALECT_NAMESPACE, [Block]))
