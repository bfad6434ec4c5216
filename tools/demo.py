"""The demonstration of `make demo`: ResNet-50 from the onnx package, compiled, run, checked, and its numbers.

The package carries the graphs of well-known networks with constant weights, and for each the output of the input 0, 1/n, 2/n, ...,
which its own backend tests use.
"""

import contextlib
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from rich.table import Table

from relayc.runtime import Module, TensorSpec, num_threads
from relayc.runtime.artifact import numpy_dtype
from relayc.tools.cli import compile_with_progress, make_console
from relayc.tools.inputs import random_inputs
from relayc.tools.reference import Agreement, compare, run_onnxruntime
from relayc.tools.tables import scaled, stage_table

MODELS = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
REPEAT = 20


def stored_input(spec: TensorSpec) -> np.ndarray:
    """The input that the outputs stored beside the models are for: the numbers 0 to n - 1 over n."""
    n = spec.num_elements
    return (np.arange(n).reshape(spec.shape) / n).astype(numpy_dtype(spec.dtype))


def stored_output(model: Path) -> np.ndarray:
    """The output stored beside a model."""
    return numpy_helper.to_array(onnx.TensorProto.FromString(model.with_name(f"{model.stem}_output_0.pb").read_bytes()))


def check(model: Path, module: Module) -> dict[str, Agreement]:
    """Agreement with each reference there is: the stored output, and ONNX Runtime on random inputs where it is installed."""
    inputs = {spec.name: stored_input(spec) for spec in module.inputs}
    found = {"the output stored in the onnx package": compare(module.run(inputs), {module.output_names[0]: stored_output(model)})}
    inputs = random_inputs(module.inputs)
    with contextlib.suppress(ModuleNotFoundError):
        found["ONNX Runtime, random input"] = compare(module.run(inputs), run_onnxruntime(model, inputs))
    return found


def latency(module: Module) -> float:
    """Median seconds of a call."""
    inputs = random_inputs(module.inputs)
    seconds = []
    for _ in range(REPEAT):
        start = time.perf_counter()
        module.run(inputs)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> int:
    """Runs the demonstration and returns its exit code: 0 where the results agree with every reference."""
    console = make_console()
    model = MODELS / "light_resnet50.onnx"
    module = compile_with_progress(model)
    agreements = check(model, module)
    seconds = latency(module)
    flops = sum(step.flops for step in module.step_kernels)
    console.print(f"ResNet-50 ({model.name}): {len(module.step_kernels)} kernel calls of {len(module.kernels)} kernels")
    console.print(stage_table(module.stats))
    table = Table.grid(padding=(0, 2))
    table.add_row("latency", f"{seconds * 1e3:.2f} ms on {num_threads()} threads, {scaled(flops / seconds)}FLOP/s (median of {REPEAT})")
    for reference, found in agreements.items():
        verdict = "agrees" if found.agrees else "DIFFERS"
        table.add_row("check", f"{verdict} with {reference}: largest difference {found.difference:.2g}")
    console.print(table)
    return 0 if all(found.agrees for found in agreements.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
