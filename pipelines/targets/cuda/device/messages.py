"""Messages between processes: the length in 8 bytes, then JSON."""

import json
import struct
from typing import IO, Any

_HEAD = struct.Struct("<Q")


def read_message(stream: IO[bytes]) -> Any:
    """The next message; None if the other side has closed the pipe."""
    head = stream.read(_HEAD.size)
    if len(head) != _HEAD.size:
        return None
    size = _HEAD.unpack(head)[0]
    body = stream.read(size)
    return json.loads(body) if len(body) == size else None


def write_message(stream: IO[bytes], message: Any) -> None:
    """Raises BrokenPipeError if the other side has closed the pipe."""
    body = json.dumps(message).encode()
    stream.write(_HEAD.pack(len(body)) + body)
    stream.flush()
