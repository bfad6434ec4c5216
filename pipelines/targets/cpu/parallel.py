"""Parallel loops to OpenMP regions, of which each thread runs one part of the iterations, and then what others have left of theirs.

The iterations are cut into parts, one for each thread, which takes some of its part at a time. A thread that is through with its part takes
from the others': one that starts late, or whose core others use as well, holds nobody up for longer than these few iterations. As every
thread begins with the same part in all kernels, what it has written is in its caches.

The work-sharing loops of the OpenMP dialect take calls of the runtime, with another barrier at the end of the region, which is one itself;
and LLVM makes eight copies of their bodies, as the OpenMP dialect has no hints for them.

Where one thread is enough, the region is called like any function. The runtime would make a team of one first, which takes longer than
small kernels do: it touches dozens of cache lines, and what a program streams through the caches between two kernels displaces them.
LLVM is to leave it a call: where a module has one region alone, a copy of it in place of the call would be compiled as well.
"""

from collections.abc import Sequence

from relayc.dialects.mlir import func, ir, memref, scf
from relayc.dialects.operations import constant_of, find_operations
from relayc.dialects.relay.later import ParallelIf
from relayc.pipelines.emission.emit import arith, compare, create, if_all, index_constant, select, yield_values
from relayc.pipelines.emission.mlir_text import mlir_texts

_CONDITION, _LOOP, _BUFFER = ParallelIf.OPERATION_NAME, scf.ParallelOp.OPERATION_NAME, memref.AllocaOp.OPERATION_NAME
_REGION = "omp.parallel"
_THREAD, _THREADS = "__kmpc_bound_thread_num", "__kmpc_bound_num_threads"
"""The thread's number in its team, and how many there are. The functions of the standard have names that other OpenMP runtimes of a process
define, too, such as GNU's with torch: LLVM's JIT finds these first, and a runtime that made no team says that the thread is alone."""
FORKS = ("__kmpc_fork_call_if", "__kmpc_fork_call")
"""What LLVM calls for a region with a condition, here a function of the module and not that of the OpenMP runtime, and what this calls."""
_MLIR = mlir_texts(__file__)
_FORK_IF = _MLIR["fork_if"].substitute()
_IF_CLAUSE = 2
"""Which operand segment of omp.parallel its clause `if` is."""
_SEGMENTS = 6
_PARTS = 16
"""Into how many parts a loop is cut at most: more threads share them."""
_TURNS = 8
"""In how many turns a thread takes its part."""
_LINE = 64
"""Bytes of a line of the caches: the counters of parts do not share them."""
TAKE = "__relayc_take"
"""The function that gives a thread iterations; it calls no other one."""
_TAKE_TEXT = _MLIR["take"].substitute(take=TAKE, parts=_PARTS, turns=_TURNS, line=_LINE)
"""Takes iterations of a loop for a thread, of the part that is `start` after its own or of one after that. Gives the first of them, the one
after the last (the same where nothing is left) and where it found them."""


def share_loops(module: ir.Module) -> bool:
    """Turns the parallel loops of a module into regions, in place. Gives whether there were any.

    Where a relay.parallel_if precedes a loop, one thread runs the region unless its condition holds. A loop has no results. A buffer on the
    stack of a loop's body becomes one of each thread: it is allocated at the start of the region.
    """
    found = _operations(module)
    loops = found[_LOOP]
    conditions = _conditions(found[_CONDITION], loops)
    if loops:
        with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown():
            for name in (_THREAD, _THREADS):
                type_ = ir.FunctionType.get([ir.Type.parse("!llvm.ptr")], [ir.IntegerType.get_signless(32)])
                func.FuncOp(name, type_, visibility="private")
            module.body.append(ir.Operation.parse(_TAKE_TEXT))
    if conditions:
        for op in ir.Module.parse(_FORK_IF).body.operations:
            op.operation.clone(ir.InsertionPoint(module.body))
    counters = []
    for number, loop in enumerate(loops):
        with ir.InsertionPoint(loop), loop.location:
            counters.append(_share(loop, conditions.get(number)))
    for buffer in found[_BUFFER]:
        _allocate_per_thread(buffer)
    for counter in counters:
        _allocate_at_start(counter)
    return bool(loops)


def keep_turns_apart(module: ir.Module) -> None:
    """Keeps LLVM from a copy of TAKE in each region, which takes time; after the conversion, which forgets such attributes."""
    function = ir.SymbolTable(module.operation)[TAKE]
    function.attributes["no_inline"] = ir.UnitAttr.get()


def _operations(module: ir.Module) -> dict[str, list[ir.Operation]]:
    """The operations of a module that matter here, by their names, inner ones first."""
    found: dict[str, list[ir.Operation]] = {_CONDITION: [], _LOOP: [], _BUFFER: []}
    for op in find_operations(module.operation, lambda op: op.name in found):
        found[op.name].append(op)
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


def _share(loop: ir.Operation, condition: ir.Value | None) -> ir.Operation:
    """Replaces a loop by a region, at the ambient insertion point. Gives the allocation of the counters of its parts."""
    rank = len(loop.operands) // 3
    lows, highs, steps = (list(loop.operands)[i * rank : (i + 1) * rank] for i in range(3))
    counts = [_trips(*bounds) for bounds in zip(lows, highs, steps, strict=True)]
    total = counts[0]
    for count in counts[1:]:
        total = arith("muli", total, count)
    taken = _cleared_counters(condition)
    segments = ir.DenseI32ArrayAttr.get([int(i == _IF_CLAUSE and condition is not None) for i in range(_SEGMENTS)])
    operands = [] if condition is None else [condition]
    region = ir.Operation.create(_REGION, operands=operands, attributes={"operandSegmentSizes": segments}, regions=1)
    body = loop.regions[0].blocks[0]
    with ir.InsertionPoint(region.regions[0].blocks.append()):
        iterations = _iterations(taken, total, condition)
        create("omp.terminator", [], [])
    _number(body, counts, lows, steps)
    end, place = (body.add_argument(ir.IndexType.get(), ir.Location.unknown()) for _ in range(2))
    last = list(body.operations)[-1]
    with ir.InsertionPoint(last):
        yield_values([arith("addi", body.arguments[0], index_constant(1)), end, place])
    last.operation.erase()
    body.append_to(iterations.regions[1])
    loop.erase()
    return taken.owner


def _cleared_counters(condition: ir.Value | None) -> ir.Value:
    """A pointer to counters of parts, which are 0 where the condition holds, if there is one."""
    byte, number = ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(64)
    size = _constant(number, _PARTS * _LINE)
    attributes = {"elem_type": ir.TypeAttr.get(byte), "alignment": ir.IntegerAttr.get(number, _LINE)}
    counters = create("llvm.alloca", [ir.Type.parse("!llvm.ptr")], [size], attributes)
    operands, attributes = [counters, _constant(byte, 0), size], {"isVolatile": ir.BoolAttr.get(False)}
    if condition is None:
        create("llvm.intr.memset", [], operands, attributes)
        return counters
    with if_all([condition]):
        create("llvm.intr.memset", [], operands, attributes)
    return counters


def _constant(type_: ir.Type, number: int) -> ir.Value:
    return create("llvm.mlir.constant", [type_], [], {"value": ir.IntegerAttr.get(type_, number)})


def _iterations(taken: ir.Value, total: ir.Value, condition: ir.Value | None) -> ir.Operation:
    """A loop over iterations that this thread takes, at the ambient insertion point, whose body is to come: it gets the number of an
    iteration, the one after the last of this turn, and where they were found, and yields the next number.

    A loop of turns around one of iterations would be another level for LLVM, which takes a fifth longer then.

    Where there is a condition that does not hold, the thread is alone, and begins with all iterations as its last turn.
    """
    three, zero = [ir.IndexType.get()] * 3, index_constant(0)
    if condition is None:
        threads, thread = (_asked(name) for name in (_THREADS, _THREAD))
        first = [zero, zero, zero]
    else:
        team = scf.IfOp(condition, [total.type] * 2, has_else=True)
        with ir.InsertionPoint(team.then_block):
            yield_values([_asked(name) for name in (_THREADS, _THREAD)])
        with ir.InsertionPoint(team.else_block):
            yield_values([index_constant(1), zero])
        threads, thread = team.results
        first = [zero, select(condition, zero, total), select(condition, zero, index_constant(_PARTS))]
    loop = ir.Operation.create("scf.while", results=three, operands=first, regions=2)
    with ir.InsertionPoint(loop.regions[0].blocks.append(*three)) as point:
        number, end, place = point.block.arguments
        turn = ir.Operation.create("scf.if", results=three, operands=[compare("ult", number, end)], regions=2)
        with ir.InsertionPoint(turn.regions[0].blocks.append()):
            yield_values([number, end, place])
        with ir.InsertionPoint(turn.regions[1].blocks.append()):
            yield_values(list(func.CallOp(three, TAKE, [taken, total, threads, thread, place]).results))
        ir.Operation.create("scf.condition", operands=[compare("ult", *turn.results[:2]), *turn.results])
    return loop


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


def _asked(name: str) -> ir.Value:
    """What a function of the OpenMP runtime says, as an index. It takes a location in the source, which it does not read."""
    location = create("llvm.mlir.zero", [ir.Type.parse("!llvm.ptr")], [])
    found = func.CallOp([ir.IntegerType.get_signless(32)], name, [location]).result
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
    return constant_of(value) == number


def _allocate_per_thread(buffer: ir.Operation) -> None:
    """Moves a stack buffer of the body of a region to its start."""
    region = _owner_of_stack(buffer)
    if region.name == _REGION:
        buffer.move_before(region.regions[0].blocks[0].operations[0])


def _allocate_at_start(counters: ir.Operation) -> None:
    """Moves counters, and the constant that is their size, to the start of the region or the function that they are in: a loop would
    allocate them again and again."""
    start = _owner_of_stack(counters).regions[0].blocks[0].operations[0]
    size = counters.operands[0].owner
    size.move_before(start)
    counters.move_after(size)


def _owner_of_stack(op: ir.Operation) -> ir.Operation:
    """The region or the function on whose stack an operation allocates."""
    owner = op.parent
    while owner.name not in (_REGION, "func.func"):
        owner = owner.parent
    return owner
