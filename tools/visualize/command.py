"""`relayc visualize`: a picture of a model, in a file."""

import argparse
from pathlib import Path

from relayc.tools.visualize import FORMATS


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds what the command takes beside the options of commands that compile and run a model."""
    out = f"the picture: a file that ends in {', '.join(f'.{name}' for name in FORMATS)}"
    parser.add_argument("-o", "--out", type=_file, required=True, metavar="FILE", help=out)
    what = "the model as it is imported, its operators in fusion groups, or the kernels that it calls, coloured by time (default fused)"
    parser.add_argument("--show", choices=("imported", "fused", "kernels"), default="fused", help=what)
    parser.add_argument("--all", action="store_true", help="draw layers that are alike as often as there are")


def _file(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower().lstrip(".") not in FORMATS:
        raise argparse.ArgumentTypeError(f"expected a file that ends in {', '.join(f'.{name}' for name in FORMATS)}, found {text!r}")
    if not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"expected a file in a folder that is there, found {text!r}")
    return path
