"""The options of `relayc tune`, which every command line reads. The action is imported when the command runs."""

import argparse
from pathlib import Path

from rich.console import Console

from relayc.tools.commands import add_model_options, parse_count
from relayc.tools.inputs import output_file
from relayc.tune import MINUTES, SAMPLERS


def parse_minutes(text: str) -> float:
    """Parses a positive number of minutes, for argparse."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= 1e6:
        raise argparse.ArgumentTypeError(f"expected a number of minutes, found {text!r}")
    return found


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the command to the command line."""
    about = (
        "Search for the numbers of schedules with which the kernels of a model are fastest on this machine, and record them: whatever is "
        "compiled from then on gets them. ^C ends the search with all that is known; the same command goes on."
    )
    parser = commands.add_parser("tune", help="search for faster schedules of a model's kernels", description=about)
    add_model_options(parser)
    model = next(action for action in parser._actions if action.dest == "model")
    model.nargs, model.help = "?", f"{model.help}; none with --show, --export, --import, --merge"
    parser.add_argument("--minutes", type=parse_minutes, metavar="M", help=f"how long to search (default {MINUTES:g}, without --trials)")
    parser.add_argument("--trials", type=parse_count, metavar="N", help="number of candidates to measure, at most")
    parser.add_argument("--kernels", default="*", metavar="PATTERN", help="names of the kernels to tune (default all)")
    where = "the database (default: RELAYC_TUNING_DB, else tuning.sqlite beside the cache of compiled programs)"
    parser.add_argument("--database", type=Path, metavar="FILE", help=where)
    parser.add_argument("--all-strategies", action="store_true", help="try all strategies that accept a kernel, not only the default one")
    parser.add_argument("--sampler", choices=SAMPLERS, help="sampler of candidates (default: tpe if Optuna is installed, otherwise random)")
    workers = "address of a Dask scheduler, tcp://HOST:PORT, whose workers measure (docs/tuning.md)"
    parser.add_argument("--scheduler", metavar="ADDRESS", help=workers)
    parser.add_argument("--report", type=output_file, metavar="OUT.html", help="write a page about the search; - for standard output")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--show", action="store_true", help="print the records of the database instead")
    shown.add_argument("--export", type=output_file, metavar="FILE", help="write the records as lines of JSON; - for standard output")
    added = "add records from a file of --export that are better than the existing ones"
    shown.add_argument("--import", type=Path, dest="imported", metavar="FILE", help=added)
    shown.add_argument("--merge", type=Path, metavar="FILE", help="add the records of another database in the same way")
    parser.set_defaults(action=run)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """`relayc tune`."""
    from relayc.tune.action import run as action

    return action(arguments, console)
