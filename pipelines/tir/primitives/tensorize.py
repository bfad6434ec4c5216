"""tensorize: a tensor intrinsic computes a tile."""

from relayc.dialects.mlir import ir
from relayc.pipelines.tir.editing.intrinsics import ANNOTATION, TensorIntrin
from relayc.pipelines.tir.primitives.blockize import make, nest_under
from relayc.pipelines.tir.primitives.matching import match, match_block
from relayc.pipelines.tir.primitives.registry import find_block, find_loop, primitive
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def tensorize(nest: Nest, tensor_intrin: str, loop: str | None = None, block: str | None = None) -> list[str]:
    """Lets a tensor intrinsic compute the contents of a loop, which becomes a block (see blockize), or of a block that is already
    blockized.

    The block keeps its contents, which define the computation, and gets the annotation tensor_intrin.
    """
    intrin = TensorIntrin.get(tensor_intrin)
    if (loop is None) == (block is None):
        raise ScheduleError("expected a loop or a block, found both or none")
    if loop is not None:
        target = find_loop(nest, loop)
        inner, loops = nest_under(target)
        match(nest, inner, loops, intrin)
        made = make(nest, target)
    else:
        made = find_block(nest, block or "")
        match_block(nest, made, intrin)
    made.annotations = {**made.annotations, ANNOTATION: ir.StringAttr.get(tensor_intrin, nest.head.context)}
    return [made.name] if loop is not None else []
