"""Tensors of torch as arguments of compiled functions."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import relayc

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def subtract():
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["a", "b"]) for name in "xyz"]
    graph = helper.make_graph([helper.make_node("Sub", ["x", "y"], ["z"])], "g", value[:2], value[2:])
    return relayc.compile(helper.make_model(graph))["main"]


@pytest.mark.parametrize("turned", [False, True], ids=["contiguous", "strided"])
def test_tensors_of_torch_and_arrays_are_arguments_alike(subtract, turned):
    x, y = torch.rand(3, 1030), torch.rand(3, 1030)
    if turned:
        x = torch.rand(1030, 3).T
    wanted = (x - y).numpy()
    out = np.empty((3, 1030), np.float32)
    for _ in range(2):  # shapes that are new, and known
        np.testing.assert_array_equal(subtract(x, y), wanted)
        np.testing.assert_array_equal(subtract(x, y.numpy()), wanted)
        subtract(x, y, out=out)
        np.testing.assert_array_equal(out, wanted)


def test_other_tensors_of_torch_are_checked(subtract):
    x = torch.rand(2, 5)
    subtract(x, x)
    with pytest.raises(TypeError, match=r"argument 1 'y': expected .*float32.*, found .*float64"):
        subtract(x, x.double())
    with pytest.raises(TypeError, match=r"argument 1 'y'.*, found a Tensor that cannot be exported"):
        subtract(x, x.clone().requires_grad_())
    with pytest.raises(ValueError, match="b is 5 in x and 4 in y"):
        subtract(x, torch.rand(2, 4))
