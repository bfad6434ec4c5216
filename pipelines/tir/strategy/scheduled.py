"""The result of a strategy, and the function into which a strategy emits."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from relayc.dialects.discardable import PARAM, SEVEN_BITS
from relayc.dialects.functions import begin_function, value_attributes
from relayc.dialects.mlir import func, ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.sizes import function_sizes, symbol_attributes
from relayc.pipelines.te.read.graph import Kernel, Node
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.pipelines.tir.values.buffers import buffer_type, flat
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size


@dataclass
class Scheduled:
    """A kernel in tir.

    Attributes:
      packings: of its arguments, by position.
      workspace_bytes: scratch memory, its last argument before the symbols.
      uses_tiles: whether it has operations on matrix tiles.
      turns: whether it supports both traversal directions (see turns).
    """

    function: func.FuncOp
    packings: dict[int, Packing] = field(default_factory=dict)
    workspace_bytes: Size = 0
    uses_tiles: bool = False
    turns: bool = False


def is_param(kernel: Kernel, node: Node) -> bool:
    """Whether a tensor is an argument that is a parameter at every call, and is read in one place: it can be packed for this place."""
    attributes = kernel.function.attributes
    if node.kind != "arg" or "arg_attrs" not in attributes or len(list(kernel.function.arguments[node.position].uses)) > 1:
        return False
    return PARAM.on(ir.DictAttr(ir.ArrayAttr(attributes["arg_attrs"])[node.position]))


def has_seven_bits(kernel: Kernel, node: Node) -> bool:
    """Whether a tensor is a parameter (see `is_param`) of signed bytes from -64 to 64."""
    return is_param(kernel, node) and SEVEN_BITS.on(value_attributes(kernel.function)[node.position])


@dataclass(frozen=True)
class KernelFunction:
    """The body of a kernel's function during emission.

    Attributes:
      function: the function.
      arguments: the buffers of the kernel's arguments (packed if they have a packing).
      evaluator: reads the arguments.
      outputs: flat buffers of the results.
      workspace: scratch memory, bytes; None if there is none.
    """

    function: func.FuncOp
    arguments: tuple[ir.Value, ...]
    evaluator: Evaluator
    outputs: tuple[ir.Value, ...]
    workspace: ir.Value | None


@contextmanager
def kernel_function(kernel: Kernel, packings: Mapping[int, Packing] | None = None, workspace_bytes: Size = 0) -> Iterator[KernelFunction]:
    """Creates the tir function of a kernel; the insertion point is in its body, before the return.

    Its arguments are the kernel's arguments (packed if they have a packing), one destination for each result, the workspace, and the
    symbols.
    """
    packings = packings or {}
    types = [buffer_type(packings[i].shape if i in packings else node.shape, node.element) for i, node in enumerate(kernel.args)]
    types += [buffer_type(node.shape, node.element) for node in kernel.results]
    has_workspace = workspace_bytes != 0
    if has_workspace:
        types.append(buffer_type([workspace_bytes], ir.IntegerType.get_signless(8)))
    attributes: dict[str, ir.Attribute] = {"sym_visibility": ir.StringAttr.get("private")}
    if kernel.symbols:
        attributes["arg_attrs"] = ir.ArrayAttr.get([*[ir.DictAttr.get({})] * len(types), *symbol_attributes(kernel.symbols)])
    function = begin_function(kernel.name, [*types, *[ir.IndexType.get()] * len(kernel.symbols)], attributes)
    entry = function.regions[0].blocks[0]
    arguments, count = tuple(entry.arguments)[: len(types)], len(kernel.args)
    with ir.InsertionPoint(entry), emit.constants_at(entry), function_sizes(function):
        evaluator = Evaluator({node: flat(buffer) for node, buffer in zip(kernel.args, arguments[:count], strict=True)})
        outputs = tuple(flat(b) for b in arguments[count : count + len(kernel.results)])
        yield KernelFunction(function, arguments[:count], evaluator, outputs, arguments[-1] if has_workspace else None)
        func.ReturnOp([])
