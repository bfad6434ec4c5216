"""`relayc serve`: MLServer with models of relayc."""

import asyncio
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlserver import MLServer, ModelSettings
from mlserver.settings import Settings
from mlserver.utils import install_uvloop_event_loop
from starlette.middleware import Middleware

from relayc.serve.grpc import GrpcServer
from relayc.serve.repository import Repository
from relayc.serve.rest import InferRequests


class Server(MLServer):
    """MLServer that reads tensors without MLServer's conversions, and stops with the error where a model cannot be loaded.

    Attributes:
      failure: the error that ended the start; None after a stop by a signal.
    """

    def __init__(self, settings: Settings) -> None:
        self.failure: BaseException | None = None
        super().__init__(settings)

    def _create_servers(self) -> None:
        super()._create_servers()
        limit = self._settings.grpc_max_message_length
        app = self._rest_server._app
        infer = Middleware(InferRequests, data_plane=self._data_plane, registry=self._model_registry, max_bytes=limit)
        app.user_middleware.append(infer)  # the innermost: metrics and compression wrap it
        self._grpc_server = GrpcServer(self._settings, self._data_plane, self._model_repository_handlers, self._model_registry)

    async def stop(self, sig: int | None = None) -> None:
        """Stops the server; MLServer calls it without a signal from the handler of an error of the start."""
        if sig is None:
            self.failure = sys.exc_info()[1]
        await super().stop(sig)
        for model in await self._model_registry.get_models():
            await model.unload()


async def serve(settings: Settings, models: Sequence[ModelSettings]) -> None:
    """Serves until a signal ends it. Raises what a model that cannot be loaded raises."""
    server = Server(settings)
    await server.start(list(models))
    if server.failure is not None:
        raise server.failure


def _check_ports(settings: Settings) -> None:
    """Raises OSError for a port that cannot be listened on: the servers would end with a traceback."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    for name in ("http_port", "grpc_port", "metrics_port"):
        try:
            socket.create_server((settings.host, getattr(settings, name)), family=family).close()
        except (OSError, OverflowError) as error:
            raise OSError(f"{name} {getattr(settings, name)} of {settings.host}: {error}") from error


def run(repository: Path, defaults: dict[str, Any], **options: Any) -> None:
    """Serves the models of a folder.

    Args:
      defaults: settings of models where their files have others (see `settings`).
      options: settings of MLServer, which replace those of settings.json in the folder.

    Raises:
      ValueError, TypeError, OSError: the folder has no models, one of them cannot be loaded, or a port is in use.
    """
    install_uvloop_event_loop()
    file = repository / "settings.json"
    data = Settings.model_validate_json(file.read_text()).model_dump(exclude_unset=True) if file.is_file() else {}
    # relayc has its own workers: MLServer's lose requests when one of them dies.
    settings = Settings(
        **{"debug": False, "host": "127.0.0.1", "grpc_max_message_length": 64 << 20, **data, **options},
        parallel_workers=0,
        model_repository_root=str(repository),
        model_repository_implementation=f"{Repository.__module__}.{Repository.__name__}",
        model_repository_implementation_args={"defaults": defaults},
    )
    models = asyncio.run(Repository(str(repository), defaults).list())
    _check_ports(settings)
    asyncio.run(serve(settings, models))
