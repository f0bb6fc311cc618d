"""kernel.info and process.log, ours and older ones, whole and damaged."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.make import PTXAS
from tui_probe.errors import TraceError
from tui_probe.trace.kernel_files import (
    Graft,
    KernelInfo,
    MapInfo,
    ProcessLog,
    Resources,
    parse_kernel_info,
    parse_process_log,
    read_kernel_info,
    read_process_log,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_our_kernel_info() -> None:
    lines = ["_Z3fooPf", "3", "2", "1,16", "0,-1", "callback block_sched", "global counter", "global lut"]
    maps = (MapInfo("warp", 16), MapInfo("thread", -1))
    assert parse_kernel_info(lines) == KernelInfo("_Z3fooPf", 3, maps, "block_sched", ("counter", "lut"))


def test_the_lines_of_sites() -> None:
    lines = ["f", "1", "2", "1,16", "1,0", "storage 1 sites record 16 cap 3 copies 64", "sites 1 12 15 90"]
    info = parse_kernel_info(lines)
    assert info.sites == {1: (12, 15, 90)}
    assert info.maps == (MapInfo("warp", 16), MapInfo("warp", 0))
    with pytest.raises(TraceError, match="expected a count, not 'x'"):
        parse_kernel_info([*lines, "sites 0 x"])


WORDS = st.sampled_from(["appended", "0", "16", "384", "1234567", "x", "-1", "1" * 10, "\u0663"])


def test_grafted_positions() -> None:
    lines = ["f", "1", "1", "1,16", "callback block_sched", "way graft", "grafted 0 160 1234560 appended 1234576"]
    info = parse_kernel_info([*lines, "patch abs64 23584 0 chosen", "constant lut 64"])
    assert info.graft == Graft((0, 160, 1234560), 1234576)
    assert info.callback == "block_sched"
    assert parse_kernel_info(lines[:5]).graft is None


@given(st.lists(WORDS, max_size=6))
def test_any_grafted_line_is_read_or_refused(words: list[str]) -> None:
    lines = ["f", "1", "1", "1,16", "way graft", f"grafted {' '.join(words)}"]
    graft = None
    with suppress(TraceError):
        graft = parse_kernel_info(lines).graft
    if graft is None:
        with pytest.raises(TraceError, match="'grafted'"):
            parse_kernel_info(lines)
    else:
        assert [*map(str, graft.replaced_offsets), "appended", str(graft.appended_offset)] == words


@pytest.mark.parametrize(("last", "callback"), [(["block_sched.py"], "block_sched.py"), ([""], None), ([], None)])
def test_older_kernel_info_ends_in_a_bare_callback(last: list[str], callback: str | None) -> None:
    assert parse_kernel_info(["f", "3", "1", "1,16", *last]) == KernelInfo("f", 3, (MapInfo("warp", 16),), callback)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "0 lines instead of at least 3"),
        (["f", "x", "0"], "line 2: expected a count, not 'x'"),
        (["f", "1", "2", "1,16"], "the file announces 2 maps, but 1 lines follow"),
        (["f", "1", "1", "2,16"], "line 4: expected 'type,bytes', not '2,16'"),
    ],
)
def test_damaged_kernel_info_names_the_line(lines: list[str], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        parse_kernel_info(lines)


def test_kernel_info_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "kernel.info"
    with pytest.raises(TraceError, match=r"kernel\.info: No such file"):
        read_kernel_info(path)
    path.write_bytes(b"caf\xe9\n0\n0\n")
    assert read_kernel_info(path).name == "caf\\xe9"


def ptxas(variant: str, **numbers: int) -> list[str]:
    fields = {"stack": 0, "stores": 0, "loads": 0, "registers": 18, "constant": 368} | numbers
    return [
        f"ptxas -arch=sm_90 -v /t/{variant}.ptx -o /t/{variant}.bin",
        *PTXAS.format(name="f", **fields).splitlines(),
    ]


def test_each_variant_gets_the_words_after_its_command() -> None:
    log = parse_process_log(
        [*ptxas("pruned"), *ptxas("probed", registers=24, stack=16, stores=12, loads=8, constant=376)]
    )
    assert log.pruned == Resources(18, 0, 0, 128, 368)
    assert log.probed == Resources(24, 20, 16, 128, 376)
    assert log.reason is None


def test_older_command_lines_quote_their_paths() -> None:
    lines = ['ptxas -arch=sm_80 --verbose -m64  "/t/probed.ptx" -o "/t/probed.bin"']
    assert parse_process_log([*lines, "ptxas info    : Used 12 registers, 352 bytes cmem[0]"]).probed == (
        Resources(12, None, None, 0, 352)
    )


def test_spills_of_called_functions_count() -> None:
    called = [
        "ptxas info    : Function properties for g",
        "    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads",
    ]
    log = parse_process_log([*ptxas("pruned", stores=2, loads=1), *called])
    assert log.pruned is not None
    assert (log.pruned.spill_bytes, log.pruned.stack_bytes) == (11, 8)


@pytest.mark.parametrize(
    ("lines", "reason", "code"),
    [
        (
            ["Traceback (most recent call last):", '  File "x", line 1', "UnboundLocalError: cannot access 'out'"],
            "UnboundLocalError: cannot access 'out'",
            None,
        ),
        (
            ["[failed] Traceback (most recent call last):", '  File "x", line 1', "KeyError: 'mistake'"],
            "KeyError: 'mistake'",
            None,
        ),
        (
            ["[failed] KeyError: 'a' code engine-defect", "Traceback (most recent call last):", "KeyError: 'a'"],
            "KeyError: 'a'",
            "engine-defect",
        ),
        (
            ["ptxas /t/probed.ptx, line 5; error   : Unknown symbol 'q'", "ptxas fatal   : Ptx assembly aborted"],
            "ptxas /t/probed.ptx, line 5; error   : Unknown symbol 'q'",
            "ptxas-refused",
        ),
        (["[skipped] no PTX in image"], "no PTX in image", "no-ptx"),
        (["[skipped] no PTX in image code no-ptx"], "no PTX in image", "no-ptx"),
    ],
)
def test_the_reason_of_a_failure(lines: list[str], reason: str, code: str | None) -> None:
    assert parse_process_log(lines).reason == (reason, code)


def test_a_missing_log_tells_nothing(tmp_path: Path) -> None:
    assert read_process_log(tmp_path / "process.log") == ProcessLog()


@given(st.lists(st.text(max_size=40), max_size=8))
@settings(deadline=None)
def test_any_lines_parse_or_are_a_trace_error(lines: list[str]) -> None:
    parse_process_log(lines)
    with suppress(TraceError):
        parse_kernel_info(lines)
