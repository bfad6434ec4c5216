"""Libraries that cannot be run here are errors before any of their code runs."""

import json
import platform
import struct
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import tvm_ffi
from onnx_models import weighted

import relayc
from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.targets.cpu.export.entries import Symbols, entries_text
from relayc.runtime import library
from relayc.runtime.elf import ElfError, read_headers, shared_sections
from relayc.runtime.export import ExportRequest
from relayc.runtime.library import SECTIONS, LibraryError, seal
from relayc.runtime.module import Module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model and its library."""
    found = tmp_path_factory.mktemp("library")
    onnx.save(weighted()[0], found / "model.onnx")
    relayc.compile(found / "model.onnx", cache=False).export_library(found / "model.so")
    return found


@pytest.fixture
def changed(folder, tmp_path, monkeypatch):
    """Gives the path of a copy of the library that a function has changed. Loading it must not get as far as to the system's loader."""

    def refuse(*_):
        raise AssertionError("a library was loaded that should not be")

    monkeypatch.setattr(relayc.runtime.device_kind("cpu").__class__, "open_library", refuse)

    def change(edit, sealed=False):
        content = bytearray((folder / "model.so").read_bytes())
        edited = edit(content)
        path = tmp_path / "model.so"
        path.write_bytes(content if edited is None else edited)
        if sealed:
            seal(path)
        return path

    return change


def section(content, name):
    found = next(place for key, place in shared_sections(memoryview(bytes(content))).items() if key.startswith(name))
    return slice(found.offset, found.offset + found.size)


def saying(**facts):
    """An edit of what a library says of itself, in as many bytes."""

    def edit(content):
        place = section(content, SECTIONS.metadata)
        said = json.loads(bytes(content[place])) | facts
        text = json.dumps(said, separators=(",", ":")).encode()
        room = place.stop - place.start
        while len(text) > room:  # a name that nothing depends on makes room
            said["identity"] = said["identity"][: len(said["identity"]) - (len(text) - room)]
            text = json.dumps(said, separators=(",", ":")).encode()
        content[place] = text.ljust(room)

    return edit


def refused(path, message, at=None, **options):
    with pytest.raises(LibraryError, match=message) as found:
        relayc.load_module(path, **options)
    assert str(found.value).startswith(f"{at or path}: ") and "\n" not in str(found.value)


def test_the_library_as_it_is_loads(folder):
    loaded = relayc.load_module(folder / "model.so", model=folder / "model.onnx")
    assert loaded.input_names == ("x",)
    assert not loaded._artifact.params.flags.writeable  # pages of the library


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_one_that_was_cut_off(changed, kept):
    refused(changed(lambda content: content[: int(kept * len(content))]), "expected a whole shared library, found its first [0-9]+ bytes")


def test_one_that_is_empty(changed):
    refused(changed(lambda content: b""), "found an empty file")


@pytest.mark.parametrize("place", [".ltext", ".lrodata", ".dynamic", SECTIONS.metadata, SECTIONS.digest])
def test_one_of_which_a_byte_was_changed(changed, place):
    def edit(content):
        content[section(content, place).start] ^= 1

    refused(changed(edit), "found one that was changed since")


def test_one_with_more_behind_it(changed):
    refused(changed(lambda content: content + b"more"), "found one that was changed since")


def test_parameters_that_were_changed(folder, tmp_path):
    content = bytearray((folder / "model.so").read_bytes())
    content[section(content, SECTIONS.params).start + 100] ^= 1
    (tmp_path / "model.so").write_bytes(content)
    refused(tmp_path / "model.so", r"expected the parameters as they were exported, found some that were changed since \(CRC-32\)")


@pytest.fixture
def beside(folder, tmp_path):
    """A library with its parameters beside it, and the file of these."""
    relayc.compile(folder / "model.onnx", cache=False).export_library(tmp_path / "apart.so", params="beside")
    return tmp_path / "apart.so", tmp_path / "apart.safetensors"


def test_parameters_beside_are_mapped(folder, beside):
    library, params = beside
    x = np.ones((1, 64), np.float32)
    wanted = relayc.load_module(folder / "model.so")["main"](x)
    loaded = relayc.load_module(library)
    np.testing.assert_array_equal(loaded["main"](x), wanted)
    assert library.stat().st_size < params.stat().st_size + (folder / "model.so").stat().st_size
    assert str(params) in Path("/proc/self/maps").read_text()
    arrays = relayc.runtime.load_param_dict_from_file(params)
    assert sum(array.nbytes for array in arrays.values()) >= 4 * 64 * 64
    moved = params.rename(params.with_name("moved.safetensors"))
    refused(library, "expected the parameters of the library, found no such file", at=params)
    np.testing.assert_array_equal(relayc.load_module(library, params=moved)["main"](x), wanted)
    with pytest.raises(ValueError, match=r"main: expected relayc\.load_module, which maps the parameters in apart\.safetensors"):
        tvm_ffi.load_module(library)["main"](x)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda content: content[: len(content) // 2], "expected a whole safetensors file, found "),
        (lambda content: b"", "found an empty file"),
        (lambda content: content[:-1] + bytes([content[-1] ^ 1]), r"found some that were changed since \(CRC-32\)"),
        (lambda content: content.replace(b'relayc.identity":"', b'relayc.identity":"0', 1).replace(b" ", b"", 1), "found others"),
    ],
    ids=["cut off", "empty", "changed", "of another library"],
)
def test_parameters_beside_that_are_not_those_of_the_library(beside, edit, message):
    library, params = beside
    params.write_bytes(edit(params.read_bytes()))
    refused(library, message, at=params)


def test_one_for_another_kind_of_machine(changed):
    def edit(content):
        content[18:20] = (183).to_bytes(2, "little")

    refused(changed(edit), "expected a library for x86_64, found one for aarch64")


def test_what_is_no_library(changed, folder):
    refused(changed(lambda content: b"PK\3\4 something else"), r"expected a shared library \(ELF\), found another kind of file")
    with pytest.raises(LibraryError, match="expected a module that relayc exported, found another library"):
        relayc.load_module(relayc.runtime.openmp_library())


@pytest.mark.parametrize(("version", "mend"), [(library.FORMAT + 1, "or newer"), (0, "export it again")])
def test_one_of_another_format(changed, version, mend):
    path = changed(saying(format=version, relayc="9.8"), sealed=True)
    refused(path, f"expected a library of format {library.FORMAT}, found format {version} of relayc 9.8; .*{mend}")


def test_one_for_another_abi_of_tvm_ffi(changed):
    refused(changed(saying(tvm_ffi="0.9.1"), sealed=True), r"expected apache-tvm-ffi 0\.9, as the library was made with, found 0\.1")


def test_one_for_another_cpu(changed):
    refused(changed(saying(features=["sse2", "avx1024"]), sealed=True), "expected a cpu with avx1024, found .*, which lacks these")


def test_one_for_another_kind_of_device(changed):
    def edit(content):
        place = section(content, SECTIONS.metadata)
        content[place] = bytes(content[place]).replace(b'"device":"cpu"', b'"device":"npu"')

    refused(changed(edit, sealed=True), "expected a kind out of cpu, cuda, found npu")


def test_one_that_was_made_from_another_model(folder, tmp_path):
    model = onnx.load(folder / "model.onnx")
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.zeros((64, 64), np.float32), "w"))
    onnx.save(model, tmp_path / "model.onnx")
    refused(
        folder / "model.so", r"expected a library made from .*model\.onnx, found .*: the library is stale", model=tmp_path / "model.onnx"
    )


def test_files_beside_the_model_are_checked(tmp_path):
    model, weights = tmp_path / "model.onnx", tmp_path / "w.bin"
    for path in (model, weights):
        path.write_bytes(path.name.encode())
    source = {"name": "model.onnx", "sha256": library.file_sha256(model), "files": {"w.bin": library.file_sha256(weights)}}
    library._check_model(tmp_path / "model.so", {"source": source}, model)
    weights.write_bytes(b"other")
    with pytest.raises(LibraryError, match=r"expected a library made from .*w\.bin, found .*: the library is stale"):
        library._check_model(tmp_path / "model.so", {"source": source}, model)


@pytest.mark.parametrize(
    ("name", "beside", "message"),
    [
        ("scaled.o", True, "export_library: params: expected 'embedded' for an object, found 'beside'"),
        ("scaled.dll", False, r"export_library: expected a path that ends in .so or .o, found .*scaled\.dll"),
    ],
)
def test_what_is_no_way_to_export(tmp_path, name, beside, message):
    with pytest.raises(ValueError, match=message):
        ExportRequest(tmp_path / name, beside, "", False)
    with pytest.raises(ValueError, match="export_library: params: expected 'embedded' or 'beside', found 'inside'"):
        Module.export_library(SimpleNamespace(exporter=ExportRequest), tmp_path / name, params="inside")
    (tmp_path / name).write_bytes(b"text")
    with pytest.raises(LibraryError, match=rf"{name}: expected a shared library \(ELF\)"):
        library.library_metadata(tmp_path / name)


@pytest.mark.parametrize("permissions", [(), ("tiles",)])
def test_functions_ask_for_tile_registers_before_anything_else(permissions):
    """Of a program with AMX tiles: the program and its kernels."""
    artifact = replace(relayc.compile(weighted()[0])._artifact, permissions=permissions)
    text, names = entries_text(artifact, Symbols("entries", "params"), "net_", {}, "", ())
    with make_context():
        module = ir.Module.parse(text)
        functions = {op.attributes["sym_name"].value: op for op in module.body.operations if "function_type" in op.attributes}
        asked = [name for name, f in functions.items() if "call @__relayc_prepare()" in str(f).partition("cond_br")[0]]
    assert ("__relayc_prepare" in functions) == bool(permissions)
    called = [name for name in names if name.startswith("__tvm_ffi_net_")]
    assert len(called) == len(artifact.functions) > 1 and asked == (called if permissions else [])


# ---- ELF files of a few bytes


def elf(magic=b"\x7fELF", bits=2, order=1, kind=3, machine=62, entry=64, count=3, names=1, section_kind=1, size=8, start=80):
    """A library of three sections: an empty one, the names, and .text of eight bytes at the end of the file."""
    header = struct.pack("<4sBB10xHHIQQQIHHHHHH", magic, bits, order, kind, machine, 1, 0, 0, start, 0, 64, 0, 0, entry, count, names)
    texts = b"\0.names\0.text\0".ljust(16, b"\0")
    rows = [(0,) * 10, (1, 3, 0, 0, 64, 14, 0, 0, 1, 0), (8, section_kind, 6, 0x1000, 272, size, 0, 0, 16, 0)]
    return header + texts + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows) + bytes(range(8))


def test_sections_of_a_small_library(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    found = shared_sections(memoryview(elf()))
    places = {name: (section.offset, section.size, section.address) for name, section in found.items()}
    assert places[".text"] == (272, 8, 0x1000) and places[".names"] == (64, 14, 0) and len(found) == 3
    assert shared_sections(memoryview(elf(section_kind=8, size=1 << 40)))[".text"].size == 1 << 40  # without bytes in the file
    assert len(shared_sections(memoryview(elf(section_kind=8)[:272]))) == 3  # nothing behind the table
    headers = read_headers(elf(kind=1), "object")
    assert (headers.kind, headers.machine, headers.names, headers.sections[2].flags, headers.sections[2].alignment) == (1, 62, 1, 6, 16)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (elf(kind=1), "expected a shared library, found an ELF file of type 1"),
        (elf(machine=243), "expected a library for x86_64, found one for riscv64"),
        (elf(machine=7), "expected a library for x86_64, found one for machine 7"),
        (elf(magic=b"\x7fELG"), r"expected a shared library \(ELF\), found another kind of file"),
        (elf(bits=1)[:64], "expected a shared library of 64 bits, little-endian, found another one"),
        (elf(order=2), "expected a shared library of 64 bits, little-endian, found another one"),
        (elf()[:63], "expected a whole shared library, found its first 63 bytes"),
        (elf()[:271], "expected a whole shared library, found its first 271 bytes"),
        (elf()[:-1], "expected a whole shared library, found its first 279 bytes"),
        (elf(entry=40), "expected a whole shared library, found its first 280 bytes"),
        (elf(names=3), "expected a whole shared library, found its first 280 bytes"),
        (elf(start=89), "expected a whole shared library, found its first 280 bytes"),
        (elf(size=9), "expected a whole shared library, found its first 280 bytes"),
    ],
)
def test_what_is_no_whole_library_of_this_machine(content, message, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(ElfError, match=f"^{message}$"):
        shared_sections(memoryview(content))
