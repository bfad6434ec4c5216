"""Models of the tests of `relayc serve`, a server in a process of its own, and clients."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper, numpy_helper

if importlib.util.find_spec("mlserver") is None:
    pytest.skip("relayc serve needs MLServer, which is not installed (no release of it is for Python 3.13)", allow_module_level=True)
# A process has either the client of gRPC or MLServer: both define the messages of the protocol.
grpcclient = pytest.importorskip("tritonclient.grpc")
httpclient = pytest.importorskip("tritonclient.http")

DTYPES = {
    "BOOL": (T.BOOL, np.bool_),
    **{
        f"{'U' * (not sign)}INT{bits}": (getattr(T, f"{'U' * (not sign)}INT{bits}"), np.dtype(f"{'u' * (not sign)}int{bits}"))
        for sign in (True, False)
        for bits in (8, 16, 32, 64)
    },
    "FP16": (T.FLOAT16, np.float16),
    "BF16": (T.BFLOAT16, ml_dtypes.bfloat16),
    "FP32": (T.FLOAT, np.float32),
    "FP64": (T.DOUBLE, np.float64),
    "BYTES": (T.STRING, np.object_),
}


def _model(nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: Mapping[str, np.ndarray] | None = None) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(a, name) for name, a in (constants or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def affine(seed: int) -> onnx.ModelProto:
    """y = relu(x @ w + b), on any number of rows."""
    random = np.random.default_rng(seed)
    constants = {"w": random.standard_normal((4, 6), np.float32), "b": random.standard_normal(6, np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, T.FLOAT, ["batch", size]) for name, size in (("x", 4), ("y", 6)))
    return _model(nodes, [x], [y], constants)


def pooled() -> onnx.ModelProto:
    """The softmax of each row, and its mean square: rows have any length."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["p"]),
        helper.make_node("Mul", ["x", "x"], ["q"]),
        helper.make_node("ReduceMean", ["q"], ["m"], axes=[1], keepdims=0),
    ]
    x, p = (helper.make_tensor_value_info(name, T.FLOAT, ["batch", "length"]) for name in "xp")
    return _model(nodes, [x], [p, helper.make_tensor_value_info("m", T.FLOAT, ["batch"])])


def identities() -> onnx.ModelProto:
    """An output for an input of each datatype."""
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in DTYPES]
    values = [[helper.make_tensor_value_info(f"{name}{end}", kind, ["n", 2]) for name, (kind, _) in DTYPES.items()] for end in ("", "_out")]
    return _model(nodes, *values)


def rotations() -> onnx.ModelProto:
    """x with its columns rotated n times, in a loop of n rounds: 80 ns each."""
    body = helper.make_graph(
        [helper.make_node("MatMul", ["s", "w"], ["t"]), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [
            helper.make_tensor_value_info("i", T.INT64, []),
            helper.make_tensor_value_info("c", T.BOOL, []),
            helper.make_tensor_value_info("s", T.FLOAT, [8, 8]),
        ],
        [helper.make_tensor_value_info("d", T.BOOL, []), helper.make_tensor_value_info("t", T.FLOAT, [8, 8])],
    )
    n, x, y = (
        helper.make_tensor_value_info(name, *kind)
        for name, kind in (("n", (T.INT64, [])), ("x", (T.FLOAT, [8, 8])), ("y", (T.FLOAT, [8, 8])))
    )
    return _model(
        [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], [n, x], [y], {"w": np.roll(np.eye(8, dtype=np.float32), 1, 1)}
    )


class Server:
    """`python -m relayc.serve` on free ports of the loopback interface."""

    def __init__(self, repository: Path, *options: str) -> None:
        with socket.socket() as a, socket.socket() as b, socket.socket() as c:
            for each in (a, b, c):
                each.bind(("127.0.0.1", 0))
            self.http, self.grpc, self.metrics = (each.getsockname()[1] for each in (a, b, c))
        ports = (f"--{name}-port={getattr(self, name)}" for name in ("http", "grpc", "metrics"))
        self.log = (repository / "log").open("w+")
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "relayc.serve", str(repository), *ports, *options]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)

    def text(self) -> str:
        """What the server has printed."""
        self.log.flush()
        return Path(self.log.name).read_text()

    def wait_until_ready(self, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.process.poll() is None, self.text()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/v2/health/ready", timeout=5):
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError(f"not ready after {seconds} s:\n{self.text()}")

    def figure(self, name: str, **labels: str) -> float:
        """A figure of the metrics; the sum of those with these labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f"{name}{{") and all(each in line for each in wanted))

    def workers(self, name: str = "relayc.serve.workers") -> list[int]:
        """The worker processes, by their command lines."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                status, command = (entry / "stat").read_text(), (entry / "cmdline").read_text()
            except OSError:
                continue
            if name in command and int(status.rpartition(")")[2].split()[1]) == self.process.pid:
                found.append(int(entry.name))
        return found

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        finally:
            self.process.kill()
            self.log.close()
