"""Requests by HTTP, with tensors as JSON or as bytes after the JSON (the protocol's extension for binary tensors).

MLServer's own endpoint takes JSON only, and makes an object of Python of each number.
"""

import json
import re
import zlib
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

import numpy as np
import orjson
from mlserver.errors import MLServerError
from mlserver.handlers import DataPlane
from mlserver.registry import MultiModelRegistry
from mlserver.types import InferenceResponse, RequestInput, RequestOutput
from starlette.requests import Request
from starlette.responses import Response

from relayc.serve.model import ArrayRequest, RelaycModel
from relayc.serve.tensors import Refused, to_bytes, to_list

_App = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]
_INFER = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?/infer")
_LENGTH = "inference-header-content-length"


class InferRequests:
    """Middleware that answers inference requests for models of relayc, and limits the size of all requests."""

    def __init__(self, app: _App, data_plane: DataPlane, registry: MultiModelRegistry, max_bytes: int) -> None:
        self._app = app
        self._data_plane = data_plane
        self._registry = registry
        self._max_bytes = max_bytes

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        request = Request(scope, receive)
        found = _INFER.fullmatch(scope["path"]) if scope["method"] == "POST" else None
        try:
            length = request.headers.get("content-length", "0")
            if length.isdecimal() and int(length) > self._max_bytes:
                raise self._too_large(f"{length} bytes")
            model = await self._registry.get_model(found[1], found[2]) if found else None
            if not isinstance(model, RelaycModel):
                return await self._app(scope, receive, send)
            response = await self._infer(request, model)
        except (MLServerError, Refused) as error:
            await self._drain(request)
            response = Response(json.dumps({"error": str(error)}), error.status_code, media_type="application/json")
        return await response(scope, receive, send)

    def _too_large(self, found: str) -> Refused:
        return Refused(f"request too large: expected at most {self._max_bytes} bytes (max_request_bytes), found {found}", 413)

    async def _drain(self, request: Request) -> None:
        """Reads what is left of a body of moderate size: clients that still write do not see an answer."""
        size = 0
        with suppress(RuntimeError):  # it has been read
            async for part in request.stream():
                size += len(part)
                if size > 16 * self._max_bytes:
                    return

    async def _body(self, request: Request) -> bytes:
        parts, size = [], 0
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > self._max_bytes:
                raise self._too_large("more")
        body = b"".join(parts)
        encoding = request.headers.get("content-encoding", "identity")
        if encoding in ("gzip", "deflate"):
            unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # either format
            try:
                body = unpacker.decompress(body, self._max_bytes + 1)
            except zlib.error as error:
                raise Refused(f"expected a body in {encoding}: {error}") from error
            if len(body) > self._max_bytes:
                raise self._too_large("more after decompression")
        elif encoding != "identity":
            raise Refused(f"expected a body in gzip, deflate or as it is, found {encoding}", 415)
        return body

    async def _infer(self, request: Request, model: RelaycModel) -> Response:
        body = await self._body(request)
        length = request.headers.get(_LENGTH, str(len(body)))
        if not length.isdecimal() or int(length) > len(body):
            raise Refused(f"{_LENGTH}: expected a number up to {len(body)}, the size of the body, found {length!r}")
        try:
            header = orjson.loads(body[: int(length)])
        except orjson.JSONDecodeError as error:
            raise Refused(f"expected JSON: {error}") from error
        payload = _payload(header, memoryview(body)[int(length) :])
        response = await self._data_plane.infer(payload, model.name, model.version)
        return _response(response, header)


def _payload(header: Any, binary: memoryview) -> ArrayRequest:
    """The request in a JSON object and the bytes after it. Raises Refused if it is invalid."""
    inputs, offset = [], 0
    for tensor in _objects(header, "inputs"):
        parameters = _parameters(tensor)
        size = parameters.get("binary_data_size")
        if size is None:
            data = tensor.get("data")
        elif type(size) is int and 0 <= size <= len(binary) - offset:
            data = binary[offset : offset + size]
            offset += size
        else:
            raise Refused(f"binary_data_size: expected a number up to {len(binary) - offset}, the bytes that are left, found {size!r}")
        name, datatype, shape = (tensor.get(key) for key in ("name", "datatype", "shape"))
        if not isinstance(name, str) or not isinstance(datatype, str) or not isinstance(shape, list) or data is None:
            raise Refused(f"inputs: expected name, datatype, shape and data, found {', '.join(tensor) or 'none'}")
        inputs.append(RequestInput.model_construct(name=name, datatype=datatype, shape=shape, data=data))
    if offset != len(binary):
        raise Refused(f"expected {offset} bytes after the JSON, by binary_data_size, found {len(binary)}")
    outputs = [RequestOutput.model_construct(name=str(output.get("name"))) for output in _objects(header, "outputs")]
    return ArrayRequest.model_construct(id=header.get("id"), inputs=inputs, outputs=outputs or None, parameters=None)


def _objects(header: Any, key: str) -> list[dict[str, Any]]:
    found = header.get(key, []) if isinstance(header, dict) else None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Refused(f"expected an object whose {key!r} is a list of objects, found {str(header)[:100]}")
    return found


def _parameters(owner: dict[str, Any]) -> dict[str, Any]:
    found = owner.get("parameters") or {}
    if not isinstance(found, dict):
        raise Refused(f"parameters: expected an object, found {found!r}")
    return found


def _response(response: InferenceResponse, header: dict[str, Any]) -> Response:
    """Outputs as JSON, or, if the request specifies so, as bytes after it."""
    binary = bool(_parameters(header).get("binary_data_output"))
    as_bytes = {output.get("name"): _parameters(output).get("binary_data", binary) for output in _objects(header, "outputs")}
    outputs, parts = [], []
    for output in response.outputs:
        entry: dict[str, Any] = {"name": output.name, "datatype": output.datatype, "shape": output.shape}
        array: Any = output.data
        if as_bytes.get(output.name, binary):
            parts.append(to_bytes(array))
            entry["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            entry["data"] = _json_values(array)
        outputs.append(entry)
    text = {"model_name": response.model_name, "model_version": response.model_version, "id": response.id, "outputs": outputs}
    body = orjson.dumps({key: value for key, value in text.items() if value is not None}, option=orjson.OPT_SERIALIZE_NUMPY)
    if not parts:
        return Response(body, media_type="application/json")
    return Response(b"".join((body, *parts)), headers={_LENGTH: str(len(body))}, media_type="application/octet-stream")


def _json_values(array: np.ndarray) -> Any:
    if array.dtype == object:
        return to_list(array)
    narrow = array.dtype.name in ("float16", "bfloat16")
    return np.ascontiguousarray(array.astype(np.float32) if narrow else array).reshape(-1)
