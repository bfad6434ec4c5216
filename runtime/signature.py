"""How a program is called with nested arguments: which of its inputs and outputs are which parts of what the caller gives and gets.

A model that came in with a signature (relayc.from_pytorch) is called as it was in Python: `module(*args, **kwargs)`, with tuples, lists and
dictionaries of tensors, and gives what it gave there. Tensors of torch go in and come out without a copy; torch is not imported for that.

A structure is plain data: a number is that leaf, None is None, and ["tuple", [...]], ["list", [...]] and ["dict", [[key, ...], ...]] hold
others; ["named", [class, [...]]] is a tuple of a class, a plain one where its class is not there. Of other structures ["torch", [text,
first leaf]] has torch's own text.
"""

import functools
import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from relayc.nearest import nearest
from relayc.runtime.artifact import TensorSpec
from relayc.runtime.tensor import from_torch, is_torch, of_parts, parts_of, to_torch

Structure = Any
"""See the module."""

INITIAL_STATE = "initial_state"
"""The program of a module that gives the tensors of its state at first."""

_CONTAINERS = {"tuple": tuple, "list": list}


@dataclass(frozen=True)
class Signature:
    """How `main` is called.

    Attributes:
      names: of the positional arguments, by which they may be given, too.
      arguments: structure of (args, kwargs).
      inputs: for each input of `main`, the leaf of the arguments, or the name of a tensor of the module's state.
      constants: leaves that are no tensors, and the value that each was exported with.
      results: structure of what a call gives.
      outputs: for each leaf of the results: ["result", i] is output i of `main`, ["input", i] leaf i of the arguments, ["constant", value]
        that value; ["int", i], ["float", i] and ["bool", i] are the number in output i.
      complex: leaves of complex numbers, of which `main` takes the parts along a last axis; ["complex", i] are such numbers from output i.
      written: outputs of `main` that are written to a leaf of the arguments, or to the state: [output, leaf or name].
      is_torch: whether results are torch tensors where no argument is a tensor.
    """

    names: tuple[str, ...]
    arguments: Structure
    inputs: tuple[int | str, ...]
    constants: tuple[tuple[int, Any], ...]
    results: Structure
    outputs: tuple[tuple[str, Any], ...]
    written: tuple[tuple[int, int | str], ...] = ()
    complex: tuple[int, ...] = ()
    is_torch: bool = False

    @staticmethod
    def read(text: str) -> "Signature":
        """Of the text that `text` gives. Raises ValueError, KeyError or TypeError for another text."""
        found = json.loads(text)
        pairs = {name: tuple(tuple(pair) for pair in found[name]) for name in ("constants", "outputs", "written")}
        return Signature(**{**found, **pairs, **{k: tuple(found.get(k, ())) for k in ("names", "inputs", "complex")}})

    @property
    def text(self) -> str:
        """As text, for files."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @property
    def state(self) -> tuple[str, ...]:
        """Names of the inputs that are the module's state, in order."""
        return tuple(name for name in self.inputs if isinstance(name, str))

    @functools.cached_property
    def plain(self) -> int:
        """The number of arguments of a program that takes tensors in order, and gives tensors in order; -1 for any other."""
        _, ((_, positional), (_, named)) = self.arguments
        count, results = len(positional), [self.results] if isinstance(self.results, int) else self.results and self.results[1]
        has_more = named or self.constants or self.written or self.complex
        ordered = positional == list(range(count)) and self.inputs == tuple(range(count)) and not has_more
        is_flat = isinstance(self.results, int) or (self.results is not None and self.results[0] == "tuple")
        given = is_flat and results == list(range(len(self.outputs))) and self.outputs == tuple(("result", i) for i in results)
        return count if ordered and given and count else -1

    def leaves(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The leaves of the arguments. Raises TypeError if their structure differs."""
        _, (positional, named) = self.arguments
        count, order = len(positional[1]), [key for key, _ in named[1]]
        if kwargs:
            missing = self.names[len(args) : count]
            if all(name in kwargs for name in missing):
                args = (*args, *(kwargs[name] for name in missing))
                kwargs = {name: value for name, value in kwargs.items() if name not in missing}
        unknown = [name for name in kwargs if name not in order]
        if unknown:
            every = [*self.names[len(args) :], *order]
            raise TypeError(f"expected arguments named {', '.join(every) or 'nothing'}, found {unknown[0]!r}{nearest(unknown[0], every)}")
        lacking = [*self.names[len(args) : count], *(name for name in order if name not in kwargs)]
        if len(args) != count or lacking:
            raise TypeError(
                f"expected {count} arguments in order, found {len(args)}" + (f": {', '.join(lacking)} missing" if lacking else "")
            )
        found: list[Any] = []
        for i, (structure, value) in enumerate(zip(positional[1], args, strict=True)):
            found += _leaves(structure, value, self.names[i] if i < len(self.names) else f"argument {i}")
        for name, structure in named[1]:
            found += _leaves(structure, kwargs[name], name)
        for i, expected in self.constants:
            if type(found[i]) is not type(expected) or found[i] != expected:
                raise ValueError(f"leaf {i} of the arguments: expected {expected!r}, as the model was exported with, found {found[i]!r}")
        return found

    def given(self, leaves: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """The result of a call, built from the leaves of its arguments and the outputs of `main`."""
        values = [_VALUES[kind](where, leaves, outputs) for kind, where in self.outputs]
        return _built(self.results, values)


def _leaves(structure: Structure, value: Any, what: str) -> Iterator[Any]:
    if isinstance(structure, int):
        yield value
    elif structure is None:
        if value is not None:
            raise TypeError(f"{what}: expected None, as the model was exported with, found {type(value).__name__}")
    elif structure[0] == "torch":
        yield from _torch_leaves(structure[1][0], value, what)
    elif structure[0] == "named":
        yield from _leaves(["tuple", structure[1][1]], value, what)
    else:
        kind, parts = structure
        class_ = dict if kind == "dict" else _CONTAINERS[kind]
        if not isinstance(value, class_) or len(value) != len(parts):
            found = f" of {len(value)}" if isinstance(value, (tuple, list, dict)) else ""
            raise TypeError(f"{what}: expected a {kind} of {len(parts)}, found a {type(value).__name__}{found}")
        if kind == "dict":
            absent = [key for key, _ in parts if key not in value]
            if absent:
                raise TypeError(f"{what}: expected the key {absent[0]!r}, found {', '.join(map(repr, value))}")
            for key, part in parts:
                yield from _leaves(part, value[key], f"{what}[{key!r}]")
        else:
            for i, part in enumerate(parts):
                yield from _leaves(part, value[i], f"{what}[{i}]")


def _torch_leaves(text: str, value: Any, what: str) -> Sequence[Any]:
    from torch.utils import _pytree

    leaves, found = _pytree.tree_flatten(value)
    expected = _pytree.treespec_loads(text)
    if found != expected:
        raise TypeError(f"{what}: expected {expected}, found {found}")
    return leaves


def _built(structure: Structure, values: Sequence[Any]) -> Any:
    if isinstance(structure, int):
        return values[structure]
    if structure is None:
        return None
    kind, parts = structure
    if kind == "named":
        built = [_built(part, values) for part in parts[1]]
        class_ = _class_of(parts[0])
        return tuple(built) if class_ is None else class_(*built) if hasattr(class_, "_fields") else class_(built)
    if kind == "torch":
        from torch.utils import _pytree

        text, first = parts
        spec = _pytree.treespec_loads(text)
        return _pytree.tree_unflatten(values[first : first + spec.num_leaves], spec)
    if kind == "dict":
        return {key: _built(part, values) for key, part in parts}
    return _CONTAINERS[kind](_built(part, values) for part in parts)


def _class_of(name: str) -> Any:
    """The class of a name "module:class"; None if it does not exist."""
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return found


_VALUES = {
    "result": lambda where, leaves, outputs: outputs[where],
    "complex": lambda where, leaves, outputs: of_parts(outputs[where]),
    "input": lambda where, leaves, outputs: leaves[where],
    "constant": lambda where, leaves, outputs: where,
    **dict.fromkeys(("int", "float", "bool"), lambda where, leaves, outputs: outputs[where].item()),
}


def call(signature: Signature, function: Any, on_host: bool, state: dict[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Calls `main` as its signature says. Writes what the model writes: to arguments in place, to the state a new array.

    Raises TypeError or ValueError for arguments of another structure, and as the function does.
    """
    if on_host and len(args) == signature.plain and not kwargs and all(map(is_torch, args)):
        found = function(*map(from_torch, args))
        if isinstance(signature.results, int):
            return to_torch(found)
        return tuple(map(to_torch, found if isinstance(found, tuple) else (found,)))
    leaves = signature.leaves(args, kwargs)
    lacking = [name for name in signature.state if name not in state]
    if lacking:
        raise ValueError(
            f"state: expected the tensors {', '.join(signature.state)}, found none for {lacking[0]}: set module.state[{lacking[0]!r}]"
        )
    parts = {i: parts_of(leaves[i]) for i in signature.complex}
    given = [state[i] if isinstance(i, str) else parts[i] if i in parts else leaves[i] for i in signature.inputs]
    as_torch = any(map(is_torch, leaves))
    if not as_torch and signature.is_torch and "torch" in sys.modules:
        as_torch = not any(isinstance(value, np.ndarray) for value in leaves)
    if on_host:
        found = function(*[_array(value, spec) for value, spec in zip(given, function.inputs, strict=True)])
    else:
        found = function(*given, wrap=sys.modules["torch"].from_dlpack) if as_torch else function(*given)
    outputs = list(found) if isinstance(found, tuple) else [found]
    if as_torch and on_host:
        outputs = [to_torch(array) for array in outputs]
    for i, target in signature.written:
        if isinstance(target, int):
            _write(leaves[target], outputs[i])
        elif is_torch(state[target]):
            state[target].copy_(outputs[i] if is_torch(outputs[i]) else to_torch(outputs[i]))
        else:
            state[target] = from_torch(outputs[i]) if is_torch(outputs[i]) else outputs[i]
    return signature.given(leaves, outputs)


def _array(value: Any, spec: TensorSpec) -> Any:
    if is_torch(value):
        return from_torch(value)
    return np.asarray(value, spec.dtype) if isinstance(value, (int, float)) and not spec.shape else value


def _write(target: Any, value: Any) -> None:
    if is_torch(target):
        target.copy_(value)
    elif isinstance(target, np.ndarray):
        target[...] = from_torch(value) if is_torch(value) else value
    else:
        raise TypeError(f"expected an argument that can be written to, as the model writes to it, found {type(target).__name__}")
