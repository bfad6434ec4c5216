"""The measurement of cells."""

from relayc.bench.heap import heap_table, measure_heap


def test_lists_are_measured():
    (point,) = measure_heap([2000], rounds=1)
    assert point.cells == 2000 and min(point.first, point.construct, point.walk, point.drop) > 0 and abs(point.left) < 20_000
    assert heap_table([point]).row_count == 1
