"""Jobs that threads do in the background, waited for in their order."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def finish_oldest(jobs: deque[Future[None]], leave: int) -> None:
    """Waits until no more than the last `leave` jobs are pending, and raises what the others raised."""
    while len(jobs) > leave:
        jobs.popleft().result()


def worker(name: str, busy: bool) -> Executor:
    """Does jobs one after the other: in a thread of its own where it is `busy`, for few at once, here.

    To start a thread takes longer than to sort a small graph.
    """
    return ThreadPoolExecutor(1, name) if busy else _Here()


class _Here(Executor):
    """Does every job when it is submitted."""

    def submit(self, job: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future = Future[T]()
        try:
            future.set_result(job(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future
