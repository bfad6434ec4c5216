"""Runs the zoo: makes its environment, exports its architectures, compares each with ONNX Runtime at several sizes, and prints a table.

    python test/zoo/run.py --out DIR [NAME ...]

With --pytorch, architectures are compared with PyTorch in eager mode after an import by relayc.from_pytorch instead (pytorch.py); the
interpreter has relayc and the exporters' packages.

The table is DIR/zoo.json too; what fails has its least reproduction in DIR/reproductions. Exit code: 0 where all models agree, else 1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from inputs import from_data, make_inputs
from rich.console import Console

from relayc.tools.bisect.symptoms import symptom
from relayc.tools.tables import NUMBER, make_table

HERE = Path(__file__).parent
TIME_LIMIT = 900
"""Seconds after which the check of a model is ended."""
BAD = ("differs", "raises", "dies", "hangs")

Row = dict[str, Any]


def make_environment(folder: Path, console: Console) -> Path:
    """The interpreter of an environment with the packages of requirements.txt, which is made where it is not there."""
    wanted = (HERE / "requirements.txt").read_text()
    installed, python = folder / "requirements.txt", folder / "bin" / "python"
    if not installed.exists() or installed.read_text() != wanted:
        console.print(f"installing the exporters' packages into {folder}", soft_wrap=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", HERE / "requirements.txt"], check=True)
        installed.write_text(wanted)
    return python


def check_apart(path: Path, options: argparse.Namespace) -> Row:
    """The report of one model, or of one architecture (a path without a suffix); of a process that dies or hangs what it wrote before."""
    out = options.out / "reports" / f"{path.stem}.json"
    if out.exists() and not options.again and (options.pytorch or out.stat().st_mtime > path.stat().st_mtime):
        return json.loads(out.read_text())
    part = out.with_suffix(".part")
    part.unlink(missing_ok=True)
    note = (forked if options.pytorch else started)(path, part, out.with_suffix(".log"), options)
    report = json.loads(part.read_text()) if part.exists() else {"model": path.stem, "points": [], "kernels": 0}
    if note:
        report["error"] = note if "process died" in report.get("error", "") else report.get("error") or note
    out.write_text(json.dumps(report, indent=1))
    part.unlink(missing_ok=True)
    return report


def started(path: Path, part: Path, log: Path, options: argparse.Namespace) -> str:
    """Checks a model in a process; how that ended, where it did not end well."""
    numbers = ["--sizes", str(options.sizes), "--seed", str(options.seed), *(["--times"] if options.times else [])]
    command = [sys.executable, str(HERE / "check.py"), str(path), "--json", str(part), *numbers]
    with log.open("w") as sink:
        try:
            code = subprocess.run(command, stdout=sink, stderr=sink, timeout=options.limit).returncode
        except subprocess.TimeoutExpired:
            return f"no end after {options.limit} s"
    return f"the process ended with {code}" if code else ""


def forked(path: Path, part: Path, log: Path, options: argparse.Namespace) -> str:
    """The same for an architecture, in a process that is forked from this one: importing the exporters' packages takes seconds."""
    from pytorch import check_logged

    process = multiprocessing.get_context("fork").Process(target=check_logged, args=(path.stem, part, log, options))
    process.start()
    process.join(options.limit)
    if process.is_alive():
        process.kill()
        process.join()
        return f"no end after {options.limit} s"
    return f"the process ended with {process.exitcode}" if process.exitcode else ""


def reproduce(report: Row, options: argparse.Namespace) -> None:
    """Writes the least part of a model that shows what went wrong, by `relayc bisect`, into OUT/reproductions/MODEL."""
    path, folder = options.out / "models" / f"{report['model']}.onnx", options.out / "reproductions" / report["model"]
    data = json.loads(path.with_suffix(".json").read_text())
    examples = {name: symbol["example"] for name, symbol in data["symbols"].items()}
    point = next(failures(report), {"status": "raises", "sizes": examples})
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "given.npz", **make_inputs(from_data(data["inputs"]), point["sizes"], options.seed))
    how = "--check" if point["status"] == "differs" else "--failure"
    command = [Path(sys.executable).parent / "relayc", "bisect", path, "--inputs", folder / "given.npz", how, "--out", folder]
    with (folder / "bisect.log").open("w") as log, contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(list(map(str, command)), stdout=log, stderr=log, timeout=TIME_LIMIT)


def first_of_each_kind(reports: list[Row]) -> list[Row]:
    """Of models that go wrong in the same words, the one with the fewest kernels."""
    found: dict[str, Row] = {}
    for report in sorted(reports, key=lambda report: report["kernels"]):
        if not is_good(report):
            point = next(failures(report), {"status": "raises", "message": report.get("error", "")})
            found.setdefault(f"{point['status']} {symptom(ValueError(point['message']))}", report)
    return list(found.values())


def failures(report: Row) -> Iterator[Row]:
    """The points that went wrong."""
    return (point for point in report["points"] if point["status"] in BAD)


def is_good(report: Row) -> bool:
    return not next(failures(report), None) and (not report.get("error") or report["error"].startswith("no reference"))


def has_agreed(report: Row) -> bool:
    """Whether there was a size with a reference."""
    return any(point["status"] == "agrees" for point in report["points"])


def ratios(report: Row) -> list[float]:
    """Time of relayc in that of ONNX Runtime, at each size that was measured."""
    return [p["relayc_seconds"] / p["reference_seconds"] for p in report["points"] if p.get("relayc_seconds")]


def mean(values: Iterable[float]) -> float:
    """Geometric mean."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def name_of(model: str) -> str:
    """The architecture of NAME.EXPORTER."""
    return model.rsplit(".", 1)[0]


def sizes_text(sizes: dict[str, int]) -> str:
    return " ".join(f"{name}={size}" for name, size in sizes.items())


def notes_of(report: Row) -> str:
    """What went wrong first, or which sizes the model itself does not take."""
    if report.get("error"):
        return report["error"]
    bad = list(failures(report))
    if bad:
        return f"{bad[0]['status']} at {sizes_text(bad[0]['sizes'])}: {bad[0]['message']}"
    without = [p for p in report["points"] if p["status"] == "no reference"]
    return f"{len(without)} sizes that the reference does not take" if without else ""


def print_table(reports: list[Row], refused: int, console: Console) -> None:
    columns: dict[str, Any] = {"model": {"no_wrap": True}, "agree": NUMBER, "difference": NUMBER, "kernels": NUMBER}
    columns |= {"compile s": NUMBER, "CPU s": NUMBER, "ratio": NUMBER, "worst": NUMBER, "": {"overflow": "fold"}}
    table = make_table("the zoo", **columns)
    for report in reports:
        points, times = report["points"], ratios(report)
        agree = sum(p["status"] == "agrees" for p in points)
        worst = max((p["difference"] for p in points if p["difference"] is not None), default=None)
        table.add_row(
            report["model"],
            f"{agree}/{len(points)}",
            "" if worst is None else f"{worst:.1e}",
            str(report["kernels"]),
            *("" if report.get(key) is None else f"{report[key]:.1f}" for key in ("compile_seconds", "compile_cpu_seconds")),
            f"{mean(times):.2f}" if times else "",
            f"{max(times):.2f}" if times else "",
            notes_of(report)[:300],
            style=None if is_good(report) else "red",
        )
    console.print(table)
    names = {name_of(report["model"]) for report in reports}
    good = {name for name in names if all(is_good(r) and has_agreed(r) for r in reports if name_of(r["model"]) == name)}
    points = [point for report in reports for point in report["points"]]
    console.print(
        f"{len(names)} architectures in {len(reports)} models, {refused} exports that torch's exporters refuse; "
        f"{len(good)} architectures agree wherever the reference runs; "
        f"{sum(p['status'] == 'agrees' for p in points)} of {len(points)} sizes agree, {sum(p['status'] in BAD for p in points)} do not"
    )
    times = [t for report in reports for t in ratios(report)]
    if times:
        console.print(f"time in that of ONNX Runtime: {mean(times):.2f} (geometric mean), worst {max(times):.2f}")


def exported_models(options: argparse.Namespace, console: Console) -> list[Path]:
    """The files of the models, which are exported where they are not there."""
    models = options.out / "models"
    if not options.no_export:
        python = options.python or make_environment(options.environment, console)
        command = [str(python), str(HERE / "export.py"), "--out", str(models), "--jobs", str(options.jobs), *options.names]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": ""})
    return sorted(path for path in models.glob("*.onnx") if not options.names or name_of(path.stem) in options.names)


def architectures(options: argparse.Namespace) -> list[Path]:
    """The names of the networks of PyTorch among the architectures."""
    from pytorch import ARCHITECTURES

    return [Path(name) for name, row in ARCHITECTURES.items() if row.exporters != ("converter",) and name in (options.names or (name,))]


def run(options: argparse.Namespace, console: Console) -> int:
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "reports").mkdir(exist_ok=True)
    paths = architectures(options) if options.pytorch else exported_models(options, console)
    refused = {path.stem: path.read_text() for path in sorted((options.out / "models").glob("*.refused"))}
    reports = []
    with ThreadPoolExecutor(options.jobs) as pool:
        running = [pool.submit(check_apart, path, options) for path in paths]
        for number, report in enumerate((done.result() for done in as_completed(running)), 1):
            reports.append(report)
            agree = sum(p["status"] == "agrees" for p in report["points"])
            line = f"[{number}/{len(paths)}] {report['model']}: {agree}/{len(report['points'])} {notes_of(report)[:200]}"
            console.print(line, markup=False, soft_wrap=True)
    order = [path.stem for path in paths]
    reports.sort(key=lambda report: order.index(report["model"]))
    (options.out / "zoo.json").write_text(json.dumps({"reports": reports, "not exported": refused}, indent=1))
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda report: reproduce(report, options), [] if options.pytorch else first_of_each_kind(reports)))
    print_table(reports, len(refused), console)
    return 0 if all(map(is_good, reports)) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="architectures (default: all)")
    parser.add_argument("--out", type=Path, default=Path("build/zoo"), help="folder of models, reports and reproductions")
    parser.add_argument("--environment", type=Path, help="folder of the exporters' environment (default: OUT/environment)")
    parser.add_argument(
        "--python", type=Path, help="an interpreter that has the exporters' packages, instead of an environment of their own"
    )
    parser.add_argument("--no-export", action="store_true", help="only what has been exported before")
    parser.add_argument("--pytorch", action="store_true", help="by from_pytorch, beside eager")
    parser.add_argument("--limit", type=int, default=TIME_LIMIT, metavar="S", help="seconds after which a check is ended (default 900)")
    parser.add_argument("--again", action="store_true", help="also what has been checked before")
    parser.add_argument("--times", action="store_true", help="measure relayc and ONNX Runtime, on one thread each")
    parser.add_argument("--sizes", type=int, default=8, metavar="N", help="sizes of each model (default 8)")
    parser.add_argument("--seed", type=int, default=0, help="of sizes and inputs (default 0)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="models at the same time (default 2)")
    options = parser.parse_args()
    options.environment = options.environment or options.out / "environment"
    return run(options, Console(highlight=False, width=None if sys.stdout.isatty() else 200))


if __name__ == "__main__":
    sys.exit(main())
