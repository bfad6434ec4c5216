"""A program of the te stage around one kernel, so that the kernel can be compiled by itself."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from relayc.dialects.discardable import INPUT_DTYPES, NAME, OUTPUT_DTYPES, PARAM, SEVEN_BITS, STAGE
from relayc.dialects.functions import Names, calls_others, signature_of, symbol_name, value_attributes, value_names
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.elements import has_seven_bits
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType, dtype_of
from relayc.dialects.tir.names import FORM
from relayc.pipelines.emission.sizes import symbol_attributes, symbol_names, tensor_count
from relayc.pipelines.program.functions import dtypes_of, specs_of
from relayc.pipelines.te.signature import te_array

Source: TypeAlias = str | IRModule | ir.OpView | ir.Operation


def kernel_program(kernel: Source, name: str | None, params: Mapping[int, np.ndarray]) -> tuple[IRModule, str]:
    """A new te module of one kernel and a public program that calls it; also returns the name of the kernel.

    Args:
      kernel: a function over tensors, or of blocks and loops, as text, as an operation, or in a module; it is not changed.
      name: of the function, if there are several.
      params: arguments that are parameters, by position.

    Raises:
      RelayError: no such function, or its arguments are not tensors of static or symbolic sizes; a parameter that does not fit; text that
        does not parse.
      TypeError: `kernel` has another type.
    """
    mod = parsed(kernel, "compile_kernel")
    if any(FORM in op.attributes for op in mod.module.body.operations):
        from relayc.pipelines.tir.schedule.written import stand_in

        stand_in(mod)
    with mod.context, ir.Location.unknown():
        function = _find(mod.module, name)
        for op in [op for op in mod.module.body.operations if isinstance(op, func.FuncOp) and symbol_name(op) != symbol_name(function)]:
            op.operation.erase()
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        _mark(function, params)
        found = symbol_name(function)
        _call(mod, function, params, Names(mod.module).free(f"{found}_program"))
    mod.verify()
    return mod, found


def written_in_te(mod: IRModule) -> bool:
    """Whether a module was written in the te stage."""
    attributes = mod.module.operation.attributes
    return STAGE.on(attributes) and STAGE.of(attributes) == "te"


def te_program(mod: IRModule) -> IRModule:
    """A module of the te stage as a program: a single function that is a kernel becomes private, and a program of its name calls it.

    Raises RelayError for a function whose arguments are not tensors of static or symbolic sizes.
    """
    with mod.context, ir.Location.unknown(), mod.ranges:
        found = [op for op in mod.module.body.operations if isinstance(op, func.FuncOp) and not op.is_external]
        if len(found) == 1 and not calls_others(found[0]):
            kernel, name = _find(mod.module, None), symbol_name(found[0])
            kernel.attributes["sym_name"] = ir.StringAttr.get(Names(mod.module).free(f"{name}_kernel"))
            kernel.attributes["sym_visibility"] = ir.StringAttr.get("private")
            _mark(kernel, {})
            _call(mod, kernel, {}, name)
            mod.verify()
    return mod


def parsed(kernel: Source, what: str) -> IRModule:
    """Kernels in a module of their own; errors begin with `what`. Raises RelayError for text that does not parse, TypeError for other
    types."""
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
        and all(isinstance(t, ir.RankedTensorType) for t in (*_tensors_of(op), *signature_of(op).results))
        and len(signature_of(op).results)
        and name in (None, symbol_name(op))
        and (name is not None or not calls_others(op))
    ]
    if len(found) != 1:
        names = ", ".join(f"@{symbol_name(op)}" for op in found) or "none"
        wanted = "one function over tensors that calls no other (name= says which)" if name is None else f"a function @{name} over tensors"
        raise RelayError(f"compile_kernel: expected {wanted}, found {names}")
    inputs = _tensors_of(found[0])
    symbols = set(symbol_names(found[0]))
    for i, type_ in enumerate((*inputs, *signature_of(found[0]).results)):
        tensor = TensorType.from_mlir(type_)
        if not tensor.is_known or not tensor.symbols.issubset(symbols):
            where = f"argument {i}" if i < len(inputs) else f"result {i - len(inputs)}"
            wanted = "sizes that are numbers or symbols that the function takes"
            raise RelayError(f"compile_kernel: @{symbol_name(found[0])}: {where}: expected {wanted}, found {type_}")
    return found[0]


def _tensors_of(function: ir.OpView) -> list[ir.Type]:
    """The types of a function's arguments before its symbols."""
    return list(signature_of(function).inputs)[: tensor_count(function)]


def _mark(function: ir.OpView, params: Mapping[int, np.ndarray]) -> None:
    """Checks the parameters, and marks the arguments that are parameters."""
    name, specs = symbol_name(function), specs_of(function, "input")
    given = value_attributes(function)
    arguments = [{named.name: named.attr for named in a} for a in given]
    for i, array in params.items():
        if not isinstance(i, int) or not 0 <= i < len(specs):
            raise RelayError(f"compile_kernel: params: expected positions of arguments of @{name} below {len(specs)}, found {i!r}")
        if not isinstance(array, np.ndarray) or array.shape != specs[i].shape or dtype_of(array) != specs[i].dtype:
            found = f"{array.dtype.name}{list(array.shape)}" if isinstance(array, np.ndarray) else repr(array)
            raise RelayError(f"compile_kernel: params: argument {i} of @{name}: expected an array {specs[i]}, found {found}")
        arguments[i].update(PARAM.entry())
        if not has_seven_bits(array):
            arguments[i].pop(SEVEN_BITS.name, None)
    missing = [i for i, attributes in enumerate(arguments) if PARAM.on(attributes) and i not in params]
    if missing:
        raise RelayError(f"compile_kernel: params: expected the parameters of @{name} (relay.param), found none for argument {missing[0]}")
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(attributes) for attributes in arguments])


def _call(mod: IRModule, kernel: ir.OpView, params: Mapping[int, np.ndarray], program: str) -> None:
    """Builds the public program of a name that calls the kernel."""
    signature, name = signature_of(kernel), symbol_name(kernel)
    count, symbols = tensor_count(kernel), symbol_names(kernel)
    inputs = [i for i in range(count) if i not in params]
    with ir.InsertionPoint(mod.module.body):
        types = [*(signature.inputs[i] for i in inputs), *[ir.IndexType.get()] * len(symbols)]
        function = func.FuncOp(program, (types, list(signature.results)))
    given, made = dtypes_of(kernel, "input"), dtypes_of(kernel, "output")
    INPUT_DTYPES.put(function, tuple(given[i] for i in inputs))
    OUTPUT_DTYPES.put(function, tuple(made))
    arguments, results = ([NAME.get(a) for a in value_attributes(kernel, which)] for which in ("arg_attrs", "res_attrs"))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [*value_names([arguments[i] or f"arg{i}" for i in inputs]), *symbol_attributes(symbols)]
    )
    function.attributes["res_attrs"] = value_names([text or f"output{i}" for i, text in enumerate(results)])
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        values = dict(zip(inputs, list(block.arguments)[: len(inputs)], strict=True))
        for i, array in params.items():
            type_ = TensorType.from_mlir(signature.inputs[i])
            key = mod.add_param(te_array(array), f"arg{i}")
            values[i] = Constant(value=ir.StringAttr.get(key), shape=type_.shape, dtype=type_.dtype).result
        operands = [*(values[i] for i in range(count)), *list(block.arguments)[len(inputs) :]]
        func.ReturnOp(list(func.CallOp(list(signature.results), ir.FlatSymbolRefAttr.get(name), operands).operation.results))
