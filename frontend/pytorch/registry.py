"""The table of converters of torch's operators, and what a converter may ask about its node.

A converter is one plain function for one operator, all overloads of it; its parameters are those of the operator's schema that it needs,
in any order: tensors as Tensors, sizes of the graph as sizes, lists as tuples. Where the node leaves an argument out, the converter gets
the schema's default. One function may convert several operators: `aten` takes the names of arguments that differ between them.

    @aten("leaky_relu")
    def leaky_relu(self, negative_slope):
        return emit("nn.leaky_relu", self, alpha=negative_slope)

Torch's decompositions leave an operator alone that has a converter: relayc has a kernel or a pattern for the whole of it, or the
decomposition gives another dtype than eager. Shapes and dtypes of results are torch's (`node()`): a converter infers neither, and what it
gives is compared with them.
"""

import contextvars
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from relayc.symbolic import Size

Converter = Callable[..., Any]

CONVERTERS: dict[str, Converter] = {}
"""By the name of an operator ("aten.add"), or of one overload of it ("aten.add.Scalar")."""
OF_COMPLEX: dict[str, Converter] = {}
"""The same of operators that take or give complex numbers (relayc.frontend.common.complex)."""
NAMESPACES = ("prims", "torchvision", "quantized_decomposed", "torchao")
"""Other namespaces than aten that have operators with converters."""


@dataclass(frozen=True)
class Node:
    """The node being converted.

    Attributes:
      operator: with its namespace, without its overload: "aten.add".
      shape, dtype: of its result; None where that is no tensor, tuples of such where there are several. The dtype of complex numbers is
        that of their parts.
      used: whether anything uses result number i.
      number: a number of sizes that is no size, as a scalar of a dtype.
      is_complex: whether its result is of complex numbers.
      contiguous: whether its first operand is contiguous for torch, whose rules of derivatives depend on it.
    """

    operator: str
    shape: Any
    dtype: Any
    used: Callable[[int], bool]
    number: Callable[[Any, str], Any]
    is_complex: bool
    contiguous: Callable[[], bool]

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The shape of the only result."""
        return self.shape


_NODE: contextvars.ContextVar[Node] = contextvars.ContextVar("torch_node")


def node() -> Node:
    """The node being converted."""
    return _NODE.get()


@contextmanager
def converting(found: Node) -> Iterator[None]:
    """`found` is the node that `node` gives."""
    token = _NODE.set(found)
    try:
        yield
    finally:
        _NODE.reset(token)


def aten(*names: str, of_complex: bool = False, **called: str) -> Callable[[Converter], Converter]:
    """Registers a function as the converter of operators of the namespace aten, or of others where a name has a namespace.

    Args:
      of_complex: it is called where an operand or the result is of complex numbers, and gets them as Pairs.
      called: for arguments in the schema of any of these operators, the name of the function's parameter where it is another one.
    """

    def register(function: Converter) -> Converter:
        def renamed(**given: Any) -> Any:
            return call(function, {called.get(name, name): value for name, value in given.items()}, {})

        for name in names:
            full = name if name.split(".")[0] in NAMESPACES else f"aten.{name}"
            (OF_COMPLEX if of_complex else CONVERTERS)[full] = renamed if called else function
        return function

    return register


def plain_name(operator: Any) -> str:
    """The name of an operator, however it is given: torch.ops.my.scale, torch.ops.my.scale.default, "my::scale" or "my.scale"."""
    return str(operator).replace("::", ".")


def find(operator: Any, own: Mapping[str, Converter], of_complex: bool = False) -> Converter | None:
    """The converter of an overload: the caller's own before those of the package, one of the overload before one of all overloads.

    What copies instead of giving a view is the operator that gives the view: results are no views here.
    """
    name = plain_name(operator)
    plain, _, overload = name.rpartition(".")
    viewed = plain.removesuffix("_copy")
    for table in (own, OF_COMPLEX if of_complex else CONVERTERS):
        found = table.get(name) or table.get(plain)
        if found is None and plain.endswith("_copy"):
            found = table.get(f"{viewed}.{overload}") or table.get(viewed)
        if found is not None:
            return found
    return None


def call(function: Converter, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    """Calls a converter with those of the arguments that it has parameters for."""
    parameters = inspect.signature(function).parameters.values()
    every = {**defaults, **given}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function(**every)
    return function(**{p.name: every[p.name] for p in parameters if p.name in every})
