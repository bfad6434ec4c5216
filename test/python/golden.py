"""What the compiler makes of programs, recorded: the IR of each stage as a digest, and the schedule of each kernel, target by target.

    .venv/bin/python test/python/golden.py            # what differs from the record
    .venv/bin/python test/python/golden.py --update   # writes the record anew: its diff shows which kernels a change reaches
    .venv/bin/python test/python/golden.py --show calls nn_conv2d   # the texts of a digest, to compare with those of another revision

Results of programs are the business of other tests. This record holds what results cannot show: a schedule that is chosen for other sizes,
a loop that is no longer parallel, a plan that takes more memory.

Beside programs it holds answers of parts of the compiler to random questions, right and wrong ones (see ANSWERS).
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import late_models
import lit_outputs
import random_calls
import random_imports
import random_passes
import random_sizes
import random_special  # noqa: F401 (its rules draw)
import relay_programs
from deep_models import CASES
from golden_programs import LIMITS, PROGRAMS, WHOLE
from random_drawing import RULES, draw, draw_one
from random_graphs import build as built
from schedules.kernels import KERNELS as SMALL_KERNELS
from schedules.te_kernels import KERNELS
from schedules.test_random_schedules import Steps
from schedules.walks import walk

import relayc
from relayc.bench import tensor_core_product
from relayc.bench.written_kernels import rowwise, softmax
from relayc.dialects.functions import symbols_of
from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.instruments import PassInfo, PassInstrument, ir_text
from relayc.pipelines.context.passes import PASSES, load_passes
from relayc.pipelines.context.target import Target
from relayc.pipelines.llvm.packed import add_packed_entries
from relayc.pipelines.program.entries import packed_entries
from relayc.pipelines.program.packed_entry import PackedEntry
from relayc.pipelines.program.tir import TirModule
from relayc.pipelines.targets.cpu import target as cpu
from relayc.pipelines.targets.cuda.device.llvm_text import kernel_texts
from relayc.pipelines.targets.cuda.host import add_driver_calls, kernel_names, use_driver
from relayc.pipelines.targets.gpu.outline import take_kernels
from relayc.pipelines.tir.schedule.written_strategy import ScheduleFunction, schedule_by
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.tir import Schedule, ScheduleError, from_source, script

load_passes()
# Errors list what is registered, whatever was compiled before.
for module in (*find_backend("cpu").modules, *find_backend("cuda").modules, "relayc.pipelines.targets.cuda.emulate"):
    importlib.import_module(module)

MODELS = Path(__file__).parents[1] / "models"
FOLDER = Path(__file__).parents[1] / "golden"
STAGES = {"GraphPipeline": "relay", "LowerToTe": "te", "TeToTir": "tir", "TirToLlvm": "llvm"}
"""The pass after which each stage is complete."""
TARGETS: dict[str, tuple[str, str]] = {
    "v3": ("cpu -mcpu=x86-64-v3 -num-threads=2", "f32"),
    "v4": ("cpu -mcpu=x86-64-v4 -num-threads=2", "f32"),
    "amx": ("cpu -mcpu=sapphirerapids -num-threads=2", "bf16"),
    "ampere": ("cuda -arch=sm_80", "f32"),
    "hopper": ("cuda -arch=sm_90a", "f16"),
    # What a small operator needs is more than its caches hold.
    "small": ("cpu -mcpu=x86-64 -num-threads=3 -l1-bytes=4096 -l2-bytes=32768 -l3-bytes=262144", "f32"),
    "emulated": ("cuda -arch=sm_80 -emulate=true", "f32"),
}
"""By name, a target that no machine has a say in, and a precision."""
NETWORKS: dict[str, Sequence[str]] = {
    **{path.stem: ("v4",) for path in sorted(MODELS.glob("*.onnx"))},
    **{f"dynamic/{path.stem}": ("v4",) for path in sorted((MODELS / "dynamic").glob("*.onnx"))},
    **{name: WHOLE for name in ("resnet18", "gpt2", "dynamic/bert")},
}
"""By name of the file, the targets that models are compiled for."""
_PRODUCTS = {
    **dict.fromkeys(("nn_dense", "nn_matmul", "nn_batch_matmul", "nn_conv2d", "nn_attention"), 40),
    **dict.fromkeys(("nn_conv1d", "nn_conv3d", "nn_conv2d_transpose"), 12),
}
EMULATED = 1
"""The number of the drawing of each operator that an emulated GPU gets."""
_COUNTS = {
    **{op: 3 for rule in RULES for op in rule.ops},
    **dict.fromkeys(("sum", "max", "argmax", "nn_softmax", "nn_layer_norm", "sort", "topk", "cumsum", "transpose", "concatenate"), 9),
    **dict.fromkeys(
        ("nn_dense_blocks", "nn_max_pool2d", "nn_avg_pool2d", "nn_attention_grad", "qnn_conv2d", "qnn_dense", "qnn_quantize"), 12
    ),
    **_PRODUCTS,
}
"""How many programs are drawn of each operator: more of those with more to decide."""


def _targets_of(op: str, number: int) -> set[str]:
    """One target, in turn; AMX for products, which have plans of their own there; and an emulated GPU once."""
    turns = (*WHOLE, "small")
    more = [*(["amx"] if op in _PRODUCTS else []), *(["emulated"] if number == EMULATED else [])]
    return {turns[(zlib.crc32(op.encode()) + number) % len(turns)], *more}


DRAWN: dict[str, tuple[set[str], str, int]] = {
    f"{op} {number}": (_targets_of(op, number), op, number) for op, count in _COUNTS.items() for number in range(count)
}
"""By name, the targets, the operator and the number of the drawing. Their sizes are those around limits of schedules; what depends on them
is decided before LLVM's stage, which only those of the number 0 and those of an emulated GPU get to."""
MIXED = {f"mixed {number}": number for number in range(60)}
"""By name, the number of a drawing of several operators, branches, loops and calls, which are compiled in several ways (see `_way`)."""
WALKS = {f"{name}, walk {seed}": (name, seed) for name in KERNELS for seed in range(100, 125)}
ONNX: dict[str, Callable[[], Any]] = {
    **{f"{name}, deep": partial(CASES[name], 3) for name in CASES},
    **{f"{name}, late": partial(late_models.model, name) for name in late_models.NAMES},
}
"""By name, a model of a few operators, branches and loops whose sizes are computed, mostly."""
_PRODUCT = partial(tensor_core_product.product_of_f16, 200, 136, 104)
WRITTEN: dict[str, tuple[set[str], Callable[[], IRModule], ScheduleFunction | None]] = {
    "softmax by rows": ({"v4"}, lambda: softmax(5, 128), rowwise("total", "power", "most")),
    "product by warps": ({"ampere", "emulated"}, _PRODUCT, tensor_core_product.on_tensor_cores),
    "product by groups of warps": ({"hopper"}, _PRODUCT, tensor_core_product.on_warp_groups),
    **{f"{name}, in te": ({"v4", "ampere", "emulated"}, lambda make=make: make().mod, None) for name, make in KERNELS.items()},
    **{f"{name}, of te": ({"small", "hopper"}, lambda make=make: make().mod, None) for name, make in SMALL_KERNELS.items()},
}
"""By name, the targets, what makes a kernel of te, and a schedule for it, or none."""
STEPS = {f"{name}, steps {seed}": (name, seed) for name in SMALL_KERNELS for seed in range(100, 112)}
"""By name, a kernel and the seed of primitives that schedule it."""
SPACES = ("v4", "amx", "hopper")
"""Targets of which the record has the tunable numbers of PROGRAMS, by all strategies that would take them."""


ANSWERS: dict[str, tuple[Callable[[], Sequence[str]], Callable[[str], Iterable[str]]]] = {
    "calls": (random_calls.operators, random_calls.answers),
    "lit": (lit_outputs.files, lit_outputs.outputs),
    "imports": (random_imports.operators, random_imports.imports),
    "passes": (random_passes.names, lambda name: list(random_passes.answers(name))),
    "language": (relay_programs.names, lambda name: list(relay_programs.answers(name))),
    "sizes": (lambda: [f"seed {i}" for i in range(40)], lambda name: random_sizes.answers(int(name.removeprefix("seed ")))),
}
"""By the name of a file of the record, the names of its lines, and what gives the texts of which a line has the number and the digest: what
type relations of operators say of random calls, what the ONNX frontend makes of mutants of models, what the graph passes make of random
graphs, what is known of random symbolic sizes, what inference and lowering make of Relay programs and of mutants of them, and passes of the
programs, and all that relayc-opt prints for the files of test/lit."""


class _Stages(PassInstrument):
    """Keeps the text of each stage, of each kernel in tir, and of packed entries; and the tunable numbers for a target, if one is given."""

    def __init__(self, kind: str, target: str | None) -> None:
        self.lines: list[str] = []
        self._kind, self._target = kind, target
        self._entries: Mapping[str, PackedEntry] = {}

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name not in STAGES:
            return
        self.lines.append(f"  {STAGES[info.name]} {_digest(ir_text(mod.module.operation))}")
        if info.name == "TirToLlvm":
            self.lines += _code_of_device(mod.module) if self._kind == "cuda" else []
            add_packed_entries(mod.module, self._entries, self._kind)
            self.lines.append(f"  entries {_digest(ir_text(mod.module.operation))}")
        if info.name == "LowerToTe" and self._target:
            for space in relayc.tuning_space(mod.module.operation, self._target, all_strategies=True):
                self.lines.append(f"    {space.kernel} {_digest(str((space.chosen, space.values)))} {space.strategy}: {space.size} values")
        if info.name == "TeToTir":
            assert isinstance(mod, TirModule)
            self._entries = packed_entries(mod, {name: (known.low, known.high) for name, known in mod.ranges.items()})
            functions = symbols_of(mod.module)
            for kernel in mod.kernels:
                self.lines.append(f"    {kernel.name} {_digest(ir_text(functions[kernel.name].operation))} {kernel.schedule}")


def _code_of_device(module: ir.Module) -> list[str]:
    """The kernels of a program for GPUs as LLVM's text; leaves the code of the host, lowered."""
    kernels = kernel_names(module)
    texts = [text.text for text in kernel_texts(module)] if kernels else []
    take_kernels(module)
    use_driver(module, kernels)
    find_backend("cpu").lower(module, Target("cpu", mcpu="x86-64-v3", num_threads=2))
    add_driver_calls(module, kernels)
    return [f"  device {_digest(chr(10).join(texts))}"]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _way(number: int) -> tuple[str, int, list[str]]:
    """The target, the level and the passes left out of a mixed program."""
    left_out = [name for name, p in PASSES.items() if p.info.opt_level >= 1 and zlib.crc32(f"{name} {number}".encode()) % 12 == 0]
    return list(TARGETS)[number % len(TARGETS)], (3, 0, 2, 3, 4, 1, 3)[number // 7 % 7], left_out if number % 3 == 0 else []


def cases() -> Iterator[tuple[str, str]]:
    """(target, program) by name, and (file, line) of the answers."""
    for target in TARGETS:
        yield from ((target, name) for name, program in {**PROGRAMS, **LIMITS}.items() if target in program.targets)
        yield from ((target, name) for name, targets in NETWORKS.items() if target in targets)
        yield from ((target, name) for name, number in MIXED.items() if target == _way(number)[0])
        yield from ((target, name) for name in ONNX if target == "v3")
        yield from ((target, name) for name, written in WRITTEN.items() if target in written[0])
        yield from ((target, name) for name in WALKS if target == "v4")
        yield from ((target, name) for name in STEPS if target in ("v4", "ampere"))
        yield from ((target, name) for name, drawn in DRAWN.items() if target in drawn[0])
    for file, (names, _) in ANSWERS.items():
        yield from ((file, name) for name in names())


def _scheduled(target: str, mod: IRModule, steps: Callable[[Schedule], Sequence[str]]) -> list[str]:
    """A kernel as random primitives schedule it: the blocks, their script and trace, what was refused, and the loops, or why there are
    none."""
    lines = list[str]()

    def schedule(s: Schedule) -> None:
        refused = steps(s)
        lines.extend([f"  blocks {_digest(str(s.mod))}", f"  refused {_digest(str(refused))}", f"  trace {_digest(str(s.trace))}"])
        try:
            text = s.script()
            lines.append(f"  script {_digest(text)} {_digest(script(from_source(text)))}")
        except ScheduleError as error:
            lines.append(f"  {error}")

    (function,) = mod.module.body.operations
    with mod.context, mod.ranges, ir.Location.unknown():
        loops = ir.Module.create()
        try:
            with ir.InsertionPoint(loops.body):
                schedule_by("walk", schedule, function, Target(target), Tuning())
            lines.append(f"  tir {_digest(ir_text(loops.operation))}")
        except ScheduleError as error:
            lines.append(f"  {error}")
    return lines


def _stepped(schedule: Schedule, seed: int, count: int = 16) -> list[str]:
    """Applies random primitives of another kind than those of walks; gives the words of those that were refused."""
    steps, refused = Steps(schedule, seed), list[str]()
    for _ in range(count):
        try:
            steps.any()
        except ScheduleError as error:
            refused.append(str(error))
    return refused


def _any_machine() -> dict[str, Any]:
    """The attributes of the CPU that programs are compiled for where nothing says which: no machine has a say in the record."""
    return {**cpu._level("x86-64-v4"), "num_threads": 2}


def made(target: str, name: str) -> list[str]:
    """What the compiler makes of a program, or answers, as lines of the record."""
    if target == "language":
        return _made(target, name)  # folding runs programs, on this machine
    with patch.object(cpu, "_native", _any_machine):
        return _made(target, name)


def _made(target: str, name: str) -> list[str]:
    if target in ANSWERS:
        texts = list(ANSWERS[target][1](name))
        return [name, f"  {len(texts)} {_digest(chr(10).join(texts))}"]
    text, precision = TARGETS[target]
    if name in WALKS:
        kernel, seed = WALKS[name]
        return [name, *_scheduled(text, KERNELS[kernel]().mod, partial(walk, seed=seed))]
    if name in STEPS:
        kernel, seed = STEPS[name]
        return [name, *_scheduled(text, SMALL_KERNELS[kernel]().mod, partial(_stepped, seed=seed))]
    is_whole = name not in LIMITS and (name not in DRAWN or target == "emulated" or DRAWN[name][2] == 0)
    level, left_out = _way(MIXED[name])[1:] if name in MIXED else (None, [])
    schedules = {}
    if name in WRITTEN:
        model: Any = WRITTEN[name][1]()
        schedules = {"*": WRITTEN[name][2]} if WRITTEN[name][2] else {}
    elif name in DRAWN:
        model = built(draw_one(*DRAWN[name][1:]))
    elif name in ONNX:
        model = ONNX[name]()
    elif name in MIXED:
        model = built(draw(0, MIXED[name]))
    else:
        program = PROGRAMS.get(name) or LIMITS.get(name)
        model = program.module() if program else str(MODELS / f"{name}.onnx")
    kind = "cuda" if text.startswith("cuda") and target != "emulated" else "cpu"
    stages = _Stages(kind, text if name in PROGRAMS and target in SPACES else None)
    with relayc.PassContext(instruments=[stages], disabled_pass=left_out):
        relayc.compile(
            model,
            opt_level=level,
            target=text,
            precision=precision,
            stop_after="llvm" if is_whole else "tir",
            schedules=schedules,
            cache=False,
        )
    return [name, *stages.lines]


@cache
def recorded(target: str) -> dict[str, list[str]]:
    """The lines of the record of a target, by program."""
    found: dict[str, list[str]] = {}
    path = FOLDER / f"{target}.txt"
    for line in path.read_text().splitlines() if path.exists() else ():
        if not line.startswith(" "):
            lines = found[line] = []
        lines.append(line)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    files = (*TARGETS, *ANSWERS)
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"files of the record, of {', '.join(files)} (default: all)")
    parser.add_argument("--update", action="store_true", help="write the record anew")
    parser.add_argument("--show", nargs=2, metavar=("FILE", "NAME"), help="print the texts that a line is a digest of")
    options = parser.parse_args()
    if options.show:
        print(*ANSWERS[options.show[0]][1](options.show[1]), sep="\n")
        return 0
    differ = 0
    for target in options.files or files:
        known, found = recorded(target), {name: made(target, name) for of, name in cases() if of == target}
        for name in {**known, **found}:
            if known.get(name) != found.get(name):
                differ += 1
                print(target, *found.get(name, [f"{name}: no such program"]), sep="\n  ")
        if options.update:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / f"{target}.txt").write_text("\n".join(line for lines in found.values() for line in lines) + "\n")
    print(f"{differ} programs differ from the record")
    return 0 if options.update else int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
