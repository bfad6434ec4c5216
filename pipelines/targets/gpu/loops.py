"""The fallback schedule of GPUs: a te function becomes loops over buffers, and these become launches.

Kernels that blocks cannot say (sorting, scattering, scans, tables of constants) come here. What is done to each function:
  1. it becomes loops over buffers as for a CPU (tir.fallback.bufferize);
  2. each parallel loop becomes a launch with a thread for each iteration; sequential loops likewise, where each iteration reads and writes
     elements of its own (the lines of a sort or of a scan: see `independent`), but a block of threads goes along a line of a scan together
     (see `scans`); what else touches elements becomes launches of one thread;
  3. what is computed of sizes stays on the host, and so do loops and branches around parallel loops;
  4. temporaries become parts of a workspace on the device; a thread has its own of those that only the iterations of its loop use.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import func, ir, memref, scf
from relayc.dialects.operations import constant_of, element_bytes, walk
from relayc.pipelines.context.upstream import run_upstream
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.emission.sizes import function_sizes, symbol_attributes, symbol_names, symbol_positions
from relayc.pipelines.targets.gpu.independent import PURE, VIEWS, Threads, copy_operations, independent_threads, serial_loops, used_by
from relayc.pipelines.targets.gpu.scans import Scan, emit_scan, emit_total, part_of, parts_of, scan_of
from relayc.pipelines.tir.fallback.bufferize import loops_of_kernels
from relayc.pipelines.tir.gpu.launch import WARP, launch
from relayc.pipelines.tir.tree.indices import Reader
from relayc.pipelines.tir.values.buffers import LINE, buffer_type
from relayc.symbolic import Size, ceil_div, guess, proves, symbol

BLOCK = 256
"""Threads of a block."""

_FEW_LINES = 4096
"""Lines side by side of which a thread each is too few threads for a device."""

_HOST = ("arith.", "affine.", "memref.extract_aligned_pointer_as_index", "memref.dim", "memref.alloc", *VIEWS)
"""Operations that touch no elements."""
_TABLE = "memref.get_global"


def launch_loops(module: ir.Module) -> dict[str, Size]:
    """Turns every te function of `module` into launches, in place; gives the bytes of their workspaces, by name.

    `@k(tensors..., symbols...) -> tensors` becomes `@k(memrefs of the inputs..., memrefs of the results..., workspace, symbols...)`,
    without a workspace where it needs none.

    Raises MLIRError if an operation has no bufferization, ValueError for a temporary whose size only the data says.
    """
    loops_of_kernels(module)
    found: dict[str, Size] = {}
    with module.context, module.operation.location:
        for function in [op for op in module.body.operations if isinstance(op, func.FuncOp) and not op.is_external]:
            found[symbol_name(function)] = _Function(function).run()
        run_upstream(module.operation, "canonicalize,cse", verify=True)
    return found


@dataclass
class _Group:
    """Operations of one launch.

    Attributes:
      operations: in order.
      threads: set if the operations are one loop over threads.
    """

    operations: list[ir.Operation] = field(default_factory=list)
    threads: Threads | None = None


@dataclass(frozen=True)
class _Home:
    """The location of the per-thread copies of a temporary.

    Attributes:
      count: threads.
      number: of the thread.
      body: the operations of a thread.
    """

    count: Size
    number: ir.Value
    body: ir.Block


class _Function:
    """The launches of one function."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.block: ir.Block = function.regions[0].blocks[0]
        self.reader = Reader({}, {self.block.arguments[i]: symbol(name) for name, i in symbol_positions(function).items()})
        self.homes: dict[ir.Operation, _Home] = {}
        """Of allocations that threads have copies of."""

    def run(self) -> Size:
        """Creates the launches; returns the bytes of the workspace. Raises ValueError for a temporary of data-dependent size."""
        for op in walk(self.function.operation, memref.DeallocOp):
            op.operation.erase()
        _resolve_dims(self.function)
        with function_sizes(self.function), ir.Location.unknown():
            self._launch_in(self.block)
        return self._place_temporaries()

    # ---- launches

    def _launch_in(self, block: ir.Block) -> None:
        """Creates launches from the operations that access elements in a block of the host."""
        for group in self._groups(block):
            if group.threads is None:
                self._launch_one(group.operations)
            else:
                self._launch_threads(group.operations[0], group.threads)

    def _groups(self, block: ir.Block) -> list[_Group]:
        """The launches of a block of the host, in order; loops and branches of the host that hold launches have got them."""
        groups: list[_Group] = []
        made: dict[ir.Value, _Group] = {}
        current: _Group | None = None
        for op in [view.operation for view in block.operations][:-1]:
            sources = [made[v] for v in used_by(op) if v in made]
            if not sources and (op.name.startswith(_HOST) or op.name == _TABLE):
                continue
            threads = None if sources else independent_threads(op, self.reader)
            if threads is None and not sources and (scan := scan_of(op, self.reader)) is not None and _is_for_blocks(scan, 1):
                threads = Threads((), (op,), ())  # of one line
            if threads is not None:
                groups.append(_Group([op], threads))
                current = None
            elif not sources and self._is_control(op):
                for region in op.regions:
                    for inner in region.blocks:
                        self._launch_in(inner)
                current = None
            else:
                if sources:
                    # Values computed in a launch are known only there, so all later groups join it.
                    first = min(i for i, g in enumerate(groups) if any(g is s for s in sources))
                    current = _Group([o for g in groups[first:] for o in g.operations])
                    groups[first:] = [current]
                    made |= {v: current for o in current.operations for v in o.results}
                elif current is None:
                    current = _Group()
                    groups.append(current)
                current.operations.append(op)
                made |= dict.fromkeys(op.results, current)
        return groups

    def _is_control(self, op: ir.Operation) -> bool:
        """Whether a loop or branch stays on the host: it has no results and contains parallel loops, or it is a host decision."""
        if len(op.results):
            return False
        return op.name == "scf.if" or (op.name == "scf.for" and any(walk(op, scf.ParallelOp)))

    def _launch_one(self, operations: Sequence[ir.Operation]) -> None:
        """A launch of one thread."""
        with ir.InsertionPoint(operations[-1]), launch([1], 1):
            _move_here(operations)

    def _launch_threads(self, op: ir.Operation, threads: Threads) -> None:
        """A launch with a thread for each iteration of loops."""
        total = prod(level.count for level in threads.levels)
        if proves(lambda: total <= 0):
            op.erase()
            return
        scan = scan_of(threads.body[-1], self.reader) if threads.body and not threads.private else None
        if scan is not None and _is_for_blocks(scan, total):
            self._launch_scan(op, threads, scan, total)
            return
        with ir.InsertionPoint(op), launch([ceil_div(total, BLOCK)], BLOCK) as made:
            linear = emit.materialize(Index.of(made.block[0]) * BLOCK + made.thread)
            with emit.if_all([emit.compare("slt", linear, emit.index_constant(total))]):
                self.homes |= {buffer: _Home(total, linear, ir.InsertionPoint.current.block) for buffer in threads.private}
                _place(threads, linear)
                _move_here(threads.body)
        op.erase()

    def _launch_scan(self, op: ir.Operation, threads: Threads, scan: Scan, lines: Size) -> None:
        """A launch with a block of threads for each iteration of loops around a scan, or of few long ones two launches with several."""
        parts = parts_of(scan, lines, BLOCK) if all(o.name.startswith((*PURE, "memref.load")) for o in threads.body[:-1]) else 1
        if parts > 1:
            self._launch_parts(op, threads, scan, lines, parts)
            return
        with ir.InsertionPoint(op), launch([lines], BLOCK, [(BLOCK // WARP, scan.type)]) as made:
            _place(threads, made.block[0].value)
            _move_here(threads.body[:-1])
            emit_scan(scan, made, BLOCK)
        op.erase()

    @staticmethod
    def _launch_parts(op: ir.Operation, threads: Threads, scan: Scan, lines: Size, parts: int) -> None:
        """Launches with so many blocks for each iteration of loops around a scan: one joins the elements of parts, one scans these."""
        total, dynamic = lines * parts, ir.ShapedType.get_dynamic_size()
        with ir.InsertionPoint(op):
            type_ = ir.MemRefType.get([total if isinstance(total, int) else dynamic], scan.type)
            sizes = [] if isinstance(total, int) else [emit.index_constant(total)]
            totals = memref.AllocOp(type_, sizes, []).result
        for scans in (False, True):
            with ir.InsertionPoint(op), launch([total], BLOCK, [(BLOCK // WARP, scan.type)]) as made:
                count = emit.index_constant(parts)
                line, number = (emit.arith(name, made.block[0].value, count) for name in ("divui", "remui"))
                part = part_of(scan, parts, line, number, BLOCK, totals)
                if scans:
                    _place(threads, line)
                    _move_here(threads.body[:-1])
                    emit_scan(scan, made, BLOCK, part)
                else:
                    values = dict(zip((level.variable for level in threads.levels), _points(threads, line), strict=True))
                    copy_operations(threads.body[:-1], values)
                    emit_total(scan, made, BLOCK, part, values)
        op.erase()

    # ---- temporaries

    def _place_temporaries(self) -> Size:
        """Replaces allocations by parts of a workspace; returns its bytes."""
        places: list[tuple[ir.Operation, Size, Size, list[Size]]] = []
        total: Size = 0
        for op in (o.operation for o in walk(self.function.operation, memref.AllocOp)):
            type_ = op.results[0].type
            try:
                given = [self.reader.size(v) for v in op.operands]
            except ValueError:
                where = f"kernel @{symbol_name(self.function)} at {op.location}"
                raise ValueError(f"{where}: expected temporaries whose sizes the shapes say, found {type_}") from None
            dynamic = iter(given)
            elements = prod(next(dynamic) if d == ir.ShapedType.get_dynamic_size() else d for d in type_.shape)
            pitch = ceil_div(elements * element_bytes(type_.element_type), LINE) * LINE
            places.append((op, total, pitch, given))
            total += pitch * (self.homes[op].count if op in self.homes else 1)
        if not places:
            return 0
        workspace = self._add_workspace(total)
        with function_sizes(self.function):
            for op, start, pitch, given in places:
                home = self.homes.get(op)
                first = Index(start) if home is None else Index.of(Var.below(home.count, home.number)) * pitch + start
                with ir.InsertionPoint(op) if home is None else ir.InsertionPoint.at_block_begin(home.body), op.location:
                    operands = [workspace, emit.materialize(first), *map(emit.index_constant, given)]
                    made = emit.create("memref.view", [op.results[0].type], operands)
                op.results[0].replace_all_uses_with(made)
                op.erase()
        return total

    def _add_workspace(self, size: Size) -> ir.Value:
        """A buffer of bytes as the argument before the symbols."""
        function, block, names = self.function, self.block, symbol_names(self.function)
        first = len(block.arguments) - len(names)
        symbols = list(block.arguments)[first:]
        workspace = block.add_argument(buffer_type([size], ir.IntegerType.get_signless(8)), function.location)
        for value in symbols:
            value.replace_all_uses_with(block.add_argument(value.type, value.location))
        for _ in symbols:
            block.erase_argument(first)
        types = [a.type for a in block.arguments]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
        if names:
            function.arg_attrs = [*[ir.DictAttr.get({})] * (len(types) - len(names)), *symbol_attributes(names)]
        return workspace


def _move_here(operations: Sequence[ir.Operation]) -> None:
    """Moves operations to the ambient insertion point; loops in them become sequential."""
    for op in operations:
        ir.InsertionPoint.current.insert(op.detach_from_parent())
        serial_loops(op)


def _place(threads: Threads, number: ir.Value) -> None:
    """Sets the variables of loops to what they are in an iteration, counted over all of them."""
    for level, point in zip(threads.levels, _points(threads, number), strict=True):
        level.variable.replace_all_uses_with(point)


def _points(threads: Threads, number: ir.Value) -> list[ir.Value]:
    """The variables of loops in an iteration, counted over all of them."""
    points: list[ir.Value] = []
    for level in reversed(threads.levels[1:]):
        size = emit.index_constant(level.count)
        points.append(emit.arith("remui", number, size))
        number = emit.arith("divui", number, size)
    numbers = reversed([*points, number] if threads.levels else [])
    return [level.at(point) for level, point in zip(threads.levels, numbers, strict=True)]


def _is_for_blocks(scan: Scan, lines: Size) -> bool:
    """Whether a block of threads is to go along each line of a scan, and not a thread: where lines are long, and lie along memory or are
    few."""
    return guess(scan.level.count) >= WARP and (scan.is_along_memory or guess(lines) < _FEW_LINES)


def _resolve_dims(function: func.FuncOp) -> None:
    """Replaces queries of dimensions of views and temporaries by sizes."""
    for op in (o.operation for o in walk(function.operation, memref.DimOp)):
        source, position = op.operands[0], constant_of(op.operands[1])
        owner = source.owner
        if position is None or isinstance(owner, ir.Block):
            continue
        dynamic = ir.ShapedType.get_dynamic_size()
        number = [d for d in source.type.shape[:position] if d == dynamic]
        given = {"memref.expand_shape": 1, "memref.alloc": 0}.get(owner.operation.name)
        if given is not None and source.type.shape[position] == dynamic:
            op.results[0].replace_all_uses_with(list(owner.operation.operands)[given + len(number)])
            op.erase()
