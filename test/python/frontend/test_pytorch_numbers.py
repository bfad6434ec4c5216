"""Numbers of PyTorch's graphs that are made of sizes, control flow by them, and arguments that are numbers."""

from dataclasses import dataclass
from math import prod

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import sympy  # noqa: E402 # there is torch
from pytorch_models import agrees, model_of  # noqa: E402
from torch import nn  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.utils._sympy.functions import ModularIndexing  # noqa: E402

import relayc  # noqa: E402
from relayc.frontend.converter import ModelBuilder  # noqa: E402
from relayc.frontend.pytorch import UnsupportedOperators, import_program, supported_operators  # noqa: E402
from relayc.frontend.pytorch.guards import check_guards  # noqa: E402
from relayc.frontend.pytorch.partition import in_parts  # noqa: E402
from relayc.frontend.pytorch.values import Symbols, array_of, dtype_name  # noqa: E402
from relayc.symbolic import maximum, minimum, symbol  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
ANY = torch.export.Dim.DYNAMIC
N, M = sympy.Symbol("n", integer=True, positive=True), sympy.Symbol("m", integer=True, positive=True)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def test_pytorch_sizes_of_expressions():
    n = symbol("n")
    symbols = Symbols({"n": n})
    for expression, wanted in (
        *((N**3, n * n * n), (N / 2 * 2, n), (sympy.Float(2.0), 2), (sympy.Max(N, 3), maximum(n, 3)), (sympy.Min(N, 3), minimum(n, 3))),
        (N**15, prod([n] * 15)),
        *((sympy.floor(N / 2), n // 2), (sympy.ceiling(N / 2), (n + 1) // 2), (ModularIndexing(N, 2, 5), n // 2 % 5)),
    ):
        found = symbols.size(expression)
        assert found == wanted, expression


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (N / 2, "expected a size that is a whole number, found n/2"),
        (M + 1, "expected a size, found m, which is no whole number of an input or of data"),
        (sympy.log(N), r"expected a size made of sums, .*, found log\(n\)"),
        (N**16, r"expected a size made of sums, .*, found n\*\*16"),
        (N**N, r"expected a size made of sums, .*, found n\*\*n"),
    ],
)
def test_pytorch_numbers_that_are_no_sizes(expression, message):
    with pytest.raises(relayc.ModelError, match=message):
        Symbols({"n": symbol("n")}).size(expression)


def test_pytorch_numbers_of_sizes():
    """In float64, of whole numbers, quotients, roots and powers."""

    def function(x):
        n = x.shape[0]
        return x * torch.sym_sqrt(n), x * (n / 3), x * n**2.5, n / 4, max(n, 7) * x, (n + 1) // 2, n * 0.1 + 2

    agrees(model_of(function), (torch.randn(9, 2),), dynamic_shapes=({0: ANY},), more=[(torch.randn(5, 2),)])


def test_pytorch_branches_by_sizes():
    def function(x, y):
        n, m = x.shape[0], y.shape[0]
        conditions = (n > 4) & (m > 4), torch.sym_not((n <= m) & (n * 2 != m)), n / m > 1.5
        return [torch.cond(condition, lambda x: x.cos(), lambda x: x.sin(), (x,)) for condition in conditions]

    more = [(torch.randn(n), torch.randn(m)) for n, m in ((3, 7), (7, 3), (6, 6), (3, 6), (3, 2))]
    agrees(model_of(function), (torch.randn(6), torch.randn(5)), dynamic_shapes=({0: ANY}, {0: ANY}), more=more)


def test_pytorch_maps_and_graphs_of_gradients():
    from torch._higher_order_ops.map import map as map_rows

    def function(x, y):
        with torch.enable_grad():
            z = x.sin() + 1
        return map_rows(lambda row, y: (row * y + row.sum(), row.exp()), z, y)

    agrees(
        model_of(function), (torch.randn(3, 4), torch.randn(4)), dynamic_shapes=({0: ANY}, None), more=[(torch.randn(5, 4), torch.randn(4))]
    )


def test_pytorch_scans_of_several_states():
    from torch._higher_order_ops.scan import scan

    def function(xs, a, b):
        return scan(lambda s, x: ((s[0] * 0.5 + x, s[1] - x), ((s[0] + x).tanh(), s[1] * 2)), (a, b), xs, dim=0)

    agrees(model_of(function), (torch.randn(4, 3), torch.randn(3), torch.randn(3)))


def test_pytorch_arguments_that_are_numbers():
    class Scaled(nn.Module):
        def forward(self, x, n: int, m: int, i):
            return x * n, n + 1, x.new_full((2, n), 0.5), torch.full((2,), x[0, 0].item()), x * m, x * i.item()

    x, i = torch.randn(3, 2), torch.tensor(4)
    agrees(Scaled(), (x, 5, 6, i), dynamic_shapes=(None, ANY, ANY, None), more=[(x + 1, 7, -3, -i)])


def test_pytorch_arguments_in_lists():
    class Joined(nn.Module):
        def forward(self, xs):
            return xs[0] + xs[1][0], 7

    rows = {0: "rows"}
    module = agrees(Joined(), ([torch.randn(3), (torch.randn(3),)],), dynamic_shapes=([rows, (rows,)],))
    assert [str(spec) for spec in module.inputs] == ["float32[rows]"] * 2


def test_pytorch_arguments_that_are_named_as_parts():
    """Parameters with names as those of the parts of *x, of which each has sizes of its own."""

    class Sum(nn.Module):
        def forward(self, x_0, x_1):
            return x_0 + x_1

    named = (None, "columns")
    program = torch.export.export(Sum(), (torch.randn(2, 3), torch.randn(2, 3)), dynamic_shapes=(({1: ANY}),) * 2)
    assert '%arg1: tensor<2x?xf32, ["columns"]>' in str(relayc.from_pytorch(program, dynamic_shapes=(named, named)))


def test_pytorch_parts_of_sizes_and_results_that_are_arguments():
    def function(x, y):
        return *x.split([x.shape[0] - 2, 2]), *y.split(3), *(part + 1 for part in y.split(1))

    module = relayc.from_pytorch(model_of(function), (torch.randn(5, 2), torch.randn(3, 2)), dynamic_shapes=({0: ANY}, None))
    names = [op.operation.name for op in module.main.regions[0].blocks[0].operations]
    assert (names.count("relay.split"), names.count("relay.strided_slice")) == (1, 2)
    module = relayc.from_pytorch(model_of(lambda x: (x, x + 1)), (torch.randn(2),))
    assert "output_0" not in str(module) and "output_1" in str(module)


def test_pytorch_sizes_of_exported_programs():
    rows = torch.export.Dim("rows", min=3, max=64)
    program = torch.export.export(nn.ReLU(), (torch.randn(5, 4),), dynamic_shapes=({0: rows},))
    with pytest.raises(TypeError, match="expected none for a program that is exported already"):
        relayc.from_pytorch(program, (torch.randn(5, 4),))
    module = import_program(program, shapes={"input": ["n", 4]}, dims={"n": (1, 8)})
    assert (module.ranges["n"].low, module.ranges["n"].high) == (3, 8) and "tensor<?x4xf32" in str(module)
    for size in (3, 64):
        assert f"tensor<{size}x4xf32>" in str(import_program(program, dims={"input_0": size}))
    for size in (2, 65):
        with pytest.raises(relayc.ModelError, match=f"expected a size of 3 to 64, as it was exported, found {size}"):
            import_program(program, dims={"input_0": size})


def test_pytorch_files_of_exported_programs(tmp_path):
    torch.export.save(torch.export.export(nn.ReLU(), (torch.randn(5, 4),)), tmp_path / "model.pt2")
    assert "tensor<5x4xf32>" in str(import_program(tmp_path / "model.pt2"))
    (tmp_path / "no.pt2").write_bytes(b"no program")
    for name, message in (("none", "expected the file of an ExportedProgram, found no file"), ("no", "found what torch does not load")):
        with pytest.raises(relayc.ModelError, match=message):
            import_program(tmp_path / f"{name}.pt2")


def test_pytorch_operators_that_are_supported():
    names = supported_operators()
    assert names == sorted({*names}) and {"aten.add", "aten.conv2d", "aten.view_as_real", "aten.softmax"} <= {*names}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_pytorch_memory_is_that_of_arrays(dtype):
    tensor = torch.tensor([1.5, -2.0, 0.125]).to(getattr(torch, dtype))
    array = array_of(tensor)
    assert array.dtype.name == dtype and array.ctypes.data == tensor.data_ptr()
    np.testing.assert_array_equal(array.astype(np.float32), [1.5, -2.0, 0.125])


@dataclass
class Pair:
    first: torch.Tensor
    second: torch.Tensor


torch.export.register_dataclass(Pair, serialized_type_name="test.Pair")


def test_pytorch_results_of_other_kinds():
    """Of a class that torch has been told of, and of an argument and a number only."""
    agrees(
        model_of(lambda x: Pair(x + 1, torch.ops.prims.iota(4, start=2, step=3, dtype=torch.int64, device="cpu", requires_grad=False))),
        (torch.randn(3),),
    )
    agrees(model_of(lambda x: (x, 3)), (torch.randn(3),))


def test_pytorch_scalars_that_are_known():
    symbols = Symbols({"n": symbol("n")})
    with ModelBuilder({}):
        for expression, dtype, wanted in (
            (sympy.true, "bool", True),
            (sympy.Integer(7), "float32", 7.0),
            (sympy.Rational(1, 4), "float64", 0.25),
        ):
            found = symbols.tensor(expression, dtype)
            assert found.dtype == dtype and found.array.item() == wanted
        with pytest.raises(relayc.ModelError, match=r"expected a number made of sizes by arithmetic, found gamma\(n\)"):
            symbols.tensor(sympy.gamma(N), "float64")


def test_pytorch_graphs_that_relayc_refuses_run_in_eager():
    """A graph of one result gives a list as any other."""

    def refuse(graph):
        raise relayc.ModelError("expected another graph")

    graph = make_fx(lambda x: x.sin() + 1)(torch.randn(3))
    x = torch.randn(3)
    (found,) = in_parts(graph, refuse)(x)
    assert torch.equal(found, x.sin() + 1)


def test_pytorch_operators_that_a_branch_lacks():
    model = model_of(lambda x: torch.cond(x.sum() > 0, lambda x: torch.special.airy_ai(x), lambda x: x.sin(), (x,)))
    with pytest.raises(UnsupportedOperators, match=r"aten\.special_airy_ai"):
        relayc.from_pytorch(model, (torch.randn(3),))


def test_pytorch_guards_of_several_conditions():
    guard = "L['x'].size()[0] == 3 and (L['x'].size()[1] != 1 and open('x') == 3)"
    with pytest.raises(relayc.ModelError, match=r"found open\('x'\) == 3, as torch"):
        check_guards([guard], {"x": torch.randn(3, 1)}, Symbols())


def test_pytorch_converters_that_give_what_they_should_not():
    with pytest.raises(relayc.ModelError, match="expected a converter that gives a Tensor, found int"):
        relayc.from_pytorch(nn.ReLU(), (torch.randn(3),), converters={"aten::relu": lambda self: 3})


@pytest.mark.parametrize(("dtype", "message"), [(torch.quint8, "expected a dtype out of float32, .*, found quint8"), (torch.float16, "")])
def test_pytorch_dtypes(dtype, message):
    if not message:
        assert dtype_name(dtype) == "float16"
    else:
        with pytest.raises(relayc.ModelError, match=message):
            dtype_name(dtype)
