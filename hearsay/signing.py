"""Signing the terms of surveys with an author's key: Ed25519 (`Scheme.signed`, docs/device-protocol.md)."""

import re
from base64 import b64encode
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

from hearsay.survey_files import read_survey
from protocols.errors import SettingsError, SurveyError
from protocols.scheme import Scheme
from protocols.survey_text import CountedVersion, ReadBeside, parse_survey
from servers.private_files import create_private, read_limited, write_private


def sign_file(file: Path, key: Path, counted: CountedVersion | None = None) -> tuple[Scheme, str]:
    """Write the signature of a survey file's terms into it; returns the terms, and the author for devices.

    `counted` knows where the survey is counted (`read_survey`).
    """
    scheme = Scheme(read_survey(file, counted))
    private = _private_key(key)
    signature = b64encode(private.sign(scheme.signed)).decode()
    text, line = file.read_text("utf-8"), f'signature: "{signature}"'
    signed, lines = re.subn(r"(?m)^signature:.*$", line, text)
    if not lines:
        signed = f"{text.rstrip()}\n{line}\n"
    try:
        parse_survey(signed, str(file), _text_beside(file), version=scheme.survey.version)
    except SurveyError:
        raise SurveyError(
            f"{file} is not written key by key, so no line can be added to it", f"add this key to it: {line}"
        ) from None
    target = file.resolve()  # a link stays a link
    write_private(target, signed, S_IMODE(target.stat().st_mode))
    author = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return scheme, b64encode(author).decode()


def _text_beside(file: Path) -> ReadBeside:
    return lambda name: (file.parent / name).read_text("utf-8")


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
