"""The demonstration of `make demo`: ResNet-50 from the onnx package, compiled (every time anew), run, checked, and its numbers."""

import sys

import onnx
from rich.table import Table

from relayc.runtime import Module, num_threads
from relayc.runtime.timing import timed
from relayc.tools.commands import compile_with_progress, make_console
from relayc.tools.inputs import random_inputs
from relayc.tools.light import light_path, random_light, stored_case
from relayc.tools.reference import Agreement, compare, run_onnxruntime
from relayc.tools.tables import scaled, stage_table

NAME = "resnet50"
REPEAT = 20


def check_random() -> tuple[Module, Agreement]:
    """The network with random weights, against ONNX Runtime. Raises ModuleNotFoundError if that is not installed."""
    model = random_light(NAME)
    module = compile_with_progress(model, cache=False)
    inputs = random_inputs(module.inputs)
    return module, compare(module.run(inputs), run_onnxruntime(model.SerializeToString(), inputs))


def check_stored() -> tuple[Module, Agreement]:
    """Compares the shipped network with the output stored beside it."""
    data, wanted = stored_case(NAME)
    module = compile_with_progress(onnx.load(light_path(NAME)), cache=False)
    return module, compare(module.run({module.input_names[0]: data}), {module.output_names[0]: wanted})


def latency(module: Module) -> float:
    """Median seconds of a call."""
    inputs = random_inputs(module.inputs)
    return timed(lambda: module.run(inputs), 1, REPEAT).median


def main() -> int:
    """Runs the demonstration and returns its exit code: 0 where the results agree with the reference."""
    console = make_console()
    try:
        module, found = check_random()
        reference = "ONNX Runtime, random weights and input"
    except ModuleNotFoundError:
        module, found = check_stored()
        reference = "the output stored in the onnx package"
    seconds = latency(module)
    flops = sum(int(kernel.operator_flops) for kernel in module.step_kernels)
    console.print(f"ResNet-50: {len(module.step_kernels)} kernel calls a run, {len(module.kernels)} different kernels", style="bold")
    console.print(stage_table(module.stats))
    table = Table.grid(padding=(0, 2))
    table.add_row("latency", f"{seconds * 1e3:.2f} ms on {num_threads()} threads, {scaled(flops / seconds)}FLOP/s (median of {REPEAT})")
    verdict = "agrees with" if found.agrees else "DIFFERS from"
    table.add_row("check", f"{verdict} {reference}: largest difference {found.difference:.2g}")
    console.print(table)
    return 0 if found.agrees else 1


if __name__ == "__main__":
    sys.exit(main())
