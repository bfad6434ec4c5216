"""Memory that a compilation leaves behind: none of the compiler's, and each weight once."""

import gc
import re
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from onnx_models import weighted

import relayc
from relayc.dialects.mlir import c_library, live_contexts
from relayc.pipelines import PassContext, module_pass
from relayc.pipelines.driver import release_memory
from relayc.pipelines.targets.cpu.engine import Engine
from relayc.runtime.cpu import objects

pytestmark = pytest.mark.memory
MODELS = Path(__file__).parent.parent / "models"
linux = pytest.mark.skipif(not objects.can_load(), reason="code is loaded from objects, and memory given back, on Linux on x86-64 only")


@pytest.fixture
def no_collector():
    """Only what no one refers to goes: objects in cycles stay."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def resident_code(library: str) -> int:
    """Resident KiB of the code of a shared library."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = line.endswith(library) and " r-xp " in line
        elif inside and line.startswith("Rss:"):
            found += int(line.split()[1])
    return found


@linux
@pytest.mark.parametrize("name", ["mobilenet_v2", "vit"])
def test_modules_contexts_and_engines_go_with_the_compilation(no_collector, name):
    contexts = live_contexts()
    engines = sum(isinstance(o, Engine) for o in gc.get_objects())
    module = relayc.compile(MODELS / f"{name}.onnx")
    assert live_contexts() == contexts
    assert sum(isinstance(o, Engine) for o in gc.get_objects()) == engines
    assert module.function_names()


@linux
def test_a_cycle_that_holds_a_context_is_collected(no_collector):
    @module_pass(opt_level=0, name="TestMakeCycle")
    def make_cycle(mod, ctx):
        cycle = [mod]
        cycle.append(cycle)
        return mod

    contexts = live_contexts()
    with PassContext(config={"pipelines.add_pass": [("before:FuseOps", make_cycle)]}):
        relayc.compile(weighted()[0])
    assert live_contexts() == contexts


@pytest.mark.parametrize("more", [0, 1])
def test_cycles_are_collected_only_if_there_are_more_contexts(no_collector, more):
    class Node:
        pass

    node = Node()
    node.itself = node
    found = weakref.ref(node)
    del node
    release_memory.release_memory(live_contexts() - more)
    assert (found() is None) == bool(more)


@linux
def test_code_of_the_compiler_is_not_resident_after_use():
    relayc.compile(weighted()[0], stop_after="llvm")
    before = resident_code(c_library())
    release_memory.release_memory(0)
    assert resident_code(c_library()) < before / 4
    relayc.compile(weighted()[0], stop_after="llvm")  # it comes back


@linux
def test_a_compilation_gives_the_code_of_the_compiler_back():
    relayc.compile(weighted()[0], stop_after="llvm")
    before = resident_code(c_library())
    module = relayc.compile(weighted()[0])
    assert resident_code(c_library()) < before / 2
    x = np.random.default_rng(1).standard_normal((1, 64), np.float32)
    np.testing.assert_allclose(module["main"](x), x.astype(np.float64) @ weighted()[1], rtol=1e-5, atol=1e-5)


@linux
def test_segments_that_are_written_to_stay():
    segments = release_memory._constant_segments()
    written = []
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
        elif line.startswith("Anonymous:") and int(line.split()[1]):
            written.append((start, end))
    assert segments
    assert not any(start < address + size and address < end for start, end in written for address, size in segments)


def test_without_such_system_calls_nothing_happens(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    release_memory.release_memory(0)
