"""The whole app in one process."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from stream_app.embedded import EmbeddedApp
from tests.stream_app.worlds import KEY, SCHEME, Event, Garbage, Recount, Reports, Row, Tick, deal, told, wire

EVENTS: list[Event] = [
    Reports(0, tuple(Row(token, gap=3, colour=token % 3, pages=token % 1024) for token in range(1, 60))),
    Reports(1, tuple(Row(token, gap=1, colour=1, pages=3) for token in range(1, 30))),
    Reports(0, tuple(Row(token, gap=2, colour=0, pages=1) for token in range(50, 70))),
    Garbage(b"neither fish nor fowl"),
    Tick(0),
    Reports(0, (Row(99),)),
    Reports(9, (Row(99),)),
    Reports(2, (Row(5, gap=9), Row(6, colour=7), Row(7))),
    Tick(3),
]


def finals(directory: Path, partitions: int) -> list[bytes]:
    with EmbeddedApp(directory, [SCHEME.survey], partitions, KEY, KEY) as app:
        for partition, events in enumerate(deal(EVENTS, partitions)):
            for event in events:
                app.send(partition, *wire(event))
        app.flush()
        recount = Recount.of(deal(EVENTS, partitions))
        assert {final.period: told(final) for final in app.store.histograms("s")} == recount.finals
        rejects = Counter[str]()
        for reasons in app.rejects.values():
            rejects.update(reasons)
        assert rejects == recount.rejects
        return [message.value for message in app.store.messages("histograms")]


def test_one_three_and_eight_partitions_give_the_same_final_bytes(tmp_path: Path) -> None:
    one = finals(tmp_path / "1", 1)
    assert len(one) == 4
    assert finals(tmp_path / "3", 3) == one
    assert finals(tmp_path / "8", 8) == one
