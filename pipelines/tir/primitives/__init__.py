"""Primitives of schedules: each is a function that checks that it is legal, and then changes a function of blocks and loops.

A primitive is registered under its name with the `@primitive` of pipelines.tir.primitives.registry, or with its `@loop_primitive` where it
changes
loops, and where blocks are, in the Nest alone: that is written where a primitive of the other kind, or somebody who looks on, asks for the
function. Its first parameter is the Nest, the others say what it is applied to: loops, blocks and buffers by name, numbers, texts, lists of
these, affine maps, None. It gives the names of what it made. It raises ScheduleError before it changes anything, where it is not legal.
"""

from relayc.pipelines.tir.primitives import (
    add_unit_loop,
    annotate,
    bind,
    blockize,
    cache_read,
    cache_write,
    compute_at,
    compute_inline,
    decompose_reduction,
    fuse,
    fuse_iterators,
    pad_einsum,
    parallel,
    reindex,
    reorder,
    reverse_compute_at,
    reverse_compute_inline,
    rfactor,
    set_scope,
    split,
    storage_align,
    tensorize,
    transform_layout,
    unroll,
    vectorize,
)

__all__ = [
    "add_unit_loop",
    "annotate",
    "bind",
    "blockize",
    "cache_read",
    "cache_write",
    "compute_at",
    "compute_inline",
    "decompose_reduction",
    "fuse",
    "fuse_iterators",
    "pad_einsum",
    "parallel",
    "reindex",
    "reorder",
    "reverse_compute_at",
    "reverse_compute_inline",
    "rfactor",
    "set_scope",
    "split",
    "storage_align",
    "tensorize",
    "transform_layout",
    "unroll",
    "vectorize",
]
