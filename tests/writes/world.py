"""World: a folder that a job works in, and what may be seen in it after one of its writes failed."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from fault_library import Fault
from forks import Answer, Children

from gnn_ibp.dataset import Dataset
from gnn_ibp.errors import FormatError
from gnn_ibp.train.cli import main

WORDS = {
    Fault.NO_SPACE: ("the disk is full", "free some space"),
    Fault.HALF_FULL: ("the disk is full", "free some space"),
    Fault.IO_ERROR: ("cannot be read or written", "look at the disk"),
    Fault.READ_ONLY: ("read-only", "choose another folder"),
}
"""For the cause, and for the remedy."""

EXISTS = "exists; choose another"

PASSING = "raw/arxiv.zip"
"""A file that comes and goes, as it is in the folder of sources."""

Files = Mapping[str, bytes]
"""Content by path."""


class World:
    """A job, done once in full: `before` lay there then, `after` came of it, by these `calls`.

    folder: a new one, in which all lies.
    """

    def __init__(self, children: Children, job: str, folder: Path) -> None:
        self._children, self._job, self._root = children, job, folder / "root"
        self._must(children.run(job, "begin", self._root))
        self._begin = read(self._root)
        self.before = contents(self._root)
        answer = self._must(self.work())
        self.after, self.calls = contents(self._root), answer.calls
        assert not list(filter(_is_hidden, self.after))
        assert all(main(["verify", str(meta.parent)]) == 0 for meta in self._root.rglob("meta.json"))

    def work(self, at: int = 0, fault: Fault = Fault.NONE) -> Answer:
        """Does the job in what is there; its `at`-th call fails."""
        return self._children.run(self._job, "work", self._root, at, fault)

    def restore(self) -> None:
        """Everything as it was before the job."""
        shutil.rmtree(self._root)
        for name, content in self._begin.items():
            path = self._root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def survives(self, faults: Sequence[tuple[int, Fault]]) -> None:
        """From the start, try after try fails as `faults` say, at which call and how; then one does not."""
        self.restore()
        for at, fault in faults:
            answer = self.work(at, fault)
            try:
                self.check(answer, fault)
            except AssertionError as error:
                error.add_note(f"{fault.name} at call {at} of {faults}: {answer.calls[at - 1 : at]}")
                raise
        try:
            self.goes_on()
        except AssertionError as error:
            error.add_note(f"after {faults}, the last at {answer.calls[faults[-1][0] - 1 :][:1]}")
            raise

    def check(self, answer: Answer, fault: Fault) -> None:
        """What is to be seen after a fault is whole, and the last line tells of it."""
        made = answer.status == 0 or EXISTS in answer.err  # the fault came too late, or did no harm
        assert made or (answer.status == -9 if fault.kills else answer.status == 1), answer.err
        there = contents(self._root)
        seen = {path for path in there if not _is_hidden(path)}
        assert seen >= self.before.keys()
        for path in seen:
            assert there[path] in self._good(path), f"{path} is not whole"
        for folder in self._made_folders():
            of_it = {path for path in self.after if path.startswith(folder)}
            assert of_it & seen in (set(), of_it), f"{folder} is not whole"
        for meta in self._root.rglob("meta.json"):
            assert _is_hidden(str(meta)) <= self._is_no_other(meta.parent)
        if made:
            assert seen == self.after.keys(), answer.err
        elif not fault.kills:
            self._check_words(answer.err, fault)

    def goes_on(self) -> None:
        """The next try gives what an undisturbed one gives, and nothing else is left."""
        was_made = contents(self._root).items() >= self.after.items()
        answer = self.work()
        assert answer.status == 0 or (was_made and EXISTS in answer.err), answer.err
        if answer.status and not self.is_done():  # what is left of raw files goes when they are read again
            shutil.rmtree(self._root / "ds")
            self._must(self.work())
        assert sorted(contents(self._root)) == sorted(self.after)
        assert self.is_done()

    def is_untouched(self) -> bool:
        """Whether nothing was done."""
        return contents(self._root) == self.before

    def is_done(self) -> bool:
        """Whether all is there as an undisturbed try leaves it."""
        return contents(self._root) == self.after

    def _good(self, path: str) -> set[bytes | None]:
        good = {self.before.get(path), self.after.get(path)} - {None}
        if path == PASSING:
            good.add((self._root.with_name("sources") / "arxiv.zip").read_bytes())
        if path.endswith(".json"):
            good.add(_stable(path, b'{"epochs": []}'))
        return good

    def _made_folders(self) -> set[str]:
        """Those at the top that are new, with a slash."""
        new = {path.split("/")[0] + "/" for path in self.after if "/" in path}
        return {folder for folder in new if not any(path.startswith(folder) for path in self.before)}

    def _is_no_other(self, folder: Path) -> bool:
        """Whether a folder under a temporary name is no data set, or the one that is to be."""
        try:
            Dataset.open(folder)
        except FormatError:
            return True
        made = {path.removeprefix("ds/"): content for path, content in self.after.items()}
        return contents(folder).items() <= made.items()

    def _check_words(self, err: str, fault: Fault) -> None:
        lines = [line for line in err.splitlines() if not line.startswith("gnn-ibp: warning: ")]
        assert len(lines) == 1 and lines[0].startswith("gnn-ibp: "), err
        for word in (*WORDS[fault], str(self._root)):
            assert word in lines[0], f"{word!r} is missing: {lines[0]}"

    @staticmethod
    def _must(answer: Answer) -> Answer:
        assert answer.status == 0, answer.err
        return answer


def read(folder: Path) -> dict[str, bytes]:
    """All files of a folder, by their path in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def contents(folder: Path) -> dict[str, bytes]:
    """The same without the times that are in some."""
    return {path: _stable(path, content) for path, content in read(folder).items()}


def _is_hidden(path: str) -> bool:
    """Whether a file has a temporary name, or lies in a folder that has."""
    return any(part.startswith(".") for part in path.split("/")) or path.endswith((".part", ".part.json"))


def _stable(path: str, content: bytes) -> bytes:
    """Of a report its losses, which do not depend on the clock."""
    if not path.endswith("report.json"):
        return content
    return repr([epoch["loss"] for epoch in json.loads(content)["epochs"]]).encode()
