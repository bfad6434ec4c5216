"""Every intermediate shape of a model that is imported with symbolic dimensions, at several sizes, against ONNX Runtime."""

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from relayc.dialects.relay.scopes import check_scopes
from relayc.dialects.relay.types import TensorType
from relayc.frontend.onnx import from_onnx
from relayc.symbolic import evaluate, symbols_of


def all_outputs(model):
    """A copy of a model whose outputs are the results of all its nodes."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = min(model.ir_version, 10)  # ONNX Runtime takes no newer ones
    there = {output.name for output in copy.graph.output}
    for node in model.graph.node:
        copy.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in node.output if n and n not in there)
    return copy


def imported(model, **arguments):
    """The module of a model, whose symbols all have values where they are used."""
    mod = from_onnx(model, **arguments)
    mod.verify()
    with mod.context, mod.ranges:
        check_scopes(mod.module)
    return mod


def results(mod):
    """The results of main by name."""
    block = mod.main.regions[0].blocks[0]
    returned = block.operations[len(block.operations) - 1].operation.operands
    return dict(zip([a["relay.name"].value for a in mod.main.attributes["res_attrs"]], returned, strict=True))


def shapes(mod):
    """The shapes of the results of main, by name, as texts."""
    return {name: [str(d) for d in TensorType.of(value).shape] for name, value in results(mod).items()}


def contents(mod, value, sizes):
    """The elements of a value that is made of sizes alone; None for any other."""
    known = mod.value_of(value)
    if known is not None:
        return known
    op = value.owner.opview if hasattr(value.owner, "opview") else value.owner
    name = getattr(op, "relay_name", "")
    operands = [contents(mod, v, sizes) for v in op.operation.operands] if name in ("reshape", "cast", "divide") else []
    if name == "sizes":
        return np.array([evaluate(v, sizes) for v in op.values])
    if not operands or any(o is None for o in operands):
        return None
    if name == "divide":
        return operands[0] / operands[1]
    return operands[0].reshape([evaluate(d, sizes) for d in TensorType.of(value).shape]) if name == "reshape" else operands[0]


def check_shapes(model, *every, feeds=None, **arguments):
    """Compares all shapes, and the contents of tensors of sizes, at some sizes by name; gives the number of both that were compared.

    `feeds` gives inputs whose values matter, by the sizes. A shape that data decide is left out.
    """
    wide = all_outputs(model)
    mod = imported(wide, **arguments)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(wide.SerializeToString(), options, providers=["CPUExecutionProvider"])
    block = mod.main.regions[0].blocks[0]
    types = {a["relay.name"].value: TensorType.of(v) for a, v in zip(mod.main.attributes["arg_attrs"], block.arguments, strict=True)}
    rng = np.random.default_rng(0)
    compared = known = 0
    for sizes in every:
        feed = {}
        for name, type_ in types.items():
            shape = [evaluate(d, sizes) for d in type_.shape]
            values = rng.standard_normal(shape) if type_.is_float else rng.integers(0, 2, shape)
            feed[name] = np.asarray(values).astype(type_.dtype)
        feed |= feeds(sizes) if feeds else {}
        found = results(mod)
        for (name, value), wanted in zip(found.items(), session.run(list(found), feed), strict=True):
            type_ = TensorType.of(value)
            if not type_.symbols <= sizes.keys():
                continue
            assert tuple(evaluate(d, sizes) for d in type_.shape) == wanted.shape, f"{name}: {type_} at {sizes}"
            compared += 1
            made = contents(mod, value, sizes) if wanted.size <= 64 else None
            if made is not None:
                np.testing.assert_allclose(made, wanted, rtol=1e-6, err_msg=name)  # quotients of whole numbers in float32
                known += 1
    return compared, known


def symbols(mod):
    """Names of the symbols in the types of main's arguments."""
    return {n for a in mod.main.regions[0].blocks[0].arguments for d in TensorType.of(a).shape for n in symbols_of(d)}
