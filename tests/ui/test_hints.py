"""A new key changes few golden files: only some of them list keys."""

from __future__ import annotations

import re

from tests.golden import TESTS
from tui_probe.draw.spans import plain
from tui_probe.ui.keys import TABLE, in_scope, key_sign
from tui_probe.ui.widgets.pane import key_line

LISTS_OF_KEYS = {"help.txt", "hints.txt", "palette.txt"}
HINTS = {f"{key_sign(key.keys[0])} {key.footer}" for key in TABLE if key.footer}
TEXTS = {key.text for key in TABLE if len(key.text) > 20}


def lists_keys(content: str) -> bool:
    """Return whether keys are in a line of hints, or listed with their actions as in the help."""
    side_by_side = any(len(HINTS.intersection(line.strip().split("   "))) > 1 for line in content.split("\n"))
    return side_by_side or any(text in content for text in TEXTS)


def test_only_few_goldens_list_keys() -> None:
    goldens = {path.name for path in TESTS.rglob("goldens/**/*.txt") if lists_keys(path.read_text(encoding="utf-8"))}
    assert goldens == LISTS_OF_KEYS


def test_on_every_screen_it_is_named_how_to_go_on_and_back() -> None:
    """From 80 columns on, anything else there is to name."""
    hints = (TESTS / "ui" / "goldens" / "hints.txt").read_text(encoding="utf-8")
    screens = dict(re.findall(r"===== (.*) =====\n(.*)\n", hints))
    assert len(screens) > 50
    for name, line in screens.items():
        named = line.strip().split("   ")
        if len(HINTS.intersection(named)) < 2 or name.startswith("help "):
            continue  # something is said in its place; pages of help are left by one key only
        assert {"? keys", ": commands"} <= {*named}, name
        if name.startswith(("home ", "home-", "kernel-", "pages/compare", "pages/timeline", "pages/source")):
            assert "q back" in named, name


def test_hints_that_lead_on_come_first() -> None:
    keys = [*in_scope("home"), *in_scope("app")]
    for cells in range(45, 120):
        line = plain(key_line(keys, cells))
        assert len(line) <= cells
        for words in ("? keys", ": commands", "q back"):
            assert words in line
    assert plain(key_line(keys, 60)).startswith(" Enter open  ")
