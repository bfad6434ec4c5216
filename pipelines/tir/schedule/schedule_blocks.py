"""The primitives that move and change blocks and buffers, as methods of Schedule."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.tir.schedule.references import BlockLike, BlockRV, LoopLike, LoopRV
from relayc.pipelines.tir.schedule.schedule_base import Methods
from relayc.pipelines.tir.tree.layouts import IndexMap, affine_map


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
