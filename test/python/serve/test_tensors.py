"""Tensors of requests become numpy arrays and back; data that do not fit are refused, at every boundary of what fits."""

import json
from typing import Any

import numpy as np
import pytest

from relayc.runtime.artifact import TensorSpec
from relayc.symbolic import symbol

WHY = "relayc serve needs MLServer, which is not installed (no release of it is for Python 3.13)"
tensors = pytest.importorskip("relayc.serve.tensors", reason=WHY)
utils = pytest.importorskip("tritonclient.utils", reason=WHY)

NAMES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


def values(dtype: str) -> np.ndarray:
    """Six values, the extremes of the dtype among them."""
    if dtype == "bool":
        return np.array([[True, False, True], [False, False, True]])
    limits: Any = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else np.finfo(dtype)
    return np.array([[limits.min, limits.max, 1], [0, 2, 3]], dtype)


@pytest.mark.parametrize("dtype", NAMES)
def test_numbers_come_back_from_bytes_and_lists(dtype: str) -> None:
    array, spec = values(dtype), TensorSpec("x", (2, 3), dtype)
    datatype = utils.np_to_triton_dtype(array.dtype)
    assert tensors.datatype_of(spec) == datatype
    assert tensors.to_bytes(array.T) == array.T.tobytes()
    for data in (array.tobytes(), memoryview(array.tobytes()), array.tolist(), tensors.to_list(array)):
        found = tensors.decode(spec, datatype, [2, 3], data)
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_texts_come_back_from_bytes_and_lists() -> None:
    array, spec = np.array([["a", ""], ["\u00e9t\u00e9", "long " * 99]], object), TensorSpec("x", (2, 2), "string")
    data = utils.serialize_byte_tensor(array).item()
    assert tensors.to_bytes(array) == data
    for each in (data, memoryview(data), array.tolist(), [text.encode() for text in array.flat]):
        assert tensors.decode(spec, "BYTES", [2, 2], each).tolist() == array.tolist()
    assert tensors.to_bytes(np.zeros(0, object)) == b""


def test_null_is_nan_among_floats() -> None:
    found = tensors.decode(TensorSpec("x", (3,), "float32"), "FP32", [3], json.loads("[1.5, null, 2]"))
    np.testing.assert_array_equal(found, np.array([1.5, np.nan, 2], np.float32))


def test_no_elements_and_symbolic_sizes() -> None:
    spec = TensorSpec("x", (symbol("n"), 2), "float32")
    assert tensors.shape_of(spec) == [-1, 2]
    for count in (0, 1, 5):
        array = np.arange(2.0 * count, dtype=np.float32).reshape(count, 2)
        for data in (array.tobytes(), array.tolist()):
            np.testing.assert_array_equal(tensors.decode(spec, "FP32", [count, 2], data), array)
    assert tensors.decode(TensorSpec("b", (0,), "bool"), "BOOL", [0], b"").shape == (0,)


REFUSED: dict[str, tuple[str, str, list[Any], Any, str]] = {
    "another datatype": ("float32", "FP64", [2], [1.0, 2.0], "expected datatype FP32, found FP64"),
    "another size": ("float32", "FP32", [3], [1.0, 2.0, 3.0], "expected shape"),
    "another rank": ("float32", "FP32", [2, 1], [1.0, 2.0], "expected shape"),
    "a size that is a float": ("float32", "FP32", [2.0], [1.0, 2.0], "expected shape"),
    "too few bytes": ("int16", "INT16", [2], b"\0" * 3, "3 bytes in place of 4"),
    "too many bytes": ("int16", "INT16", [2], b"\0" * 5, "5 bytes in place of 4"),
    "a byte that is no bool": ("bool", "BOOL", [2], b"\x01\x02", "bytes other than 0 and 1"),
    "a number as bool": ("bool", "BOOL", [2], [1, 0], "values of type int64"),
    "a bool as number": ("float32", "FP32", [2], [True, False], "values of type bool"),
    "a bool as integer": ("int32", "INT32", [2], [True, False], "values of type bool"),
    "a fraction as integer": ("int32", "INT32", [2], [1, 2.5], "values of type float64"),
    "a text as number": ("float32", "FP32", [2], ["1", "2"], "values of type str"),
    "one over int8": ("int8", "INT8", [2], [127, 128], "out of bounds"),
    "one under uint8": ("uint8", "UINT8", [2], [-1, 0], "out of bounds"),
    "too few elements": ("float32", "FP32", [2], [1.0], "expected 2 elements"),
    "too many elements": ("float32", "FP32", [2], [1.0, 2.0, 3.0], "expected 2 elements"),
    "too few texts": ("string", "BYTES", [2], ["a"], "expected 2 elements"),
    "a number as text": ("string", "BYTES", [2], ["a", 1], "values of type int"),
    "nothing as text": ("string", "BYTES", [2], ["a", None], "values of type NoneType"),
    "a text cut short": ("string", "BYTES", [2], b"\x05\0\0\0ab", "expected BYTES values"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case: str) -> None:
    dtype, datatype, shape, data, message = REFUSED[case]
    with pytest.raises(tensors.Refused, match=message) as error:
        tensors.decode(TensorSpec("x", (2,), dtype), datatype, shape, data)
    assert error.value.status_code == 400
    assert str(error.value).startswith("input 'x': ")


def test_a_negative_size_is_refused_where_any_size_fits() -> None:
    with pytest.raises(tensors.Refused, match="expected shape"):
        tensors.decode(TensorSpec("x", (symbol("n"),), "float32"), "FP32", [-1], [1.0])


def test_a_dtype_that_the_protocol_lacks() -> None:
    with pytest.raises(ValueError, match="expected a dtype that the protocol has"):
        tensors.datatype_of(TensorSpec("x", (2,), "int4"))
