"""How much memory the process takes, at most."""

import resource
import threading

from gnn_ibp.budget import used_memory


class PeakMemory:
    """Watches the memory of this process while it is entered.

    rss_bytes: the most that was resident, pages of files included, since the process began.
    anon_bytes: the most that was resident without a file behind it, seen every `interval_s` seconds; this is
    what the process really needs. None where /proc does not tell.
    """

    def __init__(self, interval_s: float = 0.05) -> None:
        self.anon_bytes: int | None = None
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak-memory", daemon=True)

    def __enter__(self) -> "PeakMemory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def rss_bytes(self) -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def look(self) -> None:
        """Takes the memory of this moment into account."""
        now = anon_bytes()
        if now is not None:
            self.anon_bytes = max(now, self.anon_bytes or 0)

    def _watch(self) -> None:
        self.look()
        while not self._stop.wait(self._interval_s):
            self.look()


def anon_bytes() -> int | None:
    """Resident bytes of this process without a file behind them, shared memory included; None if unknown."""
    return used_memory() or None
