"""A sample of the zoo (test/zoo): exported models, compiled once and compared with ONNX Runtime at sizes around the limits of their
schedules and above 1,024, as `make zoo` does it with all of them; and how the zoo chooses sizes, compares, and outlives what goes wrong."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

import relayc

ZOO = Path(__file__).parents[2] / "zoo"
sys.path.insert(0, str(ZOO))

import check  # noqa: E402 (the zoo is a program, not a package)
from inputs import Input, Symbol, make_inputs  # noqa: E402
from sample import FOLDER, restore  # noqa: E402
from sizes import Chooser  # noqa: E402


@pytest.mark.parametrize("stored", sorted(FOLDER.glob("*.gz")), ids=lambda path: path.name.removesuffix(".onnx.gz"))
def test_a_sample_agrees_with_onnx_runtime(stored, tmp_path):
    report = check.check(restore(stored, tmp_path), count=8, seed=0, times=False, write=lambda report: None)
    assert report.error == "" and len(report.points) >= 7
    assert [point for point in report.points if point.status != "agrees"] == []
    assert max(size for point in report.points for size in point.sizes.values()) > 1024


def test_sizes_are_the_least_primes_large_ones_and_those_around_limits():
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[b, n, 48] x) => (float[b, n, 48] y) { a = Tanh (x) y = Softmax (a) }'
    symbols = {"b": Symbol(high=9), "n": Symbol(low=4, high=3000, multiple=4)}
    module = relayc.compile(onnx.parser.parse_model(text))
    chooser = Chooser(module, symbols, np.random.default_rng(0))
    sizes = chooser.choose(8)
    assert len(sizes) == 8 and sizes[0] == {"b": 1, "n": 4}
    assert all(1 <= s["b"] <= 9 and 4 <= s["n"] <= 3000 and s["n"] % 4 == 0 for s in sizes)
    assert any(s["n"] > 1024 for s in sizes)
    met = {limit.value for limit in chooser.limits for s in sizes[-3:] if limit.is_near(s)}
    assert len(met) >= 3 and max(met) > 16


def test_large_calls_are_not_made():
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, m] x) => (float[n, n] y) { t = Transpose (x) y = MatMul (x, t) }'
    module = relayc.compile(onnx.parser.parse_model(text))
    for sizes in Chooser(module, {"n": Symbol(high=100000), "m": Symbol(high=100000)}, np.random.default_rng(0)).choose(8):
        assert sizes["n"] * sizes["n"] * sizes["m"] * 2 <= 4.2e9


@pytest.mark.parametrize(
    ("found", "wanted", "least", "most"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.001], 1e-3, 2e-3),
        ([1e6 + 1], [1e6], 9e-7, 1.1e-6),  # of one value: in its magnitude
        ([np.nan, 1.0], [np.nan, 1.0], 0, 0),
        ([np.nan, 1.0], [0.0, 1.0], np.inf, np.inf),
        ([np.inf, 1.0], [-np.inf, 1.0], np.inf, np.inf),
        ([1, 2], [1, 2], 0, 0),
        ([1, 2], [1, 3], np.inf, np.inf),
        ([1.0, 2.0], [[1.0, 2.0]], np.inf, np.inf),
        ([1, 2], [1.0, 2.0], np.inf, np.inf),
    ],
)
def test_differences_are_in_deviations(found, wanted, least, most):
    assert least <= check.difference_of(np.array(found), np.array(wanted)) <= most


def fail(point):
    raise ValueError("no")


@pytest.mark.parametrize(
    ("work", "status", "message"),
    [
        (lambda point: None, "agrees", ""),
        (fail, "raises", "ValueError: no"),
        (lambda point: os.kill(os.getpid(), signal.SIGKILL), "dies", "SIGKILL"),
        (lambda point: time.sleep(60), "hangs", "no result after 0.2 s"),
    ],
)
def test_what_goes_wrong_at_a_size_is_a_row(monkeypatch, capfd, work, status, message):
    monkeypatch.setattr(check, "TIME_LIMIT", 0.2)
    point = check.in_process(check.Point({"n": 1}, "agrees"), work)
    assert (point.status, point.message) == (status, message)


def test_inputs_have_the_sizes_and_what_they_are_said_to_hold():
    inputs = {
        "ids": Input(("b", "past + n"), "below", 7),
        "mask": Input(("b", "past + n"), "left-padded"),
        "edges": Input((2, "n"), "below", "b"),
        "times": Input(("b",), "uniform", dtype="float16"),
    }
    made = make_inputs(inputs, {"b": 3, "n": 5, "past": 2}, 0)
    assert made["ids"].shape == (3, 7) and made["ids"].max() < 7
    assert made["edges"].shape == (2, 5) and made["edges"].max() < 3
    assert set(np.unique(made["mask"])) == {0, 1} and (np.diff(made["mask"]) >= 0).all() and made["mask"][:, -1].all()
    assert made["times"].dtype == np.float16
    again = make_inputs(inputs, {"b": 3, "n": 5, "past": 2}, 0)
    assert all(np.array_equal(made[name], again[name]) for name in inputs)
