"""Jobs that threads do in the background, waited for in their order."""

from collections import deque
from concurrent.futures import Future


def finish_oldest(jobs: deque[Future[None]], leave: int) -> None:
    """Waits until no more than the last `leave` jobs are pending, and raises what the others raised."""
    while len(jobs) > leave:
        jobs.popleft().result()
