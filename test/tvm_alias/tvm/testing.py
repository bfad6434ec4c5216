"""tvm.testing: parameters, targets and the comparison of arrays; also a pytest plugin, which makes tests of parameters."""

import sys

import numpy as np
import pytest

from tvm import cpu

TARGETS = [("llvm", cpu())]


class Parameter:
    """Values that a test is run with; several parameters may take theirs together."""

    def __init__(self, values, ids, group, place):
        self.values, self.ids, self.group, self.place = values, ids, group, place


def parameter(*values, ids=None):
    return parameters(*((v,) for v in values), ids=ids)[0]


def parameters(*values, ids=None):
    group = object()
    names = None if ids is None else list(map(str, ids))
    return tuple(Parameter([v[i] for v in values], names, group, i) for i in range(len(values[0])))


def pytest_generate_tests(metafunc):
    marks = metafunc.definition.iter_markers("parametrize")
    marked = {name.strip() for mark in marks for name in (mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0])}
    groups = {}
    for name in metafunc.fixturenames:
        found = getattr(metafunc.cls, name, None) or getattr(metafunc.module, name, None)
        if isinstance(found, Parameter) and name not in marked:
            groups.setdefault(id(found.group), []).append((name, found))
    for members in groups.values():
        rows = list(zip(*(found.values for _, found in members), strict=True))
        names = ",".join(name for name, _ in members)
        metafunc.parametrize(names, rows if len(members) > 1 else [row[0] for row in rows], ids=members[0][1].ids)
    names = [name for name in ("target", "dev") if name in metafunc.fixturenames and name not in marked]
    if names:
        values = [[dict(zip(("target", "dev"), row, strict=True))[name] for name in names] for row in TARGETS]
        metafunc.parametrize(",".join(names), values if len(names) > 1 else [row[0] for row in values])


def fixture(function=None, *, cache_return_value=False):
    return pytest.fixture if function is None else pytest.fixture(function)


def enabled_targets():
    return TARGETS


def device_enabled(target):
    return target == "llvm"


def _same(*_, **__):
    return lambda function: function


def uses_gpu(function):
    return function


def parametrize_targets(*targets):
    if len(targets) == 1 and callable(targets[0]):
        return targets[0]
    return _same() if any(str(t).startswith("llvm") for t in targets) else pytest.mark.skip("for other targets")


exclude_targets = known_failing_targets = _same


def _skipped(function=None, *_, **__):
    mark = pytest.mark.skip("for a machine that is not this one")
    return mark(function) if callable(function) else mark


def __getattr__(name):
    if name == "requires_llvm":
        return lambda function=None, *_: function
    if name == "requires_x86":
        return lambda function=None, *_: function
    if name.startswith("requires_"):
        return _skipped
    raise AttributeError(name)


def assert_allclose(actual, desired, rtol=1e-7, atol=1e-7):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(desired), rtol=rtol, atol=atol, verbose=True)


def main():
    sys.exit(pytest.main([sys.argv[0]]))
