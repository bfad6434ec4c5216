"""The primitives of loops and reductions, as methods of Schedule."""

from collections.abc import Sequence
from typing import Any

from relayc.pipelines.tir.schedule.references import BlockLike, BlockRV, Factor, LoopLike, LoopRV
from relayc.pipelines.tir.schedule.schedule_base import Methods


class LoopMethods(Methods):
    """Loops: their extents, their order, how they run; reductions along them. Each method raises ScheduleError where it is not legal."""

    # ---- extents and order

    def split(self, loop: LoopLike, factors: Sequence[Factor]) -> list[LoopRV]:
        """A loop as nested ones of these extents, the outermost first; one may be None, and gets what the others leave.

        Where the factors do not divide the extent the blocks inside are guarded.
        """
        return self._loops("split", loop=loop, factors=list(factors))

    def fuse(self, *loops: LoopLike) -> LoopRV:
        """Loops of which each holds nothing but the next, the outermost first, as one loop A_B_fused through all their iterations.

        Extents may be symbolic. The new loop is serial.
        """
        return self._loops("fuse", loops=list(loops))[0]

    def reorder(self, *loops: LoopLike) -> None:
        """Puts loops in this order, the outermost first. They are inside of each other, with nothing else between them.

        Loops between them that are not named stay where they are. Loops along which an opaque iterator runs keep their order; a loop that
        decides on the element as well as on the step of a reduction (of both fused) cannot be reordered.
        """
        self._apply("reorder", loops=list(loops))

    def add_unit_loop(self, block_or_loop: BlockLike | LoopLike) -> LoopRV:
        """A loop u of one iteration around a block or a loop."""
        return self._loops("add_unit_loop", **self._operand(block_or_loop))[0]

    # ---- how loops run

    def parallel(self, loop: LoopLike) -> None:
        """Runs the iterations of a loop at once, on the threads of the machine.

        No reduction and no opaque iterator may run along it, and no block in it may write the same in each iteration to what is used
        outside.
        """
        self._apply("parallel", loop=loop)

    def vectorize(self, loop: LoopLike) -> None:
        """Makes the iterations of a loop the lanes of vectors; its extent is a number, and no loop around or inside is vectorized.

        A reduction may run along it where it is one commutative operation (addf, maximumf, ...). It is then computed in another order: each
        lane by itself, all lanes at the end. Sums of floats differ in their last bits from those of a serial loop.
        """
        self._apply("vectorize", loop=loop)

    def unroll(self, loop: LoopLike) -> None:
        """Writes the iterations of a loop out; its extent is a number."""
        self._apply("unroll", loop=loop)

    def bind(self, loop: LoopLike, thread_axis: str) -> None:
        """Makes the iterations of a loop the threads of a GPU along "blockIdx.x", "threadIdx.y", "vthread.z", ...

        As for `parallel`; a reduction by one commutative operation may run along threadIdx.
        """
        self._apply("bind", loop=loop, thread=thread_axis)

    def annotate(self, block_or_loop: BlockLike | LoopLike, ann_key: str, ann_val: Any) -> None:
        """Gives a block or a loop a hint: a number, a text, a truth value, or a list of these, in place of the one of this name.

        Of a loop that runs, "prefetch", [buffer, loop, distance, level], asks the memory ahead: each iteration for a share of what
        another one of that loop, itself or one around it, reads of the buffer, the one so many iterations further on. It comes to the cache
        of the level, 1 to 3.

        Of a serial loop of a GPU, "software_pipeline_stage", [0, 0, n], a number for each part of the loop, does what is in stage 0, copies
        to shared buffers, n iterations ahead; with "software_pipeline_async_stages", [0], threads do not wait for them until they are read.
        Of a loop that holds such a copy and nothing else, "tensor_copy", True, makes one copy of a box by the tensor memory accelerator.
        """
        self._apply("annotate", **self._operand(block_or_loop), key=ann_key, value=ann_val)

    def unannotate(self, block_or_loop: BlockLike | LoopLike, ann_key: str) -> None:
        """Takes a hint from a block or a loop. It must have one of this name."""
        self._apply("unannotate", **self._operand(block_or_loop), key=ann_key)

    def _operand(self, block_or_loop: BlockLike | LoopLike) -> dict[str, str]:
        """A block or a loop as an argument; a text is a loop where there is one of that name."""
        is_loop = isinstance(block_or_loop, LoopRV) or (isinstance(block_or_loop, str) and self._is_loop(block_or_loop))
        return {"loop" if is_loop else "block": str(block_or_loop)}

    # ---- reductions

    def decompose_reduction(self, block: BlockLike, loop: LoopLike) -> BlockRV:
        """The start of a reduction as a block NAME_init of its own, right before a loop around the block, in loops of its own.

        All steps must run along this loop and those in it, each of which must be of elements or of steps. The block keeps its name.
        """
        return self._blocks("decompose_reduction", block=block, loop=loop)[0]

    def rfactor(self, loop: LoopLike, factor_axis: int) -> BlockRV:
        """A block NAME_rf of partial results, one for each iteration of a loop of a reduction, which NAME combines behind it.

        NAME_rf stands where the block was; the loop is of elements for it, and may be parallel or vectorized. Its buffers BUFFER_rf have
        the extent of the loop as a further axis.

        Args:
          factor_axis: which axis of BUFFER_rf that is; negative ones count from the end.

        The body must combine each element with a value by one commutative operation, or choose between them by comparing (argmax). Sums of
        floats are computed in another order.
        """
        return self._blocks("rfactor", loop=loop, factor_axis=factor_axis)[0]

    def pad_einsum(self, block: BlockLike, padding: Sequence[int]) -> list[BlockRV]:
        """Rounds the extents of a block up to multiples of numbers, one for each iterator; gives the blocks that it makes.

        What the block reads is copied to BUFFER_pad, with zeros behind, and what it writes from BUFFER_pad, by blocks of these names. Only
        buffers with a dimension that is no multiple are copied.

        Each iterator must have a loop of its own, as when the schedule begins, and each dimension that is accessed be one iterator. A
        reduction that gets more steps must be a sum of products.
        """
        return self._blocks("pad_einsum", block=block, padding=list(padding))
