"""The device that serves rows and trains: the words of `device=`, as a `Cuda`, or None for the CPU."""

import re

import torch

from gnn_ibp.cuda import Cuda

Device = str | torch.device | Cuda
"""What `open_device` takes."""


def open_device(device: Device) -> Cuda | None:
    """The device that `device` names; None means the CPU.

    device: "cpu"; "cuda" or "cuda:1"; "auto": a GPU where one can be used, the CPU otherwise; or a device
        that is open already.

    Raises ValueError for another word, TypeError for what names no device, RuntimeError (cause and remedy)
    where a GPU was asked for and cannot be used.
    """
    if not isinstance(device, str | torch.device):
        if not hasattr(device, "launch"):
            raise TypeError(
                f"device is {device!r} of type {type(device).__name__}, wanted is a word like cuda"
            )
        return device
    word = str(device)
    if word == "auto":
        return Cuda.open() if Cuda.available() is None else None
    if word == "cpu":
        return None
    if not re.fullmatch(r"cuda(:\d+)?", word):
        raise ValueError(f'device is {word!r}, possible are "auto", "cpu", "cuda", "cuda:0", "cuda:1" …')
    return Cuda.open(word)


def device_word(device: Device) -> str:
    """A word by which another process opens the same device."""
    return str(device if isinstance(device, str | torch.device) else device.device)
