"""Running sums and products as what a block of threads does together: scans of warps by shuffles, joined in shared memory.

A scan is a sequential loop that carries one value, joined in each iteration with an element that does not depend on it, and that reads and
writes elements of its own. A block goes along it, a part of as many iterations as it has threads after the other; the sums are in another
order than those of the loop. Of few long lines several blocks have a part each: one launch joins the elements of each part, and in another
one a block joins first what is before its part.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.gpu.independent import PURE, Level, copy_operations, has_own_elements, level_of, operations_of, roots_of
from relayc.pipelines.tir.gpu.launch import WARP, Launch, barrier, shuffle
from relayc.pipelines.tir.strategy.tuning import powers_of_two
from relayc.pipelines.tir.tree.indices import Reader
from relayc.symbolic import Size, ceil_div, guess

_NEUTRAL = {"arith.addf": 0, "arith.addi": 0, "arith.mulf": 1, "arith.muli": 1}
"""Operations that combine elements, with their neutral elements."""
_SHUFFLED_BITS = (32, 64)
_PART_STEPS = 4096
"""Iterations of a part of a line at least."""
_BLOCKS = 256
"""That parts of lines are to make: about as many as a device has multiprocessors."""


@dataclass(frozen=True)
class Scan:
    """A loop that is a scan.

    Attributes:
      loop: the scf.for.
      level: its iterations.
      carried, element: what an iteration joins; `joined` is the operation.
    """

    loop: ir.Operation
    level: Level
    carried: ir.Value
    element: ir.Value
    joined: ir.Operation

    @property
    def type(self) -> ir.Type:
        return self.carried.type

    @property
    def is_along_memory(self) -> bool:
        """Whether elements that follow each other lie together."""
        loads = [op for op in operations_of(self.loop) if op.name == "memref.load"]
        return any(op.operands[len(op.operands) - 1] == self.level.variable for op in loads)

    def join(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return emit.create(self.joined.name, [a.type], [a, b], dict(self.joined.attributes.items()))

    @property
    def neutral(self) -> ir.Value:
        return emit.number(_NEUTRAL[self.joined.name], self.type)


def scan_of(loop: ir.Operation, reader: Reader) -> Scan | None:
    """A loop as a scan; None if it is not a scan.

    Args:
      reader: reads sizes.
    """
    if loop.name != "scf.for" or len(loop.results) != 1 or next(iter(loop.results[0].uses), None) is not None:
        return None
    variable, carried = loop.regions[0].blocks[0].arguments
    level = level_of(variable, list(loop.operands)[:3], reader)
    body = operations_of(loop)
    if level is None or not all(op.name.startswith((*PURE, "memref.load", "memref.store")) and not len(op.regions) for op in body):
        return None
    given = loop.regions[0].blocks[0].operations[len(body)].operation.operands[0]
    if isinstance(given.owner, ir.Block) or given.owner.operation.name not in _NEUTRAL or given.owner.operation not in body:
        return None
    joined = given.owner.operation
    if carried not in list(joined.operands) or getattr(carried.type, "width", 0) not in _SHUFFLED_BITS:
        return None
    element = next((v for v in joined.operands if v != carried), None)
    if element is None or any(carried in list(op.operands) for op in _needed(body, element)):
        return None
    loaded, stored = (roots_of(loop, name) for name in ("memref.load", "memref.store"))
    if loaded & stored or not has_own_elements(loop, variable, ()):
        return None
    return Scan(loop, level, carried, element, joined)


def _needed(body: list[ir.Operation], value: ir.Value) -> list[ir.Operation]:
    """The operations of a body that a value is computed by, in order."""
    wanted, found = {value}, list[ir.Operation]()
    for op in reversed(body):
        if any(result in wanted for result in op.results):
            wanted.update(op.operands)
            found.append(op)
    return found[::-1]


@dataclass(frozen=True)
class Part:
    """A part of the iterations of a line, for a block.

    Attributes:
      begin, end: its iterations, `begin` a multiple of the threads of a block.
      number: of the part; first_total: where what the first part of the line joins to is in `totals`.
    """

    begin: ir.Value
    end: ir.Value
    number: ir.Value
    first_total: ir.Value
    totals: ir.Value


def parts_of(scan: Scan, lines: Size, threads: int) -> int:
    """Parts of a line, one or more, at most as many as a block has threads."""
    return max(1, min(_BLOCKS // max(1, guess(lines)), guess(scan.level.count) // _PART_STEPS, threads))


def part_of(scan: Scan, parts: int, line: ir.Value, number: ir.Value, threads: int, totals: ir.Value) -> Part:
    """Part `number` of a line."""
    count = scan.level.count
    length = emit.index_constant(ceil_div(ceil_div(count, parts), threads) * threads)
    begin = emit.arith("muli", number, length)
    first = emit.arith("muli", line, emit.index_constant(parts))
    return Part(begin, emit.smaller(emit.arith("addi", begin, length), count), number, first, totals)


def emit_total(scan: Scan, made: Launch, threads: int, part: Part, values: Mapping[ir.Value, ir.Value]) -> None:
    """Leaves what the elements of a part join to in its totals, at the ambient insertion point.

    Args:
      values: what is used in the place of values around the loop.
    """
    first = Var.below(scan.level.count, step=threads, name="first")
    with emit.for_loop(part.begin, part.end, threads, first, [scan.neutral]) as loop:
        number = emit.materialize(Index.of(made.thread) + first)
        element = _read(scan, number, emit.compare("ult", number, part.end), values)
        emit.yield_values([scan.join(loop.inner_iter_args[0], element)])
    total = _join_block(scan, made, loop.results[0], threads)[1]
    with emit.if_all([emit.compare("eq", made.thread.value, emit.index_constant(0))]):
        emit.create("memref.store", [], [total, part.totals, emit.arith("addi", part.first_total, part.number)])


def _before(scan: Scan, made: Launch, threads: int, part: Part) -> ir.Value:
    """The prefix before a part: each thread loads the total of one part."""
    thread = made.thread.value

    def read() -> list[ir.Value]:
        return [emit.create("memref.load", [scan.type], [part.totals, emit.arith("addi", part.first_total, thread)])]

    (total,) = emit.chosen(emit.compare("ult", thread, part.number), read, [scan.neutral])
    return scan.join(scan.loop.operands[3], _join_block(scan, made, total, threads)[1])


def emit_scan(scan: Scan, made: Launch, threads: int, part: Part | None = None) -> None:
    """The scan by all threads of a block, whose shared memory has an element for each warp, at the ambient insertion point.

    Args:
      part: that is scanned; None for the whole line.
    """
    level, body = scan.level, operations_of(scan.loop)
    begin, end = (emit.index_constant(0), emit.index_constant(level.count)) if part is None else (part.begin, part.end)
    first = Var.below(level.count, step=threads, name="first")
    init = scan.loop.operands[3] if part is None else _before(scan, made, threads, part)
    lane = _lane(made)
    with emit.for_loop(begin, end, threads, first, [init]) as loop:
        (before,) = loop.inner_iter_args
        number = emit.materialize(Index.of(made.thread) + first)
        inside = emit.compare("ult", number, end)
        element = _read(scan, number, inside, {})
        sums, total, behind = _join_block(scan, made, element, threads)
        is_first = emit.compare("eq", lane, emit.index_constant(0))
        lanes = emit.select(is_first, scan.neutral, shuffle("up", sums, 1))
        prefix = scan.join(scan.join(before, behind), lanes)
        with emit.if_all([inside]):
            copy_operations(body, {level.variable: level.at(number), scan.carried: prefix, scan.element: element})
        emit.yield_values([scan.join(before, total)])


def _lane(made: Launch) -> ir.Value:
    return emit.arith("remui", made.thread.value, emit.index_constant(WARP))


def _read(scan: Scan, number: ir.Value, inside: ir.Value, values: Mapping[ir.Value, ir.Value]) -> ir.Value:
    """The element of an iteration, if `inside` holds."""

    def read() -> list[ir.Value]:
        found: dict[ir.Value, ir.Value] = {**values, scan.level.variable: scan.level.at(number)}
        copy_operations(_needed(operations_of(scan.loop), scan.element), found)
        return [found[scan.element]]

    return emit.chosen(inside, read, [scan.neutral])[0]


def _join_block(scan: Scan, made: Launch, value: ir.Value, threads: int) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The combination of a thread's value with the earlier values of its warp, the combination of the block, and of the warps before."""
    (shared,) = made.shared
    lane = _lane(made)
    warp = emit.arith("divui", made.thread.value, emit.index_constant(WARP))
    sums = _scan_warp(scan, value, lane)
    behind, total = _join_warps(scan, sums, shared, (warp, lane), threads // WARP)
    return sums, total, behind


def _scan_warp(scan: Scan, value: ir.Value, lane: ir.Value) -> ir.Value:
    """The inclusive prefix in each lane of a warp."""
    for distance in powers_of_two(1, WARP // 2):
        joined = scan.join(shuffle("up", value, distance), value)
        value = emit.select(emit.compare("uge", lane, emit.index_constant(distance)), joined, value)
    return value


def _join_warps(scan: Scan, sums: ir.Value, shared: ir.Value, place: tuple[ir.Value, ir.Value], warps: int) -> tuple[ir.Value, ir.Value]:
    """The combination of the warps before a thread's warp, and of all warps."""
    warp, lane = place
    with emit.if_all([emit.compare("eq", lane, emit.index_constant(WARP - 1))]):
        emit.create("memref.store", [], [sums, shared, warp])
    barrier()
    behind = total = scan.neutral
    for i in range(warps):
        of_warp = emit.create("memref.load", [scan.type], [shared, emit.index_constant(i)])
        behind = emit.select(emit.compare("ugt", warp, emit.index_constant(i)), scan.join(behind, of_warp), behind)
        total = scan.join(total, of_warp)
    barrier()
    return behind, total
