"""Whichever write fails, or is the last: what is there is whole, and the next try gives the same bytes."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fault_library import Fault, build
from forks import ForkServer
from world import World

FEW = ("npz in place, both directions, through files", "folder, through files", "download", "training")
JOBS = (*FEW, "npz", "arrays", "folder", "OGB csv", "OGB npz")
ERRORS = (Fault.NO_SPACE, Fault.HALF_FULL, Fault.IO_ERROR, Fault.READ_ONLY)
KILLS = (Fault.KILL, Fault.TORN)
NUM_CHAINS = 40

MakeWorld = Callable[[str], World]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return build(tmp_path_factory.mktemp("library"))
    except FileNotFoundError as error:
        pytest.skip(f"no write can be made to fail: {error}")


@pytest.fixture(scope="module")
def world(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeWorld]:
    """The world of a job, made once."""
    worlds: dict[str, World] = {}
    with ForkServer(library) as server:

        def world(job: str) -> World:
            if job not in worlds:
                worlds[job] = World(server, job, tmp_path_factory.mktemp("world"))
            return worlds[job]

        yield world


@pytest.mark.parametrize("job", FEW)
def test_some_failing_writes_change_no_byte(world: MakeWorld, job: str) -> None:
    rng = random.Random(job)
    here = world(job)
    for fault in (rng.choice(ERRORS), rng.choice(KILLS)):
        here.survives([(rng.randint(1, len(here.calls)), fault)])


def test_calls_that_write_half_as_they_may_change_no_byte(world: MakeWorld) -> None:
    for job in ("folder, through files", "download"):
        here = world(job)
        here.restore()
        assert here.work(1, Fault.SHORT).status == 0
        assert here.is_done()


def test_a_fault_may_follow_upon_another(world: MakeWorld) -> None:
    rng = random.Random(0)
    here = world("folder, through files")
    here.survives([(rng.randint(1, len(here.calls)), rng.choice(KILLS + ERRORS)) for _ in range(4)])


@pytest.mark.parametrize("job", FEW)
def test_no_byte_goes_past_the_calls_that_are_counted(world: MakeWorld, job: str) -> None:
    here = world(job)
    written = sum(call.num_bytes for call in here.calls if call.name == "write")
    new = sum(len(content) for path, content in here.after.items() if here.before.get(path) != content)
    assert written >= new > 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("job", JOBS)
def test_no_failing_write_changes_a_byte(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], job: str
) -> None:
    """Every call full, failing and the last; the rarer faults at every third, from a seeded one on."""

    def half(number: int) -> tuple[list[str], Counter[str]]:
        with ForkServer(library) as server:
            here = World(server, job, tmp_path / str(number))
            plan = _every_call(here, random.Random(job))
            chains = _chains(here, random.Random(number))
            done = Counter[str]()
            for faults in (*plan[number::2], *chains):
                here.survives(faults)
                done.update(fault.name for _, fault in faults)
            return [call.name for call in here.calls], done

    with ThreadPoolExecutor(2) as threads:
        (calls, first), (_, second) = threads.map(half, range(2))
    with capsys.disabled():
        print(f"\n{job}: {len(calls)} calls, {_counts(Counter(calls))}; survived {_counts(first + second)}")


def _every_call(world: World, rng: random.Random) -> list[list[tuple[int, Fault]]]:
    plan = [[(at, fault)] for at in range(1, len(world.calls) + 1) for fault in _MAIN]
    for fault in (Fault.HALF_FULL, Fault.READ_ONLY, Fault.TORN):
        plan += [[(at, fault)] for at in range(rng.randint(1, 3), len(world.calls) + 1, 3)]
    return plan


def _chains(world: World, rng: random.Random) -> list[list[tuple[int, Fault]]]:
    """Faults one after the other, as many as it takes."""
    last = len(world.calls)
    return [
        [(rng.randint(1, last), rng.choice(KILLS + ERRORS)) for _ in range(rng.randint(2, 5))]
        for _ in range(NUM_CHAINS // 2)
    ]


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())


_MAIN: Sequence[Fault] = (Fault.NO_SPACE, Fault.IO_ERROR, Fault.KILL)
