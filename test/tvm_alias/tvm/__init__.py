"""TVM's names for what relayc has, so that tests written for TVM's Relay can be run (see ../run.py). Names only: nothing is computed here.

Submodules of `tvm.relay` that relayc has none of (testing, prelude) are those of a TVM checkout, where RELAYC_TVM_PYTHON says its folder.
"""

import contextlib
import importlib
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np

import relayc
from relayc import relay as _relay
from relayc.dialects.relay import Pattern
from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay import ast, dataflow_pattern, inference
from relayc.frontend.relay.op import registered
from relayc.frontend.relay.passes import byoc, layout_rules, layouts
from relayc.pipelines.context.instruments import PassInfo, PassInstrument, PassTimingInstrument
from relayc.relay import analysis, names
from relayc.relay import transform as relay_transform
from relayc.runtime import LibraryError, save_param_dict, values
from relayc.runtime.graph_executor import GraphModule, create
from relayc.symbolic import Dim, symbol

# What TVM's tests use of numpy, and numpy no longer has.
np.product = np.prod
np.int = int
_reshape = np.reshape
np.reshape = lambda a, shape=None, order="C", *, newshape=None: _reshape(a, newshape if shape is None else shape, order)

TVMError = ValueError  # of compiled code, too
IRModule = _relay.IRModule


class Target(str):
    """A target by its text."""

    def __new__(cls, target="llvm", host=None):
        return super().__new__(cls, target)

    @property
    def kind(self):
        return SimpleNamespace(name=str(self).split()[0])

    attrs: dict = {}
    max_function_args = 128

    def with_host(self, host):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class Device(str):
    """A device by its text."""

    @property
    def device_type(self):
        return ast.devices.DEVICE_TYPES.get(self.partition(":")[0], 0)


def device(kind="cpu", index=0):
    return Device(f"{'cpu' if kind == 'llvm' else kind}:{index}")


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


def convert(value):
    return tuple(map(convert, value)) if isinstance(value, (list, tuple)) else value


def get_global_func(name, allow_missing=False):
    """A pass or an analysis that TVM has under this name only; None: relayc has no functions of TVM's libraries."""
    if name == "relay.transform.RecoverVirtualDeviceMap":
        return lambda mod, expr: analysis.planned_devices(expr)
    if not allow_missing:
        raise ValueError(f"no global function {name}")


def make_node(key, **values):
    return ast.Attrs(values, key)


def _decorator(*_, **__):
    return lambda function=None: function


def _attribute(key):
    return lambda op_name, function=None, level=10: registered.register_op_attr(op_name, key, function, level)


_registering = {
    f"register_{name}": _attribute(key)
    for name, key in (
        *(("legalize", "FTVMLegalize"), ("alter_op_layout", "FTVMAlterOpLayout"), ("convert_op_layout", "FTVMConvertOpLayout")),
        ("infer_correct_layout", layout_rules.KEY),
    )
}
_registering |= {name: getattr(registered, name) for name in ("register", "register_pattern", "register_stateful")}
_types = {name: getattr(ast, name) for name in ast.__all__ if isinstance(getattr(ast, name), type)}
_equal = {name: getattr(ast, name) for name in ("structural_equal", "assert_structural_equal", "structural_hash")}
_json = {"save_json": lambda node: node.astext(), "load_json": _relay.parse_expr}
module("tvm.error", TVMError=TVMError, DiagnosticError=RelayError, OpError=RelayError)
module("tvm._ffi", get_global_func=get_global_func)


def register_func(name, function=None, override=False):
    match name.split("."):
        case ["relay", "ext", compiler, "optimize"]:
            return byoc.register_partition_pass(compiler, function)
    return relayc.register_func(name, function, override)


rpc = module("tvm.rpc")
module("tvm._ffi.base", TVMError=TVMError, py_str=str)
nd = module("tvm.nd", array=lambda value, device=None: ast.ndarray(value), NDArray=ast.NDArray)
nd.empty = lambda shape, dtype="float32", device=None: ast.ndarray(np.empty(shape, dtype))
runtime = module(
    "tvm.runtime", convert=convert, save_param_dict=lambda params: bytearray(save_param_dict(params)), NDArray=ast.NDArray, Object=ast.Node
)
runtime.enabled = lambda name: name == "llvm"
container = module("tvm.runtime.container", ADT=(list, values.ConstructorValue), tuple_object=list)
container.Map, container.ShapeTuple, container.String = dict, tuple, str


class Executable:
    """A program: a module is one."""

    def __new__(cls, program):
        return program

    load, load_exec = _relay.vm.Executable.load, _relay.vm.Executable.load_exec


module("tvm.runtime.vm", VirtualMachine=_relay.vm.VirtualMachine, Executable=Executable)


def load_module(path):
    """A library, or the program of an Executable."""
    try:
        return relayc.load_module(path)
    except LibraryError:
        return Executable.load(path)


runtime.load_module = load_module
module("tvm.runtime.module", Module=None, BenchmarkResult=None)
ir = module("tvm.ir", IRModule=IRModule, make_node=make_node, **_types, **_equal, **_json)
module("tvm.ir.diagnostics", get_renderer=lambda: None, override_renderer=lambda renderer: None)
module("tvm.ir.module", IRModule=IRModule)


class _Symbols(type):
    def __instancecheck__(cls, value):
        return isinstance(value, Dim)


class Var(metaclass=_Symbols):
    """A symbol by its name."""

    def __new__(cls, name, dtype=None):
        return symbol(name)


def const_size(value, dtype=None):
    """A number of an expression of sizes, which are integers here."""
    return int(value) if int(value) == value else value


module("tvm.tir", Any=ast.Any, Var=Var, const=const_size, Cast=lambda dtype, value: value, indexdiv=lambda a, b: a // b)
module("tvm.tir.expr", Any=ast.Any)


class _Literals(type):
    def __instancecheck__(cls, value):
        return isinstance(value, ast.IntImm)


class IntImm(metaclass=_Literals):
    """An integer literal."""

    def __new__(cls, dtype, value):
        return ast.IntImm(value)


sys.modules["tvm.tir"].IntImm = IntImm


def _limit(which):
    def limit(dtype):
        info = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
        return SimpleNamespace(value=getattr(info, which))

    return limit


module(
    "tvm.te",
    round=lambda value: value,
    tag_scope=lambda tag: lambda function: function,
    min_value=_limit("min"),
    max_value=_limit("max"),
    var=lambda name, dtype=None: symbol(name),
    size_var=lambda name, dtype=None: symbol(name),
)
module("tvm.script")
module("tvm.script.tir", prim_func=_decorator, int32=ast.IntImm, int64=ast.IntImm)


def generic_func(function):
    function.register = _decorator
    return function


def compilation_config(context, targets, host_target=None):
    return ast.devices.CompilationConfig.of(targets, context.default_device, host_target)


target = module("tvm.target", Target=Target, VirtualDevice=ast.devices.VirtualDevice, generic_func=generic_func)
target.make_compilation_config = compilation_config
module("tvm.target.x86", target_has_features=lambda *_: False)
module("tvm.target.codegen", llvm_version_major=lambda: 18)
_infra = {name: getattr(relay_transform, name) for name in ("Sequential", "module_pass", "ModulePass", "Pass", "PrintIR")}


class PassContext(relayc.PassContext):
    """The context with the keys of TVM that relayc takes elsewhere."""

    def __init__(self, *args, config=None, **kwargs):
        self.default_device = (config or {}).pop("relay.fallback_device_type", None)
        super().__init__(*args, config=config, **kwargs)


module("tvm.transform", PassContext=PassContext, PassInfo=PassInfo, **_infra)
_instruments = {"PassInstrument": PassInstrument, "PassTimingInstrument": PassTimingInstrument}
module("tvm.ir.instrument", pass_instrument=relay_transform.pass_instrument, **_instruments)
sys.modules["tvm"].instrument = sys.modules["tvm.ir.instrument"]
sys.modules["tvm.ir"].transform = sys.modules["tvm.transform"]
module("tvm.contrib", utils=None, cudnn=None)
module("tvm.contrib.nvcc", have_fp16=lambda version: False)
module("tvm.contrib.graph_executor", GraphModule=GraphModule, create=create)
module("tvm.contrib.utils", tempdir=lambda: SimpleNamespace(relpath=Path(tempfile.mkdtemp()).joinpath))
module("tvm.contrib.cudnn", exists=lambda: False)
module("tvm.autotvm", FallbackContext=contextlib.nullcontext)  # what tuning found before says nothing here


class _Nothing:
    """What is named by the references of operators, and not called by tests of Relay: schedules."""

    def __getattr__(self, name):
        return self


def from_checkout(name, **members):
    """A package of which a TVM checkout has the submodules that are not given here."""
    found = module(name, **members)
    found.__path__ = [os.path.join(os.environ["RELAYC_TVM_PYTHON"], *name.split("."))] if "RELAYC_TVM_PYTHON" in os.environ else []
    return found


# The numpy references that TVM's tests compare with are those of the checkout.
_schedules = dict.fromkeys(("cpp", "tag", "generic", "x86", "arm_cpu", "hls", "adreno", "mali", "bifrost", "intel_graphics"), _Nothing())
sys.modules["tvm.tir"].__dict__.update(SizeVar=Var, IterVar=Var, bijective_layout=None, layout=layouts.layout, stmt=None)
from_checkout("tvm.topi", **_schedules)
from_checkout("tvm.topi.nn").__getattr__ = _Nothing().__getattr__
module("tvm.topi.cuda").__getattr__ = _Nothing().__getattr__
module("tvm.topi.cuda.conv3d_winograd", _infer_tile_size=None)

# relayc.relay, under the name of TVM's package and the modules in which TVM has its parts.
relay = module("tvm.relay", **{name: getattr(_relay, name) for name in _relay.__all__})
relay.__getattr__ = _relay.__getattr__
relay.__path__ = [os.path.join(os.environ["RELAYC_TVM_PYTHON"], "tvm", "relay")] if "RELAYC_TVM_PYTHON" in os.environ else []
for _name in ("expr", "adt", "ty", "function", "base", "expr_functor", "type_functor", "scope_builder"):
    module(f"tvm.relay.{_name}", **_types, scalar_type=ast.scalar_type, const=ast.const, var=ast.var, bind=ast.bind)
module("tvm.relay.scope_builder", ScopeBuilder=_relay.ScopeBuilder)
module("tvm.relay.backend", vm=_relay.vm, Executor=_relay.backend.Executor, Runtime=_relay.backend.Runtime)
module("tvm.relay.backend.interpreter", RefValue=values.RefValue, ConstructorValue=values.ConstructorValue, Executor=_relay.Executor)
sys.modules["tvm.relay.backend.vm"] = _relay.vm
_names = {name: getattr(names, name) for name in names.__all__}
for _name in ("relay.backend.name_transforms", "relay.backend.utils", "runtime.name_transforms", "ir.supply"):
    module(f"tvm.{_name}", **_names)
module("tvm.relay.backend.te_compiler", get=lambda: SimpleNamespace(clear=lambda: None))
module("tvm.relay.analysis", **{name: getattr(analysis, name) for name in analysis.__all__})
# What TVM has in them and relayc has not is imported by name all the same: the tests that use it fail.
relay.analysis.AnnotatedRegionSet = byoc.AnnotatedRegionSet


def type_solver():
    solver = inference.TypeSolver()
    calls = {"Unify": solver.unify, "Resolve": solver.resolve, "Solve": solver.solve, "AddConstraint": solver.add_constraint}
    return lambda name: calls[name]


relay.analysis._ffi_api = SimpleNamespace(_test_type_solver=type_solver)
relay_transform.fake_quantization_to_integer = None
relay.build_config = lambda opt_level=2, **_: relayc.PassContext(opt_level=opt_level)
relay.TypeKind = ast.Kind
relay.SpanCheck = None
module("tvm.relay.dataflow_pattern", **{name: getattr(dataflow_pattern, name) for name in dataflow_pattern.__all__})
module("tvm.relay.build_module", bind_params_by_name=ast.bind_params_by_name, create_executor=_relay.create_executor)
sys.modules["tvm.relay.transform"] = relay.transform = relay_transform
relay_transform.__path__ = []
module("tvm.relay.transform.infer_layout_utils", InferCorrectLayoutOutput=layout_rules.InferCorrectLayoutOutput)
relay.quantize = module("tvm.relay.quantize", **{name: getattr(_relay.quantize, name) for name in _relay.quantize.__all__})
module("tvm.relay.quantize._annotate", attach_simulated_quantize=None, QAnnotateKind=None)
op = module("tvm.relay.op", get=_relay.op.get, OpPattern=Pattern, **_registering)
op.__getattr__ = lambda name: getattr(_relay.op, name)
op.debug, op.const = _relay.debug, ast.const
# Of relay.qnn, the references of unary operators are those of the checkout.
relay.qnn = module("tvm.relay.qnn", transform=_relay.qnn.transform)
relay.qnn.__getattr__ = _relay.qnn.__getattr__
module("tvm.relay.qnn.transform", **{name: getattr(_relay.qnn.transform, name) for name in _relay.qnn.transform.__all__})
from_checkout("tvm.relay.qnn.op", register_qnn_legalize=_decorator).__getattr__ = _relay.qnn.__getattr__
module("tvm.relay.qnn.op.qnn").__getattr__ = _relay.qnn.__getattr__
op.op = module("tvm.relay.op.op", get=_relay.op.get, OpPattern=Pattern, **_registering)
module("tvm.ir.op", Op=ast.Op)
sys.modules["tvm.ir"].register_op_attr = registered.register_op_attr
sys.modules["tvm.ir"].EnvFunc = SimpleNamespace(get=lambda name: inference.RELATIONS.get(name.rpartition(".")[2]))
sys.modules["tvm.ir.attrs"] = module("tvm.ir.attrs", DictAttrs=ast.Attrs)
for _name in ("nn", "image", "vision", "random"):
    _found = module(f"tvm.relay.op.{_name}")
    _found.__getattr__ = getattr(_relay.op, _name).__getattr__
module("tvm.relay.op.annotation").__getattr__ = _relay.op.annotation.__getattr__
_tables = {"register_pattern_table": byoc.register_pattern_table, "get_pattern_table": byoc.get_pattern_table}
op.contrib = from_checkout("tvm.relay.op.contrib", **_tables)
module("tvm.relay.op.contrib.register", **_tables)
module("tvm.relay.backend.runtime", Runtime=_relay.backend.Runtime)
module("tvm.relay.backend.executor", Executor=_relay.backend.Executor)
for _name in ("_make", "tensor", "transform", "reduce", "algorithm"):
    module(f"tvm.relay.op.{_name}").__getattr__ = _relay.op.__getattr__


IRModule._add = lambda mod, var, function, update=False: mod.__setitem__(var, function)


def run_opt_pass(expr, opt_pass, import_prelude=False):
    found = opt_pass(IRModule.from_expr(expr))["main"]
    return found if isinstance(expr, ast.Function) else found.body


testing_of_relay = module("tvm.relay.testing", run_opt_pass=run_opt_pass, Prelude=_relay.Prelude)
testing_of_relay.run_infer_type = lambda expr: run_opt_pass(expr, relay_transform.InferType())
testing_of_relay.run_as_python = lambda expr, mod=None: _relay.create_executor("debug", mod).evaluate(expr)
module("tvm.relay.frontend", from_onnx=_relay.frontend.from_onnx)
module("tvm.relay.frontend.common", infer_type=testing_of_relay.run_infer_type)
testing_of_relay.__path__ = [os.path.join(path, "testing") for path in relay.__path__]


def _workload(name):
    if name in ("check_grad", "rand", "count_ops", "_np_randn_from_type"):  # what the package of the checkout has in its own file
        package = testing_of_relay.__path__[0]
        spec = importlib.util.spec_from_file_location("tvm.relay.testing._own", os.path.join(package, "__init__.py"))
        own = importlib.util.module_from_spec(spec)
        own.__package__ = "tvm.relay.testing"
        spec.loader.exec_module(own)
        return getattr(own, name)
    if name == "create_workload":
        return importlib.import_module("tvm.relay.testing.init").create_workload
    if name == "enabled_targets":
        return importlib.import_module("tvm.testing").enabled_targets
    if name in ("count", "make_nat_value", "make_nat_expr"):
        return getattr(importlib.import_module("tvm.relay.testing.nat"), name)
    raise AttributeError(name)


testing_of_relay.__getattr__ = _workload
if relay.__path__:
    relay.prelude = importlib.import_module("tvm.relay.prelude")
    for _name in ("mlp", "resnet", "mobilenet", "dqn", "dcgan", "lstm", "inception_v3", "squeezenet", "densenet", "synthetic"):
        importlib.import_module(f"tvm.relay.testing.{_name}")
    relay.analysis.analysis = relay.analysis
    module("tvm.relay._ffi_api")
    importlib.import_module("tvm.relay.op.contrib.dnnl")  # says what DNNL takes
