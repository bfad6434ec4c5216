"""The compared engines: how each engine loads a model, and what one call is.

An engine is imported only on request, so that the memory of a process that measures one engine is the memory of that engine.
"""

import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Call = Callable[[], list[np.ndarray]]
Inputs = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Job:
    """The model that an engine loads and runs.

    Attributes:
      engine: its name in ENGINES.
      model: path of the ONNX file.
      inputs: arrays by name.
      shapes: shape of each input that has symbolic dimensions.
      symbols: value of each named symbolic dimension. Without both, symbolic dimensions stay open.
      threads: number of threads that the engine may use.
      database: the tuning database whose records relayc uses; "" for none, None for the one of relayc.compile.
      precision: "f32", or "bf16" for engines that can compute in it; inputs and outputs stay as the model declares them.
    """

    engine: str
    model: str
    inputs: Inputs
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    symbols: Mapping[str, int] = field(default_factory=dict)
    threads: int = 1
    precision: str = "f32"
    database: str | None = None


@dataclass(frozen=True)
class Loaded:
    """A model ready to be called.

    Attributes:
      bind: makes a call from inputs: the inputs of the job, or inputs of other sizes if the job leaves them open. The call runs the model
        once and returns the outputs in order, which the next call may overwrite.
      facts: facts that the engine reports, as plain data; "precision" is the precision of products and convolutions.
      arena_bytes: memory for intermediate tensors of a call on inputs; None if the engine does not report it.
    """

    bind: Callable[[Inputs], Call]
    facts: Mapping[str, Any] = field(default_factory=dict)
    arena_bytes: Callable[[Inputs], int | None] = lambda inputs: None


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
    from relayc.pipelines.context.passes import PassContext
    from relayc.pipelines.context.target import Target
    from relayc.pipelines.driver.compile import compile as compile_
    from relayc.pipelines.history.records import DATABASE
    from relayc.runtime import set_num_threads

    set_num_threads(job.threads)
    target = Target("cpu", num_threads=job.threads)
    with PassContext(config={} if job.database is None else {DATABASE: job.database}):
        module = compile_(job.model, target=target, shapes=job.shapes or None, cache=False, precision=job.precision)
    main = module["main"]

    def bind(inputs: Inputs) -> Call:
        arguments = [inputs[name] for name in module.input_names]

        def call() -> list[np.ndarray]:
            found = main(*arguments)
            return list(found) if isinstance(found, tuple) else [found]

        return call

    steps = module.step_kernels
    facts: dict[str, Any] = {"kernels": len(module.kernels), "calls": len(steps)}
    if all(isinstance(extent, int) for spec in module.inputs for extent in spec.shape):
        facts |= {"flops": sum(k.operator_flops for k in steps), "done_flops": sum(k.flops for k in steps)}
    facts |= {"stages": dict(module.stats), "precision": module.precision}
    return Loaded(bind, facts, module.arena_bytes)


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

    def bind(inputs: Inputs) -> Call:
        feed = dict(inputs)
        return lambda: session.run(names, feed)

    return Loaded(bind, {"precision": "f32"})


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
    count = len(compiled.outputs)

    def bind(inputs: Inputs) -> Call:
        # By position: OpenVINO's passes may add names of inner values to an input.
        feed = {i: inputs[next(n for n in source.get_names() if n in inputs)] for i, source in enumerate(compiled.inputs)}

        def call() -> list[np.ndarray]:
            # Shared: neither inputs nor outputs are copied, as with the other engines.
            found = request.infer(feed, share_inputs=True, share_outputs=True)
            return [found[i] for i in range(count)]

        return call

    return Loaded(bind, {"precision": compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()})


ENGINES: dict[str, Engine] = {
    "relayc": Engine("relayc", "relayc", "relayc", _relayc),
    "ort": Engine("ONNX Runtime", "onnxruntime", "onnxruntime", _onnxruntime),
    "openvino": Engine("OpenVINO", "openvino", "openvino", _openvino),
}
REFERENCE = "ort"
"""The engine that results are compared with."""
