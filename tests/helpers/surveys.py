"""Surveys for tests, in a line each."""

from typing import Any

from protocols.scheme import Scheme
from protocols.survey import Attribute, Survey

USUAL: dict[str, Any] = {"id": "test", "start": "2026-01-01T00:00:00Z", "period": "1d"}


def scheme_with(*attributes: dict[str, Any], **terms: Any) -> Scheme:
    """A compiled survey with these attributes and terms."""
    data = {**USUAL, **terms}
    return Scheme(Survey.model_validate({**data, "attributes": [Attribute.model_validate(a) for a in attributes]}))


def third(*attributes: dict[str, Any], **terms: Any) -> Scheme:
    """The same with terms of version 3."""
    return Scheme(Survey.model_validate({**USUAL, **terms, "version": 3, "attributes": list(attributes)}))


def of_size(k: int, name: str = "a", **extra: Any) -> dict[str, Any]:
    """An ordered attribute of k values; `prior` may be a list of shares."""
    prior = extra.pop("prior", None)
    shares = {} if prior is None else {"prior": {str(i): share for i, share in enumerate(prior)}}
    return {"name": name, "range": {"last": k - 1}, **shares, **extra}


def sets_of(k: int, several: int, key: str = "several", **extra: Any) -> dict[str, Any]:
    """An attribute of sets of k values, whose own order is not the listed one. In version 3 the key is another."""
    return {"name": "a", key: several, "values": [f"v{i}" for i in range(k)], **extra}
