"""The application as screens and widgets know it: protocols of its parts, and the looks that it was started with."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tui_probe.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from textual.dom import DOMNode
    from textual.screen import Screen

    from tui_probe.draw.palette import Palette
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.model import Kernel
    from tui_probe.ui.background import Background
    from tui_probe.ui.live.feed import Feed
    from tui_probe.ui.live.gpus import GpuSampler
    from tui_probe.ui.session import Session


@dataclass(frozen=True)
class Appearance:
    """Looks and cost of the screen.

    ``palette`` is a name of ``draw.palette.PALETTES``. ``low_bandwidth`` None: on while the link is slow.
    ``mouse`` None: on, but not over SSH or with ``low_bandwidth``. ``keys`` are other keys for rows of the key table.
    """

    palette: str = "dark"
    ascii_only: bool = False
    low_bandwidth: bool | None = None
    mouse: bool | None = None
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_environment(cls, settings: Settings | None = None, **overrides: object) -> Appearance:
        """Return the ``overrides``; else what the environment has (TERM, NO_COLOR, a locale that is not UTF-8, SSH);
        else what the settings say.
        """
        settings = settings or Settings()
        values: dict[str, object] = {
            "palette": settings.palette,
            "ascii_only": settings.ascii,
            "low_bandwidth": settings.low_bandwidth,
            "mouse": settings.mouse,
            "keys": settings.keys,
        }
        if os.environ.get("TERM") in ("linux", "vt220", "vt100", "screen", "xterm"):
            values["palette"] = "ansi"  # less than 256 colours
        if os.environ.get("NO_COLOR"):
            values["palette"] = "plain"
        if not speaks_utf8(os.environ):
            values["ascii_only"] = True
        if os.environ.get("SSH_CONNECTION"):
            values["mouse"] = False
        values.update({name: value for name, value in overrides.items() if value is not None})
        return cls(**{name: value for name, value in values.items() if value is not None})  # type: ignore[arg-type]

    @property
    def wants_mouse(self) -> bool:
        """Every move of a mouse is traffic, and a terminal's own selection stops where we take it."""
        return not (self.low_bandwidth or os.environ.get("SSH_CONNECTION")) if self.mouse is None else self.mouse


def speaks_utf8(environment: Mapping[str, str]) -> bool:
    """Return whether the locale says that the terminal takes UTF-8. A locale that is not set counts as UTF-8.

    Python itself sets LC_CTYPE to C.UTF-8 where it finds no locale, so that value says nothing.
    """
    kind = environment.get("LC_CTYPE", "")
    locale = environment.get("LC_ALL") or (kind if kind != "C.UTF-8" else "") or environment.get("LANG") or "utf"
    return "utf" in locale.lower()


class Live(Protocol):
    """The live screen, below all others where there are traces."""

    def open_kernel(self, directory: Path, index: int) -> str:
        """Show the screen of a kernel of the trace in ``directory``. Returns why that cannot be done yet.

        "" where it can.
        """


class Application(Protocol):
    """Parts of the application that exist once."""

    @property
    def screen(self) -> Screen[Any]:
        """The screen in front."""

    @property
    def session(self) -> Session:
        """The run that is shown."""

    @property
    def feed(self) -> Feed:
        """The source of snapshots of the run."""

    @property
    def gpu(self) -> GpuSampler:
        """Load, clocks and power of the GPUs."""

    @property
    def live(self) -> Live:
        """The live screen."""

    @property
    def tables(self) -> Background:
        """Sorts and filters tables."""

    @property
    def logs(self) -> Background:
        """Reads logs."""

    @property
    def analyses(self) -> Background:
        """Reads and analyses results."""

    async def press_bound(self, key: str, *, priority: bool = False) -> bool:
        """Run what is bound to a key. Return False if nothing is."""

    @property
    def target_runs(self) -> bool:
        """True if there is a target that ran when it was last polled."""

    @property
    def appearance(self) -> Appearance:
        """The looks that options, environment and settings ask for."""

    @property
    def palette(self) -> Palette:
        """The colours."""

    @property
    def ascii_only(self) -> bool:
        """True if only ASCII characters are drawn."""

    @property
    def is_backed_up(self) -> bool:
        """True if the terminal lags behind."""

    @property
    def low_bandwidth(self) -> bool:
        """True if less is sent."""

    def use_palette(self, name: str) -> None:
        """Draw all in other colours."""

    def use_ascii(self, ascii_only: bool) -> None:
        """Draw with ASCII characters only, or with all."""

    def use_bandwidth(self, is_low: bool | None) -> None:
        """Send less, or not; None: as the link allows."""

    def to_clipboard(self, text: str) -> None:
        """Hand a text to the terminal's clipboard."""

    def compare(self, source: ViewSource) -> None:
        """Remember a kernel or launch, or show it against the one that was remembered."""

    def compare_runs(self, baseline: Path, candidate: Path) -> None:
        """Show a run against one before it."""

    def choose_evaluation(self) -> None:
        """Choose an evaluation of the traces that are open."""

    def run_again(self, trace: Path, kernel: Kernel | None, option: str = "", page: str = "") -> None:
        """Choose what to ask of the program of a trace, ``option`` first; then the screen ends, and it runs.

        ``page`` is the kernel's page that is opened then, if the run is for it.
        """

    def withdraw_question(self) -> None:
        """Ask no more what to do with a target that has ended meanwhile."""

    async def run_action(
        self, action: str, default_namespace: DOMNode | None = None, namespaces: Mapping[str, DOMNode] | None = None
    ) -> bool:
        """Run the action of a key."""
