"""How a model is compiled and called: the options common to `relayc.compile` and the command line."""

import os
import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from relayc.dialects.relay.module import IRModule
from relayc.pipelines import DEFAULT_OPT_LEVEL
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile as compile_
from relayc.runtime import num_threads

_DEFAULTS = {"target": "cpu", "precision": "f32", "opt_level": DEFAULT_OPT_LEVEL}


@dataclass(frozen=True)
class Build:
    """A model and the options of its compilation.

    Attributes:
      options: of `relayc.compile`, without options that have default values.
      threads: for calls; None for the setting of the process.
      context: arguments of the PassContext.
      inputs: command-line options, each with a value, that define the inputs; None if options cannot define them.
    """

    model: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    threads: int | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    inputs: Sequence[str] | None = ()

    @staticmethod
    def of(model: Any, options: Mapping[str, Any], inputs: Sequence[str] | None = ()) -> "Build":
        """A call of `relayc.compile` with options under the ambient PassContext."""
        if isinstance(model, (str, os.PathLike)):
            model = os.fspath(model)
        given = {name: value for name, value in options.items() if value not in (None, {}, []) and value != _DEFAULTS.get(name)}
        outer = PassContext.current().settings
        level = outer["opt_level"] if options.get("opt_level") is None else options["opt_level"]
        if level != DEFAULT_OPT_LEVEL:
            given["opt_level"] = level
        threads = given.pop("num_threads", None)
        return Build(model, given, threads, {**outer, "opt_level": level}, inputs)

    @staticmethod
    def of_command(arguments: Namespace) -> "Build":
        """The options of a command for compiling its model under the ambient PassContext, and for its inputs."""
        names = ("target", "precision", "opt_level", "specialize")
        options = {name: getattr(arguments, name) for name in names} | {"cache": False if arguments.no_cache else None}
        words = [] if arguments.inputs is None else ["--inputs", str(arguments.inputs)]
        words += ["--fill", arguments.fill] if arguments.fill != "random" else []
        words += ["--seed", str(arguments.seed)] if arguments.seed else []
        dims = dict(arguments.dim)
        sizes = [(name, size) for name, size in arguments.size if not isinstance(dims.get(name), int)]
        words += [word for name, size in sizes for word in ("--size", f"{name}={size}")]
        build = Build.of(arguments.model, {**options, "shapes": dict(arguments.shape), "dims": dims}, words)
        return replace(build, threads=arguments.threads)

    def changed(self, **options: Any) -> "Build":
        """The same with some other options of `relayc.compile`."""
        return replace(self, options={**self.options, **options})

    @property
    def target(self) -> Target:
        return Target(self.options.get("target", "cpu"), num_threads=self.threads)

    @property
    def called_on(self) -> int:
        """Threads of a call."""
        return num_threads() if self.threads is None else self.threads

    def compile(self, **more: Any) -> Any:
        """The module, or the IRModule of the stage that `stop_after` says."""
        model = self.model
        if isinstance(model, IRModule):  # passes change it in place
            model = IRModule.parse(str(model), model.params)
        outer = PassContext.current()
        with PassContext(**{**self.context, "instruments": outer.instruments}):
            return compile_(model, **{**self.options, "num_threads": self.threads, **more})

    def words(self) -> list[str]:
        """The options as command-line words."""
        found: list[str] = []
        for name in ("target", "precision", "opt_level"):
            if name in self.options:
                found += [f"--{name.replace('_', '-')}", str(self.options[name])]
        found += [w for name, dims in self.options.get("shapes", {}).items() for w in ("--shape", f"{name}={','.join(map(str, dims))}")]
        for name, size in self.options.get("dims", {}).items():
            found += ["--dim", f"{name}={size}" if isinstance(size, int) else f"{name}={size[0]}:{size[1]}"]
        for sizes in self.options.get("specialize", []):
            found += ["--specialize", ",".join(f"{name}={size}" for name, size in sizes.items())]
        found += [] if self.threads is None else ["--threads", str(self.threads)]
        found += ["--no-cache"] if self.options.get("cache") is False else []
        for option, key in (("--disable", "disabled_pass"), ("--require", "required_pass")):
            found += [word for name in sorted(self.context.get(key, ())) for word in (option, name)]
        for key, value in self.context.get("config", {}).items():
            found += ["--config", f"{key}={','.join(value) if isinstance(value, list) else value}"]
        return found

    @property
    def command(self) -> str | None:
        """The `relayc run` that times this; None if the command line cannot express it."""
        values = self.context.get("config", {}).values()
        plain = all(isinstance(v, (bool, int, str)) or (isinstance(v, list) and all(isinstance(w, str) for w in v)) for v in values)
        if not isinstance(self.model, str) or self.inputs is None or self.options.get("schedules") or not plain:
            return None
        return shlex.join(["relayc", "run", self.model, *self.words(), *self.inputs, "--repeat", "100"])

    @property
    def call(self) -> str:
        """The call of `relayc.compile`, for people."""
        options = {**self.options, **({} if self.threads is None else {"num_threads": self.threads})}
        return f"relayc.compile({', '.join(['model', *(f'{name}={value!r}' for name, value in options.items())])})"

    def as_data(self) -> dict[str, Any]:
        """How it is compiled, as plain data."""
        return {"command": self.command, "call": self.call}
