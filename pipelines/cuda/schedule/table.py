"""The strategy table of NVIDIA GPUs: what kernels are offered to, in which order, and the numbers that can be set."""

from relayc.pipelines.schedule.table import Entry, declare_options

TABLE: tuple[Entry, ...] = ()
"""Asked from the first to the last."""

declare_options(TABLE)
