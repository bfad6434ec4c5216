"""Programs of several functions with branches, loops and calls: what they compute, as compiled and as the runtime replays them."""

import numpy as np
import pytest
from programs import Programs, condition, pointwise

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import IRModule, RelayError
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.program.functions import read_functions

N = 40
V = f"{N}xf32"
F = f"tensor<{V}>"
KERNELS = "".join(
    [
        pointwise("add", "%r = arith.addf %0, %1 : f32", V, V, V),
        pointwise("mul", "%r = arith.mulf %0, %1 : f32", V, V, V),
        pointwise("half", "%c = arith.constant 0.5 : f32\n%r = arith.mulf %0, %c : f32", V, V),
        pointwise("inc", "%c = arith.constant 1 : i64\n%r = arith.addi %0, %c : i64", "i64", "i64"),
        pointwise("dec", "%c = arith.constant 1 : i64\n%r = arith.subi %0, %c : i64", "i64", "i64"),
        pointwise("less", "%c = arith.cmpi slt, %0, %1 : i64\n%r = arith.extui %c : i1 to i8", "i64", "i64", "i8"),
        pointwise("odd", "%c = arith.trunci %0 : i64 to i1\n%r = arith.extui %c : i1 to i8", "i64", "i8"),
        pointwise("one", "%r = arith.constant 1 : i64", "i64"),
        pointwise("zero", "%r = arith.constant 0 : i64", "i64"),
    ]
)


def i64(value: int) -> np.ndarray:
    return np.array(value, np.int64)


def vector(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(N).astype(np.float32)


def both(programs: Programs, name: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """What a program gives: the same on one thread, on two and replayed."""
    found = programs(name, *arrays)
    for other in (programs(name, *arrays, threads=2), programs.replay(name, *arrays)):
        for a, b in zip(found, other, strict=True):
            np.testing.assert_array_equal(a, b)
    return found


COUNTED = f"""
func.func @main(%x: {F}, %n: tensor<i64>) -> ({F}, tensor<i64>) {{
  %zero = call @zero() : () -> tensor<i64>
  %r:2 = scf.while (%i = %zero, %a = %x) : (tensor<i64>, {F}) -> (tensor<i64>, {F}) {{
    %c = func.call @less(%i, %n) : (tensor<i64>, tensor<i64>) -> tensor<i8>
    {condition("c", "p")}
    scf.condition(%p) %i, %a : tensor<i64>, {F}
  }} do {{
  ^bb0(%i: tensor<i64>, %a: {F}):
    %j = func.call @inc(%i) : (tensor<i64>) -> tensor<i64>
    %h = func.call @half(%a) : ({F}) -> {F}
    %s = func.call @add(%h, %x) : ({F}, {F}) -> {F}
    scf.yield %j, %s : tensor<i64>, {F}
  }}
  return %r#1, %r#0 : {F}, tensor<i64>
}}
"""


@pytest.mark.parametrize("n", [-1, 0, 1, 2, 7])
def test_a_loop_with_a_counter_runs_as_often_as_it_says(n):
    x = vector(1)
    expected = x
    for _ in range(n):
        expected = expected * np.float32(0.5) + x
    y, count = both(Programs(KERNELS + COUNTED), "main", x, i64(n))
    np.testing.assert_array_equal(y, expected)
    assert count == max(n, 0)


def test_a_value_that_is_written_after_the_last_read_needs_no_copy_in_the_loop():
    # %h is read from the carried tensor before %s is written, which therefore is written into it.
    programs = Programs(KERNELS + COUNTED)
    loop = programs.programs["main"].steps[-1]
    assert [s.kernel for s in loop.body] == ["inc", "half", "add", "fused_copy_1"]
    assert loop.body[2].outputs[0].space == "output"


ROTATED = f"""
func.func @main(%x: {F}, %y: {F}, %z: {F}, %n: tensor<i64>) -> ({F}, {F}, {F}) {{
  %zero = call @zero() : () -> tensor<i64>
  %r:4 = scf.while (%i = %zero, %a = %x, %b = %y, %c = %z) : (tensor<i64>, {F}, {F}, {F}) -> (tensor<i64>, {F}, {F}, {F}) {{
    %l = func.call @less(%i, %n) : (tensor<i64>, tensor<i64>) -> tensor<i8>
    {condition("l", "p")}
    scf.condition(%p) %i, %a, %b, %c : tensor<i64>, {F}, {F}, {F}
  }} do {{
  ^bb0(%i: tensor<i64>, %a: {F}, %b: {F}, %c: {F}):
    %j = func.call @inc(%i) : (tensor<i64>) -> tensor<i64>
    scf.yield %j, %YIELD : tensor<i64>, {F}, {F}, {F}
  }}
  return %r#1, %r#2, %r#3 : {F}, {F}, {F}
}}
"""


@pytest.mark.parametrize("order", ["bac", "bca", "cab", "aab", "bba", "abc", "ccc", "cba"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_carried_tensors_change_places_at_once(order, n):
    arrays = dict(zip("abc", map(vector, range(3)), strict=True))
    expected = arrays
    for _ in range(n):
        expected = dict(zip("abc", [expected[c] for c in order], strict=True))
    text = KERNELS + ROTATED.replace("%YIELD", ", ".join(f"%{c}" for c in order))
    found = both(Programs(text), "main", *arrays.values(), i64(n))
    np.testing.assert_array_equal(found, list(expected.values()))


NESTED = f"""
func.func @main(%x: {F}, %n: tensor<i64>, %m: tensor<i64>) -> ({F}, {F}) {{
  %zero = call @zero() : () -> tensor<i64>
  %k = call @mul(%x, %x) : ({F}, {F}) -> {F}
  %r:2 = scf.while (%i = %zero, %a = %x) : (tensor<i64>, {F}) -> (tensor<i64>, {F}) {{
    %l = func.call @less(%i, %n) : (tensor<i64>, tensor<i64>) -> tensor<i8>
    {condition("l", "p")}
    scf.condition(%p) %i, %a : tensor<i64>, {F}
  }} do {{
  ^bb0(%i: tensor<i64>, %a: {F}):
    %q:2 = scf.while (%j = %zero, %b = %a) : (tensor<i64>, {F}) -> (tensor<i64>, {F}) {{
      %l = func.call @less(%j, %m) : (tensor<i64>, tensor<i64>) -> tensor<i8>
      {condition("l", "p")}
      scf.condition(%p) %j, %b : tensor<i64>, {F}
    }} do {{
    ^bb0(%j: tensor<i64>, %b: {F}):
      %o = func.call @odd(%j) : (tensor<i64>) -> tensor<i8>
      {condition("o", "p")}
      %s = scf.if %p -> ({F}) {{
        %t = func.call @add(%b, %k) : ({F}, {F}) -> {F}
        scf.yield %t : {F}
      }} else {{
        %u = func.call @odd(%i) : (tensor<i64>) -> tensor<i8>
        {condition("u", "q")}
        %t = scf.if %q -> ({F}) {{
          scf.yield %b : {F}
        }} else {{
          %v = func.call @half(%b) : ({F}) -> {F}
          %w = func.call @add(%v, %a) : ({F}, {F}) -> {F}
          scf.yield %w : {F}
        }}
        scf.yield %t : {F}
      }}
      %next = func.call @inc(%j) : (tensor<i64>) -> tensor<i64>
      scf.yield %next, %s : tensor<i64>, {F}
    }}
    %next = func.call @inc(%i) : (tensor<i64>) -> tensor<i64>
    scf.yield %next, %q#1 : tensor<i64>, {F}
  }}
  %d = call @add(%r#1, %k) : ({F}, {F}) -> {F}
  return %r#1, %d : {F}, {F}
}}
"""


@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (1, 1), (4, 5)])
def test_loops_and_branches_within_loops(n, m):
    x = vector(2)
    k = x * x
    a = x
    for i in range(n):
        b = a
        for j in range(m):
            b = b + k if j % 2 else b if i % 2 else b * np.float32(0.5) + a
        a = b
    y, d = both(Programs(KERNELS + NESTED), "main", x, i64(n), i64(m))
    np.testing.assert_allclose(y, a, rtol=1e-6)  # a multiplication and an addition may become one operation
    np.testing.assert_array_equal(d, y + k)


BRANCHES = f"""
func.func @main(%x: {F}, %y: {F}, %c: tensor<i8>) -> ({F}, {F}, {F}, {F}) attributes {{
    relay.input_dtypes = ["float32", "float32", "bool"], relay.output_dtypes = ["float32", "float32", "float32", "float32"]}} {{
  %w = "relay.constant"() {{value = "w", shape = array<i64: {N}>, dtype = "float32"}} : () -> {F}
  %s = call @add(%x, %y) : ({F}, {F}) -> {F}
  {condition("c", "p")}
  %r:3 = scf.if %p -> ({F}, {F}, {F}) {{
    %t = func.call @mul(%s, %y) : ({F}, {F}) -> {F}
    scf.yield %t, %t, %w : {F}, {F}, {F}
  }} else {{
    scf.yield %x, %s, %s : {F}, {F}, {F}
  }}
  return %r#0, %r#1, %r#2, %s : {F}, {F}, {F}, {F}
}}
"""


@pytest.mark.parametrize("flag", [False, True])
def test_a_branch_gives_outer_values_inputs_parameters_and_one_value_twice(flag):
    x, y, w = vector(3), vector(4), vector(5)
    s = x + y
    expected = [s * y, s * y, w, s] if flag else [x, s, s, s]
    found = both(Programs(KERNELS + BRANCHES, {"w": w}), "main", x, y, np.array(flag))
    np.testing.assert_array_equal(found, expected)


def test_a_branch_without_results_and_an_infinite_loop_that_never_begins():
    text = f"""
    func.func @main(%x: {F}, %c: tensor<i8>) -> {F} {{
      {condition("c", "p")}
      scf.if %p {{
        %s = func.call @half(%x) : ({F}) -> {F}
      }}
      scf.while : () -> () {{
        {condition("c", "q")}
        scf.condition(%q)
      }} do {{
        scf.yield
      }}
      return %x : {F}
    }}
    """
    x = vector(6)
    np.testing.assert_array_equal(both(Programs(KERNELS + text), "main", x, np.array(0, np.int8))[0], x)


CALLED = f"""
func.func private @f(%x: {F}, %y: {F}) -> ({F}, {F}) attributes {{relay.program}} {{
  %s = call @add(%x, %y) : ({F}, {F}) -> {F}
  %t = call @mul(%s, %s) : ({F}, {F}) -> {F}
  %u = call @half(%t) : ({F}) -> {F}
  return %u, %x : {F}, {F}
}}
func.func @g(%x: {F}) -> {F} {{
  %w = "relay.constant"() {{value = "w", shape = array<i64: {N}>, dtype = "float32"}} : () -> {F}
  %a:2 = call @f(%x, %w) : ({F}, {F}) -> ({F}, {F})
  return %a#0 : {F}
}}
func.func @main(%x: {F}, %y: {F}) -> ({F}, {F}) {{
  %h = call @half(%x) : ({F}) -> {F}
  %a:2 = call @f(%h, %y) : ({F}, {F}) -> ({F}, {F})
  %b:2 = call @f(%a#0, %h) : ({F}, {F}) -> ({F}, {F})
  %c = call @g(%b#0) : ({F}) -> {F}
  %d = call @add(%c, %a#1) : ({F}, {F}) -> {F}
  return %c, %d : {F}, {F}
}}
"""


def test_a_program_is_called_twice_and_others_are_called_from_outside_too():
    def f(x, y):
        s = x + y
        return s * s * np.float32(0.5)

    x, y, w = vector(7), vector(8), vector(9)
    programs = Programs(KERNELS + CALLED, {"w": w})
    assert list(programs.programs) == ["main", "g", "f"]
    assert {name for name, p in programs.programs.items() if p.public} == {"main", "g"} <= set(programs.functions)
    h = x * np.float32(0.5)
    c = f(f(f(h, y), h), w)
    np.testing.assert_allclose(both(programs, "main", x, y), [c, c + h], rtol=1e-6)
    np.testing.assert_allclose(both(programs, "g", x), [f(x, w)], rtol=1e-6)


def test_public_programs_check_their_arguments():
    programs = Programs(KERNELS + CALLED, {"w": vector(0)})
    with pytest.raises(TypeError, match="g: expected 4 arguments, found 1"):
        programs.functions["g"](vector(0))
    with pytest.raises(ValueError, match=r"g: argument 0 'input0': expected float32\[40\], found float32\[2\]"):
        programs.functions["g"](np.zeros(2, np.float32), vector(0), vector(0), vector(0))
    small = np.zeros(64, np.uint8)
    with pytest.raises(ValueError, match=rf"g: argument 2 'arena': expected uint8\[{programs.programs['g'].arena_bytes}\]"):
        programs.functions["g"](vector(0), vector(0), small, programs.params)


JOINED = """
func.func private @join(%a: tensor<1x4xf32>, %b: tensor<1x6xf32>) -> tensor<1x10xf32> {
  %0 = tensor.concat dim(1) %a, %b : (tensor<1x4xf32>, tensor<1x6xf32>) -> tensor<1x10xf32>
  return %0 : tensor<1x10xf32>
}
"""


def test_concatenations_are_in_place_within_a_branch():
    kernels = (
        pointwise("exp4", "%r = math.exp %0 : f32", "1x4xf32", "1x4xf32")
        + pointwise("exp6", "%r = math.exp %0 : f32", "1x6xf32", "1x6xf32")
        + pointwise("neg", "%r = arith.negf %0 : f32", "1x10xf32", "1x10xf32")
        + JOINED
    )
    text = f"""
    func.func @main(%x: tensor<1x4xf32>, %y: tensor<1x6xf32>, %c: tensor<i8>) -> tensor<1x10xf32> {{
      {condition("c", "p")}
      %r = scf.if %p -> (tensor<1x10xf32>) {{
        %a = func.call @exp4(%x) : (tensor<1x4xf32>) -> tensor<1x4xf32>
        %b = func.call @exp6(%y) : (tensor<1x6xf32>) -> tensor<1x6xf32>
        %j = func.call @join(%a, %b) : (tensor<1x4xf32>, tensor<1x6xf32>) -> tensor<1x10xf32>
        %n = func.call @neg(%j) : (tensor<1x10xf32>) -> tensor<1x10xf32>
        scf.yield %n : tensor<1x10xf32>
      }} else {{
        %j = func.call @join(%x, %y) : (tensor<1x4xf32>, tensor<1x6xf32>) -> tensor<1x10xf32>
        scf.yield %j : tensor<1x10xf32>
      }}
      return %r : tensor<1x10xf32>
    }}
    """
    programs = Programs(kernels + text)
    branch = programs.programs["main"].steps[0]
    assert [s.kernel for s in branch.then] == ["exp4", "exp6", "neg"]
    assert [s.kernel for s in branch.otherwise] == ["join"]
    x, y = vector(1)[None, :4], vector(2)[None, :6]
    joined = np.concatenate([x, y], 1)
    np.testing.assert_allclose(both(programs, "main", x, y, np.array(1, np.int8))[0], -np.exp(joined), rtol=1e-6)
    np.testing.assert_array_equal(both(programs, "main", x, y, np.array(0, np.int8))[0], joined)


def test_reshapes_of_carried_tensors_are_views():
    text = f"""
    func.func private @double(%x: tensor<4x10xf32>) -> tensor<4x10xf32> {{
      %e = tensor.empty() : tensor<4x10xf32>
      %g = linalg.add ins(%x, %x : tensor<4x10xf32>, tensor<4x10xf32>) outs(%e : tensor<4x10xf32>) -> tensor<4x10xf32>
      return %g : tensor<4x10xf32>
    }}
    func.func @main(%x: {F}, %n: tensor<i64>) -> tensor<4x10xf32> {{
      %r:2 = scf.while (%i = %n, %a = %x) : (tensor<i64>, {F}) -> (tensor<i64>, {F}) {{
        %z = func.call @zero() : () -> tensor<i64>
        %l = func.call @less(%z, %i) : (tensor<i64>, tensor<i64>) -> tensor<i8>
        {condition("l", "p")}
        scf.condition(%p) %i, %a : tensor<i64>, {F}
      }} do {{
      ^bb0(%i: tensor<i64>, %a: {F}):
        %m = tensor.expand_shape %a [[0, 1]] output_shape [4, 10] : {F} into tensor<4x10xf32>
        %d = func.call @double(%m) : (tensor<4x10xf32>) -> tensor<4x10xf32>
        %f = tensor.collapse_shape %d [[0, 1]] : tensor<4x10xf32> into {F}
        %j = func.call @dec(%i) : (tensor<i64>) -> tensor<i64>
        scf.yield %j, %f : tensor<i64>, {F}
      }}
      %m = tensor.expand_shape %r#1 [[0, 1]] output_shape [4, 10] : {F} into tensor<4x10xf32>
      return %m : tensor<4x10xf32>
    }}
    """
    x = vector(1)
    np.testing.assert_array_equal(both(Programs(KERNELS + text), "main", x, i64(3))[0], x.reshape(4, 10) * 8)


def test_main_comes_first_then_other_public_programs():
    text = """
    func.func private @inner() attributes {relay.program} { return }
    func.func @other() { return }
    func.func @main() { return }
    """
    with make_context():
        module = ir.Module.parse(text)
        assert list(read_functions(module).programs) == ["main", "other", "inner"]


def test_a_parameter_without_an_array_is_an_error():
    mod = IRModule.parse("""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = "relay.constant"() {value = "weight", shape = array<i64: 4>, dtype = "float32"} : () -> tensor<4xf32>
  %0 = "relay.add"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
""")
    with pytest.raises(RelayError, match="the parameter table: expected arrays for weight, found none"):
        compile(mod)
