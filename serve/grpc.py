"""Requests by gRPC, with tensors as bytes. MLServer's own service makes an object of Python of each number, and lacks BF16."""

from typing import Any

from grpc import ServicerContext, StatusCode, aio
from mlserver.errors import MLServerError
from mlserver.grpc import dataplane_pb2 as pb
from mlserver.grpc.converters import InferTensorContentsConverter
from mlserver.grpc.dataplane_pb2_grpc import add_GRPCInferenceServiceServicer_to_server
from mlserver.grpc.interceptors import PromServerInterceptor
from mlserver.grpc.model_repository import ModelRepositoryServicer
from mlserver.grpc.model_repository_pb2_grpc import add_ModelRepositoryServiceServicer_to_server
from mlserver.grpc.server import GRPCServer
from mlserver.grpc.servicers import InferenceServicer
from mlserver.grpc.utils import handle_mlserver_error
from mlserver.handlers import DataPlane, ModelRepositoryHandlers
from mlserver.registry import MultiModelRegistry
from mlserver.settings import Settings
from mlserver.types import InferenceResponse, RequestInput, RequestOutput

from relayc.serve.model import ArrayRequest, RelaycModel
from relayc.serve.tensors import Refused, to_bytes

_CODES = {
    400: StatusCode.INVALID_ARGUMENT,
    404: StatusCode.NOT_FOUND,
    503: StatusCode.RESOURCE_EXHAUSTED,
    504: StatusCode.DEADLINE_EXCEEDED,
}


class GrpcServer(GRPCServer):
    """MLServer's server of gRPC, with another service for models of relayc."""

    def __init__(self, settings: Settings, data_plane: DataPlane, handlers: ModelRepositoryHandlers, registry: MultiModelRegistry) -> None:
        super().__init__(settings, data_plane, handlers)
        self._registry = registry

    def _create_server(self) -> Any:
        interceptors = [PromServerInterceptor(enable_handling_time_histogram=True)] if self._settings.metrics_endpoint else []
        self._server = aio.server(interceptors=interceptors, options=self._get_options())
        servicer = _Servicer(self._data_plane, self._model_repository_handlers, self._registry)
        add_GRPCInferenceServiceServicer_to_server(servicer, self._server)
        add_ModelRepositoryServiceServicer_to_server(ModelRepositoryServicer(self._model_repository_handlers), self._server)
        self._server.add_insecure_port(f"{self._settings.host}:{self._settings.grpc_port}")
        return self._server

    def _get_options(self) -> list[tuple[str, Any]]:
        return [
            ("grpc.max_receive_message_length", self._settings.grpc_max_message_length),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),  # a port that is in use is an error
        ]


class _Servicer(InferenceServicer):
    def __init__(self, data_plane: DataPlane, handlers: ModelRepositoryHandlers, registry: MultiModelRegistry) -> None:
        super().__init__(data_plane, handlers)
        self._registry = registry

    ModelReady = handle_mlserver_error(InferenceServicer.ModelReady)

    async def ModelInfer(self, request: pb.ModelInferRequest, context: ServicerContext) -> pb.ModelInferResponse:
        try:
            model = await self._registry.get_model(request.model_name, request.model_version or None)
            if not isinstance(model, RelaycModel):
                return await super().ModelInfer(request, context)
            return _response(await self._data_plane.infer(_payload(request), model.name, model.version))
        except (MLServerError, Refused) as error:
            return await context.abort(_CODES.get(error.status_code, StatusCode.INTERNAL), str(error))


def _payload(request: pb.ModelInferRequest) -> ArrayRequest:
    """The request with data as bytes, or lists if it has those. Raises Refused unless the number of tensors equals the number of inputs."""
    raw = request.raw_input_contents
    if raw and len(raw) != len(request.inputs):
        raise Refused(f"raw_input_contents: expected {len(request.inputs)} of as many inputs, found {len(raw)}")
    contents = raw or [InferTensorContentsConverter.to_types(tensor.contents).root for tensor in request.inputs]
    inputs = [
        RequestInput.model_construct(name=tensor.name, datatype=tensor.datatype, shape=list(tensor.shape), data=data)
        for tensor, data in zip(request.inputs, contents, strict=True)
    ]
    outputs = [RequestOutput.model_construct(name=output.name) for output in request.outputs]
    return ArrayRequest.model_construct(id=request.id or None, inputs=inputs, outputs=outputs or None, parameters=None)


def _response(response: InferenceResponse) -> pb.ModelInferResponse:
    made = pb.ModelInferResponse(model_name=response.model_name, model_version=response.model_version or "", id=response.id or "")
    for output in response.outputs:
        made.outputs.add(name=output.name, datatype=output.datatype, shape=output.shape)
        array: Any = output.data
        made.raw_output_contents.append(to_bytes(array))
    return made
