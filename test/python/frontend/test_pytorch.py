"""PyTorch models by torch.export, compared with eager: architectures, dynamic sizes, control flow, state, signatures, refusals."""

import copy
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402 # there is torch
from pytorch_models import Decoder, Inverted, UNet, ViT, agrees, model_of, resnet, same, statistics  # noqa: E402
from torch import nn  # noqa: E402
from torch.export.graph_signature import OutputKind  # noqa: E402

import relayc  # noqa: E402
from relayc.frontend.pytorch import UnsupportedOperators, supported_operators  # noqa: E402
from relayc.frontend.pytorch.graph import user_line  # noqa: E402
from relayc.frontend.pytorch.guards import check_guards  # noqa: E402
from relayc.frontend.pytorch.values import Symbols  # noqa: E402
from relayc.frontend.steps import multiply  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


# ---- architectures ----------------------------------------------------------------------------------------------------------------------


def test_resnet_at_every_batch():
    images = (torch.randn(2, 3, 32, 32),)
    agrees(resnet(), images, dynamic_shapes=({0: "batch"},), more=[(torch.randn(1, 3, 32, 32),), (torch.randn(5, 3, 32, 32),)])


def test_mobilenet_block():
    agrees(statistics(Inverted(8)), (torch.randn(1, 8, 9, 9),))


def test_unet():
    agrees(UNet(), (torch.randn(1, 3, 16, 16),))


def test_vision_transformer_at_every_batch():
    agrees(ViT(), (torch.randn(2, 3, 16, 16),), dynamic_shapes=({0: "batch"},), more=[(torch.randn(1, 3, 16, 16),)])


def test_decoder_with_a_cache_is_one_program_for_all_sizes():
    model = Decoder()
    batch, seq, past = torch.export.Dim("batch"), torch.export.Dim("seq"), torch.export.Dim("past", min=0)

    def given(b, s, p):
        return torch.randint(0, 50, (b, s)), [(torch.randn(b, 4, p, 8), torch.randn(b, 4, p, 8)) for _ in model.blocks]

    dims = ({0: batch, 1: seq}, [({0: batch, 2: past}, {0: batch, 2: past})] * 2)
    module = agrees(model, given(2, 3, 5), dynamic_shapes=dims, more=[given(1, 1, 9), given(3, 7, 2)])
    assert [str(spec) for spec in module.inputs][:2] == ["int64[batch, seq]", "float32[batch, 4, past, 8]"]
    ops = [op for kernel in module.kernels for op in kernel.ops]
    assert any("attention" in op for op in ops)


def test_recurrent_networks_are_loops():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True)
            self.gru, self.rnn = nn.GRU(4, 3, bidirectional=True), nn.RNN(4, 5, nonlinearity="relu", bias=False)

        def forward(self, x):
            return self.lstm(x), self.gru(x), self.rnn(x)

    module = agrees(Recurrent(), (torch.randn(3, 5, 4),))
    assert len(module.kernels) < 60  # not one for each step


@pytest.mark.parametrize(("dtype", "tolerance"), [("bfloat16", 2e-2), ("float16", 2e-3), ("float64", 1e-12)])
def test_other_dtypes(dtype, tolerance):
    dtype = getattr(torch, dtype)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).to(dtype)
    agrees(model, (torch.randn(3, 8).to(dtype),), tolerance=tolerance)


def test_whole_numbers():
    a, b = torch.tensor([[7, -7, 0], [5, 2, -128]], dtype=torch.int8), torch.tensor([2, 3, -4], dtype=torch.int8)
    agrees(model_of(lambda a, b: (a + b, a // b, a % b, a / b, a * 2.5, a > b, (a & b) | 1, a.sum(0), a.to(torch.bool))), (a, b))


def test_the_best_so_far_along_any_number_of_rows():
    def function(x):
        return *x.cummax(0), *x.cummin(0), x.round().mode(0)[0]

    rows = [torch.randn(n, 2).round(decimals=1) for n in (1, 2, 63, 64, 65, 1025)]
    for x in rows[2:]:
        x[20, 1] = torch.nan
    agrees(model_of(function), (torch.randn(3, 2),), dynamic_shapes=({0: "n"},), more=[(x,) for x in rows])


# ---- sizes that data says ---------------------------------------------------------------------------------------------------------------


def test_sizes_of_data():
    def function(x):
        return torch.nonzero(x > 0), x[x > 0.3], (x[x > 0.3] * 2).sum(), x.shape[0]

    rows = [(torch.randn(6, 4),), (-torch.rand(2, 4),)]
    module = agrees(model_of(function), (torch.randn(3, 4),), dynamic_shapes=({0: "n"},), more=rows)
    assert str(module.inputs[0]) == "float32[n, 4]"


def test_places_among_edges():
    """NaN, edges of another type, a sequence for each row, and one that a sorter orders."""
    values = torch.tensor([[1.5, float("nan"), -2.0], [2.0, 7.0, float("inf")]])
    rows = torch.tensor([[3.0, -1.0, 2.0, 2.0], [9.0, 0.0, 7.0, 1.0]])

    def places(values, rows):
        edges, order = torch.tensor([-1, 1, 2, 7]), rows.argsort(1)
        return (
            *(torch.bucketize(values, edges, right=right) for right in (False, True)),
            torch.searchsorted(edges, 1.5),
            torch.searchsorted(rows.sort(1).values, values),
            torch.searchsorted(rows, values, sorter=order, side="right", out_int32=True),
        )

    agrees(model_of(places), (values, rows))


def test_a_size_that_is_an_element():
    def function(x, n):
        k = n.item()
        torch._check(k >= 0)
        torch._check(k <= x.shape[0])
        return x[:k] * k, k

    x = torch.randn(6, 3)
    module = agrees(model_of(function), (x, torch.tensor(2)), more=[(x, torch.tensor(5)), (x, torch.tensor(0))])
    with pytest.raises(ValueError):
        module(x, torch.tensor(-1))


def test_parts_whose_bounds_are_data():
    x = torch.randn(5, 3)
    agrees(model_of(lambda x, at: torch.tensor_split(x * 2, at)), (x, torch.tensor([1, 2, 3])), more=[(x, torch.tensor([0, 4, 5]))])


# ---- control flow -----------------------------------------------------------------------------------------------------------------------


def test_branches():
    def function(x):
        by_data = torch.cond(x.sum() > 0, lambda x: (x * 2, x + 1), lambda x: (x - 1, x * 3), (x,))
        return by_data, torch.cond(x.shape[0] > 4, lambda x: x.cos(), lambda x: x.sin(), (x,))

    x = torch.rand(6, 3) + 0.1
    agrees(model_of(function), (x,), dynamic_shapes=({0: "n"},), more=[(-x,), (x[:3].clone(),)])


def test_a_loop_with_weights():
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = nn.Linear(3, 3)

        def forward(self, x, n):
            from torch._higher_order_ops.while_loop import while_loop

            return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, self.step(x).tanh()), (torch.tensor(0), x))

    x = torch.randn(2, 3)
    agrees(Loop(), (x, torch.tensor(3)), more=[(x, torch.tensor(0)), (x, torch.tensor(7))])


def test_a_scan_over_any_number_of_rows():
    def function(xs, state):
        from torch._higher_order_ops.scan import scan

        return scan(lambda s, x: (s * 0.5 + x, (s + x).tanh()), state, xs, dim=0)

    agrees(
        model_of(function), (torch.randn(6, 3), torch.randn(3)), dynamic_shapes=({0: "t"}, None), more=[(torch.randn(9, 3), torch.randn(3))]
    )


# ---- state and weights ------------------------------------------------------------------------------------------------------------------


class Counter(nn.Module):
    """Writes a buffer and its argument."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.arange(3.0))
        self.register_buffer("calls", torch.tensor(5))

    def forward(self, x):
        self.total.add_(x.sum(0))
        x.mul_(2)
        self.calls += 1
        return x + self.total / self.calls


def test_what_a_model_writes_is_written(tmp_path):
    model = Counter()
    module = relayc.compile(relayc.from_pytorch(model, (torch.randn(2, 3),)))
    for _ in range(3):
        x = torch.randn(2, 3)
        y = x.clone()
        same(module(x), model(y))
        same(x, y)
        same(torch.from_numpy(module.state["total"]), model.total)
        assert int(module.state["calls"]) == int(model.calls)
    # A library has the state as it was at first.
    module.export_library(tmp_path / "model.so")
    loaded = relayc.load_module(tmp_path / "model.so")
    x = torch.randn(2, 3)
    same(loaded(x.clone()), Counter()(x))


def test_weights_that_are_inputs_follow_the_model():
    model = nn.Linear(4, 3)
    module = relayc.compile(relayc.from_pytorch(model, (torch.randn(2, 4),), weights="input"))
    x = torch.randn(2, 4)
    same(module(x), model(x).detach())
    with torch.no_grad():
        model.weight.mul_(3)
    same(module(x), model(x).detach())
    module.state["bias"] = torch.zeros(3)
    same(module(x), model(x).detach() - model.bias.detach())
    del module.state["bias"]
    with pytest.raises(ValueError, match="found none for bias"):
        module(x)


# ---- how a module is called -------------------------------------------------------------------------------------------------------------


def test_nested_arguments_by_name_and_in_order():
    class Model(nn.Module):
        def forward(self, x, pair, *, scale, options):
            return {"y": x * scale + pair[0], "parts": [options["a"] - pair[1], None]}, 3

    x, pair, scale = torch.randn(2, 3), (torch.randn(3), torch.randn(3)), torch.tensor(2.0)
    named = {"scale": scale, "options": {"a": torch.ones(3), "b": 5}}
    module = agrees(Model(), (x, pair), named)
    by_name = module(options=named["options"], scale=scale, pair=pair, x=x)
    same(by_name[0]["y"], x * scale + pair[0])
    for wrong, message in (
        (lambda: module(x, pair, scale=scale), "options missing"),
        (lambda: module(x, list(pair), **named), "pair: expected a tuple of 2, found a list of 2"),
        (lambda: module(x, pair, scale=scale, options={"a": pair[0]}), "options: expected a dict of 2"),
        (lambda: module(x, pair, scale=scale, option=named), "found 'option', did you mean 'options'|found 'option'"),
    ):
        with pytest.raises(TypeError, match=message):
            wrong()
    with pytest.raises(ValueError, match="expected 5, as the model was exported with, found 6"):
        module(x, pair, scale=scale, options={"a": pair[0], "b": 6})


@pytest.mark.parametrize("by_name", [False, True])
def test_dimensions_of_a_variadic_parameter_keep_their_names(by_name):
    class Sum(nn.Module):
        def forward(self, x, *more):
            return x + more[0] * more[1]

    def named(rows, columns):
        more = ({0: rows}, {0: rows, 1: columns})
        return {"x": {0: rows}, "more": more} if by_name else ({0: rows}, more)

    given, dynamic = (torch.randn(3, 1), torch.randn(3, 1), torch.randn(3, 2)), torch.export.Dim.DYNAMIC
    program = torch.export.export(Sum(), given, dynamic_shapes=named(dynamic, dynamic))
    module = relayc.compile(relayc.from_pytorch(program, dynamic_shapes=named("rows", "columns")))
    assert [str(spec) for spec in module.inputs] == ["float32[rows, 1]", "float32[rows, 1]", "float32[rows, columns]"]


def test_torch_tensors_are_not_copied():
    module = relayc.compile(relayc.from_pytorch(model_of(lambda x: (x, x.flip(0))), (torch.randn(3),)))
    x = torch.randn(3)
    same_object, flipped = module(x)
    assert same_object is x
    assert flipped.dtype == torch.float32
    given = module.signature.inputs
    assert given == (0,) and relayc.runtime.tensor.from_torch(x).ctypes.data == x.data_ptr()
    array = np.arange(3, dtype=np.float32)
    assert isinstance(module(array)[1], np.ndarray)
    np.testing.assert_array_equal(module(array)[1], array[::-1])
    # Strided and of a graph of gradients.
    strided = torch.randn(6, requires_grad=True)[::2]
    same(module(strided)[1], strided.detach().flip(0))


def test_wrong_tensors_are_refused():
    module = relayc.compile(relayc.from_pytorch(nn.Linear(4, 3), (torch.randn(2, 4),)))
    with pytest.raises(ValueError, match=r"argument 0 'input': expected float32\[2, 4\], found float32\[2, 5\]"):
        module(torch.randn(2, 5))
    with pytest.raises(TypeError, match="found float64"):
        module(torch.randn(2, 4, dtype=torch.float64))


# ---- files, sizes, names ----------------------------------------------------------------------------------------------------------------


def test_exported_programs_and_their_files(tmp_path):
    model, x = nn.Linear(4, 3), torch.randn(5, 4)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("rows", max=64)},))
    torch.export.save(program, tmp_path / "model.pt2")
    for source in (program, tmp_path / "model.pt2", str(tmp_path / "model.pt2")):
        module = relayc.compile(source)
        assert str(module.inputs[0]) == "float32[input_0, 4]" and module.ranges == {"input_0": (0, 64)}
        same(module(x), model(x).detach())
    # From the cache, where it is on.
    same(relayc.compile(tmp_path / "model.pt2", cache=True)(x[:2]), model(x[:2]).detach())
    named = relayc.compile(program, shapes={"input": ["n", 4]}, dims={"n": (1, 8)})
    assert str(named.inputs[0]) == "float32[n, 4]" and named.ranges == {"n": (1, 8)}
    assert relayc.compile(program, dims={"input_0": 7}).inputs[0].shape == (7, 4)
    with pytest.raises(relayc.ModelError, match="expected a size of 0 to 64, as it was exported, found 65"):
        relayc.compile(program, dims={"input_0": 65})
    (tmp_path / "no.pt2").write_bytes(b"no program")
    with pytest.raises(relayc.ModelError, match="expected an ExportedProgram"):
        relayc.compile(tmp_path / "no.pt2")


def test_slices_begin_at_sizes():
    class Ends(nn.Module):
        def forward(self, x, y, table):
            n = x.shape[1]
            return table[:, max(0, table.shape[1] - n) :] + x, x.slice_scatter(y, 1, n - y.shape[1])

    def given(n, k):
        return torch.randn(2, n), torch.randn(2, k), torch.randn(2, 40)

    dims = {1: torch.export.Dim.DYNAMIC}
    agrees(Ends(), given(9, 4), dynamic_shapes=(dims, dims, None), more=[given(1, 1), given(39, 7), given(5, 5)])


def test_slices_end_at_numbers():
    agrees(model_of(lambda x: x[:130] + 1), (torch.randn(200),))


def test_what_is_written_into_a_tensor_becomes_its_type():
    def function(x, bits, rows):
        written = (
            torch.select_scatter(bits, rows.flatten(), 0, -1),
            torch.slice_scatter(bits, rows, 1, 1, 4, 2),
            torch.slice_scatter(x, rows.repeat(1, 2), 0, -9, 2),
        )
        return *written, torch.diagonal_scatter(x, rows[0, :2], 2), torch.select_scatter(x, rows[:, 0], 1, 1)

    agrees(model_of(function), (torch.randn(2, 4), torch.tensor([[True, False] * 2] * 2), torch.tensor([[0, 2], [3, 0]])))


def test_a_dimension_that_squeeze_would_drop_is_an_error():
    x, dims = torch.randn(3, 5, 1), ({0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO},)
    squeezes = {lambda x: x.squeeze(): (3, 1, 1), lambda x: x.squeeze((1, -1)): (3, 1, 1), lambda x: x.squeeze(0): (1, 5, 1)}
    for function, wrong in squeezes.items():
        module = relayc.compile(relayc.from_pytorch(torch.export.export(model_of(function), (x,), dynamic_shapes=dims)))
        same(module(x), function(x))
        with pytest.raises(ValueError, match=f"x_{wrong.index(1)} is 1 in x, expected at least 2"):
            module(torch.randn(wrong))


def test_sizes_take_part_in_numbers():
    def function(x):
        return x * (x.shape[0] ** -0.5) + x.shape[0] / 3, F.interpolate(x[None, None], scale_factor=(2.0, 1.5), mode="nearest")

    agrees(model_of(function), (torch.randn(4, 6),), dynamic_shapes=({0: "n"},), more=[(torch.randn(9, 6),)])


# ---- refusals and converters ------------------------------------------------------------------------------------------------------------


def test_all_missing_operators_are_listed_with_their_lines():
    class Model(nn.Module):
        def forward(self, x):
            a = torch.special.airy_ai(x)
            return torch.linalg.svd(x)[1], a, torch.special.airy_ai(x + 1), torch.complex(x, x).isinf()

    with pytest.raises(UnsupportedOperators) as caught:
        relayc.from_pytorch(Model(), (torch.randn(3, 3),))
    of_complex = "aten.isinf.default of complex numbers"
    assert set(caught.value.operators) == {"aten._linalg_svd.default", "aten.special_airy_ai.default", of_complex}
    lines = caught.value.operators["aten.special_airy_ai.default"]
    assert [line.rpartition(": ")[2] for line in lines] == [
        "a = torch.special.airy_ai(x)",
        "return torch.linalg.svd(x)[1], a, torch.special.airy_ai(x + 1), torch.complex(x, x).isinf()",
    ]
    assert all("test_pytorch.py:" in line and line in str(caught.value) for line in lines)


def test_the_line_of_a_node_is_the_last_one_outside_of_torch():
    inside = f'File "{torch.nn.__file__}", line 7, in call\n    return f(x)'
    own = 'File "model.py", line 3, in forward\n    y = self.a(x)'
    for text, line in (
        (f"{own}\n  {inside}", "model.py:3: y = self.a(x)"),
        (inside, f"{torch.nn.__file__}:7: return f(x)"),
        ('File "model.py", line 4, in forward', "model.py:4: "),
        ("", ""),
    ):
        assert user_line(SimpleNamespace(meta={"stack_trace": text})) == line


def test_attention_with_dropout_is_refused():
    x = torch.randn(1, 2, 4, 8)
    with pytest.raises(relayc.ModelError, match="expected attention in inference, found one with dropout"):
        relayc.from_pytorch(model_of(lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)), (x,))


def test_progress_counts_nodes():
    seen = []
    relayc.from_pytorch(model_of(lambda x: x.cos().sin()), (torch.randn(3),), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]  # an input, two operators, a result


def test_one_result_in_a_tuple():
    agrees(model_of(lambda x: (x + 1,)), (torch.randn(3),))


def test_without_torch_there_are_no_operators(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match="expected PyTorch for a PyTorch model, found none: pip install"):
        supported_operators()


def test_converters_of_the_caller():
    @torch.library.custom_op("relayc_test::twice", mutates_args=())
    def twice(x: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
        return x * factor * 2

    twice.register_fake(lambda x, factor=1.0: torch.empty_like(x))
    own = {"relayc_test::twice": lambda x, factor: multiply(x, 2 * factor)}
    x = torch.randn(3)
    agrees(model_of(lambda x: twice(x, 1.5) + twice(x)), (x,), converters=own)
    # Before the package's own.
    wrong = {torch.ops.aten.relu: lambda self: multiply(self, 5.0)}
    module = relayc.compile(relayc.from_pytorch(nn.ReLU(), (x,), converters=wrong))
    same(module(x), x * 5)
    with pytest.raises(relayc.ModelError, match=r"expected float32.*as torch says, found"):
        relayc.from_pytorch(nn.ReLU(), (x,), converters={"aten::relu": lambda self: relayc.frontend.steps.cast(self, "int32")})


def test_training_is_refused():
    with pytest.raises(relayc.ModelError, match=r"call model.eval\(\) before the export"):
        relayc.from_pytorch(nn.Sequential(nn.Linear(3, 3), nn.RReLU()).train(), (torch.randn(2, 3),))


def test_arguments_of_from_pytorch():
    with pytest.raises(TypeError, match=r"model: expected a torch\.nn\.Module"):
        relayc.from_pytorch(lambda x: x, (torch.randn(3),))
    with pytest.raises(TypeError, match="args: expected a tuple"):
        relayc.from_pytorch(nn.ReLU(), torch.randn(3))
    with pytest.raises(ValueError, match="weights: expected"):
        relayc.from_pytorch(nn.ReLU(), (torch.randn(3),), weights="none")


# ---- operators --------------------------------------------------------------------------------------------------------------------------

_X = torch.randn(2, 3, 4)
_INDEX = torch.tensor([[0, -1], [1, 0]])
OPERATORS = {
    "advanced indexing": lambda x: (x[_INDEX % 2, :, _INDEX], x[:, _INDEX.abs()], x[..., None, 1:3], x[-1]),
    "written parts": lambda x: _written(x.clone()),
    "scatter": lambda x: (
        x.scatter(2, torch.tensor([[[3, 1]]]), 7.0),
        x.scatter_add(1, torch.zeros(2, 3, 4, dtype=torch.int64), x),
        x.index_add(1, torch.tensor([2, 0]), x[:, :2], alpha=2),
        x.scatter_reduce(0, torch.zeros(2, 3, 4, dtype=torch.int64), x, "amax", include_self=False),
        x.index_reduce(1, torch.tensor([2, 0, 2]), x, "prod", include_self=False),
    ),
    "order": lambda x: (x.sort(1, descending=True), x.topk(2), x.median(1), x.cummax(2), x.argsort(0), x.kthvalue(2, dim=2)),
    "statistics": lambda x: (x.var(1, correction=2), x.std((0, 2)), torch.var_mean(x, 2), x.logsumexp(1), x.norm(3, 1), x.prod(2)),
    "padding": lambda x: [
        F.pad(x, widths, mode=mode)
        for mode in ("constant", "reflect", "replicate", "circular")
        for widths in ((1, 2, 2, 1), (-1, 1, 1, -1))
    ],
    "pooling": lambda x: (
        F.max_pool1d(x, 2, 1, 1, ceil_mode=True, return_indices=True),
        F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        F.adaptive_avg_pool2d(x, (2, 3)),
        F.adaptive_max_pool1d(x, 2, return_indices=True),
    ),
    "resampling": lambda x: [
        F.interpolate(x[None], size=(5, 7), mode=mode, align_corners=corners)
        for mode, corners in (("nearest", None), ("nearest-exact", None), ("bilinear", True), ("bicubic", False))
    ],
    "shapes": lambda x: (
        x.roll(1, 1),
        x.flip(0, 2),
        x.unfold(2, 2, 1),
        x.diagonal(1, 1, 2),
        x.repeat(2, 1, 1),
        x.rot90(1, (1, 2)),
        x.tril(),
    ),
    "functions": lambda x: (torch.atan2(x, -x.flip(0)), x.log1p(), x.expm1(), torch.hypot(x, x - 1), x.sinc(), torch.nan_to_num(x.log())),
    "gamma functions": lambda x: (
        *(torch.lgamma(x), torch.lgamma(x * 40), torch.digamma(x), torch.digamma(x.abs() * 40), torch.polygamma(2, x)),
        torch.special.zeta(x.abs() + 1.5, x.abs() + 0.5),
    ),
    "parts of numbers": lambda x: (x.angle(), torch.dist(x, x.flip(0), 3), torch.dist(x, x * 2, float("inf"))),
    "copies": lambda x: (torch.view_copy(x, (4, 6)), torch.narrow_copy(x, 1, 1, 2), torch.squeeze_copy(x[:1], 0), torch.t_copy(x[0])),
    "einsum": lambda x: (torch.einsum("abc,dbc->ad", x, x), torch.einsum("bii->bi", x[:, :, :3]), x[0] @ x.transpose(1, 2)),
    "creation": lambda x: (torch.arange(1, 9, 2), torch.linspace(0, 1, 5), torch.full_like(x, 3), torch.eye(3, 4), torch.ones(2) * 2),
    "attention": lambda x: (
        F.scaled_dot_product_attention(x, x, x, is_causal=True),
        F.scaled_dot_product_attention(x[None], x[None], x[None], attn_mask=torch.tensor([[True, False, True]]), scale=0.3),
    ),
}


def _written(x):
    x[:, 1] = 5
    x[0, :, ::2] += 1
    x[x > 1] = -1
    x[1, torch.tensor([2, 0])] = torch.arange(4.0)
    return x


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    agrees(model_of(OPERATORS[name]), (_X,), tolerance=2e-6)


def test_batch_norm_in_training_writes_its_statistics():
    model = nn.BatchNorm1d(3).train()
    x = torch.randn(5, 3) * 2 + 1
    module = relayc.compile(relayc.from_pytorch(copy.deepcopy(model), (x,)))
    same(module(x), model(x).detach())
    same(torch.from_numpy(module.state["running_var"]), model.running_var)
    assert int(module.state["num_batches_tracked"]) == 1


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_a_frozen_table(mode):
    """Without derivatives torch's shapes have one size of a bag more than there are bags."""

    class Bags(torch.nn.Module):
        def forward(self, table, indices, offsets):
            return F.embedding_bag(indices, table, offsets, mode=mode, include_last_offset=True)

    offsets = torch.tensor([0, 2, 2, 31, 50])
    tables = [(torch.randn(60, 3), torch.randint(0, 60, (50,)), offsets) for _ in range(2)]
    agrees(Bags(), tables[0], more=tables[1:])


class Branching(nn.Module):
    """Takes the branch of its example: sizes that differ, at least 4 columns, a whole number of steps of 8, 5 patches of 14."""

    def forward(self, given, *rows):
        x = given["x"]
        if x.shape[0] != rows[0].shape[0] and x.shape[1] > 3 and rows[1].shape[0] % 8 == 0 and x.shape[2] // 14 * 14 == 70:
            return x * 2, rows[1] + 1
        return x, rows[0]


def test_branches_on_sizes_are_guarded():
    def given(sizes, first, second):
        return {"x": torch.randn(sizes)}, torch.randn(first), torch.randn(second)

    dynamic = torch.export.Dim.DYNAMIC
    shapes = {"given": {"x": {0: dynamic, 1: dynamic, 2: dynamic}}, "rows": ({0: dynamic}, {0: dynamic})}
    more = [given((5, 4, 70), 2, 8), given((5, 1030, 83), 1200, 1032)]
    module = agrees(Branching(), given((4, 75, 75), 3, 16), dynamic_shapes=shapes, more=more)
    for wrong, message in (
        (given((5, 4, 84), 2, 8), r"the model expects 14\*\(given_x_2//14\) == 70, found 84"),
        (given((5, 4, 69), 2, 8), r"the model expects 14\*\(given_x_2//14\) == 70, found 56"),
        (given((5, 4, 70), 5, 8), "the model expects given_x_0 != rows_0_0"),
        (given((5, 3, 70), 2, 8), "given_x_1 is 3 in given_x, expected at least 4"),
        (given((5, 4, 70), 2, 9), "the model expects .* == 0, found 1"),
    ):
        with pytest.raises(ValueError, match=message):
            module(*wrong)


def test_a_size_of_one_is_no_other_branch():
    """Torch takes the rows of patches for 2 or more, so that it need not know whether they are broadcast."""
    more = [(torch.randn(3, n),) for n in (8, 15, 16, 1030)]
    model = model_of(lambda x: F.avg_pool1d(x, 8) + torch.arange(3.0)[:, None])
    agrees(model, (torch.randn(3, 19),), dynamic_shapes=({1: torch.export.Dim.DYNAMIC},), more=more)


def test_a_roll_of_any_size():
    more = [(torch.randn(n, 3),) for n in (1, 2, 5)]
    agrees(model_of(lambda x: (x.roll(2, 0), x.roll(-7, 0))), (torch.randn(4, 3),), dynamic_shapes=({0: "n"},), more=more)


def test_guards_that_compare_two_sizes():
    dynamic = {0: torch.export.Dim.DYNAMIC}
    model = model_of(lambda x, y: x * 2 + y.sum() if x.shape[0] > y.shape[0] and x.shape[0] < 3 * y.shape[0] else x)
    more = [(torch.randn(n), torch.randn(m)) for n, m in ((8, 7), (20, 7), (1030, 1029))]
    module = agrees(model, (torch.randn(9), torch.randn(5)), dynamic_shapes=(dynamic, dynamic), more=more)
    for n, m in ((7, 7), (21, 7), (1029, 1030)):
        with pytest.raises(ValueError, match=f"the model expects .*, found ({n}|{m})"):
            module(torch.randn(n), torch.randn(m))


@pytest.mark.parametrize(
    "guard",
    [
        "L['x'].size()[0] in (3, 5)",
        "0 < L['x'].size()[0] in (3, 5)",
        "L['x'].size().__len__() == 1",
        "open('x') == 3",
        "L['y'].size()[0] == 3",
    ],
)
def test_a_guard_that_compares_no_sizes_is_refused(guard):
    with pytest.raises(relayc.ModelError, match=re.escape(f"expected guards that compare sizes of arguments, found {guard}, as torch")):
        check_guards([guard], {"x": torch.randn(3)}, Symbols())


def test_results_without_a_tensor_as_argument_are_tensors():
    agrees(model_of(lambda n: torch.arange(3) + 2), (1,))


def test_an_output_that_is_no_result_is_refused():
    program = torch.export.export(model_of(lambda x: x + 1), (torch.ones(2),))
    program.graph_signature.output_specs[0].kind = OutputKind.LOSS_OUTPUT
    with pytest.raises(relayc.ModelError, match="output add: expected a result of the model, found one of kind LOSS_OUTPUT"):
        relayc.from_pytorch(program)
