"""The word for a device opens it, or says what is wrong with the word or the machine."""

import pytest
import torch
from simt_cuda import SimtCuda

from gnn_ibp.device import word
from gnn_ibp.device.word import device_word, open_device


class NoCuda(SimtCuda):
    @classmethod
    def open(cls, device="cuda"):
        raise RuntimeError(f"device {device!r} cannot be used: no GPU")

    @classmethod
    def available(cls):
        return "no GPU"


class OneCuda(SimtCuda):
    @classmethod
    def open(cls, device="cuda"):
        cuda = cls()
        cuda.opened_as = device
        return cuda


def test_cpu_is_no_device_and_asks_for_none(monkeypatch):
    monkeypatch.setattr(word, "Cuda", None)
    assert open_device("cpu") is None
    assert open_device(torch.device("cpu")) is None


def test_auto_takes_the_gpu_where_one_can_be_used(monkeypatch):
    monkeypatch.setattr(word, "Cuda", OneCuda)
    assert isinstance(open_device("auto"), OneCuda)


def test_auto_is_the_cpu_without_a_word_where_none_can_be_used(monkeypatch, recwarn):
    monkeypatch.setattr(word, "Cuda", NoCuda)
    assert open_device("auto") is None
    assert not recwarn.list


@pytest.mark.parametrize("device", ["cuda", "cuda:1", torch.device("cuda:1")])
def test_gpu_that_is_asked_for_is_opened_or_an_error(monkeypatch, device):
    monkeypatch.setattr(word, "Cuda", OneCuda)
    assert open_device(device).opened_as == str(device)
    monkeypatch.setattr(word, "Cuda", NoCuda)
    with pytest.raises(RuntimeError, match="no GPU"):
        open_device(device)


def test_open_device_is_taken_as_it_is():
    cuda = SimtCuda()
    assert open_device(cuda) is cuda
    assert device_word(cuda) == "cpu"
    assert device_word("auto") == "auto"


@pytest.mark.parametrize(
    "device", ["gpu", "CUDA", "cuda:", "cuda:x", "cpu:0", "mps", "", torch.device("meta")]
)
def test_other_words_are_refused_with_those_there_are(device):
    with pytest.raises(ValueError, match='possible are "auto", "cpu", "cuda"'):
        open_device(device)


@pytest.mark.parametrize("device", [0, None, 1.5])
def test_what_names_no_device_is_refused(device):
    with pytest.raises(TypeError, match="wanted is a word"):
        open_device(device)
