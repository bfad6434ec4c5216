"""What the commands print: tables of stages and kernels."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table

from relayc.runtime import KernelInfo, Profile

NUMBER: dict[str, Any] = {"justify": "right", "no_wrap": True}
"""Options of a column of numbers."""


def make_table(title: str, **columns: dict[str, Any]) -> Table:
    """An empty table; `columns` are rich's options of each column by its heading."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, options in columns.items():
        table.add_column(name, **options)
    return table


def scaled(value: float) -> str:
    """A count with a decimal prefix: 1.2 k, 3.4 M, 5.6 G."""
    for prefix, unit in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= unit:
            return f"{value / unit:.1f} {prefix}"
    return f"{value:.0f}"


def stage_table(stats: Mapping[str, float]) -> Table:
    """Seconds per compilation stage, and their sum."""
    table = make_table("compilation", stage={}, seconds=NUMBER)
    for stage, seconds in stats.items():
        table.add_row(stage, f"{seconds:.2f}")
    table.add_section()
    table.add_row("total", f"{sum(stats.values()):.2f}")
    return table


def kernel_table(kernels: Sequence[KernelInfo]) -> Table:
    """One line per kernel call in execution order, with what it is made of."""
    table = make_table("kernels", kernel={"overflow": "fold"}, operators={"overflow": "fold"}, FLOP=NUMBER, bytes=NUMBER)
    for kernel in kernels:
        table.add_row(kernel.name, " ".join(kernel.ops), scaled(kernel.flops), scaled(kernel.bytes))
    return table


def profile_table(profile: Profile) -> Table:
    """One line per kernel call in execution order, with what it is made of and how fast it ran."""
    columns: dict[str, dict[str, Any]] = {
        "kernel": {"overflow": "fold"},
        "operators": {"overflow": "fold"},
        "FLOP": NUMBER,
        "bytes": NUMBER,
        "us": NUMBER,
        "GFLOP/s": NUMBER,
        "GB/s": NUMBER,
        "share": NUMBER,
    }
    table = make_table("kernels", **columns)
    for row in profile.rows:
        kernel = row.kernel
        table.add_row(
            kernel.name,
            " ".join(kernel.ops),
            scaled(kernel.flops),
            scaled(kernel.bytes),
            f"{row.seconds * 1e6:.1f}",
            f"{row.gflops:.1f}",
            f"{row.gbytes:.1f}",
            f"{row.share:.1%}",
        )
    table.add_section()
    flops = sum(row.kernel.flops for row in profile.rows)
    num_bytes = sum(row.kernel.bytes for row in profile.rows)
    seconds = max(profile.seconds, 1e-9)
    table.add_row(
        f"{len(profile.rows)} calls",
        "",
        scaled(flops),
        scaled(num_bytes),
        f"{seconds * 1e6:.1f}",
        f"{flops / seconds / 1e9:.1f}",
        f"{num_bytes / seconds / 1e9:.1f}",
        "100.0%" if profile.rows else "",
    )
    return table
