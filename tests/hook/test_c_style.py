"""Limits and wording of the C sources, beyond clang-format."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from .conftest import ROOT

MAX_FILES, MAX_LINES = 40, 500  # of a directory; of a file
QUESTION = re.compile(r"/\* (?:What|That|Whether|Which|Why|Where|How|Who|When)\b.*")


def sources() -> list[Path]:
    paths = [path for path in (ROOT / "hook").rglob("*") if path.suffix in {".c", ".h", ".S"}]
    assert len(paths) > 200
    return sorted(paths)


def test_directories_have_at_most_40_files() -> None:
    counts = Counter(path.parent.relative_to(ROOT) for path in sources())
    assert {directory: n for directory, n in counts.items() if n > MAX_FILES} == {}


def test_files_have_at_most_500_lines() -> None:
    lengths = {path.relative_to(ROOT): path.read_text().count("\n") for path in sources()}
    assert {path: n for path, n in lengths.items() if n > MAX_LINES} == {}


def test_comments_begin_with_a_verb_or_noun() -> None:
    assert [f"{path.name}: {comment}" for path in sources() for comment in QUESTION.findall(path.read_text())] == []
