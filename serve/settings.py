"""How a model is served: the settings of MLServer's model-settings.json that relayc reads, checked."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlserver import ModelSettings
from mlserver.settings import ModelParameters

from relayc.nearest import nearest
from relayc.runtime import load_module
from relayc.runtime.module import Module
from relayc.serve.batching import Limits

FILES = ("model.onnx", "model.so", "model.relay.mlir")
"""The model file in the folder of a model, or of its version: one of these."""
COMPILE_OPTIONS = {"target": str, "precision": str, "shapes": dict, "dims": dict, "specialize": list, "opt_level": int}
"""Options of `relayc.compile` that a model may be given, and their types in JSON."""
_TYPES: dict[str, Any] = {
    **COMPILE_OPTIONS,
    "max_batch_size": int,
    "max_batch_time": (int, float),
    "max_queue": int,
    "timeout": (int, float),
    "workers": int,
    "threads": int,
}
_LEAST = {"max_batch_size": 0, "max_batch_time": 0, "max_queue": 1, "timeout": 1e-3, "workers": 0, "threads": 1}


@dataclasses.dataclass(frozen=True)
class ServeSettings:
    """Settings of a version of a model.

    Attributes:
      path: its file.
      limits: of its queue and its batches.
      workers: processes that run it; 0 for the process of the server.
      threads: of a call. By default all cores, shared by the workers.
      options: of `relayc.compile`.
    """

    path: Path
    limits: Limits
    workers: int
    threads: int | None
    options: Mapping[str, Any]


def take_settings(settings: ModelSettings) -> ServeSettings:
    """The settings of a model; those of batching are taken from MLServer, which would join requests of different sizes.

    Raises ValueError for a setting that is unknown or wrong, and where there is no file of a model.
    """
    parameters = settings.parameters = settings.parameters or ModelParameters()
    extra = parameters.extra = dict(parameters.extra or {})
    for name in ("max_batch_size", "max_batch_time"):
        if getattr(settings, name):
            extra.setdefault(name, getattr(settings, name))
            setattr(settings, name, 0)
    for name, value in extra.items():
        _check(settings.name, name, value)
    limits = Limits(**{field.name: extra[field.name] for field in dataclasses.fields(Limits) if field.name in extra})
    workers, threads = extra.get("workers", 0), extra.get("threads")
    if workers and threads is None:
        threads = max(1, len(os.sched_getaffinity(0)) // workers)
    options = {name: extra[name] for name in COMPILE_OPTIONS if name in extra}
    if "dims" in options:
        options["dims"] = {name: tuple(size) if isinstance(size, list) else size for name, size in options["dims"].items()}
    return ServeSettings(_file(settings), limits, workers, threads, options)


def _check(model: str, name: str, value: Any) -> None:
    where = f"model {model}: setting {name!r}"
    if name not in _TYPES:
        raise ValueError(f"{where}: expected one of {', '.join(_TYPES)}{nearest(name, _TYPES)}")
    if not isinstance(value, _TYPES[name]) or isinstance(value, bool):
        raise ValueError(f"{where}: found {value!r} of type {type(value).__name__}")
    if name in _LEAST and value < _LEAST[name]:
        raise ValueError(f"{where}: expected {_LEAST[name]} or more, found {value}")


def _file(settings: ModelSettings) -> Path:
    """The file of a model: what `uri` names, which is a file or a folder."""
    folder = Path(settings._source).parent if settings._source else Path()
    path = folder / ((settings.parameters and settings.parameters.uri) or "")
    if path.is_file():
        return path
    found = [path / name for name in FILES if (path / name).is_file()]
    if len(found) != 1:
        what = " and ".join(file.name for file in found) or "none"
        raise ValueError(f"model {settings.name}: expected one of {', '.join(FILES)} in {path}, found {what}")
    return found[0]


def open_module(path: Path, threads: int | None, options: Mapping[str, Any]) -> Module:
    """The module of a file: a library as it is, a model compiled, through the cache on disk.

    Raises ValueError, TypeError or OSError for a file that is none, options that do not fit it, and a program that this machine cannot run.
    """
    if path.suffix == ".so":
        if options:
            raise ValueError(f"{path}: a library is compiled already, found options for its compilation: {', '.join(options)}")
        module = load_module(path)
    else:
        try:
            from relayc.pipelines.driver.compile import compile
        except ModuleNotFoundError as error:
            if error.name != "relayc.pipelines":
                raise
            raise ValueError(f"{path}: expected a library (model.so) where the runtime is installed without the compiler") from None
        module = compile(path, num_threads=threads, **options)
    if module.lacking:
        raise ValueError(f"{path}: the program is for {module.target}, this machine lacks {', '.join(module.lacking)}")
    module.num_threads = threads
    return module
