"""The command `relayc bisect`: compares a model's results with a reference, finds what makes them differ, and writes the least model."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from relayc.dialects.discardable import NAME
from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType
from relayc.frontend import import_model
from relayc.runtime import Module
from relayc.runtime.params import save_param_dict_to_file
from relayc.tools.bisect.compiling import Compiler
from relayc.tools.bisect.onnx_parts import OnnxSource
from relayc.tools.bisect.parts import Part, Source
from relayc.tools.bisect.search import REFUSED, Fault, Search
from relayc.tools.bisect.symptoms import symptom_of
from relayc.tools.inputs import save_outputs, tensors_of
from relayc.tools.reference import Agreement, run_onnxruntime, tolerance
from relayc.tools.tables import make_table, print_parts

if TYPE_CHECKING:
    from relayc.pipelines.evaluate.equivalence import Equivalence

ONNXRUNTIME, SIMPLEST = "onnxruntime", "opt0"


@dataclass
class Question:
    """The comparison requested by the user.

    Attributes:
      model: as the user gave it.
      compiler: compiles it with the user's options, including shapes and dims.
      parts: compiles parts of it, which have no symbols.
      inputs: of the model, by name.
      module: the model, compiled.
      precision: of its computation.
    """

    model: Any
    compiler: Compiler
    parts: Compiler
    inputs: Mapping[str, np.ndarray]
    module: Module
    precision: str


@dataclass(frozen=True)
class Answer:
    """The result of the search.

    Attributes:
      reference: description of the reference.
      agreement: of the whole model.
      part: the smallest part that differs; the whole model if no part does.
      values: tensors of the reference by name.
      fault: the cause; None if nothing differs.
    """

    reference: str
    agreement: Agreement
    part: Part | None = None
    values: Mapping[str, np.ndarray] | None = None
    fault: Fault | None = None


def bisect(question: Question, reference: str, report: Any = lambda line: None) -> Answer:
    """Finds what makes a model's results differ from a reference, ONNXRUNTIME or SIMPLEST.

    Raises:
      ModuleNotFoundError: ONNX Runtime is to be the reference, and is not installed.
      ValueError: what the reference is to compute is no ONNX model.
    """
    model = _onnx_model(question.model)
    source = _relay_source(question) if model is None else OnnxSource(model, question.inputs)
    values, words = _reference(question, source, model, reference)
    outputs = tuple(name for name in question.module.output_names if name in values)
    whole = Part(tuple(range(len(source.names))), lambda: question.model, question.inputs, outputs)
    search = Search(question.parts, question.precision, report)
    agreement = search.agreement(question.module, whole, values)
    if agreement.agrees:
        return Answer(words, agreement)
    report(f"results differ from {words} by up to {agreement.difference:.3g} (allowed: {tolerance(question.precision)})")
    part = search.least(source, values)
    if part is None and any(spec.is_symbolic for spec in question.module.inputs):
        report("no part with sizes that are numbers differs by itself: parts of the relay program, with its symbols, are looked at")
        source = _relay_source(question)
        values |= _simplest(question.parts, source.all_tensors(), question.inputs)
        part = search.least(source, values)
    if part is None:
        report("no part differs by itself: the whole model is looked at")
        return Answer(words, agreement, whole, values, Search(question.compiler, question.precision).fault(whole, values, source.names))
    return Answer(words, agreement, part, values, search.fault(part, values, source.names))


@dataclass(frozen=True)
class Failure:
    """A model that does not compile, or whose call fails.

    Attributes:
      symptom: how it fails (see symptom_of).
      part: the smallest part that fails in the same way; None if no part does.
    """

    symptom: str
    part: Part | None


def find_failure(model: Any, compiler: Compiler, parts: Compiler, inputs: Mapping[str, np.ndarray], report: Any) -> Failure | None:
    """How compiling a model or its call fails, and the least part that fails in the same way; None if neither fails. Compilers are those of
    Question.

    Programs run in processes of their own, and what the nodes of a part take is what ONNX Runtime computes. Parts have the symbols of the
    model: a schedule that fails for open sizes is another one for fixed sizes.
    """
    search = Search(parts, "f32", report)
    how = symptom_of(lambda: compiler.compile(model).run(inputs))
    graph = _onnx_model(model)
    if how is None or graph is None:
        return None if how is None else Failure(how, None)
    report(f"the model fails: {how}")
    source = OnnxSource(graph, inputs)
    every = source.all_tensors()
    try:
        source = OnnxSource(graph, inputs, _shapes(import_model(every.make(), **_open_sizes(compiler))))
    except REFUSED:
        report("the model is not imported: parts with sizes that are numbers are looked at")
    values = {**inputs, **tensors_of(run_onnxruntime(_with_types(every.make(), graph), inputs, optimised=False))}
    return Failure(how, search.least_that_fails(source, values, how))


def _open_sizes(compiler: Compiler) -> dict[str, Any]:
    """The sizes that the user specified for a model."""
    return {name: compiler.options[name] for name in ("shapes", "dims") if compiler.options.get(name)}


def _shapes(mod: IRModule) -> dict[str, tuple[int | str, ...]]:
    """The shapes of the arguments and results of `main`, by name: sizes, and expressions of symbols."""
    block = mod.main.regions[0].blocks[0]
    values = [*zip(block.arguments, value_attributes(mod.main), strict=True)]
    results = block.operations[len(block.operations) - 1].operands
    values += zip(results, value_attributes(mod.main, "res_attrs"), strict=True)
    types = {NAME.of(a): TensorType.of(value) for value, a in values if isinstance(value.type, ir.RankedTensorType)}
    return {name: tuple(d if isinstance(d, int) else str(d) for d in type_.shape) for name, type_ in types.items()}


def _relay_source(question: Question) -> Source:
    from relayc.tools.bisect.relay_parts import RelaySource

    return RelaySource(import_model(question.model, **_open_sizes(question.compiler)), question.inputs)


def _onnx_model(model: Any) -> Any:
    """An onnx.ModelProto with its weights; None for other models."""
    import onnx

    if isinstance(model, onnx.ModelProto):
        return model
    if isinstance(model, (str, Path)) and str(model).endswith(".onnx"):
        return onnx.load(model)
    return None


def _reference(question: Question, source: Source, model: Any, reference: str) -> tuple[dict[str, np.ndarray], str]:
    """Every tensor of a model as computed by the reference, and a description of the reference. `model` is the ONNX model, if it is one."""
    every = source.all_tensors()
    if reference == ONNXRUNTIME:
        if model is None:
            raise ValueError("bisect: expected an ONNX model for ONNX Runtime, found another one (--reference opt0 needs none)")
        found, words = run_onnxruntime(_with_types(every.make(), model), question.inputs, optimised=False), "ONNX Runtime"
    else:
        fixed = {} if model is None else {"shapes": {name: list(array.shape) for name, array in question.inputs.items()}}
        found, words = _simplest(question.parts, every, question.inputs, **fixed), "the program at opt_level 0"
        if model is None:
            # The outputs under their own names, too.
            found |= question.compiler.compile(question.model, question.compiler.first(0)).run(question.inputs)
    return {**question.inputs, **tensors_of(found)}, words


def _with_types(every: Any, model: Any) -> bytes:
    """A model with every tensor among its outputs, and the outputs of the model itself; those without a type get one from ONNX Runtime."""
    known = {output.name for output in every.graph.output}
    every.graph.output.extend(output for output in model.graph.output if output.name not in known)
    return every.SerializeToString()


def _simplest(compiler: Compiler, part: Part, inputs: Mapping[str, np.ndarray], **options: Any) -> dict[str, Any]:
    """The results of a part compiled with as few transformations as possible."""
    try:
        return compiler.compile(part.make(), compiler.first(0), plain=True, **options).run(inputs)
    except REFUSED:
        # Not every kernel of symbolic sizes can be plain loops.
        return compiler.compile(part.make(), compiler.first(0), **options).run(inputs)


# ---- the command line ---------------------------------------------------------------------------------------------------------------


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `relayc bisect`, besides the options of models."""
    parser.add_argument("--check", action="store_true", help="compare with ONNX Runtime, and with nothing else")
    which = "what to compare with: ONNX Runtime, or the program with no pass that may be left out and with kernels as plain loops "
    which += "(default: ONNX Runtime where the model is of ONNX and it is installed)"
    fails = "find the least part that fails as the model does, which does not compile, or whose call with --inputs raises, dies or hangs"
    parser.add_argument("--failure", action="store_true", help=fails)
    passes = "evaluate the model before and after every pass, and name the passes that change what it gives: on --inputs, else on made-up "
    parser.add_argument("--passes", action="store_true", help=passes + "ones of several sizes, which --size says")
    parser.add_argument("--reference", choices=(ONNXRUNTIME, SIMPLEST), help=which)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write the least model (default: bisect-MODEL)")


def chosen_reference(arguments: argparse.Namespace) -> str:
    """The reference that a command line selects."""
    if arguments.check or arguments.reference is not None:
        return arguments.reference or ONNXRUNTIME
    try:
        import onnxruntime  # noqa: F401 (whether there is one)
    except ModuleNotFoundError:
        return SIMPLEST
    return ONNXRUNTIME if _onnx_model(arguments.model) is not None else SIMPLEST


def show_passes(found: "Equivalence", console: Console) -> None:
    """Prints the passes that change the results of a model."""
    for reason in dict.fromkeys(found.unchecked):
        print_parts(console, f"not compared: {reason}")
    for difference in found.differences:
        print_parts(console, str(difference))
    if not found.differences:
        console.print("every pass that was compared keeps what the model gives")


def show(answer: Answer, question: Question, folder: Path, console: Console) -> None:
    """Prints the result, and writes the smallest model if results differ."""
    if answer.fault is None or answer.part is None or answer.values is None:
        console.print(f"agrees with {answer.reference}: largest difference {answer.agreement.difference:.3g}")
        return
    written = write(answer, folder)
    fault = answer.fault
    table = make_table(f"{fault.kind} at fault", what={}, found={"overflow": "fold"})
    table.add_row(fault.kind, fault.name)
    for name, text in fault.about.items():
        table.add_row(name, text)
    table.add_row("nodes in the least model", str(len(answer.part.nodes)))
    table.add_row("largest difference", f"{fault.agreement.difference:.3g}, {fault.agreement.spread:.1%} of the spread")
    table.add_row("allowed", tolerance(question.precision))
    console.print(table)
    for path in written:
        print_parts(console, f"wrote {path}")
    if (folder / "model.onnx").exists():
        print_parts(console, f"again: relayc run {folder / 'model.onnx'} --inputs {folder / 'inputs.npz'} --check")


def show_failure(failure: Failure, folder: Path, console: Console) -> None:
    """Prints how a model fails, and writes the least part that fails in the same way."""
    if failure.part is None:
        console.print("no part fails in this way by itself")
        return
    import onnx

    folder.mkdir(parents=True, exist_ok=True)
    model = failure.part.make()
    onnx.save(model, folder / "model.onnx")
    (folder / "model.txt").write_text(onnx.printer.to_text(model) + "\n")
    save_outputs(folder / "inputs.npz", failure.part.inputs)
    (folder / "fault.json").write_text(json.dumps({"kind": "failure", "name": failure.symptom}, indent=1) + "\n")
    print_parts(console, f"{len(failure.part.nodes)} nodes fail in the same way: {folder / 'model.onnx'}")
    print_parts(console, f"again: relayc run {folder / 'model.onnx'} --inputs {folder / 'inputs.npz'}")


def write(answer: Answer, folder: Path) -> list[Path]:
    """Writes the smallest model: the ONNX model if there is one, relay text, inputs, results of the reference, and the findings."""
    part, fault = answer.part, answer.fault
    assert part is not None and fault is not None and answer.values is not None
    folder.mkdir(parents=True, exist_ok=True)
    model = part.make()
    written = []
    if _onnx_model(model) is not None:
        import onnx

        written.append(folder / "model.onnx")
        onnx.save(_onnx_model(model), written[-1])
    relay: IRModule = import_model(model)
    written += _write_relay(relay, folder)
    for name, arrays in (("inputs.npz", part.inputs), ("expected.npz", {name: answer.values[name] for name in part.outputs})):
        written.append(folder / name)
        save_outputs(written[-1], arrays)
    for name, text in fault.texts.items():
        written.append(folder / name)
        written[-1].write_text(text)
    found = {
        "kind": fault.kind,
        "name": fault.name,
        **fault.about,
        "reference": answer.reference,
        "difference": fault.agreement.difference,
        "spread": fault.agreement.spread,
        "outputs": list(part.outputs),
    }
    written.append(folder / "fault.json")
    written[-1].write_text(json.dumps(found, indent=1) + "\n")
    return written


def _write_relay(mod: IRModule, folder: Path) -> list[Path]:
    written = [folder / "model.mlir"]
    written[0].write_text(f"{mod}\n")
    if mod.params:
        written.append(folder / "params.safetensors")
        save_param_dict_to_file(mod.params, written[-1])
    return written
