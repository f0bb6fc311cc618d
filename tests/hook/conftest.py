"""The hook, built once, and real programs run under it against a stub driver and an engine of the test's own."""

from __future__ import annotations

import contextlib
import hashlib
import os
import py_compile
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests import hook_builds
from tests.conftest import build_natives
from tui_probe.launcher.environment import loader_variables
from tui_probe.reasons import listed_reasons

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent

Prepare = Callable[[Path, str], str | None]


@dataclass
class Build:
    """Directories of one build of the hook and the stub driver."""

    hook: Path
    stub: Path
    sanitizer: str = ""


def build(directory: Path, sanitizer: str = "", flags: str = "") -> Build:
    """Configures and compiles the hook with warnings as errors, and the stub driver."""
    need_compiler()
    hook_builds.build_hook(directory, sanitizer, flags)
    return with_stub(directory, directory / "stub", sanitizer)


def sanitized_natives(sanitizer: str) -> Path:
    """Return where the hook and the simulated driver are built with a sanitizer, once for the tests of all areas."""
    need_compiler()
    return hook_builds.sanitized_natives(sanitizer)


def need_compiler() -> None:
    if not shutil.which("cmake") or not shutil.which("cc"):
        pytest.skip("needs cmake and a C compiler")


def with_stub(directory: Path, folder: Path, sanitizer: str = "") -> Build:
    """The hook that was built in a directory, and the stub driver, compiled into a folder."""
    stub = folder / "libcuda.so.1"
    folder.mkdir(parents=True, exist_ok=True)
    for module in ("host.py", "nvtx_host.py"):  # programs leave no bytecode: each of hundreds would compile them
        py_compile.compile(str(HERE / module))
    flags = [f"-fsanitize={sanitizer}"] if sanitizer else []
    compile_c(HERE / "stub_driver.c", stub, "-shared", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1", *flags)
    return Build(directory / "hook" / "libcuda.so.1", stub, sanitizer)


HOOK_SOURCES = ROOT / "hook" / "src"
HOOK_INCLUDES = [f"-I{directory}" for directory in sorted(HOOK_SOURCES.iterdir())]


def compile_c(source: Path, output: Path, *flags: str) -> None:
    """Compiles one C file, without warnings."""
    command = ["cc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-g", "-O1", "-fPIC", "-Wl,-Bsymbolic"]
    subprocess.run([*command, "-o", output, source, *flags, "-lpthread", "-ldl"], check=True)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    need_compiler()
    return with_stub(build_natives() / "build", tmp_path_factory.mktemp("stub"))


AUTO = {"TUI_PROBE_LAUNCHES": "auto", "TUI_PROBE_PATIENT": "1"}
"""Some launches are probed. All of them wait for the engine, which is a thread of the busy process of the tests: else
they would wait for a second in all, and then run unprobed.
"""


class Engine:
    """An engine that answers with probed modules of the stub driver's own kind, or as the test wants."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.maps = "1,16"  # blank-separated
        self.storage: list[str] = []  # lines of kernel.info
        self.added: int | None = None  # parameters of the probed kernel that a launch fills; None: as many as it does
        self.filled = ""  # as maps: what the stub's probed kernel fills, if that is something else
        self.globals = ""
        self.tail = b""  # of the probed module
        self.sampled = False  # whether kernels measure the blocks of a sample only
        self.independent = False  # whether no block of any kernel can wait for another one
        self.unsampled = ""  # why they cannot, where launches are too dear without
        self.asked_for_samples: list[tuple[str, int]] = []
        self.answer: Prepare | None = None
        self.later: Prepare | None = None
        """Answers that come behind others; some of these are ``later``."""
        self.prepared: list[str] = []
        self.threads: list[int] = []
        self.architectures: list[str] = []
        self.hang = threading.Event()
        self.greeting: str | None = "hello\t1"
        """None: first messages are not answered."""
        self.hellos = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []
        self._start(self._accept)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rw", newline="\n") as stream:
            for line in stream:
                reply = self._reply(line.rstrip("\n").split("\t"))
                if reply is None:
                    return
                stream.write(reply + "\n")
                stream.flush()
                if self.later and reply.startswith("later\t"):
                    _, number, directory, _, name, _ = line.rstrip("\n").split("\t")
                    reply = self.later(Path(directory), name)
                    if reply is None:
                        return
                    stream.write(reply.replace("<id>", number) + "\n")
                    stream.flush()

    def _reply(self, words: list[str]) -> str | None:
        if words[0] == "hello":
            self.hellos += 1
            if self.greeting is None:
                self.hang.wait(30)
            return self.greeting
        if words[0] == "sample":
            return self._reply_sample(words)
        _, number, directory, architecture, name, threads = words
        self.prepared.append(name)
        self.threads.append(int(threads))
        self.architectures.append(architecture)
        if self.answer:
            answer = self.answer(Path(directory), name)
            return answer and answer.replace("<id>", number)
        self.write_probed(Path(directory), name)
        return f"ok\t{number}\tprobed.bin"

    def _reply_sample(self, words: list[str]) -> str:
        """The same kernel once more, to measure some blocks; or ``self.unsampled``, why not."""
        _, number, directory, _, name, place, _ = words
        self.asked_for_samples.append((name, int(place)))
        if self.unsampled:
            return f"skipped\t{number}\t{self.unsampled}"
        folder = Path(directory) / "sampled"
        folder.mkdir()
        self.write_probed(folder, name, is_sample=True)
        return f"ok\t{number}\tprobed.bin"

    def write_probed(self, directory: Path, name: str, *, is_sample: bool = False) -> None:
        """The kernel folder of a probed kernel, as the stub driver understands it."""
        is_sample = is_sample or self.sampled
        sizes = re.search(r"__([0-9_]+)$", name)
        n_parameters = len(sizes.group(1).split("_")) if sizes else 0
        maps, variables = self.maps.split(), self.globals.split()
        kind = "sample" if is_sample else "probed"
        added = self.added if self.added is not None else self._added(len(maps), len(variables), is_sample)
        probed = f"//{kind} {n_parameters} {len(variables)} +{added} {self.filled or self.maps}"
        (directory / "probed.bin").write_bytes(probed.encode() + self.tail)
        lines = [name, str(n_parameters), str(len(maps)), *maps, *self.storage, *[f"global {v}" for v in variables]]
        lines += ["blocks sampled"] if is_sample else []
        lines += ["blocks independent"] if self.independent else []
        (directory / "kernel.info").write_text("\n".join(lines) + "\n")

    def _added(self, maps: int, variables: int, is_sample: bool) -> int:
        """Parameters of the probed kernel beyond the kernel's own: a dynamic map has one for its capacity."""
        counts = sum(line.endswith(" counts") for line in self.storage)
        dynamic = sum(line.endswith(" cap 0") for line in self.storage)
        return maps - counts + dynamic + variables + 2 * is_sample

    def close(self) -> None:
        self.hang.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            connection.close()
        for thread in self._threads:
            thread.join(5)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    serving = Engine(tmp_path / "engine.sock")
    yield serving
    serving.close()


@dataclass
class ResultFile:
    """A result file, taken apart byte by byte."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    maps: list[tuple[int, int, bytes]]  # bytes per slot, threads per slot, records

    @classmethod
    def read(cls, path: Path) -> ResultFile:
        data = path.read_bytes()
        header = struct.unpack_from("<8I", data)
        entries = [struct.unpack_from("<IIQ", data, 32 + 16 * i) for i in range(header[7])]
        ends = [offset for _, _, offset in entries[1:]] + [len(data)]
        maps = [(size, div, data[offset:end]) for (size, div, offset), end in zip(entries, ends, strict=True)]
        return cls(header[:3], header[3:6], header[6], maps)


@dataclass
class Run:
    """Output of one run."""

    status: int
    stdout: str
    stderr: str
    root: Path
    calls: list[str]
    started: list[int] = field(default_factory=list)

    @property
    def directories(self) -> list[Path]:
        return sorted(self.root.iterdir())

    @property
    def directory(self) -> Path:
        (only,) = self.directories
        return only

    @property
    def written_log(self) -> list[str]:
        """The lines of event.log."""
        return (self.directory / "event.log").read_text().splitlines()

    @property
    def log(self) -> list[str]:
        """The same without the codes of reasons. Each reason must have one of the list."""
        return [without_code(line) for line in self.written_log]

    @property
    def codes(self) -> list[str]:
        """The codes of the reasons in event.log, each once, in order."""
        matches = (CODED.fullmatch(line) for line in self.written_log)
        return list(dict.fromkeys(match["code"] for match in matches if match))

    @property
    def milliseconds_given_up(self) -> list[int]:
        """Waits of the hook for records, each time that it gave up."""
        return [int(line.split()[-2]) for line in self.lines(r"\[e\w+\] gave up waiting")]

    def lines(self, pattern: str) -> list[str]:
        """Lines of event.log that match from their start."""
        return [line for line in self.log if re.match(pattern, line)]

    def outcomes(self) -> list[tuple[str, str, str]]:
        """(status, name, reason) of each kernel, in order."""
        matches = [re.match(r"\[kernel\] \d+ (\w+) .* name (\S+) reason (.*)", line) for line in self.log]
        return [match.groups() for match in matches if match]  # type: ignore[misc]

    @property
    def results(self) -> list[ResultFile]:
        return [ResultFile.read(path) for path in sorted((self.directory / "result").glob("*.bin"))]


REASONED = re.compile(
    r"\[(?:(?:kernel|probing)\] \d+ (?:probed|skipped|failed|filtered)|exec\] backup|exit\]|benchmark\] alternate) .*"
)
CODED = re.compile(r"(?P<prose>\[(?:kernel|probing|exec|exit|benchmark)\] .* reason .*) code (?P<code>[a-z0-9-]+)")


def without_code(line: str) -> str:
    """A line of event.log as prose. A reason without a code of the list fails, wherever it is written."""
    if (found := CODED.fullmatch(line)) is not None:
        assert found["code"] in listed_reasons(), line
        return found["prose"]
    assert not REASONED.fullmatch(line) or line.endswith(" reason -") or " reason " not in line, f"no code: {line}"
    return line


class Host:
    """Runs programs under the hook."""

    def __init__(self, built: Build, directory: Path, engine: Engine | None) -> None:
        self.built = built
        self.directory = directory
        self.root = directory / "trace"
        self.root.mkdir()
        self.probe = directory / "probe.toml"
        self.probe.write_text("[probe]\n")
        self.engine = engine
        self.log = directory / "calls.log"

    def environment(self, **more: str) -> dict[str, str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TUI_PROBE_")}
        environment |= {
            **loader_variables({}, self.built.hook),
            "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""),
            "TUI_PROBE_DRIVER": str(self.built.stub),
            "TUI_PROBE_TRACE_ROOT": str(self.root),
            "TUI_PROBE_STAMP": "Nov21_010203",
            "TUI_PROBE_LAUNCHER": str(os.getpid()),
            "TUI_PROBE_PROBE": str(self.probe),
            "TUI_PROBE_MIN_FREE_DISK": "0",  # the tester's disk may be nearly full
            "STUB_LOG": str(self.log),
            "PYTHONPATH": f"{HERE}:{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if self.engine:
            environment["TUI_PROBE_ENGINE"] = str(self.engine.path)
        return environment | more

    def start(self, command: list[str], **more: str) -> subprocess.Popen[str]:
        environment = self.environment(**more)
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
        )

    def finish(self, process: subprocess.Popen[str]) -> Run:
        try:
            stdout, stderr = process.communicate(timeout=50)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # it and its children, which have its output open
            process.communicate()
            raise
        calls = self.log.read_text().splitlines() if self.log.exists() else []
        return Run(process.returncode, stdout, stderr, self.root, calls)

    def command(self, *command: str, **more: str) -> Run:
        return self.finish(self.start(list(command), **more))

    def python(self, script: str, **more: str) -> Run:
        """Runs a script that has all of host.py at hand.

        Without the environment's packages, whose ``.pth`` files take a third of the start of Python.
        """
        return self.command(sys.executable, "-S", "-c", "from host import *\n" + script, **more)


@pytest.fixture
def host(built: Build, tmp_path: Path, engine: Engine) -> Host:
    return Host(built, tmp_path, engine)


def sha1(name: str) -> str:
    """The digest in the name of a kernel's directory."""
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
