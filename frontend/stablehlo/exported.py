"""What jax.export gives as modules: inputs and their symbolic sizes, nested arguments, and the program."""

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relayc.dialects.discardable import SIGNATURE
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType
from relayc.frontend.converter import ModelBuilder, Tensor, constant
from relayc.frontend.dimensions import Declared, free_name, input_shapes
from relayc.frontend.errors import ModelError
from relayc.frontend.registry import Progress
from relayc.frontend.stablehlo.program import Program
from relayc.frontend.stablehlo.registry import declared, whole

BYTECODE = b"ML\xefR"
"""How bytecode of MLIR begins."""


def parsed(program: str | bytes | bytearray) -> Any:
    """A program as a module of JAX's bindings of MLIR. Raises ModelError if it is not a program."""
    from jax.extend.mlir import ir
    from jax.extend.mlir.dialects import stablehlo
    from jax.interpreters.mlir import make_ir_context

    context = make_ir_context()
    try:
        with context:
            if isinstance(program, str):
                return ir.Module.parse(program)
            if b"StableHLO_v" in bytes(program[:64]):
                return stablehlo.deserialize_portable_artifact(context, bytes(program))
            return ir.Module.parse(bytes(program))
    except (ir.MLIRError, ValueError) as error:
        raise ModelError(f"expected a program of StableHLO, found text that does not parse: {error}") from None


def import_module(
    module: Any,
    shapes: Mapping[str, Any] | None,
    dims: Mapping[str, Any] | None,
    progress: Progress | None,
    names: Sequence[str] | None = None,
    own: Sequence[Declared] | None = None,
    signature: dict[str, Any] | None = None,
) -> IRModule:
    """A module of StableHLO as a module of relayc.

    Args:
      names: names of the inputs; None for the names in the module.
      own: texts of the sizes of inputs; None for texts from the names of the inputs and axes.
      signature: how `main` is called with nested arguments.
    """
    program = Program(module, progress)
    main = program.main
    program.check()
    arguments = list(main.regions[0].blocks[0].arguments)
    given = _argument_names(arguments) if names is None else list(names)
    found = [_declared(name, argument.type) for name, argument in zip(given, arguments, strict=True)]
    texts = {
        name: [text if size is None else size for size, text in zip(shape, texts or [""] * len(shape), strict=True)]
        for name, (shape, _), texts in zip(given, found, own or [None] * len(given), strict=True)
    }
    inputs = input_shapes(texts, shapes or {}, dims or {})
    types = {name: TensorType(inputs.shapes[name], dtype) for name, (_, dtype) in zip(given, found, strict=True)}
    with ModelBuilder(types, ranges=inputs.ranges) as builder:
        results = [whole(value) for value in program.call(main.attributes["sym_name"].value, list(builder.inputs.values()))]
        wrong = next((i for i, value in enumerate(results) if not isinstance(value, Tensor)), None)
        if wrong is not None:
            raise ModelError(f"output {wrong}: expected real numbers, found complex ones")
        made = [(f"output_{i}", value) for i, value in enumerate(results)] or [("nothing", constant(0, "int64"))]
        built = builder.finish(made)
        if signature is not None:
            SIGNATURE.put(built.module.operation, json.dumps(signature))
    return built


def _declared(name: str, mlir_type: Any) -> tuple[tuple[int | None, ...], str]:
    found = declared(mlir_type)
    if found is None or found[1] == "complex":
        raise ModelError(f"input {name}: expected a tensor of real numbers, found {mlir_type}")
    return found


def _argument_names(arguments: Sequence[Any]) -> list[str]:
    """The names of arguments, from their locations."""
    found: list[str] = []
    for i, argument in enumerate(arguments):
        text = re.match(r'loc\("([^"]+)"(?!:)', str(argument.location))
        found.append(free_name(text[1] if text else f"arg{i}", found))
    return found


# ---- jax.export -------------------------------------------------------------------------------------------------------------------------


def import_exported(
    exported: Any,
    shapes: Mapping[str, Any] | None,
    dims: Mapping[str, Any] | None,
    progress: Progress | None,
    function: Callable[..., Any] | None = None,
    names: Sequence[str] = (),
) -> IRModule:
    """A jax.export.Exported as a module; inputs are called by `names`, or as the parameters of `function` are."""
    import jax

    leaves = jax.tree_util.tree_flatten_with_path(jax.tree_util.tree_unflatten(exported.in_tree, range(len(exported.in_avals))))[0]
    args, kwargs = jax.tree_util.tree_unflatten(exported.in_tree, range(len(exported.in_avals)))
    positional = _parameters(function, len(args))
    found: list[str] = []
    for (path, _), given in zip(leaves, names or [""] * len(leaves), strict=True):
        side, *rest = path
        keys = [_key(k) for k in rest]
        if side.idx == 0 and rest and positional[rest[0].idx]:
            keys[0] = positional[rest[0].idx]
        own = "_".join(keys) if side.idx == 1 or not keys[0].isdigit() else f"arg{'_'.join(keys)}"
        found.append(free_name(given or own, found))
    kept = list(exported.module_kept_var_idx)
    texts = [[str(d).replace(" ", "") for d in exported.in_avals[i].shape] for i in kept]
    sizes: list[Declared] = [[_size_text(d) for d in shape] for shape in texts]
    signature = {
        "names": [name or f"arg{i}" for i, name in enumerate(positional)],
        "arguments": ["tuple", [_structure(args), _structure(kwargs)]],
        "inputs": kept,
        "constants": [],
        "results": _structure(jax.tree_util.tree_unflatten(exported.out_tree, range(len(exported.out_avals)))),
        "outputs": [("result", i) for i in range(len(exported.out_avals))],
        "written": [],
    }
    plain = _is_plain(signature["arguments"]) and _is_plain(signature["results"])
    module = parsed(exported.mlir_module_serialized)
    return import_module(module, shapes, dims, progress, [found[i] for i in kept], sizes, signature if plain else None)


def _size_text(text: str) -> str:
    """A size of JAX as relayc writes it: floordiv(a, b) is a // b."""
    found = re.fullmatch(r"floordiv\((\w+),(\d+)\)", text)
    return f"{found[1]}//{found[2]}" if found else text


def _parameters(function: Callable[..., Any] | None, count: int) -> list[str]:
    """Names of the positional parameters of a function; empty strings if unknown."""
    try:
        parameters = inspect.signature(function).parameters.values() if function is not None else ()
    except (TypeError, ValueError):
        parameters = ()
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return (named + [""] * count)[:count]


def _key(key: Any) -> str:
    """A step of a path in nested arguments."""
    return str(next(getattr(key, name) for name in ("key", "idx", "name") if hasattr(key, name)))


def _structure(value: Any) -> Any:
    """A structure of relayc.runtime.signature, whose leaves are numbers."""
    if isinstance(value, int) or value is None:
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        class_ = type(value)
        return ["named", [f"{class_.__module__}:{class_.__qualname__}", [_structure(v) for v in value]]]
    if type(value) in (tuple, list):
        return [type(value).__name__, [_structure(v) for v in value]]
    if type(value) is dict and all(isinstance(k, (str, int)) for k in value):
        return ["dict", [[k, _structure(v)] for k, v in value.items()]]
    return ["unknown", []]


def _is_plain(structure: Any) -> bool:
    """Whether every part of a structure is of a known kind."""
    if isinstance(structure, int) or structure is None:
        return True
    kind, parts = structure
    if kind == "unknown":
        return False
    if kind == "dict":
        return all(_is_plain(part) for _, part in parts)
    return all(map(_is_plain, parts[1] if kind == "named" else parts))
