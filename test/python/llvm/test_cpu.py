"""tir to machine code: calls between functions, parallel loops, guards and errors."""

import struct
from importlib.metadata import PackageNotFoundError, PackagePath
from types import SimpleNamespace

import numpy as np
import pytest
from jitted import call, compile_text, elementwise

from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu import engine as engine_module
from relayc.pipelines.targets.cpu import jit as jit_module
from relayc.pipelines.targets.cpu import lowering
from relayc.pipelines.targets.cpu.engine import CodegenError, Part
from relayc.pipelines.targets.cpu.jit import compiled_checks, compiled_in_thread, jit
from relayc.pipelines.targets.cpu.legalize import expand_for
from relayc.pipelines.targets.cpu.lowering import lower_to_llvm
from relayc.pipelines.targets.cpu.parallel import FORKS
from relayc.runtime.cpu import objects
from relayc.runtime.cpu.objects import read_object
from relayc.runtime.elf import read_headers

KERNEL = """
func.func @{name}(%a: memref<4x64xf32>, %o: memref<4x64xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %add = arith.constant dense<{add}> : vector<8xf32>
  %flat = memref.collapse_shape %a [[0, 1]] : memref<4x64xf32> into memref<256xf32>
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {{
    %row = memref.alloca() : memref<64xf32>
    %base = arith.muli %i, %c64 : index
    scf.for %j = %c0 to %c64 step %c8 {{
      %at = arith.addi %base, %j : index
      %x = vector.load %flat[%at] : memref<256xf32>, vector<8xf32>
      %y = arith.addf %x, %add : vector<8xf32>
      vector.store %y, %row[%j] : memref<64xf32>, vector<8xf32>
    }}
    scf.for %j = %c0 to %c64 step %c8 {{
      %x = vector.load %row[%j] : memref<64xf32>, vector<8xf32>
      vector.store %x, %o[%i, %j] : memref<4x64xf32>, vector<8xf32>
    }}
    scf.reduce
  }}
  return
}}"""

MAIN = """
func.func @main(%a: memref<4x64xf32>, %o: memref<4x64xf32>, %arena: memref<1088xi8>) {
  %c64 = arith.constant 64 : index
  %t = memref.view %arena[%c64][] : memref<1088xi8> to memref<4x64xf32>
  func.call @one(%a, %t) : (memref<4x64xf32>, memref<4x64xf32>) -> ()
  func.call @two(%t, %o) : (memref<4x64xf32>, memref<4x64xf32>) -> ()
  return
}"""

PROGRAM = "\n".join([KERNEL.format(name="one", add=1.0), KERNEL.format(name="two", add=2.0), MAIN])


def run_program():
    a = np.random.default_rng(0).standard_normal((4, 64), np.float32)
    o, arena = np.empty_like(a), np.zeros(1088, np.int8)
    call(compile_text(PROGRAM), "main", a, o, arena)
    np.testing.assert_array_equal(o, a + np.float32(1) + np.float32(2))


def test_main_calls_kernels_on_views_of_the_arena():
    run_program()


def test_kernels_compiled_in_groups_are_linked(monkeypatch):
    monkeypatch.setattr(engine_module, "MIN_PART_OPS", 1)
    monkeypatch.setattr(engine_module, "usable_cpus", lambda: 2)
    run_program()


def test_functions_are_cut_in_parts_of_about_the_same_size(monkeypatch):
    """The largest first, each to the smallest part; a part has 2,000 operations at least."""

    def parts(count, *sizes):
        found = engine_module._parts([engine_module._Function(None, str(n), n, set()) for n in sizes], count)
        return [[f.size for f in part] for part in found]

    monkeypatch.setattr(engine_module, "MIN_PART_OPS", 2000)
    assert parts(2, 1000, 3000, 4000, 2000) == [[4000, 1000], [3000, 2000]]
    assert [parts(count, *sizes) for count, *sizes in ((9, 1000, 3000, 1999), (9, 600, 500), (1, 5000, 4000))] == [
        [[3000], [1999, 1000]],
        [[600, 500]],
        [[5000, 4000]],
    ]
    monkeypatch.setattr(engine_module, "MIN_PART_OPS", 1)
    with make_context():
        module = ir.Module.parse("\n".join(f"llvm.func @{name}() {{ llvm.return }}" for name in "fg"))
        f, g = (op.operation for op in module.body.operations)
        assert [len(engine_module._split({"f": f, "g": g}, threads)) for threads in (1, 2)] == [0, 2]
        assert engine_module._split({"f": f}, 2) == []


def test_several_engines_live_side_by_side():
    first = compile_text(elementwise("k", "%y = arith.addf %x0, %x0 : TYPE", "f32", 8, 8))
    second = compile_text(elementwise("k", "%y = arith.mulf %x0, %x0 : TYPE", "f32", 8, 8))
    x, y = np.arange(8, dtype=np.float32), np.empty(8, np.float32)
    call(first, "k", x, y)
    np.testing.assert_array_equal(y, x + x)
    del first
    call(second, "k", x, y)
    np.testing.assert_array_equal(y, x * x)


def test_strided_copies_need_no_library():
    text = """
    func.func @k(%a: memref<8x8xf32>, %o: memref<4x4xf32>) {
      %part = memref.subview %a[0, 2] [4, 4] [2, 1] : memref<8x8xf32> to memref<4x4xf32, strided<[16, 1], offset: 2>>
      memref.copy %part, %o : memref<4x4xf32, strided<[16, 1], offset: 2>> to memref<4x4xf32>
      return
    }"""
    a, o = np.arange(64, dtype=np.float32).reshape(8, 8), np.empty((4, 4), np.float32)
    call(compile_text(text), "k", a, o)
    np.testing.assert_array_equal(o, a[::2, 2:6])


@pytest.mark.parametrize(("kind", "reference"), [("add", np.sum), ("mul", np.prod), ("maximumf", np.max), ("minimumf", np.min)])
def test_vector_reductions(kind, reference):
    text = elementwise("k", f"%r = vector.reduction <{kind}>, %x0 : TYPE into f32\n%y = vector.broadcast %r : f32 to TYPE", "f32", 16, 16)
    x, y = np.random.default_rng(0).uniform(0.5, 1.5, 16).astype(np.float32), np.empty(16, np.float32)
    call(compile_text(text), "k", x, y)
    np.testing.assert_allclose(y, np.full(16, reference(x)), rtol=1e-6)


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
def test_integer_powers(element):
    dtype = np.dtype(f"int{element[1:]}")
    x, n = np.array([2, 3, -2, 1, 0, 5, -1, 2], dtype), np.array([3, 2, 3, 9, 0, 1, 3, 6], dtype)
    for lanes in (0, 8):
        y = np.empty_like(x)
        call(compile_text(elementwise("k", "%y = math.ipowi %x0, %x1 : TYPE", element, lanes, 8, 2)), "k", x, n, y)
        np.testing.assert_array_equal(y, x**n)


def test_operations_on_whole_buffers_become_loops():
    text = """
func.func @k(%x: memref<6xf32>, %y: memref<6xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<6xf32>) outs(%y : memref<6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  return
}"""
    x, y = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    call(compile_text(text), "k", x, y)
    np.testing.assert_array_equal(y, 2 * x)


def test_runaway_vectors_are_refused():
    text = elementwise("huge", "%y = arith.addf %x0, %x0 : TYPE", "f32", 1 << 20, 1 << 20)
    with pytest.raises(CodegenError, match=r"@huge at .*: expected vectors of at most 4096 bytes, found vector<1048576xf32>"):
        compile_text(text)
    with make_context(), ir.Location.unknown():
        lower_to_llvm(ir.Module.parse(elementwise("wide", "%y = arith.addf %x0, %x0 : TYPE", "f32", 1024, 1024)), Target("cpu"))


def test_functions_of_many_calls_are_not_copied_to_them():
    calls = "\n".join(["llvm.call @often() : () -> ()"] * 9 + ["llvm.call @seldom() : () -> ()"] * 8)
    bodies = "\n".join(f"llvm.func @{name}() {{ llvm.return }}" for name in ("often", "seldom"))
    with make_context():
        module = ir.Module.parse(f"{bodies}\nllvm.func @main() {{ {calls}\nllvm.return }}")
        lowering._call_often_called(module)
        assert ["no_inline" in op.attributes for op in module.body.operations] == [True, False, False]


def test_a_module_that_llvm_does_not_take_is_an_error():
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @k() {\n  return\n}")
        with pytest.raises(CodegenError, match="LLVM refused the module; the reason is on stderr"):
            engine_module._Compiled(module, [])


def test_target_beyond_this_machine_is_compiled_but_not_run():
    target = Target("cpu", mcpu="sapphirerapids")
    if target.is_host:
        pytest.skip("this machine is one")
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(elementwise("k", "%y = arith.addf %x0, %x0 : TYPE", "f32", 16, 16))
        lower_to_llvm(module, target)
        functions = read_object(jit(module, target).object_code().root).functions()
    assert "k" in [name for name, _, _ in functions]


FUSED = """
%c = arith.constant dense<1.0> : TYPE
%a = vector.fma %x0, %x0, %c : TYPE
%y = math.fma %a, %x0, %c : TYPE"""


@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v2", "x86-64-v3"])
def test_fused_multiply_adds_need_no_library(mcpu):
    engine = compile_text(elementwise("k", FUSED, "f32", 8, 64), mcpu=mcpu)
    assert "fmaf" not in read_object(engine.object_code().root).undefined()
    x, y = np.random.default_rng(0).standard_normal(64, np.float32), np.empty(64, np.float32)
    call(engine, "k", x, y)
    # Three roundings of numbers up to about 30.
    np.testing.assert_allclose(y, (x.astype(np.float64) ** 2 + 1) * x + 1, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v3"])
def test_f16_converts_exactly_with_and_without_instructions(mcpu, lanes):
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    text = [elementwise("twice", "%y = arith.addf %x0, %x0 : TYPE", "f16", lanes, every.size)]
    text += [elementwise("root", "%y = math.sqrt %x0 : TYPE", "f16", lanes, every.size)]
    engine, y = compile_text("\n".join(text), mcpu=mcpu), np.empty_like(every)
    with np.errstate(all="ignore"):
        for name, expected in (("twice", every + every), ("root", np.sqrt(every))):
            call(engine, name, every, y)
            np.testing.assert_array_equal(y, expected)


TABLES = {
    "loads": ("x86-64", "", "memref.load", range(100)),
    "parts of 16": ("x86-64-v3", "", "pshuf.b", range(8, 65)),
    "registers": ("x86-64-v4", "-mattr=+avx512vbmi", "vpermi2var", range(65)),
    "half of a register": ("x86-64-v4", "-mattr=+avx512vbmi -vector-bytes=32", "pshuf.b", range(8, 65)),
}


@pytest.mark.parametrize("width", [7, 8, 9, 33, 64, 65])
@pytest.mark.parametrize("name", TABLES)
def test_elements_of_a_table_of_bytes(name, width):
    """Up to a register of them at once, where that takes fewer instructions than loads do."""
    mcpu, features, instruction, widths = TABLES[name]
    buffer, vector = f"memref<{width}xi8>", f"vector<{width}x"
    text = f"""
func.func @take(%t: memref<256xi8>, %a: {buffer}, %o: {buffer}) {{
  %zero = arith.constant 0 : index
  %every = arith.constant dense<true> : {vector}i1>
  %other = arith.constant dense<0> : {vector}i8>
  %x = vector.load %a[%zero] : {buffer}, {vector}i8>
  %at = arith.index_castui %x : {vector}i8> to {vector}index>
  %y = vector.gather %t[%zero][%at], %every, %other : memref<256xi8>, {vector}index>, {vector}i1>, {vector}i8> into {vector}i8>
  vector.store %y, %o[%zero] : {buffer}, {vector}i8>
  return
}}"""
    target = Target(f"cpu -mcpu={mcpu} {features}")
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        expand_for(module, target)
        text = str(module)
    assert (instruction in text) == (width in widths)
    if target.is_host:
        engine = compile_text(text)
        table, at = (np.random.default_rng(i).permutation(256).astype(np.uint8) for i in range(2))
        y = np.zeros(width, np.uint8)
        call(engine, "take", table, at[:width].copy(), y)
        np.testing.assert_array_equal(y, table[at[:width]])


def test_missing_function_has_no_address():
    assert compile_text(elementwise("k", "%y = arith.addf %x0, %x0 : TYPE", "f32", 8, 8)).raw_lookup("other") == 0


def test_functions_that_cannot_be_linked_are_an_error():
    with pytest.raises(CodegenError, match="the functions f, g could not be linked"):
        Part(("f", "g"), SimpleNamespace(raw_lookup=lambda name: 0), runs_here=True)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse("llvm.func @f()\nllvm.func @k() {\n  llvm.call @f() : () -> ()\n  llvm.return\n}")
        with pytest.raises(CodegenError, match="k could not be linked: see the missing symbols on stderr"):
            engine_module.compile_object(module, "k", ())


def test_a_part_that_does_not_compile_is_an_error_of_who_waits_for_it():
    with pytest.raises(ir.MLIRError, match="Unable to parse module"):
        compiled_in_thread("llvm.func", ["f"], Target("cpu")).result()


@pytest.mark.parametrize("files", [None, [], [PackagePath("lib/libiomp6.so")]])
def test_a_missing_openmp_runtime_is_an_error(files, monkeypatch):
    def distribution(name: str) -> SimpleNamespace:
        if files is None:
            raise PackageNotFoundError(name)
        return SimpleNamespace(files=files)

    monkeypatch.setattr(jit_module, "distribution", distribution)
    with pytest.raises(CodegenError, match=r"expected the OpenMP runtime libiomp5\.so of the package intel-openmp, found none"):
        jit_module._runtime_libraries.__wrapped__()


def test_functions_that_check_calls_are_compiled_once_for_a_machine_and_a_device():
    wide, narrow = Target("cpu -mcpu=x86-64-v3"), Target("cpu -mcpu=x86-64-v3 -mattr=-f16c")
    other = Target("cpu", mcpu="x86-64-v2", features=",".join(f"+{f}" for f in narrow.features))
    assert other.features == narrow.features
    cases = [(wide, "cpu"), (wide, "cuda"), (narrow, "cpu"), (other, "cpu")]
    made = [compiled_checks(*case) for case in cases]
    assert len(set(map(id, made))) == len(cases)
    assert all(compiled_checks(*case) is found for case, found in zip(cases, made, strict=True))
    assert made[0].result().content != made[1].result().content


def test_what_no_code_is_made_of_is_refused(monkeypatch):
    content = compile_text("func.func @one() { return }").object_code().root
    with pytest.raises(objects.LoadError, match="symbol relayc_nothing: expected a definition in the object, found none"):
        objects._Image(content, objects._find).table("relayc_nothing", 1)
    with pytest.raises(objects.LoadError, match=r"memory for code: mprotect failed with error 22$"):  # in the middle of a page
        objects._protect(1, 1)
    changed, (start,) = bytearray(content), struct.unpack_from("<Q", content, 40)
    table = next(i for i, section in enumerate(read_headers(content, "object").sections) if section.kind == 2)  # SHT_SYMTAB
    struct.pack_into("<I", changed, start + 64 * table + 40, 999)  # its names are in a section that is not there
    with pytest.raises(objects.LoadError, match=r"a damaged object file \("):
        objects.read_object(bytes(changed))
    monkeypatch.setattr(objects, "can_load", lambda: False)
    with pytest.raises(objects.LoadError, match=r"expected Linux on x86_64, found \w+ on \w+"):
        objects._Image(content, objects._find)


SYMBOLS = """
llvm.mlir.global internal constant @table(dense<1> : tensor<4xi32>) : !llvm.array<4 x i32>
llvm.mlir.global internal @state(0 : i32) : i32
llvm.mlir.global internal constant @functions() : !llvm.ptr {
  %0 = llvm.mlir.addressof @adds : !llvm.ptr
  llvm.return %0 : !llvm.ptr
}
llvm.func @outside()
llvm.func @adds(%a: i32) -> i32 attributes {relay.optimize} {
  %0 = llvm.mlir.addressof @table : !llvm.ptr
  %1 = llvm.add %a, %a : i32
  llvm.return %1 : i32
}
llvm.func @forks(%a: i1, %p: !llvm.ptr) {
  omp.parallel if(%a) {
    omp.terminator
  }
  llvm.call %p() : !llvm.ptr, () -> ()
  llvm.return
}
llvm.func @calls(%a: i32) {
  omp.parallel {
    omp.terminator
  }
  llvm.call @outside() : () -> ()
  llvm.return
}
llvm.func @counts() {
  %0 = llvm.mlir.addressof @state : !llvm.ptr
  llvm.return
}
llvm.func @uses(%a: i32) {
  %0 = llvm.call @adds(%a) : (i32) -> i32
  llvm.return
}"""


def test_a_module_is_split_into_functions_that_share_only_constants(monkeypatch):
    """Optimized ones are in parts of their own; a part has a number of operations at least, and as many parts as threads may take."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(SYMBOLS)
        symbols = {engine_module._symbol(op.operation): op.operation for op in module.body.operations}
        functions = {name: engine_module._read(op) for name, op in symbols.items() if engine_module._is_defined(op)}
        read = {name: (f.size, f.refers) for name, f in functions.items()}
        assert read == {
            "adds": (4, {"table"}),
            "forks": (5, set(FORKS)),
            "calls": (5, {"outside"}),
            "counts": (3, {"state"}),
            "uses": (3, {"adds"}),
        }
        assert engine_module._variables(symbols) == {"state", "functions"}
        for least, expected in ((1, [["adds"], ["forks"], ["calls"]]), (6, [["adds"], ["forks", "calls"]])):
            monkeypatch.setattr(engine_module, "MIN_PART_OPS", least)
            assert [[f.name for f in part] for part in engine_module._split(symbols, 2)] == expected
            assert engine_module._split(symbols, 1) == []


@pytest.mark.parametrize(
    ("count", "least", "expected"),
    [
        (2, 1, [[5, 3], [4, 3, 3]]),
        (9, 6, [[5], [4, 3], [3, 3]]),
        (9, 7, [[5, 3], [4, 3, 3]]),
        (9, 18, [[5, 4, 3, 3, 3]]),
        (9, 19, [[5, 4, 3, 3, 3]]),
    ],
)
def test_parts_have_about_the_same_size(count, least, expected, monkeypatch):
    """Each function, the largest first, goes to the part that is smallest so far."""
    monkeypatch.setattr(engine_module, "MIN_PART_OPS", least)
    functions = [SimpleNamespace(size=size) for size in (3, 5, 3, 4, 3)]
    assert [[f.size for f in part] for part in engine_module._parts(functions, count)] == expected
