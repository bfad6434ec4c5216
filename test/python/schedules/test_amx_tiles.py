"""Products on AMX tiles by tensorize, emulated where the machine lacks them: whole tiles, and rows, columns and steps that none divides."""

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from schedules.lowered import arrays, check_product, compiled

from relayc import te
from relayc.bench.written_kernels import amx_tiles, product_of_bf16
from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.tir.lower.function import lower_function
from relayc.tir import Schedule, ScheduleError

EMULATED = Target("cpu", mcpu="sapphirerapids", emulate=True, num_threads=2)
TARGETS = {"emulated": EMULATED} | ({"machine": Target("cpu", num_threads=2)} if Target("cpu").has("amx-bf16") else {})


def plain(rows: Any, columns: int, depth: int) -> Any:
    """C = A B of bf16, which is the result."""
    a, b = te.placeholder((rows, depth), "bfloat16", name="A"), te.placeholder((depth, columns), "bfloat16", name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k), name="C")
    return te.create_prim_func([a, b, c])


def in_place(rows: int, columns: int, steps: int | None = None, given: str = "B") -> Callable[[Schedule], None]:
    """Sums that are stored to the result, and added to what is there where the steps are in parts."""

    def schedule(s: Schedule) -> None:
        s.transform_layout("C", ("read", given), lambda k, j: [j // 16, k // 2, j % 16, k % 2], pad_value=0.0)
        i, j, k = s.get_loops("C")
        i0, i1 = s.split(i, [None, rows])
        j0, *tile = s.split(j, [None, columns // 16, 16])
        *k0, k1, k2 = s.split(k, [None, steps // 2, 2] if steps else [None, 2])
        s.reorder(i0, j0, *k0, i1, *tile, k1, k2)
        s.tensorize(i1, f"dot_amx_{rows}x{columns}")

    return schedule


SCHEDULES = {
    "2x2 tiles": (product_of_bf16, amx_tiles(32, 32, False)),
    "a row of tiles": (product_of_bf16, amx_tiles(16, 64, True)),
    "tiles of 15 rows": (product_of_bf16, amx_tiles(30, 32, True)),
    "in place": (plain, in_place(32, 32)),
    "in parts": (plain, in_place(48, 16, 32)),
    "in parts that are no steps": (plain, in_place(32, 32, 40)),
}


def check(kernel: Any, rows: int, b: np.ndarray, bias: np.ndarray | None) -> None:
    (a,) = (v.astype(ml_dtypes.bfloat16) for v in arrays((rows, len(b))))
    check_product(kernel(*([a] if bias is None else [a, bias])), a, b, bias)


def made(name: str, rows: Any, columns: int, depth: int, target: Target) -> tuple[Any, np.ndarray, np.ndarray | None]:
    module, schedule = SCHEDULES[name]
    b, bias = arrays((depth, columns), (columns,))
    b = b.astype(ml_dtypes.bfloat16)
    return compiled(module(rows, columns, depth), schedule, params={1: b}, target=target), b, bias if module is product_of_bf16 else None


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("shape", [(96, 64, 64), (37, 52, 77)], ids=str)
def test_products(name: str, shape: tuple[int, int, int], target: str) -> None:
    kernel, b, bias = made(name, *shape, TARGETS[target])
    check(kernel, shape[0], b, bias)


def test_products_of_less_than_a_tile() -> None:
    for name in ("2x2 tiles", "in parts that are no steps"):
        kernel, b, bias = made(name, 5, 20, 19, EMULATED)
        check(kernel, 5, b, bias)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["2x2 tiles", "in parts"])
def test_rows_that_a_call_says(name: str, target: str) -> None:
    kernel, b, bias = made(name, te.size_var("n"), 40, 70, TARGETS[target])
    for rows in (0, 1, 16, 17, 31, 33, 64):
        check(kernel, rows, b, bias)


def test_errors() -> None:
    for target, layout, name, message in (
        ("cpu -mcpu=x86-64-v4", 16, "dot_amx_32x32", "dot_amx_32x32: expected a target with amx-tile and amx-bf16, found cpu"),
        (EMULATED, 1, "dot_amx_32x32", "B: expected that its last dimension is contiguous in B"),
        (EMULATED, 16, "dot_amx_40x32", "dot_amx_40x32: expected at most 4 tiles of 16 columns, of the same rows, at most 16"),
        (EMULATED, 16, "dot_amx_16x32", "loop i: expected an extent of 16, found 32"),
    ):

        def schedule(s: Schedule) -> None:
            if layout != 1:  # noqa: B023
                s.transform_layout("C", ("read", "B"), lambda k, j: [j // 16, k // 2, j % 16, k % 2])
            _, j, k = s.get_loops("C")
            s.split(j, [2, 16])
            s.split(k, [None, 2])
            s.tensorize("i", name)  # noqa: B023

        with pytest.raises(ScheduleError, match=message):
            compiled(plain(32, 32, 64), schedule, params={1: np.zeros((64, 32), ml_dtypes.bfloat16)}, target=target)


def test_tiles_start_at_zero_and_need_permission() -> None:
    """Sums are not written as zeros to memory first, and a process asks for the tile registers."""
    s = Schedule(plain(32, 32, 64))
    s.cache_read("C", 1, "global")
    in_place(32, 32, given="B_global")(s)
    with s.mod.context, ir.Location.unknown(), ir.InsertionPoint((made := ir.Module.create()).body):
        scheduled = lower_function(s.nest, EMULATED)
    assert scheduled.uses_tiles and "amx.tile_zero" in str(made) and not re.search("(vector|memref).store %cst", str(made)), made


def test_pairs_that_lie_apart() -> None:
    def schedule(s: Schedule) -> None:
        s.cache_read("C", 0, "global")
        s.transform_layout("C", ("read", 0), lambda i, k: [k // 2, i, k % 2])
        s.transform_layout("C", ("read", "B"), lambda k, j: [j // 16, k // 2, j % 16, k % 2])
        _, j, k = s.get_loops("C")
        s.split(j, [2, 16])
        s.split(k, [None, 2])
        s.tensorize("i", "dot_amx_32x32")

    with pytest.raises(ScheduleError, match="dot_amx_32x32: A: expected pairs side by side, found them 64 elements apart"):
        compiled(plain(32, 32, 64), schedule, params={1: np.zeros((64, 32), ml_dtypes.bfloat16)}, target=EMULATED)


def test_columns_without_room() -> None:
    """Panels of 10 columns are no tiles of 16."""

    def schedule(s: Schedule) -> None:
        s.transform_layout("C", ("read", "B"), lambda k, j: [k // 2, j, k % 2])
        s.split(s.get_loops("C")[2], [None, 2])
        s.split(s.get_loops("C")[1], [None, 16])
        s.tensorize("i", "dot_amx_32x16")

    with pytest.raises(ScheduleError, match="dot_amx_32x16: B: expected room for 1 tiles of 16 columns, found 10"):
        compiled(plain(32, 10, 64), schedule, params={1: np.zeros((64, 10), ml_dtypes.bfloat16)}, target=EMULATED)
