"""Operations on addresses, at the ambient insertion point: those of memory that has no memref."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir, llvm
from relayc.pipelines.emission import emit

_DYNAMIC = -(1 << 31)
"""The constant in llvm.getelementptr that marks an index given by an operand."""


def pointer_type() -> ir.Type:
    return ir.Type.parse("!llvm.ptr")


def i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def word(value: int) -> ir.Value:
    """A constant of type i64."""
    return emit.number(value, i64())


def at(base: ir.Value, offset: int | ir.Value) -> ir.Value:
    """The address `offset` bytes (an i64, if a value) after `base`."""
    if isinstance(offset, int) and offset == 0:
        return base
    if isinstance(offset, int) and offset >= -_DYNAMIC:
        offset = word(offset)
    constant, operands = (offset, []) if isinstance(offset, int) else (_DYNAMIC, [offset])
    return llvm.GEPOp(base.type, base, operands, [constant], ir.IntegerType.get_signless(8), 0).res


def load(address: ir.Value, type_: ir.Type) -> ir.Value:
    """A value of a type that LLVM has, from memory; addresses need not be aligned to it."""
    return llvm.LoadOp(type_, address, alignment=1).res


def store(value: ir.Value, address: ir.Value) -> None:
    """Writes a value of a type that LLVM has."""
    llvm.StoreOp(value, address, alignment=1)


def load_word(address: ir.Value) -> ir.Value:
    """An i64 at an address that is a multiple of 8."""
    return emit.create("llvm.load", [i64()], [address])


def store_word(value: ir.Value, address: ir.Value) -> None:
    emit.create("llvm.store", [], [value, address])


def to_word(value: ir.Value | int) -> ir.Value:
    """A constant, an index, an integer of at most 64 bits (without sign) or an address as i64."""
    if isinstance(value, int):
        return word(value)
    type_ = value.type
    if isinstance(type_, ir.IndexType):
        return emit.create("arith.index_cast", [i64()], [value])
    if not isinstance(type_, ir.IntegerType):
        return emit.create("llvm.ptrtoint", [i64()], [value])
    return value if type_.width == 64 else emit.create("arith.extui", [i64()], [value])


def to_index(value: ir.Value) -> ir.Value:
    """An integer without sign as an index."""
    return value if isinstance(value.type, ir.IndexType) else emit.create("arith.index_castui", [ir.IndexType.get()], [value])


def address_of(memory: ir.Value) -> ir.Value:
    """The address of the first element of a memref."""
    index = emit.create("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [memory])
    return emit.create("llvm.inttoptr", [pointer_type()], [to_word(index)])


def call(name: str, operands: Sequence[ir.Value], results: Sequence[ir.Type] = ()) -> ir.Value:
    """A call of a function of the module; returns its first result, None if there is no result."""
    return emit.create("func.call", results, operands, {"callee": ir.FlatSymbolRefAttr.get(name)})
