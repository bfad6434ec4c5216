"""ONNX Runtime as the reference of operator tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
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


def values(shape: Sequence[int], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Seeded test values: normal floats, small integers (negative ones too where the dtype has them)."""
    rng = np.random.default_rng([seed, *shape])
    if np.dtype(dtype).kind in "iu":
        return rng.integers(-8 if np.dtype(dtype).kind == "i" else 0, 9, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def many_values(shape: Sequence[int], dtype: str, seed: int = 0) -> np.ndarray:
    """Seeded test values: as `values`, but integers of 8 bits and more, as far as f32 tells them apart."""
    if np.dtype(dtype).kind not in "iu":
        return values(shape, dtype, seed)
    limits = np.iinfo(dtype)
    return np.random.default_rng([seed, *shape]).integers(max(limits.min, -1000), min(limits.max, 1000), shape, dtype, endpoint=True)


def assert_cut_off(found: np.ndarray, expected: np.ndarray) -> None:
    """Asserts that integers are numbers cut off after the point; one off is as good where a rounding of f32 may carry the number over an
    integer."""
    assert np.abs(expected).max() > 50
    is_whole = np.abs(expected - np.round(expected)) <= 1e-5 * np.maximum(np.abs(expected), 1)
    assert np.count_nonzero(is_whole & (expected != 0)) <= expected.size // 2
    error = np.abs(found.astype(np.float64) - np.trunc(expected))
    assert (error <= is_whole).all(), f"found {found[error > is_whole][:5]}, expected {expected[error > is_whole][:5]}"


def needs_exact_bytes() -> None:
    """Skips a test of products of 8-bit integers where ONNX Runtime saturates sums of pairs of them: on CPUs without VNNI."""
    if not {"avx512vnni", "avxvnni"} & host_features():
        pytest.skip("ONNX Runtime saturates sums of 8-bit products on this machine")
