"""Numerics of the schedules of attention over awkward shapes, masks and vector widths, against numpy in double precision."""

import math
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from attention_reference import Case, attentions
from jitted import call
from support import program
from tekernels import changed_kernels

import relayc
from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay import IRModule, build
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.jit import jit
from relayc.pipelines.targets.cpu.lowering import lower_to_llvm
from relayc.pipelines.targets.cpu.strategies.attention.exponential import exp_below_zero
from relayc.pipelines.te.read.attention import match, match_gradient
from relayc.pipelines.te.read.graph import Kernel, read_kernel
from relayc.pipelines.tir.values.attention import AttentionCode

# Scores of up to 10 err by some units of 1e-6, and so do weights and context; 16-bit inputs are exact, their result is rounded once.
TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "float16": 1e-3, "bfloat16": 1e-2}

SHAPES = [
    Case((1, 2, 2, 17, 13, 8, 8)),
    Case((1, 2, 2, 5, 3, 3, 5), layout="BSHD"),
    Case((2, 2, 1, 4, 1, 16, 16)),
    Case((1, 3, 3, 49, 49, 32, 32), mask=(1, 3, 49, 49)),
    Case((1, 2, 2, 128, 130, 64, 64), layout="BSHD"),
    Case((2, 4, 2, 33, 7, 12, 20), mask=(33, 7), layout="BSHD"),
    Case((2, 4, 2, 33, 301, 80, 40), mask=(2, 1, 33, 301), layout="BSHD"),
    Case((1, 1, 1, 9, 1100, 128, 128), mask=(1, 1, 1, 1100)),
    Case((1, 2, 2, 31, 600, 40, 36), layout="SHBD"),
    Case((1, 2, 1, 16, 50, 24, 24), layout="BHDS"),
]
FEW_QUERIES = [
    Case((1, 2, 2, 1, 13, 8, 8)),
    Case((1, 8, 2, 1, 3000, 64, 64), layout="BSHD"),
    Case((2, 2, 2, 3, 130, 16, 24), mask=(2, 1, 3, 130)),
    Case((1, 4, 4, 2, 3, 5, 7)),
    Case((1, 8, 1, 1, 77, 80, 80), mask=(1, 8, 1, 77)),
    Case((1, 2, 2, 2, 2200, 40, 96), layout="BSHD"),
    Case((1, 4, 2, 1, 40, 24, 24), layout="BHDS"),
]
MASKS = [
    Case((2, 4, 2, 33, 301, 12, 20), mask=(33, 301), mask_dtype="bool"),
    Case((2, 4, 2, 33, 50, 12, 20), mask=(2, 4, 33, 50), mask_dtype="bool", attributes={"mask_value": -5.0}),
    Case((1, 2, 2, 20, 20, 16, 16), mask=(1, 1, 1, 20), mask_dtype="bool", attributes={"softcap": 3.0}),
    Case((1, 4, 2, 2, 77, 40, 40), mask=(4, 2, 77), mask_dtype="bool"),
    *(Case((1, 2, 2, 70, 300, 32, 32), attributes={"is_causal": True, "causal_offset": c}) for c in (0, 5, 230, 400)),
    Case((1, 2, 2, 70, 259, 32, 32), mask=(1, 1, 70, 259), attributes={"is_causal": True, "softcap": 5.0}),
    Case((1, 2, 2, 70, 300, 32, 32), attributes={"is_causal": True, "causal_offset": -30, "nan_to_zero": True}),
    Case((1, 2, 2, 20, 20, 32, 32), attributes={"is_causal": True, "causal_offset": -3}),
    Case((1, 4, 2, 2, 77, 40, 40), attributes={"is_causal": True, "causal_offset": 70}),
    Case((1, 4, 2, 2, 77, 40, 40), attributes={"is_causal": True, "causal_offset": -1, "nan_to_zero": True}),
    Case((1, 8, 1, 1, 77, 80, 80), attributes={"is_causal": True, "causal_offset": 50}),
]
HALVES = [
    Case(shape, mask=mask, layout="BSHD", dtype=dtype)
    for dtype in ("bfloat16", "float16")
    for shape, mask in (((1, 2, 2, 33, 300, 40, 20), (33, 300)), ((1, 2, 2, 2, 70, 24, 24), None))
]
DOUBLES = [Case((1, 2, 2, 19, 300, 20, 20), mask=(19, 300), dtype="float64"), Case((1, 2, 2, 1, 30, 20, 20), dtype="float64")]


def check(cases, **options) -> list[np.ndarray]:
    mod, arrays = attentions(cases)
    found = relayc.compile(mod, **options)["main"](*arrays)
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    for case, result in zip(cases, found, strict=True):
        expected = case.expected()
        # Rows that see no key are NaN on both sides.
        np.testing.assert_allclose(result.astype(np.float64), expected, rtol=0, atol=TOLERANCE[case.dtype] * np.nanmax(np.abs(expected)))
    return found


@pytest.mark.parametrize("cases", [SHAPES, FEW_QUERIES, MASKS, HALVES, DOUBLES], ids=["shapes", "few", "masks", "halves", "doubles"])
def test_agrees_with_numpy(cases) -> None:
    check(cases)


@pytest.mark.parametrize(("heads", "depth", "height"), [(6, 64, 12), (16, 64, 8), (3, 128, 12)])
def test_rows_of_the_key_at_once_fit_in_the_registers_and_the_cache(heads, depth, height) -> None:
    """Sums take three quarters of 32 registers, and rows of the key whose lines share a set (4,096 bytes apart) fit in its 8 ways;
    numbers of keys around this height, and more than a block has."""
    target = Target("cpu", vector_bytes=64, num_vector_registers=32, l1_bytes=32768)
    for keys in (height, height + 1, 331):
        case = Case((1, heads, heads, 40, keys, depth, depth), layout="BSHD")
        module, arrays = attentions([case])
        compiled = relayc.compile(module, target=target)
        assert compiled.kernels[0].schedule.startswith(f"attention_columns height={height} ")
        expected = case.expected()
        np.testing.assert_allclose(compiled["main"](*arrays), expected, rtol=0, atol=TOLERANCE["float32"] * np.abs(expected).max())


@pytest.mark.parametrize(
    ("heads", "layout", "strips"),
    [(2, "BHSD", 6), (2, "BSHD", 4), (6, "BSHD", 4), (12, "BSHD", 3), (16, "BSHD", 3)],
)
def test_a_block_has_the_keys_whose_rows_the_cache_keeps(heads, layout, strips) -> None:
    """Strips of 12 keys of 256 bytes, of a cache of 48 KiB. Rows 512 and 1,536 bytes apart use half of its sets, others fewer."""
    target = Target("cpu", mcpu="x86-64-v4", num_threads=2, l1_bytes=48 << 10, l2_bytes=1 << 20, l3_bytes=32 << 20)
    module, _ = attentions([Case((1, heads, heads, 128, 720, 64, 64), layout=layout)])
    (kernel,) = relayc.compile(module, target=target).kernels
    assert f"height=12 strips={strips} " in kernel.schedule


@pytest.mark.parametrize("width", [16, 64])
def test_vectors_of_other_widths(width) -> None:
    target = Target("cpu", vector_bytes=width, num_vector_registers=32 if width == 64 else 16)
    check([SHAPES[3], SHAPES[6], SHAPES[8], FEW_QUERIES[1], FEW_QUERIES[3], MASKS[0], MASKS[5]], target=target)


def test_threads_do_not_change_a_bit() -> None:
    cases = [SHAPES[6], SHAPES[4], FEW_QUERIES[1], MASKS[4]]
    mod, arrays = attentions(cases)
    module = relayc.compile(mod)
    results = []
    for module.num_threads in (1, 2, 2):
        results.append([np.array(r, copy=True) for r in module["main"](*arrays)])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_least_finite_mask_weighs_all_keys_alike_where_it_hides_all() -> None:
    """A row whose mask is the least float everywhere is uniform, as it is without fusion."""
    case = Case((1, 1, 1, 20, 300, 8, 8), mask=(20, 300))
    mod, (query, key, value, mask) = attentions([case])
    mask[:] = 0
    mask[3] = np.finfo(np.float32).min
    mask[4, :299] = -np.inf
    found = relayc.compile(mod)["main"](query, key, value, mask)
    np.testing.assert_allclose(found[0, 0, 3], value[0, 0].mean(0), rtol=0, atol=1e-5)
    np.testing.assert_allclose(found[0, 0, 4], value[0, 0, 299], rtol=1e-6)


def test_nan_stays_in_its_row() -> None:
    case = Case((1, 1, 1, 20, 40, 8, 8))
    mod, (query, key, value) = attentions([case])
    query[0, 0, 5, 0] = np.nan
    found = relayc.compile(mod)["main"](query, key, value)
    assert np.isnan(found[0, 0, 5]).all() and not np.isnan(np.delete(found, 5, 2)).any()


def test_exp_below_zero() -> None:
    x = np.concatenate([-np.logspace(-8, math.log10(87), 4000), [0.0, -0.0, -88.0, -1e30, -np.inf, np.nan]]).astype(np.float32)
    x = np.concatenate([x, np.zeros(-len(x) % 8, np.float32)])
    with make_context(), ir.Location.name("test"):
        module = ir.Module.create()
        buffer = ir.MemRefType.get([len(x)], ir.F32Type.get())
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", ([buffer, buffer], []))
            source, target = function.add_entry_block().arguments
            at = Var(0, len(x) - 8, step=8)
            with ir.InsertionPoint(function.entry_block):
                with emit.for_loop(0, len(x), 8, at):
                    place = emit.materialize(Index.of(at))
                    vector = emit.create("vector.load", [emit.vector_of(8, ir.F32Type.get())], [source, place])
                    emit.create("vector.store", [], [exp_below_zero(vector), target, place])
                func.ReturnOp([])
        lower_to_llvm(module, Target())
        engine = jit(module, Target())
    found = np.empty_like(x)
    call(engine, "f", x, found)
    expected = np.exp(x.astype(np.float64))
    expected[x <= -88] = 0
    np.testing.assert_array_equal(np.isnan(found), np.isnan(x))
    finite = np.isfinite(x)
    bound = (2.5e-7 + 5e-9 * np.abs(x[finite])) * expected[finite]  # ln(2) is one constant, so its error grows with the exponent
    assert (np.abs(found - expected)[finite] <= bound).all()
    assert (found[x == -np.inf] == 0).all()


@pytest.mark.parametrize("cases", [SHAPES, FEW_QUERIES, MASKS, HALVES, DOUBLES], ids=["shapes", "few", "masks", "halves", "doubles"])
def test_no_case_is_left_to_the_default_schedule(cases) -> None:
    mod, _ = attentions(cases)
    kernels = relayc.compile(mod, stop_after="tir").kernels
    assert kernels and all(kernel.schedule.startswith("attention_") for kernel in kernels)


def test_no_keys_are_left_to_other_schedules() -> None:
    """What no key is seen by is NaN, or 0 where that is asked for."""
    cases = [Case((1, 2, 2, 9, 0, 8, 4)), Case((1, 2, 2, 9, 0, 8, 4), attributes={"nan_to_zero": True})]
    mod, arrays = attentions(cases)
    undefined, zero = relayc.compile(mod)["main"](*arrays)
    assert undefined.shape == zero.shape == (1, 2, 9, 4)
    assert np.isnan(undefined).all() and (zero == 0).all()


def test_sums_of_anything_but_products_are_no_attention() -> None:
    mod, _ = attentions([Case((1, 2, 2, 5, 7, 8, 4))])
    text, product = str(relayc.compile(mod, stop_after="te")), "arith.mulf %in, %in_"
    first, second = text.index(product), text.rindex(product)
    assert first < second
    for at, found in ((None, True), (first, False), (second, False)):
        changed = text if at is None else text[:at] + text[at:].replace("mulf", "subf", 1)
        parsed = IRModule.parse(changed)
        with parsed.context:
            assert (match(read_kernel(parsed.module.body.operations[0])) is not None) == found


def test_operands_of_which_each_query_reads_another_row_are_no_attention() -> None:
    """Where scores are those of a query with its own key, all keys weigh alike; a query whose values are all one row gives this row."""
    q, k, v = (np.random.default_rng(seed).standard_normal((1, 2, 12, 16), np.float32) for seed in range(3))
    text = str(relayc.compile(program(lambda *given: [build("nn.attention", *given, scale=0.25)], [q, k, v]), stop_after="te"))
    of_query = "affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d5)>"
    for before, after, expected in (
        ("[#map1, #map2, #map3]", f"[#map1, {of_query}, #map3]", np.broadcast_to(v.mean(2, keepdims=True), v.shape)),
        ("[#map3, #map2, #map6]", f"[#map3, {of_query}, #map6]", v),
    ):
        assert text.count(before) == 1
        kernel = relayc.compile_kernel(text.replace(before, after), name="fused_attention")
        np.testing.assert_allclose(kernel(q, k, v), expected, rtol=0, atol=1e-5)
        assert not kernel.info.schedule.startswith("attention")


@pytest.mark.parametrize("kinds", [("arg",), ("view", "arg"), ("slice", "view", "arg"), ("generic", "arg"), ("view", "generic", "arg")])
def test_operands_are_read_in_place_without_computation_and_conversion(kinds: tuple[str, ...]) -> None:
    """The conversions of the key are those of the first product, those of the value of the second one."""
    source = None
    for kind in reversed(kinds):
        source = SimpleNamespace(kind=kind, inputs=[source])
    key, value = (SimpleNamespace(structured=SimpleNamespace(inputs=[None, source])) for _ in range(2))
    code = AttentionCode.__new__(AttentionCode)
    code.a = SimpleNamespace(product=key, by_value=value)  # type: ignore[assignment]
    for of_key, of_value in (([], []), ([("arith.extf", None)], []), ([], [("arith.extf", None)])):
        code.casts = [of_key, of_value]  # type: ignore[assignment,list-item]
        found = [code._is_read_in_place(node) for node in (key, value)]  # type: ignore[arg-type]
        assert found == ["generic" not in kinds and not casts for casts in (of_key, of_value)]


# Number of an occurrence of a text, the text, and what replaces it in the te kernel of a causal attention with its log-sum-exp.
OTHER_ATTENTIONS = [
    (0, "math.exp ", "math.exp2 "),
    (0, "arith.maximumf", "arith.minimumf"),
    (0, "arith.addf %in, %out", "arith.mulf %in, %out"),
    (0, "ins(%11 :", "ins(%6 :"),  # the total, of scores instead of weights
    (0, "[#map1, #map2, #map3]", "[#map1, #map2, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d1, d3, d4)>]"),
    (0, "[#map1, #map2, #map3]", "[#map1, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4 floordiv 2, d5)>, #map3]"),
    (1, "[#map4, #map5, #map4]", "[affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3, d4)>, #map5, #map4]"),
    (0, "[#map, #map, #map]", "[#map, affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>, #map]"),
    (0, "tensor.collapse_shape %21", "tensor.collapse_shape %9"),
    (0, "tensor.collapse_shape %21", "tensor.collapse_shape %8"),
    (0, "%22 = math.log %in_5 : f32", "%i = linalg.index 0 : index %22 = tensor.extract %14[%i, %i, %i, %i] : tensor<1x2x2x5xf32>"),
]
OTHER_MASKS = [
    (0, "arith.cmpi sle", "arith.cmpi slt"),
    (0, "arith.addi %22, %c2", "arith.subi %22, %c2"),
    (0, "linalg.index 3", "linalg.index 2"),
    (0, "linalg.index 4", "linalg.index 3"),
    (0, "0xFF800000", "0xFF7FFFFF"),
    (0, "%25, %in, %cst_5", "%25, %cst_5, %in"),
]
OTHER_GRADIENTS = [
    (0, "math.exp ", "math.exp2 "),
    (0, "return %expanded, %21, %18", "return %expanded, %18, %21"),
    (0, "return %expanded, %21, %18", "return %1, %21, %18"),
    (1, "[#map1, #map2, #map3]", "[#map1, #map2, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d1, d3, d4)>]"),
    *((i, "arith.mulf %in, %in_4", "arith.subf %in, %in_4") for i in range(5)),
    (0, "ins(%15, %arg1", "ins(%15, %arg2"),
    (0, "ins(%15, %arg0", "ins(%8, %arg0"),
    (0, "ins(%8, %13,", "ins(%13, %8,"),
]
QUERY, KEY, ROWS = (np.zeros(shape, np.float32) for shape in ((1, 4, 5, 8), (1, 2, 7, 8), (1, 4, 5)))


def _kernels(operator: str, arrays: list[np.ndarray], others: list[tuple[int, str, str]], **attributes) -> Iterator[Kernel]:
    """The te kernel of an operator, then the same with each change."""
    mod = program(lambda *given: list(build(operator, *given, scale=0.25, **attributes)), arrays)
    return changed_kernels(mod, [[change] for change in others])


def test_other_kernels_are_no_attention() -> None:
    first, *others = (match(kernel) for kernel in _kernels("nn.attention_lse", [QUERY, KEY, KEY], OTHER_ATTENTIONS, is_causal=True))
    assert first is not None and others == [None] * len(OTHER_ATTENTIONS)


def test_other_masks_are_not_causal() -> None:
    kernels = _kernels("nn.attention_lse", [QUERY, KEY, KEY], OTHER_MASKS, is_causal=True, causal_offset=2)
    assert [found and found.causal for found in map(match, kernels)] == [2] + [None] * len(OTHER_MASKS)


def test_other_kernels_are_no_derivatives_of_attention() -> None:
    first, *others = map(match_gradient, _kernels("nn.attention_grad", [QUERY, KEY, KEY + 1, QUERY, ROWS, ROWS], OTHER_GRADIENTS))
    assert first is not None and others == [None] * len(OTHER_GRADIENTS)
