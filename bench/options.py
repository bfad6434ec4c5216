"""Options that several benchmarks have."""

import argparse
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeAlias

from rich.console import Console

from relayc.bench.engines import ENGINES
from relayc.runtime.threads import usable_cpus
from relayc.tools.commands import parse_count
from relayc.tools.inputs import parse_seed, parse_shape

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What argparse's `add_subparsers` gives."""


def add_command(commands: Commands, name: str, action: Callable[[argparse.Namespace, Console], int], about: str) -> argparse.ArgumentParser:
    """Adds a command, which `action` runs, to the command line; its options are to be added."""
    command = commands.add_parser(name, help=about)
    command.set_defaults(action=action)
    return command


def parse_names(what: str, known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """Reads a list of engines, or of whatever else has a name, out of some."""

    def parse(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            raise argparse.ArgumentTypeError(f"expected {what} out of {', '.join(known)}, found {text!r}")
        return names

    return parse


def add_common(parser: argparse.ArgumentParser, engines: str, known: Collection[str] = tuple(ENGINES)) -> None:
    """The engines, by default some that are installed; and settings."""
    listed = f"of {', '.join(known)}, separated by commas (default: those of {engines} that are installed)"
    parser.add_argument("--engines", type=parse_names("engines", known), metavar="LIST", help=listed)
    parser.set_defaults(default_engines=parse_names("engines", known)(engines))
    add_settings(parser)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Threads, precision and the file of results."""
    parser.add_argument(
        "--threads", type=parse_count, default=usable_cpus(), metavar="N", help="threads of each engine (default: all CPUs)"
    )
    add_results(parser)


def add_results(parser: argparse.ArgumentParser) -> None:
    """Precision and the file of results."""
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32", help="what engines that can choose compute in (default f32)")
    add_json(parser)


def add_models(parser: argparse.ArgumentParser, default: str = "light") -> None:
    """The models and the shapes of their inputs."""
    models = f"light, test, files and patterns of files, separated by commas (default {default})"
    parser.add_argument("--models", default=default, metavar="LIST", help=models)
    shape = "shape of an input with symbolic dimensions, in every model that has it; may be repeated"
    parser.add_argument("--shape", type=parse_shape, action="append", default=[], metavar="NAME=D0,D1,...", help=shape)


def add_turns(command: argparse.ArgumentParser) -> None:
    """The arguments of a command whose kernels are of this process."""
    command.add_argument("--threads", type=parse_count, default=1, metavar="N", help="threads (default %(default)s)")
    command.add_argument("--rounds", type=parse_count, default=10, metavar="N", help="turns of each kernel (default %(default)s)")
    command.add_argument("--seed", type=parse_seed, default=0, metavar="N", help="of the inputs (default 0)")
    add_json(command)


def add_json(command: argparse.ArgumentParser) -> None:
    """The file of results."""
    command.add_argument("--json", type=Path, metavar="OUT.json", help="write results and a description of the machine")


def add_rounds(parser: argparse.ArgumentParser) -> None:
    """How often engines take turns."""
    parser.add_argument("--rounds", type=parse_count, default=5, metavar="N", help="turns of each engine (default 5)")
    parser.add_argument("--runs", type=parse_count, metavar="N", help="calls a round (default: as many as fit in 0.3 s)")
    parser.add_argument("--seed", type=parse_seed, default=0, metavar="N", help="of the inputs (default 0)")
