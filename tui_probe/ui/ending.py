"""End of a run from the screen: interrupt, kill or leave the program, and the questions before that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from textual.screen import ModalScreen

from tui_probe.ui.prompt import Question, QuestionKey
from tui_probe.ui.screens.view_screen import NOTICE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.screen import Screen

    from tui_probe.ui.live.feed import Feed
    from tui_probe.ui.screens.view_screen import ViewScreen
    from tui_probe.ui.session import LiveTarget

SECOND_INTERRUPT_SECONDS = 2.0
"""Seconds within which a second interrupt asks for more."""
LEAVE_ANSWERS = (
    QuestionKey("l", "leave it running, quit", "leave"),
    QuestionKey("i", "interrupt it, quit", "interrupt"),
    QuestionKey("c", "cancel"),
)
STOP_ANSWERS = (
    QuestionKey("t", "terminate it", "terminate"),
    QuestionKey("K", "kill it; its results are lost", "kill"),
    QuestionKey("c", "cancel"),
)


class EndingApp(Protocol):
    """The part of the application that ends it."""

    @property
    def target(self) -> LiveTarget | None:
        """The target, None where a trace is explored."""

    @property
    def target_runs(self) -> bool:
        """True if there is a target that ran when it was last polled."""

    @property
    def feed(self) -> Feed:
        """The source of snapshots of the run."""

    @property
    def screen(self) -> Screen[Any]:
        """The screen in front."""

    @property
    def message_screen(self) -> ViewScreen:
        """The screen that says what is to be said."""

    def exit(self) -> None:
        """Quit."""


class RunEnding:
    """Acts on the target of an application, if it has one."""

    def __init__(self, app: EndingApp) -> None:
        self.app = app
        self._question: tuple[ViewScreen, Question] | None = None
        """The screen and its last question about the target."""
        self._interrupt_time = float("-inf")
        """Time of the last interrupt in seconds."""
        self._notice: tuple[ViewScreen, str] | None = None
        """The screen and its last message about a target that was running."""

    def interrupt(self) -> None:
        """SIGINT to the target; a second time within two seconds asks for more."""
        target = self.app.target
        if target is None or not self.app.target_runs:
            self._explain_no_interrupt()
            return
        now = time.monotonic()
        if now - self._interrupt_time <= SECOND_INTERRUPT_SECONDS:
            self._ask("Still running:", STOP_ANSWERS, self._stop)
            return
        self._interrupt_time = now
        target.interrupt()
        self._say(
            "interrupted the program (SIGINT); to end it: Ctrl-C again within 2 s, then t", SECOND_INTERRUPT_SECONDS
        )

    def _explain_no_interrupt(self) -> None:
        snapshot = self.app.feed.latest
        advice = f"watch cannot end the run; end it in its own terminal, or with kill -INT {snapshot.pid}"
        self.app.message_screen.notice(
            advice if snapshot.is_running else "no program is running here; press Ctrl-Q to quit"
        )

    def _stop(self, answer: str) -> None:
        target = self.app.target
        if target is None or not self.app.target_runs:
            return
        if answer == "terminate":
            target.terminate()
            self._say("asked the program to terminate (SIGTERM)")
        elif answer == "kill":
            target.kill()
            self._say("killed the program (SIGKILL)")

    def leave(self) -> None:
        """Quit; ask first while the target runs."""
        if self.app.target_runs:
            self._ask("Still running:", LEAVE_ANSWERS, self._leave)
        else:
            self.app.exit()

    def _leave(self, answer: str) -> None:
        if self.app.target is not None and answer == "interrupt":
            self.app.target.interrupt()
        if self.app.target is not None and answer == "leave":
            self.app.target.leave()
        if answer:
            self.app.exit()

    def withdraw(self) -> None:
        """Ask no more what to do with a target that has ended meanwhile, and say no more how to end it."""
        if self.app.target_runs:
            return
        pending, self._question = self._question, None
        notice, self._notice = self._notice, None
        if notice is not None:
            screen, text = notice
            screen.clear_notice(text)
        if pending is not None:
            screen, question = pending
            if screen.prompt is question:
                screen.prompt = None
                screen.notice("the program has ended")

    def _ask(self, text: str, answers: tuple[QuestionKey, ...], on_answer: Callable[[str], None]) -> None:
        if isinstance(self.app.screen, ModalScreen):
            self.app.screen.dismiss(None)
        screen, question = self.app.message_screen, Question(text, answers, on_answer)
        self._question = screen, question
        screen.ask_question(question)

    def _say(self, text: str, seconds: float = NOTICE_SECONDS) -> None:
        screen = self.app.message_screen
        self._notice = screen, text
        screen.notice(text, seconds)
