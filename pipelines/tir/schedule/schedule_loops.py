"""The primitives of loops and reductions, as methods of Schedule."""

from collections.abc import Sequence
from typing import Any

from relayc.pipelines.tir.schedule.references import BlockLike, BlockRV, Factor, LoopLike, LoopRV
from relayc.pipelines.tir.schedule.schedule_base import Methods


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
