"""What the command line says of the inputs of a model."""

import argparse

import pytest

from relayc.runtime import TensorSpec
from relayc.symbolic import Range, parse
from relayc.tools.inputs import parse_dim, parse_shape, parse_size, parse_tolerance, random_inputs, symbol_sizes
from relayc.tune.command import parse_minutes


def test_shapes_have_sizes_and_names():
    assert parse_shape("x=batch,3,2*h,max(w, 8)") == ("x", ["batch", 3, "2*h", "max(w, 8)"])


def test_dims_are_sizes_or_bounds():
    assert parse_dim("batch=4") == ("batch", 4)
    assert parse_dim("seq=1:512") == ("seq", (1, 512))
    assert parse_size("seq=128") == ("seq", 128)


@pytest.mark.parametrize(
    ("parse_option", "text"),
    [
        (parse_shape, "x"),
        (parse_shape, "x=-1"),
        (parse_shape, "x=a b"),
        (parse_dim, "n"),
        (parse_dim, "n=-1"),
        (parse_dim, "n=5:2"),
        (parse_dim, "n=1:2:3"),
        (parse_size, "n=1:2"),
        (parse_size, "=3"),
    ],
)
def test_options_that_are_wrong(parse_option, text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"expected NAME=.*, found|expected NAME=LEAST:LARGEST with the least"):
        parse_option(text)


def test_tolerances_are_one_number_or_two():
    assert [parse_tolerance(text) for text in ("0", "1e-3", "1e-3,0", "0,2")] == [(0, 0), (1e-3, 0), (1e-3, 0), (0, 2)]
    for text in ("", "x", "1,2,3", "-1", "1,-1", "inf", "1,inf", "nan"):
        with pytest.raises(argparse.ArgumentTypeError, match="expected RTOL or RTOL,ATOL of 0 or more, found"):
            parse_tolerance(text)


def test_minutes_are_positive():
    assert [parse_minutes(text) for text in ("0.5", "1e6")] == [0.5, 1e6]
    for text in ("x", "0", "-1", "1e7", "nan"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"expected a number of minutes, found '{text}'"):
            parse_minutes(text)


SPECS = [TensorSpec("x", (parse("n"), 3), "float32"), TensorSpec("y", (parse("n + m"),), "int64")]


def test_random_inputs_have_the_sizes_given_or_typical_ones():
    sizes = symbol_sizes(SPECS, {"n": 2}, {"m": Range(1, 16, 5)})
    assert sizes == {"m": 5, "n": 2}
    assert {name: a.shape for name, a in random_inputs(SPECS, sizes=sizes).items()} == {"x": (2, 3), "y": (7,)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"k": 1}, r"expected names of dimensions \(m, n\), found k"), ({"m": 40}, "m: expected a size of 1 to 16, found 40")],
)
def test_sizes_that_are_wrong(given, expected):
    with pytest.raises(ValueError, match=expected):
        symbol_sizes(SPECS, given, {"m": Range(1, 16, 5)})
