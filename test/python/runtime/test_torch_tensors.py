"""Tensors of torch as arguments of compiled functions."""

from unittest.mock import Mock

import numpy as np
import pytest
from onnx import TensorProto, helper

import relayc
from relayc.runtime.artifact import TensorSpec
from relayc.runtime.signature import Signature, call

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


def test_results_are_tensors_of_pytorch_where_no_argument_is_an_array():
    signature = Signature(("x", "y"), ["tuple", [["tuple", [0, 1]], ["dict", []]]], (0, 1), (), 0, (("result", 0),), is_torch=True)
    function = Mock(side_effect=lambda x, y: np.asarray(x + y), inputs=[TensorSpec(name, (), "float32") for name in "xy"])
    for x, kind in ((2.0, torch.Tensor), (np.array(2.0, np.float32), np.ndarray), (torch.tensor(2.0), torch.Tensor)):
        found = call(signature, function, True, {}, (x,), {"y": 3.0})
        assert isinstance(found, kind) and found == 5
    y = np.array(3.0, np.float32)  # beside a tensor
    for given, named in (((y,), {}), ((), {"y": y}), ((torch.tensor(3.0),), {}), ((), {"y": torch.tensor(3.0)})):
        found = call(signature, function, True, {}, (torch.tensor(2.0), *given), named)
        assert isinstance(found, torch.Tensor) and found == 5
