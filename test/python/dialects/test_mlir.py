"""The modules of upstream's dialects, some of which are loaded where they are used."""

import subprocess
import sys

_LATE = """
import sys
from relayc.dialects.mlir import ir, linalg, make_context
with make_context(), ir.Location.unknown():
    ir.Attribute.parse("#llvm.linkage<external>")  # the bindings look for the module of the dialect
    assert not {"torch_mlir.dialects.llvm", "torch_mlir.dialects.linalg"} & set(sys.modules)
    from relayc.dialects.mlir import llvm
    assert isinstance(ir.Module.parse("llvm.func @f()").body.operations[0], llvm.LLVMFuncOp)
    from torch_mlir.dialects import linalg as whole
    assert callable(whole.matmul) and whole.GenericOp is linalg.GenericOp
"""


def test_modules_of_upstream_load_late_and_whole():
    # In a process of its own: tests before may have loaded them.
    done = subprocess.run([sys.executable, "-c", _LATE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
