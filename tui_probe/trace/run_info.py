"""``run.json``: how a run was started, its command with masked secrets, whether its process lives, and how to start it
again.

People share traces, so secrets in a command line are masked, by pattern, so not all of them: ``***`` replaces the value
of an option or variable whose name says what it is (``--password=…``, ``--api-key …``, ``PGPASSWORD=…``), tokens that
are known by their beginning, and name and password in an address. The hook does the same in what it writes
(``hook/src/log/secrets.c``).
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui_probe.errors import UsageError
from tui_probe.input_limits import RUN_JSON, parse_json
from tui_probe.trace.locate import is_trace
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MASK: Final = "***"
_RUN_NAME: Final = re.compile(r"\w[\w.+=,-]{0,63}")
# Of bytes, as in the hook: a letter is one of ASCII, no matter what case folding knows beyond that, and lengths are
# the same.
_NAME: Final = re.compile(
    rb"(?:password|passwd|passphrase|secret|apikey|(?<![a-z0-9])(?:token|key|credentials?))\Z", re.IGNORECASE
)
_TOKEN: Final = re.compile(
    rb"(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[bp]-|AKIA|ASIA)"
    rb"(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}"
)
_CREDENTIALS: Final = re.compile(rb"(?<=://)(?=[^/?# \t\n]*:[^/?# \t\n]*@|[^/?# \t\n]{16,}@)[^/?# \t\n]+(?=@)")
_BEARER: Final = re.compile(rb"(?<=bearer ).+", re.IGNORECASE | re.DOTALL)
_SECRETS: Final = (_TOKEN, _CREDENTIALS, _BEARER)


def mask_words(words: Iterable[str]) -> list[str]:
    """The words of a command line without what looks like a secret."""
    masked_words, is_secret = [], False
    for text in words:
        word = text.encode("utf-8", "surrogatepass")
        name, equals, value = word.partition(b"=")
        is_option, has_secret_name = word.startswith(b"-"), _NAME.search(name) is not None
        if is_secret and word and not is_option:
            masked_words.append(MASK)
        else:
            masked_words.append(_mask_word(word, len(word) - len(value) if equals and has_secret_name else None))
        is_secret = is_option and not equals and has_secret_name
    return masked_words


def _mask_word(word: bytes, value: int | None) -> str:
    """A word with masks for its secrets; all from ``value`` on is one, unless that is None.

    Secrets are looked for in the word as it is, inside others, too: the name in an address may be a token, with a
    password behind it. Those that overlap or touch have one mask.
    """
    spans = [match.span() for pattern in _SECRETS for match in pattern.finditer(word)]
    spans += [] if value is None else [(value, len(word))]
    parts, masked_end = [], -1
    for start, end in sorted(spans):
        if start > masked_end:
            parts += [word[max(masked_end, 0) : start], MASK.encode()]
        masked_end = max(masked_end, end)
    return b"".join([*parts, word[max(masked_end, 0) :]]).decode("utf-8", "surrogatepass")


def mask_line(command: str) -> str:
    """Mask a command whose words are separated by blanks, as in logs."""
    return " ".join(mask_words(command.split(" ")))


def is_alive(pid: int | None, command: str) -> bool:
    """True if a process of this number runs that was started with this command line.

    The command line guards against another process that has got the number since; a log holds its beginning, with
    blanks for the separators, and masks for secrets: what is before the first of these has to be the same.
    """
    if pid is None:
        return False
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    text = arguments.replace(b"\0", b" ").decode("utf-8", "backslashreplace").strip()
    prefix, mask, _ = command.partition(MASK)
    return (
        bool(text) and bool(command) and (text.startswith(prefix[:512]) or (not mask and prefix.startswith(text[:512])))
    )


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The launcher's record of a run; what it does not say, or says in another type, is None.

    ``started`` and ``ended`` are seconds since 1970. ``ended`` is None while the run lasts. ``pid`` is the process of
    the command, whose ``exit_status`` or ``signal`` it is; other processes of the run have the same record.
    """

    command: tuple[str, ...] = ()
    pid: int | None = None
    cwd: str | None = None
    started: float | None = None
    ended: float | None = None
    exit_status: int | None = None
    signal: int | None = None
    probe: str | None = None
    probes: tuple[str, ...] = ()
    """The names of all, in their order; empty in older records."""
    options: dict[str, Any] = field(default_factory=dict)
    driver: str | None = None
    simulated: bool = False
    ptxas: str | None = None
    processes: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    """Failures of the launcher, that of the engine first."""
    name: str | None = None
    """The name that ``run --name`` gave it."""
    program_failure: str | None = None
    """Failure of the program's own environment, and the usual fix."""

    def is_of(self, pid: int | None) -> bool:
        """True if the recorded end is of this process. Older records do not name their process."""
        return self.pid is None or self.pid == pid


def read_run_info(path: Path) -> RunInfo | None:
    """Read ``run.json``; None where there is none, or where it is not JSON."""
    return read_run_json(path)[0]


def read_run_json(path: Path) -> tuple[RunInfo | None, str]:
    """Read ``run.json``; where it is not readable, None and the problem, "" if there is no file."""
    try:
        data = parse_json(read_within(path, RUN_JSON))
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, error.strerror or str(error)
    except (ValueError, RecursionError) as error:
        return None, f"not valid JSON ({error})"
    return (parse_run_info(data), "") if isinstance(data, dict) else (None, "not a JSON object")


def parse_run_info(data: dict[str, Any]) -> RunInfo:
    """The record from JSON. Values of an unexpected type count as absent."""
    driver, toolchain = (_dict(data.get(key)) for key in ("driver", "toolchain"))
    return RunInfo(
        command=_texts(data.get("command")),
        pid=_integer(data.get("pid")),
        cwd=_text(data.get("cwd")),
        started=_time(data.get("started")),
        ended=_time(data.get("ended")),
        exit_status=_integer(data.get("exit_status")),
        signal=_integer(data.get("signal")),
        probe=_text(data.get("probe")),
        probes=tuple(name for probe in _list(data.get("probes")) if (name := _text(_dict(probe).get("name")))),
        options=_dict(data.get("options")),
        driver=_text(driver.get("path")),
        simulated=driver.get("simulated") is True,
        ptxas=_text(toolchain.get("version")) or _text(toolchain.get("ptxas")),
        processes=_texts(data.get("processes")),
        messages=tuple(filter(None, [_text(data.get("engine_failure"))])) + _texts(data.get("messages")),
        name=_text(data.get("name")),
        program_failure=_text(data.get("program_failure")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _time(value: object) -> float | None:
    if not isinstance(value, str):
        return None
    from datetime import datetime  # starting a program needs none

    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def is_run_name(text: str) -> bool:
    """Return whether a text can be the name of a run: it is neither a path nor an address ``TRACE:KERNEL@LAUNCH``."""
    return _RUN_NAME.fullmatch(text) is not None


def traces_of_run(trace: Path, info: RunInfo | None) -> list[Path]:
    """Return the traces of all processes of a trace's run; only itself where run.json does not name it."""
    processes = info.processes if info is not None else ()
    siblings = [trace.parent / process for process in processes if "/" not in process]
    traces = [sibling for sibling in siblings if is_trace(sibling)]
    return traces if any(sibling.name == trace.name for sibling in traces) else [trace]


class MissingDirectoryError(UsageError):
    """The folder where it ran is not here; ``command`` is what a user may paste in another."""

    def __init__(self, trace: Path, folder: Path, command: str) -> None:
        self.command = command
        super().__init__(
            f"{trace}: directory {folder} does not exist on this machine; run this on the machine that has the"
            f" directory: {command}"
        )


def recorded_run(trace: Path, build_command: Callable[[RunInfo], str]) -> tuple[RunInfo, Path]:
    """The run of a trace, and its working directory. UsageError where the trace does not say.

    MissingDirectoryError if that directory is not here, with the command that ``build_command`` returns.
    """
    info = read_run_info(trace / "run.json") or RunInfo()
    if not info.command:
        raise UsageError(f"{trace}: run.json has no command; start the program with tui-probe run -- COMMAND")
    if any(MASK in word for word in info.command):
        raise UsageError(
            f"{trace}: the command line cannot be run again, because its secrets were masked ({MASK}); start the"
            " program with tui-probe run -- COMMAND; to save the secrets in the trace, add --keep-secrets"
        )
    folder = Path(info.cwd or ".")
    if not folder.is_dir():
        raise MissingDirectoryError(trace, folder, build_command(info))
    return info, folder


def rerun_command(info: RunInfo, options: Sequence[str]) -> str:
    """The command line that runs it again with these options, for a shell; all of it is visible."""
    return " ".join(map(_shell_word, ["tui-probe", "run", *options, "--", *mask_words(info.command)]))


def _shell_word(word: str) -> str:
    """A word for a shell, with escapes for what a terminal would obey or hide."""
    if word.isprintable():
        return shlex.quote(word)
    text = re.sub(r"[\\']", r"\\\g<0>", word)
    return "$'" + "".join(map(_escape, text)) + "'"


def _escape(character: str) -> str:
    """A character in a word of the form ``$'…'``; one that stands for a byte of a file name becomes that byte."""
    if character.isprintable():
        return character
    error_handler = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", error_handler))
