"""Plans of memory: tensors that are alive together share no byte, at any size."""

import numpy as np
import pytest

from relayc.pipelines.tir.memory import Tensor, align, plan
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
