"""Records of the survey registry, without a broker."""

from protocols.survey import Survey
from stream_app.faust_app.overrides.batches import EpochRecord


def record_of(survey: Survey, fingerprint: str, offset: int = 0, header: str = "fingerprint") -> EpochRecord:
    """What `hearsay survey publish` writes."""
    key = survey.id.encode()
    value = survey.model_dump_json().encode()
    headers = ((header, fingerprint.encode()),)
    return EpochRecord("surveys", 0, offset, 0, 0, key, value, None, 1, len(value), headers)
