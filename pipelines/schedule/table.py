"""The strategy table: which schedule takes which kernels, in which order, with which tunable numbers.

A kernel gets the first schedule that takes it. Its numbers are defaults of the table or of a model of the machine, unless set through
`PassContext.config`: `{"schedule.contraction.rows": 6}` for every kernel, or for those whose names match a pattern, together with the
strategy where only one is to be asked: `{"schedule.kernels": {"fused_dense*": {"contraction.rows": 4}, "fused_add": {"strategy":
"loops"}}}`. `relayc inspect` and `KernelInfo.schedule` say what each kernel got. A kernel that no schedule takes becomes plain loops
(pipelines.codegen.bufferize).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from relayc.dialects.mlir import ir
from relayc.pipelines.backend import find_backend
from relayc.pipelines.passes import config_option
from relayc.pipelines.schedule import loops, strategy, tile_transform
from relayc.pipelines.schedule.attention import columns as attention_columns
from relayc.pipelines.schedule.attention import rows as attention_rows
from relayc.pipelines.schedule.attention import tiles as attention_tiles
from relayc.pipelines.schedule.attention.kernel import PARALLEL_GRAIN
from relayc.pipelines.schedule.graph import NotStructured, read_kernel
from relayc.pipelines.schedule.pairs import amx, dot
from relayc.pipelines.schedule.pairs.nest import GRAIN
from relayc.pipelines.schedule.products import roles, tile
from relayc.pipelines.schedule.strategy import STRATEGIES, Scheduled, Strategy
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.schedule.windows import channel_window, window
from relayc.pipelines.target import Target


@dataclass(frozen=True)
class Parameter:
    """A tunable number: its default, or what computes it, and the largest value."""

    name: str
    default: int | str
    doc: str
    most: int = 1 << 40


@dataclass(frozen=True)
class Entry:
    """A row of the table.

    Attributes:
      schedule: gives the kernel in tir, None where it does not take it.
      features: CPU features that the target must have, one of each group.
      operators, shapes, dtypes: what it takes, in words: the schedule itself looks at the loops of the kernel.
    """

    name: str
    schedule: Strategy
    operators: str
    shapes: str
    dtypes: str
    parameters: tuple[Parameter, ...]
    features: tuple[str, ...] = ()


_BF16_GRAIN = Parameter("grain", GRAIN, "estimated cycles from which a kernel is parallel")
_WINDOW, _CHANNELS, _LOOPS = window.WindowParameters(0), channel_window.ChannelWindowParameters(0), loops.LoopParameters()

_ATTENTION_GRAIN = Parameter("grain", PARALLEL_GRAIN, "multiply-adds from which a kernel is parallel")

TABLE: tuple[Entry, ...] = (
    Entry(
        "attention_tiles",
        attention_tiles.schedule_attention_tiles,
        "attention",
        f"several queries for each key, heads of whole tiles, at most {attention_tiles.MAX_BYTES >> 20} MiB of buffers",
        "bf16, summed in f32",
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
            Parameter("groups", "half the first-level cache", "groups of `height` keys of a block", 64),
            Parameter("tiles", f"{attention_columns.MAX_TILE_BYTES >> 10} KiB", "tiles of queries of a task", 16),
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
        "amx",
        amx.schedule_amx,
        "dense, matmul, batch_matmul, conv and what follows elementwise",
        "where tiles need fewer cycles than vectors",
        "bf16, summed in f32",
        (_BF16_GRAIN,),
        ("amx-tile", "amx-bf16"),
    ),
    Entry(
        "dot",
        dot.schedule_dot,
        "the same",
        "where pairs need fewer cycles than f32 vectors",
        "bf16, summed in f32",
        (_BF16_GRAIN,),
        ("avx512bf16",),
    ),
    Entry(
        "contraction",
        roles.schedule_contraction,
        "dense, matmul, batch_matmul, conv and what follows elementwise",
        "2 columns or more",
        "all of 16 bits or more (sums)",
        (
            Parameter("rows", "fewest cycles", "rows of a tile of sums in registers", 64),
            Parameter("vectors", "fewest cycles", "vectors of columns of a tile", 8),
            Parameter("block_tiles", "the caches", "row tiles of a task, where nothing is padded"),
            Parameter("block_panels", "the caches", "panels of columns of a task, each as wide as a tile"),
            Parameter("chunk", "the caches", "steps of the outermost reduction loop between visits of the sums"),
            Parameter("grain", tile.PARALLEL_GRAIN, "multiply-adds from which a kernel is parallel"),
            Parameter("tasks", tile.PARALLEL_TASKS, "iterations that the parallel loop of a padded convolution should have"),
        ),
    ),
    Entry(
        "channel_window",
        channel_window.schedule_channel_window,
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
        "window",
        window.schedule_window,
        "depthwise conv, pooling",
        f"overlapping windows along 4 contiguous columns or more, at most {window.MAX_TAPS} taps, strides up to {window.MAX_STRIDE}",
        "all of 8 bits or more",
        (
            Parameter("accumulators", "half the registers", "vectors of sums of a tile", 64),
            Parameter("buffer_bytes", _WINDOW.buffer_bytes, "bytes of input rows that a task copies", window.MAX_BUFFER_BYTES),
            Parameter("unrolled", _WINDOW.unrolled, "operations up to which the taps of a tile are unrolled", 4096),
            Parameter("grain", _WINDOW.grain, "window elements from which a kernel is parallel"),
        ),
    ),
    Entry(
        "loops",
        strategy.default_schedule,
        "everything else: elementwise, reductions, softmax, norms, transposes, gathers, concatenations",
        "any",
        "any",
        (
            Parameter("grain", _LOOPS.parallel_grain, "elements times operations from which a nest is parallel"),
            Parameter("chunks", _LOOPS.parallel_chunks, "iterations that a parallel loop is cut into"),
            Parameter("unroll", _LOOPS.unroll, "vectors side by side along the last dimension", 16),
        ),
    ),
)
"""Asked from the first to the last."""

_OPTION, _KERNELS = "schedule.", "schedule.kernels"

for _entry in TABLE:
    for _parameter in _entry.parameters:
        config_option(f"{_OPTION}{_entry.name}.{_parameter.name}", int, None, f"{_parameter.doc} (default: {_parameter.default})")
config_option(_KERNELS, dict, {}, "parameters by pattern of kernel names, which go before those for all; also strategy=NAME")


def tuning_for(kernel: str, config: Mapping[str, Any], table: Sequence[Entry] = TABLE) -> Tuning:
    """What `config` (of a PassContext) sets for a kernel; of several patterns that match, later ones replace earlier ones.

    Args:
      table: the strategies of the target.

    Raises:
      ValueError: a strategy or parameter that is not in the table, or a value that is not a number within its range.
    """
    given = {key.removeprefix(_OPTION): value for key, value in config.items() if key.startswith(_OPTION) and key != _KERNELS}
    for pattern, values in config.get(_KERNELS, {}).items():
        if fnmatchcase(kernel, pattern):
            given |= values
    known = {f"{entry.name}.{parameter.name}": parameter.most for entry in table for parameter in entry.parameters}
    for name, value in given.items():
        if name == "strategy":
            if value not in (entry.name for entry in table):
                raise ValueError(f"schedule of {kernel}: expected a strategy out of {', '.join(e.name for e in table)}, found {value!r}")
        elif name not in known:
            raise ValueError(f"schedule of {kernel}: expected parameters out of {', '.join(sorted(known))}, found {name!r}")
        elif not isinstance(value, int) or not 1 <= value <= known[name]:
            raise ValueError(f"schedule of {kernel}: {name}: expected a number of 1 to {known[name]}, found {value!r}")
    return Tuning(given)


def schedule_kernel(source: ir.OpView, target: Target, config: Mapping[str, Any]) -> tuple[Scheduled, Tuning] | None:
    """Schedules a te function into the module at the ambient insertion point; None where only the fallback takes it.

    Args:
      config: of the PassContext (see `tuning_for`).
    """
    try:
        kernel = read_kernel(source)
    except NotStructured:
        return None
    table = find_backend(target.kind).strategies()
    kernel.tuning = tuning_for(kernel.name, config, table)
    only = kernel.tuning.given.get("strategy")
    added = [(schedule.__name__, schedule) for schedule in STRATEGIES]
    listed = [(e.name, e.schedule) for e in table if only in (None, e.name) and all(map(target.has, e.features))]
    for name, schedule in [*([] if only else added), *listed]:
        block = ir.InsertionPoint.current.block
        before = len(block.operations)
        kernel.tuning.begin(name)
        try:
            scheduled = schedule(kernel, target)
        except NotStructured:
            for op in list(block.operations)[before:]:  # what was emitted until the operation that is not read
                op.operation.erase()
            continue
        if scheduled is not None:
            return scheduled, kernel.tuning
    return None


def strategy_table() -> str:
    """The table as Markdown."""
    lines = ["| strategy | operators | shapes | element types | CPU | parameters |", "|---|---|---|---|---|---|"]
    for entry in TABLE:
        parameters = "<br>".join(f"`{p.name}` {p.doc} ({p.default})" for p in entry.parameters)
        cpu = ", ".join(entry.features) or "any"
        lines.append(f"| {entry.name} | {entry.operators} | {entry.shapes} | {entry.dtypes} | {cpu} | {parameters} |")
    return "\n".join(lines) + "\n"
