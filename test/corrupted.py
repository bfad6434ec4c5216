"""Lists the tests that pass although what compiled code gives is corrupted: a pytest plugin.

    PYTHONPATH=test .venv/bin/python -m pytest -q -p corrupted --corrupt zero test/python/ops

Each test runs with the results of all calls corrupted, then, if it passes, with those of every second call, as it may compare calls with
one another. It is listed if it passes again. It is also listed if it passes and a result of several elements is as before, since these
are alike. Tests that take no results of compiled code pass in silence. Exit code 1 if a test is listed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest
from _pytest.runner import runtestprotocol

CORRUPTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "zero": lambda array: np.full_like(array, "" if array.dtype == object else 0),
    "shift": lambda array: np.roll(array, 1),
    "negate": lambda array: np.invert(array) if array.dtype.kind in "ub" else array[::-1] if array.dtype == object else np.negative(array),
    "repeat": lambda array: np.broadcast_to(array[:1], array.shape),
}
"""Results as they would be with one kind of fault, by its name."""


class Corrupter:
    """Corrupts results, and runs each test with them."""

    def __init__(self, corrupt: Callable[[np.ndarray], np.ndarray]) -> None:
        self._corrupt = corrupt
        self._begin(1)
        self._listed = 0

    def _begin(self, stride: int) -> None:
        self._stride, self._calls, self._changed, self._alike = stride, 0, 0, 0

    def patch(self, owner: Any, name: str, results: Callable[..., Any]) -> None:
        """Has calls of a function corrupt what `results` gives of what it gives and its arguments."""
        function = getattr(owner, name)

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            before = [a.copy() if isinstance(a, np.ndarray) else None for a in arguments]
            found = function(*arguments, **options)
            self._calls += 1
            if self._calls % self._stride == 0:
                self._visit(results(found, arguments, before))
            return found

        setattr(owner, name, call)

    def _visit(self, value: Any) -> None:
        if isinstance(value, list | tuple | dict):
            for element in value.values() if isinstance(value, dict) else value:
                self._visit(element)
        elif isinstance(value, np.ndarray) and value.ndim and value.size and value.flags.writeable:
            before = value.copy()
            value[...] = self._corrupt(before)
            is_same = value.tolist() == before.tolist() if value.dtype == object else value.tobytes() == before.tobytes()
            self._changed += not is_same
            self._alike += is_same and value.size > 1
        elif isinstance(value, np.ndarray) and value.size and value.flags.writeable and value.dtype != object:
            self._visit(value.reshape(1))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        self._begin(1)
        passes = all(report.passed for report in runtestprotocol(item, log=False, nextitem=nextitem))
        changed, alike = self._changed, self._alike
        if passes and changed and self._calls > 1:
            self._begin(2)
            passes = all(report.passed for report in runtestprotocol(item, log=False, nextitem=nextitem))
        if passes and (changed or alike):
            self._listed += 1
            terminal = item.config.pluginmanager.get_plugin("terminalreporter")
            terminal.write_line(f"{item.nodeid}: passes, {changed} results corrupted, {alike} alike")
        return True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        session.exitstatus = int(self._listed > 0)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--corrupt", choices=CORRUPTIONS, default="zero", help="what becomes of the results of compiled code")


def pytest_configure(config: pytest.Config) -> None:
    # Examples that fail are as good as the smallest ones.
    hypothesis.settings.register_profile("corrupted", deadline=None, database=None, phases=[hypothesis.Phase.generate], max_examples=20)
    hypothesis.settings.load_profile("corrupted")
    import jitted
    import symbolic_kernels

    from relayc.pipelines.evaluate import tir
    from relayc.runtime.device_function import DeviceFunction
    from relayc.runtime.function import Function

    corrupter = Corrupter(CORRUPTIONS[config.getoption("corrupt")])
    for owner, name in ((Function, "__call__"), (DeviceFunction, "__call__"), (tir, "run")):
        corrupter.patch(owner, name, lambda found, arguments, before: found)
    corrupter.patch(symbolic_kernels.Call, "run", lambda found, arguments, before: arguments[0].outputs)

    def written(found: None, arguments: list[Any], before: list[np.ndarray | None]) -> list[np.ndarray]:
        return [a for a, b in zip(arguments, before, strict=True) if b is not None and a.tobytes() != b.tobytes()]

    corrupter.patch(jitted, "call", written)
    config.pluginmanager.register(corrupter, "corrupter")
