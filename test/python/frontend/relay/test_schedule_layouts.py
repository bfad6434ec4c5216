"""Layouts that searches for schedules choose, against numpy's indices."""

import numpy as np
import pytest
from oracle import values

from relayc import relay
from relayc.dialects.relay.errors import RelayError


def evaluated(make, array):
    x = relay.var("x", shape=array.shape, dtype=array.dtype.name)
    found = relay.create_executor("graph").evaluate(relay.Function([x], make(x)))(array)
    return [part.numpy() for part in found] if isinstance(found, list) else found.numpy()


def test_auto_scheduler_layout_transform():
    data = values((3, 16, 6))
    found = evaluated(lambda x: relay.auto_scheduler_layout_transform(x, "3kh16ci6co", "2ci3co3kh4ci2co2ci"), data)
    expected = np.zeros((2, 3, 3, 4, 2, 2), np.float32)
    for a, b, kh, c, d, e in np.ndindex(expected.shape):
        expected[a, b, kh, c, d, e] = data[kh, (a * 4 + c) * 2 + e, b * 2 + d]
    np.testing.assert_array_equal(found, expected)


def test_meta_schedule_layout_transform():
    maps = [
        (lambda i, j, k: (j // 4, k, i, j % 4), lambda i, j, k: (j // 4, k, i, j % 4), (2, 3, 2, 4)),
        ("T.index_map(lambda i, j, k: (i * 8 + j, (k + 1) % 3))", lambda i, j, k: (i * 8 + j, (k + 1) % 3), (16, 3)),
        (lambda i, j, k: k * 16 + i * 8 + 7 - j, lambda i, j, k: (k * 16 + i * 8 + 7 - j,), (48,)),
    ]
    data = values((2, 8, 3))
    found = evaluated(lambda x: relay.Tuple([relay.meta_schedule_layout_transform(x, index_map) for index_map, *_ in maps]), data)
    for part, (_, place, shape) in zip(found, maps, strict=True):
        expected = np.zeros(shape, np.float32)
        for at in np.ndindex(data.shape):
            expected[place(*at)] = data[at]
        np.testing.assert_array_equal(part, expected)


def test_a_map_is_a_text_in_programs():
    x = relay.var("x", shape=(8, 3))
    call = relay.meta_schedule_layout_transform(x, lambda i, j: (i // 4, j, i % 4))
    assert call.attrs["index_map"] == "lambda i0, i1: (i0//4, i1, i0 - 4*(i0//4),)"
    module = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], call)))
    again = relay.parse(relay.astext(module))
    data = values((8, 3))
    found = relay.create_executor("graph", again).evaluate()(data).numpy()
    np.testing.assert_array_equal(found, data.reshape(2, 4, 3).transpose(0, 2, 1))


@pytest.mark.parametrize(
    ("index_map", "message"),
    [
        ("lambda i: (i,)", "index_map: expected arithmetic on 2 indices"),
        ("lambda i, j: (i & j,)", "index_map: expected arithmetic on 2 indices"),
        ("lambda i, j: (i, j // 2)", "index_map: expected a place for each of 12 elements, and no more"),
        ("lambda i, j: (i, j // 2 * 2)", "index_map: expected a place of its own for each element"),
        ("lambda i, j: (i, j - 1)", "index_map: expected indices of 0 or more"),
    ],
)
def test_wrong_maps(index_map, message):
    with pytest.raises(RelayError, match=message):
        relay.transform.InferTypeLocal(relay.meta_schedule_layout_transform(relay.var("x", shape=(4, 3)), index_map))


def test_wrong_layouts():
    x = relay.var("x", shape=(4, 6))
    for source, target, message in (
        ("4i6j", "2i3j2j", "dst_layout: expected parts of the axes of 4i6j"),
        ("4i5j", "4i5j", "data: expected the sizes of 4i5j"),
        ("ij", "ji", "src_layout: expected sizes and names of axes"),
        ("4i6i", "4i6i", "src_layout: expected axes with names of their own"),
    ):
        with pytest.raises(RelayError, match=message):
            relay.transform.InferTypeLocal(relay.auto_scheduler_layout_transform(x, source, target))
