"""Copies of boxes from global to shared memory: which a tensor map can describe."""

import pytest
from schedules.test_launches import BOX

from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.lower.boxes import BoxCopy, box_of, lines_of
from relayc.pipelines.tir.lower.nested import tree_of
from relayc.pipelines.tir.lower.storage import KeptRegion
from relayc.pipelines.tir.lower.threads import launches_of
from relayc.pipelines.tir.lower.tree import loops_in
from relayc.tir import Schedule, ScheduleError, from_source


def _box(shape: tuple[int, ...], stored: str = "{}", value: str = "A[{}]", found: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """The extents of the box that a loop copies from A, of a shape, to shared memory.

    Args:
      stored: the index of an element of the shared buffer, with the iterators i, j, ... for the braces.
      found: the extents of the loops, if not the shape.
    """
    names = "ijklmn"[: len(shape)]
    extents = found or shape
    at = ", ".join(f"v{name}" for name in names)
    text = f"def main(A: T.Buffer({shape}, 'float32'), B: T.Buffer((1,), 'float32')):\n    t = T.alloc_buffer({extents}, scope='shared')\n"
    for depth, (name, extent) in enumerate(zip(names, extents, strict=True)):
        text += f"    {'  ' * depth}for {name} in T.serial({extent}{'' if depth else ', ' + BOX}):\n"
    space = "    " + "  " * len(shape)
    text += f"{space}with T.block('t'):\n{space}  {at} = T.axis.remap('{'S' * len(shape)}', [{', '.join(names)}])\n"
    text += f"{space}  t[{stored.format(at)}] = {value.format(at)}\n    with T.block('B'):\n        B[0] = 0.0\n"
    s = Schedule(from_source(text))
    with s.mod.context:
        (node,) = loops_in(launches_of(tree_of(s.nest, Target("cuda", arch="sm_90a"))[:1], s.nest.scope)[0].nodes, BoxCopy)
        region = KeptRegion((), (Index(),) * len(extents), extents, False)
        return box_of(node, region, lines_of("t", region.extents, node.target.type.element_type), shape).extents


def test_boxes_are_of_tensors_of_up_to_five_dimensions_and_lines_of_the_tensor() -> None:
    for shape in ((8, 32), (256, 32), (1, 1, 1, 8, 32)):
        assert _box(shape) == shape
    inside = "T.if_then_else(T.And({}), A[{{}}], 0.0)"
    assert _box((5, 20), value="T.if_then_else(T.And(vi < 5, vj < 20), A[T.min(vi, 4), T.min(vj, 19)], 0.0)", found=(8, 32)) == (8, 32)
    assert _box((1, 20), value="T.if_then_else(T.And(vi < 1, vj < 20), A[0, T.min(vj, 19)], 0.0)", found=(8, 32)) == (8, 32)
    for shape, options, words in (
        ((1, 264, 32), {}, r"of the dimensions of a tensor of up to 5, up to 256 lines of each, found \[1, 264, 32\]"),
        ((1, 1, 1, 1, 8, 32), {}, "of the dimensions of a tensor of up to 5, up to 256 lines of each"),
        ((32, 32), {"value": "A[vj, vi]"}, "of a whole buffer, to the dimensions that it has, found"),
        ((32, 32), {"value": inside.format("vi < 20, vj < 32")}, "of what the tensor has, found one of what is below 20"),
        ((8, 30), {}, "buffer t: expected whole lines of 128 bytes, 32 elements, and a multiple of 8 of them"),
        ((12, 32), {}, "buffer t: expected whole lines of 128 bytes, 32 elements, and a multiple of 8 of them"),
        ((32,), {}, "buffer t: expected whole lines of 128 bytes, 32 elements, and a multiple of 8 of them"),
    ):
        with pytest.raises(ScheduleError, match=words):
            _box(shape, **options)
