"""Records of compiled programs: what `relayc diff` compares, and saves for a later comparison with another revision of relayc."""

import base64
import hashlib
import importlib.metadata
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from relayc.dialects.functions import symbol_name
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.instruments import PassInfo, PassInstrument
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.driver.schedule_texts import schedule_texts
from relayc.runtime import Module
from relayc.runtime.artifact import numpy_dtype
from relayc.tools.build import Build
from relayc.tools.inputs import sizes_of_call, tensors_of, written

VERSION = 1
_MOST_ELEMENTS = 1 << 16
"""Elements of an output that a file keeps; of more, as many at equal distances."""


@dataclass
class Call:
    """A place that calls a kernel.

    Attributes:
      sources: names of the model's nodes that it stands for.
      tensors: types of what the kernel takes and gives.
      computes, loops: the kernel in the te stage, and its schedule (`Module.schedule`); "" where no compiler is at hand.
      constants: types and digests of the parameters that it reads.
      seconds: of its calls, in each profile.
    """

    kernel: str
    where: str
    sources: list[str]
    operators: list[str]
    tensors: list[str]
    schedule: str
    computes: str = ""
    loops: str = ""
    constants: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


@dataclass
class Record:
    """A compiled program, and what it did on some inputs.

    Attributes:
      made_by: for people: the program as a command or call, target, precision, threads, version of relayc.
      interface: types of inputs and outputs by name.
      inputs: digests of the inputs by name.
      constants: the digest of all parameters.
      memory: bytes by what they are for.
      latency: seconds of calls, by round.
      outputs: by name; of a record from a file, elements at equal distances where there were many.
    """

    made_by: dict[str, Any]
    interface: dict[str, str]
    inputs: dict[str, str]
    calls: list[Call]
    constants: str
    memory: dict[str, int]
    latency: list[float]
    outputs: dict[str, np.ndarray]
    is_saved: bool = False

    def save(self, path: Path) -> None:
        """Writes the record as JSON; to standard output for -. Raises OSError if that is not possible."""
        data = {**asdict(self), "outputs": {name: _encoded(array) for name, array in self.outputs.items()}}
        with written(path) as file:
            file.write(f"{json.dumps({'relayc_record': VERSION, **data}, indent=1)}\n".encode())

    @staticmethod
    def load(path: Path) -> "Record":
        """The record in a file. Raises OSError if it cannot be read, ValueError if it is invalid."""
        try:
            data = json.loads(path.read_text())
            if data.pop("relayc_record") != VERSION:
                raise ValueError("another version")
            calls = [Call(**call) for call in data.pop("calls")]
            outputs = {name: _decoded(stored) for name, stored in data.pop("outputs").items()}
            return Record(**{**data, "calls": calls, "outputs": outputs, "is_saved": True})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: expected a record of version {VERSION} that relayc diff --save wrote, found another file") from error


def sampled(array: np.ndarray) -> np.ndarray:
    """What a file keeps of an output: one dimension, elements at equal distances."""
    flat = array.reshape(-1)
    return flat[:: max(1, -(-flat.size // _MOST_ELEMENTS))]


def _encoded(array: np.ndarray) -> dict[str, Any]:
    kept = sampled(array)
    if array.dtype.kind in "OUS":
        return {"dtype": "string", "values": [str(value) for value in kept]}
    return {"dtype": kept.dtype.name, "values": base64.b64encode(np.ascontiguousarray(kept).tobytes()).decode()}


def _decoded(stored: Mapping[str, Any]) -> np.ndarray:
    if stored["dtype"] == "string":
        return np.array(stored["values"], object)
    return np.frombuffer(base64.b64decode(stored["values"]), numpy_dtype(stored["dtype"]))


def digest(value: Any) -> str:
    """Type and SHA-256 of an array of numbers; SHA-256 of strings, and of the contents of lists and maps."""
    if isinstance(value, np.ndarray) and value.dtype.kind not in "OUS":
        return f"{value.dtype.name}{list(value.shape)} {_hash(np.ascontiguousarray(value).tobytes())}"
    if isinstance(value, Mapping):
        value = [*value.items()]
    parts = value.tolist() if isinstance(value, np.ndarray) else value
    return _hash(repr([digest(part) for part in parts] if isinstance(parts, (list, tuple)) else parts).encode())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


class _Computations(PassInstrument):
    """Keeps the kernels of the te stage, by name."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.stage == "te" and not info.composite:
            self.texts = {symbol_name(op): str(op) for op in mod.module.body.operations}


def kernel_texts(compile_to: Callable[..., Any]) -> dict[str, tuple[str, str]]:
    """What each kernel computes, and its schedule. Names of kernels and of the model's nodes are left out.

    Args:
      compile_to: compiles the program up to a stage, `stop_after`, under the ambient PassContext.
    """
    seen, current = _Computations(), PassContext.current()
    with PassContext(**current.settings, instruments=[*current.instruments, seen]):
        loops = schedule_texts(lambda: compile_to(stop_after="tir"))
    return {name: (_anonymous(seen.texts.get(name, ""), name), _anonymous(text, name)) for name, text in loops.items()}


def _anonymous(text: str, name: str) -> str:
    """A text of a kernel without its name and the nodes that it stands for."""
    return re.sub(r",? ?relay\.sources = \[[^\]]*\]", "", re.sub(rf"\b{re.escape(name)}\b", "kernel", text))


def make_record(module: Module, inputs: Mapping[str, Any], build: Build | None, name: str) -> Record:
    """The record of a program on inputs, without times.

    Args:
      build: compiles the program again, for the texts of its kernels; None if that is not possible.
    """
    texts = {} if build is None else kernel_texts(build.compile)
    sizes = sizes_of_call(module, inputs)
    digests = {name: digest(array) for name, array in module.params.items()}
    read = _read_constants(module, sizes, digests)
    calls = []
    for site in module.call_sites():
        kernel = site.kernel
        tensors = [str(spec) for spec in (*kernel.inputs, *kernel.outputs)]
        constants = read.get((kernel.name, site.sources), [])
        facts = site.where, list(site.sources), list(kernel.ops), tensors, kernel.schedule, *texts.get(kernel.name, ("", ""))
        calls.append(Call(kernel.name, *facts, constants))
    version = importlib.metadata.version("relayc")
    return Record(
        {"program": name, "target": module.target, "precision": module.precision, "relayc": version},
        {spec.name: str(spec) for spec in (*module.inputs, *module.outputs)},
        {name: digest(value if isinstance(value, (list, dict)) else np.asarray(value)) for name, value in inputs.items()},
        calls,
        digest(sorted(digests.values())),
        {"arena": module.arena_bytes(inputs), "constants": sum(array.nbytes for array in module.params.values())},
        [],
        {name: np.array(array) for name, array in tensors_of(module.run(inputs)).items()},
    )


def _read_constants(module: Module, sizes: Mapping[str, int], digests: Mapping[str, str]) -> dict[tuple[str, tuple[str, ...]], list[str]]:
    """Digests of the parameters that calls read, by kernel and sources; nothing of a program that is no graph."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    with suppress(ValueError):
        graph = module.graph(sizes=sizes)
        for node in graph.nodes:
            names = [graph.nodes[argument].name for argument, _ in node.inputs if graph.nodes[argument].op == "null"]
            found.setdefault((node.function, node.sources), []).extend(digests[name] for name in names if name in digests)
    return found
