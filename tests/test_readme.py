"""What the README shows runs as it stands there."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"


def test_python_lines_run_in_their_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
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


@pytest.mark.parametrize("path", ["CONTRIBUTING.md", "LICENSE", "CHANGELOG.md"])
def test_files_beside_it_are_there(path):
    assert (README.parent / path).is_file()


def test_links_lead_to_files():
    for name in ("README.md", "CONTRIBUTING.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", (README.parent / name).read_text()):
            assert link.startswith("http") or (README.parent / link).exists(), f"{name}: {link}"
