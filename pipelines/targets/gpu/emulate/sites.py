"""Sites: operations that errors name, by number."""

import io
from collections.abc import Iterable

from relayc.dialects.discardable import SITE
from relayc.dialects.mlir import ir
from relayc.pipelines.llvm.tables import Strings

_MOST_TEXT = 160
"""Characters of an operation's text in an error."""


class Sites:
    """The operations of a module that threads wait at, or that use shared memory. Their numbers, which begin at 1, are attributes (SITE).

    Attributes:
      texts: of the operations, in the order of their numbers.
      strings: all texts of errors.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.strings = Strings()

    def number_all(self, root: ir.Operation, ops: Iterable[ir.Operation]) -> None:
        """Numbers operations under `root`: names are given to its values once, and not for each of them."""
        state = ir.AsmState(root)
        for op in ops:
            if not SITE.on(op):
                text = io.StringIO()
                op.print(state, file=text)
                self.texts.append(_describe(op, text.getvalue()))
                SITE.put(op, len(self.texts))


def _describe(op: ir.Operation, text: str) -> str:
    """An operation as named in errors: the first line of its text, and its location."""
    text = text.strip().partition("\n")[0]
    place = str(op.location).removeprefix("loc(").removesuffix(")")
    shown = text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}..."
    return shown if place == "unknown" else f"{shown} ({place})"
