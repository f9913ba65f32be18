"""What the README shows runs as it stands there."""

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
FORMAT2 = README.parent / "gnn_ibp" / "ibp2" / "README.md"


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def test_python_lines_run_in_their_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(README)
    assert len(blocks) == 5
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), namespace)
    batch = next(iter(namespace["loader"]))
    assert batch.x.shape[1] == 64
    link_batch = next(iter(namespace["links"]))
    assert link_batch.edge_attr.shape == (link_batch.num_edges, 4)
    printed = capsys.readouterr().out
    assert "hit rate" in printed
    assert "bytes saved" in printed


def test_the_row_drawn_by_hand_is_what_the_format_makes_of_it():
    (block,) = python_blocks(FORMAT2)
    namespace: dict[str, Any] = {}
    exec(compile(block, str(FORMAT2), "exec"), namespace)
    drawn = re.search(r"^ *│ (2c.*)│$", FORMAT2.read_text(), re.MULTILINE)
    assert drawn
    assert bytes.fromhex(drawn[1].replace("│", "")) == namespace["stored"]


@pytest.mark.parametrize("path", ["CONTRIBUTING.md", "LICENSE", "CHANGELOG.md"])
def test_files_beside_it_are_there(path):
    assert (README.parent / path).is_file()


def test_links_lead_to_files():
    for page in (README, README.parent / "CONTRIBUTING.md", FORMAT2):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page}: {link}"
