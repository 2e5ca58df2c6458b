"""Small mistakes that one could make in a function: where, and what it would read instead.

A mutation changes one place of a source text, and every other character stays. Which mistakes are
looked for is what programmers get wrong: limits of comparisons, ends of ranges, `and` and `or`,
forgotten statements, a variable or an argument taken for another.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<",)),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">",)),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, tuple[str, ...]]] = {
    ast.Add: ("+", ("-",)),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("+", "//")),
    ast.FloorDiv: ("//", ("%",)),
    ast.Mod: ("%", ("//",)),
    ast.BitOr: ("|", ("&",)),
    ast.BitAnd: ("&", ("|",)),
}
_TWINS = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "lstrip": "rstrip",
    "rstrip": "lstrip",
    "startswith": "endswith",
    "endswith": "startswith",
    "append": "extend",
    "find": "rfind",
    "rfind": "find",
    "partition": "rpartition",
    "rpartition": "partition",
    "union": "intersection",
    "intersection": "union",
}


@dataclass(frozen=True)
class Mutation:
    """A mistake at one place.

    Attributes:
        kind: What kind of mistake.
        function: In which function, as Python qualifies names.
        line: In which line, from 1.
        start: Where the place starts, as an index into the source.
        end: Where it ends.
        text: What it reads instead.
    """

    kind: str
    function: str
    line: int
    start: int
    end: int
    text: str

    def of(self, source: str) -> str:
        """The source with the mistake."""
        return source[: self.start] + self.text + source[self.end :]


def mutations(source: str) -> list[Mutation]:
    """All mistakes that are known how to be made in the functions of a module.

    Each leaves it a module that Python can compile.

    Raises:
        SyntaxError: The source is none.
    """
    tree = ast.parse(source)
    text = _Text(source)
    found = []
    for name, function in _functions(tree, ""):
        finder = _Finder(text, name, function)
        found += [mutation for mutation in finder.found() if _compiles(mutation.of(source))]
    return found


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, FunctionNode]]:
    """Functions and methods; what is defined within a function belongs to it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FunctionNode):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif not isinstance(child, ast.expr):
            yield from _functions(child, prefix)


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutated", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


class _Text:
    """A source whose places are indices. The tree's are lines, and bytes within them."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines = source.splitlines(keepends=True)
        # Form feeds and their like end lines for splitlines(), and for the tree they do not.
        if not source.isascii() or re.search(r"[\x0b\x0c\x1c-\x1e]", source):
            self.lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", source)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def index(self, line: int, column: int) -> int:
        before = self.lines[line - 1].encode()[:column] if line <= len(self.lines) else b""
        return self.starts[line - 1] + len(before.decode())

    def span(self, node: ast.expr | ast.stmt | ast.arg) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.index(node.lineno, node.col_offset)
        return start, self.index(node.end_lineno, node.end_col_offset)

    def of(self, node: ast.expr | ast.stmt | ast.arg) -> str:
        start, end = self.span(node)
        return self.source[start:end]

    def lines_of(self, node: ast.stmt) -> tuple[int, int] | None:
        """All lines of a statement; None where it shares them with another one."""
        start, end = self.span(node)
        first, last = self.starts[node.lineno - 1], self.starts[node.end_lineno or node.lineno]
        alone = not self.source[first:start].strip() and not self.source[end:last].strip()
        return (first, last) if alone else None

    def between(self, left: ast.expr, right: ast.expr, operator: str) -> tuple[int, int] | None:
        """Where an operator stands between two operands; None where a comment is in the way."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.source[start:end]
        if "#" in gap:
            return None
        pattern = r"\s+".join(map(re.escape, operator.split()))
        match = re.search(pattern, gap)
        return None if match is None else (start + match.start(), start + match.end())


class _Finder:
    """Looks for mistakes in one function."""

    def __init__(self, text: _Text, name: str, function: FunctionNode) -> None:
        self.text = text
        self.name = name
        self.function = function
        self.types = _types(function)
        self.alike = _alike(function, self.types)
        self.mutations: list[Mutation] = []
        self.visitors: dict[type[ast.AST], Callable[..., None]] = {
            ast.Compare: self.comparison,
            ast.BoolOp: self.boolean,
            ast.UnaryOp: self.negation,
            ast.BinOp: self.arithmetic,
            ast.AugAssign: self.augmented,
            ast.Constant: self.constant,
            ast.Name: self.variable,
            ast.Call: self.call,
            ast.Subscript: self.subscript,
        }

    def found(self) -> list[Mutation]:
        self.defaults()
        for part in self.function.body:
            for node in _walk(part):
                visit = self.visitors.get(type(node))
                if visit is not None:
                    visit(node)
        for body in _bodies(self.function):
            self.statements(body)
        return self.mutations

    def add(self, kind: str, span: tuple[int, int] | None, *texts: str) -> None:
        if span is None:
            return
        line = self.text.source.count("\n", 0, span[0]) + 1
        for text in texts:
            if self.text.source[span[0] : span[1]] != text:
                self.mutations.append(Mutation(kind, self.name, line, *span, text))

    def comparison(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            written, others = _COMPARISONS[type(operator)]
            self.add("comparison", self.text.between(left, right, written), *others)
            left = right

    def boolean(self, node: ast.BoolOp) -> None:
        written, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.add("boolean", self.text.between(left, right, written), other)
            # From the left operand to the right one: either can be forgotten.
            whole = (self.text.span(left)[0], self.text.span(right)[1])
            if len(node.values) == 2:
                self.add("condition", whole, self.text.of(left), self.text.of(right))

    def negation(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self.add("negation", self.text.span(node), self.text.of(node.operand))

    def arithmetic(self, node: ast.BinOp) -> None:
        if isinstance(node.left, ast.JoinedStr) or isinstance(node.right, ast.JoinedStr):
            return
        if type(node.op) in _ARITHMETIC:
            written, others = _ARITHMETIC[type(node.op)]
            self.add("arithmetic", self.text.between(node.left, node.right, written), *others)
        if isinstance(node.op, ast.Add | ast.Sub) and _is_number(node.right, 1):
            self.add("off by one", self.text.span(node), self.text.of(node.left))

    def augmented(self, node: ast.AugAssign) -> None:
        if isinstance(node.op, ast.Add | ast.Sub):
            written, other = ("+=", "-=") if isinstance(node.op, ast.Add) else ("-=", "+=")
            span = self.text.between(node.target, node.value, written)
            self.add("arithmetic", span, other)
            self.add("assignment", span, "=")

    def constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.add("constant", self.text.span(node), str(not value))
        elif isinstance(value, int) and self.text.of(node).isdigit():
            others = [str(value + 1)] + ([str(value - 1)] if value > 0 else [])
            self.add("constant", self.text.span(node), *others)

    def variable(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.add("variable", self.text.span(node), *sorted(self.alike.get(node.id, ())))

    def call(self, node: ast.Call) -> None:
        name = node.func
        if isinstance(name, ast.Name) and name.id in _TWINS:
            self.add("function", self.text.span(name), _TWINS[name.id])
        elif isinstance(name, ast.Attribute) and name.attr in _TWINS:
            end = self.text.span(name)[1]
            self.add("function", (end - len(name.attr), end), _TWINS[name.attr])
        if len(node.args) >= 2 and self.may_be_confused(*node.args[:2]):
            first, second = node.args[:2]
            start, end = self.text.span(first)[0], self.text.span(second)[1]
            between = self.text.source[self.text.span(first)[1] : self.text.span(second)[0]]
            swapped = self.text.of(second) + between + self.text.of(first)
            self.add("arguments", (start, end), swapped)
        for keyword in node.keywords:
            if keyword.arg is not None and len(node.keywords) == 1:
                self.forget_keyword(node, keyword)

    def may_be_confused(self, first: ast.expr, second: ast.expr) -> bool:
        """Whether two arguments look alike, and are not known to be of different types."""
        if type(first) is not type(second) or isinstance(first, ast.Starred):
            return False
        if isinstance(first, ast.Name) and isinstance(second, ast.Name):
            return self.types.get(first.id) == self.types.get(second.id)
        return True

    def forget_keyword(self, node: ast.Call, keyword: ast.keyword) -> None:
        """The only keyword argument, with the comma before it."""
        start = self.text.span(node.args[-1] if node.args else node.func)[1]
        end = self.text.span(keyword.value)[1]
        if node.args and "(" not in self.text.source[start : self.text.span(keyword.value)[0]]:
            self.add("argument", (start, end), "")

    def subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.slice, ast.Slice) or node.slice.step is not None:
            return
        lower, upper = node.slice.lower, node.slice.upper
        for limit in (lower, upper):
            if isinstance(limit, ast.Name):
                self.add("off by one", self.text.span(limit), f"{limit.id} + 1", f"{limit.id} - 1")

    def statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if _can_be_forgotten(statement):
                if len(body) > 1:
                    self.add("statement", self.text.lines_of(statement), "")
                else:
                    self.add("statement", self.text.span(statement), "pass")

    def defaults(self) -> None:
        arguments = self.function.args
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if isinstance(default, ast.Constant):
                self.constant(default)


def _types(function: FunctionNode) -> dict[str, str]:
    """The types of variables, as far as they are written down."""
    types: dict[str, str] = {}
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if argument.annotation is not None:
            types[argument.arg] = ast.unparse(argument.annotation)
    for node in ast.walk(function):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            types[node.target.id] = ast.unparse(node.annotation)
    return types


def _alike(function: FunctionNode, types: dict[str, str]) -> dict[str, set[str]]:
    """For each variable those that seem to be of the same type, such as others in its tuple."""
    groups: dict[str, set[str]] = {}
    for name, kind in types.items():
        groups.setdefault(kind, set()).add(name)
    for node in ast.walk(function):
        if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Store):
            names = {one.id for one in node.elts if isinstance(one, ast.Name) and one.id != "_"}
            groups[f"at {node.lineno}:{node.col_offset}"] = names
    alike: dict[str, set[str]] = {}
    for names in groups.values():
        for name in names:
            alike.setdefault(name, set()).update(names - {name})
    return alike


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes, but not those of f-strings: before Python 3.12 nobody knows where these are."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.JoinedStr):
            yield from _walk(child)


def _bodies(function: FunctionNode) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


def _can_be_forgotten(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call)
    if isinstance(statement, ast.If):  # A guard: nothing but a way out.
        ways_out = ast.Return | ast.Raise | ast.Continue | ast.Break
        return not statement.orelse and isinstance(statement.body[0], ways_out)
    return isinstance(statement, ast.AugAssign | ast.Delete | ast.Continue | ast.Break)


def _is_number(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == number
