"""The settings file of a user: ``$XDG_CONFIG_HOME/tui-probe/settings.toml``.

A wrong value gives a warning with the file and the key, and counts as not set: no setting can stop a command.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tui_probe.input_limits import PROBE_FILE, parse_toml
from tui_probe.probe_files import DEFAULT_PROBE
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Mapping

PALETTES = ("dark", "light", "ansi", "distinct", "plain")
MACHINE_CODE = ("auto", "all", "off")
KEYS = "keys"
_SIZE = r"\d+(\.\d+)?\s*[KMGT]?(I?B)?"
_LAUNCHES = re.compile(r"auto|all|\d+(-\d+)?(,\d+(-\d+)?)*")
_WORDS = {str: "a text", Path: "a text", bool: "true or false", dict: "a table"}


@dataclass(frozen=True)
class Settings:
    """Settings of a user, for options that neither the command line nor the environment sets; None: not set.

    ``problems`` are lines, each with the file and the key.
    """

    palette: str | None = None
    ascii: bool | None = None
    low_bandwidth: bool | None = None
    mouse: bool | None = None
    trace_dir: Path | None = None
    probe: str | None = None
    launches: str | None = None
    bandwidth: Path | None = None
    detail: bool | None = None
    machine_code: str | None = None
    max_trace_bytes: str | None = None
    max_result_files: str | None = None
    max_log_bytes: str | None = None
    max_write_rate: str | None = None
    min_free_disk: str | None = None
    max_probe_memory: str | None = None
    max_host_memory: str | None = None
    max_kept_bytes: str | None = None
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    path: Path = field(default_factory=Path)
    exists: bool = False
    problems: tuple[str, ...] = ()


class Setting(NamedTuple):
    """A row of the documentation: what a key takes, what holds where it is not set, and what it does."""

    key: str
    kind: type
    default: str
    text: str
    example: str


LIMITS = (
    Setting("max_trace_bytes", str, "`1G`", "`--max-trace-bytes` of `run`: disk space of a run",
            'max_trace_bytes = "4G"'),
    Setting("max_result_files", str, "`2000`", "`--max-result-files` of `run`: number of saved result files",
            'max_result_files = "none"'),
    Setting("max_log_bytes", str, "`128M`", "`--max-log-bytes` of `run`: size of `event.log` after which launches are"
                                            " only counted",
            'max_log_bytes = "1G"'),
    Setting("max_write_rate", str, "`256M`", "`--max-write-rate` of `run`: bytes of sampled results per second",
            'max_write_rate = "50M"'),
    Setting("min_free_disk", str, "`2G,5%`", "`--min-free-disk` of `run`: disk space that stays free",
            'min_free_disk = "10G"'),
    Setting("max_probe_memory", str, "a tenth of free memory", "`--max-probe-memory` of `run`: GPU memory of probes",
            'max_probe_memory = "2G"'),
    Setting("max_host_memory", str, "`256M`", "`--max-host-memory` of `run`: host memory for records and copies of PTX",
            'max_host_memory = "1G"'),
    Setting("max_kept_bytes", str, "`1G`", "`--max-kept-bytes` of `run`: memory saved for `--keep-launch`",
            'max_kept_bytes = "8G"'),
)  # fmt: skip
_AMOUNTS = {setting.key: rf"{_SIZE}|NONE" for setting in LIMITS} | {
    "min_free_disk": rf"0|{_SIZE}|\d{{1,2}}%|{_SIZE},\d{{1,2}}%",
    "max_probe_memory": _SIZE,
    "max_host_memory": _SIZE,
}
SETTINGS = (
    Setting("palette", str, "`dark`", f"colours: {', '.join(f'`{name}`' for name in PALETTES)}", 'palette = "light"'),
    Setting("ascii", bool, "by the locale", "draw with ASCII characters only", "ascii = true"),
    Setting("low_bandwidth", bool, "on while the link is slow",
            "`true`: redraw half as often and ignore the mouse; `false`: do neither", "low_bandwidth = true"),
    Setting("mouse", bool, "on, but not over SSH",
            "use the mouse (selecting text then needs Shift)", "mouse = false"),
    Setting("trace_dir", Path, "`./trace`", "directory in which `run` creates traces; `watch` and the home screen"
            " search it", 'trace_dir = "~/traces"'),
    Setting("probe", str, f"`{DEFAULT_PROBE}`", "default probe of `run` and of the form on the home screen",
            f'probe = "{DEFAULT_PROBE}"'),
    Setting("launches", str, "`auto`", "launches of each kernel that `run` probes: `auto`, `all`, or a list such as "
            "`0-9,20`", 'launches = "all"'),
    Setting("bandwidth", Path, "none", "output of `tui-probe bandwidth --format json` on this machine, for `roofline`",
            'bandwidth = "~/bw.json"'),
    Setting("detail", bool, "`false`", "`run` saves all records of a probe, not only the records that its pages need",
            "detail = true"),
    Setting("machine_code", str, "`auto`", "`--machine-code` of `run`: which kernels without PTX are probed: "
            "`auto`, `all` or `off`", 'machine_code = "all"'),
    *LIMITS,
    Setting(KEYS, dict, "as listed under Keys", "for each command id, a key or a list of keys",
            '[keys]\nsort = "ctrl+s"'),
)  # fmt: skip


def settings_path(environment: Mapping[str, str] | None = None) -> Path:
    """Return the path of the file, whether it exists or not."""
    environment = os.environ if environment is None else environment
    base = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 - never raises
    return Path(base) / "tui-probe" / "settings.toml"


def read_settings(path: Path | None = None) -> Settings:
    """The settings of the file; without one all are unset. Never raises."""
    path = path or settings_path()
    try:
        data = parse_toml(read_within(path, PROBE_FILE).decode())
    except FileNotFoundError:
        return Settings(path=path)
    except OSError as error:
        return Settings(path=path, exists=True, problems=(f"{path}: cannot be read: {error.strerror or error}",))
    except ValueError as error:  # also what is not a UTF-8
        return Settings(path=path, exists=True, problems=(f"{path}: not valid TOML, so the file is ignored: {error}",))
    values, problems = _split_valid(data)
    return Settings(**values, path=path, exists=True, problems=tuple(f"{path}: {problem}" for problem in problems))


def _split_valid(data: Mapping[str, object]) -> tuple[dict[str, Any], list[str]]:
    """The values that can be used, and what is wrong with the others."""
    kinds = {setting.key: setting.kind for setting in SETTINGS}
    values: dict[str, Any] = {}
    problems = []
    for key, value in data.items():
        kind = kinds.get(key)
        if kind is None:
            problems.append(f"{key}: unknown setting; use one of {', '.join(kinds)}")
        elif not isinstance(value, str if kind is Path else kind):
            problems.append(f"{key}: {value!r} is not {_WORDS[kind]}")
        elif key == "palette" and value not in PALETTES:
            problems.append(f"{key}: {value!r} is not one of {', '.join(PALETTES)}")
        elif key in _AMOUNTS and not re.fullmatch(_AMOUNTS[key], str(value).strip().upper()):
            problems.append(f"{key}: {value!r} is not a limit; write e.g. {_example(key)}")
        elif key == "machine_code" and value not in MACHINE_CODE:
            problems.append(f"{key}: {value!r} is not one of {', '.join(MACHINE_CODE)}")
        elif key == "launches" and not _LAUNCHES.fullmatch(str(value)):
            problems.append(f"{key}: {value!r} is neither auto nor all nor a list such as 0-9,20")
        elif key == KEYS and isinstance(value, dict):
            values[key], key_problems = _split_valid_keys(value)
            problems += key_problems
        else:
            values[key] = Path(os.path.expanduser(str(value))) if kind is Path else value  # noqa: PTH111 - never raises
    return values, problems


def _example(key: str) -> str:
    return next(setting.example for setting in SETTINGS if setting.key == key)


def _split_valid_keys(table: Mapping[str, object]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return keys by the id of their row, and problems. The screen checks that the row exists and that keys differ."""
    keys_by_command: dict[str, tuple[str, ...]] = {}
    problems = []
    for name, value in table.items():
        names = [value] if isinstance(value, str) else value
        if isinstance(names, list) and names and all(isinstance(key, str) and key for key in names):
            keys_by_command[name] = tuple(names)
        else:
            problems.append(f"{KEYS}.{name}: {value!r} is neither a key nor a list of keys")
    return keys_by_command, problems


def readme_section() -> str:
    """All settings as Markdown."""
    lines = ["| Setting | Default | Effect | Example |", "|---|---|---|---|"]
    for setting in SETTINGS:
        example = setting.example.replace("\n", " ⏎ ")
        lines.append(f"| `{setting.key}` | {setting.default} | {setting.text} | `{example}` |")
    return "\n".join(lines) + "\n"
