"""The fallback schedule: a te function becomes loops over buffers as it stands, operation by operation.

Kernels that no tiled schedule takes (sorting, scattering, scans, odd windows) come here. What is done to each function:
  1. memrefs replace tensors at the boundary: inputs first, then one destination per result, which is written in place;
  2. one-shot bufferization decides which tensors share a buffer;
  3. linalg operations become loops; of an operation that stands on its own and has enough work, the outer parallel loops become one
     `scf.parallel`, the rest stays sequential so that the innermost loop vectorises;
  4. temporaries become stack buffers when they are small, heap buffers that the function frees otherwise.

A tensor of symbolic size is a flat buffer at the boundary, of which the function sees a view; the values of the symbols are the last
arguments. Temporaries of symbolic size are heap buffers.

Inputs and destinations must not overlap: the kernel may write a destination before it has read all of its inputs.
"""

from collections.abc import Iterable, Sequence
from math import prod

from relayc.dialects.mlir import arith, bufferization, func, ir, linalg, memref, scf, tensor
from relayc.dialects.relay.types import shape_of
from relayc.pipelines.sizes import function_sizes, size_value, symbol_attributes, symbol_names, tensor_count
from relayc.pipelines.upstream import run_upstream
from relayc.symbolic import Dim, Size

STACK_BYTES = 16 * 1024
"""Temporaries of a function that together need no more than this live on the stack."""
PARALLEL_WORK = 16 * 1024
"""Loop iterations below which a loop nest is not worth a fork and join (about 2 us)."""
PARALLEL_TASKS = 64
"""Outer loops join the parallel loop until it has this many iterations: enough to balance any number of cores in use."""


def bufferize_kernel(module: ir.Module) -> None:
    """Turns every te function of `module` into loops over memrefs, in place.

    `@k(tensors..., symbols...) -> tensors` becomes `@k(memrefs of the inputs..., memrefs of the results..., symbols...)` with identity
    layouts: memrefs of static tensors that are not empty have their shape, others are flat.
    Raises MLIRError where an operation has no bufferization.
    """
    with module.context, module.operation.location:
        for function in [op for op in module.body.operations if isinstance(op, func.FuncOp) and not op.is_external]:
            with function_sizes(function):
                _decompose_concats(function)
                _to_destination_passing(function)
            _without_encodings(function)
        run_upstream(
            module.operation,
            "canonicalize,cse,eliminate-empty-tensors,empty-tensor-to-alloc-tensor,one-shot-bufferize,canonicalize,cse",
            verify=True,
        )
        for function in [op for op in module.body.operations if isinstance(op, func.FuncOp) and not op.is_external]:
            _write_in_place(function)
            copies_to_linalg(function.operation)
        run_upstream(module.operation, "canonicalize,convert-linalg-to-parallel-loops,fold-memref-alias-ops,canonicalize,cse", verify=True)
        for function in [op for op in module.body.operations if isinstance(op, func.FuncOp) and not op.is_external]:
            _choose_parallel_loops(function)
            _place_temporaries(function)
        run_upstream(module.operation, "canonicalize,cse", verify=True)


def walk(root: ir.Operation, kind: type) -> list[ir.OpView]:
    """All operations of class `kind` under `root`, in post-order: a list, so that they may be changed while it is read."""
    found = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, kind):
            found.append(op.opview)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return found


def _producer(value: ir.Value) -> ir.OpView | None:
    """The operation that gives `value`, None for a block argument."""
    return None if isinstance(value.owner, ir.Block) else value.owner.opview


# ---- boundary ---------------------------------------------------------------------------------------------------------------------


def _to_destination_passing(function: func.FuncOp) -> None:
    """Tensors to memrefs in the signature; each result goes into a trailing argument."""
    block = function.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1]
    count, names = tensor_count(function), symbol_names(function)
    inputs, symbols = list(block.arguments)[:count], list(block.arguments)[count:]
    tensors = [*[a.type for a in inputs], *[r.type for r in terminator.operands]]
    types = [*map(_boundary_type, tensors), *[s.type for s in symbols]]
    buffers = [block.add_argument(t, function.location) for t in types]
    with ir.InsertionPoint(block.operations[0]), function.location:
        for argument, buffer in zip(inputs, buffers, strict=False):
            argument.replace_all_uses_with(bufferization.to_tensor(argument.type, _view(buffer, argument.type), restrict=True))
        # Reshapes go from a result to its destination, where they cost nothing and let the producer write in place.
        results = [_before_reshapes(value) for value in terminator.operands]
        # Those of symbolic size stand where their sizes are computed, before what is to write to them.
        destinations = [b if v.type.has_static_shape else _view(b, v.type) for b, v in zip(buffers[count:], results, strict=False)]
    for symbol, argument in zip(symbols, buffers[len(tensors) :], strict=True):
        symbol.replace_all_uses_with(argument)
    for _ in (*inputs, *symbols):
        block.erase_argument(0)
    with ir.InsertionPoint(terminator), function.location:
        for value, destination in zip(results, destinations, strict=True):
            destination = _view(destination, value.type) if value.type.has_static_shape else destination
            bufferization.materialize_in_destination(None, value, destination, restrict=True, writable=True)
        func.ReturnOp([])
    terminator.operation.erase()
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    for name in ("arg_attrs", "res_attrs"):
        if name in function.attributes:
            del function.attributes[name]
    if names:
        function.arg_attrs = [*[ir.DictAttr.get({})] * len(tensors), *symbol_attributes(names)]


def _boundary_type(tensor_type: ir.RankedTensorType) -> ir.MemRefType:
    """Type of the buffer of an argument or a result."""
    if not tensor_type.has_static_shape:
        return ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], tensor_type.element_type)
    # MLIR passes a flat buffer only as a bare pointer where there are no elements.
    return ir.MemRefType.get([0] if 0 in tensor_type.shape else tensor_type.shape, tensor_type.element_type)


def _view(buffer: ir.Value, tensor_type: ir.RankedTensorType) -> ir.Value:
    """A buffer at the boundary in the shape of its tensor, or of one with as many elements."""
    return reshape_memref(buffer, _known_sizes(tensor_type))


def _known_sizes(tensor_type: ir.RankedTensorType) -> list[Size]:
    return [d for d in shape_of(tensor_type) if d is not None]


def _static(sizes: Iterable[Size]) -> list[int]:
    """Sizes as MLIR's static attributes, which mark those that are operands."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return [dynamic if isinstance(d, Dim) else d for d in sizes]


def _without_encodings(function: func.FuncOp) -> None:
    """Takes the expressions out of the types of tensors, which upstream passes do not expect."""

    def plain(value: ir.Value) -> None:
        if isinstance(value.type, ir.RankedTensorType) and value.type.encoding is not None:
            value.set_type(ir.RankedTensorType.get(value.type.shape, value.type.element_type))

    def visit(op: ir.Operation) -> ir.WalkResult:
        for result in op.results:
            plain(result)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    plain(argument)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)


def _before_reshapes(value: ir.Value) -> ir.Value:
    """The tensor that a value is a view of."""
    while isinstance(_producer(value), (tensor.ExpandShapeOp, tensor.CollapseShapeOp)):
        value = value.owner.operands[0]
    return value


def reshape_memref(buffer: ir.Value, shape: Sequence[Size]) -> ir.Value:
    """A view of an identity-layout memref, of static shape or flat, under another shape with as many elements."""
    type_, sizes = buffer.type, list(shape)
    element = type_.element_type
    static = [ir.ShapedType.get_dynamic_size() if isinstance(d, Dim) else d for d in sizes]
    result = ir.MemRefType.get(static, element)
    if type_ == result:
        return buffer
    if type_.rank == 0:
        buffer = memref.expand_shape(ir.MemRefType.get([1], element), buffer, [], [], [1])
    elif type_.rank > 1:
        buffer = memref.collapse_shape(ir.MemRefType.get([prod(type_.shape)], element), buffer, [list(range(type_.rank))])
    if len(sizes) == 1:
        return buffer
    if not sizes:
        return memref.collapse_shape(result, buffer, [])
    return memref.expand_shape(result, buffer, [list(range(len(sizes)))], [size_value(d) for d in sizes if isinstance(d, Dim)], static)


def _write_in_place(function: func.FuncOp) -> None:
    """Where a temporary ends as a copy into a destination, the destination takes its place from the start.

    This is right because a destination has no other use than this copy, at the end of the function, and overlaps no input.
    """
    block = function.regions[0].blocks[0]
    for copy in [op for op in block.operations if isinstance(op, memref.CopyOp)]:
        source, target = copy.operation.operands
        views, root = [], target
        while isinstance(_producer(root), (memref.ExpandShapeOp, memref.CollapseShapeOp)) and len(list(root.uses)) == 1:
            views.append(root.owner)
            root = root.owner.operands[0]
        if not (isinstance(_producer(source), memref.AllocOp) and source.type == target.type):
            continue
        if not isinstance(root.owner, ir.Block) or len(list(root.uses)) != 1 or len(list(target.uses)) != 1:
            continue
        if not target.type.has_static_shape:
            # A view of symbolic size stands behind the computation of its sizes, where it was made.
            if views and not _comes_before(views[0].operation, source.owner.operation):
                continue
            views = []
        for view in views:
            view.move_before(block.operations[0])
        copy.operation.erase()
        source.replace_all_uses_with(target)


def _decompose_concats(function: func.FuncOp) -> None:
    """tensor.concat, which has no bufferization, as insertions into one tensor."""
    for op in walk(function.operation, tensor.ConcatOp):
        axis, type_ = op.attributes["dim"].value, op.operation.results[0].type
        with ir.InsertionPoint(op), op.operation.location:
            operands = [size_value(d) for d in _known_sizes(type_) if isinstance(d, Dim)]
            result = ir.Operation.create("tensor.empty", results=[type_], operands=operands).results[0]
            offset: Size = 0
            for piece in op.operation.operands:
                sizes = _known_sizes(piece.type)
                offsets = [offset if i == axis else 0 for i in range(len(sizes))]
                dynamic = [[size_value(d) for d in given if isinstance(d, Dim)] for given in (offsets, sizes)]
                result = tensor.insert_slice(piece, result, *dynamic, [], _static(offsets), _static(sizes), [1] * len(sizes))
                offset = offset + sizes[axis]
        op.operation.results[0].replace_all_uses_with(result)
        op.operation.erase()


# ---- loops ------------------------------------------------------------------------------------------------------------------------


def copies_to_linalg(root: ir.Operation) -> None:
    """memref.copy as linalg.copy, which becomes loops; LLVM makes a memcpy of those that are contiguous."""
    for op in walk(root, memref.CopyOp):
        source, target = op.operation.operands
        with ir.InsertionPoint(op), op.operation.location:
            copy = linalg.CopyOp([], [source], [target])
            linalg.fill_builtin_region(copy.operation)
        op.operation.erase()


def _constants(values: Iterable[ir.Value]) -> list[int] | None:
    """The values as integers, or None where one of them is not a constant."""
    found = []
    for value in values:
        producer = _producer(value)
        if not isinstance(producer, arith.ConstantOp):
            return None
        found.append(producer.value.value)
    return found


def _trip_counts(loop: scf.ParallelOp) -> list[int] | None:
    """Iterations of each dimension, or None where they are not constant."""
    values = _constants(loop.operation.operands)
    if values is None:
        return None
    rank = len(values) // 3
    return [-(-(values[rank + i] - values[i]) // values[2 * rank + i]) for i in range(rank)]


def _work(loop: scf.ParallelOp, counts: list[int]) -> int:
    """Iterations of a loop nest, those of inner loops included as far as they are constant."""
    inner = 1
    for op in walk(loop.operation, scf.ForOp):
        bounds = _constants(list(op.operation.operands)[:3])
        if bounds is not None:
            inner *= max(1, -(-(bounds[1] - bounds[0]) // bounds[2]))
    return prod(counts) * inner


def _choose_parallel_loops(function: func.FuncOp) -> None:
    """Keeps as few outer dimensions of each scf.parallel as give enough tasks; the others become scf.for."""
    for loop in walk(function.operation, scf.ParallelOp):
        counts = _trip_counts(loop)
        rank = len(loop.operation.operands) // 3
        kept = 0
        if loop.operation.parent.name == "func.func" and (counts is None or _work(loop, counts) >= PARALLEL_WORK):
            kept, tasks = 1, counts[0] if counts else PARALLEL_TASKS
            while counts and kept < rank - 1 and tasks < PARALLEL_TASKS:
                tasks *= counts[kept]
                kept += 1
        if kept < rank:
            _split(loop, kept)


def _split(loop: scf.ParallelOp, kept: int) -> None:
    """Rebuilds an scf.parallel without results as one over its first `kept` dimensions around scf.for loops over the others."""
    operands = list(loop.operation.operands)
    rank = len(operands) // 3
    lower, upper, step = operands[:rank], operands[rank : 2 * rank], operands[2 * rank :]
    with loop.operation.location, ir.InsertionPoint(loop):
        point = ir.InsertionPoint(loop)
        indices: list[ir.Value] = []
        if kept:
            outer = scf.ParallelOp([], lower[:kept], upper[:kept], step[:kept], [])
            body = outer.operation.regions[0].blocks.append(*[ir.IndexType.get()] * kept)
            indices += body.arguments
            with ir.InsertionPoint(body):
                point = ir.InsertionPoint(scf.ReduceOp([], 0))
        for i in range(kept, rank):
            with point:
                inner = scf.ForOp(lower[i], upper[i], step[i])
                with ir.InsertionPoint(inner.body):
                    point = ir.InsertionPoint(scf.YieldOp([]))
            indices.append(inner.induction_variable)
        source = loop.operation.regions[0].blocks[0]
        for old, new in zip(source.arguments, indices, strict=True):
            old.replace_all_uses_with(new)
        for op in list(source.operations)[:-1]:
            op.operation.move_before(point.ref_operation)
    loop.operation.erase()


# ---- temporaries ------------------------------------------------------------------------------------------------------------------


def _place_temporaries(function: func.FuncOp) -> None:
    """Moves allocations to the function's entry: on the stack as long as they fit, else freed before the return."""
    block = function.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1]
    for op in walk(function.operation, memref.DeallocOp):
        op.operation.erase()
    stack = STACK_BYTES
    for op in walk(function.operation, memref.AllocOp):
        type_ = op.operation.results[0].type
        if not type_.has_static_shape:
            _hoist(op, block)
            with op.operation.location, ir.InsertionPoint(op.operation.block.operations[len(op.operation.block.operations) - 1]):
                memref.DeallocOp(op.operation.results[0])
            continue
        size = prod(type_.shape) * element_bytes(type_.element_type)
        with op.operation.location, ir.InsertionPoint.at_block_begin(block):
            alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
            if size <= stack:
                stack -= size
                buffer = memref.AllocaOp(type_, [], [], alignment=alignment).result
            else:
                buffer = memref.AllocOp(type_, [], [], alignment=alignment).result
                with ir.InsertionPoint(terminator):
                    memref.DeallocOp(buffer)
        op.operation.results[0].replace_all_uses_with(buffer)
        op.operation.erase()


def _hoist(op: ir.OpView, block: ir.Block) -> None:
    """Moves an operation behind the last of its operands that are computed in `block`, where they all are there or its arguments."""
    owners = [v.owner for v in op.operation.operands]
    if any((o if isinstance(o, ir.Block) else o.operation.block) != block for o in owners):
        return
    computed = [o.operation for o in owners if not isinstance(o, ir.Block)]
    last = computed[0] if computed else None
    for o in computed[1:]:
        last = o if last is not None and _comes_before(last, o) else last
    if last is None:
        op.operation.move_before(block.operations[0])
    else:
        op.operation.move_after(last)


def _comes_before(a: ir.Operation, b: ir.Operation) -> bool:
    """Whether an operation stands before the one of the same block that another is, or is in."""
    while b.block != a.block:
        b = b.parent.operation
    return a.is_before_in_block(b)


def element_bytes(type_: ir.Type) -> int:
    """Bytes an element takes in memory (index is 8)."""
    return 8 if isinstance(type_, ir.IndexType) else -(-type_.width // 8)
