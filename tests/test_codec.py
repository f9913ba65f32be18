"""IBPCodec: the golden vectors, and that whatever goes in comes back."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnn_ibp.codec import IBPCodec

GOLDEN = json.loads((Path(__file__).parent / "golden" / "ibp_golden.json").read_text())


@pytest.mark.parametrize("golden", GOLDEN, ids=[golden["name"] for golden in GOLDEN])
def test_golden_rows_are_encoded_and_decoded_bit_for_bit(golden: dict[str, Any]) -> None:
    mask = [int(word, 16) for word in golden["mask"]]
    bitval = [int(word, 16) for word in golden["bitval"]]
    codec = IBPCodec(mask, bitval, 8 * golden["chunk_bytes"])
    rows = np.array([np.frombuffer(bytes.fromhex(row["row"]), np.uint8) for row in golden["rows"]])
    packed = codec.encode(rows)
    assert packed.bitmask.tolist() == [row["compressed"] for row in golden["rows"]]
    assert [packed.row(i).hex() for i in range(len(rows))] == [row["stored"] for row in golden["rows"]]
    assert packed.nbytes == sum(row["size"] for row in golden["rows"])
    assert np.array_equal(codec.decode(packed), rows)
