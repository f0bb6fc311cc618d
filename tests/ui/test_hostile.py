"""Text from a trace may hold anything; the terminal gets none of it that it would obey."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.ui.conftest import on_stage

if TYPE_CHECKING:
    from tests.ui.synthetic import FakeTarget, TraceWriter
    from tui_probe.ui.feed import Session

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
        for key in "1", "2", "3", "4", "question_mark":
            await stage.press(key)
            text = stage.text.replace("\n", "")
            assert not [c for c in text if not c.isprintable()]
        await stage.press("q")
        assert "evil" in stage.text
