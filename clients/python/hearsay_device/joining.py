"""Joining a survey, and leaving it: which surveys a device answers, and what it keeps of them."""

from __future__ import annotations

from copy import deepcopy
from math import floor, log2

from hearsay_device.clock import live
from hearsay_device.errors import refuse
from hearsay_device.limits import WEEK, YEAR, Asked, Ledger, Limits, shared_bits
from hearsay_device.respondent import Document, Entropy, Respondent
from hearsay_device.terms import Terms, read_terms

# Two reports may have so many bits in common; a crowd hides log2 of its size, less 10.
HARMLESS_BITS = 1.0
SPARE_BITS = 10.0


class Joining(Ledger):
    """The document in change, at one moment."""

    def __init__(
        self,
        document: Document,
        limits: Limits,
        now: float,
        uptime: tuple[str, float],
        entropy: Entropy,
    ) -> None:
        super().__init__(document)
        self._limits = limits
        self._now = now
        self._uptime = uptime
        self._entropy = entropy

    def joined(self, survey: str) -> Document:
        joined: Document = self.surveys.get(survey, {"terms": None})
        if joined["terms"] is None:
            refuse(
                "unknown",
                f"this device has not joined survey {survey!r}",
                "call send, or join with its terms",
            )
        return joined

    def terms(self, survey: str) -> Terms:
        return read_terms(self.joined(survey)["terms"].encode())

    def period(self, terms: Terms) -> int:
        return terms.calendar.of(floor(self._now))

    def owed(self, survey: str, period: int) -> Document:
        """The report of a period that is owed, if it is."""
        for owed in self.surveys[survey]["owed"]:
            if owed["period"] == period:
                return dict(owed)
        return {}

    def live(self) -> None:
        """Count the days that the device has lived."""
        live(self.document["lived"], self._now, self._uptime)

    def join(self, terms: Terms, data: bytes, pinned: bool, credential: bool | None) -> None:
        """Keep terms that were verified; what they may charge in a year is reserved if they are `pinned`."""
        before = self.surveys.get(terms.id) or _never_joined(terms)
        kept = before["terms"]
        # Whole terms are compared where they are kept: the fingerprint has half of their hash.
        if before["fingerprint"] != terms.fingerprint or kept not in (None, data.decode()):
            refuse("changed", f"the terms of survey {terms.id!r} have changed", "do not answer it")
        if kept is not None:
            return
        joined = {**before, "owed": [], "terms": data.decode(), "credential": credential}
        self.surveys[terms.id] = joined
        respondent = self._respondent(terms.id)
        respondent.draw_keys()
        for each in respondent.asked:
            line = joined["asked"].setdefault(each.id, each.line())
            line["reserved"] = each.cost(terms.answers_in(YEAR)) if pinned else 0.0
        self._refuse_linked(terms.id)
        self.live()
        self._require_room(terms, respondent.asked, credential)

    def _require_room(self, terms: Terms, asked: list[Asked], credential: bool | None) -> None:
        """What comes next must fit: one answer, and with a credential those of a week."""
        trial = Ledger(deepcopy(self.document))
        more = terms.answers_in(WEEK) - 1 if credential else 0
        for each in asked:
            trial.charge(terms.id, each)
            trial.document["charges"] += [[self.day, terms.id, each.id, 0.0]] * more
        self._limits.check(terms.id, trial)

    def leave(self, survey: str) -> None:
        """Erase terms and owed reports, and free what is reserved."""
        joined = self.joined(survey)
        joined.update(terms=None, owed=[])
        for line in joined["asked"].values():
            line["reserved"] = 0.0

    def _refuse_linked(self, survey: str) -> None:
        """Surveys that share a question can be linked like two periods of one."""
        terms = self.terms(survey)
        own = {each.id: each for each in self._respondent(survey).asked if not each.fresh}
        for name in self.surveys:
            if name == survey or self.surveys[name]["terms"] is None:
                continue
            theirs = self.terms(name)
            hidden = max(HARMLESS_BITS, _hidden_by_crowd(terms, theirs))
            credentials = {self.surveys[each]["credential"] for each in (survey, name)}
            for each in self._respondent(name).asked:
                if each.fresh or each.id not in own:
                    continue
                bits = _bits_in_common(own[each.id], each)
                if credentials == {True, False}:
                    self._refuse_link(survey, name, "one of them has a credential")
                if bits > hidden:
                    self._refuse_link(survey, name, f"{bits:.2g} bits are the same")

    def _refuse_link(self, survey: str, other: str, why: str) -> None:
        refuse("linked", f"survey {survey!r} asks what {other!r} asks: {why}", "leave one of them")

    def _respondent(self, survey: str) -> Respondent:
        return Respondent(self.terms(survey), self.document, self._entropy)


def _never_joined(terms: Terms) -> Document:
    return {
        "settled": None,
        "history": [],
        "spent": [],
        "dropped": [],
        "listed": False,
        "cells": {},
        "stays": {},
        "asked": {},
        "terms": None,
        "fingerprint": terms.fingerprint,
    }


def _hidden_by_crowd(terms: Terms, theirs: Terms) -> float:
    if not (terms.devices and theirs.devices):
        return 0.0
    return log2(min(terms.devices, theirs.devices)) - SPARE_BITS


def _bits_in_common(own: Asked, theirs: Asked) -> float:
    pairs = []
    for question in own.questions:
        pairs += [(question, other) for other in theirs.questions if other.id == question.id]
    shares = min(pairs[0][0].share, pairs[0][1].share)
    return sum(shared_bits(question, other) for question, other in pairs) - log2(shares)
