"""`relay.build`: a program as a graph, its functions and its parameters."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relayc.dialects.relay.module import IRModule
from relayc.frontend.relay.ast import Expr, Function, RelayModule, bind_params_by_name
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.relay import backend
from relayc.runtime.graph_executor import GraphExecutor
from relayc.runtime.imports import Library
from relayc.runtime.module import Module

Params = Mapping[str, Any]


def as_module(program: RelayModule | Expr, params: Params | None) -> RelayModule:
    """A program as a module with constants in the place of the parameters of main. Raises RelayError."""
    module = program.shallow_copy() if isinstance(program, RelayModule) else RelayModule.from_expr(program)
    if params:
        main = module["main"]
        assert isinstance(main, Function)
        module["main"] = bind_params_by_name(main, params)
    return module


def target_of(target: "str | Target | None") -> Target:
    """A target: the CPU by default."""
    return Target("cpu" if target is None else target)


def compiled(program: RelayModule | IRModule | Expr, target: "str | Target | None" = None, params: Params | None = None) -> Module:
    """A program compiled for a target. Raises as `relayc.compile` does."""
    module = program if isinstance(program, IRModule) else as_module(program, params)
    return compile(module, target_of(target))


class ExecutorFactory:
    """The result of `build`: `factory["default"](device)` is an executor; it unpacks into graph, functions and parameters.

    Attributes:
      module: the compiled module.
    """

    def __init__(self, module: Module, name: str, params: Params | None) -> None:
        self.module = module
        self._name, self._params = name, dict(params or {})

    @property
    def graph_json(self) -> str:
        """The graph as TVM's JSON."""
        return self.module.graph_json

    @property
    def lib(self) -> Library:
        """The functions that the graph calls."""
        return self.module.lib

    @property
    def params(self) -> Mapping[str, np.ndarray]:
        """The parameters that the graph reads."""
        return self.module.params

    def get_graph_json(self) -> str:
        """The graph as TVM's JSON."""
        return self.graph_json

    def get_lib(self) -> Library:
        """The functions that the graph calls."""
        return self.lib

    def get_params(self) -> Mapping[str, np.ndarray]:
        """The parameters that the graph reads."""
        return self.params

    def __getitem__(self, name: str) -> Callable[..., GraphExecutor]:
        """Makes an executor for a device. Raises KeyError for another name than that of the module."""
        if name != self._name:
            raise KeyError(f"expected the module {self._name!r}, found {name!r}")

        return lambda *devices: GraphExecutor(self.module, device=devices[0] if devices else None)

    def export_library(self, path: str | os.PathLike[str], **options: Any) -> list[Path]:
        """As `Library.export_library`; of the loaded module, `module["default"](device)` is an executor."""
        return self.lib.export_library(path, **options)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.graph_json, self.lib, self.params))


def build(
    mod: RelayModule | Expr,
    target: Any = None,
    target_host: Any = None,
    *,
    params: Params | None = None,
    mod_name: str = "default",
    executor: Any = None,
    runtime: Any = None,
) -> ExecutorFactory:
    """Compiles a program for TVM's graph executor.

    Args:
      target: "cpu" (or Relay's "llvm"), "cuda", or a Target; or a list of one, or a dict by device.
      params: arrays that take the place of parameters of main, by name.
      target_host: ignored: the host is the CPU.
      executor, runtime: as `relay.backend.Executor` and `Runtime`; one module serves all executors.

    Raises:
      RelayError: the program is not a right one.
      ValueError, TypeError: as `relayc.compile`; several targets; an executor or a runtime whose interface modules do not have.
    """
    backend.check(executor, runtime)
    targets = list(target.values() if isinstance(target, Mapping) else target) if isinstance(target, (Mapping, list, tuple)) else [target]
    if len(targets) != 1:
        raise ValueError(f"relay.build: expected one target, found {len(targets)}")
    return ExecutorFactory(compiled(mod, targets[0], params), mod_name, params)
