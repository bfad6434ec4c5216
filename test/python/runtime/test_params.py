"""Parameters of a module: by name, as safetensors files, with other values."""

import json
import os
import struct

import ml_dtypes
import numpy as np
import onnx
import pytest
import safetensors.numpy

import relayc
from relayc.runtime import load_param_dict, load_param_dict_from_file, save_param_dict, save_param_dict_to_file
from relayc.runtime.safetensors import read_safetensors, safetensors_bytes

ARRAYS = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.arange(3).astype(ml_dtypes.bfloat16),
    "q": np.arange(-4, 4).astype(ml_dtypes.int4),
    "f": np.array(2.5, np.float16),
    "e": np.empty((0, 4), np.int64),
    "mask": np.array([True, False]),
    "f8": np.array([1.5, -2], ml_dtypes.float8_e5m2fnuz),
}


@pytest.fixture(scope="module")
def scaled():
    weights = np.arange(512, dtype=np.float32).reshape(1, 512)
    text = '<ir_version: 8, opset_import: ["" : 17]> scaled (float[2, 512] x) => (float[2, 512] y) { y = Mul (x, weights) }'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "weights"))
    return relayc.compile(model), weights


def test_a_fifo_is_no_file_of_parameters(tmp_path):
    os.mkfifo(tmp_path / "params.safetensors")
    with pytest.raises(OSError, match="expected a regular file"):
        load_param_dict_from_file(tmp_path / "params.safetensors")


def test_arrays_of_every_dtype_come_back_from_a_file(tmp_path):
    save_param_dict_to_file(ARRAYS, tmp_path / "params.safetensors")
    for found in (load_param_dict(save_param_dict(ARRAYS)), load_param_dict_from_file(tmp_path / "params.safetensors")):
        assert found.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)


def test_the_file_is_of_the_safetensors_format():
    content = safetensors_bytes({"w": ARRAYS["w"], "b": ARRAYS["b"]}, {"by": "relayc"})
    (length,) = struct.unpack("<Q", content[:8])
    assert json.loads(content[8 : 8 + length]) == {
        "__metadata__": {"by": "relayc"},
        "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "BF16", "shape": [3], "data_offsets": [24, 30]},
    }
    assert content[8 + length :] == ARRAYS["w"].tobytes() + ARRAYS["b"].tobytes()
    assert read_safetensors(content)[1] == {"by": "relayc"}


def test_files_and_those_of_the_safetensors_package_are_read_by_both():
    # The package's numpy side has no bfloat16, and stores no types that the format has no name for.
    arrays = {name: ARRAYS[name] for name in ("w", "f", "e", "mask")}
    for found in (safetensors.numpy.load(safetensors_bytes(arrays)), read_safetensors(safetensors.numpy.save(arrays))[0]):
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)


def _file(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"abc", "3 bytes"),
        (struct.pack("<Q", 1 << 60), "a header of 1152921504606846976 bytes in a file of 8"),
        (_file(b"{"), "a header that is no JSON"),
        (_file([]), "a header that is no object"),
        (_file({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"1234"), "data of F32"),
        (_file({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"1234"), "4 bytes of F32"),
        (_file({"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, b"1234"), "data of F32"),
        (_file({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, b"12345"), "bytes instead of"),
        (_file({"w": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, b"12345678"), "data from byte 4 on"),
        (_file({"w": {"dtype": "O", "shape": [1], "data_offsets": [0, 8]}}, b"12345678"), "a header that is not of the format"),
        (
            _file({"__metadata__": {"dtype:w": "O"}, "w": {"dtype": "U64", "shape": [1], "data_offsets": [0, 8]}}, b"12345678"),
            "said to be O|format",
        ),
        (safetensors_bytes(ARRAYS)[:-1], "bytes"),
    ],
)
def test_what_is_no_whole_file_is_one_error(content, found):
    with pytest.raises(ValueError, match=f"parameters: expected a whole safetensors file, found .*({found})"):
        load_param_dict(content)


def test_strings_are_no_parameters():
    with pytest.raises(ValueError, match="s: expected an array of numbers, found one of"):
        save_param_dict({"s": np.array(["a"])})
    with pytest.raises(ValueError, match="safetensors: expected names of arrays, found __metadata__"):
        save_param_dict({"__metadata__": np.zeros(2)})


def test_parameters_have_the_names_of_the_model(scaled):
    module, weights = scaled
    assert list(module.params) == ["weights"]
    np.testing.assert_array_equal(module.params["weights"], weights)
    with pytest.raises(ValueError, match="read-only"):
        module.params["weights"][0] = 1


def test_a_module_takes_other_parameters(scaled, tmp_path):
    module, weights = scaled
    x = np.ones((2, 512), np.float32)
    module.save_params(tmp_path / "old")
    save_param_dict_to_file({"weights": 2 * weights}, tmp_path / "new")
    module.load_params(tmp_path / "new")
    np.testing.assert_array_equal(module["main"](x), x * 2 * weights)
    module.load_params(tmp_path / "old")
    np.testing.assert_array_equal(module["main"](x), x * weights)


def test_parameters_that_do_not_fit_are_errors(scaled):
    module, weights = scaled
    with pytest.raises(ValueError, match="expected names out of weights, found 'w'"):
        module.load_params({"w": weights})
    with pytest.raises(ValueError, match=r"parameter 'weights': expected float32\[1, 512\], found float64\[1, 512\]"):
        module.load_params({"weights": weights.astype(np.float64)})
