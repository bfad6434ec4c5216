"""`bench schedules`: the steps of docs/schedules.md compute what they should, and the command on a small product."""

import numpy as np
import pytest

import relayc
from relayc.bench import __main__ as command
from relayc.bench.schedule_steps import STEPS, WIDE, RegisterTile, decisions, product, schedule_after

M, N, K = 64, 96, 48


@pytest.mark.parametrize("step", STEPS, ids=[step.__name__ for step in STEPS])
@pytest.mark.parametrize("tile", [WIDE, RegisterTile(4, 16)], ids=["wide", "narrow"])
def test_a_step_computes_the_product(step, tile):
    rng = np.random.default_rng(0)
    a, b, bias = (rng.standard_normal(shape, np.float32) for shape in ((M, K), (K, N), (N,)))
    options = {"schedule": schedule_after(step, tile), "tuning": decisions(step, M, K, tile)}
    kernel = relayc.compile_kernel(product(M, N, K), params={1: b}, **options)
    expected = np.maximum(a.astype(np.float64) @ b + bias, 0)
    # Sums of 48 products of the order of 1, in f32.
    np.testing.assert_allclose(kernel(a, bias), expected, rtol=1e-5, atol=1e-5)


def test_the_command(capsys, monkeypatch):
    monkeypatch.setattr("relayc.bench.schedules.SECONDS", 0)
    assert command.main(["schedules", "--sizes", "8x32x8", "--rounds", "1"]) == 0
    out = capsys.readouterr().out
    assert all(step.__name__ in out for step in STEPS) and "built-in schedule" in out


def test_a_product_that_the_steps_do_not_divide_is_an_error(capsys):
    assert command.main(["schedules", "--sizes", "100x32x8"]) == 1
    assert "expected products MxNxK of multiples of 8, N of 32, found 100x32x8" in capsys.readouterr().err
