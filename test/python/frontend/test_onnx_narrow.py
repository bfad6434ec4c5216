"""ONNX models with narrow types: quantisation, weights packed in the file, branches and loops, and what a caller gives and gets."""

import ctypes
import re

import numpy as np
import onnx
import pytest
import tvm_ffi
from narrow_types import BITS, FLOATS, INTEGERS, every_value, same_bits, some_values
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_models import model_of

import relayc
from relayc.frontend.onnx import OnnxError, from_onnx
from relayc.runtime.tensor import _capsule_pointer, as_array, to_tensor

QUANTISED = (*FLOATS, *INTEGERS, "int8", "uint16")
FLOAT32, FLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16


def element_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


@pytest.fixture(autouse=True)
def _numpy_is_quiet():
    with np.errstate(all="ignore"):
        yield


def agrees(model, *inputs):
    """Outputs, which are the reference's to the last bit."""
    found = relayc.compile(model)["main"](*inputs)
    found = found if isinstance(found, tuple) else (found,)
    names = [i.name for i in model.graph.input]
    expected = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
    for values, wanted in zip(found, expected, strict=True):
        assert (values.dtype, values.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(values.astype(np.float64), wanted.astype(np.float64))
    return found


# Scales in their three forms, and the attributes that say which: one, one for each position, one for each block of 3.
FORMS = {"tensor": ((), {}), "axis": ((4,), {"axis": 0}), "block": ((4, 3), {"axis": 1, "block_size": 3})}


@pytest.mark.parametrize("dtype", QUANTISED)
def test_linear_quantisation_there_and_back(dtype):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((4, 8)) * 20).astype(np.float32)
    x[0, :4] = 0.0, 1e6, -1e6, -0.0
    nodes, initializers, outputs = [], {}, []
    for form, (shape, attributes) in FORMS.items():
        # Powers of two: the quotient is a tie now and then.
        initializers[f"s_{form}"] = (2.0 ** rng.integers(-2, 3, shape)).astype(np.float32)
        zero = some_values(dtype, shape) if dtype in INTEGERS else rng.integers(0, 9, shape).astype(dtype)
        initializers[f"z_{form}"] = np.zeros(shape, dtype) if dtype in FLOATS else np.asarray(zero)
        for zeros in ("", f"z_{form}"):
            name = f"{form}_{bool(zeros)}"
            given = attributes | ({} if zeros else {"output_dtype": element_type(dtype)})
            nodes.append(helper.make_node("QuantizeLinear", ["x", f"s_{form}", zeros], [f"q_{name}"], **given))
            nodes.append(helper.make_node("DequantizeLinear", [f"q_{name}", f"s_{form}", zeros], [f"d_{name}"], **attributes))
            outputs += [f"q_{name}", f"d_{name}"]
    found = agrees(model_of(nodes, {"x": [4, 8]}, outputs, initializers, opset=28), x)
    assert found[0].dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "int4"])
def test_scales_precision_and_results_of_other_types(dtype):
    x = (np.random.default_rng(0).standard_normal((4, 8)) * 20).astype(np.float16)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s16"], ["q16"], output_dtype=element_type(dtype)),
        helper.make_node("QuantizeLinear", ["x", "s16"], ["q32"], output_dtype=element_type(dtype), precision=FLOAT32, saturate=0),
        helper.make_node("DequantizeLinear", ["q16", "s16"], ["d16"]),
        helper.make_node("DequantizeLinear", ["q16", "s16"], ["d32"], output_dtype=FLOAT32),
        helper.make_node("DequantizeLinear", ["q16", "s8"], ["d8"], output_dtype=FLOAT16, axis=1, block_size=4),
    ]
    scales = {"s16": np.array(0.07, np.float16), "s8": np.array([[0.5, 2]] * 4, "float8_e8m0fnu")}
    agrees(model_of(nodes, {"x": (FLOAT16, [4, 8])}, ["q16", "q32", "d16", "d32", "d8"], scales, opset=28), x)


def test_float8_that_does_not_saturate():
    x = np.array([1e6, -1e6, np.inf, np.nan, 464, 465], np.float32)
    nodes = []
    names = [f"{dtype}_{s}" for dtype in FLOATS for s in (0, 1)]
    for name in names:
        dtype, saturate = name[:-2], int(name[-1])
        nodes.append(helper.make_node("QuantizeLinear", ["x", "s"], [name], output_dtype=element_type(dtype), saturate=saturate))
    agrees(model_of(nodes, {"x": [6]}, names, {"s": np.array(1, np.float32)}, opset=28), x)


def test_a_type_that_is_not_quantised_is_refused_with_those_that_are():
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["y"], output_dtype=TensorProto.INT32)
    expected = ("int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2", *FLOATS)
    with pytest.raises(OnnxError) as refused:
        from_onnx(model_of([node], {"x": [6]}, initializers={"s": np.array(1, np.float32)}, opset=28))
    names = re.search("a quantised type among (.*), found int32", str(refused.value))[1].split(", ")
    assert sorted(names) == sorted(expected)


def test_a_conversion_to_float8_saturates_where_the_node_does_not_say():
    x = np.array([1e6, -1e6, np.inf, np.nan, 464, 465], np.float32)
    targets = {dtype: np.zeros((), dtype) for dtype in FLOATS if dtype.startswith("float8")}
    nodes = [helper.make_node("Cast", ["x"], [f"cast_{dtype}"], to=element_type(dtype)) for dtype in targets]
    nodes += [helper.make_node("CastLike", ["x", dtype], [f"like_{dtype}"]) for dtype in targets]
    agrees(model_of(nodes, {"x": [6]}, [node.output[0] for node in nodes], targets, opset=28), x)


def test_a_zero_point_of_floats_that_is_not_known():
    node = helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"])
    inputs = {"x": (TensorProto.FLOAT4E2M1, [6]), "z": (TensorProto.FLOAT4E2M1, [])}
    model = model_of([node], inputs, initializers={"s": np.array(0.5, np.float32)}, opset=28)
    x, z = every_value("float4_e2m1fn")[2:8], every_value("float4_e2m1fn")[3]
    expected = (x.astype(np.float32) - z.astype(np.float32)) * np.float32(0.5)
    np.testing.assert_array_equal(relayc.compile(model)["main"](x, np.asarray(z)), expected)


def test_products_of_quantised_floats():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 16)).astype("float8_e4m3fn"), rng.standard_normal((16, 7)).astype("float8_e4m3fn")
    names = ["a", "as", "az", "b", "bs", "bz", "ys", "yz"]
    numbers = {"as": 0.5, "bs": 2.0, "ys": 0.25}
    initializers = {n: np.array(v, np.float32) for n, v in numbers.items()} | {n: np.zeros((), a.dtype) for n in ("az", "bz", "yz")}
    kind = TensorProto.FLOAT8E4M3FN
    model = model_of([helper.make_node("QLinearMatMul", names, ["y"])], {"a": (kind, [5, 16]), "b": (kind, [16, 7])}, (), initializers)
    model.graph.output.append(onnx.ValueInfoProto(name="y"))
    found = relayc.compile(model)["main"](a, b)
    # The products are exact in float32; so is their sum in any order, which has no more than 24 bits.
    exact = (a.astype(np.float64) @ b.astype(np.float64)) * (0.5 * 2.0 / 0.25)
    assert found.dtype == a.dtype
    np.testing.assert_array_equal(found.astype(np.float32), exact.astype(np.float32).clip(-448, 448).astype(a.dtype).astype(np.float32))


@pytest.mark.parametrize("external", [False, True])
def test_weights_are_unpacked(tmp_path, external):
    weights = {dtype: some_values(dtype, (67, 31)) for dtype in BITS}  # an odd number of elements
    nodes = [helper.make_node("Identity", [dtype], [f"y_{dtype}"]) for dtype in BITS]
    model = model_of(nodes, {}, [f"y_{dtype}" for dtype in BITS], weights, opset=28)
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=external, location="weights", size_threshold=16)
    for _ in range(2):  # the second time from the cache
        found = relayc.compile(path)["main"]()
        assert all(same_bits(values, wanted) for values, wanted in zip(found, weights.values(), strict=True))


def test_a_wrong_number_of_packed_bytes_is_refused():
    model = model_of([helper.make_node("Identity", ["w"], ["y"])], {}, initializers={"w": some_values("int4", (5,))}, opset=28)
    model.graph.initializer[0].raw_data = b"\0\0"
    with pytest.raises(OnnxError, match=r"initializer w: expected 3 bytes for int4\[5\], found 2"):
        from_onnx(model.SerializeToString())


def test_an_attribute_may_be_of_a_narrow_type():
    value = numpy_helper.from_array(every_value("int2"))
    filled = numpy_helper.from_array(every_value("float4_e2m1fn")[5:6])
    nodes = [helper.make_node("Constant", [], ["y"], value=value), helper.make_node("ConstantOfShape", ["s"], ["z"], value=filled)]
    y, z = relayc.compile(model_of(nodes, {"s": (TensorProto.INT64, [2])}, ["y", "z"], opset=28))["main"](np.array([2, 3]))
    assert same_bits(y, every_value("int2")) and same_bits(z, np.full((2, 3), every_value("float4_e2m1fn")[5]))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "uint4"])
def test_branches_and_loops_pass_them_on(dtype):
    kind = element_type(dtype)

    def graph(nodes, inputs, outputs):
        typed = [helper.make_tensor_value_info(name, *given) for name, given in inputs.items()]
        return helper.make_graph(nodes, "g", typed, [onnx.ValueInfoProto(name=name) for name in outputs])

    def same(x, y):
        return helper.make_node("Identity", [x], [y])

    row = (kind, [4])
    body = graph(
        [same("c", "more"), same("s", "t"), same("s", "all")], {"i": (TensorProto.INT64, []), "c": (9, []), "s": row}, ["more", "t", "all"]
    )
    step = graph([same("row", "t"), same("s", "all")], {"s": row, "row": row}, ["t", "all"])
    nodes = [
        helper.make_node(
            "If", ["cond"], ["y"], then_branch=graph([same("x", "r")], {}, ["r"]), else_branch=graph([same("w", "r")], {}, ["r"])
        ),
        helper.make_node("Loop", ["n", "cond", "s"], ["last", "rows"], body=body),
        helper.make_node("Scan", ["s", "x"], ["final", "before"], body=step, num_scan_inputs=1),
    ]
    inputs = {"x": (kind, [3, 4]), "w": (kind, [3, 4]), "s": row, "cond": (TensorProto.BOOL, []), "n": (TensorProto.INT64, [])}
    main = relayc.compile(model_of(nodes, inputs, ["y", "last", "rows", "final", "before"], opset=25))["main"]
    x, w, s = some_values(dtype, (3, 4)), some_values(dtype, (3, 4), 1), some_values(dtype, 4, 2)
    y, last, rows, final, before = main(x, w, s, np.bool_(True), np.int64(2))
    assert same_bits(y, x) and same_bits(last, s) and same_bits(rows, np.stack([s, s]))
    assert same_bits(final, x[2]) and same_bits(before, np.stack([s, x[0], x[1]]))


def test_nan_and_infinity_of_float8():
    nodes = [helper.make_node("IsNaN", ["x"], ["n"]), helper.make_node("IsInf", ["x"], ["i"], detect_negative=0)]
    x = every_value("float8_e5m2")
    n, i = relayc.compile(model_of(nodes, {"x": (TensorProto.FLOAT8E5M2, [256])}, ["n", "i"]))["main"](x)
    wide = x.astype(np.float32)
    assert np.array_equal(n, np.isnan(wide)) and np.array_equal(i, wide == np.inf)


# ---- at the boundary of the program ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e8m0fnu", "float4_e2m1fn", "int4"])
def test_arrays_are_those_of_ml_dtypes(dtype):
    x = some_values(dtype, (3, 5))
    module = relayc.compile(model_of([helper.make_node("Transpose", ["x"], ["y"])], {"x": (element_type(dtype), [3, 5])}, opset=28))
    assert module.inputs[0].dtype == dtype and same_bits(module["main"](np.asfortranarray(x)), x.T)
    out = np.zeros((5, 3), dtype)
    module["main"](x, out=out)
    assert same_bits(out, x.T)
    with pytest.raises(TypeError, match=rf"expected {dtype}\[3, 5\], found uint8"):
        module["main"](x.view(np.uint8))


@pytest.mark.parametrize("dtype", BITS)
def test_tensors_of_narrow_types(dtype):
    # DLPack has types for floats of 8 bits. Elements of less than a byte it packs: with one in a byte they are bytes.
    x = some_values(dtype, (3, 5))
    tensor = to_tensor(x)
    assert str(tensor.dtype) == (dtype if dtype.startswith("float8") else "uint8")
    assert np.array_equal(as_array(tensor).view(np.uint8), x.view(np.uint8))
    assert tensor.data_ptr() == x.ctypes.data


@pytest.mark.parametrize("dtype", ["float8_e5m2", "uint4"])
def test_packed_functions_check_narrow_types(dtype):
    x, y = some_values(dtype, (3, 5)), np.zeros((5, 3), dtype)
    module = relayc.compile(model_of([helper.make_node("Transpose", ["x"], ["y"])], {"x": (element_type(dtype), [3, 5])}, opset=28))
    kernel = module[module.function_names()[1]]
    kernel.packed(to_tensor(x), to_tensor(y))
    assert same_bits(y, x.T)
    other = to_tensor(x.view("float8_e4m3fn"))
    with pytest.raises(TypeError, match=rf"expected {dtype}\[3, 5\], found float8_e4m3fn\[3, 5\]"):
        kernel.packed(other, to_tensor(y))


def test_tensors_of_packed_elements_are_refused():
    capsule = np.zeros(4, np.int8).__dlpack__(max_version=(1, 0))
    bits = _capsule_pointer(capsule, b"dltensor_versioned") + 32 + 21  # dl_tensor.dtype.bits
    ctypes.c_uint8.from_address(bits).value = 4
    with pytest.raises(TypeError, match="found a tensor of packed int4, expected an array of one element in a byte"):
        as_array(tvm_ffi.from_dlpack(capsule))
