"""The strategy table of NVIDIA GPUs: the strategies in the order in which kernels are offered to them, and their tunable numbers."""

from relayc.pipelines.targets.cuda.strategies.attention import flash, flash_mma, tensor_choice, versions
from relayc.pipelines.targets.cuda.strategies.general import Numbers, schedule_general
from relayc.pipelines.targets.cuda.strategies.hopper import strategy as hopper
from relayc.pipelines.targets.cuda.strategies.product import strategy as product
from relayc.pipelines.targets.cuda.strategies.sorting import Numbers as SortingNumbers
from relayc.pipelines.targets.cuda.strategies.sorting import schedule_sort
from relayc.pipelines.targets.cuda.strategies.transpose import Numbers as TransposeNumbers
from relayc.pipelines.targets.cuda.strategies.transpose import schedule_transpose
from relayc.pipelines.targets.cuda.strategies.windows import schedule_window
from relayc.pipelines.tir.strategy.table import Entry, Parameter, declare_options

_GENERAL = Numbers()
_SORTING = SortingNumbers()
_TRANSPOSE = TransposeNumbers()
_MODEL = "fewest cycles"
_TILE = (
    Parameter("rows", _MODEL, "rows of the tile of a block", 256),
    Parameter("columns", _MODEL, "columns of the tile of a block", 256),
    Parameter("depth", _MODEL, "steps of the depth of a stage", 128),
    Parameter("unit_rows", _MODEL, "rows of the tile of a warp; without tensor cores of a thread", 64),
    Parameter("unit_columns", _MODEL, "columns of it", 64),
    Parameter("stages", _MODEL, "stages of operands in shared memory", 8),
    Parameter("splits", _MODEL, "parts of the depth that blocks of their own sum", 64),
)
_PRODUCTS = "dense, matmul, batch_matmul, conv and what follows elementwise"

_SPLITS = (
    Parameter("splits", "blocks for all multiprocessors", "splits of the keys, where few queries share them", 256),
    Parameter("split_warps", versions.SPLIT_WARPS, "warps of a block with a split", 16),
    Parameter("split_rows", versions.SPLIT_ROWS, "queries of a block with a split", versions.FEW_ROWS),
    Parameter("split_keys", versions.KEYS_AT_A_TIME, "keys that lanes read at a time", 16),
)

TABLE: tuple[Entry, ...] = (
    Entry(
        "flash_mma",
        flash_mma.schedule_flash_mma,
        "attention",
        "more than 8 queries that share keys; heads of multiples of 8 elements",
        "f16 and bf16, f32 as tf32 where that is asked for, summed in f32",
        (
            Parameter("warps", _MODEL, "warps of a block", tensor_choice.MOST_WARPS),
            Parameter("rows", _MODEL, "queries of a warp", tensor_choice.MOST_ROWS),
            Parameter("keys", _MODEL, "keys of a tile in shared memory", tensor_choice.MOST_KEYS),
            Parameter("stages", _MODEL, "tiles of keys and values in shared memory", tensor_choice.MOST_STAGES),
            Parameter("tf32", 0, "1 rounds operands of f32 to tf32", 1),
            *_SPLITS,
        ),
        ("mma-bf16", "cp-async"),
    ),
    Entry(
        "flash",
        flash.schedule_flash,
        "attention",
        "any",
        "f16, bf16, f32, f64",
        (
            Parameter("warps", flash.BLOCKS.warps, "warps of a block", 16),
            Parameter("rows", flash.BLOCKS.rows, "queries of a warp", 32),
            Parameter("keys", flash.BLOCKS.keys, "keys that come to shared memory at a time", 256),
            *_SPLITS,
        ),
    ),
    Entry(
        "wgmma",
        hopper.schedule_wgmma,
        _PRODUCTS,
        "64 rows and columns or more",
        "f16 and bf16 summed in f32; 8-bit integers, along the depth, in i32",
        (
            Parameter("rows", _MODEL, "rows of the tile of a block, 64 for each group of four warps", 128),
            Parameter("columns", _MODEL, "columns of it", 256),
            Parameter("stages", "what fits in shared memory, at most 6", "stages of operands in shared memory", 6),
            Parameter("splits", _MODEL, "parts of the depth that are tiles of their own", 64),
        ),
        ("wgmma", "tma", "mbarrier"),
    ),
    Entry(
        "mma",
        product.schedule_mma,
        _PRODUCTS,
        "2 columns or more",
        "f16 and bf16 summed in f32, 8-bit integers in i32, f32 as tf32 where that is asked for",
        (*_TILE, Parameter("tf32", 0, "1 rounds operands of f32 to tf32", 1)),
        ("mma-bf16", "cp-async"),
    ),
    Entry("fma", product.schedule_fma, _PRODUCTS, "2 columns or more", "summed in f32", _TILE),
    Entry(
        "window",
        schedule_window,
        "depthwise conv, max_pool, avg_pool and what follows elementwise",
        "channels or columns innermost",
        "of a byte or more",
        (
            Parameter("threads", 256, "threads of a block", 1024),
            Parameter("lanes", "16 bytes", "channels of a vector, where these are innermost", 16),
            Parameter("rows", "fewest loads", "output rows of a thread, where columns are innermost", 8),
            Parameter("columns", "fewest loads", "output columns of a thread, where channels are innermost", 8),
        ),
    ),
    Entry(
        "sort",
        schedule_sort,
        "sort, argsort, topk, argsort_rows",
        "lines of less than 2^32 elements",
        "any numbers",
        (
            Parameter("threads", _SORTING.threads, "threads of a block, at most", 1024),
            Parameter("items", "11, of rows 1", "elements of a thread, at most", 32),
            Parameter("parts", "blocks for all multiprocessors", "blocks of a line of which a few elements are selected", 1024),
        ),
    ),
    Entry(
        "transpose",
        schedule_transpose,
        "elementwise operators, transpose, layout_transform",
        "an operand that lies along another axis than the result",
        "any",
        (
            Parameter("threads", _TRANSPOSE.threads, "threads of a block, at most", 1024),
            Parameter("vector_bytes", _TRANSPOSE.vector_bytes, "bytes that a thread loads and stores at once, at most", 16),
        ),
    ),
    Entry(
        "general",
        schedule_general,
        "all that blocks can say",
        "any",
        "any",
        (
            Parameter("threads", _GENERAL.threads, "threads of a block", 1024),
            Parameter("vector_bytes", _GENERAL.vector_bytes, "bytes that a thread loads and stores at once", 16),
            Parameter("warp_steps", _GENERAL.warp_steps, "steps of a reduction up to which a warp computes an element, beyond it a block"),
        ),
    ),
)
"""Asked from the first to the last."""

declare_options(TABLE)
