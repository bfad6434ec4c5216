"""What each rule of a graph pass does, by the table rewrites.txt: the results are as they say there, and mean what they did before."""

import re
from importlib import import_module
from pathlib import Path

import pytest
from rewrites import Case, cases_of, program_of, rewritten, texts_of

from relayc.pipelines import find_pass


@pytest.mark.parametrize("case", cases_of(Path(__file__).parent / "rewrites.txt"), ids=str)
def test_results_are_rewritten_as_the_table_says(case: Case) -> None:
    assert case.found() == case.after


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((1, 1, 1), [3]),
        ((21, 21, 21), [63]),
        ((22, 21, 21), [64]),
        ((64,), [64]),
        ((22, 22, 21), [64, 2]),
        ((22, 22, 22), [64, 2, 2]),
        ((43, 43, 43), [43, 43, 43, 3]),  # three in place of three are no gain
        ((32, 32, 32, 32), [64, 64, 2]),
        ((43, 43, 43, 43), [64, 64, 44, 3]),
        ((33, 32), [33, 32, 2]),
    ],
)
def test_concatenations_that_become_one_have_at_most_64_parts(counts: tuple[int, ...], expected: list[int]) -> None:
    inner = ", ".join(f"concatenate({', '.join(['x'] * count)}, axis=0)" for count in counts)
    (found,) = rewritten("x:1x2", f"concatenate({inner}, axis=0)", "SimplifyExpr")
    sizes, pending = list[int](), [0]
    for part in re.findall(r"concatenate\(|\)|x", found):
        if part == ")":
            sizes.append(pending.pop())
        else:
            pending[-1] += 1
            pending += [0] if part != "x" else []
    assert sizes == expected


@pytest.mark.parametrize(("count", "is_slice"), [(1 << 16, True), ((1 << 16) + 1, False)])
def test_constants_of_so_many_indices_are_looked_at(count: int, is_slice: bool) -> None:
    mod = program_of("x:70000", f"take(x, const({list(range(1, count + 1))}, 'int64'), axis=0)")
    (found,) = texts_of(find_pass("SimplifyExpr")(mod), "x:70000")
    assert found == (f"strided_slice(x, begin=(1,), end=({count + 1},), axes=(0,))" if is_slice else f"take(x, const(({count},)), axis=0)")


@pytest.mark.parametrize(("count", "is_norm"), [(3, True), (4, False)])
def test_a_scale_of_ones_has_so_many_elements_at_most(monkeypatch: pytest.MonkeyPatch, count: int, is_norm: bool) -> None:
    monkeypatch.setattr(import_module("relayc.pipelines.graph.recognize_patterns"), "_MOST_CHANNELS", 3)
    (found,) = rewritten(f"x:{count}", "x * rsqrt(mean(x * x, axis=(0,), keepdims=True) + 0.5)", "RecognizePatterns")
    assert ("nn_rms_norm" in found) is is_norm
