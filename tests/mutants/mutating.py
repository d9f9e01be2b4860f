"""All changes of one token, or of one small statement, in the text of a module.

What declares and does not compute stays as it is: annotations, decorators and docstrings.
"""

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

SWAPS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "+": "-",
    "-": "+",
    "+=": "-=",
    "-=": "+=",
    "and": "or",
    "or": "and",
    "not": "",
    "is": "is not",
    "True": "False",
    "False": "True",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
}
DROPPED = (ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break)
"""Statements that become `pass`. A name that was never assigned is an error at once: assignments stay."""

Span = tuple[int, int]  # offsets of characters in a text: the first, and the one after the last


@dataclass(frozen=True)
class Mutant:
    """One change of a file. `before` and `after` are the lines that it touches, as one line each."""

    file: str
    line: int
    before: str
    after: str
    text: str  # of the whole file
    in_function: bool  # and not what a module or a class does when it is imported

    @property
    def module(self) -> str:
        return self.file.removesuffix(".py").replace("/", ".")

    @property
    def name(self) -> str:
        """What stays the same when other lines of the file change."""
        return f"{self.file}: {self.before} -> {self.after}"

    def computes_otherwise_than(self, text: str) -> bool:
        """Whether it is Python, and other code than that of this text."""
        try:
            return ast.dump(ast.parse(self.text)) != ast.dump(ast.parse(text))
        except SyntaxError:
            return False


def mutants_of(file: str, text: str) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of the lines. Of those with the same name there is one."""
    place = _Places(text)
    tree = ast.parse(text)
    declaring = list(_declaring(tree, place))
    bodies = list(_bodies(tree, place))
    known: set[str] = set()
    for (begin, end), replacement in sorted([*_of_tokens(text, place), *_of_nodes(tree, place)]):
        if _is_inside((begin, end), declaring):
            continue
        changed = text[:begin] + replacement + text[end:]
        line_begin = text.rfind("\n", 0, begin) + 1
        line_end = text.find("\n", end)
        before = " ".join(text[line_begin:line_end].split())
        after = " ".join((text[line_begin:begin] + replacement + text[end:line_end]).split())
        line = text.count("\n", 0, begin) + 1
        mutant = Mutant(file, line, before, after, changed, _is_inside((begin, end), bodies))
        if mutant.name not in known:
            known.add(mutant.name)
            yield mutant


class _Places:
    """Where lines and columns are in a text."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)
        self._begins = [0]
        for line in self._lines:
            self._begins.append(self._begins[-1] + len(line))

    def of(self, line: int, column: int) -> int:
        return self._begins[line - 1] + column

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> Span:
        """The span of a node: its columns are bytes."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._of_bytes(node.lineno, node.col_offset), self._of_bytes(node.end_lineno, node.end_col_offset)

    def _of_bytes(self, line: int, column: int) -> int:
        return self.of(line, len(self._lines[line - 1].encode()[:column].decode()))


def _of_tokens(text: str, place: _Places) -> Iterator[tuple[Span, str]]:
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for token, following in pairwise(tokens):
        span = place.of(*token.start), place.of(*token.end)
        if token.type == tokenize.NUMBER and token.string.isdecimal():
            number = int(token.string)
            yield span, str(number + 1)
            yield span, str(max(0, number - 1))
        elif (token.string, following.string) != ("is", "not") and token.string in SWAPS:
            yield span, SWAPS[token.string]


def _of_nodes(tree: ast.Module, place: _Places) -> Iterator[tuple[Span, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            yield place.span(node.value), "None"
        elif isinstance(node, DROPPED):
            yield place.span(node), "pass"
        elif isinstance(node, ast.Call) and node.keywords:
            arguments = sorted(place.span(argument) for argument in [*node.args, *node.keywords])
            named = place.span(node.keywords[-1])
            begin = max((end for _, end in arguments if end <= named[0]), default=named[0])
            yield (begin, named[1]), ""


def _declaring(tree: ast.Module, place: _Places) -> Iterator[Span]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield place.span(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from (place.span(decorator) for decorator in node.decorator_list)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield place.span(node)


def _bodies(tree: ast.Module, place: _Places) -> Iterator[Span]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield place.span(node.body[0])[0], place.span(node.body[-1])[1]


def _is_inside(span: Span, others: list[Span]) -> bool:
    return any(first <= span[0] and span[1] <= last for first, last in others)
