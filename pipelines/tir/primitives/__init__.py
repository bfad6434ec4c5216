"""Primitives of schedules: each is a function that checks its legality and then changes a function of blocks and loops.

A primitive is registered under its name with the `@primitive` of pipelines.tir.primitives.registry. A primitive that changes only loops and
the positions of blocks uses `@loop_primitive`: it edits the Nest, which is written when a primitive of the other kind, or a user, requests
the function. The first parameter is the Nest; the others are its arguments: names of loops, blocks and buffers, numbers, texts, lists of
these, affine maps, None. It returns the names of what it creates. If it is not legal it raises ScheduleError before any change.
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
