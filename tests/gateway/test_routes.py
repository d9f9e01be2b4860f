"""What a gateway answers: to each report on its own, with the reasons of dead letters."""

import json
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from threading import Thread, Timer

import pytest
from structlog.testing import capture_logs

from gateway.http import Limits
from gateway.service import Senders
from protocols.scheme import Scheme
from protocols.wire import FRAME, REPORT, Frame, Reason, encode_frame, rows_frame
from protocols.wire.report import read_report
from stream_app.local import LocalStore
from tests.gateway.world import SCHEME, KeepingLog, Moment, embedded, report, scheme, serving
from tests.helpers.surveys import third
from views.reading import Results

DAY = 86_400


def frame_of(*reports: dict[str, object], of: Scheme = SCHEME) -> Frame:
    rows = [read_report(json.dumps(each).encode(), {of.survey.id: of}.get) for each in reports]
    return rows_frame(rows, of).sorted()  # type: ignore[arg-type]


def test_every_report_that_was_answered_201_is_counted_once(tmp_path: Path) -> None:
    now = Moment()
    with embedded(tmp_path, now=now) as log, serving(log, now=now) as served:
        single = report()
        assert served.post_one(single).status == 201
        assert served.post_one(single).status == 201  # the same again: counted before
        assert served.post([report(), report()]).status == 201
        lines = "\n".join(json.dumps(report()) for _ in range(3))
        assert served.ask("POST", "/v1/reports", lines, content_type="application/x-ndjson").status == 201
        assert served.ask("POST", "/v1/reports", "x\n" * 10_000, content_type="application/x-ndjson").status == 422
        assert served.post_frame(encode_frame(frame_of(report(), report(), report()), SCHEME)).status == 201
        now.value += DAY  # the period is over, and the hour of grace as well
    with closing(LocalStore.existing(tmp_path)) as store:
        (final,) = Results(store).histograms("buttons")
    assert (final.period, final.n) == (0, 9)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"gap": "0000"}, Reason.BAD_GAP),
        ({"gap": "0008"}, Reason.BAD_GAP),
        ({"token": "0" * 16}, Reason.BAD_TOKEN),
        ({"answers": {"colour": "03", "page": "0000"}}, Reason.BAD_VALUE),
        ({"answers": {"colour": "00", "page": "0004"}}, Reason.BAD_VALUE),
        ({"answers": {"colour": "00", "page": "00"}}, Reason.UNDECODABLE),
        ({"answers": {"colour": "00"}}, Reason.UNDECODABLE),
        ({"fingerprint": "0" * 32}, Reason.WRONG_FINGERPRINT),
        ({"survey": "other"}, Reason.UNKNOWN_SURVEY),
        ({"period": "00000005"}, Reason.TOO_FAR_AHEAD),
        ({"period": "ffffffff"}, Reason.TOO_FAR_AHEAD),
        ({"more": 1}, Reason.UNDECODABLE),
    ],
)
def test_a_wrong_report_is_refused_with_its_reason_and_the_others_are_taken(
    wrong: dict[str, object], reason: Reason
) -> None:
    log = KeepingLog()
    with serving(log) as served:
        alone = served.post_one(report(**wrong))
        assert (alone.status, alone.reason) == (422, reason)
        assert alone.json["detail"]
        among = served.post([report(), report(**wrong), report()])
    assert among.status == 200
    assert [each["status"] for each in among.json["results"]] == ["taken", "refused", "taken"]
    assert among.json["results"][1]["reason"] == reason
    assert sum(len(frame) for _, frame in log.decoded()) == 2


def test_a_period_is_open_from_shortly_before_its_begin_until_shortly_before_its_end_plus_grace() -> None:
    begin, now = 1_767_225_600.0, Moment()
    with serving(KeepingLog(), now=now) as served:
        for after, outcome in {
            -61: "too-far-ahead",
            -30: "taken",
            0: "taken",
            DAY + 3598: "taken",
            DAY + 3599.5: "late",
            DAY + 3601: "late",
        }.items():
            now.value = begin + after
            answer = served.post_one(report()).json
            assert answer.get("reason", answer.get("status")) == outcome, after


def test_rows_of_a_frame_are_judged_one_by_one() -> None:
    rows = sorted([report(), report(gap="0000"), report(), report(gap="0009")], key=lambda each: each["token"])
    with serving(KeepingLog()) as served:
        answer = served.post_frame(encode_frame(frame_of(*rows), SCHEME))
        broken = served.post_frame(b"no Arrow")
        other = scheme("minimum: 5,")
        foreign = served.post_frame(encode_frame(frame_of(report(other), of=other), other))
    assert answer.status == 200
    bad = [place for place, each in enumerate(rows) if each["gap"] != "0007"]
    assert answer.json == {"taken": 2, "refused": {"bad-gap": bad}}
    assert (broken.status, broken.reason) == (422, "undecodable")
    assert (foreign.status, foreign.reason) == (422, "wrong-fingerprint")


def test_terms_are_the_bytes_that_the_fingerprint_is_made_of_and_can_be_cached() -> None:
    with serving(KeepingLog()) as served:
        terms = served.ask("GET", "/v1/surveys/buttons")
        assert (terms.status, terms.body) == (200, SCHEME.terms)
        assert terms.headers["etag"] == f'"{SCHEME.fingerprint}"'
        assert "max-age" in terms.headers["cache-control"]
        again = served.ask("GET", "/v1/surveys/buttons", if_none_match=terms.headers["etag"])
        assert (again.status, again.body) == (304, b"")
        head = served.ask("HEAD", "/v1/surveys/buttons")
        assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(SCHEME.terms)))
        listed = served.ask("GET", "/v1/surveys").json["surveys"]
        assert listed == [{"id": "buttons", "title": "", "fingerprint": SCHEME.fingerprint}]
        assert served.ask("GET", "/v1/surveys/none").status == 404


def test_a_survey_of_version_3_is_listed_with_its_pin() -> None:
    last = third({"name": "a", "values": ["x", "y"]}, id="last", eps=1, publish_from=0)
    with serving(KeepingLog(), [SCHEME, last]) as served:
        listed = {each["id"]: each for each in served.ask("GET", "/v1/surveys").json["surveys"]}
        terms = served.ask("GET", "/v1/surveys/last").body
    assert listed["last"]["pin"] == sha256(terms).hexdigest()
    assert listed["last"]["fingerprint"] == listed["last"]["pin"][:32]
    assert "pin" not in listed["buttons"], "that of earlier versions is the fingerprint"


def test_a_log_that_fails_is_answered_503_and_the_same_report_is_taken_later_and_refusals_are_counted() -> None:
    log, sent = KeepingLog(fails=True), report()
    with serving(log, limits=Limits(head_bytes=2000)) as served:
        failed = served.post_one(sent)
        assert (failed.status, failed.headers["retry-after"]) == (503, "2")
        assert served.post([sent]).status == 503
        log.fails = False
        assert served.post_one(sent).status == 201
        assert served.ask("POST", "/v1/reports", "{}", content_type="text/plain").status == 415
        assert served.ask("GET", "/" + 2000 * "x").status == 431
        page = served.ask("GET", "/metrics").body.decode()
    assert len(log.frames) == 1
    for reason, requests in (("unavailable", 2), ("unsupported-media-type", 1), ("too-large", 1)):
        assert f'hearsay_gateway_refused_requests_total{{reason="{reason}"}} {requests}.0' in page


def test_when_writing_ends_for_good_everybody_who_waits_is_told_to_send_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(KeepingLog()) as served:
        monkeypatch.setattr("gateway.service.writing.cut_rows", cannot_be_done)
        answer = served.post_one(report())
        assert (answer.status, answer.headers["retry-after"]) == (503, "2")
        assert (type(served.writer.failed), served.writer.waiting) == (ArithmeticError, 0)


def cannot_be_done(*what: object) -> None:
    raise ArithmeticError


def test_a_report_that_is_written_only_after_its_period_may_be_closed_is_not_confirmed() -> None:
    log, now = KeepingLog(), Moment()
    log.may_write.clear()
    with serving(log, now=now) as served:
        answers = []
        thread = Thread(target=lambda: answers.append(served.post_one(report())))
        thread.start()
        while served.writer.waiting == 0:
            pass
        now.value += DAY
        Timer(0.05, log.may_write.set).start()
        thread.join(60)
        assert [answer.status for answer in answers] == [503]
        assert served.post_one(report()).reason == "late"


def test_what_waits_is_bounded_and_beyond_that_nothing_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.service.writing.MOST_WAITING", 10)
    log = KeepingLog()
    log.may_write.clear()
    with serving(log) as served:
        first = Thread(target=lambda: served.post([report() for _ in range(8)]))
        first.start()
        while served.writer.waiting < 8:
            pass
        refused = served.post([report() for _ in range(3)])
        assert (refused.status, refused.reason, refused.headers["retry-after"]) == (503, "unavailable", "1")
        log.may_write.set()
        first.join(60)
        assert served.post([report() for _ in range(3)]).status == 201
        assert served.writer.waiting == 0


def test_requests_that_are_not_for_a_gateway_are_refused_with_a_reason() -> None:
    with serving(KeepingLog()) as served:
        for method, path, headers, status in [
            ("GET", "/", {}, 404),
            ("POST", "/v1/none", {}, 404),
            ("PUT", "/v1/reports", {}, 405),
            ("POST", "/v1/surveys", {}, 405),
            ("POST", "/v1/reports", {"content_type": "text/plain"}, 415),
            ("POST", "/v1/reports", {"content_type": "application/json", "content_encoding": "gzip"}, 415),
            ("POST", "/v1/frames", {"content_type": "application/json"}, 415),
        ]:
            answer = served.ask(method, path, "{}" if method == "POST" else None, **headers)
            assert answer.status == status, (method, path)
            assert answer.reason and answer.json["detail"]


def test_only_this_machine_may_send_without_credentials() -> None:
    with serving(KeepingLog()) as served:
        assert served.post_one(report(), host="localhost:1").status == 201
        assert served.post_one(report(), host="[::1]:80").status == 201
        assert served.post_one(report(), host="collect.example").status == 421
        assert served.post_one(report(), x_forwarded_for="192.0.2.7").status == 403
        assert served.post_one(report(), origin="https://elsewhere.example").status == 403


def test_a_page_whose_name_was_made_to_lead_here_reads_nothing() -> None:
    with serving(KeepingLog(), names=["collect.example"]) as served:
        for path in ("/v1/surveys", "/v1/surveys/buttons", "/v1/openapi.json", "/live", "/ready", "/metrics"):
            for host, wanted in (("evil.example", 421), ("Collect.example:8080", 200), ("127.0.0.1", 200)):
                assert served.ask("GET", path, host=host).status == wanted, (path, host)
        assert served.ask("GET", "/metrics", x_forwarded_for="192.0.2.7").status == 404
        refused = served.ask("GET", "/metrics", host="127.0.0.1.evil.example")
        assert refused.reason == "misdirected" and "--name" in refused.json["detail"]


def test_health_and_metrics_say_how_much_and_nothing_about_private_presence() -> None:
    """Not even how many batches were written, or how many reports wait, where the reports are private."""
    private, log = scheme("presence_epsilon: 1,", id="private"), KeepingLog()
    with serving(log, [SCHEME, private], senders=Senders()) as served:
        assert served.post_one(report()).status == 201
        assert served.post_one(report(gap="0000")).status == 422
        log.may_write.clear()
        thread = Thread(target=served.post_one, args=[report(private)])
        thread.start()
        while served.writer.waiting == 0:
            pass
        assert served.writer.shown_waiting == 0
        log.may_write.set()
        thread.join(60)
        assert (served.writer.waiting, served.writer.shown_waiting) == (0, 0)
        log.fails = True
        with capture_logs() as logged:
            assert [served.post_one(report(private)).status for _ in range(2)] == [503, 503]
        assert len(logged) == 1
        assert served.ask("GET", "/live").json == {"live": True}
        assert served.ask("GET", "/ready").json == {"ready": True}
        page = served.ask("GET", "/metrics").body.decode()
    assert 'hearsay_gateway_reports_total{outcome="taken",survey="buttons"} 1.0' in page
    assert 'hearsay_gateway_reports_total{outcome="bad-gap",survey="buttons"} 1.0' in page
    assert "hearsay_gateway_write_seconds_count 2.0" in page
    assert "private" not in page and "unavailable" not in page


def test_the_description_names_every_route_content_type_and_reason() -> None:
    with serving(KeepingLog()) as served:
        described = served.ask("GET", "/v1/openapi.json").json
        refusal = described["components"]["schemas"]["Refusal"]["properties"]["reason"]["description"]
        assert refusal == "of reports one of " + ", ".join(Reason)
        bodies = [described["paths"][f"/v1/{what}"]["post"]["requestBody"]["content"] for what in ("reports", "frames")]
        assert REPORT in bodies[0] and FRAME in bodies[1]
        for path, methods in described["paths"].items():
            for method in methods:
                answer = served.ask(method.upper(), path.replace("{id}", "buttons"), b"" if method == "post" else None)
                assert answer.status == (200 if method == "get" else 415), path
