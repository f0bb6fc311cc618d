"""The terminal driver: Textual's own, but it does not send what the terminal already shows."""

from __future__ import annotations

from textual.drivers.linux_driver import LinuxDriver

SMALLEST_FRAME = 1000
_SYNC = ("\x1b[?2026h", "\x1b[?2026l")
_WINDOW_FOCUS = "\x1b[?1004h"


class FrugalDriver(LinuxDriver):
    """Drops a frame that equals the one before.

    Textual draws a new or resized screen up to four times with the same content. A large frame sets every cell that it
    covers, so sending it a second time, with nothing sent in between, changes nothing. The terminal is not asked to
    report when its window gains or loses focus: nothing here depends on it.
    """

    _last_frame = ""

    def write(self, data: str) -> None:
        """Send ``data``, unless it is the last frame once more."""
        if data == _WINDOW_FOCUS:
            return
        if data not in _SYNC:
            frame = data if len(data) >= SMALLEST_FRAME else ""
            if frame and frame == self._last_frame:
                return
            self._last_frame = frame
        super().write(data)

    @property
    def backed_up(self) -> bool:
        """Does the terminal take output more slowly than it is written?

        Textual queues what it writes for a thread and drops nothing: a frame that is drawn now would be seen late.
        """
        writer = self._writer_thread
        return writer is not None and writer._queue.qsize() > 0
