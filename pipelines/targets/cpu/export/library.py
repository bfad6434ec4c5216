"""A compiled module as a shared library, or as one object and a header for static linking."""

import ctypes
import hashlib
import json
import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tvm_ffi import libinfo

from relayc.dialects.mlir import bare_context, ir
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.engine import compile_object
from relayc.pipelines.targets.cpu.export.entries import Symbols, entries_text
from relayc.pipelines.targets.cpu.export.header import header_text
from relayc.pipelines.targets.cpu.export.linker import link_object, link_shared
from relayc.pipelines.targets.cpu.export.objects import Data, with_names, write_data_object
from relayc.pipelines.targets.cpu.jit import set_target
from relayc.pipelines.targets.cpu.target import CpuTarget
from relayc.runtime.artifact import ENTRIES_SYMBOL, Artifact, ObjectCode
from relayc.runtime.cache import checksums
from relayc.runtime.cpu.objects import read_object
from relayc.runtime.device import device_kind
from relayc.runtime.export import ExportedProgram, ExportRequest
from relayc.runtime.library import (
    DIGEST_BYTES,
    FORMAT,
    IDENTITY,
    SECTIONS,
    entries_symbol,
    images_section,
    params_section,
    params_symbol,
    seal,
)
from relayc.runtime.records import as_plain, program_record
from relayc.runtime.safetensors import write_blob
from relayc.runtime.threads import loaded_library, openmp_library

_OPENMP_PREFIX = "__kmpc_"
_SYSTEM_LIBRARIES = ("libm.so.6", "libc.so.6")
_EMPTY = bytes(1)
"""In place of parameters if there are none."""


@dataclass(frozen=True)
class _Export:
    """An exported program.

    Attributes:
      target: of its host code.
      identity: digest of the code and metadata of the program.
      metadata: in the library.
    """

    artifact: Artifact
    code: ObjectCode
    target: CpuTarget
    identity: str
    metadata: Mapping[str, Any]

    @property
    def params_file(self) -> str:
        """Name of the file with the parameters; empty if they are in the library."""
        return self.metadata["params"]["file"]


def export_library(program: ExportedProgram, request: ExportRequest) -> list[Path]:
    """Writes a module as a shared library (PATH.so), or as an object and a header (PATH.o, PATH.h); gives the files that were written.

    Raises:
      ValueError: the module has no object files, or the objects cannot be linked (LinkError).
      OSError: a file cannot be written.
    """
    path = request.path
    others = [p.artifact.device for p in _with_imports(program) if not device_kind(p.artifact.device).is_host]
    if path.suffix == ".o" and others:
        raise ValueError(f"export_library: expected a program of the host for an object, found one of the device kind {others[0]}")
    if path.suffix == ".o" and any(p.artifact.native is not None for p in _with_imports(program)):
        raise ValueError(
            "export_library: expected a program on tensors for an object, found one with data types, references or functions as values "
            "(a library, .so, holds it)"
        )
    found: dict[str, _Export] = {}
    _collect(program, path.stem if request.beside else "", found)
    exports = list(found.values())
    with TemporaryDirectory(prefix=".relayc-", dir=path.parent) as folder:
        objects = _write_objects(exports, Path(folder), request.prefix)
        made = Path(folder) / path.name
        if path.suffix == ".o":
            link_object(objects, made)
            os.replace(made, path)
            header = path.with_suffix(".h")
            header.write_text(header_text(program.artifact, request.prefix, path.stem))
            return [path, header]
        openmp = any(_uses_openmp(export.code) for export in exports)
        libraries = [Path(libinfo.find_libtvm_ffi()), *([Path(openmp_library())] if openmp else []), *_system_libraries()]
        link_shared(objects, libraries, made, path.name)
        seal(made)
        beside = [_write_params(export, Path(folder)) for export in exports if export.params_file]
        for file in (*beside, made):
            os.replace(file, path.parent / file.name)
    return [path, *(path.parent / file.name for file in beside), *([_bundle(path.parent)] if openmp and request.bundle else [])]


def _with_imports(program: ExportedProgram) -> list[ExportedProgram]:
    return [program, *(found for imported in program.imports for found in _with_imports(imported))]


def _write_params(export: _Export, folder: Path) -> Path:
    artifact, file = export.artifact, folder / export.params_file
    write_blob(file, artifact.params, [(info.spec, info.offset) for info in artifact.parameters], {IDENTITY: export.identity})
    return file


def _collect(program: ExportedProgram, params_stem: str, found: dict[str, _Export]) -> Mapping[str, Any]:
    """Adds a program, followed by its imports, to the exported programs by identity; returns its metadata.

    Args:
      params_stem: prefix of the names of parameter files; empty if parameters are in the library.
    """
    artifact = program.artifact
    if artifact.code is None:
        raise ValueError("export_library: expected a module made of object files, found one whose code is in memory only")
    given = Target(artifact.target)
    target = find_backend(given.kind).host(given)
    assert isinstance(target, CpuTarget)
    record = json.loads(json.dumps(program_record(artifact), default=as_plain))
    functions = list(artifact.functions)
    params = {"bytes": artifact.params.nbytes, "crc32": checksums(artifact.params)}
    digest = hashlib.sha256()
    code = artifact.code
    for content in (json.dumps([record, functions, params]).encode(), code.root, *(part for _, part in code.parts), code.images):
        digest.update(hashlib.sha256(content).digest())
    identity = digest.hexdigest()
    if identity in found:
        return found[identity].metadata
    number = f"-{len(found)}" if found else ""
    file = f"{params_stem}{number}.safetensors" if params_stem and artifact.params.nbytes else ""
    metadata = {
        "format": FORMAT,
        "identity": identity,
        "relayc": version("relayc"),
        "tvm_ffi": version("apache-tvm-ffi"),
        "features": sorted(target.machine.features),
        "source": dict(program.source),
        "functions": functions,
        "kernels": list(code.kernels),
        "params": {**params, "file": file},
        "program": record,
    }
    found[identity] = _Export(artifact, artifact.code, target, identity, metadata)
    metadata["imports"] = [_collect(imported, params_stem, found) for imported in program.imports]
    return metadata


def _write_objects(exports: Sequence[_Export], folder: Path, prefix: str) -> list[Path]:
    """The objects to link. The first export contains the description of the library."""
    contents: list[bytes] = []
    said = json.dumps(exports[0].metadata, separators=(",", ":")).encode()
    own = f"__relayc_{exports[0].identity[:16]}_"
    data = [Data(SECTIONS.metadata, f"{own}metadata", said), Data(SECTIONS.digest, f"{own}digest", bytes(DIGEST_BYTES))]
    taken: set[str] = set()
    for export in exports:
        contents += _objects(export, prefix, taken)
        taken |= set(export.artifact.functions)
        if not export.params_file:
            params = export.artifact.params if export.artifact.params.nbytes else _EMPTY
            data.append(Data(params_section(export.identity), params_symbol(export.identity), params, exported=True))
        if export.code.images:
            data.append(Data(images_section(export.identity), f"__relayc_{export.identity[:16]}_images", export.code.images))
    files = [folder / f"{i}.o" for i in range(len(contents) + 1)]
    for file, content in zip(files, contents, strict=False):
        file.write_bytes(content)
    with files[-1].open("wb") as out:
        write_data_object(out, data)
    return files


def _objects(export: _Export, prefix: str, taken: Collection[str]) -> list[bytes]:
    """The code of a program, and its exported functions except those whose names are taken."""
    code, identity = export.code, export.identity
    symbols = Symbols(entries_symbol(identity), params_symbol(identity))
    kernels = {name: f"__relayc_{identity[:16]}_kernel_{name}" for names, _ in code.parts for name in names}
    contents = [with_names(part, {name: kernels[name] for name in names}) for names, part in code.parts]
    contents.append(with_names(code.root, {**kernels, ENTRIES_SYMBOL: symbols.entries}, visible=(symbols.entries,)))
    if set(export.artifact.functions) <= set(taken):
        return contents
    return [*contents, _entries_object(export, symbols, prefix, taken)]


def _entries_object(exported: _Export, symbols: Symbols, prefix: str, taken: Collection[str]) -> bytes:
    """The object of the exported functions."""
    facts = {key: exported.metadata[key] for key in ("relayc", "tvm_ffi", "source", "identity")} | {
        "target": exported.artifact.target,
        "ranges": {name: list(known) for name, known in exported.artifact.ranges.items()},
    }
    text, names = entries_text(exported.artifact, symbols, prefix, facts, exported.params_file, taken)
    with bare_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        set_target(module, exported.target.machine)
        content = compile_object(module, names[0], (symbols.entries, symbols.params))
    return with_names(content, {}, visible=names)


def _uses_openmp(code: ObjectCode) -> bool:
    objects = (code.root, *(part for _, part in code.parts))
    return any(name.startswith(_OPENMP_PREFIX) for content in objects for name in read_object(content).undefined())


def _system_libraries() -> list[Path]:
    """The C library and the C mathematical library."""
    found = []
    for name in _SYSTEM_LIBRARIES:
        ctypes.CDLL(name)
        if path := loaded_library(name):
            found.append(Path(path))
    return found


def _bundle(folder: Path) -> Path:
    """Copies the OpenMP runtime to a folder, unless it is present."""
    runtime = Path(openmp_library())
    copy = folder / runtime.name
    if not copy.exists():
        shutil.copyfile(runtime, copy)
    return copy
