"""The hook and Python know the same reasons, and write them alike."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reasons.values import reasons
from tui_probe.reasons import Reason, because, because_of_file, listed_reasons, read_reason

from .conftest import HOOK_INCLUDES, HOOK_SOURCES, ROOT, Build
from .object_files import compile_with_hook

HERE = Path(__file__).resolve().parent
FLAGS = ["-std=gnu17", "-Wall", "-Wextra", "-Werror", *HOOK_INCLUDES]


@pytest.fixture(scope="module")
def program(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reasons") / "reasons"
    flags = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    compile_with_hook(built, HERE / "reasons_program.c", path, *flags)
    return path


def written(program: Path, lines: list[str]) -> list[str]:
    """The reasons that the hook makes of these requests."""
    asked = "".join(f"{line}\n" for line in lines).encode()
    run = subprocess.run(
        [program], input=asked, capture_output=True, check=False, env={"ASAN_OPTIONS": "detect_leaks=0"}
    )
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout.decode().split("\n")[:-1]


@settings(max_examples=20, deadline=None)
@given(made=st.lists(reasons(), min_size=1, max_size=40))
def test_the_hook_writes_what_python_writes(program: Path, made: list[Reason]) -> None:
    requests = ["\t".join(["fill", str(reason.code), *reason.parameters.values()]) for reason in made]
    assert written(program, requests) == [reason.written for reason in made]


@settings(max_examples=20, deadline=None)
@given(made=st.lists(reasons(), min_size=1, max_size=40))
def test_the_hook_reads_what_python_writes(program: Path, made: list[Reason]) -> None:
    assert written(program, [f"read\t{reason.written}" for reason in made]) == [reason.written for reason in made]


def test_words_are_cut_off_and_the_code_stays(program: Path) -> None:
    long = because("ptx-unreadable", words="x" * 10_000)
    for line in written(program, [f"fill\tptx-unreadable\t{'x' * 10_000}", f"read\t{long.written}"]):
        assert read_reason(line).code == "ptx-unreadable"
        assert 400 < len(line) < 600


def test_errors_of_files_are_distinguished_alike(program: Path) -> None:
    numbers = sorted(set(errno.errorcode) - {errno.EBADF})
    lines = written(program, [f"file\t{number}\t./trace/kernel/0_a/original.bin" for number in numbers])
    made = [
        because_of_file("./trace/kernel/0_a/original.bin", OSError(number, os.strerror(number))) for number in numbers
    ]
    assert [read_reason(line).code for line in lines] == [reason.code for reason in made]
    codes = {number: read_reason(line).code for number, line in zip(numbers, lines, strict=True)}
    assert (codes[errno.ENOSPC], codes[errno.EDQUOT]) == ("disk-full", "disk-full")
    assert {codes[number] for number in (errno.EACCES, errno.EPERM, errno.EROFS)} == {"not-permitted"}
    assert (codes[errno.EFBIG], codes[errno.ENOMEM], codes[errno.EIO]) == ("file-limit", "host-memory", "file-error")
    # a descriptor of the hook's is among the program's, which may close it: not so in a process of tui-probe
    (closed,) = written(program, [f"file\t{errno.EBADF}\t./trace/kernel/0_a/original.bin"])
    assert read_reason(closed).code == "descriptors-closed"


@pytest.mark.parametrize(
    ("made", "compiles"),
    [
        ("reason(NO_PTX)", True),
        ('reason_with(TRACE_FULL, "1000")', True),
        ("reason(NO_SUCH_REASON)", False),
        ("reason(TRACE_FULL)", False),
        ('reason_with(TRACE_FULL, "1", "2")', False),
        ('reason_with(DISK_FULL, "1")', False),
        ("reason_with(TRACE_FULL, 1000)", False),
        ('"no PTX in image"', False),
    ],
)
def test_the_compiler_knows_the_list(tmp_path: Path, made: str, compiles: bool) -> None:
    """A launch cannot be ran unprobed with words, or with a reason that is not as listed."""
    source = tmp_path / "use.c"
    source.write_text(
        '#include "launch.h"\n'
        "CUresult use(const struct launch *launch);\n"
        "CUresult use(const struct launch *launch)\n"
        f"{{\n    return launch_pass(launch, {made});\n}}\n"
    )
    run = subprocess.run(["cc", *FLAGS, "-fsyntax-only", source], capture_output=True, check=False)
    assert (run.returncode == 0) == compiles, run.stderr.decode()


def test_reasons_come_from_the_list_only() -> None:
    """Only reasons.c makes one; nothing else in the hook writes the words of one into the log."""
    files = sorted(HOOK_SOURCES.rglob("*.c"))
    assert "reasons.c" in {file.name for file in files}
    for file in files:
        text = file.read_text()
        if file.name != "reasons.c":
            assert not re.search(r"\(struct reason\)|struct reason \w+ =", text), file.name
        for line in re.findall(r'event_log(?:_append)?\("[^"]* reason [^;]*;', text):
            assert "reason %s" in line, line
            assert "->written" in line, line


def test_every_reason_is_used() -> None:
    """Each reason is raised somewhere, except those of earlier versions, which say so, and ``disk-low``, which is there
    for who watches the disk.
    """
    hook = "".join(file.read_text() for file in HOOK_SOURCES.rglob("*.c"))
    python = "".join(file.read_text() for file in (ROOT / "tui_probe").rglob("*.py"))
    raised = set(re.findall(r"\breason(?:_with)?\((\w+)", hook))
    for listed in listed_reasons().values():
        earlier = "limit of an earlier version" in listed.advice
        assert listed.name in raised or f'"{listed.code}"' in python or listed.code == "disk-low" or earlier, (
            listed.code
        )
