"""The server's process, started by the simulated driver. ``protocol`` says with what."""

from __future__ import annotations

import os
import sys

from tui_probe.simgpu.protocol import MEMORY_DESCRIPTOR, SOCKET_DESCRIPTOR


def main() -> None:
    # The driver waits for the process that it started. The server is its child, so that it is no one's who waits for
    # all of its own children.
    if os.fork():
        os._exit(0)
    os.closerange(max(SOCKET_DESCRIPTOR, MEMORY_DESCRIPTOR) + 1, os.sysconf("SC_OPEN_MAX"))
    from tui_probe.simgpu.server import serve_process  # only now: NumPy takes its time, and the driver does not wait

    serve_process(sys.argv[1])


if __name__ == "__main__":
    main()
