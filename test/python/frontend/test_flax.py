"""Models of Flax by from_jax, compared with JAX at several sizes of the batch; what their norms and attention become."""

import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("flax")

import jax.numpy as jnp  # noqa: E402 # there is JAX
from flax import linen as nn  # noqa: E402
from flax import nnx  # noqa: E402
from jax_support import agrees, numbers_like, values  # noqa: E402

import relayc  # noqa: E402
from relayc.pipelines.graph import graph_pipeline  # noqa: E402


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dropout(0.5, deterministic=True)(nn.relu(nn.Dense(16)(x)))
        return nn.log_softmax(nn.Dense(5)(x))


class Cnn(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.BatchNorm(use_running_average=True)(nn.Conv(8, (3, 3))(x)))
        x = nn.Conv(8, (3, 3), strides=2)(nn.max_pool(x, (2, 2), (2, 2)))
        return nn.Dense(4)(nn.avg_pool(x, (2, 2)).reshape(x.shape[0], -1))


class ResidualBlock(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.relu(nn.BatchNorm(use_running_average=True)(nn.Conv(8, (3, 3), strides=2, use_bias=False)(x)))
        y = nn.GroupNorm(4)(nn.Conv(8, (3, 3), use_bias=False, feature_group_count=2)(y))
        return nn.relu(y + nn.Conv(8, (1, 1), strides=2, use_bias=False)(x)).mean((1, 2))


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=4)(y, y)
        y = nn.Dense(16)(nn.gelu(nn.Dense(24)(nn.LayerNorm()(x))))
        return nn.RMSNorm()(x + y)


class Recurrent(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(nn.RNN(nn.LSTMCell(6))(x))


class Autoencoder(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(4, (3, 3), strides=(2, 2))(x))
        return nn.sigmoid(nn.Conv(1, (3, 3))(nn.elu(nn.ConvTranspose(4, (3, 3), strides=(2, 2))(x))))


MODELS = {
    "convolutions": (Cnn, (12, 12, 3), "batch, 12, 12, 3"),
    "residual block": (ResidualBlock, (8, 8, 4), "batch, 8, 8, 4"),
    "encoder": (Encoder, (5, 16), "batch, seq, 16"),
    "recurrent": (Recurrent, (5, 4), "batch, 5, 4"),
    "autoencoder": (Autoencoder, (8, 8, 1), "batch, 8, 8, 1"),
}


def applied(cls, shape):
    """A model with parameters of its own, as a function."""
    model = cls()
    parameters = numbers_like(jax.eval_shape(lambda x: model.init(jax.random.key(0), x), jnp.zeros((2, *shape))))
    return lambda x: model.apply(parameters, x)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_at_every_batch(name):
    cls, shape, sizes = MODELS[name]
    more = [values((1, *shape), seed=1), values((5, *shape), seed=2)]
    if name == "encoder":
        more.append(values((2, 9, 16), seed=3))
    agrees(applied(cls, shape), *values((2, *shape)), open_sizes=sizes, more=more, tolerance=1e-4)


def test_parameters_may_be_arguments():
    model, (x,) = Mlp(), values((3, 8))
    parameters = numbers_like(jax.eval_shape(lambda x: model.init(jax.random.key(1), x), x))
    module = agrees(model.apply, parameters, x)
    assert [spec.name for spec in module.inputs][-2:] == ["variables_params_Dense_1_kernel", "arg1"]


def test_models_of_nnx():
    class Model(nnx.Module):
        def __init__(self, rngs):
            self.first, self.norm = nnx.Linear(8, 12, rngs=rngs), nnx.BatchNorm(12, rngs=rngs)
            self.second = nnx.Linear(12, 3, rngs=rngs)

        def __call__(self, x):
            return self.second(nnx.relu(self.norm(self.first(x))))

    model = nnx.eval_shape(lambda: Model(nnx.Rngs(0)))
    model.eval()
    graph, state = nnx.split(model)
    state = numbers_like(state)
    agrees(lambda x: nnx.merge(graph, state)(x), *values((2, 8)), open_sizes="batch, 8", more=[values((4, 8))])


def test_norms_and_attention_of_an_encoder_are_operators_again():
    cls, shape, sizes = MODELS["encoder"]
    mod = relayc.from_jax(applied(cls, shape), *values((2, *shape)), polymorphic_shapes=sizes)
    with relayc.PassContext(opt_level=3):
        text = str(graph_pipeline()(mod))
    found = {name: text.count(f'"relay.{name}"') for name in ("nn_layer_norm", "nn_rms_norm", "nn_attention", "nn_softmax", "exp", "rsqrt")}
    assert found == {"nn_layer_norm": 2, "nn_rms_norm": 1, "nn_attention": 1, "nn_softmax": 0, "exp": 0, "rsqrt": 0}
    assert text.count('key_layout = "BSHD"') == 1
    # The activation, the scale and every sum are in the kernel of a product.
    assert text.count('"relay.nn_dense"') == 6 and text.count('"relay.fused"') <= 10


def test_convolutions_keep_the_layout_of_jax():
    cls, shape, sizes = MODELS["convolutions"]
    mod = relayc.from_jax(applied(cls, shape), *values((2, *shape)), polymorphic_shapes=sizes)
    assert "relay.transpose" not in str(mod)
    with relayc.PassContext(opt_level=3):
        text = str(graph_pipeline()(mod))
    assert text.count('"relay.nn_conv2d"') == 2 and "relay.transpose" not in text and '"relay.nn_relu"' in text
