"""How extents are cut: in tiles, in vectors, in loops that run in parallel."""

import pytest

from relayc.pipelines.kernel.index import ceil_div, even_parts
from relayc.pipelines.tir import nest, vectors


@pytest.mark.parametrize(("a", "b", "quotient"), [(0, 3, 0), (1, 3, 1), (3, 3, 1), (4, 3, 2), (-4, 3, -1)])
def test_quotients_are_rounded_up(a, b, quotient):
    assert ceil_div(a, b) == quotient


@pytest.mark.parametrize("extent", range(1, 40))
@pytest.mark.parametrize("most", [1, 4, 7])
def test_parts_are_even_and_as_few_as_they_can_be(extent, most):
    parts = even_parts(extent, most)
    assert sum(parts) == extent and len(parts) == ceil_div(extent, most)
    assert parts == sorted(parts, reverse=True) and parts[0] - parts[-1] <= 1


@pytest.mark.parametrize("count", range(70))
def test_vectors_cover_elements_without_a_gap(count):
    pieces = vectors.pieces(count, 16)
    assert [start for start, _ in pieces] == [sum(lanes for _, lanes in pieces[:i]) for i in range(len(pieces))]
    assert sum(lanes for _, lanes in pieces) == count
    assert [lanes for _, lanes in pieces[: count // 16]] == [16] * (count // 16)
    left = [lanes for _, lanes in pieces[count // 16 :]]
    assert left == sorted(set(left), reverse=True)  # each half of an earlier one, once


def test_equal_tiles_are_one_run_where_all_of_them_are_inside():
    def inside(start: int, size: int) -> bool:
        return start >= 4 and start + size <= 19

    assert list(nest.tile_runs([4, 4, 4, 4, 3, 3], inside)) == [(0, 4, 1), (4, 4, 3), (16, 3, 1), (19, 3, 1)]
    assert list(nest.tile_runs([5, 5], lambda start, size: True)) == [(0, 5, 2)]
    assert list(nest.tile_runs([5, 5], lambda start, size: False)) == [(0, 5, 1), (5, 5, 1)]
    assert list(nest.tile_runs([], inside)) == []


@pytest.mark.parametrize(("extents", "wanted", "count"), [([2, 3, 4], 6, 2), ([2, 3, 4], 7, 3), ([8], 4, 1), ([1, 1], 4, 2), ([], 4, 0)])
def test_leading_loops_are_as_few_as_give_enough_iterations(extents, wanted, count):
    assert nest.leading(extents, wanted) == count
