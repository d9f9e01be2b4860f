"""Which keys a survey has, by the version of its terms.

A survey keeps the version under which it was first read: its fingerprint depends on it. In version 3 some keys have
other names than the fields of the model, which are those of version 2. Texts, stored surveys, declared terms and errors
have the names of the version.

Version 1 is version 2 without the keys that came with it (`Survey.has_new_keys`), so texts of both are read alike.
"""

from collections.abc import Iterator
from typing import Any

NEW_TEXTS = 2
"""The version as which a text is read whose survey nobody counts yet: the only place that decides it.

Devices refuse terms of a version that they do not know. So this is 3 once both device libraries know version 3.
"""

Data = dict[str, Any]
Path = tuple[str | int, ...]

SINCE_3 = ("publish_from", "numbers", "new", "tables", "rolling")
"""The fields of a survey that only version 3 has."""
UNTIL_2 = ("minimum",)
"""The fields of a survey that version 3 does not have."""
RENAMED = {
    "Survey": {"horizon": "lookback"},
    "Attribute": {"several": "multi_select"},
}
"""By model: fields that have another name in version 3."""
NO_MINIMUM = (
    "`minimum` promised more than it kept: published numbers tell how many stayed away. "
    "Write `presence_epsilon: 1` (numbers with noise) or `publish_from: 20` (exact numbers, "
    "few are not shown), and a new id."
)


def version_of_new_texts() -> int:
    """The version of a text whose survey nobody counts yet."""
    return NEW_TEXTS


def written(model: str, field: str, version: int) -> str | None:
    """The key of a field of a model in texts of a version; None where the version has no such key.

    >>> written("Survey", "horizon", 3), written("Survey", "horizon", 2)
    ('lookback', 'horizon')
    >>> written("Survey", "minimum", 3)
    """
    if model == "Survey" and field in ("version", *_absent(version)):
        return None
    return _names(model, version).get(field, field)


def written_path(path: Path, version: int) -> Path:
    """The path to a part of a text, from the path of fields to it.

    >>> written_path(("attributes", 0, "several"), 3)
    ('attributes', 0, 'multi_select')
    """
    place, model = (2, "Attribute") if path[:1] == ("attributes",) else (0, "Survey")
    if len(path) <= place:
        return path
    field = str(path[place])
    key = _names(model, version).get(field, field)
    return (*path[:place], key, *path[place + 1 :])


def with_fields(data: Data, version: int) -> Data:
    """A text's data with the names of the model's fields.

    >>> with_fields({"lookback": 7, "attributes": [{"multi_select": 2}]}, 3)
    {'horizon': 7, 'attributes': [{'several': 2}]}
    """
    if version != 3:
        return data
    found: Data = _renamed(data, {key: field for field, key in RENAMED["Survey"].items()})
    of_attributes = {key: field for field, key in RENAMED["Attribute"].items()}
    if isinstance(found.get("attributes"), list | tuple):
        attributes = found["attributes"]
        found["attributes"] = [_renamed(attribute, of_attributes) for attribute in attributes]
    return found


def as_written(dumped: Data, version: int) -> Data:
    """A survey's fields and their values, with the keys of its version.

    >>> as_written({"version": 2, "horizon": 7, "publish_from": None}, 2)
    {'horizon': 7}
    """
    kept = {field: value for field, value in dumped.items() if field not in _absent(version)}
    if version != 3:
        kept.pop("version", None)  # stored surveys of versions 1 and 2 never had it
        return kept
    found: Data = _renamed(kept, RENAMED["Survey"])
    if "attributes" in found:
        attributes = found["attributes"]
        found["attributes"] = [_renamed(attribute, RENAMED["Attribute"]) for attribute in attributes]
    return found


def foreign_keys(data: Data, version: int) -> Iterator[tuple[Path, str]]:
    """The keys of a text that belong to another version: where each is, and what to write instead."""
    whose = f"survey {data.get('id')}"
    if version == 3 and "minimum" in data:
        yield ("minimum",), f"{whose}: {NO_MINIMUM}"
    for path, problem in _other_names(data, "Survey", version):
        yield path, f"{whose}: {problem}"
    attributes = data.get("attributes")
    for place, attribute in enumerate(attributes if isinstance(attributes, list | tuple) else ()):
        if isinstance(attribute, dict):
            named = f"{whose}: attribute {attribute.get('name')!r}"
            for path, problem in _other_names(attribute, "Attribute", version):
                yield ("attributes", place, *path), f"{named}: {problem}"
    if version != 3:
        for key in (key for key in SINCE_3 if key in data):
            problem = f"terms of version {version} have no `{key}`; leave it out"
            yield (key,), f"{whose}: {problem}{_or_new_id(version)}"


def _other_names(part: Data, model: str, version: int) -> Iterator[tuple[Path, str]]:
    """Keys by which another version calls what this one calls otherwise."""
    for former, since_3 in RENAMED[model].items():
        own, other = (since_3, former) if version == 3 else (former, since_3)
        if other in part:
            problem = f"terms of version {version} have `{own}` in place of `{other}`; write `{own}`"
            yield (other,), problem + _or_new_id(version)


def _or_new_id(version: int) -> str:
    """What helps if somebody wants a later version for a survey that is counted already."""
    return ", or give the survey a new id" if version < version_of_new_texts() else ""


def _absent(version: int) -> tuple[str, ...]:
    return UNTIL_2 if version == 3 else SINCE_3


def _names(model: str, version: int) -> dict[str, str]:
    """The fields of a model that have another name in texts of a version."""
    return RENAMED.get(model, {}) if version == 3 else {}


def _renamed(part: Any, names: dict[str, str]) -> Any:
    """The same keys and values, some under another name. What has no keys is left to validation."""
    if not isinstance(part, dict):
        return part
    return {names.get(key, key): value for key, value in part.items()}
