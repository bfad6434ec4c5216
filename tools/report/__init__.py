"""Reports: one page about how a model is compiled and how it runs, which needs no other file (`relayc.report`, `relayc report`)."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayc.packages import optional_package
from relayc.pipelines.context.passes import PassContext
from relayc.runtime import Module
from relayc.tools.inputs import inputs_of, module_sizes, sizes_of_call
from relayc.tools.visualize import require_graphviz

if TYPE_CHECKING:
    from jinja2 import Environment

_PAGE = Path(__file__).parent / "page"
_LIBRARIES = Path(__file__).parent / "libraries"


def report(
    program: Any,
    path: str | os.PathLike[str],
    *,
    inputs: Mapping[str, Any] | Sequence[Any] | None = None,
    model: Any = None,
    **options: Any,
) -> None:
    """Writes a page about how a program is compiled and how it runs: the IR after every pass, pictures of the graph, the kernels with their
    times, code and tunable numbers, and the memory over time. The page is one file that needs no other.

    The program is compiled for it once more, so that every pass is seen.

    Args:
      program: a Module that `relayc.compile` gave, or what `relayc.compile` takes.
      path: of the page.
      inputs: of the call that is timed, by name or in order; by default random ones at typical sizes.
      model: what a Module was compiled from, where that was no file, or the file is not as it was.
      options: of `relayc.compile`, where `program` is no Module.

    Raises:
      ValueError, TypeError: as `relayc.compile` or a call of the program; the model of a Module is not at hand.
      OSError: the file cannot be written. ModuleNotFoundError: a package of `relayc[report]` is not installed.
    """
    if not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(f"report: expected a path in a folder that is there, found {str(path)!r}")

    def find_inputs(module: Module) -> Mapping[str, Any]:
        if inputs is None or isinstance(inputs, Mapping):
            return inputs_of(module, inputs, None, 0)
        return dict(zip(module.input_names, inputs, strict=True))

    if isinstance(program, Module):
        if program.recompile is None or options:
            found = f"options for it ({', '.join(options)})" if options else "one without a compiler"
            raise ValueError(f"report: expected a module that relayc.compile gave, found {found}")
        again, file = program.recompile, None if program.source is None else program.source()["name"]
        page = make_report(lambda: again(program.specialized, model), find_inputs, model, str(file))
    else:
        from relayc.pipelines.driver.compile import compile as compile_

        page = make_report(lambda: compile_(program, **options), find_inputs, program)
    Path(path).write_bytes(page)


def environment() -> "Environment":
    """The templates of pages. Raises ModuleNotFoundError if jinja2 is not installed."""
    jinja2 = optional_package("jinja2", "report needs jinja2: pip install 'relayc[report]'")
    return jinja2.Environment(loader=jinja2.FileSystemLoader(_PAGE), autoescape=True, trim_blocks=True, lstrip_blocks=True)


def style() -> str:
    """The style sheet of pages."""
    return (_PAGE / "report.css").read_text()


def make_report(compile_: Callable[[], Module], find_inputs: Callable[[Module], Mapping[str, Any]], model: Any, name: str = "") -> bytes:
    """The page.

    Args:
      compile_: compiles the program, in the ambient PassContext.
      find_inputs: returns the inputs of a call, by name.
      model: the source of the program; the nodes of an ONNX file are shown.
      name: of the program, if `model` is not a path.

    Raises as `report`.
    """
    templates = environment()
    require_graphviz()  # before the work
    from relayc.tools.report.contents import contents
    from relayc.tools.report.recorder import Recorder
    from relayc.tools.report.texts import compressed

    context, recorder = PassContext.current(), Recorder()
    with PassContext(**context.settings, instruments=[*context.instruments, recorder]):
        module = compile_()
    if not isinstance(module, Module):
        raise ValueError("report: expected a program that is compiled to the end, found one with stop_after")
    if module.lacking or not module.device.exists:
        profile, sizes = None, module_sizes(module, {})
    else:
        inputs = find_inputs(module)
        profile, sizes = module.profile(inputs), dict(sizes_of_call(module, inputs))
    path = Path(model) if isinstance(model, (str, os.PathLike)) else None
    data = contents(recorder.recording, module, profile, sizes, path)
    packs = data.pop("packs")
    page = templates.get_template("report.html").render(
        title=path.name if path is not None else name or type(model).__name__,
        style=style(),
        script=(_PAGE / "report.js").read_text(),
        libraries=(_LIBRARIES / "libraries.min.js").read_text(),
        data=compressed(data),
        packs=packs,
    )
    return page.encode()
