"""The costs of an exported network, compared with ONNX Runtime: time from loading to the first result, memory, and file sizes.

    python -m relayc.bench.export [--model resnet50] [--rounds 5] [--threads 1]

Every figure is from separate processes, in turns: a process imports its packages, makes its input, takes the time, loads the model and runs
it once; then it runs it ten times more. Models are in the page cache, as in a service that restarts.
"""

import argparse
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from relayc.tools.tables import NUMBER, make_table

_PROCESS = """
import json, sys, time
name, path, shape, threads = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
start = time.perf_counter()
import numpy as np
numpy_seconds = time.perf_counter() - start
start = time.perf_counter()
if name == "onnxruntime":
    import onnxruntime
elif name == "tvm_ffi":
    import tvm_ffi
else:
    import relayc.runtime
    relayc.runtime.load_module
imported = time.perf_counter() - start

def memory():
    found = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return {key: int(found[key].split()[0]) / 1024 for key in ("VmRSS", "RssAnon", "RssFile")}

before = memory()
x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
start = time.perf_counter()
if name == "onnxruntime":
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = session.get_inputs()[0].name
    run = lambda: session.run(None, {feed: x})
elif name == "tvm_ffi":
    main = tvm_ffi.load_module(path)["main"]
    run = lambda: main(x)
else:
    relayc.runtime.set_num_threads(threads)
    main = relayc.runtime.load_module(path)["main"]
    run = lambda: main(x)
loaded = time.perf_counter() - start
run()
first = time.perf_counter() - start
times = []
for _ in range(10):
    start = time.perf_counter()
    run()
    times.append(time.perf_counter() - start)
after = memory()
own = after["VmRSS"] - before["VmRSS"]
print(json.dumps({"import": imported, "load": loaded, "first": first, "run": sorted(times)[5], **after, "own": own}))
"""


def _measured(name: str, path: Path, shape: list[int], threads: int) -> dict[str, float]:
    command = [sys.executable, "-c", _PROCESS, name.split()[0], str(path), json.dumps(shape), str(threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return json.loads(done.stdout)


def measure(model: str, rounds: int, threads: int, folder: Path) -> tuple[dict[str, dict[str, float]], dict[str, int]]:
    """Medians for each way to load the model, and bytes of the files."""
    import onnx

    from relayc.pipelines.driver.compile import compile as compile_
    from relayc.tools.light import random_light

    network = random_light(model)
    source = folder / f"{model}.onnx"
    onnx.save(network, source)
    module = compile_(source, num_threads=threads)
    embedded, beside = folder / f"{model}.so", folder / f"{model}-beside.so"
    module.export_library(embedded)
    module.export_library(beside, params="beside")
    shape = [int(d) for d in module.inputs[0].shape]
    del module, network
    ways = {"relayc": embedded, "relayc beside": beside, "tvm_ffi": embedded, "onnxruntime": source}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for name, path in ways.items():
        _measured(name, path, shape, threads)  # into the page cache
    for _ in range(rounds):
        for name, path in ways.items():
            found[name].append(_measured(name, path, shape, threads))
    medians = {name: {key: statistics.median(row[key] for row in rows) for key in rows[0]} for name, rows in found.items()}
    return medians, {path.name: path.stat().st_size for path in sorted(folder.iterdir())}


def runtime_files() -> tuple[int, int]:
    """How many files the runtime of relayc has, and their bytes."""
    root = Path(__file__).parents[1]
    files = [root / "__init__.py", *(path for name in ("runtime", "symbolic") for path in (root / name).rglob("*.py"))]
    return len(files), sum(file.stat().st_size for file in files)


def _table(medians: dict[str, dict[str, float]]) -> Any:
    columns = ("import ms", "load ms", "first result ms", "run ms", "first - run ms", "resident MiB", "anonymous", "files", "of the model")
    table = make_table("from loading to the first result", **{"": {}}, **{name: NUMBER for name in columns})
    for name, row in medians.items():
        milliseconds = [row["import"], row["load"], row["first"], row["run"], row["first"] - row["run"]]
        mebibytes = [row["VmRSS"], row["RssAnon"], row["RssFile"], row["own"]]
        table.add_row(name, *(f"{1e3 * value:.1f}" for value in milliseconds), *(f"{value:.0f}" for value in mebibytes))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m relayc.bench.export", description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="resnet50", help="one of the networks of the onnx package (default: resnet50)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    console = Console(highlight=False, width=180)
    with tempfile.TemporaryDirectory() as folder:
        medians, sizes = measure(arguments.model, arguments.rounds, arguments.threads, Path(folder))
    console.print(_table(medians))
    console.print("; ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items()))
    count, size = runtime_files()
    console.print(f"the runtime of relayc {importlib.metadata.version('relayc')}: {count} files, {size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
