"""Facts about kernels from their launches: threads of a block, alignment of buffers, and which buffers do not overlap others."""

from dataclasses import dataclass
from math import gcd

from relayc.dialects.functions import signature_of, symbol_name
from relayc.dialects.mlir import func, gpu, ir
from relayc.dialects.operations import constant_of, element_bytes, walk
from relayc.runtime.artifact import ALIGNMENT
from relayc.runtime.cuda.images import ARGUMENT_ALIGNMENT

_SAME_ADDRESS = ("memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.memory_space_cast")


@dataclass
class LaunchFacts:
    """The facts that all launches of a kernel share.

    Attributes:
      block: threads of a block along each axis; None if they are not constant, or differ.
      alignments: for each argument, the alignment of a buffer in bytes; 1 for numbers.
      distinct: for each argument, whether it is a buffer that overlaps no other argument.
    """

    block: tuple[int, int, int] | None
    alignments: list[int]
    distinct: list[bool]


def launch_facts(module: ir.Module) -> dict[str, LaunchFacts]:
    """The facts of all launches in a module, by name of the kernel.

    Tensors of callers are aligned to ARGUMENT_ALIGNMENT bytes; the alignment of views of tensors, arenas and parameters follows from the
    calls in the module.
    """
    functions = {symbol_name(f): f for f in module.body.operations if isinstance(f, func.FuncOp) and len(f.operation.regions[0].blocks)}
    alignments = _Alignments(functions)
    found: dict[str, LaunchFacts] = {}
    for function in functions.values():
        for launch in walk(function.operation, gpu.LaunchFuncOp):
            facts = _facts(launch, alignments)
            name = launch.kernel.value[-1]
            found[name] = _common(found[name], facts) if name in found else facts
    return found


def _facts(launch: gpu.LaunchFuncOp, alignments: "_Alignments") -> LaunchFacts:
    sizes = [constant_of(v) for v in (launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ)]
    arguments = list(launch.kernelOperands)
    roots = [_root(v) for v in arguments if isinstance(v.type, ir.MemRefType)]
    block = (sizes[0], sizes[1], sizes[2]) if None not in sizes else None
    distinct = [isinstance(v.type, ir.MemRefType) and roots.count(_root(v)) == 1 for v in arguments]
    return LaunchFacts(block, [alignments.of(v) for v in arguments], distinct)  # type: ignore[arg-type]


def _common(a: LaunchFacts, b: LaunchFacts) -> LaunchFacts:
    alignments = [gcd(x, y) for x, y in zip(a.alignments, b.alignments, strict=True)]
    distinct = [x and y for x, y in zip(a.distinct, b.distinct, strict=True)]
    return LaunchFacts(a.block if a.block == b.block else None, alignments, distinct)


def _root(value: ir.Value) -> ir.Value:
    """The buffer that a view is of."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name.startswith("memref."):
        viewed = [v for v in value.owner.operands if isinstance(v.type, ir.MemRefType)]
        if not viewed:
            break
        (value,) = viewed
    return value


class _Alignments:
    """Alignments of buffers, in bytes, up to ARGUMENT_ALIGNMENT: of the arguments of functions the least of all calls."""

    def __init__(self, functions: dict[str, func.FuncOp]) -> None:
        self._arguments: dict[str, list[int]] = {name: [ARGUMENT_ALIGNMENT] * len(signature_of(f).inputs) for name, f in functions.items()}
        self._names = {f.operation.regions[0].blocks[0]: name for name, f in functions.items()}
        calls = [call.operation for f in functions.values() for call in walk(f.operation, func.CallOp)]
        before: dict[str, list[int]] = {}
        while before != self._arguments:
            before = {name: [*known] for name, known in self._arguments.items()}
            for call in calls:
                known = self._arguments.get(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
                for i, operand in enumerate(call.operands if known is not None else ()):
                    assert known is not None
                    known[i] = gcd(known[i], self.of(operand))

    def of(self, value: ir.Value) -> int:
        """Of a buffer; 1 for numbers, and where nothing is known."""
        if not isinstance(value.type, ir.MemRefType):
            return 1
        if isinstance(value.owner, ir.Block):
            name = self._names.get(value.owner)
            return 1 if name is None else self._arguments[name][ir.BlockArgument(value).arg_number]
        op = value.owner.operation
        if op.name in _SAME_ADDRESS:
            return self.of(op.operands[0])
        if op.name == "memref.view":
            return gcd(self.of(op.operands[0]), _factor(op.operands[1]))
        if op.name == "memref.alloc":
            return gcd(ALIGNMENT, ARGUMENT_ALIGNMENT)
        if op.name == "memref.reinterpret_cast":
            offset = next(iter(ir.DenseI64ArrayAttr(op.attributes["static_offsets"])))
            known = offset != ir.ShapedType.get_dynamic_stride_or_offset()
            return gcd(self.of(op.operands[0]), offset * element_bytes(value.type.element_type)) if known else 1
        return 1


def _factor(value: ir.Value) -> int:
    """A power of two, at most ARGUMENT_ALIGNMENT, that an index is a multiple of."""
    known = constant_of(value)
    if known is not None:
        return gcd(known, ARGUMENT_ALIGNMENT)
    if isinstance(value.owner, ir.Block):
        return 1
    if value.owner.name == "arith.muli":
        return gcd(_factor(value.owner.operands[0]) * _factor(value.owner.operands[1]), ARGUMENT_ALIGNMENT)
    if value.owner.name in ("arith.addi", "arith.subi", "arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui"):
        return gcd(_factor(value.owner.operands[0]), _factor(value.owner.operands[1]))
    if value.owner.name == "arith.select":
        return gcd(_factor(value.owner.operands[1]), _factor(value.owner.operands[2]))
    return 1
