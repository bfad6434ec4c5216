"""The command line of `relayc serve`, and of `python -m relayc.serve` where the compiler is not installed."""

import argparse
from pathlib import Path
from typing import Any

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _size(text: str) -> int:
    """A number of bytes, such as 64M."""
    digits = text[:-1] if text[-1:] in _UNITS else text
    if not digits.isdecimal() or not int(digits):
        raise argparse.ArgumentTypeError(f"expected a number of bytes such as 64M, found {text!r}")
    return int(digits) * _UNITS.get(text[-1], 1)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `serve`."""
    parser.add_argument(
        "repository", type=Path, metavar="MODEL_REPOSITORY", help="a folder of MODEL/VERSION/model.onnx, .so or .relay.mlir"
    )
    parser.add_argument("--host", metavar="ADDRESS", help="where to listen (default 127.0.0.1; 0.0.0.0: all interfaces)")
    for name, what, port in (("http", "REST", 8080), ("grpc", "gRPC", 8081), ("metrics", "Prometheus", 8082)):
        parser.add_argument(f"--{name}-port", type=int, metavar="N", help=f"port of {what} (default {port})")
    parser.add_argument("--max-request-bytes", type=_size, metavar="SIZE", help="larger requests are refused (default 64M)")
    models = parser.add_argument_group("settings of models", "for models whose model-settings.json has no other")
    models.add_argument("--max-batch-size", type=int, metavar="N", help="rows to which waiting requests are joined (default: not joined)")
    models.add_argument("--max-batch-time", type=float, metavar="S", help="seconds that a request waits for others (default 0)")
    models.add_argument("--workers", type=int, metavar="N", help="processes that run the model (default 0: the server's own)")
    models.add_argument("--threads", type=int, metavar="N", help="threads of a call (default: the cores, shared by the workers)")
    models.add_argument("--max-queue", type=int, metavar="N", help="requests that wait at most; more are refused (default 256)")
    models.add_argument("--timeout", type=float, metavar="S", help="seconds from request to result at most (default 60)")
    parser.add_argument("--verbose", action="store_true", help="show the traceback of an error, and log requests")


def serve(arguments: argparse.Namespace, _: Any = None) -> None:
    """Serves until SIGINT or SIGTERM. Raises the errors of `server.run`, ModuleNotFoundError if MLServer is not installed."""
    try:
        from relayc.serve.server import run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("relayc"):
            raise
        raise ModuleNotFoundError(f"relayc serve needs MLServer: pip install 'relayc[serve]' (no module {error.name})") from error
    given = {name: value for name, value in vars(arguments).items() if value is not None}
    of_models = ("max_batch_size", "max_batch_time", "workers", "threads", "max_queue", "timeout")
    of_server: dict[str, Any] = {name: given[name] for name in ("host", "http_port", "grpc_port", "metrics_port") if name in given}
    if "max_request_bytes" in given:
        of_server["grpc_max_message_length"] = given["max_request_bytes"]
    if arguments.verbose:
        of_server["debug"] = True
    run(arguments.repository, {name: given[name] for name in of_models if name in given}, **of_server)
