"""A program of the te stage around one kernel, which makes the kernel a thing that can be compiled by itself."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from relayc.dialects.functions import Names, signature_of, strings_attribute, symbol_name, value_attributes
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType, dtype_of
from relayc.pipelines.program.functions import dtypes_of, specs_of
from relayc.pipelines.te.signature import te_array

Source: TypeAlias = str | IRModule | ir.OpView | ir.Operation


def kernel_program(kernel: Source, name: str | None, params: Mapping[int, np.ndarray]) -> tuple[IRModule, str]:
    """A new te module of one kernel and a public program that calls it; gives the name of the kernel, too.

    Args:
      kernel: a function over tensors, as text, as an operation, or in a module; it stays as it is.
      name: of the function, where there are several.
      params: arguments that are parameters, by position.

    Raises:
      RelayError: there is no such function, or it is none over static tensors; a parameter that does not fit; text that does not parse.
      TypeError: `kernel` is none of these.
    """
    mod = parsed(kernel, "compile_kernel")
    with mod.context, ir.Location.unknown():
        function = _find(mod.module, name)
        for op in [op for op in mod.module.body.operations if isinstance(op, func.FuncOp) and symbol_name(op) != symbol_name(function)]:
            op.operation.erase()
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        _mark(function, params)
        found = symbol_name(function)
        _call(mod, function, params)
    mod.verify()
    return mod, found


def parsed(kernel: Source, what: str) -> IRModule:
    """Kernels in a module of their own; errors begin with `what`. Raises RelayError for text that does not parse, TypeError for what is no
    kernel."""
    if isinstance(kernel, IRModule):
        kernel = kernel.module.operation
    elif isinstance(kernel, ir.Module):
        kernel = kernel.operation
    if isinstance(kernel, (ir.OpView, ir.Operation)):
        kernel = kernel.get_asm(enable_debug_info=True)
    if not isinstance(kernel, str):
        raise TypeError(f"{what}: expected a function of the te stage as MLIR text, an operation or a module, found {kernel!r}")
    try:
        return IRModule.parse(kernel)
    except ir.MLIRError as e:
        raise RelayError(f"{what}: expected MLIR text of the te stage: {e}") from None


def _find(module: ir.Module, name: str | None) -> ir.OpView:
    """The function to compile."""
    found = [
        op
        for op in module.body.operations
        if isinstance(op, func.FuncOp)
        and not op.is_external
        and all(isinstance(t, ir.RankedTensorType) for t in (*signature_of(op).inputs, *signature_of(op).results))
        and len(signature_of(op).results)
        and name in (None, symbol_name(op))
        and (name is not None or not any(inner.operation.name == "func.call" for inner in op.regions[0].blocks[0].operations))
    ]
    if len(found) != 1:
        names = ", ".join(f"@{symbol_name(op)}" for op in found) or "none"
        wanted = "one function over tensors that calls no other (name= says which)" if name is None else f"a function @{name} over tensors"
        raise RelayError(f"compile_kernel: expected {wanted}, found {names}")
    signature = signature_of(found[0])
    for i, type_ in enumerate((*signature.inputs, *signature.results)):
        if not type_.has_static_shape:
            where = f"argument {i}" if i < len(signature.inputs) else f"result {i - len(signature.inputs)}"
            raise RelayError(f"compile_kernel: @{symbol_name(found[0])}: {where}: expected a static shape, found {type_}")
    return found[0]


def _mark(function: ir.OpView, params: Mapping[int, np.ndarray]) -> None:
    """Checks the parameters, and marks the arguments that they are."""
    name, specs = symbol_name(function), specs_of(function, "input")
    given = value_attributes(function)
    arguments = [{named.name: named.attr for named in a} for a in given]
    for i, array in params.items():
        if not isinstance(i, int) or not 0 <= i < len(specs):
            raise RelayError(f"compile_kernel: params: expected positions of arguments of @{name} below {len(specs)}, found {i!r}")
        if not isinstance(array, np.ndarray) or array.shape != specs[i].shape or dtype_of(array) != specs[i].dtype:
            found = f"{array.dtype.name}{list(array.shape)}" if isinstance(array, np.ndarray) else repr(array)
            raise RelayError(f"compile_kernel: params: argument {i} of @{name}: expected an array {specs[i]}, found {found}")
        arguments[i]["relay.param"] = ir.UnitAttr.get()
    missing = [i for i, attributes in enumerate(arguments) if "relay.param" in attributes and i not in params]
    if missing:
        raise RelayError(f"compile_kernel: params: expected the parameters of @{name} (relay.param), found none for argument {missing[0]}")
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(attributes) for attributes in arguments])


def _call(mod: IRModule, kernel: ir.OpView, params: Mapping[int, np.ndarray]) -> None:
    """Builds the public program that calls the kernel."""
    signature, name = signature_of(kernel), symbol_name(kernel)
    inputs = [i for i in range(len(signature.inputs)) if i not in params]
    program = Names(mod.module).free(f"{name}_program")
    with ir.InsertionPoint(mod.module.body):
        function = func.FuncOp(program, ([signature.inputs[i] for i in inputs], list(signature.results)))
    given, made = dtypes_of(kernel, "input"), dtypes_of(kernel, "output")
    dtypes = {"input": [given[i] for i in inputs], "output": made}
    for which, names in dtypes.items():
        function.attributes[f"relay.{which}_dtypes"] = strings_attribute(names)
    function.arg_attrs = [ir.DictAttr.get({"relay.name": ir.StringAttr.get(f"arg{i}")}) for i in inputs]
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        values = dict(zip(inputs, block.arguments, strict=True))
        for i, array in params.items():
            type_ = TensorType.from_mlir(signature.inputs[i])
            key = mod.add_param(te_array(array), f"arg{i}")
            values[i] = Constant(value=ir.StringAttr.get(key), shape=type_.shape, dtype=type_.dtype).result
        operands = [values[i] for i in range(len(signature.inputs))]
        func.ReturnOp(list(func.CallOp(list(signature.results), ir.FlatSymbolRefAttr.get(name), operands).operation.results))
