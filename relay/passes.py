"""What a pass on programs of the Relay language is. The PassContext, and what observes passes, are those of passes on the dialect.

@relay.transform.function_pass(opt_level=1)
def twice(function, mod, ctx):
    return relay.Function(function.params, relay.add(function.body, function.body))


mod = relay.transform.Sequential([relay.transform.InferType(), twice])(mod)
"""

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

from relayc.frontend.relay.ast import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.pipelines.context.instruments import PassInfo, PassInstrument
from relayc.pipelines.context.passes import PassContext


class Pass:
    """A pass: called with a module, it gives another, observed by the instruments of the current PassContext.

    Attributes:
      info: its name, level and the passes that it requires.
    """

    info: PassInfo

    def transform(self, mod: RelayModule, ctx: PassContext) -> RelayModule:
        """The work."""
        raise NotImplementedError

    def __call__(self, mod: RelayModule) -> RelayModule:
        ctx = PassContext.current()
        seen: Any = mod  # instruments of passes on programs of the language are given these
        if not all([i.should_run(seen, self.info) for i in ctx.instruments]) and self.info.flag not in ctx.required_pass:
            return mod
        for instrument in ctx.instruments:
            instrument.run_before_pass(seen, self.info)
        found: Any = self.transform(mod, ctx)
        if not isinstance(found, RelayModule):
            raise TypeError(f"pass {self.info.name}: expected it to return a module, found {found!r}")
        for instrument in ctx.instruments:
            instrument.run_after_pass(found, self.info)  # type: ignore[arg-type] # as above
        return found

    @property
    def name(self) -> str:
        """Its name."""
        return self.info.name

    def __repr__(self) -> str:
        return f"<pass {self.info.name}>"


class ModulePass(Pass):
    """A pass made of a function (mod, ctx) -> module."""

    def __init__(self, function: Callable[[RelayModule, PassContext], RelayModule], info: PassInfo) -> None:
        self._function, self.info = function, info

    def transform(self, mod: RelayModule, ctx: PassContext) -> RelayModule:
        return self._function(mod, ctx)


class FunctionPass(Pass):
    """A pass made of a function (function, mod, ctx) -> function, called for each function of a module; types are inferred afterwards."""

    def __init__(self, function: Callable[..., Any], info: PassInfo) -> None:
        self._function, self.info = function, info

    def transform(self, mod: RelayModule, ctx: PassContext) -> RelayModule:
        return infer_module(mod.map_functions(lambda function: self._function(function, mod, ctx)))


class Sequential(Pass):
    """Passes in order, each if the PassContext enables it; required passes run before it. Raises RelayError if there is none of a name."""

    def __init__(
        self, passes: Sequence[Pass] = (), opt_level: int = 0, name: str = "sequential", required: Sequence[str] | None = None
    ) -> None:
        self.passes = list(passes)
        self.info = PassInfo(name, opt_level, tuple(required or ()), composite=True)

    def transform(self, mod: RelayModule, ctx: PassContext) -> RelayModule:
        from relayc.relay import transform

        for each in self.passes:
            if ctx.enabled(each.info):
                for required in each.info.required:
                    mod = getattr(transform, required)()(mod)
                mod = each(mod)
        return mod


def module_pass(pass_func: Any = None, opt_level: int | None = None, name: str | None = None, required: Sequence[str] | None = None) -> Any:
    """Makes a pass of a function (mod, ctx) -> module, or a class of passes of a class with a method transform_module."""
    return _made(ModulePass, "transform_module", pass_func, opt_level, name, required)


def function_pass(
    pass_func: Any = None, opt_level: int | None = None, name: str | None = None, required: Sequence[str] | None = None
) -> Any:
    """Makes a pass of a function (function, mod, ctx) -> function, or a class of passes of a class with a method transform_function."""
    return _made(FunctionPass, "transform_function", pass_func, opt_level, name, required)


def _made(kind: Any, method: str, given: Any, opt_level: int | None, name: str | None, required: Sequence[str] | None) -> Any:
    if opt_level is None:
        raise ValueError("expected the opt_level of the pass")

    def make(function: Any) -> Any:
        info = PassInfo(name or function.__name__, opt_level, tuple(required or ()))
        if not inspect.isclass(function):
            return kind(function, info)

        def create(self: Any, *args: Any, **kwargs: Any) -> None:
            own = function(*args, **kwargs)
            kind.__init__(self, getattr(own, method), info)
            self.own = own

        def attribute(self: Any, key: str) -> Any:
            return getattr(self.__dict__["own"], key)

        return type(function.__name__, (kind,), {"__init__": create, "__getattr__": attribute, "__doc__": function.__doc__})

    return make if given is None else make(given)


def factory(name: str, function: Callable[..., RelayModule], opt_level: int = 0, required: Sequence[str] = ()) -> Callable[..., ModulePass]:
    """Creates a constructor of the pass with a Relay name, from a function of a module and the pass's own parameters."""

    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> ModulePass:
        return ModulePass(lambda mod, ctx: function(mod, *args, **kwargs), PassInfo(name, opt_level, tuple(required)))

    make.__name__ = make.__qualname__ = name
    return make


def pass_instrument(cls: type) -> type:
    """Makes an instrument of a class with some of the methods of PassInstrument."""
    return type(cls.__name__, (cls, PassInstrument), {})


class PrintIR(Pass):
    """Prints a module to the standard error output."""

    info = PassInfo("PrintIR")

    def __init__(self, header: str = "", show_meta_data: bool = False) -> None:
        self._header, self._show = header, show_meta_data

    def transform(self, mod: RelayModule, ctx: PassContext) -> RelayModule:
        print(f"PrintIR({self._header}):\n{mod.astext(show_meta_data=self._show)}", file=sys.stderr)
        return mod
