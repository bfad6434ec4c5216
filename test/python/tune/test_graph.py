"""Choices of a program's graph: what they do, which program a record is of, and how a search measures them."""

import numpy as np
import onnx
import onnxruntime
import pytest
from tuned_kernels import comparison
from tuned_models import chain, dense

import relayc
from relayc import PassContext
from relayc.pipelines.driver.tuning_space import TuningSpace
from relayc.pipelines.graph.choices import CHOICES, USUAL, usual_ways, with_choices
from relayc.pipelines.history.database import Database
from relayc.pipelines.history.programs import GRAPH
from relayc.pipelines.history.records import DATABASE, RECORDS, records_of
from relayc.tune import program, worker
from relayc.tune.model import GRAPH_SHARE
from relayc.tune.program import ProgramKey
from relayc.tune.session import Session
from relayc.tune.tasks import Task

TARGET = relayc.Target("cpu", num_threads=1)


def image_model(name="y", scale=1.0):
    """Convolutions, one that Winograd's algorithm does, three of one image; a gate."""
    rng, channels = np.random.default_rng(0), 48
    shapes = {
        "w": (channels, channels, 3, 3),
        "b": (channels,),
        "p": (channels, channels, 1, 1),
        "q": (channels, channels, 1, 1),
        "k": (channels, channels, 1, 1),
    }
    weights = {
        key: np.float32(scale) * rng.standard_normal(shape, np.float32) / np.float32(np.prod(shape[1:]) ** 0.5)
        for key, shape in shapes.items()
    }
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]> main (float[1, {channels}, 20, 20] x) => (float[1, {channels}, 20, 20] {name}) {{
          c = Conv <pads = [1, 1, 1, 1]> (x, w, b)
          r = Relu (c)
          s = Conv (r, p)
          t = Conv (r, q)
          e = Conv (r, k)
          u = Tanh (s)
          g = GlobalAveragePool (u)
          h = Sigmoid (g)
          m = Mul (t, h)
          n = Add (m, e)
          {name} = Add (n, x)
        }}"""
    )
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, key) for key, array in weights.items())
    for i, node in enumerate(model.graph.node):
        node.name = f"{name}{i}"
    return model


def key_of(model, context=None, target=TARGET, **options):
    seen = ProgramKey(target)
    settings = (context or PassContext()).settings
    with PassContext(**{**settings, "config": {DATABASE: "", **settings["config"]}}, instruments=[seen]):
        relayc.compile(model, target, stop_after="relay", **options)
    return seen.key


def compiled(model, key, **chosen):
    records = {key: {"strategy": GRAPH, **{f"{GRAPH}.{name}": way for name, way in chosen.items()}}, "a kernel": {"strategy": "loops"}}
    with PassContext(config={RECORDS: records_of(records)}):
        return relayc.compile(model, TARGET, cache=False)


def test_a_key_knows_what_is_computed_and_neither_names_nor_weights():
    key = key_of(image_model())
    assert key == key_of(image_model("z", scale=2.0))
    assert key_of(dense()) != key_of(dense(columns=80)) != key
    config = [("relay.FuseOps.max_depth", 8), ("relay.FuseOps.max_operands", 9)]
    one, other = (key_of(dense(), PassContext(config=dict(config[::order]))) for order in (1, -1))
    assert one == other != key_of(dense())
    assert key != key_of(image_model(), target=relayc.Target("cpu", num_threads=2))
    assert key != key_of(image_model(), precision="bf16") or "bf16" not in TARGET.precisions
    for context in (PassContext(2), PassContext(disabled_pass=["Winograd"]), PassContext(config={"relay.FuseOps.max_depth": 3})):
        assert key_of(image_model(), context) != key
    assert key_of(image_model(), PassContext(config={"schedule.contraction.rows": 3})) == key


def test_every_way_gives_the_same_results():
    model = image_model()
    key, x = key_of(model), np.random.default_rng(1).standard_normal((1, 48, 20, 20), np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    kernels = {}
    for name, ways in CHOICES.items():
        assert next(iter(ways.values())) == USUAL
        for way in ways:
            if ways[way] != USUAL or not kernels:
                module = compiled(model, key, **{name: way})
                np.testing.assert_allclose(module(x), expected, rtol=1e-4, atol=1e-4)
                kernels[name, way] = sorted(kernel.name for kernel in module.kernels)
    usual = next(iter(kernels.values()))
    assert any("winograd" in kernel for kernel in usual) and not any("winograd" in kernel for kernel in kernels["winograd", "off"])
    changed = {name for (name, _), found in kernels.items() if found != usual}
    assert {"winograd", "layout", "parallel", "epilogue"} <= changed
    with PassContext(config={"relay.AlterOpLayout.blocks": False}):
        assert 'out_layout = "NHWC"' in str(relayc.compile(model, TARGET, stop_after="relay"))


def test_what_a_user_sets_goes_first():
    chosen = {"layout": "last", "winograd": "off", "parallel": "combined"}
    own = PassContext(3, ["Winograd"], ["CombineParallelDense"], {"relay.AlterOpLayout.blocks": True})
    found = with_choices(own, chosen)
    assert found.config["relay.AlterOpLayout.blocks"] and "combine-parallel-dense" not in found.required_pass
    assert "winograd" in found.required_pass and "combine-parallel-conv2-d" not in found.disabled_pass
    assert "winograd" in with_choices(PassContext(), chosen).disabled_pass
    assert with_choices(own, usual_ways()).settings == own.settings


def test_a_search_records_what_the_whole_model_gains(tmp_path, monkeypatch):
    """Fewer kernels take longer, here."""
    path, model, calls = tmp_path / "t.sqlite", chain(64, 32, 48), []

    def compare_times(base, other, seconds, enough, clock):
        times = [1.0 / len(call.__closure__[0].cell_contents.kernels) for call in (base, other)]
        calls.append(times)
        return comparison(*times)

    monkeypatch.setattr(worker, "compare_times", compare_times)
    options = {"target": TARGET, "num_threads": 1, "database": path, "kernels": GRAPH}
    found = relayc.tune(model, trials=20, **options)
    (record,) = Database(path).best()
    assert record.strategy == GRAPH and record.is_checked and record.numbers["epilogue"] == "apart" and record.key == key_of(model)
    assert found.gain == pytest.approx(2.0) and found.graph.record == record and "epilogue=apart" in str(found) and found.settings == {}
    with relayc.tune.ApplyHistoryBest(path):
        tuned = relayc.compile(model, TARGET)
        other = relayc.compile(chain(64, 32, 40), TARGET)
    usual = relayc.compile(model, TARGET)  # not that of the cache
    assert (len(tuned.kernels), len(usual.kernels), len(other.kernels)) == (4, 2, 2)
    x = np.random.default_rng(0).standard_normal((64, 64), np.float32)
    np.testing.assert_allclose(tuned(x), usual(x), rtol=1e-5, atol=1e-5)
    count = len(calls)
    again = relayc.tune(model, trials=20, **options)  # goes on from there: the record is measured once more, nothing else
    assert again.gain == pytest.approx(2.0) and again.trials == 0 and len(calls) == count + 2


def test_kernels_get_the_time_and_the_trials_that_the_graph_leaves(tmp_path, monkeypatch):
    runs = []
    monkeypatch.setattr(Session, "run", lambda self, trials, seconds: runs.append((trials, seconds)))
    relayc.tune(chain(64, 32), trials=20, minutes=10, database=tmp_path / "t.sqlite", target=TARGET, num_threads=1)
    (first, second) = runs
    assert first == (int(20 * GRAPH_SHARE), 600 * GRAPH_SHARE) and second[0] == 20 and 300 < second[1] < 600


def test_a_choice_that_gives_other_results_is_no_candidate(tmp_path, monkeypatch):
    made = worker.check_results
    monkeypatch.setattr(worker, "check_results", lambda specs, found, expected: made(specs, [a + 1 for a in found], expected))
    found = relayc.tune(chain(64, 32), trials=10, database=tmp_path / "t.sqlite", kernels=GRAPH, target=TARGET, num_threads=1)
    assert Database(tmp_path / "t.sqlite").best() == [] and found.gain == 1.0


def test_choices_with_the_same_kernels_have_the_same_loops(monkeypatch):
    """One that a pass refuses is none; each is compiled once."""
    compiled = []

    class Made:
        def __init__(self, records):
            self.numbers = records.get("key", {})

        def compile(self, stop_after, cache):
            assert (stop_after, cache) == ("te", False)
            compiled.append(self.numbers)
            if self.numbers.get(f"{GRAPH}.{first}") == "refused":
                raise RuntimeError
            return len(self.numbers.get(f"{GRAPH}.{first}", ""))

    first = next(iter(CHOICES))
    monkeypatch.setattr(program, "with_records", lambda build, records: Made(records))
    (usual,), ask = program.graph_spaces(None, Task("key", GRAPH, ""))
    values = {name: tuple(ways) for name, ways in CHOICES.items()}
    assert usual == TuningSpace(GRAPH, (), GRAPH, usual_ways(), values)
    a, b, c, again = (ask(GRAPH, {first: way}) for way in ("ab", "cd", "efg", "ab"))
    assert a.loops == b.loops == again.loops != c.loops and a.chosen == {**usual_ways(), first: "ab"}
    assert ask(GRAPH, {first: "refused"}) is None and ask(GRAPH, {first: "refused"}) is None
    assert len(compiled) == 5
    monkeypatch.setattr(program, "usual_ways", lambda: {first: "refused"})
    assert program.graph_spaces(None, Task("key", GRAPH, ""))[0] == []
