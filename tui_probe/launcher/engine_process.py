"""The process that an engine's server runs in, for one run of the launcher.

``python -m tui_probe.launcher.engine_process --socket PATH --probe FILE`` runs it until SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.engine.cache import Cache, default_folder
from tui_probe.engine.prepare import Options
from tui_probe.engine.server import EngineServer
from tui_probe.errors import ProbeError
from tui_probe.launcher.options import AUTO, MACHINE_CODE
from tui_probe.probe_files.loading import load_probe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.model import Probe


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a server until SIGTERM or SIGINT. The exit status is 2 for a probe or socket that cannot be used."""
    name = "tui_probe.launcher.engine_process"
    parser = argparse.ArgumentParser(prog=name, description="prepare kernels for the hook")
    parser.add_argument("--socket", type=Path, required=True, help="path of the Unix socket to listen on")
    parser.add_argument("--listener", type=int, metavar="FD", help="that socket, where it is made already")
    parser.add_argument(
        "--probe", required=True, action="append", metavar="PROBE",
        help="built-in probe or probe file; the files of several are in a folder each, by the probe's name",
    )  # fmt: skip
    parser.add_argument("--load", choices=("bin", "ptx"), default="bin", help="what the driver is given")
    parser.add_argument("--kernels", default="", help="the run's kernel filter, for process.log")
    parser.add_argument("--filter", default="", help="the run's negative kernel filter, for process.log")
    parser.add_argument(
        "--sampled", type=int, action="append", default=[], metavar="N",
        help="of the N-th probe, from 0: probe the blocks that the hook names, and no others",
    )  # fmt: skip
    parser.add_argument("--no-cache", action="store_true", help="prepare every kernel anew, and keep none")
    parser.add_argument("--sources", type=int, default=0, metavar="BYTES", help="of source copies per trace")
    parser.add_argument(
        "--machine-code", choices=MACHINE_CODE, default=AUTO, help="which kernels without PTX are probed in their code"
    )
    options = parser.parse_args(arguments)
    folder = None if options.no_cache else default_folder()
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        probes = probes_of(options)
        server = EngineServer(
            options.socket,
            *probes[0],
            cache=None if folder is None else Cache(folder),
            others=probes[1:],
            listener=None if options.listener is None else socket.socket(fileno=options.listener),
        )
        server.start()
    except ProbeError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    signal.sigwait(signals)
    server.stop()
    return 0


def probes_of(options: argparse.Namespace) -> list[tuple[Probe, Options]]:
    """The probes and what is to be made of each. The first copies source files for all. Raises ProbeFileError."""
    probes = [load_probe(name) for name in options.probe]
    return [
        (
            probe,
            Options(
                options.load,
                options.kernels,
                options.filter,
                sampled=place in options.sampled,
                sources=options.sources if place == 0 else 0,
                folder=probe.name if len(probes) > 1 else "",
                machine_code=options.machine_code,
            ),
        )
        for place, probe in enumerate(probes)
    ]


if __name__ == "__main__":
    sys.exit(main())
