"""The wheel holds the whole package, and its runtime needs no compiler."""

import os
import shutil
import subprocess
import sys
import zipfile
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import pytest

import relayc
from relayc.serve import command
from relayc.tools import report
from relayc.tools.visualize import require_graphviz
from relayc.tune.cluster import Cluster
from relayc.tune.search import _study

ROOT = Path(relayc.__file__).parent
IGNORED = {"test", "build", "dist"}


def subpackages():
    """Every package of the checkout, by its dotted name."""
    folders = sorted(path.parent.relative_to(ROOT) for path in ROOT.rglob("__init__.py") if not ignored(path.relative_to(ROOT)))
    return [".".join(["relayc", *folder.parts]) for folder in folders]


def ignored(path):
    return path.parts[0] in IGNORED or any(part.startswith(".") for part in path.parts)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of the sources without downloading anything, and unpacked."""
    copy = tmp_path_factory.mktemp("source") / "relayc"
    shutil.copytree(ROOT, copy, ignore=lambda folder, names: [name for name in names if ignored((Path(folder) / name).relative_to(ROOT))])
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(copy)]
    subprocess.run(command, check=True)
    (file,) = out.glob("relayc-*.whl")
    with zipfile.ZipFile(file) as archive:
        archive.extractall(out / "unpacked")
    return out / "unpacked"


def import_from(wheel, code):
    """Runs `code` where `relayc` can only come from the unpacked wheel."""
    # -S -E would lose the dependencies: instead the editable install is taken out of the way, and the wheel put before everything.
    guard = "import sys; sys.meta_path = [f for f in sys.meta_path if '__editable__' not in repr(f)]; sys.path.insert(0, sys.argv[1])"
    check = "import relayc; assert relayc.__file__.startswith(sys.argv[1]), relayc.__file__"
    command = [sys.executable, "-c", f"{guard}\n{check}\n{code}", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=os.sep)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_every_package_of_the_checkout(wheel):
    found = sorted(".".join(path.parent.relative_to(wheel).parts) for path in wheel.rglob("__init__.py"))
    assert found == sorted(subpackages())


def test_the_wheel_holds_every_module_of_its_packages(wheel):
    for package in subpackages():
        folder = Path(*package.split(".")[1:])
        wanted = {path.name for path in (ROOT / folder).glob("*.py")} - {"lit.cfg.py"}
        found = {path.name for path in (wheel / "relayc" / folder).glob("*.py")} - {"lit.cfg.py"}
        assert found == wanted, package


def test_the_wheel_holds_the_page_of_reports_and_the_licences_of_its_libraries(wheel):
    page = {path.name for path in (ROOT / "tools" / "report" / "page").iterdir()}
    folder = wheel / "relayc" / "tools" / "report"
    assert {path.name for path in (folder / "page").iterdir()} == page
    assert {path.name for path in (folder / "libraries").iterdir()} == {"libraries.min.js", "LICENSES.txt"}


def test_every_package_is_imported_from_the_wheel(wheel):
    names = subpackages()
    code = f"import importlib\nfor name in {names}: print(importlib.import_module(name).__name__)"
    assert import_from(wheel, code).split() == names


def test_the_commands_are_entry_points_of_the_wheel(wheel):
    (file,) = wheel.glob("relayc-*.dist-info/entry_points.txt")
    assert {"relayc = relayc.tools.entry:relayc", "relayc-opt = relayc.tools.entry:relayc_opt"} <= set(file.read_text().splitlines())


def test_the_runtime_imports_neither_mlir_nor_onnx(wheel):
    compiler = ("torch_mlir", "onnx", "relayc.dialects", "relayc.frontend", "relayc.pipelines")
    code = f"import relayc.runtime, sys; print([name for name in {compiler} if name in sys.modules])"
    assert import_from(wheel, code).strip() == "[]"


def test_public_names_are_found_in_the_wheel(wheel):
    code = "for name in relayc.__all__: assert getattr(relayc, name) is not None, name"
    import_from(wheel, code)


@pytest.mark.parametrize("module", [relayc, relayc.pipelines])
def test_a_name_that_a_package_does_not_have_is_an_error(module):
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nothing'"):
        _ = module.nothing


def test_a_package_that_a_module_lacks_is_named(monkeypatch):
    monkeypatch.setitem(relayc._HOMES, "lacking_package.module", ("lacking",))
    with pytest.raises(ModuleNotFoundError, match="No module named 'lacking_package'"):
        _ = relayc.lacking
    monkeypatch.setitem(relayc._HOMES, "relayc.no_compiler", ("compiling",))
    with pytest.raises(ModuleNotFoundError, match=r"relayc\.compiling needs the compiler: install the package relayc") as caught:
        _ = relayc.compiling
    assert caught.value.name == "relayc.no_compiler"


@pytest.mark.parametrize(
    ("package", "ask", "message"),
    [
        ("distributed", lambda: Cluster("tcp://127.0.0.1:1", relayc.Target("cpu")), r"workers need Dask: .*'relayc\[distributed\]'"),
        ("optuna", lambda: _study(0), r"the sampler tpe needs Optuna: pip install 'relayc\[tune\]' \(or sampler='random'\)"),
        ("jinja2", report.environment, r"report needs jinja2: pip install 'relayc\[report\]'"),
        ("pygraphviz", require_graphviz, "visualize needs Graphviz: pip install pygraphviz"),
    ],
)
def test_an_extra_that_is_not_installed_is_named(package, ask, message, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=message) as caught:
        ask()
    assert caught.value.name == package


def test_a_server_names_the_module_that_is_missing(monkeypatch):
    monkeypatch.delitem(sys.modules, "relayc.serve.server", raising=False)
    monkeypatch.setitem(sys.modules, "mlserver", None)
    with pytest.raises(ModuleNotFoundError, match=r"relayc serve needs MLServer: pip install 'relayc\[serve\]' \(no module mlserver\)"):
        command.serve(Namespace())
    broken = ModuleType("mlserver")
    broken.__getattr__ = Mock(side_effect=ModuleNotFoundError("built without it"))
    monkeypatch.setitem(sys.modules, "mlserver", broken)
    with pytest.raises(ModuleNotFoundError, match=r"^relayc serve needs MLServer"):  # also where the error names no module
        command.serve(Namespace())
    monkeypatch.setitem(sys.modules, "relayc.serve.server", None)
    with pytest.raises(ModuleNotFoundError, match=r"^import of relayc\.serve\.server halted"):
        command.serve(Namespace())
