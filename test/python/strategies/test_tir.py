"""How extents are cut: in tiles, in vectors, in loops that run in parallel."""

import pytest

from relayc.pipelines.emission.index import even_parts
from relayc.pipelines.te.read.graph import NotStructured
from relayc.pipelines.tir.values import nest, vectors
from relayc.symbolic import Range, Ranges, ceil_div, symbol


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
    def inside(start: int, size: int, count: int) -> tuple[int, int]:
        """Within [4, 19)."""
        return nest.tiles_inside(start - 4, start - 4 + size - 1, size, 15, count)

    def runs(extent: int, most: int, inside) -> list[tuple[int, int, int, bool]]:
        return [(run.start, run.size, run.count, run.is_inside) for run in nest.tile_runs(extent, most, inside)]

    assert runs(22, 4, inside) == [(0, 4, 1, False), (4, 4, 3, True), (16, 3, 1, True), (19, 3, 1, False)]
    assert runs(10, 5, lambda start, size, count: (0, count)) == [(0, 5, 2, True)]
    assert runs(10, 5, lambda start, size, count: (count, count)) == [(0, 5, 1, False), (5, 5, 1, False)]
    assert runs(0, 4, inside) == []
    assert len(runs(nest.MOST_EDGES, 1, lambda start, size, count: (count, count))) == nest.MOST_EDGES
    with pytest.raises(NotStructured, match="1025 tiles that a padding touches"):
        list(nest.tile_runs(nest.MOST_EDGES + 1, 1, lambda start, size, count: (count, count)))


@pytest.mark.parametrize("step", [-3, -1, 1, 2])
@pytest.mark.parametrize(("low", "high"), [(-5, -3), (0, 0), (7, 9)])
def test_tiles_inside_are_those_whose_indices_all_are(step, low, high):
    tiles = [low + k * step >= 0 and high + k * step < 8 for k in range(6)]
    first, end = nest.tiles_inside(low, high, step, 8, 6)
    assert tiles == [first <= k < end for k in range(6)]


@pytest.mark.parametrize(("extents", "wanted", "count"), [([2, 3, 4], 6, 2), ([2, 3, 4], 7, 3), ([8], 4, 1), ([1, 1], 4, 2), ([], 4, 0)])
def test_leading_loops_are_as_few_as_give_enough_iterations(extents, wanted, count):
    assert nest.leading(extents, wanted) == count


@pytest.mark.parametrize(("low", "high", "is_enough"), [(0, 4, False), (5, 9, True)])
def test_sizes_that_are_known_to_be_enough_need_no_branch(low, high, is_enough):
    taken = list[bool]()
    with Ranges({"n": Range(low, high)}):
        # Without a branch the evaluator has no scope of its own, and nothing is emitted.
        nest.at_least([(5, 5), (symbol("n"), 5)], None, lambda: taken.append(True), lambda: taken.append(False))
    assert taken == [is_enough]
