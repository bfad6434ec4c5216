"""`relayc.compile`: a model to a runtime module, from the cache where it has been compiled before.

What compiles is imported only when something is compiled: a program from the cache needs neither MLIR nor onnx.
"""

import dataclasses
import os
import sys
import time
from collections.abc import Mapping, Sequence
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from relayc.frontend import files_of
from relayc.interrupts import deferred
from relayc.nearest import nearest
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver import compile_cache
from relayc.pipelines.history.records import current_records
from relayc.runtime.artifact import Artifact
from relayc.runtime.module import Module
from relayc.symbolic import FAR, Size

if TYPE_CHECKING:
    from relayc.dialects.relay.module import IRModule

STAGES = ("relay", "te", "tir", "llvm")
PRECISIONS = ("f32", "bf16", "f16", "tf32")


@overload
def compile(
    model: Any,
    target: "str | Target" = ...,
    shapes: Mapping[str, Sequence[Size | str]] | None = ...,
    opt_level: int | None = ...,
    dump_ir: "str | os.PathLike | None" = ...,
    keep_ir: bool = ...,
    stop_after: None = ...,
    progress: Any = ...,
    cache: bool | None = ...,
    precision: str = ...,
    num_threads: int | None = ...,
    dims: Mapping[str, int | tuple[int, int]] | None = ...,
    specialize: Sequence[Mapping[str, int]] | None = ...,
    schedules: Mapping[str, Any] | None = ...,
) -> Module: ...
@overload
def compile(
    model: Any,
    target: "str | Target" = ...,
    shapes: Mapping[str, Sequence[Size | str]] | None = ...,
    opt_level: int | None = ...,
    dump_ir: "str | os.PathLike | None" = ...,
    keep_ir: bool = ...,
    *,
    stop_after: str,
    progress: Any = ...,
    cache: bool | None = ...,
    precision: str = ...,
    num_threads: int | None = ...,
    dims: Mapping[str, int | tuple[int, int]] | None = ...,
    specialize: Sequence[Mapping[str, int]] | None = ...,
    schedules: Mapping[str, Any] | None = ...,
) -> "IRModule": ...


@deferred()
def compile(
    model: Any,
    target: "str | Target" = "cpu",
    shapes: Mapping[str, Sequence[Size | str]] | None = None,
    opt_level: int | None = None,
    dump_ir: "str | os.PathLike | None" = None,
    keep_ir: bool = False,
    stop_after: str | None = None,
    progress: Any = None,
    cache: bool | None = None,
    precision: str = "f32",
    num_threads: int | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    specialize: Sequence[Mapping[str, int]] | None = None,
    schedules: Mapping[str, Any] | None = None,
) -> "Module | IRModule":
    """Compiles a model.

    Args:
      model: what a frontend takes (relayc.frontend.registry): path of an ONNX file, its bytes, an onnx.ModelProto, a Program, an IRModule
        (which the passes change in place), or a model of another format that one is registered for.
      target: a Target, or its text: "cpu" for this machine, "cpu -num-threads=2"; see Target.
      shapes: shape by input name, for inputs with symbolic dimensions: sizes fix them ([1, 3, 224, 224]), texts name or rename them
        (["batch", 3, "h", "2*h"]). What is not given stays symbolic, under the names that the model has.
      opt_level: 0 (no fusion) to 3 (the default, or that of the ambient PassContext); 4 adds passes that pay on some models
        only.
      dump_ir: a directory for the IR after each pass: numbered files, one folder per stage.
      keep_ir: whether the result keeps the text of every stage in `module.ir`.
      stop_after: "relay", "te", "tir" or "llvm": gives the IRModule of that stage instead of a runtime module.
      progress: called with (nodes done, nodes in all) while a model is imported.
      cache: whether to look for the program in the on-disk cache (see runtime.cache), and to keep it there. By default an ONNX model is;
        True does so for an IRModule too, False for none. RELAYC_CACHE=0 in the environment turns the cache off. Programs that an
        argument or an ambient PassContext wants to be observed on their way (dump_ir, keep_ir, stop_after, instruments, passes in the
        configuration) are always compiled.
      precision: "f32", or "bf16", "f16" or "tf32" for products, convolutions and attention of operands rounded to it, summed in f32 (see
        graph.to_mixed_precision); inputs and outputs stay as they are. Where the target has no instructions for it (CPUs have some for
        "bf16" at most) f32 is faster, and is used: `module.precision` says what was done.
      num_threads: how many threads the schedules plan for and a call uses (`Module.num_threads`). By default that of the target, and what
        holds for the process (runtime.num_threads).
      dims: by name of a symbolic dimension, its size (4), or its least and largest size ((1, 512)).
      specialize: hot sizes, each as sizes by symbol: [{"batch": 1}, {"batch": 8, "seq": 128}]. `main` is compiled for each of them beside
        the program for all sizes, and branches to it; where several hold, to one of most symbols. Each costs as much time and code as
        the program compiled for that size, and parameters where its kernels want them in a layout of their own.
      schedules: how kernels run whose names match a pattern, {"fused_dense*": schedule}; of several that match the last one holds. A
        schedule is a function of the `relayc.tir.Schedule` of a module of the kernel alone, which it schedules in place, or for which it
        gives back a module; a trace of another schedule (relayc.tir.Trace, or its text); or a module with a function in place of the
        kernel (an IRModule of blocks and loops, or its text). Programs with functions and modules among them bypass the cache, those
        with texts do not.

    Returns:
      A runtime Module: `module["main"](*inputs)`.

    Raises:
      ValueError, TypeError: no frontend takes the model, it is invalid (OnnxError or another ModelError, RelayError), or an argument is.
      ScheduleError: a ValueError that names the schedule and the kernel: it is not legal for it, or raised something.
    """
    if stop_after is not None and stop_after not in STAGES:
        raise ValueError(f"stop_after: expected one of {', '.join(STAGES)}, found {stop_after!r}{nearest(stop_after, STAGES)}")
    if precision not in PRECISIONS:
        raise ValueError(f"precision: expected one of {', '.join(PRECISIONS)}, found {precision!r}{nearest(precision, PRECISIONS)}")
    if shapes is not None and not isinstance(shapes, Mapping):
        raise TypeError(f"shapes: expected a mapping of names of inputs, found {shapes!r}")
    if dims is not None and not isinstance(dims, Mapping):
        raise TypeError(f"dims: expected a mapping of names of dimensions, found {dims!r}")
    if schedules is not None and not (isinstance(schedules, Mapping) and all(isinstance(pattern, str) for pattern in schedules)):
        raise TypeError(f"schedules: expected a mapping of patterns of names of kernels, found {schedules!r}")
    entries = _entries(specialize)
    if num_threads is not None or not isinstance(target, Target):
        target = Target(target, num_threads=num_threads)
    options = {"target": target, "shapes": shapes, "opt_level": opt_level, "keep_ir": keep_ir, "cache": cache, "precision": precision}
    state = dict(compile_cache.params_of(model) or {})  # of the inputs that it names, should the module have any as its state
    source = _Source(model, {**options, "num_threads": num_threads, "dims": dims, "schedules": schedules})
    observed = dump_ir is not None or keep_ir or stop_after is not None
    records = current_records(target)
    slot = None
    if not observed:
        slot = compile_cache.find_slot(model, target, shapes, opt_level, cache, precision, dims, entries, schedules, records.digest)
    if slot is not None:
        start = time.perf_counter()
        artifact = slot.load()
        if artifact is not None:
            return _module(dataclasses.replace(artifact, stats={"cache": time.perf_counter() - start}), target, num_threads, source, state)
    from relayc.dialects.mlir import live_contexts
    from relayc.pipelines.driver.build import build
    from relayc.pipelines.driver.release_memory import paused_collection, release_memory

    contexts = live_contexts()
    with paused_collection():
        built = build(
            model,
            target,
            shapes,
            opt_level,
            dump_ir,
            keep_ir,
            stop_after,
            progress,
            precision,
            dims=dims,
            specialize=entries,
            schedules=schedules or {},
            records=records,
        )
    if not isinstance(built, Artifact):
        return built
    if slot is not None:
        built = slot.keep(built)
    release_memory(contexts)
    return _module(built, target, num_threads, source, state)


def _module(artifact: Artifact, target: Target, num_threads: int | None, source: "_Source", state: Mapping[str, Any]) -> Module:
    module = Module(artifact, find_backend(target.kind).quick_peak)
    module.num_threads = num_threads
    if module.signature is not None:
        module.state.update({name: state[name] for name in module.signature.state if name in state})
    module.recompile = source.compile_again
    module.describe_schedule = source.schedule

    module.exporter = find_backend(target.kind).export_library
    module.source = source.facts
    return module


def _entries(specialize: Sequence[Mapping[str, int]] | None) -> list[dict[str, int]]:
    """The sizes to specialize for, as plain numbers. Raises TypeError or ValueError for what is none; symbols are not known yet."""
    if specialize is None:
        return []
    if not isinstance(specialize, Sequence) or isinstance(specialize, (str, bytes)) or not all(isinstance(e, Mapping) for e in specialize):
        raise TypeError(f"specialize: expected a list of sizes by name of a dimension, found {specialize!r}")
    for entry in specialize:
        for name, size in entry.items():
            if not isinstance(name, str) or isinstance(size, bool) or not hasattr(size, "__index__"):
                raise TypeError(f"specialize: {name}: expected a size, found {size!r}")
            if not 0 <= index(size) <= FAR:
                raise ValueError(f"specialize: {name}: expected a size of 0 to {FAR}, found {size}")
    return [{name: index(size) for name, size in entry.items()} for entry in specialize]


class _Source:
    """The source of a module, and the options of its compilation. A model that is not a file is not kept, because it may be large."""

    def __init__(self, model: Any, options: Mapping[str, Any]) -> None:
        self._path = Path(model).absolute() if isinstance(model, (str, os.PathLike)) else None
        self._name = type(model).__name__ if self._path is None else self._path.name
        self._status = self._status_now()
        self._options = options
        passes = sys.modules.get("relayc.pipelines.context.passes")
        self._settings = passes.PassContext.current().settings if passes is not None else {}

    def compile_again(self, specialize: Sequence[Mapping[str, int]], model: Any = None) -> Module:
        """Compiles again with other sizes to specialize for, observed by the instruments of the ambient PassContext. Raises ValueError if
        `model` is not given and its file has changed."""
        model = self._model("specialize", model)
        from relayc.pipelines.context.passes import PassContext

        with PassContext(**self._settings, instruments=PassContext.current().instruments):
            return compile(model, specialize=specialize, **self._options)

    def schedule(self, kernel: str, specialize: Sequence[Mapping[str, int]], model: Any = None) -> str:
        """See `Module.schedule`. Raises ValueError as `compile_again`."""
        model = self._model("schedule", model)
        from relayc.pipelines.context.passes import PassContext
        from relayc.pipelines.driver.schedule_texts import schedule_texts

        with PassContext(**self._settings):
            texts = schedule_texts(lambda: compile(model, specialize=specialize, stop_after="tir", **self._options), kernel)
        return texts[kernel]

    def _model(self, what: str, given: Any) -> Any:
        """The source of the module: `given`, or the file."""
        if given is not None:
            return given
        if self._path is None:
            raise ValueError(f"{what}: expected the model again (model=...): the module was not compiled from a file, found none")
        status = self._status_now()
        if status is None or status != self._status:
            found = "none there" if status is None else "another one"
            raise ValueError(f"{what}: expected {self._path} as the module was compiled from it, found {found} (or give model=...)")
        return self._path

    def facts(self) -> dict[str, Any]:
        """Name and SHA-256 of the model's file and of its external data; without digests if the model was not a file, or the file has
        changed."""
        status = self._status_now()
        if self._path is None or status is None or status != self._status:
            return {"name": self._name, "sha256": "", "files": {}}
        from relayc.runtime.library import file_sha256

        files = {name: file_sha256(self._path.parent / name) for name in files_of(self._path)}
        return {"name": self._name, "sha256": file_sha256(self._path), "files": files}

    def _status_now(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat() if self._path is not None else None
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size)
