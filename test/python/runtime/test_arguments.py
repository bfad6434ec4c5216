"""What functions accept as arguments, and how they refuse the rest: in Python, and in the checks of the generated code."""

import collections
import ctypes
import json
from types import SimpleNamespace
from unittest.mock import patch

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi

from relayc.runtime import signature as signature_of_runtime
from relayc.runtime.artifact import ObjectCode, TensorSpec
from relayc.runtime.function import fits
from relayc.runtime.signature import Signature
from relayc.runtime.tensor import _capsule_pointer, as_array, to_tensor
from relayc.symbolic import symbol


def strided(array):
    """The same values with gaps between them in memory."""
    return np.repeat(array, 2, axis=-1)[..., ::2]


def misaligned(array):
    """The same values at an odd address."""
    raw = np.empty(array.nbytes + 1, np.uint8)
    copy = raw[1:].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


class Producer:
    """A foreign tensor: all it has is DLPack."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **kwargs):
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("form", [strided, misaligned, read_only, np.asfortranarray, tvm_ffi.from_dlpack, Producer])
def test_any_form_of_the_values_is_accepted(module, x, form):
    np.testing.assert_array_equal(module["add"](form(x), x), 2 * x)


def test_a_tensor_of_a_producer_of_before_version_1_is_taken_and_of_unknown_numbers_refused(module, x):
    class Old(Producer):
        def __dlpack__(self):
            return self._array.__dlpack__()

    np.testing.assert_array_equal(module["add"](Old(x), x), 2 * x)
    wide = SimpleNamespace(device=tvm_ffi.device("cpu", 0), dtype="float6_e2m3fnx4")
    with (
        patch.object(tvm_ffi, "from_dlpack", lambda capsule: wide),
        pytest.raises(TypeError, match=r"of dtype float6_e2m3fnx4$"),
    ):
        as_array(Producer(x))


def test_a_strided_foreign_tensor_is_copied(module, x):
    np.testing.assert_array_equal(module["add"](Producer(strided(x)), x), 2 * x)


def test_bfloat16_tensors_are_accepted(module, n):
    np.testing.assert_array_equal(module["copy"](to_tensor(n)), n)
    np.testing.assert_array_equal(module["copy"](strided(n)), n)


def test_outputs_are_dlpack_tensors(module, x):
    np.testing.assert_array_equal(np.from_dlpack(tvm_ffi.from_dlpack(module["add"](x, x))), 2 * x)


def test_outputs_are_wrapped_as_tensors_of_another_framework(module, x, n):
    y, m = module["main"](x, n, wrap=lambda tensor: tensor)
    assert isinstance(y, tvm_ffi.Tensor) and str(m.dtype) == "bfloat16"
    np.testing.assert_array_equal(as_array(m), n)


def test_out_may_be_a_foreign_tensor(module, x):
    memory = np.empty_like(x)
    out = tvm_ffi.from_dlpack(memory)
    assert module["add"](x, x, out=out) is out
    np.testing.assert_array_equal(memory, 2 * x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint8", "uint64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 1, 3)])
def test_arrays_survive_the_way_through_tensors(dtype, shape):
    array = np.random.default_rng(0).integers(0, 2, shape).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    back = as_array(to_tensor(array))
    assert back.shape == shape and back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)
    assert array.size == 0 or np.shares_memory(back, array)


def test_inputs_are_given_by_name(module, x, n):
    wanted = module["main"](x, n)
    for y, m in (module["main"](x, n=n), module["main"](n=n, x=x)):
        np.testing.assert_array_equal(y, wanted[0])
        np.testing.assert_array_equal(m, wanted[1])


@pytest.mark.parametrize(
    ("given", "named", "message"),
    [
        (1, "m", "main: expected inputs out of x, n, found 'm'"),
        (0, "x", r"main: expected 2 inputs \(x, n\), found none for n"),
        (2, "x", "main: expected input 'x' once, found it in order and by name"),
    ],
)
def test_wrong_names_of_inputs_are_type_errors(module, x, n, given, named, message):
    with pytest.raises(TypeError, match=message):
        module["main"](*[x, n][:given], **{named: x})


def test_wrong_count_is_a_type_error_with_the_names(module, x):
    with pytest.raises(TypeError, match=r"main: expected 2 inputs \(x, n\), found 1"):
        module["main"](x)


@pytest.mark.parametrize(
    ("value", "error", "found"),
    [
        ([1.0], TypeError, "found a value of type list"),
        (None, TypeError, "found a value of type NoneType"),
        (np.zeros((2, 3)), TypeError, r"found float64\[2, 3\]"),
        (np.zeros((2, 3), ">f4"), TypeError, r"found >f4\[2, 3\]"),
        (np.ma.masked_array(np.zeros((2, 3), "f")), ValueError, "found a masked array, whose mask would be lost"),
        (np.float32(1), ValueError, r"found float32\[\]"),
        (np.zeros(6, "f"), ValueError, r"found float32\[6\]"),
        (np.zeros((3, 2), "f"), ValueError, r"found float32\[3, 2\]"),
        (Producer(np.zeros((2, 3), "i4")), TypeError, r"found int32\[2, 3\]"),
    ],
)
def test_a_wrong_argument_is_an_error_that_names_it(module, n, value, error, found):
    with pytest.raises(error, match=r"main: argument 0 'x': expected float32\[2, 3\].*" + found):
        module["main"](value, n)


@pytest.mark.parametrize(
    ("make", "error", "found"),
    [
        (lambda x: [x], TypeError, r"add: expected 2 inputs \(.*\), found 1"),
        (lambda x: [x, x, x], TypeError, r"add: expected 2 inputs \(.*\), found 3"),
        (lambda x: [x, x.view("i4")], TypeError, r"argument 1 .*: expected float32\[2, 3\], found int32\[2, 3\]"),
        (lambda x: [x.view(">f4"), x], TypeError, r"argument 0 .*: expected float32\[2, 3\], found >f4\[2, 3\]"),
        (lambda x: [x, x.tolist()], TypeError, r"argument 1 .*: expected float32\[2, 3\] .*, found a value of type list"),
        (lambda x: [x, x.T.copy()], ValueError, r"argument 1 .*: expected float32\[2, 3\], found float32\[3, 2\]"),
    ],
)
def test_shapes_of_an_earlier_call_let_nothing_else_through(module, x, make, error, found):
    np.testing.assert_array_equal(module["add"](x, x), 2 * x)
    with pytest.raises(error, match=found):
        module["add"](*make(x))


@pytest.mark.parametrize("form", [strided, misaligned, read_only, lambda x: x.view(np.memmap)])
def test_forms_of_values_are_accepted_in_shapes_of_an_earlier_call(module, x, form):
    np.testing.assert_array_equal(module["add"](x, x), 2 * x)
    np.testing.assert_array_equal(module["add"](x, form(x)), 2 * x)


def test_bfloat16_is_accepted_in_shapes_of_an_earlier_call(module, x, n):
    for values in (n, n + n):
        y, copied = module["main"](x, values)
        np.testing.assert_array_equal(copied, values)
        assert copied.dtype == values.dtype and y.dtype == np.float32


def retarget(array):
    """A tensor whose memory claims to be on device cuda:0."""
    capsule = array.__dlpack__(max_version=(1, 0))
    ctypes.c_int32.from_address(_capsule_pointer(capsule, b"dltensor_versioned") + 32 + 8).value = 2
    return tvm_ffi.from_dlpack(capsule)


def from_offset(array):
    """A tensor of which DLPack says that it begins 32 bytes after its pointer."""
    whole = np.concatenate([np.full(32, 0x5A, np.uint8), np.frombuffer(array.tobytes(), np.uint8)])
    capsule = whole[32:].view(array.dtype).reshape(array.shape).__dlpack__(max_version=(1, 0))
    tensor = _capsule_pointer(capsule, b"dltensor_versioned") + 32
    ctypes.c_uint64.from_address(tensor).value -= 32
    ctypes.c_uint64.from_address(tensor + 40).value = 32
    return tvm_ffi.from_dlpack(capsule)


def test_a_tensor_begins_at_its_offset(module, x):
    found = np.empty_like(x)
    module["add"].packed(from_offset(x), from_offset(2 * x), to_tensor(found))
    np.testing.assert_array_equal(found, 3 * x)
    np.testing.assert_array_equal(module["add"](from_offset(x), x), 2 * x)


def test_a_tensor_on_another_device_is_a_value_error(module, x, n):
    with pytest.raises(ValueError, match=r"main: argument 0 'x': expected float32\[2, 3\] on the cpu, found a tensor on cuda:0"):
        module["main"](retarget(x), n)


def test_unknown_and_missing_names_are_value_errors(module, x):
    with pytest.raises(ValueError, match=r"expected the inputs x, n; missing \['n'\], unknown \['z'\]"):
        module.run({"x": x, "z": x})


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda x: np.empty((2, 3)), TypeError),
        (lambda x: np.empty(6, "f"), ValueError),
        (lambda x: np.empty((3, 2), "f").T, ValueError),
        (read_only, ValueError),
        (lambda x: x, ValueError),
    ],
)
def test_unfit_out_arrays_are_refused(module, x, make, error):
    with pytest.raises(error, match=r"add: output 0 'y': expected a writable contiguous array float32\[2, 3\]"):
        module["add"](x, x, out=make(x))


def test_an_unaligned_out_array_is_said_to_be_unaligned(module, x):
    with pytest.raises(ValueError, match="writable True, aligned False"):
        module["add"](x, x, out=np.zeros(25, np.uint8)[1:].view("f").reshape(2, 3))


@pytest.mark.parametrize("count", [0, 2])
def test_out_has_an_array_for_each_output(module, x, count):
    with pytest.raises(TypeError, match=f"add: expected 1 arrays in out, found {count}"):
        module["add"](x, x, out=[np.empty((2, 3), "f") for _ in range(count)])


@pytest.mark.parametrize(
    ("position", "value", "error", "message"),
    [
        (0, 3, TypeError, "add: argument 0 'x': expected float32[2, 3], found a value that is not a tensor"),
        (1, np.zeros((2, 3)), TypeError, "add: argument 1 'x': expected float32[2, 3], found float64[2, 3]"),
        (2, np.zeros((2, 3), "?"), TypeError, "add: argument 2 'y': expected float32[2, 3], found bool[2, 3]"),
        (2, np.zeros((), "f"), ValueError, "add: argument 2 'y': expected float32[2, 3], found float32[]"),
        (2, np.zeros((2, 4), "f"), ValueError, "add: argument 2 'y': expected float32[2, 3], found float32[2, 4]"),
        (
            2,
            np.zeros((3, 2), "f").T,
            ValueError,
            "add: argument 2 'y': expected float32[2, 3], found float32[2, 3] that is not contiguous in row-major order",
        ),
        (
            0,
            retarget(np.zeros((2, 3), "f")),
            ValueError,
            "add: argument 0 'x': expected float32[2, 3], found float32[2, 3] that is not on the cpu",
        ),
    ],
)
def test_generated_code_checks_its_arguments(module, x, position, value, error, message):
    arguments = [x, x, np.empty_like(x)]
    arguments[position] = value
    with pytest.raises(error) as caught:
        module["add"].packed(*arguments)
    assert str(caught.value) == message


def test_generated_code_checks_the_number_of_arguments(module, x):
    with pytest.raises(TypeError, match=r"add: expected 3 arguments, found 2: it takes x, x, y$"):
        module["add"].packed(x, x)


def test_generated_code_describes_tensors_of_any_rank(module, x):
    with pytest.raises(ValueError, match=r"found float32\[1, 1, .*, 1\]$"):
        module["add"].packed(x, x, np.zeros((1,) * 32, "f"))


def test_strides_of_dimensions_of_size_one_do_not_matter(module, n):
    m = np.empty_like(n)
    module["copy"].packed(to_tensor(np.lib.stride_tricks.as_strided(n, (1, 4), (100, 2))), to_tensor(m))
    np.testing.assert_array_equal(m, n)


@pytest.mark.parametrize(
    ("value", "found"), [([1, 2], "a list of 2"), ((1, 2, 3), "a tuple of 3"), ({0: 1, 1: 2}, "a dict of 2"), (np.zeros(2), "a ndarray")]
)
def test_arguments_have_the_structure_that_was_exported(value, found):
    signature = Signature(("pair",), ["tuple", [["tuple", [["tuple", [0, 1]]]], ["dict", []]]], (0, 1), (), 0, (("result", 0),))
    assert signature.leaves([(1, 2)], {}) == [1, 2]
    with pytest.raises(TypeError, match=f"pair: expected a tuple of 2, found {found}$"):
        signature.leaves([value], {})


def test_arguments_and_results_of_all_structures():
    structure = [
        "tuple",
        [["tuple", [["dict", [["a", 0], ["b", ["list", [1]]]]], None, ["named", ["nowhere:Pair", [2, 3]]]]], ["dict", []]],
    ]
    results = ["tuple", [["dict", [["x", 0]]], None, ["named", ["nowhere:Pair", [1]]], ["list", [0, 1]]]]
    signature = Signature(("d", "n", "p"), structure, (0, 1, 2, 3), (), results, (("result", 0), ("result", 1)))
    assert signature.leaves([{"b": [2], "a": 1}, None, (3, 4)], {}) == [1, 2, 3, 4]
    assert signature.given([], [5, 6]) == ({"x": 5}, None, (6,), [5, 6])
    for values, message in [
        ([{"a": 1, "c": [2]}, None, (3, 4)], "d: expected the key 'b', found 'a', 'c'"),
        ([{"a": 1}, None, (3, 4)], "d: expected a dict of 2, found a dict of 1"),
        ([{"a": 1, "b": (2,)}, None, (3, 4)], r"d\['b'\]: expected a list of 1, found a tuple of 1"),
        ([{"a": 1, "b": [2]}, 0, (3, 4)], "n: expected None, as the model was exported with, found int"),
        ([{"a": 1, "b": [2]}, None, (3,)], "p: expected a tuple of 2, found a tuple of 1"),
    ]:
        with pytest.raises(TypeError, match=f"{message}$"):
            signature.leaves(values, {})
    assert json.loads(signature.text)["names"] == ["d", "n", "p"]


def test_structures_that_only_pytorch_knows():
    torch = pytest.importorskip("torch")
    pytree = torch.utils._pytree
    text = pytree.treespec_dumps(pytree.tree_structure(collections.OrderedDict(a=1, b=2)))
    arguments = ["tuple", [["tuple", [["torch", [text, 0]]]], ["dict", []]]]
    signature = Signature(("d",), arguments, (0, 1), (), ["torch", [text, 1]], (("result", 0), ("result", 1), ("result", 0)))
    assert signature.leaves([collections.OrderedDict(a=3, b=4)], {}) == [3, 4]
    assert signature.given([], [5, 6]) == collections.OrderedDict(a=6, b=5)
    with pytest.raises(TypeError, match=r"(?s)d: expected .*'b'.*, found .*'c'"):
        signature.leaves([collections.OrderedDict(a=3, c=4)], {})


def test_what_an_argument_is_written_to():
    array = np.zeros(2)
    signature_of_runtime._write(array, np.ones(2))
    assert array.tolist() == [1, 1]
    with pytest.raises(TypeError, match="expected an argument that can be written to, as the model writes to it, found tuple"):
        signature_of_runtime._write((1, 2), np.ones(2))


@pytest.mark.parametrize(
    ("shape", "fit"),
    [((2, 3, 4), True), ((2, 9, 4), True), ((3, 3, 4), False), ((2, 3, 5), False), ((2, 3), False), ((2, 3, 4, 1), False), ((), False)],
)
def test_shapes_fit_where_rank_and_known_sizes_are_those_of_the_specification(shape, fit):
    assert fits(shape, TensorSpec("x", (2, symbol("n"), 4), "float32")) is fit
    assert fits((), TensorSpec("x", (), "float32")) and not fits((1,), TensorSpec("x", (), "float32"))


def test_bytes_of_object_code_are_those_of_all_its_parts():
    assert ObjectCode(b"root", ((("a",), b"one"), (("b", "c"), b"three")), b"images").num_bytes == 4 + 3 + 5 + 6
