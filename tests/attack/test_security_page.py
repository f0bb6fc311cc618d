"""The page of promises names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (?!promise|---|\*\*)(?P<promise>.+) \| (?P<tests>.*) \|$", re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_each_promise_has_a_test_that_is_there() -> None:
    promises, _, _ = (ROOT / "SECURITY.md").read_text().partition("## Attack tests")
    rows = list(ROW.finditer(promises))
    assert len(rows) > 15
    for row in rows:
        named = NAMED.findall(row["tests"])
        assert named, row["promise"]
        for file, name in named:
            assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file}::{name}"
