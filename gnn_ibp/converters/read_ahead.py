"""The next block is read while the last one is worked on."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def read_ahead(blocks: Iterator[T]) -> Iterator[T]:
    """`blocks`, made one ahead by a thread: reading and unpacking take turns with nothing then.

    An error comes where its block would have come.
    """
    with ThreadPoolExecutor(1, "read-ahead") as thread:
        coming = thread.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = thread.submit(next, blocks, None)
            yield block
