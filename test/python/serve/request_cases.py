"""What is read of requests, of settings and of the command line, at the boundaries of what is right."""

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relayc.serve.command import _size

WHY = "relayc serve needs MLServer, which is not installed (no release of it is for Python 3.13)"
rest = pytest.importorskip("relayc.serve.rest", reason=WHY)
grpc = pytest.importorskip("relayc.serve.grpc", reason=WHY)
settings = pytest.importorskip("relayc.serve.settings", reason=WHY)
server = pytest.importorskip("relayc.serve.server", reason=WHY)
Repository = pytest.importorskip("relayc.serve.repository", reason=WHY).Repository


def test_numbers_of_bytes_have_units() -> None:
    assert [_size(text) for text in ("1", "64M", "2K", "3G")] == [1, 64 << 20, 2 << 10, 3 << 30]
    for text in ("", "0", "0M", "M", "-1", "1.5M", "1T", "1 M"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"expected a number of bytes such as 64M, found {text!r}"):
            _size(text)


def test_the_package_has_one_class() -> None:
    import relayc.serve

    assert relayc.serve.RelaycModel.__name__ == "RelaycModel"
    with pytest.raises(AttributeError, match=r"module 'relayc\.serve' has no attribute 'Other'"):
        relayc.serve.Other  # noqa: B018 # it is read for its error


def tensor(**changed: Any) -> dict[str, Any]:
    return {"name": "x", "datatype": "INT8", "shape": [2], "parameters": {"binary_data_size": 2}, **changed}


def test_bytes_after_the_json_belong_to_inputs_in_order() -> None:
    header = {
        "id": "7",
        "inputs": [tensor(), tensor(name="y", parameters=None, data=[1]), tensor(name="z", parameters={"binary_data_size": 3})],
    }
    found = rest._payload({**header, "outputs": [{"name": "a"}]}, memoryview(b"abcde"))
    assert [(each.name, bytes(each.data) if isinstance(each.data, memoryview) else each.data) for each in found.inputs] == [
        ("x", b"ab"),
        ("y", [1]),
        ("z", b"cde"),
    ]
    assert found.id == "7" and [each.name for each in found.outputs] == ["a"]
    assert rest._payload({"inputs": [tensor(parameters={"binary_data_size": 0})]}, memoryview(b"")).outputs is None


@pytest.mark.parametrize(
    ("header", "binary", "message"),
    [
        ([], b"", "expected an object whose 'inputs' is a list of objects"),
        ({"inputs": {}}, b"", "expected an object whose 'inputs' is a list of objects"),
        ({"inputs": [1]}, b"", "expected an object whose 'inputs' is a list of objects"),
        ({"inputs": [], "outputs": [1]}, b"", "expected an object whose 'outputs' is a list of objects"),
        ({"inputs": [tensor()]}, b"a", "binary_data_size: expected a number up to 1, the bytes that are left, found 2"),
        ({"inputs": [tensor(parameters={"binary_data_size": -1})]}, b"a", "found -1"),
        ({"inputs": [tensor(parameters={"binary_data_size": True})]}, b"a", "found True"),
        ({"inputs": [tensor(), tensor()]}, b"abc", "binary_data_size: expected a number up to 1, the bytes that are left, found 2"),
        ({"inputs": [tensor()]}, b"abc", "expected 2 bytes after the JSON, by binary_data_size, found 3"),
        ({"inputs": [tensor(parameters=[1])]}, b"ab", r"parameters: expected an object, found \[1\]"),
        ({"inputs": [tensor(name=1)]}, b"ab", "inputs: expected name, datatype, shape and data"),
        ({"inputs": [tensor(datatype=None)]}, b"ab", "inputs: expected name, datatype, shape and data"),
        ({"inputs": [tensor(shape=2)]}, b"ab", "inputs: expected name, datatype, shape and data"),
        ({"inputs": [tensor(parameters=None)]}, b"", "inputs: expected name, datatype, shape and data"),
    ],
)
def test_requests_that_are_wrong(header: Any, binary: bytes, message: str) -> None:
    with pytest.raises(rest.Refused, match=message):
        rest._payload(header, memoryview(binary))


@pytest.mark.parametrize(("length", "status"), [("63", 200), ("64", 200), ("65", 413), ("6x", 200)])
def test_requests_may_have_as_many_bytes_as_they_are_allowed(length: str, status: int) -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"status": 200})

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/v2", "headers": [(b"content-length", length.encode())]}
    asyncio.run(rest.InferRequests(app, None, None, 64)(scope, receive, send))
    assert sent[0]["status"] == status


def test_values_in_json() -> None:
    assert rest._json_values(np.array([["a"], ["b"]], object)) == ["a", "b"]
    for dtype, shown in (("float16", "float32"), ("float64", "float64"), ("int8", "int8")):
        found = rest._json_values(np.array([[1, 2], [3, 4]], dtype).T)
        assert found.dtype == shown and found.tolist() == [1, 3, 2, 4]


@pytest.mark.parametrize(("name", "least"), settings._LEAST.items())
def test_settings_have_least_values(name: str, least: Any) -> None:
    settings._check("m", name, least)
    for value, message in [
        (least - 1, f"expected {least} or more, found {least - 1}"),
        (True, "found True of type bool"),
        ("1", "found '1' of type str"),
    ]:
        with pytest.raises(ValueError, match=f"model m: setting '{name}': {message}"):
            settings._check("m", name, value)


def test_settings_that_nobody_knows() -> None:
    with pytest.raises(ValueError, match=r"model m: setting 'worker': expected one of .*; did you mean workers"):
        settings._check("m", "worker", 1)


def test_a_model_needs_no_parameters(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / settings.FILES[0]).touch()
    given = settings.ModelSettings(name="m", implementation=object, max_batch_size=3)
    found = settings.take_settings(given)
    assert (str(found.path), found.limits.max_batch_size, found.workers, found.options) == (settings.FILES[0], 3, 0, {})
    assert given.max_batch_size == 0


def test_a_model_that_cannot_be_opened_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no model")
    given = settings.ModelSettings(name="m", implementation=grpc.RelaycModel, parameters={"uri": str(tmp_path)})
    with pytest.raises(ValueError, match=r"model\.onnx"):
        asyncio.run(grpc.RelaycModel(given).load())


@pytest.mark.parametrize("number", ["7", None])
def test_an_answer_has_the_number_of_its_request(number: str | None) -> None:
    assert grpc._response(grpc.InferenceResponse(model_name="m", id=number, outputs=[])).id == (number or "")


@pytest.mark.parametrize(
    ("given", "threads"), [({}, None), ({"workers": 1}, 7), ({"workers": 2}, 3), ({"workers": 8}, 1), ({"workers": 8, "threads": 5}, 5)]
)
def test_workers_share_the_cores(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, given: dict[str, int], threads: int | None) -> None:
    monkeypatch.setattr(settings.os, "sched_getaffinity", lambda pid: set(range(7)))
    (tmp_path / settings.FILES[0]).touch()
    parameters = {"uri": str(tmp_path), "extra": given}
    assert settings.take_settings(settings.ModelSettings(name="m", implementation=object, parameters=parameters)).threads == threads


def test_a_folder_has_one_model(tmp_path: Any) -> None:
    given = settings.ModelSettings(name="m", implementation=object, parameters={"uri": str(tmp_path)})
    with pytest.raises(ValueError, match=rf"model m: expected one of .* in {tmp_path}, found none"):
        settings._file(given)
    first, second = settings.FILES[:2]
    (tmp_path / first).touch()
    assert settings._file(given) == tmp_path / first
    (tmp_path / second).touch()
    with pytest.raises(ValueError, match=f"found {first} and {second}"):
        settings._file(given)
    assert (
        settings._file(settings.ModelSettings(name="m", implementation=object, parameters={"uri": str(tmp_path / second)}))
        == tmp_path / second
    )


def test_a_model_of_the_repository_has_the_settings_of_the_command_and_its_own(tmp_path: Path) -> None:
    files: dict[str, dict[str, Any]] = {
        "m": {"max_batch_size": 0, "max_batch_time": 0.5, "parameters": {"extra": {"threads": 3}}},
        "m/1": {"max_batch_size": 4},
        "m/12": {},
        "other": {"implementation": "other.Other", "max_batch_size": 5},
    }
    for name, content in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "model-settings.json").write_text(json.dumps(content))
    found = asyncio.run(Repository(str(tmp_path), {"threads": 2, "timeout": 7}).list())
    parts = [(each.name, each.parameters.version, each.parameters.uri, each.parameters.extra) for each in found]
    own = {"threads": 3, "timeout": 7, "max_batch_time": 0.5}
    assert parts == [
        ("m", "1", str(tmp_path / "m" / "1"), {**own, "max_batch_size": 4}),
        ("m", "12", str(tmp_path / "m" / "12"), {**own, "max_batch_size": 0}),
        ("other", None, str(tmp_path / "other"), {}),
    ]


def test_a_repository_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, what in (("file", "a file"), ("other", "none")):
        with pytest.raises(ValueError, match=f"{tmp_path / name}: expected a folder of models, found {what}"):
            asyncio.run(Repository(str(tmp_path / name)).list())


def test_a_setting_that_mlserver_refuses_is_shown_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    file = tmp_path / "m" / "model-settings.json"
    file.write_text(json.dumps({"max_batch_size": "many"}))
    with pytest.raises(ValueError, match=f"(?s)^{file}: .*max_batch_size.*'many'"):
        asyncio.run(Repository(str(tmp_path)).list())


@pytest.mark.parametrize(
    ("file", "options", "expected"),
    [
        (None, {}, (False, "127.0.0.1", 64 << 20)),
        ({"debug": True, "host": "::1"}, {}, (True, "::1", 64 << 20)),
        ({"debug": True, "host": "::1"}, {"debug": False, "grpc_max_message_length": 5}, (False, "::1", 5)),
    ],
)
def test_settings_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Any, options: Any, expected: Any) -> None:
    """By default it is quiet and hears its own machine only; a file comes before that, and the command before the file."""
    found: list[Any] = []

    async def serve(given: Any, models: Any) -> None:
        found.append((given.debug, given.host, given.grpc_max_message_length, given.parallel_workers, [model.name for model in models]))

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr(server, "install_uvloop_event_loop", lambda: None)
    monkeypatch.setattr(server, "_check_ports", lambda given: None)
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / settings.FILES[0]).touch()
    if file is not None:
        (tmp_path / "settings.json").write_text(json.dumps(file))
    server.run(tmp_path, {}, **options)
    assert found == [(*expected, 0, ["m"])]
