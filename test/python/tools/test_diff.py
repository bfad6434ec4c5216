"""`relayc.diff`: equal programs have no differences, and a change of one thing is named as that thing alone."""

import dataclasses
import itertools
import json
from types import SimpleNamespace
from unittest.mock import MagicMock, Mock

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import relayc
from relayc.pipelines.targets.cpu import peak
from relayc.pipelines.tir.strategy.table import FALLBACK
from relayc.runtime import Peak
from relayc.tools import cli, diff, progress
from relayc.tools.diff import Change, compare_records, matched
from relayc.tools.diff_tables import _differing, _sides, changes_table, diff_parts
from relayc.tools.record import Call, Record, digest

WEIGHT = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)


def make_model(path, weight=WEIGHT, scale=0.5, last="Tanh", first="Relu", extra=False):
    """x[batch, 3] -> first(x @ w) * scale -> Softmax -> last, each a kernel or part of one, and a maximum with another axis."""
    w, s = helper.make_tensor("w", TensorProto.FLOAT, [3, 4], weight.ravel()), helper.make_tensor("s", TensorProto.FLOAT, [], [scale])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node(first, ["a"], ["b"], name="activation"),
        helper.make_node("Mul", ["b", "s"], ["c"], name="scale"),
        helper.make_node("CumSum", ["c", "axis"], ["d"], name="running"),
        helper.make_node("Softmax", ["d"], ["e"], name="softmax", axis=0),
        helper.make_node(last, ["e"], ["y"], name="last"),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])]
    if extra:
        nodes.append(helper.make_node("ReduceMax", ["x"], ["z"], name="extra", keepdims=0))
        outputs.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, []))
    axis = helper.make_tensor("axis", TensorProto.INT64, [], [0])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])
    graph = helper.make_graph(nodes, "g", [x], outputs, [w, s, axis])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return str(path)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cached(monkeypatch, cache):
    """What one test compiles, others find."""
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(cache))


@pytest.fixture
def model(tmp_path):
    return make_model(tmp_path / "a.onnx")


@pytest.fixture
def compare(tmp_path, model):
    """The difference to the model with something changed."""

    def run(seconds=0, **changes):
        other = make_model(tmp_path / "b.onnx", **changes)
        return relayc.diff(model, other, sizes={"batch": 5}, seconds=seconds)

    return run


def what(found):
    return [(change.what, [call.sources for call in change.a]) for change in found.changes]


def test_equal_programs_have_no_differences(compare):
    found = compare()
    assert found.is_empty and found.times is None
    assert found.changes == [] and not found.interface and not found.memory
    assert all(one.is_none for one in found.outputs.values())
    assert "results: the same bits" in str(found) and "changes of kernel calls" not in str(found)


def test_a_changed_weight_is_named_alone(compare):
    weight = WEIGHT.copy()
    weight[1, 2] += 0.25
    found = compare(weight=weight)
    assert [(change, calls[0][0]) for change, calls in what(found)] == [(("constants",), "product")]
    assert not found.is_empty and not found.interface and not found.memory
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)  # the inputs of seed 0

    def expected(w):
        c = np.cumsum(np.maximum(x.astype(np.float64) @ w, 0) * 0.5, axis=0)
        e = np.exp(c - c.max(axis=0))
        return np.tanh(e / e.sum(axis=0))

    largest = np.abs(expected(weight) - expected(WEIGHT)).max()
    assert found.outputs["y"].largest == pytest.approx(largest, rel=1e-4)  # f32 sums
    assert found.outputs["y"].relative == pytest.approx(largest / expected(WEIGHT).max(), rel=1e-4)


def test_a_changed_number_in_a_kernel_is_a_change_of_what_it_computes(tmp_path):
    """After a function that no scale moves through: after a Relu it would be part of the weights."""
    models = [make_model(tmp_path / f"{scale}.onnx", scale=scale, first="Sigmoid") for scale in (0.5, 0.75)]
    found = relayc.diff(*models, sizes={"batch": 5}, seconds=0)
    ((change, calls),) = what(found)
    assert change == ("computation",) and "scale" in calls[0]
    assert "5.000000e-01" in found.changes[0].texts() and "7.500000e-01" in found.changes[0].texts()


def test_a_changed_operator_is_named_alone(compare):
    found = compare(last="Sigmoid")
    assert [change for change, _ in what(found)] == [("operators",)]
    assert any("last" in sources for sources in what(found)[0][1])
    assert "tanh" in str(found) and "sigmoid" in str(found)


def test_a_changed_schedule_is_named_alone(model):
    with relayc.PassContext(config={"schedule.kernels": {"*softmax*": {"strategy": FALLBACK}}}):
        plain = relayc.compile(model)
    found = relayc.diff(relayc.compile(model), plain, sizes={"batch": 5}, seconds=0)
    names = [(change.what, change.a[0].kernel) for change in found.changes]
    assert [change for change, _ in names] == [("schedule",)] * len(names) and names
    assert all("softmax" in kernel for _, kernel in names)


def test_options_of_one_side(model):
    found = relayc.diff(model, b_options={"opt_level": 0}, sizes={"batch": 5}, seconds=0)
    assert "regrouped" in {word for change in found.changes for word in change.what}
    assert found.outputs["y"].relative < 1e-5  # sums of a few f32 in another order
    fixed = relayc.diff(model, b_options={"dims": {"batch": 5}}, sizes={"batch": 5}, seconds=0)
    assert fixed.interface["x"] == ("float32[batch, 3]", "float32[5, 3]") and fixed.outputs is not None


def test_an_added_output_is_an_added_call(compare):
    found = compare(extra=True)
    assert [(change.what, change.b[0].sources) for change in found.changes] == [(("added",), ["extra"])]
    assert found.interface == {"z": (None, "float32[]")} and found.outputs is None
    assert "not compared" in str(found)


def test_a_record_is_compared_as_the_program_is(model, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(peak, "quick_peak", lambda threads: Peak(threads, 200.0, 20.0, 15.0))
    saved, options = str(tmp_path / "a.json"), ["--size", "batch=5", "--seconds", "0.01"]
    assert cli.main(["diff", model, "--save", saved, *options]) == 0
    assert cli.main(["diff", saved, model, *options]) == 0
    out = capsys.readouterr().out
    assert "results: the same bits" in out and "measured at different times, not in turns" in out
    other = make_model(tmp_path / "b.onnx", last="Sigmoid")
    assert cli.main(["diff", saved, other, *options, "--json", str(tmp_path / "diff.json")]) == 1
    data = json.loads((tmp_path / "diff.json").read_text())
    assert list(data) == ["same", "a", "b", "interface", "kernels", "memory", "outputs", "times"]
    assert data["same"] is False and [change["what"] for change in data["kernels"]] == [["operators"]]
    assert list(data["kernels"][0]) == ["what", "a", "b", "texts"]
    assert list(data["kernels"][0]["a"][0]) == ["kernel", "where", "sources", "operators", "tensors", "schedule", "seconds"]
    assert data["times"]["in_turns"] is False and list(data["outputs"]["y"]) == ["largest", "relative", "kinds"]
    assert cli.main(["diff", saved, model, "--size", "batch=5", "--seed", "1", "--seconds", "0"]) == 0
    assert "results: not compared" in capsys.readouterr().out  # other inputs


def test_outputs_of_a_record_are_those_of_the_program(tmp_path):
    rng = np.random.default_rng(0)
    outputs = {
        "small": rng.standard_normal((3, 4), np.float32),
        "large": np.arange(200_000, dtype=np.int64),
        "narrow": rng.standard_normal(5).astype(ml_dtypes.bfloat16),
        "text": np.array(["a", "", "b"], object),
        "empty": np.zeros((0, 3)),
    }
    Record({}, {}, {}, [Call("k", "main", ["n"], ["add"], [], "loops")], "", {}, [1.0], outputs).save(tmp_path / "r.json")
    read = Record.load(tmp_path / "r.json")
    assert read.is_saved and read.calls[0].sources == ["n"]
    for name in ("small", "narrow", "text", "empty"):
        np.testing.assert_array_equal(read.outputs[name], outputs[name].ravel())
    assert np.array_equal(read.outputs["large"], np.arange(0, 200_000, 4))


def test_digests_tell_values_apart():
    values = [np.arange(4), np.arange(4.0), np.arange(4).reshape(2, 2), np.array(["0", "1"], object), ["0", "1"], [np.arange(4)]]
    values += [[np.arange(2), np.arange(2)], {"a": 1}, {"a": 2}, "0", np.array(0), [np.arange(2000)], [np.arange(2000) % 1999], {}]
    assert len({digest(value) for value in values}) == len(values) - 1  # strings in an array and in a list are the same
    assert all(digest(value) == digest(value) for value in values)


def test_a_record_goes_to_standard_output(model, capfdbinary):
    assert cli.main(["diff", model, "--size", "batch=5", "--seconds", "0", "--save", "-"]) == 0
    assert json.loads(capfdbinary.readouterr().out)["interface"]["x"] == "float32[batch, 3]"
    with pytest.raises(SystemExit):
        cli.main(["diff", model, model, "--save", "-", "--json", "-"])


def test_options_of_a_side_on_the_command_line(model, capsys):
    assert cli.main(["diff", model, "--size", "batch=5", "--b=--opt-level 0", "--a=--opt-level 0", "--seconds", "0"]) == 0
    assert cli.main(["diff", model, "--size", "batch=5", "--b=--opt-level 0", "--seconds", "0", "--texts"]) == 1
    out = capsys.readouterr().out
    assert "--opt-level 0" in out and "regrouped" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MODEL"], "diff needs something to compare with"),
        (["MODEL", "none.onnx"], "none.onnx"),
        (["MODEL", "wrong.json"], "wrong.json: expected a record"),
        (["MODEL", "old.json"], "old.json: expected a record of version 1"),
        (["old.json", "MODEL", "--a=--opt-level 0"], "--a and --b are for models that are compiled"),
        (["MODEL", "--b=--precision bf16", "--size", "rows=3"], "expected names of dimensions (batch), found rows"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(model, tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.json").write_text("[1, 2]")
    fields = {"made_by": {}, "interface": {}, "inputs": {}, "calls": [], "constants": "", "memory": {}, "latency": [], "outputs": {}}
    (tmp_path / "old.json").write_text(json.dumps({"relayc_record": 0, **fields}))
    assert cli.main(["diff", *[model if word == "MODEL" else word for word in arguments]]) == 2
    err = capsys.readouterr().err
    assert err.startswith("relayc: error: ") and message in err and err.count("\n") == 1


def test_wrong_options_of_a_side_end_with_2(model, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["diff", model, "--b=--presicion bf16"])
    assert ended.value.code == 2 and "--presicion" in capsys.readouterr().err


def call(kernel, *sources, operators=("add",)):
    return Call(kernel, "main", list(sources), list(operators), [], "loops")


def test_calls_are_matched_by_their_nodes():
    a = [call("k", "n1"), call("k", "n1"), call("whole", "n2", "n3"), call("only_a", "n4"), call("nameless"), call("x", "n5")]
    b = [call("q", "n1"), call("q", "n1"), call("p1", "n2"), call("p2", "n3"), call("nameless_1"), call("y", "n5", operators=("mul",))]
    found = {tuple(c.kernel for c in ours): tuple(c.kernel for c in theirs) for ours, theirs in matched(a, b)}
    assert found == {("k",): ("q",), ("whole",): ("p1", "p2"), ("only_a",): (), ("nameless",): ("nameless_1",), ("x",): ("y",)}
    assert len(matched(a, b)) == 6  # the calls of n1 in their order


def test_groups_are_in_the_order_of_their_first_calls():
    a = [call("early", "n1"), call("between", "n2"), call("late", "n3")]
    b = [call("whole", "n1", "n3"), call("other", "n2")]
    assert [[c.kernel for c in ours] for ours, _ in matched(a, b)] == [["early", "late"], ["between"]]


def test_outputs_of_a_program_and_a_record_are_compared_in_both_orders(tmp_path):
    whole = Record({}, {}, {}, [], "", {}, [], {"y": np.arange(200_000, dtype=np.int64)})
    whole.save(tmp_path / "r.json")
    saved = Record.load(tmp_path / "r.json")
    changed = dataclasses.replace(whole, outputs={"y": whole.outputs["y"] + 1})
    for a, b in ((whole, saved), (saved, whole), (saved, saved), (whole, whole)):
        assert compare_records(a, b).outputs["y"].largest == 0
    for a, b in ((changed, saved), (saved, changed)):
        assert compare_records(a, b).outputs["y"].largest == 1


def test_what_differs_beside_calls_is_told():
    made = {"program": "p", "target": "cpu", "precision": "f32", "relayc": "1"}
    a = Record(made, {}, {}, [call("k", "n")], "x", {"arena": 1000}, [], {"y": np.zeros(2)})
    b = dataclasses.replace(a, made_by={**made, "precision": "bf16"}, constants="y", memory={"arena": 2000, "code": 3000})
    found = compare_records(a, b)
    assert found.interface == {"constants": ("x", "y")} and found.memory == {"arena": (1000, 2000), "code": (0, 3000)}
    lines = [part for part in diff_parts(found, False) if isinstance(part, str)]
    assert "precision: f32 -> bf16" in lines and "constants: x -> y" in lines and "kernels: the same 1 calls" in lines
    assert [line for line in lines if line.startswith("memory")] == [
        "memory, arena: 1.0 k -> 2.0 k bytes",
        "memory, code: 0 -> 3.0 k bytes",
    ]
    assert compare_records(a, dataclasses.replace(a, outputs={"y": np.zeros(3)})).outputs is None
    assert not any(line.startswith("target") for line in lines)


@pytest.mark.parametrize("elapsed", [0.5, 3.0])
def test_times_of_kernels_and_of_calls_share_the_time(elapsed, monkeypatch):
    clock, asked = itertools.count(0.0, elapsed), []
    monkeypatch.setattr(diff, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(diff, "time_in_turns", lambda calls, seconds: asked.append(seconds) or [[0.25] for _ in calls])
    records = [Record({}, {}, {}, [call("k", "n")], "", {}, [], {}) for _ in range(2)]
    module = SimpleNamespace(profile=lambda inputs, repeat: SimpleNamespace(rows=[SimpleNamespace(seconds=0.125)]), run=print)
    diff._time([(module, {}, record) for record in records], 4.0)
    assert asked == [max(4 - elapsed, 2)] and [record.latency for record in records] == [[0.25], [0.25]]
    assert [one.calls[0].seconds for one in records] == [[0.125] * 3] * 2
    diff._time([], 4.0)
    assert len(asked) == 1


def test_a_side_that_no_command_makes_has_the_name_of_its_call(model):
    assert diff.open_side(model, {}).name.startswith("relayc run ")
    assert diff.open_side(onnx.load(model), {"opt_level": 1}).name == "relayc.compile(model, opt_level=1)"


@pytest.mark.parametrize(
    ("count", "title"), [(1, "1 change of"), (30, "30 changes of kernel calls"), (31, "31 changes of kernel calls, the first 30")]
)
def test_the_first_changes_of_many_are_shown(count, title):
    table = changes_table([Change(("removed",), (call(f"k{i}", "n"),), ()) for i in range(count)])
    assert table.title.startswith(title) and ("first" in table.title) == (count == 31) and table.row_count == min(count, 30)


def test_inputs_that_no_side_takes_are_an_error(model):
    with pytest.raises(ValueError, match="x"):
        relayc.diff(model, model, inputs={"x": np.zeros((2, 4), np.float32)}, seconds=0)


def test_times_of_calls_are_shown_where_a_side_has_any():
    timed = dataclasses.replace(call("k", "n"), seconds=[1e-6, 3e-6, 2e-6])
    for change, cells in (
        (Change(("added",), (), (timed, timed)), ["added", "n", "", "k\nk", "", "4.0"]),
        (Change(("constants",), (timed,), (timed,)), ["constants", "n", "k", "k", "2.0", "2.0"]),
        (Change(("removed",), (call("k", "n"),), ()), ["removed", "n", "k", ""]),
    ):
        table = changes_table([change])
        assert [next(column.cells) for column in table.columns] == cells
        assert [column.header for column in table.columns] == ["what", "nodes", "a", "b", "a us", "b us"][: len(cells)]


def test_sides_of_a_change_are_as_short_as_tells_them_apart():
    made = dict(sources=("n",), kernel="k", operators=("add", "abs"), tensors=("f32[2]", "f32[3]"), schedule="loops grain=1 rows=2")
    made |= dict.fromkeys([field.name for field in dataclasses.fields(Call) if field.name not in made], "")
    call = Call(**made)
    for changed, name, expected in [
        ({"schedule": "loops grain=1 rows=4"}, "schedule", ("rows=2", "rows=4")),
        ({"schedule": "loops grain=3 rows=2 x"}, "schedule", ("grain=1", "grain=3 x")),
        ({"schedule": "tiles rows=2"}, "schedule", ("loops grain=1 rows=2", "tiles rows=2")),
        ({"operators": ("add",)}, "operators", ("add abs", "add")),
        ({"tensors": ("f32[2]", "f32[4]")}, "tensors", ("f32[3]", "f32[4]")),
        ({"tensors": ("f32[1]", "f32[4]")}, "tensors", ("f32[2] +1", "f32[1] +1")),
        ({"tensors": ("f32[2]",)}, "tensors", ("f32[2] f32[3]", "f32[2]")),
    ]:
        other = dataclasses.replace(call, **changed)
        assert _differing(call, other, name) == expected
        assert _sides(Change((name,), (call,), (other,))) == tuple(f"k: {text}" for text in expected)
    assert _sides(Change(("computation",), (call, call), (call,))) == ("k\nk", "k")
    assert _sides(Change(("computation", "constants"), (call,), (call,))) == ("k", "k")


@pytest.mark.parametrize(("quiet", "is_terminal"), [(False, True), (True, True), (False, False)])
def test_a_terminal_shows_how_far_a_command_is(quiet, is_terminal, monkeypatch):
    console = MagicMock(is_terminal=is_terminal)
    made = Mock(return_value=console)
    monkeypatch.setattr(progress, "Console", made)
    with progress.status_line("compiling", quiet) as show:
        show("timing")
    made.assert_called_once_with(stderr=True)
    assert [call.args for call in console.status().__enter__().update.mock_calls] == [("timing",)] * (is_terminal and not quiet)
