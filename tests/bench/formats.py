"""Row formats in training: raw, version 1 and version 2 with a cache of the same bytes: one Markdown table.

python tests/bench/formats.py [SOURCE …] [--share 0.25] [--epochs 3] [--max-batches N] [--json FILE]

Each source, by default the built-in graph, is converted to both versions and trained with the settings of its
config: without a cache, then with one of `share` of the raw features' bytes. Fails where a loss or an
accuracy is not the same in all six runs, digit for digit.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from accuracy import results, train
from scale import hit_rate

FORMATS = {"raw": ["--raw"], "1": ["--format", "1"], "2": ["--format", "2"]}
"""What they are called, and their flags."""


@dataclass(frozen=True)
class Trained:
    """saved, hit_rates: by format. same_results: of all runs."""

    source: str
    cache_bytes: int
    saved: dict[str, float]
    hit_rates: dict[str, float]
    same_results: bool


def measure(source: str, share: float, flags: list[str]) -> Trained:
    """Converts `source` and trains on it in every format, cached and not."""
    found, saved, hit_rates, cache_bytes = set[tuple[str, ...]](), {}, {}, 0
    for name, of_format in FORMATS.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            plain = train(source, root, *flags, *of_format, "--no-cache")
            data = plain["data"]
            cache_bytes = int(share * data["raw_bytes"])
            cached = train(source, root, *flags, *of_format, "--cache-bytes", str(cache_bytes))
        saved[name] = 1 - data["stored_bytes"] / data["raw_bytes"] if name != "raw" else 0.0
        hit_rates[name] = hit_rate(cached["sources"])
        found |= {tuple(results(plain)), tuple(results(cached))}
    return Trained(source, cache_bytes, saved, hit_rates, len(found) == 1)


def table(trained: list[Trained]) -> str:
    """The Markdown table."""
    titles = ["source", "cache, bytes", *(f"saved by {name}" for name in FORMATS if name != "raw")]
    titles += [*(f"hit rate {name}" for name in FORMATS), "results the same"]
    rows = [titles, ["---", *["---:"] * (len(titles) - 2), ":---:"]]
    for one in trained:
        shares = [*(one.saved[name] for name in FORMATS if name != "raw"), *one.hit_rates.values()]
        same = "yes" if one.same_results else "NO"
        rows.append([one.source, f"{one.cache_bytes:,}", *(f"{share:.1%}" for share in shares), same])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", nargs="*", default=["synthetic"], help="as of --dataset of the training")
    parser.add_argument("--share", type=float, default=0.25, help="of the raw features' bytes, the cache's")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--max-batches", type=int, help="of an epoch")
    parser.add_argument("--json", type=Path, help="write every number to this file")
    args = parser.parse_args()
    flags = [f"--epochs={args.epochs}"] + [f"--max-batches={args.max_batches}"] * bool(args.max_batches)
    trained = []
    for source in args.sources:
        trained.append(measure(source, args.share, flags))
        print(f"{source}: done", file=sys.stderr)
    print(table(trained))
    if args.json:
        args.json.write_text(json.dumps([asdict(one) for one in trained], indent=1))
    return 0 if all(one.same_results for one in trained) else 1


if __name__ == "__main__":
    sys.exit(main())
