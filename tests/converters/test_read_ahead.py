"""Reading ahead changes when blocks are made, and nothing else."""

import threading
from collections.abc import Iterator

import pytest

from gnn_ibp.converters.read_ahead import read_ahead


def test_blocks_come_in_order_and_one_is_made_ahead() -> None:
    made = [threading.Event() for _ in range(4)]

    def blocks() -> Iterator[int]:
        for number, event in enumerate(made):
            event.set()
            yield number

    stream = read_ahead(blocks())
    assert next(stream) == 0 and made[1].wait(5)
    assert not made[2].wait(0.05)
    assert list(stream) == [1, 2, 3]
    assert list(read_ahead(iter(()))) == []


def test_an_error_comes_in_its_place() -> None:
    def blocks() -> Iterator[int]:
        yield 0
        raise ValueError("damaged")

    stream = read_ahead(blocks())
    assert next(stream) == 0
    with pytest.raises(ValueError, match="damaged"):
        next(stream)


def test_no_thread_is_left_of_a_stream_that_is_not_read_to_its_end() -> None:
    before = threading.active_count()
    stream = read_ahead(iter(range(100)))
    next(stream)
    assert threading.active_count() == before + 1
    stream.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
