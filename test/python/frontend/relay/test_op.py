"""Relay's operators as Python functions."""

import inspect

import numpy as np
import pytest

from relayc.dialects.relay.base import OPS, RelayError
from relayc.frontend.relay import ast as relay
from relayc.frontend.relay.op import UnsupportedOperator, functions, op, operators, registered, signature
from relayc.frontend.relay.op.composed import COMPOSED
from relayc.relay.transform import InferTypeLocal


def names(function) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "span"]


def test_every_operator_of_the_registry_has_a_signature():
    found = set(operators())
    for cls in OPS.values():
        assert cls.relay_name in found or cls.region_names or cls.terminator or cls.is_structure
    assert all(set(signature(name).operands) | signature(name).attrs.keys() >= signature(name).parameters.keys() for name in found)


def test_parameters_are_in_relays_order():
    assert names(op.nn.conv2d)[:6] == ["data", "weight", "strides", "padding", "dilation", "groups"]
    assert names(op.nn.conv2d_transpose)[-3:] == ["out_layout", "output_padding", "out_dtype"]
    assert names(op.gather) == ["data", "axis", "indices"]
    assert names(op.nn.pad) == ["data", "pad_width", "pad_value", "pad_mode"]
    assert inspect.signature(op.nn.batch_matmul).parameters["transpose_b"].default is True
    assert inspect.signature(op.nn.leaky_relu).parameters["alpha"].default == 0.01


def test_flags_that_are_set_by_default():
    """As in Relay; all others are not set."""
    of_attributes = {
        *{("matrix_set_diag", "super_diag_right_align"), ("nn.bitserial_conv2d", "unipolar"), ("nn.bitserial_dense", "unipolar")},
        *{("nn.correlation", "is_multiply"), ("on_device", "constrain_body"), ("qnn.batch_matmul", "transpose_b")},
        *{("qnn.quantize", "saturate"), ("relay.op.annotation.simulated_quantize", "sign"), ("vision.multibox_transform_loc", "clip")},
        ("vision.non_max_suppression", "return_indices"),
    }
    assert {(name, key) for name, found in COMPOSED.items() for key, value in found.attrs.items() if value is True} == of_attributes
    own = [(name, inspect.signature(function)) for name, function in vars(functions).items() if inspect.isfunction(function)]
    of_functions = {(name, key) for name, found in own for key, parameter in found.parameters.items() if parameter.default is True}
    assert of_functions == {("on_device", "constrain_body"), ("stft", "onesided"), ("trilu", "upper")}


def test_attributes_have_one_form():
    x, w = map(relay.var, "xw")
    attrs = op.nn.conv2d(x, w, strides=2, padding=(1, 2), kernel_size=3).attrs
    assert (attrs.strides, attrs.padding, attrs["kernel_size"]) == ((2, 2), (1, 2, 1, 2), (3, 3))
    assert op.sum(x, axis=1).attrs.axis == (1,) and op.argsort(x, is_ascend=0).attrs.is_ascend is False
    assert op.reshape(x, relay.const([2, -1])).attrs.newshape == (2, -1)


def test_several_results_are_taken_apart():
    x = relay.var("x")
    assert len(op.split(x, 3)) == 3 and len(op.split(x, (1, 4))) == 3
    assert len(op.topk(x)) == 2 and isinstance(op.topk(x, ret_type="values"), relay.Call)
    assert isinstance(op.nn.dropout(x), relay.TupleGetItem)
    norm = op.nn.batch_norm(x, *map(relay.var, "abcd"))
    assert [field.index for field in norm] == [0, 1, 2] and norm[-3].index == 0
    for wrong in (3, -4):
        with pytest.raises(IndexError, match=f"expected an index of 3 results, found {wrong}"):
            norm[wrong]
    assert isinstance(op.concatenate([x, x], 0).args[0], relay.Tuple)


def test_names_of_no_operator_are_refused():
    with pytest.raises(UnsupportedOperator, match="no operator 'foo' in Relay"):
        _ = op.foo
    with pytest.raises(UnsupportedOperator, match=r"dyn\.transpose"):
        op.transpose(relay.var("x"), relay.var("axes"))
    assert not hasattr(op, "foo")


def test_arguments_without_a_default_are_required():
    with pytest.raises(TypeError, match="missing a required argument: 'rhs'"):
        op.add(relay.var("x"))
    with pytest.raises(TypeError, match="missing a required argument: 'end'"):
        op.strided_slice(relay.var("x"), [0])


def test_wrong_attributes_are_refused():
    with pytest.raises(TypeError, match="foo"):
        op.nn.softmax(relay.var("x"), foo=1)
    with pytest.raises(RelayError, match="no attribute foo"):
        op.call("nn.softmax", relay.var("x"), foo=1)
    assert not hasattr(op.nn.softmax(relay.var("x")).attrs, "foo")
    pooled = op.nn.global_max_pool2d(relay.var("x", shape=(1, 2, 3, 3)), out_layout="NHWC")
    with pytest.raises(RelayError, match=r"nn.global_max_pool2d: out_layout: expected the layout NCHW, found NHWC"):
        InferTypeLocal(pooled)


def test_attributes_are_plain_values():
    x = relay.var("x", shape=(2, 3))
    assert type(op.nn.softmax(x, axis=np.int64(1)).attrs.axis) is int
    assert op.reshape(x, np.array([3, 2])).attrs.newshape == (3, 2) and op.clip(x, np.float32(0.5), 2).attrs.a_min == 0.5
    with pytest.raises(RelayError, match=r"cast: attribute dtype: expected a value, found none"):
        op.call("cast", x)
    with pytest.raises(RelayError, match=r"nn\.softmax: no attribute axes; it has axis"):
        op.call("nn.softmax", x, axes=1)


def test_namespaces_list_their_operators():
    assert {"exp", "nn", "vision"} <= set(dir(op)) and {"conv2d", "contrib_dense_pack"} <= set(dir(op.nn))
    assert "nn" not in dir(op.nn) and "conv2d" not in dir(op)


def test_effects_of_registered_operators():
    registered.register_stateful("exp", True)
    assert relay.Op.get("exp").get_attr("TOpIsStateful") is True
    relay.Op.get("exp").reset_attr("TOpIsStateful")
