"""SIGINT while something is compiled: KeyboardInterrupt comes out, and what is compiled later works."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import relayc
from relayc.dialects.mlir import ir
from relayc.interrupts import deferred


@pytest.fixture(autouse=True)
def handler():
    """The handler that Python installs, which it does not where a shell has started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_comes_at_the_end_of_the_innermost_block():
    done = []
    with pytest.raises(KeyboardInterrupt), deferred():
        with deferred():
            interrupt()
            done.append("inner")
        done.append("outer")
    assert done == ["inner"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_does_not_wait():
    with pytest.raises(KeyboardInterrupt), deferred():
        interrupt()
        interrupt()
        pytest.fail("the second interrupt was delayed")


def test_an_interrupt_takes_the_place_of_an_error():
    with pytest.raises(KeyboardInterrupt), deferred():
        interrupt()
        raise ValueError


def test_other_threads_leave_the_handler_alone():
    found = []

    def look():
        with deferred():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_an_interrupt_in_a_callback_of_mlir_is_a_keyboard_interrupt():
    program = relayc.Program()

    @program.function(x=relayc.TensorType((3,), "float32"))
    def main(x):
        return x + x

    @relayc.module_pass(opt_level=0, name="InterruptedWalk")
    def interrupted_walk(mod, ctx):
        def visit(op):
            interrupt()
            return ir.WalkResult.ADVANCE

        mod.main.operation.regions[0].blocks[0].operations[0].operation.walk(visit)
        return mod

    with pytest.raises(KeyboardInterrupt), relayc.PassContext(config={"pipelines.add_pass": [("before:FuseOps", interrupted_walk)]}):
        relayc.compile(program.module())


_LAZY = """
import os, signal, sys
import relayc

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy.linalg":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
try:
    relayc.compile
except KeyboardInterrupt:
    print("interrupted")
import numpy
print(numpy.linalg.det(numpy.eye(2)), callable(relayc.compile))
"""


def test_an_interrupt_does_not_leave_numpy_imported_halfway():
    done = subprocess.run([sys.executable, "-c", _LAZY], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["interrupted", "1.0 True"], done.stderr


_IMPORTING = """
import os, signal, sys
from relayc.tools import entry

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "relayc.dialects.mlir":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["relayc", "targets"]
sys.exit(getattr(entry, "COMMAND")())
"""


@pytest.mark.parametrize("command", ["relayc", "relayc_opt"])
def test_a_command_that_is_interrupted_during_its_imports_says_so(command):
    done = subprocess.run([sys.executable, "-c", _IMPORTING.replace("COMMAND", command)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "relayc: interrupted\n")
