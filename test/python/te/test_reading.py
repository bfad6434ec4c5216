"""Kernels of the te stage as schedules read them, and what they do not read."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.te.read import contraction
from relayc.pipelines.te.read.access import Analysis
from relayc.pipelines.te.read.graph import Kernel, NotStructured, is_costly_after, read_kernel, same_order
from relayc.pipelines.te.read.reduction import is_neutral
from relayc.pipelines.te.read.window import WindowAxis, axis_of
from relayc.pipelines.te.read.window_columns import match
from relayc.symbolic import parse

GENERIC = """
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (OUTPUT)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    BODY
    linalg.yield %y : f32
  } -> tensor<4xf32>"""
MODULES: list[ir.Module] = []
"""The modules of the kernels of a test: an operation does not keep its module."""
LOOP = "%y = scf.for %k = %n to %n step %n iter_args(%v = %a) -> f32 { scf.yield %v : f32 }"


def generic(body: str, output: str = "i") -> str:
    return GENERIC.replace("BODY", body).replace("OUTPUT", output)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%r = tensor.reshape %x(%t) : (tensor<4xf32>, tensor<1xi32>) -> tensor<4xf32>", "tensor.reshape at "),
        ("%u = tensor.empty(%n) : tensor<?xf32>\n%r = tensor.empty() : tensor<4xf32>", r"a dimension that is not known in tensor<\?xf32>"),
        (
            "%e = tensor.empty() : tensor<4xindex>\n%r = linalg.fill ins(%n : index) outs(%e : tensor<4xindex>) -> tensor<4xindex>",
            "expected a constant scalar, found .*index",
        ),
        ("%r = tensor.extract_slice %w[0] [4] [%n] : tensor<16xf32> to tensor<4xf32>", "strides that are no numbers"),
        (generic(LOOP), "scf.for in the body of linalg.generic"),
        (generic("%y = arith.negf %a : f32", "3 - i"), r"linalg.generic: output map \(d0\) -> \(-d0 \+ 3\)"),
        (
            "%r = linalg.softmax dimension(0) ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>",
            "linalg.softmax: ",
        ),
        (
            """%e = tensor.empty() : tensor<4xf32>
            %r = scf.for %k = %n to %n step %n iter_args(%v = %e) -> tensor<4xf32> {
              %a = tensor.extract %x[%k] : tensor<4xf32>
              %b = tensor.extract %w[%k] : tensor<16xf32>
              scf.yield %v : tensor<4xf32>
            } {relay.sort = {}}""",
            "a sort of 2 tensors at ",
        ),
    ],
)
def test_what_is_not_structured(body: str, message: str) -> None:
    arguments = '%x: tensor<4xf32>, %w: tensor<16xf32>, %t: tensor<1xi32>, %n: index {relay.symbol = "n"}'
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @f({arguments}) -> tensor<4xf32> {{ {body} \n return %x : tensor<4xf32> }}")
        with pytest.raises(NotStructured, match=message):
            read_kernel(module.body.operations[0])


@pytest.fixture(autouse=True)
def modules() -> Iterator[None]:
    yield
    MODULES.clear()


def read(arguments: str, body: str, result: str) -> Kernel:
    """A kernel of one function, in the ambient context."""
    MODULES.append(ir.Module.parse(f"func.func @f({arguments}) -> {result} {{ {body} \n return %r : {result} }}"))
    return read_kernel(MODULES[-1].body.operations[0])


@pytest.mark.parametrize(("start", "checked"), [(0, True), (1, False), (2, True)])
def test_elements_of_a_padded_tensor_that_are_within(start: int, checked: bool) -> None:
    """Of a padding by 1 on both sides those from 1 to 8 need no check."""
    body = f"""
      %c = arith.constant 0.0 : f32
      %p = tensor.pad %x low[1, 0] high[1, 0] {{
      ^bb0(%i: index, %j: index):
        tensor.yield %c : f32
      }} : tensor<8x3xf32> to tensor<10x3xf32>
      %r = tensor.extract_slice %p[{start}, 0] [8, 3] [1, 1] : tensor<10x3xf32> to tensor<8x3xf32>"""
    with make_context(), ir.Location.unknown():
        (node,) = read("%x: tensor<8x3xf32>", body, "tensor<8x3xf32>").results
        rows, columns = (Var(0, extent - 1) for extent in node.shape)
        analysis = Analysis()
        analysis.visit(node, [Index.of(rows), Index.of(columns)])
    found = analysis.found
    assert [(index.coefficient(rows), index.const, extent) for index, extent in found.bounds] == [(1, start - 1, 8)] * checked
    assert found.inside == (set() if checked else {rows})
    assert [(offset.coefficient(rows), offset.coefficient(columns), offset.const) for _, offset in found.offsets] == [
        (3, 1, 3 * (start - 1))
    ]


@pytest.mark.parametrize(
    ("element", "largest", "bits"), [("f32", "maximumf", 32), ("i8", "maxsi", 8), ("i1", "maxsi", None), ("index", "maxsi", None)]
)
def test_widths_of_the_elements_of_a_window(element: str, largest: str, bits: int | None) -> None:
    value = "0.0" if element == "f32" else "false" if element == "i1" else "0"
    body = f"""
      %c = arith.constant {value}{"" if element == "i1" else f" : {element}"}
      %t = tensor.empty() : tensor<3x{element}>
      %e = tensor.empty() : tensor<8x{element}>
      %f = linalg.fill ins(%c : {element}) outs(%e : tensor<8x{element}>) -> tensor<8x{element}>
      %r = linalg.generic {{indexing_maps = [affine_map<(i, k) -> (i + k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>],
          iterator_types = ["parallel", "reduction"]}}
          ins(%x, %t : tensor<10x{element}>, tensor<3x{element}>) outs(%f : tensor<8x{element}>) {{
      ^bb0(%a: {element}, %b: {element}, %o: {element}):
        %y = arith.{largest} %a, %o : {element}
        linalg.yield %y : {element}
      }} -> tensor<8x{element}>"""
    with make_context(), ir.Location.unknown():
        window = match(read(f"%x: tensor<10x{element}>", body, f"tensor<8x{element}>"))
        assert window is not None and window.element_bits == bits


@pytest.mark.parametrize(
    ("term", "value", "neutral"),
    [
        ("%y = arith.mulf %a, %b : f32", 0.0, True),
        ("%y = arith.mulf %b, %a : f32", 1.0, False),
        ("%y = arith.addf %a, %b : f32", 0.0, False),
        ("%y = arith.mulf %b, %b : f32", 0.0, False),
    ],
)
def test_what_padding_may_be_left_out_of_a_sum(term: str, value: float, neutral: bool) -> None:
    body = f"""
      %c = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<f32>
      %f = linalg.fill ins(%c : f32) outs(%e : tensor<f32>) -> tensor<f32>
      %r = linalg.generic {{indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>, affine_map<(k) -> ()>],
          iterator_types = ["reduction"]}} ins(%x, %x : tensor<9xf32>, tensor<9xf32>) outs(%f : tensor<f32>) {{
      ^bb0(%a: f32, %b: f32, %o: f32):
        {term}
        %s = arith.addf %o, %y : f32
        linalg.yield %s : f32
      }} -> tensor<f32>"""
    with make_context(), ir.Location.unknown():
        (node,) = read("%x: tensor<9xf32>", body, "tensor<f32>").results
        assert is_neutral(node.structured, 0, ir.FloatAttr.get(ir.F32Type.get(), value)) is neutral


@pytest.mark.parametrize(
    ("a", "b", "is_of_bytes", "is_of_bf16"),
    [
        ("i8", "i8", True, False),
        ("i8", "i16", False, False),
        ("i16", "i8", False, False),
        ("i8 i16", "i8", False, False),
        ("i8", "i8 i16", False, False),
        ("bf16", "bf16", False, True),
        ("bf16", "f16", False, False),
        ("f16", "bf16", False, False),
    ],
)
def test_types_of_the_factors_of_a_product(a: str, b: str, is_of_bytes: bool, is_of_bf16: bool) -> None:
    wide, widen, times, plus = ("i32", "extsi", "muli", "addi") if a.startswith("i") else ("f32", "extf", "mulf", "addf")
    types, factors, casts = [], [], ""
    for name, text in (("x", a), ("y", b)):
        steps = [*text.split(), wide]
        types.append(steps[0])
        factors.append(f"%{name}{len(steps) - 1}")
        casts += "".join(f"%{name}{i + 1} = arith.{widen} %{name}{i} : {s} to {t}\n" for i, (s, t) in enumerate(pairwise(steps)))
    body = f"""
      %c = arith.constant {"0" if wide == "i32" else "0.0"} : {wide}
      %e = tensor.empty() : tensor<4x6x{wide}>
      %f = linalg.fill ins(%c : {wide}) outs(%e : tensor<4x6x{wide}>) -> tensor<4x6x{wide}>
      %r = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
          affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}}
          ins(%x, %y : tensor<4x8x{types[0]}>, tensor<8x6x{types[1]}>) outs(%f : tensor<4x6x{wide}>) {{
      ^bb0(%x0: {types[0]}, %y0: {types[1]}, %o: {wide}):
        {casts}
        %p = arith.{times} {factors[0]}, {factors[1]} : {wide}
        %s = arith.{plus} %o, %p : {wide}
        linalg.yield %s : {wide}
      }} -> tensor<4x6x{wide}>"""
    with make_context(), ir.Location.unknown():
        arguments, result = f"%x: tensor<4x8x{types[0]}>, %y: tensor<8x6x{types[1]}>", f"tensor<4x6x{wide}>"
        module = ir.Module.parse(f"func.func @f({arguments}) -> {result} {{ {body} \n return %r : {result} }}")
        found = contraction.match(read_kernel(module.body.operations[0]))
        assert found and all(contraction.is_bytes(one) is is_of_bytes for one in found)
        assert all(contraction.is_bf16(one) is is_of_bf16 for one in found)


@pytest.mark.parametrize(("outputs", "taps"), [(1, 1), (3, 1), (1, 3), (4, 3)])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_positions_of_a_window_along_an_axis(outputs: int, taps: int, stride: int, dilation: int) -> None:
    read_by = {(i, tap): i * stride + tap * dilation for i in range(outputs) for tap in range(taps)}
    far = max(read_by.values())
    for low in (-1, 0, 1):
        for size in (far - low, far - low + 1, far - low + 2):
            axis = WindowAxis(Var.below(outputs), Var.below(taps), stride, dilation, low, size)
            assert axis.is_padded == any(not 0 <= at - low < size for at in read_by.values())
    users = axis.users(outputs)
    assert [at for at, _ in users] == sorted(set(read_by.values()))
    assert {use: at for at, uses in users for use in uses} == read_by


def test_axes_of_at_most_one_output_and_one_tap() -> None:
    i, j, k, m = Var.below(5), Var.below(5), Var.below(3), Var.below(3)
    many = Var.below(parse("n"))

    def axis(*terms: tuple[Var, int]) -> WindowAxis | None:
        index = sum((Index.of(v) * c for v, c in terms), Index())
        return axis_of(index, 1, 8, 10, {k, m, many})

    assert axis((i, 2), (k, 3)) == WindowAxis(i, k, 2, 3, 1, 8, 1)
    assert axis((i, 1)) == WindowAxis(i, None, 1, 1, 1, 8, 1) and axis((k, 1)) == WindowAxis(None, k, 1, 1, 1, 8, 1)
    for terms in (((i, 1), (j, 1)), ((k, 1), (m, 1)), ((i, 1), (many, 1)), ((i, -1), (k, 1)), ((i, 1), (k, -1))):
        assert axis(*terms) is None, terms


@pytest.mark.parametrize(
    ("first", "second", "is_costly"),
    [("math.exp %a", "arith.negf %a", True), ("arith.negf %a", "math.exp %a", True), ("arith.negf %a", "arith.addf %a, %a", False)],
)
def test_what_costs_much_between_two_tensors(first: str, second: str, is_costly: bool) -> None:
    before = generic(f"%y = {first} : f32").replace("%r", "%p").replace("%e ", "%d ").replace("(%e", "(%d")
    after = generic(f"%y = {second} : f32").replace("%x", "%p")
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{ {before} {after} \n return %r : tensor<4xf32> }}")
        kernel = read_kernel(module.body.operations[0])
        assert is_costly_after(kernel.args[0], kernel.results[0]) is is_costly
        assert not is_costly_after(kernel.results[0], kernel.results[0])


@pytest.mark.parametrize(
    ("maps", "is_same"),
    [
        (("i, j", "i, j", "i, j"), True),
        (("i, j", "j, i", "i, j"), False),
        (("j, i", "i, j", "i, j"), False),
        (("j, i", "j, i", "i, j"), False),
        (("i, j", "i, j", "j, i"), False),
    ],
)
def test_orders_of_elements(maps: tuple[str, str, str], is_same: bool) -> None:
    type_ = "tensor<4x4xf32>"
    body = f"""
      %c = arith.constant 0.0 : f32
      %e = tensor.empty() : {type_}
      %s = linalg.generic {{iterator_types = ["parallel", "parallel"],
          indexing_maps = [{", ".join(f"affine_map<(i, j) -> ({m})>" for m in maps)}]}}
          ins(%x, %x : {type_}, {type_}) outs(%e : {type_}) {{
      ^bb0(%a: f32, %b: f32, %o: f32):
        %y = arith.addf %a, %b : f32
        linalg.yield %y : f32
      }} -> {type_}
      %r = tensor.pad %s low[1, 0] high[0, 0] {{
      ^bb0(%i: index, %j: index):
        tensor.yield %c : f32
      }} : {type_} to tensor<5x4xf32>"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @f(%x: {type_}) -> tensor<5x4xf32> {{ {body} \n return %r : tensor<5x4xf32> }}")
        kernel = read_kernel(module.body.operations[0])
        (argument,), (padded,) = kernel.args, kernel.results
        (total,) = padded.inputs
        assert same_order(total, argument) is is_same
        assert same_order(total, total) and not same_order(argument, total) and not same_order(padded, total)
