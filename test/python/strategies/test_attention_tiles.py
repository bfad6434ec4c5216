"""Numerics of bf16 attention on AMX tiles, emulated where the machine lacks them, against numpy in double precision."""

import re
from unittest.mock import Mock

import numpy as np
import pytest
from attention_reference import Case, attentions

import relayc
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.strategies.attention.tiles import _TileAttention
from relayc.runtime import num_threads, set_num_threads

TOLERANCE = 1e-2
"""Relative to the largest result: queries, weights and result are rounded to 8 bits, errors of which a row's sum averages out."""

CASES = [
    Case((1, 2, 2, 17, 13, 32, 16), dtype="bfloat16"),
    Case((1, 3, 3, 49, 49, 32, 32), mask=(1, 3, 49, 49), dtype="bfloat16"),
    Case((1, 2, 2, 128, 130, 64, 64), layout="BSHD", dtype="bfloat16"),
    Case((2, 4, 2, 33, 301, 64, 48), mask=(2, 1, 33, 301), layout="BSHD", dtype="bfloat16"),
    Case((1, 2, 2, 31, 64, 64, 32), layout="SHBD", dtype="bfloat16"),
    Case((1, 2, 1, 16, 50, 32, 64), layout="BHDS", dtype="bfloat16"),
    Case((2, 4, 2, 33, 301, 64, 16), mask=(33, 301), mask_dtype="bool", dtype="bfloat16"),
    Case((1, 1, 1, 300, 64, 64, 64), mask=(1, 1, 300, 64), attributes={"softcap": 5.0}, dtype="bfloat16"),
    *(Case((1, 2, 2, 70, 300, 64, 32), attributes={"is_causal": True, "causal_offset": c}, dtype="bfloat16") for c in (0, 5, 230)),
    Case((1, 2, 2, 70, 300, 64, 32), attributes={"is_causal": True, "causal_offset": -30, "nan_to_zero": True}, dtype="bfloat16"),
]
OTHERS = [
    Case((1, 2, 2, 33, 40, 40, 32), dtype="bfloat16"),
    Case((1, 2, 2, 33, 40, 32, 20), dtype="bfloat16"),
    Case((1, 2, 2, 2, 70, 64, 64), dtype="bfloat16"),
    Case((1, 1, 1, 33, 9000, 64, 64), dtype="bfloat16"),
    Case((1, 2, 2, 128, 130, 64, 64)),
]
"""Heads that are no multiple of a tile, few queries, more keys than the cache holds, f32."""

TARGET = Target("cpu", mcpu="sapphirerapids", emulate=True, num_threads=2)


def test_agrees_with_numpy_on_any_number_of_threads():
    mod, arrays = attentions(CASES)
    module = relayc.compile(mod, target=TARGET, cache=False, keep_ir=True)
    assert module.ir["tir"].count("x86.amx.tile_mulf") >= 2 * len(CASES)
    before, results = num_threads(), []
    try:
        for count in (1, 2):
            set_num_threads(count)
            results.append(module["main"](*arrays))
    finally:
        set_num_threads(before)
    for case, one, two in zip(CASES, *results, strict=True):
        expected = case.expected()
        assert one.tobytes() == two.tobytes()
        np.testing.assert_allclose(one.astype(np.float64), expected, rtol=0, atol=TOLERANCE * np.nanmax(np.abs(expected)))


@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_left_to_other_schedules(case):
    mod, _ = attentions([case])
    target = Target(TARGET, emulate=False)
    assert "x86.amx" not in str(relayc.compile(mod, target=target, cache=False, keep_ir=True).ir["tir"])


@pytest.mark.parametrize("wide", [None, 0, 1, 2])
def test_operands_that_are_not_rounded_are_left_to_other_schedules(wide):
    """A kernel of query, key and value, of which one is f32."""
    mod, _ = attentions([Case((1, 1, 1, 64, 64, 32, 32), dtype="bfloat16")])
    text = str(relayc.compile(mod, target=TARGET, cache=False, stop_after="te")).partition("func.func @main(")[0] + "}"
    if wide is not None:
        text = text.replace(f"%arg{wide}: tensor<1x1x64x32xbf16>", f"%arg{wide}: tensor<1x1x64x32xf32>", 1)
        before, use, after = text.partition(f"%arg{wide} :")
        conversion = re.search(r" *(%\d+) = arith.extf (%\w+) : bf16 to f32\n", after)
        after = after.replace("bf16", "f32", 2).replace(conversion[0], "", 1).replace(conversion[1], conversion[2], 1)
        text = before + use + after
    kernel = relayc.compile_kernel(text, TARGET, name="fused_attention")
    assert kernel.info.schedule.startswith("attention_tiles") == (wide is None)


def test_a_factor_of_the_queries_may_be_f32(monkeypatch):
    """Only the query is rounded to bf16 already: a number for each of its elements scales it."""
    mod, _ = attentions([Case((1, 1, 1, 64, 64, 32, 32), dtype="bfloat16")])
    text = str(relayc.compile(mod, target=TARGET, cache=False, stop_after="te")).partition("func.func @main(")[0] + "}"
    text = re.sub(r", relay.input_dtypes = \[.*?\]|relay.input_dtypes = \[.*?\], ", "", text)
    text = text.replace("%arg2: tensor<1x1x64x32xbf16>)", "%arg2: tensor<1x1x64x32xbf16>, %arg3: tensor<1x1x64x32xf32>)", 1)
    before, _, after = text.partition("indexing_maps = [#map, #map]")
    after = after.replace("ins(%arg0 : tensor<1x1x64x32xbf16>)", "ins(%arg0, %arg3 : tensor<1x1x64x32xbf16>, tensor<1x1x64x32xf32>)", 1)
    after = after.replace("%in: bf16, %out: f32", "%in: bf16, %factor: f32, %out: f32", 1)
    after = re.sub(r"(arith.mulf %\d+), %cst\w*", r"\1, %factor", after, count=1)
    monkeypatch.setattr(_TileAttention, "emit", Mock(side_effect=RuntimeError("attention on tiles")))
    with pytest.raises(RuntimeError, match="attention on tiles"):
        relayc.compile_kernel(f"{before}indexing_maps = [#map, #map, #map]{after}", TARGET, name="fused_attention")


@pytest.mark.parametrize(("queries", "tiles", "row_tiles", "blocks"), [(16, 1, 1, 1), (32, 2, 2, 1), (80, 5, 2, 3), (129, 9, 2, 5)])
def test_a_block_of_queries_is_two_tiles(queries, tiles, row_tiles, blocks, monkeypatch):
    """Four of the eight tile registers are for sums: two rows of two tiles."""
    found = []
    emit = _TileAttention.emit
    monkeypatch.setattr(_TileAttention, "emit", lambda self, tuning: (found.append(self), emit(self, tuning))[1])
    mod, _ = attentions([Case((1, 1, 1, queries, 64, 32, 32), dtype="bfloat16")])
    relayc.compile(mod, target=TARGET, cache=False, stop_after="tir")
    assert [(e.tiles, e.row_tiles, e.query_blocks) for e in found] == [(tiles, row_tiles, blocks)]
