"""Change the kernels in ways that must be found, and see whether their check finds them.

    python tests/simt/mutate.py [--version 2] [NAME ...]

applies each mutant of mutants.py (or those named) to a copy of the kernels, runs gather_check.check_gather on
it, the cheapest of its CHECKS first, and prints what caught it. For row format version 2 these are the
mutants of ibp2_mutants.py and ibp2_gather_check.check_ibp2_gather. Without names the kernels as they are must
survive too. A check that does not end in time says nothing: the machine may be slow. The exit status is 1
when a mutant is not caught, or the kernels do not survive.
"""

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from host_build import HARNESS, KERNELS, BuildError
from kernel_launch import LaunchError, Options, UnfinishedError

LIMIT_S = 1200  # for a check

Check = Callable[[Path, str | None, Options], None]
"""Of the kernels in a folder, under a sanitizer or None, in one schedule: check_gather, for example."""


@dataclass(frozen=True)
class Mutant:
    """One fault: in `file`, a path below kernels/, `old` becomes `new`. `old` must occur exactly once."""

    name: str
    file: str
    old: str
    new: str


class Fate(StrEnum):
    CAUGHT = "caught"
    SURVIVED = "survived"
    UNFINISHED = "not finished in time"


@dataclass(frozen=True)
class Outcome:
    """How a mutant fared, and which check showed it, in words; none where it survived."""

    mutant: Mutant
    fate: Fate
    shown_by: str
    seconds: float


class MutantError(ValueError):
    """A mutant that cannot be tried: its text is not there, is there twice, or does not compile."""


def mutated_kernels(mutant: Mutant, folder: Path, kernels: Path = KERNELS) -> Path:
    """A copy of the kernels in `folder` with the mutant applied. Raises MutantError."""
    copy = folder / "kernels"
    shutil.copytree(kernels, copy, ignore=shutil.ignore_patterns("cpu"))
    file = copy / mutant.file
    if not file.is_file():
        raise MutantError(f"mutant {mutant.name}: there is no kernels/{mutant.file}")
    text = file.read_text()
    if text.count(mutant.old) != 1:
        raise MutantError(
            f"mutant {mutant.name}: its old text occurs {text.count(mutant.old)} times in {mutant.file}, "
            f"want once: {mutant.old!r}"
        )
    file.write_text(text.replace(mutant.old, mutant.new))
    return copy


def try_mutant(
    mutant: Mutant,
    check: Check,
    schedules: Sequence[tuple[str | None, Options]],
    kernels: Path = KERNELS,
    limit_s: float = LIMIT_S,
) -> Outcome:
    """Run the check on the mutant in one schedule after the other until it fails, or does not end.

    Raises MutantError.
    """
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        mutated = mutated_kernels(mutant, Path(folder), kernels)
        for sanitizer, options in schedules:
            failure = _failure(check, mutated, sanitizer, options, limit_s)
            if failure.startswith(BuildError.__name__):
                raise MutantError(f"mutant {mutant.name} proves nothing: {failure}")
            if failure:
                fate = Fate.UNFINISHED if failure.startswith(UnfinishedError.__name__) else Fate.CAUGHT
                shown_by = f"{sanitizer or options.order}: {failure}"
                return Outcome(mutant, fate, shown_by, time.monotonic() - start)
    return Outcome(mutant, Fate.SURVIVED, "", time.monotonic() - start)


def complaints(outcomes: Sequence[Outcome], as_they_are: Outcome | None = None) -> Iterator[str]:
    """Why a run does not prove that the check finds every fault, and no other; nothing where it does."""
    for fate in (Fate.SURVIVED, Fate.UNFINISHED):
        names = [outcome.mutant.name for outcome in outcomes if outcome.fate is fate]
        if names:
            yield f"{len(names)} {fate}: {', '.join(names)}"
    if as_they_are and as_they_are.fate is not Fate.SURVIVED:
        yield f"nothing is proved, the kernels as they are do not survive: {as_they_are.shown_by}"


def _failure(check: Check, kernels: Path, sanitizer: str | None, options: Options, limit_s: float) -> str:
    """How the check fails, "" if it does not. In a process of its own: a mutant may crash, or never end."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_report, args=(sender, check, kernels, sanitizer, options))
    process.start()
    sender.close()
    try:
        if not receiver.poll(limit_s):
            return f"{UnfinishedError.__name__}: the check still runs after {limit_s:g} s"
        return str(receiver.recv())
    except EOFError:
        process.join()
        return f"crashes, exit status {process.exitcode}"
    finally:
        process.kill()
        process.join()


def _report(sender: Connection, check: Check, kernels: Path, sanitizer: str | None, options: Options) -> None:
    try:
        check(kernels, sanitizer, options)
        sender.send("")
    except (AssertionError, LaunchError, BuildError) as error:
        sender.send(f"{type(error).__name__}: {error}")


def main() -> int:
    sys.path.append(str(HARNESS.parent))  # cases that other tests share
    from gather_check import CHECKS, check_gather
    from ibp2_gather_check import check_ibp2_gather
    from ibp2_mutants import MUTANTS as IBP2_MUTANTS
    from mutants import MUTANTS

    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=as_written)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of mutants; default: all")
    parser.add_argument("--version", type=int, choices=(1, 2), default=1, help="of the row format")
    args = parser.parse_args()
    names = args.names
    mutants, check = (MUTANTS, check_gather) if args.version == 1 else (IBP2_MUTANTS, check_ibp2_gather)
    unknown = set(names) - {mutant.name for mutant in mutants}
    if unknown:
        parser.error(f"there is no mutant {', '.join(sorted(unknown))}")
    attempt = partial(try_mutant, check=check, schedules=CHECKS)
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as processes:
        if not names:
            as_they_are = processes.submit(attempt, replace(mutants[0], new=mutants[0].old))
        outcomes = []
        for outcome in processes.map(attempt, [m for m in mutants if not names or m.name in names]):
            fate = f"{outcome.fate}: {' '.join(outcome.shown_by.split())[:90]}"
            print(f"{outcome.mutant.name:42} {outcome.seconds:6.1f} s  {fate}", flush=True)
            outcomes.append(outcome)
    found = list(complaints(outcomes, None if names else as_they_are.result()))
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
