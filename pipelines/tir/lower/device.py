"""A scheduled function as a kernel of a GPU: one launch for each of its loop nests, buffers placed by scope.

"global" buffers are in the workspace, shared by all launches of the kernel; "shared" buffers in the shared memory of a thread block;
"local" buffers in registers of a thread, or in local memory if indices are not constants; "warp" and "warpgroup" buffers in registers of
the threads of a warp, or of a group of four warps.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod

from relayc.dialects.mlir import ir
from relayc.dialects.operations import element_bytes
from relayc.dialects.tir.names import Kind
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.analysis.elements import tell
from relayc.pipelines.tir.editing.intrinsics import Lines
from relayc.pipelines.tir.gpu import bulk_copies as bulk
from relayc.pipelines.tir.gpu.aligned import AlignedEvaluator
from relayc.pipelines.tir.gpu.launch import WARP, launch, shuffle
from relayc.pipelines.tir.gpu.swizzle import BANK_CHUNKS, CHUNK_BYTES, Swizzle
from relayc.pipelines.tir.lower.barriers import Barriers, check_private
from relayc.pipelines.tir.lower.bodies import File, Memory, State
from relayc.pipelines.tir.lower.box_rings import BoxRing
from relayc.pipelines.tir.lower.boxes import TENSOR_COPY, Box, BoxCopy, box_of, buffers_in_lines, lines_of
from relayc.pipelines.tir.lower.fragments import GROUPS, LANES, check_region, placements
from relayc.pipelines.tir.lower.function import Function
from relayc.pipelines.tir.lower.guards import Guards
from relayc.pipelines.tir.lower.launches import LaunchEmission
from relayc.pipelines.tir.lower.pipelines import Pipelined, check_pipelines
from relayc.pipelines.tir.lower.registers import Registers
from relayc.pipelines.tir.lower.shared_memory import Arena
from relayc.pipelines.tir.lower.shared_steps import ThreadGroup, add_shared
from relayc.pipelines.tir.lower.storage import KeptRegion, Use, region_of
from relayc.pipelines.tir.lower.threads import NestLaunch, launches_of
from relayc.pipelines.tir.lower.tree import loops_in
from relayc.pipelines.tir.primitives.storage_align import alignments, swizzled
from relayc.pipelines.tir.tree.buffers import SCOPES
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import variables
from relayc.pipelines.tir.tree.members import Loop, ScheduleError
from relayc.pipelines.tir.tree.steps import Access
from relayc.pipelines.tir.tree.structure import Nest
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.buffers import local_buffer, view
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, proves, substitute, symbols_of

WARPS = ("threadIdx.y", "threadIdx.z")
"""Axes whose iterations are whole warps, if the extent along LANES is a multiple of a warp."""
PRIVATE = (*GROUPS, "local")
"""Scopes of register buffers, which are private to a thread, a warp or a warp group."""


class DeviceFunction(Function):
    """Lowers a function for a GPU (see function.lower_function)."""

    def __init__(self, nest: Nest, target: Target, source: ir.OpView | None) -> None:
        for name, buffer in nest.buffers().items():
            if nest.scope(buffer) not in SCOPES:
                raise ScheduleError(f"buffer {name}: expected a scope out of {', '.join(SCOPES)}, found {nest.scope(buffer)!r}")
        super().__init__(nest, target, source)
        labels = {buffer: name for name, buffer in nest.buffers().items()}
        for found in self.launches:
            check_private(found, nest.scope, labels)
            check_pipelines(found.nodes, found.uses, labels)
            self._check_asynchronous(found)
        self.placements = placements(self.uses, nest.scope, labels)
        for buffer, placement in self.placements.items():
            check_region(labels[buffer], self.regions[buffer], placement)
        self._find_boxes(labels)
        self._check_homes(labels)

    def _find_uses(self) -> list[Use]:
        self.launches = launches_of(self.tree, self.nest.scope)
        return [use for found in self.launches for use in found.uses]

    def _check_homes(self, labels: dict[ir.Value, str]) -> None:
        """Raises ScheduleError for a private or shared buffer that several launches use, and for shared memory beyond the limit of a
        block."""
        for buffer in self.regions:
            scope = self.nest.scope(buffer)
            users = [found for found in self.launches if any(a.buffer == buffer for use in found.uses for a in use.accesses)]
            if scope != "global" and len(users) > 1:
                names = ", ".join(str(use.block) for found in users for use in found.uses if any(a.buffer == buffer for a in use.accesses))
                raise ScheduleError(f"buffer {labels[buffer]}: expected a {scope} buffer in one nest, found it in several: {names}")
        for found in self.launches:
            own, arena = self._shared_in(found)
            total = sum((self._shared_size(b) * element_bytes(b.type.element_type) for b in own if b not in arena.tensors), arena.size)
            if not proves(lambda: total <= self.target.l1_bytes):  # noqa: B023
                names = ", ".join(labels[b] for b in own)
                raise ScheduleError(
                    f"shared buffers {names}: expected at most {self.target.l1_bytes} bytes for a block of threads, found {total}"
                )

    def _check_asynchronous(self, found: NestLaunch) -> None:
        for node in loops_in(found.nodes, Pipelined):
            if node.is_asynchronous and not self.target.has("cp-async"):
                raise ScheduleError(f"loop {node.loop.name}: expected a target with cp-async for asynchronous stages, found {self.target}")

    def _find_boxes(self, labels: Mapping[ir.Value, str]) -> None:
        """Finds the copies of boxes, and the layout of the buffers that they write."""
        nodes = [node for found in self.launches for node in loops_in(found.nodes, BoxCopy)]
        self.lines: dict[ir.Value, Lines] = {}
        self.boxes: dict[BoxCopy, Box] = {}
        for buffer in buffers_in_lines(self.uses, nodes, labels):
            if alignments(self.nest, buffer):
                raise ScheduleError(f"buffer {labels[buffer]}: expected no storage_align, as copies of boxes place its lines, found one")
            self.lines[buffer] = lines_of(labels[buffer], self.regions[buffer].extents, buffer.type.element_type)
        for node in nodes:
            where = f"loop {node.loop.name}: annotation {TENSOR_COPY}"
            if not self.target.has("tma"):
                raise ScheduleError(f"{where}: expected a target with tma, found {self.target}")
            if self.guards[node.use.block.name]:
                raise ScheduleError(f"{where}: expected whole boxes, as pad_einsum makes them, found guards of {node.use.block}")
            sources = [a.buffer for a in node.use.accesses if not a.is_store]
            if any(self.nest.scope(b) != "global" or b in self.regions for b in sources):
                names = ", ".join(labels[b] for b in sources)
                raise ScheduleError(f"{where}: expected a copy of an argument of the kernel, found one of {names}")
            shape = self.nest.shape(sources[0]) if sources else []
            self.boxes[node] = box_of(node, self.regions[node.target], self.lines[node.target], shape)

    def _shared_in(self, found: NestLaunch) -> tuple[list[ir.Value], Arena]:
        """The shared buffers of a launch, and the arena of buffers that share memory."""
        own = [b for b in self._made_in(found) if self.nest.scope(b) == "shared"]
        begin = bulk.EIGHT_BYTES if any(b in self.lines for b in own) else 1
        return own, Arena(found.nodes, {b: self._shared_size(b) * element_bytes(b.type.element_type) for b in own}, begin)

    def _shared_size(self, buffer: ir.Value) -> Size:
        """Elements of a shared buffer, including all buffers of its ring."""
        rings = [node.ahead + 1 for found in self.launches for node in loops_in(found.nodes, Pipelined) if buffer in node.buffers]
        strides, extents = self._strides(buffer), self.regions[buffer].extents
        if buffer in self.lines:
            return self.lines[buffer].size * prod(rings)
        return (strides[0] * extents[0] if extents else 1) * prod(rings)

    def _swizzle(self, buffer: ir.Value) -> Swizzle | None:
        """The permutation of a buffer that storage_swizzle requests. Raises ScheduleError if its lines are not of a power of two bytes."""
        wanted = swizzled(self.nest, buffer)
        if wanted is None:
            return None
        axis, chunk_bytes = wanted
        line, chunk = self._strides(buffer)[axis], chunk_bytes // element_bytes(buffer.type.element_type)
        if not isinstance(line, int) or line < 2 * chunk or line & (line - 1) or buffer in self.lines:
            name = self.nest.buffer_name(buffer)
            raise ScheduleError(
                f"buffer {name}: storage_swizzle: expected lines of a power of two, {2 * chunk} elements or more, found {line}"
            )
        return Swizzle(line, chunk, BANK_CHUNKS * CHUNK_BYTES // chunk_bytes)

    def _strides(self, buffer: ir.Value) -> list[Size]:
        """Strides of a shared buffer, in elements, with storage_align applied; for permuted lines the strides within a block of lines."""
        wanted, found = alignments(self.nest, buffer), list[Size]()
        extents = [*self.regions[buffer].extents]
        if buffer in self.lines:
            extents[-1] = self.lines[buffer].elements
        natural: Size = 1
        for d, extent in reversed(list(enumerate(extents))):
            if d in wanted:
                factor, offset = wanted[d]
                natural += (offset - natural) % factor
            found.append(natural)
            natural *= extent
        return found[::-1]

    def _made_in(self, found: NestLaunch) -> list[ir.Value]:
        """The non-global buffers of a launch, in order."""
        used = {a.buffer for use in found.uses for a in use.accesses}
        return [b for b in self.regions if b in used and self.nest.scope(b) != "global"]

    # ---- placement of buffers

    def _region(self, buffer: ir.Value) -> KeptRegion:
        scope = self.nest.scope(buffer)
        shares: dict[str, Callable[[NestLaunch], Sequence[Loop]]] = {
            "global": lambda found: [*found.threads, *found.blocks],
            "shared": lambda found: found.threads,
            **dict.fromkeys(GROUPS, lambda found: [loop for axis, loop in found.axes.items() if axis == LANES]),
            "local": lambda found: [],
        }
        together = {loop.name for found in self.launches for loop in shares[scope](found)}
        return region_of(buffer, self.nest.shape(buffer), self.uses, together)

    def _in_results(self) -> dict[ir.Value, ir.Value]:
        return {}

    def _workspace(self) -> tuple[dict[ir.Value, Size], Size]:
        offsets: dict[ir.Value, Size] = {}
        total: Size = 0
        for buffer, region in self.regions.items():
            if self.nest.scope(buffer) == "global":
                offsets[buffer] = total
                total += self._pitch(buffer, region)
        return offsets, total

    def _evaluator(self) -> Evaluator:
        return AlignedEvaluator({})

    # ---- launches

    def _emit(self) -> None:
        for buffer, region in self.regions.items():
            if buffer in self.offsets:
                made = view(self.workspace, self.offsets[buffer], region.size, buffer.type.element_type)
                self.storage[buffer] = Memory(made, region.extents, region.lows)
        for found in self.launches:
            if all(loop.extent != 0 for loop in found.blocks):
                self._launch(found)

    def _launch(self, found: NestLaunch) -> None:
        """Emits a launch. A launch with tensor maps that may have no blocks is in a host branch, because an empty tensor has no map."""
        blocks = prod(loop.extent for loop in found.blocks)
        for box in loops_in(found.nodes, BoxCopy):
            for extent in self.nest.shape(self.boxes[box].copied.source):
                if not proves(lambda: extent >= 1) and substitute(blocks, dict.fromkeys(symbols_of(extent), 0)) != 0:  # noqa: B023
                    raise ScheduleError(f"{box.use.block}: expected a tensor that is not empty to copy boxes of, found {extent} elements")
        if not self._boxes_of(found) or proves(lambda: blocks >= 1):
            self._launch_blocks(found)
            return
        some = emit.compare("ne", emit.index_constant(blocks), emit.index_constant(0))
        nest.when(some, self.bodies.evaluator, lambda: self._launch_blocks(found))

    def _boxes_of(self, found: NestLaunch) -> list[Pipelined]:
        """The loops of a launch that have copies of boxes running ahead."""
        return [node for node in loops_in(found.nodes, Pipelined) if node.boxes]

    def _launch_blocks(self, found: NestLaunch) -> None:
        maps = {box: self.boxes[box].tensor_map(self.bodies) for node in self._boxes_of(found) for box in node.boxes}
        shared, arena = self._shared_in(found)
        wanted = {b: (int(self._shared_size(b)), b.type.element_type) for b in shared}
        apart = [b for b in shared if b not in arena.tensors]
        attributions = [*map(wanted.__getitem__, apart), *([(arena.size, ir.IntegerType.get_signless(8))] if arena.size else [])]
        sizes = {axis: loop.extent for axis, loop in found.axes.items()}
        grid, threads = ([sizes.get(f"{what}Idx.{axis}", 1) for axis in "xyz"] for what in ("block", "thread"))
        with self.bodies.evaluator.scope(), launch(grid, [int(n) for n in threads], attributions) as made:
            memories = dict(zip(apart, made.shared, strict=False))
            memories |= {b: arena.view(made.shared[-1], b, *wanted[b]) for b in arena.tensors}
            for buffer, memory in memories.items():
                region = self.regions[buffer]
                lines = self.lines.get(buffer)
                strides, swizzle = self._strides(buffer), self._swizzle(buffer)
                self.storage[buffer] = Memory(memory, region.extents, region.lows, strides, lines=lines, swizzle=swizzle)
            self._make_local(found)
            variables: dict[str, Var] = {}
            for what, given in (("blockIdx", made.block), ("threadIdx", made.threads)):
                variables |= {f"{what}.{axis}": var for axis, var in zip("xyz", given, strict=True)}
            if maps and int(sizes.get(LANES, 1)) % WARP == 0:
                variables |= {axis: _of_warp(variables[axis]) for axis in WARPS if axis in sizes}
            state = State({loop.var: Index.of(variables[axis]) for axis, loop in found.axes.items()})
            written = {a.buffer for use in found.uses for a in use.accesses if a.is_store and self.nest.scope(a.buffer) not in PRIVATE}
            guards = Guards(self.bodies, {use.block.name: self._needed_guards(use) for use in found.uses})
            group = ThreadGroup(found.axes, variables, self.bodies.evaluator)
            private = [b for b in self._made_in(found) if self.nest.scope(b) in PRIVATE]
            rings = {node: self._ring(node, maps, group) for node in self._boxes_of(found)}
            barriers = Barriers(found, written, arena)
            LaunchEmission(self.bodies, guards, self.target, barriers, group, private, rings).emit(found.nodes, state)

    def _ring(self, node: Pipelined, maps: Mapping[BoxCopy, ir.Value], group: ThreadGroup) -> BoxRing:
        """Creates the ring of a loop with copies of boxes, at the beginning of the launch."""
        barriers = add_shared(group.launch, node.ahead + 1, ir.IntegerType.get_signless(64))
        return BoxRing.begin(node, self.boxes, maps, barriers, group.linear(), self.bodies)

    def _make_local(self, found: NestLaunch) -> None:
        for buffer in self._made_in(found):
            region = self.regions[buffer]
            if self.nest.scope(buffer) not in PRIVATE:
                continue
            if buffer in self.placements:
                register = ir.Type.parse(self.placements[buffer].register)
                self.storage[buffer] = File(Registers(register), region.extents, region.lows, region.around)
            elif self._in_registers(buffer):
                self.storage[buffer] = File(Registers(buffer.type.element_type), region.extents, region.lows, region.around)
            elif not isinstance(region.size, int):
                label = self.nest.buffer_name(buffer)
                raise ScheduleError(f"buffer {label}: expected a size that is a number in memory of a thread, found {region.size}")
            else:
                self.storage[buffer] = Memory(local_buffer(region.size, buffer.type.element_type), region.extents, region.lows)

    def _needed_guards(self, use: Use) -> list[Guard]:
        """The guards of a block that are needed: a block that computes only registers, or has room in shared memory, needs none. Its loads
        that may be out of bounds are clipped, so that they need not wait for a branch."""
        guards = self.guards[use.block.name]
        if use.tensor is not None or not all(self._has_room(use, a) for a in use.accesses if a.is_store):
            return guards
        if any(step.name in _DIVISIONS for step in use.block.steps(False) or ()):
            return guards
        steps = set[Var]().union(*(variables(use.points[i]) for i in use.block.reduction))
        needed = [g for g in guards if not variables(g.index).isdisjoint(steps)]
        if not all(self._is_within(use, a) for a in use.accesses):
            loads = [a for a in use.accesses if not a.is_store and not isinstance(self.storage[a.buffer], File)]
            if any(self.nest.scope(a.buffer) != "global" for a in loads):
                return guards
            # One branch skips all steps of a reduction; elements in unrolled loops would have a branch each.
            elements = {loop.var for loop in use.loops if loop.kind == Kind.UNROLLED and loop.extent != 1} - steps
            if all(variables(g.index).isdisjoint(elements) for g in guards) if use.block.is_reduction else use.clipped is None:
                return guards
            (self.bodies.safe if use.block.is_reduction else self.bodies.clipped).add(use.block.name)
        return needed

    def _has_room(self, use: Use, store: Access) -> bool:
        """Whether a store at points that guards exclude changes no element that another point writes."""
        storage, buffer = self.storage[store.buffer], store.buffer
        if isinstance(storage, File):
            return True
        if self.nest.scope(buffer) != "shared" or sum(a.is_store and a.buffer == buffer for u in self.uses for a in u.accesses) > 1:
            return False
        around = self.regions[buffer].around
        known, other = ([loop.var for loop in use.loops if loop.extent != 1 and (loop.name in around) == is_in] for is_in in (True, False))
        return self._is_within(use, store) and tell(use.indices(store), other, known)

    def _is_within(self, use: Use, access: Access) -> bool:
        """Whether all points of a block access elements of the stored region; registers have any."""
        storage = self.storage[access.buffer]
        if isinstance(storage, File):
            return True
        local = [i - low for i, low in zip(use.indices(access), storage.lows, strict=True)]
        return all(i.is_within(0, extent - 1) for i, extent in zip(local, storage.shape, strict=True))


def _of_warp(number: Var) -> Var:
    """Broadcasts a warp-uniform number from lane 0, so that ptxas keeps it in a uniform register."""
    i32 = ir.IntegerType.get_signless(32)
    value = shuffle("idx", emit.create("arith.index_cast", [i32], [number.value]), 0)
    return Var(number.low, number.high, emit.create("arith.index_cast", [ir.IndexType.get()], [value]), name=number.name)


_DIVISIONS = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "arith.ceildivsi")
"""Operations that fail for some operands."""
