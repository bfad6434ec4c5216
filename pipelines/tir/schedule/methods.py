"""The primitives as methods of Schedule, and how they are applied."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.dialects.tir import names
from relayc.pipelines.tir import primitives  # noqa: F401 (registers them)
from relayc.pipelines.tir.primitives.registry import apply
from relayc.pipelines.tir.schedule.references import BlockLike, BlockRV, Factor, LoopLike, LoopRV
from relayc.pipelines.tir.schedule.trace import AppliedPrimitive, Trace
from relayc.pipelines.tir.tree.arguments import Chosen
from relayc.pipelines.tir.tree.layouts import IndexMap, affine_map
from relayc.pipelines.tir.tree.structure import Nest


class Methods:
    """The functions of a module that is being scheduled, and how methods of a schedule apply primitives to one of them."""

    def __init__(self, mod: IRModule, nests: dict[str, Nest]) -> None:
        self._mod = mod
        self._nests = nests
        """Nests of functions as they are now; nothing else may change these functions."""
        self._trace = Trace()
        functions = self._functions()
        self._function = "main" if "main" in functions else next(iter(functions))

    def _functions(self) -> dict[str, ir.OpView]:
        return {symbol_name(op): op for op in self._mod.module.body.operations if names.FORM in op.attributes}

    @property
    def nest(self) -> Nest:
        """The function that is being scheduled."""
        if self._function not in self._nests:
            with self._mod.context:
                self._nests[self._function] = Nest(self._functions()[self._function])
        return self._nests[self._function]

    def _apply(self, primitive: str, **arguments: Any) -> list[str]:
        """Applies a primitive, and records it. Raises ScheduleError, which names the primitive and its arguments."""
        named = {key: _replaced(value, (BlockRV, LoopRV), attrgetter("name")) for key, value in arguments.items()}
        values = {key: _replaced(value, (Chosen,), attrgetter("value")) for key, value in named.items()}
        made = apply(primitive, self.nest, values)
        self._trace.steps.append(AppliedPrimitive(primitive, self._function, named, tuple(made)))
        return made

    def _loops(self, primitive: str, **arguments: Any) -> list[LoopRV]:
        return [LoopRV(name) for name in self._apply(primitive, **arguments)]

    def _blocks(self, primitive: str, **arguments: Any) -> list[BlockRV]:
        return [BlockRV(name) for name in self._apply(primitive, **arguments)]

    def _operand(self, block_or_loop: BlockLike | LoopLike) -> dict[str, str]:
        """A block or a loop as an argument; a text is a loop if there is one of that name."""
        is_loop = isinstance(block_or_loop, LoopRV) or (isinstance(block_or_loop, str) and block_or_loop in self.nest.loops())
        return {"loop" if is_loop else "block": str(block_or_loop)}


def _replaced(value: Any, kinds: tuple[type, ...], replacement: Callable[[Any], Any]) -> Any:
    """Replaces values of some kinds, also in lists."""
    if isinstance(value, (list, tuple)):
        return [_replaced(v, kinds, replacement) for v in value]
    return replacement(value) if isinstance(value, kinds) else value


class LoopMethods(Methods):
    """Loops: extents, order, kinds; reductions along them. Each method raises ScheduleError if it is not legal."""

    # ---- extents and order

    def split(self, loop: LoopLike, factors: Sequence[Factor]) -> list[LoopRV]:
        """Splits a loop into nested loops of these extents, outermost first; one factor may be None and is inferred.

        If the factors do not divide the extent, the blocks inside are guarded.
        """
        return self._loops("split", loop=loop, factors=list(factors))

    def fuse(self, *loops: LoopLike) -> LoopRV:
        """Fuses perfectly nested loops, given outermost first, into one loop A_B_fused over all their iterations.

        Extents may be symbolic. The new loop is serial.
        """
        return self._loops("fuse", loops=list(loops))[0]

    def reorder(self, *loops: LoopLike) -> None:
        """Puts loops of a perfect nest in the given order, outermost first.

        Loops between them that are not named keep their positions. Loops of opaque iterators keep their relative order; a loop that
        determines both the element and the step of a reduction (a fused loop) cannot be reordered.
        """
        self._apply("reorder", loops=list(loops))

    def add_unit_loop(self, block_or_loop: BlockLike | LoopLike) -> LoopRV:
        """Adds a loop u of one iteration around a block or a loop."""
        return self._loops("add_unit_loop", **self._operand(block_or_loop))[0]

    # ---- kinds of loops

    def parallel(self, loop: LoopLike) -> None:
        """Runs the iterations of a loop in parallel, on the threads of the machine.

        No reduction or opaque iterator may run along it, and no block in it may write the same element, of a buffer used outside, in
        several iterations.
        """
        self._apply("parallel", loop=loop)

    def vectorize(self, loop: LoopLike) -> None:
        """Maps the iterations of a loop to vector lanes; its extent must be constant, and vectorized loops must not be nested.

        A reduction along it must be one commutative operation (addf, maximumf, ...). It is reassociated: each lane accumulates separately,
        and the lanes are combined at the end. Float sums differ in the last bits from a serial loop.
        """
        self._apply("vectorize", loop=loop)

    def unroll(self, loop: LoopLike) -> None:
        """Unrolls a loop; its extent must be constant."""
        self._apply("unroll", loop=loop)

    def bind(self, loop: LoopLike, thread_axis: str) -> None:
        """Binds the iterations of a loop to the threads of a GPU along "blockIdx.x", "threadIdx.y", "vthread.z", ...

        Conditions as for `parallel`; a reduction by one commutative operation may run along threadIdx.
        """
        self._apply("bind", loop=loop, thread=thread_axis)

    def annotate(self, block_or_loop: BlockLike | LoopLike, ann_key: str, ann_val: Any) -> None:
        """Sets an annotation of a block or a loop: a number, a text, a truth value, or a list of these; replaces one of the same name.

        "prefetch" of a loop, [buffer, loop, distance, level]: each iteration prefetches a share of the elements of the buffer that the
        named loop, itself or an enclosing one, reads `distance` iterations later, into the cache of the level, 1 to 3.

        "software_pipeline_stage" of a serial loop of a GPU, [0, 0, n], a number for each part of the loop: runs the parts of stage 0,
        copies to shared buffers, n iterations ahead; with "software_pipeline_async_stages", [0], threads wait for them only before they are
        read, but for blocks with "software_pipeline_registers", True, whose values go through registers. "tensor_copy", True, of a loop
        that contains only such a copy: makes it one copy of a box by the tensor memory accelerator.
        """
        self._apply("annotate", **self._operand(block_or_loop), key=ann_key, value=ann_val)

    def unannotate(self, block_or_loop: BlockLike | LoopLike, ann_key: str) -> None:
        """Removes an annotation from a block or a loop. It must exist."""
        self._apply("unannotate", **self._operand(block_or_loop), key=ann_key)

    # ---- reductions

    def decompose_reduction(self, block: BlockLike, loop: LoopLike) -> BlockRV:
        """Makes the init of a reduction a separate block NAME_init, right before a loop around the block, in its own loops.

        All steps must run along this loop and inner ones, each of which determines either elements or steps. The block keeps its name.
        """
        return self._blocks("decompose_reduction", block=block, loop=loop)[0]

    def rfactor(self, loop: LoopLike, factor_axis: int) -> BlockRV:
        """Factors a reduction into a block NAME_rf of partial results, one for each iteration of a loop, and NAME, which combines them.

        NAME_rf replaces the block; the loop indexes its elements, and may be parallel or vectorized. Its buffers BUFFER_rf have the extent
        of the loop as a further axis.

        Args:
          factor_axis: the position of the axis in BUFFER_rf; negative ones count from the end.

        The body must combine each element with a value by one commutative operation, or select between them by a comparison (argmax). Float
        sums are reassociated.
        """
        return self._blocks("rfactor", loop=loop, factor_axis=factor_axis)[0]

    def pad_einsum(self, block: BlockLike, padding: Sequence[int]) -> list[BlockRV]:
        """Pads the extents of a block to multiples of numbers, one for each iterator; returns the blocks that it creates.

        Inputs are copied to BUFFER_pad, padded with zeros, and outputs from BUFFER_pad, by blocks of these names. Only buffers with a
        dimension that is not a multiple are copied.

        Each iterator must have its own loop, as when the schedule begins, and each accessed dimension must be one iterator. A reduction
        whose extent grows must be a sum of products.
        """
        return self._blocks("pad_einsum", block=block, padding=list(padding))


class BlockMethods(Methods):
    """Where blocks are computed, buffers between them, and their layouts. Each method raises ScheduleError if it is not legal."""

    # ---- where blocks are computed

    def compute_at(self, block: BlockLike, loop: LoopLike, preserve_unit_loops: bool = False) -> list[LoopRV]:
        """Computes a block in each iteration of a loop, only the region that its consumers read there; returns its new loops, ax0, ax1, ...

        All consumers must be under the loop, and the block must be the only writer of its buffer, which is not an output of the kernel. A
        reduction moves as a whole. The block is guarded if the region may exceed the extents. For a shared buffer the region is the union
        over the threads to which enclosing loops are bound.

        Args:
          preserve_unit_loops: whether iterators of a single value get a loop as well.

        Raises:
          ScheduleError: the condition that does not hold, and the block.
        """
        return self._loops("compute_at", block=block, loop=loop, preserve_unit_loops=preserve_unit_loops or None)

    def reverse_compute_at(self, block: BlockLike, loop: LoopLike, preserve_unit_loops: bool = False) -> list[LoopRV]:
        """Computes a block in each iteration of a loop, after its producers, for the region that they write there; returns its new loops.

        Its producers must be under the loop or complete before it; an iteration must complete what it writes (no reduction that continues
        in the next one), and the block must read by one iterator for each dimension that the loop splits.

        Raises:
          ScheduleError: the condition that does not hold, and the block.
        """
        return self._loops("reverse_compute_at", block=block, loop=loop, preserve_unit_loops=preserve_unit_loops or None)

    def compute_inline(self, block: BlockLike) -> None:
        """Computes a block inside the blocks that read it, at each load, and removes the block and its buffer.

        It must be complete (no reduction), be the only writer of its buffer, cover all of it, and the buffer must not be an output.
        """
        self._apply("compute_inline", block=block)

    def reverse_compute_inline(self, block: BlockLike) -> None:
        """Computes a block inside the block that produces its input, and removes the block and that buffer.

        It must be complete and the only consumer of its producer, which must be complete as well (after a reduction use
        reverse_compute_at), and read one element of it at each point. Its other inputs must be complete before the producer.
        """
        self._apply("reverse_compute_inline", block=block)

    # ---- iterators

    def fuse_iterators(self, block: BlockLike, groups: Sequence[Sequence[int]]) -> list[LoopRV]:
        """Fuses each group of a block's iterators into one, and replaces its loops accordingly; returns the loops.

        Regions that loops over a fused iterator read are boxes even where regions over several iterators are not: contiguous rows of an
        image become rows of a matrix. Each iterator must have its own loop, as when the schedule begins.

        Args:
          groups: positions of iterators of one kind each, the outermost first; an empty group is an iterator of extent 1.
        """
        return self._loops("fuse_iterators", block=block, groups=[list(group) for group in groups])

    # ---- buffers

    def cache_read(
        self, block: BlockLike, read_buffer_index: int | str, storage_scope: str, consumer_blocks: Sequence[BlockLike] | None = None
    ) -> BlockRV:
        """Copies a buffer that a block reads into a buffer BUFFER_SCOPE, which its readers then read; returns the copying block.

        Args:
          read_buffer_index: the buffer among the block's inputs, by position or name.
          storage_scope: see `set_scope`.
          consumer_blocks: the readers that read the copy; all by default.
        """
        readers = None if consumer_blocks is None else list(consumer_blocks)
        given = {"read_buffer_index": read_buffer_index, "storage_scope": storage_scope, "consumer_blocks": readers}
        return self._blocks("cache_read", block=block, **given)[0]

    def cache_write(self, block: BlockLike, write_buffer_index: int | str, storage_scope: str) -> BlockRV:
        """Makes a block write a buffer BUFFER_SCOPE, which another block copies to the original one; returns the copying block.

        The block must be the only writer of the buffer.
        """
        return self._blocks("cache_write", block=block, write_buffer_index=write_buffer_index, storage_scope=storage_scope)[0]

    def reindex(self, block: BlockLike, buffer: tuple[str, int | str], element: int | None = None) -> BlockRV:
        """Makes a block access a buffer by its iterators, through a copy BUFFER_reindex; returns the copying block.

        Args:
          buffer: ("read", i) or ("write", i): the buffer among the block's inputs or outputs, by position or name.
          element: which of the elements that the block accesses at each point, by position, if they are several.
        """
        return self._blocks("reindex", block=block, buffer=list(buffer), element=element)[0]

    def set_scope(self, block: BlockLike, buffer_index: int | str, storage_scope: str) -> None:
        """Sets the memory scope of a buffer that a block writes: "global", "shared" by a GPU's thread block, "warpgroup", "warp", or
        "local" to a thread.

        It must not be an argument of the kernel. Buffers of scope "warp" are in registers of the threads of a warp, buffers of scope
        "warpgroup" in registers of a group of four warps, in the layout of the tensor intrinsics that use them exclusively.
        """
        self._apply("set_scope", block=block, buffer_index=buffer_index, storage_scope=storage_scope)

    def storage_align(self, block: BlockLike, buffer_index: int | str, axis: int, factor: int, offset: int) -> None:
        """Makes the stride of a dimension of a buffer that a block writes a multiple of `factor` plus `offset`, in elements.

        The buffer must be shared, and the dimension not its last. So lines begin in different banks of shared memory.
        """
        self._apply("storage_align", block=block, buffer_index=buffer_index, axis=axis, factor=factor, offset=offset)

    def storage_swizzle(self, block: BlockLike, buffer_index: int | str, axis: int, chunk_bytes: int = 16) -> None:
        """Permutes the chunks in each line of a shared buffer that a block writes, by the number of the line (swizzle).

        A line is all elements behind dimension `axis`; its bytes are a power of two, two chunks or more. Threads that access the same chunk
        of neighbouring lines then access different banks, without padding: of eight lines for chunks of 16 bytes, four for 32, two for 64.
        """
        self._apply("storage_swizzle", block=block, buffer_index=buffer_index, axis=axis, chunk_bytes=chunk_bytes)

    def transform_layout(
        self, block: BlockLike, buffer: tuple[str, int | str] | str, index_map: IndexMap | ir.AffineMap, pad_value: float | None = None
    ) -> list[BlockRV]:
        """Changes the layout of a buffer, everywhere in the kernel: `lambda i, j: [i // 16, j, i % 16]`.

        A parameter is packed at compile time. Other arguments keep their layout: use cache_read or cache_write to get a buffer of the
        kernel.

        Args:
          buffer: ("read", i) or ("write", i): the buffer among the block's inputs or outputs, by position or name; or a name.
          index_map: maps the indices of an element to its indices in memory; it must be injective.
          pad_value: of the padding where an extent is not divided evenly; a block BUFFER_pad (the result) then writes it; without it the
            padding is undefined.
        """
        with self._mod.context:
            layout = affine_map(index_map)
        given = buffer if isinstance(buffer, str) else list(buffer)
        return self._blocks("transform_layout", block=block, buffer=given, index_map=layout, pad_value=pad_value)

    # ---- tensor intrinsics

    def blockize(self, loop: LoopLike) -> BlockRV:
        """Turns a loop that contains one block, NAME, in loops, into one block, NAME_o. The init of a reduction that continues outside
        moves to the new block. Points must be sums of a part over outer and a part over inner loops."""
        return self._blocks("blockize", loop=loop)[0]

    def tensorize(self, block_or_loop: BlockLike | LoopLike, tensor_intrin: str) -> BlockRV:
        """Lets a tensor intrinsic compute a tile; returns the block of the tile.

        The contents of the loop, or of the block that blockize made, must match the description of the intrinsic, up to names, the position
        in the buffers and the order of commutative operands. Tiles must be full, except in partial dimensions of the intrinsic.

        Args:
          block_or_loop: a loop becomes a block (see blockize); a text is the name of a loop if there is one.
          tensor_intrin: the name under which it was registered (TensorIntrin.register).
        """
        made = self._blocks("tensorize", tensor_intrin=tensor_intrin, **self._operand(block_or_loop))
        return made[0] if made else BlockRV(str(block_or_loop))
