"""Settings of all tests."""

import functools
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import numpy as np
import pytest
from choosing import left_out

from relayc.dialects import mlir
from relayc.dialects.mlir import ir
from relayc.dialects.relay import module
from relayc.dialects.relay.registration import OPS
from relayc.frontend import converter
from relayc.frontend.relay import builder
from relayc.pipelines.driver import release_memory
from relayc.pipelines.llvm.divisions import check_divisions
from relayc.pipelines.targets.cpu import engine, jit
from relayc.pipelines.targets.cpu.export import library

# Tests compile what they test, as the model of the machine says: the cache and the tuning database are off but for their own tests.
os.environ["RELAYC_CACHE"] = "0"
os.environ["RELAYC_TUNING_DB"] = "0"
# What JAX computes for comparison is small: XLA would take longer to make it fast than to run it.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

# What takes long on a busy machine is no fault: speed is measured in bench/. A failure prints what reproduces it.
hypothesis.settings.register_profile("suite", deadline=None, print_blob=True)
hypothesis.settings.load_profile("suite")

CONTEXT_USES = 16
"""How often a test process takes the same MLIR context, so that what its programs leave in it does not grow without end."""


class Contexts(threading.local):
    """A context for several programs of a thread: to make a context and to end it is a tenth of a small compilation."""

    def __init__(self) -> None:
        self.context: ir.Context | None = None
        self.operators: tuple[type, ...] = ()
        self.left = 0

    def take(self, make: Callable[[], ir.Context]) -> ir.Context:
        operators = tuple(OPS.values())  # which a test may add to
        if self.context is None or not self.left or self.operators != operators:
            self.context, self.operators, self.left = make(), operators, CONTEXT_USES
        self.left -= 1
        return self.context


CONTEXTS = Contexts()


@pytest.fixture(autouse=True)
def memory_is_kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a compilation leaves in memory serves the next one: to give it back, and to take it again, is a third of a small compilation.
    Compilations share contexts, too."""
    if not request.node.get_closest_marker("memory"):
        monkeypatch.setattr(release_memory, "release_memory", lambda contexts: None)
        helpers = (sys.modules.get(name) for name in ("support", "symbolic_ops"))
        for user in filter(None, (module, converter, builder, *helpers)):
            monkeypatch.setattr(user, "make_context", functools.partial(CONTEXTS.take, mlir.make_context))


@functools.cache
def initial_state(generator: np.random.Generator) -> Any:
    return generator.bit_generator.state


@pytest.fixture(autouse=True)
def draws_begin_anew(request: pytest.FixtureRequest) -> None:
    """The generators of a file begin anew with each test, whichever tests ran before it."""
    for file in (request.module, sys.modules.get("onnx_cases"), sys.modules.get("lowered")):
        for generator in (getattr(file, name, None) for name in ("RNG", "rng")):
            if isinstance(generator, np.random.Generator):
                generator.bit_generator.state = initial_state(generator)


@pytest.fixture(autouse=True, scope="session")
def divisions_are_checked() -> Iterator[None]:
    """Whatever a test compiles, what becomes machine code has no division that may trap."""

    def checked(compile_: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(compile_)
        def check_and_compile(module: ir.Module, *arguments: Any) -> Any:
            check_divisions(module)
            return compile_(module, *arguments)

        return check_and_compile

    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((jit, "compile_module"), (jit, "compile_part"), (library, "compile_object")):
            patch.setattr(module, name, checked(getattr(module, name)))
        yield


@pytest.fixture(autouse=True, scope="session")
def parts_are_large() -> Iterator[None]:
    """The test processes take all cores: programs that are compiled in parts would only take longer. Tests of parts make them small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "MIN_PART_OPS", 10 * engine.MIN_PART_OPS)
        yield


def pytest_collection_finish() -> None:
    """What the imports made stays. Each full collection of the interpreter would look at all of it: a twentieth of the suite."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "memory: compilations give back what they take, and share no context")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out tests that `choosing` did not choose, unless RELAYC_TEST_ALL is set or the command names files or tests to run whole."""
    is_named = not config.option.keyword and any(".py" in argument for argument in config.args)
    left = set() if is_named or "RELAYC_TEST_ALL" in os.environ else left_out(item.nodeid for item in items)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left])
    items[:] = [item for item in items if item.nodeid not in left]
