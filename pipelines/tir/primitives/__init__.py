"""Primitives of schedules: each is a function that checks its legality and then changes a function of blocks and loops.

A primitive is registered under its name with the `@primitive` of pipelines.tir.primitives.registry. It edits the tree, and the contents of
blocks. The first parameter is the Nest; the others are its arguments: names of loops, blocks and buffers, numbers, texts, lists of these,
affine maps, None. It returns the names of what it creates. If it is not legal it raises ScheduleError before any change.
"""

from relayc.pipelines.tir.primitives import annotate as annotate
from relayc.pipelines.tir.primitives import blockize as blockize
from relayc.pipelines.tir.primitives import caches as caches
from relayc.pipelines.tir.primitives import compute_at as compute_at
from relayc.pipelines.tir.primitives import compute_inline as compute_inline
from relayc.pipelines.tir.primitives import fuse_iterators as fuse_iterators
from relayc.pipelines.tir.primitives import loop_kinds as loop_kinds
from relayc.pipelines.tir.primitives import loop_nests as loop_nests
from relayc.pipelines.tir.primitives import pad_einsum as pad_einsum
from relayc.pipelines.tir.primitives import reductions as reductions
from relayc.pipelines.tir.primitives import reindex as reindex
from relayc.pipelines.tir.primitives import set_scope as set_scope
from relayc.pipelines.tir.primitives import storage_align as storage_align
from relayc.pipelines.tir.primitives import tensorize as tensorize
from relayc.pipelines.tir.primitives import transform_layout as transform_layout
