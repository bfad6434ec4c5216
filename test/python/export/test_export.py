"""Exported modules give what the module gives that they were made of, loaded in each of the four ways."""

import ctypes
import dataclasses
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import tvm_ffi
from onnx import TensorProto, helper
from onnx_models import model_of, weighted

import relayc
from relayc import TensorType, relay
from relayc.pipelines.targets.cpu import engine
from relayc.pipelines.targets.cpu.export import library, linker
from relayc.pipelines.targets.cpu.export.library import export_library
from relayc.pipelines.targets.cpu.export.objects import Data, _Object, with_names, write_data_object
from relayc.runtime import Module
from relayc.runtime.elf import read_headers
from relayc.runtime.export import ExportedProgram, ExportRequest
from relayc.tools.runtime_wheel import write_runtime_wheel

ROOT = Path(relayc.__file__).parent
RNG = np.random.default_rng(0)
FLOATS = RNG.standard_normal((3, 8)).astype(np.float32)


def functions():
    """Two public functions that share a private one, with a loop whose turns depend on data, a branch and several outputs."""
    vector, scalar = TensorType((8,), "float32"), TensorType((), "float32")
    program = relayc.Program()
    op = program.op

    @program.function(private=True, x=vector)
    def norm(x):
        return op.sqrt(op.sum(x * x, axis=[0]))

    @program.function(x=vector)
    def halved(x):
        """Halves x until its norm is at most one; gives that, and twice of it where its first element is positive, else its negative."""
        (small,) = program.while_loop(lambda v: program.call("norm", v) > 1.0, lambda v: (v * 0.5,), (x,))
        first = op.reshape(op.strided_slice(small, begin=[0], end=[1], axes=[0]), newshape=[])
        return small, program.if_else(first > 0.0, lambda: small + small, lambda: -small)

    @program.function(x=vector, y=vector, s=scalar)
    def distance(x, y, s):
        return program.call("norm", x - y) * s

    return program.module()


def symbolic():
    """A product over a symbolic batch, of a dimension that is an expression of another."""
    w = np.arange(32, dtype=np.float32).reshape(8, 4) / 32
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Concat", ["p", "p"], ["y"], axis=0)]
    return model_of(nodes, {"x": ["batch", 8]}, initializers={"w": w})


def late():
    """The places of what is positive: how many there are is known only once it has run."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("NonZero", ["r"], ["places"]),
        helper.make_node("Exp", ["x"], ["e"]),
    ]
    return model_of(nodes, {"x": [3, 8]}, outputs=("places", "e"))


def product():
    return weighted()[0]


CASES = {
    "product": (product, [("main", [RNG.standard_normal((1, 64)).astype(np.float32)])]),
    "symbolic": (symbolic, [("main", [FLOATS]), ("main", [FLOATS[:1]]), ("main", [FLOATS[:0]])]),
    "late": (late, [("main", [FLOATS]), ("main", [-np.abs(FLOATS)])]),
    "functions": (
        functions,
        [("halved", [8 * FLOATS[0]]), ("halved", [-FLOATS[0]]), ("distance", [FLOATS[0], FLOATS[1], np.float32(2).reshape(())])],
    ),
}


def as_list(results):
    return list(results) if isinstance(results, (tuple, list, tvm_ffi.Array)) else [results]


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Every case compiled and exported: the module, the library, and a file with calls and what they give."""
    folder = tmp_path_factory.mktemp("export")
    found = {}
    for name, (model, calls) in CASES.items():
        module = relayc.compile(model(), cache=False)
        path = folder / f"{name}.so"
        module.export_library(path)
        arrays = {}
        for i, (function, inputs) in enumerate(calls):
            arrays.update({f"{i}/{function}/in{j}": array for j, array in enumerate(inputs)})
            arrays.update({f"{i}/{function}/out{j}": array for j, array in enumerate(as_list(module[function](*inputs)))})
        np.savez(folder / f"{name}.npz", **arrays)
        found[name] = module, path
    return found


CHECK = """
import sys
import numpy as np

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in absent or name in absent or any(name.startswith(a + ".") for a in absent):
            raise ModuleNotFoundError("absent here: " + name)

absent = sys.argv[1].split(",")
sys.meta_path.insert(0, Absent())

def each(path):
    found = {}
    for key, array in np.load(path.replace(".so", ".npz")).items():
        i, function, name = key.split("/")
        found.setdefault((int(i), function), ([], []))[name.startswith("out")].append(array)
    return [(function, *arrays) for (_, function), arrays in sorted(found.items())]

def same(wanted, found):
    found = [np.from_dlpack(f) if not isinstance(f, np.ndarray) else f for f in found]
    assert len(wanted) == len(found), (len(wanted), len(found))
    for w, f in zip(wanted, found):
        np.testing.assert_array_equal(w, f)
"""


def in_another_process(code, absent, *arguments):
    """Runs code in a process that cannot import some modules, and has relayc only from this checkout."""
    command = [sys.executable, "-c", CHECK + code, ",".join(absent), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT.parent), "PATH": "/usr/bin:/bin"}, cwd="/")
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


COMPILER = ("torch_mlir", "onnx", "rich", "relayc.dialects", "relayc.frontend", "relayc.pipelines", "relayc.tools")


def test_the_runtime_alone_loads_and_runs_libraries(exported):
    code = """
import relayc
for path in sys.argv[2:]:
    module = relayc.load_module(path)
    for function, inputs, outputs in each(path):
        found = module[function](*inputs)
        same(outputs, found if isinstance(found, tuple) else [found])
"""
    in_another_process(code, COMPILER, *[path for _, path in exported.values()])


def test_the_wheel_of_the_runtime_has_all_that_it_needs(exported, tmp_path):
    wheel = write_runtime_wheel(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
        names = archive.namelist()
    assert not [name for name in names if name.split("/")[1] in ("pipelines", "frontend", "dialects", "tools", "bench")]
    (metadata,) = (tmp_path / "installed").glob("relayc_runtime-*.dist-info/METADATA")
    wanted = [line.split()[1] for line in metadata.read_text().splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert {re.split("[<>=;]", name)[0] for name in wanted} == {
        "apache-tvm-ffi",
        "intel-openmp",
        "isal",
        "ml_dtypes",
        "numpy",
        "typing-extensions",
    }
    code = """
sys.meta_path = [finder for finder in sys.meta_path if "__editable__" not in repr(finder)]
sys.path.insert(0, sys.argv[2])
import relayc
assert relayc.__file__.startswith(sys.argv[2]), relayc.__file__
for function, inputs, outputs in each(sys.argv[3]):
    same(outputs, [relayc.load_module(sys.argv[3])[function](*inputs)])
packages = {name.split(".")[0] for name, module in sys.modules.items() if "site-packages" in str(getattr(module, "__file__", ""))}
known = {"tvm_ffi", "numpy", "ml_dtypes", "isal", "typing_extensions", "cuda"}  # tvm-ffi imports cuda-bindings where they are
assert {name for name in packages if not name.startswith("_")} <= known, packages
try:
    relayc.compile
except ModuleNotFoundError as error:
    assert str(error) == "relayc.compile needs the compiler: install the package relayc in place of relayc-runtime"
else:
    raise AssertionError("the compiler was found")
"""
    in_another_process(code, ("torch_mlir", "onnx", "rich", "torch"), tmp_path / "installed", exported["symbolic"][1])


def test_tvm_ffi_alone_loads_and_runs_libraries(exported):
    code = """
import tvm_ffi
for path in sys.argv[2:]:
    module = tvm_ffi.load_module(path)
    for function, inputs, outputs in each(path):
        found = module[function](*inputs)
        same(outputs, [found] if isinstance(found, tvm_ffi.Tensor) else list(found))
"""
    in_another_process(code, (*COMPILER, "relayc"), *[path for _, path in exported.values()])


def test_outputs_that_are_given_are_written(exported):
    module, path = exported["functions"]
    library = tvm_ffi.load_module(path)
    x = 8 * FLOATS[0]
    small, other = np.zeros(8, np.float32), np.zeros(8, np.float32)
    assert library["halved"](x, small, other) is None
    # A call that fails lets go of no tensors of the call before it.
    made = library["halved"](x)
    with pytest.raises(TypeError, match=r"expected float32\[8\], found float64"):
        library["halved"](x.astype(np.float64), small, other)
    for wanted, *found in zip(module["halved"](x), (small, other), map(np.from_dlpack, made), strict=True):
        np.testing.assert_array_equal(found, [wanted] * 2)


def test_kernels_are_functions_of_the_library(exported):
    module, path = exported["product"]
    kernel = module.kernels[0]
    assert kernel.name in relayc.load_module(path).function_names()
    assert tvm_ffi.load_module(path).implements_function(kernel.name)


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ([], TypeError, "main: expected 1 input, or 2 arguments with the output, found 0 arguments"),
        ([FLOATS.astype(np.float64)], TypeError, r"main: argument 0 'x': expected float32\[batch, 8\], found float64\[3, 8\]"),
        ([FLOATS[0]], ValueError, r"expected float32\[batch, 8\], found float32\[8\]"),
        ([1], TypeError, "found a value that is not a tensor"),
    ],
)
def test_wrong_arguments_are_errors_that_say_what_was_expected(exported, inputs, error, message):
    library = tvm_ffi.load_module(exported["symbolic"][1])
    with pytest.raises(error, match=message):
        library["main"](*inputs)


def test_functions_say_what_they_take_and_what_they_were_made_from(exported):
    library = tvm_ffi.load_module(exported["symbolic"][1])
    about = library.get_function_metadata("main")
    assert json.loads(about["type_schema"])["type"] == "ffi.Function"
    said = about["relayc"]
    assert said["inputs"] == [{"name": "x", "shape": ["batch", 8], "dtype": "float32"}]
    assert said["outputs"] == [{"name": "y", "shape": ["2*batch", 4], "dtype": "float32"}]
    assert said["symbols"] == ["batch"] and said["target"].startswith("cpu ") and said["relayc"] == relayc.__version__
    assert library.get_function_doc("main") == "main(x: float32[batch, 8]) -> (y: float32[2*batch, 4])"


def test_code_in_memory_only_is_not_exported(exported, tmp_path):
    module, _ = exported["symbolic"]
    program = ExportedProgram(dataclasses.replace(module._artifact, code=None), {}, ())
    with pytest.raises(ValueError, match="export_library: expected a module made of object files, found one whose code is in memory only"):
        export_library(program, ExportRequest(tmp_path / "memory.so", False, "", False))


def test_a_loaded_module_is_a_module_without_a_compiler(exported, tmp_path):
    module, path = exported["symbolic"]
    loaded = relayc.load_module(path)
    assert isinstance(loaded, Module)
    assert (loaded.inputs, loaded.outputs, loaded.kernels, loaded.target) == (module.inputs, module.outputs, module.kernels, module.target)
    assert loaded.profile([FLOATS], repeat=1).rows
    with pytest.raises(ValueError, match="export_library: expected a module that"):
        loaded.export_library(tmp_path / "again.so")


def test_kernels_that_were_compiled_in_parts_are_linked(monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "MIN_PART_OPS", 1)
    monkeypatch.setattr(engine, "usable_cpus", lambda: 2)
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("Softmax", ["e"], ["s"]),
        helper.make_node("CumSum", ["s", "axis"], ["y"]),
    ]
    module = relayc.compile(model_of(nodes, {"x": [3, 8]}, initializers={"axis": np.array(1)}), cache=False)
    assert len(module._artifact.code.parts) >= 2
    module.export_library(tmp_path / "parts.so")
    np.testing.assert_array_equal(relayc.load_module(tmp_path / "parts.so")["main"](FLOATS), module["main"](FLOATS))


def test_symbols_that_become_internal_keep_their_kinds():
    def kinds(content):
        found = _Object(content)
        return {found.name(symbol): symbol[1] & 15 for symbol in found.symbols[1:]}

    content = relayc.compile(model_of([helper.make_node("Exp", ["x"], ["y"])], {"x": [3, 8]}))._artifact.code.root
    found = kinds(content)
    assert kinds(with_names(content, {})) == found and set(found.values()) >= {1, 2}  # objects and functions


def test_a_library_that_is_replaced_is_loaded_anew(tmp_path):
    path = tmp_path / "model.so"
    for operator in ("Exp", "Relu", "Neg"):
        module = relayc.compile(model_of([helper.make_node(operator, ["x"], ["y"])], {"x": [3, 8]}), cache=False)
        module.export_library(path)
        np.testing.assert_array_equal(relayc.load_module(path)["main"](FLOATS), module["main"](FLOATS))


def test_memory_that_is_kept_grows_with_the_calls(tmp_path):
    """By 64 bytes too: what is written behind a block is found when it is freed."""
    nodes = [helper.make_node("Softmax", ["x"], ["s"]), helper.make_node("CumSum", ["s", "axis"], ["y"])]
    path = tmp_path / "grows.so"
    relayc.compile(model_of(nodes, {"x": ["n"]}, initializers={"axis": np.array(0)}), cache=False).export_library(path)
    code = """
import tvm_ffi
library = tvm_ffi.load_module(sys.argv[2])
for least in (16, 1024, 4096):
    for n in (least, least + 16, least + 17, least + 32, least + 48, 2 * least):
        x = np.linspace(-4, 4, n, dtype=np.float32)
        powers = np.exp(x.astype(np.float64))
        found = np.from_dlpack(library["main"](x))
        np.testing.assert_allclose(found, (powers / powers.sum()).cumsum(), rtol=n * 2.0**-22)
"""
    in_another_process(code, COMPILER, path)


def test_programs_with_strings_need_the_runtime(tmp_path):
    node = helper.make_node("StringConcat", ["a", "b"], ["y"])
    module = relayc.compile(model_of([node], {name: (TensorProto.STRING, [2]) for name in "ab"}), cache=False)
    module.export_library(tmp_path / "text.so")
    a, b = np.array(["x", "ä"], object), np.array(["y", "z"], object)
    assert relayc.load_module(tmp_path / "text.so")["main"](a, b).tolist() == ["xy", "äz"]
    with pytest.raises(ValueError, match=r"expected relayc\.load_module for a program with strings"):
        tvm_ffi.load_module(tmp_path / "text.so")["main"](np.zeros(2, np.int64), np.zeros(2, np.int64))


@pytest.mark.parametrize(
    ("inputs", "first"),
    [
        ({"s": (TensorProto.STRING, [2])}, [("Identity", ["s"], ["y"])]),
        ({"i": (TensorProto.INT64, [])}, [("SequenceConstruct", ["x", "x"], ["q"]), ("SequenceAt", ["q", "i"], ["y"])]),
    ],
    ids=["a string among the results", "a sequence within"],
)
def test_programs_with_some_strings_or_sequences_need_the_runtime(inputs, first, tmp_path):
    nodes, inputs = [*first, ("Neg", ["x"], ["z"])], {**inputs, "x": [3]}
    module = relayc.compile(model_of([helper.make_node(*node) for node in nodes], inputs, ["y", "z"]), cache=False)
    module.export_library(tmp_path / "some.so")
    with pytest.raises(ValueError, match=r"expected relayc\.load_module for a program with strings or sequences"):
        tvm_ffi.load_module(tmp_path / "some.so")["main"](*[np.zeros(3, np.float32)] * len(inputs))


def test_memory_goes_in_and_out_without_a_copy(exported):
    """As torch has it: a producer and a consumer that know nothing but DLPack."""

    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    module, path = exported["product"]
    x, y = RNG.standard_normal((1, 64)).astype(np.float32), np.zeros((1, 64), np.float32)
    for main in (tvm_ffi.load_module(path)["main"], lambda x, out: relayc.load_module(path)["main"](x, out=out)):
        y[...] = 0
        main(Foreign(x), Foreign(y))
        np.testing.assert_array_equal(y, module["main"](x))


def test_torch_tensors_go_in_and_out_without_a_copy(exported):
    torch = pytest.importorskip("torch")
    module, path = exported["product"]
    x = torch.randn(1, 64)
    y = torch.zeros(1, 64)
    library = tvm_ffi.load_module(path)
    library["main"](x, y)
    np.testing.assert_array_equal(y.numpy(), module["main"](x.numpy()))
    assert isinstance(library["main"](x), torch.Tensor)


# ---- linking ------------------------------------------------------------------------------------------------------------------------

CPP = """
#include <tvm/ffi/tvm_ffi.h>
#include <tvm/ffi/extra/module.h>
#include <cstdio>
namespace ffi = tvm::ffi;
int main(int argc, char** argv) {
  float x[24];
  for (int i = 0; i < 24; ++i) x[i] = static_cast<float>(i);
  int64_t shape[] = {3, 8}, strides[] = {8, 1};
  DLTensor input{x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0};
  ffi::Module module = ffi::Module::LoadFromFile(argv[1]);
  ffi::Tensor y = module->GetFunction("main").value()(&input).cast<ffi::Tensor>();
  for (int64_t i = 0; i < y.numel(); ++i) std::printf("%.9g ", static_cast<float*>(y.data_ptr())[i]);
}
"""

C = """
#include "scaled.h"
#include <stdio.h>
#include <tvm/ffi/c_api.h>
int main(void) {
  float x[24], y[24];
  for (int i = 0; i < 24; ++i) x[i] = (float)i;
  int64_t shape[] = {3, 8}, out[] = {6, 4};
  DLTensor tensors[] = {{x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, 0, 0}, {y, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, out, 0, 0}};
  TVMFFIAny arguments[2] = {{kTVMFFIDLTensorPtr}, {kTVMFFIDLTensorPtr}}, result = {0};
  arguments[0].v_ptr = &tensors[0];
  arguments[1].v_ptr = &tensors[1];
  if (__tvm_ffi_my_main(0, arguments, 2, &result)) return 1;
  for (int i = 0; i < 24; ++i) printf("%.9g ", y[i]);
  return 0;
}
"""

needs_a_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")


def built(tmp_path, compiler, source, *more):
    """The program of a source file, with tvm-ffi's headers and library."""
    from tvm_ffi import libinfo

    file, library = tmp_path / source[0], Path(libinfo.find_libtvm_ffi())
    file.write_text(source[1])
    includes = [
        option for path in dict.fromkeys((libinfo.find_include_path(), libinfo.find_dlpack_include_path())) for option in ("-I", path)
    ]
    run_path = f"-Wl,-rpath,{library.parent}"
    program = tmp_path / "program"
    command = [compiler, *includes, str(file), *map(str, more), str(library), "-lm", run_path, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def numbers(command):
    return np.array(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout.split(), np.float32)


COUNTED = np.arange(24, dtype=np.float32).reshape(3, 8)


@needs_a_compiler
def test_a_program_in_cpp_loads_a_library(exported, tmp_path):
    module, path = exported["symbolic"]
    program = built(tmp_path, "c++", ("program.cc", CPP), "-std=c++17", "-O0")
    np.testing.assert_array_equal(numbers([program, path]), module["main"](COUNTED).reshape(-1))


@needs_a_compiler
def test_an_object_is_linked_into_a_program(exported, tmp_path):
    module, _ = exported["symbolic"]
    written = module.export_library(tmp_path / "scaled.o", prefix="my_")
    assert [path.name for path in written] == ["scaled.o", "scaled.h"]
    openmp = Path(relayc.runtime.openmp_library())
    program = built(tmp_path, "cc", ("program.c", C), tmp_path / "scaled.o", openmp, f"-Wl,-rpath,{openmp.parent}")
    np.testing.assert_array_equal(numbers([program]), module["main"](COUNTED).reshape(-1))


@pytest.mark.parametrize("prefix", ["a b", '"/../', "2x", "net.", "é"])
def test_a_prefix_that_is_no_identifier_is_an_error(exported, tmp_path, prefix):
    with pytest.raises(ValueError, match="export_library: prefix: expected an identifier of C, found"):
        exported["symbolic"][0].export_library(tmp_path / "scaled.o", prefix=prefix)
    assert not list(tmp_path.iterdir())


def test_other_linkers_do_as_well(exported, tmp_path, monkeypatch):
    pytest.importorskip("ziglang")
    monkeypatch.setenv("RELAYC_LINKER", f"{sys.executable} -m ziglang ld.lld")
    module, _ = exported["functions"]
    module.export_library(tmp_path / "zig.so")
    np.testing.assert_array_equal(relayc.load_module(tmp_path / "zig.so")["halved"](FLOATS[0])[0], module["halved"](FLOATS[0])[0])


def test_a_machine_without_a_linker_is_an_error_that_says_how_to_get_one(exported, tmp_path, monkeypatch):
    monkeypatch.setattr(linker.shutil, "which", lambda name: None)
    monkeypatch.setattr(linker, "_ziglang", lambda: ())
    monkeypatch.delenv("RELAYC_LINKER", raising=False)
    with pytest.raises(
        ValueError, match=r"expected a linker, found neither ld\.lld nor ld nor the package ziglang; install relayc\[export\]"
    ):
        exported["product"][0].export_library(tmp_path / "model.so")
    assert not list(tmp_path.iterdir())


def test_a_linker_that_does_not_run_or_refuses_is_an_error(tmp_path, monkeypatch):
    for name, message in ((tmp_path / "none", "expected a linker that runs, found .*none: "), ("false", "false refused the objects: $")):
        monkeypatch.setenv("RELAYC_LINKER", str(name))
        with pytest.raises(linker.LinkError, match=message):
            linker.link_object([], tmp_path / "all.o")


def test_data_of_a_library_begins_pages_and_is_seen_where_it_is_exported(tmp_path):
    """The system's loader finds what is exported, and a library of the objects finds all."""
    contents = [RNG.bytes(n) for n in (1, 4096, 4097, 8)]
    parts = [Data(f".part{i}", f"part{i}", content, **{"exported": True} if i % 2 else {}) for i, content in enumerate(contents)]
    with (tmp_path / "data.o").open("wb") as file:
        write_data_object(file, parts)
    linker.link_shared([tmp_path / "data.o"], [], tmp_path / "data.so", "data.so")
    library, image = ctypes.CDLL(str(tmp_path / "data.so")), memoryview((tmp_path / "data.o").read_bytes())
    for i, content in enumerate(contents):
        assert hasattr(library, f"part{i}") == parts[i].exported
        if parts[i].exported:
            found = (ctypes.c_char * len(content)).in_dll(library, f"part{i}")
            assert bytes(found) == content and ctypes.addressof(found) % 4096 == 0
    # As far as to the tables behind it, the file is the parts at pages of their own.
    begins = [4096, 8192, 12288, 20480]
    assert [bytes(image[at : at + len(content)]) for at, content in zip(begins, contents, strict=True)] == contents
    sections = [s for s in read_headers(image, "object").sections if s.kind == 1 and s.size]
    assert [(s.offset, s.size, s.flags) for s in sections] == [(at, len(c), 0x10000002) for at, c in zip(begins, contents, strict=True)]


def test_imported_modules_are_in_the_library(exported, tmp_path):
    module = relayc.compile(model_of([helper.make_node("Exp", ["x"], ["y"])], {"x": [3, 8]}), cache=False)
    imported = exported["functions"][0]
    module.import_module(imported)
    x = FLOATS[0]
    for params in ("embedded", "beside"):
        path = tmp_path / f"{params}.so"
        module.export_library(path, params=params)
        loaded = relayc.load_module(path)
        np.testing.assert_array_equal(loaded["main"](FLOATS), module["main"](FLOATS))
        found = loaded.get_function("halved", query_imports=True)(x)
        for one, wanted in zip(found, imported["halved"](x), strict=True):
            np.testing.assert_array_equal(one, wanted)
        with pytest.raises(KeyError):
            loaded.get_function("halved")
    embedded = tvm_ffi.load_module(tmp_path / "embedded.so")
    assert embedded.implements_function("main") and embedded.implements_function("distance")
    module.import_module(embedded)
    with pytest.raises(ValueError, match="export_library: expected imported modules that"):
        module.export_library(tmp_path / "other.so")


def test_one_module_that_needs_threads_is_enough_for_the_library_to_be_linked_to_them(exported, tmp_path, monkeypatch):
    module = relayc.compile(model_of([helper.make_node("Exp", ["x"], ["y"])], {"x": [3, 8]}), cache=False)
    module.import_module(exported["functions"][0])
    needs = iter([False, True])
    monkeypatch.setattr(library, "_uses_openmp", lambda code: next(needs))

    def link(objects, libraries, *_):
        raise linker.LinkError(" ".join(map(str, libraries)))

    monkeypatch.setattr(library, "link_shared", link)
    with pytest.raises(linker.LinkError, match="libiomp5"):
        module.export_library(tmp_path / "both.so")


def test_an_object_is_of_the_host(tmp_path):
    program = SimpleNamespace(artifact=SimpleNamespace(device="cpu", native=None), imports=[])
    program.imports.append(SimpleNamespace(artifact=SimpleNamespace(device="cuda"), imports=[]))
    with pytest.raises(ValueError, match=r"expected a program of the host for an object, found one of the device kind cuda$"):
        export_library(program, SimpleNamespace(path=tmp_path / "model.o"))
    program.imports = [SimpleNamespace(artifact=SimpleNamespace(device="cpu", native=object()), imports=[])]
    with pytest.raises(ValueError, match="expected a program on tensors for an object"):
        export_library(program, SimpleNamespace(path=tmp_path / "model.o"))


def test_a_path_of_another_kind_is_an_error(exported, tmp_path):
    with pytest.raises(ValueError, match=r"expected a path that ends in \.so or \.o, found .*model\.dll"):
        exported["product"][0].export_library(tmp_path / "model.dll")


def test_libraries_need_no_relocations_of_code_and_no_stack_that_runs(exported):
    content = exported["symbolic"][1].read_bytes()
    at, size, count = (int.from_bytes(content[i : i + n], "little") for i, n in ((32, 8), (54, 2), (56, 2)))
    segments = [content[at + i * size : at + (i + 1) * size] for i in range(count)]
    flags = {int.from_bytes(s[:4], "little"): int.from_bytes(s[4:8], "little") for s in segments}
    assert flags[0x6474E551] == 6  # PT_GNU_STACK: read, write
    assert all(int.from_bytes(s[4:8], "little") & 3 != 3 for s in segments if s[:4] == b"\1\0\0\0")  # PT_LOAD: never write and execute
    (dynamic,) = (s for s in segments if s[:4] == b"\2\0\0\0")
    start, length = int.from_bytes(dynamic[8:16], "little"), int.from_bytes(dynamic[32:40], "little")
    tags = [int.from_bytes(content[i : i + 8], "little") for i in range(start, start + length, 16)]
    assert 22 not in tags  # DT_TEXTREL
    assert 0x6474E550 in flags  # PT_GNU_EH_FRAME: what unwinding looks up


def test_the_onnx_file_is_named_in_what_the_library_says(tmp_path):
    onnx.save(product(), tmp_path / "model.onnx")
    module = relayc.compile(tmp_path / "model.onnx", cache=False)
    module.export_library(tmp_path / "model.so")
    said = relayc.runtime.library_metadata(tmp_path / "model.so")
    assert said["source"]["name"] == "model.onnx" and len(said["source"]["sha256"]) == 64
    assert relayc.load_module(tmp_path / "model.so", model=tmp_path / "model.onnx").input_names == ("x",)
    (tmp_path / "model.onnx").write_bytes(b"another model")
    module.export_library(tmp_path / "other.so")
    assert relayc.runtime.library_metadata(tmp_path / "other.so")["source"] == {"name": "model.onnx", "sha256": "", "files": {}}


CONTROL = """
type Steps { Step(Tensor[(2), float32], Steps), Stop }
def @main(%s: Steps, %x: Tensor[(2), float32]) -> (Tensor[(2), float32], Steps) {
  match (%s) {
    Step(%w, %rest) => { let %found = @main(%rest, %x * %w + meta[relay.Constant][0]); (%found.0, Step(%x, %found.1)) },
    Stop => (%x, Stop)
  }
}
"""


def test_programs_of_data_types_with_parameters_beside_and_imports(tmp_path):
    """A library of two modules: values of the one are arguments of the other."""
    first, second = np.array([1, -2], "float32"), np.array([10, 20], "float32")
    constant = [relay.const(np.array([0.5, 3], "float32"))]
    module = relayc.compile(relay.parse(CONTROL, init_meta_table={"relay.Constant": constant}))
    helper = relayc.compile(
        relay.parse(
            "type Steps { Step(Tensor[(2), float32], Steps), Stop } def @rest(%s: Steps) -> Steps { match? (%s) { Step(_, %r) => %r } }"
        )
    )
    module.import_module(helper)
    files = module.export_library(tmp_path / "steps.so", params="beside")
    assert [file.name for file in files][:2] == ["steps.so", "steps.safetensors"]
    for one in (module, relayc.load_module(tmp_path / "steps.so")):
        make = one.constructors
        steps = make["Step"](first, make["Step"](second, make["Stop"]()))
        last, passed = one["main"](steps, np.array([2, 4], "float32"))
        np.testing.assert_array_equal(last, (np.array([2, 4]) * first + [0.5, 3]) * second + [0.5, 3])
        rest = one.get_function("rest", True)(passed)
        np.testing.assert_array_equal(rest[0], np.array([2, 4]) * first + [0.5, 3])
        np.testing.assert_array_equal(one["main"](rest, first)[0], first * rest[0] + [0.5, 3])
    with pytest.raises(ValueError, match=r"main: expected relayc\.load_module for a program with data types"):
        tvm_ffi.load_module(str(tmp_path / "steps.so"))["main"](1)
