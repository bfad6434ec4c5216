"""The engines that are compared: how each loads a model, and what one call of it is.

Nothing is imported before an engine is asked for, so that the memory of a process that measures one engine is that engine's.
"""

import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Call = Callable[[], list[np.ndarray]]


@dataclass(frozen=True)
class Job:
    """What an engine is to load and run.

    Attributes:
      engine: its name in ENGINES.
      model: path of the ONNX file.
      inputs: arrays by name.
      shapes: shape of each input that has symbolic dimensions.
      symbols: value of each named symbolic dimension.
      threads: how many the engine may use.
      precision: "f32", or "bf16" for engines that can compute in it; inputs and outputs stay as the model declares them.
    """

    engine: str
    model: str
    inputs: Mapping[str, np.ndarray]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    symbols: Mapping[str, int] = field(default_factory=dict)
    threads: int = 1
    precision: str = "f32"


@dataclass(frozen=True)
class Loaded:
    """A model ready to be called.

    Attributes:
      call: runs it once on the inputs of the job and gives the outputs in order. They may be overwritten by the next call.
      facts: what the engine tells of it, as plain data; "precision" is what it computes products and convolutions in.
    """

    call: Call
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Engine:
    """An engine: the module to import, the package that gives its version, and how it loads."""

    title: str
    module: str
    package: str
    load: Callable[[Job], Loaded]

    @property
    def is_installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.package)


def _relayc(job: Job) -> Loaded:
    from relayc.pipelines.driver import compile as compile_
    from relayc.pipelines.target import Target
    from relayc.runtime import set_num_threads

    set_num_threads(job.threads)
    target = Target("cpu", num_threads=job.threads)
    module = compile_(job.model, target=target, shapes=job.shapes or None, cache=False, precision=job.precision)
    arguments = [job.inputs[name] for name in module.input_names]
    main = module["main"]

    def call() -> list[np.ndarray]:
        found = main(*arguments)
        return list(found) if isinstance(found, tuple) else [found]

    steps = module.step_kernels
    flops = {"flops": sum(k.operator_flops for k in steps), "done_flops": sum(k.flops for k in steps)}
    counts = {**flops, "kernels": len(module.kernels), "calls": len(steps)}
    return Loaded(call, {**counts, "stages": dict(module.stats), "precision": module.precision})


def _onnxruntime(job: Job) -> Loaded:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    for name, value in job.symbols.items():
        options.add_free_dimension_override_by_name(name, value)
    session = onnxruntime.InferenceSession(job.model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    feed = dict(job.inputs)
    return Loaded(lambda: session.run(names, feed), {"precision": "f32"})


def _openvino(job: Job) -> Loaded:
    import openvino

    core = openvino.Core()
    model = core.read_model(job.model)
    if job.shapes:
        model.reshape({name: list(shape) for name, shape in job.shapes.items()})
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": job.threads,
        "INFERENCE_PRECISION_HINT": job.precision,
    }
    compiled = core.compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    # By position: OpenVINO's passes may add names of inner values to an input.
    feed = {i: job.inputs[next(n for n in source.get_names() if n in job.inputs)] for i, source in enumerate(compiled.inputs)}
    count = len(compiled.outputs)

    def call() -> list[np.ndarray]:
        # Shared: neither inputs nor outputs are copied, as with the other engines.
        found = request.infer(feed, share_inputs=True, share_outputs=True)
        return [found[i] for i in range(count)]

    return Loaded(call, {"precision": compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()})


ENGINES: dict[str, Engine] = {
    "relayc": Engine("relayc", "relayc", "relayc", _relayc),
    "ort": Engine("ONNX Runtime", "onnxruntime", "onnxruntime", _onnxruntime),
    "openvino": Engine("OpenVINO", "openvino", "openvino", _openvino),
}
REFERENCE = "ort"
"""The engine that results are compared with."""
