"""The thread that syncs behind: it can always be stopped, whatever it is just doing."""
# pyright: basic

import threading

import pytest

from hansard.store.files import writer
from hansard.store.files.writer import BackgroundSync


class ClearsLate(threading.Event):
    """Clears a wish only when the wish to stop has come in between."""

    def __init__(self, stopped: threading.Event) -> None:
        super().__init__()
        self._stopped = stopped
        self._stopping = threading.Event()

    def set(self) -> None:
        super().set()
        if self._stopped.is_set():
            self._stopping.set()

    def clear(self) -> None:
        self._stopping.wait()
        super().clear()


def test_a_wish_to_stop_is_not_cleared_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SYNC_INTERVAL_SECONDS", 0)
    syncing = BackgroundSync(list)
    syncing._wanted = ClearsLate(syncing._stopped)
    syncing.request()
    stopping = threading.Thread(target=syncing.stop, daemon=True)
    late = threading.Timer(0.1, stopping.start)  # by then the thread is about to clear
    late.start()
    late.join()
    stopping.join(60)
    assert not stopping.is_alive()


def test_it_need_not_have_begun_to_be_stopped() -> None:
    BackgroundSync(list).stop()
