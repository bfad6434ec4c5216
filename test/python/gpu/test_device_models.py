"""Kernels of whole models by ptxas: each has code that fits a multiprocessor and keeps its values in registers; ptxas warns of none.

A model per architecture: `python -m relayc.tools.ptxas_report test/models/*.onnx test/models/dynamic/*.onnx` takes them all.
"""

from pathlib import Path

import pytest

from relayc.pipelines.targets.cuda.architectures import MOST_REGISTERS
from relayc.pipelines.targets.cuda.device.ptxas import tool
from relayc.tools.ptxas_report import report_model

MODELS = Path(__file__).parent.parent.parent / "models"


@pytest.mark.skipif(tool("ptxas") is None, reason="ptxas is not installed (package nvidia-cuda-nvcc)")
@pytest.mark.parametrize(
    ("model", "arch", "precision"), [("vit", "sm_90a", "f16"), ("resnet18", "sm_80", "f32"), ("dynamic/bert", "sm_100", "f32")]
)
def test_every_kernel_has_code(model: str, arch: str, precision: str) -> None:
    report = report_model(MODELS / f"{model}.onnx", arch, precision)
    assert report.error == ""
    assert report.faulty == []
    assert report.figures
    assert any(figures.tensor_core_instructions for figures in report.figures) == (precision == "f16")
    for figures in report.figures:
        assert figures.report is not None
        assert figures.report.spill_stores == 0
        assert 0 < figures.report.registers <= MOST_REGISTERS
        assert figures.blocks is not None and figures.blocks >= 1
