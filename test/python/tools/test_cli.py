"""The command `relayc`: what it prints and writes, its exit codes and its one-line errors."""

import io
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from rich.console import Console

from relayc import te
from relayc.frontend.errors import MissingShapes
from relayc.pipelines.context.passes import PASSES
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu import peak
from relayc.runtime import Peak, load_module, num_threads
from relayc.tools import cli, commands, entry, opt, settings, targets


@pytest.fixture
def model(tmp_path):
    """x[n, 3] -> y = |x + w| and z = sum(y), saved as an ONNX file."""
    w = helper.make_tensor("w", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])
    nodes = [
        helper.make_node("Add", ["x", "w"], ["a"], name="shift"),
        helper.make_node("Abs", ["a"], ["y"], name="size"),
        helper.make_node("ReduceSum", ["y"], ["z"], name="total", keepdims=0),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, [])
    path = tmp_path / "model.onnx"
    onnx.save(
        helper.make_model(helper.make_graph(nodes, "g", [x], [y, z], [w]), opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path
    )
    return str(path)


@pytest.fixture(autouse=True)
def calm(monkeypatch):
    """A peak that is given, not measured: that takes seconds."""
    monkeypatch.setattr(peak, "quick_peak", lambda threads: Peak(threads, 200.0, 20.0, 15.0))


def run(capsys, *arguments):
    """(exit code, stdout, stderr) of the command."""
    code = cli.main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_run_names_the_outputs(model, capsys):
    code, out, err = run(capsys, "run", model, "--shape", "x=4,3")
    assert (code, err) == (0, "")
    assert "output y: float32[4, 3]" in out and "output z: float32[]" in out


def test_run_writes_what_each_kernel_gives(model, tmp_path, capsys):
    folder = tmp_path / "[bold]"  # which is no markup
    code, out, _ = run(capsys, "run", model, "--size", "n=4", "--trace", str(folder))
    assert code == 0 and f"calls to {folder}" in out
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    with np.load(folder / "tensors.npz") as tensors:
        assert {event["name"] for event in events if event["ph"] == "X"} <= set(tensors)
        assert (4, 3) in {tensors[name].shape for name in tensors}


def test_run_reads_inputs_and_writes_outputs(model, tmp_path, capsys):
    x = np.random.default_rng(0).standard_normal((2, 3), dtype=np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    arguments = ["--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz"), "--shape", "x=2,3"]
    assert run(capsys, "run", model, *arguments)[0] == 0
    with np.load(tmp_path / "out.npz") as found:
        wanted = np.abs(x + np.array([1, 2, 3], np.float32))
        np.testing.assert_array_equal(found["y"], wanted)
        np.testing.assert_allclose(found["z"], wanted.sum(), rtol=1e-6)  # another order of summation


def test_run_checks_against_onnxruntime(model, capsys):
    pytest.importorskip("onnxruntime")
    code, out, _ = run(capsys, "run", model, "--shape", "x=4,3", "--check")
    assert code == 0 and "agrees with ONNX Runtime: largest difference" in out


def test_run_fails_where_the_results_differ(model, capsys, monkeypatch):
    monkeypatch.setattr(cli, "run_onnxruntime", lambda model, inputs: {"y": np.full((4, 3), 9.0), "z": np.zeros(())})
    code, _, err = run(capsys, "run", model, "--shape", "x=4,3", "--check")
    assert code == 1 and err.startswith("relayc: error: results differ from ONNX Runtime by up to ")


def test_run_prints_latency_stages_and_kernels(model, capsys):
    code, out, _ = run(capsys, "run", model, "--shape", "x=4,3", "--repeat", "3", "--profile")
    assert code == 0
    for text in ("latency: median", "3 runs", "codegen", "GFLOP/s", "of memory", "fused_add_abs", "shift +1", "by operators", "add abs"):
        assert text in out
    assert f"peak of {num_threads()} threads: 200 GFLOP/s f32, 20.0 GB/s memory" in out


def test_compile_writes_a_library(model, tmp_path, capsys):
    out = tmp_path / "model.so"
    assert cli.main(["compile", model, "-o", str(out), "--params", "beside", "--no-openmp", "--target", "cpu -mcpu=x86-64-v2"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"model\.onnx: \d+ kernels, compiled in ", shown) and re.search(r"model\.so: .* bytes", shown)
    assert {file.name for file in tmp_path.iterdir()} - {"model.safetensors"} == {"model.onnx", "model.so"}
    y, z = load_module(out)["main"](np.zeros((2, 3), np.float32))
    assert y.tolist() == [[1, 2, 3]] * 2 and z == 12


def test_a_library_is_run_as_a_model_is(model, tmp_path, capsys):
    out = str(tmp_path / "model.so")
    assert run(capsys, "compile", model, "-o", out, "--shape", "x=n,3")[0] == 0
    code, shown, _ = run(capsys, "run", out, "--size", "n=4", "--threads", "1", "--warmup", "1", "--repeat", "2", "--duration", "0.01")
    assert (
        code == 0
        and "output y: float32[n, 3]" in shown
        and re.search(r"median .* ms, p90 .* ms, p99 .* ms, least .* ms, [0-9]+ runs", shown)
    )
    assert run(capsys, "inspect", out, "--size", "n=4")[0] == 0
    assert "--target is for models that are compiled" in run(capsys, "run", out, "--target", "cpu -num-threads=1")[2]
    assert "--check needs the model, found a library" in run(capsys, "run", out, "--check")[2]


def test_the_profile_is_written_as_json(model, tmp_path, capsys):
    file = tmp_path / "profile.json"
    assert run(capsys, "run", model, "--shape", "x=4,3", "--json", str(file))[0] == 0
    found = json.loads(file.read_text())
    assert found["model"] == model and found["peak"]["gflops"] == 200.0 and found["latency_seconds"] > 0
    first, second = found["kernels"]
    assert (first["kernel"], first["operators"], first["sources"]) == ("fused_add_abs", ["add", "abs"], ["shift", "size"])
    assert second["sources"] == ["total"] and first["flops"] == 24 and first["bytes"] == 4 * (12 + 12 + 3)
    assert first["of_peak"] == pytest.approx(max(first["gflops"] / 200, first["gbytes"] / 20))
    assert sum(row["share"] for row in found["operators"]) == pytest.approx(1)


def test_a_file_goes_to_standard_output(model, capfdbinary):
    assert cli.main(["run", model, "--shape", "x=4,3", "--json", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert json.loads(out)["model"] == model and b"output y" in err
    assert cli.main(["run", model, "--shape", "x=4,3", "--outputs", "-"]) == 0
    with np.load(io.BytesIO(capfdbinary.readouterr().out)) as found:
        assert found["y"].shape == (4, 3)


@pytest.mark.parametrize("options", [["-o", "x.dll"], ["-o", "/missing/x.so"], ["-o", "x.o", "--prefix", "a b"]])
def test_where_a_library_goes_is_checked_before_the_model_is_compiled(model, capsys, monkeypatch, options):
    monkeypatch.setattr(cli, "compile_model", lambda *_: pytest.fail("the model was compiled"))
    code, _, err = run(capsys, "compile", model, *options)
    assert code == 1 and "export_library: " in err and "expected" in err


def test_a_closed_standard_output_is_an_error(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["cache"]) == 1
    assert capsys.readouterr().err == "relayc: error: expected a standard output, found it closed\n"


def test_opt_checks_files_and_names_of_passes(tmp_path, capsys):
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert cli.main(["opt", str(tmp_path / "binary")]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path / 'binary'}: expected MLIR text, found bytes that are not UTF-8\n"
    (tmp_path / "text").write_text("")
    assert cli.main(["opt", str(tmp_path / "text"), "--disable", "fuse-op"]) == 1
    assert capsys.readouterr().err.endswith("; did you mean fuse-ops?\n")
    with pytest.raises(SystemExit):
        cli.main(["opt", str(tmp_path / "binary"), "-o", str(tmp_path)])
    assert "expected a file in a folder that is there, or -" in capsys.readouterr().err


def test_inspect_shows_each_kernel_with_its_operators(model, capsys):
    code, out, _ = run(capsys, "inspect", model, "--shape", "x=4,3")
    assert code == 0
    for text in ("input x: float32[4, 3]", "output z: float32[]", "add abs", "sum", "of total", "2 calls"):
        assert text in out


@pytest.mark.parametrize(("stage", "shown"), [("relay", "relay.abs"), ("tir", "scf.for"), ("llvm", "llvm.func"), ("asm", "ret")])
def test_inspect_prints_a_stage(model, capsys, stage, shown):
    code, out, _ = run(capsys, "inspect", model, "--shape", "x=2,3", "--stage", stage)
    assert code == 0 and shown in out


def test_inspect_shows_tunable_numbers_and_why_strategies_decline(model, capsys):
    code, out, _ = run(capsys, "inspect", model, "--shape", "x=4,3", "--space")
    assert code == 0 and re.search(r"fused_add_abs +add abs +loops +grain +32768 +1 32768", out) and "unroll" in out
    code, out, _ = run(capsys, "inspect", model, "--shape", "x=4,3", "--why")
    assert code == 0 and "takes it" in out and "contraction" in out and "not for it" in out and "2 calls" in out


def test_a_program_for_another_machine_is_inspected_but_not_run(model, capsys):
    target = "cpu -mcpu=sapphirerapids -mattr=+avxneconvert,+amx-complex"  # no CPU has both
    code, out, _ = run(capsys, "inspect", model, "--shape", "x=2,3", "--target", target)
    assert code == 0 and "sum" in out and "not run: this machine lacks" in out
    code, _, err = run(capsys, "run", model, "--shape", "x=2,3", "--target", target)
    assert code == 1 and "has features that this machine lacks" in err


def test_a_symbolic_program_for_another_machine_is_shown_without_sums(model, capsys):
    code, out, err = run(capsys, "inspect", model, "--target", "cpu -mcpu=sapphirerapids -mattr=+avxneconvert,+amx-complex")
    assert code == 0, err
    assert re.search(r"fused_add_abs .* 6\*n ", out) and "not run: this machine lacks" in out


def test_ir_is_dumped_by_stage(model, tmp_path, capsys):
    assert run(capsys, "run", model, "--shape", "x=4,3", "--dump-ir", str(tmp_path / "ir"))[0] == 0
    assert {"relay", "te", "tir", "llvm"} <= {folder.name for folder in (tmp_path / "ir").iterdir()}


@pytest.mark.parametrize("to_stderr", [False, True])
def test_lines_of_a_pipe_have_160_characters(to_stderr, capsys):
    commands.make_console(to_stderr).print("a" * 161)
    captured = capsys.readouterr()
    assert (captured.out, captured.err)[to_stderr].split() == ["a" * 160, "a"]


def test_opt_is_relayc_opt(tmp_path, capsys):
    file = tmp_path / "f.mlir"
    file.write_text("func.func @f(%a: i32) -> i32 { %b = arith.addi %a, %a : i32\n return %a : i32 }")
    code, out, _ = run(capsys, "opt", str(file), "--passes", "canonicalize")
    assert code == 0 and "arith.addi" not in out


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (None, [], "No such file"),
        (b"not a model", [], ""),
        ("model", ["--shape", "x=4"], "expected [n, 3], found [4]"),
        ("model", ["--shape", "x=4,3", "--threads", "99999999"], "expected 1 to 4096 threads, found 99999999"),
        ("model", ["--shape", "x=4,3", "--target", "gpu"], "expected a kind out of cpu, cuda, llvm, found gpu"),
        ("model", ["--shape", "x=4,3", "--inputs", "{tmp}/missing.npz"], "No such file"),
        ("model", ["--shape", "x=4,3", "--inputs", "{model}"], "expected an .npz file"),
        ("model", ["--shape", "x=4,3", "--inputs", "{tmp}/bare.npy"], "expected an .npz file"),
        ("model", ["--shape", "x=4,3", "--inputs", "{tmp}/short.npz"], "expected an .npz file"),
        ("model", ["--shape", "x=4,3", "--inputs", "{tmp}/changed.npz"], "expected an .npz file"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(model, tmp_path, capsys, content, arguments, message):
    path = model if content == "model" else str(tmp_path / "other.onnx")
    np.save(tmp_path / "bare.npy", np.zeros((4, 3), np.float32))
    np.savez(tmp_path / "whole.npz", x=np.zeros((4, 3), np.float32))
    whole = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "short.npz").write_bytes(whole[:-1])
    (tmp_path / "changed.npz").write_bytes(whole.replace(bytes(8), bytes(7) + b"1", 1))
    if isinstance(content, bytes):
        (tmp_path / "other.onnx").write_bytes(content)
    code, out, err = run(capsys, "run", path, *[a.format(tmp=tmp_path, model=model) for a in arguments])
    assert (code, out) == (1, "")
    assert err.startswith("relayc: error: ") and err.count("\n") == 1 and message in err


def test_wrong_inputs_are_named(model, tmp_path, capsys):
    np.savez(tmp_path / "in.npz", x=np.zeros((4, 3)))
    code, _, err = run(capsys, "run", model, "--shape", "x=4,3", "--inputs", str(tmp_path / "in.npz"))
    assert code == 1
    assert err == "relayc: error: main: argument 0 'x': expected float32[4, 3], found float64[4, 3]\n"


def test_verbose_adds_the_traceback(model, capsys):
    code, _, err = run(capsys, "run", model + ".missing", "--verbose")
    assert code == 1 and err.startswith("Traceback") and err.splitlines()[-1].startswith("relayc: error: ")


@pytest.mark.parametrize(
    "arguments",
    [
        *("", "fly", "run", "run m --shape x", "run m --shape x=a+", "run m --repeat 0", "run m --threads nan", "run m --seed -1"),
        *("run m --json /missing/out.json", "run m --outputs /", "run m --outputs - --json -"),
    ],
)
def test_a_wrong_command_line_ends_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments.split())
    assert caught.value.code == 2
    assert "usage: relayc" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0 and capsys.readouterr().out.startswith("relayc ")


def test_inputs_are_filled_as_asked_for(model, tmp_path, capsys):
    path = tmp_path / "out.npz"
    for fill, expected in (("zeros", [[1, 2, 3]] * 4), ("ones", [[2, 3, 4]] * 4)):
        code, _, _ = run(capsys, "run", model, "--size", "n=4", "--fill", fill, "--outputs", str(path))
        with np.load(path) as found:
            assert code == 0 and found["y"].tolist() == expected


def test_tolerances_are_those_that_are_given(model, monkeypatch, capsys):
    reference = cli.run_onnxruntime
    monkeypatch.setattr(cli, "run_onnxruntime", lambda *a: {name: value * np.float32(1.01) for name, value in reference(*a).items()})
    code, _, err = run(capsys, "run", model, "--size", "n=4", "--check", "--tolerance", "0.005,1e-6")
    assert code == 1 and "allowed: rtol 0.005, atol 1e-06" in err
    code, out, err = run(capsys, "run", model, "--size", "n=4", "--check", "--tolerance", "0.02")
    assert (code, err) == (0, "") and "agrees" in out
    with pytest.raises(SystemExit):
        cli.main(["run", model, "--check", "--tolerance", "-1"])
    assert "expected RTOL or RTOL,ATOL of 0 or more, found '-1'" in capsys.readouterr().err


def test_latencies_are_percentiles_of_the_runs():
    """Between two runs, on the line through both."""
    clock, milliseconds = [0.0], iter((7, 1, 31, 3, 2))  # the first two to warm up

    class Timed:
        def run(self, inputs):
            clock[0] += next(milliseconds) / 1e3

    given = SimpleNamespace(warmup=2, concurrency=1, repeat=3, duration=0)
    shown = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
        cli._print_latency(Timed(), {}, given, Console(file=shown, width=200))
    assert shown.getvalue() == "latency: median 3.000 ms, p90 25.400 ms, p99 30.440 ms, least 2.000 ms, 3 runs\n"


def test_several_callers_share_the_runs(model, capsys):
    code, out, _ = run(capsys, "run", model, "--size", "n=4", "--repeat", "7", "--concurrency", "3", "--quiet")
    latency, throughput = out.splitlines()
    assert code == 0 and latency.endswith(" 7 runs") and re.fullmatch(r"throughput: [0-9.]+ runs/s by 3 callers", throughput)


def test_quiet_prints_what_is_asked_for_alone(model, tmp_path, capsys):
    assert run(capsys, "run", model, "--quiet") == (0, "", "")
    assert run(capsys, "compile", model, "-o", str(tmp_path / "m.so"), "--quiet") == (0, "", "")
    assert run(capsys, "run", str(tmp_path / "m.so"), "--quiet", "--size", "n=2") == (0, "", "")


def test_passes_and_settings_are_those_of_the_command_line(model, capsys):
    counts = []
    rules = [f"fuse-ops.{rule}" for rule in ("elementwise-into-elementwise", "injective-into-injective")]
    for options in ([], [word for rule in rules for word in ("--disable", rule)], ["--opt-level", "0"]):
        _, out, _ = run(capsys, "run", model, "--size", "n=4", *options)
        counts.append(int(re.search(r": (\d+) kernels", out)[1]))
    fused, apart, without_passes = counts
    assert fused < apart == without_passes == 3
    code, _, err = run(capsys, "run", model, "--opt-level", "0", "--require", "fold-constan")
    assert code == 1 and "did you mean fold-constant?" in err
    code, _, err = run(capsys, "inspect", model, "--config", "nothing=1")
    assert code == 1 and "--config: expected KEY=VALUE" in err


def test_text_of_mlir_is_a_model(tmp_path, capsys):
    a, k = te.placeholder((5, 7), name="A"), te.reduce_axis((0, 7), "k")
    module = te.create_prim_func([a, te.compute((5,), lambda i: te.sum(a[i, k], axis=k), name="B")])
    (tmp_path / "sum.mlir").write_text(str(module))
    np.savez(tmp_path / "in.npz", A=np.arange(35, dtype=np.float32).reshape(5, 7))
    options = "--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz")
    code, out, err = run(capsys, "run", str(tmp_path / "sum.mlir"), *options)
    assert (code, err) == (0, "") and "output B: float32[5]" in out
    with np.load(tmp_path / "out.npz") as found:
        assert found["B"].tolist() == [21.0, 70.0, 119.0, 168.0, 217.0]
    (tmp_path / "sum.mlir").write_text("func.func @main() {")
    code, _, err = run(capsys, "run", str(tmp_path / "sum.mlir"))
    assert code == 1 and err.startswith("relayc: error: ")


def test_targets_are_told(capsys):
    code, out, _ = run(capsys, "targets")
    assert code == 0 and "kinds: cpu, cuda" in out
    assert re.search(r"x86-64 +SSE2 .* yes", out) and "sapphirerapids" in out


def test_a_cleared_cache_is_told_by_its_folder(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path / "[red]" / "cache"))
    code, out, _ = run(capsys, "cache", "clear")
    assert code == 0 and "".join(out.split()) == f"removed0programsfrom{tmp_path / '[red]' / 'cache'}"


def test_cpus_run_here_whose_instructions_are_all_there(capsys, monkeypatch):
    here = Target("cpu -mcpu=x86-64-v3 -mattr=+aes,+gfni,+pclmul,+vaes,+vpclmulqdq -l3-bytes=123456789")
    monkeypatch.setattr(targets, "Target", lambda kind: here)
    lines = run(capsys, "targets")[1].splitlines()
    assert f"this machine: {here}" in lines and len(str(here)) > 160
    found = {words[0]: words[-1] for line in lines if len(words := line.split()) > 2 and words[-1] in ("yes", "no")}
    assert found == {"x86-64": "yes", "x86-64-v2": "yes", "x86-64-v3": "yes", "x86-64-v4": "no", "sapphirerapids": "no"}


@pytest.mark.parametrize(("command", "module"), [(entry.relayc, cli), (entry.relayc_opt, opt)])
def test_an_interrupt_of_a_command_is_a_line_and_130(monkeypatch, capsys, command, module):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "main", lambda: 7)
    assert command() == 7
    monkeypatch.setattr(module, "main", interrupted)
    assert command() == 130 and capsys.readouterr().err == "relayc: interrupted\n"


def test_an_error_says_which_option_to_give():
    error = MissingShapes({"x": "", "y": " of float32"})
    assert (
        cli._message(error)
        == "expected inputs with a number of dimensions, found input x; input y of float32; give them with --shape x=D0,D1,..."
    )
    assert cli._message(ValueError("a")) == "a"


def test_passes_are_listed_and_texts_written_to_a_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(PASSES, "without-a-text", lambda mod, ctx: mod)  # a user's pass
    with pytest.raises(SystemExit) as ended:
        opt.main(["--list-passes"])
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert ended.value.code in (0, None) and names == sorted(names) and "fold-constant" in names
    assert "without-a-text" in lines and all(line[31:32] in ("", " ") and line[32:33] != " " for line in lines)
    (tmp_path / "a.mlir").write_text("func.func @f() { return }\n// -----\nfunc.func @g() { return }\n")
    assert opt.main([str(tmp_path / "a.mlir"), "--split-input-file", "-o", str(tmp_path / "b.mlir")]) == 0
    first, second = (tmp_path / "b.mlir").read_text().split("// -----\n")
    assert "@f" in first and "@g" in second and capsys.readouterr().out == ""


def test_values_of_settings_have_the_types_of_options():
    for text, type_, value in [("1", bool, True), ("True", bool, True), ("0", bool, False), ("a,,b", list, ["a", "b"]), ("3", int, 3)]:
        assert settings._value(text, type_) == value


def test_a_check_needs_onnxruntime(monkeypatch):
    def run(*_):
        raise ModuleNotFoundError("No module named onnxruntime", name="onnxruntime")

    monkeypatch.setattr(cli, "run_onnxruntime", run)
    with pytest.raises(cli.CommandError, match="--check needs ONNX Runtime: pip install onnxruntime"):
        cli._check(SimpleNamespace(tolerance=None, model="m.onnx"), "f32", {}, {}, Console())
