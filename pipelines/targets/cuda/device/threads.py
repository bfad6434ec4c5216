"""Operations of the gpu dialect as instructions: numbers of threads and blocks, barriers, shuffles."""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.operations import constant_of, find_operations, keyword_of
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.cuda.architectures import WARP
from relayc.pipelines.targets.cuda.device.errors import DeviceCodeError, place_of
from relayc.pipelines.targets.gpu.positions import AXES, NUMBERS, Position, linear_thread, number_of

Block = tuple[int, int, int] | None

_AXES = "xyz"
_NUMBERS = {f"gpu.{name}" for name in (*AXES, *NUMBERS)}
"""Operations that say where a thread is."""
_ALL_LANES = -1
_LANE_BITS = 8
"""Position of the segment of lanes in the last operand of shfl.sync (PTX ISA, "shfl.sync")."""


def lower_thread_operations(function: ir.Operation, block: Block) -> None:
    """Replaces the operations of the gpu dialect in a function, in place.

    Args:
      block: threads of a block along each axis, if known.

    Raises:
      DeviceCodeError: an operation that kernels do not support.
    """
    found = find_operations(function, lambda op: op.name.startswith("gpu.") and op.name != "gpu.func")
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), function.location:
        position = _position(block)
    for op in found:
        with ir.InsertionPoint(op), op.location:
            if op.name in _NUMBERS:
                op.results[0].replace_all_uses_with(_number(op, position))
            elif op.name == "gpu.barrier":
                emit.create("nvvm.barrier", [], [], {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])})
            elif op.name == "gpu.shuffle":
                _shuffle(op)
            elif op.name == "gpu.return":
                ir.Operation.create("func.return")
            else:
                raise DeviceCodeError(f"{place_of(op)}: expected an operation of threads and blocks that kernels have, found {op.name}")
        op.erase()


def _special(register: str, end: int | None = None) -> ir.Value:
    """A special register of a thread, below `end`, as an index."""
    i32 = ir.IntegerType.get_signless(32)
    attributes = {} if end is None else {"range": ir.Attribute.parse(f"#llvm.constant_range<i32, 0, {end}>")}
    value = emit.create(f"nvvm.read.ptx.sreg.{register}", [i32], [], attributes)
    return emit.create("arith.index_castui", [ir.IndexType.get()], [value])


def _position(block: Block) -> Position:
    """Where a thread is, at the ambient insertion point. What a kernel does not use of it is erased with other dead code."""
    block_id, grid = ([_special(f"{register}.{axis}") for axis in _AXES] for register in ("ctaid", "nctaid"))
    sizes = [_special(f"ntid.{axis}") for axis in _AXES] if block is None else list(map(emit.index_constant, block))
    ends = block or [None] * len(_AXES)
    thread_id = [emit.index_constant(0) if end == 1 else _special(f"tid.{axis}", end) for axis, end in zip(_AXES, ends, strict=True)]
    return Position(grid, sizes, block_id, thread_id, linear_thread(sizes, thread_id))


def _number(op: ir.Operation, at: Position) -> ir.Value:
    """What an operation gives that is a number of a thread: its lane is in a register."""
    return _special("laneid", WARP) if op.name == "gpu.lane_id" else number_of(op, at)


# ---- shuffles ---------------------------------------------------------------------------------------------------------------------


def _shuffle(op: ir.Operation) -> None:
    """shfl.sync of all lanes; a value of another width than 32 bits in pieces of that width."""
    mode = keyword_of(op, "mode")
    value, by, lanes = op.operands
    width = constant_of(lanes)
    if width is None or not 1 <= width <= WARP or width & (width - 1):
        raise DeviceCodeError(f"{place_of(op)}: gpu.shuffle: width: expected a power of two up to {WARP}, found {width or 'a variable'}")
    # "up" clamps at the first lane of the segment, the other modes at the last.
    clamp = (WARP - width) << _LANE_BITS | (0 if mode == "up" else WARP - 1)
    valid: list[ir.Value] = []

    def exchange(piece: ir.Value) -> ir.Value:
        made, is_valid = _exchanged(mode, piece, by, clamp, next(iter(op.results[1].uses), None) is not None)
        valid.append(is_valid)
        return made

    op.results[0].replace_all_uses_with(_by_words(value, exchange, op))
    if valid[0] is not None:
        op.results[1].replace_all_uses_with(valid[0])


def _exchanged(mode: str, value: ir.Value, by: ir.Value, clamp: int, wants_valid: bool) -> tuple[ir.Value, ir.Value | None]:
    i32, i1 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(1)
    kind = {"xor": "bfly"}.get(mode, mode)
    attributes = {"kind": ir.Attribute.parse(f"#nvvm<shfl_kind {kind}>")}
    operands = [emit.number(_ALL_LANES, i32), value, by, emit.number(clamp, i32)]
    if not wants_valid:
        return emit.create("nvvm.shfl.sync", [value.type], operands, attributes), None
    pair = ir.Type.parse(f"!llvm.struct<({value.type}, i1)>")
    made = emit.create("nvvm.shfl.sync", [pair], operands, {**attributes, "return_value_and_is_valid": ir.UnitAttr.get()})
    return emit.member(made, 0, value.type), emit.member(made, 1, i1)


def _by_words(value: ir.Value, exchange: Callable[[ir.Value], ir.Value], op: ir.Operation) -> ir.Value:
    """Applies `exchange` to a value, 32 bits at a time."""
    i32, type_ = ir.IntegerType.get_signless(32), value.type
    if isinstance(type_, (ir.F32Type,)) or type_ == i32:
        return exchange(value)
    if isinstance(type_, ir.VectorType):
        return _of_vector(value, exchange, op)
    width = type_.width if isinstance(type_, (ir.IntegerType, ir.FloatType)) else 0
    bits = ir.IntegerType.get_signless(width) if width else i32
    as_bits = value if type_ == bits else emit.create("arith.bitcast", [bits], [value])
    if width in (8, 16):
        made = emit.create("arith.trunci", [bits], [exchange(emit.create("arith.extui", [i32], [as_bits]))])
    elif width == 64:
        pair = emit.create(
            "vector.bitcast", [emit.vector_of(2, i32)], [emit.create("vector.broadcast", [emit.vector_of(1, bits)], [as_bits])]
        )
        words = _of_vector(pair, exchange, op)
        made = _extracted(emit.create("vector.bitcast", [emit.vector_of(1, bits)], [words]), 0)
    else:
        raise DeviceCodeError(f"{place_of(op)}: gpu.shuffle: expected a value of 8 to 64 bits or a vector of such, found {type_}")
    return made if type_ == bits else emit.create("arith.bitcast", [type_], [made])


def _of_vector(value: ir.Value, exchange: Callable[[ir.Value], ir.Value], op: ir.Operation) -> ir.Value:
    """Applies `exchange` to a vector; elements of 8 and 16 bits are exchanged together if they fill words."""
    type_, i32 = ir.VectorType(value.type), ir.IntegerType.get_signless(32)
    width = type_.element_type.width
    bits = width * type_.shape[0]
    if width < 32 and bits % 32 == 0:
        words = emit.create("vector.bitcast", [emit.vector_of(bits // 32, i32)], [value])
        return emit.create("vector.bitcast", [type_], [_of_vector(words, exchange, op)])
    parts = [_by_words(_extracted(value, i), exchange, op) for i in range(type_.shape[0])]
    return emit.create("vector.from_elements", [type_], parts)


def _extracted(vector: ir.Value, position: int) -> ir.Value:
    attributes = {"static_position": ir.DenseI64ArrayAttr.get([position])}
    return emit.create("vector.extract", [ir.VectorType(vector.type).element_type], [vector], attributes)


def threads_of(block: Sequence[int] | None) -> int | None:
    """Threads of a block, where their number along each axis is known."""
    return None if block is None else block[0] * block[1] * block[2]
