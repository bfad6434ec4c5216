"""The on-disk cache of compiled programs: one file per program, named by the digest of its inputs.

A file contains metadata (JSON), object code and the parameter blob, which is mapped into memory when the program is loaded, so all
processes that run it share one copy. A file is written under a temporary name and then renamed, so readers never see an incomplete file and
writers do not conflict; a file that fails its checks is removed and counts as missing. If the total size exceeds the limit, the least
recently used files are removed.

A file is checked completely when it is loaded: the key, by which it is named; metadata and code by SHA-256, before use; parameters by
CRC-32 through the mapping that the program reads (0.3 s a gigabyte on one core). There are no later checks: writing into a file of the
cache, or truncating it, breaks the processes that run it (the latter by SIGBUS); removing files is always safe. Files of other users, and
folders that others can write, are not used. Models are identified by the SHA-256 of their contents, which is remembered for as long as the
file system reports that a file is unchanged.
"""

import dataclasses
import hashlib
import json
import mmap
import os
import shutil
import stat
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from isal import isal_zlib

from relayc.files import open_file, read_file
from relayc.runtime.artifact import Artifact, ObjectCode
from relayc.runtime.device import DeviceError, device_kind
from relayc.runtime.records import as_plain, program_fields, program_record

DEFAULT_LIMIT = 10 << 30
"""Maximum size of the cache in bytes, unless RELAYC_CACHE_SIZE specifies another."""

_MAGIC = b"relayc program A"
_SUFFIX = ".relayc"
_HEAD = struct.Struct("<16s32sQQ")
"""Magic, SHA-256 of the body, bytes of the body, bytes of the JSON text at its start. Object code is the rest of the body."""
_CHUNK = 16 << 20
"""Bytes of the blob, or of a file, per digest or write operation."""
_STALE_SECONDS = 3600
"""Age after which an unfinished file is assumed to have no writer."""
_NOTE_SUFFIX = ".digest"
"""Of files that record the digests of model files."""
_NOTE_SECONDS = 30 * 24 * 3600
"""Age after which a digest record is removed."""
_PART_SUFFIX = ".part"
"""Of compiled parts of programs."""
_PART_SECONDS = 30 * 24 * 3600
"""Time since the last use after which a compiled part is removed."""
_REST_NANOSECONDS = 2_000_000_000
"""How long a file must have been unmodified before its times prove that it is unchanged."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A program in the cache: file, bytes, time of last use (seconds since the epoch), and a description of its source."""

    path: Path
    num_bytes: int
    used: float
    source: str


@dataclasses.dataclass(frozen=True)
class Origin:
    """The source of a program, besides its key.

    Attributes:
      source: a description of the model for the user.
      files: external data of the model: digest by path relative to the model's folder.
    """

    source: str
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Cache:
    """The programs in a folder, limited to `limit` bytes in total."""

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        self.folder, self.limit = folder, limit

    @staticmethod
    def default() -> "Cache | None":
        """The cache configured by the environment: None with RELAYC_CACHE=0.

        RELAYC_CACHE_DIR is its folder (else relayc in XDG_CACHE_HOME, or in ~/.cache), RELAYC_CACHE_SIZE its limit in bytes, with K, M, G.

        Raises:
          ValueError: RELAYC_CACHE_SIZE is no size.
        """
        if os.environ.get("RELAYC_CACHE", "").lower() in ("0", "off", "no", "false"):
            return None
        return Cache(default_folder(), _size(os.environ.get("RELAYC_CACHE_SIZE", "")))

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    @property
    def is_trusted(self) -> bool:
        """Whether only this user (and root) can write files into the folder: code of others must not run."""
        try:
            found = self.folder.stat()
        except FileNotFoundError:
            return True  # it will be created for this user alone
        except OSError:
            return False
        return found.st_uid in (0, os.getuid()) and not found.st_mode & stat.S_IWOTH

    # ---- reading

    def load(self, key: str, folder: Path | None = None, runs_here: bool = True) -> Artifact | None:
        """The program of a key, ready to run; None if there is no such program owned by this user in a folder owned by this user, or none
        that matches the external data found in `folder`.

        If `runs_here` is false, the functions have address 0.

        Raises:
          DeviceError: the program is for a kind of device that is not registered in this process. It is kept.
        """
        path = self._path(key)
        if not self.is_trusted:
            return None
        try:
            with open_file(path) as file:
                if os.fstat(file.fileno()).st_uid not in (0, os.getuid()):
                    return None  # code is run only if it is ours
                artifact = _read(
                    file.fileno(), key, lambda name: self.file_digest(folder / name) if folder is not None else None, runs_here
                )
            if artifact is not None:
                os.utime(path)  # when it was last used
            return artifact
        except FileNotFoundError:
            return None
        except DeviceError as error:
            raise DeviceError(f"{path}: {error}") from error
        except (OSError, ValueError, KeyError, TypeError, struct.error):
            _remove(path)
            return None

    def entries(self) -> list[Entry]:
        """The programs, last used first."""
        found = [e for path in self._files(_SUFFIX) if (e := _entry(path)) is not None]
        return sorted(found, key=lambda e: -e.used)

    def _files(self, suffix: str) -> Iterator[Path]:
        return self.folder.glob(f"*{suffix}") if self.folder.is_dir() else iter(())

    def file_digest(self, path: Path) -> str:
        """Digest of a file's contents; remembered for as long as the file system reports that the file is unchanged.

        Raises OSError if the file cannot be read.
        """
        note = self.folder / f"{hashlib.sha256(str(path.resolve()).encode()).hexdigest()}{_NOTE_SUFFIX}"
        state = _state(path)
        try:
            known = json.loads(read_file(note))
            if known["state"] == state and self.is_trusted and note.stat().st_uid in (0, os.getuid()):
                return str(known["digest"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # not known yet
        found = file_digest(path)
        # Changes within one tick of the clock may leave the times unchanged, so a file must have been unmodified for a while.
        if _state(path) == state and time.time_ns() - max(state[:2]) > _REST_NANOSECONDS:
            self._try_to_write(note, lambda handle: _write_all(handle, json.dumps({"state": state, "digest": found}).encode(), 0))
        return found

    # ---- writing

    def store(self, key: str, artifact: Artifact, origin: Origin) -> bool:
        """Keeps a program. False if it has no object code, it does not fit, the folder is not this user's alone, or the file system fails:
        the cache never causes an error."""
        code = artifact.code
        if code is None or not self.is_trusted:
            return False
        needed = artifact.params.nbytes + code.num_bytes
        if needed > self.limit:
            return False
        written = self._try_to_write(self._path(key), lambda handle: _write(handle, key, artifact, code, origin), needed)
        self.evict()
        return written

    def _try_to_write(self, path: Path, write: Callable[[int], None], num_bytes: int = 0) -> bool:
        """Creates a file atomically with the content that `write` writes to a file descriptor; False on failure."""
        try:
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            if shutil.disk_usage(self.folder).free < 2 * num_bytes:
                return False
            handle, name = tempfile.mkstemp(".tmp", dir=self.folder)
        except OSError:
            return False
        try:
            try:
                write(handle)
            finally:
                os.close(handle)
            os.replace(name, path)
        except OSError:
            _remove(Path(name))
            return False
        except BaseException:
            _remove(Path(name))
            raise
        return True

    # ---- parts of programs

    def read_part(self, key: str) -> bytes | None:
        """The content that `write_part` stored under a key, a digest of all inputs; None if it is missing or fails the checks."""
        path = self.folder / f"{key}{_PART_SUFFIX}"
        try:
            if not self.is_trusted or path.stat().st_uid not in (0, os.getuid()):
                return None
            data = read_file(path)
            if hashlib.sha256(data[32:]).digest() != data[:32]:
                return None
            os.utime(path)  # when it was last used
        except OSError:
            return None
        return data[32:]

    def write_part(self, key: str, content: bytes) -> bool:
        """Keeps a compiled part of a program for as long as it is used; False on failure."""
        if not self.is_trusted:
            return False
        data = hashlib.sha256(content).digest() + content
        return self._try_to_write(self.folder / f"{key}{_PART_SUFFIX}", lambda handle: _write_all(handle, data, 0), len(data))

    def evict(self) -> None:
        """Removes the least recently used programs until the rest fits, and the files of writers that died."""
        now = time.time()
        for suffix, age in ((".tmp", _STALE_SECONDS), (_NOTE_SUFFIX, _NOTE_SECONDS), (_PART_SUFFIX, _PART_SECONDS)):
            for path in self._files(suffix):
                if now - _modified(path, now) > age:
                    _remove(path)
        total = 0
        for entry in self.entries():
            total += entry.num_bytes
            if total > self.limit:
                _remove(entry.path)

    def clear(self) -> int:
        """Removes all programs and returns their number."""
        paths = list(self._files(_SUFFIX))
        for path in [*paths, *self._files(".tmp"), *self._files(_NOTE_SUFFIX), *self._files(_PART_SUFFIX)]:
            _remove(path)
        return len(paths)


def default_folder() -> Path:
    """The cache folder: RELAYC_CACHE_DIR, otherwise relayc in the user's cache folder (XDG Base Directory Specification)."""
    if folder := os.environ.get("RELAYC_CACHE_DIR"):
        return Path(folder).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "relayc"


def file_digest(path: Path) -> str:
    """Digest of a file's contents, computed on all cores. Raises OSError if the file cannot be read."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            return digest([])
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as contents, memoryview(contents) as view:
            return digest([view[i : i + _CHUNK] for i in range(0, size, _CHUNK)])


def digest(parts: Sequence[Any]) -> str:
    """SHA-256 of the SHA-256 of each part, in hexadecimal; parts are bytes or contiguous memory."""
    return hashlib.sha256(b"".join(_each(lambda part: hashlib.sha256(part).digest(), parts))).hexdigest()


def _state(path: Path) -> list[int]:
    """The state of a file according to the file system: it changes whenever the file does."""
    found = path.stat()
    return [found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev]


def _each(function: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
    """`function` of each part, on all cores: digests are computed without the interpreter lock."""
    if len(parts) < 2:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, parts))


# ---- the file ----------------------------------------------------------------------------------------------------------------------


def checksums(blob: np.ndarray) -> list[int]:
    """CRC-32 of each 16 MiB of memory of one dimension, computed by all cores."""
    return _each(isal_zlib.crc32, [blob[i : i + _CHUNK] for i in range(0, len(blob), _CHUNK)])


def _params_at(body_bytes: int) -> int:
    """Offset of the blob: page-aligned, so that it can be mapped."""
    return -(-(_HEAD.size + body_bytes) // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY


def _write(handle: int, key: str, artifact: Artifact, code: ObjectCode, origin: Origin) -> None:
    objects = [code.root, *(content for _, content in code.parts), code.images]
    meta = {
        "key": key,
        "source": origin.source,
        "files": dict(origin.files),
        "program": program_record(artifact),
        "functions": list(artifact.functions),
        "parts": [list(names) for names, _ in code.parts],
        "kernels": list(code.kernels),
        "objects": [len(content) for content in objects],
        "params": {"bytes": artifact.params.nbytes, "crc32": checksums(artifact.params)},
    }
    text = json.dumps(meta, default=as_plain, separators=(",", ":")).encode()
    body = b"".join([text, *objects])
    _write_all(handle, _HEAD.pack(_MAGIC, hashlib.sha256(body).digest(), len(body), len(text)) + body, 0)
    _write_all(handle, artifact.params, _params_at(len(body)))


def _write_all(handle: int, content: Any, at: int) -> None:
    with memoryview(content).cast("B") as view:
        done = 0
        while done < len(view):
            done += os.pwrite(handle, view[done : done + _CHUNK], at + done)  # far faster than all at once


def _body(handle: int) -> tuple[dict[str, Any], bytes, int]:
    """Metadata, object code and the offset of the blob. Raises ValueError if the file fails the checks."""
    magic, checksum, body_bytes, text_bytes = _HEAD.unpack(os.pread(handle, _HEAD.size, 0))
    if magic != _MAGIC or body_bytes > os.fstat(handle).st_size:
        raise ValueError("not a program")
    body = os.pread(handle, body_bytes, _HEAD.size)
    if hashlib.sha256(body).digest() != checksum:
        raise ValueError("a damaged program")
    return json.loads(body[:text_bytes]), body[text_bytes:], _params_at(body_bytes)


def _read(handle: int, key: str, digest_of: Callable[[str], str | None], runs_here: bool) -> Artifact | None:
    meta, objects, params_at = _body(handle)
    if meta["key"] != key:
        raise ValueError("another program, under the name of this one")
    for name, wanted in meta["files"].items():
        try:
            if digest_of(name) != wanted:
                return None
        except OSError:
            return None
    params = _map(handle, params_at, meta["params"]["bytes"])
    if checksums(params) != meta["params"]["crc32"]:
        raise ValueError("damaged parameters")
    root, *parts, images = [objects[begin:end] for begin, end in pairwise(accumulate(meta["objects"], initial=0))]
    named = tuple((tuple(names), content) for names, content in zip(meta["parts"], parts, strict=True))
    code = ObjectCode(root, named, images, tuple(meta["kernels"]))
    device, functions, owner = device_kind(meta["program"]["device"]), dict.fromkeys(meta["functions"], 0), None
    if runs_here:
        addresses, owner = device.load(code, len(functions))
        functions = dict(zip(functions, addresses, strict=True))
    return Artifact(functions=functions, keep_alive=owner, params=params, code=code, **program_fields(meta["program"]))


def _map(handle: int, offset: int, size: int) -> np.ndarray:
    mapped = mmap.mmap(handle, size, mmap.MAP_SHARED, mmap.PROT_READ, offset=offset)
    return np.frombuffer(mapped, np.uint8)


# ---- files -------------------------------------------------------------------------------------------------------------------------


def _entry(path: Path) -> Entry | None:
    try:
        status = path.stat()
        with open_file(path) as file:
            _, _, _, text_bytes = _HEAD.unpack(file.read(_HEAD.size))
            source = str(json.loads(file.read(text_bytes))["source"])
    except OSError:
        return None
    except (ValueError, KeyError, TypeError, struct.error):
        return Entry(path, status.st_size, 0.0, "damaged")
    return Entry(path, status.st_size, status.st_mtime, source)


def _modified(path: Path, default: float) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return default


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # a folder that may not be written: the entry stays, and is not used


def _size(text: str) -> int:
    if not text:
        return DEFAULT_LIMIT
    unit = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper(), 0)
    number = text[:-1] if unit else text
    if not number.isdigit():
        raise ValueError(f"RELAYC_CACHE_SIZE: expected bytes such as 500000, 500M or 10G, found {text!r}")
    return int(number) << unit
