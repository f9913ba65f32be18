"""Downloads end with the very file that the server has, whatever the way to it is like."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import sleep as wait

import numpy as np
import pytest
from bad_server import Served, serving

from gnn_ibp.converters import download as module
from gnn_ibp.converters.download import ask, download, part_bytes, remove_downloaded

CONTENT = np.random.default_rng(0).bytes(100_000)
OTHER = np.random.default_rng(1).bytes(100_000)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between tries, which are not waited for."""
    waited: list[float] = []
    monkeypatch.setattr(module.time, "sleep", waited.append)
    monkeypatch.setattr(module, "BLOCK_BYTES", 4096)
    return waited


def fetched(served: Served, path: Path) -> list[str]:
    """Downloads and compares; returns what was said."""
    said: list[str] = []
    with serving(served) as url:
        download(ask(url), path, said.append)
    assert path.read_bytes() == served.content
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name, f"{path.name}.part.json"]
    remove_downloaded(path)
    assert not list(path.parent.iterdir())
    return said


def interrupted(served: Served, path: Path) -> None:
    """A download that is killed after some bytes."""

    def kill(_: str) -> None:
        raise KeyboardInterrupt

    with serving(served) as url, pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module.time, "sleep", kill)
        download(ask(url), path, print)
    assert not path.exists()


def test_what_is_announced_comes(tmp_path: Path) -> None:
    served = Served(CONTENT)
    assert fetched(served, tmp_path / "a.zip") == []
    assert served.requests == ["HEAD", "GET"]


def test_an_empty_file_is_legal(tmp_path: Path) -> None:
    fetched(Served(b""), tmp_path / "a.zip")


def test_cut_connections_are_taken_up_again_by_range(tmp_path: Path, pauses: list[float]) -> None:
    served = Served(CONTENT, cut_after=30_000)
    fetched(served, tmp_path / "a.zip")
    assert served.requests == ["HEAD", "GET", *(f"GET bytes={at}-" for at in (30_000, 60_000, 90_000))]
    assert pauses == [1, 1, 1]


def test_a_server_that_ignores_ranges_is_begun_again_with(tmp_path: Path) -> None:
    served = Served(CONTENT, ranges=False, cut_after=30_000, cuts=2)
    said = fetched(served, tmp_path / "a.zip")
    assert len(said) == 2 and "sends the file whole only: beginning again" in said[0]


def test_a_server_that_always_cuts_and_ignores_ranges_is_given_up(
    tmp_path: Path, pauses: list[float]
) -> None:
    with (
        serving(Served(CONTENT, ranges=False, cut_after=30_000)) as url,
        pytest.raises(
            OSError, match="cannot be downloaded: 30,000 of 100000 bytes came, nothing more in 6 tries"
        ),
    ):
        download(ask(url), tmp_path / "a.zip", print)
    assert pauses == [1, 2, 4, 8, 16, 32]
    assert not (tmp_path / "a.zip").exists()


@pytest.mark.parametrize("announced", [150_000, 100_001])
def test_a_file_shorter_than_announced_is_never_taken(tmp_path: Path, announced: int) -> None:
    with (
        serving(Served(CONTENT, announced=announced)) as url,
        pytest.raises(OSError, match=f"100,000 of {announced} bytes came, nothing more"),
    ):
        download(ask(url), tmp_path / "a.zip", print)
    assert not (tmp_path / "a.zip").exists()
    assert part_bytes(tmp_path / "a.zip") == 100_000


def test_without_a_length_the_end_of_the_answer_counts(tmp_path: Path) -> None:
    fetched(Served(CONTENT, no_length=True), tmp_path / "a.zip")


def test_a_killed_download_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    interrupted(Served(CONTENT, cut_after=40_000), path)
    assert part_bytes(path) == 40_000
    served = Served(CONTENT)
    with serving(served) as url, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_read_note", lambda path: ask(url))  # the port is another one
        served.requests.clear()
        said: list[str] = []
        download(ask(url), path, said.append)
    assert path.read_bytes() == CONTENT and "GET bytes=40000-" in served.requests
    assert said == ["a.zip.part is continued after 40,000 bytes"]


def test_a_download_killed_by_the_system_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    served = Served(CONTENT, stall_after=60_000)
    code = (
        "import sys; from pathlib import Path; from gnn_ibp.converters import download\n"
        "download.BLOCK_BYTES = 4096; download.download(download.ask(sys.argv[1]), Path(sys.argv[2]), print)"
    )
    with serving(served) as url:
        with subprocess.Popen([sys.executable, "-c", code, url, str(path)]) as child:
            while part_bytes(path) < 50_000:
                assert child.poll() is None
                wait(0.02)
            child.kill()
        there = part_bytes(path)
        served.stall_after = None
        served.requests.clear()
        download(ask(url), path, print)
    assert path.read_bytes() == CONTENT and not path.with_name("a.zip.part").exists()
    assert served.requests == ["HEAD", f"GET bytes={there}-"]


@pytest.mark.parametrize("change", [{"etag": '"two"'}, {"content": OTHER[:-1]}])
def test_a_file_that_changed_since_the_last_run_is_begun_again(tmp_path: Path, change: dict) -> None:
    path = tmp_path / "a.zip"
    served = Served(CONTENT, cut_after=40_000)

    def kill(_: str) -> None:
        raise KeyboardInterrupt

    with serving(served) as url:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(module.time, "sleep", kill)
            download(ask(url), path, print)
        served.content, served.cut_after = OTHER, None
        for name, value in change.items():
            setattr(served, name, value)
        said: list[str] = []
        download(ask(url), path, said.append)
    assert path.read_bytes() == served.content
    assert any("another one than a.zip.part was begun with" in line for line in said)


@pytest.mark.parametrize("if_range", [True, False])
@pytest.mark.parametrize(
    "change", [{"etag": '"two"'}, {"last_modified": "Tue, 02 Jan 2024 00:00:00 GMT"}, {"content": OTHER[:-7]}]
)
def test_a_file_that_changes_between_two_tries_is_begun_again(
    tmp_path: Path, change: dict, if_range: bool
) -> None:
    def replace(served: Served) -> None:
        if len(served.requests) == 2:
            served.content, served.cut_after = OTHER, None
            for name, value in change.items():
                setattr(served, name, value)

    etag = None if "last_modified" in change or "content" in change else '"one"'
    served = Served(
        CONTENT,
        etag=etag,
        last_modified="Mon, 01 Jan 2024 00:00:00 GMT" if "last_modified" in change else None,
        cut_after=30_000,
        if_range=if_range,
        before=replace,
    )
    said = fetched(served, tmp_path / "a.zip")
    assert any("changed meanwhile" in line for line in said)


def test_a_kill_as_a_changed_file_is_begun_again_mixes_no_files(tmp_path: Path) -> None:
    path, steps = tmp_path / "a.zip", list[object]()

    def replace(served: Served) -> None:
        if len(served.requests) == 2:
            served.content, served.etag, served.cut_after = OTHER, '"two"', None

    def killed_at_the_second(step: Callable[..., None]) -> Callable[..., None]:
        def taken(*args: object) -> None:
            if served.etag == '"two"':
                steps.append(step)
                if len(steps) == 2:
                    raise KeyboardInterrupt
            step(*args)

        return taken

    served = Served(CONTENT, cut_after=30_000, before=replace)
    with serving(served) as url:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(module, "_write_note", killed_at_the_second(module._write_note))
            patch.setattr(module._Transfer, "_restart", killed_at_the_second(module._Transfer._restart))
            download(ask(url), path, print)
        download(ask(url), path, print)
    assert path.read_bytes() == OTHER


def test_a_file_that_changes_with_every_try_is_given_up(tmp_path: Path) -> None:
    def replace(served: Served) -> None:
        served.etag = f'"{len(served.requests)}"'

    with (
        serving(Served(CONTENT, cut_after=30_000, before=replace)) as url,
        pytest.raises(OSError, match=r"cannot be downloaded.*the file changed on the server"),
    ):
        download(ask(url), tmp_path / "a.zip", print)


def test_refusals_that_pass_are_waited_for_longer_and_longer(tmp_path: Path, pauses: list[float]) -> None:
    fetched(Served(CONTENT, refuse=3), tmp_path / "a.zip")
    assert pauses == [1, 2, 4]


@pytest.mark.parametrize("status", [404, 410])
def test_refusals_that_stay_end_at_once(tmp_path: Path, pauses: list[float], status: int) -> None:
    with (
        serving(Served(CONTENT, refuse=99, status=status)) as url,
        pytest.raises(OSError, match=f"cannot be downloaded: the server says {status}"),
    ):
        ask(url)
    assert pauses == []


def test_a_server_that_does_not_know_head_is_asked_otherwise(tmp_path: Path) -> None:
    fetched(Served(CONTENT, head=False), tmp_path / "a.zip")


def test_a_server_that_is_not_there_is_given_up(tmp_path: Path) -> None:
    with serving(Served(CONTENT)) as url:
        pass
    with pytest.raises(OSError, match="cannot be reached"):
        ask(url)


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    with (tmp_path / "a.zip.part").open("wb") as other:
        fcntl.flock(other.fileno(), fcntl.LOCK_EX)
        with serving(Served(CONTENT)) as url, pytest.raises(OSError, match="another process is writing"):
            download(ask(url), tmp_path / "a.zip", print)
        assert os.fstat(other.fileno()).st_size == 0


def test_what_another_process_completed_just_now_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, part = tmp_path / "file", tmp_path / "file.part"
    part.write_bytes(b"whole")
    monkeypatch.setattr(module.fcntl, "flock", lambda *_: part.rename(path))  # between opening and locking
    monkeypatch.setattr(module, "TRIES", 1)
    with pytest.raises(OSError, match=r"another process .*file\.part.*type the same again"):
        download(module.RemoteFile("http://127.0.0.1:9/file", 9, None, None), path, print)
    assert path.read_bytes() == b"whole"


def test_a_full_disk_is_no_reason_to_try_again(
    tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, block: bytes) -> None:
        raise module._WriteError(OSError(28, "No space left on device", "a.zip.part"))

    monkeypatch.setattr(module._Transfer, "_append", full)
    with serving(Served(CONTENT)) as url, pytest.raises(OSError, match="No space left on device"):
        download(ask(url), tmp_path / "a.zip", print)
    assert pauses == []
