"""Saved model: a trained model in a file, with all that is needed to predict with it."""

import io
from pathlib import Path
from typing import Any

import torch

import gnn_ibp
from gnn_ibp.disk_file import NewFile
from gnn_ibp.errors import FormatError
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.normalize import Normalize


def save_model(path: Path, model: GraphSAGE, settings: dict[str, Any], **facts: float | int | None) -> None:
    """Writes `model` to `path`, whole or not at all; `settings` and `facts` in plain types stand beside it.

    The file is read by torch.load(path, weights_only=True), on machines without a GPU too: all tensors are
    the CPU's. Its "model" loads into torch_geometric.nn.models.GraphSAGE(in_dim, hidden, num_layers,
    num_classes), which then wants features normalized as "normalize" says.
    """
    normalize = model.normalize
    statistics = {name: buffer.cpu() for name, buffer in normalize.named_buffers()}
    content = {
        "version": gnn_ibp.__version__,
        "model": {name: weight.cpu() for name, weight in model.state_dict().items()},
        "shape": model.shape,
        "precision": model.precision,
        "normalize": {"kind": normalize.kind, "mean": None, "scale": None, **statistics},
        "settings": settings,
        **facts,
    }
    data = io.BytesIO()
    torch.save(content, data)  # straight to a full disk it ends in an error of its own that names no cause
    with NewFile(path) as file:
        file.write(data.getvalue())
        file.commit()


def load_model(path: Path) -> GraphSAGE:
    """The model in `path`, ready to predict. Raises FormatError when the file is none of ours or damaged."""
    with path.open("rb") as file:
        try:
            content = torch.load(file, weights_only=True)
            normalize = Normalize(**content["normalize"])
            model = GraphSAGE(**content["shape"], normalize=normalize, precision=content["precision"])
            model.load_state_dict(content["model"])
        except Exception as error:
            raise FormatError(f"{path} is no model that `gnn-ibp train --save` wrote: {error}") from None
    return model.eval()
