"""The strategy table of the CPU: what kernels are offered to, in which order, and the numbers that can be set.

Defaults are those of the strategies themselves, mostly of a model of the core and its caches.
"""

from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.strategies import tile_transform
from relayc.pipelines.targets.cpu.strategies.attention import columns as attention_columns
from relayc.pipelines.targets.cpu.strategies.attention import gradient as attention_gradient
from relayc.pipelines.targets.cpu.strategies.attention import parameters as attention_parameters
from relayc.pipelines.targets.cpu.strategies.attention import rows as attention_rows
from relayc.pipelines.targets.cpu.strategies.attention import tiles as attention_tiles
from relayc.pipelines.targets.cpu.strategies.attention.kernel import PARALLEL_GRAIN
from relayc.pipelines.targets.cpu.strategies.bf16 import amx, dot, integers
from relayc.pipelines.targets.cpu.strategies.bf16.nest import GRAIN
from relayc.pipelines.targets.cpu.strategies.contraction import inner_products
from relayc.pipelines.targets.cpu.strategies.contraction import strategy as contraction
from relayc.pipelines.targets.cpu.strategies.contraction.tile import PARALLEL_GRAIN as CONTRACTION_GRAIN
from relayc.pipelines.targets.cpu.strategies.contraction.tile import PARALLEL_TASKS
from relayc.pipelines.targets.cpu.strategies.dense_blocks import product as dense_blocks
from relayc.pipelines.targets.cpu.strategies.loops.plan import LoopParameters
from relayc.pipelines.targets.cpu.strategies.loops.strategy import schedule_loops
from relayc.pipelines.targets.cpu.strategies.windows import channels, columns
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.table import Entry, Parameter, Strategy, declare_options
from relayc.pipelines.tir.strategy.tuning import SCRIPT, SKETCH, Tuning

_TILES = (
    Parameter("rows", "fewest cycles", "rows of a tile of sums in registers", 64),
    Parameter("vectors", "fewest cycles", "vectors of columns of a tile", 8),
    Parameter("block_tiles", "the caches", "row tiles of a task, where nothing is padded"),
    Parameter("block_panels", "the caches", "panels of columns of a task, each as wide as a tile"),
    Parameter("chunk", "the caches", "steps of the outermost reduction loop between visits of the sums"),
    Parameter("grain", CONTRACTION_GRAIN, "multiply-adds from which a kernel is parallel"),
)
_TASKS = Parameter("tasks", PARALLEL_TASKS, "iterations that the parallel loop of a padded convolution should have")
_WINDOW, _CHANNELS, _LOOPS = columns.ColumnParameters(0), channels.ChannelParameters(0), LoopParameters()
_ATTENTION_GRAIN = Parameter("grain", PARALLEL_GRAIN, "multiply-adds from which a kernel is parallel")

_PRODUCTS = "dense, matmul, batch_matmul, conv and what follows elementwise"
_BF16, _BYTES = "bf16, summed in f32", "8-bit integers by signed ones, summed in 32 bits"


def _by_groups(name: str, schedule: Strategy, shapes: str, dtypes: str, *features: str) -> Entry:
    """A strategy of products by groups of neighbouring elements."""
    grain = Parameter("grain", GRAIN, "estimated cycles from which a kernel is parallel")
    return Entry(name, schedule, _PRODUCTS, shapes, dtypes, (grain,), features)


def schedule_sketch(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """See written_strategy.schedule_sketch; the schedule language is imported where there is a trace."""
    if tuning.decisions().get(SCRIPT) is None:
        return None
    from relayc.pipelines.tir.schedule import written_strategy

    return written_strategy.schedule_sketch(kernel, target, tuning)


TABLE = (
    Entry(
        "attention_tiles",
        attention_tiles.schedule_attention_tiles,
        "attention",
        f"several queries for each key, heads of whole tiles, at most {attention_tiles.MAX_BYTES >> 20} MiB of buffers",
        _BF16,
        (Parameter("tasks", attention_tiles.TASKS, "tasks that there should be"), _ATTENTION_GRAIN),
        ("amx-tile", "amx-bf16"),
    ),
    Entry(
        "attention_columns",
        attention_columns.schedule_attention_columns,
        "attention",
        "several queries for each key",
        "f16, bf16, f32, f64",
        (
            Parameter("height", "the registers", "keys, or elements of a head, whose sums stay in registers", 32),
            Parameter("strips", "the first-level cache", "strips of `height` keys of a block", 64),
            Parameter("tiles", f"{attention_parameters.MAX_TILE_BYTES >> 10} KiB", "tiles of queries of a task", 16),
            _ATTENTION_GRAIN,
        ),
    ),
    Entry(
        "attention_rows",
        attention_rows.schedule_attention_rows,
        "attention",
        "few queries for each key, as in decoding",
        "f16, bf16, f32, f64",
        (
            Parameter("keys", f"{attention_rows.BLOCK_BYTES >> 10} KiB of scores", "keys of a block", 1 << 16),
            Parameter("sums", "half the registers", "vectors of the context that stay in registers", 64),
            _ATTENTION_GRAIN,
        ),
    ),
    Entry(
        "attention_gradient",
        attention_gradient.schedule_attention_gradient,
        "attention_grad",
        "any",
        "f16, bf16, f32, f64",
        (
            Parameter("height", "the registers", "keys whose sums stay in registers", 32),
            Parameter("strips", "the first-level cache", "strips of `height` keys of a block", 64),
            _ATTENTION_GRAIN,
        ),
    ),
    Entry(
        "dense_blocks",
        dense_blocks.schedule_dense_blocks,
        "dense_blocks and what follows elementwise",
        "any",
        "weights of 2, 4 or 8 bits, results as of f32",
        (
            Parameter("vectors", "4", "vectors of columns of a tile", 8),
            Parameter("rows", "the registers", "rows of a tile, where weights lie in a buffer as f32", 16),
            Parameter("task_rows", "192", "rows for which weights become floats once", 1 << 10),
            Parameter("depth", "two thirds of the first-level cache", "of the weights in the buffer, as whole blocks", 1 << 10),
            Parameter("grain", dense_blocks.PARALLEL_GRAIN, "multiply-adds from which a kernel is parallel"),
        ),
    ),
    _by_groups("amx", amx.schedule_amx, "where tiles need fewer cycles than vectors", _BF16, "amx-tile", "amx-bf16"),
    _by_groups("dot", dot.schedule_dot, "where pairs need fewer cycles than f32 vectors", _BF16, "avx512bf16"),
    _by_groups(
        "int8_tiles",
        integers.schedule_int8_tiles,
        "where tiles need fewer cycles than vectors; both operands of a call, or a parameter on one side",
        _BYTES,
        "amx-tile",
        "amx-int8",
    ),
    _by_groups(
        "int8_dots",
        integers.schedule_int8_dots,
        "unsigned integers by signed ones, both of a call; or a parameter on one side",
        _BYTES,
        "avx2",
    ),
    Entry(
        "inner_products",
        inner_products.schedule_inner_products,
        "dense, matmul, batch_matmul and what follows elementwise",
        f"an operand of up to {inner_products.MOST_ROWS} rows and one that is no parameter, contiguous along the depth, or gathered so",
        "all of 16 bits or more (sums)",
        (
            Parameter("sums", "half the registers", "vectors of sums of a tile", 64),
            Parameter("columns", str(inner_products.TILE_COLUMNS), "columns of a tile, at most", inner_products.TILE_COLUMNS),
            Parameter("block", inner_products.BLOCK, "columns of a task", inner_products.MOST_BLOCK),
            *_TILES,
            _TASKS,
        ),
    ),
    Entry(
        "contraction",
        contraction.schedule_contraction,
        _PRODUCTS,
        "2 columns or more",
        "all of 16 bits or more (sums)",
        (*_TILES, _TASKS),
    ),
    Entry(
        "window_channels",
        channels.schedule_window_channels,
        "depthwise conv, pooling",
        "channels innermost",
        "all of 8 bits or more",
        (
            Parameter("columns", "half the registers", "output columns of a tile", 64),
            Parameter("vectors", "a cache line", "neighbouring vectors of channels of a tile", 8),
            Parameter("unrolled", _CHANNELS.unrolled, "operations of a tile up to which rows of taps are unrolled", 4096),
            Parameter("grain", _CHANNELS.grain, "window elements from which a kernel is parallel"),
            Parameter("tasks", _CHANNELS.tasks, "iterations that the parallel loop should have"),
        ),
    ),
    Entry(
        "tile_transform",
        tile_transform.schedule_tile_transform,
        "winograd_input_transform, winograd_output_transform",
        "innermost extent of whole vectors",
        "f32",
        (Parameter("grain", tile_transform.PARALLEL_GRAIN, "elements written from which a kernel is parallel"),),
    ),
    Entry(
        "window_columns",
        columns.schedule_window_columns,
        "depthwise conv, pooling",
        f"overlapping windows along 4 contiguous columns or more, at most {columns.MAX_TAPS} taps, strides up to {columns.MAX_STRIDE}",
        "all of 8 bits or more",
        (
            Parameter("accumulators", "half the registers", "vectors of sums of a tile", 64),
            Parameter("buffer_bytes", _WINDOW.buffer_bytes, "bytes of input rows that a task copies", columns.MAX_BUFFER_BYTES),
            Parameter("unrolled", _WINDOW.unrolled, "operations up to which the taps of a tile are unrolled", 4096),
            Parameter("grain", _WINDOW.grain, "window elements from which a kernel is parallel"),
        ),
    ),
    Entry(
        "loops",
        schedule_loops,
        "everything else: elementwise, reductions, softmax, norms, transposes, gathers, concatenations",
        "any",
        "any",
        (
            Parameter("grain", _LOOPS.parallel_grain, "elements times operations from which a nest is parallel"),
            Parameter("chunks", _LOOPS.parallel_chunks, "iterations that a parallel loop is cut into"),
            Parameter("unroll", _LOOPS.unroll, "vectors side by side along the last dimension", 16),
        ),
    ),
    Entry(
        SKETCH,
        schedule_sketch,
        "everything, by the trace that a search over generated schedules recorded; asked only where there is one",
        "any",
        "any",
        has_knobs=True,
    ),
)
"""Tried in this order."""

declare_options(TABLE)
