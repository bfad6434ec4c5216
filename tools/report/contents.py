"""What a report shows, as plain data for its page: kernels with their texts, times and figures, pictures, and the memory over time."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from relayc.pipelines.program.plan import ProgramPlan
from relayc.runtime import Module, Profile
from relayc.runtime.profile import ProfileRow, make_profile
from relayc.symbolic import evaluate
from relayc.tools.device_code import FIGURES, figure_texts, figures_of, function_of, ptx_of
from relayc.tools.inputs import sizes_text
from relayc.tools.report.recorder import Recording
from relayc.tools.report.texts import Texts
from relayc.tools.visualize import Picture
from relayc.tools.visualize.boxes import Box, Drawing, kernel_boxes
from relayc.tools.visualize.repeats import collapsed, merged

MOST_FRAMES = 400
"""Boxes of a picture above which each fusion group is one box: Graphviz takes minutes to lay out that many frames."""
MOST_BOXES = 8000
"""Boxes above which there is no picture."""


def contents(
    recording: Recording, module: Module, profile: Profile | None, sizes: Mapping[str, int], model: Path | None = None
) -> dict[str, Any]:
    """The data of a page.

    Args:
      profile: times of `main`; None for a program that cannot run here.
      sizes: the values of the symbols of `main` in the profiled call.
      model: the file that the module was compiled from.
    """
    texts = recording.texts
    sites = module.call_sites()
    rows = (profile or make_profile(sites, [(0.0, 1)] * len(sites), 0.0, 1)).rows
    return {
        "facts": _facts(module, profile, sizes),
        "steps": [[s.name, s.stage, s.seconds, s.texts, s.operations.most_common()] for s in recording.steps],
        "kernels": list(_kernels(recording, module)),
        "sites": [_site(row, profile) for row in rows],
        "peak": None if profile is None or profile.peak is None else {**asdict(profile.peak), "gbytes": profile.peak.gbytes},
        "pictures": list(_pictures(recording, module, rows, profile, sizes)),
        "figures": FIGURES,
        "memory": list(_memory(recording.plans, sizes)),
        "nodes": _nodes(model),
        **texts.packed(),
    }


def _facts(module: Module, profile: Profile | None, sizes: Mapping[str, int]) -> list[tuple[str, str]]:
    found = [
        ("target", module.target),
        ("precision", module.precision),
        ("inputs", ", ".join(f"{spec.name}: {spec}" for spec in module.inputs)),
        ("outputs", ", ".join(f"{spec.name}: {spec}" for spec in module.outputs)),
        ("sizes", sizes_text(sizes)),
        ("kernels", f"{len(module.kernels)}, called in {len(module.call_sites())} places"),
        ("compilation", f"{sum(module.stats.values()):.2f} s"),
    ]
    if profile is not None:
        times = f"{profile.latency * 1e3:.3f} ms; the sum of its kernels, called one by one, {profile.seconds * 1e3:.3f} ms"
        found.append(("latency", f"{times}; {profile.threads} threads"))
    elif module.lacking:
        found.append(("not run", f"this machine lacks {', '.join(module.lacking)}"))
    else:
        found.append(("not run", f"this machine lacks the device {module.device}"))
    return [(name, text) for name, text in found if text]


# ---- kernels ----------------------------------------------------------------------------------------------------------------------------


def _kernels(recording: Recording, module: Module) -> Iterator[dict[str, Any]]:
    """The data of each kernel, with the numbers of its texts by kind."""
    texts = recording.texts
    last = {step.stage: {texts.names[number]: number for number in step.texts} for step in recording.steps}
    code = _assembly(texts, module)
    names = {kernel.name for kernel in module.kernels}
    figures: dict[str, list[list[str]]] = {}
    for found in figures_of(module):
        figures.setdefault(function_of(found.name, names), []).append([found.name, *figure_texts(found)])
    for kernel in module.kernels:
        of = {stage: names[kernel.name] for stage, names in last.items() if kernel.name in names}
        if kernel.name in recording.schedules:
            of["schedule"] = texts.add(kernel.name, recording.schedules[kernel.name].splitlines())
        of |= {name: numbers[kernel.name] for name, numbers in code.items() if kernel.name in numbers}
        strategy, *numbers = kernel.schedule.split(" ") if kernel.schedule else [""]
        values = recording.tunings.get(kernel.name, {})
        yield {
            "name": kernel.name,
            "ops": " ".join(kernel.ops),
            "strategy": strategy,
            "numbers": [[name, used, list(map(str, values.get(name, ())))] for name, _, used in (n.partition("=") for n in numbers)],
            "inputs": list(map(str, kernel.inputs)),
            "outputs": list(map(str, kernel.outputs)),
            "texts": of,
            "figures": figures.get(kernel.name, []),
        }


def _assembly(texts: Texts, module: Module) -> dict[str, dict[str, int]]:
    """The numbers of the texts of machine code by function: instructions of the host, and PTX. None if nothing shows them."""
    found: dict[str, dict[str, int]] = {}
    names = {kernel.name for kernel in module.kernels}
    with suppress(ValueError, ModuleNotFoundError):
        functions: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in module.assembly().splitlines():
            if line.endswith(":") and not line.startswith(" "):
                # The body of a parallel loop, NAME..omp_par, goes with its function.
                lines = functions.setdefault(line[:-1].partition("..")[0], [])
            lines.append(line)
        found["assembly"] = {name: texts.add(name, lines) for name, lines in functions.items() if name in names}
    ptx: dict[str, list[str]] = {}
    for kernel, text in ptx_of(module).items():
        ptx.setdefault(function_of(kernel, names), []).extend([f"// kernel {kernel}", *text.strip().splitlines()])
    found["ptx"] = {name: texts.add(name, lines) for name, lines in ptx.items()}
    return found


def _site(row: ProfileRow, profile: Profile | None) -> list[Any]:
    """A row of the table of kernels."""
    flops, num_bytes = row.kernel.operator_flops, row.kernel.bytes
    facts: list[Any] = [row.kernel.name, list(row.sources), row.where]
    if profile is None:
        return [*facts, 1, None, None, *(n if isinstance(n, int) else str(n) for n in (flops, num_bytes)), None]
    share = None if profile.peak is None or not row.calls else row.roof(profile.peak)
    return [*facts, row.calls, row.seconds, row.share, row.flops, row.bytes, share]


# ---- pictures ---------------------------------------------------------------------------------------------------------------------------


def _pictures(
    recording: Recording, module: Module, rows: Sequence[ProfileRow], profile: Profile | None, sizes: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Pictures of the graph as it is imported and as it is fused, and of the calls of kernels."""
    drawings = dict(recording.drawings)
    with suppress(ValueError):  # it branches or loops on data
        drawings["kernels"] = kernel_boxes(module.graph(sizes=sizes), len(module.inputs), profile)
    calls: dict[str, list[ProfileRow]] = {}
    for row in rows:
        for name in row.sources:
            calls.setdefault(name, []).append(row)
    for name, drawing in drawings.items():
        if name != "kernels" and profile is not None:
            drawing = Drawing([_timed(box, calls) for box in drawing.boxes], drawing.arrows)
        drawing = collapsed(drawing)
        if len(drawing.boxes) > MOST_FRAMES:
            drawing = merged(drawing)
        if len(drawing.boxes) > MOST_BOXES:
            continue
        kernels = {kernel.name for kernel in module.kernels}
        slowest = max([box.seconds or 0.0 for box in drawing.boxes], default=0.0) or 1.0
        boxes = [[box.sources, box.name if box.name in kernels else "", box.kind, (box.seconds or 0.0) / slowest] for box in drawing.boxes]
        text = Picture(drawing).render("svg").decode()
        svg = recording.texts.add("", [text[text.index("<svg") :]])
        yield {"name": name, "svg": svg, "boxes": boxes}


def _timed(box: Box, calls: Mapping[str, Sequence[ProfileRow]]) -> Box:
    """An operator in the colour of the kernels that it is in."""
    seconds = [row.seconds for name in box.sources for row in calls.get(name, ())]
    return replace(box, seconds=max(seconds)) if seconds and box.kind == "operator" else box


# ---- memory -----------------------------------------------------------------------------------------------------------------------------


def _memory(plans: Mapping[str, ProgramPlan], sizes: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """The arenas of programs over time; none for a program whose sizes are unknown before it runs."""
    for name, plan in sorted(plans.items(), key=lambda item: item[0] != "main"):
        with suppress(KeyError):
            buffers: list[list[Any]] = []
            changes: Counter[int] = Counter()
            for tensor, names in plan.buffers:
                size = evaluate(tensor.size, sizes)
                buffers.append([", ".join(names), tensor.first, tensor.last, evaluate(tensor.offset, sizes), size])
                changes[tensor.first] += size
                changes[tensor.last + 1] -= size
            lower = max(itertools.accumulate(change for _, change in sorted(changes.items())), default=0)
            steps = [[step, called] for step, called in plan.calls.items()]
            yield {"name": name, "peak": evaluate(plan.arena_bytes, sizes), "lower": lower, "buffers": buffers, "steps": steps}


# ---- the model --------------------------------------------------------------------------------------------------------------------------


def _nodes(model: Path | None) -> dict[str, tuple[str, list[str], list[str]]]:
    """What the nodes of an ONNX file are, and of the graphs in them, by the names that locations carry: operator, inputs, outputs."""
    if model is None or model.suffix != ".onnx":
        return {}
    import onnx

    from relayc.tools.onnx_graphs import subgraphs

    found: dict[str, tuple[str, list[str], list[str]]] = {}

    def read(graph: onnx.GraphProto, path: str) -> None:
        found.update((tensor.name, ("initializer", [], [tensor.name])) for tensor in graph.initializer)
        for number, node in enumerate(graph.node):
            label = f"{path}{node.name or f'{node.op_type}#{number}'}"
            found[label] = (node.op_type, list(node.input), list(node.output))
            for inner in subgraphs(node):
                read(inner, f"{label}/")

    read(onnx.load(model, load_external_data=False).graph, "")
    return found
