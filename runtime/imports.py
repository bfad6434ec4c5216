"""Modules that a module imports, and its kernels as a library of packed functions: what TVM's modules have of both."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tvm_ffi

from relayc.nearest import nearest

_ModuleLike = Any
"""A relayc Module or Library, or a tvm_ffi.Module: what has `get_function(name, query_imports)`."""


class Imports:
    """The modules that a module imports, in the order in which they are searched for a function."""

    def __init__(self) -> None:
        self.modules: tuple[_ModuleLike, ...] = ()

    def add(self, owner: _ModuleLike, module: _ModuleLike) -> None:
        """Imports a module into `owner`.

        Raises:
          TypeError: not a module.
          ValueError: the module is `owner`, or imports it.
        """
        if not callable(getattr(module, "get_function", None)):
            raise TypeError(f"import_module: expected a relayc or tvm-ffi module, found {module!r}")
        if _reaches(module, owner):
            raise ValueError("import_module: expected a module that does not import this one, found one that does")
        self.modules = (*self.modules, module)

    def find(self, name: str) -> Any | None:
        """The function of a name in the modules and their imports; None if there is none."""
        for module in self.modules:
            try:
                return module.get_function(name, True)
            except (KeyError, AttributeError):  # how relayc and tvm-ffi report a missing function
                continue
        return None


def _reaches(module: _ModuleLike, wanted: _ModuleLike) -> bool:
    return module is wanted or any(_reaches(inner, wanted) for inner in getattr(module, "imported_modules", ()))


class Library:
    """Packed functions by name: the kernels of a module, as TVM's `lib` has them.

    They take their inputs, then their outputs, which they write, then the values of their symbols; the function that a kernel has in the
    module (`module["NAME"]`) takes arrays and checks them.
    """

    def __init__(self, functions: Mapping[str, tvm_ffi.Function], imports: Imports, owner: _ModuleLike) -> None:
        self._functions, self._imports, self._owner = dict(functions), imports, owner

    @property
    def params(self) -> Mapping[str, np.ndarray]:
        """The parameters of the module of the kernels."""
        found: Mapping[str, np.ndarray] = self._owner.params
        return found

    def export_library(self, path: str | os.PathLike[str], fcompile: Any = None, options: Any = None, **others: Any) -> list[Path]:
        """Writes the module of the kernels, as `Module.export_library`. The loaded module is a library for `graph_executor.create`.

        Args:
          fcompile, options: TVM's choice of a C compiler and its flags, which are not looked at: no C is compiled.
          others: as `Module.export_library` takes them.
        """
        found: list[Path] = self._owner.export_library(path, **others)
        return found

    def function_names(self) -> tuple[str, ...]:
        """Names of its functions."""
        return tuple(self._functions)

    def get_function(self, name: str, query_imports: bool = False) -> tvm_ffi.Function:
        """The packed function of a name; with `query_imports`, imported modules are searched too.

        Raises:
          KeyError: there is none.
        """
        if name in self._functions:
            return self._functions[name]
        found = self._imports.find(name) if query_imports else None
        if found is None:
            raise KeyError(f"no function {name!r} in the library; it has {', '.join(self._functions)}{nearest(name, self._functions)}")
        return getattr(found, "packed", found)

    def __getitem__(self, name: str) -> tvm_ffi.Function:
        return self.get_function(name)

    def __repr__(self) -> str:
        return f"<relayc library of {len(self._functions)} kernels>"
