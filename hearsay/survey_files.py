"""Survey files: those of users, and the annotated examples.

Their terms are signed with an author's key: Ed25519 over the fingerprint (docs/device-protocol.md).
"""

import re
from base64 import b64encode
from importlib.resources import files
from pathlib import Path
from stat import S_IMODE

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from protocols.errors import SettingsError, SurveyError
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey, with_area_groups
from servers.private_files import create_private, read_limited, write_private

MAX_BYTES = 4 << 20
"""As many as the characters that a survey may have can take in UTF-8."""
MAX_BESIDE_BYTES = 16 << 20
"""Of a file beside a survey: more than a survey of any names may take as a record."""
EXAMPLES = ("mobility-week", "telemetry", "demand-year", "places", "installs")


def read_survey(path: Path) -> Survey:
    """The survey in a file, with the values and the areas in files beside it."""

    def beside(name: str) -> str:
        return read_text(path.parent / name, MAX_BESIDE_BYTES, "put it beside the survey, or leave it out")

    survey = parse_survey(read_text(path, MAX_BYTES, "give a survey file, such as survey.yaml"), str(path), beside)
    areas = {attribute.name: attribute.areas for attribute in survey.attributes if attribute.areas is not None}
    return with_area_groups(survey, {name: beside(file) for name, file in areas.items()}) if areas else survey


def read_text(path: Path, limit: int, hint: str) -> str:
    """A small text file in UTF-8."""
    try:
        return read_limited(path, limit).decode()
    except OSError as error:
        raise SurveyError(f"{path} cannot be read: {error.strerror}", hint) from None
    except UnicodeDecodeError:
        raise SurveyError(f"{path} is not UTF-8 text", "save it as UTF-8") from None


def example_text(name: str) -> str:
    """The text of one of the annotated examples."""
    if name not in EXAMPLES:
        raise SurveyError(f"there is no example {name!r}", f"examples: {', '.join(EXAMPLES)}")
    return (files("protocols") / "survey_text" / "examples" / f"{name}.yaml").read_text("utf-8")


def example(name: str) -> Survey:
    """One of the annotated examples."""
    return parse_survey(example_text(name), name)


def sign_file(file: Path, key: Path) -> tuple[str, str]:
    """Write the signature of a survey file's terms into it; returns their fingerprint, and the author for devices."""
    fingerprint, private = Scheme(read_survey(file)).fingerprint, _private_key(key)
    signature = b64encode(private.sign(fingerprint.encode())).decode()
    text, line = file.read_text("utf-8"), f'signature: "{signature}"'
    signed, lines = re.subn(r"(?m)^signature:.*$", line, text)
    if not lines:
        signed = f"{text.rstrip()}\n{line}\n"
    try:
        parse_survey(signed, str(file), lambda name: (file.parent / name).read_text("utf-8"))
    except SurveyError:
        raise SurveyError(
            f"{file} is not written key by key, so no line can be added to it", f"add this key to it: {line}"
        ) from None
    target = file.resolve()  # a link stays a link
    write_private(target, signed, S_IMODE(target.stat().st_mode))
    return fingerprint, b64encode(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def _private_key(path: Path) -> Ed25519PrivateKey:
    """The key in a file; a new one if there is no file."""
    if not path.exists():
        new = Ed25519PrivateKey.generate()
        create_private(path, new.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    try:
        found = load_pem_private_key(read_limited(path), password=None)
    except (ValueError, TypeError, OSError):
        found = None
    if not isinstance(found, Ed25519PrivateKey):
        raise SettingsError(f"{path} is no Ed25519 private key", "name a file in PEM without a password, or a new one")
    return found
