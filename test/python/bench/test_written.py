"""`bench written`: schedules of primitives compute what they should, and the command on one of them."""

import numpy as np
import pytest

import relayc
from relayc.bench import __main__ as command
from relayc.bench.schedule_steps import RegisterTile, product
from relayc.bench.written_kernels import attention, convolution, heads, layer_norm, lines, rowwise, softmax, tiles

CASES = {
    "product": (product(20, 96, 40), tiles(4, 48, 8, 16), [(20, 40), (40, 96), (96,)], (1,)),
    "convolution": (convolution(32, 64, 10), lines(7, 2), [(2, 12, 12, 16), (64, 32, 3, 3)], (1,)),
    "convolution by single blocks": (convolution(32, 64, 10), lines(4, 1), [(2, 12, 12, 16), (64, 32, 3, 3)], (1,)),
    "attention": (attention(2, 24, 96, 32), heads(8, RegisterTile(4, 16)), [(1, 2, 24, 32), (1, 2, 96, 32), (1, 2, 96, 32)], ()),
    "softmax": (softmax(5, 128), rowwise("total", "power", "most"), [(5, 128)], ()),
    "layer_norm": (layer_norm(5, 128), rowwise("square", "total"), [(5, 128), (128,), (128,)], ()),
}


@pytest.mark.parametrize("name", CASES)
def test_a_schedule_computes_what_the_built_in_one_does(name: str) -> None:
    module, schedule, shapes, parameters = CASES[name]
    arrays = [np.random.default_rng(i).standard_normal(shape, np.float32) for i, shape in enumerate(shapes)]
    params = {i: arrays[i] for i in parameters}
    given = [a for i, a in enumerate(arrays) if i not in parameters]
    found, expected = (relayc.compile_kernel(module, params=params, schedule=s)(*given) for s in (schedule, None))
    # Sums of some hundred products of about 1 in f32, in another order.
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_the_command(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relayc.bench.schedules.SECONDS", 0)
    assert command.main(["written", "--kernels", "softmax", "--rounds", "1"]) == 0
    out = capsys.readouterr().out
    assert "softmax 128x768" in out and "loops" in out and "product" not in out


def test_a_kernel_that_is_not_known_is_an_error(capsys: pytest.CaptureFixture) -> None:
    assert command.main(["written", "--kernels", "sofmax"]) == 1
    assert "expected a part of a name of product 512x512x512" in capsys.readouterr().err
