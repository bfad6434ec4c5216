"""Operators of Relay that allocate and free memory: programs may contain them, but relayc plans memory itself."""

from relayc.dialects.relay.attributes import REQUIRED
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.op.registered import REGISTERED, Registered

REGISTERED["memory.alloc_storage"] = Registered(
    "memory.alloc_storage",
    num_inputs=3,
    arguments=["size", "shape", "alignment"],
    attrs={"virtual_device": None, "dtype_hint": "float32"},
    relation=lambda types, attrs: t.TypeCall(t.GlobalTypeVar("Storage"), []),
)
REGISTERED["memory.alloc_tensor"] = Registered(
    "memory.alloc_tensor",
    num_inputs=3,
    arguments=["storage", "offset", "shape"],
    attrs={"const_shape": REQUIRED, "dtype": "float32", "assert_shape": ()},
    relation=lambda types, attrs: t.TensorType(attrs["assert_shape"] or attrs["const_shape"], attrs["dtype"]),
)
REGISTERED["memory.kill"] = Registered("memory.kill", num_inputs=1, arguments=["data"], relation=lambda types, attrs: t.TupleType([]))
