"""tensorize: a tensor intrinsic computes a tile."""

from relayc.dialects.mlir import ir
from relayc.dialects.tir import names
from relayc.pipelines.tir.editing.intrinsics import ANNOTATION, TensorIntrin
from relayc.pipelines.tir.primitives.blockize import make, nest_under
from relayc.pipelines.tir.primitives.matching import match, match_block
from relayc.pipelines.tir.primitives.registry import find_block, find_loop, primitive
from relayc.pipelines.tir.tree.operations import read_annotations
from relayc.pipelines.tir.tree.structure import Nest
from relayc.pipelines.tir.tree.views import ScheduleError


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
        inner, loops = nest_under(nest, target)
        match(nest, inner, loops, nest.loops_around(target.operation), intrin)
        made = make(nest, target)
    else:
        made = find_block(nest, block or "")
        match_block(nest, made, intrin)
    context = nest.function.context
    hints = {**read_annotations(made.operation), ANNOTATION: ir.StringAttr.get(tensor_intrin, context)}
    made.operation.attributes[names.ANNOTATIONS] = ir.DictAttr.get(hints, context)
    return [made.name] if loop is not None else []
