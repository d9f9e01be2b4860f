"""Recovery of the merge state from its records, by the same rule as the counting state."""

from collections.abc import Mapping

from protocols.errors import StateError
from stream_app.log.flushes import Write
from stream_app.log.quarantines import NEVER_QUARANTINED, Errors
from stream_app.log.recovery import NOTHING, Records, StateRecords, resume_after
from stream_app.merging.state import MergePosition, SurveyStatus
from stream_app.merging.survey import Frozen, HeldPart, MergedSurvey

Merged = dict[str, MergedSurvey]  # by survey


def recover_merge(
    owner: int, records: Records, log_start: int, failing: Errors
) -> tuple[StateRecords[MergePosition], Merged, int, str]:
    """Recover the merge state of one partition of the partials topic from records of any age, in any order."""
    state = StateRecords("merge", owner, records, MergePosition, failing)
    position, log_start = state.position, state.log_start(log_start)
    surveys = state.recover_each(lambda survey, group: _recover_survey(owner, survey, group, position, state.lost))
    start = _start(position, surveys)
    missing = ""
    if start + 1 < log_start:
        missing = (
            f"partition {owner} of the partials: offsets {start + 1} to {log_start - 1} are no longer in the log and "
            "not all of them are in the state; periods that they closed may lack reports"
        )
        for merged in surveys.values():  # the log no longer has them: do not look for them at the next recovery
            merged.status.listed = {part: due for part, due in merged.status.listed.items() if due >= log_start}
            merged.unsaved = True
        for name, due in position.surveys.items():
            if due < log_start and not position.is_quarantined(name):
                position.surveys[name] = surveys[name].status.offset if name in surveys else NOTHING
        start = log_start - 1
    return state, surveys, start, missing


def _start(position: MergePosition, surveys: Mapping[str, MergedSurvey]) -> int:
    """After which offset to read on."""
    going_on = {name: due for name, due in position.surveys.items() if not position.is_quarantined(name)}
    held = {name: merged.status.offset for name, merged in surveys.items() if merged.is_recorded}
    for name in going_on.keys() - held.keys():  # one that was quarantined before it had a record
        offset = position.quarantines.get(name, NEVER_QUARANTINED).offset
        held[name] = NOTHING if offset is None else offset
    of_parts = [
        resume_after(position.offset, merged.status.listed, {key: part.offset for key, part in merged.parts.items()})
        for merged in surveys.values()
    ]
    return min([resume_after(position.offset, going_on, held), *of_parts])


def _recover_survey(
    owner: int, survey: str, records: Mapping[bytes, bytes], position: MergePosition, lost: int
) -> tuple[MergedSurvey, list[Write]]:
    """The state of one survey, and the records of it that are not needed.

    Once an operator has let it go on, a part that cannot be read is read again.
    """
    acceptances = position.mark.acceptances
    merged = MergedSurvey(owner, survey, SurveyStatus(acceptances=acceptances))
    written: dict[bytes, tuple[int, int]] = {}
    for key, value in records.items():
        _, _, kind, _, *rest = key.decode().split("/")
        if kind == "survey":
            merged.status = SurveyStatus.decode(survey, value)
            merged.is_recorded = True
        elif kind == "final":
            merged.finals[int(rest[0])] = Frozen.decode(value)
        else:
            written[key] = int(rest[0]), int(rest[1])
    status = merged.status
    if status.acceptances < acceptances:
        status.lose(lost)
        status.acceptances = acceptances
        merged.unsaved = True
    for final in merged.finals.values():
        status.published_through(final.after)  # a late write may have replaced the status by an older one
    if status.begun:
        merged.published = status.through
    stale = []
    for key, place in written.items():
        if place[0] <= status.through:
            stale.append(Write(key, None))
            continue
        try:
            merged.parts[place] = HeldPart.decode(records[key])
        except StateError:
            if survey not in position.quarantines:
                raise
    # Parts of periods that have a final are not needed again.
    status.listed = {part: due for part, due in status.listed.items() if part[0] > status.through}
    return merged, stale
