"""The resources of a server's process: its socket, the memory that it shares, and its end."""

from __future__ import annotations

import mmap
import os
import select
import socket
import threading

import numpy as np

from tui_probe.simgpu.executor import DeviceMemory, Machine
from tui_probe.simgpu.protocol import MEMORY_DESCRIPTOR, SOCKET_DESCRIPTOR
from tui_probe.simgpu.server import Server


def serve_process(setup: str) -> None:
    """Serve the driver at the other end of the socket. ``setup`` is the server's argument (see ``protocol``)."""
    numbers = {name: int(value) for name, _, value in (part.partition("=") for part in setup.split(","))}
    address, size = numbers.pop("memory_address"), numbers.pop("memory_bytes")
    mapping = mmap.mmap(MEMORY_DESCRIPTOR, size, mmap.MAP_SHARED)
    memory = DeviceMemory(np.frombuffer(mapping, np.uint8), address)
    with socket.socket(fileno=SOCKET_DESCRIPTOR) as connection:
        threading.Thread(target=end_with, args=(connection,), daemon=True).start()
        try:
            Server(memory, Machine(**numbers)).serve(connection.makefile("rb"), connection.makefile("wb"))
        except OSError:
            os._exit(0)  # the program has ended, and takes no answers: nobody is there to tell


def end_with(connection: socket.socket) -> None:
    """End this process when the other end of ``connection`` is closed, in the middle of a kernel too."""
    poll = select.poll()
    poll.register(connection, 0)  # no events but the hang-up, which is always told
    poll.poll()
    os._exit(0)
