"""Samples from folders, files, scripts and Python, and what is wrong with them."""

import tracemalloc
import zipfile

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import model_of

import relayc
from relayc.tools import cli
from relayc.tools.quantize.data import BATCH, open_samples

RNG = np.random.default_rng(3)


def inputs(**shapes):
    """Inputs of float32 by name."""
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]


def shapes_of(samples):
    return [{name: array.shape for name, array in sample.items()} for sample in samples]


def test_a_folder_of_arrays_is_a_sample_each_in_the_order_of_names(tmp_path):
    for i in (2, 0, 1):
        np.save(tmp_path / f"{i}.npy", np.full((3, 4), i, np.float64))
    found = list(open_samples(tmp_path, inputs(x=["batch", 3, 4])))
    assert [sample["x"].shape for sample in found] == [(1, 3, 4)] * 3
    assert [sample["x"].max() for sample in found] == [0, 1, 2]
    assert found[0]["x"].dtype == np.float32


def test_a_folder_of_files_by_input_name(tmp_path):
    for i in range(2):
        np.savez(tmp_path / f"{i}.npz", x=np.ones((2, 3)), z=np.ones(4))
    assert shapes_of(open_samples(tmp_path, inputs(x=["n", 3], z=[4]))) == [{"x": (2, 3), "z": (4,)}] * 2


@pytest.mark.parametrize(
    "shape,rows,expected",
    [
        (["batch", 3], (20, 3), [(BATCH, 3), (20 - BATCH, 3)]),  # batches of any size
        ([4, 3], (10, 3), [(4, 3), (4, 3)]),  # whole batches only
        ([1, 3], (2, 3), [(1, 3), (1, 3)]),
        ([4, 3], (2, 4, 3), [(4, 3), (4, 3)]),  # a batch for each row
        ([], (2,), [(), ()]),
    ],
)
def test_the_first_axis_of_a_file_counts_the_samples(shape, rows, expected, tmp_path):
    array = np.arange(np.prod(rows), dtype=np.float32).reshape(rows)
    np.savez(tmp_path / "data.npz", x=array)
    found = [sample["x"] for sample in open_samples(tmp_path / "data.npz", inputs(x=shape))]
    assert [one.shape for one in found] == expected
    np.testing.assert_array_equal(np.concatenate([one.ravel() for one in found]), array.ravel()[: sum(one.size for one in found)])


def test_labels_go_with_the_rows_of_a_file(tmp_path):
    np.savez(tmp_path / "data.npz", x=np.ones((10, 3), np.float32), labels=np.arange(10))
    found = list(open_samples(tmp_path / "data.npz", inputs(x=[4, 3]), extra=True))
    assert [list(sample["labels"]) for sample in found] == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_no_more_than_a_batch_of_a_file_is_in_memory(save, tmp_path):
    rows, width = 40 * BATCH + 1, 1024
    x, z = RNG.standard_normal((rows, width), np.float32), RNG.integers(0, 9, (rows, 2, width))
    save(tmp_path / "data.npz", x=x, z=z, labels=np.arange(rows))
    samples = open_samples(tmp_path / "data.npz", inputs(x=["n", width], z=["n", 2, width]), extra=True)
    batch = BATCH * width * (4 + 2 * 8 + 2 * 4)  # z is converted to float32
    for _ in range(2):
        start = 0
        tracemalloc.start()
        for sample in samples:
            part = slice(start, start + BATCH)
            assert np.array_equal(sample["x"], x[part]) and np.array_equal(sample["z"], z[part])
            assert sample["labels"].tolist() == list(range(rows))[part]
            start += BATCH
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert samples.count == 41
        assert peak < 4 * batch < x.nbytes  # a batch and the one before, in bytes and as arrays


def test_every_dtype_and_order_of_a_file(tmp_path):
    arrays = {
        "columns": np.asfortranarray(RNG.standard_normal((5, 3, 2), np.float32)),
        "swapped": np.arange(10, dtype=">f4").reshape(5, 2),
        "empty": np.zeros((5, 0), np.float32),
        "half": np.arange(5, dtype=np.float16),
        "words": np.array(["a", "bc", "d", "", "e"]),
    }
    np.savez(tmp_path / "data.npz", **arrays)
    shapes = {name: ["n", *array.shape[1:]] for name, array in arrays.items() if name != "words"}
    (found,) = open_samples(tmp_path / "data.npz", inputs(**shapes), extra=True)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


def test_samples_are_read_one_after_the_other_and_again():
    alive = []

    def data():
        for i in range(5):
            alive.append(i)
            yield {"x": np.full(3, i, np.float32)}

    samples = open_samples(data, inputs(x=[3]), limit=3)
    for _ in range(2):
        first = next(iter(samples))
        assert first["x"][0] == 0
    assert alive == [0, 0]
    assert len(list(samples)) == samples.count == 3


@pytest.mark.parametrize(
    "sample,what",
    [
        ({"y": np.ones(3)}, "data: sample 1: expected the input x, found y"),
        ({"x": np.ones(3), "xx": 1}, r"sample 1: expected inputs of the model \(x\), found xx; did you mean x\?"),
        ({"x": np.ones(4)}, r"sample 1: x: expected the shape \[3\], found \[4\]"),
        ({"x": np.ones(3, complex)}, "sample 1: x: expected float32, found complex128"),
        ([np.ones(3)], "data: sample 1: expected arrays by input name, found list"),
    ],
)
def test_a_sample_that_does_not_fit(sample, what):
    samples = open_samples([{"x": np.ones(3)}, sample], inputs(x=[3]))
    with pytest.raises((ValueError, TypeError), match=what):
        list(samples)


@pytest.mark.parametrize(
    "data,what",
    [
        ([], "data: expected samples, found none"),
        (iter([{}]), "found an iterator; pass the function that makes it"),
        ({"x": np.ones(3)}, "found one dict"),
        (np.ones(3), "found ndarray"),
        (lambda x: [], "expected a function that is called without arguments"),
        (lambda: None, r"data: expected samples \(dicts of arrays by input name\), found NoneType"),
        ("nowhere", "found nothing at nowhere"),
    ],
)
def test_data_that_are_no_samples(data, what):
    with pytest.raises((ValueError, TypeError), match=what):
        list(open_samples(data, inputs(x=[3])))


def test_a_script_that_is_not_there_is_no_data(tmp_path):
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]})
    for path in (tmp_path / "missing.py", str(tmp_path / "missing.py")):
        with pytest.raises(ValueError, match=r"found nothing at .*missing\.py"):
            relayc.quantize(model, path)


def test_few_rows_are_a_batch_of_any_size(tmp_path):
    arrays = {"x": np.arange(6).reshape(2, 3), "z": np.ones((2, 3))}
    np.savez(tmp_path / "few.npz", **arrays)
    (batch,) = open_samples(tmp_path / "few.npz", inputs(x=["n", 3], z=["n", 3]))
    for name, array in arrays.items():
        np.testing.assert_array_equal(batch[name], array)


def test_a_sample_may_lack_a_first_axis_of_one_or_of_any_size():
    given = {"x": np.ones(3), "y": np.ones(2), "z": np.ones((1, 4))}
    assert shapes_of(open_samples([given], inputs(x=[1, 3], y=["n", 2], z=[1, 4]))) == [{"x": (1, 3), "y": (1, 2), "z": (1, 4)}]
    with pytest.raises(ValueError, match=r"x: expected the shape \[3, 1\], found \[1\]"):
        list(open_samples([{"x": np.ones(1)}], inputs(x=[3, 1])))


def test_files_that_are_no_samples(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    np.save(empty.parent / "x.npy", np.ones(3))
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    np.savez(tmp_path / "uneven.npz", x=np.ones((2, 3)), z=np.ones((3, 3)))
    np.savez(tmp_path / "few.npz", x=np.ones((2, 3)), z=np.ones((2, 3)))
    (tmp_path / "short.npz").write_bytes((tmp_path / "few.npz").read_bytes()[:-1])
    np.savez(tmp_path / "objects.npz", x=np.ones((4, 3)), z=np.array([[{}] * 3] * 4))
    np.savez(tmp_path / "late.npz", x=np.arange(60000.0).reshape(20000, 3), z=np.ones((20000, 3)))
    damaged = bytearray((tmp_path / "late.npz").read_bytes())
    damaged[400000] ^= 1  # of x
    (tmp_path / "late.npz").write_bytes(damaged)
    with zipfile.ZipFile(tmp_path / "few.npz") as few, zipfile.ZipFile(tmp_path / "cut.npz", "w") as cut:
        header = few.read("x.npy").replace(b"(2, 3)", b"(8, 3)")
        cut.writestr("x.npy", header), cut.writestr("z.npy", header)
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as text:
        text.writestr("x.txt", "numbers")
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    for name, what in {
        "empty": "expected .npy or .npz files, found none",
        "x.npy": "expected a folder, an .npz file or a script",
        "bad.npz": "expected numeric arrays",
        "short.npz": "expected numeric arrays",
        "objects.npz": r"objects\.npz: expected numeric arrays, .*: z\.npy has Python objects",
        "late.npz": r"expected numeric arrays, .*Bad CRC-32 for file 'x\.npy'",
        "cut.npz": r"expected numeric arrays, .*: x\.npy ends early",
        "text.npz": "expected numeric arrays",
        "one.npz": "expected numeric arrays",
        "uneven.npz": "expected arrays of as many samples each along the first axis, found x: 2, z: 3",
        "few.npz": "expected 4 rows or more, as the model takes batches of 4, found 2",
    }.items():
        with pytest.raises(ValueError, match=what):
            list(open_samples(tmp_path / name, inputs(x=[4, 3], z=[4, 3])))
    with pytest.raises(ValueError, match=r"z: expected the shape \[1, 3\], found \[2, 3\]"):
        list(open_samples(tmp_path / "few.npz", inputs(x=[2, 3], z=[1, 3])))
    np.save(empty / "0.npy", np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"expected an \.npz file with the inputs x, z, found one array"):
        list(open_samples(empty, inputs(x=[4, 3], z=[4, 3])))


# ---- the command ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path):
    w = RNG.standard_normal((12, 4), np.float32)
    made = model_of([helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], {"x": [2, 12]}, initializers={"w": w}, ir_version=9)
    onnx.save(made, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def command(*arguments):
    return cli.main(["quantize", *map(str, arguments)])


def test_the_command_writes_the_model_and_its_report(model, tmp_path, capsys):
    script = tmp_path / "data.py"
    script.write_text(
        "import numpy as np\n"
        "def data():\n    for i in range(3):\n        yield {'x': np.full((2, 12), i, np.float32), 'right': i}\n"
        "def metric(outputs, sample):\n    return sample['right']\n"
    )
    out = tmp_path / "out.onnx"
    assert command(model, "--data", script, "-o", out, "--method", "minmax", "--json", tmp_path / "report.json") == 0
    printed = capsys.readouterr().out
    assert "product" in printed and "1 of 1 layers quantised" in printed and "metric 1 (in floats 1)" in printed
    assert {"QuantizeLinear", "DequantizeLinear"} <= {node.op_type for node in onnx.load(out).graph.node}
    assert '"form": "int8"' in (tmp_path / "report.json").read_text()
    assert command(model, "-o", out, "--weight-only", 4, "--accuracy-level", 4, "--quiet") == 0
    assert capsys.readouterr().out == ""
    [node] = onnx.load(out).graph.node
    assert node.op_type == "MatMulNBits"
    assert next(a.i for a in node.attribute if a.name == "accuracy_level") == 4


@pytest.mark.parametrize(
    "arguments,what",
    [
        ([], "expected data to calibrate on, found none"),
        (["--data", "nowhere"], "found nothing at nowhere"),
        (["--method", "least", "--data", "."], "expected minmax or percentile or entropy or mse, found least"),
        (["--weight-only", 4, "--gptq"], "expected data to calibrate on"),
    ],
)
def test_the_command_says_what_is_wrong(arguments, what, model, tmp_path, capsys):
    assert command(model, "-o", "-", *arguments) == 1 and "expected a file for the model, found -" in capsys.readouterr().err
    assert command(model, "-o", tmp_path / "out.onnx", *arguments) == 1
    assert what in capsys.readouterr().err


def test_models_that_cannot_be_quantised(model, tmp_path):
    data = [{"x": RNG.standard_normal((2, 12), np.float32)}]
    once = relayc.quantize(model, data).model
    with pytest.raises(ValueError, match="expected a model in floats, found a quantised one"):
        relayc.quantize(once, data)
    plain = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [2, 12]})
    with pytest.raises(ValueError, match=r"expected layers with constant weights in f32 \(Conv, ConvTranspose, Gemm, MatMul\), found none"):
        relayc.quantize(plain, data)
    with pytest.raises(TypeError, match=r"expected an ONNX file or an onnx\.ModelProto, found int"):
        relayc.quantize(3, data)
    with pytest.raises(ValueError, match=r"quantize: expected an ONNX file \(\.onnx\), found .*model\.txt"):
        relayc.quantize(tmp_path / "model.txt", data)
    with pytest.raises(ValueError, match="metric: expected data"):
        relayc.quantize(model, weight_only=4, metric=lambda expected, found: 0.0)
    (tmp_path / "script.py").write_text("samples = []")
    with pytest.raises(ValueError, match=r"script\.py: expected a function `data` that gives samples"):
        relayc.quantize(model, tmp_path / "script.py")
    with pytest.raises(TypeError, match=r"quantize: expected options \(metric, .*, method, .*\), found methd; did you mean method\?"):
        relayc.quantize(model, data, methd="mse")
    with pytest.raises(TypeError, match="data: metric: expected a function of outputs and a sample that gives a number, found 3"):
        relayc.quantize(model, data, metric=3)


# ---- values that are not finite, metrics, and errors in scripts -----------------------------------------------------------------------


def after_a_division(**options):
    """Quantises a product of 1 / x, of which the second sample divides by `second`."""

    def run(second):
        nodes = [helper.make_node("Div", ["one", "x"], ["inverse"], name="divide")]
        nodes.append(helper.make_node("MatMul", ["inverse", "w"], ["y"], name="product"))
        constants = {"w": RNG.standard_normal((12, 4), np.float32), "one": np.array(1, np.float32)}
        data = [{"x": np.full((2, 12), value, np.float32)} for value in (1, second)]
        return relayc.quantize(model_of(nodes, {"x": [2, 12]}, initializers=constants, ir_version=9), data, **options)

    return run


@pytest.mark.parametrize("options", [{}, {"weight_only": 4, "gptq": True}, {"method": "minmax", "max_drop": 0.5}], ids=str)
def test_values_that_are_not_finite_have_a_place(options, model):
    run = after_a_division(**options)
    with pytest.raises(ValueError, match=r"^data: sample 1: expected finite values in inverse, found inf, the result of Div divide$"):
        run(0)
    with pytest.raises(ValueError, match=r"in inverse, found nan, the result of Div divide; the input x is not finite either$"):
        run(np.nan)
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match=f"^data: sample 0: expected finite values in x, found {value}$"):
            relayc.quantize(model, [{"x": np.full((2, 12), value, np.float32)}], **options)


def test_results_that_are_no_numbers_have_a_place():
    with pytest.raises(ValueError, match=r"^data: sample 1: expected numbers in the result y of the model in floats, found nan$"):
        after_a_division(weight_only=4)(np.nan)


@pytest.mark.parametrize("drop", [None, 0.1])
@pytest.mark.parametrize(
    "given,what",
    [
        (np.nan, "expected a finite number from the metric, found nan"),
        (np.float32(np.inf), "expected a finite number from the metric, found .*inf"),
        ("0.5", "expected a finite number from the metric, found '0.5'"),
        (None, "expected a number from the metric, found None"),
        (np.ones(3), "expected a number from the metric, found array"),
    ],
)
def test_a_metric_that_gives_no_number(given, what, drop, model):
    data = [{"x": RNG.standard_normal((2, 12), np.float32), "last": i == 2} for i in range(3)]
    with pytest.raises((TypeError, ValueError), match=f"^data: sample 2, model in floats: {what}"):
        relayc.quantize(model, data, metric=lambda outputs, sample: given if sample["last"] else 1.0, max_drop=drop)


SAMPLES = "import numpy as np\ndef data():\n    return [{'x': np.ones((2, 12), np.float32)}]\n"


@pytest.mark.parametrize(
    "script,what,cause",
    [
        ("def data(:\n", "line 1: SyntaxError: invalid syntax", SyntaxError),
        ("import nothing_of_this_name\n", "line 1: ModuleNotFoundError: No module named 'nothing_of_this_name'", ModuleNotFoundError),
        ("def data():\n    raise RuntimeError('broken')\n", "line 2: RuntimeError: broken", RuntimeError),
        ("def inner():\n    return {}['a']\ndef data():\n    yield inner()\n", "line 2: KeyError: 'a'", KeyError),
        (SAMPLES + "def metric(outputs, sample):\n    return outputs['z']\n", "line 5: KeyError: 'z'", KeyError),
    ],
)
def test_an_error_in_a_script_names_its_line(script, what, cause, model, tmp_path, capsys):
    path = tmp_path / "samples.py"
    path.write_text(script)
    with pytest.raises(ValueError) as raised:
        relayc.quantize(model, path)
    assert str(raised.value) == f"{path}, {what}"
    assert type(raised.value.__cause__) is cause
    assert command(model, "--data", path, "-o", tmp_path / "out.onnx", "--quiet") == 1
    assert capsys.readouterr().err == f"relayc: error: {path}, {what}\n"
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize(
    "script,what",
    [
        ("data = 5\n", ": expected samples (dicts of arrays by input name), a function that gives them, or a path, found int"),
        ("def data():\n    pass\n", ": expected samples (dicts of arrays by input name), found NoneType"),
        ("data = [{'x': [[1.0]]}]\n", ": sample 0: x: expected the shape [2, 12], found [1, 1]"),
        (SAMPLES + "metric = 3\n", ": metric: expected a function of outputs and a sample that gives a number, found 3"),
        (SAMPLES + "def metric(outputs):\n    return 1\n", ": TypeError: metric() takes 1 positional argument but 2 were given"),
    ],
)
def test_a_script_whose_names_are_something_else(script, what, model, tmp_path):
    path = tmp_path / "samples.py"
    path.write_text(script)
    with pytest.raises((TypeError, ValueError)) as raised:
        relayc.quantize(model, path)
    assert str(raised.value) == f"{path}{what}"
