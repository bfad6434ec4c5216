"""`relayc.serve`: models on MLServer, by the Open Inference Protocol (REST and gRPC). docs/serving.md shows its use.

Of relayc it needs only the runtime; a model that is not a library yet needs the compiler too.
"""

from typing import Any

__all__ = ["RelaycModel"]


def __getattr__(name: str) -> Any:
    # On first use: the command line reads its options where MLServer is not installed.
    if name == "RelaycModel":
        from relayc.serve.model import RelaycModel

        return RelaycModel
    raise AttributeError(f"module 'relayc.serve' has no attribute {name!r}")
