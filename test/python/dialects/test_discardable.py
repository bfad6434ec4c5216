"""The accessors of discardable attributes: what they write is what MLIR prints, and no other file spells the attributes out."""

import re
from pathlib import Path

import pytest

from relayc.dialects import discardable
from relayc.dialects.discardable import Discardable, Flag, copy_discardable
from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import OPS
from relayc.dialects.relay.module import make_context
from relayc.pipelines.te.read.updates import mark_updates, updates_of
from relayc.symbolic import symbol

ROOT = Path(__file__).parents[3]
ACCESSORS = {key: value for key, value in vars(discardable).items() if isinstance(value, Discardable)}


@pytest.fixture
def operation():
    with make_context(), ir.Location.unknown():
        yield ir.Operation.parse("func.func private @f()")


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("NAME", "x", '"x"'),
        ("OPERATORS", ("nn.conv2d", "add"), '["nn.conv2d", "add"]'),
        ("TIR", "kernel", "@kernel"),
        ("ARENA", 2 * symbol("n") + 64, '"2*n + 64"'),
        ("ARENA", 1 << 40, "1099511627776 : i64"),
        ("OFFSET", 192, "192 : i64"),
        ("LAUNCHER", [3, 0, 1], "array<i64: 3, 0, 1>"),
    ],
)
def test_a_value_is_printed_and_read_back(operation, key, value, text):
    accessor = ACCESSORS[key]
    assert not accessor.on(operation)
    assert accessor.get(operation) is None
    assert accessor.get(operation, "nothing") == "nothing"
    with pytest.raises(KeyError):
        accessor.of(operation)
    accessor.put(operation, value)
    assert f"{accessor} = {text}" in str(operation)
    assert accessor.on(operation)
    assert accessor.of(operation) == accessor.get(operation) == value
    assert accessor.of(ir.DictAttr.get(accessor.entry(value))) == value
    accessor.remove(operation)
    assert not accessor.on(operation)


def test_a_flag_is_there_or_not(operation):
    flag = discardable.PRIMITIVE
    assert flag.entry(False) == {}
    assert flag.on(flag.entry())
    flag.mark(operation)
    assert "attributes {relay.primitive}" in str(operation)


def test_attributes_are_copied_where_they_are(operation):
    other = ir.Operation.parse("func.func private @g()")
    discardable.SOURCES.put(operation, ("a", "b"))
    discardable.FLOPS.put(operation, 7)
    copy_discardable((discardable.SOURCES, discardable.OPERATORS), operation, other)
    assert discardable.SOURCES.of(other) == ("a", "b")
    assert not discardable.OPERATORS.on(other) and not discardable.FLOPS.on(other)


def test_arguments_that_results_update_are_kept_by_result(operation):
    assert updates_of(operation) == {}
    mark_updates(operation, {0: 2, 3: 1})
    mark_updates(operation, {1: 0})
    assert str(operation.attributes["relay.updates"]) == "array<i64: 0, 2, 3, 1, 1, 0>"
    assert updates_of(operation) == {0: 2, 3: 1, 1: 0}


def test_no_other_file_spells_an_attribute_out():
    names = {accessor.name for accessor in ACCESSORS.values()} - {f"relay.{name}" for name in OPS}
    found = []
    for folder in ("bench", "dialects", "frontend", "pipelines", "runtime", "tools"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            found += [f"{path.relative_to(ROOT)}: {name}" for name in re.findall(r'"(relay\.\w+)"', text) if name in names]
    assert {entry.partition(":")[0] for entry in found} == {"dialects/discardable.py"}
    assert any(isinstance(accessor, Flag) for accessor in ACCESSORS.values())
