"""Modules with hot sizes: what they compute is what programs of these sizes alone do, with the same kernels; and their errors."""

import os
import threading
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of

import relayc
from relayc import TensorType
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.passes import find_pass
from relayc.pipelines.driver import compile_cache
from relayc.runtime.artifact import ALIGNMENT
from relayc.runtime.cpu import objects
from relayc.tools import cli
from relayc.tools.inputs import random_inputs

FOLDER = Path(__file__).parents[2] / "models" / "dynamic"
HOT = {
    "bert": {"batch": 1, "seq": 32},
    "decoder": {"batch": 1, "seq": 1, "past": 17},
    "recurrent": {"batch": 2, "seq": 5},
    "resnet18": {"batch": 1},
    "segmenter": {"height": 33, "width": 40},
}


def layer(weight):
    """softmax(x w) over [n, m, 64], as a model with symbols n and m, both at least 1."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Softmax", ["h"], ["y"])]
    return model_of(nodes, {"x": ["n", "m", 64]}, initializers={"w": weight}, ir_version=10)


W = np.random.default_rng(0).standard_normal((64, 48), np.float32)
DIMS = {"n": (1, 64), "m": (0, 4096)}


def expected(x):
    h = x @ W
    e = np.exp(h - h.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def given(n, m):
    return np.random.default_rng(n * 100 + m).standard_normal((n, m, 64), np.float32)


def reached(module, x):
    """The programs whose kernels a call runs."""
    return {row.where for row in module.profile([x], repeat=1).rows}


@pytest.mark.parametrize("name", HOT)
def test_hot_sizes_of_a_model_have_the_kernels_and_the_bits_of_a_static_program(name):
    path, sizes = FOLDER / f"{name}.onnx", HOT[name]
    static = relayc.compile(path, dims=sizes)
    module = relayc.compile(path, specialize=[sizes])
    inputs = random_inputs(static.inputs)
    found, wanted = module.run(inputs), static.run(inputs)
    for key in wanted:
        np.testing.assert_array_equal(found[key], wanted[key])
    special = [site.kernel for site in module.call_sites() if site.where.startswith("main_") and "general" not in site.where]
    alone = [site.kernel for site in static.call_sites()]
    assert [(k.ops, k.schedule, k.inputs) for k in special] == [(k.ops, k.schedule, k.inputs) for k in alone]


def test_each_size_runs_the_program_of_most_symbols_that_is_for_it():
    module = relayc.compile(layer(W), dims=DIMS, specialize=[{"n": 1}, {"m": 7, "n": 3}, {"n": 1, "m": 16}])
    assert module.specialized == ({"m": 7, "n": 3}, {"m": 16, "n": 1}, {"n": 1})
    wanted = {(1, 1): "main_n_1", (1, 16): "main_m_16_n_1", (3, 7): "main_m_7_n_3", (2, 7): "main_general", (3, 8): "main_general"}
    for (n, m), program in wanted.items():
        x = given(n, m)
        # Sums of 64 products of standard normal numbers in f32.
        np.testing.assert_allclose(module["main"](x), expected(x), rtol=1e-4, atol=1e-6)
        assert reached(module, x) == {program}
    np.testing.assert_array_equal(module["main"](given(1, 0)), np.empty((1, 0, 48), np.float32))


def layouts(module):
    """The shapes in which a module has its weights."""
    return [parameter.spec.shape for parameter in module._artifact.parameters]


def test_weights_that_several_sizes_read_alike_are_there_once():
    static = relayc.compile(layer(W), dims={"n": 4, "m": 32})
    module = relayc.compile(layer(W), dims=DIMS, specialize=[{"n": 4, "m": 32}, {"n": 2, "m": 64}, {"n": 8, "m": 16}])
    general = relayc.compile(layer(W), dims=DIMS)
    # That of the general program and that of the static ones, which are all alike; both may be the same.
    general_layout, static_layout, found = map(layouts, (general, static, module))
    assert sorted(found) == sorted({*general_layout, *static_layout})
    assert module._artifact.params.nbytes <= sum(map(prod, found)) * W.itemsize + ALIGNMENT * len(found)


def test_kernels_that_are_equal_at_several_sizes_are_there_once():
    nodes = [helper.make_node("MatMul", ["z", "w"], ["v"]), helper.make_node("Softmax", ["x"], ["y"])]
    model = model_of(nodes, {"x": ["n", 5], "z": [8, 64]}, ["y", "v"], {"w": W})
    module = relayc.compile(model, specialize=[{"n": 4}, {"n": 2}])
    products = [site.kernel.name for site in module.call_sites() if "nn.dense" in site.kernel.ops]
    assert len(products) == 3 and len(set(products)) == 1


def test_memory_of_a_size_is_taken_at_that_size_only():
    dims, small, large = {"n": (1, 64), "m": (0, 8192)}, given(1, 2), given(1, 4096)
    module = relayc.compile(layer(W), dims=dims, specialize=[{"n": 1, "m": 4096}])
    for x in (small, large):
        static = relayc.compile(layer(W), dims={"n": 1, "m": x.shape[1]})
        general = relayc.compile(layer(W), dims=dims)
        assert module.arena_bytes([x]) == max(static.arena_bytes([x]) if x is large else 0, general.arena_bytes([x]))
    assert module.arena_bytes([small]) < module.arena_bytes([large])


def test_sizes_that_only_the_data_knows_come_from_a_hot_program_too():
    node = helper.make_node("NonZero", ["x"], ["y"])
    module = relayc.compile(model_of([node], {"x": ["n", 3]}), specialize=[{"n": 4}])
    for n in (4, 5, 1):
        x = np.arange(3 * n, dtype=np.float32).reshape(n, 3) % 2
        np.testing.assert_array_equal(module["main"](x), np.stack(np.nonzero(x)))


def test_a_symbol_of_a_callee_is_not_the_one_of_the_same_name_in_main():
    """The callee, whose n is 2*n of main, takes 8 rows at n = 4."""
    one, two = 'tensor<?x3xf32, ["n"]>', 'tensor<?x3xf32, ["2*n"]>'
    mod = IRModule.parse(f"""
    func.func private @f(%x: {one}) -> {one} {{
      %0 = "relay.exp"(%x) : ({one}) -> {one}
      return %0 : {one}
    }}
    func.func @main(%x: {one}) -> {two} attributes {{relay.specialize = [{{n = 4 : i64}}]}} {{
      %0 = tensor.concat dim(0) %x, %x : ({one}, {one}) -> {two}
      %1 = "relay.cast_shape"(%0) {{shape = ["n", 3]}} : ({two}) -> {one}
      %2 = call @f(%1) : ({one}) -> {one}
      %3 = "relay.cast_shape"(%2) {{shape = ["2*n", 3]}} : ({one}) -> {two}
      return %3 : {two}
    }}""")
    text = str(find_pass("Specialize")(mod))
    assert "@main_n_4(%arg0: tensor<4x3xf32>) -> tensor<8x3xf32>" in text
    assert f'{{shape = ["n", 3]}} : (tensor<8x3xf32>) -> {one}' in text


def test_a_recursive_program_and_one_that_stays_a_function_have_hot_sizes():
    program = relayc.Program()
    op = program.op
    rows, count = TensorType(("n", 8), "float32"), TensorType((), "int32")

    @program.function(private=True, x=rows, y=rows)
    def mixed(x, y):
        return op.exp(x * 0.5) + op.tanh(y)

    @program.function(x=rows, depth=count, returns=rows)
    def main(x, depth):
        again = lambda: program.call("main", program.call("mixed", x, program.call("mixed", x, x)), depth - 1)  # noqa: E731
        return program.if_else(depth > 0, again, lambda: x)

    with relayc.PassContext(disabled_pass=["Inline"], config={"relay.max_recursion_depth": 20}):
        module = relayc.compile(program.module(), specialize=[{"n": 3}])
    for n in (2, 3):
        x = wanted = np.random.default_rng(n).standard_normal((n, 8)).astype(np.float32)
        for _ in range(3):
            wanted = np.exp(wanted * 0.5) + np.tanh(np.exp(wanted * 0.5) + np.tanh(wanted))
        np.testing.assert_allclose(module["main"](x, np.int32(3)), wanted, rtol=1e-5)
    with pytest.raises(RecursionError, match=r"^main: expected at most 20 nested calls, found more$"):
        module["main"](np.zeros((3, 8), np.float32), np.int32(100))


# ---- one more size -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    onnx.save(layer(W), tmp_path / "layer.onnx")
    return tmp_path / "layer.onnx"


def test_a_module_is_specialized_later(path):
    module = relayc.compile(path, dims=DIMS, num_threads=1)
    before, x = module["main"], given(2, 5)
    wanted = before(x)
    module.specialize({"n": 2})
    module.specialize({"n": 2, "m": np.int64(5)})
    assert module.specialized == ({"m": 5, "n": 2}, {"n": 2})
    assert module.num_threads == 1
    assert reached(module, x) == {"main_m_5_n_2"}
    assert reached(module, given(2, 6)) == {"main_n_2"}
    for function in (before, module["main"]):
        np.testing.assert_allclose(function(x), wanted, rtol=1e-5, atol=1e-7)


def test_a_module_is_specialized_with_the_settings_that_it_was_compiled_with():
    model = model_of([helper.make_node("Exp", ["x"], ["h"]), helper.make_node("Neg", ["h"], ["y"])], {"x": ["n", 3]})
    with relayc.PassContext(opt_level=0):  # which fuses nothing
        module = relayc.compile(model)
    module.specialize({"n": 2}, model=model)
    assert sorted(kernel.ops for kernel in module.kernels) == [("exp",), ("exp",), ("negative",), ("negative",)]


def test_calls_go_on_while_a_module_is_specialized(path):
    module = relayc.compile(path, dims=DIMS)
    x, done, wrong = given(2, 5), threading.Event(), []
    wanted = expected(x)

    def work():
        while not done.is_set():
            if not np.allclose(module["main"](x), wanted, rtol=1e-4, atol=1e-6):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    module.specialize({"n": 2})
    done.set()
    for worker in workers:
        worker.join()
    assert not wrong
    assert reached(module, x) == {"main_n_2"}


def test_a_model_that_is_no_file_is_given_again(path):
    model = layer(W)
    module = relayc.compile(model, dims=DIMS)
    with pytest.raises(ValueError, match=r"^specialize: expected the model again"):
        module.specialize({"n": 2})
    with pytest.raises(ValueError, match=r"^specialize: model: expected what gives"):
        module.specialize({"n": 2}, model=model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": ["n", "m", 64]}))
    module.specialize({"n": 2}, model=model)
    assert module.specialized == ({"n": 2},)


def test_a_file_that_is_another_one_is_refused(path):
    module = relayc.compile(path, dims=DIMS)
    os.utime(path, (1, 1))
    with pytest.raises(ValueError, match=r"as the module was compiled from it, found another one"):
        module.specialize({"n": 2})
    path.unlink()
    with pytest.raises(ValueError, match=r"as the module was compiled from it, found none there"):
        module.specialize({"n": 2})


@pytest.mark.skipif(not objects.can_load(), reason="objects are loaded on Linux on x86-64 only")
def test_the_cache_tells_hot_sizes_apart_and_a_module_from_it_can_have_more(path, tmp_path, monkeypatch):
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_cache, "_sources_are_loaded", lambda: True)
    relayc.compile(path, dims=DIMS)
    relayc.compile(path, dims=DIMS, specialize=[{"n": 2}])
    found = relayc.compile(path, dims=DIMS, specialize=[{"n": 2}])
    assert list(found.stats) == ["cache"] and found.specialized == ({"n": 2},)
    assert relayc.compile(path, dims=DIMS).specialized == ()
    for module in (found, relayc.compile(path, dims=DIMS, specialize=[{"n": 2}])):  # compiled the first time, found the second time
        module.specialize({"n": 3})
        assert reached(module, given(3, 5)) == {"main_n_3"}
        assert reached(module, given(2, 5)) == {"main_n_2"}
    assert list(module.stats) == ["cache"]


# ---- mistakes ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("specialize", "message"),
    [
        ([{"k": 1}], "specialize: expected sizes of symbols of the inputs of main (m, n), found k"),
        ([{}], "specialize: expected sizes of symbols of the inputs of main (m, n), found none"),
        ([{"n": 0}], "specialize: n: expected a size of 1 to 64, found 0"),
        ([{"n": 65, "m": 1}], "specialize: n: expected a size of 1 to 64, found 65"),
        ([{"n": 2147483647}], "specialize: n: expected a size of 1 to 64, found 2147483647"),
        ([{"n": -1}], "specialize: n: expected a size of 0 to 2147483647, found -1"),
        ([{"n": 1, "m": 2}, {"m": 2, "n": 1}], "specialize: expected each entry once, found m = 2, n = 1 twice"),
    ],
)
def test_sizes_that_cannot_be_are_one_clear_error(specialize, message):
    with pytest.raises(ValueError) as error:
        relayc.compile(layer(W), dims=DIMS, specialize=specialize)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "specialize", [[{"n": 1}, 3], {"n": 1}, 1, iter([{"n": 1}]), "n=1", b"n=1", [1], [{"n": "1"}], [{"n": True}], [{"n": 1.0}], [{1: 1}]]
)
def test_what_is_no_list_of_sizes_is_a_type_error(specialize):
    with pytest.raises(TypeError, match=r"^specialize: "):
        relayc.compile(layer(W), specialize=specialize)


@pytest.mark.parametrize(("entry", "found"), [('{n = "1"}', "what is no size"), ("1", "what is no size"), ("{}", "none")])
def test_entries_of_a_module_that_are_no_sizes_are_an_error(entry, found):
    mod = IRModule.parse(f'func.func @main(%x: tensor<?xf32, ["n"]>) attributes {{relay.specialize = [{entry}]}} {{ return }}')
    with pytest.raises(relayc.RelayError, match=rf"specialize: expected sizes of symbols of the inputs of main \(n\), found {found}$"):
        find_pass("Specialize")(mod)


def test_sizes_at_the_ends_of_a_range():
    mod = relayc.compile(layer(W), dims=DIMS, specialize=[{"n": 64}, {"n": 1}], stop_after="relay")
    assert all(f"main_n_{n}" in str(mod) for n in (1, 64))


def test_a_size_that_is_fixed_is_no_symbol_any_more():
    with pytest.raises(ValueError, match=r"expected sizes of symbols of the inputs of main \(m\), found n"):
        relayc.compile(layer(W), dims={"n": 4}, specialize=[{"n": 4}])


def test_sizes_that_make_one_dimension_negative_are_an_error():
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [3, "n - 4"], "z": ["n"]})
    with pytest.raises(ValueError, match=r"^specialize: n = 3: expected sizes of 0 or more, found .*-1.* for the input x of "):
        relayc.compile(model, specialize=[{"n": 3}])


def test_sizes_that_contradict_shapes_name_the_entry():
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    model = model_of(nodes, {"x": ["n", 3]}, initializers={"s": np.array([-1, 6], np.int64)})
    with pytest.raises(ValueError, match=r"^specialize: n = 5: relay.match_shape at"):
        relayc.compile(model, specialize=[{"n": 5}])
    module = relayc.compile(model, specialize=[{"n": 4}])
    np.testing.assert_array_equal(module["main"](np.ones((4, 3), np.float32)), np.ones((2, 6)))
    with pytest.raises(ValueError, match=r"^main: "):
        module["main"](np.ones((5, 3), np.float32))
    with pytest.raises(ValueError, match=r"^specialize: n = 2: expected sizes of 0 or more, found .* for the input x of"):
        relayc.compile(
            model_of([helper.make_node("Add", ["x", "z"], ["y"])], {"x": ["n - 4"], "z": ["n - 4"], "k": ["n"]}), specialize=[{"n": 2}]
        )


def test_the_command_line_has_the_same(path, capsys):
    sizes = ["--size", "n=2", "--size", "m=5", "--dim", "n=1:64"]
    assert cli.main(["run", str(path), *sizes, "--specialize", "n=2", "--specialize", "n=4,m=3", "--check", "--profile"]) == 0
    assert cli.main(["inspect", str(path), *sizes, "--specialize", "n=2,m=5"]) == 0
    assert cli.main(["inspect", str(path), *sizes, "--specialize", "n=2,m=5", "--stage", "te"]) == 0
    assert "call @main_m_5_n_2" in capsys.readouterr().out
    assert cli.main(["run", str(path), *sizes, "--specialize", "n=65"]) == 1
    assert "specialize: n: expected a size of 1 to 64, found 65" in capsys.readouterr().err
    for wrong in ("n", "n=1,n=2", "n=1,", "n=-1"):
        with pytest.raises(SystemExit):
            cli.main(["run", str(path), "--specialize", wrong])
