"""Keras 3 models as relay programs, by the frontend of the backend that Keras runs on: JAX or PyTorch."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from relayc.dialects.relay.module import IRModule
from relayc.frontend.dimensions import free_name
from relayc.frontend.errors import ModelError
from relayc.frontend.registry import Progress
from relayc.symbolic import Size


def from_keras(
    model: Any,
    *args: Any,
    shapes: Mapping[str, Sequence[Size | str]] | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    progress: Progress | None = None,
) -> IRModule:
    """Imports a Keras model for inference.

    Args:
      model: a keras.Model that is built, on the backend "jax" or "torch". Its weights become constants.
      args: example arguments, for a model that does not say the types of its inputs (a subclass of keras.Model): arrays, whose first
        dimension is open.
      shapes, dims: as of `relayc.compile`; on the backend "jax". Open sizes that a model has along the first axis of inputs are the
        symbol batch, others are called after the input and axis.
      progress: called with the number of operators done and their total.

    Returns:
      A module whose `main` has the inputs of the model, in order. `relayc.compile` makes a module of it that is called as the model is.

    Raises:
      UnsupportedOperators: a ModelError that names every operator without a converter.
      ModelError: anything else that cannot be imported.
      ModuleNotFoundError: Keras, or the package of its backend, is not installed.
    """
    keras = _keras()
    if not isinstance(model, keras.Model):
        raise TypeError(f"model: expected a keras.Model, found {type(model).__name__}")
    found = keras.config.backend()
    if found not in ("jax", "torch"):
        raise ModelError(f'expected Keras on the backend "jax" or "torch", found "{found}": set KERAS_BACKEND before Keras is imported')
    inputs = _inputs(model, args)
    return _by_jax(model, inputs, shapes, dims, progress) if found == "jax" else _by_torch(model, inputs, progress)


def import_model(
    model: Any,
    *,
    shapes: Mapping[str, Sequence[Size | str]] | None = None,
    progress: Progress | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
) -> IRModule:
    """A Keras model, or the file of one, for `relayc.compile`. Raises as `from_keras`, and ModelError for a file that is none."""
    if isinstance(model, (str, os.PathLike)):
        try:
            model = _keras().saving.load_model(os.fspath(model), compile=False)
        except (OSError, ValueError) as error:
            raise ModelError(f"{os.fspath(model)}: expected a model of Keras, found what Keras does not load: {error}") from error
    return from_keras(model, shapes=shapes, dims=dims, progress=progress)


def _keras() -> Any:
    try:
        import keras
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"expected Keras and its backend for a Keras model, found no {error.name}: pip install relayc[keras]", name=error.name
        ) from None
    return keras


def _inputs(model: Any, args: Sequence[Any]) -> Any:
    """The types of a model's inputs, nested as they are: of sizes, None for an open one, and a dtype."""
    keras = _keras()
    if args:
        return keras.tree.map_structure(lambda a: keras.KerasTensor((None, *a.shape[1:]), str(a.dtype)), list(args))
    try:
        return [*model.inputs] if isinstance(model, keras.Sequential) else [model.input]
    except (AttributeError, ValueError):
        what = "expected a model that says the types of its inputs, or example arguments, found neither: give from_keras(model, x)"
        raise ModelError(what) from None


def _shape_texts(tensors: Sequence[Any]) -> list[list[str]]:
    """The sizes of inputs as texts, open ones by names."""
    taken, found = {"batch"}, []
    for number, tensor in enumerate(tensors):
        texts = []
        for axis, d in enumerate(tensor.shape):
            name = "batch" if axis == 0 else free_name(f"{_name(tensor, number)}_{axis}", taken)
            taken |= {name} if d is None else set()
            texts.append(name if d is None else str(d))
        found.append(texts)
    return found


def _name(tensor: Any, number: int) -> str:
    """What an input is called; the names that Keras gives differ from run to run."""
    own = getattr(tensor, "name", None) or ""
    return own if own and not own.startswith("keras_tensor") else f"input_{number}"


def _by_jax(model: Any, inputs: Any, shapes: Any, dims: Any, progress: Progress | None) -> IRModule:
    import jax
    from jax import export

    from relayc.frontend.stablehlo.exported import import_exported

    keras = _keras()
    flat = keras.tree.flatten(inputs)
    scope = export.SymbolicScope()
    specs = [
        jax.ShapeDtypeStruct(
            export.symbolic_shape(",".join(t) + ("," if len(t) == 1 else ""), scope=scope), keras.backend.standardize_dtype(k.dtype)
        )
        for k, t in zip(flat, _shape_texts(flat), strict=True)
    ]

    def call(*args: Any) -> Any:
        return model(*args, training=False)

    exported = export.export(jax.jit(call), platforms=["cpu"])(*keras.tree.pack_sequence_as(inputs, specs))
    return import_exported(exported, shapes, dims, progress, names=[_name(k, i) for i, k in enumerate(flat)])


def _by_torch(model: Any, inputs: Any, progress: Progress | None) -> IRModule:
    import torch

    from relayc.frontend.pytorch import from_pytorch

    keras = _keras()
    model.eval()

    class Inference(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

    class OfOne(Inference):
        def forward(self, inputs: Any) -> Any:
            return self.model(inputs, training=False)

    class OfSeveral(Inference):
        def forward(self, *args: Any) -> Any:
            return self.model(*args, training=False)

    flat = keras.tree.flatten(inputs)
    dynamic = [{i: t for i, t in enumerate(texts) if not t.isdigit()} for texts in _shape_texts(flat)]
    examples = [
        torch.zeros([2 if d is None else d for d in k.shape], dtype=getattr(torch, keras.backend.standardize_dtype(k.dtype))) for k in flat
    ]
    args = keras.tree.pack_sequence_as(inputs, examples)
    shapes = tuple(keras.tree.pack_sequence_as(inputs, dynamic))
    if len(inputs) == 1:
        return from_pytorch(OfOne().eval(), tuple(args), dynamic_shapes=shapes, progress=progress)
    return from_pytorch(OfSeveral().eval(), tuple(args), dynamic_shapes=(shapes,), progress=progress)
