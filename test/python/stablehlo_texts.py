"""Texts of programs of StableHLO."""


def region(operator, kind="tensor<f32>"):
    """A region of two scalars."""
    return f"({{ ^bb0(%a: {kind}, %b: {kind}): %c = stablehlo.{operator} %a, %b : {kind} stablehlo.return %c : {kind} }})"


def function(arguments, result, body):
    return f"func.func @main({arguments}) -> {result} {{ {body} }}"


def program(body, result="tensor<4x6xf32>", arguments="%x: tensor<4x6xf32>"):
    """A program whose result is %0."""
    return function(arguments, result, f"{body} return %0 : {result}")


IF = """%0 = "stablehlo.if"(%p) ({ stablehlo.return %x : tensor<4x6xf32> },
  { %1 = stablehlo.negate %x : tensor<4x6xf32> stablehlo.return %1 : tensor<4x6xf32> }) : (tensor<i1>) -> tensor<4x6xf32>"""
ROWS = """%0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
  start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<3xi32>) -> tensor<3x6xf32>"""
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

REMAINDER = """func.func private @remainder(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
  %one = stablehlo.constant dense<1> : tensor<i32> %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.compare EQ, %b, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %1 = call @_where(%0, %one, %b) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
  %2 = stablehlo.remainder %a, %1 : tensor<i32>
  %3 = stablehlo.compare NE, %2, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %4 = stablehlo.compare LT, %2, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %5 = stablehlo.compare LT, %1, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %6 = stablehlo.compare NE, %4, %5 : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %7 = stablehlo.and %6, %3 : tensor<i1>
  %8 = stablehlo.add %2, %1 : tensor<i32>
  %9 = stablehlo.select %7, %8, %2 : tensor<i1>, tensor<i32>
  return %9 : tensor<i32> }
func.func private @_where(%p: tensor<i1>, %a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.select %p, %a, %b : tensor<i1>, tensor<i32> return %0 : tensor<i32> }
"""
"""jax.numpy's remainder; functions of JAX that is exported with symbolic sizes have these as arguments too."""

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


def sort(direction, count):
    """The last of so many operands in an order of the first one."""
    operands, kinds = ("%x", "tensor<4x6xf32>") if count == 1 else ("%i, %x", "tensor<4x6xi32>, tensor<4x6xf32>")
    key = "f32" if count == 1 else "i32"
    others = "" if count == 1 else ", %c: tensor<f32>, %d: tensor<f32>"
    return program(
        f'%s:{count} = "stablehlo.sort"({operands}) <{{dimension = 1 : i64, is_stable = true}}> '
        f"({{ ^bb0(%a: tensor<{key}>, %b: tensor<{key}>{others}): %p = stablehlo.compare {direction}, %a, %b "
        f": (tensor<{key}>, tensor<{key}>) -> tensor<i1> stablehlo.return %p : tensor<i1> }}) : ({kinds}) -> ({kinds}) "
        f"%0 = stablehlo.negate %s#{count - 1} : tensor<4x6xf32>",
        arguments="%x: tensor<4x6xf32>" + (", %i: tensor<4x6xi32>" if count > 1 else ""),
    )


def gathered(numbers, size, kinds):
    """Windows of the first operand."""
    return f'"stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = array<i64: {size}>}}> : {kinds}'


def of_complex(body, shape="4x6", more=""):
    """What %c, made of the complex numbers %z, has as its real part less twice the imaginary one."""
    kind, part = f"tensor<{shape}xcomplex<f32>>", f"tensor<{shape}xf32>"
    return program(
        f"%z = stablehlo.complex %x, %y : tensor<4x6xcomplex<f32>> {body.replace('KIND', kind)} "
        f"%re = stablehlo.real %c : ({kind}) -> {part} %im = stablehlo.imag %c : ({kind}) -> {part} "
        f"%d = stablehlo.add %im, %im : {part} %0 = stablehlo.subtract %re, %d : {part}",
        part,
        f"%x: tensor<4x6xf32>, %y: tensor<4x6xf32>{more}",
    )


def convolved(shape, window):
    """The convolution of [1, 2, 6] with [3, 2, 3] in a window."""
    return program(
        f"%0 = stablehlo.convolution(%x, %y) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {{{window}}} "
        f"{{feature_group_count = 1 : i64, batch_group_count = 1 : i64}} : (tensor<1x2x6xf32>, tensor<3x2x3xf32>) -> tensor<{shape}xf32>",
        f"tensor<{shape}xf32>",
        "%x: tensor<1x2x6xf32>, %y: tensor<3x2x3xf32>",
    )
