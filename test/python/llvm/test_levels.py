"""Levels of CPUs: instructions that each may and should have, the same results from all that run here, code for those that do not."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of
from support import program, run_program

import relayc
from relayc.dialects.relay import build
from relayc.runtime.cpu.objects import read_object
from relayc.tools.inputs import random_inputs
from relayc.tools.reference import compare, run_onnxruntime

LEVELS = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "sapphirerapids"]

FORBIDDEN = {
    "x86-64": r"%[yz]mm|\bv[a-z]|%k[0-7]|pshufb|blend|pmulld|ptest|round[ps]|pinsr[bdq]",
    "x86-64-v2": r"%[yz]mm|\bv[a-z]|%k[0-7]",
    "x86-64-v3": r"%zmm|%[xy]mm(1[6-9]|2\d|3\d)\b|%k[0-7]",
    "x86-64-v4": r"dpbf16|vcvtne|%tmm|vpdpbus",
    "sapphirerapids": r"(?!)",
}
"""What the code of a level must not have."""
WANTED = {
    "x86-64": "mulps",
    "x86-64-v2": "pmulld",
    "x86-64-v3": r"vfmadd\d+ps .*%ymm",
    "x86-64-v4": r"vfmadd\d+ps .*%zmm",
    "sapphirerapids": r"vfmadd\d+ps .*%zmm",
}
"""What the code of OPERATORS must have."""

X = np.random.default_rng(0).standard_normal((8, 40)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((48, 40)).astype(np.float32)
N = np.random.default_rng(2).integers(-9, 9, (8, 40)).astype(np.int32)
H = X.astype(np.float16)


def operators(x, w, n, h):
    """Something of each kind: a product, a reduction, exponentials, integers, f16."""
    return [
        build("nn.dense", x, w),
        build("nn.softmax", x),
        build("erf", x),
        build("floor", x),
        build("multiply", n, n),
        build("multiply", h, h),
        build("nn.layer_norm", x, build("ones", shape=(40,), dtype="float32"), build("zeros", shape=(40,), dtype="float32")),
    ]


def target_of(level):
    return relayc.Target("cpu", mcpu=level, num_threads=2)


def undefined(module):
    code = module._artifact.code
    return {name for content in (code.root, *(c for _, c in code.parts)) for name in read_object(content).undefined()}


@pytest.mark.parametrize("level", LEVELS)
def test_code_has_the_instructions_of_its_level_and_no_others(level):
    module = relayc.compile(program(operators, [X, W, N, H]), target=target_of(level))
    lines = re.sub(r" *#.*", "", module.assembly()).splitlines()
    wrong = [line for line in lines if not line.endswith(":") and re.search(FORBIDDEN[level], line)]
    assert not wrong
    assert any(re.search(WANTED[level], line) for line in lines)


@pytest.mark.parametrize("level", LEVELS)
def test_what_a_level_lacks_is_not_called_element_by_element(level):
    module = relayc.compile(program(operators, [X, W, N, H]), target=target_of(level))
    assert "__relayc_check" in undefined(module), "what checks the calls of a program is no part of it"
    assert not undefined(module) & {"fma", "fmaf", "expf", "erff", "__extendhfsf2", "__truncsfhf2", "__gnu_h2f_ieee", "__gnu_f2h_ieee"}


@pytest.mark.parametrize("level", LEVELS)
def test_operators_are_right_on_every_level(level):
    target = target_of(level)
    if not target.is_host:
        pytest.skip("this machine lacks features of it")
    dense, softmax, _, floor, squares, halves, _ = run_program(operators, [X, W, N, H], target=target)
    # f32 sums of 40 products round up to 40 times by 2**-24, of terms around 1.
    np.testing.assert_allclose(dense, X.astype(np.float64) @ W.T.astype(np.float64), rtol=1e-5, atol=1e-5)
    exponentials = np.exp(X.astype(np.float64) - X.max(1, keepdims=True))
    np.testing.assert_allclose(softmax, exponentials / exponentials.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(floor, np.floor(X))
    np.testing.assert_array_equal(squares, N * N)
    np.testing.assert_array_equal(halves, H * H)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("level", LEVELS)
def test_sums_of_16_bits_are_compared_as_they_are_rounded(level, dtype):
    """A kernel computes the sums twice: for the largest, and for where it is. Sums that differ in f32 are often equal in 16 bits."""
    rng = np.random.default_rng(3)
    x, b = rng.uniform(-1, 1, (30, 3, 128)).astype(dtype), rng.uniform(0.5, 1, (3, 1)).astype(dtype)

    target = target_of(level)
    target = target if target.is_host else relayc.Target(target, emulate=True)
    total = (x + b).astype(np.float32).transpose(1, 0, 2).reshape(3, -1)
    assert ((total == total.max(1, keepdims=True)).sum(1) > 1).any()
    for name, values in (("argmax", total), ("argmin", -total)):
        for last in (False, True):
            body = lambda x, b: [build(name, build("add", x, b), axis=(0, 2), select_last_index=last)]  # noqa: B023, E731 (called now)
            [found] = run_program(body, [x, b], target=target)
            expected = values.shape[1] - 1 - values[:, ::-1].argmax(1) if last else values.argmax(1)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("name", "shapes"), [("mlp_mixer", {"series": (1, 24, 5)}), ("vit", None)])
def test_models_agree_with_onnxruntime_on_every_level_that_runs(name, shapes, level):
    path = Path(__file__).parents[2] / "models" / f"{name}.onnx"
    module = relayc.compile(path, target=target_of(level), shapes=shapes)
    if module.lacking:
        assert len(module.assembly()) > 10_000
        return
    inputs = random_inputs(module.inputs, 0)
    found = compare(module.run(inputs), run_onnxruntime(path, inputs))
    assert found.agrees, found


def foreign():
    """A target that this machine cannot run, whatever it is: no CPU has all of these."""
    return relayc.Target("cpu", mcpu="sapphirerapids", features="+avxneconvert,+avxvnniint8,+avxifma,+amx-fp16,+amx-complex")


@pytest.fixture
def model():
    return model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [4, 64]})


def test_a_program_for_another_machine_says_so_when_it_is_called(model):
    if foreign().is_host:
        pytest.skip("this machine has everything")
    module = relayc.compile(model, target=foreign())
    assert module.lacking == foreign().lacking
    assert "zmm" in module.assembly()
    x = np.zeros((4, 64), np.float32)
    for call in (module["main"], module[module.function_names()[1]], module.profile):
        with pytest.raises(RuntimeError, match=r"is for target cpu -mcpu=sapphirerapids.*this machine lacks .*amx-complex"):
            call([x] if call == module.profile else x)


def test_a_program_for_another_machine_is_kept(model, tmp_path, monkeypatch):
    if foreign().is_host:
        pytest.skip("this machine has everything")
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("relayc.pipelines.driver.compile_cache._sources_are_loaded", lambda: True)
    first = relayc.compile(model, target=foreign())
    again = relayc.compile(model, target=foreign())
    assert list(again.stats) == ["cache"] and again.lacking
    with pytest.raises(RuntimeError, match="this machine lacks"):
        again["main"](np.zeros((4, 64), np.float32))
    assert again.assembly() == first.assembly()


def test_assembly_of_one_function_has_the_bodies_of_its_loops(model):
    module = relayc.compile(model)
    kernel = module.function_names()[1]
    labels = re.findall(r"^(\S+):$", module.assembly(kernel), re.MULTILINE)
    assert labels[0] == kernel and all(label.startswith(kernel) for label in labels)
    with pytest.raises(KeyError, match="no function 'other'"):
        module.assembly("other")
