"""Which frontend takes a model: they are registered by the suffixes of files and by the Python types that they take.

A frontend is a function that makes a module of a model. One from outside the package is added with a decorator:

    @relayc.register_frontend("toy", suffixes=(".toy",), types=(ToyGraph,))
    def from_toy(model, *, shapes=None, progress=None):
        ...
        return module

and `relayc.compile("model.toy")` and `relayc run model.toy` take such models from then on. What it may build a module with is in
`relayc.frontend.converter`. The package's own frontends are imported when the first model of theirs is: this file imports neither MLIR
nor onnx.
"""

import importlib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from relayc.interrupts import deferred
from relayc.symbolic import Size

if TYPE_CHECKING:
    from relayc.dialects.relay.module import IRModule

Progress = Callable[[int, int], None]
"""Called with the number of nodes that are imported and their total."""
Import = Callable[..., "IRModule"]
"""(model, *, shapes, progress) -> module: `shapes` is the shape of each input that the caller gives one for, by name, or None.

Where the caller says sizes of symbolic dimensions, there is an argument `dims`, too (see `import_model`)."""
_Import = TypeVar("_Import", bound=Import)


@dataclass(frozen=True)
class Frontend:
    """A way for models to come in.

    Attributes:
      name: of the format, in lower case.
      function: what imports a model, or where it is ("module:function"), to be imported when it is first needed.
      suffixes: of the files that it takes, with the dot, in lower case.
      types: the classes of models that it takes, or their public names ("onnx.ModelProto"), by which they are known without an import.
      files: a function of a path that gives the other files that a model names, relative to its folder, or where it is; None where models
        are one file.
    """

    name: str
    function: Import | str
    suffixes: tuple[str, ...] = ()
    types: tuple[type | str, ...] = ()
    files: Callable[[Path], Sequence[str]] | str | None = None

    def takes(self, class_: type) -> bool:
        """Whether it takes objects of this very class."""
        return any(_public_name(class_) == t if isinstance(t, str) else class_ is t for t in self.types)


FRONTENDS: list[Frontend] = [
    Frontend(
        "onnx",
        "relayc.frontend.onnx:from_onnx",
        (".onnx",),
        (bytes, bytearray, memoryview, "onnx.ModelProto"),
        files="relayc.frontend.onnx.model:external_files",
    ),
    Frontend(
        "relay",
        "relayc.frontend.relay:from_relay",
        (".relay", ".mlir"),
        ("relayc.IRModule", "relayc.Program", "relayc.RelayModule", "relayc.Function"),
    ),
    Frontend("pytorch", "relayc.frontend.pytorch:import_program", (".pt2",), ("torch.ExportedProgram",)),
    Frontend("stablehlo", "relayc.frontend.stablehlo:import_program", (".stablehlo", ".jax"), ("jax.Exported",)),
    Frontend("keras", "relayc.frontend.keras:import_model", (".keras",), ("keras.Model",)),
]
"""The frontends; of several that take a model the last one does."""


def register_frontend(
    name: str,
    *,
    suffixes: Sequence[str] = (),
    types: Sequence[type | str] = (),
    files: Callable[[Path], Sequence[str]] | None = None,
) -> Callable[[_Import], _Import]:
    """Decorator: makes a function (model, *, shapes, progress) -> IRModule the frontend of a format.

    A later one of the same name replaces it. Programs compiled while there is one from outside the package bypass the cache on disk.

    Args:
      name: of the format.
      suffixes: of the files that it takes, such as ".onnx"; the function is given the path.
      types: the classes of models that it takes, with their subclasses, or the public names of classes that are not to be imported yet.
      files: gives the other files that the model of a path consists of, relative to its folder.

    Raises:
      ValueError: it takes nothing, or a suffix has no dot.
    """
    if not suffixes and not types:
        raise ValueError(f"register_frontend {name}: expected suffixes of files or types of models, found neither")
    wrong = [suffix for suffix in suffixes if not suffix.startswith(".") or suffix != suffix.lower()]
    if wrong:
        raise ValueError(
            f"register_frontend {name}: expected suffixes in lower case that begin with a dot, found {', '.join(map(repr, wrong))}"
        )

    def register(function: _Import) -> _Import:
        FRONTENDS[:] = [frontend for frontend in FRONTENDS if frontend.name != name]
        FRONTENDS.append(Frontend(name, function, tuple(suffixes), tuple(types), files))
        return function

    return register


def remove_frontend(name: str) -> None:
    """Takes a frontend away. Raises ValueError where there is none of this name."""
    if all(frontend.name != name for frontend in FRONTENDS):
        raise ValueError(f"remove_frontend: expected one of {', '.join(f.name for f in FRONTENDS)}, found {name!r}")
    FRONTENDS[:] = [frontend for frontend in FRONTENDS if frontend.name != name]


def find_frontend(model: Any) -> Frontend:
    """The frontend that takes a model.

    Raises:
      ValueError: a path with a suffix that no frontend takes. TypeError: an object that none takes. Both list what is taken.
    """
    if isinstance(model, (str, os.PathLike)):
        name = os.fspath(model).lower()
        found = [frontend for frontend in FRONTENDS if isinstance(name, str) and name.endswith(frontend.suffixes or ("\0",))]
        if not found:
            raise ValueError(f"model: expected {accepted()}, found the path {str(model)!r}")
        return found[-1]
    for class_ in type(model).__mro__:
        found = [frontend for frontend in FRONTENDS if frontend.takes(class_)]
        if found:
            return found[-1]
    raise TypeError(f"model: expected {accepted()}, found {type(model).__name__}")


def accepted() -> str:
    """What `import_model` takes, in words."""
    paths = [f"a path that ends in {' or '.join(suffixes())}"] if suffixes() else []
    types = [t if isinstance(t, str) else t.__qualname__ for frontend in FRONTENDS for t in frontend.types]
    *most, last = paths + types
    return f"{', '.join(most)} or {last}" if most else last


def suffixes() -> list[str]:
    """The suffixes of files that frontends take."""
    return [suffix for frontend in FRONTENDS for suffix in frontend.suffixes]


@deferred()
def import_model(
    model: Any,
    *,
    shapes: Mapping[str, Sequence[Size | str]] | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    progress: Progress | None = None,
) -> "IRModule":
    """A model of any format that a frontend takes, as a module of the relay stage.

    Args:
      model: a path, or an object of a type that a frontend takes (see `accepted`). An IRModule is given back as it is.
      shapes: shape by input name, for inputs whose dimensions the model leaves open: sizes, or texts that name them.
      dims: by name of a symbolic dimension, its size, or its least and largest size.
      progress: called with the number of nodes done and their total, by frontends that know it.

    Raises:
      ValueError, TypeError: no frontend takes it (see find_frontend); what is wrong with it (a ModelError or RelayError).
    """
    from relayc.dialects.relay.module import IRModule

    frontend = find_frontend(model)
    function = _loaded(frontend.function)
    given = {"dims": dims} if dims else {}
    if given and not _takes_dims(function):
        raise ValueError(
            f"dims: expected none for a model that the frontend {frontend.name} imports, found {', '.join(map(str, dims or ()))}"
        )
    found = function(model, shapes=shapes, progress=progress, **given)
    if not isinstance(found, IRModule):
        raise TypeError(f"frontend {frontend.name}: expected it to give an IRModule, found {type(found).__name__}")
    return found


def files_of(path: Path) -> list[str]:
    """The other files that the model of a path consists of, relative to its folder. Raises as `find_frontend` and the frontend do."""
    files = find_frontend(path).files
    return [] if files is None else list(_loaded(files)(path))


def outside_functions() -> list[Any]:
    """What the frontends call that is no part of the package's own."""
    called = [function for frontend in FRONTENDS for function in (frontend.function, frontend.files)]
    return [function for function in called if callable(function)]


def _loaded(function: Callable[..., Any] | str) -> Callable[..., Any]:
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def _takes_dims(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(p.name == "dims" or p.kind is p.VAR_KEYWORD for p in parameters)


def _public_name(class_: type) -> str:
    """The name that users know a class by: its package and its own name."""
    return f"{class_.__module__.partition('.')[0]}.{class_.__qualname__}"
