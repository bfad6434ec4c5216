"""The general route to GPUs, emulated: kernels of each kind, element types, symbolic sizes, and models, against numpy and ONNX Runtime.

All operators: `RELAYC_TEST_TARGET="cuda -emulate=true" pytest test/python/ops`.
"""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from oracle import values
from support import Const, program
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc import te
from relayc.dialects.relay import build
from relayc.pipelines.driver.compile import compile
from relayc.runtime.artifact import numpy_dtype
from relayc.symbolic import Range
from relayc.tools.reference import compare, run_onnxruntime

TARGET = relayc.Target("cuda", arch="sm_80", emulate=True)
TOLERANCES = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
"""Of sums of some hundred numbers about 1 in another order: some last bits of the type."""


def _softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


KINDS = {
    "a vector for each thread": (lambda a, b: build("add", a, b), lambda x, y: x + y),
    "an element for each thread": (
        lambda a, b: build("strided_slice", a, begin=[1, 1], end=[7, 200], strides=[2, 3]),
        lambda x, y: x[1:7:2, 1:200:3],
    ),
    "transpose": (lambda a, b: build("transpose", a, axes=[1, 0]), lambda x, y: x.T),
    "pieces": (lambda a, b: build("concatenate", a, b, axis=1), lambda x, y: np.concatenate([x, y], 1)),
    "padding": (
        lambda a, b: build("nn.pad", a, build("max", b, axis=[0, 1]), pad_width=[1, 0, 2, 3]),
        lambda x, y: np.pad(x, [(1, 0), (2, 3)], constant_values=y.max()),
    ),
    "columns": (lambda a, b: build("max", a, axis=[0]), lambda x, y: x.max(0)),
    "warps": (lambda a, b: build("max", a, axis=[1]), lambda x, y: x.max(1)),
    "sums of warps": (lambda a, b: build("sum", a, axis=[1]), lambda x, y: x.sum(1)),
    "a block of threads": (lambda a, b: build("sum", a, axis=[0, 1]), lambda x, y: x.sum()),
    "a choice": (lambda a, b: build("argmax", a, axis=[1]), lambda x, y: x.argmax(1)),
    "lines of a scan": (lambda a, b: build("cumsum", a, axis=1), lambda x, y: x.cumsum(1)),
    "lines of a sort": (lambda a, b: build("sort", a, axis=1), lambda x, y: np.sort(x, 1)),
}
OF_FLOATS = {
    "rows": (lambda a, b: build("nn.softmax", a, axis=-1), lambda x, y: _softmax(x, 1)),
    "rows side by side": (lambda a, b: build("nn.softmax", a, axis=0), lambda x, y: _softmax(x, 0)),
    "products": (lambda a, b: build("nn.dense", a, b), lambda x, y: x @ y.T),
}


def _numbers(shape, dtype, seed=0):
    found = values(shape, "float64", seed)
    if dtype.startswith(("int", "uint")):
        return np.abs(found * 3).astype(dtype) if dtype.startswith("u") else (found * 3).astype(dtype)
    return found.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8"])
def test_kernels_of_each_kind(dtype):
    x, y = _numbers((8, 260), dtype), _numbers((8, 260), dtype, seed=1)
    is_float = dtype in TOLERANCES
    kinds = KINDS | (OF_FLOATS if is_float else {})
    module = compile(program(lambda a, b: [make(a, b) for make, _ in kinds.values()], [x, y]), target=TARGET)
    for (kind, (_, expected)), found in zip(kinds.items(), module["main"](x, y), strict=True):
        exact = expected(*(a.astype("float64") if is_float else a for a in (x, y)))
        if is_float:
            most = TOLERANCES[dtype] * max(1.0, np.abs(exact).max())
            np.testing.assert_allclose(found.astype("float64"), exact, rtol=0, atol=most, err_msg=kind)
        else:
            np.testing.assert_array_equal(found, exact.astype(found.dtype), err_msg=kind)
    schedules = {kernel.schedule.split()[0] for kernel in module.kernels}
    assert schedules >= {"general", "bufferize"}


def test_kernels_at_symbolic_sizes():
    kinds = {**KINDS, **OF_FLOATS}
    del kinds["an element for each thread"], kinds["products"]
    mod = symbolic_program(
        lambda a, b: [make(a, b) for make, _ in kinds.values()], [tensor("float32[m, n]")] * 2, {"m": Range(1), "n": Range(1)}
    )
    module = compile(mod, target=TARGET)
    for shape in ((1, 1), (3, 40), (130, 5), (2, 1031)):
        x, y = values(shape), values(shape, seed=1)
        for (kind, (_, expected)), found in zip(kinds.items(), module["main"](x, y), strict=True):
            np.testing.assert_allclose(found, expected(x, y), rtol=1e-4, atol=1e-4, err_msg=f"{kind} of {shape}")


def test_tensors_without_elements_inside():
    """Of an operand and of what comes of it; the result has elements, sums of nothing."""
    x, w = np.ones((1, 0, 6, 5), np.float32), np.ones((3, 0, 2, 3), np.float32)
    module = compile(program(lambda a, b: [build("nn.conv2d", a, b, padding=(1, 1, 1, 0))], [x, w]), target=TARGET)
    np.testing.assert_array_equal(module["main"](x, w), np.zeros((1, 3, 7, 4)))


def _row_sums(s, across):
    """Sums of rows by threads along x, or along x and y."""
    i, k = s.get_loops("S")
    s.bind(i, "blockIdx.x")
    _, *threads = s.split(k, [None, *across])
    for loop, axis in zip(threads, ("threadIdx.y", "threadIdx.x")[-len(across) :], strict=True):
        s.bind(loop, axis)


def test_a_padding_is_one_launch():
    """The number around it is in the code: no launch writes it to memory."""
    zero = Const(np.zeros((), "float32"))
    fed = program(lambda x, z: [build("nn.pad", build("abs", x), z, pad_width=[1, 2, 0, 3])], [values((5, 7)), zero])
    assert str(compile(fed, target=TARGET, stop_after="tir").module).count("gpu.launch ") == 1


@pytest.mark.parametrize("across", [(8,), (24,), (32,), (96,), (256,), (4, 16), (3, 7)], ids=str)
def test_reductions_that_threads_share(across):
    n = te.var("n")
    x, k = te.placeholder((n, 150), name="X"), te.reduce_axis((0, 150), "k")
    total = te.compute((n,), lambda i: te.sum(x[i, k], axis=k), name="S")
    kernel = relayc.compile_kernel(te.create_prim_func([x, total]), schedule=lambda s: _row_sums(s, across), target=TARGET)
    for rows in (1, 5):
        array = values((rows, 150))
        np.testing.assert_allclose(kernel(array), array.sum(1), rtol=1e-4, atol=1e-5)


def test_a_result_that_threads_share_is_read_by_all_of_them():
    """Rows in shared memory, read in another order; a temporary of the device between two launches."""
    x = te.placeholder((6, 128), name="X")
    doubled = te.compute((6, 128), lambda i, j: x[i, j] * 2.0, name="Y")
    turned = te.compute((6, 128), lambda i, j: doubled[i, 127 - j] + doubled[i, j], name="Z")
    last = te.compute((6, 128), lambda i, j: turned[5 - i, j] * turned[i, 127 - j], name="W")

    def write(s):
        for name in ("Z", "W"):
            i, j = s.get_loops(name)
            s.bind(i, "blockIdx.x")
            s.bind(j, "threadIdx.x")
        s.compute_at("Y", s.get_loops("Z")[0])
        s.set_scope("Y", 0, "shared")
        s.bind(s.get_loops("Y")[-1], "threadIdx.x")

    kernel = relayc.compile_kernel(te.create_prim_func([x, last]), schedule=write, target=TARGET)
    array = values((6, 128))
    z = 2 * array[:, ::-1] + 2 * array
    np.testing.assert_allclose(kernel(array), z[::-1] * z[:, ::-1], rtol=1e-5)


FOLDER = Path(__file__).parents[2] / "models"
BERT = ("input_ids", "attention_mask", "token_type_ids")
SHAPES = {
    "bert": dict.fromkeys(BERT, (2, 7)),
    "gpt2": dict.fromkeys(BERT[:2], (2, 5)),
    "llama": {"input_ids": (1, 16)},
    "mlp_mixer": {"series": (2, 24, 5)},
    "resnet18": {"image": (1, 3, 64, 64)},
}


def _input(spec, rng):
    if spec.dtype.startswith("float"):
        return rng.standard_normal(spec.shape).astype(numpy_dtype(spec.dtype))
    return np.ones(spec.shape, np.int64) if spec.name == "attention_mask" else rng.integers(0, 2, spec.shape)


MODELS = [path.stem for path in sorted(FOLDER.glob("*.onnx"))]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_agrees_with_onnxruntime(name):
    path = FOLDER / f"{name}.onnx"
    module = compile(path, shapes=SHAPES.get(name), target=TARGET)
    rng = np.random.default_rng(0)
    inputs = {spec.name: _input(spec, rng) for spec in module.inputs}
    found = compare(module.run(inputs), run_onnxruntime(path, inputs))
    assert found.agrees, found


GROWTH = """func.func @k(%x: tensor<5x150xf32>) -> tensor<5x150xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<5xf32>) -> tensor<5xf32>
  %growth = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<5x150xf32>) outs(%start : tensor<5xf32>) {
  ^bb0(%e: f32, %before: f32):
    %more = arith.mulf %before, %e : f32
    %sum = arith.addf %before, %e : f32
    %after = arith.addf %sum, %more : f32
    linalg.yield %after : f32
  } -> tensor<5xf32>
  %all = tensor.empty() : tensor<5x150xf32>
  %0 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]
  } ins(%x, %growth : tensor<5x150xf32>, tensor<5xf32>) outs(%all : tensor<5x150xf32>) {
  ^bb0(%e: f32, %g: f32, %_: f32):
    %r = arith.addf %e, %g : f32
    linalg.yield %r : f32
  } -> tensor<5x150xf32>
  return %0 : tensor<5x150xf32>
}"""


def test_a_reduction_that_threads_cannot_share_has_a_thread_for_each_row():
    """Its steps are no commutative operation on the element; what reads it is in the same launch."""
    kernel = relayc.compile_kernel(GROWTH, target=TARGET, keep_ir=True)
    x = values((5, 150)) / 16
    expected = x + np.prod(1 + x.astype(np.float64), 1, keepdims=True) - 1
    np.testing.assert_allclose(kernel(x), expected, rtol=1e-4, atol=1e-5)
    assert kernel.ir["tir"].count("gpu.launch ") == 1


FIRST = """func.func @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = tensor.extract %x[%c0] : tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %all = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%e: f32, %_: f32):
    %r = arith.mulf %e, %e : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %w = tensor.extract %all[%c1] : tensor<4xf32>
  %sum = arith.addf %v, %w : f32
  %0 = tensor.insert %sum into %all[%c0] : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def test_an_operation_on_values_of_two_launches_joins_them_from_the_first_on():
    x = values((4,))
    np.testing.assert_array_equal(relayc.compile_kernel(FIRST, target=TARGET)(x), [x[0] + x[1] ** 2, *x[1:] ** 2])


GREATEST = """func.func @k(%x: tensor<8x40xf32>) -> (tensor<8xi32>, tensor<8xf32>) {
  %least = arith.constant -1000.0 : f32
  %none = arith.constant -1 : i32
  %floats = tensor.empty() : tensor<8xf32>
  %places = tensor.empty() : tensor<8xi32>
  %start = linalg.fill ins(%least : f32) outs(%floats : tensor<8xf32>) -> tensor<8xf32>
  %first = linalg.fill ins(%none : i32) outs(%places : tensor<8xi32>) -> tensor<8xi32>
  %found:2 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<8x40xf32>) outs(%start, %first : tensor<8xf32>, tensor<8xi32>) {
  ^bb0(%e: f32, %a: f32, %b: i32):
    %j = linalg.index 1 : index
    %place = arith.index_cast %j : index to i32
    %more = arith.cmpf ogt, %e, %a : f32
    %c = arith.select %more, %e, %a : f32
    %d = arith.select %more, %place, %b : i32
    linalg.yield %c, %d : f32, i32
  } -> (tensor<8xf32>, tensor<8xi32>)
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%found#0 : tensor<8xf32>) outs(%floats : tensor<8xf32>) {
  ^bb0(%e: f32, %_: f32):
    %r = arith.mulf %e, %e : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %found#1, %0 : tensor<8xi32>, tensor<8xf32>
}"""


def test_a_reduction_one_of_whose_tensors_is_a_result_has_a_launch_of_its_own():
    kernel = relayc.compile_kernel(GREATEST, target=TARGET, keep_ir=True)
    x = values((8, 40))
    places, squares = kernel(x)
    np.testing.assert_array_equal(places, x.argmax(1))
    np.testing.assert_allclose(squares, x.max(1) ** 2, rtol=1e-6)
    text = kernel.ir["tir"]
    assert text.count("gpu.launch ") == 2 and "vector<4xf32>" in text  # threads of what reads it have four elements each


def test_one_of_two_results_is_empty():
    x, y = te.placeholder((4,), name="X"), te.placeholder((0, 3), name="Y")
    results = [te.compute(a.shape, lambda *i, a=a: a[i] * 2.0, name=f"R{n}") for n, a in enumerate((x, y))]
    full, empty = relayc.compile_kernel(te.create_prim_func([x, y, *results]), target=TARGET)(values((4,)), np.zeros((0, 3), np.float32))
    np.testing.assert_array_equal(full, 2 * values((4,)))
    assert empty.shape == (0, 3)
