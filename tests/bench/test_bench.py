"""`make bench` runs, its rounds take turns, and its table says what was measured."""

import json
from pathlib import Path

import bench
import pytest
import timing


def test_whole_table_comes_on_small_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "bench.json"
    with timing.threads(1):  # torch's threads spin where others use the processors
        bench.main(["--quick", "--data", str(tmp_path), "--json", str(file)])
    numbers, text = json.loads(file.read_text()), capsys.readouterr().out
    assert numbers["machine"]["processors"] >= 1
    assert {row["group"] for row in numbers["rows"]} == set(bench.MEASURES)
    for row in numbers["rows"]:
        assert min(row["moved"], row["seconds"], row["baseline_seconds"]) > 0
        assert row["ratio"] == pytest.approx(row["baseline_seconds"] / row["seconds"])
        assert row["name"] in text and row["baseline"] in text


def test_only_what_is_named_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    bench.main(["--quick", "--only", "fit"])
    lines = capsys.readouterr().out.splitlines()[2:]
    assert lines and all(line.startswith("fit ") for line in lines)


def test_candidate_and_baseline_take_turns_after_a_warm_up():
    turns: list[str] = []
    timing.rounds({name: lambda name=name: turns.append(name) for name in "ab"}, num_rounds=3)
    assert "".join(turns) == "abababab"


def test_seconds_are_the_median_of_all_rounds_but_the_first():
    times = iter([1000.0, 5.0, 1.0, 3.0])
    assert timing.rounds({"a": lambda: next(times)}, num_rounds=3, clock=timing.told) == {"a": 3.0}


def test_ratio_and_rate_say_how_much_faster():
    runs = {"ours": lambda: 0.5, "memcpy": lambda: 2.0}
    (row,) = timing.compare(4e9, "bytes", runs, "memcpy", num_rounds=1, clock=timing.told)
    assert (row.name, row.ratio) == ("ours", 4.0)
    assert bench.line("gather", row).split() == [
        *("gather", "ours", "8.00", "GB/s"),
        *("memcpy", "2.00", "GB/s", "4.00"),
    ]


def test_threads_are_as_before_afterwards():
    before = timing.ops.num_threads(), timing.torch.get_num_threads()
    with timing.threads(3):
        assert (timing.ops.num_threads(), timing.torch.get_num_threads()) == (3, 3)
    assert (timing.ops.num_threads(), timing.torch.get_num_threads()) == before
