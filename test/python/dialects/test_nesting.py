"""Programs that nest deeper than the stack allows are errors."""

import pytest

from relayc.dialects import nesting
from relayc.dialects.mlir import make_context
from relayc.dialects.nesting import MOST_BRACKETS, parse_module
from relayc.dialects.relay import IRModule, RelayError
from relayc.pipelines.context.passes import find_pass


def nested(depth):
    return f"func.func @main(%c: i1) {{\n{'scf.if %c {' * depth}\n{'}' * depth}\nreturn }}"


@pytest.mark.parametrize("opening, closing", ["{}", "[]", "<>", "()"])
def test_brackets_that_the_parser_cannot_follow_are_an_error(opening, closing):
    text = f"\n{opening * 50_000}{closing * 50_000}"
    with pytest.raises(RelayError, match=f"^line 2: expected at most {MOST_BRACKETS} brackets in one another, found more$"):
        IRModule.parse(text)


@pytest.mark.parametrize(("before", "depth"), [("", 0), ("}>", 0), ("{}()", 0), ("{[(]", 2)])
def test_brackets_are_an_error_from_one_more_than_the_limit_on(before, depth):
    text = before + "{" * (MOST_BRACKETS - depth)
    nesting._check_depth(text)
    with pytest.raises(RelayError, match=r"^line 1: expected at most"):
        nesting._check_depth(text + "{")


def test_brackets_in_strings_comments_and_arrows_do_not_count():
    brackets = "({[<" * MOST_BRACKETS
    text = f'// {brackets}\nmodule attributes {{test.a = "{brackets}"}} {{ }}'
    with make_context():
        parse_module(text)
        parse_module("\n".join(f"func.func private @f{i}() -> (i1)" for i in range(MOST_BRACKETS + 1)))


def test_a_pass_says_that_a_program_nests_too_deep():
    mod = IRModule.parse(nested(MOST_BRACKETS - 1))
    with pytest.raises(RelayError, match=r"pass Inline: expected a program that Python's recursion limit of .* found deeper nesting"):
        find_pass("inline")(mod)
