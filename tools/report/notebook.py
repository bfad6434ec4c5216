"""Programs in notebooks: a summary, and of a small program its picture."""

from collections import Counter
from typing import Any

from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import func
from relayc.dialects.operations import find_operations
from relayc.dialects.relay.module import IRModule
from relayc.runtime import Module
from relayc.tools.inputs import module_sizes
from relayc.tools.report import environment
from relayc.tools.tables import scaled
from relayc.tools.visualize import visualize

MOST_BOXES = 60
"""Boxes of the largest picture that is shown."""
_MOST_ROWS = 12


def notebook_html(program: Module | IRModule) -> str:
    """The summary of a program, as HTML. Raises ModuleNotFoundError if jinja2 is not installed; without Graphviz there is no picture."""
    shown = _of_module(program) if isinstance(program, Module) else _of_program(program)
    return environment().get_template("notebook.html").render(**shown, most=_MOST_ROWS, picture=_picture(program))


def _of_module(module: Module) -> dict[str, Any]:
    specs = [(f"{kind} {spec.name}", str(spec)) for kind in ("input", "output") for spec in getattr(module, f"{kind}s")]
    rows = [[k.name, " ".join(k.ops), k.schedule.partition(" ")[0], scaled(k.operator_flops), scaled(k.bytes)] for k in module.kernels]
    return {
        "facts": [("target", module.target), ("device", module.device), *specs, ("kernels", len(module.kernels))],
        "heads": ["kernel", "operators", "strategy", "FLOP", "bytes"],
        "rows": rows,
    }


def _of_program(program: IRModule) -> dict[str, Any]:
    rows = []
    for op in program.module.body.operations:
        if isinstance(op, func.FuncOp):
            found = Counter(each.name for each in find_operations(op.operation, lambda each: each.name != "func.func"))
            rows.append([f"@{symbol_name(op)}", found.total(), ", ".join(f"{name} {n}" for name, n in found.most_common(6))])
    sizes = sum(array.nbytes for array in {id(array): array for array in program.params.values()}.values())
    facts = [("functions", len(rows)), ("parameters", f"{len(program.params)}, {scaled(sizes)} bytes")]
    return {"facts": facts, "heads": ["function", "operations", "most of them"], "rows": rows}


def _picture(program: Module | IRModule) -> str:
    try:
        picture = visualize(program, sizes=module_sizes(program, {}) if isinstance(program, Module) else None)
        return picture._repr_svg_() if len(picture.drawing.boxes) <= MOST_BOXES else ""
    except (ValueError, ModuleNotFoundError):  # no graph, or no Graphviz
        return ""
