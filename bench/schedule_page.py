"""The steps in docs/schedules.md (see relayc.tools.generated).

Text and code come from relayc.bench.schedule_steps, blocks and loops from Schedule.script after each step.
"""

import inspect
import re
import textwrap
from collections.abc import Sequence

import numpy as np

from relayc.bench.schedule_steps import STEPS, WIDE, Step, decisions, product, schedule_after
from relayc.pipelines.driver.compile_kernel import compile_kernel
from relayc.tir import Schedule

SIZE = 512
"""Rows, columns and depth of the product of the page."""


def page() -> str:
    """The steps as Markdown."""
    lines, before = list[str](), list[list[str]]()
    for number, step in enumerate(STEPS):
        title, _, words = (inspect.getdoc(step) or "").partition("\n")
        title = f"Before: {title[0].lower()}{title[1:]}" if number == 0 else f"{number}. {title}"
        lines += [f"### {title}", "", words.strip(), "", *([] if number == 0 else ["```py", *code(step), "```", ""])]
        found = parts(script_after(step))
        lines += ["```py", *changed(found, before), "```", ""]
        before = found
    return "\n".join(lines)


def script_after(step: Step) -> str:
    """Blocks and loops that a step leaves, of a kernel whose weights are a parameter."""
    found = list[str]()

    def schedule(s: Schedule) -> None:
        schedule_after(step, WIDE)(s)
        found.append(s.script())

    weights = np.zeros((SIZE, SIZE), np.float32)
    tuning = decisions(step, SIZE, SIZE, WIDE)
    compile_kernel(product(SIZE, SIZE, SIZE), schedule=schedule, params={1: weights}, tuning=tuning, num_threads=1)
    return found[0]


def code(step: Step) -> list[str]:
    """The lines of a step, without the surrounding function."""
    text = inspect.getsource(step)
    body = re.sub(r'\A.*?""".*?"""\n', "", text, count=1, flags=re.DOTALL)
    return textwrap.dedent(body).rstrip().splitlines()


def parts(script: str) -> list[list[str]]:
    """The lines of a function: its signature, then each of its statements."""
    lines = script[script.index("@T.prim_func") :].rstrip().splitlines()
    body = lines.index("):") + 1
    found = [lines[:body]]
    for line in lines[body:]:
        if re.match(r" {4}\S", line):
            found.append([])
        found[-1].append(line)
    return found


def changed(found: Sequence[Sequence[str]], before: Sequence[Sequence[str]]) -> list[str]:
    """The lines of the parts that have changed."""
    lines = list[str]()
    for part in found:
        if part not in before:
            lines += part
        elif lines[-1:] != ["    ..."]:
            lines.append("    ...")
    return lines
