"""Operators as classes: building, reading and checking them from Python; constants and the parameter table."""

from typing import ClassVar

import ml_dtypes
import numpy as np
import pytest

from relayc.dialects import mlir
from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import OPS, IRModule, Op, Pattern, RelayError, TensorType, build
from relayc.dialects.relay.base import Ints, Operand, View
from relayc.dialects.relay.elements import dense_array, dense_attr
from relayc.dialects.relay.module import INLINE_BYTES
from relayc.dialects.relay.names import ir_name
from relayc.dialects.relay.ranges import read_ranges
from relayc.dialects.relay.shapes import broadcast_shapes
from relayc.dialects.relay.types import TupleType
from relayc.symbolic import Range, Ranges, symbol

ELEMENTWISE = """
abs ceil floor round trunc sign negative exp log log2 log10 sqrt rsqrt sigmoid tanh sin cos tan asin acos atan sinh cosh asinh acosh atanh
erf logical_not bitwise_not isnan isinf isfinite cast clip copy add subtract multiply divide floor_divide mod floor_mod power maximum
minimum equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor
left_shift right_shift where
"""
REDUCTIONS = "sum mean max min prod all any argmax argmin variance"


@pytest.fixture
def block():
    """The entry block of a main with the arguments tensor<2x3xf32>, tensor<3xf32>, tensor<2x3xi1>; operators are built into it."""
    text = "func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %c: tensor<2x3xi1>) { return }"
    mod = IRModule.parse(text)
    found = mod.main.regions[0].blocks[0]
    with mod.context, ir.Location.name("node"), ir.InsertionPoint.at_block_begin(found):
        yield found


def test_every_operator_says_what_it_is():
    for name, cls in OPS.items():
        assert cls.__doc__, name
        assert isinstance(cls.pattern, Pattern), name


def test_patterns_are_relays():
    assert {OPS[n].pattern for n in ELEMENTWISE.split()} == {Pattern.ELEMWISE, Pattern.BROADCAST}
    assert {OPS[n].pattern for n in REDUCTIONS.split()} == {Pattern.COMM_REDUCE}


def test_an_operator_reads_back_as_python(block):
    data = block.arguments[0]
    op = OPS["sum"](data, axis=[1], keepdims=True)
    assert op.data == data
    assert (op.axis, op.keepdims, op.exclude) == ((1,), True, False)
    assert op.attrs() == {"axis": (1,), "keepdims": True, "exclude": False}
    assert TensorType.of(op.result) == TensorType((2, 1), "float32")
    assert op.source() == '"node"'


def test_build_takes_relays_names_and_gives_results(block):
    data = block.arguments[0]
    assert TensorType.of(build("nn.batch_flatten", data)).shape == (2, 3)
    values, indices = build("topk", data, k=2)
    assert TensorType.of(indices).dtype == "int32"
    assert TensorType.of(values).shape == (2, 2)


def test_an_attribute_left_out_has_relays_default_or_none(block):
    op = OPS["cumsum"](block.arguments[0])
    assert op.axis is None
    assert "axis" not in op.operation.attributes
    assert op.exclusive is False


@pytest.mark.parametrize("sections", [3, (1, 2)])
def test_split_takes_a_number_or_indices(block, sections):
    parts = build("split", block.arguments[1], indices_or_sections=sections)
    assert len(parts) == 3
    assert parts[0].owner.opview.data.owner.opview.indices_or_sections == sections


@pytest.mark.parametrize(
    ("name", "attrs", "message"),
    [
        ("no.such", {}, "no operator 'no.such' in the relay dialect"),
        ("exp", {"base": 2}, 'relay.exp at "node": no attribute base; it has none'),
        ("sum", {"axes": (1,)}, "relay.sum .* no attribute axes; it has axis, keepdims, exclude"),
        ("sum", {"axsi": 1, "dimensions": 2}, "no attribute axsi, dimensions; it has .*; did you mean axis"),
        ("sum", {"axis": 1}, "attribute axis: expected a sequence of integers, found 1"),
        ("sum", {"keepdims": 1}, "attribute keepdims: expected a bool, found 1"),
        ("cast", {}, "attribute dtype: expected a string, found none"),
        ("expand_dims", {"axis": True}, "attribute axis: expected an integer, found True"),
        ("squeeze", {"axis": (0,)}, r"dimension 0: expected 1, found 2"),
    ],
)
def test_a_wrong_operator_is_one_clear_error(block, name, attrs, message):
    with pytest.raises(RelayError, match=message):
        build(name, block.arguments[0], **attrs)


def of(*shape, dtype="float32"):
    return TensorType(shape, dtype)


IMAGE, ROWS, NUMBER, INDEX, BYTES = of(1, 4, 4, 4), of(2, 3), of(), of(dtype="int64"), of(2, 3, dtype="uint8")
LIMITS = [
    ("nn.dropout", [ROWS], {"rate": [0.0, 1.0]}, {"rate": [-0.1, 1.1]}),
    ("det", [of(3, 3)], {}, {}),
    ("nn.instance_norm", [of(1, 4, 4), of(4), of(4)], {}, {}),
    ("nn.group_norm", [IMAGE, of(4), of(4)], {"num_groups": [1, 4]}, {"num_groups": [0, 3]}),
    ("nn.lrn", [IMAGE], {"size": [1]}, {"size": [0]}),
    ("nn.l2_normalize", [ROWS], {"axis": [(1,), (0, 1)], "eps": [1e-5]}, {"axis": [(), (0, 0), (1, -1)]}),
    ("expand_dims", [ROWS], {"axis": [0], "num_newaxis": [0, 1]}, {"num_newaxis": [-1]}),
    ("nn.batch_flatten", [of(2)], {}, {}),
    ("nn.depth_to_space", [IMAGE], {"block_size": [1, 2]}, {"block_size": [0, -1]}),
    ("nn.space_to_depth", [IMAGE], {"block_size": [1, 2]}, {"block_size": [0, -1]}),
    ("trilu", [ROWS, INDEX], {}, {}),
    ("concatenate", [ROWS], {"axis": [0, 1]}, {"axis": [2]}),
    ("nn.upsampling", [IMAGE], {"scale_h": [0.5], "scale_w": [0.5]}, {"scale_h": [0.0, -1.0], "scale_w": [0.0]}),
    ("image.resize2d", [IMAGE], {"size": [(2, 2)], "scales": [(0.5, 0.5), ()]}, {"scales": [(0.5, 0.0), (-1.0, 1.0), (1.0,)]}),
    ("take", [of(2, 3, 4), of(2, 3, dtype="int32")], {"axis": [2], "batch_dims": [2]}, {"axis": [1]}),
    ("gather_nd", [of(2, 3, 4), of(2, 2, dtype="int32")], {"batch_dims": [0, 1]}, {"batch_dims": [-1, 2]}),
    ("scatter_nd", [ROWS, of(2, 5, dtype="int32"), of(5)], {}, {}),
    ("reshape", [ROWS], {"newshape": [(0, 0), (-3,), (0, -4, 3, 1), (0, -4, -1, 3), (-2, 1)]}, {
        "newshape": [(0, 0, 0), (0, -3), (0, 0, -4, 1, 1), (0, -4, 0, 3), (0, -4, -1, 0), (0, -4, -1, -1), (0, -4, 3), (0, -4, -2, 3)]
    }),
    ("topk", [ROWS], {"k": [0, 1, 3]}, {"k": [4]}),
    ("searchsorted", [of(3), ROWS], {}, {}),
    ("one_hot", [of(2, dtype="int32"), NUMBER, NUMBER], {"depth": [0, 1]}, {"depth": [-1]}),
    ("tile", [ROWS], {"reps": [(2,), (0, 1), (2, 1, 3)]}, {"reps": [(-1,)]}),
    ("tuple_get_item", [TupleType((ROWS, NUMBER))], {"index": [0, 1]}, {"index": [-1, 2]}),
    ("qnn.dequantize", [BYTES, of(1), of(1, dtype="uint8")], {}, {}),
    ("qnn.dequantize", [BYTES, of(3), of(3, dtype="uint8")], {"axis": [1, -1]}, {}),
    ("qnn.dequantize", [BYTES, of(2, 1), of(1, 1, dtype="uint8")], {}, {}),
]  # fmt: skip
RANKS = [
    ("det", [of(3)]),
    ("nn.instance_norm", [of(1, 4), of(4), of(4)]),
    ("nn.batch_flatten", [NUMBER]),
    ("trilu", [of(3), INDEX]),
    ("concatenate", []),
    ("stack", []),
    ("gather_nd", [ROWS, of(dtype="int32")]),
    ("gather_nd", [ROWS, of(3, dtype="int32")]),
    ("scatter_nd", [ROWS, of(3, 5, dtype="int32"), of(5)]),
    ("qnn.dequantize", [BYTES, of(1, 1, 1), of(dtype="uint8")]),
]


def infer(name, operands, **attributes):
    cls = OPS[ir_name(name)]
    return cls.result_types(operands, cls.attribute_values(attributes))


@pytest.mark.parametrize(("name", "operands", "fitting", "wrong"), LIMITS)
def test_attributes_at_their_limits(name, operands, fitting, wrong):
    first = {key: values[0] for key, values in fitting.items()}
    for key, values in fitting.items():
        for value in values:
            assert infer(name, operands, **first | {key: value})
    for key, values in wrong.items():
        for value in values:
            with pytest.raises(RelayError, match=key.partition("_")[0]):
                infer(name, operands, **first | {key: value})
    assert infer(name, operands, **first)


@pytest.mark.parametrize(
    ("name", "size", "low", "fits"),
    [
        *(("squeeze", None, low, low == 2) for low in (1, 2)),
        *(("match_shape", size, 2, 2 <= size <= 8) for size in (1, 2, 8, 9)),
    ],
)
def test_sizes_that_a_symbol_may_be(name, size, low, fits):
    n = symbol("n")
    operand, attributes = of(3, n if size is None else size), {} if size is None else {"shape": (3, n)}
    with Ranges({"n": Range(low, 8)}):
        if fits:
            assert infer(name, [operand], **attributes)[0].shape == (3, n)
        else:
            with pytest.raises(RelayError, match=r"axis: expected the axes to drop|a size that may be that of"):
                infer(name, [operand], **attributes)


@pytest.mark.parametrize("pair", [(0, 3), (3, 0), (-1, 0), (-1, -1), (3,), (-2, 3), (3, -2)])
def test_a_dimension_is_split_into_two_sizes(pair):
    with pytest.raises(RelayError, match=r"newshape: expected two sizes \(one may be -1\) after -4, found"):
        infer("reshape", [ROWS], newshape=(0, -4, *pair))


@pytest.mark.parametrize(
    ("shape", "names", "message"),
    [
        ((), ("n",), None),
        ((2,), ("n", "m"), None),
        ((2, 1), ("n",), "data: expected rank 0 or 1"),
        ((0,), (), "names: expected a name for each of the 0"),
        ((2,), ("n",), "names: expected a name for each of the 2"),
        ((2,), ("n", "1m"), "names: expected identifiers"),
        ((2,), ("n", "n"), "names: expected no name twice"),
    ],
)
def test_names_of_sizes(shape, names, message):
    if message is None:
        assert infer("define_sizes", [of(*shape, dtype="int64")], names=names) == []
    else:
        with pytest.raises(RelayError, match=message):
            infer("define_sizes", [of(*shape, dtype="int64")], names=names)


@pytest.mark.parametrize(("name", "operands"), RANKS)
def test_operands_of_too_few_axes(name, operands):
    with pytest.raises(RelayError, match="expected"):
        infer(name, operands)


def test_an_error_leaves_no_operation_behind(block):
    with pytest.raises(RelayError):
        build("add", block.arguments[0], block.arguments[2])
    assert len(block.operations) == 1


def test_a_type_that_no_dtype_names_is_refused():
    with pytest.raises(RelayError, match=r"relay.copy .* element type of tensor<2xi7> is not one of"):
        IRModule.parse('func.func @main(%a: tensor<2xi7>) { %0 = "relay.copy"(%a) : (tensor<2xi7>) -> tensor<2xi7>\nreturn }')


def test_an_operator_can_be_added_from_outside():
    class Scale(Op, name="test_scale", relay_name="test.scale"):
        """data times a number."""

        data: Operand
        by: float = 2.0
        axes: Ints = ()
        count: ClassVar[int] = 1
        pattern = Pattern.ELEMWISE

        @staticmethod
        def infer(op: View) -> TensorType:
            return op.data

    try:
        text = 'func.func @main(%a: tensor<2xf32>) { %0 = "relay.test_scale"(%a) {by = 3.0} : (tensor<2xf32>) -> tensor<2xf32>\nreturn }'
        mod = IRModule.parse(text)
        found = mod.main.regions[0].blocks[0].operations[0]
        assert isinstance(found, Scale)
        assert (found.by, found.axes, found.relay_name) == (3.0, (), "test.scale")
        assert list(Scale.attr_specs) == ["by", "axes"]
    finally:
        del OPS["test_scale"]


def test_an_operator_without_a_type_relation_has_no_types():
    class Bare(Op, name="test_bare", relay_name="test.bare"):
        """Without one."""

        data: Operand

    try:
        with pytest.raises(NotImplementedError):
            Bare.result_types([TensorType((2,), "float32")], {})
    finally:
        del OPS["test_bare"]


def test_mlir_is_one_library(tmp_path, monkeypatch):
    monkeypatch.setattr(mlir._mlir_libs, "__path__", [str(tmp_path)])
    for count in (0, 2):
        for number in range(count):
            (tmp_path / f"libMLIRAggregateCAPI{number}.so").touch()
        with pytest.raises(ImportError, match=f"expected one library of MLIR's C API in .*, found {count}"):
            mlir.c_library.__wrapped__()


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(2, 1), (3,)], (2, 3)),
        ([(), (4, 5)], (4, 5)),
        ([(None, 3), (1, 3)], (None, 3)),
        ([(None,), (7,)], (7,)),
        ([(0, 1), (1, 5)], (0, 5)),
        ([(2, 1, 1), (3, 1), (4,)], (2, 3, 4)),
    ],
)
def test_shapes_broadcast(shapes, expected):
    assert broadcast_shapes(*shapes) == expected


DTYPES = ("float32", "float64", "float16", "bfloat16", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (0, 2), (40,)])
def test_elements_survive_as_an_attribute(dtype, shape):
    array = (np.arange(np.prod(shape, dtype=int)).reshape(shape) * 3 % 7).astype(dtype)
    with make_context(), ir.Location.unknown():
        found = dense_array(dense_attr(array))
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_special_floats_survive_as_an_attribute(dtype):
    array = np.array([np.inf, -np.inf, np.nan, -0.0, 1e-3, ml_dtypes.finfo(dtype).max], dtype)
    with make_context(), ir.Location.unknown():
        found = dense_array(dense_attr(array))
    np.testing.assert_array_equal(found.view(f"uint{8 * array.itemsize}"), array.view(f"uint{8 * array.itemsize}"))


@pytest.mark.parametrize("value", [0, -1, 2**63 - 1, -(2**63)])
def test_splats_keep_their_value(value):
    with make_context(), ir.Location.unknown():
        np.testing.assert_array_equal(dense_array(dense_attr(np.full((2, 2), value))), value)


@pytest.mark.parametrize(("numbers", "fits"), [((4, 4, 4), True), ((3, 4, 3), True), ((4, 3, 4), False)])
def test_the_range_of_a_symbol_has_a_size_at_least(numbers, fits):
    with make_context():
        attribute = ir.Attribute.parse(f"{{n = array<i64: {', '.join(map(str, numbers))}>}}")
        if fits:
            assert read_ranges(attribute) == Ranges({"n": Range(*numbers)})
        else:
            with pytest.raises(RelayError, match="n: expected least, largest and typical value as array"):
                read_ranges(attribute)


def test_large_constants_go_to_the_parameter_table(block):
    mod = IRModule(ir.Module.create(ir.Location.unknown()))
    small, large = mod.constant(np.zeros(INLINE_BYTES, np.int8)), mod.constant(np.arange(4096.0), "weight")
    assert mod.constant(np.zeros(INLINE_BYTES + 1, np.int8)).owner.opview.key == "const"
    again = mod.constant(np.arange(4096.0) + 1, "weight")
    assert (small.owner.opview.key, large.owner.opview.key, again.owner.opview.key) == (None, "weight", "weight.1")
    np.testing.assert_array_equal(mod.value_of(again), np.arange(4096.0) + 1)
    np.testing.assert_array_equal(mod.value_of(small), 0)
    assert mod.value_of(block.arguments[0]) is None


@pytest.mark.parametrize("encoding", ['["n"]', '["n", "m", "k"]', '["n", 3]', '[3, "n"]', "7"])
def test_an_encoding_has_a_text_for_each_unknown_size(encoding):
    with make_context(), pytest.raises(TypeError, match="expected an encoding of 2 texts, one for each"):
        TensorType.from_mlir(ir.Type.parse(f"tensor<?x4x?xf32, {encoding}>"))
