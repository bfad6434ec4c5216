"""Strings in ONNX models, against ONNX Runtime, and what programs take and give of them."""

import gc
import io
import sys
import threading
import tracemalloc

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import relayc
from relayc import OnnxError
from relayc.dialects.relay import IRModule
from relayc.frontend.onnx import from_onnx
from relayc.pipelines.driver import compile_cache
from relayc.tools.inputs import load_inputs, random_inputs, save_outputs

STRING, INT, FLOAT, BOOL = TensorProto.STRING, TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
X = np.array([["a", "b", ""], ["b", "grün", "日本 語"]], object)


def texts(*values):
    return np.array(values, object)


def model(nodes, inputs, outputs, opset=20, **constants):
    """`inputs` are (element type, shape) by name, `outputs` element types by name."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, *given) for name, given in inputs.items()],
        [helper.make_tensor_value_info(name, type_, None) for name, type_ in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def same(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)


def agree(proto, *feeds):
    """Both give the same for each of the inputs."""
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    module = relayc.compile(proto)
    for feed in feeds:
        same(module.run(feed).values(), session.run(None, feed))


def unary(operator, x, result=STRING, shape=None, **attributes):
    """A model of one operator on x of symbolic dimensions."""
    dims = [f"n{i}" for i in range(x.ndim)] if shape is None else shape
    type_ = STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)
    return model([helper.make_node(operator, ["x"], ["y"], **attributes)], {"x": (type_, dims)}, {"y": result})


# ---- what moves and compares ----------------------------------------------------------------------------------------------------------

node = helper.make_node


def test_operators_that_move_elements():
    nodes = [
        node("Equal", ["x", "words"], ["same"]),
        node("Where", ["same", "x", "word"], ["chosen"]),
        node("Concat", ["chosen", "x"], ["both"], axis=0),
        node("Gather", ["both", "picked"], ["gathered"], axis=1),  # ONNX Runtime leaves elements out where it gathers rows
        node("Transpose", ["x"], ["turned"], perm=[1, 0]),
        node("Slice", ["both", "one", "most"], ["rest"]),
        node("Reshape", ["x", "minus"], ["flat"]),
        node("Tile", ["flat", "two"], ["twice"]),
        node("Expand", ["word", "shape"], ["repeated"]),
        node("ScatterElements", ["flat", "one", "word"], ["written"]),
        node("Compress", ["flat", "mask"], ["left"]),
        node("Split", ["flat", "parts"], ["first", "second"]),
        node("OneHot", ["picked", "depth", "off_on"], ["marks"]),
    ]
    constants = {
        "words": texts("a", "b", "grün"),
        "word": texts("new"),
        "picked": np.array([1, 0, -1]),
        "one": np.array([1]),
        "most": np.array([9]),
        "minus": np.array([-1]),
        "two": np.array([2]),
        "shape": np.array([2, 3]),
        "mask": np.array([True, False, True]),
        "parts": np.array([2, 4]),
        "depth": np.array(3),
        "off_on": texts("off", "on"),
    }
    made = ["chosen", "both", "gathered", "turned", "rest", "twice", "repeated", "written", "left", "first", "second", "marks"]
    proto = model(nodes, {"x": (STRING, ["n", 3])}, {"same": BOOL, **dict.fromkeys(made, STRING)}, **constants)
    agree(proto, {"x": X})


def test_tensors_of_no_elements():
    nodes = [node("Equal", ["x", "x"], ["e"]), node("Concat", ["x", "x"], ["y"], axis=1)]
    proto = model(nodes, {"x": (STRING, ["n", "m"])}, {"e": BOOL, "y": STRING})
    agree(proto, {"x": X}, {"x": np.zeros((0, 3), object)}, {"x": np.zeros((2, 0), object)})


def test_a_border_of_empty_strings():
    proto = model([node("Pad", ["x", "pads"], ["y"])], {"x": (STRING, [2, 3])}, {"y": STRING}, pads=np.array([0, 1, 0, 0]))
    assert relayc.compile(proto).run({"x": X})["y"].tolist() == [["", *row] for row in X.tolist()]


def test_unique_strings_come_in_order():
    outputs = {"y": STRING, "first": INT, "inverse": INT, "counts": INT}
    for is_sorted in (0, 1):
        proto = model([node("Unique", ["x"], list(outputs), sorted=is_sorted)], {"x": (STRING, ["n", "m"])}, outputs)
        agree(proto, {"x": X}, {"x": texts(["z", "a", "z", "B", "a"])})


@pytest.mark.parametrize("operator", ["Add", "Less", "Max"])
def test_no_arithmetic_on_strings(operator):
    proto = model([node(operator, ["x", "x"], ["y"], name="wrong")], {"x": (STRING, [2])}, {"y": STRING})
    with pytest.raises(OnnxError, match=r"node 'wrong' .*found strings"):
        relayc.compile(proto)


def branch(name, value):
    constant = numpy_helper.from_array(texts(value), f"{name}_word")
    output = helper.make_tensor_value_info(name, STRING, None)
    return helper.make_graph([node("StringConcat", ["x", f"{name}_word"], [name])], name, [], [output], [constant])


def test_branches():
    chosen = node("If", ["c"], ["y"], then_branch=branch("a", " yes"), else_branch=branch("b", " no"))
    proto = model([chosen], {"c": (BOOL, []), "x": (STRING, ["n"])}, {"y": STRING})
    agree(proto, *({"c": np.array(c), "x": texts("q", "ü")} for c in (True, False)))


def test_loops_that_carry_strings():
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("StringConcat", ["s", "x"], ["longer"]), node("Identity", ["c"], ["on"]), node("Identity", ["s"], ["seen"])],
        "body",
        [value("i", INT, []), value("c", BOOL, []), value("s", STRING, ["n"])],
        [value("on", BOOL, []), value("longer", STRING, ["n"]), value("seen", STRING, ["n"])],
    )
    inputs = {"times": (INT, []), "start": (STRING, ["n"]), "x": (STRING, ["n"])}
    proto = model([node("Loop", ["times", "", "start"], ["y", "all"], body=body)], inputs, {"y": STRING, "all": STRING})
    agree(proto, *({"times": np.array(n), "start": texts("", "<"), "x": texts("ab", "-")} for n in (1, 5)))
    found = relayc.compile(proto).run({"times": np.array(0), "start": texts("a"), "x": texts("b")})
    assert found["y"].tolist() == ["a"]
    assert found["all"].shape == (0, 1)


# ---- what is computed on strings ------------------------------------------------------------------------------------------------------


def test_concatenation_broadcasts():
    proto = model([node("StringConcat", ["x", "z"], ["y"])], {"x": (STRING, ["n", "m"]), "z": (STRING, ["m"])}, {"y": STRING})
    agree(proto, {"x": X, "z": texts("1", "", "é")}, {"x": np.zeros((0, 3), object), "z": texts("1", "2", "3")})
    agree(model([node("StringConcat", ["x", "x"], ["y"])], {"x": (STRING, [])}, {"y": STRING}), {"x": np.array("ab", object)})


@pytest.mark.parametrize(
    "attributes", [{}, {"delimiter": ""}, {"delimiter": ","}, {"delimiter": ", ", "maxsplit": 1}, {"maxsplit": 1}, {"maxsplit": 0}]
)
def test_splitting(attributes):
    inputs = {"x": (STRING, ["n", "m"])}
    proto = model([node("StringSplit", ["x"], ["y", "counts"], **attributes)], inputs, {"y": STRING, "counts": INT})
    agree(proto, {"x": texts(["a,b", "ü ,, c"], [" d  e ", ","])}, {"x": np.zeros((2, 0), object)}, {"x": texts(["q"])})


def test_an_empty_string_has_one_part_between_delimiters():
    proto = model([node("StringSplit", ["x"], ["y", "counts"], delimiter=",")], {"x": (STRING, ["n"])}, {"y": STRING, "counts": INT})
    found = relayc.compile(proto).run({"x": texts("")})
    assert (found["y"].tolist(), found["counts"].tolist()) == ([[""]], [1])


# ONNX Runtime asks the system for the locale: "C.UTF-8" is everywhere.
@pytest.mark.parametrize(
    ("action", "sensitive", "stopwords"),
    [(action, sensitive, ["monday", "É"]) for action in ("NONE", "LOWER", "UPPER") for sensitive in (0, 1)] + [("UPPER", 0, [])],
)
def test_normalizing(action, sensitive, stopwords):
    attributes = {"case_change_action": action, "is_case_sensitive": sensitive, "locale": "C.UTF-8"}
    if stopwords:
        attributes["stopwords"] = stopwords
    words = texts("Monday", "monday", "a Monday", "", "Straße", "é", "ﬁ", "Σ")
    agree(unary("StringNormalizer", words, **attributes), {"x": words}, {"x": texts("monday")}, {"x": texts("x", "MONDAY", "x")})


def test_normalizing_a_row_with_nothing_left():
    found = relayc.compile(unary("StringNormalizer", X[:1], stopwords=["a", "b", ""], locale="tr_TR", case_change_action="UPPER"))
    for words in (["a", "b"], ["A", "b"]):
        assert found.run({"x": texts(words)})["y"].tolist() == [[""]]
    assert found.run({"x": texts(["i", "b"])})["y"].tolist() == [["İ"]]
    with pytest.raises(ValueError, match="expected"):
        found.run({"x": X})


def test_normalizing_without_stop_words():
    module = relayc.compile(unary("StringNormalizer", texts("x"), case_change_action="UPPER"))
    for words, expected in ((["x"], ["X"]), ([], [""]), (["x", "y", "Z"], ["X", "Y", "Z"])):
        assert module.run({"x": np.array(words, object)})["y"].tolist() == expected


@pytest.mark.parametrize("pattern", [r"[a-z]+@\w+\.com", r"(?i)ab.?", "", r"\pL+"])
def test_regular_expressions(pattern):
    words = texts("ab@example.com", "AB", "abc", "", "été", "a\nb")
    agree(unary("RegexFullMatch", words, BOOL, pattern=pattern), {"x": words}, {"x": np.zeros(0, object)})


def test_a_pattern_outside_of_the_syntax_of_re2(capfd):
    module = relayc.compile(unary("RegexFullMatch", X, BOOL, pattern=r"(a)\1"))
    with pytest.raises(ValueError, match=r"expected a pattern in the syntax of RE2, found '\(a\)"):
        module.run({"x": X})
    assert capfd.readouterr().err == ""  # of the library itself


# ---- numbers --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint64", "bool"])
def test_numbers_as_strings(dtype):
    values = [0, 1, 0.5, 0.1, 100, -2.5, 1e-5, 12345.678, 16777216] if dtype.startswith("f") else [0, 1, 100, -3, 2**63]
    limit = {"int8": 101, "int64": 101, "float16": 2**15}.get(dtype, np.inf)
    x = np.array([v for v in values if v < limit]).astype(dtype)
    if dtype.startswith("f"):
        x = np.concatenate([x, np.array([np.nan, np.inf, -np.inf, -0.0]).astype(dtype)])
    agree(unary("Cast", x, to=STRING), {"x": x}, {"x": x[:0]})


def test_floats_have_as_many_digits_as_they_need():
    x = np.random.default_rng(0).standard_normal(100) * 10.0 ** np.linspace(-40, 37, 100)
    for dtype in ("float32", "float64"):
        given = x.astype(dtype)
        found = relayc.compile(unary("Cast", given, to=STRING)).run({"x": given})["y"]
        same([np.array([float(text) for text in found]).astype(dtype)], [given])


@pytest.mark.parametrize("type_", [FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_strings_as_floats(type_):
    words = texts("3.25", "-7", "1e-5", "1E4", "+INF", "-inf", "INF", "NaN", "nan", " 8 ", "-0")
    agree(unary("Cast", words, type_, to=type_), {"x": words}, {"x": words[:0]})


@pytest.mark.parametrize("type_", [INT, TensorProto.UINT8, TensorProto.UINT64, BOOL])
def test_strings_as_integers(type_):
    words = texts("3", "-1", "0", "300", "100.5", "+5")
    agree(unary("Cast", words, type_, to=type_), {"x": words})


@pytest.mark.parametrize("type_", [INT, FLOAT, BOOL])
def test_strings_that_say_no_number(type_):
    module = relayc.compile(unary("Cast", X[0], type_, to=type_))
    for word in ("seven", "", "1_0"):
        with pytest.raises(ValueError, match=f"Cast: expected a number that .* has, found '{word}'"):
            module.run({"x": texts("1", word)})


def test_types_of_a_byte_and_less():
    nodes = [node("Cast", ["x"], ["f8"], to=TensorProto.FLOAT8E4M3FN), node("Cast", ["f8"], ["y"], to=STRING)]
    module = relayc.compile(model(nodes, {"x": (STRING, ["n"])}, {"y": STRING}, opset=21))
    assert module.run({"x": texts("1.5", "300.7", "-0.1")})["y"].tolist() == ["1.5", "288", "-0.1015625"]


# ---- n-grams --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "least", "largest", "skipped"),
    [("TF", 1, 1, 3), ("TFIDF", 1, 3, 0), ("IDF", 2, 2, 2), ("TF", 1, 3, 2), ("IDF", 1, 3, 2), ("TFIDF", 2, 3, 5)],
)
def test_n_grams(mode, least, largest, skipped):
    # Every 1-gram and 2-gram of five tokens, and some 3-grams, in columns of another order.
    triples = [(0, 1, 2), (1, 1, 1), (4, 0, 4), (2, 3, 0)]
    pool = [*range(5), *(t for a in range(5) for b in range(5) for t in (a, b)), *(t for triple in triples for t in triple)]
    rng = np.random.default_rng(skipped)
    count = 5 + 25 + len(triples)
    shared = {
        "mode": mode,
        "min_gram_length": least,
        "max_gram_length": largest,
        "max_skip_count": skipped,
        "ngram_counts": [0, 5, 55],
        "ngram_indexes": rng.permutation(count).tolist(),
        "weights": rng.integers(1, 9, count).astype(float).tolist(),
    }
    x = rng.integers(0, 7, (3, 9))
    words = np.array(["nought", "ä", "two", "", "four", "five", "six"], object)
    if mode == "TF":
        agree(unary("TfIdfVectorizer", x, FLOAT, pool_int64s=pool, **shared), {"x": x}, {"x": x[:, :2]}, {"x": x[:, :0]})
    agree(unary("TfIdfVectorizer", words[x[0]], FLOAT, shape=[9], pool_strings=words[pool].tolist(), **shared), {"x": words[x[0]]})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ngram_counts": [0, 4]}, "attribute ngram_counts: expected places in a pool of 3"),
        ({"ngram_counts": [0, 2]}, "attribute ngram_counts: expected 2-grams from 2 to 3, found 1 elements"),
        ({"ngram_indexes": [0]}, "attribute ngram_indexes: expected one for each of the 3 n-grams, found 1"),
        ({"ngram_indexes": [0, -1, 2]}, "attribute ngram_indexes: expected one or more of 0 or more"),
        ({"weights": [1.0]}, "attribute weights: expected one for each of the 3 n-grams, found 1"),
        ({"mode": "tf"}, "attribute mode: expected TF, IDF or TFIDF"),
        ({"pool_strings": ["a"]}, "expected one of the attributes pool_int64s and pool_strings"),
        ({"min_gram_length": 2}, "expected n-grams of 1 or more"),
    ],
)
def test_n_grams_that_are_wrong(changed, message):
    given = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0], "ngram_indexes": [0, 1, 2]}
    with pytest.raises(OnnxError, match=message):
        from_onnx(unary("TfIdfVectorizer", np.zeros(3, np.int64), FLOAT, **{**given, "pool_int64s": [1, 2, 3], **changed}))


# ---- what programs take and give ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def suffixed():
    """x followed by "!", and whether x is "a"."""
    nodes = [node("StringConcat", ["x", "mark"], ["y"]), node("Equal", ["x", "a"], ["is_a"])]
    proto = model(nodes, {"x": (STRING, ["n", 2])}, {"y": STRING, "is_a": BOOL}, mark=texts("!"), a=texts("a"))
    return proto, relayc.compile(proto)


@pytest.mark.parametrize(
    "x",
    [
        np.array([["a", "é"]], object),
        np.array([["a", "é"]]),
        np.array([["a", "é"]], np.dtypes.StringDType()),
        np.array([[b"a", "é".encode()]]),
        [["a", "é".encode()]],
    ],
    ids=["objects", "U", "StringDType", "S", "list"],
)
def test_forms_of_an_argument(suffixed, x):
    y, is_a = suffixed[1]["main"](x)
    assert y.dtype == object
    assert (y.tolist(), is_a.tolist()) == ([["a!", "é!"]], [[True, False]])


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.zeros((1, 2)), TypeError, r"main: argument 0 'x': expected string\[n, 2\], found float64\[1, 2\]"),
        (np.zeros((1, 2), np.int64), TypeError, r"main: argument 0 'x': expected string\[n, 2\], found int64\[1, 2\]"),
        (np.array([["a", 1]], object), TypeError, r"argument 0 'x': expected string\[n, 2\], expected strings, found 1 of type int"),
        (texts("a", "b"), ValueError, r"argument 0 'x': expected string\[n, 2\], found string\[2\]"),
        ([["a", b"\xff"]], ValueError, r"argument 0 'x': expected string\[n, 2\], expected text in UTF-8, found b'.xff'"),
    ],
)
def test_arguments_that_are_wrong(suffixed, x, error, message):
    suffixed[1]["main"]([["a", "b"]])  # the shapes are known then
    with pytest.raises(error, match=message):
        suffixed[1]["main"](x)


def test_strings_are_no_memory_to_write_to_or_to_wrap(suffixed):
    main = suffixed[1]["main"]
    with pytest.raises(ValueError, match=r"main: out: expected outputs that are tensors of numbers, found 'y': string\[n, 2\]"):
        main(X[:, :2], out=[np.empty((2, 2), object), np.empty((2, 2), bool)])
    with pytest.raises(ValueError, match=r"main: wrap: expected outputs that are tensors of numbers, found 'y'"):
        main(X[:, :2], wrap=lambda tensor: tensor)


def test_strings_of_a_call_do_not_stay(suffixed):
    main = suffixed[1]["main"]
    tracemalloc.start()
    try:
        sizes = []
        for _ in range(3):
            for i in range(100):
                main([[f"{i} {'x' * 1000}", f"{'y' * 1000} {i}"]])
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # The strings of a hundred calls are 400,000 bytes.
    assert sizes[2] - sizes[1] < 20_000


def test_calls_at_the_same_time(suffixed):
    main, wrong = suffixed[1]["main"], []

    def work(name):
        for i in range(200):
            y, _ = main([[f"{name}{i}", "a"]])
            if y.tolist() != [[f"{name}{i}!", "a!"]]:
                wrong.append(y)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_programs_of_the_cache_have_their_strings(suffixed, tmp_path, monkeypatch):
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_cache, "_sources_are_loaded", lambda: True)  # also while someone edits them
    path = tmp_path / "suffixed.onnx"
    onnx.save(suffixed[0], path)
    found = [relayc.compile(path) for _ in range(2)]
    assert list(found[1].stats) == ["cache"]
    for module in found:
        same(module["main"](X[:, :2]), suffixed[1]["main"](X[:, :2]))


def test_profiles_and_made_up_inputs(suffixed, tmp_path):
    module = suffixed[1]
    inputs = random_inputs(module.inputs, sizes={"n": 3})
    assert set(inputs["x"].reshape(-1).tolist()) == {"0", "1"}
    assert any("concat" in str(row.kernel) for row in module.profile(inputs, repeat=1).rows)
    save_outputs(tmp_path / "y.npz", module.run(inputs))
    with np.load(tmp_path / "y.npz") as stored:
        assert stored["y"].tolist() == module.run(inputs)["y"].tolist()
    np.savez(tmp_path / "x.npz", **inputs)
    same(load_inputs(tmp_path / "x.npz", module.inputs).values(), inputs.values())


def test_strings_stay_in_the_program_where_weights_become_arguments():
    nodes = [node("StringConcat", ["x", "mark"], ["y"])]
    module = relayc.compile(from_onnx(model(nodes, {"x": (STRING, [1])}, {"y": STRING}, mark=texts("!")), freeze_params=False))
    assert module.run({"x": texts("a")})["y"].tolist() == ["a!"]


def test_many_strings_are_parameters_and_equal_ones_are_one():
    words = np.array([f"word {i % 500}" for i in range(2000)], object)
    proto = model([node("Gather", ["words", "x"], ["y"])], {"x": (INT, ["n"])}, {"y": STRING}, words=words)
    mod = from_onnx(proto)
    assert len(mod.strings) == 501
    assert relayc.compile(mod).run({"x": np.array([1999, 3])})["y"].tolist() == ["word 499", "word 3"]


def test_the_text_of_a_program_has_its_strings():
    words = texts("a\0b", '\n"\\', "", "日本", "relay.symbols = {n = 1}", "a\0")
    nodes = [node("Concat", ["x", "words"], ["y"], axis=0)]
    mod = from_onnx(model(nodes, {"x": (STRING, ["n"])}, {"y": STRING}, words=words), dims={"n": (1, 9)})
    again = IRModule.parse(str(mod), mod.params)
    assert (again.strings, again.ranges) == (mod.strings, mod.ranges)
    assert relayc.compile(again).run({"x": words[:1]})["y"].tolist() == [words[0], *words.tolist()]


def test_an_input_of_strings_has_no_other_dtype():
    with pytest.raises(OnnxError, match="dtypes: input x: expected strings where the model has them, found float32 for string"):
        from_onnx(unary("Identity", X), dtypes={"x": "float32"})


def test_bytes_in_a_model_that_are_no_text():
    proto = model([node("Equal", ["x", "word"], ["y"])], {"x": (STRING, [1])}, {"y": BOOL}, word=texts("a"))
    proto.graph.initializer[0].string_data[0] = b"\xff"
    with pytest.raises(OnnxError, match=r"initializer word: expected elements for string\[1\], found others: .*utf-8"):
        relayc.compile(proto)


# ---- images ---------------------------------------------------------------------------------------------------------------------------


def encoded(image, kind):
    out = io.BytesIO()
    image.save(out, kind)
    return np.frombuffer(out.getvalue(), np.uint8)


@pytest.fixture(scope="module")
def decoders():
    inputs = {"x": (TensorProto.UINT8, ["n"])}
    kinds = ("RGB", "BGR", "Grayscale")
    nodes = [node("ImageDecoder", ["x"], [kind], pixel_format=kind) for kind in kinds]
    return relayc.compile(model(nodes, inputs, dict.fromkeys(kinds, TensorProto.UINT8)))


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "1"])
def test_images_of_every_mode(decoders, mode):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    image = Image.fromarray(pixels).convert(mode)
    found = decoders.run({"x": encoded(image, "PNG")})
    wanted = np.asarray(image.convert("RGB"))
    same(found.values(), [wanted, wanted[..., ::-1], np.asarray(image.convert("L"))[..., None]])


def test_images_of_16_bits_keep_the_upper_ones(decoders):
    values = np.array([[0, 255, 256], [0x7FFF, 0x8000, 0xFFFF]], np.uint16)
    found = decoders.run({"x": encoded(Image.fromarray(values), "PNG")})
    assert found["Grayscale"][..., 0].tolist() == [[0, 0, 1], [127, 128, 255]]


@pytest.mark.parametrize("cut", [0, 3, 40])
def test_what_is_no_image_has_no_pixels(decoders, cut):
    whole = encoded(Image.fromarray(np.zeros((9, 9, 3), np.uint8)), "PNG")
    found = decoders.run({"x": whole[:cut]})
    assert {name: array.shape for name, array in found.items()} == {"RGB": (0, 0, 3), "BGR": (0, 0, 3), "Grayscale": (0, 0, 1)}


@pytest.mark.parametrize(("package", "extra"), [("re2", "text"), ("PIL", "image")])
def test_a_package_that_is_not_there_is_named_with_its_extra(package, extra, decoders, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'relayc\[{extra}\]'"):
        if package == "PIL":
            decoders.run({"x": np.zeros(4, np.uint8)})
        else:
            relayc.compile(unary("RegexFullMatch", X[0], BOOL, pattern="of no other test")).run({"x": X[0]})


def test_numbers_of_strings_are_of_strings():
    module = IRModule.parse("module {}")
    found = module.numbers_of(texts(["a", "b"], ["", "a"]))
    np.testing.assert_array_equal(module.texts_of(found), texts(["a", "b"], ["", "a"]))
    with pytest.raises(TypeError, match="expected strings, found 3 of type int"):
        module.numbers_of(texts("a", 3))
