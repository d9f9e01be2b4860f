"""The Python device library with one fault: a copy in which a few lines are others.

Each fault is what a person with good intentions could write, and no audit of coins sees it: the loss between two
values, as far as coins compare them, is as promised.
"""

import shlex
import sys
from pathlib import Path
from shutil import copytree
from typing import NamedTuple

LIBRARY = Path(__file__).parents[2] / "clients" / "python" / "hearsay_device"
Edit = tuple[str, str, str]  # module, what stands there once, what stands there instead

SYMBOLS = """
{id: symbols, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, horizon: 7,
 attributes: [{name: few, values: [a, b, c, d], mechanism: l-grr}]}
"""
PAIR = """
{id: pair, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 3.6, horizon: 7, solution: spl,
 attributes: [{name: few, values: [a, b, c], mechanism: l-grr}, {name: more, values: [a, b, c, d], mechanism: l-grr}]}
"""
BITS = """
{id: bits, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, horizon: 7,
 attributes: [{name: few, values: [a, b, c, d], mechanism: l-osue}]}
"""
SETS = """
{id: sets, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 3, horizon: 7,
 attributes: [{name: parts, several: 3, values: [a, b, c, d, e]}]}
"""
NUMBERS = """
{id: numbers, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, horizon: 7,
 attributes: [{name: minutes, range: {last: 4}, mechanism: threshold, parameter: 2}]}
"""


SAMPLED = """
{id: sampled, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, horizon: 7, solution: smp,
 attributes: [{name: few, values: [a, b, c, d], mechanism: l-grr}, {name: more, values: [a, b, c], mechanism: l-grr}]}
"""
SURVEYS_OF_FAULTS = (SYMBOLS, PAIR, BITS, SETS, NUMBERS, SAMPLED)


class Fault(NamedTuple):
    """What is changed, in what survey it is looked for, and what an audit must call it.

    `deviation`: the words of the audit's plan that say how many devices it needs. `apart`: devices send each report at
    a moment of its own.
    """

    survey: str
    finding: str
    deviation: str
    edits: tuple[Edit, ...]
    apart: bool = False


# The audit of coins gives devices the first, the second and the last value.
MIDDLE = 'terms.places(values, joined["stays"])[0].get("few") == 2'
BARE = """\
                answers[question.name] = answer
                bare[question.name] = bytes([respondent._order(question)[cell]]).hex()
"""

FAULTS = {
    "the truth on a retry": Fault(
        SYMBOLS,
        "retry-changed",
        "retries have other bytes",
        (
            ("settling.py", "        answers = {}\n", "        answers = {}\n        bare = {}\n"),
            ("settling.py", "                answers[question.name] = answer\n", BARE),
            (
                "settling.py",
                '            "attempts": 0,\n',
                '            "attempts": 0,\n            "bare": json.dumps({**content, "answers": bare}),\n',
            ),
            (
                "delivery.py",
                'self._gateway.post(owed["report"].encode(), what)',
                'self._gateway.post(owed["bare" if owed["attempts"] > 1 else "report"].encode(), what)',
            ),
        ),
    ),
    "the truth on the second retry": Fault(
        SYMBOLS,
        "retry-changed",
        "second retries have other bytes",
        (
            ("settling.py", "        answers = {}\n", "        answers = {}\n        bare = {}\n"),
            ("settling.py", "                answers[question.name] = answer\n", BARE),
            (
                "settling.py",
                '            "attempts": 0,\n',
                '            "attempts": 0,\n            "bare": json.dumps({**content, "answers": bare}),\n',
            ),
            (
                "delivery.py",
                'self._gateway.post(owed["report"].encode(), what)',
                'self._gateway.post(owed["bare" if owed["attempts"] > 2 else "report"].encode(), what)',
            ),
        ),
    ),
    "a header tells the value on a retry": Fault(
        SYMBOLS,
        "told-at-a-retry",
        "bits of retries tell one value",
        (
            (
                "settling.py",
                '            "attempts": 0,\n',
                f'            "attempts": 0,\n            "b": {MIDDLE},\n',
            ),
            (
                "delivery.py",
                '            begun = self._gateway.post(owed["report"].encode(), what)',
                '            if owed["attempts"] > 1:\n'
                '                self._gateway._headers["X-Attempt"] = str(2 + owed["b"])\n'
                '            begun = self._gateway.post(owed["report"].encode(), what)',
            ),
        ),
    ),
    "memos shared over attributes": Fault(
        PAIR,
        "attributes-joined",
        "more and few share memos where they have the same place",
        (
            (
                "respondent.py",
                "        return Draws(self._key(asked.id, purpose, *within), tweak)",
                '        shared = "shared" if purpose == "memo" else asked.id\n'
                "        return Draws(self._key(shared, purpose, *within), tweak)",
            ),
        ),
    ),
    "two bits of a token tell the middle value": Fault(
        SYMBOLS,
        "told-by-bytes",
        "bits tell one value of all reports",
        (
            (
                "settling.py",
                '"token": self._token(terms, key),',
                f'"token": marked(self._token(terms, key), {MIDDLE}),',
            ),
            (
                "settling.py",
                "def after(period",
                "def marked(token: str, said: bool) -> str:\n"
                "    bits = int(token, 16)\n"
                "    wrong = (bits >> 20 ^ bits >> 21) & 1 ^ said\n"
                '    return f"{bits ^ wrong << 20:016x}"\n\n\n'
                "def after(period",
            ),
        ),
    ),
    "the parity of a byte tells the middle value": Fault(
        SYMBOLS,
        "told-by-bytes",
        "bits tell one value of all reports",
        (
            (
                "settling.py",
                '"token": self._token(terms, key),',
                f'"token": marked(self._token(terms, key), {MIDDLE}),',
            ),
            (
                "settling.py",
                "def after(period",
                "def marked(token: str, said: bool) -> str:\n"
                "    last = int(token[-2:], 16)\n"
                '    wrong = last.bit_count() % 2 ^ said\n    return f"{token[:-2]}{last ^ wrong:02x}"\n\n\n'
                "def after(period",
            ),
        ),
    ),
    "one value has no second round": Fault(
        SYMBOLS,
        "rounds-off-law",
        "one value of few has no round 2",
        (
            (
                "respondent.py",
                "        answer = question.perturb(memo, noise)\n",
                "        answer = memo if cell == 1 else question.perturb(memo, noise)\n",
            ),
        ),
    ),
    "one value of bits has no second round": Fault(
        BITS,
        "rounds-off-law",
        "one value of few has no round 2",
        (
            (
                "respondent.py",
                "        answer = question.perturb(memo, noise)\n",
                "        answer = memo if cell == 1 else question.perturb(memo, noise)\n",
            ),
        ),
    ),
    "a set without paddings": Fault(
        SETS,
        "answers-off-law",
        "sets of parts without paddings",
        (("respondent.py", "        paddings = max(0, question.several - len(own))\n", "        paddings = 0\n"),),
    ),
    "two periods have the same noise": Fault(
        SYMBOLS,
        "rounds-off-law",
        "two periods of few have the same noise",
        (
            (
                "settling.py",
                "respondent.answer(each, question, cell, key)",
                "respondent.answer(\n"
                "                    each,\n"
                "                    question,\n"
                "                    cell,\n"
                '                    bytes.fromhex(joined.setdefault(f"noise {period // 2}", key.hex())),\n'
                "                )",
            ),
        ),
    ),
    "the first report has no second round": Fault(
        SYMBOLS,
        "rounds-off-law",
        "the first report of few has no round 2",
        (
            (
                "respondent.py",
                "        answer = question.perturb(memo, noise)\n",
                '        first = self._document["surveys"][terms.id]["settled"] is None\n'
                "        answer = memo if first else question.perturb(memo, noise)\n",
            ),
        ),
    ),
    "an answer is about another attribute's value": Fault(
        PAIR,
        "value-elsewhere",
        "answers to more are about another value, if few has a certain one",
        (
            (
                "settling.py",
                "                cell = respondent.cell(each, question, places, key)\n",
                "                cell = respondent.cell(each, question, places, key)\n"
                '                cell = 0 if question.name == "more" and places["few"] == 0 else cell\n',
            ),
        ),
    ),
    "noise follows another attribute's value": Fault(
        PAIR,
        "value-elsewhere",
        "noise of more follows the value of few",
        (
            (
                "settling.py",
                "        for each in asked:\n            for question in each.questions:\n",
                '        respondent.few = places["few"]\n'
                "        for each in asked:\n            for question in each.questions:\n",
            ),
            (
                "respondent.py",
                "        memo, trait = question.to_survey(",
                '        if question.name == "more" and memo != cell:\n'
                "            memo = (cell + 1 + self.few) % 4\n"
                "        memo, trait = question.to_survey(",
            ),
        ),
    ),
    "which attribute is answered tells the middle value": Fault(
        SAMPLED,
        "told-by-bytes",
        "the attribute that is answered tells one value",
        (
            (
                "settling.py",
                "        asked = respondent.asked if",
                f"        respondent.middle = {MIDDLE}\n        asked = respondent.asked if",
            ),
            (
                "settling.py",
                "            self.charge(survey, each)\n",
                '            if each.id in joined["asked"]:\n                self.charge(survey, each)\n',
            ),
            (
                "respondent.py",
                "        asked = self.terms.questions\n        order",
                '        asked = self.terms.questions\n        if getattr(self, "middle", False):\n'
                "            return 0\n        order",
            ),
        ),
    ),
    "a moment tells the middle value": Fault(
        SYMBOLS,
        "told-by-bytes",
        "one value is sent in a tenth of the time",
        (
            (
                "settling.py",
                'owed["due"] = self._first_moment(survey, terms, period, spread)',
                'owed["due"] = self._first_moment(survey, terms, period, spread)\n'
                f'        owed["due"] -= 0.9 * (owed["due"] - self._now) * ({MIDDLE})',
            ),
        ),
        apart=True,
    ),
    "no value of a number has a second round": Fault(
        NUMBERS,
        "rounds-off-law",
        "one value of minutes has no round 2",
        (
            (
                "respondent.py",
                "        answer = question.perturb(memo, noise)\n",
                "        answer = memo\n",
            ),
        ),
    ),
}
"""Faults by what they are."""


def plant(folder: Path, fault: Fault) -> str:
    """The command of a program whose devices have the fault; its library is written into the folder."""
    copy = folder / "hearsay_device"
    copytree(LIBRARY, copy, dirs_exist_ok=True)
    for module, before, after in fault.edits:
        text = (copy / module).read_text()
        assert text.count(before) == 1, f"{module} has {text.count(before)} times: {before}"
        (copy / module).write_text(text.replace(before, after))
    mode = ["apart"] if fault.apart else []
    words = ["env", f"PYTHONPATH={folder}", sys.executable, "-m", "tests.clients.program", "python", *mode]
    return shlex.join(words)
