"""Type relations of symbolic sizes: at any values of the symbols they say what the relation says of these numbers.

The cases are the operations of the lit tests of the dialect. Some of the sizes of an operation become expressions, the relation runs, and
what it gives is compared with what it gives for numbers. Where a number is refused, a condition that the relation left open is violated.
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relayc.dialects.relay import OPS, IRModule, Op, RelayError, TensorType
from relayc.dialects.relay.conditions import Condition, collected
from relayc.dialects.relay.scopes import size_attributes
from relayc.dialects.relay.slices import slice_bounds
from relayc.dialects.relay.types import RelayType, TupleType, flat_types
from relayc.dialects.relay.unify import substitute_type
from relayc.symbolic import Dim, Range, Ranges, Size, evaluate, parse, symbol

LIT = Path(__file__).parents[2] / "lit" / "dialect"
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 11, 16, 48)
UNSTATED = 6
"""In place of a size that a test says nothing of."""

BESIDES = """
func.func @main(%a: tensor<2x3x12xf32>, %b: tensor<2x3x6x8x4xf32>, %c: tensor<1x2x12x12x8xf32>, %d: tensor<1x72x3x3x8xf32>) {
  %0 = "relay.nn_avg_pool1d"(%a) {pool_size = array<i64: 3>, strides = array<i64: 2>} : (tensor<2x3x12xf32>) -> tensor<2x3x5xf32>
  %1 = "relay.nn_adaptive_avg_pool1d"(%a) {output_size = array<i64: 4>} : (tensor<2x3x12xf32>) -> tensor<2x3x4xf32>
  %2 = "relay.nn_adaptive_max_pool1d"(%a) {output_size = array<i64: 4>} : (tensor<2x3x12xf32>) -> tensor<2x3x4xf32>
  %3 = "relay.nn_adaptive_avg_pool3d"(%b) {output_size = array<i64: 2>} : (tensor<2x3x6x8x4xf32>) -> tensor<2x3x2x2x2xf32>
  %4 = "relay.nn_adaptive_max_pool3d"(%b) {output_size = array<i64: 2>} : (tensor<2x3x6x8x4xf32>) -> tensor<2x3x2x2x2xf32>
  %5 = "relay.nn_winograd_input_transform"(%c) : (tensor<1x2x12x12x8xf32>) -> tensor<1x72x3x3x8xf32>
  %6 = "relay.nn_winograd_output_transform"(%d) {height = 12, width = 12} : (tensor<1x72x3x3x8xf32>) -> tensor<1x2x12x12x8xf32>
  return
}
func.func @few_bits(%a: tensor<3x64xf32>, %w: tensor<2x8x16xui32>, %s: tensor<2x2x16xf32>, %z: tensor<1x1x1xui8>) {
  %0 = "relay.nn_dense_blocks"(%a, %w, %s, %z) {units = 20, bits = 4, block_size = 32}
    : (tensor<3x64xf32>, tensor<2x8x16xui32>, tensor<2x2x16xf32>, tensor<1x1x1xui8>) -> tensor<3x20xf32>
  return
}
func.func @others(%i: tensor<1x3x8x8xf32>, %g: tensor<1x2x4x5xf32>, %r: tensor<4x5xf32>, %m: tensor<9x2x2xf32>, %b: tensor<1x2x3x4xf32>,
    %x: tensor<1x2x9xf32>, %y: tensor<1x2x7xf32>, %k: tensor<2xui32>) {
  %0 = "relay.image_grid_sample"(%i, %g) : (tensor<1x3x8x8xf32>, tensor<1x2x4x5xf32>) -> tensor<1x3x4x5xf32>
  %1 = "relay.vision_roi_align"(%i, %r) {pooled_size = array<i64: 7>, spatial_scale = 1.0 : f64}
    : (tensor<1x3x8x8xf32>, tensor<4x5xf32>) -> tensor<4x3x7x7xf32>
  %2 = "relay.vision_roi_pool"(%i, %r) {pooled_size = array<i64: 2, 5>, spatial_scale = 0.5 : f64}
    : (tensor<1x3x8x8xf32>, tensor<4x5xf32>) -> tensor<4x3x2x5xf32>
  %3 = "relay.det"(%m) : (tensor<9x2x2xf32>) -> tensor<9xf32>
  %4 = "relay.nn_col2im"(%b) {image_shape = array<i64: 9>, strides = array<i64: 2>} : (tensor<1x2x3x4xf32>) -> tensor<1x2x9xf32>
  %5 = "relay.nn_max_pool_indices"(%x, %y) {pool_size = array<i64: 3>, layout = "NCW"}
    : (tensor<1x2x9xf32>, tensor<1x2x7xf32>) -> tensor<1x2x7xi64>
  %6 = "relay.random_threefry_generate"(%k) {out_shape = array<i64: 2, 3>} : (tensor<2xui32>) -> tensor<2x3xui32>
  %7 = "relay.reinterpret"(%r) {dtype = "int32"} : (tensor<4x5xf32>) -> tensor<4x5xi32>
  return
}
func.func @broadcasts(%a: tensor<2x1x6xf32>, %c: tensor<7x1xi1>, %x: tensor<7x5xf32>, %y: tensor<1x5xf32>) {
  %0 = "relay.broadcast_to"(%a) {shape = array<i64: 3, 2, 5, 6>} : (tensor<2x1x6xf32>) -> tensor<3x2x5x6xf32>
  %1 = "relay.where"(%c, %x, %y) : (tensor<7x1xi1>, tensor<7x5xf32>, tensor<1x5xf32>) -> tensor<7x5xf32>
  return
}
"""
"""Operators of which the lit tests have no case of known sizes."""

Case = tuple[type[Op], tuple[RelayType, ...], dict[str, Any]]


def _operations(operation: Any) -> Any:
    for region in operation.regions:
        for block in region.blocks:
            for op in block.operations:
                yield op
                yield from _operations(op.operation)


@cache
def cases() -> dict[str, list[Case]]:
    """Operand types and attributes of the operations of the tests, by operator."""
    found: dict[str, list[Case]] = {}
    texts = [BESIDES]
    for path in sorted(LIT.glob("*.mlir")):
        if not path.stem.endswith("invalid"):
            texts += [text for text in path.read_text().split("// -----") if "func.func" in text]
    for text in texts:
        for op in _operations(IRModule.parse(text).module.operation):
            if isinstance(op, Op) and not op.is_structure and not op.region_names and not size_attributes(op):
                types = tuple(_stated(t) for t in op.operand_types())
                if all(t.is_static for type_ in types for t in flat_types(type_)):
                    found.setdefault(type(op).relay_name, []).append((type(op), types, op.attrs()))
    return found


def _stated(type_: RelayType) -> RelayType:
    if isinstance(type_, TupleType):
        return TupleType(tuple(map(_stated, type_.fields)))
    return type_.with_shape(UNSTATED if d is None else d for d in type_.shape)


def _replaced(size: Any, sizes: Mapping[int, Size]) -> Any:
    return sizes.get(size, size) if isinstance(size, int) and not isinstance(size, bool) else size


def symbolic(case: Case, sizes: Mapping[int, Size], attributes_too: bool) -> Case:
    """A case in which some sizes are others, wherever they stand; those in attributes too."""
    cls, types, attributes = case
    types = tuple(TypeMap(sizes)(t) for t in types)
    if attributes_too:
        attributes = dict(attributes)
        for name, spec in cls.attr_specs.items():
            value = attributes[name]
            if spec.says_sizes and value is not None:
                attributes[name] = tuple(_replaced(v, sizes) for v in value) if isinstance(value, tuple) else _replaced(value, sizes)
    return cls, types, attributes


class TypeMap:
    def __init__(self, sizes: Mapping[int, Size]) -> None:
        self.sizes = sizes

    def __call__(self, type_: RelayType) -> RelayType:
        if isinstance(type_, TupleType):
            return TupleType(tuple(map(self, type_.fields)))
        return type_.with_shape(_replaced(d, self.sizes) for d in type_.shape)


def at(case: Case, values: Mapping[str, int]) -> Case:
    """A case at values of its symbols."""

    def number(v: Any) -> Any:
        return evaluate(v, values) if isinstance(v, Dim) else v

    cls, types, attributes = case
    attributes = {n: tuple(map(number, v)) if isinstance(v, tuple) else number(v) for n, v in attributes.items()}
    return cls, tuple(substitute_type(t, values) for t in types), attributes


def relation(case: Case) -> tuple[list[RelayType], list[Condition]]:
    cls, types, attributes = case
    with collected() as conditions:
        found = cls.result_types(types, attributes)
    return found, conditions


def numbers(types: Sequence[RelayType], values: Mapping[str, int]) -> list[TensorType]:
    return [t.with_shape(d if d is None else evaluate(d, values) for d in t.shape) for type_ in types for t in flat_types(type_)]


def agrees(case: Case, values: Mapping[str, int], found: Sequence[RelayType], conditions: Sequence[Condition]) -> None:
    """Checks a symbolic case at some values."""
    name = case[0].relay_name
    there = numbers(found, values)
    holds = all(evaluate(c.size, values) >= 0 for c in conditions) and all(d is None or d >= 0 for t in there for d in t.shape)
    try:
        expected = [t for type_ in relation(at(case, values))[0] for t in flat_types(type_)]
    except RelayError as error:
        assert not holds, f"{name} at {values}: refused with {error}, but {found} was given without a condition"
        return
    if holds:
        assert there == expected, f"{name} at {values} of {found}"
    else:
        # Conditions are exact; an expression k of topk is no code for all.
        assert name == "topk", f"{name} at {values}: {expected} is right, but one of {conditions} does not hold"


def expressions(size: int) -> list[str]:
    """Forms that a size of a test may have."""
    return ["n", "m", "n + m"] + [f"{by}*n" for by in (2, 3, 4, 6, 8, 12) if size % by == 0]


FIXED = {"random.threefry_generate"}
"""Operators of which the sizes of no operand may be symbols."""


def test_a_symbolic_relation_is_that_of_numbers() -> None:
    """Of every operator some cases that are not refused: those in which the sizes that it must compare are not made different."""
    rng = np.random.default_rng(0)
    for name, found in sorted(cases().items()):
        if any(map(_sizes, found)):
            tries = (_agrees_where_given(found, rng) for _ in range(60))
            assert sum(itertools.islice(filter(None, tries), 4)) == 4 or name in FIXED, f"{name} refuses symbols"


def _sizes(case: Case) -> list[int]:
    return sorted({d for type_ in case[1] for t in flat_types(type_) for d in t.shape if isinstance(d, int)})


def _agrees_where_given(found: Sequence[Case], rng: np.random.Generator) -> bool:
    """Makes some sizes of one of an operator's cases symbolic, and checks the relation at values of the symbols; False where it refuses."""
    case = found[rng.integers(len(found))]
    distinct = _sizes(case)
    if not distinct:
        return False
    sizes: dict[int, Size] = {}
    for i, size in enumerate(rng.choice(distinct, min(len(distinct), int(rng.integers(1, 4))), replace=False).tolist()):
        text = str(rng.choice(expressions(size)))
        sizes[size] = parse(text.replace("n", f"n{i}").replace("m", f"m{i}"))
    low = int(rng.integers(3))
    made = symbolic(case, sizes, bool(rng.integers(2)))
    with Ranges({f"{letter}{i}": Range(low) for letter in "nm" for i in range(3)}):
        try:
            types, conditions = relation(made)
        except RelayError:
            return False
        for _ in range(6):
            values = {f"{letter}{i}": int(rng.choice([v for v in SIZES if v >= low])) for letter in "nm" for i in range(3)}
            if made[0].relay_name == "reshape" and 0 in at(made, values)[2]["newshape"]:
                continue  # there 0 is a code, and no size
            agrees(made, values, types, conditions)
    return True


def test_every_operator_has_a_case() -> None:
    # Steps of the importer and of passes, whose tests are in test_onnx_signal.py and test_onnx_indices.py, and statements of shapes.
    elsewhere = {"fft", "fft_roots", "worst_index", "match_shape", "cast_shape", "sizes"}
    missing = {cls.relay_name for cls in OPS.values() if not cls.is_structure and not cls.region_names} - cases().keys()
    assert missing <= elsewhere, missing


T = tuple[int | str, ...]


def types_of(*shapes: T, dtype: str = "float32") -> list[RelayType]:
    return [TensorType(tuple(parse(d) if isinstance(d, str) else d for d in shape), dtype) for shape in shapes]


def shape_after(name: str, *operands: RelayType, **attributes: Any) -> list[tuple[str, ...]]:
    """The shapes that an operator gives, as texts; sizes of attributes may be texts."""
    cls = next(c for c in OPS.values() if c.relay_name == name)

    def size(v: Any) -> Any:
        return parse(v) if isinstance(v, str) else v

    for key, value in attributes.items():
        if cls.attr_specs[key].says_sizes:
            attributes[key] = tuple(map(size, value)) if isinstance(value, tuple) else size(value)
    found = cls.result_types(operands, cls.attribute_values(attributes))
    return [tuple(map(str, t.shape)) for type_ in found for t in flat_types(type_)]


@pytest.mark.parametrize(
    ("name", "shapes", "attributes", "expected"),
    [
        ("reshape", [("b", "n", 768)], {"newshape": (0, 0, 12, 64)}, [("b", "n", "12", "64")]),
        ("reshape", [("b*n", 768)], {"newshape": ("b", "n", 12, 64)}, [("b", "n", "12", "64")]),
        ("reshape", [("b*n", 768)], {"newshape": ("b", -1, 768)}, [("b", "n", "768")]),
        ("reshape", [("n*768",)], {"newshape": ("n", 12, 64)}, [("n", "12", "64")]),
        ("reshape", [("b", "n", 12, 64)], {"newshape": (0, 0, -3)}, [("b", "n", "768")]),
        ("reshape", [("b", "n", 12, 64)], {"newshape": (-3, -2)}, [("b*n", "12", "64")]),
        ("reshape", [("6*n", 4)], {"newshape": (-4, -1, 3, 0)}, [("2*n", "3", "4")]),
        ("reshape", [("n", 4)], {"newshape": (-1,)}, [("4*n",)]),
        ("reshape", [("n + past", 8, 3)], {"newshape": (-1, 24)}, [("n + past", "24")]),
        ("reshape", [("2*(n//2)", 3)], {"newshape": (-1, 2)}, [("3*(n//2)", "2")]),
        ("concatenate", [("past", 8), ("n", 8)], {"axis": 0}, [("n + past", "8")]),
        ("concatenate", [("n", 8), (1, 8), ("n", 8)], {"axis": -2}, [("2*n + 1", "8")]),
        ("strided_slice", [("n", 8)], {"begin": (1,), "end": (2**63 - 1,)}, [("max(0, n - 1)", "8")]),
        ("strided_slice", [("n", 8)], {"begin": (0,), "end": (2**31 - 1,)}, [("n", "8")]),
        ("strided_slice", [("n", 8)], {"begin": (0, 0), "end": (5, -1)}, [("min(5, n)", "7")]),
        ("strided_slice", [("n + past", 8)], {"begin": ("past",), "end": ("n + past",)}, [("n", "8")]),
        ("strided_slice", [("n + past", 8)], {"begin": (0,), "end": ("n",)}, [("n", "8")]),
        ("strided_slice", [(2048, 8)], {"begin": (0,), "end": ("n",)}, [("min(2048, n)", "8")]),
        ("strided_slice", [("n + 3",)], {"begin": (-1,), "end": (-(2**63),), "strides": (-1,)}, [("n + 3",)]),
        ("strided_slice", [("2*n",)], {"begin": (0,), "end": (2**63 - 1,), "strides": (2,)}, [("n",)]),
        ("strided_slice", [("n", 8)], {"begin": (2,), "end": ("n - 2",)}, None),
        ("strided_slice", [("n + 4", 8)], {"begin": (2,), "end": (-2,)}, [("n", "8")]),
        ("strided_slice", [("n + 9", 8)], {"begin": ("n",), "end": (4,), "slice_mode": "size"}, [("4", "8")]),
        ("split", [("2*n", 8)], {"indices_or_sections": 2}, [("n", "8"), ("n", "8")]),
        ("split", [("n + 4", 8)], {"indices_or_sections": ("n",)}, [("n", "8"), ("4", "8")]),
        ("nn.max_pool2d", [("b", 3, "h", "w")], {"pool_size": (2, 2), "strides": (2, 2)}, [("b", "3", "h//2", "w//2")]),
        (
            "nn.max_pool1d",
            [("b", 3, "n")],
            {"pool_size": (3,), "strides": (2,), "padding": (1, 1), "ceil_mode": True},
            [("b", "3", "n//2 + 1")],
        ),
        ("nn.avg_pool1d", [("b", 3, "n")], {"pool_size": (3,), "strides": (1,), "padding": (1,)}, [("b", "3", "n")]),
        ("nn.adaptive_avg_pool1d", [("b", 3, "n")], {"output_size": (4,)}, [("b", "3", "4")]),
        (
            "nn.conv2d",
            [("b", 3, "h", "w"), (16, 3, 3, 3)],
            {"strides": (2, 2), "padding": (1, 1, 1, 1)},
            [("b", "16", "(h + 1)//2", "(w + 1)//2")],
        ),
        ("nn.conv1d", [("b", 3, "n"), (16, 3, 3)], {"dilation": (2,), "padding": (2, 2)}, [("b", "16", "n")]),
        ("nn.conv2d_transpose", [("b", 4, "h", "w"), (4, 3, 2, 2)], {"strides": (2, 2)}, [("b", "3", "2*h", "2*w")]),
        ("nn.batch_matmul", [("b", "n", 64), ("b", "k", 64)], {}, [("b", "n", "k")]),
        ("nn.batch_matmul", [(1, "n", 64), ("b", "k", 64)], {}, [("b", "n", "k")]),
        ("nn.dense", [("b", "n", 64), (9, 64)], {}, [("b", "n", "9")]),
        ("nn.matmul", [("n", "k"), ("k", 9)], {}, [("n", "9")]),
        (
            "nn.attention",
            [("b", 12, "n", 64), ("b", 12, "n + past", 64), ("b", 12, "n + past", 64)],
            {"scale": 1.0, "causal_offset": "past"},
            [("b", "12", "n", "64")],
        ),
        ("add", [("b", "n", 1), ("n", 8)], {}, [("b", "n", "8")]),
        ("add", [("b", 1, "n", "n"), ("n",)], {}, [("b", "1", "n", "n")]),
        ("nn.pad", [("n", 8), ()], {"pad_width": (1, 2, 0, "k")}, [("n + 3", "k + 8")]),
        ("tile", [("n", 8)], {"reps": ("k", 2)}, [("k*n", "16")]),
        ("repeat", [("n", 8)], {"repeats": 3, "axis": 0}, [("3*n", "8")]),
        ("stack", [("n", 8), ("n", 8)], {"axis": 1}, [("n", "2", "8")]),
        ("broadcast_to", [("n", 1)], {"shape": ("b", "n", "k")}, [("b", "n", "k")]),
        ("topk", [("n + 5", 8)], {"k": 5, "axis": 0, "ret_type": "values"}, [("5", "8")]),
        ("zeros", [], {"shape": ("n", 3)}, [("n", "3")]),
        ("full", [()], {"shape": ("n - 1",)}, [("n - 1",)]),
        ("arange", [], {"start": 0, "stop": "n", "dtype": "int64"}, [("n",)]),
        ("arange", [], {"start": "past", "stop": "past + n", "dtype": "int64"}, [("n",)]),
        ("arange", [], {"start": 2, "stop": "n", "step": 3, "dtype": "int64"}, [("max(0, n//3)",)]),
        ("image.resize2d", [("b", 3, "h", "w")], {"size": ("2*h", "2*w")}, [("b", "3", "2*h", "2*w")]),
        ("nn.upsampling", [("b", 3, "h", "w")], {"scale_h": 2.0, "scale_w": 3.0}, [("b", "3", "2*h", "3*w")]),
        ("cumsum", [("n", 8)], {"axis": None}, [("8*n",)]),
        ("layout_transform", [("b", 16, "h", "w")], {"src_layout": "NCHW", "dst_layout": "NCHW8c"}, [("b", "2", "h", "w", "8")]),
        ("nn.depth_to_space", [("b", 16, "h", "w")], {"block_size": 2}, [("b", "4", "2*h", "2*w")]),
        ("nn.space_to_depth", [("b", 4, "2*h", "2*w")], {"block_size": 2}, [("b", "16", "h", "w")]),
        ("nn.batch_flatten", [("b", 3, "h", "w")], {}, [("b", "3*h*w")]),
    ],
)
def test_what_relations_prove(name: str, shapes: list[T], attributes: dict[str, Any], expected: list[T] | None) -> None:
    found = shape_after(name, *types_of(*shapes), **attributes)
    if expected is None:
        assert all(found)
    else:
        assert found == [tuple(str(parse(d)) for d in shape) for shape in expected]


@pytest.mark.parametrize(
    ("name", "shapes", "attributes", "message"),
    [
        ("add", [("n", 8), ("m", 8)], {}, r"expected equal or 1 in dimension 0, found \(n, 8\), \(m, 8\)"),
        ("reshape", [("n", 4)], {"newshape": (-1, 3)}, r"sizes that divide the 4\*n elements of the operand, found \(3,\)"),
        (
            "reshape",
            [("n", 4)],
            {"newshape": ("m", 4)},
            r"a shape of as many elements as tensor<\?x4xf32, \[\"n\"\]>, found tensor<\?x4xf32, \[\"m\"\]>",
        ),
        ("concatenate", [("n", 4), ("n", "k")], {"axis": 0}, "dimension 1: expected equal in all operands, found 4, k"),
        ("split", [("n", 4)], {"indices_or_sections": 2}, "expected a divisor of n, found 2"),
        ("nn.batch_matmul", [("b", "n", 64), ("c", "k", 64)], {}, "batch of tensor_b .*: expected b or 1 .*, found c"),
        ("nn.dense", [("n", "k"), (9, 64)], {}, r"dimension 1 of weight .*: expected k \(of data .*, found 64"),
        ("full", [()], {"shape": ("-n - 1",)}, r"shape: expected no negative size, found \(-n - 1,\)"),
        ("nn.conv1d", [("n", 3, 4), (8, 3, 5)], {}, "window along axis W: expected at most 4 elements"),
        (
            "strided_slice",
            [("n",)],
            {"begin": ("k - 9",), "end": (4,), "slice_mode": "size"},
            "begin: expected one that is known to count from the front",
        ),
        ("strided_slice", [("n",)], {"begin": (0,), "end": (4,), "strides": (2,), "slice_mode": "size"}, "expected 1 with slice_mode"),
        ("squeeze", [("n", 1)], {}, "axis: expected the axes to drop, as a dimension is not known"),
        ("squeeze", [("n", 1)], {"axis": (0,)}, "dimension 0: expected 1, found n"),
        ("arange", [], {"stop": "n", "step": "k - 3", "dtype": "int64"}, "step: expected a known sign, found k - 3"),
        (
            "arange",
            [],
            {"start": 0.5, "stop": "n", "dtype": "int64"},
            r"expected whole numbers and an integer dtype beside an expression, found \('0.5', 'n', '1.0', 'int64'\)",
        ),
        ("nn.conv1d_transpose", [("n", 4, 0), (4, 3, 5)], {}, "data along axis W: expected at least one element, found 0"),
        ("arange", [], {"stop": "n"}, "whole numbers and an integer dtype beside an expression"),
        ("nn.upsampling", [(1, 1, "h", 4)], {"scale_h": 1.7}, "a fraction of a denominator of at most 65536"),
        ("match_shape", [("n", 4)], {"shape": (3, 5)}, "dimension 1: expected a size that may be that of"),
        ("define_sizes", [(2,)], {"names": ("n",)}, "an integer element type"),
    ],
)
def test_what_relations_refuse(name: str, shapes: list[T], attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(RelayError, match=message):
        shape_after(name, *types_of(*shapes), **attributes)


def test_only_sizes_that_cannot_be_one_are_not_squeezed() -> None:
    with Ranges({"n": Range(1)}), pytest.raises(RelayError, match="axis: expected the axes to drop, as a dimension is not known"):
        shape_after("squeeze", *types_of(("n", 1, 3)))
    with Ranges({"n": Range(2)}):
        assert shape_after("squeeze", *types_of(("n", 1, 3))) == [("n", "3")]


def test_conditions_say_what_is_left_open() -> None:
    cls = OPS["take"]
    data, indices = types_of(("n", 8))[0], TensorType((symbol("k"),), "int64")
    _, conditions = relation((cls, (data, indices), cls.attribute_values({"axis": 0})))
    assert [(str(c.size), c.text) for c in conditions] == [
        ("n - min(1, k)", f"data: expected at least one element along axis 0 to read, found {data}")
    ]
    with Ranges({"n": Range(1)}):
        assert relation((cls, (data, indices), cls.attribute_values({"axis": 0})))[1] == []


@pytest.mark.parametrize(
    ("begin", "stride", "expected"),
    [("n - 1", 1, "min(max(0, n - 1), n)"), ("n - 2", 1, None), ("n - 1", -1, "n - 1"), ("n", 1, "n")],
)
def test_begins_that_are_negative_where_the_axis_is_empty(begin, stride, expected):
    """A begin of n - 1 is clamped to the first element where n is 0; a begin of n - 2 is the last element where n is 1."""
    with Ranges({"n": Range(0)}):
        start, count = slice_bounds(symbol("n"), parse(begin), None, stride)
        assert expected is None or start == parse(expected)
        for n in range(6):
            picked = range(n)[int(evaluate(parse(begin), {"n": n})) :: stride]
            assert evaluate(count, {"n": n}) == len(picked)
            assert not picked or evaluate(start, {"n": n}) == picked.start


def test_a_module_by_itself_prints_what_its_ranges_prove():
    text = """func.func @main(%x: tensor<?xf32, ["n"]> {relay.name = "x"}) -> tensor<?xf32, ["n"]> {
      %y = "relay.strided_slice"(%x) {begin = [0], end = [512]} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
      return %y : tensor<?xf32, ["n"]>
    }"""
    mod = IRModule.parse("module attributes {relay.symbols = {n = array<i64: 1, 512, 128>}} {" + text + "}")
    assert str(mod.module) == str(mod) and "relay.strided_slice" in str(mod)
    with pytest.raises(RelayError, match=r"min\(512, n\)"):
        IRModule.parse(text)
    with pytest.raises(RelayError, match=r"min\(512, n\)"):
        IRModule.parse("module attributes {relay.symbols = {n = array<i64: 1, 513, 128>}} {" + text + "}")


def test_an_unknown_size_of_images_makes_unknown_rows() -> None:
    cls = OPS["nn_conv2d_transpose"]
    types = [TensorType((1, 4, None, 5), "float32"), TensorType((4, 6, 3, 3), "float32")]
    assert cls.result_types(types, cls.attribute_values({"strides": (2, 1)})) == [TensorType((1, 6, None, 7), "float32")]


@pytest.mark.parametrize(
    ("layouts", "data", "weight", "groups", "fits"),
    [
        ("NCHW8c NCHW8c", (1, 2, 8, 8, 8), (16, 8, 3, 3), 2, True),
        ("NCHW8c NCHW8c", (1, 2, 8, 8, 8), (8, 8, 3, 3), 2, False),  # half a block of results in each group
        ("NCHW8c NCHW4c", (1, 2, 8, 8, 8), (8, 8, 3, 3), 2, True),
        ("NCHW4c NCHW8c", (1, 3, 8, 8, 4), (16, 6, 3, 3), 2, False),  # a block of data and a half
        ("NCHW4c NCHW4c", (1, 2, 8, 8, 4), (8, 1, 3, 3), 8, True),
        ("NCHW4c NCHW8c", (1, 2, 8, 8, 4), (8, 1, 3, 3), 8, False),  # depthwise, in other blocks
    ],
)
def test_blocks_of_channels_are_of_one_group(layouts: str, data: Any, weight: Any, groups: int, fits: bool) -> None:
    cls, (data_layout, out_layout) = OPS["nn_conv2d"], layouts.split()
    types = [TensorType(shape, "float32") for shape in (data, weight)]
    attrs = cls.attribute_values({"data_layout": data_layout, "out_layout": out_layout, "groups": groups})
    if fits:
        block = int(out_layout[4:-1])
        assert cls.result_types(types, attrs) == [TensorType((1, weight[0] // block, 6, 6, block), "float32")]
    else:
        with pytest.raises(RelayError, match="blocked layout with groups: expected depthwise, or groups of whole blocks, found"):
            cls.result_types(types, attrs)


def floats(*shape: int) -> TensorType:
    return TensorType(shape, "float32")


def indices(*shape: int) -> TensorType:
    return TensorType(shape, "int64")


@pytest.mark.parametrize(
    ("name", "operands", "fitting", "refused"),
    [
        ("nn.dropout", [floats(3)], [{"rate": 0.0}, {"rate": 1.0}], [{"rate": -0.01}, {"rate": 1.01}]),
        ("nn.conv2d", [floats(1, 2, 4, 4), floats(2, 1, 3, 3)], [{"groups": 2}], [{"groups": 0}]),
        ("nn.conv2d", [floats(1, 2, 4, 4), floats(2, 2, 3, 3)], [{"groups": 1}], [{"groups": -1}]),
        ("nn.conv2d", [floats(1, 2, 4, 4), floats(2, 2, 3, 3)], [{"padding": (0, 0)}, {"padding": (0, 1)}], [{"padding": (0, -1)}]),
        (
            "nn.conv2d_transpose",
            [floats(1, 2, 4, 4), floats(2, 2, 3, 3)],
            [{"strides": (2, 2), "output_padding": (1, 0)}, {"strides": (2, 2), "dilation": (1, 3), "output_padding": (1, 2)}],
            [{"strides": (2, 2), "output_padding": (2, 0)}, {"strides": (2, 2), "dilation": (1, 3), "output_padding": (1, 3)}],
        ),
        ("take", [floats(2, 3, 4), indices(2, 5)], [{"axis": 1, "batch_dims": 1}], [{"axis": 1, "batch_dims": 2}]),
        ("gather_nd", [floats(2, 2, 3, 4), indices(2, 2)], [{"batch_dims": 0}, {"batch_dims": 1}], [{"batch_dims": -1}, {"batch_dims": 2}]),
        ("gather_nd", [floats(3), indices(1)], [{}], [{"batch_dims": 1}]),
        ("expand_dims", [floats(3)], [{"axis": 0, "num_newaxis": 0}], [{"axis": 0, "num_newaxis": -1}]),
        ("nn.space_to_depth", [floats(1, 1, 2, 2)], [{"block_size": 1}], [{"block_size": 0}]),
        ("nn.depth_to_space", [floats(1, 4, 2, 2)], [{"block_size": 1}], [{"block_size": 0}]),
        ("nn.lrn", [floats(1, 4, 2, 2)], [{"size": 1}], [{"size": 0}]),
        ("nn.l2_normalize", [floats(4, 2)], [{"eps": 0.1, "axis": (1,)}], [{"eps": 0.1, "axis": ()}, {"eps": 0.1, "axis": (1, 1)}]),
        ("nn.group_norm", [floats(1, 4, 2), floats(4), floats(4)], [{"num_groups": 1}], [{"num_groups": 0}]),
        ("split", [floats(6)], [{"indices_or_sections": 1}, {"indices_or_sections": 6}], [{"indices_or_sections": 0}]),
        ("image.resize2d", [floats(1, 1, 2, 2)], [{"size": (1, 1)}], [{"size": (0, 1)}]),
        ("nn.upsampling", [floats(1, 1, 2, 2)], [{"scale_h": 0.5, "scale_w": 0.5}], [{"scale_h": 0.0}, {"scale_h": 1.0, "scale_w": 0.0}]),
        ("reshape", [floats(4, 6)], [{"newshape": (-4, 2, 2, 6)}, {"newshape": (-4, -1, 2, 6)}], [{"newshape": (-4, -1, -1, 6)}]),
        ("reshape", [floats(4, 6)], [{"newshape": (-3,)}, {"newshape": (0, -4, 2, 3)}], [{"newshape": (0, -3)}, {"newshape": (0, 0, -4)}]),
    ],
)  # fmt: skip
def test_limits_of_attributes(name: str, operands: Any, fitting: list[dict[str, Any]], refused: list[dict[str, Any]]) -> None:
    for attributes in fitting:
        assert all("-" not in size for shape in shape_after(name, *operands, **attributes) for size in shape)
    for attributes in refused:
        with pytest.raises(RelayError, match="expected"):
            shape_after(name, *operands, **attributes)


@pytest.mark.parametrize(
    ("name", "fitting", "refused", "attributes"),
    [
        ("nn.dense", [floats(3), floats(2, 3)], [floats(), floats(2, 3)], {}),
        ("nn.matmul", [floats(3), floats(3, 2)], [floats(), floats(3, 2)], {}),
        ("nn.instance_norm", [floats(1, 2, 3), floats(2), floats(2)], [floats(1, 2), floats(2), floats(2)], {}),
        ("trilu", [floats(2, 3), indices()], [floats(3), indices()], {}),
        ("concatenate", [floats(3)], [], {"axis": 0}),
        ("stack", [floats(3)], [], {"axis": 0}),
        ("gather_nd", [floats(3), indices(1)], [floats(3), indices()], {}),
        ("scatter_nd", [floats(3, 4), indices(2, 5), floats(5)], [floats(3, 4), indices(3, 5), floats(5)], {}),
    ],
)
def test_limits_of_operands(name: str, fitting: list[RelayType], refused: list[RelayType], attributes: dict[str, Any]) -> None:
    assert shape_after(name, *fitting, **attributes)
    with pytest.raises(RelayError, match="expected"):
        shape_after(name, *refused, **attributes)


HEADS = [floats(1, 2, 3, 4)] * 3
OFF, ON = False, True


@pytest.mark.parametrize(
    ("name", "operands", "required", "flags"),
    [
        ("nn.attention", HEADS, {"scale": 1.0}, {"is_causal": OFF, "nan_to_zero": OFF, "empty_to_zero": OFF}),
        ("nn.matmul", [floats(3, 3)] * 2, {}, {"transpose_a": OFF, "transpose_b": OFF}),
        ("nn.batch_matmul", [floats(2, 3, 3)] * 2, {}, {"transpose_a": OFF, "transpose_b": ON}),
        ("nn.upsampling", [floats(1, 1, 2, 2)], {}, {"align_corners": OFF}),
        ("gather", [floats(2, 3), indices(2, 3)], {"axis": 1}, {"in_bounds": OFF}),
        ("gather_nd", [floats(2, 3), indices(2, 3)], {}, {"in_bounds": OFF}),
        ("scatter_elements", [floats(2), indices(2), floats(2)], {}, {"distinct": OFF, "in_bounds": OFF}),
        ("scatter_nd", [floats(2), indices(1, 2), floats(2)], {}, {"distinct": OFF, "in_bounds": OFF}),
        ("nn.layer_norm", [floats(2, 3), floats(3), floats(3)], {}, {"center": ON, "scale": ON}),
        ("nn.group_norm", [floats(1, 2, 3), floats(2), floats(2)], {"num_groups": 1}, {"center": ON, "scale": ON}),
        ("nn.avg_pool2d", [floats(1, 1, 3, 3)], {"pool_size": (2, 2)}, {"ceil_mode": OFF, "count_include_pad": OFF}),
        ("sum", [floats(2, 3)], {}, {"keepdims": OFF, "exclude": OFF}),
        ("argmax", [floats(2, 3)], {}, {"keepdims": OFF, "exclude": OFF, "select_last_index": OFF}),
        ("variance", [floats(2, 3), floats(1, 1)], {}, {"keepdims": OFF, "exclude": OFF, "unbiased": OFF}),
        ("image.grid_sample", [floats(1, 1, 2, 2), floats(1, 2, 2, 2)], {}, {"align_corners": ON}),
        ("cumsum", [floats(3)], {}, {"exclusive": OFF}),
        ("sort", [floats(3)], {}, {"is_ascend": ON}),
        ("argsort", [floats(3)], {}, {"is_ascend": ON}),
        ("topk", [floats(3)], {}, {"is_ascend": OFF}),
        ("searchsorted", [floats(3), floats(2)], {}, {"right": OFF}),
        ("reshape", [floats(2, 3)], {"newshape": (0, 3)}, {"allowzero": OFF}),
        ("trilu", [floats(2, 3), indices()], {}, {"upper": ON}),
        ("vision.roi_align", [floats(1, 1, 4, 4), floats(1, 5)], {"pooled_size": (1, 1), "spatial_scale": 1.0}, {"aligned": OFF}),
    ],
)
def test_flags_are_those_of_relays_documentation_where_they_are_left_out(name: str, operands: Any, required: Any, flags: Any) -> None:
    """And those of ONNX for what Relay has not."""
    found = next(c for c in OPS.values() if c.relay_name == name).attribute_values(required)
    assert {key: value for key, value in found.items() if isinstance(value, bool)} == flags
    assert shape_after(name, *operands, **required) == shape_after(name, *operands, **required, **flags)
