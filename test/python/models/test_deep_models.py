"""Programs that are deeper than Python's stack: nothing goes down a chain of operators by calls of itself."""

import deep_models
import pytest

import relayc
from relayc.trampoline import Call, trampoline

DEPTH = 1100
"""Python's calls nest 1,000 deep."""


@pytest.mark.parametrize("name", ["where", "concat", "shift", "sum of sizes"])
def test_a_deep_model(name: str) -> None:
    deep_models.check(name, DEPTH)


@pytest.mark.parametrize("name", ["maximum of sizes", "branch"])
def test_a_deep_model_that_takes_long_to_compile(name: str) -> None:
    with relayc.PassContext(config={"relay.FuseOps.max_depth": 16}):
        deep_models.check(name, 60)


@pytest.mark.parametrize("opt_level", [0, 4])
def test_levels_of_optimisation(opt_level: int) -> None:
    deep_models.check("product", 550, opt_level=opt_level)


def test_a_deep_kernel() -> None:
    """One kernel of all operators, each of which reads the one before twice."""
    with relayc.PassContext(config={"relay.FuseOps.max_depth": 2 * DEPTH}):
        text = str(relayc.compile(deep_models.CASES["add to itself"](DEPTH // 2), stop_after="tir"))
    assert text.count("arith.addf") < 10 * DEPTH  # the loops of vectors, of single elements, ...


def test_a_long_chain_of_concatenations_becomes_a_tree() -> None:
    """Each part is copied once for each level: to the result of a concatenation of few parts."""
    relay = str(relayc.compile(deep_models.CASES["concat"](200), stop_after="relay"))
    lines = [line.split(" : ")[0].split("dim(0)")[1] for line in relay.split("\n") if "tensor.concat dim(0)" in line]
    # The same three times, and what is left of 201 parts.
    assert [line.count("%") for line in lines] == [64, 12]


def test_an_expression_of_a_size_that_is_long_gets_a_name() -> None:
    """A size that steps compute of n is an expression as long as that is short."""
    model = deep_models.CASES["maximum of sizes"](40)
    relay = relayc.compile(model, stop_after="relay")
    assert max(len(str(t)) for t in relay.main.function_type.value.results) < 2000


def test_calls_on_a_list() -> None:
    def total(n: int) -> Call[int]:
        return 0 if n == 0 else n + (yield total(n - 1))

    def fails(n: int) -> Call[int]:
        if n == 0:
            raise ValueError("the bottom")
        return (yield fails(n - 1))

    assert trampoline(total(100_000)) == 100_000 * 100_001 // 2
    with pytest.raises(ValueError, match="the bottom"):
        trampoline(fails(10_000))
