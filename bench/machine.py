"""The machine: its description, and its measured peak."""

import compileall
import datetime
import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from relayc.pipelines.targets.cpu import peak
from relayc.runtime import Peak

Rates = TypeVar("Rates", Peak, float)
_PACKAGES = ("relayc", "torch-mlir", "onnx", "numpy", "intel-openmp", "apache-tvm-ffi", "onnxruntime", "openvino")
_BUSY = 0.5
"""Load average from which a warning is printed that measurements are disturbed."""


def measure_peak(threads: int) -> Peak:
    """Measures the peak in a separate process."""
    return _in_a_process(peak.measure_peak, threads)


def measure_integer_peak(threads: int) -> float:
    """GOP/s of 8-bit products on vectors, measured in a separate process."""
    return _in_a_process(peak.measure_integer_peak, threads)


def _in_a_process(measure: Callable[[int, float, int], Rates], threads: int) -> Rates:
    """What a function of relayc.pipelines.targets.cpu.peak measures, in half a second for each kernel."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, threads, 0.5, 15).result()


def describe(measured: Peak | None = None) -> dict[str, Any]:
    """The machine, its software and the time, as plain data; with its peak, if measured."""
    from relayc.pipelines.targets.cpu.features import host_features
    from relayc.runtime.threads import usable_cpus

    return {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "cpu": _cpu_name(),
        "cpus": usable_cpus(),
        "features": sorted(host_features()),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
        "load_average": load_average(),
        **({} if measured is None else {"peak": asdict(measured)}),
    }


def load_average() -> float | None:
    """Processes that ran or waited to, averaged over the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def compile_bytecode() -> None:
    """Compiles the sources of relayc to bytecode, as pip does with the packages that it installs; from a checkout Python would do it in
    the first process of each model, or in each process where PYTHONDONTWRITEBYTECODE is set."""
    root = Path(__file__).parents[1]
    compileall.compile_dir(root, quiet=2, rx=re.compile(rf"{re.escape(str(root))}/(\.|test/)"))


def warn_if_busy() -> None:
    """Warns on stderr if other processes disturb measurements."""
    load = load_average()
    if load is not None and load > _BUSY:
        print(f"relayc.bench: load average {load:.1f}: other processes disturb what is measured", file=sys.stderr)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
