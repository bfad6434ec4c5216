"""The runtime of relayc as a distribution of its own: what runs exported modules where no compiler is installed.

    python -m relayc.tools.runtime_wheel DIR

writes DIR/relayc_runtime-VERSION-py3-none-any.whl, which contains the package `relayc` without compiler, frontends and tools, and requires
the packages that the runtime imports; its extra `serve` has the requirements of `python -m relayc.serve`. It replaces the distribution
`relayc`: an environment has one of the two.
"""

import argparse
import base64
import hashlib
import importlib.metadata
import re
import sys
import zipfile
from pathlib import Path

import relayc

_ROOT = Path(relayc.__file__).parent
_NEEDED = ("apache-tvm-ffi", "intel-openmp", "isal", "ml_dtypes", "numpy", "typing-extensions")
"""The dependencies of relayc that its runtime also has."""
_NAME = "relayc_runtime"


def runtime_files() -> list[Path]:
    """The files of the package, relative to its folder."""
    files = [
        _ROOT / "__init__.py",
        _ROOT / "files.py",
        _ROOT / "interrupts.py",
        _ROOT / "nearest.py",
        _ROOT / "packages.py",
        _ROOT / "processes.py",
        *(path for name in ("runtime", "serve", "symbolic") for path in (_ROOT / name).rglob("*.py")),
    ]
    return sorted(file.relative_to(_ROOT) for file in files)


def runtime_requirements() -> list[str]:
    """The requirements of the runtime, from relayc's own metadata."""
    found = importlib.metadata.requires("relayc") or []
    needed = [text for text in found if re.split(r"[^\w.-]", text)[0] in _NEEDED and "extra ==" not in text]
    return needed + [text for text in found if re.search(r"extra == .serve.", text)]


def write_runtime_wheel(folder: Path) -> Path:
    """Writes the wheel into a folder, which is created if missing; returns its path. Raises OSError if it cannot be written."""
    version = relayc.__version__
    info = f"{_NAME}-{version}.dist-info"
    about = importlib.metadata.metadata("relayc")
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {_NAME.replace('_', '-')}",
        f"Version: {version}",
        f"Requires-Python: {about['Requires-Python']}",
        "Provides-Extra: serve",
    ]
    metadata += [f"Requires-Dist: {text}" for text in runtime_requirements()]
    contents = {f"relayc/{file.as_posix()}": (_ROOT / file).read_bytes() for file in runtime_files()}
    contents[f"{info}/METADATA"] = "\n".join([*metadata, ""]).encode()
    contents[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: relayc\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_NAME}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return path


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m relayc.tools.runtime_wheel", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the wheel goes")
    path = write_runtime_wheel(parser.parse_args(argv).folder)
    print(f"{path}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
