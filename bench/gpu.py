"""`bench gpu`: NVIDIA's GPUs. Kernels against cuBLAS and torch's attention, whole models against torch.compile and ONNX Runtime's CUDA
provider, memory-bound kernels against the bandwidth of a copy, and the seconds of a compilation.

Kernels of relayc and of torch are recorded as a graph of many calls, so that only the device is measured; whole models are called as users
call them. Engines take turns; the result is the median over the rounds. Packages that are not installed are left out.
"""

import importlib
import importlib.util
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import relayc
from relayc.bench.gpu_cases import Case
from relayc.bench.measure import Progress
from relayc.bench.models import Case as ModelCase
from relayc.bench.models import Source, load_graph, make_cases
from relayc.dialects.relay.types import TensorType
from relayc.frontend.relay.builder import Program
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.runtime import Device
from relayc.runtime.device import device_kind
from relayc.runtime.device_function import DeviceFunction
from relayc.tools.tables import NUMBER, make_table

SECTIONS = ("products", "attention", "memory", "models", "compile")
_COPY_BYTES = 1 << 30
_RECORDED_SECONDS = 0.02
"""What a graph of calls takes, about."""
_MOST_RECORDED = 200

Call = Callable[[], None]
"""Gives work to the device; does not wait for it."""


@dataclass(frozen=True)
class GpuSettings:
    """Settings of the measurements.

    Attributes:
      device: number of the GPU.
      rounds: turns of each engine; `runs`: launches of a turn.
      copy_bytes: size of the copies by which the bandwidth is measured.
    """

    target: Target
    device: int = 0
    rounds: int = 5
    runs: int = 5
    seed: int = 0
    copy_bytes: int = _COPY_BYTES


@dataclass
class GpuResult:
    """Seconds of a call by engine, or the error.

    Attributes:
      flops, bytes: operations and bytes of a call; 0 if unknown or irrelevant.
    """

    section: str
    case: str
    flops: int = 0
    bytes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """relayc's speed relative to the fastest other engine (1: equal, >1: faster)."""
        others = [s for engine, s in self.seconds.items() if engine != "relayc"]
        return min(others) / self.seconds["relayc"] if others and "relayc" in self.seconds else None

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        return {**self.__dict__, "share": self.share}

    @contextmanager
    def errors_of(self, engine: str) -> Iterator[None]:
        """Records an error inside the context, whatever it is."""
        try:
            yield
        except Exception as error:
            self.errors[engine] = f"{type(error).__name__}: {error}"


def require_gpu(index: int) -> Device:
    """The device. Raises DeviceError if there is none."""
    device = Device("cuda", index)
    _ = device.facts  # its message names the missing part
    return device


def take_turns(result: GpuResult, calls: Mapping[str, tuple[Call, int]], settings: GpuSettings) -> None:
    """Enters the median seconds of each engine; a call does its work so many times."""
    device, found = Device("cuda", settings.device), {name: list[float]() for name in calls}
    for turn in range(settings.rounds + 1):
        for name, (call, count) in calls.items():
            if name in result.errors:
                continue
            with result.errors_of(name):
                device.synchronize()
                start = time.perf_counter()
                for _ in range(settings.runs):
                    call()
                device.synchronize()
                seconds = (time.perf_counter() - start) / settings.runs / count
                if turn:  # the first one warms up
                    found[name].append(seconds)
    result.seconds = {name: statistics.median(times) for name, times in found.items() if times and name not in result.errors}


# ---- kernels ------------------------------------------------------------------------------------------------------------------------


def _relayc_kernel(case: Case, arrays: Sequence[np.ndarray], settings: GpuSettings, count: int) -> tuple[Call, dict[str, Any]]:
    """A graph of calls of a program of the case alone."""
    program, weights = Program(), case.section == "products"
    taken = arrays[:1] if weights else arrays
    types: dict[str, Any] = {f"x{i}": TensorType(array.shape, case.dtype) for i, array in enumerate(taken)}

    def body(*inputs: Any) -> Any:
        return case.relayc(program.op, *inputs, *(arrays[1:] if weights else ()))

    program.function(name="main", **types)(_with_inputs(body, len(taken)))
    start = time.perf_counter()
    module = compile(program, target=settings.target, cache=False)
    facts = {"compile_seconds": time.perf_counter() - start, "schedules": [kernel.schedule for kernel in module.kernels]}
    module.records = False
    main, device = module["main"], Device("cuda", settings.device)
    assert isinstance(main, DeviceFunction)  # of a program for a device
    return main.repeated([device.tensor(array) for array in taken], count), facts


def _with_inputs(body: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The body as a function of so many arguments with names, x0 first."""
    functions: list[Callable[..., Any]] = [lambda x0: body(x0), lambda x0, x1: body(x0, x1), lambda x0, x1, x2: body(x0, x1, x2)]
    return functions[count - 1]


def _torch_kernel(case: Case, arrays: Sequence[np.ndarray], settings: GpuSettings, count: int) -> Call:
    """A graph of calls of torch's function."""
    import torch

    dtype = getattr(torch, case.dtype)
    with torch.cuda.device(settings.device), torch.inference_mode():
        tensors = [torch.from_numpy(array.astype(np.float32)).to(f"cuda:{settings.device}", dtype) for array in arrays]
        function = case.torch(torch)
        for _ in range(3):
            function(*tensors)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                function(*tensors)
    return graph.replay


def has_torch() -> bool:
    """Whether torch is installed, with CUDA."""
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def measure_kernels(cases: Sequence[Case], settings: GpuSettings, progress: Progress) -> list[GpuResult]:
    """A result for each case."""
    torch, found = has_torch(), []
    for case in cases:
        progress(case.name)
        result = GpuResult(case.section, case.name, case.flops, case.bytes)
        arrays, count = case.inputs(settings.seed), repetitions(case)
        calls: dict[str, tuple[Call, int]] = {}
        with result.errors_of("relayc"):
            call, result.facts = _relayc_kernel(case, arrays, settings, count)
            calls["relayc"] = call, count
        if torch:
            with result.errors_of("torch"):
                calls["torch"] = _torch_kernel(case, arrays, settings, count), count
        take_turns(result, calls, settings)
        found.append(result)
    return found


def repetitions(case: Case) -> int:
    """Calls of a case in a graph: as many as take _RECORDED_SECONDS at 500 TFLOP/s and 3 TB/s, about."""
    least = max(case.flops / 5e14, case.bytes / 3e12, 2e-6)
    return max(1, min(_MOST_RECORDED, round(_RECORDED_SECONDS / least)))


def copy_bandwidth(settings: GpuSettings) -> float:
    """Bytes per second that a copy within the device reads and writes."""
    device, kind = Device("cuda", settings.device), device_kind("cuda")
    source, destination = (device.empty((settings.copy_bytes,), "uint8") for _ in range(2))
    result = GpuResult("memory", "copy")
    take_turns(result, {"copy": (lambda: kind.copy(source.data, destination.data), 1)}, settings)
    if "copy" in result.errors:
        raise RuntimeError(result.errors["copy"])
    return 2 * settings.copy_bytes / result.seconds["copy"]


# ---- models -------------------------------------------------------------------------------------------------------------------------


def measure_models(
    sources: Sequence[Source],
    shapes: Mapping[str, Sequence[int]],
    precision: str,
    settings: GpuSettings,
    progress: Progress,
) -> list[GpuResult]:
    """A result for each model: calls on tensors on the device. ONNX Runtime runs the file, torch runs the network in `precision`, if its
    source in test/models can be imported."""
    found = []
    for case in make_cases(sources, shapes, settings.seed, progress):
        result, calls = GpuResult("models", case.name), dict[str, tuple[Call, int]]()
        makers = {
            "relayc": (True, partial(_relayc_model, case, precision, settings, result)),
            "ort": (_has_ort(), partial(_ort_model, case, settings)),
            "torch.compile": (has_torch(), partial(_torch_model, case.name, precision, settings)),
        }
        for name, (is_there, make) in makers.items():
            if is_there:
                with result.errors_of(name):
                    calls[name] = make(), 1
        take_turns(result, calls, settings)
        found.append(result)
    return found


def _relayc_model(case: ModelCase, precision: str, settings: GpuSettings, result: GpuResult) -> Call:
    start = time.perf_counter()
    module = compile(case.path, target=settings.target, shapes=case.shapes or None, cache=False, precision=precision)
    result.facts = {"compile_seconds": time.perf_counter() - start, "kernels": len(module.kernels), "precision": module.precision}
    device = Device("cuda", settings.device)
    arguments = [device.tensor(case.inputs[name]) for name in module.input_names]
    main = module["main"]
    main(*arguments)
    profile = module.profile(arguments, repeat=3)
    result.flops, result.facts["profile"] = profile.total().flops, profile.as_data()
    return lambda: main(*arguments)


def _has_ort() -> bool:
    if importlib.util.find_spec("onnxruntime") is None:
        return False
    import onnxruntime

    return "CUDAExecutionProvider" in onnxruntime.get_available_providers()


def _ort_model(case: ModelCase, settings: GpuSettings) -> Call:
    import onnxruntime

    provider = ("CUDAExecutionProvider", {"device_id": settings.device})
    session = onnxruntime.InferenceSession(str(case.path), providers=[provider])
    binding = session.io_binding()
    for name, array in case.inputs.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array, "cuda", settings.device))
    for output in session.get_outputs():
        binding.bind_output(output.name, "cuda", settings.device)
    return lambda: session.run_with_iobinding(binding)


_TORCH_DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "tf32": "float32"}


def _torch_model(name: str, precision: str, settings: GpuSettings) -> Call:
    """A network of test/models, in its published dimensions."""
    import torch

    folder = str(Path(relayc.__path__[0]) / "test" / "models")
    if folder not in sys.path:
        sys.path.append(folder)
    networks = [importlib.import_module(module) for module in ("configured", "convolutional")]
    name = name.removeprefix("light_")
    build = next((getattr(module, name) for module in networks if hasattr(module, name)), None)
    if build is None:
        raise ValueError(f"expected a network of test/models, found {name}")
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    sample, device = build("full"), f"cuda:{settings.device}"
    dtype = getattr(torch, _TORCH_DTYPES[precision])
    model = torch.compile(sample.module.to(device, dtype).eval(), mode="max-autotune")
    values = [v.to(device, dtype) if v.is_floating_point() else v.to(device) for v in sample.inputs.values()]

    def call() -> None:
        with torch.inference_mode():
            model(*values)

    for _ in range(3):
        call()
    return call


def measure_compilation(sources: Sequence[Source], settings: GpuSettings, progress: Progress) -> list[GpuResult]:
    """Seconds of a cold compilation of each model."""
    found = []
    for case in make_cases(sources, {}, settings.seed, progress):
        progress(f"{case.name}: compiles")
        result = GpuResult("compile", case.name)
        start = time.perf_counter()
        with result.errors_of("relayc"):
            module = compile(case.path, target=settings.target, shapes=case.shapes or None, cache=False)
            result.seconds["relayc"] = time.perf_counter() - start
            result.facts = {"stages": dict(module.stats), "kernels": len(module.kernels), "nodes": len(load_graph(case.path).node)}
        found.append(result)
    return found


# ---- tables -------------------------------------------------------------------------------------------------------------------------


def gpu_table(section: str, results: Sequence[GpuResult], bandwidth: float | None) -> Table:
    """One line for each case: seconds of each engine, rates of relayc, and its speed relative to the fastest other engine."""
    engines = list(dict.fromkeys(name for r in results for name in (*r.seconds, *r.errors)))
    rates = ("TFLOP/s", "GB/s", "of copy")
    table = make_table(section, case={}, **{f"{name} us": NUMBER for name in engines}, **dict.fromkeys((*rates, "share"), NUMBER))
    for r in results:
        own = r.seconds.get("relayc")
        times = [f"{r.seconds[name] * 1e6:.1f}" if name in r.seconds else "failed" if name in r.errors else "" for name in engines]
        flops = f"{r.flops / own / 1e12:.1f}" if own and r.flops else ""
        moved = f"{r.bytes / own / 1e9:.0f}" if own and r.bytes else ""
        of_copy = f"{r.bytes / own / bandwidth:.0%}" if own and r.bytes and bandwidth else ""
        table.add_row(r.case, *times, flops, moved, of_copy, "" if r.share is None else f"{r.share:.2f}")
    return table


def summarize(results: Sequence[GpuResult]) -> dict[str, dict[str, float]]:
    """By section, geometric mean and minimum of relayc's speed relative to the fastest other engine."""
    found = {}
    for section in dict.fromkeys(r.section for r in results):
        shares = [r.share for r in results if r.section == section and r.share is not None]
        if shares:
            found[section] = {"geometric_mean": math.exp(statistics.fmean(map(math.log, shares))), "least": min(shares)}
    return found
