"""A scheduled function as a kernel of the tir stage: signature, placement of buffers, and loops."""

from collections.abc import Sequence
from math import prod

from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import ir
from relayc.dialects.operations import element_bytes
from relayc.dialects.tir import names
from relayc.dialects.tir.names import Kind
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import Index, linearize
from relayc.pipelines.emission.sizes import symbol_names
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.te.read.graph import Node as Tensor
from relayc.pipelines.tir.analysis.dependence import check_parallel
from relayc.pipelines.tir.lower.bodies import Bodies, File, Memory, State, Storage
from relayc.pipelines.tir.lower.guards import Guards, open_guards
from relayc.pipelines.tir.lower.loops import LoopEmitter
from relayc.pipelines.tir.lower.nested import tree_of
from relayc.pipelines.tir.lower.registers import Registers
from relayc.pipelines.tir.lower.storage import KeptRegion, Use, region_of, result_in_place
from relayc.pipelines.tir.lower.tree import uses_in
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.tree.members import Loop, ScheduleError
from relayc.pipelines.tir.tree.structure import Nest
from relayc.pipelines.tir.values.buffers import LINE, MOST_LOCAL_BYTES, local_buffer, view
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, ceil_div


def lower_function(nest: Nest, target: Target, source: ir.OpView | None = None) -> Scheduled:
    """Emits a scheduled function as a kernel at the ambient insertion point.

    Args:
      source: the te function that was scheduled, whose parameters may have another layout now.

    Raises ScheduleError if the target does not support the schedule: a buffer of a thread exceeds the stack, a vectorized loop has unknown
    extent.
    """
    if target.is_gpu:
        from relayc.pipelines.tir.lower.device import DeviceFunction

        return DeviceFunction(nest, target, source).run()
    return Function(nest, target, source).run()


class Function:
    """Lowers a function for a CPU: loops over buffers."""

    def __init__(self, nest: Nest, target: Target, source: ir.OpView | None) -> None:
        self.nest, self.target, self.source = nest, target, source
        self.tree = tree_of(nest, target)
        self.uses = self._find_uses()
        self._check_results()
        check_parallel_loops(nest)
        self.guards = open_guards(self.uses)
        used = {a.buffer for use in self.uses for a in use.accesses}
        self.regions = {b: self._region(b) for b in nest.buffers().values() if b in used and not isinstance(b.owner, ir.Block)}
        self.tensors = {a.buffer for use in self.uses if use.tensor is not None for a in use.accesses}
        """Operands of tensor intrinsics, which must be in memory."""
        self.loops = {loop.name: loop for use in self.uses for loop in use.loops}

    def _find_uses(self) -> list[Use]:
        """The blocks of the function, in order."""
        return uses_in(self.tree)

    def _region(self, buffer: ir.Value) -> KeptRegion:
        return region_of(buffer, self.nest.shape(buffer), self.uses)

    def _check_results(self) -> None:
        """Raises ScheduleError for a result that is read before it is written."""
        written = set[ir.Value]()
        outputs = self.nest.outputs
        for access in (a for use in self.uses for a in use.accesses):
            if access.is_store:
                written.add(access.buffer)
            elif access.buffer in outputs and access.buffer not in written:
                name = self.nest.buffer_name(access.buffer)
                raise ScheduleError(f"buffer {name}: expected a result that is written before it is read, found it read first")

    # ---- the function

    def run(self) -> Scheduled:
        arguments = [a for a in self.nest.entry.arguments if not isinstance(a.type, ir.IndexType)]
        tensors = [Tensor("arg", self.nest.shape(a), a.type.element_type, position=i) for i, a in enumerate(arguments)]
        count = len(arguments) - len(self.nest.outputs)
        kernel = Kernel(self.nest.head, self.nest.name, tensors[:count], tensors[count:], symbol_names(self.nest.head))
        self.in_results = self._in_results()
        self.offsets, workspace = self._workspace()
        self.storage: dict[ir.Value, Storage] = {}
        packings = self._packings(tensors[:count])
        with kernel_function(kernel, packings, workspace) as body:
            flats = [*map(body.evaluator.buffers.__getitem__, tensors[:count]), *body.outputs]
            for argument, tensor, buffer in zip(arguments, tensors, flats, strict=True):
                lows = [Index()] * len(tensor.shape)
                self.storage[argument] = Memory(buffer, tensor.shape, lows)
            for buffer, result in self.in_results.items():
                memory = self.storage[result]
                assert isinstance(memory, Memory)
                self.storage[buffer] = Memory(memory.buffer, memory.shape, memory.lows)
            self.bodies = Bodies(self.storage, self._evaluator())
            self.workspace = body.workspace
            self._emit()
        uses_tiles = any(use.tensor is not None and use.tensor.intrin.uses_tiles for use in self.uses)
        return Scheduled(body.function, packings, workspace, uses_tiles)

    def _evaluator(self) -> Evaluator:
        return Evaluator({})

    def _emit(self) -> None:
        """Emits the loops."""
        for buffer, region in self.regions.items():
            if self._in_registers(buffer):
                self.storage[buffer] = File(Registers(buffer.type.element_type), region.extents, region.lows, region.around)
        state = State({})
        self._begin(None, state)
        LoopEmitter(self.bodies, Guards(self.bodies, self.guards), self.target, self._begin).emit(self.tree, state)

    def _packings(self, inputs: Sequence[Tensor]) -> dict[int, Packing]:
        """The packings of parameters that have another layout."""
        found = {}
        for i, (tensor, attributes) in enumerate(zip(inputs, value_attributes(self.nest.head), strict=False)):
            if names.LAYOUT not in attributes:
                continue
            label = ir.StringAttr(attributes[names.BUFFER]).value
            if self.source is None:
                raise ScheduleError(f"buffer {label}: expected a parameter of a kernel in another layout, found one of no kernel")
            if names.PAD in attributes and _number(attributes[names.PAD]) != 0:
                raise ScheduleError(f"buffer {label}: expected a parameter that is padded with 0, found {attributes[names.PAD]}")
            layout = ir.AffineMapAttr(attributes[names.LAYOUT]).value
            try:
                shape = self.source.regions[0].blocks[0].arguments[i].type.shape
                found[i] = Packing.layout(layout, shape, tensor.static_shape)
            except ValueError as error:
                raise ScheduleError(f"buffer {label}: transform_layout of a parameter: {error}") from None
        return found

    def _in_registers(self, buffer: ir.Value) -> bool:
        if not self.regions[buffer].in_registers or self.nest.scope(buffer) != "local" or buffer in self.tensors:
            return False
        return not any(self._in_branch(use) for use in self.uses if any(a.is_store and a.buffer == buffer for a in use.accesses))

    def _in_branch(self, use: Use) -> bool:
        """Whether a guarded block also stores to other buffers: its stores are in a branch, and registers cannot be carried out of it."""
        return bool(self.guards[use.block.name]) and len({a.buffer for a in use.accesses if a.is_store}) > 1

    def _threads(self, region: KeptRegion) -> list[Loop]:
        """The parallel loops around all uses of a buffer, except loops of one iteration: each iteration has its own copy of the buffer."""
        around = [self.loops[name] for name in region.around]
        return [loop for loop in around if loop.kind == Kind.PARALLEL and loop.extent != 1]

    def _fits_stack(self, buffer: ir.Value, region: KeptRegion) -> bool:
        most = MOST_LOCAL_BYTES // 16  # a thread may have several
        return isinstance(region.size, int) and region.size * element_bytes(buffer.type.element_type) <= most

    def _on_stack(self, buffer: ir.Value, region: KeptRegion) -> bool:
        return self._fits_stack(buffer, region) and (self.nest.scope(buffer) == "local" or bool(self._threads(region)))

    def _in_results(self) -> dict[ir.Value, ir.Value]:
        """Results whose memory is used for other workspace buffers until the result is written."""
        results = self.nest.outputs
        found: dict[ir.Value, ir.Value] = {}
        for buffer, region in self.regions.items():
            if not self._in_registers(buffer) and not self._on_stack(buffer, region) and buffer not in self.tensors:
                result = result_in_place(buffer, self.uses, [r for r in results if r not in found.values()])
                if result is not None and self.nest.shape(result) == self.nest.shape(buffer):
                    found[buffer] = result
        return found

    def _workspace(self) -> tuple[dict[ir.Value, Size], Size]:
        """Offsets of buffers in the workspace and its size, in bytes. A buffer inside parallel loops has one copy for each iteration."""
        offsets: dict[ir.Value, Size] = {}
        total: Size = 0
        for buffer, region in self.regions.items():
            if not self._in_registers(buffer) and not self._on_stack(buffer, region) and buffer not in self.in_results:
                offsets[buffer] = total
                total += self._pitch(buffer, region) * prod(loop.extent for loop in self._threads(region))
        return offsets, total

    def _pitch(self, buffer: ir.Value, region: KeptRegion) -> Size:
        """Bytes of a buffer, rounded up to cache lines."""
        return ceil_div(region.size * element_bytes(buffer.type.element_type), LINE) * LINE

    def _begin(self, parallel: str | None, state: State) -> None:
        """Creates the buffers of a thread, at the beginning of the body of a parallel loop or of the function."""
        for buffer, region in self.regions.items():
            threads = self._threads(region)
            if (threads[-1].name if threads else None) != parallel or self._in_registers(buffer) or buffer in self.in_results:
                continue
            if self._on_stack(buffer, region):
                made = local_buffer(int(region.size), buffer.type.element_type)
            else:
                points = [self.bodies.at(Index.of(loop.var), state.point) for loop in threads]
                number = linearize(points, [loop.extent for loop in threads])
                first = number * self._pitch(buffer, region) + self.offsets[buffer]
                made = view(self.workspace, first, region.size, buffer.type.element_type)
            self.storage[buffer] = Memory(made, region.extents, region.lows)


def check_parallel_loops(nest: Nest) -> None:
    """Raises ScheduleError for a parallel loop whose iterations are not independent: written so by hand, or after a block was moved."""
    for loop in nest.loops().values():
        if loop.kind == Kind.PARALLEL and loop.extent != 1:
            try:
                check_parallel(nest, loop)
            except ScheduleError as error:
                raise ScheduleError(f"loop {loop.name}: {error}") from None


def _number(attribute: ir.Attribute) -> float:
    return ir.FloatAttr(attribute).value if isinstance(attribute, ir.FloatAttr) else ir.IntegerAttr(attribute).value
