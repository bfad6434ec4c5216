"""Hand-written functions of blocks and loops as kernels: each is represented by a te function, which programs can call.

The te function has the signature of the kernel and computes nothing; its attribute `tir.written` is the text of the written function, which
becomes its schedule.
"""

from typing import TYPE_CHECKING

from relayc.dialects.discardable import DTYPE, INPUT_DTYPES, NAME, OUTPUT_DTYPES, PARAM
from relayc.dialects.functions import symbol_name, value_attributes
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import ranked_type
from relayc.dialects.tir import names
from relayc.pipelines.emission.sizes import function_sizes, symbol_attributes, symbol_names
from relayc.pipelines.te.rules.core import empty
from relayc.pipelines.tir.script.rendering import type_name
from relayc.pipelines.tir.tree.computations import order_computations
from relayc.pipelines.tir.tree.contents import check_stores
from relayc.pipelines.tir.tree.structure import Nest

if TYPE_CHECKING:
    from relayc.pipelines.tir.schedule.schedule import Schedule


def stand_in(mod: IRModule) -> None:
    """Replaces the functions of blocks and loops of a module by te functions that represent them."""
    with mod.context, ir.Location.unknown():
        for op in [op for op in mod.module.body.operations if names.FORM in op.attributes]:
            with ir.InsertionPoint(op), op.operation.location:
                _te_function(Nest(op))
            op.operation.erase()


def _te_function(nest: Nest) -> None:
    described = value_attributes(nest.function)
    buffers = [(a, entry) for a, entry in zip(nest.entry.arguments, described, strict=True) if names.BUFFER in entry]
    types = [ranked_type(nest.shape(a), a.type.element_type) for a, _ in buffers]
    dtypes = [DTYPE.get(e, type_name(a.type.element_type)) for a, e in buffers]
    kept = [ir.DictAttr.get({NAME.name: e[names.BUFFER], **PARAM.entry(PARAM.on(e))}) for _, e in buffers]
    count = sum(not nest.is_output(a) for a, _ in buffers)
    symbols = symbol_names(nest.function)
    made = func.FuncOp(nest.name, ([*types[:count], *[ir.IndexType.get()] * len(symbols)], types[count:]))
    made.attributes["arg_attrs"] = ir.ArrayAttr.get([*kept[:count], *symbol_attributes(symbols)])
    made.attributes["res_attrs"] = ir.ArrayAttr.get(kept[count:])
    INPUT_DTYPES.put(made, tuple(dtypes[:count]))
    OUTPUT_DTYPES.put(made, tuple(dtypes[count:]))
    made.attributes[names.WRITTEN] = ir.StringAttr.get(str(nest.function))
    with ir.InsertionPoint(made.add_entry_block()):
        with function_sizes(made):
            results = [empty(type_) for type_ in types[count:]]
        func.ReturnOp(results)


def copy_written(function: ir.OpView) -> None:
    """The function of blocks and loops that a te function represents, under its name, at the ambient insertion point."""
    found = IRModule.parse(ir.StringAttr(function.attributes[names.WRITTEN]).value, context=function.operation.context)
    (source,) = [op for op in found.module.body.operations if names.FORM in op.attributes]
    check_stores(source.operation)
    made = source.operation.clone()
    order_computations(made)
    made.attributes["sym_name"] = ir.StringAttr.get(symbol_name(function))


def as_written(schedule: "Schedule") -> None:
    """The schedule of a kernel that runs as written."""
