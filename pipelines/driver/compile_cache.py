"""When a compiled program can be taken from the cache: what it was made from, as one key.

A key covers the model, the shapes and sizes of its inputs and those that it is specialized for, the target with its attributes, the
precision, the settings of the PassContext, what tuning recorded for the target, the sources of relayc and the versions of the packages
that matter. While anything is registered from outside (operators, compute rules, frontends, converters, schedules, rewrite and fusion
rules, backends, devices), which a key cannot tell, nothing is looked up or kept.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache as memoize
from importlib.metadata import PackageNotFoundError, version
from operator import index
from pathlib import Path
from typing import Any

from relayc.frontend import files_of
from relayc.pipelines import DEFAULT_OPT_LEVEL
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.target import Target
from relayc.runtime.artifact import Artifact
from relayc.runtime.cache import Cache, Origin, digest
from relayc.runtime.device import device_kind
from relayc.symbolic import Dim, Size

_ROOT = Path(__file__).resolve().parents[2]
_SOURCES = ("dialects", "frontend", "pipelines", "runtime", "symbolic")
_PACKAGES = ("torch-mlir", "onnx", "numpy", "ml_dtypes", "apache-tvm-ffi", "intel-openmp", "torch")
"""Packages that determine the import of a program, its code and parameters, or the functions that the code calls."""
_STARTED = time.time_ns()


@dataclass(frozen=True)
class Slot:
    """The place of a program in the cache.

    Attributes:
      target: of the program.
      path: the model's file, None for a model that is not a file; `status` is the state of the file when the key was computed.
    """

    cache: Cache
    target: Target
    key: str
    source: str
    path: Path | None
    status: tuple[int, int] | None

    def load(self) -> Artifact | None:
        """The program, None if it is not in the cache."""
        lacking = self.target.lacking
        found = self.cache.load(self.key, self.path.parent if self.path is not None else None, runs_here=not lacking)
        return None if found is None else replace(found, lacking=lacking)

    def keep(self, artifact: Artifact) -> Artifact:
        """Stores a new program, unless its model or the compiler has changed on disk in the meantime.

        Returns the program to run: if it was stored, the cached one, whose parameters are mapped from its file.
        """
        try:
            files = self._external_digests()
            unchanged = self.path is None or _status(self.path) == self.status
        except (OSError, ValueError):
            return artifact
        if not unchanged or not _sources_are_loaded() or not self.cache.store(self.key, artifact, Origin(self.source, files)):
            return artifact
        kept = self.load()
        return artifact if kept is None else replace(kept, stats=artifact.stats)

    def _external_digests(self) -> dict[str, str]:
        if self.path is None:
            return {}
        return {name: self.cache.file_digest(self.path.parent / name) for name in files_of(self.path)}


def find_slot(
    model: Any,
    target: Target,
    shapes: Mapping[str, Sequence[Size | str]] | None,
    opt_level: int | None,
    wanted: bool | None,
    precision: str,
    dims: Mapping[str, int | tuple[int, int]] | None,
    specialize: Sequence[Mapping[str, int]],
    schedules: Mapping[str, Any] | None,
    records: str,
) -> Slot | None:
    """The cache slot of a program; None if it is not cached: the cache is off, the model is unreadable, an instrument observes the
    compilation, or a schedule is not a text.

    The arguments are those of `relayc.compile`.

    Args:
      records: digest of the tuning records in use (pipelines.history).
    """
    cache = Cache.default() if wanted is not False and device_kind(find_backend(target.kind).device_of(target)).loads_code else None
    if cache is None:
        return None
    settings = _settings(opt_level)
    if settings is None or not _is_plain(schedules) or not _sources_are_loaded():
        return None
    path = Path(model) if isinstance(model, (str, os.PathLike)) else None
    try:
        status = _status(path) if path is not None else None
        content = cache.file_digest(path) if path is not None else _digest(model, wanted)
        extents = {name: [_extent(d) for d in shape] for name, shape in sorted((shapes or {}).items())}
        sizes = {name: list(map(index, d)) if isinstance(d, (tuple, list)) else index(d) for name, d in sorted((dims or {}).items())}
    except (OSError, TypeError, ValueError):  # the compiler reports the error
        return None
    if content is None:
        return None
    facts = {
        "model": content,
        "shapes": extents,
        "dims": sizes,
        "schedules": list((schedules or {}).items()),
        "specialize": [sorted(entry.items()) for entry in specialize],
        "target": [str(target), target.fingerprint],
        "settings": settings,
        "precision": precision,
        "records": records,
        "sources": source_digest(),
        "packages": {name: _version(name) for name in _PACKAGES},
    }
    key = digest([json.dumps(facts, sort_keys=True).encode()])
    return Slot(cache, target, key, str(path.resolve()) if path is not None else type(model).__name__, path, status)


def _extent(size: Size | str) -> int | str:
    """A size for JSON. Raises TypeError for a value that is not a size."""
    return str(size) if isinstance(size, (str, Dim)) else index(size)


def _status(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def params_of(model: Any) -> Mapping[str, Any] | None:
    """The arrays of a program by name; None of other models: the params of a relay.Function are its variables."""
    params = getattr(model, "params", None)
    return params if isinstance(params, Mapping) else None


def _digest(model: Any, wanted: bool | None) -> str | None:
    """Digest of a model that is not a file; None if it is not a model, and for an IRModule unless the cache was requested."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return digest([model])
    if hasattr(model, "SerializeToString"):
        return digest([model.SerializeToString()])
    params = params_of(model)
    if not wanted or params is None:
        return None
    import numpy as np

    arrays = [np.ascontiguousarray(array) for array in params.values()]
    names = json.dumps([[key, array.dtype.name, array.shape] for key, array in zip(params, arrays, strict=True)])
    return digest([str(model).encode(), names.encode(), *(array.reshape(-1).view(np.uint8) for array in arrays)])


def _settings(opt_level: int | None) -> dict[str, Any] | None:
    """The settings of the ambient PassContext as plain values; None if it contains instruments or other values that are not plain, or if
    code from outside is registered."""
    if _has_outside_code():
        return None
    passes = sys.modules.get("relayc.pipelines.context.passes")
    if passes is None:  # then no context can exist
        return _plain(DEFAULT_OPT_LEVEL if opt_level is None else opt_level, (), (), {})
    context = passes.PassContext.current()
    if context.instruments or not _is_plain(context.config):
        return None
    level = context.opt_level if opt_level is None else opt_level
    return _plain(level, context.required_pass, context.disabled_pass, context.config)


def _is_plain(value: Any) -> bool:
    """Whether a value can be represented in JSON: numbers, texts, lists, and mappings of texts."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(v) for key, v in value.items())
    return isinstance(value, (bool, int, float, str, type(None)))


def _registered() -> Iterator[Any]:
    """The classes and functions in the registries of the modules that are loaded: what is not imported, nobody can have added to."""
    tables: dict[str, Callable[[Any], Iterable[Any]]] = {
        "relayc.pipelines.context.backend": lambda m: m.registered_backends(),
        "relayc.runtime.device": lambda m: m.registered_device_kinds(),
        "relayc.dialects.relay.registration": lambda m: m.OPS.values(),
        "relayc.pipelines.te.rules.core": lambda m: m.RULES.values(),
        "relayc.pipelines.tir.strategy.table": lambda m: (entry.name for found in m.STRATEGIES.values() for entry in found),
        "relayc.pipelines.graph.numpy_operators": lambda m: (e.function for e in m.NUMPY_OPERATORS.values()),
        "relayc.pipelines.graph.fusion": lambda m: m.outside_rules(),
        "relayc.frontend.registry": lambda m: m.outside_functions(),
        "relayc.frontend.onnx.converters": lambda m: (c.function for found in m.CONVERTERS.values() for c in found),
    }
    for name, entries in tables.items():
        module = sys.modules.get(name)
        if module is not None:
            yield from entries(module)
    for name, module in list(sys.modules.items()):
        if name.startswith("relayc.pipelines.graph."):
            yield from getattr(getattr(module, "RULES", None), "rules", ())


def _has_outside_code() -> bool:
    # Names of fusion rules and of strategies, which are texts, are all from outside.
    return not all(getattr(entry, "__module__", "").startswith("relayc.") for entry in _registered())


def _plain(level: int, required: Any, disabled: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    return {"opt_level": level, "required": sorted(required), "disabled": sorted(disabled), "config": dict(config)}


def _files() -> list[str]:
    # Of texts, as every compilation looks at all: a Path for each file would take as long as a small compilation.
    folders = (entry for source in _SOURCES for entry in os.walk(_ROOT / source))
    return sorted(f"{folder}{os.sep}{name}" for folder, _, names in folders for name in names if name.endswith((".py", ".mlir")))


def _sources_are_loaded() -> bool:
    """Whether the sources on disk are the loaded ones: none has changed since this process began to compile."""
    return all(os.stat(path).st_mtime_ns < _STARTED for path in _files())


@memoize
def source_digest() -> str:
    """Digest of the sources of relayc that compile."""
    paths = _files()
    names = "\0".join(paths).replace(f"{_ROOT}{os.sep}", "")
    # As two parts: a thread for each file would take longer than its digest.
    return digest([names.encode(), b"\0".join(Path(path).read_bytes() for path in paths)])


@memoize
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
