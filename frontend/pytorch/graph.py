"""FX graphs of torch's operators as operators of the relay dialect.

Sizes and dtypes come from the graph's fake tensors: a node whose value is a number of sizes *is* its expression, and nothing of shapes is
converted. Every result is compared with what torch says of it; where sizes are other expressions, that they are equal is checked when the
program runs. A size that only data says (of `nonzero`, of `item`) is a symbol, which the converter's result defines.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from relayc.frontend.common.complex import Pair, as_pair
from relayc.frontend.converter import Tensor, assume, at_node
from relayc.frontend.errors import ModelError, UnsupportedOperators
from relayc.frontend.pytorch import control
from relayc.frontend.pytorch import families as _families  # noqa: F401 (they register converters)
from relayc.frontend.pytorch.registry import Converter, Node, call, converting, find, plain_name
from relayc.frontend.pytorch.values import DTYPES, PARTS, Symbols, element_dtype, expression_of, is_complex, is_expression, weight
from relayc.frontend.steps import filled

_IGNORED = ("aten._assert", "aten.sym_constrain_range", "aten._functional_assert", "aten._functional_sym_constrain", "aten._linalg_check")
"""Operators without results: what they state of sizes is in the ranges of symbols, or checked by what relies on it."""

_SYMBOLIC = (FakeTensor, torch.SymInt, torch.SymFloat, torch.SymBool)


def user_line(found: Any) -> str:
    """The line of the model's source that a node comes from; empty where the graph does not say."""
    text = found.meta.get("stack_trace") or ""
    own = Path(torch.__file__).parent
    lines = text.splitlines()
    places = [(i, line.strip()) for i, line in enumerate(lines) if line.strip().startswith('File "')]
    outside = [(i, line) for i, line in places if not line.split('"')[1].startswith(str(own))]
    for i, line in reversed(outside or places):
        path, number = line.split('"')[1], line.partition(", line ")[2].partition(",")[0]
        code = "".join(lines[i + 1 : i + 2]).strip()
        return f"{path}:{number}: {code}"
    return ""


def graphs_of(module: Any) -> Iterator[Any]:
    """The graph of a module, and those of the branches and bodies in it."""
    yield module.graph
    for name, part in module.named_children():
        if isinstance(part, torch.fx.GraphModule) and any(n.op == "get_attr" and n.target == name for n in module.graph.nodes):
            yield from graphs_of(part)


def check_operators(module: Any, own: Mapping[str, Converter]) -> None:
    """Raises UnsupportedOperators where the graphs of a module have any."""
    lacking = ((what, user_line(n)) for graph in graphs_of(module) for n in graph.nodes if (what := _lacking(n, own)) is not None)
    UnsupportedOperators.check(lacking, "give converters={NAME: function} for them")


def lacking_nodes(module: Any) -> set[str]:
    """Names of the nodes of a module's own graph that relayc lacks something for, in themselves or in their branches and bodies."""
    held = {n.name: getattr(module, n.target, None) for n in module.graph.find_nodes(op="get_attr")}
    parts = {name: list(graphs_of(part)) for name, part in held.items() if isinstance(part, torch.fx.GraphModule)}
    within = {name for name, graphs in parts.items() if any(_lacking(n, {}) for graph in graphs for n in graph.nodes)}
    return {n.name for n in module.graph.nodes if _lacking(n, {}) or any(a.name in within for a in n.all_input_nodes)}


def _lacking(found: Any, own: Mapping[str, Converter]) -> str | None:
    """What relayc lacks for a node, in words."""
    if found.op != "call_function" or _is_ignored(found):
        return None
    of_complex = _is_of_complex(found)
    if isinstance(found.target, torch._ops.HigherOrderOperator):
        return f"{found.target} of complex numbers" if of_complex else None if control.find(found.target) else f"{found.target}"
    if not isinstance(found.target, torch._ops.OpOverload) or is_expression(found.meta.get("val")):
        return None
    name = plain_name(found.target)
    if find(found.target, own, of_complex) is None:
        return f"{name} of complex numbers" if of_complex and find(found.target, own) else name
    wrong = {f.dtype for f in _results(found) if isinstance(f, torch.Tensor)} - {*DTYPES, *PARTS}
    return f"{name} of dtype {', '.join(sorted(str(dtype).removeprefix('torch.') for dtype in wrong))}" if wrong else None


def _results(found: Any) -> Sequence[Any]:
    """What torch says of the results of a node."""
    fakes = found.meta.get("val")
    return fakes if isinstance(fakes, (tuple, list)) else [fakes]


def _is_of_complex(found: Any) -> bool:
    """Whether a node takes or gives complex numbers."""
    return any(is_complex(fake) for n in (found, *found.all_input_nodes) for fake in _results(n))


def _is_ignored(found: Any) -> bool:
    if found.op == "output" or _defined(found):
        return False
    if is_expression(found.meta.get("val")):
        return all(map(_is_ignored, found.users))  # a number of sizes for statements of it alone
    return str(found.target).startswith(_IGNORED) or not found.users


def _defined(found: Any) -> dict[str, Any]:
    """Names of the symbols that a node defines, and the path of each in the node's result.

    Graphs of training rename the symbols of bindings, and have none for numbers of data in decompositions.
    """
    bindings, fake = found.meta.get("unbacked_bindings"), found.meta.get("val")
    if not bindings:
        is_number = found.target is torch.ops.aten._local_scalar_dense.default and is_expression(fake)
        return {str(expression_of(fake)): ()} if is_number else {}
    modes = (f.fake_mode if isinstance(f, FakeTensor) else f.node for f in _results(found) if isinstance(f, _SYMBOLIC))
    mode = next(modes, None)
    renamed = mode.shape_env.unbacked_renamings if mode is not None else {}
    return {str(renamed.get(name, name)): path for name, path in bindings.items()}


@dataclass
class Graphs:
    """The conversion of the graphs of a program, into the module that the ambient builder builds.

    Attributes:
      symbols: what stands for the symbols of the graphs.
      converters: the caller's own.
      progress: called before each node of the outermost graph.
    """

    symbols: Symbols
    converters: Mapping[str, Converter] = field(default_factory=dict)
    progress: Callable[[], None] = lambda: None

    def run(self, module: Any, inputs: Sequence[Any], is_outermost: bool = False) -> tuple[Any, ...]:
        """What a graph gives for values of its placeholders: Tensors, sizes, numbers and None."""
        env: dict[Any, Any] = {}
        given = iter(inputs)

        def value_of(arg: Any) -> Any:
            if isinstance(arg, torch.fx.Node):
                return env[arg]
            if isinstance(arg, (list, tuple)):
                return tuple(map(value_of, arg))
            return self._number(arg) if is_expression(arg) else arg

        for found in module.graph.nodes:
            if is_outermost:
                self.progress()
            if found.op == "placeholder":
                env[found] = next(given)
            elif found.op == "get_attr":
                attribute = attrgetter(found.target)(module)
                env[found] = weight(found.name, attribute) if isinstance(attribute, torch.Tensor) else attribute
            elif found.op != "output" and not _is_ignored(found):
                line = user_line(found)
                with at_node(f"node {found.name!r} ({found.target})" + (f", {line}" if line else ""), found.name):
                    env[found] = self._converted(found, value_of)
        (results,) = module.graph.find_nodes(op="output")
        outputs = value_of(results.args[0])
        return outputs if isinstance(results.args[0], (tuple, list)) else (outputs,)

    def _number(self, given: Any) -> Any:
        """A number of sizes: a size where it is a whole one, else its expression."""
        return self.symbols.size(given) if isinstance(given, torch.SymInt) else given

    def _converted(self, found: Any, value_of: Callable[[Any], Any]) -> Any:
        fake = found.meta.get("val")
        if isinstance(found.target, torch._ops.HigherOrderOperator):
            convert = control.find(found.target)
            assert convert is not None
            return convert(self, *map(value_of, found.args), **{k: value_of(v) for k, v in found.kwargs.items()})
        if not _defined(found) and (is_expression(fake) or isinstance(fake, (int, float))):
            return self._number(fake)
        if not isinstance(found.target, torch._ops.OpOverload):
            return found.target(*map(value_of, found.args), **{k: value_of(v) for k, v in found.kwargs.items()})
        result = self._operator(found, value_of, fake)
        self._bind(found, result)
        if is_expression(fake):
            return self._number(fake)
        return self._as_torch_says(result, fake)

    def _operator(self, found: Any, value_of: Callable[[Any], Any], fake: Any) -> Any:
        function = find(found.target, self.converters, _is_of_complex(found))
        assert function is not None
        schema = found.target._schema.arguments
        args = {a.name: given for a, given in zip(schema, map(value_of, found.args), strict=False)}
        args |= {name: value_of(given) for name, given in found.kwargs.items()}
        defaults = {a.name: value_of(a.default_value) for a in schema if a.has_default_value()}
        fakes = fake if isinstance(fake, (tuple, list)) else [fake]
        # What defines a size has none before it is converted.
        is_open = bool(_defined(found))
        shapes = tuple(self.symbols.shape(f) if isinstance(f, torch.Tensor) and not is_open else None for f in fakes)
        dtypes = tuple(element_dtype(f.dtype) if isinstance(f, torch.Tensor) else None for f in fakes)
        many = isinstance(fake, (tuple, list))
        used = {user.args[1] for user in found.users if getattr(user.target, "__name__", "") == "getitem"} if many else {0}
        name = plain_name(found.target).rpartition(".")[0]
        if not many and shapes[0] is not None and dtypes[0] is not None and 0 in shapes[0]:
            nothing = filled(shapes[0], 0, dtypes[0])  # nothing is computed of no elements
            return as_pair(nothing) if is_complex(fake) else nothing
        about = shapes if many else shapes[0], dtypes if many else dtypes[0]

        def contiguous() -> bool:
            return bool(found.args[0].meta["val"].is_contiguous())

        with converting(Node(name, *about, lambda i: i in used, self.symbols.tensor, is_complex(fake), contiguous)):
            return call(function, args, defaults)

    def _bind(self, found: Any, result: Any) -> None:
        """The symbols that a node defines stand for what its result says."""
        for name, path in _defined(found).items():
            value = result
            for key in path:
                if hasattr(key, "idx"):
                    value = value[key.idx]
                elif hasattr(key, "divisor"):
                    value = value // key.divisor
                elif getattr(key, "name", "") == "size":
                    value = value.shape
            self.symbols[name] = value

    def _as_torch_says(self, result: Any, fake: Any) -> Any:
        """A result of the dtype and the sizes that torch says. Raises ModelError where it has others."""
        if isinstance(fake, (tuple, list)):
            return tuple(self._as_torch_says(r, f) for r, f in zip(result, fake, strict=True))
        if not isinstance(fake, torch.Tensor) or result is None:
            return result
        expected = Pair if is_complex(fake) else Tensor
        if not isinstance(result, expected):
            raise ModelError(f"expected a converter that gives a {expected.__name__}, found {type(result).__name__}")
        dtype, shape = element_dtype(fake.dtype), self.symbols.shape(fake)
        for part in result if isinstance(result, Pair) else [result]:
            if part.dtype != dtype:
                raise ModelError(f"expected {dtype}{list(shape)}, as torch says, found {part.type}")
        return Pair(*(assume(part, shape) for part in result)) if isinstance(result, Pair) else assume(result, shape)
