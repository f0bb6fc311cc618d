"""Every parser of a file or text, on damaged copies of real ones: only the project's own errors may come out.

    python -m tests.attack.parsers --inputs 1000000 [--only results,ptx] [--seed 7] [--keep FOLDER]

``--inputs`` is the number for all parsers together, shared among them by how long they take. Prints for each the
inputs, the share that it refused, the seconds, and its slowest input; and each kind of failure once, with the input's
number, by which it can be made again (``--only NAME --first NUMBER --inputs 1``). Ends with 1 if anything but errors of
ours came.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.attack.mutations import mutated
from tests.attack.readers import READERS, Reader
from tui_probe.errors import ProbeError

SLOW = 5.0
"""CPU seconds, which other processes do not stretch, that are too many for one input: the inputs are small."""


@dataclass
class Tally:
    """Results of the inputs of one parser. ``failures`` are by origin, with the first input."""

    name: str
    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    failures: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        share = self.refused / self.inputs if self.inputs else 0.0
        return f"{self.name:<16}{self.inputs:>10}{share:>9.0%}{self.seconds:>10.1f} s{self.slowest * 1e3:>10.1f} ms"


def attack(reader: Reader, folder: Path, numbers: range, *, seed: int = 0, keep: Path | None = None) -> Tally:
    """Give a parser the inputs of these numbers."""
    seeds, tally = reader.seeds(), Tally(reader.name)
    for number in numbers:
        data = mutated(random.Random(f"{seed} {reader.name} {number}"), seeds)
        begin = time.process_time()
        try:
            reader.read(data, folder)
        except ProbeError:
            tally.refused += 1
        except Exception as error:  # noqa: BLE001  which is what is looked for
            _note(tally, error, number, data, keep)
        took = time.process_time() - begin
        tally.inputs, tally.seconds, tally.slowest = tally.inputs + 1, tally.seconds + took, max(tally.slowest, took)
        if took > SLOW:
            tally.failures.setdefault("slow", f"input {number}: {took:.1f} s")
    return tally


def _note(tally: Tally, error: Exception, number: int, data: bytes, keep: Path | None) -> None:
    """Failures at one place in our code are one."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if "/tests/" not in frame.filename]
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
    key = f"{type(error).__name__} at {place}"
    if key not in tally.failures:
        ours = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in own if "tui_probe" in frame.filename]
        tally.failures[key] = f"input {number}: {error!s:.120} ({' < '.join(ours[-4:][::-1])})"
        if keep is not None:
            (keep / f"{tally.name}-{number}").write_bytes(data)


def shares(total: int, readers: Sequence[Reader]) -> dict[str, int]:
    """Return the number of inputs per parser: fewer for slower ones."""
    per_cost = total / sum(1 / reader.cost for reader in readers)
    return {reader.name: max(1, round(per_cost / reader.cost)) for reader in readers}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=20_000, metavar="N")
    parser.add_argument("--only", default="", metavar="NAME,…")
    parser.add_argument("--first", type=int, default=0, metavar="NUMBER")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where inputs that fail are kept")
    options = parser.parse_args(words)
    chosen = [reader for reader in READERS if not options.only or reader.name in options.only.split(",")]
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    failed, count = False, shares(options.inputs, chosen)
    print(f"{'parser':<16}{'inputs':>10}{'refused':>9}{'time':>12}{'slowest':>13}")
    for reader in chosen:
        with tempfile.TemporaryDirectory(prefix="tui-probe-") as folder:
            numbers = range(options.first, options.first + count[reader.name])
            tally = attack(reader, Path(folder), numbers, seed=options.seed, keep=options.keep)
        print(tally, flush=True)
        for key, words_of in tally.failures.items():
            print(f"    {key}: {words_of}", flush=True)
        failed = failed or bool(tally.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
