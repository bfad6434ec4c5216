"""Attention with symbolic sizes: one kernel, compiled once, at many sizes against numpy in double precision."""

from dataclasses import replace

import numpy as np
import pytest
from symbolic_attention import AVX2, CAUSAL, NARROW, NATIVE, TILES, Symbolic, compare_at
from symbolic_kernels import SymbolicKernel, with_sizes

import relayc
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.target import Target
from relayc.runtime.cpu.tiles import request_tiles, tiles_supported


def check(symbolic: Symbolic, target: Target = NATIVE, strategy: str = "attention_") -> SymbolicKernel:
    """Compiles once and calls at all sizes."""
    kernel = SymbolicKernel(symbolic.text(), target)
    assert kernel.schedule.startswith(strategy), kernel.schedule
    if kernel.scheduled.uses_tiles and not target.emulate:
        request_tiles()
    for sizes in symbolic.sizes:
        compare_at(kernel, symbolic, sizes)
    return kernel


QUERIES = (0, 1, 2, 3, 4, 7, 8, 9, 11, 13, 15, 16, 17, 29, 31, 32, 33, 47, 64, 65, 97, 127, 129, 211, 300)
"""Around 8, 16 and 32, where versions end; primes; more than a block of keys."""
SELF = [{"b": 1 + n % 2, "n": n} for n in QUERIES] + [{"b": 0, "n": 7}, {"b": 5, "n": 20}]
CROSS = [{"n": n, "m": m} for n, m in ((0, 5), (5, 0), (20, 0), (1, 1), (3, 40), (9, 1), (17, 2), (40, 6), (33, 7), (16, 8), (50, 13))]
CROSS += [{"n": n, "m": m} for n, m in ((12, 14), (20, 15), (33, 16), (18, 21), (18, 22), (2, 700), (35, 182), (35, 183), (40, 500))]
CACHE = [{"n": n, "past": p} for n, p in ((1, 0), (1, 1), (1, 16), (1, 127), (1, 700), (2, 5), (5, 30), (8, 9), (9, 0), (16, 0))]
CACHE += [{"n": n, "past": p} for n, p in ((13, 50), (17, 0), (16, 201), (31, 33), (64, 0), (65, 14), (130, 70), (0, 9))]

BOTH = Symbolic(("b", "3", "3", "n", "n", "32", "32"), SELF, layout="BSHD")
CASES = {
    "self": BOTH,
    "key mask": replace(BOTH, mask=("b", "1", "1", "n")),
    "full mask": replace(BOTH, mask=("b", "3", "n", "n"), layout="BHSD"),
    "flags": replace(BOTH, mask=("n", "n"), mask_dtype="bool"),
    "softcap": replace(BOTH, mask=("b", "1", "1", "n"), mask_dtype="bool", attributes={"softcap": 5.0}),
    "keys last": replace(BOTH, layout="BHDS"),
    "causal": replace(BOTH, attributes={"is_causal": True}),
    "cross": Symbolic(("1", "4", "2", "n", "m", "16", "24"), CROSS),
    "cross mask": Symbolic(("1", "4", "2", "n", "m", "16", "24"), CROSS, mask=("1", "4", "n", "m"), attributes={"nan_to_zero": True}),
    "odd heads": Symbolic(("1", "2", "2", "n", "m", "12", "5"), CROSS, layout="SHBD"),
    "cache": Symbolic(("1", "8", "2", "n", "n + past", "32", "32"), CACHE, attributes=CAUSAL),
    "cache mask": Symbolic(("1", "4", "4", "n", "n + past", "32", "32"), CACHE, mask=("1", "1", "n", "n + past"), attributes=CAUSAL),
    "many heads a key": Symbolic(("1", "20", "1", "n", "n + past", "16", "16"), CACHE, attributes=CAUSAL),
    "one query": Symbolic(
        ("1", "8", "2", "1", "past + 1", "32", "32"), [{"past": p} for p in (0, 1, 15, 16, 17, 200, 2100)], layout="BSHD"
    ),
    "odd head": Symbolic(("1", "2", "2", "1", "m", "5", "7"), [{"m": m} for m in (0, 1, 9, 2100)]),
    "many queries": Symbolic(("1", "2", "2", "40", "m", "32", "32"), [{"m": m} for m in (1, 13, 14, 15, 50, 182, 400)], mask=("40", "m")),
    "some keys": Symbolic(("1", "2", "2", "n", "77", "32", "32"), [{"n": n} for n in QUERIES]),
    "few at most": replace(BOTH, sizes=[{"b": 1, "n": n} for n in range(9)], ranges="n = array<i64: 0, 8, 4>"),
    "many at least": replace(BOTH, sizes=[{"b": 1, "n": n} for n in (20, 33, 64)], ranges="n = array<i64: 20, 64, 32>"),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_numpy(name: str) -> None:
    check(CASES[name])


@pytest.mark.parametrize("target", [AVX2, NARROW], ids=["avx2", "narrow"])
@pytest.mark.parametrize("name", ["key mask", "full mask", "flags", "cross mask", "cache"])
def test_vectors_of_other_widths(name: str, target: Target) -> None:
    check(CASES[name], target)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
@pytest.mark.parametrize("name", ["key mask", "cross", "cache"])
def test_other_element_types(name: str, dtype: str) -> None:
    target = Target(NATIVE, features="-amx-tile") if dtype == "bfloat16" else NATIVE
    check(replace(CASES[name], dtype=dtype), target)


HALF = replace(BOTH, dtype="bfloat16")
ON_TILES = {
    "self": HALF,
    "full mask": replace(HALF, mask=("b", "3", "n", "n"), layout="BHSD"),
    "flags": replace(HALF, mask=("b", "1", "1", "n"), mask_dtype="bool", attributes={"softcap": 5.0}),
    "causal": replace(HALF, attributes={"is_causal": True}),
    "cross": Symbolic(("1", "4", "2", "n", "m", "32", "48"), CROSS, dtype="bfloat16"),
    "cache": replace(CASES["cache"], dtype="bfloat16"),
    "many queries": replace(CASES["many queries"], dtype="bfloat16"),
    "some keys": replace(CASES["some keys"], dtype="bfloat16"),
    "more keys than fit": Symbolic(
        ("1", "1", "1", "n", "m", "64", "64"), [{"n": n, "m": m} for n in (1, 9, 20) for m in (100, 2336, 2400)], dtype="bfloat16"
    ),
}


@pytest.mark.parametrize("name", ON_TILES)
def test_tiles_agree_with_numpy(name: str) -> None:
    kernel = check(ON_TILES[name], TILES, "attention_tiles")
    assert "x86.amx.tile_mulf" in kernel.tir


def test_tiles_of_a_known_number_of_queries_and_more_keys_than_fit() -> None:
    symbolic = Symbolic(("1", "1", "1", "17", "m", "64", "64"), [{"m": m} for m in (100, 4000)], dtype="bfloat16")
    check(symbolic, TILES, "attention_tiles")


@pytest.mark.skipif(not tiles_supported(), reason="AMX")
@pytest.mark.parametrize("name", ["self", "cache"])
def test_tiles_of_this_machine(name: str) -> None:
    check(ON_TILES[name], Target(NATIVE, mcpu="sapphirerapids"), "attention_tiles")


@pytest.mark.parametrize("name", ["key mask", "cache"])
def test_a_static_kernel_gives_nearly_the_same(name: str) -> None:
    """Sums are in the same order but for where blocks of keys end and how rows are grouped."""
    symbolic = CASES[name]
    kernel = SymbolicKernel(symbolic.text(), NATIVE)
    for sizes in symbolic.sizes[10:14]:
        arrays = symbolic.at(sizes).arrays()
        text = symbolic.text().replace('causal_offset = "past"', f"causal_offset = {sizes.get('past', 0)} : i64")
        (static,), (found,) = SymbolicKernel(with_sizes(text, sizes), NATIVE)({}, arrays), kernel(sizes, arrays)
        np.testing.assert_allclose(found, static, rtol=0, atol=1e-5 * np.abs(static).max())


def test_a_module_of_any_size() -> None:
    """From relay text through the runtime, on one thread and two."""
    symbolic = CASES["key mask"]
    module = relayc.compile(IRModule.parse(symbolic.text()), NATIVE, cache=False)
    for sizes in ({"b": 2, "n": 5}, {"b": 1, "n": 40}):
        case = symbolic.at(sizes)
        unused = [np.zeros(sizes[name], np.float32) for name in ("b", "n")]
        results = []
        for module.num_threads in (1, 2):
            results.append(np.array(module["main"](*case.arrays(), *unused), copy=True))
        np.testing.assert_array_equal(*results)
        np.testing.assert_allclose(results[0], case.expected(), rtol=0, atol=1e-5 * np.abs(case.expected()).max())
