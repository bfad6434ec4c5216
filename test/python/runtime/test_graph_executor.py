"""Programs as TVM's graphs, and the executors that run them node by node."""

import json
import re
import time
import types
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
import tvm_ffi

import relayc
from relayc import relay
from relayc.pipelines.context.passes import PassContext
from relayc.runtime import (
    GraphExecutor,
    GraphExecutorDebug,
    GraphModule,
    Tensor,
    graph_executor,
    graph_executor_debug,
    save_param_dict,
    timing,
)
from relayc.runtime.graph import NOP, parse_graph

# The two convolutions write their parts of the concatenation; the product reads it under another shape.
MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
joined (float[1, 4, 6, 6] image) => (float[1, 3] scores, float[1, 8, 3, 3] pooled)
{
  a = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (image, first)
  b = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (a, second)
  features = Concat <axis = 1> (a, b)
  pooled = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (features)
  flat = Flatten (pooled)
  scores = MatMul (flat, weights)
}
"""


@pytest.fixture(scope="module")
def joined():
    rng = np.random.default_rng(0)
    model = onnx.parser.parse_model(MODEL)
    for name, shape in (("first", (4, 4, 3, 3)), ("second", (4, 4, 3, 3)), ("weights", (72, 3))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(rng.standard_normal(shape, np.float32) / 8, name))
    with PassContext(disabled_pass=["AlterOpLayout"]):  # whose layouts are those of the machine's vectors
        return relayc.compile(model)


@pytest.fixture(scope="module")
def image():
    return np.random.default_rng(1).standard_normal((1, 4, 6, 6), np.float32)


def arrays(executor):
    return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]


def assert_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


# ---- the graph


def test_the_graph_is_tvms_json(joined):
    data = json.loads(joined.graph_json)
    assert data["nodes"][data["arg_nodes"][0]]["name"] == "image"
    assert {node["op"] for node in data["nodes"]} == {"null", "tvm_op"}
    call = next(node for node in data["nodes"] if node["op"] == "tvm_op")
    assert call["attrs"]["func_name"] in joined.function_names() and call["attrs"]["num_inputs"] == str(len(call["inputs"]))
    entries = data["node_row_ptr"][-1]
    assert len(data["node_row_ptr"]) == len(data["nodes"]) + 1
    assert {name: (kind, len(values)) for name, (kind, values) in data["attrs"].items()} == {
        "dltype": ("list_str", entries),
        "device_index": ("list_int", entries),
        "storage_id": ("list_int", entries),
        "storage_offset": ("list_int", entries),
        "shape": ("list_shape", entries),
    }
    # A node takes what nodes before it give.
    assert all(place[0] < i for i, node in enumerate(data["nodes"]) for place in node["inputs"])


def test_a_graph_is_read_back_from_its_json(joined):
    assert parse_graph(joined.graph_json) == joined.graph()
    with pytest.raises(ValueError, match="graph: expected TVM's graph JSON, found"):
        parse_graph('{"nodes": []}')


def _reads_itself(data):
    last = data["nodes"][-1]
    last["inputs"][0] = [len(data["nodes"]) - 1, 0, 0]


def _reads_before_the_first(data):
    data["nodes"][-1]["inputs"][0][0] = -1


def _has_a_head_before_the_first(data):
    data["heads"][0][0] = -1


def _has_arguments_in_one_storage(data):
    storages = data["attrs"]["storage_id"][1]
    storages[1] = storages[0]


def _has_a_tensor_larger_than_the_argument_in_its_storage(data):
    last = data["node_row_ptr"][-2]
    data["attrs"]["storage_id"][1][last] = data["attrs"]["storage_id"][1][0]
    data["attrs"]["shape"][1][last] = [1 << 20]


@pytest.mark.parametrize(
    "change, message",
    [
        (_reads_itself, "reads output 0 of node [0-9]+, which is none of an earlier node"),
        (_reads_before_the_first, "reads output 0 of node -1, which is none of an earlier node"),
        (_has_a_head_before_the_first, "head 0 of node -1, which has no such output"),
        (_has_arguments_in_one_storage, "arguments without tensors, or two in the same storage"),
        (_has_a_tensor_larger_than_the_argument_in_its_storage, "with more bytes than the argument in its storage"),
    ],
)
def test_a_graph_that_cannot_be_run_in_order_is_refused(joined, change, message):
    data = json.loads(joined.graph_json)
    change(data)
    with pytest.raises(ValueError, match=f"graph: expected TVM's graph JSON, found a text that is not .*{message}"):
        parse_graph(json.dumps(data))


def test_tensors_that_share_bytes_share_a_storage(joined):
    graph = joined.graph()
    joins = [node for node in graph.nodes if node.function == NOP and len(node.inputs) == 2]
    assert joins, "the model was to have a concatenation in place"
    for node in (node for node in graph.nodes if node.function == NOP):
        assert {graph.entry(place).storage for place in node.inputs} == {node.outputs[0].storage}
    first, second = (graph.entry(place) for place in joins[0].inputs)
    assert second.offset == first.offset + first.num_bytes


def test_nodes_say_which_nodes_of_the_model_they_are(joined):
    graph = joined.graph()
    assert {"nn.conv2d", "nn.max_pool2d"} <= {op for node in graph.nodes for op in node.attrs.get("ops", "").split()}
    assert all(node.sources for node in graph.nodes if node.op == "tvm_op" and node.function != NOP)


def test_a_program_of_symbols_is_a_graph_at_sizes():
    program = relayc.Program()

    @program.function(x=relayc.TensorType(("n", 4), "float32"))
    def main(x):
        y = program.op.nn.softmax(x)
        return program.op.reshape(y, newshape=(-1,))

    module = relayc.compile(program.module())
    with pytest.raises(ValueError, match="main: expected sizes for the graph of n, found none"):
        _ = module.graph_json
    x = np.random.default_rng(0).standard_normal((5, 4), np.float32)
    executor = GraphExecutor(module, sizes={"n": 5})
    executor.run(x=x)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), module["main"](x))
    assert parse_graph(executor.graph.json()) == executor.graph


def test_a_loop_is_no_graph():
    program = relayc.Program()

    @program.function(x=relayc.TensorType((3,), "float32"), steps=relayc.TensorType((), "int32"))
    def main(x, steps):
        return program.while_loop(lambda i, y: i < steps, lambda i, y: (i + 1, y + x), (0, x))[1]

    with pytest.raises(ValueError, match=r"main: expected a graph: .*; found a loop"):
        GraphExecutor(relayc.compile(program.module()))


def test_a_program_that_calls_itself_is_no_graph():
    program = relayc.Program()
    x, n = relayc.TensorType((3,), "float32"), relayc.TensorType((), "int32")

    @program.function(private=True, returns=x, n=n, x=x)
    def power(n, x):
        return program.if_else(n <= 1, lambda: x, lambda: x * program.call("power", n - 1, x))

    @program.function(n=n, x=x)
    def main(n, x):
        return program.call("power", n, x)

    with pytest.raises(ValueError, match=r"main: expected a graph: .*; found a call of power, which calls itself or finds out sizes"):
        _ = relayc.compile(program.module()).graph_json


# ---- the executor


def test_an_executor_gives_what_the_module_gives(joined, image):
    executor = GraphExecutor(joined)
    executor.set_input("image", image)
    executor.run()
    assert isinstance(executor.get_output(0), Tensor)
    assert_same(arrays(executor), joined["main"](image))
    executor.run(image=-image)
    assert_same(arrays(executor), joined["main"](-image))
    out = np.empty((1, 3), np.float32)
    assert executor.get_output("scores", out) is out
    np.testing.assert_array_equal(out, joined["main"](-image)[0])


def test_the_three_artefacts_alone_are_enough(joined, image):
    class Functions:  # without the parameters that a library of relayc has
        get_function = joined.lib.get_function

    executor = graph_executor.create(joined.graph_json, Functions, "cpu")
    executor.set_input(0, image)
    with pytest.raises(ValueError, match="run: expected all inputs and parameters to be set, found none for const"):
        executor.run()
    executor.load_params(save_param_dict(joined.params))
    executor.run()
    assert_same(arrays(executor), joined["main"](image))
    other = graph_executor.create(joined.graph_json, Functions)
    other.share_params(executor, save_param_dict(joined.params))
    other.run(image=image)
    assert_same(arrays(other), joined["main"](image))
    name = next(name for name in joined.params)
    assert other.get_input(name).data.data_ptr() == executor.get_input(name).data.data_ptr()
    other.set_input(name, np.zeros_like(joined.params[name]))  # a copy, as the memory is that of the other one
    np.testing.assert_array_equal(executor.get_input(name).numpy(), joined.params[name])


def test_an_exported_library_is_the_library_of_a_graph(joined, image, tmp_path):
    joined.export_library(tmp_path / "model.so")
    loaded = relayc.load_module(tmp_path / "model.so")
    assert loaded.graph_json == joined.graph_json
    executor = GraphExecutor(loaded)
    executor.run(image=image)
    assert_same(arrays(executor), joined["main"](image))
    # The file by itself, without what relayc knows of it.
    executor = graph_executor.create(joined.graph_json, tvm_ffi.load_module(tmp_path / "model.so"))
    executor.load_params(save_param_dict(joined.params))
    executor.run(image=image)
    assert_same(arrays(executor), joined["main"](image))


def test_inputs_are_named_and_numbered(joined, image):
    executor = GraphExecutor(joined)
    assert executor.get_num_inputs() == 1 + len(joined.params) and executor.get_num_outputs() == 2
    assert executor.get_input_index("image") == 0 and executor.get_input_index("nothing") == -1
    assert executor.get_input_info() == ({"image": (1, 4, 6, 6)}, {"image": "float32"})
    with pytest.raises(ValueError, match="input 'image': expected it to be set"):
        executor.get_input("image")
    executor.set_input("image", image)
    np.testing.assert_array_equal(executor.get_input(0).numpy(), image)


def test_memory_of_the_caller_is_read_and_written_in_place(joined, image):
    executor = GraphExecutor(joined)
    mine, scores = image.copy(), np.empty((1, 3), np.float32)
    executor.set_input("image", -image)  # in memory of the executor
    executor.set_input_zero_copy("image", mine)
    executor.set_output_zero_copy("scores", scores)
    executor.run()
    np.testing.assert_array_equal(scores, joined["main"](image)[0])
    mine *= 2
    executor.run()
    np.testing.assert_array_equal(scores, joined["main"](2 * image)[0])
    # A copy again: the caller's memory is left alone.
    executor.set_input("image", image)
    np.testing.assert_array_equal(mine, 2 * image)
    with pytest.raises(ValueError, match="input 'image': expected a contiguous aligned array"):
        executor.set_input_zero_copy("image", image.transpose(0, 1, 3, 2))
    scores.flags.writeable = False
    with pytest.raises(ValueError, match="output 'scores': expected an array that may be written, found one that may not"):
        executor.set_output_zero_copy("scores", scores)


def test_outputs_are_named_and_numbered(joined, image):
    executor = GraphExecutor(joined)
    executor.run(image=image)
    out = Tensor(np.empty((1, 3), np.float32))
    executor.get_output("scores", out)
    np.testing.assert_array_equal(out.numpy(), executor.get_output(0).numpy())
    for key in (2, -1, "score"):
        with pytest.raises(KeyError, match=f"no output {key!r}; there are scores, pooled"):
            executor.get_output(key)
    assert executor["get_num_outputs"]() == 2 and re.fullmatch(r"<relayc graph executor of \d+ calls, on cpu:0>", repr(executor))
    for key in ("_find", "graph", "nothing"):
        with pytest.raises(KeyError, match=f"no function {key!r} of a graph executor"):
            executor[key]
    assert set(joined.lib.function_names()) == {node.function for node in executor.graph.nodes if node.function not in ("", NOP)}
    with pytest.raises(KeyError, match="no function 'nothing' in the library; it has"):
        joined.lib["nothing"]


def test_a_graph_of_a_function_that_nobody_has_is_refused(joined):
    name = next(node["attrs"]["func_name"] for node in json.loads(joined.graph_json)["nodes"] if node["op"] != "null")
    with pytest.raises(
        ValueError, match=r"graph: expected the function 'test\.nobody' in the library or among global functions, found none"
    ):
        graph_executor.create(joined.graph_json.replace(f'"{name}"', '"test.nobody"'), joined.lib, "cpu")


def test_setting_a_parameter_leaves_the_module_alone(joined, image):
    executor = GraphExecutor(joined)
    before = {name: array.copy() for name, array in joined.params.items()}
    executor.run(**{"image": image, **{name: np.zeros_like(array) for name, array in before.items()}})
    assert not executor.get_output(0).numpy().any()
    assert_same(joined.params.values(), before.values())


@pytest.mark.parametrize(
    ("key", "value", "error", "message"),
    [
        ("other", 0, KeyError, "no input 'other'; there are image"),
        (99, 0, KeyError, "no input 99"),
        ("image", np.zeros((1, 4, 6, 6)), TypeError, r"input 'image': expected float32\[1, 4, 6, 6\], found float64"),
        ("image", np.zeros((4, 6, 6), np.float32), ValueError, r"expected float32\[1, 4, 6, 6\], found float32\[4, 6, 6\]"),
        ("image", "text", TypeError, "found a value of type str"),
    ],
)
def test_wrong_inputs_are_errors(joined, key, value, error, message):
    with pytest.raises(error, match=message):
        GraphExecutor(joined).set_input(key, value)


def test_benchmark_gives_the_times_of_runs(joined, image):
    result = GraphExecutor(joined).benchmark(repeat=3, number=2, end_to_end=True, image=image)
    assert len(result.results) == 3 and 0 < result.min <= result.median <= result.max
    assert "mean (ms)" in str(result)
    with pytest.raises(ValueError, match="expected the function 'run', found 'main'"):
        GraphExecutor(joined).benchmark(func_name="main", image=image)


# ---- as users of Relay write it


def dense():
    """A program of Relay, its parameters, and an input."""
    rng = np.random.default_rng(3)
    x, weight = relay.var("x", shape=(4, 8)), relay.var("weight", shape=(6, 8))
    mod = relay.IRModule.from_expr(relay.Function([x, weight], relay.nn.relu(relay.nn.dense(x, weight))))
    return mod, {"weight": rng.standard_normal((6, 8), np.float32)}, rng.standard_normal((4, 8), np.float32)


def assert_runs_as_in_tvm(library, params, x):
    expected = np.maximum(x @ params["weight"].T, 0)
    m = GraphModule(library["default"]("cpu"))
    m.set_input("x", x)
    m.run()
    assert m.get_num_outputs() == 1
    np.testing.assert_allclose(m.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-6)  # sums of 8 products in another order
    m.module["set_input"]("x", 2 * x)
    m.module["run"]()
    np.testing.assert_allclose(m.get_output(0).asnumpy(), 2 * expected, rtol=1e-5, atol=2e-6)
    times = m.module.time_evaluator("run", "cpu", number=2, repeat=3)()
    assert len(times.results) == 3 and times.mean == pytest.approx(sum(times.results) / 3) and times.min > 0
    assert len(m.benchmark("cpu", repeat=2, number=1).results) == 2


def test_a_graph_module_runs_as_in_tvm(tmp_path):
    mod, params, x = dense()
    library = relay.build(mod, target="llvm", params=params)
    assert_runs_as_in_tvm(library, params, x)
    library.export_library(tmp_path / "dense.so")
    loaded = relayc.load_module(tmp_path / "dense.so")
    assert_runs_as_in_tvm(loaded, params, x)
    for module in (library.module, loaded):
        np.testing.assert_array_equal(module["main"](x=x), module["main"](x))
        debug = GraphExecutorDebug(module)
        profile = debug.profile(x=x)
        assert [row.kernel.name for row in profile.rows] == [kernel.name for kernel in module.step_kernels]
        assert all(row.seconds > 0 for row in profile.rows) and profile.latency > 0
    with pytest.raises(ValueError, match="graph executor: expected the device cpu:0, found cuda"):
        loaded["default"]("cuda")
    with pytest.raises(ValueError, match="run: expected all inputs and parameters to be set, found none for x"):
        GraphExecutorDebug(loaded).profile()


def test_the_library_of_a_factory_is_exported(tmp_path):
    mod, params, x = dense()
    graph, library, found = relay.build(mod, target="llvm", params=params, runtime="cpp", executor="graph")
    library.export_library(tmp_path / "kernels.so", fcompile=False, options=["-O2"])
    loaded = relayc.load_module(tmp_path / "kernels.so")
    expected = np.maximum(x @ params["weight"].T, 0)
    for executor in (graph_executor.create(graph, loaded, "cpu"), graph_executor.create(graph, library, "cpu")):
        assert executor.get_input_info() == ({"x": (4, 8)}, {"x": "float32"})  # the parameters are set
        executor.set_input(**found)
        executor.set_input("x", x)
        executor.run()
        np.testing.assert_allclose(executor.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-6)  # sums of 8 products
        (name,) = executor.get_output_info()[0]
        assert executor.get_output_info() == ({name: (4, 6)}, {name: "float32"})
        assert (executor.get_output_index(name), executor.get_output_index("no")) == (0, -1)


def test_integers_of_another_type_are_inputs_where_they_fit():
    x = relay.var("x", shape=(3,), dtype="uint8")
    executor = relay.build(relay.Function([x], x + x), "llvm")["default"]("cpu")
    executor.set_input("x", np.array([1, 0, 127], "int64"))
    executor.run()
    np.testing.assert_array_equal(executor.get_output(0).numpy(), [2, 0, 254])
    for array in (np.array([1, -1, 2]), np.array([256, 0, 0]), np.array([1.0, 2.0, 3.0])):
        with pytest.raises(TypeError, match=r"input 'x': expected uint8\[3\], found"):
            executor.set_input("x", array)


def test_a_graph_module_shares_the_state_of_its_executor(joined, image):
    executor = GraphExecutor(joined)
    wrapper = GraphModule(executor)
    wrapper.set_input("image", image)
    executor.run()
    assert_same(arrays(wrapper), joined["main"](image))
    assert_same(arrays(wrapper), arrays(executor))
    with pytest.raises(TypeError, match="expected an executor or a module, found str"):
        GraphModule("joined")


def test_executors_share_parameters(joined, image):
    one, other = GraphModule(joined), graph_executor.create(joined.graph_json, joined.lib, "cpu")
    other.share_params(one, save_param_dict(joined.params))
    other.run(image=image)
    assert_same(arrays(other), joined["main"](image))
    functions = types.SimpleNamespace(get_function=joined.lib.get_function)  # without the parameters
    empty = graph_executor.create(joined.graph_json, functions, "cpu")
    with pytest.raises(ValueError, match=r"share_params: expected the parameter '.*' in the other executor, found it not set"):
        other.share_params(empty, save_param_dict(joined.params))


def test_a_time_evaluator_times_programs_and_kernels(joined, image, monkeypatch):
    calls = []

    def count():
        calls.append(1)

    result = timing.evaluator(count, number=3, repeat=4, finish=lambda: calls.append(0))()
    assert calls == [1, 0] + [1, 1, 1, 0] * 4 and len(result.results) == 4
    calls.clear()
    monkeypatch.setattr(time, "sleep", lambda seconds: calls.append(seconds))
    timing.timed(count, number=1, repeat=5, cooldown_interval_ms=20, repeats_to_cooldown=2)
    assert calls == [1, 1, 0.02, 1, 1, 0.02, 1]
    clock = iter(range(100))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))  # a second between looks
    calls.clear()
    assert timing.timed(count, number=2, repeat=2, min_repeat_ms=1000).results == (0.5, 0.5) and len(calls) == 4
    monkeypatch.setattr(time, "perf_counter", lambda: len(calls) / 10)
    calls.clear()
    assert timing.timed(count, number=2, repeat=1, min_repeat_ms=1000).results == pytest.approx([0.1]) and len(calls) == 12
    monkeypatch.undo()
    assert joined.time_evaluator("main", "cpu", number=1, repeat=2)(image=image).mean > 0
    times = joined.time_evaluator("main", min_repeat_ms=2, number=1)(image)
    assert times.results[0] > 0
    kernel = next(info for info in joined.kernels if info.name in joined.function_names())
    inputs = [np.ones([int(d) for d in spec.shape], spec.dtype) for spec in kernel.inputs]
    assert joined.time_evaluator(kernel.name, number=2)(*inputs).max > 0
    with pytest.raises(KeyError, match="no function 'mian' in the module"):
        joined.time_evaluator("mian")
    with pytest.raises(ValueError, match="time_evaluator: expected the device cpu:0, found cuda"):
        joined.time_evaluator("main", "cuda")
    with pytest.raises(ValueError, match="expected number, repeat and repeats_to_cooldown of 1 or more, found 0, 1 and 1"):
        joined.time_evaluator("main", number=0)(image)
    with pytest.raises(TypeError, match="main: expected 1 inputs"):
        joined.time_evaluator("main")()


def test_what_a_packed_function_raises_arrives_as_it_is():
    program = relayc.Program()
    type_ = relayc.TensorType((3,), "float32")

    @program.function(x=type_)
    def main(x):
        return program.call_packed("relayc.test.executor", [x], type_)

    error = KeyError("mine")

    def refuse(x, y):
        raise error

    module = relayc.compile(program.module())
    relayc.register_func("relayc.test.executor", refuse)
    try:
        with pytest.raises(KeyError) as found:
            GraphExecutor(module).run(x=np.zeros(3, np.float32))
        assert found.value is error
    finally:
        tvm_ffi.registry.remove_global_func("relayc.test.executor")


# ---- the executor that keeps everything


def test_a_debug_run_keeps_what_each_node_gave(joined, image):
    executor = GraphExecutorDebug(joined)
    executor.run(image=image)
    assert_same(arrays(executor), joined["main"](image))
    calls = [node.name for node in executor.graph.nodes if node.op == "tvm_op" and node.function != NOP]
    assert [call.node for call in executor.times] == calls and all(call.seconds > 0 for call in executor.times)
    pool = next(node for node in executor.graph.nodes if "nn.max_pool2d" in node.attrs.get("ops", ""))
    features = executor.debug_get_output(executor.graph.nodes[pool.inputs[0][0]].name)
    np.testing.assert_array_equal(executor.debug_get_output(pool.name), features.reshape(1, 8, 3, 2, 3, 2).max((3, 5)))
    np.testing.assert_array_equal(executor.debug_get_output("image"), image)
    with pytest.raises(KeyError, match="no node 'nothing' in the graph"):
        executor.debug_get_output("nothing")


def test_a_node_can_be_reached_without_a_run(joined, image):
    whole, part = GraphExecutorDebug(joined), GraphExecutorDebug(joined)
    whole.run(image=image)
    part.set_input("image", image)
    node = whole.times[0].node
    np.testing.assert_array_equal(part.debug_get_output(node), whole.tensors[node])
    out = np.empty_like(whole.tensors[node])
    assert part.debug_get_output(part.node_number(node), out) is out
    np.testing.assert_array_equal(out, whole.tensors[node])
    for number in (-1, len(part.graph.nodes), "nothing"):
        with pytest.raises(KeyError):
            part.node_number(number)
    other, names = -image, [part.graph.nodes[number].name for number, _ in part.graph.nodes[part.node_number(node)].inputs]
    weights = 2 * joined.params[names[1]]
    for executor in (part, whole):
        executor.set_input(names[1], weights - 1)  # in memory of its own
    found = part.run_node(node, {0: other, 1: weights})
    whole.run(**{names[0]: other, names[1]: weights})
    np.testing.assert_array_equal(found[0], whole.tensors[node])
    with pytest.raises(ValueError, match=rf"node {node}: input 0: expected .*, found float32\[1\]"):
        part.run_node(node, {0: np.zeros(1, np.float32)})
    assert part.node_number(len(part.graph.nodes) - 1) == len(part.graph.nodes) - 1


def test_a_debug_run_writes_files_for_other_tools(joined, image, tmp_path):
    executor = GraphExecutorDebug(joined, dump_root=tmp_path / "run")
    executor.run(image=image)
    events = json.loads((tmp_path / "run" / "trace.json").read_text())["traceEvents"]
    calls = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in calls] == [call.node for call in executor.times]
    assert [(event["ts"], event["dur"]) for event in calls] == [(call.start * 1e6, call.seconds * 1e6) for call in executor.times]
    assert all(event["dur"] > 0 and event["ts"] >= 0 and {"pid", "tid"} <= event.keys() for event in calls)
    assert calls[0]["args"]["sources"] and calls[0]["args"]["outputs"]
    with np.load(tmp_path / "run" / "tensors.npz", allow_pickle=False) as tensors:
        assert set(tensors) == set(executor.tensors)
        np.testing.assert_array_equal(tensors[calls[0]["name"]], executor.tensors[calls[0]["name"]])
    assert parse_graph((tmp_path / "run" / "graph.json").read_text()) == executor.graph


def test_nodes_are_timed_one_by_one(joined, image):
    executor = GraphExecutorDebug(joined)
    executor.set_input("image", image)
    times = executor.run_individual(number=2, repeat=2)
    for node, seconds in zip(executor.graph.nodes, times, strict=True):
        assert len(seconds) == 2 and all((s > 0) == (node.function not in ("", NOP)) for s in seconds)
    call = next(node for node in executor.graph.nodes if node.op == "tvm_op")
    assert executor.run_individual_node(call.name, number=1).mean > 0


def test_nodes_before_one_that_is_timed_run_once(joined, image, monkeypatch):
    executor = GraphExecutorDebug(joined)
    executor.set_input("image", image)
    executor._functions = {n: Mock(wraps=function) for n, function in executor._functions.items()}
    node = sorted(executor._functions)[1]
    monkeypatch.setattr(graph_executor_debug, "timed", lambda *_: [function.call_count for function in executor._functions.values()])
    assert executor.run_individual_node(node) == [int(n < node) for n in executor._functions]


# ---- imports


def test_functions_of_imported_modules_are_found(joined, image):
    program = relayc.Program()

    @program.function(x=relayc.TensorType((3,), "float32"))
    def other(x):
        return -x

    module, library = relayc.compile(program.module()), tvm_ffi.system_lib("relayc.test.none.")
    with pytest.raises(KeyError, match="no function 'main'"):
        module.get_function("main", query_imports=True)
    module.import_module(library)
    module.import_module(joined)
    assert module.imported_modules == (library, joined)
    assert module.get_function("main", query_imports=True) is joined["main"]
    kernel = joined.kernels[0].name
    assert module.lib.get_function(kernel, query_imports=True) is joined[kernel].packed
    with pytest.raises(KeyError, match="no function 'main' in the module; it has other"):
        module.get_function("main")
    with pytest.raises(ValueError, match="expected a module that does not import this one"):
        joined.import_module(module)
    with pytest.raises(TypeError, match="expected a relayc or tvm-ffi module, found 3"):
        module.import_module(3)


def test_an_input_that_was_read_is_the_memory_of_the_executor(joined, image):
    executor = GraphExecutor(joined)
    executor.set_input("image", image)
    shared = executor.get_input("image")
    executor.set_input("image", 2 * image)
    np.testing.assert_array_equal(shared.numpy(), 2 * image)
