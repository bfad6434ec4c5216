"""`relayc.advise`: which changes it tries, what it concludes from their times, and that what it prints can be done again."""

import json
import shlex
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import relayc
from relayc.pipelines.targets.cpu import peak
from relayc.runtime import KernelInfo, Peak
from relayc.runtime.profile import ProfileRow
from relayc.tools import advise as advising
from relayc.tools import cli
from relayc.tools.advice_tables import _changes, _difference, _named, _outcome, slowest_table
from relayc.tools.build import Build
from relayc.tools.reference import Difference
from relayc.tools.settings import pass_context
from relayc.tools.timing import Comparison


@pytest.fixture
def model(tmp_path):
    """x[batch, 3] -> softmax(relu(x @ w)), as an ONNX file."""
    w = helper.make_tensor("w", TensorProto.FLOAT, [3, 4], np.linspace(-1, 2, 12))
    nodes = [helper.make_node(*node) for node in (("MatMul", ["x", "w"], ["a"]), ("Relu", ["a"], ["b"]), ("Softmax", ["b"], ["y"]))]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", n]) for name, n in (("x", 3), ("y", 4))]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [w])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return str(path)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


profiles = advising._profiles


@pytest.fixture(autouse=True)
def calm(monkeypatch, cache):
    """A peak that is given, and two CPUs: what is tried is the same on every machine. What one test compiles, others find."""
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(cache))
    monkeypatch.setattr(advising, "_profiles", lambda build, module, inputs: (module.profile(inputs, repeat=1), None))
    monkeypatch.setattr(peak, "quick_peak", lambda threads: Peak(threads, 200.0, 20.0, 15.0))
    monkeypatch.setattr(advising, "usable_cpus", lambda: 2)


def gain(ratio, sure=0.01):
    return Comparison(1.0, 1 / ratio, ratio, ratio - sure, ratio + sure, 8)


@pytest.fixture
def timed(monkeypatch):
    """Gives changes the times that a function of (module, batch factor) says."""

    def use(ratio_of):
        monkeypatch.setattr(
            advising, "measure", lambda module, inputs, other, others, seconds, factor: gain(ratio_of(other, factor)).by_item(factor)
        )

    return use


def is_fixed(module):
    return not module.inputs[0].is_symbolic


def test_the_best_change_of_each_kind_is_combined(model, timed):
    timed(lambda m, factor: (1.5 if is_fixed(m) else 1.3 if m.specialized else 1) * (1.2 if m.num_threads == 1 else 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("relayc.tools.build.num_threads", lambda: 2)
        found = relayc.advise(model, sizes={"batch": 4})
    names = [trial.candidate.name for trial in found.helpful if trial.candidate.kind != "batch"]
    assert names == ["fixed sizes: batch = 4 + 1 thread", "fixed sizes: batch = 4", "hot sizes: batch = 4", "1 thread"]
    assert found.best is found.together and found.best.comparison.ratio == pytest.approx(1.8)
    assert found.best.candidate.cost == "runs at these sizes only"
    words = shlex.split(found.best.build.command)
    assert words[:3] == ["relayc", "run", model] and words[-4:] == ["--threads", "1", "--repeat", "100"]
    assert words[words.index("--dim") + 1] == "batch=4" and "--size" not in words


def test_what_does_not_help_is_said(model, timed):
    timed(lambda m, factor: 0.5 if is_fixed(m) else 1 / factor)
    found = relayc.advise(model, sizes={"batch": 4})
    assert found.helpful == [] and found.best is None and found.together is None
    text = str(found)
    assert "nothing that was tried makes it faster beyond the noise" in text
    assert "slower: fixed sizes: batch = 4 (0.50x)" in text and "no difference: " in text and "relayc run" not in text


def test_every_command_it_prints_runs(model, timed, capsys):
    timed(lambda m, factor: 2.0)
    found = relayc.advise(model, sizes={"batch": 4}, seed=3, target="cpu -mcpu=x86-64-v2", opt_level=1)
    kinds = {trial.candidate.kind for trial in found.helpful}
    assert {"shapes", "target", "batch", "together"} <= kinds
    for build in (found.build, *(trial.build for trial in found.helpful)):
        assert str(build.command) in str(found)
        assert cli.main([*shlex.split(build.command)[1:-1], "1"]) == 0, build.command
    assert capsys.readouterr().err == ""


def test_a_batch_is_compared_by_item_and_row_by_row(model, timed):
    timed(lambda m, factor: 0.5)
    found = relayc.advise(model, sizes={"batch": 2})
    by_name = {trial.candidate.name: trial for trial in found.trials}
    assert by_name["batch = 8"].comparison.ratio == pytest.approx(2) and by_name["batch = 32"].comparison.ratio == pytest.approx(8)
    assert found.best is None  # a larger batch makes no call faster
    far = by_name["batch = 8"].difference
    assert far is not None and far.relative < 1e-6  # the same rows, in f32


def test_the_farthest_output_is_that_of_rows_that_both_have():
    one = {"y": np.array([[1.0, 2.0], [4.0, 3.0]]), "total": np.array(10.0)}
    more = {"y": np.array([[1.0, 2.0], [4.0, 2.5], [9.0, 9.0]]), "total": np.array(10.1)}
    assert advising._farthest(more, one, 1.5).relative == pytest.approx(0.125)  # 0.5 of 4
    assert advising._farthest({"total": more["total"]}, one, 1.5).relative == pytest.approx(0.01)
    assert advising._farthest({"y": more["y"][:2] * np.nan, "total": more["total"]}, one, 1).kinds is False
    assert advising._farthest({"y": more["y"]}, one, 1) is None


def test_it_is_enough_to_know_that_a_change_is_not_worth_it(monkeypatch):
    """The second way has twice as many items: its gain is twice what the times say."""
    given = []
    monkeypatch.setattr(advising, "compare_times", lambda *arguments: given.append(arguments) or Comparison(1.0, 2.0, 0.5, 0.25, 1.0, 8))
    found = advising.measure(None, {}, None, {}, 3.0, 2.0)
    ((_, _, seconds, enough),) = given
    assert (found.ratio, found.low, found.high, seconds) == (1.0, 0.5, 2.0, 3.0)
    limit = (1 + advising.WORTH) / 2
    assert [enough(replace(found, ratio=0.5, low=0.25, high=high)) for high in (0.99 * limit, limit)] == [True, False]


def test_a_build_says_its_options_as_they_were_given(model):
    words = [model, "--target", "cpu -mcpu=x86-64-v3", "--precision", "bf16", "--opt-level", "2", "--shape", "x=n,3", "--dim", "n=1:9"]
    words += ["--specialize", "n=4", "--threads", "1", "--no-cache", "--disable", "fuse-ops.epilogue", "--disable", "winograd"]
    words += ["--require", "fold-constant", "--config", "relay.FuseOps.max_depth=8"]
    words += ["--config", "relay.FuseOps.disabled_rules=epilogue,reduction", "--fill", "ones", "--seed", "3", "--size", "n=5"]
    arguments = cli.make_parser().parse_args(["run", *words])
    with pass_context(arguments):
        build = Build.of_command(arguments)
    assert shlex.split(build.command) == ["relayc", "run", *words, "--repeat", "100"]
    for value, is_text in ((["a", "b"], True), (["a", 1], False), (True, True), (1.5, False)):
        assert (replace(build, context={"config": {"k": value, "l": "text"}}).command is not None) is is_text


def test_passes_that_were_turned_off_are_turned_on_again(model, timed):
    timed(lambda m, factor: 1.5 if len(m.kernels) == 1 else 1.0)
    with relayc.PassContext(disabled_pass=["fuse-ops.epilogue", "Winograd"]):
        found = relayc.advise(model, sizes={"batch": 4})
    outcome = {trial.candidate.name: trial.why for trial in found.trials}
    assert outcome["without --disable winograd"] == "the program stays the same"
    assert {"without --disable fuse-ops.epilogue", "opt level 4"} <= outcome.keys() and "without winograd" not in outcome
    assert "--disable fuse-ops.epilogue --disable winograd" in found.build.command


def test_an_interrupt_gives_what_is_known(model, monkeypatch, capsys):
    known = iter([gain(1.5)])

    def measure(*_):
        try:
            return next(known)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(advising, "measure", measure)
    code = cli.main(["advise", model, "--size", "batch=4"])
    out, err = capsys.readouterr()
    assert code == 130 and "interrupted" in err
    assert "1.50x" in out and "interrupted before: " in out


def test_without_time_nothing_is_tried(model):
    found = relayc.advise(model, sizes={"batch": 4}, seconds=0)
    assert found.trials == [] and "fixed sizes: batch = 4" in found.untried
    assert "no time for (--seconds): " in str(found)


def test_a_change_that_is_not_possible_says_why(model, monkeypatch):
    def refuse(*_):
        raise ValueError("expected\n something else")

    monkeypatch.setattr(advising, "measure", refuse)
    found = relayc.advise(model, sizes={"batch": 4})
    assert "expected something else" in {trial.why for trial in found.trials}
    assert "not possible: " in str(found)


def test_json_has_these_fields(model, timed, tmp_path, capsys):
    timed(lambda m, factor: 1.5)
    assert cli.main(["advise", model, "--size", "batch=4", "--json", str(tmp_path / "advice.json")]) == 0
    data = json.loads((tmp_path / "advice.json").read_text())
    # Programs read it: a field that goes or changes its name breaks them.
    assert list(data) == [
        *("model", "command", "call", "precision", "sizes", "latency_seconds", "kernel_seconds", "threads", "peak", "bounds", "kernels"),
        *("trials", "together", "best", "untried", "interrupted"),
    ]
    assert list(data["bounds"]) == ["compute", "memory", "overhead", "threads", "latency"]
    assert sum(data["bounds"].values()) == pytest.approx(1)
    assert {"kernel", "operators", "seconds", "bound", "of_f32", "of_memory"} <= set(data["kernels"][0])
    assert list(data["trials"][0]) == ["kind", "change", "cost", "command", "call", "helps", "why", "times", "difference"]
    assert list(data["best"]["times"]) == ["base_seconds", "seconds", "ratio", "low", "high", "rounds", "verdict"]
    assert list(data["best"]["difference"]) == ["largest", "relative", "kinds"]
    shown = capsys.readouterr().out
    assert "what bounds the kernels" in shown and "docs/why-slow.md#" in shown and "what makes it faster" in shown


def test_standard_output_has_json_alone(model, timed, capsys):
    timed(lambda m, factor: 1 / factor)
    assert cli.main(["advise", model, "--size", "batch=4", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["best"] is None and "nothing that was tried" in err


def test_bounds_keep_what_is_known_of_sizes(model):
    build = Build.of(model, {"dims": {"batch": (2, 9)}})
    module = build.compile()
    commands = {c.name: c.change(build).command for c in advising.candidates(build, module, {"batch": 4})}
    assert "--dim batch=2:4" in commands["bounded sizes: batch <= 4"]
    assert "batch = 8" in commands and "batch = 32" not in commands
    assert not any("bounded" in c.name for c in advising.candidates(build, module, {"batch": 9}))


@pytest.mark.parametrize(
    ("known", "size", "bound"),
    [({}, 0, None), ({}, 1, (1, 1)), ({"n": (0, 5)}, 4, (1, 4)), ({"n": (3, 5)}, 4, (3, 4)), ({"n": (0, 5)}, 5, None)],
)
def test_sizes_are_bounded_by_those_of_the_call(known, size, bound):
    """From 1 on, unless the range is known."""
    found = advising._of_shapes(SimpleNamespace(specialized=[{"n": size}], ranges=known), {"n": size})
    assert [c.change.keywords["dims"]["n"] for c in found] == [size, *([bound] if bound else [])]


def test_the_first_of_the_changes_that_help_most_is_combined():
    gains = [(False, "a", 9), (True, "a", 1.5), (True, "a", 2), (True, "a", 2), (True, "batch", 3), (True, "b", 1.1)]
    trials = [
        SimpleNamespace(at=at, helps=helps, candidate=SimpleNamespace(kind=kind), comparison=SimpleNamespace(ratio=ratio))
        for at, (helps, kind, ratio) in enumerate(gains)
    ]
    assert [trial.at for trial in advising._best_by_kind(trials)] == [2, 5]


def test_a_program_without_symbols_has_no_sizes_to_change(model):
    build = Build.of(model, {"dims": {"batch": 4}})
    assert not {"shapes", "batch"} & {c.kind for c in advising.candidates(build, build.compile(), {})}


@pytest.mark.parametrize(
    ("lacking", "exists", "message"),
    [
        (("avx9",), True, "expected a target that this machine has, found one with avx9"),
        ((), False, "expected a device cuda:3, found none"),
    ],
)
def test_programs_that_do_not_run_here_are_refused(lacking, exists, message):
    device = type("Device", (), {"exists": exists, "__str__": lambda self: "cuda:3"})()
    module = SimpleNamespace(lacking=lacking, device=device)
    build = SimpleNamespace(target=SimpleNamespace(emulate=False), compile=lambda: module)
    with pytest.raises(ValueError, match=f"advise: {message}"):
        advising.search(build, lambda module: {}, 1.0)


def test_two_programs_are_timed_until_the_gain_by_item_is_sure(monkeypatch):
    asked = []

    def compare_times(base, other, seconds, enough):
        asked.append((base(), other(), seconds, enough))
        return gain(0.6)

    monkeypatch.setattr(advising, "compare_times", compare_times)
    first, second = (SimpleNamespace(run=lambda inputs, name=name: (name, inputs)) for name in "ab")
    assert advising.measure(first, 1, second, 2, 3.0, 2).ratio == pytest.approx(1.2)
    ((base, other, seconds, enough),) = asked
    assert (base, other, seconds) == (("a", 1), ("b", 2), 3.0)
    for ratio, sure, is_enough in [(0.6, 0.01, True), (0.5, 0.2, False), (0.5, 0.001, True), (0.4, 0.01, True), (0.49, 0.015, True)]:
        assert enough(gain(ratio, sure)) is is_enough, (ratio, sure)


def test_models_that_are_no_files_are_compiled_as_often_as_it_takes(timed, monkeypatch):
    timed(lambda m, factor: 1.5)
    every = advising.candidates
    monkeypatch.setattr(advising, "candidates", lambda *facts: [c for c in every(*facts) if c.kind == "shapes"])
    program = relayc.Program()

    @program.function(x=relayc.TensorType(("n", 4), "float32"))
    def main(x):
        return program.op.nn.softmax(program.op.nn.relu(x))

    for source in (program, program.module()):
        found = relayc.advise(source, {"x": np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)})
        assert found.build.command is None and found.sizes == {"n": 3}
        assert "relayc.compile(model, dims={'n': 3}" in str(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "rows=4"], "sizes: expected names of dimensions (batch), found rows"),
        (["--target", "cpu -mcpu=sapphirerapids -mattr=+unknown"], "unknown"),
        (["--disable", "winogard"], "no pass 'winogard'"),
        (["--target", "cpu -mcpu=sapphirerapids -emulate=true"], "found one that is emulated"),
    ],
)
def test_wrong_options_are_one_line(model, capsys, arguments, message):
    assert cli.main(["advise", model, *arguments]) == 1
    err = capsys.readouterr().err
    assert err.startswith("relayc: error: ") and message in err and err.count("\n") == 1


def test_a_library_is_no_model(tmp_path, capsys):
    assert cli.main(["advise", str(tmp_path / "model.so")]) == 1
    assert "advise needs the model, found a library" in capsys.readouterr().err


def test_kernels_are_profiled_on_one_thread_as_well(model):
    build = Build.of(model, {"num_threads": 2})
    module = build.compile()
    profile, alone = profiles(build, module, {"x": np.ones((4, 3), np.float32)})
    assert profile.threads == 2 and len(alone) == len(profile.rows) and module.num_threads == 2
    one = Build.of(model, {"num_threads": 1})
    assert profiles(one, one.compile(), {"x": np.ones((4, 3), np.float32)})[1] is None
    weak = replace(profile, measure_peak=lambda threads: Peak(threads, 1e9, 1e9, 1e9))
    long = replace(weak, rows=tuple(replace(row, seconds=1.0) for row in weak.rows))
    found = advising.Advice(build, "f32", {}, long, [1.1] * len(alone))
    assert {bound for _, bound in found.bounds()} == {"threads"}
    assert {bound for _, bound in replace(found, alone=[1.9] * len(alone)).bounds()} == {"latency"}


@pytest.mark.parametrize(
    ("flops", "num_bytes", "seconds", "calls", "alone", "bound"),
    [
        (60e6, 1000, 1e-3, 1, None, "compute"),  # 60 of 100 GFLOP/s
        (40e6, 6e6, 1e-3, 1, None, "memory"),  # 6 of 10 GB/s
        (60e6, 6e6, 1e-3, 1, None, "compute"),
        (40e6, 14e6, 1e-3, 1, None, "memory"),  # some of it from caches
        (40e6, 16e6, 1e-3, 1, None, "latency"),  # from caches
        (400e3, 9e4, 9e-6, 1, None, "overhead"),  # as much as memory gives, but in a call that is short
        (400e3, 9e4, 18e-6, 2, None, "overhead"),
        (600e3, 1000, 9e-6, 1, None, "compute"),
        (1e6, 1e6, 1e-3, 1, 1.1e-3, "threads"),  # the second thread brings a tenth
        (1e6, 1e6, 1e-3, 1, 1.3e-3, "latency"),
        (1e6, 1e6, 1e-3, 1, None, "latency"),
    ],
)
def test_bounds(flops, num_bytes, seconds, calls, alone, bound):
    kernel = KernelInfo("k", (), (), ("add",), (), int(flops / calls), int(num_bytes / calls))
    row = ProfileRow(kernel, (), seconds, 1.0, calls)
    assert row.bound(Peak(2, 100.0, 10.0, 8.0), alone) == bound


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, ""),
        (Difference(1.0, 0.5, kinds=False), "NaN or inf"),
        (Difference(0.0, 0.0), "none"),
        (Difference(2e-3, 1e-3), "1.0e-03"),
        (Difference(1.0, float("inf")), "inf"),
    ],
)
def test_differences_in_words(found, text):
    assert _difference(SimpleNamespace(difference=found)) == text


@pytest.mark.parametrize("count", [1, 7, 8, 9, 20])
def test_the_slowest_of_many_kernels_are_shown(count):
    kernels = [KernelInfo(f"k{i}", (), (), ("add",), (), 0, 0) for i in range(count)]
    rows = [ProfileRow(kernel, (), (i * 11 % count + 1) * 1e-6, 0.5, 1) for i, kernel in enumerate(kernels)]
    advice = SimpleNamespace(profile=SimpleNamespace(rows=rows, peak=None), bounds=lambda: [])
    table = slowest_table(advice)
    assert table.title == ("the kernel calls, slowest first" if count <= 8 else f"the 8 slowest of {count} kernel calls")
    assert list(table.columns[2].cells) == [f"{micros:.1f}" for micros in range(count, max(count - 8, 0), -1)]


@pytest.mark.parametrize(
    ("ratio", "low", "high", "outcome", "named"),
    [
        (1.5, 0.9, 2.0, "no gain beyond the noise", "c (1.50x)"),
        (0.5, 0.4, 0.6, "slower", "c (0.50x)"),
        (1.0, 0.99, 1.01, "no difference", "c (1.00x)"),
    ],
)
def test_what_did_not_help_in_words(ratio, low, high, outcome, named):
    trial = SimpleNamespace(comparison=Comparison(1.0, 1 / ratio, ratio, low, high, 8), candidate=SimpleNamespace(name="c"), why="")
    assert (_outcome(trial), _named(trial)) == (outcome, named)


@pytest.mark.parametrize(
    ("why", "outcome", "named"),
    [("the program stays the same", "no difference", "c"), ("no such pass", "not possible", "c (no such pass)")],
)
def test_what_was_not_timed_in_words(why, outcome, named):
    trial = SimpleNamespace(comparison=None, candidate=SimpleNamespace(name="c"), why=why)
    assert (_outcome(trial), _named(trial)) == (outcome, named)


def test_ways_to_compile_are_listed_below_each_other():
    names = ("1 thread", "fixed sizes: batch = 4")
    build = SimpleNamespace(command="", call="f()")
    helpful = [
        SimpleNamespace(
            candidate=SimpleNamespace(name=name, cost="", kind=""), build=build, comparison=gain(2.0), difference=Difference(0.0, 0.0)
        )
        for name in names
    ]
    texts = [
        text
        for text in _changes(SimpleNamespace(helpful=helpful, trials=[], together=None, untried="", build=build))
        if isinstance(text, str)
    ]
    assert texts == ["how to compile it:", *(f"  {name:<22}  f()" for name in ("as it is", *names))]
    helpful[1].build = SimpleNamespace(command="relayc run", call="g()")
    texts = [text for text in _changes(SimpleNamespace(helpful=helpful, trials=[], together=None, untried="", build=build))][1:]
    assert texts[0].startswith("to see it again") and [text.split()[-1] for text in texts[1:]] == ["f()", "f()", "run"]


def test_models_of_other_machines_are_refused(model):
    other = "cpu -mcpu=sapphirerapids -mattr=+avxneconvert,+amx-complex"  # no CPU has both
    with pytest.raises(ValueError, match=r"advise: expected a target that this machine has, found one with .*, which it lacks"):
        relayc.advise(model, target=other)


@pytest.mark.parametrize(
    ("times", "shares", "untried"),
    [
        ([0, 10, 40, 70], [30, 30, 30], []),
        ([0, 10, 40, 95], [30, 30, 10], []),  # a tenth for all that helps, whatever is left
        ([0, 10, 100, 101], [30, 10], ["b"]),
        ([0, 100, 101], [10], ["a", "b"]),
    ],
)
def test_trials_share_what_is_left_of_the_time(times, shares, untried, monkeypatch):
    given, lines = [], []
    monkeypatch.setattr(advising, "_profiles", lambda *_: (SimpleNamespace(peak=None), None))
    monkeypatch.setattr(advising, "time", SimpleNamespace(perf_counter=Mock(side_effect=times)))
    monkeypatch.setattr(advising, "sizes_of_call", lambda *_: {})
    monkeypatch.setattr(advising, "candidates", lambda *_: [SimpleNamespace(name=name) for name in "ab"])
    monkeypatch.setattr(advising, "_best_by_kind", lambda trials: [1, 2])
    monkeypatch.setattr(advising, "_combined", lambda best: SimpleNamespace(name="both"))
    monkeypatch.setattr(advising, "_try", lambda candidate, *_: given.append(_[-1]) or candidate.name)
    module = SimpleNamespace(lacking=[], device=SimpleNamespace(exists=True), run=lambda inputs: {}, precision="f32")
    build = SimpleNamespace(target=SimpleNamespace(emulate=False), compile=lambda: module)
    found = advising.search(build, lambda module: {}, 100, lines.append)
    assert (given, found.untried, found.trials, found.together) == (shares, untried, list("ab")[: 2 - len(untried)], "both")
    tried = [*"ab"[: 2 - len(untried)], "the changes that help, together"]
    assert lines == ["the model as it is", "a profile of the model as it is", "no peak is known", *tried] and not found.interrupted
