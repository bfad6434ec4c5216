"""Compiles one architecture by relayc.from_pytorch and compares it with PyTorch in eager mode: what run.py --pytorch does with each.

The interpreter has relayc and the packages of requirements.txt. The program of torch.export has the architecture's sizes open.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import check
import numpy as np
import torch
from export import ARCHITECTURES, quiet
from inputs import make_inputs
from network import SEED, Network, randomise
from sizes import Chooser

import relayc


class Eager:
    """A network as PyTorch runs it, on one thread."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module

    def run(self, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        with torch.no_grad():
            return check.flat(self.module(*map(torch.from_numpy, arrays.values())))

    def noise(self, arrays: Mapping[str, np.ndarray], wanted: list[np.ndarray], seed: int) -> float:
        generator = torch.Generator().manual_seed(seed)
        with torch.backends.mkldnn.flags(enabled=False):
            found = [check.largest_difference(self.run(arrays), wanted)]
        weights = [(p, p.data.clone()) for p in self.module.parameters() if p.dim() > 1 and p.is_floating_point()]
        for _ in range(check.DRAWS):
            for parameter, value in weights:
                parameter.data = value * (1 + check.OFF * (2 * torch.rand(value.shape, generator=generator) - 1)).to(value.dtype)
            found.append(check.largest_difference(self.run(arrays), wanted))
        for parameter, value in weights:
            parameter.data = value
        return max(found)


def axes_of(network: Network, dim: Callable[[str], Any]) -> tuple[Any, ...]:
    """`dynamic_shapes` of a Call, which takes its inputs as one variadic argument: what `dim` gives for each open extent."""
    return (tuple({axis: dim(e) for axis, e in enumerate(i.shape) if isinstance(e, str)} for i in network.inputs.values()),)


def exported(network: Network, tensors: tuple[torch.Tensor, ...]) -> Any:
    """The program, whose open sizes may have relations to each other but are no numbers."""
    with torch.no_grad():
        return torch.export.export(network.module, tensors, dynamic_shapes=axes_of(network, lambda extent: torch.export.Dim.DYNAMIC))


def check_architecture(name: str, options: argparse.Namespace, write: Callable[[check.Report], None]) -> check.Report:
    """Everything about one architecture; a program that torch.export refuses has no reference."""
    report = check.Report(name, error="no reference: the process died while torch.export ran")
    write(report)
    torch.manual_seed(SEED)
    np.random.seed(SEED)
    torch.set_num_threads(1)
    architecture = ARCHITECTURES[name]
    network = architecture.build()
    assert isinstance(network, Network)
    network.module.eval().requires_grad_(False)
    randomise(network.module)
    example = {s: symbol.example for s, symbol in architecture.symbols.items()}
    tensors = tuple(map(torch.from_numpy, make_inputs(network.inputs, example, SEED).values()))
    begin = time.perf_counter()
    try:
        program = exported(network, tensors)
    except Exception as error:
        traceback.print_exc()
        report.error = f"no reference: {check.one_line(error)}"
        return report
    export_seconds = time.perf_counter() - begin
    report.error = "the process died while compiling"
    write(report)
    names = axes_of(network, lambda extent: extent if extent in architecture.symbols else None)
    try:
        module = check.compiled(lambda: relayc.compile(relayc.from_pytorch(program, dynamic_shapes=names), cache=False), report)
    except Exception as error:
        report.error = check.one_line(error)
        return report

    report.stages["torch.export"] = export_seconds

    def call(arrays: Mapping[str, np.ndarray]) -> Callable[[], Any]:
        ours = tuple(map(torch.from_numpy, arrays.values()))
        return lambda: module(*ours)

    reference = Eager(network.module)
    sizes = Chooser(module, architecture.symbols, np.random.default_rng(options.seed))
    report.limits = len(sizes.limits)

    def work(point: check.Point) -> None:
        check.check_size(call, reference, network.inputs, point, options.seed, options.times)
        if point.status == "raises":  # a size that torch.export took to be larger counts neither way
            try:
                program.module()(*map(torch.from_numpy, make_inputs(network.inputs, point.sizes, options.seed).values()))
            except Exception as error:
                point.status, point.message = "no reference", check.one_line(error)

    check.compare(report, sizes.choose(options.sizes), work, write)
    return report


def check_logged(name: str, out: Path, log: Path, options: argparse.Namespace) -> None:
    """Everything about one architecture, in a process of its own: the report goes to one file, what is printed to another."""

    def write(report: check.Report) -> None:
        out.write_text(json.dumps(asdict(report), indent=1))

    with quiet(log):
        write(check_architecture(name, options, write))
        sys.stderr.flush()
    os._exit(0)  # without the clean-up of what was forked
