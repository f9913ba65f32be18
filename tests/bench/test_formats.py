"""The comparison of row formats in training goes through, and its results are the same in all."""

import formats
import pytest


@pytest.mark.slow
def test_a_small_graph_is_trained_in_every_format():
    trained = formats.measure("synthetic:3000", 0.25, ["--epochs", "1", "--fanout", "5,5"])
    assert trained.same_results
    assert 0 < trained.saved["1"] < trained.saved["2"]
    assert trained.hit_rates["raw"] < trained.hit_rates["1"] < trained.hit_rates["2"] < 1
    assert formats.table([trained]).count("\n") == 2
