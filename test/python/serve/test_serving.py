"""`relayc serve` with clients over the loopback interface: one server for most tests, and results beside those of ONNX Runtime."""

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from served import DTYPES, Server, affine, grpcclient, httpclient, identities, pooled, rotations

import relayc

TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}
"""Sums of 4 to 40 products of float32 in another order than ONNX Runtime's."""
LONG = 10_000_000
"""Rounds of `rotations` that take about a second: long enough to do something meanwhile."""


OTHER = """
from mlserver import MLModel
from mlserver.types import InferenceResponse, ResponseOutput

class Other(MLModel):
    async def predict(self, payload):
        (x,) = payload.inputs
        y = ResponseOutput(name="y", shape=x.shape, datatype=x.datatype, data=[2 * value for value in x.data])
        return InferenceResponse(model_name=self.name, outputs=[y])
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models in all forms: libraries, which a server opens without the compiler, and what is compiled when it is loaded."""
    root = tmp_path_factory.mktemp("repository")
    models = {"affine/1": affine(1), "affine/12": affine(12), "pooled/1": pooled(), "types/1": identities(), "loop/1": rotations()}
    for name, model in models.items():
        (root / name).mkdir(parents=True)
        if name == "affine/12":
            (root / name / "model.onnx").write_bytes(model.SerializeToString())
        else:
            relayc.compile(model).export_library(root / name / "model.so")
    (root / "flat").mkdir()
    (root / "flat" / "model.relay.mlir").write_text(str(relayc.import_model(affine(3))))
    batching = {"max_batch_size": 8, "max_batch_time": 0.02}
    for name in ("affine", "pooled"):
        (root / name / "model-settings.json").write_text(json.dumps(batching))
    killed = {"parameters": {"extra": {"workers": 1, "threads": 1}}}
    for name, settings in {"loop": {"parameters": {"extra": {"max_queue": 2}}}, "killed": killed}.items():
        (root / name).mkdir(exist_ok=True)
        (root / name / "model-settings.json").write_text(json.dumps(settings))
    os.symlink(root / "loop" / "1", root / "killed" / "1")
    (root / "other").mkdir()
    (root / "other" / "other.py").write_text(OTHER)
    (root / "other" / "model-settings.json").write_text(json.dumps({"implementation": "other.Other"}))
    return root


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[Server]:
    found = Server(repository, "--max-request-bytes=1M")
    try:
        found.wait_until_ready()
        yield found
        assert found.stop() == 0, found.text()
    finally:
        found.process.kill()


class Client:
    """The same calls by gRPC, by HTTP with tensors as bytes, and by HTTP with tensors as JSON."""

    def __init__(self, server: Server, kind: str) -> None:
        self.kind = kind
        self.module = grpcclient if kind == "grpc" else httpclient
        self.client = self.module.InferenceServerClient(f"127.0.0.1:{server.grpc if kind == 'grpc' else server.http}")

    def infer(self, model: str, arrays: Mapping[str, np.ndarray], version: str = "", datatypes: Mapping[str, str] | None = None) -> Any:
        options = {} if self.kind == "grpc" else {"binary_data": self.kind == "binary"}
        inputs = []
        for name, array in arrays.items():
            datatype = (datatypes or {}).get(name) or self.datatype(array)
            inputs.append(self.module.InferInput(name, list(array.shape), datatype))
            inputs[-1].set_data_from_numpy(array, **options)
        specs = self.client.get_model_metadata(model, version)
        names = [spec["name"] for spec in specs["outputs"]] if self.kind != "grpc" else [spec.name for spec in specs.outputs]
        outputs = [self.module.InferRequestedOutput(name, **options) for name in names]
        result = self.client.infer(model, inputs, version, outputs=outputs)
        return {name: result.as_numpy(name) for name in names}

    @staticmethod
    def datatype(array: np.ndarray) -> str:
        return next(name for name, (_, dtype) in DTYPES.items() if np.dtype(dtype) == array.dtype)


KINDS = ("grpc", "binary", "json")


def error_of(call: Callable[[], Any]) -> tuple[str, str]:
    """The status and the message with which a request is refused."""
    with pytest.raises((grpcclient.InferenceServerException, httpclient.InferenceServerException)) as found:
        call()
    return str(found.value.status()), found.value.message()


def reference(model: Any, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([each.name for each in session.get_outputs()], session.run(None, dict(arrays)), strict=True))


def test_health_and_metadata(server: Server) -> None:
    for kind in ("grpc", "json"):
        client = Client(server, kind).client
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("affine", "1")
    found = client.get_model_metadata("pooled")
    assert found["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, -1]}]
    assert found["outputs"][1] == {"name": "m", "datatype": "FP32", "shape": [-1]}
    assert found["versions"] == ["1"] and found["platform"] == "relayc"
    types = client.get_model_metadata("types")
    assert {spec["name"]: spec["datatype"] for spec in types["inputs"]} == {name: name for name in DTYPES}


@pytest.mark.parametrize("kind", KINDS)
def test_concurrent_requests_of_several_batch_sizes(server: Server, kind: str) -> None:
    random = np.random.default_rng(7)
    arrays = [random.standard_normal((size, 4), np.float32) for size in (1, 2, 3, 5, 8, 9, 1, 1, 4, 2)]
    ran = server.figure("relayc_batch_rows_count", model="affine")
    rows = server.figure("relayc_batch_rows_sum", model="affine")
    with ThreadPoolExecutor(len(arrays)) as pool:  # a client of HTTP belongs to one thread
        found = list(pool.map(lambda array: Client(server, kind).infer("affine", {"x": array}), arrays))
    for array, outputs in zip(arrays, found, strict=True):
        np.testing.assert_allclose(outputs["y"], reference(affine(12), {"x": array})["y"], **TOLERANCE)
    assert server.figure("relayc_batch_rows_sum", model="affine") == rows + sum(map(len, arrays))
    assert server.figure("relayc_batch_rows_count", model="affine") <= ran + len(arrays)


def test_concurrent_requests_are_joined_where_their_other_sizes_agree(server: Server) -> None:
    random = np.random.default_rng(8)
    arrays = [random.standard_normal((1 + i % 2, 3 + i % 3), np.float32) for i in range(24)]
    client = Client(server, "grpc")
    ran = server.figure("relayc_batch_rows_count", model="pooled")
    with ThreadPoolExecutor(len(arrays)) as pool:
        found = list(pool.map(lambda array: client.infer("pooled", {"x": array}), arrays))
    for array, outputs in zip(arrays, found, strict=True):
        for name, expected in reference(pooled(), {"x": array}).items():
            np.testing.assert_allclose(outputs[name], expected, **TOLERANCE)
    assert server.figure("relayc_batch_rows_count", model="pooled") < ran + len(arrays)  # there were fewer calls than requests


@pytest.mark.parametrize("kind", KINDS)
def test_versions(server: Server, kind: str) -> None:
    x = np.random.default_rng(9).standard_normal((3, 4), np.float32)
    client = Client(server, kind)
    for version, model in {"1": affine(1), "12": affine(12), "": affine(12)}.items():
        np.testing.assert_allclose(client.infer("affine", {"x": x}, version)["y"], reference(model, {"x": x})["y"], **TOLERANCE)
    status, message = error_of(lambda: client.infer("affine", {"x": x}, "3"))
    assert "404" in status or "NOT_FOUND" in status
    assert message == "Model affine with version 3 not found"


def test_a_model_of_mlir_text_without_a_version(server: Server) -> None:
    x = np.random.default_rng(10).standard_normal((3, 4), np.float32)
    np.testing.assert_allclose(Client(server, "grpc").infer("flat", {"x": x})["y"], reference(affine(3), {"x": x})["y"], **TOLERANCE)


@pytest.mark.parametrize("kind", ("grpc", "binary"))
def test_all_datatypes(server: Server, kind: str) -> None:
    random = np.random.default_rng(11)
    arrays = {}
    for name, (_, dtype) in DTYPES.items():
        kind_of = np.dtype(dtype).kind
        if kind_of in "iu":
            limits = np.iinfo(dtype)
            arrays[name] = np.array([[limits.min, limits.max], [1, 2], [3, 100]], dtype)
        elif name == "BYTES":
            arrays[name] = np.array([["", "a"], ["Zürich", "東京"], ["0" * 300, "b"]], object)
        else:
            arrays[name] = random.standard_normal((3, 2)).astype(dtype) if name != "BOOL" else random.integers(0, 2, (3, 2)).astype(bool)
    arrays["FP32"][0] = np.nan, np.inf
    found = Client(server, kind).infer("types", arrays)
    for name, array in arrays.items():
        if name == "BYTES":
            assert [text.decode() for text in found["BYTES_out"].reshape(-1)] == list(array.reshape(-1))
        else:
            assert found[f"{name}_out"].dtype == array.dtype
            np.testing.assert_array_equal(found[f"{name}_out"], array)


def post(server: Server, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    """A request as a person writes it."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{server.http}{path}", data, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["error"]


def test_all_datatypes_as_json(server: Server) -> None:
    values: dict[str, list[Any]] = {name: [0, 1] for name in DTYPES}
    values |= {"BOOL": [True, False], "BYTES": ["a", "ü"], "UINT64": [2**64 - 1, 0], "INT64": [-(2**63), 5], "BF16": [0.5, -2]}
    values |= {"FP16": [0.5, -3], "FP32": [0.1, None], "FP64": [0.1, 1e300]}
    inputs = [{"name": name, "datatype": name, "shape": [1, 2], "data": data} for name, data in values.items()]
    status, answer = post(server, "/v2/models/types/infer", {"id": "17", "inputs": inputs})
    assert status == 200, answer
    assert answer["id"] == "17" and answer["model_version"] == "1"
    found = {output["name"].removesuffix("_out"): output for output in answer["outputs"]}
    for name, data in values.items():
        assert found[name]["data"] == data and found[name]["datatype"] == name and found[name]["shape"] == [1, 2]


X = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
WRONG = {
    "name": ({"inputs": [{**X, "name": "z"}]}, 400, "model affine: expected the inputs x, found z"),
    "no input": ({"inputs": []}, 400, "model affine: expected the inputs x, found none"),
    "twice": ({"inputs": [X, X]}, 400, "model affine: expected the inputs x, found x, x"),
    "datatype": ({"inputs": [{**X, "datatype": "INT64"}]}, 400, "input 'x': expected datatype FP32, found INT64"),
    "rank": ({"inputs": [{**X, "shape": [4]}]}, 400, "input 'x': expected shape [batch, 4], found [4]"),
    "size": ({"inputs": [{**X, "shape": [1, 5]}]}, 400, "input 'x': expected shape [batch, 4], found [1, 5]"),
    "negative": ({"inputs": [{**X, "shape": [-1, 4]}]}, 400, "input 'x': expected shape [batch, 4], found [-1, 4]"),
    "elements": ({"inputs": [{**X, "data": [1, 2]}]}, 400, "input 'x': expected 4 elements for shape [1, 4], found 2"),
    "text": ({"inputs": [{**X, "data": ["a", "b", "c", "d"]}]}, 400, "input 'x': expected FP32 values, found values of type str32"),
    "output": ({"inputs": [X], "outputs": [{"name": "q"}]}, 400, "model affine: expected outputs among y, found 'q'"),
    "no data": ({"inputs": [{"name": "x"}]}, 400, "inputs: expected name, datatype, shape and data, found name"),
    "list": ([1], 400, "expected an object whose 'inputs' is a list of objects, found [1]"),
    "no JSON": (b"{", 400, "expected JSON: "),
    "large": (b" " * (2 << 20), 413, "request too large: expected at most 1048576 bytes (max_request_bytes), found 2097152 bytes"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_request_gets_one_clear_error(server: Server, case: str) -> None:
    body, status, message = WRONG[case]
    found = post(server, "/v2/models/affine/infer", body)
    assert found[0] == status and found[1].startswith(message), found


def test_bodies_may_be_compressed_and_their_size_counts_unpacked(server: Server) -> None:
    path, header = "/v2/models/affine/infer", {"Content-Encoding": "gzip"}
    body = json.dumps({"inputs": [X]}).encode()
    status, answer = post(server, path, gzip.compress(body), **header)
    assert status == 200 and answer["outputs"] == post(server, path, body)[1]["outputs"]
    assert post(server, path, gzip.compress(b" " * (2 << 20)), **header)[0] == 413
    assert post(server, path, body, **header)[0] == 400


def test_a_model_of_another_runtime_is_served_too(server: Server) -> None:
    status, answer = post(server, "/v2/models/other/infer", {"inputs": [X]}, **{"Content-Type": "application/json"})
    assert status == 200 and answer["outputs"][0]["data"] == [2, 4, 6, 8]
    x = np.random.default_rng(12).standard_normal((2, 3), np.float32)
    tensor = grpcclient.InferInput("x", x.shape, "FP32")
    tensor.set_data_from_numpy(x)
    np.testing.assert_array_equal(Client(server, "grpc").client.infer("other", [tensor]).as_numpy("y"), 2 * x)


def test_wrong_integers_are_refused_not_rounded(server: Server) -> None:
    for data, what in (([1.5, 2], "values of type float64"), ([2**70, 0], "")):
        values = {name: [0, 0] for name in DTYPES} | {"BOOL": [True, True], "BYTES": ["", ""], "INT32": data}
        inputs = [{"name": name, "datatype": name, "shape": [1, 2], "data": each} for name, each in values.items()]
        status, message = post(server, "/v2/models/types/infer", {"inputs": inputs})
        assert status == 400 and message.startswith(f"input 'INT32': expected INT32 values, found {what}"), message


def test_wrong_bytes_after_the_json_are_refused(server: Server) -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 4], "parameters": {"binary_data_size": 16}}
    header = json.dumps({"inputs": [tensor]}).encode()
    for body, length, message in (
        (header + b"\0" * 8, len(header), "binary_data_size: expected a number up to 8, the bytes that are left, found 16"),
        (header + b"\0" * 20, len(header), "expected 16 bytes after the JSON, by binary_data_size, found 20"),
        (header, 10**6, f"inference-header-content-length: expected a number up to {len(header)}, the size of the body, found '1000000'"),
    ):
        headers = {"Inference-Header-Content-Length": str(length)}
        assert post(server, "/v2/models/affine/infer", body, **headers) == (400, message)


def test_a_large_message_by_grpc_is_refused(server: Server) -> None:
    status, message = error_of(lambda: Client(server, "grpc").infer("affine", {"x": np.zeros((100_000, 4), np.float32)}))
    assert "RESOURCE_EXHAUSTED" in status and "1048576" in message
    assert Client(server, "grpc").infer("affine", {"x": np.zeros((1, 4), np.float32)})["y"].shape == (1, 6)


def loop(server: Server, model: str, rounds: int, seed: int = 0) -> bool:
    """Whether `rotations` gives what it should."""
    x = np.random.default_rng(seed).standard_normal((8, 8), np.float32)
    found = Client(server, "grpc").infer(model, {"n": np.array(rounds), "x": x})["y"]
    return np.array_equal(found, np.roll(x, rounds % 8, 1))


def test_a_full_queue_refuses_requests_and_answers_the_others(server: Server) -> None:
    refused = server.figure("relayc_refused_requests_total", model="loop", status="503")

    def call(seed: int) -> bool | str:
        try:
            return loop(server, "loop", LONG // 4, seed)
        except grpcclient.InferenceServerException as error:
            return str(error.message())

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(call, range(6)))
    assert found.count(True) == 3 and found.count("queue full: 2 requests wait for a worker (max_queue 2)") == 3, found
    assert server.figure("relayc_refused_requests_total", model="loop", status="503") == refused + 3


def test_a_model_is_unloaded_and_loaded_while_requests_are_under_way(server: Server) -> None:
    client = Client(server, "grpc").client
    for model in ("loop", "killed"):
        with ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(loop, server, model, LONG // 4, i) for i in range(2)]
            time.sleep(0.1)
            client.unload_model(model)
            assert [call.result(60) for call in calls] == [True] * 2
        assert "NOT_FOUND" in error_of(lambda model=model: loop(server, model, 1))[0]
        client.load_model(model)
        assert loop(server, model, 1)


def test_a_worker_that_dies_loses_no_request(server: Server) -> None:
    (worker,) = server.workers()
    deaths = server.figure("relayc_worker_deaths_total", model="killed")
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(loop, server, "killed", LONG // 2 + i, i) for i in range(4)]
        time.sleep(0.2)
        os.kill(worker, signal.SIGKILL)
        assert [call.result(60) for call in calls] == [True] * 4
    assert server.figure("relayc_worker_deaths_total", model="killed") == deaths + 1
    assert server.workers() and server.workers() != [worker]
    assert loop(server, "killed", 5)


def test_a_request_that_kills_its_worker_twice_is_refused(server: Server) -> None:
    done = threading.Event()

    def kill_all() -> None:
        while not done.wait(0.1):
            for worker in server.workers():
                os.kill(worker, signal.SIGKILL)

    killer = threading.Thread(target=kill_all)
    killer.start()
    try:
        status, message = error_of(lambda: loop(server, "killed", LONG * 100))
    finally:
        done.set()
        killer.join()
    assert "INTERNAL" in status and message.startswith("the worker process died"), message
    assert loop(server, "killed", 3)


def test_a_model_that_cannot_be_opened_ends_the_server_with_one_error(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.so").write_bytes((repository / "loop" / "1" / "model.so").read_bytes()[:5000])
    server = Server(tmp_path)
    try:
        assert server.process.wait(60) == 1
        last = server.text().strip().splitlines()[-1]
        assert last.startswith("relayc: error: ") and "model.so" in last, server.text()
    finally:
        server.process.kill()


def extra(name: str, value: Any) -> str:
    return json.dumps({"parameters": {"extra": {name: value}}})


REPOSITORIES: dict[str, tuple[dict[str, str], str]] = {
    "empty": ({}, "expected models as "),
    "no_file": ({"m/1/readme.txt": ""}, "model m: expected one of model.onnx, model.so, model.relay.mlir in "),
    "no_json": ({"m/model-settings.json": "{", "m/1/model.onnx": ""}, "expected JSON, found "),
    "unknown": (
        {"m/model-settings.json": extra("worker", 1), "m/1/model.onnx": ""},
        "model m: setting 'worker': expected one of target, ",
    ),
    "negative": (
        {"m/model-settings.json": extra("workers", -1), "m/1/model.onnx": ""},
        "model m: setting 'workers': expected 0 or more, found -1",
    ),
    "kind": ({"m/model-settings.json": extra("dims", [1]), "m/1/model.onnx": ""}, "model m: setting 'dims': found [1] of type list"),
    "both": (
        {"m/model-settings.json": '{"max_batch_size": 0}', "m/1/model-settings.json": '{"max_batch_time": -1}', "m/1/model.onnx": ""},
        "model m: setting 'max_batch_time': expected 0 or more, found -1",
    ),
    "two": ({"m/1/model.onnx": "", "m/1/model.so": ""}, "found model.onnx and model.so"),
}
CHECK = """
import asyncio, sys
from pathlib import Path
from relayc.serve.repository import Repository
from relayc.serve.server import run
from relayc.serve.settings import take_settings
repository, port, *roots = sys.argv[1:]
try:
    run(Path(repository), {}, http_port=int(port))
except OSError as error:
    print(error)
for root in roots:
    try:
        for settings in asyncio.run(Repository(root).list()):
            take_settings(settings)
    except ValueError as error:
        print(error)
"""


def test_a_wrong_repository_and_a_used_port_are_one_error(tmp_path: Path, repository: Path, server: Server) -> None:
    for case, (files, _) in REPOSITORIES.items():
        (tmp_path / case).mkdir()
        for name, content in files.items():
            (tmp_path / case / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / case / name).write_text(content)
    # In a process of its own: MLServer and the client of gRPC exclude each other.
    roots = (str(tmp_path / case) for case in REPOSITORIES)
    command = [sys.executable, "-c", CHECK, str(repository), str(server.http), *roots]
    used, *lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert used.startswith(f"http_port {server.http} of 127.0.0.1: ") and "in use" in used
    assert len(lines) == len(REPOSITORIES), lines
    for line, (_, message) in zip(lines, REPOSITORIES.values(), strict=True):
        assert message in line
