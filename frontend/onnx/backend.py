"""relayc behind the backend interface of the onnx package (onnx.backend.base): `onnx.backend.test.BackendTest` runs on this module.

    from relayc.frontend.onnx import backend

    y = backend.run_model(onnx.load("model.onnx"), [x])[0]

It is the one module of a frontend that compiles: nothing else of the frontends imports it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from relayc.frontend.onnx import from_onnx
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.model import NEWEST_OPSET
from relayc.pipelines.driver.compile import compile
from relayc.runtime.module import Module


def _is_sequence(value: Any) -> bool:
    """Whether an input of a node is a sequence of tensors, and not a tensor of numbers in lists."""
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(item, np.ndarray) for item in value)


def _type_of(value: Any) -> onnx.TypeProto:
    """ONNX's type of an array, or of a sequence of arrays."""
    if _is_sequence(value):
        return onnx.helper.make_sequence_type_proto(
            onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(value[0].dtype), None)
        )
    return onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


class RelaycRep(BackendRep):
    """A compiled model.

    Attributes:
      module: the runtime module, whose `main` has the model's inputs and outputs.
    """

    def __init__(self, module: Module) -> None:
        self.module = module

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, in the order of the model and by their names: `rep.run([x])[0]`, `rep.run([x])["y"]`.

        Args:
          inputs: arrays in the order of the model's inputs that are not initializers, or by name; an array alone where there is one input.
            A sequence is a list of arrays, an optional value that is not there None.
          kwargs: arguments of a call, such as `out`.

        Raises:
          ValueError, TypeError: other inputs than the model has.
        """
        names = self.module.output_names
        if isinstance(inputs, Mapping):
            by_name = self.module.run(inputs, **kwargs)
            outputs: Sequence[Any] = [by_name[name] for name in names]
        else:
            found = self.module["main"](*(inputs if isinstance(inputs, (list, tuple)) else [inputs]), **kwargs)
            outputs = found if isinstance(found, tuple) else [found]  # a list is a sequence
        return namedtupledict("Outputs", names)(*outputs)


class RelaycBackend(Backend):
    """Compiles models, and single nodes, for the CPU."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether relayc compiles for `device` ("CPU", "CUDA:1")."""
        return device.partition(":")[0] == "CPU"

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether `prepare` takes a model: it is imported, but not compiled."""
        try:
            from_onnx(model)
        except OnnxError:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> RelaycRep:
        """Compiles a model.

        Args:
          kwargs: arguments of `relayc.compile`, such as `shapes`, `dims` and `opt_level`.

        Raises:
          OnnxError: a model that relayc cannot import. ValueError: another device than the CPU.
        """
        if not cls.supports_device(device):
            raise ValueError(f"device: expected CPU, found {device!r}")
        return RelaycRep(compile(model, **kwargs))

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """The outputs of one node.

        Args:
          inputs: arrays in the order of the inputs that the node names, or by name; a list of arrays is a sequence.
          outputs_info: not needed.
          kwargs: `opset_version`, the operator set of the node's domain (by default the newest); the rest are arguments of `prepare`.

        Raises as `prepare` and `run_model`.
        """
        opset = kwargs.pop("opset_version", NEWEST_OPSET)
        names = list(dict.fromkeys(name for name in node.input if name))
        given = [inputs[name] for name in names] if isinstance(inputs, Mapping) else list(inputs)
        given = [value if _is_sequence(value) else np.asarray(value) for value in given]
        values = [onnx.helper.make_value_info(name, _type_of(value)) for name, value in zip(names, given, strict=True)]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", values, results)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
        return cls.prepare(model, device, **kwargs).run(given)


is_compatible = RelaycBackend.is_compatible
prepare = RelaycBackend.prepare
run_model = RelaycBackend.run_model
run_node = RelaycBackend.run_node
supports_device = RelaycBackend.supports_device
