"""Exported modules: shared libraries that describe their contents, checked before any of their code runs.

The library has sections of relayc: metadata in JSON, which describe the program, its source and its requirements; the parameters, unless
they are in a file beside the library; and the SHA-256 of the file without the parameters, computed with zeros in the place of the digest.
Parameters are checked by the CRC-32 of each 16 MiB. Digests detect stale, truncated or damaged files. They are not a signature: load only
files whose authors you trust to run code.
"""

import contextlib
import ctypes
import hashlib
import json
import mmap
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm_ffi

from relayc.files import open_file
from relayc.runtime.artifact import Artifact, ObjectCode, aligned_empty
from relayc.runtime.cache import checksums
from relayc.runtime.device import HOST, DeviceError, device_kind
from relayc.runtime.elf import ElfError, SectionHeader, shared_sections
from relayc.runtime.module import Module
from relayc.runtime.records import program_fields
from relayc.runtime.safetensors import data_bytes, read_safetensors

FORMAT = 1
"""Of the metadata, and of what packed entries take. A library of another format is refused."""
DIGEST_BYTES = 32
IDENTITY = "relayc.identity"
"""Of the library that a file of parameters belongs to: a text of its metadata."""


@dataclass(frozen=True)
class _Sections:
    """Names of the sections that are relayc's. (Linkers take names that begin with .rel for relocations.)"""

    metadata: str = ".metadata.relayc"
    params: str = ".params.relayc."
    images: str = ".images.relayc."
    digest: str = ".digest.relayc"


SECTIONS = _Sections()


class LibraryError(ValueError):
    """A file that is no exported module, or one that cannot be run here: of another machine, version or model, cut off or changed."""


def entries_symbol(identity: str) -> str:
    """Name of the function that gives the packed entries of the library of an identity."""
    return f"__relayc_{identity[:16]}_entries"


def params_symbol(identity: str) -> str:
    """Name of the first byte of the parameters in the library of an identity."""
    return f"__relayc_{identity[:16]}_params"


_File = str | os.PathLike[str]


def params_section(identity: str) -> str:
    """Name of the section of the parameters of the module of an identity."""
    return f"{SECTIONS.params}{identity[:16]}"


def images_section(identity: str) -> str:
    """Name of the section of the code for devices of the module of an identity."""
    return f"{SECTIONS.images}{identity[:16]}"


def load_module(path: _File, model: _File | None = None, params: _File | None = None) -> Module:
    """Loads an exported module. The compiler is not needed; parameters are mapped, so that processes share them.

    Args:
      path: the library that `Module.export_library` wrote.
      model: the file that the module should have been compiled from: another one is an error.
      params: the file with the parameters of a library that has them beside it, where it is not there under the name that it had.

    Raises:
      OSError: the file cannot be read.
      LibraryError: a ValueError: the file is no exported module, is cut off or changed, is for another kind of machine, for a CPU with
        features that this one lacks, for other versions, or was not compiled from `model`; or the parameters are not those that were
        exported with it. None of its code has run.
    """
    path = Path(path)
    try:
        return _load(path, None if model is None else Path(model), None if params is None else Path(params))
    except (ElfError, DeviceError) as error:
        raise LibraryError(f"{path}: {error}") from None


def library_metadata(path: _File) -> dict[str, Any]:
    """The metadata of an exported module; none of its code is run. Raises OSError and LibraryError as `load_module` does."""
    path = Path(path)
    try:
        with _mapped(path) as content:
            return _checked(path, content)[0]
    except ElfError as error:
        raise LibraryError(f"{path}: {error}") from None


# ---- checks -------------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _mapped(path: Path) -> Iterator[memoryview]:
    """The contents of a file while they are looked at."""
    with open_file(path) as file:
        if not os.fstat(file.fileno()).st_size:
            raise ElfError("expected a shared library (ELF), found an empty file")
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    view = memoryview(memory)
    try:
        yield view
    finally:
        # What is still referred to, such as by the frames of an error, goes later.
        with contextlib.suppress(BufferError):
            view.release()
            memory.close()


def _file_digest(content: memoryview, sections: Mapping[str, SectionHeader]) -> bytes:
    """SHA-256 of a library as described above."""
    left_out = {name: place for name, place in sections.items() if name == SECTIONS.digest or name.startswith(SECTIONS.params)}
    holes = sorted((place.offset, place.offset + place.size, name == SECTIONS.digest) for name, place in left_out.items())
    found, at = hashlib.sha256(), 0
    for begin, end, is_digest in holes:
        found.update(content[at:begin])
        found.update(bytes(DIGEST_BYTES) if is_digest else b"")
        at = end
    found.update(content[at:])
    return found.digest()


def seal(path: Path) -> None:
    """Writes the digest of a library that was just linked into it."""
    with _mapped(path) as content:
        sections = shared_sections(content)
        digest = _file_digest(content, sections)
    with path.open("r+b") as file:
        file.seek(sections[SECTIONS.digest].offset)
        file.write(digest)


def _checked(path: Path, content: memoryview) -> tuple[dict[str, Any], dict[str, SectionHeader]]:
    """The metadata and the sections of a library, of which all but the parameters is as it was written."""
    sections = shared_sections(content)
    if SECTIONS.metadata not in sections or SECTIONS.digest not in sections:
        raise LibraryError(f"{path}: expected a module that relayc exported, found another library")
    place, digest = sections[SECTIONS.metadata], sections[SECTIONS.digest]
    if bytes(content[digest.offset : digest.offset + digest.size]) != _file_digest(content, sections):
        raise LibraryError(f"{path}: expected a library as it was exported, found one that was changed since (its SHA-256 is another)")
    metadata = json.loads(bytes(content[place.offset : place.offset + place.size]))
    version = metadata["format"]
    if version != FORMAT:
        whose = f"relayc {metadata['relayc']}"
        mend = f"load it with {whose} or newer" if version > FORMAT else "export it again"
        raise LibraryError(f"{path}: expected a library of format {FORMAT}, found format {version} of {whose}; {mend}")
    return metadata, sections


def _abi(version: str) -> tuple[str, ...]:
    """What of a version of tvm-ffi its C ABI depends on."""
    return tuple(version.split(".")[:2])


def _check_versions(path: Path, metadata: Mapping[str, Any]) -> None:
    wanted, found = metadata["tvm_ffi"], tvm_ffi.__version__
    if _abi(wanted) != _abi(found):
        raise LibraryError(f"{path}: expected apache-tvm-ffi {'.'.join(_abi(wanted))}, as the library was made with, found {found}")


def _check_model(path: Path, metadata: Mapping[str, Any], model: Path) -> None:
    source = metadata["source"]
    for name, wanted in {model.name: source["sha256"], **source["files"]}.items():
        file = model if name == model.name else model.parent / name
        found = file_sha256(file)
        if found != wanted:
            made = f"one whose SHA-256 is {found[:12]}..., where the library was made from {source['name']}, {wanted[:12] or 'unknown'}..."
            raise LibraryError(f"{path}: expected a library made from {file}, found {made}: the library is stale")


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal. Raises OSError if the file cannot be read."""
    found = hashlib.sha256()
    with open_file(path) as file:
        while chunk := file.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()


# ---- loading ------------------------------------------------------------------------------------------------------------------------


def _load(path: Path, model: Path | None, given: Path | None) -> Module:
    with _mapped(path) as content, ThreadPoolExecutor(1) as pool:
        metadata, sections = _checked(path, content)
        _check_versions(path, metadata)
        if model is not None:
            _check_model(path, metadata, model)
        programs = _with_imports(metadata)
        kinds = [device_kind(program["program"]["device"]) for program in programs]
        host = device_kind(HOST)
        lacking = host.lacking(sorted({feature for program in programs for feature in program["features"]}))
        if lacking:
            raise LibraryError(f"{path}: expected a {HOST} with {', '.join(lacking)}, found {host.facts(0).name}, which lacks these")
        files = {program["identity"]: path.parent / name for program in programs if (name := program["params"]["file"])}
        if files and given is not None:
            files[metadata["identity"]] = given
        seen = [_params_seen(program, content, sections, files.get(program["identity"])) for program in programs]
        # Parameters are most of a file: they are checked while everything else is prepared.
        found = pool.submit(lambda: [checksums(params) for params in seen])
        library = host.open_library(path, entries_symbol(metadata["identity"]))
        fields = [program_fields(program["program"]) for program in programs]
        for program, sums in zip(programs, found.result(), strict=True):
            if sums != program["params"]["crc32"]:
                where = files.get(program["identity"], path)
                raise LibraryError(f"{where}: expected the parameters as they were exported, found some that were changed since (CRC-32)")
        kept = [params if p["identity"] in files else _library_params(library, p) for p, params in zip(programs, seen, strict=True)]
        codes = [_device_code(program, content, sections) for program in programs]
        owners = [kind.owner(library, code) for kind, code in zip(kinds, codes, strict=True)]
    made = {
        program["identity"]: Module(Artifact(functions=_functions(library, program), keep_alive=owner, params=params, **of))
        for program, owner, params, of in zip(programs, owners, kept, fields, strict=True)
    }
    for program in programs:
        for imported in program["imports"]:
            made[program["identity"]].import_module(made[imported["identity"]])
    return made[metadata["identity"]]


def _with_imports(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The metadata of a module and of all its imports, each once."""
    found = {metadata["identity"]: metadata}
    for imported in metadata["imports"]:
        found |= {program["identity"]: program for program in _with_imports(imported) if program["identity"] not in found}
    return list(found.values())


def _params_seen(program: Mapping[str, Any], content: memoryview, sections: Mapping[str, SectionHeader], file: Path | None) -> np.ndarray:
    """The parameters as stored: in the library, or mapped from the file beside it."""
    if file is not None:
        return _mapped_params(file, program)
    if not program["params"]["bytes"]:
        return aligned_empty(0)
    place = sections[params_section(program["identity"])]
    return np.frombuffer(content, np.uint8, place.size, place.offset)


def _device_code(program: Mapping[str, Any], content: memoryview, sections: Mapping[str, SectionHeader]) -> ObjectCode:
    """The code for devices in a library, if there is any."""
    place = sections.get(images_section(program["identity"]))
    images = b"" if place is None else bytes(content[place.offset : place.offset + place.size])
    return ObjectCode(b"", (), images, tuple(program.get("kernels", ())))


def _functions(library: ctypes.CDLL, program: Mapping[str, Any]) -> dict[str, int]:
    """The addresses of the packed entries."""
    names, entries = program["functions"], getattr(library, entries_symbol(program["identity"]))
    entries.restype = ctypes.c_void_p
    addresses = (ctypes.c_size_t * len(names)).from_address(entries())
    return dict(zip(names, addresses, strict=True))


def _library_params(library: ctypes.CDLL, metadata: Mapping[str, Any]) -> np.ndarray:
    """The parameters that a library has in memory."""
    if not metadata["params"]["bytes"]:
        return aligned_empty(0)
    memory = (ctypes.c_uint8 * metadata["params"]["bytes"]).in_dll(library, params_symbol(metadata["identity"]))
    params = np.frombuffer(memory, np.uint8)
    params.flags.writeable = False
    return params


def _mapped_params(path: Path, metadata: Mapping[str, Any]) -> np.ndarray:
    """A map of the parameters beside a library."""
    try:
        with open_file(path) as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise LibraryError(f"{path}: expected the parameters of the library, found no such file") from None
    except ValueError:
        raise LibraryError(f"{path}: expected the parameters of the library, found an empty file") from None
    try:
        texts = read_safetensors(memory, str(path))[1]
    except ValueError as error:
        raise LibraryError(str(error)) from None
    params = np.frombuffer(memory, np.uint8, offset=data_bytes(memory))
    if texts.get(IDENTITY) != metadata["identity"] or len(params) != metadata["params"]["bytes"]:
        raise LibraryError(f"{path}: expected the parameters that were exported with the library, found others")
    return params
