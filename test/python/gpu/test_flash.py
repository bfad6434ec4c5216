"""Attention on GPUs, emulated, over awkward shapes, masks and caches, against numpy in double precision."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attention_reference import Case, attentions, growing_cache

import relayc
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.gpu.passes import CHECK_RACES

# Scores of up to 10 err by some units of 1e-6, and so do weights and context; 16-bit inputs are exact, their result is rounded once.
TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "float16": 1e-3, "bfloat16": 1e-2}
SMALL = {"schedule.flash.warps": 2, "schedule.flash.rows": 2}
"""Blocks of few rows: several of them, and short code."""

SHAPES = [
    Case((1, 2, 2, 17, 7, 32, 32)),
    Case((2, 4, 2, 33, 1, 12, 20), mask=(33, 1), layout="BSHD"),
    Case((1, 1, 1, 9, 129, 128, 128), mask=(1, 1, 1, 129)),
    Case((1, 2, 2, 31, 70, 80, 36), layout="SHBD"),
    Case((1, 2, 1, 16, 17, 3, 5), layout="BHDS"),
]
FEW_QUERIES = [
    Case((1, 8, 2, 1, 300, 64, 64), layout="BSHD"),
    Case((2, 2, 2, 3, 130, 16, 24), mask=(2, 1, 3, 130)),
    Case((1, 4, 4, 1, 1, 5, 7)),
    Case((1, 8, 1, 1, 77, 80, 80), mask=(1, 8, 1, 77)),
    Case((1, 4, 2, 2, 77, 32, 32), attributes={"is_causal": True, "causal_offset": 60}),
]
MASKS = [
    Case((2, 4, 2, 19, 50, 12, 20), mask=(2, 4, 19, 50), mask_dtype="bool", attributes={"mask_value": -5.0}),
    Case((1, 2, 2, 20, 20, 16, 16), mask=(1, 1, 1, 20), mask_dtype="bool", attributes={"softcap": 3.0}),
    Case((1, 4, 2, 17, 100, 32, 32), attributes={"is_causal": True, "causal_offset": 60}),
    Case((1, 2, 2, 40, 60, 32, 32), attributes={"is_causal": True, "causal_offset": -30, "nan_to_zero": True}),
]
OTHERS = [
    Case((1, 2, 2, 17, 40, 40, 24), mask=(17, 40), layout="BSHD", dtype="bfloat16"),
    Case((1, 2, 2, 2, 70, 24, 24), layout="BSHD", dtype="float16"),
    Case((1, 2, 2, 9, 40, 20, 20), mask=(9, 40), dtype="float64"),
]


def emulated(mod: IRModule, config: dict[str, Any], arch: str = "sm_80") -> Any:
    with PassContext(config={"schedule.kernels": {"*": {"strategy": "flash"}}, **config}):
        return relayc.compile(mod, target=Target("cuda", arch=arch, emulate=True, num_threads=1))["main"]


def check(cases: Sequence[Case], config: dict[str, Any]) -> None:
    mod, arrays = attentions(cases)
    found = emulated(mod, config)(*arrays)
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    for case, result in zip(cases, found, strict=True):
        close(result, case)


def close(found: np.ndarray, case: Case) -> None:
    expected = case.expected()
    assert found.shape == expected.shape
    # Rows that see no key are NaN on both sides.
    tolerance = TOLERANCE[case.dtype] * np.nanmax(np.abs(expected), initial=0)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("cases", "config"),
    [
        (SHAPES, SMALL),
        (FEW_QUERIES, {"schedule.flash.splits": 3, "schedule.flash.split_warps": 2, "schedule.flash.split_keys": 2}),
        (MASKS, SMALL),
        (OTHERS, SMALL),
        ([Case((1, 2, 1, 129, 129, 64, 64), attributes={"is_causal": True})], {}),
        # Numbers whose exponentials are no floats.
        ([Case((1, 40, 1, 1, 70, 16, 16), attributes={"scale": 20.0})], {**SMALL, "schedule.flash.keys": 64}),
    ],
    ids=["shapes", "few", "masks", "dtypes", "defaults", "large scores"],
)
def test_agrees_with_numpy(cases: list[Case], config: dict[str, Any]) -> None:
    check(cases, config)


@pytest.mark.parametrize(
    ("case", "config"),
    [
        (Case((1, 2, 1, 17, 40, 16, 16)), SMALL),
        (Case((1, 4, 2, 1, 100, 16, 16)), {"schedule.flash.splits": 2, "schedule.flash.split_warps": 2}),
    ],
    ids=["blocks", "splits"],
)
def test_threads_meet_between_uses_of_shared_memory(case: Case, config: dict[str, Any]) -> None:
    check([case], {**config, CHECK_RACES: True})


def test_rows_of_a_split_stay_in_registers() -> None:
    """A lane of 32 has 8 vectors of 4 of the 1024 elements of a query, or 9; there are 128 elements for all rows."""
    for depth, rows in ((1024, 4), (1028, 3)):
        mod, _ = attentions([Case((1, 1, 1, 4, 300, depth, 16))])
        module = relayc.compile(mod, target=Target("cuda", arch="sm_75", num_threads=1), stop_after="tir")
        (kernel,) = module.kernels
        assert kernel.schedule.split()[0] == "flash" and f"split_rows={rows}" in kernel.schedule.split()


def test_threads_behind_the_results_of_splits_are_at_the_last_one() -> None:
    """Of 3 rows of 20 elements: the partial results in memory that they read are those of elements that there are."""
    mod, _ = attentions([Case((1, 1, 1, 3, 300, 16, 20))])
    module = relayc.compile(mod, target=Target("cuda", arch="sm_75", num_threads=1), stop_after="tir")
    assert "%c59 = arith.constant 59 : index" in str(module) and re.search(r"arith\.minsi %\w+, %c59 : index", str(module))


@pytest.mark.parametrize(("depth", "is_taken"), [(256, True), (1024, False)])
def test_heads_that_no_block_has_room_for_are_left_to_other_schedules(depth: int, is_taken: bool) -> None:
    """A block of 32 keys has 32 or 128 KiB of them in shared memory, which has 64 KiB."""
    mod, _ = attentions([Case((1, 1, 1, 9, 9, depth, 16))])
    module = relayc.compile(mod, target=Target("cuda", arch="sm_75", num_threads=1), stop_after="tir")
    assert ("flash" in {kernel.schedule.split()[0] for kernel in module.kernels}) is is_taken


def test_arrays_that_begin_in_between() -> None:
    """Not at a multiple of what a thread loads at once."""
    case = Case((1, 2, 1, 17, 40, 16, 16))
    mod, arrays = attentions([case])
    moved = []
    for array in arrays:
        memory = np.empty(array.nbytes + 64, np.uint8)
        first = -memory.ctypes.data % 64 + 4
        moved.append(memory[first : first + array.nbytes].view(array.dtype).reshape(array.shape))
        moved[-1][...] = array
        assert moved[-1].ctypes.data % 16
    close(emulated(mod, SMALL)(*moved), case)


def test_one_program_for_all_numbers_of_queries_and_keys() -> None:
    """A cache that grows; few queries take another way."""
    main = emulated(growing_cache(4, 2, "f32"), {**SMALL, "schedule.flash.splits": 2})
    for rows, keys in ((1, 1), (1, 129), (4, 40), (5, 5), (17, 70), (0, 3)):
        case = Case((1, 4, 2, rows, keys, 16, 16), attributes={"is_causal": True, "causal_offset": keys - rows})
        close(main(*case.arrays()), case)
    nothing = [np.zeros((1, h, n, 16), np.float32) for h, n in ((4, 3), (2, 0), (2, 0))]
    np.testing.assert_array_equal(main(*nothing), np.zeros((1, 4, 3, 16), np.float32))
