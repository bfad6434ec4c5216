"""Common parts of commands that take a model: options, the compiled module, inputs, and output."""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from relayc.frontend import suffixes
from relayc.pipelines import DEFAULT_OPT_LEVEL, MAX_OPT_LEVEL
from relayc.pipelines.driver.compile import PRECISIONS
from relayc.runtime import Module, load_module, set_num_threads
from relayc.tools.inputs import (
    FILLS,
    load_inputs,
    module_sizes,
    parse_count,
    parse_dim,
    parse_seed,
    parse_shape,
    parse_size,
    parse_specialize,
    random_inputs,
    sizes_text,
)
from relayc.tools.progress import import_progress
from relayc.tools.settings import add_pass_options
from relayc.tools.tables import plain_console, print_parts


class CommandError(Exception):
    """Something that the user can mend, said in one line."""


def make_console(to_stderr: bool = False) -> Console:
    """Standard output, or standard error where the former is for a file; in a file or pipe lines have room for a table."""
    stream = sys.stderr if to_stderr else sys.stdout
    return plain_console(stderr=to_stderr, width=None if stream.isatty() else 160)


def compile_with_progress(model: Any, quiet: bool = False, **options: Any) -> Module:
    """Compiles a model with options of `relayc.compile`; a progress bar shows how far it is, unless `quiet`."""
    from relayc.pipelines.driver.compile import compile as compile_

    with import_progress(quiet) as progress:
        return compile_(model, progress=progress, **options)


def compile_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of `relayc.compile` that a command has, but the number of threads."""
    found = {name: getattr(arguments, name) for name in ("target", "precision", "opt_level", "specialize", "dump_ir")}
    return {**found, "shapes": dict(arguments.shape), "dims": dict(arguments.dim), "cache": False if arguments.no_cache else None}


def compile_model(arguments: argparse.Namespace, **changes: Any) -> Module:
    """Compiles the model of a command with its options, of which `changes` replace some."""
    if arguments.threads is not None:
        set_num_threads(arguments.threads)
    options = {**compile_options(arguments), "num_threads": arguments.threads, "quiet": arguments.quiet}
    return compile_with_progress(arguments.model, **{**options, **changes})


def module_of(arguments: argparse.Namespace) -> Module:
    """The module of a command that runs it: a library that `relayc compile` wrote, or what a model is compiled to."""
    if arguments.model.suffix != ".so":
        return compile_model(arguments)
    parser = argparse.ArgumentParser()
    add_compiler_options(parser)
    ignored = ("model", "threads", "verbose", "quiet")
    given = [name for name, value in vars(parser.parse_args([""])).items() if name not in ignored and getattr(arguments, name) != value]
    if given:
        raise CommandError(f"--{given[0].replace('_', '-')} is for models that are compiled: {arguments.model} is a library")
    module = load_module(arguments.model)
    module.num_threads = arguments.threads
    return module


def inputs_of(module: Module, arguments: argparse.Namespace, console: Console) -> dict[str, np.ndarray]:
    """The inputs of a module as the arguments state them; the console shows the sizes that were chosen."""
    if arguments.inputs is not None:
        return load_inputs(arguments.inputs, module.inputs)
    given = dict(arguments.size)
    sizes = module_sizes(module, given)
    if sizes:
        typical = [name for name in sizes if name not in given]
        chosen = f" (typical sizes for {', '.join(typical)}: --size says others)" if typical else ""
        say(f"sizes: {sizes_text(sizes)}{chosen}", arguments, console)
    return random_inputs(module.inputs, arguments.seed, sizes, arguments.fill)


def say(text: str, arguments: argparse.Namespace, console: Console) -> None:
    """Prints information that is not requested by an option; --quiet suppresses it."""
    if not arguments.quiet:
        print_parts(console, text)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Options of commands that compile a model and run it."""
    add_compiler_options(parser)
    parser.add_argument("--inputs", type=Path, metavar="IN.npz", help="inputs by name (default: as --fill says)")
    parser.add_argument("--fill", choices=FILLS, default="random", help="what inputs are made of (default random, from --seed)")
    parser.add_argument("--seed", type=parse_seed, default=0, metavar="N", help="of random inputs (default 0)")
    size_help = "size of a symbolic dimension in random inputs (default: a typical one); may be repeated"
    parser.add_argument("--size", type=parse_size, action="append", default=[], metavar="NAME=SIZE", help=size_help)


def add_compiler_options(parser: argparse.ArgumentParser, model: str = "") -> None:
    """Options of commands that compile a model; `model` says which models a command takes, if not all."""
    every = f"a model: a file that ends in {', '.join(suffixes())}; run and inspect take a library (.so) too"
    parser.add_argument("model", type=Path, help=model or every)
    shape_help = "shape of an input with symbolic dimensions: sizes, or names for them (x=batch,3,h,w); may be repeated"
    parser.add_argument("--shape", type=parse_shape, action="append", default=[], metavar="NAME=D0,D1,...", help=shape_help)
    dim_help = "size of a symbolic dimension, or its least and largest size (seq=1:512); may be repeated"
    parser.add_argument("--dim", type=parse_dim, action="append", default=[], metavar="NAME=SIZE", help=dim_help)
    special_help = "sizes to compile for by themselves, beside the program for all sizes (batch=8,seq=128); may be repeated"
    parser.add_argument("--specialize", type=parse_specialize, action="append", default=[], metavar="NAME=SIZE,...", help=special_help)
    target = "what to compile for: a kind and its attributes, such as 'cpu -num-threads=4' (default cpu: this machine)"
    parser.add_argument("--target", default="cpu", metavar="TARGET", help=target)
    precision = "round the operands of products and convolutions to it, where the target has instructions for that (default f32)"
    parser.add_argument("--precision", choices=PRECISIONS, default="f32", help=precision)
    levels = range(MAX_OPT_LEVEL + 1)
    parser.add_argument("--opt-level", type=int, choices=levels, default=DEFAULT_OPT_LEVEL, help="optimisation level (default %(default)s)")
    parser.add_argument("--threads", type=parse_count, metavar="N", help="threads to run on (default: all cores, or OMP_NUM_THREADS)")
    parser.add_argument("--no-cache", action="store_true", help="compile, and keep nothing in the on-disk cache")
    parser.add_argument("--dump-ir", type=Path, metavar="DIR", help="write the IR after each pass into DIR")
    add_pass_options(parser)
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors and what other options ask for")
    parser.add_argument("--verbose", action="store_true", help="show the traceback of an error")
