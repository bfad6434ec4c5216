"""The check for races: two threads of a block that use the same byte of shared memory, one of them writing, with no barrier between.

Each byte of shared memory has a cell of three words: who wrote it last, and two threads that read it. Who is a number: the epoch of the
block, which every barrier begins anew, that of the warp, which `bar.warp.sync` begins anew, whether the use is atomic, the thread, and the
site. Uses in one epoch are in no order. Two readers are enough: of two threads that have read, a third that writes races with one at least.

Barriers of some threads of a block, and conditions that threads poll for, begin a new epoch for all: so races that such a barrier does not
prevent may not be found, but what is found is a race.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import ir, memref
from relayc.dialects.operations import element_bytes, find_operations
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.gpu.emulate.pointers import address_of, at, to_word, word
from relayc.pipelines.targets.gpu.emulate.thread import ATOMIC, READS, WRITES, WaitingThread

_KINDS = {
    "memref.load": READS,
    "memref.store": WRITES,
    "memref.atomic_rmw": ATOMIC,
    "memref.generic_atomic_rmw": ATOMIC,
    "vector.load": READS,
    "vector.store": WRITES,
    "vector.transfer_read": READS,
    "vector.transfer_write": WRITES,
    "llvm.load": READS,
    "llvm.store": WRITES,
    "llvm.atomicrmw": ATOMIC,
}
_SHARED_POINTER = "!llvm.ptr<3>"


@dataclass(frozen=True)
class Use:
    """An operation that reads or writes shared memory.

    Attributes:
      which: the operand that is the memory, or its address.
    """

    op: ir.Operation
    kind: int
    which: int


def find_uses(kernel: ir.Operation) -> list[Use]:
    """The uses of shared memory in a kernel whose types still say which memory is shared. Transfers that are masked are not among them:
    which bytes they use is not known."""
    found: list[Use] = []
    for op in find_operations(kernel, lambda op: op.name in _KINDS and not _is_masked(op)):
        which = [i for i, operand in enumerate(op.operands) if _is_shared(operand.type)]
        if which:
            found.append(Use(op, _KINDS[op.name], which[-1]))
    return found


def check_uses(uses: Sequence[Use], thread: WaitingThread) -> None:
    """Records every use before it happens, in a kernel whose memory is all of one kind."""
    for use in uses:
        op = use.op
        with ir.InsertionPoint(op), op.location:
            memory = op.operands[use.which]
            if isinstance(memory.type, ir.MemRefType):
                indices = list(op.operands)[use.which + 1 : use.which + 1 + memory.type.rank]
                memory = _address(memory, indices)
            thread.use_shared(op, memory, _bytes(op), use.kind)


def _is_shared(type_: ir.Type) -> bool:
    if isinstance(type_, ir.MemRefType):
        return type_.memory_space is not None and "workgroup" in str(type_.memory_space)
    return str(type_) == _SHARED_POINTER


def _is_masked(op: ir.Operation) -> bool:
    if not op.name.startswith("vector.transfer"):
        return False
    masks = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[-1] if "operandSegmentSizes" in op.attributes else 0
    inside = "in_bounds" in op.attributes and all(ir.BoolAttr(a).value for a in ir.ArrayAttr(op.attributes["in_bounds"]))
    return bool(masks) or not inside


def _bytes(op: ir.Operation) -> int:
    """Bytes transferred by an operation."""
    type_ = op.results[0].type if len(op.results) else op.operands[0].type
    if isinstance(type_, ir.VectorType):
        return prod(type_.shape) * element_bytes(type_.element_type)
    return element_bytes(type_) if hasattr(type_, "width") or isinstance(type_, ir.IndexType) else 8


def _address(memory: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    """The address of an element."""
    _, offset, *rest = memref.ExtractStridedMetadataOp(memory).results
    strides = rest[len(indices) :]
    for index, stride in zip(indices, strides, strict=True):
        offset = emit.arith("addi", offset, emit.arith("muli", index, stride))
    elements = word(element_bytes(memory.type.element_type))
    return at(address_of(memory), emit.arith("muli", to_word(offset), elements))
