"""TVM's names for what relayc has, so that tests written for TVM's Relay can be run (see ../run.py). Names only: nothing is computed here.

Submodules of `tvm.relay` that relayc has none of (testing, prelude) are those of a TVM checkout, where RELAYC_TVM_PYTHON says its folder.
"""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import relayc
from relayc import relay as _relay
from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay import ast, inference
from relayc.frontend.relay import transform as relay_transform
from relayc.frontend.relay.text import parse_module as _parse_module
from relayc.runtime.graph_executor import create
from relayc.symbolic import Dim, symbol

TVMError = RelayError
IRModule = _relay.IRModule


class Target(str):
    """A target by its text."""

    @property
    def kind(self):
        return SimpleNamespace(name=str(self).split()[0])

    attrs: dict = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def device(kind="cpu", index=0):
    return f"{'cpu' if kind == 'llvm' else kind}:{index}"


def cpu(index=0):
    return device("cpu", index)


def module(name, **members):
    """A module of these names, which others can import if its name begins with that of the package."""
    found = ModuleType(name)
    found.__path__ = []
    found.__dict__.update(members)
    if name.startswith("tvm."):
        sys.modules[name] = found
        parent, _, last = name.rpartition(".")
        setattr(sys.modules[parent], last, found)
    return found


def sequential(passes, **_):
    def run(mod):
        for each in passes:
            mod = each(mod)
        return mod

    return run


def convert(value):
    return tuple(map(convert, value)) if isinstance(value, (list, tuple)) else value


def make_node(key, **values):
    return ast.Attrs(values, key)


_types = {name: getattr(ast, name) for name in ast.__all__ if isinstance(getattr(ast, name), type)}
_equal = {name: getattr(ast, name) for name in ("structural_equal", "assert_structural_equal", "structural_hash")}
_json = {"save_json": lambda node: node.astext(), "load_json": _relay.parse_expr}
module("tvm.error", TVMError=RelayError, DiagnosticError=RelayError, OpError=RelayError)
module("tvm._ffi")
module("tvm._ffi.base", TVMError=RelayError)
nd = module("tvm.nd", array=lambda value, device=None: ast.ndarray(value), NDArray=ast.NDArray)
runtime = module("tvm.runtime", convert=convert, NDArray=ast.NDArray)
ir = module("tvm.ir", IRModule=IRModule, make_node=make_node, **_types, **_equal, **_json)
module("tvm.ir.module", IRModule=IRModule)


class _Symbols(type):
    def __instancecheck__(cls, value):
        return isinstance(value, Dim)


class Var(metaclass=_Symbols):
    """A symbol by its name."""

    def __new__(cls, name, dtype=None):
        return symbol(name)


module("tvm.tir", Any=ast.Any, Var=Var, const=lambda value, dtype=None: value, indexdiv=lambda a, b: a // b)
module("tvm.tir.expr", Any=ast.Any)
sys.modules["tvm.tir"].IntImm = lambda dtype, value: ast.IntImm(value)
module("tvm.te", var=lambda name, dtype=None: symbol(name), size_var=lambda name, dtype=None: symbol(name))
module("tvm.script")
module("tvm.script.tir", int32=ast.IntImm, int64=ast.IntImm)
target = module("tvm.target", Target=Target)
module("tvm.target.codegen", llvm_version_major=lambda: 18)
module("tvm.transform", PassContext=relayc.PassContext, Sequential=sequential)
module("tvm.contrib", utils=None, cudnn=None)
module("tvm.contrib.nvcc", have_fp16=lambda version: False)
module("tvm.contrib.graph_executor", GraphModule=lambda executor: executor, create=create)
module("tvm.contrib.utils")
module("tvm.contrib.cudnn")
module("tvm.autotvm")
module("tvm.topi")
module("tvm.topi.testing")
module("tvm.topi.cuda")
module("tvm.topi.cuda.conv3d_winograd", _infer_tile_size=None)
module("tvm.topi.utils", get_const_tuple=tuple)

# relayc.relay, under the name of TVM's package and the modules in which TVM has its parts.
relay = module("tvm.relay", **{name: getattr(_relay, name) for name in _relay.__all__})
relay.__getattr__ = _relay.__getattr__
relay.__path__ = [os.path.join(os.environ["RELAYC_TVM_PYTHON"], "tvm", "relay")] if "RELAYC_TVM_PYTHON" in os.environ else []
for _name in ("expr", "adt", "ty", "function", "base", "expr_functor", "type_functor", "scope_builder"):
    module(f"tvm.relay.{_name}", **_types, scalar_type=ast.scalar_type, const=ast.const, var=ast.var, bind=ast.bind)
_members = ("free_vars", "bound_vars", "all_vars", "all_type_vars", "bound_type_vars", "free_type_vars", "well_formed", "post_order_visit")
module("tvm.relay.analysis", **{name: getattr(ast, name) for name in _members})
# What TVM has in them and relayc has not is imported by name all the same: the tests that use it fail.
for _name in ("check_basic_block_normal_form", "get_calibration_data", "detect_feature", "Feature"):
    setattr(relay.analysis, _name, None)


def type_solver():
    unifier = inference.Unifier()
    calls = {"Unify": lambda a, b: unifier.resolve(unifier.unify(a, b)), "Resolve": unifier.resolve, "Solve": None, "AddConstraint": None}
    return lambda name: calls[name]


relay.analysis._ffi_api = SimpleNamespace(_test_type_solver=type_solver)
relay_transform.gradient = relay.ty.TypeRelation = None
module("tvm.relay.build_module", bind_params_by_name=ast.bind_params_by_name)
sys.modules["tvm.relay.transform"] = relay.transform = relay_transform
op = module("tvm.relay.op", register=None, get=_relay.op.get)
op.__getattr__ = lambda name: getattr(_relay.op, name)
op.op = module("tvm.relay.op.op", get=_relay.op.get)
for _name in ("nn", "image", "vision", "random"):
    _found = module(f"tvm.relay.op.{_name}")
    _found.__getattr__ = getattr(_relay.op, _name).__getattr__
for _name in ("tensor", "transform", "reduce", "algorithm"):
    module(f"tvm.relay.op.{_name}").__getattr__ = _relay.op.__getattr__


def import_from_std(mod, name):
    text = Path(os.environ["RELAYC_TVM_PYTHON"], "tvm", "relay", "std", name).read_text()
    mod.update(_parse_module(text, name, mod))


IRModule.import_from_std = import_from_std
IRModule._add = lambda mod, var, function, update=False: mod.__setitem__(var, function)
relay_transform.ToANormalFormExpr = lambda expr: expr  # the prelude's module makes functions of tensor arrays with it


def run_opt_pass(expr, opt_pass, import_prelude=False):
    found = opt_pass(IRModule.from_expr(expr))["main"]
    return found if isinstance(expr, ast.Function) else found.body


testing_of_relay = module("tvm.relay.testing", run_opt_pass=run_opt_pass)
testing_of_relay.run_infer_type = lambda expr: run_opt_pass(expr, relay_transform.InferType())
testing_of_relay.check_grad = None  # gradients are none of relayc's here
testing_of_relay.__path__ = [os.path.join(path, "testing") for path in relay.__path__]


def _workload(name):
    if name == "create_workload":
        return importlib.import_module("tvm.relay.testing.init").create_workload
    raise AttributeError(name)


testing_of_relay.__getattr__ = _workload
if relay.__path__:
    relay.prelude = importlib.import_module("tvm.relay.prelude")
    for _name in ("mlp", "resnet", "mobilenet", "dqn", "dcgan", "lstm", "inception_v3", "squeezenet", "densenet", "synthetic"):
        importlib.import_module(f"tvm.relay.testing.{_name}")
