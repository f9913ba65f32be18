"""What the machine gives a run: the device that was asked for, or the CPU where auto finds no GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gnn_ibp.cuda import Cuda
from gnn_ibp.stages import processors
from gnn_ibp.train import machine


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(device: str = "cuda") -> Cuda:
        raise RuntimeError(f"device {device!r} cannot be used: there is none")

    monkeypatch.setattr(Cuda, "available", lambda: "there is none")
    monkeypatch.setattr(Cuda, "open", fail)


@pytest.mark.usefixtures("no_gpu")
def test_auto_takes_the_cpu_where_there_is_no_gpu_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert machine.open_device("auto") is None
    assert capsys.readouterr().out == "device: the CPU, because there is none\n"


@pytest.mark.usefixtures("no_gpu")
def test_cpu_looks_for_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert machine.open_device("cpu") is None
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_gpu_that_was_asked_for_is_not_replaced(device: str) -> None:
    with pytest.raises(RuntimeError, match=f"device '{device}' cannot be used"):
        machine.open_device(device)


def test_gpu_is_opened_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    monkeypatch.setattr(Cuda, "available", lambda: None)
    monkeypatch.setattr(Cuda, "open", lambda device="cuda": opened.append(device) or "opened")
    assert [machine.open_device(name) for name in ("auto", "cuda", "cuda:1")] == ["opened"] * 3
    assert opened == ["cuda", "cuda", "cuda:1"]


def test_cpu_has_a_name(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Tiny 1 @ 2 GHz\n\nmodel name\t: Tiny 1 @ 2 GHz\n")
    assert machine.processor_name(cpuinfo) == "Tiny 1 @ 2 GHz"
    assert machine.processor_name(tmp_path / "none")
    assert machine.device_facts(None)["device"] == "cpu"


@pytest.mark.parametrize(("asked", "wanted"), [(None, processors()), ("1", 1)])
def test_torch_has_a_thread_per_processor_or_as_many_as_the_environment_says(
    asked: str | None, wanted: int
) -> None:
    told = (
        "import torch; from gnn_ibp.train import machine; print(machine.fix_threads(None)['torch_threads'])"
    )
    given = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment = given | ({"OMP_NUM_THREADS": asked} if asked else {})
    ran = subprocess.run([sys.executable, "-c", told], env=environment, capture_output=True, text=True)
    assert (ran.stdout.strip(), ran.stderr) == (str(wanted), "")
