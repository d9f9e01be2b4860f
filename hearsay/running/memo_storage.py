"""The memo store of a data directory: a Redis of its own, or the one that HEARSAY_REDIS_URL names, and always the same.

Caps and presence are counted in one store. With another one, devices would memoise up to their caps once more, and
would be counted as new. So a data directory notes which store its devices have used, and refuses another. For each
survey it notes what was last seen of the store, so that a loss between two runs is noticed as one during a run is.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hearsay.data_directory import DataDirectory, damaged
from hearsay.running.limits import require_within
from memo_store.connection import Seen
from memo_store.period_keys import Forgetting
from memo_store.registry import registered
from memo_store.store import MemoStore
from memo_store.survey_memos import SurveyMemos
from protocols.errors import SettingsError
from protocols.respondent import Respondent
from servers.private_files import write_private
from servers.redis_server import local
from servers.settings import Settings

OWN = "its own Redis"


@dataclass(frozen=True)
class StoreNote:
    """Which store the devices of a data directory have used."""

    root: Path  # the data directory
    id: str
    where: str  # an address without secrets, or OWN


def noted_store(data: DataDirectory | None) -> StoreNote | None:
    """The store that a data directory has used; None if it has used none yet, or there is no directory."""
    if data is None or not (note := data.store_note).exists():
        return None
    lines = note.read_text().splitlines()
    if len(lines) != 2:
        raise damaged(note)
    return StoreNote(data.root, *lines)


@contextmanager
def memo_store(data: DataDirectory | None, settings: Settings, or_another: bool = False) -> Iterator[MemoStore]:
    """The memo store of the settings; without one, a store in the data directory, with a Redis of its own.

    Raises SettingsError if the directory's devices have used another one, unless it may be another.
    """
    known, url = None if or_another else noted_store(data), settings.redis.url
    if known is not None and known.where != OWN and url is None:  # before a Redis is started in it
        raise _another(known, OWN)
    with ExitStack() as opened:
        if url is not None:
            store = opened.enter_context(MemoStore(url, **settings.redis.client_options()))
        elif data is None:
            raise SettingsError("no memo store is named", "set HEARSAY_REDIS_URL, or name a data directory with --data")
        else:
            store = opened.enter_context(MemoStore(opened.enter_context(local(data.redis)).url))
            if data.new_store_mark.exists():
                if not store.has_lost_data:  # if it has, its memos are those of an earlier key
                    store.confirm_history()
                data.new_store_mark.unlink()
        if known is not None and store.id != known.id:
            raise _another(known, address(settings, store))
        yield store


@contextmanager
def survey_memos(
    data: DataDirectory, settings: Settings, respondent: Respondent, forgetting: Forgetting | None = None
) -> Iterator[SurveyMemos]:
    """The memos of a survey. What is seen of the store is noted in the data directory, losses of presence too."""
    survey = respondent.scheme.survey.id
    with memo_store(data, settings) as store:
        require_within(settings.limits, respondent.scheme, registered(store, respondent.keyring))
        memos = store.survey(respondent, _seen(data.epochs_note(survey)), forgetting)

        def note() -> None:
            _note_store(data, settings, store)
            data.add_presence_losses(survey, memos.presence_losses)
            write_private(data.epochs_note(survey), TypeAdapter(Seen).dump_json(memos.seen) + b"\n")

        note()
        try:
            yield memos
        finally:
            note()


def accept_loss(data: DataDirectory | None, settings: Settings, store: MemoStore) -> None:
    """Start a new history in a store, and let a data directory use it from now on.

    What the directory's surveys have seen of the store before stays noted, so their next run records the loss of
    presence. If the directory has used another store and this one has a confirmed history, that history goes on: it
    belongs to the devices of others.
    """
    known = noted_store(data)
    if known is None or known.id == store.id or not store.history_confirmed:
        store.accept_loss()
    if data is not None:
        _note_store(data, settings, store)
        data.loss_note.touch(mode=0o600)


def _note_store(data: DataDirectory, settings: Settings, store: MemoStore) -> None:
    if store.has_lost_data:
        data.loss_note.touch(mode=0o600)
    if store.id is not None:
        write_private(data.store_note, f"{store.id}\n{address(settings, store)}\n")
        data.new_store_mark.unlink(missing_ok=True)


def address(settings: Settings, store: MemoStore) -> str:
    """Where a store is, as it may be shown."""
    return OWN if settings.redis.url is None else store.where


def _another(known: StoreNote, now: str) -> SettingsError:
    if now == known.where:
        cause, remedy = "that Redis has lost them, or is another one", "restore it from a copy"
    elif now == OWN:
        cause, remedy = "HEARSAY_REDIS_URL is not set", "set HEARSAY_REDIS_URL as before"
    else:
        cause = f"HEARSAY_REDIS_URL names {now}"
        remedy = "unset it" if known.where == OWN else "set it as before"
    return SettingsError(
        f"the devices of {known.root} have their memos in {known.where}, and {cause}",
        f"{remedy}, or use another directory with --data; if the memos are lost, run "
        f"`hearsay memo accept-loss --data {known.root}`",
    )


def _seen(note: Path) -> Seen:
    try:
        return TypeAdapter(Seen).validate_json(note.read_text()) if note.exists() else ()
    except ValidationError:
        raise damaged(note) from None
