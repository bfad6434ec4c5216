"""What the command line says of the inputs of a model."""

import argparse
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from relayc.runtime import TensorSpec
from relayc.symbolic import Range, parse
from relayc.tools.inputs import (
    load_inputs,
    output_file,
    parse_dim,
    parse_seconds,
    parse_seed,
    parse_shape,
    parse_size,
    parse_specialize,
    parse_tolerance,
    random_inputs,
    save_outputs,
    symbol_sizes,
    tensors_of,
    written,
)
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


@pytest.mark.parametrize(
    ("parse_option", "text", "expected"),
    [
        (parse_shape, "x=", ("x", [])),
        (parse_shape, "x=0", ("x", [0])),
        (parse_shape, "a=b=2, max(n,3) ,", ("a=b", [2, "max(n,3)"])),
        (parse_shape, "x=max(n, min(m, 2)),3", ("x", ["max(n, min(m, 2))", 3])),
        (parse_dim, "n=0", ("n", 0)),
        (parse_dim, "n=3:3", ("n", (3, 3))),
        (parse_dim, "n=0:1", ("n", (0, 1))),
        (parse_size, "a=b=0", ("a=b", 0)),
        (parse_specialize, "n=2", {"n": 2}),
        (parse_specialize, "n=2, m=3", {"n": 2, "m": 3}),
        (parse_seed, "0", 0),
        (parse_seed, "17", 17),
        (parse_seconds, "0", 0.0),
        (parse_seconds, "1e9", 1e9),
        (parse_seconds, "0.25", 0.25),
    ],
)
def test_options_that_are_right(parse_option, text, expected):
    found = parse_option(text)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("parse_option", "text", "message"),
    [
        (parse_shape, "=3", "expected NAME=D0"),
        (parse_shape, "x=2,-1", "expected NAME=D0"),
        (parse_dim, "=3", "expected NAME=SIZE or"),
        (parse_dim, "n=", "expected NAME=SIZE or"),
        (parse_dim, "n=1:", "expected NAME=SIZE or"),
        (parse_dim, "n=2:1", "with the least size first"),
        (parse_size, "n", "expected NAME=SIZE"),
        (parse_size, "n=", "expected NAME=SIZE"),
        (parse_specialize, "n=2,n=2", "with each name once"),
        (parse_specialize, "n=2,", "expected NAME=SIZE"),
        (parse_seed, "-1", "a number of 0 or more"),
        (parse_seed, "1.0", "a number of 0 or more"),
        (parse_seed, "", "a number of 0 or more"),
        (parse_seconds, "-0.5", "a number of seconds"),
        (parse_seconds, "1.1e9", "a number of seconds"),
        (parse_seconds, "nan", "a number of seconds"),
        (parse_seconds, "x", "a number of seconds"),
    ],
)
def test_other_options_that_are_wrong(parse_option, text, message):
    with pytest.raises(argparse.ArgumentTypeError, match=message):
        parse_option(text)


def test_files_are_written_to_folders_that_are_there(tmp_path, capfdbinary):
    assert output_file("-") == Path("-") and output_file(str(tmp_path / "f")) == tmp_path / "f"
    for text in (tmp_path, tmp_path / "none" / "f"):
        with pytest.raises(argparse.ArgumentTypeError, match="expected a file in a folder that is there"):
            output_file(str(text))
    for path in (tmp_path / "f", Path("-")):
        with written(path) as file:
            file.write(b"text")
    sys.stdout.flush()
    assert (tmp_path / "f").read_bytes() == b"text" == capfdbinary.readouterr().out


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
    [
        ({"k": 1}, r"expected names of dimensions \(m, n\), found k"),
        ({"m": 40}, "m: expected a size of 1 to 16, found 40"),
        ({"m": 17}, "m: expected a size of 1 to 16, found 17"),
        ({"m": 0}, "m: expected a size of 1 to 16, found 0"),
    ],
)
def test_sizes_that_are_wrong(given, expected):
    with pytest.raises(ValueError, match=expected):
        symbol_sizes(SPECS, given, {"m": Range(1, 16, 5)})


@pytest.mark.parametrize("m", [1, 16])
def test_sizes_may_be_the_ends_of_their_range(m):
    assert symbol_sizes(SPECS, {"m": m, "n": 3}, {"m": Range(1, 16, 5)}) == {"m": m, "n": 3}


def test_sizes_make_no_dimension_negative():
    specs = [TensorSpec("x", (parse("n - 3"), 2), "float32")]
    assert symbol_sizes(specs, {"n": 3}, {}) == {"n": 3}
    with pytest.raises(ValueError, match=r"sizes: input x: expected dimensions of 0 or more, found .* for n = 2"):
        symbol_sizes(specs, {"n": 2}, {})
    with pytest.raises(ValueError, match=r"expected names of dimensions \(none\), found n, m"):
        symbol_sizes([], {"n": 2, "m": 3}, {})


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int8", "uint8", "int64", "bool", "int4"])
def test_values_have_their_type(dtype):
    specs = [TensorSpec("x", (40, 3), dtype), TensorSpec("y", (40, 3), dtype)]
    first, again, other = (random_inputs(specs, seed) for seed in (1, 1, 2))
    values = first["x"].astype(np.float64)
    assert first["x"].dtype.name == dtype and first["x"].shape == (40, 3)
    assert set(np.unique(values)) == {0, 1} if "float" not in dtype else values.min() < -1 < 1 < values.max()
    np.testing.assert_array_equal(first["x"], again["x"])
    assert (first["x"] != other["x"]).any() and (first["x"] != first["y"]).any()
    for fill, number in (("zeros", 0), ("ones", 1)):
        assert (random_inputs(specs, fill=fill)["y"].astype(np.float64) == number).all()


def test_values_of_objects():
    kinds = ["string", "seq(float32)", "optional(int64)", "map(int64, float32)", "map(string, int64)"]
    found = list(random_inputs([TensorSpec(kind, (3,) if kind == "string" else (), kind) for kind in kinds], fill="ones").values())
    assert found[0].tolist() == ["1", "1", "1"]
    assert [a.tolist() for a in found[1]] == [[1.0] * 4] * 3 and found[1][0].dtype == np.float32
    assert found[2].tolist() == [1] * 4 and found[2].dtype == np.int64
    assert found[3] == {0: 1.0, 1: 1.0} and found[4] == {"0": 1, "1": 1}
    with pytest.raises(ValueError, match="input v: expected tensors to fill, found value"):
        random_inputs([TensorSpec("v", (), "value(f)")])


def test_outputs_by_name():
    array = np.arange(3)
    found = tensors_of(
        {
            "a": array,
            "none": None,
            "list": [array, array + 1],
            "empty": [],
            "map": {"k": 2.0, 3: 4.0},
            "maps": [{"k": 1.0, "l": 2.0}, {"k": 3.0, "l": 4.0}],
        }
    )
    expected = {
        "a": array,
        "list.0": array,
        "list.1": array + 1,
        "map.k": np.array(2.0),
        "map.3": np.array(4.0),
        "maps.k": np.array([1, 3], np.float32),
        "maps.l": np.array([2, 4], np.float32),
    }
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, strict=True)


def test_files_keep_arrays_that_numpy_has_no_type_for(tmp_path):
    arrays = {"b": np.array([1.5, -2], ml_dtypes.bfloat16), "f": np.array([0.5]), "s": np.array(["a", "bc"], object)}
    save_outputs(tmp_path / "a", arrays)
    specs = [
        TensorSpec("b", (2,), "bfloat16"),
        TensorSpec("f", (1,), "float64"),
        TensorSpec("s", (2,), "string"),
        TensorSpec("n", (1,), "bfloat16"),
    ]
    found = load_inputs(tmp_path / "a", specs)
    assert list(found) == ["b", "f", "s"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array.astype(str) if name == "s" else array, strict=True)
    np.savez(tmp_path / "raw.npz", b=arrays["b"], f=arrays["f"])
    assert load_inputs(tmp_path / "raw.npz", specs)["b"].dtype == ml_dtypes.bfloat16
    np.savez(tmp_path / "raw.npz", b=np.zeros(2, np.uint8), f=arrays["f"])
    assert load_inputs(tmp_path / "raw.npz", specs)["b"].dtype == np.uint8
    np.save(tmp_path / "bare.npy", arrays["f"])
    (tmp_path / "text.npz").write_text("text")
    np.savez(tmp_path / "objects.npz", b=np.array([{}], object))  # a pickle, which could execute anything
    for name in ("bare.npy", "text.npz", "objects.npz"):
        with pytest.raises(ValueError, match=r"expected an \.npz file of numeric arrays"):
            load_inputs(tmp_path / name, specs)
    with pytest.raises(ValueError, match="found an output that is a value of type int"):
        save_outputs(tmp_path / "v", {"v": 3})
