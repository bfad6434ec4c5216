"""What is printed in TVMScript's form is read back as the same function: kernels of operators, and schedules of all kinds."""

import re
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest
from schedules.kernels import KERNELS
from schedules.structure import structures
from schedules.test_random_schedules import Steps

import relayc
from relayc import te
from relayc.dialects.functions import is_public
from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.passes import PassContext, load_passes
from relayc.pipelines.evaluate.tir import run
from relayc.pipelines.tir.script.printer import show
from relayc.pipelines.tir.tree.arguments import decode, encode
from relayc.pipelines.tir.tree.create import create_nest
from relayc.tir import Schedule, ScheduleError, ScriptError, T, from_source, prim_func, replay, script
from relayc.tools.opt import run_passes

LIT = Path(__file__).parents[2] / "lit" / "te"


def check_round_trip(mod: IRModule) -> str:
    """The text of a module, which is that of what is read from it too."""
    text = script(mod)
    again = from_source(text)
    assert script(again) == text
    assert structures(again) == structures(mod), text
    return text


# What has loops alone; other files are of scans, sorting and the like, or take long.
@pytest.mark.parametrize("name", ["unary", "reduce", "transform", "symbolic", "pool", "sampling", "narrow"])
def test_kernels_of_operators(name: str) -> None:
    load_passes()
    count = 0
    context = PassContext(opt_level=0)
    for part in re.split(r"^// -----.*$\n?", (LIT / f"{name}.mlir").read_text(), flags=re.MULTILINE):
        mod = run_passes(IRModule.parse(part), ["fuse-ops", "outline-groups", "relay-to-te"], context)
        with mod.context, ir.Location.unknown():
            for op in mod.module.body.operations:
                if is_public(op) or not len(op.regions[0].blocks):
                    continue
                made = IRModule(ir.Module.create())
                try:
                    create_nest(op.operation, made.module).order()
                except ScheduleError:
                    continue  # it has no parallel form
                check_round_trip(made)
                count += 1
    assert count > 0


@pytest.mark.parametrize("name", KERNELS)
def test_random_schedules(name: str) -> None:
    kernel = KERNELS[name]()
    for seed in range(100, 104):
        schedule = Schedule(kernel.mod)
        steps = Steps(schedule, seed)
        for _ in range(8):
            with suppress(ScheduleError):
                steps.any()
        text = check_round_trip(schedule.mod)
        found, expected = (run(mod, kernel.inputs, kernel.sizes) for mod in (from_source(text), schedule.mod))
        for a, b in zip(found, expected, strict=True):
            assert a.tobytes() == b.tobytes(), text


def test_the_text_of_a_schedule() -> None:
    kernel = KERNELS["product"]()
    schedule = Schedule(kernel.mod)
    schedule.reverse_compute_at("E", schedule.get_loops("D")[0])
    tiles = schedule.split("i", [None, 4])
    schedule.parallel(tiles[0])
    schedule.vectorize(schedule.get_loops("E")[-1])
    assert (
        schedule.script()
        == """from relayc.tir import T


@T.prim_func
def main(
    A: T.Buffer(("n", 7), "float32"),
    B: T.Buffer((7, 5), "float32"),
    bias: T.Buffer((5,), "float32"),
    E: T.Buffer(("n", 5), "float32"),
):
    n = T.int64()
    D = T.alloc_buffer((n, 5), "float32")
    for i_0 in T.parallel((n + 3)//4):
        for i_1 in range(4):
            for j, k in T.grid(5, 7):
                with T.block("D"):
                    vi = T.axis.spatial(n, i_0 * 4 + i_1)
                    vj = T.axis.spatial(5, j)
                    vk = T.axis.reduce(7, k)
                    T.where(i_0 * 4 + i_1 < n)
                    with T.init():
                        D[vi, vj] = 0.0
                    D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]
            for ax1 in T.vectorized(5):
                with T.block("E"):
                    vi = T.axis.spatial(n, i_0 * 4 + i_1)
                    vax1 = T.axis.spatial(5, ax1)
                    T.where(i_0 * 4 + i_1 < n)
                    E[vi, vax1] = T.max(D[vi, vax1] + bias[vax1], 0.0)
"""
    )


def test_the_start_of_a_reduction_that_goes_on_outside_of_a_block() -> None:
    kernel = KERNELS["product"]()
    schedule = Schedule(kernel.mod)
    i, _, k = schedule.get_loops("D")
    outer, _ = schedule.split(k, [None, 2])
    schedule.reorder(outer, i)
    schedule.blockize(i)
    text = check_round_trip(schedule.mod)
    np.testing.assert_array_equal(*(run(mod, kernel.inputs, kernel.sizes)[0] for mod in (from_source(text), schedule.mod)))


def test_a_block_of_strided_elements_counts_the_first_ones_only() -> None:
    a = te.placeholder((8,), name="A")
    schedule = Schedule(te.create_prim_func([a, te.compute((8,), lambda i: a[i] + 1.0, name="B")]))
    outer, inner = schedule.split("i", [None, 2])
    schedule.reorder(inner, outer)
    schedule.blockize(outer)
    given = np.arange(8, dtype=np.float32)
    (found,) = run(from_source(check_round_trip(schedule.mod)), [given], {})
    np.testing.assert_array_equal(found, given + 1)


def test_the_index_of_a_padded_copy() -> None:
    a = te.placeholder((3,), name="A")
    schedule = Schedule(te.create_prim_func([a, te.compute((3,), lambda i: a[i] * 2.0, name="B")]))
    schedule.pad_einsum("B", [4])
    given = np.arange(3, dtype=np.float32)
    (found,) = run(from_source(check_round_trip(schedule.mod)), [given], {})
    np.testing.assert_array_equal(found, given * 2)


def test_names_that_collide_are_kept() -> None:
    text = """
@T.prim_func(name="f.1")
def f(n: T.Buffer(("n", 4), "float32"), i: T.Buffer(("n", 4), "float32", name="out.0")):
    m = T.var("int64", "n")
    x = T.alloc_buffer((m, 4), "float32", scope="shared", name="T")
    for j in T.serial(m, name="n"):
        for k in range(4):
            with T.block("x"):
                v, w = T.axis.remap("SS", [j, k])
                x[v, w] = n[v, w]
    for j in T.serial(m, name="range"):
        for k in T.parallel(4, name="x"):
            with T.block("i"):
                v, w = T.axis.remap("SO", [j, k])
                i[v, w] = x[v, w]
"""
    mod = from_source(text)
    printed = check_round_trip(mod)
    assert 'tir.loop = "range"' in str(mod) and 'name="range"' in printed
    assert 'm = T.var("int64", "n")' not in printed and 'T.var("int64", "n")' in printed


@pytest.mark.parametrize("text", ["", "import tvm", '"""A text."""'])
def test_a_text_has_a_function(text: str) -> None:
    with pytest.raises(ScriptError, match="1: expected a function, found none"):
        from_source(text)


def test_what_is_read_twice_or_before_a_store_has_a_name() -> None:
    @prim_func
    def main(A: T.Buffer((4,), "int8"), B: T.Buffer((4,), "int8"), C: T.Buffer((4,), "bool")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]
                old = B[vi]
                B[vi] = B[vi] // 3
                C[vi] = old == B[vi] or old > 100

    text = check_round_trip(main)
    assert "x = B[vi]" in text
    assert "C[vi] = x == B[vi] or x > 100" in text
    assert "T.op(" in text  # // is several operations, of which some have no form of their own


def test_truth_values_are_copied_as_they_are() -> None:
    @prim_func
    def main(A: T.Buffer((4,), "bool"), B: T.Buffer((4,), "bool")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]

    assert "B[vi] = A[vi]\n" in check_round_trip(main)


def test_show_prints_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    schedule = Schedule(KERNELS["total"]().mod)
    schedule.show()
    assert capsys.readouterr().out == schedule.script()
    mod = KERNELS["total"]().mod
    with pytest.raises(ScheduleError, match="script: expected a function of blocks and loops, found none"):
        script(mod)
    show(mod)
    assert capsys.readouterr().out == f"// script: expected a function of blocks and loops, found none\n{mod}"


def test_a_constant_that_starts_a_reduction_and_is_a_result_is_written() -> None:
    mod = IRModule.parse("""
func.func @main(%x: tensor<4x3xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %seven = arith.constant 7.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%seven : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
    iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x3xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = arith.addf %o, %a : f32
    linalg.yield %b : f32
  } -> tensor<4xf32>
  return %s, %f : tensor<4xf32>, tensor<4xf32>
}""")
    given, schedule = np.arange(12, dtype=np.float32).reshape(4, 3), Schedule(mod)
    assert [str(b) for b in schedule.get_blocks()] == ["fill", "generic"]
    for found, wanted in zip(run(schedule.mod, [given], {}), (given.sum(1) + 7, np.full(4, 7)), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_loops_and_blocks_of_nothing() -> None:
    text = """
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("empty"):
            v = T.axis.spatial(8, i)
    for j in range(8):
        pass
    for k in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, k)
            B[v] = A[v]
"""
    printed = check_round_trip(from_source(text))
    assert 'remap("S", [i])\n            pass\n    for j in range(8):\n        pass\n' in printed
    written = 'func.func @main(%a: memref<8xf32> {tir.buffer = "A", tir.output}) attributes {tir.blocks} {\n  return\n}'
    assert script(IRModule.parse(written)).endswith('def main(A: T.Buffer((8,), "float32")):\n    pass\n')


def test_a_cast_of_a_tensor_is_no_block() -> None:
    """Nor is a constant that only begins sums."""
    rows = 'tensor<?x3xf32, ["n"]>'
    same = "affine_map<(d0, d1) -> (d0, d1)>"
    mod = IRModule.parse(f"""
func.func @main(%x: {rows}, %n: index {{relay.symbol = "n"}}) -> tensor<?xf32, ["n"]> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : {rows}
  %f = tensor.empty(%n) : tensor<?xf32, ["n"]>
  %y = linalg.generic {{indexing_maps = [{same}, {same}], iterator_types = ["parallel", "parallel"]}} ins(%x : {rows}) outs(%e : {rows}) {{
  ^bb0(%a: f32, %o: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  }} -> {rows}
  %d = tensor.cast %y : {rows} to {rows}
  %s = linalg.fill ins(%zero : f32) outs(%f : tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %z = linalg.generic {{indexing_maps = [{same}, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}}
      ins(%d : {rows}) outs(%s : tensor<?xf32, ["n"]>) {{
  ^bb0(%a: f32, %o: f32):
    %c = arith.addf %o, %a : f32
    linalg.yield %c : f32
  }} -> tensor<?xf32, ["n"]>
  return %z : tensor<?xf32, ["n"]>
}}""")
    schedule = Schedule(mod)
    assert len(schedule.get_blocks()) == 2
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(run(schedule.mod, [x], {"n": 4})[0], -x.sum(1))


@pytest.mark.parametrize(
    ("value", "found"),
    [("A[vi]", "float32"), ("vi > 3", "bool"), ("T.int16(3)", "int16"), ("vi + 300", ""), ("A[vi].astype('int8')", "")],
)
def test_what_is_stored_has_the_dtype_of_the_buffer(value: str, found: str) -> None:
    """Indices are converted, whatever they are."""
    text = f"""
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int8")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = {value}
"""
    if found:
        with pytest.raises(ScriptError, match=rf"B\[...\]: expected a value of int8 \(T.cast\), found {found}"):
            from_source(text)
        return
    a = np.arange(-3, 5, dtype=np.float32)
    expected = (np.arange(300, 308) if "vi +" in value else a).astype(np.int8)
    np.testing.assert_array_equal(run(from_source(text), [a])[0], expected)


def test_what_python_knows_decides_alone() -> None:
    """Of what follows `and` and `or` nothing is written; keywords may be a dictionary."""
    text = """
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.serial(8, **{"annotations": {"unroll_step": 2}}):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] if (3 > 4 and nothing) or 3 < 4 or nothing else 0.0
"""
    mod = from_source(text)
    assert "B[vi] = A[vi]\n" in script(mod) and "unroll_step = 2" in str(mod)


def test_a_trace_is_equal_to_one_of_the_same_steps() -> None:
    schedules = [Schedule(KERNELS["total"]().mod) for _ in range(3)]
    for schedule, factor in zip(schedules, (2, 2, 3), strict=True):
        schedule.split("k", [None, factor])
    traces = [schedule.trace for schedule in schedules]
    assert traces[0] == traces[1] != traces[2] and traces[0] != str(traces[0])


def test_a_number_that_a_knob_chose_is_told_as_a_number() -> None:
    schedule = Schedule(KERNELS["total"]().mod)
    axis = schedule.sample_categorical([4, 5], decision=1)
    with pytest.raises(ScheduleError, match=r"rfactor\(loop=k, factor_axis=5\): "):
        schedule.rfactor("k", axis)


def test_what_has_no_loops_is_told() -> None:
    with pytest.raises(ScheduleError, match="expected a module with functions of the te stage, found none"):
        Schedule(IRModule.parse("module {}"))
    text = "func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {\n  return %x : tensor<?x3xf32>\n}"
    with pytest.raises(ScheduleError, match=r"@main: expected operations that have loops, on tensors of known shapes, found .* not known"):
        Schedule(IRModule.parse(text))


def test_a_padding_of_nothing_is_a_copy() -> None:
    mod = IRModule.parse("""
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x4xf32> {
  %one = arith.constant 1.0 : f32
  %same = tensor.pad %x low[0, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f32
  } : tensor<2x3xf32> to tensor<2x3xf32>
  %y = tensor.pad %same low[0, 1] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f32
  } : tensor<2x3xf32> to tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}""")
    schedule = Schedule(mod)
    assert script(schedule.mod).count("T.Select") == 1
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run(schedule.mod, [x])[0], np.pad(x, ((0, 0), (1, 0)), constant_values=1))


def test_arguments_of_primitives_are_of_some_types() -> None:
    with make_context(), ir.Location.unknown():
        numbers = ir.Attribute.parse("dense<1> : tensor<2xi32>")
        assert encode(numbers) == numbers
        with pytest.raises(TypeError, match="expected an argument of a primitive, found dense<1>"):
            decode(numbers, lambda name: name)
        with pytest.raises(TypeError, match="expected a number, a text, None, an affine map, or a list of these, found 1j"):
            encode(1j)
        for value in (3, 0.5, "k", None, True, [1, ["a", None]]):
            assert decode(encode(value), lambda name: name) == value


def test_a_script_says_what_it_makes_and_may_have_other_operations(capfd: pytest.CaptureFixture[str]) -> None:
    """Which see what the primitives before them made."""
    mod = KERNELS["total"]().mod
    schedule = Schedule(mod)
    schedule.split("k", [None, 4])
    text = str(schedule.trace)
    with pytest.raises(
        ScheduleError, match=r"split\(.*\): expected it to make \['k_0', 'k_9'\], as the script says, found \['k_0', 'k_1'\]"
    ):
        replay(text.replace('"k_1"', '"k_9"'), mod)
    failing = '    %p = transform.get_parent_op %0 {op_name = "test.none"} : (!transform.any_op) -> !transform.any_op\n    transform.yield'
    with pytest.raises(ScheduleError, match=r"(?s)^script: .*could not find a parent op"):
        replay(text.replace("    transform.yield", failing), mod)
    found = replay(text.replace("    transform.yield", "    transform.print %0 : !transform.any_op\n    transform.yield"), mod)
    assert str(found) == str(schedule.mod)
    assert 'tir.loop = "k_1"' in capfd.readouterr().out


def test_a_trace_that_a_kernel_gets_is_of_one_function_of_any_name() -> None:
    kernel = KERNELS["total"]()
    schedule = Schedule(kernel.mod)
    schedule.split("k", [None, 4])
    text = str(schedule.trace)
    found = relayc.compile_kernel(kernel.mod, schedule=text.replace('"main"', '"other"'))(*kernel.inputs)
    np.testing.assert_array_equal(found, kernel.inputs[0].sum(1))
    match = next(line for line in text.splitlines() if "structured.match" in line)
    both = text.replace(match, f"{match}\n{match.replace('%0', '%1').replace('main', 'other')}")
    with pytest.raises(ScheduleError, match="expected a trace of the schedule of one function, found one of main, other"):
        relayc.compile_kernel(kernel.mod, schedule=both)


@pytest.mark.parametrize(("bounds", "found"), [("5, 3", "5 to 3"), ("n + 1, n", "n [+] 1 to n"), ("5, 5", ""), ("n, n + n", "")])
def test_a_loop_ends_where_it_begins_or_later(bounds: str, found: str) -> None:
    text = f"""
def main(A: T.Buffer(("n",), "float32"), B: T.Buffer((30,), "float32")):
    for i in T.serial({bounds}):
        with T.block("B"):
            v = T.axis.spatial(30, i)
            B[v] = 2.0
"""
    with pytest.raises(ScriptError, match=f"a loop from {found}: expected a number that is not negative") if found else nullcontext():
        s = Schedule(from_source(text))
        assert [str(loop.extent) for loop in s.nest.loops().values()] == ["0" if "5" in bounds else "n"]


def test_only_what_is_loaded_has_a_name_before_a_store() -> None:
    mod = from_source("""
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            number = T.cast(v + 1, "float32")
            old = A[v]
            B[v] = 1.0
            C[v] = number + old
""")
    *_, loaded, first, second = script(mod).rstrip().splitlines()
    assert (loaded.strip(), first.strip()) == ("x = A[vi]", "B[vi] = 1.0") and second.endswith('"float32") + x')


def test_a_point_whose_bounds_are_not_reached_is_no_error() -> None:
    """From i - i // 2 follow the bounds -3 and 7, but its values are 0 to 4."""
    text = """
def main(A: T.Buffer((5, 2), "float32"), B: T.Buffer((5, 2), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(5, POINT)
            B[v, 0] = A[v, 0]
"""
    from_source(text.replace("POINT", "i - i // 2"))
    with pytest.raises(ScriptError):
        from_source(text.replace("POINT", "i - 3"))
    with pytest.raises(ScriptError, match="A: expected an element, found a slice"):
        from_source(text.replace("POINT", "i - i // 2").replace("A[v, 0]", "A[v, 0:1]"))


def test_a_grid_has_extents() -> None:
    with pytest.raises(ScriptError, match=r"T\.grid: expected extents, found none"):
        from_source('def main(A: T.Buffer((5,), "float32")):\n    for i in T.grid():\n        pass\n')


PLUS_ONE = from_source("""
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1.0
""")


@pytest.mark.parametrize(
    ("pattern", "replacement", "words"),
    [
        (r'(tir.loop = "i")', r"\1, tir.annotations = {weight = @size}", "annotations: expected a value, found a knob size"),
        (
            r"(%\w+) = arith.addf (%\w+), %\w+ : f32",
            r"%w = arith.extf \2 : f32 to f80\n%one = arith.constant 1.0 : f80\n%y = arith.addf %w, %one : f80\n"
            r"\1 = arith.truncf %y : f80 to f32",
            "script: expected constants of numbers, found 1.0.* : f80",
        ),
        (
            r'"tir.block"\((%\w+)\)((?:.|\n)*?)arith.addf (%\w+), %\w+ :',
            r"%q = arith.index_cast \1 : index to i32\n%f = arith.sitofp %q : i32 to f32\n"
            r'"tir.block"(\1)\2arith.addf \3, %f :',
            "script: expected what a block computes itself, found a value from around it: .*arith.sitofp",
        ),
        (
            r'"tir.block"\((%\w+)\)',
            r'%q = arith.xori \1, \1 : index\n"tir.block"(%q)',
            r"block B: expected points that are computed of loops by \+, -, \*, //, %, min and max, found others",
        ),
        (
            r'"tir.block"\((%\w+)\)',
            r'%p = arith.xori \1, \1 : index\n%q = arith.addi %p, \1 : index\n"tir.block"(%q)',
            "block B: expected points that are computed of loops by",
        ),
        (
            r'"tir.block"\((%\w+)\)((?:.|\n)*?)\(index\) -> \(\)',
            r'"tir.block"(\1, \1, \1)\2(index, index, index) -> ()',
            "expected a size, a number or an expression over symbols, found 1.i",
        ),
    ],
)
def test_what_no_script_says_is_refused(pattern: str, replacement: str, words: str) -> None:
    text, count = re.subn(pattern, replacement, str(PLUS_ONE))
    assert count == 1
    with pytest.raises(ValueError, match=words):
        script(IRModule.parse(text))


SHIFTED = """
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = {}
"""


@pytest.mark.parametrize(
    "value",
    [
        "A[v + 1] if v < 7 else 0.0",
        "T.if_then_else(v < 7, A[v + 1], 0.0)",
        "T.if_then_else(v < 7, t=A[v + 1], f=0.0)",
        "T.if_then_else(v < 7 and A[v + 1] > -1.0, A[v + 1], 0.0)",
    ],
)
def test_elements_beyond_the_end_are_read_where_a_condition_leaves_them_out(value: str) -> None:
    a = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run(from_source(SHIFTED.format(value)), [a])[0], np.append(a[1:], 0))


@pytest.mark.parametrize(
    "value",
    [
        "A[v + 1]",
        "T.Select(v < 7, A[v + 1], 0.0)",
        "T.if_then_else(A[v + 1] > 0.0, A[v], 0.0)",
        "A[v] if A[v + 1] > 0.0 and v < 7 else 0.0",
    ],
)
def test_elements_beyond_the_end_are_not_read_in_a_condition(value: str) -> None:
    with pytest.raises(ScriptError, match="expected 0 to 7, found 1 to 8"):
        from_source(SHIFTED.format(value))
