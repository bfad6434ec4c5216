"""`bench dynamic`: sizes, models and both ways of measuring, on a tiny model; nothing here depends on how fast anything is."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import relayc
from relayc.bench import __main__ as command
from relayc.bench import machine
from relayc.bench.dynamic import (
    SizedResult,
    Sweep,
    arena_ratio,
    largest_of,
    median_within,
    sizes_between,
    summarize_costs,
    summarize_sweeps,
)
from relayc.bench.engines import ENGINES
from relayc.bench.models import find_models
from relayc.bench.random_sizes import RandomResult, make_plan
from relayc.bench.sizes import SWEEPS, Grid, choose_grids, open_model, parse_grid, points_of
from relayc.runtime import Peak

QUICK = ["--threads", "1", "--rounds", "2", "--runs", "2"]
needs_ort = pytest.mark.skipif(not ENGINES["ort"].is_installed, reason="ONNX Runtime is not installed")


def save_model(path, op="Abs", dims=("batch", "seq", 3)):
    """x, count -> y = op(x @ weight) * count + table[count]."""
    rng = np.random.default_rng(0)
    constants = {"weight": rng.standard_normal((3, 4)), "table": rng.standard_normal((100, 4))}
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["a"]),
        helper.make_node(op, ["a"], ["b"]),
        helper.make_node("Cast", ["count"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["b", "c"], ["d"]),
        helper.make_node("Gather", ["table", "count"], ["row"]),
        helper.make_node("Add", ["d", "row"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims), helper.make_tensor_value_info("count", TensorProto.INT64, [1])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, (*dims[:2], 4))]
    weights = [onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


@pytest.fixture
def path(tmp_path):
    return save_model(tmp_path / "tiny.onnx")


@pytest.fixture
def model(path):
    return open_model("tiny", path)


@pytest.fixture
def calm(monkeypatch):
    """A peak that is given, not measured: that takes seconds."""
    monkeypatch.setattr(command, "measure_peak", lambda threads: Peak(threads, 100.0, 10.0, 8.0))
    monkeypatch.setattr(machine, "load_average", lambda: 0.0)


def run(capsys, *arguments):
    """(exit code, stdout, stderr) of the command."""
    code = command.main(["dynamic", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_grid_has_all_combinations_and_draws_within_them():
    grid = parse_grid("tiny: batch=1,8; seq=0,61")
    assert grid.model == "tiny" and grid.largest == {"batch": 8, "seq": 61}
    assert grid.points == [{"batch": b, "seq": s} for b in (1, 8) for s in (0, 61)]
    rng = np.random.default_rng(0)
    drawn = [grid.draw(rng) for _ in range(200)]
    assert {d["batch"] for d in drawn} == set(range(1, 9)) and {0, 61} > {d["seq"] for d in drawn} - set(range(1, 61))
    assert points_of([grid, Grid({"batch": (1,), "seq": (0, 2)})]) == [*grid.points, {"batch": 1, "seq": 2}]


@pytest.mark.parametrize("wrong", ["", "batch", "batch=", "batch=-1", "batch=1,", "batch=1;", "=1", "a:b:batch=1"])
def test_wrong_sizes_are_refused(wrong):
    with pytest.raises(ValueError, match=r"--sizes: expected \[MODEL:\]NAME=N"):
        parse_grid(wrong)


def test_the_largest_points_have_the_largest_value_of_each_symbol():
    points = [{"past": p, "seq": s} for p, s in ((0, 16), (0, 512), (2000, 1), (127, 512), (2000, 0))]
    assert largest_of(points) == [2, 3]


def test_a_model_tells_its_symbols_and_is_called_at_sizes(model):
    assert (model.symbols, model.integers) == (("batch", "seq"), ("count",))
    sizes = {"batch": 2, "seq": 5, "count": 7}
    case = model.case(sizes, seed=0)
    assert case.inputs["x"].shape == (2, 5, 3) and case.inputs["count"].tolist() == [7]
    assert case.shapes == {"x": (2, 5, 3)} and case.symbols == {"batch": 2, "seq": 5}
    # The weight and both inputs; the table is not read as a whole.
    assert model.read_bytes(sizes) == 4 * (3 * 4 + 2 * 5 * 3) + 8
    assert model.case({"batch": 0, "seq": 5}, seed=0).inputs["x"].shape == (0, 5, 3)


@pytest.mark.parametrize(
    ("dims", "message"), [((2, 3, 3), "symbolic dimensions, found none"), (("batch", None, 3), "a size or a name for")]
)
def test_models_without_names_are_refused(tmp_path, dims, message):
    with pytest.raises(ValueError, match=message):
        open_model("tiny", save_model(tmp_path / "other.onnx", dims=dims))


def test_grids_go_to_the_models_whose_symbols_they_have(model):
    (general,) = choose_grids([model], [])[0]
    assert set(general.values) == {"batch", "seq"}
    given = [parse_grid(text) for text in ("batch=1;seq=2", "tiny:batch=1;seq=2;count=3", "batch=1;seq=2,3")]
    assert choose_grids([model], given) == [given]
    for wrong in ("batch=1", "batch=1;seq=1;past=1", "bert:batch=1;seq=1"):
        with pytest.raises(ValueError, match=r"--sizes: expected the symbols of a model \(tiny:batch=...;seq=...\)"):
            choose_grids([model], [parse_grid(wrong)])


def test_the_models_of_this_repository_have_sweeps_of_their_symbols():
    models = [open_model(source.name, source.path) for source in find_models("dynamic")]
    assert {model.name for model in models} == set(SWEEPS)
    for model, grids in zip(models, choose_grids(models, []), strict=True):
        assert grids == [parse_grid(text) for text in SWEEPS[model.name]]
        assert all(min(model.case(grid.points[0], 0).inputs[value.name].shape, default=1) >= 0 for grid in grids for value in model.inputs)


@needs_ort
def test_a_sweep_compares_variants_at_every_size(path, tmp_path, capsys, calm):
    file, engines = tmp_path / "new" / "out.json", ["relayc-static", "ort", "ort-static"]
    arguments = ["--models", path, "--engines", ",".join(engines), "--sizes", "batch=1,2;seq=5;count=7", "--compile-rounds", "2"]
    code, out, err = run(capsys, *arguments, *QUICK, "--json", file)
    assert (code, err) == (0, "") and "tiny, 1 thread" in out and "ratios over sizes" in out
    found = json.loads(file.read_text())
    (sweep,) = found["results"]
    points = [{"batch": batch, "seq": 5, "count": 7} for batch in (1, 2)]
    assert [(r["sizes"], r["engine"]) for r in sweep["results"]] == [(point, engine) for point in points for engine in engines]
    for result in sweep["results"]:
        assert result["median_seconds"] > 0 and result["agrees"] is True and [r["calls"] for r in result["rounds"]] == [2, 2]
        # Both fresh processes began with the largest size: the other one was new to them.
        assert len(result["first_calls"]) == (2 if result["engine"] == "ort" and result["sizes"]["batch"] == 1 else 0)
        assert (result["arena_bytes"] is not None) is (result["engine"] == "relayc-static")
    assert {name: len(loads) for name, loads in sweep["load_seconds"].items()} == {"relayc-static": 2, "ort": 1, "ort-static": 2}
    assert {name: len(loads) for name, loads in sweep["compilations"].items()} == dict.fromkeys(engines, 2)
    assert [(row["engine"], row["other"], row["sizes"]) for row in found["summary"]] == [("relayc-static", e, 2) for e in engines[1:]]


def test_what_fails_is_named_once(tmp_path, capsys, calm):
    path, file = save_model(tmp_path / "odd.onnx", op="NoSuchOperator"), tmp_path / "out.json"
    arguments = ["--models", path, "--engines", "relayc,relayc-static", "--sizes", "batch=1;seq=1,2", "--compile-rounds", "1"]
    code, out, err = run(capsys, *arguments, *QUICK, "--json", file)
    assert code == 1 and "failed" in out
    assert [line.split(": ")[2] for line in err.splitlines()] == ["relayc", "relayc static"]
    assert all("NoSuchOperator" in result["error"] for result in json.loads(file.read_text())["results"][0]["results"][1::2])


@needs_ort
def test_ratios_are_drawn(path, tmp_path, capsys, calm):
    pytest.importorskip("matplotlib")
    file = tmp_path / "new" / "out.png"
    arguments = ["--models", path, "--engines", "ort,ort-static", "--sizes", "batch=1;seq=1,2", "--compile-rounds", "1"]
    assert run(capsys, *arguments, *QUICK, "--plot", file)[0] == 0
    assert file.read_bytes().startswith(b"\x89PNG")


@needs_ort
def test_random_sizes_are_compared_with_the_same_repeated(path, tmp_path, capsys, calm):
    file = tmp_path / "out.json"
    arguments = ["--models", path, "--engines", "ort,ort-static", "--sizes", "batch=1,4;seq=1,61", "--random", "40"]
    code, out, err = run(capsys, *arguments, *QUICK, "--json", file)
    assert (code, err) == (0, "") and "random sizes" in out
    (result,) = json.loads(file.read_text())["results"]
    assert (result["engine"], result["calls"]) == ("ort", 40) and 2 <= result["sizes"] <= 40
    assert result["time_ratio"]["geometric_mean"] > 0 and result["memory_ratio"]["in order"] > 0 and result["memory_ratio"]["callers"] > 0
    assert set(result["changing"]) == set(result["repeated"]) and set(result["seconds"]) == {"in order", "callers"}
    # The five calls in a row that count, in each of two rounds.
    assert {len(seconds) for seconds in result["repeated"].values()} == {10}


def test_random_calls_include_the_largest_sizes_and_those_that_are_compared():
    grids = [parse_grid("a=1,100;b=0"), parse_grid("a=1;b=5,2000")]
    plan = make_plan(grids, 100, seed=0)
    assert len(plan.calls) == 100 and plan.largest == [{"a": 100, "b": 0}, {"a": 1, "b": 2000}]
    assert all(sizes in plan.calls for sizes in (*plan.largest, *plan.samples))
    assert plan == make_plan(grids, 100, seed=0) and plan.calls != make_plan(grids, 100, seed=1).calls
    assert len(make_plan(grids, 1, seed=0).calls) == 1


def test_summaries_are_ratios_of_the_symbolic_variant(model):
    def result(variant, seq, seconds, **more):
        return SizedResult("tiny", variant, rounds=[[seconds]], sizes={"batch": 1, "seq": seq}, **more)

    first = [[5.0, 2.0], [4.0, 2.0], [9.0, 2.0]]
    points = [
        [result("relayc", 1, 2.0, first_calls=first, arena_bytes=120), result("relayc-static", 1, 1.0, arena_bytes=100)],
        [result("relayc", 7, 2.0, first_calls=[[2.5, 2.0]], arena_bytes=0), result("relayc-static", 7, 4.0, arena_bytes=0)],
    ]
    calls = {"relayc": [[5.0, 2.0, 1.0], [4.0, 2.0, 2.0], [9.0, 2.0, 2.0]]}
    sweep = Sweep(model, points, compilations={"relayc": [1.0, 2.0, 9.0], "relayc-static": [2.0, 1.0, 1.0]}, first_calls=calls)
    (row,) = summarize_sweeps([sweep], ["relayc", "relayc-static"])
    assert (row["geometric_mean"], row["worst"], row["worst_sizes"]) == (pytest.approx(1.0), 2.0, "batch 1, seq 1")
    assert [row["model"] for row in summarize_sweeps([sweep, sweep], ["relayc", "relayc-static"])] == ["tiny", "tiny", "all"]
    (cost,) = summarize_costs([sweep])
    assert (cost["compile_ratio"], cost["arena_ratio"]) == (2.0, 1.2)
    assert cost["first_call_excess_seconds"] == {"relayc": {"median": 3.0, "low": 2.0, "high": 7.0, "count": 3}}
    assert cost["second_call_excess_seconds"]["relayc"]["median"] == 0.0
    assert points[0][0].excess == 3.0 and points[1][0].excess == 0.5
    assert arena_ratio(points[1]) is None


@pytest.mark.parametrize(("count", "outside"), [(1, 0), (5, 0), (6, 0), (9, 1), (20, 5), (100, 39), (3000, 1445)])
def test_bounds_of_medians_are_those_of_the_sign_test(count, outside):
    # So many values of one side happen by chance less often than once in 20 times: tables of the binomial distribution.
    found = median_within(np.random.default_rng(0).permutation(count).astype(float))
    assert found == {"median": (count - 1) / 2, "low": outside, "high": count - 1 - outside, "count": count}


def test_sizes_between_are_new():
    grids = [parse_grid("a=1,100;b=0"), parse_grid("a=1;b=5,2000")]
    found = sizes_between(grids, points_of(grids), 40, np.random.default_rng(0))
    assert len(found) == 40 and all(found.count(sizes) == 1 and sizes not in points_of(grids) for sizes in found)
    assert all(1 <= sizes["a"] <= 100 and 0 <= sizes["b"] <= 2000 for sizes in found)
    few = parse_grid("a=1,3")
    assert sizes_between([few], points_of([few]), 40, np.random.default_rng(0)) == [{"a": 2}]
    assert sizes_between([few], points_of([few]), -1, np.random.default_rng(0)) == []


def test_ratios_of_random_calls_are_of_medians():
    memory = {name: {"resident": value} for name, value in (("largest", 100), ("random", 110), ("callers largest", 200))}
    found = RandomResult("tiny", "ort", 4, 2, changing={"a": [1.0, 3.0, 8.0], "b": []}, repeated={"a": [2.0], "b": [1.0]}, memory=memory)
    assert found.ratios == [(1.5, "a")]
    assert found.memory_ratio() == pytest.approx(1.1) and found.memory_ratio("callers ") is None


def test_models_are_those_of_this_checkout():
    folder = Path(relayc.__path__[0]) / "test" / "models" / "dynamic"
    assert [source.path for source in find_models("dynamic")] == sorted(folder.glob("*.onnx"))
