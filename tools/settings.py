"""The PassContext of a command line: which passes run, and with which settings."""

import argparse
from typing import Any

from relayc.pipelines.context.instruments import PassInstrument
from relayc.pipelines.context.passes import CONFIG, PassContext, find_pass, load_passes


def add_pass_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that `pass_context` reads."""
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="a PassContext option; may be repeated")
    disabled = "a pass that a pipeline leaves out, or a fusion rule as fuse-ops.RULE; may be repeated"
    parser.add_argument("--disable", action="append", default=[], metavar="NAME", help=disabled)
    required = "a pass that a pipeline runs at any optimisation level; may be repeated"
    parser.add_argument("--require", action="append", default=[], metavar="NAME", help=required)


def pass_context(arguments: argparse.Namespace, instruments: tuple[PassInstrument, ...] = ()) -> PassContext:
    """The PassContext of a command. Raises ValueError or TypeError for a pass that nobody knows, an unknown key or a wrong value."""
    for name in (*arguments.disable, *arguments.require):
        if "." not in name:  # fuse-ops lists the rules
            find_pass(name)
    config = _config(arguments.config) if arguments.config else {}
    return PassContext(arguments.opt_level, arguments.require, arguments.disable, config, instruments)


def _config(settings: list[str]) -> dict[str, Any]:
    """Values of `KEY=VALUE` settings by the type of the registered option, lists separated by commas. Raises ValueError."""
    load_passes()
    config: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in CONFIG:
            raise ValueError(f"--config: expected KEY=VALUE with KEY one of {', '.join(CONFIG)}, found {setting!r}")
        config[key] = _value(value, CONFIG[key].type)
    return config


def _value(text: str, type_: type) -> object:
    if type_ is bool:
        return text.lower() in ("1", "true")
    return [part for part in text.split(",") if part] if type_ is list else type_(text)
