"""ONNX Runtime as the reference of operator tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from accuracy import check_sums
from onnx import helper

from relayc.runtime.cpu.features import host_features

OPSET = 21


def onnx_run(op_type: str, *arrays: np.ndarray | None, outputs: int = 1, opset: int = OPSET, **attrs: Any) -> Any:
    """What ONNX Runtime gives for one ONNX operator: an array, or a list of them for several outputs; None stands for an absent input."""
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(arrays)]
    node = helper.make_node(op_type, names, [f"y{i}" for i in range(outputs)], **attrs)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, arrays, strict=True)
        if a is not None
    ]
    results = [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)]
    graph = helper.make_graph([node], "test", inputs, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = session.run(None, {n: a for n, a in zip(names, arrays, strict=True) if a is not None})
    return found if outputs > 1 else found[0]


def values(shape: Sequence[int], dtype: str = "float32", seed: int = 0, limit: int | None = 8) -> np.ndarray:
    """Seeded inputs of both signs: normal floats, bools, and integers up to `limit` in magnitude, or all of the type for None."""
    rng = np.random.default_rng([seed, *shape])
    if np.dtype(dtype).kind == "b":
        return rng.integers(2, size=shape).astype(bool)
    if np.dtype(dtype).kind not in "iu":
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    low, high = (info.min, info.max) if limit is None else (max(info.min, -limit), min(info.max, limit))
    return rng.integers(low, high, shape, dtype, endpoint=True)


def check_convolution(found: np.ndarray, op_type: str, x: np.ndarray, w: np.ndarray, **attrs: Any) -> None:
    """Asserts that a convolution of `values` in float32 is that of ONNX Runtime's Conv or ConvTranspose, up to rounding."""
    expected, magnitude = onnx_run(op_type, x, w, **attrs), onnx_run(op_type, np.abs(x), np.abs(w), **attrs)
    terms = w.size // w.shape[0] if op_type == "Conv" else w.size // w.shape[1] // attrs.get("group", 1)
    check_sums(found, expected, magnitude, terms)


def assert_cut_off(found: np.ndarray, expected: np.ndarray) -> None:
    """Asserts that integers are numbers cut off after the point; one off is as good where a rounding of f32 may carry the number over an
    integer."""
    assert np.abs(expected).max() > 50
    is_whole = np.abs(expected - np.round(expected)) <= 1e-5 * np.maximum(np.abs(expected), 1)
    assert np.count_nonzero(is_whole & (expected != 0)) <= expected.size // 2
    error = np.abs(found.astype(np.float64) - np.trunc(expected))
    assert (error <= is_whole).all(), f"found {found[error > is_whole][:5]}, expected {expected[error > is_whole][:5]}"


def needs_avx512() -> None:
    """Skips a test of what is chosen on the CPU that it runs on, or of code of x86-64-v4 that it runs, where there is no AVX-512."""
    if "avx512f" not in host_features():
        pytest.skip("this machine has no AVX-512")


HAS_VNNI = bool({"avx512vnni", "avxvnni"} & host_features())


def needs_exact_bytes() -> None:
    """Skips a test of products of 8-bit integers where ONNX Runtime saturates sums of pairs of them: on CPUs without VNNI."""
    if not HAS_VNNI:
        pytest.skip("ONNX Runtime saturates sums of 8-bit products on this machine")
