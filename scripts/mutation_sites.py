"""Places where one small change makes a fault: comparisons, signs, constants, conditions, statements.

Left out: docstrings and texts, annotations, decorators, patterns, and the bodies of `if TYPE_CHECKING`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
Lines = tuple[int, int]
WHOLE_FILE: Lines = (1, 1 << 30)


@dataclass(frozen=True)
class Site:
    """One change: the bytes [start, end) of a file are replaced."""

    file: str
    line: int
    start: int
    end: int
    new: str
    kind: str
    lines: Lines
    """Tests that execute one of these lines may notice it."""

    def planted(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]

    def change(self, source: bytes) -> tuple[str, str]:
        """The changed lines before and after, each as one line of text."""
        first, last = source.rfind(b"\n", 0, self.start) + 1, source.find(b"\n", self.end)
        before, after = source[first:last], self.planted(source[:last])[first:]
        return " ".join(before.decode().split()), " ".join(after.decode().split())


def sites_of(path: Path, name: str) -> list[Site]:
    """Every site of one file, in order."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, new, kind, lines in _changes(ast.parse(source), WHOLE_FILE, False):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        found.append(Site(name, node.lineno, start, end, new, kind, lines))
    return found


Change = tuple["ast.expr | ast.stmt", str, str, Lines]


def _changes(node: ast.AST, lines: Lines, inside: bool) -> Iterator[Change]:
    """The changes below a node; `inside` a function, `lines` are those of the statement."""
    if isinstance(node, ast.JoinedStr | ast.pattern):  # positions inside f-strings are not known in 3.11
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        body = (node.body[0].lineno, node.end_lineno or node.lineno)
        for default in (*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)):
            yield from _changes(default, body, inside)
        for statement in node.body:
            yield from _changes(statement, body, True)
        return
    if isinstance(node, ast.stmt) and inside:
        blocks = [
            each
            for each in ast.iter_child_nodes(node)
            if isinstance(each, ast.stmt | ast.excepthandler | ast.match_case)
        ]
        first = min(
            (each.lineno for each in blocks if hasattr(each, "lineno")), default=(node.end_lineno or 0) + 1
        )
        lines = (node.lineno, max(node.lineno, first - 1))
    yield from ((at, new, kind, lines) for at, new, kind in _of_node(node))
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child, lines, inside)


def _of_node(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """The changes of the node itself."""
    match node:
        case ast.Compare():
            for place, op in enumerate(node.ops):
                other = copy.deepcopy(node)
                other.ops[place] = COMPARISONS[type(op)]()
                yield node, f"({ast.unparse(other)})", "comparison"
        case ast.BinOp() if type(node.op) in OPERATIONS and not _is_text(node):
            other_sum = copy.copy(node)
            other_sum.op = OPERATIONS[type(node.op)]()
            yield node, f"({ast.unparse(other_sum)})", "operator"
        case ast.BoolOp():
            other_bool = copy.copy(node)
            other_bool.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, f"({ast.unparse(other_bool)})", "and/or"
        case ast.UnaryOp(op=ast.Not()):
            yield node, f"({ast.unparse(node.operand)})", "not"
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            yield node, f"{number + 1}", "constant"
        case ast.Constant(value=float() as number):
            yield node, f"{2 * number or 1.0!r}", "constant"
        case ast.If() | ast.While() | ast.IfExp():
            yield node.test, f"(not ({ast.unparse(node.test)}))", "condition"
        case ast.Return() if node.value is not None and not _is_none(node.value):
            yield node, "return None", "return"
        case ast.Expr() if not isinstance(node.value, ast.Constant | ast.Yield | ast.YieldFrom):
            yield node, "pass", "statement"
        case ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield node, "pass", "statement"
        case ast.Assign() if not any(isinstance(each, ast.Name | ast.Tuple) for each in node.targets):
            yield node, "pass", "statement"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.BinOp) -> bool:
    """Sums of texts, and unions of types: no arithmetic."""
    for each in (node.left, node.right):
        if isinstance(each, ast.JoinedStr) or (
            isinstance(each, ast.Constant) and isinstance(each.value, str | None)
        ):
            return True
        if isinstance(node.op, ast.BitOr) and isinstance(each, ast.Name) and each.id[:1].isupper():
            return True
    return False
