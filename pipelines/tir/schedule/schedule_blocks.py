"""The primitives that move and change blocks and buffers, as methods of Schedule."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.tir.schedule.references import BlockLike, BlockRV, LoopLike, LoopRV
from relayc.pipelines.tir.schedule.schedule_base import Methods
from relayc.pipelines.tir.tree.layouts import IndexMap


class BlockMethods(Methods):
    """Where blocks are computed, what lies between them, how it lies. Each method raises ScheduleError where it is not legal."""

    # ---- where blocks are computed

    def compute_at(self, block: BlockLike, loop: LoopLike, preserve_unit_loops: bool = False) -> list[LoopRV]:
        """Computes a block in each iteration of a loop, as much as its consumers read there; gives its new loops, ax0, ax1, ...

        All consumers must be under the loop, and the block the only one that writes its buffer, which is no output of the kernel. A
        reduction moves as a whole. Where the region may reach over the extents the block is guarded. Of a shared buffer it is what all
        threads read for which loops around are bound.

        Args:
          preserve_unit_loops: whether iterators of a single value get a loop as well.

        Raises:
          ScheduleError: which of these does not hold, for which block.
        """
        return self._loops("compute_at", block=block, loop=loop, preserve_unit_loops=preserve_unit_loops or None)

    def reverse_compute_at(self, block: BlockLike, loop: LoopLike, preserve_unit_loops: bool = False) -> list[LoopRV]:
        """Computes a block in each iteration of a loop, behind its producers, for what they write there; gives its new loops.

        Its producers must be under the loop or be done before it; an iteration must finish what it writes (no reduction that goes on in
        the next one), and what the block reads must be by one iterator for each dimension that the loop splits.

        Raises:
          ScheduleError: which of these does not hold, for which block.
        """
        return self._loops("reverse_compute_at", block=block, loop=loop, preserve_unit_loops=preserve_unit_loops or None)

    def compute_inline(self, block: BlockLike) -> None:
        """Computes a block inside of those that read it, at each load; block and buffer are gone then.

        It must be complete (no reduction), be the only one that writes its buffer, go over all of it, and the buffer be no output.
        """
        self._apply("compute_inline", block=block)

    def reverse_compute_inline(self, block: BlockLike) -> None:
        """Computes a block inside of the one that makes its input; block and that buffer are gone then.

        It must be complete and the only consumer of its producer, which must be complete as well (behind a reduction reverse_compute_at
        serves), and read one element of it at each point. Its other inputs must be done before the producer.
        """
        self._apply("reverse_compute_inline", block=block)

    # ---- iterators

    def fuse_iterators(self, block: BlockLike, groups: Sequence[Sequence[int]]) -> list[LoopRV]:
        """Makes one iterator of each group of those that a block has, and gives it loops for these; gives the loops.

        Regions of buffers that loops over such an iterator read are boxes where they were none over several: rows of an image that
        follow each other in memory become rows of a matrix. Each iterator must have a loop of its own, as when the schedule begins.

        Args:
          groups: positions of iterators of one kind each, the outermost first; an empty one is an iterator of one value.
        """
        return self._loops("fuse_iterators", block=block, groups=[list(group) for group in groups])

    # ---- buffers

    def cache_read(
        self, block: BlockLike, read_buffer_index: int | str, storage_scope: str, consumer_blocks: Sequence[BlockLike] | None = None
    ) -> BlockRV:
        """Copies a buffer that a block reads into one called BUFFER_SCOPE, which its readers read; gives the block that copies.

        Args:
          read_buffer_index: which of the buffers that the block reads, by position or name.
          storage_scope: see `set_scope`.
          consumer_blocks: the readers that read the copy; all by default.
        """
        readers = None if consumer_blocks is None else list(consumer_blocks)
        given = {"read_buffer_index": read_buffer_index, "storage_scope": storage_scope, "consumer_blocks": readers}
        return self._blocks("cache_read", block=block, **given)[0]

    def cache_write(self, block: BlockLike, write_buffer_index: int | str, storage_scope: str) -> BlockRV:
        """Lets a block write a buffer called BUFFER_SCOPE, which another block copies into the old one; gives that block.

        The block must be the only one that writes the buffer.
        """
        return self._blocks("cache_write", block=block, write_buffer_index=write_buffer_index, storage_scope=storage_scope)[0]

    def reindex(self, block: BlockLike, buffer: tuple[str, int | str]) -> BlockRV:
        """Lets a block access a buffer by its iterators, through a copy BUFFER_reindex; gives the block that copies.

        Args:
          buffer: ("read", i) or ("write", i): which of the buffers that the block reads or writes, by position or name.
        """
        return self._blocks("reindex", block=block, buffer=list(buffer))[0]

    def set_scope(self, block: BlockLike, buffer_index: int | str, storage_scope: str) -> None:
        """Says where a buffer lies that a block writes: "global", "shared" by a GPU's block of threads, "warpgroup", "warp", or "local" of
        one thread.

        It must be no argument of the kernel. Buffers of scope "warp" lie in registers of the threads of a warp, those of scope "warpgroup"
        in those of a group of four warps, as the tensor intrinsics say that alone use them.
        """
        self._apply("set_scope", block=block, buffer_index=buffer_index, storage_scope=storage_scope)

    def storage_align(self, block: BlockLike, buffer_index: int | str, axis: int, factor: int, offset: int) -> None:
        """Sets neighbours along a dimension of a buffer that a block writes apart by a multiple of a factor plus an offset, in elements.

        The buffer must be shared, and the dimension not its last. So lines begin in different banks of shared memory.
        """
        self._apply("storage_align", block=block, buffer_index=buffer_index, axis=axis, factor=factor, offset=offset)

    def transform_layout(
        self, block: BlockLike, buffer: tuple[str, int | str] | str, index_map: IndexMap | ir.AffineMap, pad_value: float | None = None
    ) -> list[BlockRV]:
        """Lets a buffer lie in memory in another order, everywhere in the kernel: `lambda i, j: [i // 16, j, i % 16]`.

        A parameter is packed so when the model is compiled. Other arguments keep their order: cache_read or cache_write makes a buffer of
        the kernel of them.

        Args:
          buffer: ("read", i) or ("write", i): which of the buffers that the block reads or writes, by position or name; or a name.
          index_map: the indices at which an element lies, by those it has. Each element needs another place.
          pad_value: of what is left over where an extent is not divided, which a block BUFFER_pad writes then (the result); nothing is
            known of it without.
        """
        layout = self._affine_map(index_map)
        given = buffer if isinstance(buffer, str) else list(buffer)
        return self._blocks("transform_layout", block=block, buffer=given, index_map=layout, pad_value=pad_value)

    # ---- tensor intrinsics

    def blockize(self, loop: LoopLike) -> BlockRV:
        """Makes one block, NAME_o, of a loop that holds one block, NAME, in loops. The start of a reduction that goes on outside moves to
        the new block. Points must be sums of what is outside and inside of the loop."""
        return self._blocks("blockize", loop=loop)[0]

    def tensorize(self, block_or_loop: BlockLike | LoopLike, tensor_intrin: str) -> BlockRV:
        """Lets a tensor intrinsic compute a tile; gives the block of the tile.

        What the loop holds, or the block that blockize made, must be what the intrinsic says, up to names, the place in its buffers and the
        order of operands where that means nothing. Tiles must be full, but for what the intrinsic takes less of.

        Args:
          block_or_loop: a loop becomes a block (see blockize); a text is the name of a loop where there is one.
          tensor_intrin: the name under which it was registered (TensorIntrin.register).
        """
        is_loop = isinstance(block_or_loop, LoopRV) or (isinstance(block_or_loop, str) and self._is_loop(block_or_loop))
        given = {"loop": block_or_loop} if is_loop else {"block": block_or_loop}
        made = self._blocks("tensorize", tensor_intrin=tensor_intrin, **given)
        return made[0] if is_loop else BlockRV(str(block_or_loop))
