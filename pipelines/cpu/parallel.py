"""Parallel loops to OpenMP regions, of which each thread runs one part of the iterations.

A region asks how many threads there are, and which one it runs on: its part is a loop like any other. The work-sharing loops of the OpenMP
dialect do the same by calls of the runtime, with another barrier at the end of the region, which is one itself; and LLVM makes eight
copies of their bodies, as the OpenMP dialect has no hints for them.
"""

from collections.abc import Sequence

from relayc.dialects.mlir import func, ir, memref, scf
from relayc.dialects.relay.later import ParallelIf
from relayc.pipelines.cpu.loop_hints import keep_loop
from relayc.pipelines.tir.emit import arith, create, index_constant, yield_values

_CONDITION, _LOOP, _BUFFER = ParallelIf.OPERATION_NAME, scf.ParallelOp.OPERATION_NAME, memref.AllocaOp.OPERATION_NAME
_THREAD, _THREADS = "omp_get_thread_num", "omp_get_num_threads"
_IF_CLAUSE = 2
"""Which operand segment of omp.parallel its clause `if` is."""
_SEGMENTS = 6


def share_loops(module: ir.Module) -> bool:
    """Turns the parallel loops of a module into regions, in place: the threads take parts of the iterations that differ by one at most, but
    for the last ones. Gives whether there were any.

    Where a relay.parallel_if precedes a loop, one thread runs the region unless its condition holds. A loop has no results. A buffer on the
    stack of a loop's body becomes one of each thread: it is allocated at the start of the region.
    """
    found = _operations(module)
    loops = found[_LOOP]
    conditions = _conditions(found[_CONDITION], loops)
    if loops:
        for name in (_THREAD, _THREADS):
            with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown():
                func.FuncOp(name, ir.FunctionType.get([], [ir.IntegerType.get_signless(32)]), visibility="private")
    for number, loop in enumerate(loops):
        with ir.InsertionPoint(loop), loop.location:
            _share(loop, conditions.get(number))
    for buffer in found[_BUFFER]:
        _allocate_per_thread(buffer)
    return bool(loops)


def _operations(module: ir.Module) -> dict[str, list[ir.Operation]]:
    """The operations of a module that matter here, by their names, inner ones first."""
    found: dict[str, list[ir.Operation]] = {_CONDITION: [], _LOOP: [], _BUFFER: []}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in found:
            found[op.name].append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _conditions(markers: Sequence[ir.Operation], loops: Sequence[ir.Operation]) -> dict[int, ir.Value]:
    """The condition of each loop that has one, by its number (an operation is no key: its hash is that of what it holds); the operations
    that say so are erased."""
    found: dict[int, ir.Value] = {}
    for marker in markers:
        operations = [o.operation for o in marker.block.operations]
        following = operations[operations.index(marker) + 1 :]
        loop = next((o for o in following if o.name == _LOOP), None)
        if loop is not None:
            found[loops.index(loop)] = marker.operands[0]
        marker.erase()
    return found


def _share(loop: ir.Operation, condition: ir.Value | None) -> None:
    """Replaces a loop by a region, at the ambient insertion point."""
    rank = len(loop.operands) // 3
    lows, highs, steps = (list(loop.operands)[i * rank : (i + 1) * rank] for i in range(3))
    counts = [_trips(*bounds) for bounds in zip(lows, highs, steps, strict=True)]
    total = counts[0]
    for count in counts[1:]:
        total = arith("muli", total, count)
    segments = ir.DenseI32ArrayAttr.get([int(i == _IF_CLAUSE and condition is not None) for i in range(_SEGMENTS)])
    operands = [] if condition is None else [condition]
    region = ir.Operation.create("omp.parallel", operands=operands, attributes={"operandSegmentSizes": segments}, regions=1)
    with ir.InsertionPoint(region.regions[0].blocks.append()):
        bounds = [*_part(total), index_constant(1)]
        part = ir.Operation.create("scf.for", operands=bounds, regions=1)
        create("omp.terminator", [], [])
    body = loop.regions[0].blocks[0]
    _number(body, counts, lows, steps)
    end = list(body.operations)[-1]
    yield_values([], ir.InsertionPoint(end))
    end.operation.erase()
    body.append_to(part.regions[0])
    keep_loop(part)
    loop.erase()


def _number(body: ir.Block, counts: Sequence[ir.Value], lows: Sequence[ir.Value], steps: Sequence[ir.Value]) -> None:
    """Has the body of a loop compute its indices of the number of the iteration, its only argument then."""
    if len(counts) == 1 and _is(lows[0], 0) and _is(steps[0], 1):
        return
    number = body.add_argument(ir.IndexType.get(), ir.Location.unknown())
    with ir.InsertionPoint.at_block_begin(body):
        iterations = _digits(number, counts)
        indices = [_index(i, low, step) for i, low, step in zip(iterations, lows, steps, strict=True)]
    for old, new in zip(list(body.arguments), indices, strict=False):
        old.replace_all_uses_with(new)
    for _ in indices:
        body.erase_argument(0)


def _part(total: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The first iteration of this thread, and the one after its last."""
    threads, thread = (_asked(name) for name in (_THREADS, _THREAD))
    share = _ceiling(total, threads)
    first = arith("minsi", arith("muli", thread, share), total)
    return first, arith("minsi", arith("addi", first, share), total)


def _asked(name: str) -> ir.Value:
    """What a function of the OpenMP runtime says, as an index."""
    found = func.CallOp([ir.IntegerType.get_signless(32)], name, []).result
    return create("arith.index_cast", [ir.IndexType.get()], [found])


def _trips(low: ir.Value, high: ir.Value, step: ir.Value) -> ir.Value:
    distance = arith("maxsi", high if _is(low, 0) else arith("subi", high, low), index_constant(0))
    return distance if _is(step, 1) else _ceiling(distance, step)


def _ceiling(number: ir.Value, divisor: ir.Value) -> ir.Value:
    """The quotient of a number that is not negative, rounded up."""
    return arith("divui", arith("addi", number, arith("subi", divisor, index_constant(1))), divisor)


def _digits(number: ir.Value, counts: Sequence[ir.Value]) -> list[ir.Value]:
    """The digits of a number whose places count to `counts`, the last one the lowest."""
    found = []
    for count in reversed(counts[1:]):
        found.append(arith("remui", number, count))
        number = arith("divui", number, count)
    return [number, *reversed(found)]


def _index(iteration: ir.Value, low: ir.Value, step: ir.Value) -> ir.Value:
    scaled = iteration if _is(step, 1) else arith("muli", iteration, step)
    return scaled if _is(low, 0) else arith("addi", low, scaled)


def _is(value: ir.Value, number: int) -> bool:
    """Whether a value is the constant of that number."""
    owner = value.owner
    return isinstance(owner, ir.Operation) and owner.name == "arith.constant" and ir.IntegerAttr(owner.attributes["value"]).value == number


def _allocate_per_thread(buffer: ir.Operation) -> None:
    """Moves a stack buffer of the body of a region to its start."""
    region = buffer.parent
    while region is not None and region.name not in ("omp.parallel", "func.func"):
        region = region.parent
    if region is not None and region.name == "omp.parallel":
        buffer.move_before(region.regions[0].blocks[0].operations[0])
