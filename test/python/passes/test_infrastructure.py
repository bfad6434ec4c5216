"""Passes, PassContext, Sequential and instruments."""

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

import relayc
from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import IRModule, RelayError
from relayc.pipelines import (
    DEFAULT_OPT_LEVEL,
    MAX_OPT_LEVEL,
    DumpIR,
    Pass,
    PassContext,
    PassInfo,
    PassInstrument,
    PassTimingInstrument,
    Sequential,
    Verifier,
    find_pass,
    function_pass,
    module_pass,
)
from relayc.pipelines.context.backend import Backend, find_backend
from relayc.pipelines.context.instruments import KernelSchedule, flag_of
from relayc.pipelines.context.passes import PASSES, load_passes
from relayc.pipelines.context.upstream import run_upstream
from relayc.tools import opt

TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.negative"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


@pytest.fixture
def mod():
    return IRModule.parse(TEXT)


@pytest.fixture(autouse=True)
def registry():
    """Passes registered by a test are forgotten after it."""
    load_passes()
    before = dict(PASSES)
    yield
    PASSES.clear()
    PASSES.update(before)


def recorder(name, log, opt_level=0, required=()):
    """A pass that notes its name."""

    @module_pass(opt_level=opt_level, name=name, required=required)
    def record(mod, ctx):
        log.append(name)
        return mod

    return record


@pytest.mark.parametrize(
    ("name", "flag"),
    [("FoldConstant", "fold-constant"), ("CombineParallelConv2D", "combine-parallel-conv2d"), ("CSE", "cse"), ("fuse-ops", "fuse-ops")],
)
def test_flag_is_the_name_in_kebab_case(name, flag):
    assert flag_of(name) == flag


def test_the_command_finds_passes_before_it_parses_programs(tmp_path, monkeypatch):
    """Modules of passes bring the dialects that the text may have."""
    found = []

    def parse(text):
        found.append(text)
        raise ValueError

    monkeypatch.setattr(opt, "find_pass", found.append)
    monkeypatch.setattr(opt, "IRModule", SimpleNamespace(parse=parse))
    (tmp_path / "program.mlir").write_text("text")
    assert opt.main([str(tmp_path / "program.mlir"), "--passes", "te-to-blocks,apply-schedule"]) == 1
    assert found == ["te-to-blocks", "apply-schedule", "text"]


def test_context_without_with_has_the_defaults():
    ctx = PassContext.current()
    assert ctx.opt_level == 3
    assert ctx.get("relay.FuseOps.max_depth") == 256


def test_innermost_context_is_current():
    with PassContext(opt_level=1) as outer:
        with PassContext(opt_level=2) as inner:
            assert PassContext.current() is inner
        assert PassContext.current() is outer
    assert PassContext.current().opt_level == 3


def test_a_context_is_of_its_thread():
    levels = []
    with PassContext(opt_level=1):
        thread = threading.Thread(target=lambda: levels.append(PassContext.current().opt_level))
        thread.start()
        thread.join()
    assert levels == [3]


def test_unknown_config_key_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown config key 'relay\.Nothing'.*relay\.FuseOps\.max_depth"):
        PassContext(config={"relay.Nothing": 1})


@pytest.mark.parametrize("value", ["3", True])
def test_config_value_of_a_wrong_type_is_an_error(value):
    with pytest.raises(TypeError, match=r"relay\.FuseOps\.max_depth.*expected int, found"):
        PassContext(config={"relay.FuseOps.max_depth": value})


def test_sequential_runs_by_level_required_and_disabled(mod):
    log = []
    passes = [recorder(name, log, level) for name, level in (("Zero", 0), ("One", 1), ("Two", 2), ("Three", 3))]
    with PassContext(opt_level=1, required_pass=["Three"], disabled_pass=["zero"]):
        Sequential(passes)(mod)
    assert log == ["One", "Three"]


def test_a_pass_called_directly_runs_at_any_level(mod):
    log = []
    with PassContext(opt_level=0):
        recorder("Late", log, opt_level=3)(mod)
    assert log == ["Late"]


def test_sequential_runs_what_a_pass_requires_before_it(mod):
    log = []
    recorder("Needed", log, opt_level=3)
    needs = recorder("Needs", log, required=["Needed"])
    with PassContext(opt_level=0):
        Sequential([needs])(mod)
    assert log == ["Needed", "Needs"]


def test_a_sequential_is_a_pass_that_can_be_disabled(mod):
    log = []
    inner = Sequential([recorder("Inner", log)], name="Group")
    with PassContext(disabled_pass=["Group"]):
        Sequential([inner, recorder("Outer", log)])(mod)
    assert log == ["Outer"]


def test_user_passes_run_around_the_pass_they_name(mod):
    log = []
    anchor = recorder("Anchor", log)
    added = [("before:Anchor", recorder("First", log)), ("after:anchor", recorder("Last", log)), ("before:Anchor", recorder("Second", log))]
    with PassContext(config={"pipelines.add_pass": added}):
        Sequential([anchor])(mod)
    assert log == ["First", "Second", "Anchor", "Last"]


def test_user_passes_run_where_the_pass_they_name_does_not(mod):
    log = []
    anchor, added = recorder("Anchor", log), recorder("Added", log)
    with PassContext(disabled_pass=["Anchor"], config={"pipelines.add_pass": [("before:Anchor", added)]}):
        Sequential([anchor])(mod)
    assert log == ["Added"]


def test_a_user_pass_changes_what_is_compiled():
    @function_pass(opt_level=0, name="DropNegatives")
    def drop_negatives(func, mod, ctx):
        for op in list(func.regions[0].blocks[0].operations):
            if op.operation.name == "relay.negative":
                op.result.replace_all_uses_with(op.data)
                op.operation.erase()

    mod = IRModule.parse(TEXT)
    with PassContext(config={"pipelines.add_pass": [("before:GraphPipeline", drop_negatives)]}):
        mod = find_pass("GraphPipeline")(mod)
    assert "relay.negative" not in str(mod)
    assert "relay.exp" in str(mod)


@pytest.mark.parametrize("position", ["FuseOps", "around:FuseOps", "before:"])
def test_a_malformed_position_is_an_error(position):
    with pytest.raises(ValueError, match="expected position before:NAME or after:NAME"):
        PassContext(config={"pipelines.add_pass": [(position, recorder("Added", []))]})


def test_a_position_at_no_pass_is_an_error():
    with pytest.raises(ValueError, match="no pass 'FuseOop'"):
        PassContext(config={"pipelines.add_pass": [("before:FuseOop", recorder("Added", []))]})


def test_what_is_added_must_be_a_pass():
    with pytest.raises(TypeError, match="expected a pass"):
        PassContext(config={"pipelines.add_pass": [("before:FuseOps", print)]})


def test_function_pass_sees_each_function_with_a_body():
    names = []

    @function_pass(opt_level=0, name="Names")
    def note(func, mod, ctx):
        names.append(str(func.attributes["sym_name"]))

    note(IRModule.parse("func.func private @declared()\nfunc.func @a() { return }\nfunc.func @b() { return }"))
    assert names == ['"a"', '"b"']


def test_a_pass_must_give_a_module(mod):
    @module_pass(opt_level=0, name="Forgetful")
    def forgetful(mod, ctx):
        pass

    with pytest.raises(TypeError, match="pass Forgetful: expected it to return an IRModule, found None"):
        forgetful(mod)


def test_a_subclass_of_pass_is_a_pass(mod):
    class Renamed(Pass):
        info = PassInfo("Renamed")

        def transform(self, mod, ctx):
            return IRModule(mod.module, {"seen": None})

    assert "seen" in Sequential([Renamed()])(mod).params


class Recording(PassInstrument):
    def __init__(self, log, name="", skip=()):
        self.log, self.name, self.skip = log, name, skip

    def enter_pass_ctx(self):
        self.log.append(f"{self.name}enter")

    def exit_pass_ctx(self):
        self.log.append(f"{self.name}exit")

    def should_run(self, mod, info):
        return info.name not in self.skip

    def run_before_pass(self, mod, info):
        self.log.append(f"{self.name}before {info.name}")

    def run_after_pass(self, mod, info):
        self.log.append(f"{self.name}after {info.name}")


def test_instruments_are_called_in_order(mod):
    log = []
    with PassContext(instruments=[Recording(log, "1 "), Recording(log, "2 ")]):
        recorder("P", log)(mod)
    assert log == ["1 enter", "2 enter", "1 before P", "2 before P", "P", "1 after P", "2 after P", "1 exit", "2 exit"]


def test_an_instrument_skips_passes_that_are_not_required(mod):
    log = []
    passes = [recorder("P", log), recorder("Q", log)]
    with PassContext(instruments=[Recording([], skip=("P", "Q"))], required_pass=["Q"]):
        for p in passes:
            p(mod)
    assert log == ["Q"]


def test_instruments_are_left_after_an_error(mod):
    log = []
    with pytest.raises(RuntimeError), PassContext(instruments=[Recording(log)]):
        raise RuntimeError
    assert log == ["enter", "exit"]


def test_an_instrument_that_fails_to_enter_leaves_those_before_it(mod):
    class Failing(PassInstrument):
        def enter_pass_ctx(self):
            raise RuntimeError("no")

    log = []
    with pytest.raises(RuntimeError, match="no"), PassContext(opt_level=1, instruments=[Recording(log), Failing()]):
        pass
    assert log == ["enter", "exit"]
    assert PassContext.current().opt_level == 3


def test_timing_shows_passes_below_their_sequential(mod):
    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        Sequential([recorder("Inner", [])], name="Outer")(mod)
    rows = timing.rows()
    assert [(depth, name) for depth, name, _ in rows] == [(0, "Outer"), (1, "Inner")]
    assert rows[0][2] >= rows[1][2] >= 0
    assert "Outer" in timing.render() and "Inner" in timing.render()


def test_dump_writes_a_numbered_file_per_pass_in_its_stage(mod, tmp_path):
    @module_pass(opt_level=0, name="ToTe", stage="te")
    def to_te(mod, ctx):
        return mod

    with PassContext(instruments=[DumpIR(tmp_path)]):
        Sequential([recorder("Look", []), to_te])(mod)
    files = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.mlir"))
    assert files == ["relay/000-input.mlir", "relay/001-look.mlir", "te/002-to-te.mlir"]
    for kernel in ("first", "second"):
        DumpIR(tmp_path / "a" / "b").run_on_schedule(KernelSchedule(kernel, "by hand", "before", "after", ""))
    assert {p.name for p in (tmp_path / "a" / "b" / "tir" / "blocks").iterdir()} == {"first.mlir", "second.mlir"}
    assert IRModule.parse((tmp_path / files[1]).read_text())


def test_dump_elides_large_constants(tmp_path):
    values = ", ".join(f"{i}.5" for i in range(100))
    text = (
        f'func.func @main() {{ %0 = "relay.constant"() {{value = dense<[{values}]> : tensor<100xf32>}} : () -> tensor<100xf32>\nreturn }}'
    )
    with PassContext(instruments=[DumpIR(tmp_path)]):
        recorder("Look", [])(IRModule.parse(text))
    assert "99.5" not in (tmp_path / "relay" / "001-look.mlir").read_text()


def test_verifier_names_the_pass_that_broke_the_program(mod):
    @function_pass(opt_level=0, name="Breaks")
    def breaks(func, mod, ctx):
        func.regions[0].blocks[0].operations[1].operation.attributes["axis"] = func.attributes["sym_name"]
        func.regions[0].blocks[0].operations[0].operation.move_after(func.regions[0].blocks[0].operations[1].operation)

    with pytest.raises(RelayError, match="after pass Breaks"), PassContext(instruments=[Verifier()]):
        breaks(mod)


def test_an_unknown_pass_is_an_error_that_lists_the_registered_ones():
    with pytest.raises(ValueError, match=r"no pass 'NoSuchPass'.*fuse-ops"):
        find_pass("NoSuchPass")


def test_passes_work_on_modules_of_other_stages():
    names = []

    @function_pass(opt_level=0, name="Look", stage="te")
    def look(func, mod, ctx):
        names.extend(op.operation.name for op in func.regions[0].blocks[0].operations)

    look(IRModule.parse("func.func @k(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = math.exp %x : tensor<4xf32>\nreturn %0 : tensor<4xf32> }"))
    assert names == ["math.exp", "func.return"]


def test_the_commands_reach_the_level_of_every_pass(tmp_path, capsys):
    load_passes()
    assert max(pass_.info.opt_level for pass_ in PASSES.values()) == MAX_OPT_LEVEL
    dense = """
  %w{i} = "relay.constant"() {{value = dense<{i}.0> : tensor<2x4xf32>}} : () -> tensor<2x4xf32>
  %{i} = "relay.nn_dense"(%x, %w{i}) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>"""
    types = ", ".join(["tensor<2x2xf32>"] * 3)
    path = tmp_path / "three.mlir"
    body = "".join(dense.format(i=i) for i in (1, 2, 3))
    path.write_text(f"func.func @main(%x: tensor<2x4xf32>) -> ({types}) {{{body}\n  return %1, %2, %3 : {types}\n}}\n")
    for level, products in ((DEFAULT_OPT_LEVEL, 3), (MAX_OPT_LEVEL, 1)):
        assert opt.main([str(path), "--passes", "graph-pipeline", "--opt-level", str(level)]) == 0
        assert capsys.readouterr().out.count("relay.nn_dense") == products
    with pytest.raises(SystemExit):
        opt.main([str(path), "--opt-level", str(MAX_OPT_LEVEL + 1)])


@pytest.mark.parametrize("name", ["FuseOps", "fuse-ops"])
def test_run_passes_takes_the_name_or_the_flag_of_a_pass(mod, name):
    assert "relay.fused" in str(opt.run_passes(mod, ["func.func(cse)", name], PassContext()))


class _Events(PassInstrument):
    def __init__(self):
        self.events = []

    def enter_pass_ctx(self):
        self.events.append("enter")

    def exit_pass_ctx(self):
        self.events.append("exit")


def test_an_instrument_of_nested_contexts_is_entered_once():
    seen, inner = _Events(), _Events()
    with PassContext(instruments=[seen]), PassContext(instruments=[*PassContext.current().instruments, inner]):
        assert seen.events == inner.events == ["enter"]
    assert seen.events == inner.events == ["enter", "exit"]


def test_instruments_are_overridden():
    class Broken(_Events):
        def exit_pass_ctx(self):
            raise RuntimeError("broken")

    first, second = _Events(), _Events()
    with PassContext(instruments=[first]) as context:
        context.override_instruments([second])
        assert first.events == ["enter", "exit"] and second.events == ["enter"] and PassContext.current().instruments == [second]
    assert second.events == ["enter", "exit"] and first.events == ["enter", "exit"]
    default = PassContext.current()
    default.override_instruments([Broken()])
    with pytest.raises(RuntimeError, match="broken"):
        default.override_instruments([second])
    assert PassContext.current() is default and not default.instruments


def _run_upstream(pipeline: str) -> None:
    with make_context(), ir.Location.unknown():
        run_upstream(ir.Module.create().operation, pipeline)


_TARGET = relayc.Target("cpu")
_CPU = find_backend("cpu")


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: PassContext(opt_level=-1), ValueError, "PassContext: expected an opt_level of 0 or more, found -1"),
        (lambda: PassContext(opt_level="3"), ValueError, "PassContext: expected an opt_level of 0 or more, found '3'"),
        (
            lambda: PassContext(required_pass="FoldConstant"),
            TypeError,
            "required_pass: expected names of passes, found the text 'FoldConstant'",
        ),
        (
            lambda: PassContext(disabled_pass="FoldConstant"),
            TypeError,
            "disabled_pass: expected names of passes, found the text 'FoldConstant'",
        ),
        (lambda: relayc.compile(None, stop_after="relais"), ValueError, "stop_after: expected one of .*relay.*, found 'relais'"),
        (lambda: relayc.compile(None, shapes=[1]), TypeError, r"shapes: expected a mapping of names of inputs, found \[1\]"),
        (lambda: relayc.compile(None, dims=[1]), TypeError, r"dims: expected a mapping of names of dimensions, found \[1\]"),
        (lambda: _run_upstream("no-such-pass"), ValueError, "no pass 'no-such-pass' in relayc or MLIR: "),
        (lambda: Backend.machine_code(_CPU, None, None, {}), ValueError, "target cpu: expected a backend that makes machine code"),
        (lambda: Backend.object_code(_CPU, None, None), ValueError, "target cpu: expected a backend that makes object files"),
        (lambda: Backend.export_library(_CPU, None, None), ValueError, "target cpu: expected a backend that makes libraries"),
        (lambda: Backend.quick_peak(_CPU, 1), ImportError, "target cpu: nothing measures what the machine can do"),
    ],
)
def test_arguments_of_compilations_and_what_a_backend_may_leave_out(make: Callable[[], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()
    assert Backend.host(_CPU, _TARGET) is _TARGET
    assert Backend.permissions(_CPU, None, _TARGET) == ()
