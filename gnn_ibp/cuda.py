"""CUDA as the rest of the library sees it."""


class PinError(RuntimeError):
    """Memory that could not be page-locked."""
