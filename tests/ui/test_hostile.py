"""Text from a trace may hold anything; the terminal gets none of it that it would obey."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.ui.conftest import on_stage
from tui_probe.ui.export import write_text
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ui.synthetic import FakeTarget, TraceWriter

EVIL = "evil\x1b]0;title\x07\x1b[2J\x1b[31m\x9b5m\u202ename"


async def test_no_control_character_reaches_the_terminal(
    session: Session, trace: TraceWriter, target: FakeTarget
) -> None:
    trace.kernel(EVIL, "skipped", f"because \x1b[5m{EVIL}")
    trace.event(f"[exec] {EVIL}")
    target.stdout_path.write_text(f"{EVIL}\n")
    target.command = ["./a\x1b[2J", "b"]
    async with on_stage(session) as stage:
        stage.live.table.select(6)
        for key in "1", "9", "3", "4", "question_mark":
            await stage.press(key)
            text = stage.text.replace("\n", "")
            assert not [c for c in text if not c.isprintable()]
        await stage.press("q")
        assert "evil" in stage.text


PASTE_END = "add\x1b[201~\x9b201~;touch_me\u202e\x7fname"


async def test_copies_have_no_control_character(trace: TraceWriter, tmp_path: Path) -> None:
    trace.kernel(PASTE_END, "skipped", "because")
    async with on_stage(Session(traces=(trace.directory,))) as stage:
        stage.live.table.search("touch")
        await stage.press("y")
        await stage.until(lambda: "copied" in stage.text, "not copied")
        for text in (stage.app.clipboard, (tmp_path / "cache" / "tui-probe" / "copied.txt").read_text()):
            assert "touch_me··name" in text
            assert not [c for c in text if not (c.isprintable() or c == "\n")]


async def test_copied_names_keep_to_their_line(trace: TraceWriter, tmp_path: Path) -> None:
    """A line break in a name would run what is before it, where the copy is pasted into a shell."""
    async with on_stage(Session(traces=(trace.directory,))) as stage:
        stage.live.show_names(["one\ntouch x", "two\udcff"])
        await stage.settle()
        await stage.press("y")
        await stage.until(lambda: "copied" in stage.text, "not copied")
        assert stage.app.clipboard == "one·touch x\ntwo\ufffd"
        assert (tmp_path / "cache" / "tui-probe" / "copied.txt").read_text() == stage.app.clipboard


def test_write_text_has_no_control_character(tmp_path: Path) -> None:
    write_text(lambda: [EVIL, PASTE_END, "a\tb"], tmp_path / "x.txt")
    text = (tmp_path / "x.txt").read_text()
    assert text.endswith("\na       b\n")
    assert not [c for c in text if not (c.isprintable() or c == "\n")]
