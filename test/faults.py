"""Faults of the kind that people make, planted one at a time into the text of a Python file (see mutate.py)."""

from __future__ import annotations

import ast
from dataclasses import dataclass

_OPPOSITE: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_BOUNDARY: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}
_OTHER_OPERATOR: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
_OTHER_FUNCTION = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
_GENERIC = frozenset({"dict", "list", "tuple", "set", "frozenset", "type"})
_ORDERED = (ast.Sub, ast.FloorDiv, ast.Div, ast.Mod, ast.LShift, ast.RShift)
_OF_PEOPLE = frozenset({"__repr__", "__str__"})
"""Functions whose results are for people to read."""


@dataclass(frozen=True)
class Fault:
    """A part of a file, in characters, and what replaces it; `kind` says what a person would have done, `lines` are those of the part."""

    path: str
    kind: str
    begin: int
    end: int
    text: str
    lines: tuple[int, int]

    def planted(self, source: str) -> str:
        """The file with the fault."""
        return source[: self.begin] + self.text + source[self.end :]


def faults_of(path: str, source: str) -> list[Fault]:
    """The faults that a file can have, in its order; those in docstrings, annotations and messages of errors are left out. Some may change
    nothing, or leave a file that cannot be read: see `is_fault`."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda f: (f.begin, f.end, f.text))


def is_fault(fault: Fault, source: str) -> bool:
    """Whether the file can be read with the fault, and reads otherwise than before."""
    try:
        return ast.dump(ast.parse(fault.planted(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def _is_type_only(node: ast.FunctionDef) -> bool:
    """Whether only the type checker reads a function: a signature of an overload, or a method of a protocol."""
    body = node.body[-1]
    return isinstance(body, ast.Expr) and isinstance(body.value, ast.Constant) and body.value.value is Ellipsis


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: str) -> None:
        self.found: list[Fault] = []
        self._path, self._source = path, source
        # Columns of the AST count bytes.
        self._lines = source.encode().splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line.decode()))

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1][:column].decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _text(self, node: ast.expr | ast.stmt) -> str:
        begin, end = self._span(node)
        return self._source[begin:end]

    def _plant(self, kind: str, node: ast.expr | ast.stmt, text: str) -> None:
        assert node.end_lineno is not None
        self.found.append(Fault(self._path, kind, *self._span(node), text, (node.lineno, node.end_lineno)))

    def _between(self, kind: str, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Another operator between two operands, whose parentheses stay."""
        begin, end = self._span(left)[1], self._span(right)[0]
        middle = self._source[begin:end]
        if middle.count(old) == 1 and left.end_lineno is not None:
            self.found.append(Fault(self._path, kind, begin, end, middle.replace(old, new), (left.lineno, right.lineno)))

    # ---- statements

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in _OF_PEOPLE and not _is_type_only(node):
            for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]:
                self.visit(default)
            for statement in node.body:
                self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._plant("a check that returns early", node, "pass")

    def visit_Assert(self, node: ast.Assert) -> None:
        pass  # what the compiler says of itself

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._plant("a statement removed", node, "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._plant("a statement removed", node, "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._plant("a statement removed", node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._plant("a statement removed", node, "pass")

    def visit_If(self, node: ast.If) -> None:
        self._plant("a condition negated", node.test, f"not ({self._text(node.test)})")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._plant("a condition negated", node.test, f"not ({self._text(node.test)})")
        self.generic_visit(node)

    # ---- expressions

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            if type(operator) in _BOUNDARY:
                self._between("a boundary", left, right, *_BOUNDARY[type(operator)])
            elif len(node.ops) == 1:
                text = f"{self._text(left)} {_OPPOSITE[type(operator)]} {self._text(right)}"
                self._plant("a condition negated", node, text)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word = " and " if isinstance(node.op, ast.And) else " or "
        for left_out in node.values:
            kept = word.join(f"({self._text(value)})" for value in node.values if value is not left_out)
            self._plant("a condition dropped", node, f"({kept})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._plant("a condition negated", node, f"bool({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return
        if type(node.op) in _OTHER_OPERATOR:
            self._between("another operator", node.left, node.right, *_OTHER_OPERATOR[type(node.op)])
        if isinstance(node.op, _ORDERED):
            begin, end = self._span(node.left)[1], self._span(node.right)[0]
            middle = self._source[begin:end].strip("() \n")
            self._plant("operands swapped", node, f"(({self._text(node.right)}) {middle} ({self._text(node.left)}))")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._plant("the opposite", node, str(not node.value))
        elif isinstance(node.value, int):
            self._plant("a constant off by one", node, str(node.value + 1))
            if node.value > 0:
                self._plant("a constant off by one", node, str(node.value - 1))

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in _OTHER_FUNCTION:
            self._plant("another function", node.func, _OTHER_FUNCTION[node.func.id])
        if isinstance(node.func, ast.Name) and node.func.id == "check":
            self.visit(node.args[0])  # the others are words
            return
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of zip: what the compiler says of itself
            self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not (isinstance(node.value, ast.Name) and (node.value.id in _GENERIC or node.value.id[:1].isupper())):
            self._short_key(node.slice)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Name) and target.id.endswith("key") for target in node.targets):
            self._short_key(node.value)
        self.generic_visit(node)

    def _short_key(self, node: ast.expr) -> None:
        """A key of several elements without one of them: a number in its place, as it may be taken apart."""
        if isinstance(node, ast.Tuple):
            for left_out in node.elts:
                self._plant("a key without an element", left_out, "0")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)
