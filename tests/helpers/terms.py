"""The resolved terms of a survey, read by somebody who trusts nobody (docs/device-protocol.md)."""

from protocols.errors import SurveyError
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.wire.header import read_object


def decode_terms(data: bytes) -> Scheme:
    """The survey of these terms, compiled again; raises SurveyError if that gives other terms."""
    resolved = read_object(data)
    version = 3 if resolved["version"] == 3 else 2  # 1 follows from the keys
    scheme = Scheme(Survey.model_validate(resolved["declared"] | {"version": version}))
    if scheme.terms != data:
        raise SurveyError(f"survey {scheme.survey.id!r}: the terms are not what its budgets resolve to")
    return scheme
