"""The test cases of the onnx package, in the form in which relayc can take them.

A case is a small model with inputs and expected outputs. Two things are changed before it is imported: inputs that decide the shape of a
result (axes, sizes, pads, ...) become constants, as relayc fixes shapes at import; and models of an operator set before 7 are raised to 7
by ONNX's own converter.
"""

import functools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper, version_converter
from onnx.backend.test.loader import load_model_tests

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")

_SIZES = {"axes", "axis", "depth", "k", "new_shape", "pads", "repeats", "roi", "scales", "shape", "size", "sizes", "split"}
_BOUNDS = {"delta", "ends", "limit", "start", "starts", "steps"}
_CONDITIONS = {"cond", "condition", "training_mode"}

SHAPE_INPUTS = frozenset(_SIZES | _BOUNDS | _CONDITIONS)
"""Names by which the cases call the inputs that decide shapes."""

SHAPE_INPUTS_OF = {"constantofshape": {"x"}, "dropout": {"r", "t"}, "tile": {"y"}, "window": {"x"}}
"""Such inputs by a part of the name of the case, where the name of the input says nothing."""


@dataclass(frozen=True)
class Case:
    """One case: model, and arrays in the order of the model's inputs and outputs."""

    name: str
    model: onnx.ModelProto
    inputs: Sequence[np.ndarray]
    outputs: Sequence[np.ndarray]
    rtol: float
    atol: float

    @property
    def opset(self) -> int:
        """Version of ONNX's own operator set; 0 where the model uses none of it."""
        return next((o.version for o in self.model.opset_import if o.domain in ("", "ai.onnx")), 0)

    def operators(self) -> set[str]:
        """Operators used, in subgraphs and local functions too."""
        found: set[str] = set()
        for graph in (self.model.graph, *self.model.functions):
            _operators(graph, found)
        return found

    def element_types(self) -> set[str]:
        """Element types of inputs, outputs and casts; "sequence" and "optional" for values that are not tensors."""
        values = [*self.model.graph.input, *self.model.graph.output]
        found = {_type_name(v.type) for v in values}
        for node in self.model.graph.node:
            found |= {TensorProto.DataType.Name(a.i) for a in node.attribute if a.name in ("to", "dtype", "output_dtype") and a.i}
            found |= {TensorProto.DataType.Name(a.t.data_type) for a in node.attribute if a.type == AttributeProto.TENSOR}
        return found


def _type_name(type_: onnx.TypeProto) -> str:
    kind = type_.WhichOneof("value")
    return TensorProto.DataType.Name(type_.tensor_type.elem_type) if kind == "tensor_type" else kind.removesuffix("_type")


def _operators(graph: onnx.GraphProto | onnx.FunctionProto, found: set[str]) -> None:
    for node in graph.node:
        found.add(node.op_type)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _operators(attribute.g, found)


@functools.cache
def cases() -> dict[str, Case]:
    """Every case of the onnx package but whole models, by name."""
    found: dict[str, Case] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the generators of the cases overflow on purpose
        for kind in KINDS:
            for case in load_model_tests(kind=kind):
                found.setdefault(case.name, _case(case))
    return found


def _case(case: object) -> Case:
    if case.model is not None:
        model, (inputs, outputs) = case.model, case.data_sets[0]
    else:
        directory = Path(case.model_dir)
        model = onnx.load(directory / "model.onnx")
        inputs, outputs = (_arrays(directory / "test_data_set_0", kind) for kind in ("input", "output"))
    return Case(case.name, model, [_array(v) for v in inputs], [_array(v) for v in outputs], case.rtol, case.atol)


def _array(value: object) -> object:
    # Sequences and optional values stay as they are: relayc takes no model that has them.
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def _arrays(directory: Path, kind: str) -> list[np.ndarray]:
    count = len(list(directory.glob(f"{kind}_*.pb")))
    return [numpy_helper.to_array(onnx.load_tensor(str(directory / f"{kind}_{i}.pb"))) for i in range(count)]


def importable(case: Case) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    """The model as relayc can take it, and the inputs that are left."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    versions = {o.domain: o.version for o in model.opset_import}
    if versions.get("", 7) < 7:
        model = version_converter.convert_version(model, 7)
    names = SHAPE_INPUTS.union(*(names for part, names in SHAPE_INPUTS_OF.items() if part in case.name))
    initializers = {t.name for t in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in initializers]
    left = []
    for value, array in zip(inputs, case.inputs, strict=False):
        if value.name in names and np.ndim(array) <= 1:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), value.name))
        else:
            left.append(array)
    return model, left
