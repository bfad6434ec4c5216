"""The commands `relayc advise` and `relayc diff`."""

import argparse
import json
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from relayc.runtime import Module
from relayc.tools.commands import add_model_options, inputs_of
from relayc.tools.inputs import output_file, parse_seconds, written
from relayc.tools.progress import status_line
from relayc.tools.settings import pass_context
from relayc.tools.tables import print_parts


def add_advise_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `relayc advise`, besides the options of models."""
    how_long = "how long to try options (default 60); ^C ends it earlier, with what is known by then"
    parser.add_argument("--seconds", type=parse_seconds, default=60.0, metavar="S", help=how_long)
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write it as JSON too; - for standard output")


def add_diff_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `relayc diff`, besides the options of models."""
    b = "the other model (default: the same). Both may also be libraries (.so), and records (.json) that --save wrote"
    parser.add_argument("b", type=Path, nargs="?", metavar="B", help=b)
    for side in ("a", "b"):
        about = f"options of {side.upper()} alone, as a text: --{side}='--precision bf16'"
        parser.add_argument(f"--{side}", dest=f"{side}_options", default="", metavar="'OPTIONS'", help=about)
    parser.add_argument(
        "--seconds", type=parse_seconds, default=10.0, metavar="S", help="how long to time both in turns (default 10); 0 for no times"
    )
    parser.add_argument("--texts", action="store_true", help="print the changed lines of computations and schedules too")
    save = "write the record of A, for a comparison with another revision of relayc: relayc diff FILE MODEL"
    parser.add_argument("--save", type=output_file, metavar="FILE.json", help=save)
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write it as JSON too; - for standard output")


def advise(arguments: argparse.Namespace, console: Console) -> int:
    """`relayc advise`: where a model spends its time, and how to make it faster."""
    from relayc.tools.advice_tables import advice_parts
    from relayc.tools.advise import search
    from relayc.tools.build import Build

    if arguments.model.suffix == ".so":
        raise ValueError(f"advise needs the model, found a library: {arguments.model}")
    with status_line("compiling", arguments.quiet) as report:
        advice = search(Build.of_command(arguments), lambda module: inputs_of(module, arguments, console), arguments.seconds, report)
    _print_parts(advice_parts(advice), {"model": str(arguments.model), **advice.as_data()}, arguments, console)
    if advice.interrupted:
        raise KeyboardInterrupt
    return 0


def diff(arguments: argparse.Namespace, console: Console) -> int:
    """`relayc diff`: differences between two compilations. Returns 1 if there are any."""
    from relayc.tools.build import Build
    from relayc.tools.diff import compare_records, make_records, open_side
    from relayc.tools.diff_tables import diff_parts

    said = [(arguments.model, arguments.a_options), (arguments.b or arguments.model, arguments.b_options)]
    if arguments.b is None and not (arguments.a_options or arguments.b_options):
        if arguments.save is None:
            raise ValueError("diff needs something to compare with: B, --a or --b (or --save)")
        said.pop()

    def make(module: Module, fixed: Collection[str]) -> Mapping[str, Any]:
        sizes = [(name, size) for name, size in arguments.size if name not in fixed]
        return inputs_of(module, argparse.Namespace(**{**vars(arguments), "size": sizes}), console)

    parser, sides = argparse.ArgumentParser(prog="relayc diff: --a or --b", add_help=False), []
    add_model_options(parser)
    with status_line("compiling", arguments.quiet) as report:
        for model, words in said:
            if words and model.suffix in (".so", ".json"):
                raise ValueError(f"diff: --a and --b are for models that are compiled, found {words!r} for {model}")
            own = parser.parse_args([str(model), *shlex.split(words)], argparse.Namespace(**vars(arguments)))
            with pass_context(own):
                report(f"compiling {model}")
                sides.append(open_side(model, {}, Build.of_command(own)))
        report("running both in turns")
        records = make_records(sides, make, arguments.seconds)
    if arguments.save is not None:
        records[0].save(arguments.save)
    if len(records) == 1:
        return 0
    found = compare_records(*records)
    _print_parts(diff_parts(found, arguments.texts), found.as_data(), arguments, console)
    return 0 if found.is_empty else 1


def _print_parts(parts: Iterator[Any], data: Mapping[str, Any], arguments: argparse.Namespace, console: Console) -> None:
    """Prints lines and tables, and writes data as --json says."""
    print_parts(console, *parts)
    if arguments.json is not None:
        with written(arguments.json) as file:
            file.write(f"{json.dumps(data, indent=1)}\n".encode())
