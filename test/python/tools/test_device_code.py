"""Device code by the commands: PTX and instructions of a model, and what ptxas says of its kernels."""

from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of

from relayc.pipelines.targets.cuda.device import ptxas
from relayc.pipelines.targets.cuda.device.figures import KernelFigures
from relayc.pipelines.targets.cuda.device.ptxas import tool
from relayc.runtime import Device
from relayc.tools import ptxas_report
from relayc.tools.cli import main
from relayc.tools.device_code import device_text, figures_table
from relayc.tools.ptxas_report import main as report

TARGET = ["--target", "cuda -arch=sm_80"]
needs_ptxas = pytest.mark.skipif(tool("ptxas") is None, reason="ptxas is not installed (package nvidia-cuda-nvcc)")


@pytest.fixture
def model(tmp_path):
    """A model of one kernel, as a file."""
    path = tmp_path / "shifted.onnx"
    shift = np.arange(256, dtype=np.float32)
    onnx.save(model_of([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [64, 256]}, initializers={"w": shift}), path)
    return str(path)


def test_inspect_prints_ptx(model, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", model, *TARGET, "--stage", "ptx"]) == 0
    printed = capsys.readouterr().out
    assert printed.count(".visible .entry") == printed.count("// kernel ") > 0
    assert ".target sm_80" in printed


@needs_ptxas
@pytest.mark.skipif(tool("nvdisasm") is None, reason="nvdisasm is not installed (package nvidia-cuda-nvdisasm)")
def test_inspect_prints_instructions(model, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", model, *TARGET, "--stage", "sass"]) == 0
    printed = capsys.readouterr().out
    assert "EXIT" in printed


def test_inspect_shows_what_kernels_need(model, capsys: pytest.CaptureFixture[str]) -> None:
    if Device("cuda").exists:
        pytest.skip("the model would run on the device")
    assert main(["inspect", model, *TARGET]) == 0
    printed = capsys.readouterr().out
    assert "kernels on sm_80" in printed
    assert "registers" in printed
    assert "not run: this machine lacks the device cuda:0" in printed


def test_the_table_of_kernels_has_the_strategy_of_their_function() -> None:
    row = KernelFigures("f_1", "sm_80", 128, None, 16, 32, None, {"FADD": 3, "EXIT": 1}, True)
    table = figures_table([row], {"f": "elementwise (vectors 4)"})
    assert [list(column.cells) for column in table.columns][:3] == [["f_1"], ["elementwise"], ["128"]]


def test_a_target_without_device_code_is_an_error(model, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", model, "--stage", "ptx"]) == 1
    assert "target cpu: expected one with device code, such as 'cuda -arch=sm_90a', found one without" in capsys.readouterr().err


@needs_ptxas
def test_the_report_names_kernels_and_counts(model, capsys: pytest.CaptureFixture[str]) -> None:
    assert report([model, "--arch", "sm_90a", "--all"]) == 0
    printed = capsys.readouterr().out
    assert "kernels on sm_90a" in printed
    assert "most registers" in printed


def test_one_faulty_model_is_a_failure(monkeypatch, capsys):
    def made(model, arch, precision):
        count = int(model.stem)
        said = [ptxas.Report(10 * i, 0, 0, 0, 0, 0, ("slow",) if count == 3 else ()) for i in range(count)]
        figures = tuple(KernelFigures(f"k{i}", arch, 32, one, 0, 0, 1, {}, True) for i, one in enumerate(said))
        return ptxas_report.ModelReport(model.stem, arch, figures, {}, 0.5, "no code" if count == 1 else "")

    monkeypatch.setattr(ptxas_report, "report_model", made)
    for models, code, registers in ((["2"], 0, ["10"]), (["2", "3"], 1, ["10", "20"]), (["1", "2"], 1, ["0", "10"]), (["0"], 0, ["0"])):
        assert report([*models, "--arch", "sm_80"]) == code
        rows = [line.split() for line in capsys.readouterr().out.splitlines() if "sm_80" in line.split()[1:2]]
        assert [row[:4] for row in rows] == [[model, "sm_80", model, most] for model, most in zip(models, registers, strict=True)]


def test_machine_code_needs_an_assembler():
    kernel = SimpleNamespace(name="k", of=lambda arch: SimpleNamespace(ptx=" .entry k ", cubin=b""))
    code = SimpleNamespace(images=SimpleNamespace(kernels={"k": kernel}), arch="sm_80")
    assert device_text(code, "ptx") == "// kernel k\n.entry k\n"
    with pytest.raises(ModuleNotFoundError, match=r"SASS: expected ptxas of the package nvidia-cuda-nvcc .*, found none"):
        device_text(code, "sass")
