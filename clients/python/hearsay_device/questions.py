"""One memo per question (docs/device-protocol.md, "Questions"): what makes two surveys ask the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from struct import pack

from hearsay_device.draws import parts
from hearsay_device.encodings import Matrix
from hearsay_device.places import Grid
from hearsay_device.terms import Question, Terms


@lru_cache(maxsize=64)
def order_of(question: Question) -> Sequence[int]:
    """Its values in the question's own order, each by its place in the survey's.

    By their UTF-8 bytes where the mechanism knows no order; as listed where a hash, a prior or a grid does; of ordered
    values as listed or reversed, whichever is smaller.
    """
    listed = range(question.k)
    if question.kind in ("hashed", "fresh", "plane") or (question.fakes is not None and question.fakes.prior):
        return listed
    encoded = [value.encode() for value in question.values]
    if isinstance(question.first, Matrix):
        return listed if encoded <= encoded[::-1] else listed[::-1]
    return sorted(listed, key=encoded.__getitem__)


@lru_cache(maxsize=64)
def question_id(question: Question) -> str:
    """64 hexadecimal digits, the same in every survey that asks the same about the same value of the app."""
    texts = ["question", question.kind, str(question.parameter), str(question.k)]
    texts.append("" if question.fakes is None else question.fakes.kind)
    texts += [" ".join(question.tables["traits"]), " ".join(question.tables["first"]), str(len(question.sources))]
    for source in question.sources:
        texts += [source.name, source.other or "", "" if source.grid is None else _numbers(source.grid)]
    texts += [question.values[place] for place in order_of(question)]
    return sha256(parts(*texts)).hexdigest()


def tuple_id(questions: Sequence[Question]) -> str:
    """Of rs+fd and rs+rfd: the question is the whole tuple of attributes."""
    return sha256(parts("tuple", *sorted(map(question_id, questions)))).hexdigest()


def sample_id(terms: Terms, what: str) -> str:
    """What the sampled question and the turn are keyed by: the sorted questions of a survey, and their shares."""
    shares = [bits_of(question.share) if terms.shares else "" for question in terms.questions]
    listed = sorted(f"{question_id(question)} {share}" for question, share in zip(terms.questions, shares))
    return sha256(parts(what, *([str(terms.one_in)] if what == "turn" else []), *listed)).hexdigest()


def bits_of(number: float) -> str:
    """A double as 16 hexadecimal digits: its IEEE 754 bits, big-endian."""
    return pack(">d", number).hex()


def _numbers(grid: Grid) -> str:
    """All numbers of a grid."""
    at = [] if grid.at is None else [bits_of(each) for each in grid.at]
    metres = [bits_of(each) for each in (*grid.origin, grid.cell)]
    return " ".join([grid.crs, *at, *metres, str(grid.columns), str(grid.rows)])
