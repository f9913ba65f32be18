"""The CUDA device as far as it can be driven without one: torch.cuda and CuPy are stand-ins here."""

import contextlib
import ctypes
import gc
import importlib
import inspect
import mmap
import os
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from simt_cuda import SimtCuda, SimtEvent

from gnn_ibp import cuda_kernels, page_locked
from gnn_ibp.cuda import Cuda, Event, PinError

GPU = torch.device("cuda", 0)


class Runtime:
    """`cupy.cuda.runtime`: the device sees page-locked memory `shift` bytes away from the host's address."""

    def __init__(self, version: int = 13020, shift: int = 0, refuses: bool = False) -> None:
        self.version, self.shift, self.refuses = version, shift, refuses
        self.registered: dict[int, int] = {}
        self.unregistered: list[int] = []

    def runtimeGetVersion(self) -> int:  # noqa: N802
        return self.version

    def hostRegister(self, start: int, num_bytes: int, flags: int) -> None:  # noqa: N802
        if self.refuses:
            raise RuntimeError("cudaErrorMemoryAllocation: out of memory")
        assert flags == 3
        self.registered[start] = num_bytes

    def pointerGetAttributes(self, start: int) -> types.SimpleNamespace:  # noqa: N802
        return types.SimpleNamespace(devicePointer=start + self.shift)

    def hostUnregister(self, start: int) -> None:  # noqa: N802
        ctypes.string_at(start, self.registered.pop(start))  # a crash if the pages were unmapped before
        self.unregistered.append(start)


class RawModule:
    """`cupy.RawModule`: remembers what was compiled and launched, and on which stream."""

    compiled: list[tuple[str, tuple[str, ...]]]
    launched: list[tuple[object, ...]]
    streams: list[int]
    error: Exception | None

    def __init__(self, *, code: str, options: tuple[str, ...], backend: str) -> None:
        assert backend == "nvrtc"
        self.code, self.options = code, options

    def get_function(self, name: str) -> object:
        if self.error:
            raise self.error
        self.compiled.append((name, self.options))

        def launch(grid: tuple[int, ...], block: tuple[int, ...], values: tuple[object, ...]) -> None:
            self.launched.append((name, grid, block, values, self.streams[-1]))

        return launch


def a_cupy(runtime: Runtime, error: Exception | None = None) -> types.SimpleNamespace:
    streams = [-1]

    class Stream:
        @classmethod
        @contextlib.contextmanager
        def from_external(cls, stream: object):
            version, pointer = stream.__cuda_stream__()  # type: ignore[attr-defined]
            assert version == 0
            streams.append(pointer)
            yield
            streams.pop()

    raw_module = type(
        "RawModule", (RawModule,), {"compiled": [], "launched": [], "streams": streams, "error": error}
    )
    cuda = types.SimpleNamespace(
        runtime=runtime, Stream=Stream, Device=lambda index: contextlib.nullcontext(index)
    )
    return types.SimpleNamespace(__version__="14.2.0", cuda=cuda, RawModule=raw_module)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A torch that has one H200, and stream 77 as the current one."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    for name, value in {
        "init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_capability": lambda index: (9, 0),
        "get_device_name": lambda index: "NVIDIA H200",
        "get_device_properties": lambda device: types.SimpleNamespace(multi_processor_count=132),
        "mem_get_info": lambda device: (1000, 2000),
        "memory_reserved": lambda device: 300,
        "memory_allocated": lambda device: 200,
        "max_memory_reserved": lambda device: 900,
        "device": lambda device: contextlib.nullcontext(device),
        "current_stream": lambda device: types.SimpleNamespace(cuda_stream=77),
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(cuda_kernels, "_compiled", {})
    return monkeypatch


def with_cupy(monkeypatch: pytest.MonkeyPatch, cupy: object) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cupy)  # type: ignore[arg-type]


def raising(error: Exception):
    def function(*_: object, **__: object) -> None:
        raise error

    return function


def kernel_folder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "cuda").mkdir(parents=True)
    (folder / "cuda" / "some.cu").write_text("")
    monkeypatch.setattr(cuda_kernels, "KERNELS", folder)


# ---- opening --------------------------------------------------------------------------------------------


def test_importing_the_package_starts_neither_cupy_nor_cuda():
    code = (
        "import sys, gnn_ibp, gnn_ibp.cuda, torch\n"
        "assert 'cupy' not in sys.modules and not torch.cuda.is_initialized()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_usable_device_opens_with_its_index(gpu: pytest.MonkeyPatch):
    with_cupy(gpu, a_cupy(Runtime()))
    assert Cuda.available() is None
    cuda = Cuda.open()
    assert cuda.device == GPU
    assert cuda.num_processors == 132
    assert cuda.name == "NVIDIA H200"
    assert cuda.free_bytes() == 1000 + 300 - 200
    assert cuda.peak_bytes() == 900


NO_FOLDER = PermissionError(13, "Permission denied", "/.cupy")

PROBLEMS = {
    "no CUDA build": (lambda m: m.setattr(torch.version, "cuda", None), "built without CUDA"),
    "no driver": (
        lambda m: m.setattr(torch.cuda, "init", raising(RuntimeError("Found no NVIDIA driver\nmore"))),
        "no usable GPU: Found no NVIDIA driver",
    ),
    "old driver": (
        lambda m: m.setattr(torch.cuda, "init", raising(RuntimeError("The NVIDIA driver is too old"))),
        "The NVIDIA driver is too old",
    ),
    "no GPU": (lambda m: m.setattr(torch.cuda, "device_count", lambda: 0), "sees no GPU; look at nvidia-smi"),
    "old GPU": (
        lambda m: m.setattr(torch.cuda, "get_device_capability", lambda index: (7, 5)),
        'compute capability 7.5, the kernels need 8.0 or later; use device="cpu"',
    ),
    "no CuPy": (lambda m: m.setitem(sys.modules, "cupy", None), "pip install 'gnn-ibp[cuda13]'"),
    "no folder for CuPy": (
        lambda m: m.setattr(importlib, "import_module", raising(NO_FOLDER)),
        "in a folder that cannot be made .Permission denied: '/.cupy'.; set CUPY_CACHE_DIR",
    ),
    "CuPy for another CUDA": (
        lambda m: with_cupy(m, a_cupy(Runtime(version=12090))),
        "is for CUDA 12, torch .* for CUDA 13.0; pip uninstall cupy-cuda12x, then pip install",
    ),
    "old CuPy": (
        lambda m: delattr(sys.modules["cupy"].cuda.Stream, "from_external"),
        "is too old, want 14 or later",
    ),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_what_is_missing_is_said_with_its_remedy(gpu: pytest.MonkeyPatch, case: str):
    with_cupy(gpu, a_cupy(Runtime()))
    break_it, message = PROBLEMS[case]
    break_it(gpu)
    with pytest.raises(RuntimeError, match=message.replace("[", r"\[")) as raised:
        Cuda.open("cuda")
    assert Cuda.available() in str(raised.value)


def test_a_device_that_is_not_there_is_named(gpu: pytest.MonkeyPatch):
    with_cupy(gpu, a_cupy(Runtime()))
    with pytest.raises(RuntimeError, match=r"'cuda:3' cannot be used: torch sees 1 GPU, the last is cuda:0"):
        Cuda.open("cuda:3")
    with pytest.raises(ValueError, match="device is 'cpu', want cuda or cuda:N"):
        Cuda.open("cpu")


def test_cpu_torch_of_this_machine_is_refused():
    if torch.version.cuda is not None:
        pytest.skip("this torch is built with CUDA")
    with pytest.raises(RuntimeError, match="built without CUDA"):
        Cuda.open()


# ---- memory ---------------------------------------------------------------------------------------------


def test_device_memory_that_cannot_be_had_is_told_in_bytes(gpu: pytest.MonkeyPatch):
    cuda = Cuda(GPU, a_cupy(Runtime()))
    gpu.setattr(torch, "empty", raising(torch.cuda.OutOfMemoryError("CUDA out of memory")))
    with pytest.raises(MemoryError, match="5,000 bytes of cuda:0's memory cannot be had, 1,100 are free"):
        cuda.empty(5000)


@pytest.mark.parametrize("num_bytes", [1, 4096, 10_000, 3 << 20])
def test_pinned_memory_is_whole_pages_registered_in_place(gpu: pytest.MonkeyPatch, num_bytes: int):
    runtime = Runtime()
    pinned = Cuda(GPU, a_cupy(runtime)).pin(num_bytes)
    assert (pinned.shape, pinned.dtype) == ((num_bytes,), torch.uint8)
    assert pinned.data_ptr() % 4096 == 0
    ((start, registered),) = runtime.registered.items()
    assert start == pinned.data_ptr()
    assert num_bytes <= registered < num_bytes + mmap.PAGESIZE
    pinned.fill_(7)


def test_memory_is_unlocked_before_it_is_unmapped_when_the_last_view_goes(gpu: pytest.MonkeyPatch):
    runtime = Runtime()
    cuda = Cuda(GPU, a_cupy(runtime))
    pinned = cuda.pin(1 << 20)
    start = pinned.data_ptr()
    view = pinned.numpy()[100:200]
    del pinned
    gc.collect()
    assert runtime.registered and not runtime.unregistered
    del view
    gc.collect()
    assert runtime.unregistered == [start] and not runtime.registered
    assert cuda._page_locked.device_pointer(start) is None


def test_forked_child_neither_gets_nor_unlocks_the_memory(gpu: pytest.MonkeyPatch):
    if sys.platform != "linux":
        pytest.skip("only Linux keeps memory from forked processes")
    runtime = Runtime()
    pinned = Cuda(GPU, a_cupy(runtime)).pin(1 << 20).fill_(7)
    child = os.fork()
    if child == 0:  # nothing but this, whatever happens
        try:
            its_own = [mmap.mmap(-1, 1 << 20) for _ in range(8)]
            found = pinned.numpy().any()
            del pinned
            gc.collect()
            for pages in its_own:
                pages.write(bytes(1 << 20))  # none of them lay where the parent's memory does
            os._exit(2 if found else 1 if runtime.unregistered else 0)
        finally:
            os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pinned.sum() == 7 << 20


def test_after_a_fork_the_device_still_reads_the_pages_that_the_parent_writes(gpu: pytest.MonkeyPatch):
    """Where the system does not know how to wipe memory in a child, which sees these pages, then."""
    gpu.setattr(page_locked, "_WIPE_ON_FORK", -1)
    pinned = Cuda(GPU, a_cupy(Runtime())).pin(1 << 20).fill_(7)
    begin, end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(end)
            os.read(begin, 1)
            os._exit(int(pinned[0]))
        finally:
            os._exit(255)
    pinned.fill_(8)
    os.write(end, b"!")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 8
    os.close(begin), os.close(end)


def test_no_bytes_are_pinned_without_asking_the_driver(gpu: pytest.MonkeyPatch):
    assert Cuda(GPU, a_cupy(Runtime(refuses=True))).pin(0).numel() == 0


def test_refused_page_lock_tells_bytes_and_limit(gpu: pytest.MonkeyPatch):
    cuda = Cuda(GPU, a_cupy(Runtime(refuses=True)))
    with pytest.raises(PinError, match=r"8,192 bytes .* cannot be page-locked: cudaErrorMemory.*ulimit -l"):
        cuda.pin(5000)


def test_copy_wants_as_many_bytes_and_takes_any_dtype(gpu: pytest.MonkeyPatch):
    cuda = Cuda(GPU, a_cupy(Runtime()))
    source = torch.arange(6, dtype=torch.int32).view(2, 3)
    target = torch.zeros(24, dtype=torch.uint8)
    cuda.copy(target, source)
    assert torch.equal(target.view(torch.int32), source.view(-1))
    scalar = torch.zeros((), dtype=torch.int64)
    cuda.copy(scalar, torch.tensor([5]))
    assert scalar == 5
    with pytest.raises(ValueError, match="target has 24 bytes, source has 8"):
        cuda.copy(target, scalar)


def test_upload_without_page_locked_memory_still_copies_and_says_so(gpu: pytest.MonkeyPatch):
    cuda = Cuda(torch.device("cpu"), a_cupy(Runtime()))
    gpu.setattr(torch, "empty", raising(RuntimeError("CUDA error: out of memory\nmore")))
    with pytest.warns(UserWarning, match=r"40 bytes of page-locked .* had \(CUDA error: out of memory\);"):
        assert torch.equal(cuda.upload(torch.arange(5)), torch.arange(5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(cuda.upload(torch.arange(6)), torch.arange(6)), "said once"


# ---- streams and events ---------------------------------------------------------------------------------


class TorchEvent:
    """`torch.cuda.Event`, at a time of its own in milliseconds."""

    clock = 0.0

    def __init__(self, **settings: bool) -> None:
        assert settings == {"enable_timing": True, "blocking": True}
        self.recorded: list[object] = []

    def record(self, stream: object) -> None:
        TorchEvent.clock += 250.0
        self.at = TorchEvent.clock
        self.recorded.append(stream)

    def elapsed_time(self, later: "TorchEvent") -> float:
        return later.at - self.at


def test_events_are_recorded_on_the_current_stream_and_tell_seconds(gpu: pytest.MonkeyPatch):
    cuda = Cuda(GPU, a_cupy(Runtime()))
    waited = []
    streams = [types.SimpleNamespace(name=name, wait_event=waited.append) for name in ("first", "second")]
    gpu.setattr(torch.cuda, "Event", TorchEvent)
    gpu.setattr(torch.cuda, "current_stream", lambda device: streams[0])
    first, second = cuda.event(), cuda.event()
    assert second.seconds_since(first) == 0.25
    assert first._event.recorded == [streams[0]]
    gpu.setattr(torch.cuda, "current_stream", lambda device: streams[1])
    second.join()
    assert waited == [second._event]


def test_only_tensors_on_the_device_are_shared(gpu: pytest.MonkeyPatch):
    shared = []
    places = (torch.device("cpu"), GPU)
    tensors = [types.SimpleNamespace(device=place, record_stream=shared.append) for place in places]
    Cuda(GPU, a_cupy(Runtime())).share(*tensors)
    assert [stream.cuda_stream for stream in shared] == [77]


# ---- launching ------------------------------------------------------------------------------------------


def test_kernel_runs_on_the_current_stream_with_addresses_and_exact_scalars(
    gpu: pytest.MonkeyPatch, tmp_path: Path
):
    kernel_folder(gpu, tmp_path)
    cupy = a_cupy(Runtime())
    cuda = Cuda(torch.device("cpu"), cupy)  # CPU tensors are those of the device
    tensor = torch.arange(10, dtype=torch.int32)
    cuda.launch("some", "add", 3, 64, [tensor[2:], None, np.int32(-1), np.uint64(2**63)])
    ((name, grid, block, values, stream),) = cupy.RawModule.launched
    assert (name, grid, block, stream) == ("add", (3,), (64,), 77)
    assert values == (tensor.data_ptr() + 8, 0, -1, 2**63)
    assert [type(value) for value in values] == [np.uint64, np.uint64, np.int32, np.uint64]


def test_page_locked_argument_is_passed_where_the_device_sees_it(gpu: pytest.MonkeyPatch, tmp_path: Path):
    kernel_folder(gpu, tmp_path)
    cupy = a_cupy(Runtime(shift=1 << 40))
    cuda = Cuda(GPU, cupy)
    pinned = cuda.pin(5000)
    cuda.launch("some", "add", 1, 32, [pinned, pinned[4999:], pinned[:0]])
    ((*_, values, _),) = cupy.RawModule.launched
    assert values == (pinned.data_ptr() + (1 << 40), pinned.data_ptr() + 4999 + (1 << 40), 0)


def test_arguments_that_no_kernel_can_take_are_refused(gpu: pytest.MonkeyPatch, tmp_path: Path):
    kernel_folder(gpu, tmp_path)
    cuda = Cuda(GPU, a_cupy(Runtime()))
    with pytest.raises(ValueError, match="argument 1 is on cpu, want it on cuda:0 or page-locked"):
        cuda.launch("some", "add", 1, 32, [None, torch.zeros(3)])
    with pytest.raises(ValueError, match="argument 0 is not contiguous"):
        cuda.launch("some", "add", 1, 32, [torch.zeros(3, 4).T])
    with pytest.raises(TypeError, match="argument 0 is a int"):
        cuda.launch("some", "add", 1, 32, [5])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="grid is 0, block is 32"):
        cuda.launch("some", "add", 0, 32, [])


def test_kernel_is_compiled_once_however_many_threads_launch_it(gpu: pytest.MonkeyPatch, tmp_path: Path):
    kernel_folder(gpu, tmp_path)
    cupy = a_cupy(Runtime())
    cuda = Cuda(GPU, cupy)
    gate = threading.Barrier(8)

    def work() -> None:
        gate.wait()
        cuda.launch("some", "add", 1, 32, [])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cupy.RawModule.compiled) == 1
    assert len(cupy.RawModule.launched) == 8


def test_compilers_log_is_told_by_its_end(gpu: pytest.MonkeyPatch, tmp_path: Path):
    kernel_folder(gpu, tmp_path)
    log = "\n".join(f"line {number}" for number in range(1000))
    cuda = Cuda(GPU, a_cupy(Runtime(), error=Exception(log)))
    with pytest.raises(RuntimeError, match=r"compiling kernel add of kernels/cuda/some.cu") as raised:
        cuda.launch("some", "add", 1, 32, [])
    assert "line 999" in str(raised.value)
    assert "line 900" not in str(raised.value)


# ---- the stand-in of the other tests --------------------------------------------------------------------


@pytest.mark.parametrize("real, simulated", [(Cuda, SimtCuda), (Event, SimtEvent)])
def test_simulated_device_has_the_same_methods(real: type, simulated: type):
    def methods(kind: type) -> dict[str, list[tuple[str, object, object]]]:
        names = [name for name in vars(kind) if not name.startswith("_") and callable(getattr(kind, name))]
        parameters = {name: inspect.signature(getattr(kind, name)).parameters.values() for name in names}
        return {name: [(p.name, p.kind, p.default) for p in parameters[name]] for name in names}

    assert methods(real)
    assert methods(simulated) == methods(real)
