"""Calls of packed functions and of functions of the tir stage, and recursion."""

import gc
import re
import weakref

import numpy as np
import pytest
import tvm_ffi
from programs import Programs, condition, pointwise

from relayc.dialects.relay.base import RelayError
from relayc.pipelines import PassContext
from relayc.pipelines.program import plan as planning

POSITIVE = "%z = arith.constant 0 : i64\n%c = arith.cmpi sgt, %0, %z : i64\n%r = arith.extui %c : i1 to i8"
KERNELS = "".join(
    [
        pointwise("dec", "%c = arith.constant 1 : i64\n%r = arith.subi %0, %c : i64", "i64", "i64"),
        pointwise("mul", "%r = arith.muli %0, %1 : i64", "i64", "i64", "i64"),
        pointwise("add", "%r = arith.addi %0, %1 : i64", "i64", "i64", "i64"),
        pointwise(
            "positive", "%z = arith.constant 0 : i64\n%c = arith.cmpi sgt, %0, %z : i64\n%r = arith.extui %c : i1 to i8", "i64", "i8"
        ),
        pointwise("one", "%r = arith.constant 1 : i64", "i64"),
        pointwise("zero", "%r = arith.constant 0 : i64", "i64"),
    ]
)
I = "tensor<i64>"  # noqa: E741 (the type of a scalar in the texts)


def i64(value: int) -> np.ndarray:
    return np.array(value, np.int64)


@pytest.fixture
def registered():
    """Registers functions for a test: they go with it."""
    names = []

    def register(name, function):
        tvm_ffi.register_global_func(name, function)
        names.append(name)

    yield register
    for name in names:
        tvm_ffi.registry.remove_global_func(name)


# ---- packed functions -------------------------------------------------------------------------------------------------------------

PACKED = """
func.func private @p(tensor<2x3xi8>, tensor<0x4xf32>, tensor<3xbf16>) -> (tensor<2xi8>, tensor<3x2xf32>) attributes {
    relay.packed = "test.packed", relay.input_dtypes = ["uint8", "float32", "bfloat16"], relay.output_dtypes = ["bool", "float32"]}
func.func @main(%x: tensor<2x3xi8>, %y: tensor<0x4xf32>, %z: tensor<3xbf16>) -> (tensor<2xi8>, tensor<3x2xf32>) attributes {
    relay.input_dtypes = ["uint8", "float32", "bfloat16"], relay.output_dtypes = ["bool", "float32"]} {
  %0:2 = call @p(%x, %y, %z) : (tensor<2x3xi8>, tensor<0x4xf32>, tensor<3xbf16>) -> (tensor<2xi8>, tensor<3x2xf32>)
  return %0#0, %0#1 : tensor<2xi8>, tensor<3x2xf32>
}
"""


def packed_arguments() -> list[np.ndarray]:
    import ml_dtypes

    return [np.arange(6, dtype=np.uint8).reshape(2, 3), np.zeros((0, 4), np.float32), np.ones(3, ml_dtypes.bfloat16)]


def test_a_python_function_gets_tensors_and_writes_outputs(registered):
    seen = []

    def function(x, y, z, a, b):
        seen.append([(tuple(t.shape), str(t.dtype), tuple(t.strides), str(t.device)) for t in (x, y, z, a, b)])
        np.from_dlpack(a)[...] = np.from_dlpack(x).sum(1) > 3
        np.from_dlpack(b)[...] = np.arange(6).reshape(3, 2)
        return x  # an object, which the program lets go

    registered("test.packed", function)
    a, b = Programs(PACKED)("main", *packed_arguments())
    assert seen[0] == [
        ((2, 3), "uint8", (3, 1), "cpu:0"),
        ((0, 4), "float32", (4, 1), "cpu:0"),
        ((3,), "bfloat16", (1,), "cpu:0"),
        ((2,), "bool", (1,), "cpu:0"),
        ((3, 2), "float32", (2, 1), "cpu:0"),
    ]
    np.testing.assert_array_equal(a, [False, True])
    np.testing.assert_array_equal(b, np.arange(6).reshape(3, 2))


def test_a_missing_packed_function_is_an_error_when_it_is_called(registered):
    programs = Programs(PACKED)
    with pytest.raises(ValueError, match=r"call_packed: expected a registered packed function test\.packed, found none"):
        programs("main", *packed_arguments())
    registered("test.packed", lambda *tensors: None)
    programs("main", *packed_arguments())


def test_an_error_of_a_packed_function_ends_the_program(registered):
    def function(*tensors):
        raise IndexError("out of luck")

    registered("test.packed", function)
    programs = Programs(PACKED)
    for _ in range(3):
        with pytest.raises(IndexError, match="out of luck"):
            programs("main", *packed_arguments())


def test_what_a_packed_function_gives_is_let_go(registered):
    class Given:
        pass

    given = []

    def function(*tensors):
        value = Given()
        given.append(weakref.ref(value))
        return value

    registered("test.packed", function)
    programs = Programs(PACKED)
    programs("main", *packed_arguments())
    gc.collect()
    assert given[0]() is None


LOOP = f"""
func.func private @p({I}, {I}) -> {I} attributes {{relay.packed = "test.step"}}
func.func private @within(%i: {I}, %a: {I}) -> {I} attributes {{relay.program}} {{
  %0 = call @add(%a, %i) : ({I}, {I}) -> {I}
  %1 = call @p(%i, %0) : ({I}, {I}) -> {I}
  %2 = call @add(%1, %0) : ({I}, {I}) -> {I}
  return %2 : {I}
}}
func.func @main(%n: {I}) -> {I} {{
  %zero = call @zero() : () -> {I}
  %r:2 = scf.while (%i = %n, %a = %zero) : ({I}, {I}) -> ({I}, {I}) {{
    %c = func.call @positive(%i) : ({I}) -> tensor<i8>
    {condition("c", "p")}
    scf.condition(%p) %i, %a : {I}, {I}
  }} do {{
  ^bb0(%i: {I}, %a: {I}):
    %b = func.call @within(%i, %a) : ({I}, {I}) -> {I}
    %j = func.call @dec(%i) : ({I}) -> {I}
    scf.yield %j, %b : {I}, {I}
  }}
  return %r#1 : {I}
}}
"""


def test_a_packed_function_in_a_program_in_a_loop(registered):
    calls = []

    def step(i, a, out):
        calls.append(int(np.from_dlpack(i)))
        if calls[-1] == 13:
            raise KeyError(13)
        np.from_dlpack(out)[...] = np.from_dlpack(i) * np.from_dlpack(a)

    registered("test.step", step)
    programs = Programs(KERNELS + LOOP)
    expected = 0
    for i in range(5, 0, -1):
        expected = (i + 1) * (expected + i)
    assert programs("main", i64(5))[0] == programs.replay("main", i64(5))[0] == expected
    calls.clear()
    with pytest.raises(KeyError):
        programs("main", i64(14))
    assert calls == [14, 13]


# ---- functions of the tir stage -----------------------------------------------------------------------------------------------------


def test_a_function_of_the_tir_stage_stands_where_it_is_declared():
    text = """
    func.func private @scaled_impl(%x: memref<4xf32>, %s: memref<f32>, %y: memref<4xf32>) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %n = arith.constant 4 : index
      %f = memref.load %s[] : memref<f32>
      scf.for %i = %zero to %n step %one {
        %v = memref.load %x[%i] : memref<4xf32>
        %w = arith.mulf %v, %f : f32
        memref.store %w, %y[%i] : memref<4xf32>
      }
      return
    }
    func.func private @scaled(tensor<4xf32>, tensor<f32>) -> tensor<4xf32> attributes {relay.tir = @scaled_impl, relay.ops = ["scaled"]}
    func.func @main(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {
      %0 = call @scaled(%x, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      %1 = call @scaled(%0, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    """
    programs = Programs(text)
    x, s = np.arange(4, dtype=np.float32), np.array(3, np.float32)
    np.testing.assert_array_equal(programs("main", x, s)[0], x * 9)
    np.testing.assert_array_equal(programs.replay("main", x, s)[0], x * 9)
    assert programs.kernels["scaled_impl"].ops == ("scaled",)


def test_a_function_that_takes_more_than_its_declaration_is_an_error():
    """Of which it wants the last packed."""
    text = """
    func.func private @impl(%x: memref<4x8xf32>, %y: memref<4x8xf32>, %w: memref<1x4x8xf32> {relay.packing = {batch = 0 : i64,
        extents = array<i64: 8, 4>, kind = "columns", map = affine_map<(d0, d1) -> (d1, d0)>, source = array<i64: 4, 8>}}) {
      return
    }
    func.func private @k(tensor<4x8xf32>) -> tensor<4x8xf32> attributes {relay.tir = @impl}
    func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = call @k(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    """
    with pytest.raises(RelayError, match=r"@impl, which @k stands for: expected the type \(memref<4x8xf32>, memref<4x8xf32>\) -> \(\),"):
        Programs(text)


# ---- recursion ------------------------------------------------------------------------------------------------------------------------

FACTORIAL = f"""
func.func @factorial(%n: {I}) -> {I} {{
  %c = call @positive(%n) : ({I}) -> tensor<i8>
  {condition("c", "p")}
  %r = scf.if %p -> ({I}) {{
    %m = func.call @dec(%n) : ({I}) -> {I}
    %f = func.call @factorial(%m) : ({I}) -> {I}
    %r = func.call @mul(%n, %f) : ({I}, {I}) -> {I}
    scf.yield %r : {I}
  }} else {{
    %r = func.call @one() : () -> {I}
    scf.yield %r : {I}
  }}
  return %r : {I}
}}
"""


@pytest.mark.parametrize("n", [0, 1, 5, 20])
def test_a_function_that_calls_itself(n):
    programs = Programs(KERNELS + FACTORIAL)
    expected = np.prod(np.arange(1, n + 1, dtype=np.int64))
    assert programs("factorial", i64(n))[0] == programs.replay("factorial", i64(n))[0] == expected


def test_too_many_nested_calls_are_an_error_and_as_many_as_may_nest_are_not():
    programs = Programs(KERNELS + FACTORIAL, config={"relay.max_recursion_depth": 7})
    assert programs.programs["factorial"].max_depth == 7
    assert programs("factorial", i64(7))[0] == 5040
    for _ in range(2):
        with pytest.raises(RecursionError, match="factorial: expected at most 7 nested calls, found more"):
            programs("factorial", i64(8))


def test_as_many_calls_as_may_nest_by_default():
    programs = Programs(KERNELS + FACTORIAL)
    assert programs("factorial", i64(programs.programs["factorial"].max_depth))[0] == 0  # of the 64 bits, all zero by then


MUTUAL = f"""
func.func private @even(%n: {I}, %a: {I}) -> {I} attributes {{relay.program}} {{
  %c = call @positive(%n) : ({I}) -> tensor<i8>
  {condition("c", "p")}
  %r = scf.if %p -> ({I}) {{
    %m = func.call @dec(%n) : ({I}) -> {I}
    %b = func.call @add(%a, %n) : ({I}, {I}) -> {I}
    %r = func.call @odd(%m, %b) : ({I}, {I}) -> {I}
    %s = func.call @add(%r, %b) : ({I}, {I}) -> {I}
    scf.yield %s : {I}
  }} else {{
    scf.yield %a : {I}
  }}
  return %r : {I}
}}
func.func private @odd(%n: {I}, %a: {I}) -> {I} attributes {{relay.program}} {{
  %c = call @positive(%n) : ({I}) -> tensor<i8>
  {condition("c", "p")}
  %r = scf.if %p -> ({I}) {{
    %m = func.call @dec(%n) : ({I}) -> {I}
    %x = func.call @even(%m, %a) : ({I}, {I}) -> {I}
    %y = func.call @even(%m, %x) : ({I}, {I}) -> {I}
    %z = func.call @mul(%a, %x) : ({I}, {I}) -> {I}
    %s = func.call @add(%y, %z) : ({I}, {I}) -> {I}
    scf.yield %s : {I}
  }} else {{
    %z = func.call @zero() : () -> {I}
    scf.yield %z : {I}
  }}
  return %r : {I}
}}
func.func @main(%n: {I}) -> ({I}, {I}) {{
  %one = call @one() : () -> {I}
  %a = call @even(%n, %one) : ({I}, {I}) -> {I}
  %b = call @odd(%n, %a) : ({I}, {I}) -> {I}
  return %a, %b : {I}, {I}
}}
"""


MASK = (1 << 64) - 1  # integers wrap around


def even(n, a):
    return (odd(n - 1, a + n) + a + n) & MASK if n else a


def odd(n, a):
    if not n:
        return 0
    x = even(n - 1, a)
    return (even(n - 1, x) + a * x) & MASK


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 10])
def test_functions_that_call_one_another(n, threads):
    programs = Programs(KERNELS + MUTUAL, config={"relay.max_recursion_depth": 10})
    a = even(n, 1)
    expected = [np.array(v, np.uint64).view(np.int64) for v in (a, odd(n, a))]
    np.testing.assert_array_equal(programs("main", i64(n), threads=threads), expected)
    np.testing.assert_array_equal(programs.replay("main", i64(n)), expected)


def test_the_error_of_a_recursion_leaves_the_programs_around_it():
    programs = Programs(KERNELS + MUTUAL, config={"relay.max_recursion_depth": 5})
    with pytest.raises(RecursionError, match="expected at most 5 nested calls, found more"):
        programs("main", i64(6))
    assert programs("main", i64(3))[0] == even(3, 1)


def test_a_recursion_that_would_take_too_much_memory_is_refused():
    big = f"tensor<{1 << 20}xf32>"
    text = (
        pointwise("grow", "%r = arith.addf %0, %0 : f32", f"{1 << 20}xf32", f"{1 << 20}xf32")
        + f"""
    func.func @f(%x: {big}) -> {big} {{
      %y = call @grow(%x) : ({big}) -> {big}
      %z = call @f(%y) : ({big}) -> {big}
      return %z : {big}
    }}
    """
    )
    with pytest.raises(RelayError, match=r"@f: expected at most 4294967296 bytes of memory for 2000 nested calls, found 8392802304"):
        Programs(text, config={"relay.max_recursion_depth": 2000})


def test_nested_calls_may_take_just_as_much_memory_as_the_limit(monkeypatch):
    def compiled(limit):
        monkeypatch.setattr(planning, "MAX_RECURSION_BYTES", limit)
        Programs(KERNELS + FACTORIAL, config={"relay.max_recursion_depth": 3})

    with pytest.raises(RelayError, match="expected at most 0 bytes of memory for 3 nested calls") as raised:
        compiled(0)
    total, each = map(int, re.findall(r"found (\d+), (\d+) for each", str(raised.value))[0])
    assert total == 4 * each > 0
    with pytest.raises(RelayError, match=f"at most {total - 1} bytes.*found {total},"):
        compiled(total - 1)
    compiled(total)


def test_a_depth_that_is_not_positive_is_refused():
    assert Programs(KERNELS + FACTORIAL, config={"relay.max_recursion_depth": 1})("factorial", i64(1))[0] == 1
    with PassContext(), pytest.raises(ValueError, match=r"relay\.max_recursion_depth: expected at least 1, found 0"):
        Programs(KERNELS + FACTORIAL, config={"relay.max_recursion_depth": 0})
