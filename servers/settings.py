"""Addresses of servers and the secrets for them: `HEARSAY_*` variables, or a file of the same lines.

    HEARSAY_KAFKA_BOOTSTRAP=broker-1:9093,broker-2:9093
    HEARSAY_KAFKA_SECURITY=SASL_SSL
    HEARSAY_KAFKA_SASL_USERNAME=worker
    HEARSAY_KAFKA_SASL_PASSWORD_FILE=/run/secrets/kafka

Nothing is read until `load()` is called. A variable wins over the file (named by the caller or by `HEARSAY_SETTINGS`).
A secret may be in a file of its own (`..._FILE`), and is never printed. A variable for one of the two wins over both.
"""

import hashlib
import os
import re
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from protocols.errors import SettingsError
from servers.private_files import read_limited

PREFIX = "HEARSAY_"
LINE = re.compile(rf"\s*(export\s+)?{PREFIX}\w+\s*=")
HOW_TO_WRITE = f"write one {PREFIX}NAME=value a line"
CLOCK_KEY_BYTES = 16
"""The shortest operator key accepted; the local stack makes one of 32."""
FORMER = {f"{PREFIX}GATEWAY_KEY", f"{PREFIX}GATEWAY_KEY_FILE"}
TOKEN_CHARACTERS = 16
"""The shortest token accepted for a dashboard."""


class _Section(BaseModel):
    """Settings: frozen, without unknown names, secrets also from files."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _read_secret_files(cls, values: Any) -> Any:
        """Put the content of each `x_file` in place of `x`; raises ValueError if both are given."""
        if not isinstance(values, dict):
            return values
        read = dict(values)
        for name, path in values.items():
            secret = name.removesuffix("_file")
            if secret != name and path is not None:
                if values.get(secret) is not None:
                    raise ValueError(f"both {secret} and {name} are given")
                try:
                    read[secret] = read_limited(Path(path)).decode().strip()
                except UnicodeDecodeError:
                    raise ValueError(f"{name}: {path} is not UTF-8 text") from None
                except OSError as error:
                    raise ValueError(f"{name}: cannot read {path}: {error.strerror}") from None
        return read


def has_password(url: str) -> bool:
    """Whether a URL contains a password, which would be printed with it.

    >>> has_password("postgresql://me:secret@host/db"), has_password("postgresql://me@host/db")
    (True, False)
    """
    return urlsplit(url).password is not None or "password" in parse_qs(urlsplit(url).query)


NO_KAFKA = "is it running? HEARSAY_KAFKA_* set its address and login; `hearsay stack up` starts one here"
"""The hint of every error about a cluster that fails."""


class KafkaSettings(_Section):
    """How to reach a Kafka cluster."""

    bootstrap: str = Field("127.0.0.1:9092", description="Brokers to start from, separated by commas.")
    prefix: str = Field("hearsay", description="What the names of the topics begin with; the workers' group, too.")
    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    sasl_password_file: Path | None = None
    ssl_ca: Path | None = Field(None, description="Trusted authorities; the system's when left out.")
    ssl_certificate: Path | None = None
    ssl_key: Path | None = None
    max_batch_bytes: int = Field(16 << 20, ge=1 << 20, description="The most that a batch may take in memory.")

    @model_validator(mode="after")
    def _sasl_is_complete(self) -> "KafkaSettings":
        if self.security.startswith("SASL") and not (self.sasl_username and self.sasl_password):
            raise ValueError(f"{self.security} needs a user name and a password")
        return self

    @property
    def brokers(self) -> list[str]:
        """The brokers to start from.

        >>> KafkaSettings(bootstrap="a:1, b:2").brokers
        ['a:1', 'b:2']
        """
        return [broker.strip() for broker in self.bootstrap.split(",") if broker.strip()]

    def ssl_context(self) -> ssl.SSLContext | None:
        """The TLS context that both Kafka clients take; None without TLS."""
        if not self.security.endswith("SSL"):
            return None
        try:
            context = ssl.create_default_context(cafile=self.ssl_ca)
            if self.ssl_certificate is not None:
                context.load_cert_chain(self.ssl_certificate, self.ssl_key)
        except OSError as error:
            raise SettingsError(f"the TLS files cannot be used: {error}", "check HEARSAY_KAFKA_SSL_*") from None
        return context

    def client_options(self) -> dict[str, Any]:
        """Keyword arguments that every client of kafka-python takes.

        >>> KafkaSettings().client_options()
        {'bootstrap_servers': ['127.0.0.1:9092'], 'security_protocol': 'PLAINTEXT'}
        """
        options: dict[str, Any] = {"bootstrap_servers": self.brokers, "security_protocol": self.security}
        context = self.ssl_context()
        if context is not None:
            options["ssl_context"] = context
        if self.sasl_password is not None:
            options |= {
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": self.sasl_username,
                "sasl_plain_password": self.sasl_password.get_secret_value(),
            }
        return options


class RedisSettings(_Section):
    """How to reach the memo store's Redis. Without a URL the embedded run starts a Redis of its own."""

    url: str | None = Field(None, description="redis://host:port/db, rediss:// for TLS, or unix:///path.")
    username: str | None = None
    password: SecretStr | None = None
    password_file: Path | None = None
    ssl_ca: Path | None = Field(None, description="Trusted authorities; the system's when left out.")
    ssl_certificate: Path | None = None
    ssl_key: Path | None = None

    @field_validator("url")
    @classmethod
    def _url_is_no_secret(cls, url: str | None) -> str | None:
        if url is not None and urlsplit(url).scheme not in ("redis", "rediss", "unix"):
            raise ValueError("a Redis URL starts with redis://, rediss:// or unix://")
        if url is not None and has_password(url):
            raise ValueError("a password in the URL would be printed: put it in HEARSAY_REDIS_PASSWORD")
        return url

    def client_options(self) -> dict[str, Any]:
        """Keyword arguments for `redis.Redis.from_url(settings.url, ...)`.

        >>> RedisSettings(url="redis://store:6379/0", username="fleet").client_options()
        {'username': 'fleet'}
        """
        options: dict[str, Any] = {}
        if self.username is not None:
            options["username"] = self.username
        if self.password is not None:
            options["password"] = self.password.get_secret_value()
        files = {"ssl_ca_certs": self.ssl_ca, "ssl_certfile": self.ssl_certificate, "ssl_keyfile": self.ssl_key}
        if self.url is not None and self.url.startswith("rediss:"):
            options |= {name: str(path) for name, path in files.items() if path is not None}
        return options


class DashboardSettings(_Section):
    """Who may look at a dashboard."""

    token: SecretStr | None = Field(None, description="What viewers enter; without one, everybody may look.")
    token_file: Path | None = None

    @field_validator("token")
    @classmethod
    def _token_is_long(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and len(token.get_secret_value()) < TOKEN_CHARACTERS:
            raise ValueError(f"the token must have at least {TOKEN_CHARACTERS} characters (openssl rand -hex 16)")
        return token


class LimitSettings(_Section):
    """The most that an edge reveals about a person, as largest log-ratios."""

    report: float = Field(20.0, gt=0, description="One report.")
    value: float = Field(1e6, gt=0, description="All answers of a year about an attribute that stays as it is.")
    year: float = Field(1e6, gt=0, description="All that answers of a year cost.")


class Settings(_Section, BaseSettings):
    """The settings of a process."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="_", env_nested_max_split=1)

    kafka: KafkaSettings = KafkaSettings()
    redis: RedisSettings = RedisSettings()
    dashboard: DashboardSettings = DashboardSettings()
    limits: LimitSettings = LimitSettings()
    clock_key: SecretStr | None = Field(None, description="The operator's key for clock records, in hex.")
    clock_key_file: Path | None = None
    presence_key: SecretStr | None = Field(None, description="The key of the noise on presence, in hex.")
    presence_key_file: Path | None = None
    sinks: str = Field("", description="Where workers write results besides the topics: addresses, between spaces.")

    @field_validator("sinks")
    @classmethod
    def _sinks_are_no_secret(cls, sinks: str) -> str:
        if any(map(has_password, sinks.split())):
            raise ValueError("a password in the address of a sink would be printed: put it in PGPASSWORD")
        return sinks

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Variables, then the file, of which a variable replaces both ways to give the same secret."""
        assert isinstance(env_settings, EnvSettingsSource) and isinstance(dotenv_settings, EnvSettingsSource)
        given = {name.removesuffix("_file") for name in env_settings.env_vars}
        lines = dotenv_settings.env_vars.items()
        dotenv_settings.env_vars = {name: line for name, line in lines if name.removesuffix("_file") not in given}
        return init_settings, env_settings, dotenv_settings

    @field_validator("clock_key", "presence_key")
    @classmethod
    def _key_is_hex(cls, key: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if key is not None:
            try:
                long_enough = len(bytes.fromhex(key.get_secret_value())) >= CLOCK_KEY_BYTES
            except ValueError:
                long_enough = False
            if not long_enough:
                name = str(info.field_name).replace("_", " ")
                raise ValueError(f"the {name} must be at least {CLOCK_KEY_BYTES} bytes in hex (openssl rand -hex 32)")
        return key

    def at(self, bootstrap: str | None) -> "Settings":
        """The same, on another cluster, if one is named.

        >>> Settings().at("broker:9092").kafka.bootstrap
        'broker:9092'
        """
        if bootstrap is None:
            return self
        return self.model_copy(update={"kafka": self.kafka.model_copy(update={"bootstrap": bootstrap})})

    def clock_key_bytes(self) -> bytes:
        """The key under which clock records are signed (docs/design.md, clock records)."""
        if self.clock_key is None:
            raise SettingsError(
                "closing a period needs the operator's clock key and none is set",
                "set HEARSAY_CLOCK_KEY or HEARSAY_CLOCK_KEY_FILE (`hearsay stack up` makes one)",
            )
        return bytes.fromhex(self.clock_key.get_secret_value())

    def presence_key_bytes(self) -> bytes:
        """The key from which noise on presence derives (PROTOCOLS 7).

        Anyone who has it can remove the noise. Set one where sources of reports hold the clock key; otherwise it is
        derived from the clock key.
        """
        if self.presence_key is None:
            return hashlib.sha256(b"hearsay presence\0" + self.clock_key_bytes()).digest()
        return bytes.fromhex(self.presence_key.get_secret_value())


def load(file: Path | None = None) -> Settings:
    """The settings of this process: variables first, then the file, then defaults."""
    chosen = file or (Path(os.environ[f"{PREFIX}SETTINGS"]) if os.environ.get(f"{PREFIX}SETTINGS") else None)
    if chosen is not None and not chosen.is_file():
        raise SettingsError(f"the settings file {chosen} does not exist", HOW_TO_WRITE)
    if chosen is not None:
        _check_lines(chosen)
    _refuse_former(os.environ)
    try:
        return Settings(_env_file=chosen)
    except ValidationError as error:
        raise SettingsError(
            _explained(error), "correct the variable, or the line in the file that HEARSAY_SETTINGS names"
        ) from None


def _check_lines(file: Path) -> None:
    """Refuse a file that is something else: lines that are no settings would be ignored."""
    try:
        lines = read_limited(file).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingsError(f"the settings file {file} cannot be read: {why}", HOW_TO_WRITE) from None
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#") and not LINE.match(line):
            raise SettingsError(f"the settings file {file}: line {number} is not a setting", HOW_TO_WRITE)
        _refuse_former([line.partition("=")[0].strip().removeprefix("export").strip()])


def _refuse_former(names: Iterable[str]) -> None:
    """Refuse what an earlier version had, and what must not be forgotten somewhere: it names people."""
    for name in names:
        if name.upper() in FORMER:
            raise SettingsError(
                f"{name} is no setting any more: with one key for ever, whoever has it names the senders of reports",
                "delete the key and all copies of it; make a pool of keys at the first gateway with "
                "`hearsay gateway keys new`, and let the others take it over with --pull or `keys import`",
            )


def _explained(error: ValidationError) -> str:
    """The first error, under the variable's name. Values are left out, because they may be secret."""
    first = error.errors(include_input=False, include_url=False)[0]
    name = PREFIX + "_".join(str(part) for part in first["loc"]).upper().removeprefix(PREFIX)
    what = (
        "there is no such setting" if first["type"] == "extra_forbidden" else first["msg"].removeprefix("Value error, ")
    )
    return f"{name}: {what}" if first["loc"] else what
