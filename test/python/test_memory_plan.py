"""Plans of memory: tensors that are alive together share no byte, at any size."""

import numpy as np
import pytest

from relayc.pipelines.tir import memory
from relayc.pipelines.tir.memory import Tensor, _cases, _Known, _place_in_slots, align, plan
from relayc.symbolic import Range, Ranges, evaluate, expressions, maximum, minimum, symbol

NAMES = "nmk"
RANGES = Ranges({name: Range(0, 5000) for name in NAMES})


def random_size(rng: np.random.Generator, depth: int):
    """An expression of bytes that is not negative."""
    if depth == 0:
        return int(rng.integers(1, 300)) * symbol(rng.choice(list(NAMES)))
    a, b = random_size(rng, depth - 1), random_size(rng, depth - 1)
    return [lambda: a + b, lambda: maximum(a, b), lambda: minimum(a, b), lambda: maximum(a - b, 0), lambda: a // 3 + 1, lambda: a][
        rng.integers(6)
    ]()


def random_tensors(rng: np.random.Generator, count: int, depth: int) -> list[Tensor]:
    sizes = [random_size(rng, depth) for _ in range(max(count // 3, 1))]
    firsts = rng.integers(0, 2 * count, count)
    return [Tensor(sizes[rng.integers(len(sizes))], int(first), int(first + rng.integers(0, 8))) for first in firsts]


def check(tensors: list[Tensor], arena, values: dict[str, int]) -> int:
    """No two tensors that are alive together share a byte; returns the bytes that are alive together at most."""
    spans = [(evaluate(t.offset, values), evaluate(t.offset, values) + evaluate(t.size, values)) for t in tensors]
    total = evaluate(arena, values)
    for i, (t, (low, high)) in enumerate(zip(tensors, spans, strict=True)):
        assert low % align(1) == 0
        assert 0 <= low <= high <= total
        for other, (begin, end) in list(zip(tensors, spans, strict=True))[:i]:
            if t.first <= other.last and other.first <= t.last:
                assert high <= begin or end <= low or low == high or begin == end
    return max(sum(align(evaluate(t.size, values)) for t in tensors if t.first <= step <= t.last) for step in {t.first for t in tensors})


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("count", "depth"), [(6, 0), (20, 1), (40, 3)])
@pytest.mark.parametrize("most_depth", [expressions.MOST_DEPTH, 1], ids=["gaps", "slots"])
def test_tensors_that_are_alive_together_share_no_byte(monkeypatch, seed, count, depth, most_depth):
    # Offsets that are long give way to slots: here all that are a maximum of sums.
    monkeypatch.setattr(expressions, "MOST_DEPTH", most_depth)
    rng = np.random.default_rng(seed)
    with RANGES:
        tensors = random_tensors(rng, count, depth)
        arena = plan(tensors)
        for _ in range(20):
            check(tensors, arena, {name: int(rng.choice([0, 1, 63, 64, 65, 1025, 5000, rng.integers(5000)])) for name in NAMES})


@pytest.mark.parametrize("most_depth", [expressions.MOST_DEPTH, 1], ids=["gaps", "slots"])
def test_an_arena_is_near_what_is_alive_together(monkeypatch, most_depth):
    # Sizes of 7 symbols of which none is proved to be larger.
    monkeypatch.setattr(expressions, "MOST_DEPTH", most_depth)
    names = [f"s{i}" for i in range(7)]
    with Ranges({name: Range(1, 4096, 100 + 17 * i) for i, name in enumerate(names)}) as known:
        tensors = [Tensor(4 * symbol(names[3 * i % 7]) * symbol(names[i % 4]), i, i + 3) for i in range(60)]
        arena = plan(tensors)
        typical = {name: known.of(name).typical for name in names}
        assert evaluate(arena, typical) < 2 * check(tensors, arena, typical)
        rng = np.random.default_rng(0)
        for _ in range(5):
            check(tensors, arena, {name: int(rng.integers(1, 4097)) for name in names})


def test_plans_of_other_cases_are_tried_until_one_is_close_in_all_cases(monkeypatch):
    tried = []
    place = memory._place_for
    monkeypatch.setattr(memory, "_place_for", lambda tensors, known, case: tried.append(case) or place(tensors, known, case))
    n, m = symbol("n"), symbol("m")
    with Ranges({"n": Range(0, 100, 20), "m": Range(0, 100, 20)}):
        monkeypatch.setattr(memory, "_CLOSE", 1.0)  # as near as the plan of one size
        plan([Tensor(64 * n, 0, 1), Tensor(64 * n, 1, 2)])
        assert tried == [0]
        # The first plan is the best one of typical sizes, but takes a tenth more where m is large and n small.
        plan([Tensor(size, *live) for size, live in ((64 * n, (3, 4)), (64 * n, (0, 1)), (192 * n, (0, 0)), (64 * m, (1, 3)))])
        assert tried[1:3] == [0, 1]


def test_a_tensor_is_where_it_just_fits():
    """Below the second tensor are 320 bytes that the first one no longer needs; the last tensor ends where the second one begins."""
    tensors = [Tensor(320, 0, 0), Tensor(256, 0, 5), Tensor(192, 1, 5), Tensor(128, 1, 5)]
    assert plan(tensors) == 576 and [t.offset for t in tensors] == [0, 320, 0, 192]
    tensors = [Tensor(64, 0, 1), Tensor(128, 1, 2), Tensor(1, 2, 2), Tensor(64, 3, 3)]
    assert plan(tensors) == 192 and [t.offset for t in tensors] == [128, 0, 128, 0]


def test_plans_are_for_typical_small_and_large_sizes():
    n, m = symbol("n"), symbol("m")
    with Ranges({"n": Range(0, 100, 20), "m": Range(4, 5000, 50)}):
        found = [(case["m"], case["n"]) for case in _cases([Tensor(n * m, 0, 0)])]
    assert found == [(50, 20), (4, 1), (400, 100), (4, 20), (400, 1), (50, 1), (4, 100)]
    with Ranges({"n": Range(0, 100, 0)}):
        assert _cases([Tensor(n, 0, 0)]) == [{"n": 0}, {"n": 1}, {"n": 8}]


def test_plans_may_have_cases_without_bytes():
    n = symbol("n")
    with Ranges({"n": Range(0, 100, 0)}):
        assert plan([Tensor(64 * n, 0, 1), Tensor(64 * n, 1, 2)]) == 128 * n


def test_a_tensor_has_the_slot_whose_size_stays_simple():
    n, m = symbol("n"), symbol("m")
    with Ranges({"n": Range(0, 100), "m": Range(0, 100)}):
        tensors = [Tensor(64 * n, 0, 1), Tensor(64 * m, 1, 1), Tensor(64 * n, 2, 2), Tensor(64 * m, 2, 2)]
        assert _place_in_slots(tensors, _Known(_cases(tensors)), 0) == 64 * (n + m)


def test_a_size_is_at_most_itself():
    n = symbol("n")
    known = _Known([{"n": 4}, {"n": 8}])
    assert known.at_most(n, n) and known.at_most(n, n + 1) and not known.at_most(n + 1, n) and not known.at_most(n, 4)
