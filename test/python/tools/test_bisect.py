"""`relayc bisect`: faults that are planted in a pass, a schedule or what an operator computes are named, and the least model shows them."""

import io
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from rich.console import Console

import relayc
from relayc.dialects.mlir import ir, math
from relayc.pipelines.context.instruments import PassInfo
from relayc.pipelines.context.passes import ModulePass, PassContext
from relayc.pipelines.emission.sizes import symbol_names
from relayc.pipelines.targets.cpu.strategies.table import TABLE
from relayc.pipelines.te.rules.core import RULES, elementwise
from relayc.pipelines.tir.strategy.table import STRATEGIES, Entry, register_strategies
from relayc.runtime.params import load_param_dict_from_file
from relayc.tools import cli
from relayc.tools.bisect import command
from relayc.tools.bisect.compiling import Compiler
from relayc.tools.bisect.onnx_parts import OnnxSource
from relayc.tools.bisect.parts import NoPart
from relayc.tools.bisect.search import Search, first_failing
from relayc.tools.bisect.symptoms import HANGS, symptom, symptom_of
from relayc.tools.onnx_graphs import reads
from relayc.tools.reference import compare
from relayc.tools.tables import plain_console

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
small (float[n, 16] x) => (float[n, 4] y, float[n] total)
{
  product = MatMul (x, weights)
  moved = Add (product, bias)
  active = Relu (moved)
  sums = ReduceSum <keepdims = 1> (active, axis)
  shares = Div (active, sums)
  bent = Tanh (shares)
  y = MatMul (bent, more)
  total = ReduceMax <axes = [1], keepdims = 0> (y)
}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rng = np.random.default_rng(0)
    found = onnx.parser.parse_model(MODEL)
    shapes = {"weights": (16, 8), "bias": (8,), "more": (8, 4)}
    arrays = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    arrays |= {"axis": np.array([1]), "bias": arrays["bias"] + 1}
    found.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    path = tmp_path_factory.mktemp("bisect") / "small.onnx"
    onnx.save(found, path)
    return path


def run(capsys, *arguments):
    """(exit code, stdout, stderr) of the command."""
    code = cli.main(["bisect", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def swapped(operator: str, other: str) -> ModulePass:
    """A faulty pass: the last operator of a kind becomes another one."""

    def swap(mod, ctx):
        found = []

        def visit(op):
            if op.name == f"relay.{operator}":
                found.append(op)
            return ir.WalkResult.ADVANCE

        mod.module.operation.walk(visit)
        for op in found[-1:]:
            with ir.InsertionPoint(op), op.location:
                made = ir.Operation.create(f"relay.{other}", [r.type for r in op.results], list(op.operands))
            op.results[0].replace_all_uses_with(made.results[0])
            op.erase()
        return mod

    return ModulePass(swap, PassInfo("Swap", 1))


def fault_in(folder):
    text = (folder / "fault.json").read_text()
    found = json.loads(text)
    assert text == json.dumps(found, indent=1) + "\n"
    return found


def differs(folder):
    """Whether the least model, compiled under what holds now, differs from what the reference gave."""
    with np.load(folder / "inputs.npz") as inputs, np.load(folder / "expected.npz") as expected:
        found = relayc.compile(folder / "model.onnx").run(dict(inputs))
        return not compare(found, dict(expected)).agrees


def operators_of(folder):
    return [node.op_type for node in onnx.load(folder / "model.onnx").graph.node]


def test_nothing_is_found_where_results_agree(model, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path / "cache"))
    code, out, err = run(capsys, model, "--shape", "x=3,16", "--check", "--out", tmp_path / "out")
    assert (code, err) == (0, "") and "agrees with ONNX Runtime: largest difference" in out
    assert not (tmp_path / "out").exists() and not (tmp_path / "cache").exists()


@pytest.mark.parametrize("given", ["made up", "a file"])
def test_a_pass_that_changes_what_the_model_gives_is_named(model, tmp_path, capsys, given):
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, x=np.random.default_rng(0).standard_normal((3, 16), np.float32))
    options = ["--passes", *(["--inputs", inputs] if given == "a file" else ["--size", "n=5"])]
    code, out, err = run(capsys, model, *options)
    assert (code, err) == (0, "") and "every pass that was compared keeps what the model gives" in out
    with PassContext(config={"pipelines.add_pass": [("after:SimplifyExpr", swapped("nn_relu", "negative"))]}):
        code, out, err = run(capsys, model, *options)
    assert code == 1 and "pass Swap changes what the model gives" in err
    case = "input 0" if given == "a file" else "seed 0, n = 5"
    assert f"for {case}: results differ by up to" in out and "@main, result 0 (y)" in out


def test_differences_and_reasons_are_shown_as_they_are():
    shown = io.StringIO()
    found = SimpleNamespace(unchecked=["x[red]: no", "x[red]: no"], differences=["pass A, @main[bold]: 3"])
    command.show_passes(found, plain_console(file=shown, width=20))
    assert shown.getvalue() == "not compared: x[red]: no\npass A, @main[bold]: 3\n"


@pytest.mark.parametrize("reference", ["onnxruntime", "opt0"])
def test_a_faulty_pass_is_named(model, tmp_path, capsys, reference):
    with PassContext(config={"pipelines.add_pass": [("after:SimplifyExpr", swapped("nn_relu", "negative"))]}):
        code, out, err = run(capsys, model, "--reference", reference, "--out", tmp_path)
        assert code == 1 and "pass at fault" in out
        assert differs(tmp_path)
    assert "pass Swap" in err and fault_in(tmp_path)["name"].startswith("Swap")
    assert operators_of(tmp_path) == ["Relu"]
    assert not differs(tmp_path)
    assert "relay.nn_relu" in (tmp_path / "before.mlir").read_text() and "relay.negative" in (tmp_path / "after.mlir").read_text()
    # The model that was written is one for others, too.
    with np.load(tmp_path / "inputs.npz") as inputs, np.load(tmp_path / "expected.npz") as expected:
        session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
        (name,) = expected
        np.testing.assert_allclose(session.run([name], dict(inputs))[0], expected[name], rtol=1e-6)


@pytest.fixture
def faulty_strategy(request):
    """A strategy for sums that stores the negative ones; a parameter says for which kernels."""
    loops = next(entry for entry in TABLE if entry.name == "loops").schedule

    def schedule(kernel, target, tuning):
        found = loops(kernel, target, tuning)
        stores = []

        def visit(op):
            if op.name in ("memref.store", "vector.store", "vector.maskedstore"):
                stores.append(op)
            return ir.WalkResult.ADVANCE

        found.function.operation.walk(visit)
        for op in stores:
            place = 0 if op.name != "vector.maskedstore" else len(op.operands) - 1
            with ir.InsertionPoint(op), op.location:
                stored = op.operands[place]
                op.operands[place] = ir.Operation.create("arith.negf", [stored.type], [stored]).results[0]
        return found

    register_strategies("cpu", Entry("faulty", schedule, anchors=("sum",), condition=getattr(request, "param", None)))
    yield
    STRATEGIES["cpu"][:] = [entry for entry in STRATEGIES["cpu"] if entry.name != "faulty"]


def test_a_faulty_schedule_is_named_with_its_kernel(model, tmp_path, capsys, faulty_strategy):
    code, out, err = run(capsys, model, "--shape", "x=3,16", "--check", "--out", tmp_path)
    assert code == 1 and "kernel at fault" in out and "kernel fused" in err
    found = fault_in(tmp_path)
    assert found["strategy"].startswith("faulty") and "sum" in found["relay operators"].split()
    assert "ReduceSum" in operators_of(tmp_path) and len(operators_of(tmp_path)) <= 2
    assert "linalg." in (tmp_path / "kernel.mlir").read_text()
    assert differs(tmp_path)


LOOP = """
<ir_version: 8, opset_import: ["" : 17]>
repeated (float[3, 8] x, bool more) => (float[3, 8] y)
{
  count = Constant <value = int64 {3}> ()
  y = Loop (count, more, x) <body = step (int64 i, bool go, float[3, 8] v) => (bool again, float[3, 8] next) {
    again = Identity (go)
    mixed = MatMul (v, square)
    sums = ReduceSum <keepdims = 1> (mixed, axis)
    shares = Div (mixed, sums)
    next = MatMul (shares, square)
  }>
}
"""


def test_a_faulty_schedule_is_named_where_the_program_is_no_graph(tmp_path, capsys, faulty_strategy):
    model = onnx.parser.parse_model(LOOP)
    square = np.random.default_rng(0).random((8, 8), np.float32)
    model.graph.initializer.extend([numpy_helper.from_array(np.array([1]), "axis"), numpy_helper.from_array(square, "square")])
    onnx.save(model, tmp_path / "loop.onnx")
    np.savez(tmp_path / "in.npz", x=np.arange(24, dtype=np.float32).reshape(3, 8) + 1, more=np.array(True))
    code, out, _ = run(capsys, tmp_path / "loop.onnx", "--inputs", tmp_path / "in.npz", "--check", "--out", tmp_path)
    assert code == 1 and "kernel at fault" in out
    found = fault_in(tmp_path)
    assert found["strategy"].startswith("faulty") and "sum" in found["relay operators"].split()
    assert operators_of(tmp_path) == ["Loop"]


@pytest.mark.parametrize("faulty_strategy", [lambda kernel, target: bool(symbol_names(kernel.function))], indirect=True, ids=["symbolic"])
def test_a_fault_of_symbolic_sizes_is_shown_with_them(model, tmp_path, capsys, faulty_strategy):
    code, out, _ = run(capsys, model, "--check", "--out", tmp_path, "--size", "n=5")
    assert code == 1 and "kernel at fault" in out
    assert fault_in(tmp_path)["strategy"].startswith("faulty")
    text = (tmp_path / "model.mlir").read_text()
    assert "relay.sum" in text and '"n"' in text and "relay.tanh" not in text and not (tmp_path / "model.onnx").exists()
    with np.load(tmp_path / "inputs.npz") as inputs, np.load(tmp_path / "expected.npz") as expected:
        found = relayc.compile(relayc.IRModule.parse(text), cache=False).run(dict(inputs))
        assert not compare(found, dict(expected)).agrees


def test_what_an_operator_computes_wrong_is_named(model, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(RULES, "tanh", lambda op, x: elementwise(op, [x], lambda v: math.SinOp(v).result))
    code, out, _ = run(capsys, model, "--shape", "x=3,16", "--check", "--out", tmp_path)
    assert code == 1 and "operator at fault" in out
    assert operators_of(tmp_path) == ["Tanh"] and fault_in(tmp_path)["relay operators"] == "tanh"
    assert differs(tmp_path)
    monkeypatch.undo()
    assert not differs(tmp_path)


def test_relay_programs_are_compared_with_themselves(tmp_path):
    def build():
        program = relayc.Program()

        @program.function(x=relayc.TensorType((2, 300), "float32"))
        def main(x):
            op = program.op
            y = op.tanh(x) * np.arange(300, dtype=np.float32)
            return op.exp(op.sigmoid(y)) + x

        return program.module()

    class Model:
        """What makes the program anew each time."""

    x = np.random.default_rng(0).standard_normal((2, 300), np.float32)
    relayc.register_frontend("bisected", types=(Model,))(lambda model, **_: build())
    try:
        with PassContext(config={"pipelines.add_pass": [("before:FuseOps", swapped("sigmoid", "negative"))]}):
            module = relayc.compile(Model(), cache=False)
            question = command.Question(Model(), Compiler(), Compiler(), {"x": x}, module, "f32")
            answer = command.bisect(question, command.SIMPLEST)
        assert answer.fault is not None and (answer.fault.kind, answer.fault.name) == ("pass", "Swap")
        command.write(answer, tmp_path)
    finally:
        relayc.remove_frontend("bisected")
    text = (tmp_path / "model.mlir").read_text()
    assert "relay.sigmoid" in text and "relay.tanh" not in text and "relay.exp" not in text
    # The least program runs from its files.
    assert not (tmp_path / "params.safetensors").exists()
    with np.load(tmp_path / "inputs.npz") as inputs, np.load(tmp_path / "expected.npz") as expected:
        found = relayc.compile(relayc.IRModule.parse(text), cache=False).run(dict(inputs))
        assert compare(found, dict(expected)).agrees


def test_parts_of_relay_programs_keep_their_parameters(tmp_path):
    from relayc.tools.bisect.relay_parts import RelaySource

    program = relayc.Program()
    weights = np.arange(300, dtype=np.float32)

    @program.function(x=relayc.TensorType((2, 300), "float32"))
    def main(x):
        bent = program.op.tanh(x)
        return bent * weights - bent

    source = RelaySource(program.module(), {})
    assert "loc(" in source.text  # with the names of nodes
    values = {name: np.ones((2, 300), np.float32) for names in source.outputs for name in names} | {"x": np.zeros((2, 300), np.float32)}
    part = source.part([1], values)
    assert list(part.inputs) == ["tanh#0"] and part.outputs == ("multiply#1",)
    command._write_relay(part.make(), tmp_path)
    mod = relayc.IRModule.parse((tmp_path / "model.mlir").read_text(), load_param_dict_from_file(tmp_path / "params.safetensors"))
    np.testing.assert_array_equal(relayc.compile(mod)["main"](values["tanh#0"]), np.broadcast_to(weights, (2, 300)))
    assert source.part([0, 1], values).outputs == ("tanh#0", "multiply#1")
    for nodes, changed, message in [([], {}, "no outputs"), ([1], {"tanh#0": None}, "tanh#0 is no tensor")]:
        with pytest.raises(NoPart, match=message):
            source.part(nodes, {**values, **changed})


def test_a_node_with_graphs_takes_what_they_take():
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    flow (float[2] x, bool c) => (float[2] y)
    {
      shape = Shape (x)
      a = Abs (x)
      y = If (c) <then_branch = left () => (float[2] l) { l = Reshape (a, shape) }, else_branch = right () => (float[2] r) { r = Neg (x) }>
    }
    """
    source = OnnxSource(onnx.parser.parse_model(text), {})
    assert sorted(reads(source.nodes[2])) == ["a", "c", "shape", "x"]
    values = {
        "x": np.ones(2, np.float32),
        "c": np.array(True),
        "a": np.ones(2, np.float32),
        "shape": np.array([2]),
        "y": np.ones(2, np.float32),
    }
    part = source.part([2], values)
    assert sorted(part.inputs) == ["a", "c", "x"]
    assert part.make().graph.name == source.model.graph.name != "part"
    for nodes, outputs, changed, message in [
        ([2], [], {}, "no outputs"),
        ([], None, {}, "no outputs"),
        ([2], None, {"a": np.array(["text"])}, "a is no tensor of numbers"),
        ([2], None, {"x": [np.ones(2)]}, "x is no tensor of numbers"),
        ([2], None, {"y": None}, "y is no tensor"),
    ]:
        with pytest.raises(NoPart, match=message):
            source.part(nodes, {**values, **changed}, outputs)
    # What follows from shapes is known when a model is imported.
    assert [t.name for t in part.make().graph.initializer] == ["shape"]
    np.testing.assert_array_equal(relayc.compile(part.make()).run(part.inputs)["y"], values["y"])


def test_a_node_with_several_graphs_takes_what_each_takes():
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2])
    graphs = [onnx.helper.make_graph([onnx.helper.make_node("Neg", [given], ["y"])], given, [], [y]) for given in "ab"]
    assert reads(onnx.helper.make_node("Choice", ["x"], ["z"], choices=graphs, count=2)) == ["x", "a", "b"]


def test_a_failure_needs_inputs(model, capsys):
    code, _, err = run(capsys, model, "--failure")
    assert code == 1 and "--failure needs --inputs" in err


@pytest.mark.parametrize(
    ("name", "check", "given", "is_installed", "expected"),
    [
        ("m.onnx", False, None, True, "onnxruntime"),
        ("m.onnx", False, None, False, "opt0"),
        ("m.onnx", True, None, False, "onnxruntime"),
        ("m.onnx", False, "opt0", True, "opt0"),
        ("m.relay.mlir", False, None, True, "opt0"),
    ],
)
def test_the_reference_of_a_command(name, check, given, is_installed, expected, model, tmp_path, monkeypatch):
    if not is_installed:
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
    path = tmp_path / name
    path.write_bytes(model.read_bytes())
    assert command.chosen_reference(SimpleNamespace(check=check, reference=given, model=path)) == expected


def test_onnxruntime_is_a_reference_of_onnx_models(tmp_path):
    question = SimpleNamespace(model=tmp_path / "m.relay.mlir")
    with pytest.raises(ValueError, match="bisect: expected an ONNX model for ONNX Runtime, found another one"):
        command._reference(question, SimpleNamespace(all_tensors=lambda: None), None, "onnxruntime")


@pytest.mark.parametrize(
    ("missing", "lacking", "message"),
    [
        ("onnxruntime", (), "--check needs ONNX Runtime: pip install onnxruntime"),
        ("other", (), "No module named other"),
        ("", ("avx9", "amx9"), "the target t has features that this machine lacks: avx9, amx9"),
    ],
)
def test_what_bisect_needs(missing, lacking, message, model, tmp_path, monkeypatch, capsys):
    made = SimpleNamespace(lacking=lacking, target="t", precision="f32")
    monkeypatch.setattr(cli, "compile_model", lambda arguments, cache: made)
    monkeypatch.setattr(cli, "inputs_of", lambda *_: {})

    def search(*_):
        raise ModuleNotFoundError(f"No module named {missing}", name=missing)

    monkeypatch.setattr(command, "bisect", search)
    code, _, err = run(capsys, model, "--out", tmp_path / "out")
    assert code == 1 and message in err


def test_what_is_known_of_a_fault_is_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "write", lambda answer, folder: [])
    agreement = SimpleNamespace(difference=0.5, spread=0.25)
    fault = SimpleNamespace(kind="kernel", name="fused", about={"strategy": "loops", "relay operators": "exp sum"}, agreement=agreement)
    answer = SimpleNamespace(fault=fault, part=SimpleNamespace(nodes=["Exp"]), values={})
    shown = io.StringIO()
    command.show(answer, SimpleNamespace(precision="strict"), tmp_path, plain_console(file=shown, width=80))
    lines = [line.split() for line in shown.getvalue().splitlines()]
    assert ["kernel", "fused"] in lines and ["strategy", "loops"] in lines and ["relay", "operators", "exp", "sum"] in lines


def test_a_failure_of_no_part_is_told(tmp_path):
    text = io.StringIO()
    command.show_failure(command.Failure("it fails", None), tmp_path, Console(file=text))
    assert text.getvalue() == "no part fails in this way by itself\n" and not list(tmp_path.iterdir())


def test_paths_of_a_part_that_fails_are_on_one_line(model, tmp_path):
    text, folder = io.StringIO(), tmp_path / ("long" * 40)
    part = SimpleNamespace(nodes=(1, 2), make=lambda: onnx.load(model), inputs={"x": np.ones(2, np.float32)})
    command.show_failure(command.Failure("it fails", part), folder, Console(file=text, width=60))
    first, again = text.getvalue().splitlines()
    assert first == f"2 nodes fail in the same way: {folder / 'model.onnx'}"
    assert again == f"again: relayc run {folder / 'model.onnx'} --inputs {folder / 'inputs.npz'}"
    assert fault_in(folder) == {"kind": "failure", "name": "it fails"} and onnx.load(folder / "model.onnx") == onnx.load(model)


def test_halving_finds_where_the_first_failure_begins():
    asked = []

    def fails(n):
        asked.append(n)
        return n >= 37

    assert first_failing(100, fails) == 37 and len(asked) <= 7
    assert first_failing(1, fails) == 1


@pytest.mark.parametrize(
    ("differing", "narrow", "nodes", "outputs"),
    [
        ({2, 5}, {}, (2, 5), None),
        ({2, 3, 5}, {}, (2, 3, 5), None),
        ({4}, {}, (4,), None),
        ({0, 7}, {}, (0, 7), None),
        ({2, 5}, {"o"}, (2, 5), {"o"}),
        ({2, 5}, {"p"}, (2, 5), None),
        ({8}, {}, None, None),
    ],
)
def test_the_least_part_has_only_the_nodes_that_it_takes(differing, narrow, nodes, outputs):
    """Of eight nodes of which some together differ; an output `o` needs no node that is odd and does not differ, `p` does not differ."""

    class Eight:
        names = "abcdefgh"

        def part(self, nodes, values, outputs=None):
            if not nodes:
                raise NoPart
            return SimpleNamespace(nodes=[n for n in nodes if not outputs or n in differing or n % 2 == 0], outputs=outputs)

    lines = []
    search = Search(None, "f32", lines.append)
    found = search._least(Eight(), {}, lambda part: differing <= {*part.nodes} and part.outputs != {"p"}, lambda part: narrow)
    assert (found and (tuple(found.nodes), found.outputs)) == (nodes and (nodes, outputs))
    if nodes:
        first, last = min(nodes), max(nodes)
        assert lines[0] == f"the first {last + 1} of 8 nodes show it, up to {'abcdefgh'[last]}"
        assert lines[1:] == [f"nodes {first + 1} to {last + 1} show it by themselves"]


@pytest.mark.parametrize(("wrong", "name"), [(1, "A, run 1 of 3"), (2, "B"), (3, "A, run 2 of 3"), (4, "A, run 3 of 3")])
def test_runs_of_a_pass_are_counted(wrong, name):
    class Passes:
        """A compiler of which no program is made; the passes up to `limit` run."""

        def first(self, limit, texts=False):
            return SimpleNamespace(limit=limit, seen=["A", "B", "A", "A"], before="before", after="after")

        def compile(self, model, first=None, plain=False): ...

    class Shown(Search):
        def shows(self, part, values, first, plain):
            return first.limit >= wrong

    fault = Shown(Passes(), "float32")._pass(SimpleNamespace(make=dict), {}, False, None)
    assert (fault.name, fault.about) == (name, {"passes before": str(wrong - 1), "changed": "yes"})


def failing(operator: str, fail: Callable[[], None]) -> ModulePass:
    """A pass that fails where a program has an operator."""

    def look(mod, ctx):
        names = set()
        mod.module.operation.walk(lambda op: names.add(op.name) or ir.WalkResult.ADVANCE)
        if f"relay.{operator}" in names:
            fail()
        return mod

    return ModulePass(look, PassInfo("Look", 1))


def refuse() -> None:
    raise ValueError("k7: expected 'a' of 3, found [1, 2]")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(("fail", "how"), [(refuse, "ValueError: expected of found"), (die, "SIGKILL")])
def test_the_least_part_that_fails_keeps_the_symbols(model, tmp_path, capsys, fail, how):
    given = tmp_path / "given.npz"
    np.savez(given, x=np.ones((3, 16), np.float32))
    with PassContext(config={"pipelines.add_pass": [("after:SimplifyExpr", failing("tanh", fail))]}):
        code, _, err = run(capsys, model, "--inputs", given, "--failure", "--out", tmp_path / "out")
    assert code == 1 and f"the model fails: {how}" in err
    assert operators_of(tmp_path / "out") == ["Tanh"]
    (value,) = onnx.load(tmp_path / "out" / "model.onnx").graph.input
    assert [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim] == ["n", 8]
    with np.load(tmp_path / "out" / "inputs.npz") as inputs:
        assert relayc.compile(tmp_path / "out" / "model.onnx").run(dict(inputs))


def test_a_size_in_the_least_part_that_fails_is_computed_from_shapes(tmp_path, capsys):
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    resized (float[n, 6] x) => (float[m, 3] y)
    <int64[1] two = {2}, int64[1] three = {3}, int64[1] begin = {0}, int64[1] end = {1}>
    {
      bent = Sin (x)
      shape = Shape (bent)
      rows = Slice (shape, begin, end)
      doubled = Mul (rows, two)
      wanted = Concat <axis = 0> (doubled, three)
      moved = Reshape (bent, wanted)
      y = Tanh (moved)
    }
    """
    onnx.save(onnx.parser.parse_model(text), tmp_path / "resized.onnx")
    np.savez(tmp_path / "given.npz", x=np.ones((5, 6), np.float32))
    with PassContext(config={"pipelines.add_pass": [("after:SimplifyExpr", failing("reshape", refuse))]}):
        run(capsys, tmp_path / "resized.onnx", "--inputs", tmp_path / "given.npz", "--failure", "--out", tmp_path)
    assert operators_of(tmp_path) == ["Shape", "Slice", "Mul", "Concat", "Reshape"]


def test_a_model_that_does_not_fail_is_said_nothing_of(model, tmp_path, capsys):
    np.savez(tmp_path / "given.npz", x=np.ones((3, 16), np.float32))
    code, out, err = run(capsys, model, "--inputs", tmp_path / "given.npz", "--failure", "--out", tmp_path / "out")
    assert (code, err) == (0, "") and "does not fail" in out and not (tmp_path / "out").exists()


def test_a_program_that_fails_and_is_no_onnx_model_has_no_part():
    program = relayc.Program()

    @program.function(x=relayc.TensorType((2, 3), "float32"))
    def main(x):
        return program.op.tanh(x)

    with PassContext(config={"pipelines.add_pass": [("after:SimplifyExpr", failing("tanh", refuse))]}):
        found = command.find_failure(program.module(), Compiler(), Compiler(), {"x": np.ones((2, 3), np.float32)}, print)
    assert found == command.Failure("ValueError: expected of found", None)


def test_symptoms_are_those_of_a_process():
    assert symptom_of(lambda: None) is None
    assert symptom_of(refuse) == "ValueError: expected of found"
    error = ValueError("nn.conv2d of 'x y' [one, 2] \"name\" a/b#c: expected ab, found 12 " + "word " * 20)
    assert symptom(error) == "ValueError: of expected ab found " + " ".join(["word"] * 8)
    assert symptom_of(die) == "SIGKILL"
    assert symptom_of(lambda: time.sleep(60), seconds=0.1) == HANGS
