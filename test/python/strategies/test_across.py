"""Convolutions over symbolic sizes whose result has its channels outermost: rows are stored across, against ONNX Runtime.

The tolerance is for sums of at most 240 products of values around one in another order.
"""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import relayc
from relayc.pipelines.targets.cpu.strategies.contraction import across
from relayc.pipelines.targets.cpu.strategies.contraction.tile import RegisterTile

# One row, a row less and more than a vector of 8 and 16, than the rows of a task, and than several tasks; then beyond 1,024.
LENGTHS = (1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 63, 65, 77, 79, 95, 97, 111, 113, 257, 1039)


def model(channels: int, columns: int, taps: int, epilogue: str, ndim: int) -> bytes:
    """x[b, channels, n...] through a convolution and what follows it, of which "residual" reads another image."""
    rng = np.random.default_rng(7)
    weight = rng.standard_normal((columns, channels, *[taps] * ndim), dtype=np.float32) / np.float32(np.sqrt(channels * taps**ndim))
    bias = rng.standard_normal(columns, dtype=np.float32)
    sizes = ["b", channels, *["n", "m"][:ndim]]
    pads = [taps // 2] * 2 * ndim
    nodes = [helper.make_node("Conv", ["x", "w", "bias"], ["c"], pads=pads)]
    if epilogue == "residual":
        nodes += [helper.make_node("Add", ["c", "r"], ["d"]), helper.make_node("LeakyRelu", ["d"], ["y"], alpha=0.1)]
    elif epilogue == "sigmoid":
        nodes += [helper.make_node("Sigmoid", ["c"], ["d"]), helper.make_node("Mul", ["c", "d"], ["y"])]
    else:
        nodes += [helper.make_node("Relu", ["c"], ["y"])]
    out = ["b", columns, *sizes[2:]]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", sizes), ("r", out))]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, out)
    weights = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "bias")]
    graph = helper.make_graph(nodes, "g", inputs if epilogue == "residual" else inputs[:1], [result], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("mcpu", [None, "x86-64-v3"])
@pytest.mark.parametrize(
    ("channels", "columns", "taps", "epilogue", "ndim"),
    [
        (16, 16, 3, "residual", 1),
        (32, 80, 1, "sigmoid", 2),
        (32, 24, 1, "relu", 2),
        (240, 72, 1, "residual", 2),
        (48, 64, 1, "relu", 1),
        (16, 40, 5, "sigmoid", 1),
    ],
)
def test_every_remainder_of_rows(channels, columns, taps, epilogue, ndim, mcpu, monkeypatch):
    finished = []
    finish = across.AcrossRows.finish

    def spy(self, *arguments):
        finished.append(self.block)
        finish(self, *arguments)

    monkeypatch.setattr(across.AcrossRows, "finish", spy)
    content = model(channels, columns, taps, epilogue, ndim)
    target = relayc.Target("cpu" if mcpu is None else f"cpu -mcpu={mcpu}", num_threads=2)
    compiled = relayc.compile(onnx.load_from_string(content), target, cache=False)
    assert finished, [kernel.schedule for kernel in compiled.kernels]
    lanes = 16 if mcpu is None and relayc.Target("cpu").vector_bytes == 64 else 8
    # Columns wait in memory where the last vector of them is not whole, and for the one copy of a costly epilogue.
    assert all((block is not None) == (columns % lanes != 0 or epilogue == "sigmoid") for block in finished)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(3)
    for n in LENGTHS:
        sizes = (n,) if ndim == 1 else (1, n) if n % 3 else (n // 3, 3)
        feeds = {"x": rng.standard_normal((2, channels, *sizes), dtype=np.float32)}
        if epilogue == "residual":
            feeds["r"] = rng.standard_normal((2, columns, *sizes), dtype=np.float32)
        (expected,) = session.run(None, feeds)
        found = compiled.run(feeds)["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5, err_msg=str(sizes))


def test_tasks_have_rows_that_fill_blocks():
    assert [across.tiles_of_blocks(RegisterTile(rows, 4, 16), 10) for rows in (4, 6, 8, 16)] == [4, 8, 2, 1]
    # No number of tiles fills a block: 5 of 13 rows would waste 15 rows, 6 waste 2.
    assert across.tiles_of_blocks(RegisterTile(13, 2, 16), 6) == 6
    assert across.tiles_of_blocks(RegisterTile(14, 1, 16), 1) == 1
