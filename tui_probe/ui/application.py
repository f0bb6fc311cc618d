"""Protocols of the application, for screens and widgets: it knows all of them, they know only these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from textual.dom import DOMNode
    from textual.screen import Screen

    from tui_probe.draw.palette import Palette
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.model import Kernel
    from tui_probe.ui.appearance import Appearance
    from tui_probe.ui.background import Background
    from tui_probe.ui.live.feed import Feed
    from tui_probe.ui.live.gpus import GpuSampler
    from tui_probe.ui.session import Session


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
    def backed_up(self) -> bool:
        """True if the terminal lags behind."""

    @property
    def low_bandwidth(self) -> bool:
        """True if less is sent."""

    def use_palette(self, name: str) -> None:
        """Draw all in other colours."""

    def use_ascii(self, ascii_only: bool) -> None:
        """Draw with ASCII characters only, or with all."""

    def use_bandwidth(self, low: bool | None) -> None:
        """Send less, or not; None: as the link allows."""

    def to_clipboard(self, text: str) -> None:
        """Hand a text to the terminal's clipboard."""

    def compare(self, source: ViewSource) -> None:
        """Remember a kernel or launch, or show it against the one that was remembered."""

    def compare_runs(self, before: Path, after: Path) -> None:
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
