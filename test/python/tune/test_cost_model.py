"""The cost model: what it knows of a schedule, what it learns, and that it decides what is compiled."""

import numpy as np
import pytest
from tuned_kernels import Fake, argmax, asker, product, space

import relayc
from relayc.dialects.relay import IRModule
from relayc.pipelines.driver.tuning_space import TuningSpace, tuning_space
from relayc.pipelines.history.database import Database
from relayc.pipelines.history.record import Trial
from relayc.pipelines.tir.analysis.features import FEATURES, features_of
from relayc.tune.cost_model import FEWEST_EXAMPLES, CostModel
from relayc.tune.search import Search
from relayc.tune.session import Session
from relayc.tune.sketch import sketches
from relayc.tune.tasks import Task

pytest.importorskip("lightgbm")


def rank_correlation(first, second):
    """Spearman's rank correlation of two lists: 1 for equal ranks, 0 for no correlation."""
    ranks = [_ranks(np.asarray(values, float)) for values in (first, second)]
    if min(np.ptp(ranks[0]), np.ptp(ranks[1])) == 0:
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values):
    """Positions in order; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def features(kernel, schedule=None):
    (found,) = tuning_space(kernel, "cpu -mcpu=x86-64-v3", schedules=None if schedule is None else {"main": schedule})
    assert len(found.features) == len(FEATURES)
    return dict(zip(FEATURES, 2 ** np.array(found.features) - 1, strict=True))


def test_features_of_loops():
    rows, columns, depth = 32, 64, 48
    kernel = product(rows, columns, depth)

    def plain(s):
        s.parallel(s.get_loops("c")[0])

    def vectors(s):
        i, j, k = s.get_loops("c")
        j0, j1 = s.split(j, [None, 8])
        s.reorder(i, j0, k, j1)
        s.vectorize(j1)
        s.vectorize(s.get_loops("d")[1])

    one, other = features(kernel, plain), features(kernel, vectors)
    sums = rows * columns * depth
    # A product and a sum for each step, a sum and a maximum for each element.
    assert one["scalar operations"] == pytest.approx(2 * (sums + rows * columns), rel=1e-3) and one["vector operations"] == 0
    assert one["elements computed"] == pytest.approx(other["elements computed"], rel=1e-3)
    assert other["vector operations"] * other["lanes of vectors on average"] == pytest.approx(other["elements computed"], rel=1e-3)
    assert one["extents of the parallel loops"] == pytest.approx(rows, rel=1e-3) and other["extents of the parallel loops"] == 0
    buffers = 4 * (rows * depth + depth * columns + columns + rows * columns)
    assert one["bytes of all buffers"] >= buffers * 0.999
    for found in (one, other):
        beyond = [found[f"bytes that come from beyond {size} KiB of cache"] for size in (16, 512, 16 << 10)]
        assert beyond == sorted(beyond, reverse=True) and beyond[-1] <= found["bytes accessed"]


def test_features_of_each_operation():
    """4 threads by 512 vectors, and by 32 steps of a loop of unknown extent with a branch."""
    mod = IRModule.parse("""
    func.func @main(%a: memref<4x4096xf32>, %b: memref<4104xf32>, %c: memref<?xf32>, %n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c12 = arith.constant 12 : index
      %c4096 = arith.constant 4096 : index
      %first = memref.load %c[%c0] : memref<?xf32>
      scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
        scf.for %j = %c0 to %c4096 step %c8 {
          %next = arith.addi %i, %j : index
          %x = vector.load %a[%i, %j] : memref<4x4096xf32>, vector<8xf32>
          %y = vector.load %b[%next] : memref<4104xf32>, vector<8xf32>
          %z = arith.divf %x, %y : vector<8xf32>
          vector.store %z, %a[%i, %j] : memref<4x4096xf32>, vector<8xf32>
        }
        scf.for %k = %c1 to %n step %c1 {
          %v = memref.load %c[%k] : memref<?xf32>
          %w = math.exp %v : f32
          %u = arith.addf %w, %v : f32
          %is = arith.cmpf ogt, %u, %v : f32
          scf.if %is {
            memref.store %u, %c[%k] : memref<?xf32>
            %pair = vector.from_elements %u, %v : vector<2xf32>
            scf.for %l = %c1 to %c12 step %c3 {
              memref.store %u, %b[%l] : memref<4104xf32>
            }
          }
        }
      }
      return
    }""")
    steps, lanes, scalars = 4 * 512, 4 * 512 * 8, 3 * 4 * 32
    near = 4 + 32 * steps * 2 + 4 * 128 + 16 * 128  # of the innermost loops, whose accesses fit together
    assert 2 ** np.array(features_of(mod.module.body.operations[0])) - 1 == pytest.approx(
        [
            steps,
            scalars,
            steps + 128,
            lanes + scalars,
            2 * steps,
            steps,
            128 + 1,
            128 + 4 * 128,
            128,
            2 * 128,  # without and with an else
            4 + steps + 128 + 4 * 128,
            31,
            4,
            (512 + 32 + 4) / 3,
            8,
            32 * 3 * steps + 4 * (1 + 128 + 128 + 4 * 128),
            4 * (4 * 4096 + 4104 + 32),
            near,
            *[4 * (4 * 4096 + 4104 + 32 + 4 + 1)] * 2,  # all there is
            (lanes + scalars) / near,
        ],
        rel=1e-4,
        abs=1e-4,
    )


def test_features_of_loops_of_any_bounds_and_of_all_types():
    """What is not known counts as 32. As much as the first cache has is read from beyond it once, however often it is read."""
    mod = IRModule.parse("""
    func.func @again(%a: memref<4096xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c12 = arith.constant 12 : index
      %c4096 = arith.constant 4096 : index
      scf.parallel (%i, %j) = (%c4, %c0) to (%c12, %c4) step (%c4, %c1) {
        scf.for %k = %c0 to %c4096 step %c4 {
          %x = vector.load %a[%k] : memref<4096xf32>, vector<4xf32>
        }
      }
      return
    }
    func.func @unknown(%b: memref<12x8xi1>, %c: memref<0x1xi64>, %d: memref<5xindex>, %n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %first = arith.addi %n, %c8 : index
      scf.for %i = %first to %c8 step %c1 {
        scf.for %j = %c0 to %c8 step %n {
          %y = memref.load %b[%i, %j] : memref<12x8xi1>
          scf.for %k = %c8 to %c8 step %c1 {
            %z = memref.load %c[%k, %c0] : memref<0x1xi64>
            %at = memref.load %d[%k] : memref<5xindex>
            %pair = vector.from_elements %z, %z : vector<2xi64>
            %both = arith.addi %pair, %pair : vector<2xi64>
          }
        }
      }
      return
    }""")
    again, unknown = (dict(zip(FEATURES, 2 ** np.array(features_of(f)) - 1, strict=True)) for f in mod.module.body.operations)
    steps = 32 * 32
    wanted = {
        "vector operations": steps,
        "elements computed": 2 * steps,
        "iterations of all loops": 32 + 2 * steps,
        "extent of the innermost loops on average": 1,
        "bytes accessed": (1 + 8 + 8) * steps,
        "bytes of all buffers": 12 * 8 + 32 * 8 + 5 * 8,
    }
    assert {name: unknown[name] for name in wanted} == pytest.approx(wanted, rel=1e-4)
    wanted = {
        "iterations of all loops": 8 + 8 * 1024,
        "extents of the parallel loops": 8,
        "extent of the innermost loops on average": 1024,
        "bytes accessed": 8 * 4 * 4096,
        "bytes that come from beyond 16 KiB of cache": 4 * 4096,
    }
    assert {name: again[name] for name in wanted} == pytest.approx(wanted, rel=1e-4)


def test_features_of_what_is_in_no_loop():
    mod = IRModule.parse("""
    func.func @main(%b: memref<40xf32>, %mask: vector<8xi1>, %at: vector<8xi32>) {
      %c0 = arith.constant 0 : index
      %zero = arith.constant dense<0.0> : vector<8xf32>
      %some = vector.maskedload %b[%c0], %mask, %zero : memref<40xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
      %far = vector.gather %b[%c0] [%at], %mask, %some : memref<40xf32>, vector<8xi32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
      vector.maskedstore %b[%c0], %mask, %far : memref<40xf32>, vector<8xi1>, vector<8xf32>
      return
    }
    func.func @nothing() {
      return
    }""")
    one, nothing = (2 ** np.array(features_of(function)) - 1 for function in mod.module.body.operations)
    beyond = [f"bytes that come from beyond {size} KiB of cache" for size in (16, 512, 16 << 10)]
    wanted = {"vector loads": 2, "vector stores": 1, "operations of the code": 6, "bytes accessed": 96, "bytes of all buffers": 160}
    assert dict(zip(FEATURES, one, strict=True)) == pytest.approx(dict.fromkeys(FEATURES, 0) | wanted | dict.fromkeys(beyond, 32), abs=0.02)
    assert dict(zip(FEATURES, nothing, strict=True)) == pytest.approx(dict.fromkeys(FEATURES, 0) | {"operations of the code": 1})


@pytest.mark.parametrize(("elements", "times"), [(4096, 1), (4097, 2)])
def test_a_buffer_that_fills_a_cache_is_read_once(elements, times):
    """A loop reads each element of a buffer twice: of 16 KiB, and of one element more."""
    mod = IRModule.parse(f"""
    func.func @k(%x: memref<{elements}xf32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %end = arith.constant {elements} : index
      scf.for %i = %c0 to %c2 step %c1 {{
        scf.for %j = %c0 to %end step %c1 {{
          %v = memref.load %x[%j] : memref<{elements}xf32>
        }}
      }}
      return
    }}""")
    found = dict(zip(FEATURES, 2 ** np.array(features_of(mod.module.body.operations[0])) - 1, strict=True))
    assert found["bytes that come from beyond 16 KiB of cache"] == pytest.approx(4 * elements * times, rel=1e-3)
    assert found["bytes that come from beyond 512 KiB of cache"] == pytest.approx(4 * elements, rel=1e-3)


def test_blocks_for_the_cache_are_seen():
    kernel = product(512, 512, 512)

    def by(blocks):
        def schedule(s):
            i, j, k = s.get_loops("c")
            i0, i1 = s.split(i, [None, blocks])
            k0, k1 = s.split(k, [None, blocks])
            j0, j1 = s.split(j, [None, blocks])
            s.reorder(i0, j0, k0, i1, k1, j1)

        return features(kernel, schedule)["bytes that come from beyond 16 KiB of cache"]

    assert by(32) < by(512) / 8


def learned(seed=0, count=60):
    """Times that follow one feature, with some noise, of kernels of three sizes."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0, 10, (count, len(FEATURES)))
    return [tuple(row) for row in rows], list(2 ** (rows[:, 3] - 20 + rng.normal(0, 0.1, count)))


def test_a_model_ranks_what_it_has_not_seen():
    known, times = learned()
    model = CostModel(zip(known, times, strict=True))
    others, expected = learned(seed=1)
    assert rank_correlation(model.predict(others), expected) > 0.9
    assert rank_correlation(model.predict(others), list(np.random.default_rng(2).random(60))) < 0.4
    model.add((1.0, 2.0), 1.0)  # of another version
    model.add((), 1.0)
    model.add(known[0], 0.0)  # by a clock that stood still
    assert len(model) == 60


def test_rank_correlation():
    assert rank_correlation([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert rank_correlation([1, 1, 1], [3, 2, 1]) == 0
    assert rank_correlation([1, 2, 2, 3], [1, 3, 2, 4]) == pytest.approx(np.corrcoef([1, 2.5, 2.5, 4], [1, 3, 2, 4])[0, 1])


VALUES = [1, 2, 4, 8, 16, 32, 64, 128]
LARGE = space(a=VALUES, b=VALUES, c=VALUES, d=VALUES)


def ask_with_features(strategy, numbers):
    found = asker(LARGE)(strategy, numbers)
    return TuningSpace(found.kernel, (), strategy, found.chosen, found.values, features=tuple(map(np.log2, found.chosen.values())))


def seconds_of(candidate):
    return 0.1 + sum((np.log2(value) - 6) ** 2 for value in candidate.numbers.values()) / 144


def measured(sampler, seed, count=40, known=()):
    """The least time, and how many measurements it took to get to 0.12."""
    model = CostModel(known) if sampler == "model" else None
    search = Search([LARGE], ask_with_features, sampler, seed, model)
    times = []
    for _ in range(count):
        candidate = search.next()
        times.append(seconds_of(candidate))
        if model is not None:
            model.add(search.features(candidate), times[-1])
        search.tell(candidate, times[-1])
    return min(times), next((i for i, time in enumerate(times) if time <= 0.12), count)


def test_a_search_with_a_model_needs_fewer_measurements():
    found = {sampler: np.mean([measured(sampler, seed) for seed in range(3)], axis=0) for sampler in ("model", "random")}
    assert found["model"][0] < found["random"][0] and found["model"][1] < found["random"][1] / 1.5
    # A model that learned from another kernel of the same kind begins with what it knows.
    rows = np.random.default_rng(0).integers(0, 8, (200, 4))
    known = [(tuple(map(float, row)), 3 * (0.1 + float(((row - 6) ** 2).sum()) / 144)) for row in rows]
    assert measured("model", 0, 8, known)[0] < measured("model", 0, 8)[0]


def test_what_the_model_rejects_is_not_compiled(tmp_path):
    fake = Fake(lambda task, candidate: seconds_of(candidate))
    asked = []

    def ask(strategy, numbers):
        asked.append(dict(numbers))
        return ask_with_features(strategy, numbers)

    database = Database(tmp_path / "t.sqlite")
    session = Session([Task("key", "k", "", seconds=1.0)], database, fake, lambda task: ([LARGE], ask), "model")
    session.run(24, None)
    assert len(session.gains) == 24
    # Candidates are drawn in hundreds; of these only what is measured is compiled.
    assert len(asked) > 50
    assert len({candidate for _, candidate in fake.asked}) <= 26
    # A later session begins with what was measured.
    examples = database.examples()
    assert len(examples) == 24 and all(len(one) == 4 and seconds > 0 for one, seconds in examples)
    again = Session([Task("other", "k", "", seconds=1.0)], database, fake, lambda task: ([LARGE], ask_with_features), "model")
    assert again._model.is_ready and len(again._model) == 24 >= FEWEST_EXAMPLES


@pytest.mark.parametrize("count", [0, FEWEST_EXAMPLES - 1, FEWEST_EXAMPLES, FEWEST_EXAMPLES + 1])
def test_a_model_predicts_from_so_many_measurements_on(count):
    model = CostModel([((float(i), 1.0), 2.0**i) for i in range(count)])
    assert model.is_ready == (count >= 8)
    model.add((1.0, 2.0, 3.0), 1.0)  # of an earlier version, where there are others
    assert len(model) == max(count, 1)


def test_measurements_without_features_teach_nothing(tmp_path):
    database = Database(tmp_path / "t.sqlite")
    database.add(Trial("key", "s", {"rows": 2}, 0.5, seconds=1.0))
    database.add(Trial("key", "s", {"rows": 3}, None, "crashed", features=(1.0, 2.0)))
    database.add(Trial("key", "s", {"rows": 4}, 0.5, seconds=2.0, features=(1.0, 2.0)))
    assert database.examples() == [((1.0, 2.0), 2.0)]
    assert [trial.features for trial in database.trials("key")] == [(), (1.0, 2.0), (1.0, 2.0)]


def test_without_lightgbm_the_sampler_says_so(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(ModuleNotFoundError, match=r"the sampler model needs LightGBM: pip install 'relayc\[tune\]'"):
        CostModel()


def test_sketches_are_searched_with_the_model(tmp_path):
    class ByLanes(Fake):
        def __init__(self):
            self.asked = []

        def of(self, task, candidate):
            script = candidate.schedule
            return 1.0 if not script else 0.1 if '"generic_lanes"> = 64' in script else 0.2 if "rfactor" in script else 0.5

    path = tmp_path / "t.sqlite"
    found = relayc.tune.kernel(argmax(), trials=12, sampler="model", database=path, measurer=ByLanes(), num_threads=1)
    assert found.gain == pytest.approx(10)
    assert all(trial.features for trial in found.states[0].trials)
    assert [sketch.__name__ for sketch in sketches(argmax())] == list(found.states[0].task.sketches)
