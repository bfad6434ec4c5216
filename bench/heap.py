"""`bench heap`: the cost of cells of the native heap in programs of the Relay language, and the memory that remains allocated."""

import argparse
import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

import relayc
from relayc import relay
from relayc.bench.machine import describe, warn_if_busy
from relayc.bench.options import Commands, add_command, add_json
from relayc.bench.report import save
from relayc.tools.tables import NUMBER, make_table

CELLS = (1000, 1_000_000, 10_000_000)
"""Lengths of the lists that are measured."""

_LISTS = """
def @build(%n: int32, %l: List[int32]) -> List[int32] { if (%n == 0) { %l } else { @build(%n - 1, Cons(%n, %l)) } }
def @walk(%l: List[int32], %s: int32) -> int32 { match (%l) { Cons(%x, %rest) => @walk(%rest, %s + %x), Nil => %s } }
"""


@dataclass(frozen=True)
class HeapPoint:
    """The times of a list's cells.

    Attributes:
      cells: length of the list.
      first, construct, walk, drop: CPU nanoseconds per cell: to construct a list in memory that is new to the process, to construct later
        lists, to read a tag and two fields, and to free a cell.
      left: bytes that are still allocated by malloc after the list was freed.
    """

    cells: int
    first: float
    construct: float
    walk: float
    drop: float
    left: int


class _Info(ctypes.Structure):
    _fields_ = [(f"field{i}", ctypes.c_size_t) for i in range(10)]


def _bytes_in_use() -> int:
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _Info
    return int(mallinfo().field7)


def _function(main: str) -> Callable[..., Any]:
    module = relay.parse(_LISTS + main, init_module=relay.Prelude().mod)
    found: Callable[..., Any] = relayc.compile(module)["main"]
    return found


def measure_heap(cells: Sequence[int], rounds: int = 5) -> list[HeapPoint]:
    """Builds, walks and drops lists: medians of some rounds."""
    build = _function("def @main(%n: int32) -> List[int32] { @build(%n, Nil) }")
    walk = _function("def @main(%l: List[int32]) -> int32 { @walk(%l, 0) }")
    walk(build(1))
    points = []
    for count in cells:
        before = _bytes_in_use()
        times: list[tuple[float, float, float]] = []
        for _ in range(rounds + 1):
            begin = time.process_time()
            built = build(count)
            made = time.process_time()
            walk(built)
            walked = time.process_time()
            del built
            times.append((made - begin, walked - made, time.process_time() - walked))
        construct, walked_, dropped = (median(column) / count * 1e9 for column in zip(*times[1:], strict=True))
        points.append(HeapPoint(count, times[0][0] / count * 1e9, construct, walked_, dropped, _bytes_in_use() - before))
    return points


def heap_table(points: Sequence[HeapPoint]) -> Table:
    """One line per list."""
    heads = ("first list", "construct", "tag and 2 fields", "drop", "bytes left")
    table = make_table("cells of lists of int32; CPU nanoseconds a cell", cells=NUMBER, **dict.fromkeys(heads, NUMBER))
    for point in points:
        cells, *times, left = asdict(point).values()
        table.add_row(f"{cells:,}", *(f"{each:.1f}" for each in times), f"{left:,}")
    return table


def add_parser(commands: Commands) -> None:
    """Adds the command to the command line."""
    command = add_command(commands, "heap", run, "cells of the native heap: lists of the Relay language")
    command.add_argument("--cells", type=int, nargs="+", default=CELLS, metavar="N", help="lengths of lists (default: %(default)s)")
    add_json(command)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """`bench heap`."""
    warn_if_busy()
    points = measure_heap(arguments.cells)
    console.print(heap_table(points))
    save(arguments, describe(), results=list(map(asdict, points)))
    return 0
