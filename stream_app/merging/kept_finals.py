"""The finals that the merge keeps: those of the periods that windows can still include, and how a new one is made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from protocols.randomness import Keyring
from protocols.scheme import Scheme
from stream_app.counting.clocks import NEVER
from stream_app.counting.counters import Counts, add_counts
from stream_app.counting.partials import Part
from stream_app.counting.state import Period
from stream_app.log.flushes import Write
from stream_app.merging.finals import Final, final_key, outdated, piece_key
from stream_app.merging.verdicts import NotCounted, judge
from stream_app.results.histograms import PeriodAnswers, histogram_of
from stream_app.results.mobility import BuildMobility, ClosedPeriod
from stream_app.results.presence_noise import Release, release
from stream_app.results.result_topics import HISTOGRAMS, MOBILITY, ResultKey

Alarms = tuple[tuple[str, str], ...]  # attributes, and what is unusual about them


class KeptFinals:
    """Finals by survey and period. No message or record of one has more than `limit` bytes."""

    def __init__(self, owner: int, keyring: Keyring, mobility: BuildMobility, limit: int) -> None:
        self._owner = owner
        self._keyring = keyring
        self._mobility = mobility
        self._limit = limit
        self._finals: defaultdict[str, dict[int, Final]] = defaultdict(dict)
        self._pieces: dict[Period, set[str]] = {}

    def add(self, survey: str, finals: dict[int, Final], pieces: Mapping[Period, set[str]]) -> None:
        """Add recovered finals and pieces of finals."""
        self._finals[survey] = finals
        self._pieces |= pieces

    @property
    def alarms(self) -> dict[str, Alarms]:
        """By survey: what is unusual about the newest final."""
        newest = {survey: max(list(finals), default=NEVER) for survey, finals in list(self._finals.items())}
        return {survey: self.alarms_of(survey, period) for survey, period in newest.items() if period > NEVER}

    def alarms_of(self, survey: str, period: int) -> Alarms:
        final = self._finals[survey].get(period)
        return () if final is None else final.alarms

    def make(self, scheme: Scheme, period: int, parts: Sequence[Part], after: int) -> Final:
        """The final of a period, after one was published through the period `after`.

        One that was written before a crash is kept as written.
        """
        finals = self._finals[scheme.survey.id]
        if period not in finals:
            exact, missing = add_counts([part.counts for part in parts], scheme), NotCounted.of(parts)
            counts = self._closed(scheme, period, exact, missing)
            windows, missed = self._window_periods(scheme, period, counts), {period: missing}
            missed |= {earlier: finals[earlier].missing for earlier in finals}
            before = {period - 1: finals[period - 1].counts} if period - 1 in finals else {}
            judged = judge(scheme, period, exact, before | windows, missed)
            answers = PeriodAnswers.of(scheme, counts)
            histogram = histogram_of("final", scheme, period, answers, judged.published)
            report = self._mobility(scheme, period, windows, judged.published, answers.answers)
            key = ResultKey(scheme.survey.id, period)
            outputs = (
                *HISTOGRAMS.messages(key, histogram, self._limit),
                *MOBILITY.messages(key, report, self._limit),
            )
            finals[period] = Final(outputs, counts, missing, judged.alarms, after)
        return finals[period]

    def take_unsaved(self, survey: str) -> tuple[list[Write], list[Write]]:
        """The pieces and the records of a survey's finals that are not written yet; from now on they count as written.

        The pieces are to be written first.
        """
        pieces: list[Write] = []
        records: list[Write] = []
        for period, final in self._finals[survey].items():
            if final.unsaved:
                cuts, record = final.writes(self._owner, (survey, period), self._limit)
                pieces += cuts
                records.append(record)
                final.unsaved = False
                names = {piece.key.decode().rpartition("/")[2] for piece in cuts}
                self._pieces.setdefault((survey, period), set()).update(names)
        return pieces, records

    def take_outdated(self, survey: str, horizon: int) -> list[Write]:
        """Deletions of finals that are not needed again, even if a late write replaces the position by an older one."""
        deletions = []
        for period in outdated(self._finals[survey], horizon):
            key = survey, period
            del self._finals[survey][period]
            names = sorted(self._pieces.pop(key, ()))
            deletions += [Write(final_key(self._owner, key), None)]
            deletions += [Write(piece_key(self._owner, key, name), None) for name in names]
        return deletions

    def forget(self, survey: str) -> None:
        self._finals.pop(survey, None)
        for key in [key for key in self._pieces if key[0] == survey]:
            del self._pieces[key]

    def _window_periods(self, scheme: Scheme, period: int, counts: ClosedPeriod) -> dict[int, ClosedPeriod]:
        """All periods of the windows that end with this one, from the first period with a final."""
        finals = self._finals[scheme.survey.id]
        known: dict[int, ClosedPeriod] = {period: counts}
        for earlier in range(period - 1, max(-1, period - scheme.survey.horizon), -1):
            if earlier not in finals:
                break
            known[earlier] = finals[earlier].counts
        return known

    def _closed(self, scheme: Scheme, period: int, counts: Counts, missing: NotCounted) -> ClosedPeriod:
        """What is kept of a period that is closed: its counts or, with noise on presence, its release."""
        if scheme.presence is None:
            return counts
        before = self._finals[scheme.survey.id].get(period - 1)
        known = before.counts if before is not None and isinstance(before.counts, Release) else None
        return release(counts, sum(missing.late.values()), scheme, period, known, self._keyring)
