"""Pass infrastructure: passes, their order, and the context that enables, configures and observes them.

A pass takes an IRModule and returns one, changed in place or new. Its name, as in Relay (`FoldConstant`), is used by `required_pass` and
`disabled_pass`; its flag, derived from the name (`fold-constant`), by `relayc-opt`:

    @module_pass(opt_level=1, name="DropNegatives")
    def drop_negatives(mod, ctx):
        ...
        return mod

    with PassContext(opt_level=3, config={"pipelines.add_pass": [("before:FuseOps", drop_negatives)]}):
        relayc.compile(model)

Passes work on any stage: a module of the `te`, `tir` or `llvm` stage is an IRModule too.
"""

import contextvars
import functools
import importlib
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from relayc.dialects.discardable import STAGE
from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.interrupts import deferred
from relayc.nearest import nearest
from relayc.pipelines import DEFAULT_OPT_LEVEL
from relayc.pipelines.context.backend import backend_modules
from relayc.pipelines.context.instruments import PassInfo, PassInstrument, flag_of

# Modules that register passes and config options on import; read when a name is not known yet, so that a tool which needs one pass
# does not pay for importing all of them.
_PASS_MODULES = (
    "relayc.pipelines.graph",
    "relayc.pipelines.driver.lowering",
    "relayc.pipelines.tir.strategy.table",
    "relayc.pipelines.tir.schedule.passes",
    "relayc.pipelines.history.keys",
)


# ---- configuration --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConfigOption:
    """A key of `PassContext.config`: the type of its values, its default and its documentation."""

    key: str
    type: type
    default: Any
    doc: str


CONFIG: dict[str, ConfigOption] = {}
"""Every config key that is known, in the order of registration."""


def config_option(key: str, type_: type, default: Any, doc: str) -> None:
    """Registers a key of `PassContext.config`; the pass that reads a key registers it beside its definition."""
    CONFIG[key] = ConfigOption(key, type_, default, doc)


config_option(
    "pipelines.add_pass",
    list,
    [],
    "passes to insert: pairs (position, pass), position being before:NAME or after:NAME of a pass or of a Sequential",
)


def _checked_config(config: dict[str, Any]) -> dict[str, Any]:
    for key, value in config.items():
        if key not in CONFIG:
            load_passes()
        if key not in CONFIG:
            raise ValueError(f"PassContext: unknown config key {key!r}; known keys are {', '.join(CONFIG)}{nearest(key, CONFIG)}")
        expected = CONFIG[key].type
        if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
            raise TypeError(f"PassContext: config {key!r}: expected {expected.__name__}, found {value!r}")
    for position, added in config.get("pipelines.add_pass", []):
        if not re.fullmatch(r"(before|after):[\w.-]+", position):
            raise ValueError(f"PassContext: pipelines.add_pass: expected position before:NAME or after:NAME, found {position!r}")
        find_pass(position.split(":")[1])
        if not isinstance(added, Pass):
            raise TypeError(f"PassContext: pipelines.add_pass: expected a pass, found {added!r}")
    return dict(config)


# ---- the context ------------------------------------------------------------------------------------------------------------------------

_DEFAULT: contextvars.ContextVar["PassContext | None"] = contextvars.ContextVar("relayc_default_pass_context", default=None)
_STACK: contextvars.ContextVar[tuple["PassContext", ...]] = contextvars.ContextVar("relayc_pass_contexts", default=())


class PassContext:
    """Which passes run and how, for everything compiled inside `with`.

    Args:
      opt_level: passes with a higher opt_level are left out.
      required_pass: names of passes that run whatever the level and the instruments say.
      disabled_pass: names of passes that do not run (unless required).
      config: values of the keys registered with `config_option`.
      instruments: PassInstrument objects, called in this order around every pass.

    Raises:
      ValueError, TypeError: an unknown config key or position, a value of the wrong type, a negative level.
    """

    def __init__(
        self,
        opt_level: int = DEFAULT_OPT_LEVEL,
        required_pass: Iterable[str] = (),
        disabled_pass: Iterable[str] = (),
        config: dict[str, Any] | None = None,
        instruments: Sequence[PassInstrument] = (),
    ) -> None:
        if not isinstance(opt_level, int) or opt_level < 0:
            raise ValueError(f"PassContext: expected an opt_level of 0 or more, found {opt_level!r}")
        for name, passes in (("required_pass", required_pass), ("disabled_pass", disabled_pass)):
            if isinstance(passes, str):
                raise TypeError(f"PassContext: {name}: expected names of passes, found the text {passes!r}")
        self.opt_level = opt_level
        self.required_pass = frozenset(map(flag_of, required_pass))
        self.disabled_pass = frozenset(map(flag_of, disabled_pass))
        self.config = _checked_config(config or {})
        self.instruments = list(instruments)
        self._added: dict[str, list[Pass]] = {}
        for position, added in self.config.get("pipelines.add_pass", []):
            where, name = position.split(":")
            self._added.setdefault(f"{where}:{flag_of(name)}", []).append(added)
        self._tokens: list[contextvars.Token] = []
        self._entered: list[list[PassInstrument]] = []

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of another context with the same passes and configuration, without instruments."""
        names = ("opt_level", "required_pass", "disabled_pass", "config")
        return {name: getattr(self, name) for name in names}

    @staticmethod
    def current() -> "PassContext":
        """The innermost context of this thread; the default context if there is none."""
        stack = _STACK.get()
        if not stack and _DEFAULT.get() is None:
            _DEFAULT.set(PassContext())
        return stack[-1] if stack else _DEFAULT.get()  # type: ignore[return-value] # it is set

    def override_instruments(self, instruments: Sequence[PassInstrument] | None) -> None:
        """Replaces the instruments; the previous ones are exited. If an instrument fails, the context has none."""
        before, self.instruments = self.instruments, []
        for instrument in before:
            instrument.exit_pass_ctx()
        self.instruments = self._enter(instruments or ())
        if self._entered:
            self._entered[-1] = self.instruments

    @staticmethod
    def _enter(instruments: Iterable[PassInstrument]) -> list[PassInstrument]:
        entered: list[PassInstrument] = []
        try:
            for instrument in instruments:
                instrument.enter_pass_ctx()
                entered.append(instrument)
        except BaseException:
            for instrument in reversed(entered):
                instrument.exit_pass_ctx()
            raise
        return entered

    def __enter__(self) -> "PassContext":
        known = [id(instrument) for instrument in PassContext.current().instruments]  # already entered
        self._entered.append(self._enter(i for i in self.instruments if id(i) not in known))
        self._tokens.append(_STACK.set((*_STACK.get(), self)))
        return self

    def __exit__(self, *_: object) -> None:
        _STACK.reset(self._tokens.pop())
        for instrument in self._entered.pop():
            instrument.exit_pass_ctx()

    def get(self, key: str) -> Any:
        """The value of a config key, its default if the context does not set it. Raises KeyError for an unregistered key."""
        if key in self.config:
            return self.config[key]
        if key not in CONFIG:
            load_passes()
        return CONFIG[key].default

    def enabled(self, pass_: "Pass | PassInfo") -> bool:
        """Whether a Sequential runs this pass: required, or of the level and not disabled."""
        info = pass_.info if isinstance(pass_, Pass) else pass_
        if info.flag in self.required_pass:
            return True
        return info.flag not in self.disabled_pass and self.opt_level >= info.opt_level

    def added(self, where: str, pass_: "Pass") -> list["Pass"]:
        """The user's passes to run before or after (`where`) this pass."""
        return self._added.get(f"{where}:{pass_.info.flag}", [])


# ---- passes -----------------------------------------------------------------------------------------------------------------------------


class Pass(ABC):
    """A pass: `info` and `transform`. Called with an IRModule, it runs under the current PassContext, observed by its instruments."""

    info: PassInfo

    @abstractmethod
    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The work of the pass: returns the module, changed in place or new. The MLIR context of `mod` is current, and the ranges of its
        symbols hold."""

    def __call__(self, mod: IRModule, ctx: PassContext | None = None) -> IRModule:
        return _run_around(self, mod, ctx or PassContext.current(), run=True)

    def __repr__(self) -> str:
        return f"<pass {self.info.name}>"


def _run_around(pass_: Pass, mod: IRModule, ctx: PassContext, run: bool) -> IRModule:
    """Runs a pass, if `run` is set, between the passes that the context adds before and after it (which always run)."""
    for added in ctx.added("before", pass_):
        mod = added(mod, ctx)
    if run:
        mod = _run_instrumented(pass_, mod, ctx)
    for added in ctx.added("after", pass_):
        mod = added(mod, ctx)
    return mod


def _run_instrumented(pass_: Pass, mod: IRModule, ctx: PassContext) -> IRModule:
    info = pass_.info
    wanted = [instrument.should_run(mod, info) for instrument in ctx.instruments]
    if not all(wanted) and info.flag not in ctx.required_pass:
        return mod
    for instrument in ctx.instruments:
        instrument.run_before_pass(mod, info)
    with deferred(), mod.context, mod.ranges, ir.Location.unknown():
        try:
            found = pass_.transform(mod, ctx)
        except RecursionError as error:
            limit = sys.getrecursionlimit()
            raise RelayError(
                f"pass {info.name}: expected a program that Python's recursion limit of {limit} is enough for, found deeper nesting"
            ) from error
    if not isinstance(found, IRModule):
        raise TypeError(f"pass {info.name}: expected it to return an IRModule, found {found!r}")
    for instrument in ctx.instruments:
        instrument.run_after_pass(found, info)
    return found


class ModulePass(Pass):
    """A pass made of a function (mod, ctx) -> IRModule by `module_pass`."""

    def __init__(self, function: Callable[[IRModule, PassContext], IRModule], info: PassInfo) -> None:
        self._function = function
        self.info = info
        functools.update_wrapper(self, function)

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return self._function(mod, ctx)


def functions(mod: IRModule) -> list[ir.Operation]:
    """The functions of a module that have a body, in order; not those of a later stage (`relay.stage`), which relay functions may call."""
    found = [op.operation for op in mod.module.body.operations]
    return [op for op in found if op.name == "func.func" and len(op.regions[0].blocks) and not STAGE.on(op)]


class Sequential(Pass):
    """Passes in order, each run if the context enables it, after the passes that it requires.

    Args:
      passes: the passes; a nested Sequential can be disabled as a whole.
      name: of the Sequential itself.
      opt_level: of the Sequential itself.
      stage: on which its passes work.
    """

    def __init__(self, passes: Sequence[Pass], name: str = "Sequential", opt_level: int = 0, stage: str = "relay") -> None:
        self.passes = list(passes)
        self.info = PassInfo(name, opt_level, (), stage, composite=True)

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        for pass_ in self.passes:
            enabled = ctx.enabled(pass_)
            for name in pass_.info.required if enabled else ():
                mod = find_pass(name)(mod, ctx)
            mod = _run_around(pass_, mod, ctx, enabled)
        return mod

    def __iter__(self) -> Iterator[Pass]:
        return iter(self.passes)


# ---- registration -----------------------------------------------------------------------------------------------------------------------

_AnyPass = TypeVar("_AnyPass", bound=Pass)

PASSES: dict[str, Pass] = {}
"""Every registered pass by its flag (`fold-constant`)."""


def register_pass(pass_: _AnyPass) -> _AnyPass:
    """Registers a pass by name and flag, for relayc-opt, requirements and positions; a later pass of the same name replaces it."""
    PASSES[pass_.info.flag] = pass_
    return pass_


def module_pass(opt_level: int, name: str, required: Sequence[str] = (), stage: str = "relay") -> Callable[[Callable], ModulePass]:
    """Decorator: creates a registered pass from a function (mod: IRModule, ctx: PassContext) -> IRModule.

    Args:
      opt_level: lowest PassContext.opt_level at which a Sequential runs it.
      name: its name as in Relay (`FoldConstant`).
      required: names of passes that a Sequential runs before it.
      stage: on which it works (relay, te, tir, llvm): DumpIR files its output there.
    """

    def make(function: Callable[[IRModule, PassContext], IRModule]) -> ModulePass:
        return register_pass(ModulePass(function, PassInfo(name, opt_level, tuple(required), stage)))

    return make


def function_pass(opt_level: int, name: str, required: Sequence[str] = (), stage: str = "relay") -> Callable[[Callable], ModulePass]:
    """Decorator: makes a registered pass of a function (func, mod, ctx) -> None, called for each func.func with a body, which it changes in
    place; arguments as `module_pass`."""

    def make(function: Callable[[ir.Operation, IRModule, PassContext], None]) -> ModulePass:
        @module_pass(opt_level, name, required, stage)
        @functools.wraps(function)
        def on_each(mod: IRModule, ctx: PassContext) -> IRModule:
            for func in functions(mod):
                function(func, mod, ctx)
            return mod

        return on_each

    return make


def load_passes() -> None:
    """Imports every module of relayc, and of every backend, that registers passes and config options."""
    for module in (*_PASS_MODULES, *backend_modules()):
        importlib.import_module(module)


def find_pass(name: str) -> Pass:
    """The registered pass of this name or flag. Raises ValueError if there is none."""
    flag = flag_of(name)
    if flag not in PASSES:
        load_passes()
    if flag not in PASSES:
        raise ValueError(f"no pass {name!r}; registered passes are {', '.join(sorted(PASSES))}{nearest(flag, PASSES)}")
    return PASSES[flag]
