"""Who may send: bearer tokens, client certificates, roles, rates; one report per credential, survey and period."""

import json
import ssl
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.door import Rate, credential_line, read_credentials
from gateway.door.credentials import digest_of
from gateway.http import tls_context
from gateway.service import Senders
from hearsay.commands.operations.gateway import app
from hearsay.serving.running import Exposure, TokenFile, linked_figures
from protocols.errors import SettingsError
from protocols.wire import REPORT, encode_frame
from stream_app.local import LocalStore
from tests.gateway.clients import bearer, credentials
from tests.gateway.test_routes import frame_of
from tests.gateway.world import SCHEME, KeepingLog, Moment, embedded, key_of, report, scheme, serving
from tests.helpers.certificates import Authority
from views.reading import Results

TOKENS = credentials(phone="device", van="edge")


def with_tokens(**more: object) -> Senders:
    return Senders(key_of, lambda: TOKENS, **more)  # type: ignore[arg-type]


def test_without_a_known_token_nothing_is_taken() -> None:
    with serving(KeepingLog(), senders=with_tokens(), names=["collect.example"]) as served:
        for headers in ({}, bearer("unknown"), {"authorization": "Basic cGhvbmU6"}, bearer("")):
            answer = served.post_one(report(), **headers)
            assert (answer.status, answer.reason) == (401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
        assert served.post_one(report(), **bearer("phone")).status == 201
        assert served.post_one(report(), host="collect.example", **bearer("van")).status == 201
        assert served.ask("GET", "/v1/surveys/buttons").status == 200  # terms are for everybody


def test_a_credential_counts_once_in_a_survey_and_period_through_any_gateway(tmp_path: Path) -> None:
    now = Moment()
    with embedded(tmp_path, now) as log, serving(log, now=now, senders=with_tokens()) as served:
        for _ in range(3):
            assert served.post_one(report(), **bearer("phone")).status == 201  # another token each time
        assert served.post([report(), report()], **bearer("van")).status == 201
        now.value += 86_400  # the next period
        assert served.post_one(report(of_period=1), **bearer("phone")).status == 201
        now.value += 2 * 86_400
    with closing(LocalStore.existing(tmp_path)) as store:
        assert [final.n for final in Results(store).histograms("buttons")] == [3, 1, 0]


def test_devices_do_not_report_where_only_a_source_knows_the_time() -> None:
    by_source = scheme("clock: source,")
    with serving(KeepingLog(), [by_source], senders=with_tokens()) as served:
        refused = served.post_one(report(by_source), **bearer("phone"))
        assert (refused.status, refused.reason) == (403, "forbidden") and "clock: source" in refused.json["detail"]
        assert served.post_one(report(by_source), **bearer("van")).status == 201


def test_only_edges_send_many_reports_at_once() -> None:
    frame = encode_frame(frame_of(report(), report()), SCHEME)
    with serving(KeepingLog(), senders=with_tokens()) as served:
        assert served.post([report()], **bearer("phone")).status == 403
        assert served.post_frame(frame, **bearer("phone")).status == 403
        assert served.post([report()], **bearer("van")).status == 201
        assert served.post_frame(frame, **bearer("van")).status == 201
        large = " " * 300_000
        headers = {"content_type": "application/json"}
        assert served.ask("POST", "/v1/reports", large, **headers, **bearer("phone")).status == 413
        assert served.ask("POST", "/v1/reports", large, **headers, **bearer("van")).status == 422


def test_a_credential_that_sends_too_often_is_told_when_to_come_back() -> None:
    now = Moment()
    with serving(KeepingLog(), now=now, senders=with_tokens(device_rate=Rate(0.1, 2))) as served:
        statuses = [served.post_one(report(), **bearer("phone")).status for _ in range(3)]
        assert statuses == [201, 201, 429]
        refused = served.post_one(report(), **bearer("phone"))
        assert (refused.reason, refused.headers["retry-after"]) == ("too-many-requests", "11")
        assert served.post_one(report(), **bearer("van")).status == 201
        now.value += 10
        assert served.post_one(report(), **bearer("phone")).status == 201


def test_client_certificates_are_credentials_and_name_edges(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path / "own"), Authority(tmp_path / "other", "stranger")
    tls = tls_context(*authority.issue("server"), authority.certificate)
    senders = Senders(key_of, certificates=True, edges=frozenset({"van"}))

    def post(content: object, certificate: tuple[Path, Path] | None) -> int:
        context = ssl.create_default_context(cafile=authority.certificate)
        if certificate is not None:
            context.load_cert_chain(*certificate)
        with closing(HTTPSConnection("127.0.0.1", served.port, timeout=60, context=context)) as connection:
            connection.request("POST", "/v1/reports", json.dumps(content), {"content-type": REPORT})
            return connection.getresponse().status

    log = KeepingLog()
    with serving(log, senders=senders, tls=tls) as served:
        phone = authority.issue("phone")
        assert post(report(), phone) == 201
        assert post(report(), authority.issue("phone")) == 201  # renewed: the same sender
        assert post([report()], phone) == 403
        assert post([report()], authority.issue("van")) == 201
        for unknown in (None, stranger.issue("phone")):
            with pytest.raises(OSError):
                post(report(), unknown)
    tokens = [int(token) for _, frame in log.decoded() for token in frame.tokens]
    assert len(tokens) == 3 and len(set(tokens)) == 2


def test_the_command_makes_tokens_whose_hashes_a_running_gateway_reads(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    new = ["token", "new", "--file", str(file)]
    file.write_text(credential_line("by hand", "device", "no line ends here").rstrip())
    file.chmod(0o600)
    made = json.loads(CliRunner().invoke(app, [*new, "--note", "a phone", "--json"], catch_exceptions=False).stdout)
    edge = CliRunner().invoke(app, [*new, "--role", "edge"], catch_exceptions=False).stdout.strip()
    assert made["token"] not in file.read_text() and edge not in file.read_text()
    assert file.stat().st_mode & 0o77 == 0
    known = TokenFile(file)()
    assert known[digest_of(made["token"])].role == "device" and known[digest_of(edge)].role == "edge"
    assert len(known) == 3


def test_a_file_of_tokens_may_change_while_it_is_used(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(credential_line("phone", "device"))
    tokens = TokenFile(file)
    assert set(tokens()) == {digest_of("phone")}
    file.write_text("# revoked\n\n" + credential_line("van", "edge", "with a note"))
    assert set(tokens()) == {digest_of("van")}
    file.write_text("no digest\n")
    assert set(tokens()) == {digest_of("van")}  # what is known holds
    with pytest.raises(SettingsError, match="line 1 is not a digest and a role"):
        read_credentials("no digest\n", "tokens")


def test_a_gateway_with_credentials_says_what_linked_reports_reveal() -> None:
    first, line = linked_figures([SCHEME])
    assert "link the reports of a sender" in first
    promise = SCHEME.guarantees
    assert line == (
        f"buttons: epsilon {promise.per_report.whole:.3g} in one report; "
        f"epsilon {promise.for_ever.whole:.3g} in all reports while values stay; "
        f"epsilon {promise.any(30).whole:.3g} in 30 reports whatever the values do"
    )


@pytest.mark.parametrize(
    ("exposure", "refused"),
    [
        (Exposure(), ""),
        (Exposure("::1"), ""),
        (Exposure("localhost"), ""),
        (Exposure("0.0.0.0"), "loopback address only"),
        (Exposure("0.0.0.0", tokens=Path("t")), "in the clear"),
        (Exposure("0.0.0.0", tokens=Path("t"), behind_proxy=True), ""),
        (Exposure("0.0.0.0", tokens=Path("t"), tls_certificate=Path("c")), "both a certificate and its key"),
        (Exposure("0.0.0.0", tokens=Path("t"), tls_certificate=Path("c"), tls_key=Path("k")), ""),
        (Exposure(client_authority=Path("a")), "needs TLS"),
        (Exposure(devices_per_minute=float("nan")), "--devices-per-minute"),
    ],
)
def test_nothing_is_exposed_by_accident(exposure: Exposure, refused: str) -> None:
    if refused:
        with pytest.raises(SettingsError, match=refused):
            exposure.check()
    else:
        exposure.check()


def test_metrics_and_a_page_without_credentials_are_not_for_those_behind_a_proxy() -> None:
    assert Exposure().only_here
    assert not any(each.only_here for each in (Exposure(names=("a.example",)), Exposure(behind_proxy=True)))
