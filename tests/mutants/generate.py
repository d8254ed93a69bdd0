"""Small defects that can be planted in a source, found in its syntax tree; nothing here reads files or runs code.

A defect changes one place of a function that decides something: a comparison, an integer, `and` and `or`, a `not`, a
statement, a column, a check. Texts are left alone (docstrings, messages, logs, annotations), and so is what is executed
on import: no test of the source's behaviour could tell the difference, or all of them could.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeVar

COMPARISON, NUMBER, AND_OR, NOT, STATEMENT, COLUMN, CHECK = KINDS = (
    "comparison", "number", "and/or", "not", "statement", "column", "check",
)  # fmt: skip
_OTHER: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
"""`is` is left alone: nearly always `is None`, whose opposite fails with an AttributeError at once."""
_CHECKS: Final = re.compile(r"_*(check|require|refuse|reject|verify|ensure|must)(_|$)")
_TEXTS: Final = re.compile(r"(_*log(ger|ging)?|warnings)\.|.*\b_*(print|warn|cast|std(out|err)\.write)$")
"""Calls that log or warn, and casts."""
_COLUMN: Final = re.compile(r"_*[A-Z][A-Z0-9_]*$")
_NOT_DECIDING: Final = {"__repr__", "__str__"}
_LONGEST: Final = 72
"""Of what is shown of the code."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Defect:
    """One place of a file, replaced."""

    file: str
    function: str
    line: int
    last_line: int
    """A test reaches the defect if it runs one of these lines."""
    kind: str
    old: str
    new: str
    number: int
    """Of equal defects in a function, from 0."""
    start: int
    stop: int
    text: bytes
    """Replaces these bytes of the file."""

    @property
    def name(self) -> str:
        """Does not change if other functions do."""
        return f"{self.file} {self.function} {self.kind}: {self.old} -> {self.new} ({self.number})"


def plant(source: str, defect: Defect) -> str:
    """The source with the defect."""
    whole = source.encode()
    return (whole[: defect.start] + defect.text + whole[defect.stop :]).decode()


def find_defects(source: str, file: str) -> list[Defect]:
    """Every defect that can be planted in a file, in its order."""
    tree = ast.parse(source)
    finder = _Finder(source, file, _modules(tree))
    finder.scope(tree.body, "")
    return sorted(finder.found, key=lambda one: (one.start, one.stop, one.kind))


def _modules(tree: ast.Module) -> set[str]:
    """Names of imported modules: their attributes are not columns."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import))
    return {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names}


class _Finder:
    def __init__(self, source: str, file: str, modules: set[str]) -> None:
        self.found: list[Defect] = []
        self._source = source.encode()
        self._offsets = [0, *accumulate(map(len, self._source.splitlines(keepends=True)))]
        self._file = file
        self._modules = modules
        self._function = ""
        self._lines = (0, 0)
        self._columns = _Columns([], modules)
        self._bound: dict[str, int] = {}
        self._last: ast.stmt | None = None
        self._numbers: Counter[tuple[str, str, str, str]] = Counter()

    def scope(self, body: Sequence[ast.stmt], outer: str) -> None:
        """Functions of a module or a class."""
        for node in body:
            if isinstance(node, ast.ClassDef):
                self.scope(node.body, f"{outer}{node.name}.")
            elif isinstance(node, Function) and node.name not in _NOT_DECIDING:
                self._enter(node, outer)

    def _enter(self, node: Function, outer: str) -> None:
        kept = self._function, self._columns, self._bound, self._last
        self._function = f"{outer}{node.name}"
        self._columns = _Columns(node.body, self._modules)
        self._bound = _bound_at(node)
        self._last = node.body[-1]
        self._block(node.body)
        self._function, self._columns, self._bound, self._last = kept

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, Function | ast.ClassDef):
                self.scope([node], f"{self._function}.")
            elif not isinstance(node, ast.Assert | ast.Import | ast.ImportFrom) and not _is_text(node):
                self._statement(node)
                for inner in _blocks(node):
                    self._block(inner)

    def _statement(self, node: ast.stmt) -> None:
        self._lines = node.lineno, _end_of_header(node)
        if isinstance(node, ast.If) and _is_guard(node):
            self._add(CHECK, node.test, f"if {ast.unparse(node.test)}", "if False", "False")
            self._guarded(node.body[0])
        elif kind := self._removable(node):
            self._add(kind, node, ast.unparse(node), "pass", "pass")
        if not isinstance(node, ast.Raise):  # what it contains is the message
            for part in _expressions(node):
                self._expression(part)

    def _guarded(self, node: ast.stmt) -> None:
        """To remove it would be the same as to skip the check."""
        self._bound[f"only statement at {node.lineno}"] = node.col_offset

    def _removable(self, node: ast.stmt) -> str | None:
        """The kind of the defect that a statement is missing."""
        match node:
            case ast.Expr(ast.Call(called) | ast.Await(ast.Call(called))):
                return CHECK if _CHECKS.match(ast.unparse(called).rpartition(".")[2]) else STATEMENT
            case ast.Assign():
                return STATEMENT if all(map(self._is_bound_before, node.targets)) else None
            case ast.AugAssign() | ast.Delete():
                return STATEMENT
            case ast.Raise() | ast.Return() | ast.Continue():
                is_only = self._bound.get(f"only statement at {node.lineno}") == node.col_offset
                is_end = node is self._last and not isinstance(node, ast.Raise)
                return None if is_only or is_end else STATEMENT
        return None

    def _is_bound_before(self, target: ast.expr) -> bool:
        """Whether it has an older value without this assignment; else the defect would only be a NameError."""
        if isinstance(target, ast.Name):
            return self._bound.get(target.id, target.lineno) < target.lineno
        parts = target.elts if isinstance(target, ast.Tuple) else []
        if isinstance(target, ast.Attribute):
            return not self._function.endswith("__init__")
        return isinstance(target, ast.Subscript) or (bool(parts) and all(map(self._is_bound_before, parts)))

    def _expression(self, node: ast.AST, *, is_called: bool = False) -> None:
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and _TEXTS.match(ast.unparse(node.func))):
            return
        if isinstance(node, ast.Subscript):
            self._index(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and not is_called:
            for other in self._columns.other_attributes(node):
                self._changed(COLUMN, node, attr=other)
        else:
            self._decision(node)
        for inner in ast.iter_child_nodes(node):
            self._expression(inner, is_called=isinstance(node, ast.Call) and inner is node.func)

    def _index(self, node: ast.Subscript) -> None:
        for part, other in self._columns.others(node):
            self._add(COLUMN, part, ast.unparse(node), _swapped(node, part, other), other)

    def _decision(self, node: ast.AST) -> None:
        match node:
            case ast.Compare():
                for place, operator in enumerate(node.ops):
                    if type(operator) in _OTHER:
                        self._changed(COMPARISON, node, ops=_with(node.ops, place, _OTHER[type(operator)]()))
            case ast.BoolOp():
                self._changed(AND_OR, node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
            case ast.UnaryOp(ast.Not()):
                self._add(NOT, node, ast.unparse(node), ast.unparse(node.operand))
            case ast.Constant(int(value)) if not isinstance(value, bool):
                for other in (value + 1, value - 1):
                    self._add(NUMBER, node, str(value), str(other), str(other) if other >= 0 else f"({other})")

    def _changed(self, kind: str, node: ast.expr, **parts: object) -> None:
        other = copy(node)
        for name, value in parts.items():
            setattr(other, name, value)
        self._add(kind, node, ast.unparse(node), ast.unparse(other))

    def _add(self, kind: str, node: ast.expr | ast.stmt, old: str, new: str, text: str | None = None) -> None:
        old, new, text = _shown(old, new), _shown(new, old), f"({new})" if text is None else text
        key = self._function, kind, old, new
        start, stop = self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)
        number = self._numbers[key]
        self._numbers[key] += 1
        self.found.append(
            Defect(self._file, self._function, *self._lines, kind, old, new, number, start, stop, text.encode())
        )

    def _offset(self, line: int | None, column: int | None) -> int:
        assert line is not None
        assert column is not None
        return self._offsets[line - 1] + column


class _Columns:
    """What a function uses as columns, by what it takes them of."""

    def __init__(self, body: Sequence[ast.stmt], modules: set[str]) -> None:
        self._modules = modules
        self._used: dict[str, list[str]] = {}
        nodes = [node for statement in body for node in ast.walk(statement)]
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        for node in sorted((one for one in nodes if isinstance(one, ast.expr)), key=_position):
            if isinstance(node, ast.Subscript):
                for place, part, base in _column_parts(node):
                    for group in (f"{base}[{place}]", f"any[{place}]"):
                        self._note(group, ast.unparse(part))
            elif isinstance(node, ast.Attribute) and id(node) not in called and isinstance(node.ctx, ast.Load):
                self._note(self._owner(node), node.attr)

    def _note(self, group: str, name: str) -> None:
        names = self._used.setdefault(group, [])
        if name not in names:
            names.append(name)

    def _owner(self, node: ast.Attribute) -> str:
        return f"{ast.unparse(node.value)}."

    def others(self, node: ast.Subscript) -> Iterator[tuple[ast.expr, str]]:
        """Columns in the index of a subscript, and another that the function uses there, or else of another array."""
        for place, part, base in _column_parts(node):
            name = ast.unparse(part)
            found = _next(self._used[f"{base}[{place}]"], name)
            if found is None and isinstance(part, ast.Name):
                alike = [one for one in self._used[f"any[{place}]"] if _COLUMN.match(one)]
                found = _next(alike, name)
            if found is not None:
                yield part, found

    def other_attributes(self, node: ast.Attribute) -> Iterator[str]:
        """Another attribute that the function reads from the same object; those of `self` rarely have one type."""
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id not in {*self._modules, "self", "cls"}:
            found = _next(self._used.get(self._owner(node), []), node.attr)
            if found is not None:
                yield found


def _column_parts(node: ast.Subscript) -> Iterator[tuple[int, ast.expr, str]]:
    """Named columns and strings in an index, with their place in it and what it is an index of."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for place, part in enumerate(parts):
        match part:
            case ast.Name(name) if _COLUMN.match(name):
                yield place, part, ast.unparse(node.value)
            case ast.Constant(str()):
                yield place, part, ast.unparse(node.value)


def _next(names: Sequence[str], name: str) -> str | None:
    """The name after this one, the first after the last; None if it is the only one."""
    if name not in names or len(names) == 1:
        return None
    return names[(names.index(name) + 1) % len(names)]


def _swapped(node: ast.Subscript, part: ast.expr, other: str) -> str:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    index = ", ".join(other if one is part else ast.unparse(one) for one in parts)
    return f"{ast.unparse(node.value)}[{index}]"


def _with(items: Sequence[Item], place: int, item: Item) -> list[Item]:
    return [*items[:place], item, *items[place + 1 :]]


def _position(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _shown(text: str, compared: str) -> str:
    """One line, cut around where it differs from another."""
    line, other = " ".join(text.split()), " ".join(compared.split())
    if len(line) <= _LONGEST:
        return line
    same = next((place for place, (one, two) in enumerate(zip(line, other, strict=False)) if one != two), 0)
    start = min(max(0, same - _LONGEST // 2), len(line) - _LONGEST)
    return line[start : start + _LONGEST].strip()


def _bound_at(function: Function) -> dict[str, int]:
    """The first line that binds each name of a function."""
    bound: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            bound[node.arg] = 0
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] = min(node.lineno, bound.get(node.id, node.lineno))
    return bound


def _is_guard(node: ast.If) -> bool:
    """Whether all that follows from the condition is to raise, return or go on."""
    return len(node.body) == 1 and not node.orelse and isinstance(node.body[0], ast.Raise | ast.Return | ast.Continue)


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is a docstring or logs something."""
    if not isinstance(node, ast.Expr):
        return False
    is_log = isinstance(node.value, ast.Call) and _TEXTS.match(ast.unparse(node.value.func))
    return isinstance(node.value, ast.Constant) or bool(is_log)


def _blocks(node: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield inner.body


def _end_of_header(node: ast.stmt) -> int:
    starts = [inner.lineno for block in _blocks(node) for inner in block]
    return max(node.lineno, min(starts) - 1) if starts else node.end_lineno or node.lineno


def _expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """What a statement evaluates, without annotations, patterns, and the statements that it contains."""
    for name, value in ast.iter_fields(node):
        for part in value if isinstance(value, list) else [value]:
            if name != "annotation" and isinstance(part, ast.expr | ast.withitem):
                yield part
            elif isinstance(part, ast.match_case) and part.guard is not None:
                yield part.guard
