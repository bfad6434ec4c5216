"""Models of Keras on the JAX backend by from_keras, compared with Keras at several sizes of the batch."""

import os
import sys

import numpy as np
import pytest

jax = pytest.importorskip("jax")
os.environ.setdefault("KERAS_BACKEND", "jax")
keras = pytest.importorskip("keras")
if keras.config.backend() not in ("jax", "torch"):
    pytest.skip("Keras runs on another backend", allow_module_level=True)

from jax_support import values  # noqa: E402 # there is JAX
from keras import layers as L  # noqa: E402 # there is Keras

import relayc  # noqa: E402


def perceptron():
    return keras.Sequential(
        [keras.Input((8,), name="x"), L.Dense(16, "relu"), L.LayerNormalization(), L.Dropout(0.5), L.Dense(3, "softmax")]
    )


def convolutions():
    head = [L.DepthwiseConv2D(3, strides=2, padding="same"), L.GlobalAveragePooling2D(), L.Dense(4)]
    return keras.Sequential(
        [keras.Input((8, 8, 3)), L.Conv2D(8, 3, padding="same"), L.BatchNormalization(), L.ReLU(), L.MaxPooling2D(), *head]
    )


def encoder():
    x = keras.Input((None, 16), name="x")
    y = L.LayerNormalization()(x + L.MultiHeadAttention(2, 8)(x, x))
    return keras.Model(x, y + L.Dense(16)(L.Dense(24, "gelu")(y)))


def recurrent():
    return keras.Sequential([keras.Input((4, 5)), L.LSTM(6, return_sequences=True), L.GRU(4), L.Dense(2)])


def text():
    return keras.Sequential(
        [keras.Input((9,), dtype="int32"), L.Embedding(20, 8), L.Conv1D(6, 3, activation="tanh"), L.GlobalMaxPooling1D(), L.Dense(1)]
    )


def autoencoder():
    layers = [L.Conv2D(4, 3, strides=2, padding="same", activation="relu"), L.Conv2DTranspose(4, 3, strides=2, padding="same")]
    return keras.Sequential([keras.Input((8, 8, 1)), *layers, L.UpSampling2D(2), L.AveragePooling2D(2), L.Conv2D(1, 3, padding="same")])


MODELS = [perceptron, convolutions, encoder, recurrent, text, autoencoder]


@pytest.fixture(autouse=True)
def weights_begin_as_numpy_draws_them(monkeypatch):
    """JAX would compile a program for each weight."""
    for kind in (keras.initializers.VarianceScaling, keras.initializers.Orthogonal, keras.initializers.RandomUniform):
        monkeypatch.setattr(kind, "__call__", lambda self, shape, dtype=None, **options: values(shape)[0] * 0.4)


def trained(model):
    """A model whose weights are not as they begin."""
    rng = np.random.default_rng(0)
    for weight in model.trainable_weights + model.non_trainable_weights:
        if "seed" not in weight.path:
            weight.assign(np.asarray(keras.ops.convert_to_numpy(weight)) + rng.uniform(0.05, 0.3, weight.shape).astype(weight.dtype))
    return model


def given(model, batch):
    rng = np.random.default_rng(batch)
    shape = (batch, *(6 + batch if d is None else d for d in model.input_shape[1:]))
    if model.inputs[0].dtype == "int32":
        return rng.integers(0, 20, shape).astype(np.int32)
    return rng.normal(size=shape).astype(np.float32)


def agree(module, model, x):
    wanted = jax.jit(lambda x: model(x, training=False))(x) if keras.config.backend() == "jax" else model(x, training=False)
    keras.tree.map_structure(
        lambda f, w: np.testing.assert_allclose(np.asarray(f), keras.ops.convert_to_numpy(w), rtol=1e-4, atol=1e-5), module(x), wanted
    )


@pytest.mark.parametrize("make", MODELS)
def test_a_model_at_every_batch(make):
    model = trained(make())
    module = relayc.compile(relayc.from_keras(model))
    expected = {encoder: ("x", "float32[batch, x_1, 16]"), text: ("input_0", "int32[batch, 9]"), perceptron: ("x", "float32[batch, 8]")}
    if make in expected and keras.config.backend() == "jax":
        assert (module.inputs[0].name, str(module.inputs[0])) == expected[make]
    for batch in (1, 5):
        agree(module, model, given(model, batch))


def test_several_inputs_and_outputs_by_name():
    left, right = keras.Input((4,), name="left"), keras.Input((5,), name="right")
    model = trained(keras.Model({"left": left, "right": right}, {"out": L.Dense(3)(L.Concatenate()([left, right])), "more": left + 1}))
    module = relayc.compile(model)
    assert [spec.name for spec in module.inputs] == ["left", "right"]
    rng = np.random.default_rng(0)
    agree(module, model, {"left": rng.normal(size=(3, 4)).astype("float32"), "right": rng.normal(size=(3, 5)).astype("float32")})


def test_a_file_compiles_and_open_sizes_may_be_fixed(tmp_path):
    model = trained(perceptron())
    model.save(tmp_path / "model.keras")
    module = relayc.compile(tmp_path / "model.keras", dims={"batch": 2} if keras.config.backend() == "jax" else None)
    agree(module, model, given(model, 2))


def test_a_model_of_its_own_class_takes_example_arguments():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(3)

        def call(self, x):
            return self.dense(x) * 2

    model, x = Own(), np.ones((2, 4), np.float32)
    model(x)
    with pytest.raises(relayc.ModelError, match="example arguments"):
        relayc.from_keras(model)
    module = relayc.compile(relayc.from_keras(model, x))
    agree(module, model, np.random.default_rng(0).normal(size=(5, 4)).astype("float32"))
    with pytest.raises(TypeError, match=r"expected a keras\.Model, found int"):
        relayc.from_keras(3)


@pytest.fixture
def keras_on_torch(monkeypatch):
    """Keras imported once more, on the backend "torch"."""
    pytest.importorskip("torch")
    here = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "keras"}
    for name in here:
        del sys.modules[name]
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    import keras as again

    yield again
    for name in [name for name in sys.modules if name.partition(".")[0] == "keras"]:
        del sys.modules[name]
    sys.modules.update(here)


@pytest.mark.skipif(keras.config.backend() == "torch", reason="other tests run on torch")
def test_models_on_torch(keras_on_torch):
    keras = keras_on_torch
    x, left, right = keras.Input((None, 6), name="x"), keras.Input((4,), name="left"), keras.Input((4,), name="right")
    one = keras.Model(x, [keras.layers.Dense(3, "relu")(x), x - 1])
    module = relayc.compile(one)
    assert [str(spec) for spec in module.inputs] == ["float32[batch, x_1, 6]"]
    for shape in ((2, 4, 6), (1, 3, 6)):
        (a,) = values(shape)
        for found, wanted in zip(module(a), one(a), strict=True):
            np.testing.assert_allclose(np.asarray(found), keras.ops.convert_to_numpy(wanted), rtol=1e-4, atol=1e-5)
    several = relayc.compile(keras.Model([left, right], left - 2 * right))
    a, b = values((3, 4), (3, 4))
    np.testing.assert_allclose(np.asarray(several([a, b])), a - 2 * b, rtol=1e-5)

    class Own(keras.Model):
        def call(self, a, b, training=False):
            return a + b if training else a - b

    np.testing.assert_allclose(np.asarray(relayc.compile(relayc.from_keras(Own(), a, b))(a, b)), a - b, rtol=1e-5)


def test_another_backend_is_refused(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "tensorflow")
    with pytest.raises(relayc.ModelError, match='on the backend "jax" or "torch", found "tensorflow": set KERAS_BACKEND'):
        relayc.from_keras(perceptron())


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "bad.keras").write_bytes(b"no archive")
    for name in ("bad.keras", "missing.keras"):
        with pytest.raises(relayc.ModelError, match=rf"{name}: expected a model of Keras, found what Keras does not load: "):
            relayc.compile(tmp_path / name)


def test_keras_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", None)
    with pytest.raises(ModuleNotFoundError, match=r"expected Keras .* found no keras: pip install relayc\[keras\]"):
        relayc.from_keras(3)
