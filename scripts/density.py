"""How dense a source is: tokens, long functions, and constructs that put several things on a line.

Lines can be saved by denser code, tokens cannot. So tokens are counted, and what makes them hard
to read.

A text is one token, on its first line: also an f-string, and a template or a regular expression of
JavaScript. Comments, docstrings, line ends and indentation are none. A code line is a line with a
token. Python's own `tokenize` is not used. It splits f-strings since 3.12, so figures would depend
on the version, and it takes eight times as long.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

LONG_FUNCTION = 150
"""A function with more tokens is long. Its signature and functions inside it are counted."""
LONG_LINE = 100
WORST = 3
NOISE = {"Flip", "MatrixRound", "PlaceRound", "SupportChannel", "PlanarChannel"}
"""Kinds of noise. Who asks for one by `isinstance` must be changed for every new kind."""


class Spot(NamedTuple):
    """A place in the sources, and how bad it is."""

    weight: int
    where: str
    """file:line"""
    what: str


@dataclass
class Density:
    """What was counted in some files. Lists hold what `# dense: why` does not excuse."""

    files: int = 0
    code: int = 0
    tokens: int = 0
    functions: int = 0
    long_functions: list[Spot] = field(default_factory=list)
    tuples: list[Spot] = field(default_factory=list)
    conditionals: list[Spot] = field(default_factory=list)
    nested: list[Spot] = field(default_factory=list)
    wide: list[Spot] = field(default_factory=list)
    exceptions: list[Spot] = field(default_factory=list)
    noise: list[Spot] = field(default_factory=list)
    fullest: list[Spot] = field(default_factory=list)
    """Of each file, the lines with most tokens."""

    def add(self, other: "Density") -> None:
        """Add the counts of other files."""
        for name, counted in vars(other).items():
            setattr(self, name, getattr(self, name) + counted)


class Language(NamedTuple):
    """How texts, comments and tokens are told apart."""

    comments: tuple[str, ...]
    """What comments begin with."""
    texts: re.Pattern[str]
    """Matches texts and comments. What stands before a text may be group `before`."""
    tokens: re.Pattern[str]
    """Matches a token, where each text is an empty one and there are no comments."""
    exception: re.Pattern[str]
    """Matches the comment that makes an exception."""


def template(depth: int) -> str:
    """A pattern for templates of JavaScript, with others inside `${...}` down to some depth."""
    inside = "[^`{}]"
    if depth:
        inside = rf"(?:[^`{{}}]|\{{[^`{{}}]*\}}|{template(depth - 1)})"
    return rf"`(?:\\.|\$\{{{inside}*\}}|\$(?!\{{)|[^`\\$])*`"


def quoted(mark: str) -> str:
    """A pattern for texts on one line."""
    return rf"{mark}(?:\\.|[^{mark}\\\n])*{mark}"


def tripled(mark: str) -> str:
    """A pattern for texts of Python on several lines."""
    return rf"{mark * 3}[^{mark}\\]*(?:(?:\\.|{mark}(?!{mark * 2}))[^{mark}\\]*)*{mark * 3}"


SINGLE = "'"
DOUBLE = '"'
QUOTED = f"{quoted(SINGLE)}|{quoted(DOUBLE)}"
TRIPLE = f"{tripled(SINGLE)}|{tripled(DOUBLE)}"
PYTHON = Language(
    comments=("#",),
    texts=re.compile(rf"#[^\n]*|{TRIPLE}|{QUOTED}", re.DOTALL),
    tokens=re.compile(
        r'\b[rRbBuUfF]{1,2}""|""'
        r"|\.?\d(?:[eE][-+](?=\d)|[\w.])*|\w+"
        r"|\.\.\.|->|:=|\*\*=?|//=?|>>=?|<<=?|[-+*/%@&|^=!<>]=|[^\s\w\\]"
    ),
    exception=re.compile(r"#\s*dense:\s*\S"),
)
# Where an operand may begin, a slash begins a regular expression; elsewhere it divides.
REGULAR = r"(?:^|[(\[{=,:;!&|?+*~^%<>\n]|\breturn\b|\bcase\b)[ \t]*"
JAVASCRIPT = Language(
    comments=("//", "/*"),
    texts=re.compile(
        r"//[^\n]*|/\*.*?\*/"
        rf"|(?P<before>{REGULAR})/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*"
        rf"|{template(3)}|{QUOTED}",
        re.DOTALL,
    ),
    tokens=re.compile(
        r'""'
        r"|\.?\d(?:[eE][-+](?=\d)|[\w.])*|[\w$\#]+"
        r"|\.\.\.|=>|\?\.(?!\d)|\?\?=?|\*\*=?|[=!]==?|>>>?=?|<<=?|&&=?|\|\|=?|\+\+|--"
        r"|[-+*/%&|^<>]=|[^\s\w]"
    ),
    exception=re.compile(r"//\s*dense:\s*\S"),
)


@dataclass
class Lines:
    """The tokens of each line of a source, from line 1 on (there is a line 0, which is empty)."""

    tokens: list[int]
    excused: set[int]
    """The lines that end in `# dense: why`."""

    def between(self, first: int, last: int) -> int:
        """Tokens of some lines."""
        return sum(self.tokens[first : last + 1])

    def excuses(self, first: int, last: int) -> bool:
        """Whether one of these lines is an exception."""
        return not self.excused.isdisjoint(range(first, last + 1))


def read_lines(text: str, language: Language) -> Lines:
    """Count the tokens of each line.

    >>> read_lines("x = f('a b', 1.5)  # dense: an example", PYTHON)
    Lines(tokens=[0, 8], excused={1})
    >>> read_lines("const x = /[/]'/.test(`a ${b ? `c` : 1}`); // 1 + 1", JAVASCRIPT).tokens
    [0, 10]
    """
    excused: set[int] = set()

    def emptied(match: re.Match[str]) -> str:
        if language.exception.match(match[0]):
            excused.add(text.count("\n", 0, match.start()) + 1)
        return without_content(match, language)

    emptied_text = language.texts.sub(emptied, text)
    counts = [len(language.tokens.findall(line)) for line in emptied_text.split("\n")]
    return Lines([0, *counts], excused)


def without_content(match: re.Match[str], language: Language) -> str:
    """An empty text for a text, and nothing for a comment. Lines after it keep their numbers."""
    found = match[0]
    if found.startswith(language.comments):
        return "\n" * found.count("\n")
    before = match.groupdict().get("before") or ""
    inside = found.removeprefix(before)
    return before + '""' + "\n" * inside.count("\n")


def of_javascript(text: str, file: str) -> Density:
    """Measure a file of JavaScript: its lines."""
    return of_lines(text, file, read_lines(text, JAVASCRIPT))


def of_lines(text: str, file: str, lines: Lines) -> Density:
    """Measure what can be seen without a parser."""
    density = Density(files=1, tokens=sum(lines.tokens))
    spots = []
    for number, line in enumerate(text.split("\n"), 1):
        tokens = lines.tokens[number]
        if tokens:
            spot = Spot(tokens, f"{file}:{number}", f"{tokens} tokens")
            spots.append(spot)
            add_line(density, line, spot, number in lines.excused)
    density.code = len(spots)
    density.fullest = worst(spots)
    return density


def add_line(density: Density, line: str, spot: Spot, excused: bool) -> None:
    """Count a line that is an exception, or too long."""
    columns = len(line)
    if excused:
        density.exceptions.append(spot._replace(what=line.strip()))
    elif columns > LONG_LINE:
        density.wide.append(Spot(columns, spot.where, f"{columns} columns"))


def worst(spots: list[Spot]) -> list[Spot]:
    """The few lines with most weight."""
    by_line: dict[str, Spot] = {}
    for spot in sorted(spots, key=attrgetter("weight"), reverse=True):
        by_line.setdefault(spot.where, spot)
    return list(by_line.values())[:WORST]


def of_python(text: str, file: str) -> Density:
    """Measure a file of Python."""
    lines = read_lines(text, PYTHON)
    nodes = list(counted_nodes(ast.parse(text, file)))
    for node in nodes:
        if is_docstring(node):
            for number in range(node.lineno, last_line(node) + 1):
                lines.tokens[number] = 0
    density = of_lines(text, file, lines)
    for node in nodes:
        if isinstance(node, FUNCTIONS):
            add_function(density, node, file, lines)
        elif isinstance(node, ast.Call):
            add_noise(density, node, file)
        else:
            add_construct(density, node, file, lines)
    return density


Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
DISPLAYS = (ast.Tuple, ast.List)
COUNTED = {*FUNCTIONS, *COMPREHENSIONS, ast.Expr, ast.Assign, ast.IfExp, ast.Call}
LEAVES = {ast.Name, ast.Constant, ast.Load, ast.Store, ast.alias, str, int, bool, type(None)}
PLAIN = {"ctx", "op", "ops", "id", "attr", "arg", "name", "names", "annotation", "returns"}
"""Fields of nodes that hold nothing to count."""


@cache
def fields_with_nodes(kind: Any) -> tuple[str, ...]:
    """Where to look for more nodes.

    >>> fields_with_nodes(ast.Attribute)
    ('value',)
    """
    return tuple(field for field in kind._fields if field not in PLAIN)


def counted_nodes(tree: ast.AST) -> Iterator[Any]:
    """Find what may be counted. `ast.walk` visits every name, and takes four times as long."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        kind: Any = type(node)
        if kind in COUNTED:
            yield node
        for name in fields_with_nodes(kind):
            value = getattr(node, name)
            if isinstance(value, list):
                waiting += [child for child in value if type(child) not in LEAVES]
            elif type(value) not in LEAVES:
                waiting.append(value)


def last_line(node: ast.expr | ast.stmt) -> int:
    """Where it ends."""
    return node.end_lineno or node.lineno


def is_docstring(node: ast.AST) -> bool:
    """Whether it is a text that nobody uses: a docstring, or what explains a name."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)


def add_function(density: Density, node: Function, file: str, lines: Lines) -> None:
    """Count a function. What excuses it stands at its signature, not in its body."""
    density.functions += 1
    size = lines.between(node.lineno, last_line(node))
    body = node.body[0].lineno
    excused = lines.excuses(node.lineno, max(node.lineno, body - 1))
    if size > LONG_FUNCTION and not excused:
        spot = Spot(size, f"{file}:{node.lineno}", f"{node.name}, {size} tokens")
        density.long_functions.append(spot)


def add_noise(density: Density, node: ast.Call, file: str) -> None:
    """Count the kinds of noise that an `isinstance` asks for."""
    if not isinstance(node.func, ast.Name) or node.func.id != "isinstance":
        return
    for word in ast.walk(node.args[1]):
        asked = getattr(word, "id", getattr(word, "attr", None))
        if asked in NOISE:
            spot = Spot(1, f"{file}:{node.lineno}", f"isinstance of {asked}")
            density.noise.append(spot)


def add_construct(density: Density, node: ast.expr | ast.stmt, file: str, lines: Lines) -> None:
    """Count what puts several things on a line."""
    if isinstance(node, ast.IfExp):
        spots = density.conditionals
    elif isinstance(node, ast.Assign) and assigns_several(node):
        spots = density.tuples
    elif isinstance(node, COMPREHENSIONS) and is_nested(node):
        spots = density.nested
    else:
        return
    if not lines.excuses(node.lineno, last_line(node)):
        size = lines.between(node.lineno, last_line(node))
        spots.append(Spot(size, f"{file}:{node.lineno}", f"{size} tokens"))


def assigns_several(node: ast.Assign) -> bool:
    """Whether it assigns several values to several names, and is no swap.

    >>> [assigns_several(node) for node in ast.parse("a, b = 1, 2; a, b = b, a; a, b = f()").body]
    [True, False, False]
    """
    target = node.targets[0]
    if not isinstance(target, DISPLAYS) or not isinstance(node.value, DISPLAYS):
        return False
    assigned = sorted(map(ast.unparse, target.elts))
    return assigned != sorted(map(ast.unparse, node.value.elts))


def is_nested(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> bool:
    """Whether a comprehension has two `for`, or another one inside.

    >>> source = "[x for x in y]; {x for y in z for x in y}"
    >>> [is_nested(node.value) for node in ast.parse(source).body]
    [False, True]
    """
    if len(node.generators) > 1:
        return True
    found = [inner for inner in counted_nodes(node) if isinstance(inner, COMPREHENSIONS)]
    return len(found) > 1
