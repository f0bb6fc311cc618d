"""A new key changes few golden files: only some of them list keys."""

from __future__ import annotations

from tests.golden import TESTS
from tui_probe.ui.keys import TABLE, shown

LISTS_OF_KEYS = {"help.txt", "hints.txt", "palette.txt"}
HINTS = {f"{shown(key.keys[0])} {key.footer}" for key in TABLE if key.footer}
TEXTS = {key.text for key in TABLE if len(key.text) > 20}


def lists_keys(content: str) -> bool:
    """Whether keys are named side by side, as in the line of hints, or with what they do, as in the help."""
    side_by_side = any(len(HINTS.intersection(line.strip().split("   "))) > 1 for line in content.split("\n"))
    return side_by_side or any(text in content for text in TEXTS)


def test_only_few_goldens_list_keys() -> None:
    found = {path.name for path in TESTS.rglob("goldens/**/*.txt") if lists_keys(path.read_text(encoding="utf-8"))}
    assert found == LISTS_OF_KEYS
