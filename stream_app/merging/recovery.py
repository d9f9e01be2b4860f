"""Recovery of the merge state from its records, by the same rule as the counting state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from protocols.errors import StateError
from stream_app.counting.recovery import Records, resume_after
from stream_app.counting.state import NOTHING
from stream_app.log.flushes import Write
from stream_app.log.marks import Acceptance
from stream_app.log.quarantines import NEVER_QUARANTINED, NOT_OF_ONE_SURVEY, SurveyFailed, resume, survey_of
from stream_app.merging.frozen import Frozen
from stream_app.merging.parts import HeldPart, PartKey
from stream_app.merging.state import (
    MergePosition,
    SurveyStatus,
    merge_accepted_key,
    merge_resumed_key,
    merged_key,
    part_key,
)


@dataclass
class RecoveredSurvey:
    """The recovered state of one survey: `stale` are keys of records that are not needed."""

    status: SurveyStatus
    parts: dict[PartKey, HeldPart] = field(default_factory=dict)
    finals: dict[int, Frozen] = field(default_factory=dict)
    stale: list[bytes] = field(default_factory=list)
    changed: bool = False  # its record must be written again
    recorded: bool = False  # it has one


@dataclass(frozen=True)
class RecoveredMerge:
    """The recovered state: read on after `start`, delete `stale` records; `missing` describes lost records, if any.

    `failed` are surveys that are quarantined, because their records cannot be used.
    """

    position: MergePosition
    surveys: dict[str, RecoveredSurvey]
    start: int
    stale: tuple[Write, ...]
    missing: str
    failed: tuple[SurveyFailed, ...]


def recover_merge(owner: int, records: Records, log_start: int = 0) -> RecoveredMerge:
    """Recover the merge state of one partition of the partials topic from records of any age, in any order."""
    found = dict(records)
    position = MergePosition.decode(found.pop(merged_key(owner))) if merged_key(owner) in found else MergePosition()
    accepted = found.pop(merge_accepted_key(owner), None)
    lost = 0
    if accepted is not None:
        lost = Acceptance.decode(accepted).lost
        if Acceptance.decode(accepted).mark.acceptances > position.mark.acceptances:
            position.mark = Acceptance.decode(accepted).mark
    log_start = max(log_start + position.mark.shift, position.mark.floor)
    of_surveys: dict[str, dict[bytes, bytes]] = {}
    for key, value in sorted(found.items()):
        of_surveys.setdefault(survey_of(Write(key, value)), {})[key] = value
    resumptions = {survey: group.pop(merge_resumed_key(owner, survey), b"") for survey, group in of_surveys.items()}
    resume(position.quarantines, {survey: record for survey, record in resumptions.items() if record})
    surveys: dict[str, RecoveredSurvey] = {}
    failed: list[SurveyFailed] = []
    for survey, group in of_surveys.items():
        if position.is_quarantined(survey):
            continue
        try:
            surveys[survey] = _recover_survey(owner, survey, group, position, lost)
        except NOT_OF_ONE_SURVEY:
            raise
        except Exception as error:
            if not survey:
                raise
            contained = position.surveys.get(survey, position.offset)
            position.quarantines[survey] = position.quarantines.get(survey, NEVER_QUARANTINED).again(contained, error)
            failed.append(SurveyFailed(survey, position.quarantines[survey], error))
    start = _start(position, surveys)
    missing = ""
    if start + 1 < log_start:
        missing = (
            f"partition {owner} of the partials: offsets {start + 1} to {log_start - 1} are no longer in the log and "
            "not all of them are in the state; periods that they closed may lack reports"
        )
        for recovered in surveys.values():  # the log no longer has them: do not look for them at the next recovery
            listed = recovered.status.listed
            recovered.status.listed = {part: due for part, due in listed.items() if due >= log_start}
            recovered.changed = True
        for name, due in position.surveys.items():
            if due < log_start and not position.is_quarantined(name):
                position.surveys[name] = surveys[name].status.offset if name in surveys else NOTHING
        start = log_start - 1
    stale = tuple(Write(key, None) for survey in surveys.values() for key in survey.stale)
    return RecoveredMerge(position, surveys, start, stale, missing, tuple(failed))


def _start(position: MergePosition, surveys: Mapping[str, RecoveredSurvey]) -> int:
    """After which offset to read on."""
    going_on = {name: due for name, due in position.surveys.items() if not position.is_quarantined(name)}
    held = {name: survey.status.offset for name, survey in surveys.items() if survey.recorded}
    for name in going_on.keys() - held.keys():  # one that was quarantined before it had a record
        offset = position.quarantines.get(name, NEVER_QUARANTINED).offset
        held[name] = NOTHING if offset is None else offset
    parts = {key: part.offset for survey in surveys.values() for key, part in survey.parts.items()}
    listed = {key: due for survey in surveys.values() for key, due in survey.status.listed.items()}
    return min(resume_after(position.offset, going_on, held), resume_after(position.offset, listed, parts))


def _recover_survey(
    owner: int, survey: str, records: Mapping[bytes, bytes], position: MergePosition, lost: int
) -> RecoveredSurvey:
    """The state of one survey. Once an operator has let it go on, a part that cannot be read is read again."""
    acceptances = position.mark.acceptances
    recovered = RecoveredSurvey(SurveyStatus(acceptances=acceptances))
    written: dict[PartKey, bytes] = {}
    for key, value in records.items():
        _, _, kind, _, *rest = key.decode().split("/")
        if kind == "survey":
            recovered.status = SurveyStatus.decode(survey, value)
            recovered.recorded = True
        elif kind == "final":
            recovered.finals[int(rest[0])] = Frozen.decode(value)
        else:
            written[survey, int(rest[0]), int(rest[1])] = value
    status = recovered.status
    if status.acceptances < acceptances:
        status.lose(lost)
        status.acceptances = acceptances
        recovered.changed = True
    for final in recovered.finals.values():
        status.published_through(final.after)  # a late write may have replaced the status by an older one
    for place, value in written.items():
        if place[1] <= status.through:
            recovered.stale.append(part_key(owner, place))
            continue
        try:
            recovered.parts[place] = HeldPart.decode(value)
        except StateError:
            if survey not in position.quarantines:
                raise
    # Parts of periods that have a final are not needed again.
    status.listed = {part: due for part, due in status.listed.items() if part[1] > status.through}
    return recovered
