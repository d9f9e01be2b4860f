"""What other rooms may use."""

import memo_store


def test_the_room_offers_these_names_and_no_others() -> None:
    assert sorted(memo_store.__all__) == [
        "Ledger", "MemoStore", "Spending", "Standing", "StoreStats", "SurveyMemos", "local",
    ]  # fmt: skip
