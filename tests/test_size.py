"""The measures of `make size`, on sources whose counts are known, and the limits that `make check` holds."""

import doctest
import io
import json
import re
import subprocess
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts import density, ratchet, size
from scripts.density import Density, Spot, of_javascript, of_python
from scripts.ratchet import FIGURES, NESTED, NOISE, TUPLES, Figure

ROOT = Path(__file__).parents[1]
MECHANISMS = sorted((ROOT / "protocols" / "mechanisms").rglob("*.py"))
FILE = "views/new.py"
NO_TOKENS = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.COMMENT,
    tokenize.ENDMARKER,
}
PLAIN = "a = 1\n" * 1_000
"""What belongs to a room that is not dense."""


def function(statements: int) -> str:
    """A function of 5 tokens, and 3 for each statement."""
    return "def f():\n" + "    a = 1\n" * statements


@pytest.mark.parametrize("module", [density, ratchet, size])
def test_examples_compute_what_they_show(module: object) -> None:
    failed, tried = doctest.testmod(module)  # type: ignore[arg-type]
    assert tried and not failed


@pytest.mark.parametrize("file", MECHANISMS, ids=lambda file: file.stem)
def test_tokens_are_those_of_python_but_a_text_is_one(file: Path) -> None:
    text = file.read_text()
    if hasattr(tokenize, "FSTRING_START"):  # from Python 3.12 on, an f-string is several tokens there
        text = re.sub(r"\bf(?=[\"'])", "", text)
    expected = [0] * (text.count("\n") + 2)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_TOKENS:
            expected[token.start[0]] += 1
    assert density.read_lines(text, density.PYTHON).tokens == expected


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a = b  # c = d", 3),
        ('"""What it is."""\na = b\n"""What it means:\nmore."""\n', 3),
        ('a = """b\n# c\n"""', 3),
        ("a = 'it\\'s # b'", 3),
        ("a = rb'x' + f'{y + 1}'", 5),
        ("a **= 1.5e-3 // _b1", 5),
        ("f(  # why\n    a,\n)", 5),
        ("a = \\\n    b", 3),
    ],
)
def test_tokens_of_python_without_comments_and_docstrings(text: str, tokens: int) -> None:
    assert of_python(text, FILE).tokens == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("const a = b; // c = d", 5),
        ("/* a\nb */ c();", 4),
        ("a = `b ${c} \n d`;", 4),
        ("a = `b ${c ? `${d}` : { e }} f` + 1;", 6),
        ("a = /['`/*]/.test(b);", 9),
        ("a = b / c / d;", 8),
        ("return /'/;", 3),
        ("a?.b ?? (c) => ({ ...d });", 15),
    ],
)
def test_tokens_of_javascript(text: str, tokens: int) -> None:
    assert of_javascript(text, "pages/assets/new.js").tokens == tokens


def test_lines_and_files_are_counted_if_they_have_code() -> None:
    found = of_python("# nothing\n\na = 1\n\n\nb = (\n    2\n)\n", FILE)
    assert (found.files, found.code) == (1, 4)


def test_a_function_is_long_above_150_tokens_with_its_signature() -> None:
    just_not = function(48) + "    return\n"
    assert of_python(just_not, FILE).tokens == 150
    assert not of_python(just_not, FILE).long_functions
    (spot,) = of_python(just_not + "    return\n", FILE).long_functions
    assert spot == (151, f"{FILE}:1", "f, 151 tokens")


def test_a_function_contains_those_inside_it() -> None:
    inner = "".join(f"    {line}\n" for line in function(48).splitlines())
    found = of_python(f"async def outer():\n{inner}    return f\n", FILE)
    assert found.functions == 2
    assert [spot.what for spot in found.long_functions] == ["outer, 157 tokens"]


@pytest.mark.parametrize(
    ("counted", "control"),
    [
        ("a, b = 1, 2", "a = 1\nb = 2"),
        ("self.a, b = [f(), g()]", "self.a, b = f()"),
        ("a, b = b, a + b", "a, b = b, a"),
        ("(a, b), c = d, e", "a[0], a[1] = a[1], a[0]"),
        ("a, b = (\n    1,\n    2,\n)", "(a, b), c = pair"),
    ],
)
def test_assignments_of_several_values_but_no_swap_and_no_unpacking(counted: str, control: str) -> None:
    assert len(of_python(counted, FILE).tuples) == 1
    assert not of_python(control, FILE).tuples


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("a = b if c else d", 1),
        ("a = b if c else d if e else f", 2),
        ("f(a if b else c, f'{d if e else f}')", 2),
        ("def f(a=b if c else d): ...", 1),
        ("if a:\n    b = [c for c in d if c]", 0),
    ],
)
def test_conditional_expressions(text: str, number: int) -> None:
    assert len(of_python(text, FILE).conditionals) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("[a for b in c for a in b]", 1),
        ("[{a for a in b} for b in c]", 1),
        ("f([a for a in b] for b in {c: d for c in e})", 1),
        ("{a: [b for b in (c for c in a)] for a in d}", 2),
        ("[a for a in b] + [a for a in c]", 0),
        ("for a in b:\n    c += [d for d in a]", 0),
    ],
)
def test_nested_comprehensions(text: str, number: int) -> None:
    assert len(of_python(text, FILE).nested) == number


def test_lines_above_100_columns_if_they_have_code() -> None:
    def line(columns: int) -> str:
        return "a = " + "b" * (columns - 4)

    text = f"{line(100)}\n{line(101)}\n# {line(120)}\n"
    assert [spot.where for spot in of_python(text, FILE).wide] == [f"{FILE}:2"]
    script = of_javascript(text.replace("#", "//"), "a.js")
    assert [spot.where for spot in script.wide] == ["a.js:2"]


def test_isinstance_of_noise_outside_the_mechanisms_and_tests() -> None:
    lines = [
        "isinstance(a, Flip)",
        "isinstance(a, rounds.MatrixRound | PlaceRound)",
        "isinstance(a, Direct)",
        "Flip(1)",
    ]
    text = "\n".join(lines)
    places = sorted(spot.where for spot in size.of_text(FILE, text).noise)
    assert places == [f"{FILE}:1", f"{FILE}:2", f"{FILE}:2"]
    assert not size.of_text("protocols/mechanisms/new.py", text).noise
    assert not size.of_text("tests/new.py", text).noise


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("a, b = 1, 2{}", "tuples"),
        ("a = (\n    b\n    if c{}\n    else d\n)", "conditionals"),
        ("[a for b in c for a in b]{}", "nested"),
        ("a = " + "b" * 100 + "{}", "wide"),
        (function(60).replace("():", "():{}"), "long_functions"),
    ],
)
def test_an_exception_with_a_reason_is_counted_as_an_exception(text: str, counted: str) -> None:
    assert len(getattr(of_python(text.format(""), FILE), counted)) == 1
    excused = of_python(text.format("  # dense: as in the paper"), FILE)
    assert not getattr(excused, counted)
    assert len(excused.exceptions) == 1
    no_reason = of_python(text.format("  # dense:"), FILE)
    assert len(getattr(no_reason, counted)) == 1
    assert not no_reason.exceptions


def test_exceptions_are_comments_of_the_construct_itself() -> None:
    in_a_text = of_python("a = '# dense: no comment'", FILE)
    assert not in_a_text.exceptions
    in_the_body = of_python(function(60) + "    a, b = 1, 2  # dense: a pair\n", FILE)
    assert len(in_the_body.long_functions) == 1
    of_a_script = of_javascript("a = 1; // dense: as there", "a.js")
    assert len(of_a_script.exceptions) == 1


WORSE = {
    "tokens_per_line": "a = f(b, c, d, e, f)\n" * 300,
    "long_functions_percent": function(60),
    "tuple_assignments_per_1000_lines": "a, b = 1, 2\n" * 5,
    "conditional_expressions_per_1000_lines": "a = b if c else d\n" * 5,
    "nested_comprehensions_per_1000_lines": "[a for b in c for a in b]\n" * 5,
    "wide_lines_percent": ("b" * 101 + " = 1\n") * 20,
    "exceptions": "a = b  # dense: as in the paper\n",
}
"""For each figure, code that makes it worse."""


def rooms_of(text: str) -> dict[str, Density]:
    return {"views": of_python(text, FILE)}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.key)
def test_a_figure_that_got_worse_is_said_with_where_and_what_to_do(figure: Figure) -> None:
    limits = ratchet.new_limits(rooms_of(PLAIN), {})
    worse = rooms_of(PLAIN + WORSE[figure.key])
    beginning = f"views: {figure.words}:"
    complaints = list(ratchet.complaints(worse, limits))
    (said,) = (said for said in complaints if said.startswith(beginning))
    value = figure.value(worse["views"])
    assert f"at most {limits['views'][figure.key]:g} before, {value:.4g} now" in said
    places = re.findall(r"views/new\.py:(\d+)", said)
    assert places and all(int(line) > 1_000 for line in places)
    assert said.endswith(figure.advice)
    assert not list(ratchet.complaints(rooms_of(PLAIN), limits))


def test_the_three_worst_lines_are_said_each_once() -> None:
    lines = [f"a = {'(' * size}b if c else d if e else f{')' * size}\n" for size in range(6)]
    limits = ratchet.new_limits(rooms_of("a = 1\n"), {})
    complaints = list(ratchet.complaints(rooms_of("".join(lines)), limits))
    (said,) = (said for said in complaints if "conditional expressions" in said)
    assert re.findall(r"views/new\.py:(\d+)", said) == ["6", "5", "4"]


@pytest.mark.parametrize("figure", [TUPLES, NESTED], ids=lambda figure: figure.key)
def test_half_a_step_more_than_what_was_written_never_fails_and_two_steps_always_do(figure: Figure) -> None:
    def room(number: float) -> dict[str, Density]:
        spots = [Spot(1, f"{FILE}:1", "")] * round(number)
        return {"views": Density(code=10_000, **{figure.spots: spots})}  # type: ignore[arg-type]

    step = 10 * figure.step
    for before in range(40):
        limits = ratchet.new_limits(room(before), {})
        assert not list(ratchet.complaints(room(before + 0.5 * step), limits))
        assert list(ratchet.complaints(room(before + 2 * step), limits))


def test_noise_is_limited_over_all_rooms() -> None:
    one = of_python("isinstance(a, Flip)", FILE)
    two = of_python("isinstance(a, Flip)\nisinstance(a, Flip)", FILE)
    limits = ratchet.new_limits({"all": one}, {})
    assert limits == {"all": {NOISE.key: 1}}
    assert not list(ratchet.complaints({"all": one}, limits))
    (said,) = ratchet.complaints({"all": two}, limits)
    assert "at most 1 before, 2 now" in said


def test_limits_are_lowered_and_never_raised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "size.json"
    dense = rooms_of(PLAIN + WORSE["conditional_expressions_per_1000_lines"])
    assert size.lower(dense, file) == 0
    at_first = ratchet.read(file)
    assert size.lower(rooms_of(PLAIN), file) == 0
    lowered = ratchet.read(file)
    key = "conditional_expressions_per_1000_lines"
    assert lowered["views"][key] < at_first["views"][key]
    assert not capsys.readouterr().err
    assert size.lower(dense, file) == 1
    assert "conditional expressions" in capsys.readouterr().err
    assert ratchet.read(file) == lowered


def test_a_room_without_limits_fails_until_they_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "size.json"
    assert size.check(rooms_of(PLAIN), file) == 1
    assert "make size WRITE=1" in capsys.readouterr().err
    size.lower(rooms_of(PLAIN), file)
    assert size.check(rooms_of(PLAIN), file) == 0


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A small project in git."""
    for file, text in {
        "views/a.py": "a = b if c else d\n",
        "lab/a.py": "a = 1\n",
        "tests/a.py": "a = 1\n",
        "bench/a.py": "a = 1\n",
        "clients/python/hearsay_device/a.py": "a = 1\n",
        "pages/assets/a.js": "a();\n",
        "pages/assets/vendor/b.js": "b();\n",
        "clients/javascript/a.js": "a();\n",
        "clients/javascript/tests/b.js": "b();\n",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    (tmp_path / "views/link.py").symlink_to("a.py")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def git(folder: Path, *words: str) -> None:
    settings = "-c", "user.name=nobody", "-c", "user.email=nobody@example.org"
    subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True, timeout=60)


def test_files_are_counted_in_their_rooms_and_links_and_the_code_of_others_are_not(checkout: Path) -> None:
    rooms = size.measure(size.sources_here(checkout), size.Measured(checkout / "kept.json"))
    files = {room: found.files for room, found in rooms.items() if found.files}
    assert files == {
        "views": 1,
        "hearsay_device": 1,
        "rooms": 2,
        "lab": 1,
        "all": 3,
        "tests": 1,
        "JavaScript of pages": 1,
        "JavaScript of the device": 1,
    }


def test_a_commit_is_measured_as_the_checkout_was(checkout: Path) -> None:
    before = list(size.sources_here(checkout))
    (checkout / "views/a.py").write_text("a = 1\n")
    (checkout / "views/b.py").write_text("b = 1\n")
    assert sorted(size.sources_of(checkout, "HEAD")) == sorted(before)
    measured = size.Measured(checkout / "kept.json")
    old = size.rows_of(size.measure(size.sources_of(checkout, "HEAD"), measured))
    new = size.rows_of(size.measure(size.sources_here(checkout), measured))
    changed = size.changes(old, new)["views"]
    assert (changed["files"], changed["code"], changed["tokens"]) == (1, 1, -1)
    assert changed["if-else"] == -1000


def test_an_unknown_commit_is_an_error_that_names_it(checkout: Path) -> None:
    with pytest.raises(SystemExit, match="no commit nowhere"):
        list(size.sources_of(checkout, "nowhere"))


def never(file: str, text: str) -> Density:
    raise AssertionError(f"{file} is measured again")


@pytest.fixture
def measure_here(checkout: Path) -> Callable[[], dict[str, Density]]:
    """Measures the checkout in a process that knows what one before it kept."""

    def measure() -> dict[str, Density]:
        measured = size.Measured(checkout / "kept.json")
        rooms = size.measure(size.sources_here(checkout), measured)
        measured.write()
        return rooms

    return measure


def test_what_did_not_change_is_not_measured_again(
    checkout: Path, measure_here: Callable[[], dict[str, Density]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = measure_here()
    monkeypatch.setattr(size, "of_text", never)
    assert measure_here() == first
    (checkout / "views/a.py").write_text("a = 1\n")
    with pytest.raises(AssertionError, match=r"views/a\.py is measured again"):
        measure_here()


def test_what_cannot_be_read_of_earlier_measures_is_measured_again(
    checkout: Path, measure_here: Callable[[], dict[str, Density]]
) -> None:
    first = measure_here()
    (checkout / "kept.json").write_text('{"half')
    assert measure_here() == first
    json.loads((checkout / "kept.json").read_text())


def test_exceptions_are_printed_with_their_places() -> None:
    rooms = rooms_of("a = 1  # dense: as in the paper\n")
    rooms["all"] = rooms["views"]
    assert size.exceptions(rooms) == f"{FILE}:1: a = 1  # dense: as in the paper\n"
