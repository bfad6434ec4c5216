"""What ptxas says of every kernel of models: `python -m relayc.tools.ptxas_report MODEL.onnx ... [--arch sm_80] [--precision f16] [--all]`.

Each model is compiled for each architecture (by default sm_80, sm_90a and sm_100), and a line is printed of each kernel that ptxas warns
of, that does not fit a multiprocessor, or that spills registers though it uses tensor cores; with --all of every kernel. The exit code is
1 where there is such a kernel, or a model without code.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import PRECISIONS, compile
from relayc.pipelines.targets.cuda.architectures import ARCHITECTURES
from relayc.pipelines.targets.cuda.device.code import compile_kernels
from relayc.pipelines.targets.cuda.device.figures import KernelFigures, kernel_figures, uses_tensor_cores
from relayc.pipelines.targets.cuda.device.ptxas import Report
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.tools.commands import make_console
from relayc.tools.device_code import figures_table
from relayc.tools.tables import NUMBER, make_table

ARCHS = ("sm_80", "sm_90a", "sm_100")


@dataclass(frozen=True)
class ModelReport:
    """The kernels of a model on an architecture.

    Attributes:
      error: why the model has no code; "" where it has.
      schedules: by name of the function that launches a kernel.
      seconds: of the whole compilation.
    """

    model: str
    arch: str
    figures: tuple[KernelFigures, ...]
    schedules: dict[str, str]
    seconds: float
    error: str = ""

    @property
    def faulty(self) -> list[KernelFigures]:
        """Kernels on tensor cores that spill registers, that ptxas warns of, or of which no block fits a multiprocessor."""
        return [f for f in self.figures if f.report is not None and _is_faulty(f, f.report)]


def _is_faulty(figures: KernelFigures, report: Report) -> bool:
    return bool(report.warnings) or not figures.blocks or bool(report.spill_stores and figures.tensor_core_instructions)


def report_model(model: Path, arch: str, precision: str) -> ModelReport:
    """Compiles a model for an architecture as far as cubins; what is wrong with it is in the report.

    Args:
      precision: of products and convolutions, as for `relayc.compile`.
    """
    start = time.perf_counter()
    target = Target("cuda", arch=arch)
    assert isinstance(target, CudaTarget)
    try:
        mod = compile(model, target=target, stop_after="llvm", precision=precision)
        code = compile_kernels(mod.module, target)
        # To disassemble a kernel takes longer than to compile it.
        kernels = code.images.kernels.values()
        figures = tuple(kernel_figures(kernel, arch, uses_tensor_cores(kernel.of(arch).ptx)) for kernel in kernels)
    except ValueError as error:
        return ModelReport(model.stem, arch, (), {}, time.perf_counter() - start, str(error))
    schedules = {kernel.name: kernel.schedule for kernel in getattr(mod, "kernels", ())}
    return ModelReport(model.stem, arch, figures, schedules, time.perf_counter() - start)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the reports; returns the exit code."""
    parser = argparse.ArgumentParser(prog="relayc.tools.ptxas_report", description="What ptxas says of every kernel of models.")
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    parser.add_argument("--arch", action="append", choices=list(ARCHITECTURES), help=f"may be repeated (default: {', '.join(ARCHS)})")
    parser.add_argument("--precision", choices=PRECISIONS, default="f32", help="of products and convolutions (default: f32)")
    parser.add_argument("--all", action="store_true", help="print every kernel")
    arguments = parser.parse_args(argv)
    console = make_console()
    reports = [report_model(model, arch, arguments.precision) for model in arguments.models for arch in arguments.arch or ARCHS]
    for report in reports:
        shown = report.figures if arguments.all else report.faulty
        if shown:
            console.print(f"{report.model}:", figures_table(shown, report.schedules), "", sep="\n")
    console.print(_summary(reports))
    return int(any(report.error or report.faulty for report in reports))


def _summary(reports: Sequence[ModelReport]) -> object:
    numbers = ("kernels", "most registers", "spilling", "with warnings", "with tensor cores", "seconds")
    table = make_table("models", model={}, arch={}, **{name: NUMBER for name in numbers}, error={"overflow": "fold"})
    for report in reports:
        said = [f.report for f in report.figures if f.report is not None]
        counts = [
            len(report.figures),
            max((r.registers for r in said), default=0),
            sum(bool(r.spill_stores) for r in said),
            sum(bool(r.warnings) for r in said),
            sum(bool(f.tensor_core_instructions) for f in report.figures),
        ]
        table.add_row(report.model, report.arch, *map(str, counts), f"{report.seconds:.1f}", report.error)
    return table


if __name__ == "__main__":
    sys.exit(main())
