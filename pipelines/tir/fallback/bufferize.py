"""The fallback schedule: a te function becomes loops over buffers, operation by operation.

Kernels that no tiled schedule accepts (sorting, scattering, scans, Fourier transforms, odd windows) are lowered here. Steps per function:
1. memrefs replace tensors at the boundary: inputs first, then one destination per result, which is written in place;
2. one-shot bufferization decides which tensors share a buffer;
3. linalg operations become loops; for an operation at top level with enough work, the outer parallel loops become one `scf.parallel`, and
   the rest stays sequential so that the innermost loop vectorizes. An outermost loop marked as shared by threads (ITERATION_WORK) becomes
   an `scf.parallel`, too;
4. temporaries become stack buffers if they are small, otherwise heap buffers that the function frees.

Inputs and destinations must not overlap: the kernel may write a destination before it has read all of its inputs. An input that it updates
(see te.read.updates) may be the destination.
"""

from collections.abc import Sequence
from math import prod

from relayc.dialects.discardable import ITERATION_WORK
from relayc.dialects.functions import retype, symbol_name
from relayc.dialects.mlir import arith, bufferization, func, ir, linalg, memref, scf, tensor
from relayc.dialects.operations import constant_of, element_bytes, last_operation, walk
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.later import ParallelIf
from relayc.dialects.relay.types import shape_of
from relayc.pipelines.context.upstream import run_upstream
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.sizes import function_sizes, size_value, symbol_attributes, symbol_names
from relayc.pipelines.te.read.updates import updates_of
from relayc.pipelines.tir.values.buffers import buffer_type, flat
from relayc.symbolic import Dim, Size

STACK_BYTES = 16 * 1024
"""Limit of the total size of temporaries on the stack of a function."""
PARALLEL_WORK = 16 * 1024
"""Loop iterations below which a loop nest is not worth a fork and join (about 2 us)."""
PARALLEL_TASKS = 64
"""Outer loops join the parallel loop until it has this many iterations: enough to balance any number of cores in use."""


def bufferize_kernel(module: ir.Module) -> None:
    """Lowers every te function of `module` to loops over memrefs, in place.

    `@k(tensors..., symbols...) -> tensors` becomes `@k(memrefs of the inputs..., memrefs of the results..., symbols...)`: with static
    shapes and identity layouts, or flat if a size is an expression. Raises MLIRError if an operation has no bufferization.
    """
    loops_of_kernels(module)
    with module.context, module.operation.location:
        for function in [op for op in module.body.operations if isinstance(op, func.FuncOp) and not op.is_external]:
            _choose_parallel_loops(function)
            _share_iterations(function)
            _place_temporaries(function)
        run_upstream(module.operation, "canonicalize,cse", verify=True)


def loops_of_kernels(module: ir.Module) -> None:
    """`bufferize_kernel` with all parallel dimensions in one `scf.parallel`, and temporaries at their first use. Targets place them
    differently, so placement is left to the caller."""
    with module.context, module.operation.location:
        sizes: dict[str, list[Size]] = {}
        for function in [op for op in module.body.operations if isinstance(op, func.FuncOp) and not op.is_external]:
            _check_parallel_loops(function)
            with function_sizes(function):
                _drop_empty_tensors(function)
                _decompose_concats(function)
                sizes[symbol_name(function)] = _to_destination_passing(function)
            _drop_encodings(function)
        run_upstream(
            module.operation,
            "canonicalize,cse,eliminate-empty-tensors,empty-tensor-to-alloc-tensor,one-shot-bufferize,canonicalize,cse",
            verify=True,
        )
        for function in [op for op in module.body.operations if isinstance(op, func.FuncOp) and not op.is_external]:
            _resolve_dims(function, sizes[symbol_name(function)])
            _write_in_place(function)
            copies_to_linalg(function.operation)
        run_upstream(module.operation, "canonicalize,convert-linalg-to-parallel-loops,fold-memref-alias-ops,canonicalize,cse", verify=True)
        for function in [op for op in module.body.operations if isinstance(op, func.FuncOp) and not op.is_external]:
            _resolve_dims(function, sizes[symbol_name(function)])


def _check_parallel_loops(function: func.FuncOp) -> None:
    """Checks that no scf.parallel of a function reduces to values: these loops are rebuilt with fewer dimensions. Raises RelayError."""
    for loop in walk(function.operation, scf.ParallelOp):
        if len(loop.operation.results):
            found = ", ".join(str(r.type) for r in loop.operation.results)
            where = f"kernel @{symbol_name(function)} at {loop.operation.location}"
            raise RelayError(f"{where}: expected scf.parallel without results (scf.for and linalg.reduce have results), found {found}")


def _producer(value: ir.Value) -> ir.OpView | None:
    """The operation that defines `value`, None for a block argument."""
    return None if isinstance(value.owner, ir.Block) else value.owner.opview


# ---- boundary ---------------------------------------------------------------------------------------------------------------------


def _to_destination_passing(function: func.FuncOp) -> list[Size]:
    """Replaces tensors by memrefs in the signature; each result goes into an argument after the inputs, before the symbols. Returns the
    number of elements of each argument."""
    block = function.regions[0].blocks[0]
    terminator = last_operation(block)
    names = symbol_names(function)
    arguments = list(block.arguments)
    inputs, symbols = arguments[: len(arguments) - len(names)], arguments[len(arguments) - len(names) :]
    tensors = [*[a.type for a in inputs], *[r.type for r in terminator.operands]]
    types = [buffer_type(_sizes(t), t.element_type) for t in tensors]
    with ir.InsertionPoint.at_block_begin(block), function.location:
        buffers = [block.add_argument(type_, a.location) for type_, a in zip(types, inputs, strict=False)]
        destinations = [block.add_argument(type_, function.location) for type_ in types[len(inputs) :]]
        updated = {i: destinations[result] for result, i in updates_of(function).items()}
        for i, (argument, buffer) in enumerate(zip(inputs, buffers, strict=True)):
            if i in updated:
                _copy_unless_same(buffer, updated[i])
            argument.replace_all_uses_with(_to_tensor(argument.type, updated.get(i, buffer), i in updated))
    with ir.InsertionPoint(terminator), function.location:
        for value, destination in zip(terminator.operands, destinations, strict=True):
            value, destination = _through_reshapes(value, destination)
            bufferization.materialize_in_destination(None, value, destination, restrict=True, writable=True)
        func.ReturnOp([])
    terminator.operation.erase()
    for symbol in symbols:
        symbol.replace_all_uses_with(block.add_argument(symbol.type, symbol.location))
    for _ in arguments:
        block.erase_argument(0)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([*types, *[ir.IndexType.get()] * len(names)], []))
    for name in ("arg_attrs", "res_attrs"):
        if name in function.attributes:
            del function.attributes[name]
    if names:
        function.arg_attrs = [*[ir.DictAttr.get({})] * len(types), *symbol_attributes(names)]
    return [prod(_sizes(t)) for t in tensors]


def _copy_unless_same(source: ir.Value, target: ir.Value) -> None:
    """Copies a buffer unless the target is the same memory."""
    addresses = [memref.extract_aligned_pointer_as_index(buffer) for buffer in (source, target)]
    differ = scf.IfOp(arith.cmpi(arith.CmpIPredicate.ne, *addresses))
    with ir.InsertionPoint(differ.then_block):
        memref.CopyOp(source, target)
        scf.YieldOp([])


def _to_tensor(type_: ir.RankedTensorType, buffer: ir.Value, writable: bool) -> ir.Value:
    """The tensor in the memory of an argument, without an encoding of its size (see `_drop_encodings`)."""
    plain = ir.RankedTensorType.get(type_.shape, type_.element_type)
    return bufferization.to_tensor(plain, _with_shape(buffer, _sizes(type_)), restrict=True, writable=writable)


def _sizes(type_: ir.Type) -> list[Size]:
    return [d for d in shape_of(type_) if d is not None]


def _with_shape(buffer: ir.Value, shape: Sequence[Size]) -> ir.Value:
    """The buffer of an argument, viewed under another shape with as many elements."""
    if buffer.type.has_static_shape:
        numbers = [d for d in shape if isinstance(d, int)]
        return buffer if list(buffer.type.shape) == numbers else reshape_memref(buffer, numbers)
    static, values = _mixed(shape)
    return memref.expand_shape(ir.MemRefType.get(static, buffer.type.element_type), buffer, [list(range(len(shape)))], values, static)


def _through_reshapes(value: ir.Value, destination: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Moves reshapes from the value to the destination, where they cost nothing and let the producer write in place."""
    source = value
    while isinstance(_producer(source), (tensor.ExpandShapeOp, tensor.CollapseShapeOp)):
        source = source.owner.operands[0]
    return source, _with_shape(destination, _sizes(source.type))


def _drop_encodings(function: func.FuncOp) -> None:
    """Removes the encodings that name dynamic sizes from tensor types: operands carry the sizes by now."""

    def plain(type_: ir.Type) -> ir.Type:
        encoded = isinstance(type_, ir.RankedTensorType) and type_.encoding is not None
        return ir.RankedTensorType.get(type_.shape, type_.element_type) if encoded else type_

    retype(function.operation, plain)


def _mixed(sizes: Sequence[Size]) -> tuple[list[int], list[ir.Value]]:
    """Sizes for MLIR: static numbers, with a marker for each dynamic one, and the values of the dynamic ones."""
    static = [d if isinstance(d, int) else ir.ShapedType.get_dynamic_size() for d in sizes]
    return static, [size_value(d) for d in sizes if isinstance(d, Dim)]


def _resolve_dims(function: func.FuncOp, sizes: Sequence[Size]) -> None:
    """Computes sizes of arguments from the symbols, because functions do not pass them.

    Args:
      sizes: elements of each argument.
    """
    with function_sizes(function):
        for op in walk(function.operation, memref.DimOp):
            source = op.operation.operands[0]
            if isinstance(source.owner, ir.Block) and source.owner == function.regions[0].blocks[0]:
                with ir.InsertionPoint(op), op.operation.location:
                    op.operation.results[0].replace_all_uses_with(size_value(sizes[ir.BlockArgument(source).arg_number]))
                op.operation.erase()


def reshape_memref(buffer: ir.Value, shape: list[int]) -> ir.Value:
    """A view of an identity-layout memref under another static shape with as many elements."""
    buffer = flat(buffer)
    if len(shape) == 1:
        return buffer
    result = ir.MemRefType.get(shape, buffer.type.element_type)
    return memref.expand_shape(result, buffer, [list(range(len(shape)))], [], shape) if shape else memref.collapse_shape(result, buffer, [])


def _write_in_place(function: func.FuncOp) -> None:
    """Replaces a temporary that is finally copied to a destination by the destination.

    This is correct because the destination's only use is this copy, at the end of the function, and it overlaps no input.
    """
    block = function.regions[0].blocks[0]
    for copy in [op for op in block.operations if isinstance(op, memref.CopyOp)]:
        source, target = copy.operation.operands
        views, root = [], target
        while isinstance(_producer(root), (memref.ExpandShapeOp, memref.CollapseShapeOp)) and len(list(root.uses)) == 1:
            views.append(root.owner.operation)
            root = root.owner.operands[0]
        if not (isinstance(_producer(source), memref.AllocOp) and source.type == target.type):
            continue
        if not isinstance(root.owner, ir.Block) or len(list(root.uses)) != 1 or len(list(target.uses)) != 1:
            continue
        if target.type.has_static_shape:
            for view in views:
                view.move_before(block.operations[0])
        else:
            for view in reversed(views):
                _move_up(view, block)
            if views and not _stands_before(views[0], source.owner.operation):
                continue
        copy.operation.erase()
        source.replace_all_uses_with(target)


def _move_up(op: ir.Operation, block: ir.Block) -> None:
    """Moves an operation after the last of the operations in `block` that compute its operands."""
    last: ir.Operation | None = None
    for owner in (v.owner for v in op.operands):
        if not isinstance(owner, ir.Block) and (last is None or last.is_before_in_block(owner.operation)):
            last = owner.operation
    if last is None:
        op.move_before(block.operations[0])
    else:
        op.move_after(last)


def _stands_before(a: ir.Operation, b: ir.Operation) -> bool:
    """Whether an operation is before another one of the same block, or before an operation that contains it."""
    while b.block != a.block:
        b = b.parent.operation
    return a.is_before_in_block(b)


def _drop_empty_tensors(function: func.FuncOp) -> None:
    """Removes computations of empty tensors: upstream refuses views of their buffers."""
    for op in list(function.regions[0].blocks[0].operations)[:-1]:
        types = [r.type for r in op.operation.results]
        if types and all(isinstance(t, ir.RankedTensorType) and 0 in t.shape for t in types):
            with ir.InsertionPoint(op), op.operation.location:
                for result in op.operation.results:
                    result.replace_all_uses_with(_empty(result.type))
            op.operation.erase()


def _empty(type_: ir.RankedTensorType) -> ir.Value:
    """An uninitialized tensor of a type."""
    result = tensor.EmptyOp([d if isinstance(d, int) else size_value(d) for d in _sizes(type_)], type_.element_type).result
    result.set_type(type_)  # with the encoding of its sizes
    return result


def _decompose_concats(function: func.FuncOp) -> None:
    """Replaces tensor.concat, which has no bufferization, by insertions into one tensor."""
    for op in walk(function.operation, tensor.ConcatOp):
        axis, type_ = op.attributes["dim"].value, op.operation.results[0].type
        with ir.InsertionPoint(op), op.operation.location:
            result = _empty(type_)
            offset: Size = 0
            for piece in op.operation.operands:
                sizes = _sizes(piece.type)
                (offsets, moving), (extents, dynamic) = map(_mixed, ([offset if i == axis else 0 for i in range(len(sizes))], sizes))
                result = tensor.insert_slice(piece, result, moving, dynamic, [], offsets, extents, [1] * len(sizes))
                offset += sizes[axis]
        op.operation.results[0].replace_all_uses_with(result)
        op.operation.erase()


# ---- loops ------------------------------------------------------------------------------------------------------------------------


def copies_to_linalg(root: ir.Operation) -> None:
    """Replaces memref.copy by linalg.copy, which becomes loops; LLVM turns contiguous ones into memcpy."""
    for op in walk(root, memref.CopyOp):
        source, target = op.operation.operands
        with ir.InsertionPoint(op), op.operation.location:
            copy = linalg.CopyOp([], [source], [target])
            linalg.fill_builtin_region(copy.operation)
        op.operation.erase()


def _constants(values: Sequence[ir.Value]) -> list[int] | None:
    """The values as integers, or None if one is not constant."""
    found = [number for value in values if (number := constant_of(value)) is not None]
    return found if len(found) == len(values) else None


def _trip_counts(loop: scf.ParallelOp) -> list[int] | None:
    """Iterations of each dimension, or None if they are not constant."""
    values = _constants(list(loop.operation.operands))
    if values is None:
        return None
    rank = len(values) // 3
    return [-(-(values[rank + i] - values[i]) // values[2 * rank + i]) for i in range(rank)]


def _work(loop: scf.ParallelOp, counts: list[int]) -> int:
    """Iterations of a loop nest, including inner loops of constant extent."""
    inner = 1
    for op in walk(loop.operation, scf.ForOp):
        bounds = _constants(list(op.operation.operands)[:3])
        if bounds is not None:
            inner *= -(-(bounds[1] - bounds[0]) // bounds[2])  # canonicalization removes loops of fewer than 2
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
        if kept and counts is None:
            _parallel_from(loop, PARALLEL_WORK)
        split_parallel(loop, kept)


def _parallel_from(loop: scf.ParallelOp, work: int) -> None:
    """Selects at run time whether a loop is parallel, by the number of its iterations including inner loops."""
    operands = list(loop.operation.operands)
    rank = len(operands) // 3
    block = loop.operation.parent.regions[0].blocks[0]
    loops = [operands[i::rank] for i in range(rank)]
    loops += [list(op.operation.operands)[:3] for op in walk(loop.operation, scf.ForOp)]
    with ir.InsertionPoint(loop), loop.location:
        total = emit.index_constant(1)
        for bounds in loops:
            if all(_stands_in(v, block) for v in bounds):
                low, high, step = bounds
                total = arith.muli(total, arith.ceildivsi(arith.subi(high, low), step))
        worth = arith.cmpi(arith.CmpIPredicate.sge, total, emit.index_constant(work))
        ir.Operation.create(ParallelIf.OPERATION_NAME, results=[], operands=[worth])


def _share_iterations(function: func.FuncOp) -> None:
    """Parallelizes loops whose iterations are large enough for a thread, if the whole loop is."""
    loops = [loop for loop in walk(function.operation, scf.ForOp) if ITERATION_WORK.on(loop.operation)]
    for loop in [loop for loop in loops if loop.operation.parent.name == "func.func" and not loop.operation.results]:
        low, high, step = loop.operation.operands
        with function_sizes(function), ir.InsertionPoint(loop), loop.location:
            work = size_value(ITERATION_WORK.of(loop.operation))
            worth = arith.cmpi(arith.CmpIPredicate.sge, arith.muli(arith.subi(high, low), work), emit.index_constant(PARALLEL_WORK))
            ir.Operation.create(ParallelIf.OPERATION_NAME, results=[], operands=[worth])
            shared = scf.ParallelOp([], [low], [high], [step], [])
            loop.operation.regions[0].blocks[0].append_to(shared.operation.regions[0])
            block = shared.operation.regions[0].blocks[0]
            terminator = last_operation(block)
            with ir.InsertionPoint(terminator):
                scf.ReduceOp([], 0)
            terminator.operation.erase()
        loop.operation.erase()


def _stands_in(value: ir.Value, block: ir.Block) -> bool:
    """Whether a value is an argument of a block, or computed directly in it."""
    return (value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block) == block


def split_parallel(loop: scf.ParallelOp, kept: int) -> None:
    """Rebuilds an scf.parallel without results as one over its first `kept` dimensions, containing scf.for loops over the others."""
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
    """Moves allocations to the function's entry, or to the start of the enclosing iteration of a parallel loop: on the stack while they
    fit, otherwise freed at the end of it.

    An allocation of computed size moves together with the computation. If the size depends on data it stays in place, and is freed at the
    end of its block.
    """
    for op in walk(function.operation, memref.DeallocOp):
        op.operation.erase()
    stack = STACK_BYTES
    for op in walk(function.operation, memref.AllocOp):
        type_, block = op.operation.results[0].type, _room_of(op.operation)
        alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
        if not type_.has_static_shape:
            _free_at_end(op, block, alignment)
            continue
        size = prod(type_.shape) * element_bytes(type_.element_type)
        with op.operation.location, ir.InsertionPoint.at_block_begin(block):
            if size <= stack:
                stack -= size
                buffer = memref.AllocaOp(type_, [], [], alignment=alignment).result
            else:
                buffer = memref.AllocOp(type_, [], [], alignment=alignment).result
                with ir.InsertionPoint(last_operation(block)):
                    memref.DeallocOp(buffer)
        op.operation.results[0].replace_all_uses_with(buffer)
        op.operation.erase()


def _room_of(op: ir.Operation) -> ir.Block:
    """The block at whose start a temporary is allocated: the function's, or the body of the enclosing parallel loop."""
    while op.parent.name not in ("func.func", "scf.parallel"):
        op = op.parent.operation
    return op.block


def _free_at_end(op: memref.AllocOp, room: ir.Block, alignment: ir.Attribute) -> None:
    """Allocates a temporary of dynamic size, once in `room` if possible, and frees it."""
    operation = op.operation
    sizes, entry = list(operation.operands), _entry_of(operation)
    with operation.location:
        computed = None if operation.block == room else _arithmetic(sizes, entry)
        if computed is not None:
            with ir.InsertionPoint.at_block_begin(room):
                sizes = _cloned(sizes, computed)
                buffer = memref.AllocOp(operation.results[0].type, sizes, [], alignment=alignment).result
            block = room
        else:
            with ir.InsertionPoint(op):
                buffer = memref.AllocOp(operation.results[0].type, sizes, [], alignment=alignment).result
            block = operation.block
        with ir.InsertionPoint(last_operation(block)):
            memref.DeallocOp(buffer)
    operation.results[0].replace_all_uses_with(buffer)
    operation.erase()


def _entry_of(op: ir.Operation) -> ir.Block:
    """The entry block of the function that contains an operation."""
    while op.name != "func.func":
        op = op.parent.operation
    return op.regions[0].blocks[0]


def _arithmetic(values: Sequence[ir.Value], entry: ir.Block) -> list[ir.Operation] | None:
    """The operations that compute sizes from arguments of the function, operands first; None if they are not arithmetic on arguments."""
    found: dict[ir.Value, ir.Operation] = {}
    pending = [(value, False) for value in values]
    while pending:
        value, are_operands_found = pending.pop()
        if isinstance(value.owner, ir.Block):
            if value.owner != entry:
                return None
            continue
        operation = value.owner.operation
        if are_operands_found:
            found.setdefault(value, operation)
        elif value not in found:
            if not operation.name.startswith(("arith.", "affine.")) or len(operation.regions):
                return None
            pending += [(value, True), *((v, False) for v in operation.operands)]
    return list(found.values())


def _cloned(values: Sequence[ir.Value], operations: Sequence[ir.Operation]) -> list[ir.Value]:
    """Clones values and the operations that compute them, at the ambient insertion point."""
    made: dict[ir.Value, ir.Value] = {}
    for operation in operations:
        clone = operation.clone()
        for i, operand in enumerate(operation.operands):
            clone.operands[i] = made.get(operand, operand)
        made[operation.results[0]] = clone.results[0]
    return [made.get(value, value) for value in values]
