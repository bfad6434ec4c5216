"""The page docs/how-it-works.md (see relayc.tools.generated).

The model is compiled for a fixed target, so that the page is the same on every machine. What is shown is found by an instrument: every pass
that changed the program, with the program that it left. Only the words are written by hand, in PARAGRAPHS.
"""

import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.instruments import PassInfo, PassInstrument, ir_text
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile as compile_
from relayc.pipelines.tir.schedule.schedule import Schedule

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
small (float[1, 8, 4, 4] image) => (float[1, 10] scores) {
  features = Conv <pads = [1, 1, 1, 1]> (image, filters)
  normal = BatchNormalization (features, scale, shift, mean, variance)
  positive = Relu (normal)
  flat = Flatten (positive)
  scores = Gemm <transB = 1> (flat, weights, bias)
}
"""
"""The model that the page follows; its weights are in WEIGHTS."""

WEIGHTS: dict[str, tuple[tuple[int, ...], Sequence[float]]] = {
    "filters": ((8, 8, 3, 3), (-1, -0.5, 0, 0.5, 1, 0.25, 0.75)),
    "scale": ((8,), (2,)),
    "shift": ((8,), (0.5,)),
    "mean": ((8,), (0.25,)),
    "variance": ((8,), (4,)),
    "weights": ((10, 128), (1, -1, 0.5)),
    "bias": ((10,), (0.5,)),
}
"""Shape of each initializer, and the numbers that are repeated in it."""

TARGET = "cpu -mcpu=x86-64-v3 -num-threads=1"

PARAGRAPHS = {
    "SimplifyInference": """
        At inference batch normalisation is arithmetic with four constants. The pass replaces it by a factor and an offset for each
        channel, which ordinary operators compute from the constants.""",
    "CanonicalizeOps": """
        Several operators have the same meaning. The pass leaves one form of each: adding a bias becomes `relay.add`, and new axes become
        a `relay.reshape`, so later passes handle fewer operators.""",
    "FoldConstant": """
        The pass computes everything that depends on constants alone. The square root and the quotient of the normalisation disappear; a
        factor and an offset remain. A table beside the program holds large constants, and the program holds their keys.""",
    "FoldScaleAxis": """
        A convolution followed by a factor for each channel equals a convolution with scaled filters. The multiplication moves from the
        data, where every call would do it, to the filters.""",
    "SinkReshapes": """
        A reshape moves past operators that do not depend on the shape. There it meets other reshapes or a constant, and disappears. Here
        the factor takes the shape of the filters.""",
    "SimplifyExpr": """Algebra: neutral elements, chains of reshapes and transposes, casts back and forth.""",
    "EliminateCommonSubexpr": """Equal operations on equal operands are computed once.""",
    "RecognizePatterns": """Operators that together form a larger one (a normalisation, an activation) become that operator.""",
    "RecognizeAttention": """Products around a softmax become one operator, attention.""",
    "FakeQuantizationToInteger": """Operators between dequantisation and quantisation become operators on integers.""",
    "WeightOnlyToDenseBlocks": """Products of floats with dequantised constant weights read the weights as they are stored.""",
    "QnnCanonicalize": """Operators on quantised tensors are written as arithmetic on integers and floats.""",
    "ByteTables": """Functions of the elements of one 8-bit tensor become tables of 256 results.""",
    "ConvTransposeToConv": """A transposed convolution becomes ordinary convolutions.""",
    "AlterOpLayout": """Convolutions get the layout in which the channels of a block are adjacent in memory.""",
    "AlterAttentionLayout": """The keys and values of a head lie side by side in memory where many queries read them.""",
    "Winograd": """3x3 convolutions are computed with fewer multiplications, between two transforms.""",
    "WinogradBySize": """If the benefit depends on the sizes of a call, a branch selects between both forms.""",
    "CombineParallelDense": """Products of one tensor with several matrices become one product.""",
    "CombineParallelConv2D": """Convolutions of one tensor with several filters become one convolution.""",
    "DeadCodeElimination": """Unused operations are removed.""",
    "LoopInvariantCodeMotion": """A computation with the same result in every iteration of a loop moves before the loop.""",
    "Inline": """A copy of the callee replaces the call.""",
    "InferType": """The type relations of the operators compute and check the types of all values.""",
    "FuseOps": """
        The pass gathers operators into groups, each of which will be one kernel: the convolution takes the addition and the rectifier
        after it, and the product takes its bias. No intermediate tensor of a group goes through memory. [fusion.md](fusion.md) has the
        rules.""",
    "DropNarrowing": """Numbers that a kernel makes narrower and wide again stay wide, where no number changes by that.""",
    "ToMixedPrecision": """If bf16 is requested, products read operands rounded to bf16.""",
    "OutlineGroups": """Each group becomes a function, and the program calls it. Equal groups share one function.""",
    "RelayToTe": """
        The compute rules replace relay operators by MLIR's own: `linalg` operations on tensors, with an index map for each operand and
        the arithmetic of one element inside. The order of computation is still open. `main` only has calls, and a reshape is a change of
        view.""",
    "MaterializeResults": """
        A program owns its results. If a result is an input, a parameter, or a tensor that is returned twice, the pass inserts a copy.""",
    "ConcatenateInPlace": """Kernels whose results are only joined write straight to their place in the joined tensor.""",
    "ScheduleKernels": """
        For each kernel the pass chooses a strategy by the kernel's structure, and the strategy makes loops: tiles whose accumulators stay
        in registers, vectors of the target's width, threads. `relay.packing` gives the layout in which the loops read a parameter. `main`
        still passes tensors: it calls each kernel by a declaration, `NAME.te`.""",
    "BufferizePrograms": """
        The programs get buffers in place of tensors: each call of a kernel receives the memory that it writes. A reshape is another view
        of the same bytes. Parameters are globals, which are packed for the kernels once the program is compiled.""",
    "PlanMemory": """
        Buffers with disjoint live ranges share their bytes. All buffers are parts of one arena of known size, and the parameters are parts
        of one blob; the IR has the offsets.""",
    "EmitCalls": """
        Branches and loops of a program become blocks, and a call that can fail is checked. This program has neither, so the pass only
        removes the globals, whose offsets are known by now.""",
    "TirToLlvm": """
        Loops become branches, buffers become pointers, vectors stay vectors. From this dialect LLVM generates the machine code that
        `module.assembly()` shows.""",
}
"""Descriptions of the passes for the page, by the name of the pass."""

TREE = (
    """A kernel that primitives schedule is a tree of loops and blocks. A block computes the elements of one buffer; its iterators say which
    element, and its loops say when. Products on GPUs are scheduled by primitives; the kernels above have strategies that emit loops. The
    kernel of the product as a tree, before any primitive, as TVMScript:""",
    """A schedule edits the tree. With `s = relayc.tir.Schedule(module)`:""",
    """The product now sums 8 columns side by side, and the bias is added to a tile right after its sums:""",
    """`s.trace` has the same steps as text. `relayc.compile(..., schedules={NAME: trace})` applies them, and `module.schedule(NAME)` shows
    the tree and the trace of a compiled kernel ([schedules](schedules.md)):""",
)
"""Paragraphs about a kernel as a tree."""

STAGES = {
    "relay": "The graph of the model: one operation for each operator.",
    "te": "Kernels as computations on tensors, and the program that calls them.",
    "tir": "Kernels as loops on buffers.",
    "llvm": "Code for the machine.",
}

WHOLE, HEAD, TAIL, WIDTH = 44, 28, 6, 150
"""Lines of a function that is shown whole, those shown of a longer one at its beginning and end, and characters of a line."""


@dataclass(frozen=True)
class PassRun:
    """A pass that ran, and the program before and after it."""

    info: PassInfo
    before: str
    after: str


class Recorder(PassInstrument):
    """Records the program after every pass."""

    def __init__(self) -> None:
        self.steps: list[PassRun] = []
        self._before = ""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._before = self._before or ir_text(mod.module.operation)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if not info.composite:
            after = ir_text(mod.module.operation)
            self.steps.append(PassRun(info, self._before, after))
            self._before = after


def model() -> onnx.ModelProto:
    """MODEL with its weights."""
    proto = onnx.parser.parse_model(MODEL)
    for name, (shape, numbers) in WEIGHTS.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.resize(np.array(numbers, np.float32), shape), name))
    return proto


def steps() -> list[PassRun]:
    """The passes that the model goes through, in order."""
    recorder = Recorder()
    with PassContext(instruments=[recorder]):
        compile_(model(), target=Target(TARGET), stop_after="llvm")
    return recorder.steps


# ---- the page -------------------------------------------------------------------------------------------------------------------------


def page() -> str:
    """The steps as Markdown. Raises ValueError for a pass that changed the program and has no paragraph."""
    found = steps()
    missing = sorted({step.info.name for step in found if step.before != step.after} - PARAGRAPHS.keys())
    if missing:
        raise ValueError(
            f"expected a paragraph in PARAGRAPHS of relayc.tools.how_it_works for each pass, found none for {', '.join(missing)}"
        )
    lines = ["The model, in ONNX's own text:", "", "```text", *MODEL.splitlines(), "```", "", f"The target is `{TARGET}`.", ""]
    lines += ["## relay", "", f"{STAGES['relay']} The frontend builds:", "", *_block(found[0].before, "")]
    stage, told, idle = "relay", set[str](), list[str]()
    for step in found:
        info = step.info
        if info.stage != stage:
            lines += [*_idle(idle), f"## {info.stage}", "", STAGES[info.stage], ""]
            stage = info.stage
            idle.clear()
        if step.before == step.after:
            idle.append(info.name)
            continue
        lines += _idle(idle)
        idle.clear()
        again = info.name in told
        told.add(info.name)
        lines += [f"### {info.name}{' again' if again else ''}", "", *([] if again else [*_wrapped(PARAGRAPHS[info.name]), ""])]
        lines += _block(step.after, step.before)
        lines += _tree() if info.name == "ScheduleKernels" else []
    return "\n".join([*lines, *_idle(idle)])


KERNEL = "fused_dense_add"
"""The kernel of the model that the page shows as a tree."""


def schedule(s: Schedule) -> None:
    """A schedule of KERNEL, whose source the page shows."""
    _, column, step = s.get_loops("dense")
    tile, lane = s.split(column, [None, 8])
    s.reorder(tile, step, lane)
    s.vectorize(lane)
    *_, lane = s.reverse_compute_at("add", tile)
    s.vectorize(lane)


def _tree() -> list[str]:
    """A kernel as a tree of loops and blocks, before and after a schedule, and the trace of the schedule."""
    s = Schedule(compile_(model(), target=Target(TARGET), stop_after="te"))
    s.work_on(KERNEL)
    code = textwrap.dedent("".join(inspect.getsourcelines(schedule)[0][2:])).splitlines()
    lines = ["### A kernel as a tree", "", *_wrapped(TREE[0]), "", *_script(s), *_wrapped(TREE[1]), "", "```text", *code, "```", ""]
    schedule(s)
    return [*lines, *_wrapped(TREE[2]), "", *_script(s), *_wrapped(TREE[3]), "", "```mlir", *str(s.trace).splitlines(), "```", ""]


def _script(s: Schedule) -> list[str]:
    (text,) = (part for part in s.script().split("@T.prim_func\n") if part.startswith(f"def {KERNEL}("))
    return ["```text", *text.strip().splitlines(), "```", ""]


def _wrapped(paragraph: str) -> list[str]:
    return textwrap.wrap(" ".join(paragraph.split()), 140, break_long_words=False)


def _idle(names: Sequence[str]) -> list[str]:
    """The line about passes that found nothing to do."""
    return [*_wrapped(f"No change by {', '.join(dict.fromkeys(names))}."), ""] if names else []


def _block(text: str, before: str) -> list[str]:
    lines = list(shown(text, before))
    used = set(re.findall(r"#map\d*\b", "\n".join(line for line in lines if not line.startswith("#map"))))
    return ["```mlir", *(line for line in lines if not line.startswith("#map") or line.split()[0] in used), "```", ""]


def shown(text: str, before: str) -> Iterator[str]:
    """The lines of a module that are shown: functions that are as they were `before` are named alone, long ones are cut in the middle."""
    known, found = set(_spelled(before)), _spelled(text)
    for part, spelled in zip(_parts(text), found, strict=True):
        name = re.search(r"@[\w.$]+", part[0]) if "func" in part[0] else None
        if name is not None and len(part) > 1 and spelled in known:
            yield f"  // {name.group()}: as before"
            continue
        lines = [line if len(line) <= WIDTH else f"{line[: WIDTH - 2]} …" for line in _without_descriptors(part)]
        if len(lines) > WHOLE:
            left = len(lines) - HEAD - TAIL
            lines = [*lines[:HEAD], f"    // … {left} lines are left out here", *lines[-TAIL:]]
        yield from lines


def _spelled(text: str) -> list[tuple[str, ...]]:
    """The parts of a module with index maps in the place of their names, which count anew in every module."""
    maps = dict(re.findall(r"^(#map\d*) = (.*)$", text, re.M))
    return [tuple(re.sub(r"#map\d*", lambda name: maps.get(name.group(), name.group()), line) for line in part) for part in _parts(text)]


def _without_descriptors(lines: Sequence[str]) -> Iterator[str]:
    """The lines without those that put pointers, offsets, sizes and strides of buffers together in LLVM's language: in the place of several
    is a line that says how many."""
    for about, group in itertools.groupby(lines, lambda line: _DESCRIPTOR.search(line) is not None):
        run = [line.rstrip() for line in group]
        yield from [f"    // … {len(run)} lines about sizes and strides of buffers are left out here"] if about and len(run) > 3 else run


_DESCRIPTOR = re.compile(r"llvm\.(insertvalue|extractvalue|mlir\.poison|mlir\.constant)\b")


def _parts(text: str) -> list[list[str]]:
    """The lines of a module, grouped by function; the index maps before a function belong to its group."""
    parts: list[list[str]] = []
    inside = False
    for line in text.rstrip().splitlines():
        starts = re.match(r"  (llvm\.)?(func\.)?func ", line) is not None
        alone = not inside and not (parts and line.startswith("#map") and parts[-1][0].startswith("#map"))
        if alone or starts:
            parts.append([line])
        else:
            parts[-1].append(line)
        inside = (inside or (starts and line.endswith("{"))) and line != "  }"
    return parts
