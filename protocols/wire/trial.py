"""A survey is tried before any device answers it: with a report of each form, as a device makes it that joins.

So a defect shows in `hearsay survey check`, and where a survey is published or registered, and not at its first report.
"""

import numpy as np

from protocols.scheme.defects import confined_to
from protocols.scheme.scheme import Scheme
from protocols.survey.model import Survey
from protocols.survey.visits import NEVER
from protocols.wire.content import Reject
from protocols.wire.frame import FINE, ROW_REASONS, Frame, decode_frame, encode_frame, row_faults
from protocols.wire.header import ReportHeader, write_object
from protocols.wire.report import decode_report

PERIOD = 0
TOKEN = bytes(7) + b"\1"  # no device reports it: tokens are drawn from 64 bits


def collectable(survey: Survey) -> Scheme:
    """The compiled survey, once its reports have passed as JSON and as frames. Raises SurveyError if they do not."""
    with confined_to(survey.id):
        scheme = Scheme(survey)
        try_frames(scheme)
    return scheme


def try_reports(scheme: Scheme) -> list[Frame]:
    """Read and judge a report of each form; a frame of each. It needs no pyarrow, so that every machine can do it."""
    with confined_to(scheme.survey.id):
        return [_judged(scheme, trial_report(scheme, form)) for form in sorted(scheme.forms)]


def try_frames(scheme: Scheme) -> None:
    """The same, written and read as records. It imports pyarrow, which takes a while at its first use."""
    lookup = {scheme.survey.id: scheme}.get
    for frame in try_reports(scheme):
        with confined_to(scheme.survey.id):
            _require_taken(decode_frame(encode_frame(frame, scheme), lookup))


def trial_report(scheme: Scheme, answered: tuple[str, ...]) -> bytes:
    """The first report of a device, about these attributes. Zeros are an answer in every encoding.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> asked = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00Z, period: 1d, eps: 1, visitors: {units: [ever]},
    ...                                 attributes: [{name: a, values: [x, y]}]}'''))
    >>> trial_report(asked, ("a",))[-61:]
    b'"token":"0000000000000001","flags":"10","answers":{"a":"00"}}'
    """
    header = ReportHeader(scheme.survey.id, scheme.fingerprint, PERIOD)
    visits = scheme.visits.of(np.array([NEVER]), PERIOD)
    record = {
        **header.write(),
        "token": TOKEN.hex(),
        scheme.visits.column: visits.astype(scheme.visits.wire).tobytes().hex(),
        "answers": {name: bytes(scheme.answer_bytes[name]).hex() for name in answered},
    }
    return write_object(record)


def _judged(scheme: Scheme, report: bytes) -> Frame:
    frame = _require_taken(decode_report(report, {scheme.survey.id: scheme}.get))
    fault = int(row_faults(frame, scheme, 0, 1)[0])
    if fault != FINE:
        raise ValueError(f"a good report is refused: {ROW_REASONS[fault - 1].value}")
    return frame


def _require_taken(read: Frame | Reject) -> Frame:
    if isinstance(read, Reject):
        raise ValueError(f"a good report is refused: {read.reason.value}: {read.detail}")
    return read
