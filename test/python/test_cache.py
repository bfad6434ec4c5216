"""The on-disk cache: what it finds, what it refuses, and what happens to damaged, concurrent, old and too many programs."""

import dataclasses
import os
import shutil
import struct
import subprocess
import sys
import textwrap
import time
import zlib
from pathlib import Path

import handmade_flow
import numpy as np
import onnx
import pytest
from jitted import compile_text
from onnx_models import model_of, weighted

import relayc
from relayc.dialects.relay import OPS, Op, Operand
from relayc.pipelines import PassContext
from relayc.pipelines.context.instruments import PassTimingInstrument
from relayc.pipelines.driver import compile_cache
from relayc.pipelines.graph.numpy_operators import NUMPY_OPERATORS, numpy_operator
from relayc.pipelines.graph.simplify_expr import RULES as SIMPLIFICATIONS
from relayc.pipelines.te.rules.core import RULES as COMPUTE_RULES
from relayc.pipelines.tir.strategy.table import STRATEGIES, Entry, register_strategies
from relayc.runtime import cache as runtime_cache
from relayc.runtime.cache import Cache, Origin, default_folder, file_digest
from relayc.runtime.cpu import objects
from relayc.runtime.elf import read_headers
from relayc.tools import cli

pytestmark = pytest.mark.skipif(not objects.can_load(), reason="objects are loaded on Linux on x86-64 only")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of a cache that is on."""
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_cache, "_sources_are_loaded", lambda: True)  # also while someone edits them
    return tmp_path / "cache"


@pytest.fixture
def model(tmp_path):
    """y = x w with w of 64 x 64, as a file."""
    path = tmp_path / "model.onnx"
    onnx.save(weighted()[0], path)
    return path


X = np.random.default_rng(1).standard_normal((1, 64), np.float32)


def from_cache(module):
    return list(module.stats) == ["cache"]


def programs(folder):
    return sorted(folder.glob("*.relayc"))


def rewrite_later(path, content):
    """Writes a file and moves its times to where they show that it was left alone since."""
    path.write_bytes(content)
    past = time.time() - 100
    os.utime(path, (past, past))


def test_second_compilation_comes_from_the_cache_and_is_the_same_program(folder, model):
    first, second = relayc.compile(str(model)), relayc.compile(str(model))
    assert not from_cache(first) and from_cache(second)
    np.testing.assert_array_equal(first["main"](X), second["main"](X))
    for name in ("inputs", "outputs", "kernels", "step_kernels", "target"):
        assert getattr(first, name) == getattr(second, name)
    assert first.function_names() == second.function_names()


def test_kernels_of_a_program_from_the_cache_can_be_profiled(folder, model):
    relayc.compile(model)
    assert [row.kernel.name for row in relayc.compile(model).profile({"x": X}).rows]


def test_errors_of_a_program_from_the_cache_name_the_argument(folder, model):
    relayc.compile(model)
    with pytest.raises(ValueError, match=r"main: argument 0 'x': expected float32\[1, 64\]"):
        relayc.compile(model)["main"](X[:, :3])


def test_a_hit_imports_neither_mlir_nor_onnx(folder, model):
    relayc.compile(model)
    code = f"""
    import sys
    import relayc
    from relayc.pipelines.driver import compile_cache
    compile_cache._sources_are_loaded = lambda: True
    module = relayc.compile({str(model)!r})
    assert list(module.stats) == ["cache"], module.stats
    print([name for name in ("torch_mlir", "onnx") if name in sys.modules or f"/{{name}}/" in open("/proc/self/maps").read()])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("before", [0, 1], ids=["compiled", "found"])
def test_weights_are_mapped_from_the_file(folder, model, before):
    for _ in range(before):
        relayc.compile(model)
    module = relayc.compile(model)
    (path,) = programs(folder)
    assert from_cache(module) == bool(before)
    assert module["main"](X).shape == (1, 64)
    assert {line.split()[1] for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(str(path))} == {"r--s"}


def test_bytes_and_messages_are_found_again_too(folder, model):
    message = weighted()[0]
    for given in (message.SerializeToString(), message):
        assert not from_cache(relayc.compile(given))
        assert from_cache(relayc.compile(given))
        for path in programs(folder):
            path.unlink()


def test_an_ir_module_is_kept_only_on_request(folder):
    modules = [relayc.from_onnx(weighted()[0]) for _ in range(4)]
    relayc.compile(modules[0])
    assert not programs(folder)
    assert not from_cache(relayc.compile(modules[1], cache=True))
    assert from_cache(relayc.compile(modules[2], cache=True))
    modules[3].params = {key: array + 1 for key, array in modules[3].params.items()}
    assert not from_cache(relayc.compile(modules[3], cache=True))


@pytest.mark.parametrize(
    "changed",
    [
        {"opt_level": 1},
        {"target": relayc.Target("cpu", num_threads=3)},
        {"target": relayc.Target("cpu", features="-avx512f,-avx2")},
        {"precision": "bf16"},
    ],
    ids=["level", "threads", "features", "precision"],
)
def test_other_options_make_another_program(folder, model, changed):
    relayc.compile(model)
    assert not from_cache(relayc.compile(model, **changed))
    assert from_cache(relayc.compile(model)) and from_cache(relayc.compile(model, **changed)) and len(programs(folder)) == 2


def test_every_choice_of_sizes_makes_another_program(folder):
    model = model_of([onnx.helper.make_node("Relu", ["x"], ["y"])], {"x": ["n", 4]})
    shapes = [{"shapes": {"x": shape}} for shape in ((2, 4), ("2*m", 4))]
    choices = [{}, *shapes, {"dims": {"n": 3}}, {"dims": {"n": (1, 9)}}, {"specialize": [{"n": 5}]}]
    for is_second in (False, True):
        for i, options in enumerate(choices):
            assert from_cache(relayc.compile(model, **options)) == is_second, options
            assert len(programs(folder)) == (len(choices) if is_second else i + 1)


def test_passes_that_are_left_out_make_another_program(folder, model):
    relayc.compile(model)
    with PassContext(disabled_pass=["FoldScaleAxis"]):
        assert not from_cache(relayc.compile(model))
        assert from_cache(relayc.compile(model))
    assert len(programs(folder)) == 2
    config = [("relay.FuseOps.max_depth", 8), ("relay.FuseOps.max_operands", 9)]
    for order in (1, -1):
        with PassContext(config=dict(config[::order])):
            assert from_cache(relayc.compile(model)) == (order < 0)


def test_what_can_be_written_into_a_key():
    plain = [1, True, None, "a", 0.5, [1, ["b"]], {"a": {"b": (2,)}}]
    other = [object(), [1, object()], {"a": 1, 2: 3}, {"a": object(), "b": 1}]
    assert list(map(compile_cache._is_plain, plain + other)) == [True] * len(plain) + [False] * len(other)


def test_what_is_observed_is_compiled(folder, model, tmp_path):
    relayc.compile(model)
    assert "te" in relayc.compile(model, keep_ir=True).ir
    assert not from_cache(relayc.compile(model, dump_ir=tmp_path / "ir"))
    with PassContext(instruments=[PassTimingInstrument()]):
        assert not from_cache(relayc.compile(model))


@pytest.mark.parametrize("how", ["environment", "argument"])
def test_the_cache_can_be_turned_off(folder, model, monkeypatch, how):
    if how == "environment":
        monkeypatch.setenv("RELAYC_CACHE", "0")
    relayc.compile(model, cache=False if how == "argument" else None)
    assert not folder.exists()


@pytest.mark.parametrize("where", ["magic", "metadata", "code", "parameters", "end", "everything"])
def test_a_damaged_program_is_compiled_anew(folder, model, where):
    wanted = relayc.compile(model)["main"](X)
    (path,) = programs(folder)
    content = bytearray(path.read_bytes())
    body = int.from_bytes(content[48:56], "little")
    at = {"magic": 3, "metadata": 90, "code": 64 + body - 2000, "parameters": len(content) - 100}.get(where)
    if at is not None:
        content[at] ^= 0xFF
    path.write_bytes({"end": content[:-1000], "everything": b""}.get(where, content))
    again = relayc.compile(model)
    assert not from_cache(again)
    np.testing.assert_array_equal(again["main"](X), wanted)
    assert from_cache(relayc.compile(model))


def test_writers_at_the_same_time_leave_one_whole_program(folder, model):
    code = f"""
    import relayc, numpy
    from relayc.pipelines.driver import compile_cache
    compile_cache._sources_are_loaded = lambda: True
    module = relayc.compile({str(model)!r})
    print(float(module["main"](numpy.ones((1, 64), "float32")).sum()))
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(4)
    ]
    printed = {process.communicate()[0] for process in started}
    assert len(printed) == 1 and all(process.returncode == 0 for process in started)
    assert len(programs(folder)) == 1 and not list(folder.glob("*.tmp"))
    assert from_cache(relayc.compile(model))


def test_another_version_of_the_compiler_makes_another_program(folder, model, monkeypatch):
    relayc.compile(model)
    monkeypatch.setattr(compile_cache, "source_digest", lambda: "another")
    assert not from_cache(relayc.compile(model))
    assert len(programs(folder)) == 2


def test_the_sources_are_those_of_the_whole_compiler():
    found = {Path(path).relative_to(Path(relayc.__path__[0])).as_posix() for path in compile_cache._files()}
    assert {"frontend/onnx/quantize.py", "pipelines/driver/compile_cache.py", "dialects/relay/conv.py", "runtime/module.py"} <= found
    assert {name.split("/")[0] for name in found} == set(compile_cache._SOURCES)


def test_nothing_is_kept_while_the_compiler_is_edited(folder, model, monkeypatch):
    monkeypatch.setattr(compile_cache, "_sources_are_loaded", lambda: False)
    relayc.compile(model)
    assert not folder.exists()


@pytest.mark.parametrize(("ages", "loaded"), [((1, 2), True), ((1, 0), False), ((1, -1), False)])
def test_sources_that_were_changed_since_the_process_began_are_not_those_that_run(tmp_path, monkeypatch, ages, loaded):
    paths = [tmp_path / f"{i}.py" for i in range(len(ages))]
    for path, age in zip(paths, ages, strict=True):
        path.touch()
        os.utime(path, ns=(0, compile_cache._STARTED - age))
    monkeypatch.setattr(compile_cache, "_files", lambda: paths)
    assert compile_cache._sources_are_loaded() == loaded


def test_a_changed_model_of_the_same_size_is_noticed(folder, model):
    rewrite_later(model, model.read_bytes())
    first = relayc.compile(model)["main"](X)
    assert from_cache(relayc.compile(model))  # the digest was noted by now
    changed, w = weighted()
    changed.graph.initializer[0].raw_data = (2 * w).tobytes()
    rewrite_later(model, changed.SerializeToString())
    again = relayc.compile(model)
    assert not from_cache(again)
    np.testing.assert_allclose(again["main"](X), 2 * first, rtol=1e-6)


def test_changed_external_data_is_noticed(folder, model, tmp_path):
    onnx.save(weighted()[0], model, save_as_external_data=True, location="weights.bin", size_threshold=0)
    first = relayc.compile(model)["main"](X)
    assert from_cache(relayc.compile(model))
    data = tmp_path / "weights.bin"
    data.write_bytes((2 * np.frombuffer(data.read_bytes(), np.float32)).tobytes())
    again = relayc.compile(model)
    assert not from_cache(again)
    np.testing.assert_allclose(again["main"](X), 2 * first, rtol=1e-6)


def test_programs_not_used_for_longest_go_first(folder):
    models = [weighted(size)[0].SerializeToString() for size in (60, 61, 62)]
    for age, content in zip((300, 200, 100), models, strict=True):
        relayc.compile(content)
        (newest,) = [p for p in programs(folder) if p.stat().st_mtime > time.time() - 50]
        os.utime(newest, (time.time() - age, time.time() - age))
    assert from_cache(relayc.compile(models[0]))  # now the last used
    total = sum(p.stat().st_size for p in programs(folder))
    Cache(folder, limit=total - 1).evict()
    assert [from_cache(relayc.compile(m, cache=None)) for m in (models[0], models[2])] == [True, True]
    assert len(programs(folder)) == 2


def test_a_program_larger_than_the_limit_is_not_kept(folder, model, monkeypatch):
    monkeypatch.setenv("RELAYC_CACHE_SIZE", "10K")
    relayc.compile(model)
    assert not programs(folder)


def test_a_wrong_limit_is_an_error(folder, model, monkeypatch):
    monkeypatch.setenv("RELAYC_CACHE_SIZE", "much")
    with pytest.raises(ValueError, match="RELAYC_CACHE_SIZE: expected bytes such as 500000, 500M or 10G, found 'much'"):
        relayc.compile(model)


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(model, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert not from_cache(relayc.compile(model))


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_fifo_is_no_program(folder, model):
    relayc.compile(model)
    (entry,) = folder.glob("*.relayc")
    entry.unlink()
    os.mkfifo(entry)
    assert not from_cache(relayc.compile(model))
    assert from_cache(relayc.compile(model))


def test_programs_of_other_users_are_not_run(folder, model):
    relayc.compile(model)
    os.chown(programs(folder)[0], 12345, -1)
    assert not from_cache(relayc.compile(model))
    assert from_cache(relayc.compile(model))


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives folders away")
@pytest.mark.parametrize("change", [lambda f: os.chown(f, 12345, -1), lambda f: f.chmod(0o777)], ids=["another owner", "writable by all"])
def test_a_folder_that_others_can_write_is_not_trusted(folder, model, change):
    relayc.compile(model)
    change(folder)
    before = programs(folder)[0].stat().st_mtime_ns
    assert not from_cache(relayc.compile(model))
    assert programs(folder)[0].stat().st_mtime_ns == before


def test_a_program_under_the_name_of_another_is_noticed(folder, tmp_path):
    paths = []
    for operator in ("Exp", "Neg"):
        path = tmp_path / f"{operator}.onnx"
        onnx.save(model_of([onnx.helper.make_node(operator, ["x"], ["y"])], {"x": [4]}), path)
        relayc.compile(path)
        paths.append(path)
    first, second = programs(folder)
    shutil.copy(first, second)
    x = np.arange(4, dtype=np.float32)
    found = [relayc.compile(path) for path in paths]
    assert [from_cache(m) for m in found].count(True) == 1
    np.testing.assert_allclose(found[0]["main"](x), np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(found[1]["main"](x), -x)
    assert all(from_cache(relayc.compile(path)) for path in paths)


def test_tuned_numbers_make_another_program(folder, model):
    def compiled(rows):
        with PassContext(config={"schedule.kernels": {"fused_*": {"contraction.rows": rows}}}):
            return relayc.compile(model)

    first = compiled(2)
    assert not from_cache(first) and from_cache(compiled(2)) and not from_cache(compiled(3))
    assert "rows=2" in compiled(2).kernels[0].schedule


def outside_operator():
    class Twice(Op, name="test_cache_twice"):
        """Its operand twice."""

        data: Operand

        @staticmethod
        def infer(op):
            return op.data

    return lambda: OPS.pop("test_cache_twice")


def outside_rule(table):
    def rule(op, rw):
        return None

    table.on("nn_matmul")(rule)
    return lambda: table.remove(rule)


def outside_entry(table, key):
    table[key] = lambda *_: None
    return lambda: table.pop(key)


def outside_evaluator():
    numpy_operator("test_cache")(lambda op, x: x)
    return lambda: NUMPY_OPERATORS.pop("test_cache")


def outside_schedule():
    register_strategies("cpu", Entry("test_cache", lambda kernel, target, tuning: None))
    return lambda: STRATEGIES["cpu"].pop(0)


@pytest.mark.parametrize(
    "register",
    [
        outside_operator,
        outside_schedule,
        lambda: outside_rule(SIMPLIFICATIONS),
        lambda: outside_entry(COMPUTE_RULES, "test_cache"),
        outside_evaluator,
    ],
    ids=["operator", "schedule", "rewrite rule", "compute rule", "evaluator"],
)
def test_nothing_is_taken_or_kept_while_there_is_code_from_outside(folder, model, register):
    remove = register()
    try:
        assert not from_cache(relayc.compile(model))
        assert not programs(folder)
    finally:
        remove()
    relayc.compile(model)
    assert from_cache(relayc.compile(model))


def test_a_file_has_the_digest_of_its_contents(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    content = os.urandom((16 << 20) + 5)  # two pieces
    first.write_bytes(content)
    shutil.copy(first, second)
    assert file_digest(first) == file_digest(second)
    second.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert file_digest(first) != file_digest(second)
    first.write_bytes(b"")
    second.write_bytes(b"\0")
    assert file_digest(first) != file_digest(second)


def test_parameters_have_a_checksum_for_each_16_mib():
    blob = np.zeros((16 << 20) + 3, np.uint8)
    blob[-1] = 7
    assert runtime_cache.checksums(blob) == [zlib.crc32(blob[: 16 << 20]), zlib.crc32(bytes([0, 0, 7]))]


def test_a_file_that_is_replaced_while_it_is_read_is_not_remembered(tmp_path, monkeypatch):
    cache, path = Cache(tmp_path / "cache"), tmp_path / "link"
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_text(file.name)
    monkeypatch.setattr(runtime_cache, "_REST_NANOSECONDS", 0)

    def point_to(file):
        path.unlink(missing_ok=True)
        path.symlink_to(file)

    def replaced(path):
        point_to(files[1])
        return file_digest(path)

    point_to(files[0])
    with monkeypatch.context() as patch:
        patch.setattr(runtime_cache, "file_digest", replaced)
        cache.file_digest(path)
    point_to(files[0])
    assert cache.file_digest(path) == file_digest(files[0])


def test_a_file_that_was_given_an_old_time_just_now_is_not_remembered(tmp_path):
    cache, path = Cache(tmp_path / "cache"), tmp_path / "a"
    path.write_text("a")
    os.utime(path, (0, 0))
    assert cache.file_digest(path) == file_digest(path) and not cache.folder.exists()


def test_parts_of_programs_are_kept_while_they_are_whole(tmp_path):
    cache = Cache(tmp_path / "cache")
    assert cache.read_part("a") is None and cache.write_part("a", b"code") and cache.write_part("b", b"")
    assert cache.read_part("a") == b"code" and cache.read_part("b") == b""
    (path,) = (p for p in cache.folder.iterdir() if p.name.startswith("a"))
    content = path.read_bytes()
    for damaged in (content[:-1], content + b"x", bytes([content[0] ^ 1]) + content[1:], b""):
        path.write_bytes(damaged)
        assert cache.read_part("a") is None
    path.write_bytes(content)
    cache.folder.chmod(0o777)  # others can write
    assert cache.read_part("a") is None and not cache.write_part("c", b"code") and not (cache.folder / "c").exists()
    cache.folder.chmod(0o700)
    assert cache.read_part("a") == b"code"


def test_a_writer_that_fails_leaves_no_file(tmp_path, monkeypatch):
    cache = Cache(tmp_path / "cache")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError))
    assert not cache.write_part("a", b"code")
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache.write_part("a", b"code")
    monkeypatch.undo()
    assert list(cache.folder.iterdir()) == []
    for free, written in ((2 * 36 - 1, False), (2 * 36, True)):  # the digest and four bytes, twice
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: shutil._ntuple_diskusage(0, 0, free))
        assert cache.write_part("a", b"code") is written


def test_what_nobody_has_used_for_long_goes(tmp_path, monkeypatch):
    cache, now = Cache(tmp_path / "cache"), int(time.time())
    cache.folder.mkdir()
    limits = {".tmp": runtime_cache._STALE_SECONDS, runtime_cache._NOTE_SUFFIX: runtime_cache._NOTE_SECONDS}
    limits[runtime_cache._PART_SUFFIX] = runtime_cache._PART_SECONDS
    monkeypatch.setattr(time, "time", lambda: now)
    for suffix, seconds in limits.items():
        for name, age in (("new", seconds), ("old", seconds + 1)):
            (cache.folder / f"{name}{suffix}").touch()
            os.utime(cache.folder / f"{name}{suffix}", (now - age, now - age))
    (cache.folder / "other").touch()
    os.utime(cache.folder / "other", (0, 0))
    cache.evict()
    assert {p.name for p in cache.folder.iterdir()} == {"other", *(f"new{suffix}" for suffix in limits)}


def test_a_damaged_program_is_an_entry_too(tmp_path):
    cache = Cache(tmp_path / "cache")
    cache.folder.mkdir()
    (cache.folder / f"a{runtime_cache._SUFFIX}").write_bytes(b"x" * 5)
    assert [(entry.num_bytes, entry.source) for entry in cache.entries()] == [(5, "damaged")]
    for limit, left in ((5, 1), (4, 0)):
        Cache(cache.folder, limit=limit).evict()
        assert len(cache.entries()) == left
    (cache.folder / f"b{runtime_cache._SUFFIX}").touch()
    assert cache.clear() == 1 and cache.entries() == []


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"RELAYC_CACHE_DIR": "~/a", "XDG_CACHE_HOME": "/b"}, "/home/someone/a"),
        ({"RELAYC_CACHE_DIR": "", "XDG_CACHE_HOME": "/b"}, "/b/relayc"),
        ({"XDG_CACHE_HOME": ""}, "/home/someone/.cache/relayc"),
        ({}, "/home/someone/.cache/relayc"),
    ],
)
def test_the_folder_is_that_of_the_user(monkeypatch, variables, folder):
    for name in ("RELAYC_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/someone", **variables}.items():
        monkeypatch.setenv(name, value)
    assert default_folder() == Path(folder)


def test_branches_loops_and_calls_are_found_again(folder, tmp_path):
    made = dataclasses.replace(handmade_flow.build_artifact(), code=objects.ObjectCode(b"code", ((("add",), b"more"),)))
    private = (made.programs[0], dataclasses.replace(made.programs[1], public=False))
    for key, artifact in (("a", made), ("b", dataclasses.replace(made, programs=private))):
        cache = Cache(folder)
        assert cache.store(key, artifact, Origin("made by hand"))
        found = cache.load(key, runs_here=False)
        for name in ("programs", "kernels", "ranges", "code"):
            assert getattr(found, name) == getattr(artifact, name)
        assert list(found.functions) == list(artifact.functions)


def test_a_program_waits_for_its_weights(folder, tmp_path):
    made = dataclasses.replace(handmade_flow.build_artifact(), code=objects.ObjectCode(b"code", ()))
    weights, cache = tmp_path / "weights.bin", Cache(folder)
    weights.write_bytes(b"1")
    origin = Origin("made by hand", files={weights.name: file_digest(weights)})
    assert cache.store("a", made, origin)

    def is_found(where=tmp_path):
        return cache.load("a", where, runs_here=False) is not None

    assert is_found() and not is_found(None) and not is_found(folder)
    weights.write_bytes(b"2")
    assert not is_found()
    weights.unlink()
    assert not is_found()
    weights.write_bytes(b"1")
    assert is_found()
    folder.chmod(0o702)
    assert not is_found() and not cache.store("b", made, origin)
    folder.chmod(0o700)
    assert is_found() and not cache.store("b", dataclasses.replace(made, code=None), origin)
    assert not Cache(folder, limit=made.params.nbytes + 3).store("b", made, origin)
    assert [entry.path.name for entry in cache.entries()] == ["a.relayc"]


def test_folders_that_are_not_there_and_files_that_another_process_removes_are_no_errors(tmp_path):
    assert runtime_cache._entry(tmp_path / "none") is None and runtime_cache._modified(tmp_path / "none", 7.0) == 7.0
    assert Cache(tmp_path / "a" / "b").write_part("c", b"code") and (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert not Cache(Path("/proc/none")).write_part("c", b"code")  # where there can be no folder
    assert not Cache(tmp_path / "a" / "b" / f"c{runtime_cache._PART_SUFFIX}" / "d").is_trusted  # in a file
    runtime_cache._remove(tmp_path / "none")
    runtime_cache._remove(tmp_path)  # as a file in a folder that may not be written
    assert tmp_path.is_dir()


@pytest.mark.parametrize("content", [b"", b"\x7fELF", os.urandom(1000), b"\x7fELF\x02\x01\x01" + bytes(200)])
def test_what_is_no_object_file_is_refused(content):
    with pytest.raises(objects.LoadError):
        objects.LoadedCode(objects.ObjectCode(content, ()))


def test_a_relocation_of_a_section_that_is_not_there_is_refused():
    text = "func.func private @omp_get_max_threads() -> i32 func.func @one() { %0 = func.call @omp_get_max_threads() : () -> i32 return }"
    engine = compile_text(text)
    content = bytearray(engine.object_code().root)
    headers = read_headers(bytes(content), "object")
    table = next(i for i, section in enumerate(headers.sections) if section.kind == 4)  # SHT_RELA
    (start,) = struct.unpack_from("<Q", content, 40)
    struct.pack_into("<I", content, start + 64 * table + 44, 999)
    with pytest.raises(objects.LoadError, match="damaged"):
        objects.LoadedCode(objects.ObjectCode(bytes(content), ()))


def test_damaged_objects_are_refused():
    """One of a part of a byte, or of a relocation, is changed."""
    text = "func.func private @omp_get_max_threads() -> i32 func.func @one() { %0 = func.call @omp_get_max_threads() : () -> i32 return }"
    content = compile_text(text).object_code().root
    headers = read_headers(content, "object")
    (start,) = struct.unpack_from("<Q", content, 40)
    table = next(i for i, section in enumerate(headers.sections) if section.kind == 4)  # SHT_RELA
    place = headers.sections[table].offset
    (kind,) = struct.unpack_from("<I", content, place + 8)
    for at, value, message in [
        (4, b"\x01", "expected a relocatable object of 64 bits, little-endian, found another one"),
        (5, b"\x02", "expected a relocatable object of 64 bits, little-endian, found another one"),
        (16, struct.pack("<H", 3), "expected a relocatable ELF object for x86-64"),
        (18, struct.pack("<H", 183), "expected a relocatable ELF object for x86-64"),
        (62, struct.pack("<H", len(headers.sections)), f"expected a whole relocatable object, found its first {len(content)} bytes"),
        (start + 64 + 24, struct.pack("<Q", len(content)), f"expected a whole relocatable object, found its first {len(content)} bytes"),
        (place + 8, struct.pack("<I", 99), "relocation 99: expected one out of 1, 24, 25"),
        (place, struct.pack("<Q", 1 << 20), "a relocation at byte 1048576 of a section of"),
    ]:
        changed = bytearray(content)
        changed[at : at + len(value)] = value
        with pytest.raises(objects.LoadError, match=message):
            objects.LoadedCode(objects.ObjectCode(bytes(changed), ()))
    assert kind != 99
    unknown = content.replace(b"omp_get_max_threads", b"omp_get_max_thread5")
    with pytest.raises(objects.LoadError, match="symbol omp_get_max_thread5: expected a definition, found none"):
        objects.LoadedCode(objects.ObjectCode(unknown, ()))


def test_the_command_shows_and_clears(folder, model, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    relayc.compile(model)
    assert cli.main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert str(model) in shown and programs(folder)[0].stem[:12] in shown and "1 in all" in shown
    assert cli.main(["cache", "clear"]) == 0
    assert "removed 1 program from" in " ".join(capsys.readouterr().out.split())
    assert not programs(folder)
    assert cli.main(["cache", "show"]) == 0
    assert "0 in all" in capsys.readouterr().out


def same(sch):
    """A schedule that leaves everything as it is."""


def test_programs_with_schedules_as_text_are_kept_and_those_with_functions_are_not(folder, model):
    kernel = relayc.compile(model, cache=False).kernels[0].name
    script = str(relayc.tir.Trace())
    assert not from_cache(relayc.compile(model, schedules={kernel: script}))
    found = relayc.compile(model, schedules={kernel: script})
    assert from_cache(found) and found.kernels[0].schedule == "trace"
    assert not from_cache(relayc.compile(model))
    for _ in range(2):
        assert not from_cache(relayc.compile(model, schedules={kernel: same}))


def test_a_rule_keeps_programs_out_of_the_cache(folder, model):
    relayc.compile(model)
    relayc.schedule_rule("nn.dense", name="rule")(same)
    try:
        assert not from_cache(relayc.compile(model))
    finally:
        relayc.remove_schedule_rule("rule")
    assert from_cache(relayc.compile(model))


def test_why_strategies_declined_is_kept(folder, model):
    with PassContext(config={"schedule.why": True}):
        first, second = relayc.compile(model), relayc.compile(model)
    assert from_cache(second) and first.kernels == second.kernels and second.kernels[0].declined
