"""`relayc.relay`: programs of TVM's Relay, under its names.

from relayc import relay

x = relay.var("x", shape=(1, 3, 8, 8))
y = relay.nn.relu(relay.nn.conv2d(x, relay.var("w"), channels=4, kernel_size=(3, 3)))
mod = relay.IRModule.from_expr(y)
print(relay.transform.InferType()(mod))  # with the type of w
mod = relay.parse(mod.astext())
result = relay.create_executor("graph", mod).evaluate()(image, weights)
"""

from collections.abc import Mapping, Sequence
from typing import Any as _Any

from relayc.frontend.relay import ast as _ast
from relayc.frontend.relay import dataflow_pattern
from relayc.frontend.relay.ast import *  # noqa: F403 (its __all__ are Relay's names)
from relayc.frontend.relay.ast import RelayModule as IRModule
from relayc.frontend.relay.builder import Program
from relayc.frontend.relay.inference import TypeInferenceError
from relayc.frontend.relay.op import UnsupportedOperator, op
from relayc.frontend.relay.prelude import Prelude
from relayc.frontend.relay.text import ParseError, astext, parse_expr, parse_module
from relayc.relay import analysis, backend, data_dep_optimization, frontend, qnn, quantize, relay_viz, transform, vm
from relayc.relay.build import ExecutorFactory, build
from relayc.relay.executor import Executor, create_executor
from relayc.relay.external import debug
from relayc.relay.transform import optimize
from relayc.runtime import params as _params
from relayc.runtime import save_param_dict
from relayc.runtime.values import ConstructorValue, RefValue

__all__ = [
    *_ast.__all__,
    "ConstructorValue",
    "Executor",
    "ExecutorFactory",
    "IRModule",
    "ParseError",
    "Prelude",
    "Program",
    "RefValue",
    "TypeInferenceError",
    "UnsupportedOperator",
    "analysis",
    "astext",
    "backend",
    "build",
    "create_executor",
    "data_dep_optimization",
    "dataflow_pattern",
    "frontend",
    "debug",
    "fromtext",
    "load_param_dict",
    "op",
    "optimize",
    "parse",
    "parse_expr",
    "qnn",
    "quantize",
    "relay_viz",
    "save_param_dict",
    "transform",
    "vm",
]


def parse(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: Mapping[str, Sequence[_Any]] | None = None,
) -> IRModule:
    """A module from its text, with its types.

    Args:
      source_name: the name of the text in messages and spans.
      init_module: functions and types that the module has in addition.
      init_meta_table: constants that the text refers to, where it has no metadata section.

    Raises:
      ParseError: the text is no module. TypeInferenceError: its types do not fit.
    """
    return transform.InferType()(parse_module(source, source_name, init_module, init_meta_table))


fromtext = parse


def load_param_dict(content: bytes | bytearray | memoryview) -> dict[str, _ast.NDArray]:
    """Parameters by name, of what `save_param_dict` gave. Raises ValueError for other contents."""
    return {name: _ast.ndarray(value) for name, value in _params.load_param_dict(content).items()}


def __getattr__(name: str) -> _Any:
    """Operators: `relay.add`, `relay.nn.conv2d`."""
    return getattr(op, name)
