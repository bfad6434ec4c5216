"""The measuring commands run on tiny models and give well-formed results; nothing here depends on how fast anything is."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from relayc.bench import __main__ as command
from relayc.bench import machine
from relayc.bench.engines import ENGINES
from relayc.bench.latency import summarize
from relayc.bench.machine import describe, measure_peak
from relayc.bench.measure import Result, job_of
from relayc.bench.models import find_models, make_case
from relayc.bench.ops import SETS, blocks, conv, find_operations, gemm, model_of, recurrent
from relayc.bench.worker import EngineError, EngineProcess
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu import peak as kernels
from relayc.runtime import Peak

PEERS = [name for name in ("ort", "openvino") if ENGINES[name].is_installed]
QUICK = ["--threads", "1", "--rounds", "2", "--runs", "2"]


def save_model(path, op="Abs", shape=("batch", "length", 3)):
    """x -> y = op(x + 1) where x has some symbolic dimensions."""
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    nodes = [helper.make_node("Add", ["x", "one"], ["a"]), helper.make_node(op, ["a"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [one])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return str(path)


@pytest.fixture
def model(tmp_path):
    return save_model(tmp_path / "tiny.onnx")


@pytest.fixture
def calm(monkeypatch):
    """A peak that is given, not measured: that takes seconds."""
    monkeypatch.setattr(command, "measure_peak", lambda threads: Peak(threads, 100.0, 10.0, 8.0))
    monkeypatch.setattr(machine, "load_average", lambda: 0.0)


def run(capsys, *arguments):
    """(exit code, stdout, stderr) of the command."""
    code = command.main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_peak_is_measured_and_described_as_json():
    peak = measure_peak(1)
    assert min(peak.gflops, peak.read_gbytes, peak.triad_gbytes) > 0
    found = json.loads(json.dumps(describe(peak)))
    assert found["peak"]["threads"] == 1 and found["cpus"] >= 1 and "relayc" in found["packages"]


@pytest.mark.parametrize(("least", "level", "num_bytes"), [(3 << 17, 3, 6 << 20), (3 << 17, 2, 3 << 20), (3 << 21, 2, 3 << 21)])
def test_the_memory_of_the_peak_is_twice_the_last_cache(least, level, num_bytes, monkeypatch):
    caches, sizes = {1: 48 << 10, 2: 3 << 19, 3: 3 << 20}, []
    monkeypatch.setattr(kernels, "_LEAST_BYTES", least)
    monkeypatch.setattr(kernels.host, "cache_bytes", lambda n: caches[n] if n <= level else None)
    monkeypatch.setattr(kernels, "compile_kernel", lambda text, name, arrays: (sizes.append([a.nbytes for a in arrays]), lambda: None)[1])
    kernels.measure_peak(1, seconds=0, fewest_calls=1)
    assert sizes[1][0] == num_bytes


@pytest.mark.parametrize(("enough", "fewest", "expected"), [(0.0, 3, (2.0, 4)), (7.0, 1, (3.0, 3)), (8.0, 1, (3.0, 3)), (8.5, 1, (2.0, 4))])
def test_the_fastest_of_several_calls_counts(enough, fewest, expected, monkeypatch):
    """After one that warms up: of three, or of those that take so long together."""
    clock, calls = iter([0, 5, 5, 8, 8, 10, 10, 14]), []
    monkeypatch.setattr(kernels.time, "perf_counter", lambda: float(next(clock)))
    assert (kernels._least_seconds(lambda: calls.append(0), enough, fewest), len(calls)) == expected


def test_the_roof_is_the_slower_of_arithmetic_and_memory():
    peak = Peak(2, gflops=100.0, read_gbytes=10.0, triad_gbytes=8.0)
    assert peak.limit(flops=1e9, num_bytes=1) == pytest.approx(0.01)
    assert peak.limit(flops=1, num_bytes=1e9) == pytest.approx(0.1)


def test_latency_compares_engines(model, tmp_path, capsys, calm):
    file, engines = tmp_path / "new" / "out.json", ["relayc", *PEERS]
    code, out, err = run(capsys, "latency", "--models", model, "--engines", ",".join(engines), *QUICK, "--json", str(file))
    assert (code, err) == (0, "")
    found = json.loads(file.read_text())
    assert found["command"] == "latency" and found["machine"]["peak"]["gflops"] == 100.0
    assert [record["engine"] for record in found["results"]] == engines
    for record in found["results"]:
        assert record["case"] == "tiny" and record["median_seconds"] > 0 and record["memory"]["resident"] > 0
        assert [r["calls"] for r in record["rounds"]] == [2, 2] and record["facts"]["load_seconds"] > 0
        assert record["agrees"] is (True if PEERS else None)
    assert all(ENGINES[engine].title in out for engine in engines)
    assert ("geometric mean" in out) is bool(PEERS)


def test_a_given_shape_is_that_of_the_run(model, tmp_path, capsys, calm):
    file = tmp_path / "out.json"
    arguments = ["latency", "--models", model, "--engines", "relayc", "--shape", "x=2,5,3", *QUICK, "--json", str(file)]
    assert run(capsys, *arguments)[0] == 0
    found = json.loads(file.read_text())
    assert found["arguments"]["shape"] == [["x", [2, 5, 3]]]
    assert found["results"][0]["facts"]["flops"] == 2 * 2 * 5 * 3  # an addition and an absolute value for each element


@pytest.mark.skipif("ort" not in PEERS, reason="ONNX Runtime is not installed")
def test_the_precision_that_each_engine_computes_in_is_told(model, tmp_path, capsys, calm):
    file = tmp_path / "out.json"
    code, out, _ = run(capsys, "latency", "--models", model, "--engines", "relayc,ort", *QUICK, "--precision", "bf16", "--json", str(file))
    assert code == 0 and "bf16 asked for" in out
    computed = {record["engine"]: record["facts"]["precision"] for record in json.loads(file.read_text())["results"]}
    assert computed == {"relayc": "bf16" if Target().has_bf16 else "f32", "ort": "f32"}


def test_an_engine_that_fails_is_named_with_its_reason(tmp_path, capsys, calm):
    path = save_model(tmp_path / "odd.onnx", op="NoSuchOperator")
    file = tmp_path / "out.json"
    code, out, err = run(capsys, "latency", "--models", path, "--engines", "relayc", *QUICK, "--json", str(file))
    assert code == 1 and "failed" in out
    assert err.startswith("relayc.bench: odd: relayc: ") and "NoSuchOperator" in err
    assert "NoSuchOperator" in json.loads(file.read_text())["results"][0]["error"]


def test_figures_are_drawn(model, tmp_path, capsys, calm):
    pytest.importorskip("matplotlib")
    for name, arguments in (("latency", ["--models", model]), ("ops", ["--sizes", "3x4x5"])):
        file = tmp_path / f"{name}.png"
        assert run(capsys, name, *arguments, "--engines", "relayc", *QUICK, "--plot", str(file))[0] == 0
        assert file.read_bytes().startswith(b"\x89PNG")


def test_ops_measures_products_and_convolutions(tmp_path, capsys, calm):
    file = tmp_path / "out.json"
    arguments = ["--sizes", "3x4x5,4x6-8k3s2g2", "--engines", ",".join(["relayc", *PEERS[:1]]), *QUICK, "--json", str(file)]
    assert run(capsys, "ops", *arguments)[0] == 0
    found = [record for record in json.loads(file.read_text())["results"] if record["engine"] == "relayc"]
    assert [(record["case"], record["flops"]) for record in found] == [("3x4x5", 120), ("4x6-8k3s2g2", 2 * 8 * 3 * 3 * 2 * 3 * 3)]
    assert all(record["agrees"] is (True if PEERS[:1] == ["ort"] else None) for record in found)


def test_compile_tells_time_and_memory(model, tmp_path, capsys, calm):
    file = tmp_path / "out.json"
    code, out, _ = run(capsys, "compile", "--models", model, "--threads", "1", "--json", str(file))
    assert code == 0 and "codegen" in out
    (record,) = json.loads(file.read_text())["results"]
    assert record["load_seconds"] >= sum(record["stages"].values()) > 0
    assert record["memory"]["peak"] >= record["imported_memory"] > 0 and record["file_bytes"] > 0


def test_passes_tells_the_time_of_each_pass_and_the_groups(model, tmp_path, capsys):
    file = tmp_path / "out.json"
    code, out, _ = run(capsys, "passes", "--models", model, "--rounds", "2", "--json", str(file))
    assert code == 0 and "FuseOps" in out
    (record,) = json.loads(file.read_text())["results"]
    assert (record["operators"], record["groups"]) == (2, 1)
    assert {"InferType", "FuseOps"} <= record["seconds"].keys() and min(record["seconds"].values()) > 0


def test_a_process_that_dies_is_an_error(model, tmp_path):
    case = make_case("tiny", tmp_path / "tiny.onnx", {})
    with EngineProcess(job_of(case, "relayc", 1, "f32")) as process:
        process._process.kill()
        with pytest.raises(EngineError, match="the process was ended by SIGKILL"):
            process.load()


def test_symbols_take_their_values_from_given_shapes_and_defaults(model, tmp_path):
    path = tmp_path / "tiny.onnx"
    assert make_case("tiny", path, {}).shapes == {"x": (1, 16, 3)}
    case = make_case("tiny", path, {"x": [2, 7, 3], "other": [1]})
    assert case.symbols == {"batch": 2, "length": 7} and case.inputs["x"].shape == (2, 7, 3)
    np.testing.assert_array_equal(case.inputs["x"], make_case("tiny", path, {"x": [2, 7, 3]}).inputs["x"])
    for wrong in ([2, 7], [2, 7, 4]):
        with pytest.raises(ValueError, match=r"--shape: input 'x': expected a shape like \[batch, length, 3\]"):
            make_case("tiny", path, {"x": wrong})


def test_models_are_found_by_alias_file_and_pattern(model, tmp_path):
    assert len(find_models("light")) == 9
    assert [source.name for source in find_models("light_squeezenet, vgg19")] == ["squeezenet", "vgg19"]
    assert [source.name for source in find_models(f"{tmp_path}/*.onnx")] == ["tiny"]
    assert "bert" in [source.name for source in find_models("test")]
    for wrong in ("", "missing.onnx"):
        with pytest.raises(ValueError, match="--models: expected"):
            find_models(wrong)


def test_every_shape_of_the_sweep_is_a_valid_model():
    for group, operation in find_operations("all"):
        assert operation in SETS[group] and find_operations(operation.name) == [("given", operation)]
        if operation.flops < 2e7:
            onnx.checker.check_model(model_of(operation, 0), full_check=True)
    onnx.checker.check_model(model_of(recurrent("lstm", 3, 2, 4, 5), 0), full_check=True)


@pytest.mark.parametrize(
    "wrong", ["", "circle", "1x2", "0x1x1", "4x6-8k3s0", "4x6-8k3s1g3", "4x6-8k9", "lstm4x2x8", "gru0x2x8-4", "1x16x40q4b32"]
)
def test_wrong_sizes_are_refused(wrong):
    with pytest.raises(ValueError, match="--sizes: expected"):
        find_operations(wrong)


def test_operations_know_their_size():
    assert (gemm(2, 3, 4).flops, gemm(2, 3, 4).shapes) == (48, ((2, 4), (4, 3), (2, 3)))
    assert conv(3, 224, 64, 7, 2).shapes == ((1, 3, 224, 224), (64, 3, 7, 7), (1, 64, 112, 112))
    assert blocks(1, 3, 64, 4, 32).shapes == ((1, 64), (3, 2, 16), (6,), (1, 3))
    assert recurrent("gru", 5, 2, 3, 4).shapes == ((5, 2, 3), (1, 12, 3), (1, 12, 4), (5, 1, 2, 4))
    assert recurrent("gru", 5, 2, 3, 4).flops == 2 * 5 * 2 * 12 * (3 + 4)


def test_the_summary_is_geometric_means_of_ratios():
    times = {"a": (1.0, 2.0, 4.0), "b": (4.0, 2.0, 1.0)}
    models = [[Result(case, e, rounds=[[t]]) for e, t in zip(ENGINES, row, strict=True)] for case, row in times.items()]
    best, *_ = summarize(models, list(ENGINES))
    assert best["engine"] == "relayc" and best["other"] is None and (best["worst"], best["worst_model"]) == (4.0, "b")
    assert best["geometric_mean"] == pytest.approx((0.5 * 4.0) ** 0.5)


def test_missing_engines_are_left_out_by_default_and_refused_by_name(model, capsys, monkeypatch, calm):
    monkeypatch.setattr(type(ENGINES["openvino"]), "is_installed", property(lambda engine: engine.module == "relayc"))
    text = "not installed: onnxruntime, openvino (pip install 'relayc[bench]')\n"
    code, out, err = run(capsys, "latency", "--models", model, *QUICK)
    assert (code, err) == (0, f"relayc.bench: left out, as {text}") and "relayc" in out
    code, out, err = run(capsys, "latency", "--models", model, "--engines", "relayc,ort,openvino")
    assert (code, out, err) == (1, "", f"relayc.bench: error: {text}")


@pytest.mark.parametrize(
    "arguments", [[], ["fly"], ["latency", "--engines", "none"], ["ops", "--threads", "0"], ["compile", "--rounds", "2"], ["revisions"]]
)
def test_a_wrong_command_line_ends_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code == 2 and "usage:" in capsys.readouterr().err
