"""Memoised first rounds and the privacy ledger, on Redis."""

from memo_store.ledger import Ledger, Spending
from memo_store.local import local
from memo_store.presence import Standing
from memo_store.stats import StoreStats
from memo_store.store import MemoStore
from memo_store.survey_memos import SurveyMemos

__all__ = ["Ledger", "MemoStore", "Spending", "Standing", "StoreStats", "SurveyMemos", "local"]
