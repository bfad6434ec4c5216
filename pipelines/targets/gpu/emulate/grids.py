"""Kernels whose threads wait: a function that runs the grid, with one coroutine for each thread of a block.

The blocks are dealt out to WORKERS tasks, which run in parallel. Each has memory for one block (see memory) and for the frames of its
threads.
"""

from collections.abc import Sequence

from relayc.dialects.discardable import HEAP, SMALL
from relayc.dialects.functions import Names
from relayc.dialects.mlir import func, ir, memref
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Var
from relayc.pipelines.llvm.bare_pointers import UNBOUNDED
from relayc.pipelines.targets.gpu.emulate import memory, scheduler
from relayc.pipelines.targets.gpu.emulate.coroutines import FRAME_ALIGNMENT, make_coroutine
from relayc.pipelines.targets.gpu.emulate.errors import RAISE
from relayc.pipelines.targets.gpu.emulate.instructions import emulate_instructions, find_waits
from relayc.pipelines.targets.gpu.emulate.kernel import EmulatedKernel, local_memory
from relayc.pipelines.targets.gpu.emulate.memory import BlockMemory
from relayc.pipelines.targets.gpu.emulate.pointers import (
    address_of,
    at,
    call,
    i64,
    load_word,
    pointer_type,
    store_word,
    to_index,
    to_word,
    word,
)
from relayc.pipelines.targets.gpu.emulate.races import Use, check_uses
from relayc.pipelines.targets.gpu.emulate.sites import Sites
from relayc.pipelines.targets.gpu.emulate.thread import WaitingThread
from relayc.pipelines.targets.gpu.positions import WARP, Position, block_of, product

WORKERS = 64
"""Tasks of a grid at most: enough for the cores of a machine that tests run on, and few enough for the memory of each."""
_POISON = -1
"""Bytes of shared memory that nobody has written: floats of them are not a number, indices of them are out of bounds."""


class WaitingGrid:
    """The functions of a kernel: of one thread, and of the grid.

    Args:
      name: of the function of the grid.
      uses: of shared memory, where they are checked for races.

    Attributes:
      functions: texts of functions that its instructions call, by name.
    """

    def __init__(self, kernel: EmulatedKernel, name: str, names: Names, sites: Sites, uses: Sequence[Use] | None) -> None:
        threads = kernel.most_threads
        if threads is None:
            raise ValueError(
                f"kernel {kernel.name}: expected blocks of a known number of threads, found a launch that says it when it runs"
            )
        if threads > memory.MOST_THREADS:
            raise ValueError(f"kernel {kernel.name}: expected blocks of at most {memory.MOST_THREADS} threads, found {threads}")
        self.kernel, self.name, self.sites, self.uses = kernel, name, sites, uses
        self.thread_name = names.free(f"{kernel.name}.thread")
        self.layout = BlockMemory(kernel.name, kernel.shared, threads)
        self.functions: dict[str, str] = {}

    def emit(self) -> None:
        """Emits both functions at the insertion point; the kernel is empty after."""
        self._emit_thread()
        self._emit_grid()

    # ---- a thread

    def _emit_thread(self) -> None:
        kernel, index, pointer = self.kernel, ir.IndexType.get(), pointer_type()
        types = [*kernel.types, _bytes_type(), pointer, pointer, *[index] * 13]
        function = func.FuncOp(self.thread_name, (types, []), visibility="private")
        count = len(kernel.types)
        arguments = list(function.add_entry_block().arguments)
        block_memory, numbers = arguments[count], arguments[count + 3 :]
        with ir.InsertionPoint(function.entry_block):
            sizes = kernel.sizes(numbers[:6])
            position = Position(sizes[:3], sizes[3:], numbers[6:9], numbers[9:12], numbers[12])
            shared = [_view(block_memory, offset, type_) for offset, type_ in zip(self.layout.shared, kernel.shared, strict=True)]
            private = [local_memory(type_) for type_ in kernel.private]
            thread = WaitingThread(kernel.name, position, address_of(block_memory), self.layout, self.uses is not None)
            thread.dynamic_memory = _view(block_memory, self.layout.dynamic, _bytes_type())
            kernel.move_in([*arguments[:count], *shared, *private])
            store_word(word(memory.DONE), at(thread.record, memory.WAIT))
            func.ReturnOp([])
        uses = self.uses or ()
        self.sites.number_all(function.operation, [*(use.op for use in uses), *find_waits(function.operation)])
        check_uses(uses, thread)
        emulate_instructions(function.operation, thread)
        thread.finish()
        self.functions = thread.functions
        make_coroutine(function, count + 1, count + 2)

    # ---- the grid

    def _emit_grid(self) -> None:
        kernel = self.kernel
        function, self._sizes = kernel.function_of_grid(self.name, [ir.IntegerType.get_signless(32)])
        SMALL.mark(function)
        *arguments, self._dynamic = function.arguments
        self._operands = arguments[: len(kernel.types)]
        with ir.InsertionPoint(function.entry_block):
            bytes_type = {"elem_type": ir.TypeAttr.get(ir.IntegerType.get_signless(8))}
            self._failures = emit.create("llvm.alloca", [pointer_type()], [word(scheduler.RECORD_BYTES)], bytes_type)
            store_word(word(0), self._failures)
            blocks = product(self._sizes[:3])
            workers = emit.arith("minui", blocks, emit.index_constant(WORKERS))
            worker = Var(0, 0)
            with emit.parallel_loop([worker], extents=[workers]):
                self._emit_worker(worker.value, workers, blocks)
            status = call(RAISE, [self._failures, word(self.sites.strings.offset(kernel.name))], [ir.IntegerType.get_signless(32)])
            func.ReturnOp([status])

    def _emit_worker(self, worker: ir.Value, workers: ir.Value, blocks: ir.Value) -> None:
        operands, sizes, dynamic, failures = self._operands, self._sizes, self._dynamic, self._failures
        grid, block = sizes[:3], sizes[3:]
        threads = emit.index_constant(self.layout.threads)
        raw, base_memory = _aligned(self.layout.size)
        base = address_of(base_memory)
        zero = emit.index_constant(0)
        null = emit.create("llvm.mlir.zero", [pointer_type()], [])
        asked = call(self.thread_name, [*operands, base_memory, null, null, *sizes, *[zero] * 7], [i64()])
        units = emit.arith("ceildivui", asked, word(FRAME_ALIGNMENT))
        frame_bytes = emit.arith("muli", units, word(FRAME_ALIGNMENT))
        frame_memory = _heap(emit.arith("muli", to_index(frame_bytes), threads))
        frames = address_of(frame_memory)
        cells = None
        if self.uses is not None:
            shared = emit.arith("addi", emit.index_constant(self.layout.dynamic), dynamic)
            cells = _heap(emit.arith("muli", shared, emit.index_constant(memory.CELL_BYTES)))
            _fill(address_of(cells), 0, to_word(emit.arith("muli", shared, emit.index_constant(memory.CELL_BYTES))))
            store_word(word(0), at(base, memory.EPOCH))
        number = Var(0, 0)
        with emit.for_loop(worker, blocks, workers, number), emit.if_all([emit.compare("eq", load_word(failures), word(0))]):
            self._begin(base, number.value, cells)
            block_id = block_of(grid, number.value)
            first, thread = Var(0, 0), Var(0, 0)
            with emit.for_loop(0, threads, WARP, first):
                end = emit.arith("minui", emit.arith("addi", first.value, emit.index_constant(WARP)), threads)
                with emit.for_loop(first.value, end, 1, thread):
                    t = to_word(thread.value)
                    frame = at(frames, emit.arith("muli", t, frame_bytes))
                    handle = at(base, emit.arith("addi", emit.arith("muli", t, word(8)), word(memory.HANDLE)))
                    place = [*sizes, *block_id, *block_of(block, thread.value), thread.value]
                    call(self.thread_name, [*operands, base_memory, frame, handle, *place], [i64()])
                call(scheduler.RUN_WARP, [base, to_word(first.value), to_word(end)], [ir.IntegerType.get_signless(1)])
            call(scheduler.RUN, [base, to_word(threads), failures])
        for allocated in (frame_memory, raw, *([] if cells is None else [cells])):
            emit.create("memref.dealloc", [], [allocated], HEAP.entry())

    def _begin(self, base: ir.Value, number: ir.Value, cells: ir.Value | None) -> None:
        """Prepares the memory of a block."""
        threads = self.layout.threads
        epoch = None if cells is None else load_word(at(base, memory.EPOCH))
        shared = emit.arith("addi", word(self.layout.dynamic), to_word(self._dynamic))
        _fill(base, _POISON, shared)
        for start, size in ((memory.WAIT, 8 * threads), (memory.HALF, 8 * threads), (memory.BLOCK, memory.RESERVED - memory.BLOCK)):
            _fill(at(base, start), 0, word(size))
        store_word(to_word(number), at(base, memory.BLOCK_ID))
        if cells is not None and epoch is not None:
            store_word(emit.arith("addi", epoch, word(1)), at(base, memory.EPOCH))
            store_word(to_word(self._failures), at(base, memory.FAILURES))
            store_word(to_word(address_of(cells)), at(base, memory.CELLS))
            store_word(shared, at(base, memory.SHARED_BYTES))
        for region in self.layout.regions.values():
            if region.zero == region.each:
                _fill(at(base, region.offset), 0, word(region.parts * region.each))
            elif region.zero:
                part = Var(0, 0)
                with emit.for_loop(0, region.parts, 1, part):
                    offset = emit.arith("muli", to_word(part.value), word(region.each))
                    _fill(at(at(base, region.offset), offset), 0, word(region.zero))


def _bytes_type() -> ir.Type:
    return ir.MemRefType.get([UNBOUNDED], ir.IntegerType.get_signless(8))


def _view(memory_: ir.Value, offset: int, type_: ir.Type) -> ir.Value:
    return emit.create("memref.view", [type_], [memory_, emit.index_constant(offset)])


def _heap(size: ir.Value) -> ir.Value:
    """Bytes of the heap, at a cache line."""
    type_ = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ir.IntegerType.get_signless(8))
    made = memref.AllocOp(type_, [size], [])
    HEAP.mark(made.operation)
    return made.result


def _aligned(size: int) -> tuple[ir.Value, ir.Value]:
    """The allocation to free later, and a view of its bytes that is aligned to WINDOW."""
    raw = _heap(emit.index_constant(size + memory.WINDOW))
    address = emit.create("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [raw])
    over = emit.arith("remui", address, emit.index_constant(memory.WINDOW))
    offset = emit.arith("subi", emit.index_constant(memory.WINDOW), over)
    return raw, emit.create("memref.view", [_bytes_type()], [raw, offset])


def _fill(address: ir.Value, byte: int, count: ir.Value) -> None:
    value = emit.number(byte, ir.IntegerType.get_signless(8))
    emit.create("llvm.intr.memset", [], [address, value, count], {"isVolatile": ir.BoolAttr.get(False)})
