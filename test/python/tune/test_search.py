"""The search for the numbers of kernels, with measurements that are made up: times by a formula, without noise."""

import dataclasses
import inspect
import itertools
from types import SimpleNamespace
from unittest.mock import Mock, patch

import numpy as np
import pytest
from tuned_kernels import Fake, asker, comparison, product_text, space
from tuned_models import dense

import relayc
from relayc import PassContext
from relayc.pipelines.driver.tuning_space import TuningSpace
from relayc.pipelines.history.database import Database
from relayc.runtime import TensorSpec
from relayc.tune import model as tune_model
from relayc.tune import search as search_module
from relayc.tune.model import Check
from relayc.tune.search import Search
from relayc.tune.session import Session
from relayc.tune.tasks import Task, model_tasks
from relayc.tune.worker import Candidate, Measured

SPACE = space(rows=[4, 1, 2, 8, 16], vectors=[1, 2, 4], grain=[64, 512, 4096, 32768])


def best_at(rows, vectors):
    """Seconds that are least at some numbers, of a kernel that ignores its grain."""

    def seconds(task, candidate):
        n = candidate.numbers
        return 0.5 + 0.1 * abs(np.log2(n["rows"] / rows)) + 0.05 * abs(np.log2(n["vectors"] / vectors))

    return seconds


def search_by(sampler, count, seed=0):
    search = Search([SPACE], asker(SPACE), sampler, seed)
    found = {}
    for _ in range(count):
        candidate = search.next()
        if candidate is None:
            break
        assert candidate.name not in found
        found[candidate.name] = best_at(16, 4)(None, candidate)
        search.tell(candidate, found[candidate.name])
    return found


@pytest.mark.parametrize("sampler", ["tpe", "random", "grid"])
def test_samplers_propose_every_combination_once(sampler, monkeypatch):
    monkeypatch.setattr(search_module, "_MOST_REPEATS", 2)
    found = search_by(sampler, 1000)
    assert len(found) == SPACE.size - 1  # all but the default
    assert min(found.values()) == 0.5


def test_tpe_finds_more_than_others_in_as_many_trials():
    pytest.importorskip("optuna")
    values = [1, 2, 4, 8, 16, 32, 64, 128]
    large = space(a=values, b=values, c=values, d=values)

    def least(sampler, seed):
        search = Search([large], asker(large), sampler, seed)
        found = []
        for candidate in itertools.islice(iter(search.next, None), 40):
            found.append(0.1 + sum((np.log2(value) - 6) ** 2 for value in candidate.numbers.values()) / 144)
            search.tell(candidate, found[-1])
        return min(found)

    means = {sampler: np.mean([least(sampler, seed) for seed in range(3)]) for sampler in ("tpe", "random", "grid")}
    assert means["tpe"] < means["random"] < means["grid"]


def test_tpe_tries_values_near_to_those_of_the_fastest():
    pytest.importorskip("optuna")
    search = Search([SPACE], asker(SPACE), "tpe")
    best, near = {"rows": 4, "vectors": 1, "grain": 64}, []
    for number, candidate in enumerate(itertools.islice(iter(search.next, None), 12)):
        seconds = best_at(16, 4)(None, candidate)
        if number % 2 == 0:
            changed = {name: value for name, value in candidate.numbers.items() if value != best[name]}
            near.append((len(changed), sum(abs(SPACE.values[n].index(v) - SPACE.values[n].index(best[n])) for n, v in changed.items())))
        if seconds < min(time for time in search.seen.values() if time is not None):
            best = candidate.numbers
        search.tell(candidate, seconds)
    assert all(count == 1 for count, _ in near) and near[0] == (1, 1)
    assert min(time for time in search.seen.values() if time is not None) < 0.6


def test_neighbours_of_the_fastest_are_tried_to_the_ends_of_the_values():
    small = space(a=[2, 1, 4], b=[1, 2], c=[8, 4])
    search, found = Search([small], asker(small), "near"), []
    for _ in range(4):
        candidate = search.next()
        found.append({name: value for name, value in candidate.numbers.items() if value != small.chosen[name]})
        search.tell(candidate, 2.0)
    assert sorted(map(str, found)) == ["{'a': 1}", "{'a': 4}", "{'b': 2}", "{'c': 4}"]


def test_a_model_ranks_few_candidates_too():
    """One more than a batch: the random ones are fewer than there may be."""
    line = space(a=[8, *range(1, 8)])
    model = SimpleNamespace(is_ready=True, predict=lambda features: list(range(len(features))))
    search = Search([line], asker(line), "model", model=model)
    found = []
    for candidate in itertools.islice(iter(search.next, None), 9):
        found.append(candidate.numbers["a"])
        search.tell(candidate, 1.0)
    assert sorted(found) == list(range(1, 8))


def test_a_grid_changes_one_number_first():
    search = Search([SPACE], asker(SPACE), "grid")
    first = list(itertools.islice(iter(search.next, None), 1))
    assert [len([1 for k, v in c.numbers.items() if v != SPACE.chosen[k]]) for c in first] == [1]
    with pytest.raises(ValueError, match="sampler: expected one of tpe, random, grid, model, near, found 'x'"):
        Search([SPACE], asker(SPACE), "x")


@pytest.mark.parametrize("sampler", ["tpe", "random", "grid"])
def test_numbers_that_a_strategy_brings_to_others_are_one_candidate(sampler):
    def ask(strategy, numbers):
        fitted = {**SPACE.chosen, **numbers, "vectors": 1}
        return None if fitted["rows"] == 16 else TuningSpace("k", (), strategy, fitted, SPACE.values)

    search = Search([SPACE], ask, sampler)
    found = []
    while (candidate := search.next()) is not None:
        found.append(candidate)
        search.tell(candidate, None if candidate.numbers["rows"] == 2 else 1.0)
    assert len({c.name for c in found}) == len(found) == 4 * 4 - 1
    assert {c.numbers["vectors"] for c in found} == {1} and 16 not in {c.numbers["rows"] for c in found}


def test_numbers_that_give_the_same_loops_are_one_candidate():
    def ask(strategy, numbers):
        chosen = {**SPACE.chosen, **numbers}
        return TuningSpace("k", (), strategy, chosen, SPACE.values, f"{chosen['rows']} rows")

    search = Search([ask("s", {})], ask, "random")
    found = []
    while (candidate := search.next()) is not None:
        found.append(candidate.numbers["rows"])
        search.tell(candidate, 1.0)
    assert sorted(found) == [1, 2, 8, 16]  # all but the default's


def test_loops_are_those_of_the_numbers():
    """On one thread the grain of a product of known sizes says nothing."""
    (found,) = relayc.tuning_space(PRODUCT, relayc.Target("cpu", num_threads=1))

    def loops(**numbers):
        with PassContext(config={"schedule.kernels": {"product": found.config(numbers)}}):
            return relayc.tuning_space(PRODUCT, relayc.Target("cpu", num_threads=1))[0].loops

    assert len(found.values["grain"]) > 1
    assert {loops(grain=value) for value in found.values["grain"]} == {found.loops}
    assert len({loops(rows=value) for value in found.values["rows"]}) == len(found.values["rows"])


@pytest.mark.parametrize("sampler", ["tpe", "random", "grid"])
def test_several_strategies_and_numbers_that_are_several(sampler):
    spaces = [space("one", rows=[2, 4]), space("two", tile=[(1, 8), (2, 4)], kind=["a", "b"])]
    search = Search(spaces, asker(*spaces), sampler)
    found = list(iter(search.next, None)) if sampler == "grid" else []
    while sampler != "grid" and (candidate := search.next()) is not None:
        found.append(candidate)
        search.tell(candidate, 1.0)
    assert {c.strategy for c in found} == {"one", "two"} and len(found) <= 5
    assert sampler == "grid" or len(found) == 5


@pytest.mark.parametrize(
    ("candidate", "told"),
    [
        (Candidate("one", {"rows": 2, "kind": "b", "grain": 5}), {"strategy": "one", "one.rows": np.log2(3), "one.kind": 1}),
        (Candidate("one", {"rows": 64, "kind": "c"}), {"strategy": "one", "one.rows": np.log2(5)}),
        (Candidate("one", {"rows": 0, "kind": "a"}), {"strategy": "one", "one.rows": np.log2(3), "one.kind": 0}),
        (Candidate("two", {"tile": (2, 4)}), {"strategy": "two", "two.tile": 1}),
    ],
)
def test_a_sampler_is_told_of_what_it_did_not_propose(candidate, told):
    """Numbers by their logarithm, up to the limits of today's values; others by their position; none that there is no choice of."""
    pytest.importorskip("optuna")
    spaces = [space("one", rows=[2, 4], kind=["a", "b"], grain=[5]), space("two", tile=[(1, 8), (2, 4)])]
    search = Search(spaces, asker(*spaces), "tpe")
    search.tell(candidate, 0.5)
    (trial,) = search._study.trials
    assert trial.params == pytest.approx(told) and trial.value == -1


# ---- sessions ---------------------------------------------------------------------------------------------------------------------


def task(name="k", seconds=1.0, room=0.5, **changes):
    return Task(f"key of {name}", name, "", room=room, seconds=seconds, target="t", **changes)


def session(database, measurer, *tasks, sampler="random", spaces=(SPACE,), **options):
    return Session(tasks or [task()], database, measurer, lambda task: (spaces, asker(*spaces)), sampler, **options)


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "tuning.sqlite")


def test_the_best_is_recorded(database):
    found = session(database, Fake(best_at(16, 4)))
    found.run(None, None)
    (record,) = database.best()
    assert record.numbers["rows"] == 16 and record.numbers["vectors"] == 4
    assert record.low <= record.ratio <= record.high < 3
    assert record.ratio == pytest.approx(2.0) and record.default_seconds == 1.0 and record.seconds == pytest.approx(0.5)
    assert len(database.trials("key of k")) == SPACE.size - 1 and record.trials <= SPACE.size - 1
    assert found.gain == pytest.approx(2.0) and found.states[0].skipped == "all combinations are measured"


def test_a_kernel_is_searched_where_there_are_two_combinations(database):
    for rows, skipped in (([4], "nothing can be chosen"), ([4, 8], "all combinations are measured")):
        found = session(database, Fake(lambda task, candidate: 1.0), spaces=(space(rows=rows),))
        found.run(None, None)
        assert found.states[0].skipped == skipped and len(found.gains) == len(rows) - 1


def test_sketches_have_a_sampler_of_their_own(database):
    with pytest.raises(ValueError, match=r"sampler: expected one of .*, found 'other'"):
        session(database, Fake(best_at(16, 4)), task(sketches={"sketch": None}), of_sketches="other").run(1, None)
    session(database, Fake(best_at(16, 4)), of_sketches="other").run(1, None)


def test_as_many_measurements_are_under_way_as_the_measurer_has_slots(database):
    class Pair(Fake):
        slots = 2

    fake = Pair(lambda task, candidate: 1.0)
    session(database, fake, task("one", 10.0), task("two", 9.0)).run(4, None)
    assert [name for name, _ in fake.asked[:2]] == ["one", "two"]


def test_of_two_that_are_as_fast_the_first_one_stays(database):
    class Pair(Fake):
        slots = 2

    session(database, Pair(lambda task, candidate: 0.5)).run(2, None)
    assert [record.trials for record in database.best()] == [1]


def test_a_search_goes_on_where_another_one_ended(database):
    first = Fake(best_at(16, 4))
    session(database, first).run(20, None)
    best = database.record("key of k")
    second = Fake(best_at(16, 4))
    found = session(database, second, seed=1)
    found.run(None, None)
    assert len(database.trials("key of k")) == SPACE.size - 1  # none twice
    assert database.record("key of k").ratio >= best.ratio
    third = Fake(best_at(16, 4))
    again = session(database, third)
    again.run(None, None)
    assert again.gain == pytest.approx(2.0) and len(again.gains) == 0 and len(third.asked) == 2  # the default, and the best


def test_an_interrupt_loses_nothing(database):
    fake = Fake(best_at(16, 4))

    def measure(*arguments):
        if len(fake.asked) == 9:
            raise KeyboardInterrupt
        return Fake.measure(fake, *arguments)

    fake.measure = measure
    found = session(database, fake)
    with pytest.raises(KeyboardInterrupt):
        found.run(None, None)
    assert len(database.trials("key of k")) == len(found.gains) > 3
    assert database.record("key of k").ratio == pytest.approx(found.gain)


def test_what_fails_costs_its_candidate_only(database):
    def seconds(task, candidate):
        rows = candidate.numbers["rows"]
        return {1: "crashed", 2: "timeout", 8: "wrong", 16: 0.5}.get(rows, 1.0)

    found = session(database, Fake(seconds))
    found.run(None, None)
    assert database.record("key of k").numbers["rows"] == 16
    outcomes = {t.numbers["rows"]: t.outcome for t in database.trials("key of k")}
    assert outcomes == {1: "crashed", 2: "timeout", 4: "measured", 8: "wrong", 16: "measured"}
    again = Fake(seconds)
    session(database, again).run(None, None)
    assert len(again.asked) == 2  # what has crashed is not measured again


def test_a_kernel_whose_default_fails_is_skipped(database):
    found = session(database, Fake(lambda task, candidate: 1.0, default="crashed"))
    found.run(None, None)
    assert "the default schedule: crashed: it was crashed" in found.states[0].skipped and found.gain == 1.0


def test_what_was_lucky_is_no_gain(database):
    """A candidate that seems faster than the best one, and is not when it is measured again."""

    class Lucky(Fake):
        def measure(self, task, base, candidate, seconds):
            found = super().measure(task, base, candidate, seconds)
            return found if base == candidate or seconds > 1 else Measured("measured", comparison(1.0, 0.5))

    found = session(database, Lucky(lambda task, candidate: 1.0))
    found.run(10, None)
    assert database.best() == [] and found.gain == 1.0
    assert {t.relative for t in database.trials("key of k")} == {1.0}


def test_kernels_that_can_gain_most_come_first(database):
    fake = Fake(lambda task, candidate: 1.0)
    tasks = [task("small", 1.0), task("large", 10.0), task("done", 8.0, room=0.02)]
    found = session(database, fake, *tasks)
    found.run(20, None)
    names = [name for name, _ in fake.asked]
    assert names[0] == "large" and names.count("large") > names.count("small") > 0 and "done" not in names


def test_time_is_a_limit(database):
    clock = itertools.count()
    statuses = []
    found = session(database, Fake(best_at(16, 4)), clock=lambda: next(clock), report=statuses.append)
    none = Fake(best_at(16, 4))
    session(database, none, clock=lambda: 7.0).run(None, 0.0)
    assert none.asked == []
    found.run(None, 30)
    assert 0 < len(found.gains) < SPACE.size - 1
    assert statuses[0].candidate == "default" and statuses[-1].seconds[1] == 30 and statuses[-1].gain > 1


# ---- models -----------------------------------------------------------------------------------------------------------------------


def fewest_rows(task, candidate):
    """Seconds of a strategy that is best with three rows."""
    return 1.0 + 0.1 * abs(candidate.numbers["rows"] - 3) - 0.5 if candidate.strategy == "contraction" else 2.0


def tune(path, measurer, model=None, check=None, **options):
    build = tune_model.Build.of(model or dense(), {"num_threads": 1})
    options = tune_model.Options(**{"trials": 16, "sampler": "grid", "database": path, "kernels": "fused*", **options})
    with patch.object(tune_model, "whole_model", check or accept):
        return tune_model.search(build, lambda module: tune_model.inputs_of(module, None, None, 0), measurer, options)


def accept(build, module, inputs, records):
    return Check(comparison(2.0, 1.0), tuple(records))


def test_a_model_is_tuned(tmp_path):
    path = tmp_path / "t.sqlite"
    found = tune(path, Fake(fewest_rows, 1.2))
    (record,) = Database(path).best()
    assert record.numbers["rows"] == 3 and record.is_checked and found.gain == 2.0
    assert record.kernel.startswith("fused_dense") and record.ops[0] == "nn.dense"
    assert found.states[0].task.params == (1, 2) and found.states[0].task.shapes == ((64, 256), (), ())
    with relayc.tune.ApplyHistoryBest(path):
        assert " rows=3 " in relayc.compile(dense(), num_threads=1).kernels[0].schedule
    with PassContext(config={"schedule.kernels": found.settings}):
        assert " rows=3 " in relayc.compile(dense(), num_threads=1).kernels[0].schedule
    assert "2.00" in str(found)


def test_records_that_the_whole_model_refuses_are_not_kept(tmp_path):
    path = tmp_path / "t.sqlite"

    def check(build, module, inputs, records):
        return Check(None, (), tuple(records))

    found = tune(path, Fake(fewest_rows, 1.2), check=check)
    assert Database(path).best() == [] and found.gain == 1.0
    assert [t.outcome for t in Database(path).trials(found.states[0].task.key)].count("refused") == 1
    again = tune(path, Fake(fewest_rows, 1.2))  # what was refused is not proposed again
    refused = [t.numbers for t in Database(path).trials(found.states[0].task.key) if t.outcome == "refused"]
    assert again.states[0].record is None or again.states[0].record.numbers not in refused


def test_a_refused_record_makes_room_for_the_one_before(database):
    found = session(database, Fake(best_at(16, 4)))
    found.run(4, None)
    found.settle([], [record.key for record in database.best()])
    before = database.record("key of k")
    assert before.is_checked
    again = session(database, Fake(best_at(16, 4)))
    again.run(None, None)
    assert database.record("key of k").ratio > before.ratio
    again.settle(["key of k"], [])
    assert database.record("key of k") == before
    third = session(database, Fake(best_at(16, 4)))
    third.run(None, None)
    third.settle(["key of k"], [])  # and a second refusal leaves none
    assert database.record("key of k") is None


def test_a_kernel_with_a_symbol(tmp_path):
    fake = Fake(fewest_rows, 1.2)
    found = tune(tmp_path / "t.sqlite", fake, dense("n"))
    (record,) = Database(tmp_path / "t.sqlite").best()
    assert record.sizes == found.states[0].task.shapes and record.sizes[0][1] == 256 and record.sizes[0][0] > 1
    with relayc.tune.ApplyHistoryBest(tmp_path / "t.sqlite"):
        assert " rows=3 " in relayc.compile(dense("other"), num_threads=1).kernels[0].schedule


def test_kernels_that_the_user_schedules_are_left_alone(tmp_path):
    with PassContext(config={"schedule.kernels": {"fused_dense*": {"contraction.rows": 2}}}):
        assert tune(tmp_path / "t.sqlite", Fake(fewest_rows)).states == []
    with pytest.raises(ValueError, match=r"expected a pattern of kernels out of graph, fused_dense.*, found 'x'"):
        tune(tmp_path / "t.sqlite", Fake(fewest_rows), kernels="x")


def test_all_strategies(tmp_path):
    fake = Fake(lambda task, candidate: 0.5 if candidate.strategy == "loops" else 2.0, 1.0)
    assert not tune_model.Options().all_strategies
    found = tune(tmp_path / "t.sqlite", fake, all_strategies=True)
    assert found.settings[found.states[0].task.name]["strategy"] == "loops"
    with relayc.tune.ApplyHistoryBest(tmp_path / "t.sqlite"):
        assert relayc.compile(dense(), num_threads=1).kernels[0].schedule.startswith("loops ")


def test_what_a_search_is_by_default():
    defaults = {field.name: field.default for field in dataclasses.fields(tune_model.Options) if field.name != "report"}
    for function in (relayc.tune.tune, relayc.tune.kernel):
        parameters = inspect.signature(function).parameters
        assert {name: parameters[name].default for name in defaults if name in parameters}.items() <= defaults.items()
        assert not parameters["all_strategies"].default


def test_an_interrupt_of_a_model_keeps_the_records(tmp_path):
    def check(*arguments):
        raise KeyboardInterrupt

    found = tune(tmp_path / "t.sqlite", Fake(fewest_rows, 1.2), check=check)
    (record,) = Database(tmp_path / "t.sqlite").best()
    assert found.interrupted and record.numbers["rows"] == 3 and not record.is_checked


def test_times_of_another_machine_say_nothing(tmp_path):
    build = tune_model.Build.of(dense(), {"target": "cpu -emulate=true"})
    with pytest.raises(ValueError, match="expected a target whose instructions this machine has"):
        tune_model.search(build, lambda module: {}, Fake(fewest_rows), tune_model.Options(database=tmp_path / "t.sqlite"))


# ---- the whole model, one kernel, the defaults ------------------------------------------------------------------------------------


def test_a_kernel_takes_the_time_of_all_its_calls():
    rows = [SimpleNamespace(kernel=SimpleNamespace(name=name), seconds=seconds) for name, seconds in (("a", 1.0), ("b", 2.0), ("a", 4.0))]
    module = SimpleNamespace(profile=lambda inputs, repeat: SimpleNamespace(rows=rows))
    assert tune_model._seconds_by_kernel(module, {}) == {"a": 5.0, "b": 2.0}


def test_what_a_search_knows_of_kernels():
    """Of a third of the bytes of parameters, and at most all of them; what `lost` says of a second is the room within limits."""

    def row(name, seconds, lost, calls=1):
        inputs = (TensorSpec("x", (40,), "int8"), TensorSpec("w", (12,), "int8"))
        return SimpleNamespace(kernel=SimpleNamespace(name=name, inputs=inputs), seconds=seconds, lost=lambda peak: lost, calls=calls)

    texts = SimpleNamespace(found={name: (f"key {name}", "", "", (), (0, 1) if name == "c" else (1,)) for name in "abcdef"})
    module = SimpleNamespace(params={"v": np.zeros(24, np.int8), "w": np.zeros(12, np.int8)})
    rows = [row("b", 3, 0.9, 2), row("a", 4, 3.6), row("c", 2, 0.02), row("d", 9, 1), row("e", 9, 1, 0), row("f", 0, 0), row("g", 9, 1)]
    config = {"schedule.kernels": {"other": "", "d*": ""}}
    found = model_tasks(texts, module, SimpleNamespace(peak=1, rows=rows), "t", None, config)
    assert [(one.name, one.room, one.others) for one in found] == [("a", 0.5, 24), ("b", 0.3, 0), ("c", 0.02, 0), ("f", 0.02, 24)]


def test_the_whole_model_says_which_records_gain(monkeypatch):
    build = tune_model.Build.of(dense(), {"num_threads": 1})
    build = tune_model.replace(build, context={**build.context, "config": {"tuning.database": ""}})
    texts = tune_model.KernelTexts(build.target)
    with PassContext(instruments=[texts]):
        module = build.compile()
    ((name, (key, *_)),) = texts.found.items()
    inputs = tune_model.inputs_of(module, None, None, 0)
    records = {key: {"strategy": "contraction", "contraction.rows": 3}}
    times = {True: 1.0, False: 1 + tune_model.WORTH}
    monkeypatch.setattr(tune_model, "_seconds_by_kernel", lambda m, inputs: {name: times[m is not module]})
    monkeypatch.setattr(tune_model, "compare_times", lambda base, other, *_: (base(), other(), comparison(2.0, 1.0))[-1])
    found = tune_model.whole_model(build, module, inputs, records)
    assert found.kept == (key,) and found.comparison.ratio == 2.0
    times[True] = 1.01
    assert tune_model.whole_model(build, module, inputs, records) == Check(None, (), (key,))
    times[True] = 1.0
    monkeypatch.setattr(tune_model, "compare_times", lambda *_: comparison(1.0, 2.0))
    assert tune_model.whole_model(build, module, inputs, records) == Check(None, (), (key,))


PRODUCT = product_text(64, 64, 64)


def test_one_kernel(tmp_path):
    options = {"num_threads": 1, "trials": 16, "sampler": "grid", "database": tmp_path / "t.sqlite"}
    found = relayc.tune.kernel(PRODUCT, params=[1], measurer=Fake(fewest_rows, 1.2), **options)
    assert found.settings["product"]["contraction.rows"] == 3
    kernel = relayc.compile_kernel(PRODUCT, num_threads=1, params={1: np.eye(64, dtype=np.float32)}, tuning=found.settings["product"])
    assert " rows=3 " in kernel.info.schedule
    with pytest.raises(ValueError, match="expected a kernel other, found product"):
        relayc.tune.kernel(PRODUCT, name="other", measurer=Fake(fewest_rows), **options)


def split_rows(s):
    i = s.get_loops("matmul")[0]
    outer, _ = s.split(i, s.sample_perfect_tile(i, 2, 16, name="rows"))
    s.parallel(outer)


def test_an_interrupt_of_one_kernel_keeps_what_is_known(tmp_path, monkeypatch):
    fake = Fake(fewest_rows)
    options = {"num_threads": 1, "trials": 2, "sampler": "grid", "database": tmp_path / "t.sqlite", "sketches": False}
    assert not relayc.tune.kernel(PRODUCT, measurer=fake, **options).interrupted
    monkeypatch.setattr(fake, "measure", Mock(side_effect=KeyboardInterrupt))
    found = relayc.tune.kernel(PRODUCT, measurer=fake, **options)
    assert found.interrupted and found.settings == {}


def test_a_schedule_with_knobs(tmp_path):
    seen = []

    def seconds(task, candidate):
        seen.append(candidate.schedule)
        return 1.0 if not candidate.numbers else 1.0 - 0.01 * candidate.numbers["rows"][1]

    options = {"num_threads": 1, "trials": 40, "database": tmp_path / "t.sqlite", "schedule": split_rows}
    found = relayc.tune.kernel(PRODUCT, measurer=Fake(seconds), **options)
    assert found.settings["product"] == {"strategy": "split_rows", "split_rows.rows": (4, 16)}
    assert all("transform." in text for text in seen) and len(set(seen)) == 5
    x = np.random.default_rng(0).standard_normal((64, 64), np.float32)
    kernel = relayc.compile_kernel(PRODUCT, schedule=split_rows, tuning=found.settings["product"], num_threads=1)
    np.testing.assert_allclose(kernel(x, x), x @ x, rtol=1e-4, atol=1e-4)
    with relayc.tune.ApplyHistoryBest(tmp_path / "t.sqlite"):
        assert relayc.compile_kernel(PRODUCT, num_threads=1).info.schedule.startswith("contraction ")


def test_candidates_have_names_of_their_own():
    assert Candidate("s", {"a": 1}).name != Candidate("s", {"a": 2}).name != Candidate("t", {"a": 2}).name
    assert Candidate("s", {"a": 1, "b": (2, 3)}).name == Candidate("s", {"b": [2, 3], "a": 1}).name


@pytest.mark.parametrize(
    ("values", "are"), [((1, 2, 4), True), ((0,), True), ((2, 1), False), ((-1, 2), False), ((1, 2.0), False), (("a",), False), ((), True)]
)
def test_values_that_are_numbers(values, are):
    assert search_module._are_numbers(values) == are


@pytest.mark.parametrize(
    ("relative", "value"), [(1.0, 0.0), (0.5, -1.0), (4.0, 2.0), (8.0, 3.0), (9.0, 3.0), (None, 3.0), (0.0, np.log2(1e-9))]
)
def test_values_for_samplers_are_logarithms_up_to_that_of_a_failure(relative, value):
    assert search_module._value(relative) == pytest.approx(value)


class Asked:
    """A trial of a sampler that wants a number in a range."""

    def __init__(self, wanted):
        self.wanted, self.ranges = wanted, []

    def suggest_float(self, key, low, high):
        self.ranges.append((low, high))
        return self.wanted

    suggest_int = suggest_float


@pytest.mark.parametrize(
    ("values", "wanted", "found", "ranges"),
    [
        ((7,), 0.0, 7, []),
        ((1, 3, 15), 1.4, 1, [(1.0, 4.0)]),
        ((1, 3, 15), 1.6, 3, [(1.0, 4.0)]),
        ((1, 3, 15), 3.1, 15, [(1.0, 4.0)]),
        ((0, 1), 0.6, 1, [(0.0, 1.0)]),
        (("a", "b", "c"), 2, "c", [(0, 2)]),
    ],
)
def test_samplers_choose_numbers_by_their_logarithm(values, wanted, found, ranges):
    trial = Asked(wanted)
    assert search_module._suggested(trial, "key", values) == found and trial.ranges == ranges
