"""The public surface of each room is pinned: whoever widens or narrows it does so on purpose."""

from __future__ import annotations

import importlib

import pytest

SURFACE = {
    "protocols": ["Attribute", "Keyring", "Question", "Respondent", "Scheme", "Survey", "parse_survey"],
    "memo_store": ["Ledger", "MemoStore", "Spending", "Standing", "StoreStats", "SurveyMemos", "local"],
    "analytics": [
        "Estimates",
        "all_windows",
        "by_gap",
        "clip_renormalise",
        "estimate",
        "estimate_all",
        "first_reports",
        "most_likely",
        "norm_sub",
        "smooth",
    ],
    "analytics.mobility": ["History", "MobilityReport", "Truth", "mobility_report"],
    "producers": ["Fleet", "Sink"],
    "producers.scenarios": [
        "SCENARIOS",
        "Presences",
        "Scenario",
        "scenario",
        "true_histogram",
        "unique_devices",
        "unique_histogram",
        "write_truth",
    ],
}


@pytest.mark.parametrize("room", SURFACE)
def test_a_room_exports_what_it_is_known_to_export(room: str) -> None:
    module = importlib.import_module(room)
    assert sorted(module.__all__) == sorted(SURFACE[room])
    assert all(hasattr(module, name) for name in module.__all__)
