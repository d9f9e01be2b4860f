"""The resolved terms of a survey as they travel to devices (docs/device-protocol.md).

A device trusts nobody: it takes the declared terms, compiles them itself, and compares the result byte for byte. Terms
with other probabilities than the budgets give, or other digests than their tables have, are refused.
"""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from protocols.errors import SurveyError
from protocols.scheme import Scheme
from protocols.survey.model import Survey
from protocols.wire.strict_json import read_object

TERMS: Final = "application/vnd.hearsay.terms+json"
MAX_TERMS_BYTES: Final = 8 << 20


def decode_terms(data: bytes) -> Scheme:
    """The survey of these terms, compiled; raises SurveyError if they are not what the declared terms resolve to.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1,
    ...                                  attributes: [{name: few, values: [a, b, c]}]}'''))
    >>> decode_terms(scheme.terms).fingerprint == scheme.fingerprint
    True
    """
    if len(data) > MAX_TERMS_BYTES:
        raise SurveyError(f"terms of {len(data)} bytes", f"at most {MAX_TERMS_BYTES} are read")
    try:
        scheme = Scheme(Survey.model_validate(read_object(data).get("declared")))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "declared"
        raise SurveyError(f"these are not the terms of a survey: {where}: {first['msg']}", _HINT) from None
    except ValueError as error:
        raise SurveyError(f"these are not the terms of a survey: {error}", _HINT) from None
    if scheme.terms != data:
        raise SurveyError(
            f"survey {scheme.survey.id!r}: the terms are not what its budgets and this release resolve to", _HINT
        )
    return scheme


_HINT = "do not answer; ask whoever collects for terms made by the same release of hearsay"
