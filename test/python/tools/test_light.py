"""The networks of the onnx package."""

import numpy as np
import onnx
import pytest

from relayc.tools import light
from relayc.tools.light import light_names, random_light, stored_case


def test_all_nine_networks_are_found():
    names = ["bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512"]
    assert light_names() == names


def test_the_stored_case_is_the_one_of_the_onnx_backend_tests():
    data, output = stored_case("squeezenet")
    assert data.shape == (1, 3, 224, 224) and data.flat[1] == np.float32(1 / data.size)
    assert output.shape == (1, 1000, 1, 1)


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_random_weights_make_a_valid_model_that_responds_to_its_input(name):
    onnxruntime = pytest.importorskip("onnxruntime")
    model = random_light(name)
    onnx.checker.check_model(model)
    assert len(model.graph.output) == 2
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    data, _ = stored_case(name)
    # The last output is that before the Softmax.
    a, b = (session.run(None, {session.get_inputs()[0].name: x})[-1] for x in (data, -data))
    assert np.isfinite(a).all() and np.abs(a - b).max() > 0.01 * np.abs(a).max()


def test_factors_are_what_multiplies():
    """Of products both operands, and what they are of another rank; of batch norms the scale and the variance."""
    text = """g (float[2] r, float[2] g, float[2] s, float[2] b, float[2] m, float[2] v) => (float[2] z) {
      x = Relu (r)
      u = Unsqueeze (g, axes)
      o = Unsqueeze (b, axes)
      y = Mul (x, u)
      a = Add (y, o)
      z = BatchNormalization (a, s, b, m, v)
    }"""
    assert light._factors(onnx.parser.parse_graph(text)) == {"x", "u", "g", "s", "v"}


@pytest.mark.parametrize(("last", "gain", "outputs"), [("Relu", 2, 1), ("Sum", 1, 1), ("Softmax", 2, 2)])
@pytest.mark.parametrize(("given", "version"), [(3, 4), (8, 8)])
def test_weights_are_drawn_by_what_they_are_for(last, gain, outputs, given, version, tmp_path, monkeypatch):
    shapes = {"w": [64, 8, 5, 5], "vector": [4000], "scale": [4000]}
    model = onnx.parser.parse_model(f"""<ir_version: {given}, opset_import: ["" : 9]> g (float[1, 4000] x) => (float[1, 4000] z) {{
      w = ConstantOfShape (ws)
      vector = ConstantOfShape (vectors)
      scale = ConstantOfShape (scales)
      a = Mul (x, scale)
      b = Add (a, vector)
      z = {last} (b)
    }}""")
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.array(shape), f"{name}s") for name, shape in shapes.items())
    onnx.save(model, tmp_path / "light_g.onnx")
    monkeypatch.setattr(light, "_FOLDER", tmp_path)
    found = random_light("g")
    w, vector, scale = (onnx.numpy_helper.to_array(tensor) for tensor in found.graph.initializer[3:])
    assert (found.ir_version, len(found.graph.output)) == (version, outputs)
    assert w.std() == pytest.approx(np.sqrt(gain / 200), rel=0.05) and vector.std() == pytest.approx(0.1, rel=0.05)
    assert scale.min() >= 0.5 and scale.max() < 1.5 and scale.mean() == pytest.approx(1, rel=0.05)
