"""Settings come from variables or a file, mistakes are named, secrets are not shown; key files are made once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from protocols.errors import SettingsError
from servers.private_files import secret_in
from servers.settings import KafkaSettings, load

KEY = "5ec2e7" * 8


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    return tmp_path / "hearsay.env"


def test_a_variable_wins_over_the_file_and_the_file_over_the_default(
    settings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_file.write_text("HEARSAY_KAFKA_BOOTSTRAP=file:1\nHEARSAY_REDIS_URL=redis://from-file\n")
    monkeypatch.setenv("HEARSAY_KAFKA_BOOTSTRAP", "variable:2")
    monkeypatch.setenv("HEARSAY_SETTINGS", str(settings_file))
    settings = load()
    assert settings.kafka.bootstrap == "variable:2"
    assert settings.redis.url == "redis://from-file"
    assert settings.kafka.security == "PLAINTEXT"


@pytest.mark.parametrize("in_file", ["", "_FILE"])
@pytest.mark.parametrize("in_variable", ["", "_FILE"])
def test_a_secret_in_a_variable_wins_over_the_file_however_each_is_given(
    in_file: str, in_variable: str, settings_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given(name: str, secret: str, how: str) -> str:
        place = tmp_path / f"{name}.{secret[:4]}"
        place.write_text(secret)
        return str(place) if how else secret

    for name in ("CLOCK_KEY", "KAFKA_SASL_PASSWORD", "REDIS_PASSWORD"):
        with settings_file.open("a") as file:
            file.write(f"HEARSAY_{name}{in_file}={given(name, '0f' * 16, in_file)}\n")
        monkeypatch.setenv(f"HEARSAY_{name}{in_variable}", given(name, "1e" * 16, in_variable))
    settings = load(settings_file)
    secrets = (settings.clock_key, settings.kafka.sasl_password, settings.redis.password)
    assert [secret.get_secret_value() for secret in secrets if secret is not None] == ["1e" * 16] * 3


@pytest.mark.parametrize("text", ["id: survey\nstart: 2026\n", "# settings\nHEARSAY_REDIS_URL\n", "\x00\xff"])
def test_a_file_that_holds_no_settings_is_refused(text: str, settings_file: Path) -> None:
    settings_file.write_text(text, "latin-1")
    with pytest.raises(SettingsError, match="HEARSAY_NAME=value"):
        load(settings_file)


def test_a_secret_is_read_from_a_file_of_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARSAY_CLOCK_KEY_FILE", "/dev/zero")
    with pytest.raises(SettingsError, match="cannot read /dev/zero: File too large"):
        load()


def test_secrets_are_used_but_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARSAY_CLOCK_KEY", KEY)
    monkeypatch.setenv("HEARSAY_KAFKA_SECURITY", "SASL_PLAINTEXT")
    monkeypatch.setenv("HEARSAY_KAFKA_SASL_USERNAME", "worker")
    monkeypatch.setenv("HEARSAY_KAFKA_SASL_PASSWORD", "open sesame")
    monkeypatch.setenv("HEARSAY_REDIS_PASSWORD", "open barley")
    settings = load()
    assert settings.clock_key_bytes() == bytes.fromhex(KEY)
    assert settings.kafka.client_options()["sasl_plain_password"] == "open sesame"
    assert settings.redis.client_options() == {"password": "open barley"}
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert not any(secret in shown for secret in (KEY, "sesame", "barley"))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("HEARSAY_KAFKA_BOOTSTRAPP=a:1", "HEARSAY_KAFKA_BOOTSTRAPP: there is no such setting"),
        ("HEARSAY_CLOK_KEY=12", "HEARSAY_CLOK_KEY: there is no such setting"),
        ("HEARSAY_KAFKA_SECURITY=TLS", "HEARSAY_KAFKA_SECURITY: Input should be 'PLAINTEXT', 'SSL'"),
        ("HEARSAY_KAFKA_SECURITY=SASL_SSL", "SASL_SSL needs a user name and a password"),
        ("HEARSAY_REDIS_URL=redis://me:sesame@store/0", "put it in HEARSAY_REDIS_PASSWORD"),
        ("HEARSAY_REDIS_URL=redis://store/0?password=sesame", "put it in HEARSAY_REDIS_PASSWORD"),
        ("HEARSAY_REDIS_URL=http://store", "a Redis URL starts with"),
        (f"export HEARSAY_GATEWAY_KEY={KEY}", "HEARSAY_GATEWAY_KEY is no setting any more"),
        ("HEARSAY_CLOCK_KEY=sesame", "HEARSAY_CLOCK_KEY: the clock key must be at least 16 bytes in hex"),
        ("HEARSAY_CLOCK_KEY=00ff", "HEARSAY_CLOCK_KEY: the clock key must be at least 16 bytes in hex"),
        ("HEARSAY_CLOCK_KEY_FILE=/no/such/file", "clock_key_file: cannot read /no/such/file"),
        (f"HEARSAY_CLOCK_KEY={KEY}\nHEARSAY_CLOCK_KEY_FILE=/a", "both clock_key and clock_key_file are given"),
    ],
)
def test_a_mistake_is_named_as_it_was_written_and_no_secret_is_repeated(
    line: str, complaint: str, settings_file: Path
) -> None:
    settings_file.write_text(line + "\n")
    with pytest.raises(SettingsError) as caught:
        load(settings_file)
    assert complaint in caught.value.message
    assert "sesame" not in str(caught.value)
    assert KEY not in str(caught.value)


def test_a_missing_file_or_key_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        load(tmp_path / "nowhere.env")
    with pytest.raises(SettingsError) as caught:
        load().clock_key_bytes()
    assert "HEARSAY_CLOCK_KEY" in caught.value.hint


def test_tls_checks_the_brokers_name_and_unusable_files_are_explained(tmp_path: Path) -> None:
    context = KafkaSettings(security="SSL").client_options()["ssl_context"]
    assert context.check_hostname
    with pytest.raises(SettingsError, match="TLS files cannot be used"):
        KafkaSettings(security="SSL", ssl_ca=tmp_path / "nowhere.pem").client_options()


def test_a_key_for_ever_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARSAY_GATEWAY_KEY_FILE", KEY)
    with pytest.raises(SettingsError, match="no setting any more") as caught:
        load()
    assert "hearsay gateway keys new" in str(caught.value.hint) and KEY not in str(caught.value)


def test_a_key_file_is_its_owners_alone(tmp_path: Path) -> None:
    secret_in(tmp_path / "device.key")
    assert (tmp_path / "device.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["device.key"], "nor is there a second copy of it"


@pytest.mark.parametrize("content", ["damaged", "", "00ff", "ab" * 15])
def test_a_key_file_that_holds_less_than_a_key_is_refused_and_never_replaced(tmp_path: Path, content: str) -> None:
    """Keys of any use are made here: with an empty one, anybody could close periods and take noise away."""
    path = tmp_path / "clock.key"
    path.write_text(content)
    with pytest.raises(SettingsError, match=r"clock\.key does not hold a key"):
        secret_in(path)
    assert path.read_text() == content


def test_whoever_needs_a_key_at_the_same_time_gets_the_same_one(tmp_path: Path) -> None:
    """As in containers that share a volume, all have the same process id."""
    with ThreadPoolExecutor(8) as threads:
        for number in range(20):
            start = Barrier(8)
            keys = {threads.submit(_after, start, tmp_path / f"{number}.key") for _ in range(8)}
            assert len({key.result() for key in keys}) == 1


def _after(start: Barrier, path: Path) -> bytes:
    start.wait(timeout=60)
    return secret_in(path)
