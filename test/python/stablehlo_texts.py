"""Texts of programs of StableHLO."""


def region(operator, kind="tensor<f32>"):
    """A region of two scalars."""
    return f"({{ ^bb0(%a: {kind}, %b: {kind}): %c = stablehlo.{operator} %a, %b : {kind} stablehlo.return %c : {kind} }})"


def function(arguments, result, body):
    return f"func.func @main({arguments}) -> {result} {{ {body} }}"


def program(body, result="tensor<4x6xf32>", arguments="%x: tensor<4x6xf32>"):
    """A program whose result is %0."""
    return function(arguments, result, f"{body} return %0 : {result}")


WRITTEN = """%0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
  inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> REGION
  : (tensor<4x6xTYPE>, tensor<3xi32>, tensor<3x6xTYPE>) -> tensor<4x6xTYPE>"""
CHOSEN = """%z = stablehlo.constant dense<0.5> : tensor<f32>
%0 = "stablehlo.select_and_scatter"(%x, %y, %z) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}>
  ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %c = stablehlo.compare DIRECTION, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1> }, REGION) : (tensor<4x6xf32>, tensor<2x3xf32>, tensor<f32>) -> tensor<4x6xf32>"""
REAL_SLICE = "%0 = stablehlo.real_dynamic_slice %x, %i, %j, %s : (tensor<4x6xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> KIND"
TWO = "%x: tensor<4x6xf32>, %i: tensor<2xi32>"
UPDATED = "%x: tensor<4x6xTYPE>, %i: tensor<3xi32>, %u: tensor<3x6xTYPE>"

_OF_TWO = "and or xor add maximum shift_left shift_right_logical"
ELEMENTWISE = [
    *(("i32", f"{name} %x, %b : KIND") for name in _OF_TWO.split()),
    *(("i32", f"{name} %b : KIND") for name in ("not", "popcnt", "count_leading_zeros")),
    *(("f32", f"{name} : KIND") for name in ("divide %x, %b", "atan2 %b, %b", "clamp %b, %x, %b", "cbrt %b", "floor %b")),
    *(("f32", name) for name in ("reduce_precision %b, format = e5m2 : KIND", "convert %b : (KIND) -> KIND")),
    ("f32", "select %p, %x, %b : tensor<4x6xi1>, KIND"),
]
"""Operators on each element of %x, %b and the bools %p, and the type of the elements."""


def best(direction, operator="add"):
    """The sum of 0.5 and of the second input at one place of each window of the first."""
    body = CHOSEN.replace("DIRECTION", direction).replace("REGION", region(operator)[1:-1])
    return program(body, arguments="%x: tensor<4x6xf32>, %y: tensor<2x3xf32>")


def scatter(operator, kind, text=""):
    body = WRITTEN.replace("REGION", text or region(operator, f"tensor<{kind}>")).replace("TYPE", kind)
    return program(body, f"tensor<4x6x{kind}>", UPDATED.replace("TYPE", kind))
