"""Modules of programs with data types, references and functions as values: compiled, kept in the cache, in libraries without a compiler."""

import contextlib
import ctypes
import gc
import json
import subprocess
import sys
import threading
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
import tvm_ffi

import relayc
from relayc import relay
from relayc.dialects.relay.errors import RelayError
from relayc.pipelines.control.kernels import is_on_tensors
from relayc.pipelines.control.program import compiled_program, control_code, is_native
from relayc.runtime import threads
from relayc.runtime.artifact import TensorSpec
from relayc.runtime.values import ConstructorValue, RefValue
from relayc.tools.runtime_wheel import write_runtime_wheel

SOURCE = """
type Shape { Dot, Disc(float32), Group(Shape, List[Shape]) }

def @build(%n: int32, %l: List[int32]) -> List[int32] { if (%n == 0) { %l } else { @build(%n - 1, Cons(%n, %l)) } }
def @total(%l: List[int32], %s: int32) -> int32 { match (%l) { Cons(%x, %rest) => @total(%rest, %s * 2 + %x), Nil => %s } }
def @area(%s: Shape) -> float32 {
  match (%s) { Dot => 0f, Disc(%r) => %r * %r * 3f, Group(%a, %b) => @area(%a) - @foldl(@plus, 0f, @map(@area, %b)) }
}
def @plus(%a: float32, %b: float32) -> float32 { %a + %b }
def @count(%r: ref(int32), %by: fn (int32) -> int32) -> fn () -> int32 {
  fn () -> int32 { let %u = ref_write(%r, %by(ref_read(%r))); ref_read(%r) }
}
def @scaled(%x: Tensor[(2, 3), float32], %y: Tensor[(?, 3), float32]) { nn.dense(%y, tanh(%x)) }
def @main(%n: int32, %x: Tensor[(2, 3), float32], %y: Tensor[(?, 3), float32]) {
  let %r = ref(%n);
  (@build(%n, Nil), %r, fn (%k: int32) -> int32 { ref_write(%r, ref_read(%r) + %k); ref_read(%r) * %n }, Cons(@scaled(%x, %y), Nil))
}
"""
X = np.array([[1, -2, 3], [0.5, 5, -6]], "float32")
Y = np.arange(12, dtype="float32").reshape(4, 3) - 5


def parsed(source=SOURCE):
    return relay.parse(source, init_module=relay.Prelude().mod)


@pytest.fixture(scope="module")
def compiled():
    return relayc.compile(parsed())


@pytest.fixture(scope="module")
def library(compiled, tmp_path_factory):
    path = tmp_path_factory.mktemp("control") / "control.so"
    compiled.export_library(path)
    return path


@pytest.fixture(scope="module", params=["compiled", "loaded"])
def module(request, compiled, library):
    return compiled if request.param == "compiled" else relayc.load_module(library)


def elements(value):
    found = []
    while value.fields:
        found.append(value.fields[0])
        value = value.fields[1]
    return found


def listed(module, values):
    found = module.constructors["Nil"]()
    for value in reversed(values):
        found = module.constructors["Cons"](value, found)
    return found


def test_calls_have_as_many_threads_as_the_module(compiled, monkeypatch):
    applied, others = [], threads.num_threads() + 1
    monkeypatch.setattr(threads, "_apply", applied.append)
    compiled.num_threads = others
    try:
        assert elements(compiled["build"](2, listed(compiled, [7]))) == [1, 2, 7]
    finally:
        compiled.num_threads = None
    assert set(applied) == {others}


def test_functions_take_and_give_values(module):
    values, ref, times, results = module["main"](4, X, Y)
    assert elements(values) == [1, 2, 3, 4] and values.constructor.name_hint == "Cons"
    assert times(3) == 28 and ref.value == 7 and times(-1) == 24 and ref.value == 6
    np.testing.assert_allclose(elements(results)[0], Y @ np.tanh(X).T, rtol=1e-5)
    assert module["total"](values, 1) == ((((2 + 1) * 2 + 2) * 2 + 3) * 2 + 4)
    assert module["total"](listed(module, [5, -7]), s=0) == 3
    assert {"main", "build", "total", "area", "count", "scaled", "plus"} <= set(module.function_names())
    assert "kernel_0" not in module.function_names() and "foldl" not in module.function_names()
    np.testing.assert_allclose(module["scaled"](X, Y[:2]), Y[:2] @ np.tanh(X).T, rtol=1e-5)


def test_data_types_in_data_types(module):
    make = module.constructors
    shape = make["Group"](
        make["Disc"](2.0), listed(module, [make["Dot"](), make["Disc"](0.5), make["Group"](make["Disc"](1), make["Nil"]())])
    )
    assert module["area"](shape) == 12 - (0.75 + 3)


def test_references_and_functions_are_arguments(module):
    _, ref, times, _ = module["main"](3, X, Y)
    own = RefValue(10)
    step = module["count"](own, times)
    assert step() == 39 and own.value == 39 and ref.value == 13
    own.value = 1
    assert step() == (13 + 1) * 3 and own.value == 42
    assert module["count"](own, times)() == (14 + 42) * 3 == own.value  # the same reference
    with pytest.raises(TypeError, match=r"expected int32, found a value of type str"):
        own.value = "many"
    assert own.value == 168


KERNELS = """
def @pair(%p: (Tensor[(2, 3), float32], int32), %b: bool) -> ((float32, Tensor[(3), float32]), bool, int32) {
  let %s = sum(%p.0 * cast(%p.1, dtype="float32"));
  ((%s, sum(%p.0, axis=[0])), any(less(%p.0, %s)), sum(where(%b, cast(%p.0, dtype="int32"), full(%p.1, shape=[2, 3], dtype="int32"))))
}
def @picked(%x: Tensor[(4), float32], %i: int32) -> Option[float32] { if (%i < 0) { None } else { Some(take(%x, %i, mode="fast")) } }
def @main(%x: Tensor[(2, 3), float32], %l: List[int32], %b: bool) -> List[((float32, Tensor[(3), float32]), bool, int32)] {
  @map(fn (%n: int32) -> ((float32, Tensor[(3), float32]), bool, int32) { @pair((%x, %n), %b) }, %l)
}
"""


def test_kernels_of_scalars_and_tuples():
    module = relayc.compile(parsed(KERNELS))
    for flag in (True, False):
        found = elements(module["main"](X, listed(module, [2, -3]), flag))
        for n, ((total, columns), below, count) in zip([2, -3], found, strict=True):
            assert total == np.sum(X * n) and below == (np.sum(X * n) > X).any() and below.dtype == bool
            np.testing.assert_array_equal(columns, X.sum(0))
            assert count == (X.astype("int32").sum() if flag else 6 * n) and count.dtype == np.int32
    x = np.arange(4, dtype="float32") * 1.5
    assert [module["picked"](x, i).fields for i in (-1, 3, 1)] == [[], [4.5], [1.5]]


def test_parameters_are_those_that_were_loaded():
    source = "def @main(%x: Tensor[(3), float32]) { Some(%x + meta[relay.Constant][0]) }"
    constant = relay.const(np.array([1, 20, 300], "float32"))
    module = relayc.compile(relay.parse(source, init_module=relay.Prelude().mod, init_meta_table={"relay.Constant": [constant]}))
    x = np.array([0.5, -1, 2], "float32")
    np.testing.assert_array_equal(module["main"](x)[0], x + constant.data)
    module.load_params({name: array * 2 for name, array in module.params.items()})
    np.testing.assert_array_equal(module["main"](x)[0], x + 2 * constant.data)


def test_errors_of_kernels():
    module = relayc.compile(parsed("def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) { Some(%x + %y) }"))
    np.testing.assert_array_equal(module["main"](X[0], X[1])[0], X[0] + X[1])
    with pytest.raises(ValueError, match="x0"):
        module["main"](X[0], X[0, :2])


def test_errors_of_packed_functions_in_kernels():
    seen = []

    def codegen(name, function):
        def call(x, out):
            seen.append(bytes_in_use())
            if x[0] < 0:
                raise LookupError("none of it")
            np.sqrt(x, out=out)

        return call

    relayc.register_external_codegen("rooted", codegen)
    try:
        source = """
        def @root(%x: Tensor[(90000), float32], Primitive=1, Compiler="rooted", global_symbol="root") -> Tensor[(90000), float32] {
          sqrt(%x)
        }
        def @main(%x: Tensor[(90000), float32]) { Some(@root(%x)) }
        """
        module = relayc.compile(parsed(source))
        x = np.full(90000, 4, "float32")
        np.testing.assert_array_equal(module["main"](x)[0], np.sqrt(x))
        for _ in range(4):
            with pytest.raises(LookupError, match="none of it"):
                module["main"](-x)
        gc.collect()
        assert len(seen) == 5 and abs(seen[-1] - seen[1]) < 100_000  # a result takes 360,000
    finally:
        relayc.remove_external_codegen("rooted")


def test_specs_say_the_types(module):
    assert [str(spec) for spec in module["count"].inputs] == ["value(ref(int32))", "value(fn (int32) -> int32)"]
    assert str(module.outputs[0]) == "value(List[int32])"
    assert [str(spec) for spec in module.inputs] == ["int32[]", "float32[2, 3]", "float32[y_0, 3]"]
    assert repr(module["total"]) == "<relayc function total(l: List[int32], s: int32) -> int32>"


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("total", lambda m: (3, 1), r"total: argument 0 'l': expected List\[int32\], found a value of type int"),
        ("total", lambda m: (listed(m, [1]),), r"total: expected 2 argument\(s\) \(l, s\), found 1"),
        ("total", lambda m: (m.constructors["Dot"](), 1), r"expected List\[int32\] \(Cons, Nil\), found a value of the constructor Dot"),
        ("total", lambda m: (ConstructorValue(0, [1], m.constructors["Cons"]), 1), r"found 1 field\(s\) where it has 2"),
        ("total", lambda m: (listed(m, [1, np.float32(2)]), 1), r"argument 0 'l': expected int32, found float32\[\]"),
        ("total", lambda m: (listed(m, [1, np.zeros(2, "int32")]), 1), r"argument 0 'l': expected int32, found int32\[2\]"),
        ("main", lambda m: (1, X.T, Y), r"argument 1 'x': expected Tensor\[\(2, 3\), float32\], found float32\[3, 2\]"),
        ("main", lambda m: (1, X, Y.astype("float64")), r"argument 2 'y': expected Tensor\[\(\?, 3\), float32\], found float64\[4, 3\]"),
        ("count", lambda m: (RefValue(1), 5), r"expected fn \(int32\) -> int32, found a value of type int"),
        ("count", lambda m: (1, m["main"](1, X, Y)[2]), r"argument 0 'r': expected ref\(int32\), found a value of type int"),
        ("count", lambda m: (m["main"](1, X, Y)[1], m["count"](RefValue(1), m["main"](1, X, Y)[2])), r"found a function of type fn \(\)"),
    ],
)
def test_arguments_that_are_not_of_their_type(module, name, args, message):
    with pytest.raises((TypeError, ValueError), match=message):
        module[name](*args(module))


def test_errors_of_values(module):
    with pytest.raises(TypeError, match=r"Disc: expected 1 field\(s\), found 2"):
        module.constructors["Disc"](1.0, 2.0)
    with pytest.raises(TypeError, match=r"fn \(int32\) -> int32: expected 1 argument\(s\), found 2"):
        module["main"](1, X, Y)[2](1, 2)
    with pytest.raises(IndexError):
        module["build"](1, module.constructors["Nil"]())[2]


def test_what_is_of_tensors_alone_is_refused(compiled, tmp_path):
    for call in (compiled.graph, lambda: compiled.profile([]), lambda: compiled.arena_bytes([])):
        with pytest.raises(ValueError, match="main: expected a program on tensors alone, found one with data types"):
            call()
    with pytest.raises(ValueError, match="expected a program on tensors for an object, found one with data types"):
        compiled.export_library(tmp_path / "control.o")
    with pytest.raises(ValueError, match="target cuda: expected a target of the host for a program with data types"):
        relayc.compile(parsed(), target="cuda -emulate=true")
    with pytest.raises(RelayError, match="specialize: expected a program on tensors alone"):
        relayc.compile(parsed(), specialize=[{"y_0": 4}])
    with pytest.raises(RelayError, match=r"main: expected parameters of known types, found %x: a"):
        relayc.compile(parsed("def @main[a](%x: a) { Some(%x) }"))


def test_lists_deeper_than_stacks(compiled):
    module = compiled
    count = 200_000
    values = module["build"](count, module.constructors["Nil"]())
    found = 0
    while values.tag == module.constructors["Cons"].tag:
        values, found = values[1], found + 1
    assert found == count
    deep = listed(module, [3] * count)
    assert module["total"](deep, 0) == np.int32((3 * (2**32 - 1)) % 2**32 - 2**32 if (3 * (2**32 - 1)) % 2**32 >> 31 else 0)


def test_a_match_without_a_clause(tmp_path):
    source = "def @main(%l: List[int32]) -> int32 { match? (%l) { Cons(%x, _) => %x } }"
    module = relayc.compile(parsed(source))
    assert module["main"](listed(module, [6])) == 6
    with pytest.raises(ValueError, match="main: expected a value that a clause of match takes"):
        module["main"](module.constructors["Nil"]())


def test_calls_nest_deep(compiled):
    module = relayc.compile(parsed("def @main(%n: int32) -> List[int32] { if (%n == 0) { Nil } else { Cons(%n, @main(%n - 1)) } }"))
    assert module["main"](200_000)[0] == 200_000
    with pytest.raises(RecursionError, match="main: expected fewer nested calls"):
        module["main"](100_000_000)
    assert module["main"].packed(3) is not None  # on the stack of the caller


def test_references_that_have_themselves(compiled):
    module = relayc.compile(parsed("type K { R(ref(K)), E } def @main(%r: ref(K)) -> K { ref_read(%r) }"))
    ref = RefValue(None)
    ref.value = module.constructors["R"](ref)
    with pytest.raises(ValueError, match=r"expected ref\(K\), found a reference to a value that has the reference itself"):
        module["main"](ref)
    other = RefValue(module.constructors["E"]())
    assert module["main"](other).constructor.name_hint == "E"


def test_types_of_one_name_are_not_taken_for_each_other():
    one = relayc.compile(parsed("type P { A(int32), B } def @main(%n: int32) -> P { A(%n) }"))
    other = relayc.compile(parsed("type P { B, A(float32) } def @main(%p: P) -> bool { match (%p) { A(_) => True, B => False } }"))
    with pytest.raises(TypeError, match=r"expected P \(B, A\), found a value of the constructor A"):
        other["main"](one["main"](3))
    same = relayc.compile(parsed("type P { A(int32), B } def @main(%p: P) -> int32 { match (%p) { A(%n) => %n, B => 0 } }"))
    assert same["main"](one["main"](3)) == 3


# ---- memory


def bytes_in_use():
    class Info(ctypes.Structure):
        _fields_ = [(f"field{i}", ctypes.c_size_t) for i in range(10)]

    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Info
    return mallinfo().field7


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m["build"](100_000, m.constructors["Nil"]()),
        lambda m: m["total"](listed(m, range(5000)), 0),
        lambda m: m["count"](RefValue(1), m["main"](50_000, X, Y)[2])(),
        lambda m: m["total"](listed(m, [*range(5000), "x"]), 0),
    ],
    ids=["results", "arguments", "functions", "errors"],
)
def test_nothing_is_left_of_what_goes(module, use):
    def used():
        with contextlib.suppress(TypeError):
            use(module)
        gc.collect()
        return bytes_in_use()

    used()
    before = used()
    assert abs(used() - before) < 100_000  # a cell of a list takes 56


# ---- the cache, libraries, commands


def test_programs_in_files_are_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RELAYC_CACHE", "1")
    path = tmp_path / "list.relay"
    path.write_text(parsed().astext())
    first, second = relayc.compile(path), relayc.compile(path)
    assert "codegen" in first.stats and list(second.stats) == ["cache"]
    assert second["total"](second["main"](3, X, Y)[0], 0) == first["total"](first["main"](3, X, Y)[0], 0) == 11


def test_a_library_without_relayc_refuses(library):
    loaded = tvm_ffi.load_module(str(library))
    with pytest.raises(ValueError, match=r"main: expected relayc\.load_module for a program with data types, references or functions"):
        loaded["main"](1)
    with pytest.raises(AttributeError):
        loaded["native.links"]


def test_a_library_runs_where_no_compiler_is(library, tmp_path):
    code = f"""
import importlib.util, json, sys
import numpy as np
import relayc
assert importlib.util.find_spec("relayc.pipelines") is None and relayc.__path__[0].startswith({str(tmp_path)!r})
module = relayc.load_module({str(library)!r})
values, ref, times, results = module["main"](4, np.full((2, 3), 0.5, "float32"), np.ones((1, 3), "float32"))
c = module.constructors
found = [int(module["total"](values, 0)), int(times(2)), int(ref.value), float(module["area"](c["Group"](c["Disc"](2.0), c["Nil"]())))]
print(json.dumps([*found, np.round(results[0], 4).tolist()]))
"""
    wheel = write_runtime_wheel(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    start = f"""
import sys
sys.path.insert(0, {str(tmp_path / "site")!r})
sys.meta_path[:] = [finder for finder in sys.meta_path if "__editable__" not in repr(finder)]
"""
    done = subprocess.run([sys.executable, "-c", start + code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [26, 24, 6, 12.0, [[np.round(np.float32(3 * np.tanh(0.5)), 4).item()] * 2]]


def test_the_command_runs_libraries(tmp_path):
    source = "def @main(%x: Tensor[(3), float32]) { (%x * 2f, if (sum(%x) > 0f) { Some(%x) } else { None }) }"
    module = relayc.compile(parsed(source))
    module.export_library(tmp_path / "some.so")
    command = [sys.executable, "-m", "relayc.tools.cli", "run", str(tmp_path / "some.so")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "output output_1: value(Option[Tensor[(3), float32]])" in done.stdout, done.stderr


# ---- kernels of symbolic sizes

GROWS = """
def @grow(%x: Tensor[(?, 3), float32], %n: int32) -> List[Tensor[(?, 3), float32]] {
  if (%n == 0) { Nil } else { Cons(%x, @grow(concatenate((%x, tanh(take(%x, arange(0, 2, 1, dtype="int32"), axis=0)))), %n - 1)) }
}
def @total(%l: List[Tensor[(?, 3), float32]], %s: Tensor[(3), float32]) -> Tensor[(3), float32] {
  match (%l) { Cons(%x, %rest) => @total(%rest, %s * 0.5f + sum(%x, axis=[0])), Nil => %s }
}
def @places(%l: List[Tensor[(?, 3), float32]]) -> List[(float32, Tensor[(?, 2), int32])] {
  @map(fn (%x: Tensor[(?, 3), float32]) { (max(%x), argwhere(%x > 0.5f)) }, %l)
}
def @main(%x: Tensor[(?, 3), float32], %n: int32) {
  let %l = @grow(%x, %n);
  (@total(%l, zeros(shape=[3], dtype="float32")), %l, @places(%l))
}
"""


def calls_into_python(function, *args):
    """The calls of Python functions and methods during a call."""
    count = 0

    def seen(frame, event, arg):
        nonlocal count
        count += event == "call"

    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        found = function(*args)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return count, found


@pytest.fixture(scope="module", params=["compiled", "loaded", "executor", "vm"])
def grows(request, tmp_path_factory):
    if request.param == "executor":
        return relay.create_executor("vm", parsed(GROWS)).evaluate()
    if request.param == "vm":
        return relay.vm.VirtualMachine(relay.vm.compile(parsed(GROWS), target="llvm")).run
    module = relayc.compile(parsed(GROWS))
    if request.param == "compiled":
        return module["main"]
    path = tmp_path_factory.mktemp("grows") / "grows.so"
    module.export_library(path)
    return relayc.load_module(path)["main"]


def test_lists_of_tensors_of_unknown_sizes(grows):
    x = np.random.default_rng(4).normal(size=(3, 3)).astype("float32")
    expected, total = [x], x.sum(0)
    for _ in range(4):
        expected.append(np.concatenate([expected[-1], np.tanh(expected[-1][:2])]))
        total = total * 0.5 + expected[-1].sum(0)
    found, arrays, places = grows(x, 5)
    np.testing.assert_allclose(found, total, rtol=1e-5)
    for array, value, (largest, where) in zip(expected, elements(arrays), elements(places), strict=True):
        np.testing.assert_allclose(value, array, rtol=1e-6)
        np.testing.assert_array_equal(where, np.argwhere(array > 0.5))
        assert largest == array.max()


def test_kernels_of_unknown_sizes_are_called_without_python(grows):
    x = np.full((2, 3), 0.25, "float32")
    grows(x, 2)
    (few, _), (many, found) = calls_into_python(grows, x, 3), calls_into_python(grows, x, 60)
    assert few == many and len(elements(found[1])) == 60
    assert len(elements(found[2])[59][1]) == 0  # where there is nothing


def test_what_kernels_of_unknown_sizes_make_goes(grows):
    def used():
        grows(np.full((50, 3), 1, "float32"), 100)
        gc.collect()
        return bytes_in_use()

    used()
    before = used()
    assert abs(used() - before) < 100_000  # the lists take some 2 MB


# ---- functions of Python

CALLS = """
type Work { Do(fn (int32) -> int32, Work), Done }
def @twice(%f: fn (int32) -> int32, %n: int32) -> int32 { %f(%f(%n)) + 1 }
def @mapped(%f: fn (Tensor[(?), float32]) -> Tensor[(?), float32], %l: List[Tensor[(?), float32]]) { @map(%f, %l) }
def @folded(%f: fn (List[int32], (int32, bool)) -> List[int32], %n: int32) -> List[int32] {
  if (%n == 0) { Nil } else { %f(@folded(%f, %n - 1), (%n, %n > 1)) }
}
def @work(%w: Work, %n: int32) -> int32 { match (%w) { Do(%f, %rest) => @work(%rest, %f(%n)), Done => %n } }
def @same(%f: fn (int32) -> int32) -> fn () -> fn (int32) -> int32 { fn () -> fn (int32) -> int32 { %f } }
def @main(%n: int32) -> (fn (int32) -> int32, fn (fn (int32) -> int32) -> int32, ref(fn (int32) -> int32)) {
  let %less = fn (%k: int32) -> int32 { %k - %n };
  (%less, fn (%g: fn (int32) -> int32) -> int32 { %g(%n) * 2 }, ref(%less))
}
"""


@pytest.fixture(scope="module", params=["compiled", "loaded", "vm", "debug"])
def calls(request, tmp_path_factory):
    """The functions by name, and constructors."""
    module = parsed(CALLS)
    made = {c.name_hint: c for name in ("Work", "List") for c in module.get_type(name)[1:]}
    values = {name: lambda *fields, c=c: ConstructorValue(c.tag, fields, c) for name, c in made.items()}
    if request.param == "vm":
        machine = relay.vm.VirtualMachine(relay.vm.compile(module))
        return lambda name, *args: machine.invoke(name, *args), values
    if request.param == "debug":
        return lambda name, *args: relay.create_executor("debug", module).evaluate(module.get_global_var(name))(*args), values
    compiled = relayc.compile(module)
    if request.param == "loaded":
        path = tmp_path_factory.mktemp("calls") / "calls.so"
        compiled.export_library(path)
        compiled = relayc.load_module(path)
    return lambda name, *args: compiled[name](*args), values


def test_functions_of_python_are_called(calls):
    call, make = calls
    assert call("twice", lambda n: n * 3, 4) == 37
    assert call("twice", tvm_ffi.convert(lambda n: n - 5), 4) == -5  # a packed function gets the number
    assert call("twice", lambda n: np.int32(n) // 2, 9) == 3

    def appended(values, pair):
        assert list(pair) == [len(elements(values)) + 1, len(elements(values)) > 0]
        return make["Cons"](pair[0] * 10, values)

    assert elements(call("folded", appended, 3)) == [30, 20, 10]
    arrays = [np.arange(n, dtype="float32") for n in (2, 5)]
    values = make["Cons"](arrays[0], make["Cons"](arrays[1], make["Nil"]()))
    for function in (
        lambda x: np.append(x, x.sum()),
        tvm_ffi.convert(lambda x: tvm_ffi.from_dlpack(np.append(np.from_dlpack(x), np.float32(x.shape[0])))),
    ):
        for found, array in zip(elements(call("mapped", function, values)), arrays, strict=True):
            assert found.shape == (len(array) + 1,) and found.dtype == np.float32


def test_functions_go_in_and_out(calls):
    call, make = calls
    less, apply, ref = call("main", 3)
    assert less(10) == 7 and apply(less) == 0 and apply(lambda n: n + 1) == 8 and call("twice", less, 10) == 5
    assert call("work", make["Do"](less, make["Do"](lambda n: n * n, make["Do"](less, make["Done"]()))), 8) == 22
    own = call("same", lambda n: 7 - n)()
    assert own(2) == 5 and call("twice", own, 3) == 4 and apply(own) == 8
    assert call("same", apply and less)()(4) == 1
    ref.value = lambda n: n * 100
    assert ref.value(2) == 200


def test_errors_of_functions_of_python(calls):
    call, _ = calls

    def fails(n):
        raise LookupError(f"none for {n}", 5)

    with pytest.raises(LookupError, match="none for 2") as caught:
        call("twice", fails, 2)
    assert caught.value.args == ("none for 2", 5)
    with pytest.raises((TypeError, ValueError), match=r"expected fn \(int32\) -> int32, found a value of type str"):
        call("twice", "fails", 2)
    with pytest.raises((TypeError, ValueError), match=r"result of fails, a function of type fn \(int32\) -> int32: "):
        fails = lambda n: "many"  # noqa: E731 # of that name
        fails.__name__ = "fails"
        call("twice", fails, 2)


def test_functions_of_python_go(calls):
    call, _ = calls

    class Held:
        def __call__(self, n):
            return n

    held = Held()
    count = sys.getrefcount(held)
    assert call("twice", held, 2) == 3 and call("twice", abs, -2) == 3  # a machine holds its last arguments
    gc.collect()
    assert sys.getrefcount(held) == count

    def used():
        assert len(call("folded", lambda values, pair: values, 2000)) == 0
        gc.collect()
        return bytes_in_use()

    used()
    before = used()
    assert abs(used() - before) < 60_000  # the arguments take 200,000


@pytest.mark.parametrize(
    ("given", "made", "expected"), [("float32", "bool", True), ("string", "bool", False), ("float32", "string", False)]
)
def test_strings_are_not_taken_for_tensors(given, made, expected):
    program = SimpleNamespace(inputs=[TensorSpec("x", (2,), given)], outputs=[TensorSpec("y", (2,), made)])
    assert is_on_tensors(program) == expected


@pytest.mark.parametrize("body", ["Some(tanh(%x))", "let %r = ref(%x); let %u = ref_write(%r, tanh(%x)); Some(ref_read(%r))"])
def test_calls_may_be_repeated_unless_they_write(body):
    program, _ = compiled_program(parsed(f"def @main(%x: Tensor[(3), float32]) {{ {body} }}"), None)
    assert control_code(program).info.is_pure == ("write" not in body)


@pytest.mark.parametrize(
    ("call", "other", "is_deep"),
    [
        ("@main(%n - 1, %l)", "%l", False),
        ("@other(%n - 1, %l)", "More(%n, %l)", False),
        ("@other(%n - 1, %l)", "More(%n, @main(%n, %l))", True),
        ("More(%n, @main(%n - 1, %l))", "%l", True),
    ],
    ids=["a loop", "a call", "calls in turns", "a call in a call"],
)
def test_calls_nest_as_deep_as_data_say_by_recursion_that_is_no_loop(call, other, is_deep):
    module = relay.parse(f"""
type Stack {{ More(int32, Stack), End }}
def @main(%n: int32, %l: Stack) -> Stack {{ if (%n == 0) {{ %l }} else {{ {call} }} }}
def @other(%n: int32, %l: Stack) -> Stack {{ {other} }}""")
    program, _ = compiled_program(module, None)
    assert {info.is_deep for info in control_code(program).info.functions} == {is_deep}


def test_functions_of_any_types_are_not_passed_to_native_ones():
    a, tensor = relay.TypeVar("a"), relay.TensorType((3,))
    any_, x = relay.FuncType([a], a, [a]), relay.Var("x", tensor)
    for type_ in (any_, relay.FuncType([tensor, any_], tensor)):
        assert is_native(relay.Function([x], x)) and not is_native(relay.Function([x, relay.Var("f", type_)], x))
