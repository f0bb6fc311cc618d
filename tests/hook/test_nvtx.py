"""NVTX ranges are logged with the launches that they enclose, and the program cannot tell."""

from __future__ import annotations

import re

import pytest

from .conftest import Host, Run

LINE = re.compile(
    r"\[nvtx\] range (\d+) in (\d+) thread (\d+) start (\d+) end (\d+|-) launches ([\d,-]+) domain (\S+) text (.*)"
)
BEGIN = """
import nvtx_host as nvtx
assert nvtx.start_nvtx() == 1
context()
f = function(module(), "add__8_4")
w, n = word(0), c_int(1)
def run(times=1):
    for _ in range(times):
        launch(f, w, n)
"""


def ranges(run: Run) -> list[tuple[str, str, str, str]]:
    """(text, domain, parent's text, launches) of each range, in the order of the log."""
    assert run.status == 0, run.stderr
    lines = [LINE.fullmatch(line) for line in run.lines(r"\[nvtx\]")]
    matches = [match for match in lines if match]
    assert len(matches) == len(lines)
    texts = {match[1]: match[8] for match in matches} | {"0": ""}
    return [(match[8], match[7], texts.get(match[2], "?"), match[6]) for match in matches]


@pytest.fixture
def nvtx(host: Host) -> Host:
    host.environment = lambda **more: Host.environment(  # type: ignore[method-assign]
        host, NVTX_INJECTION64_PATH=str(host.built.hook), **more
    )
    return host


def test_pushed_ranges_nest_and_host_only_ranges_leave_nothing(nvtx: Host) -> None:
    run = nvtx.python(
        BEGIN
        + """
run()
nvtx.push(b"step 1")
nvtx.push(b"nothing here"); nvtx.pop()
nvtx.push(b"forward"); run(3); nvtx.pop()
nvtx.push_wide("r\\u00fcckw\\u00e4rts \\U0001f680"); run(); nvtx.pop()
run()
nvtx.pop()
run()
"""
    )
    assert ranges(run) == [
        ("forward", "-", "step 1", "1-3"),
        ("rückwärts 🚀", "-", "step 1", "4"),
        ("step 1", "-", "", "1-5"),
    ]


def test_pushes_return_what_they_return_without_a_tool(nvtx: Host) -> None:
    run = nvtx.python(BEGIN + "print(nvtx.push(b'a'), nvtx.push(b'b'), nvtx.pop(), nvtx.pop(), nvtx.pop())")
    assert run.stdout == "-2 -2 -2 -2 -2\n"


def test_domains_have_stacks_of_their_own(nvtx: Host) -> None:
    run = nvtx.python(
        BEGIN
        + """
mine = nvtx.domain(b"my library")
name = nvtx.registered(mine, b"solve\\nit")
nvtx.push(b"outer")
nvtx.domain_push(mine, nvtx.attributes(3, name))
run()
nvtx.pop()
run()
nvtx.domain_pop(mine)
"""
    )
    assert ranges(run) == [("outer", "-", "", "0"), ("solve it", "my_library", "", "0-1")]


def test_started_ranges_enclose_all_threads_and_pushed_ones_their_own(nvtx: Host) -> None:
    run = nvtx.python(
        BEGIN
        + """
import threading
context_of_thread = lambda: (call("cuInit", 0), run(2))
whole_range = nvtx.start(b"whole")
nvtx.push(b"mine")
other = threading.Thread(target=context_of_thread); other.start(); other.join()
run()
nvtx.pop()
nvtx.end(whole_range)
run()
"""
    )
    assert ranges(run) == [("mine", "-", "", "2"), ("whole", "-", "", "0-2")]


def test_ranges_open_at_the_end_are_logged_without_an_end(nvtx: Host) -> None:
    run = nvtx.python(BEGIN + "nvtx.push(b'never popped'); nvtx.start(b'never ended'); run(2)")
    assert sorted(ranges(run)) == [("never ended", "-", "", "0-1"), ("never popped", "-", "", "0-1")]
    assert all(" end - " in line for line in run.lines(r"\[nvtx\]"))


def test_a_range_in_many_pieces_is_logged_in_parts(nvtx: Host) -> None:
    run = nvtx.python(
        BEGIN
        + """
import threading
turns = [threading.Semaphore(1), threading.Semaphore(0)]
def play(which):
    if which == 0:
        nvtx.push(b"every other")
    for _ in range(80):
        turns[which].acquire(); run(); turns[1 - which].release()
    if which == 0:
        nvtx.pop()
threads = [threading.Thread(target=play, args=(which,)) for which in (0, 1)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
"""
    )
    parts = ranges(run)
    assert {part[0] for part in parts} == {"every other"}
    assert len({LINE.fullmatch(line)[1] for line in run.lines(r"\[nvtx\]")}) == 1  # type: ignore[index]
    numbers = [int(number) for part in parts for number in part[3].split(",")]
    assert numbers == list(range(0, 160, 2))


def test_a_child_process_starts_without_its_parents_ranges(nvtx: Host) -> None:
    run = nvtx.python(
        """
import nvtx_host as nvtx
nvtx.start_nvtx()
nvtx.push(b"of the parent")
child = os.fork()
context()
f = function(module(), "add__8_4")
w, n = word(0), c_int(1)
launch(f, w, n)
if child:
    os.waitpid(child, 0)
    nvtx.pop()
"""
    )
    assert run.status == 0, run.stderr
    logs = [(folder / "event.log").read_text() for folder in run.directories]
    assert sorted("text of the parent" in log for log in logs) == [False, True]


def test_launches_outside_of_the_range_that_was_asked_for_pass(nvtx: Host) -> None:
    run = nvtx.python(
        BEGIN
        + """
import threading
mine = c_void_p()
call("cuCtxGetCurrent", byref(mine))
def run_there():
    call("cuCtxSetCurrent", mine)
    run()
run()
nvtx.push(b"step")
run(2)
nvtx.push(b"step"); run(); nvtx.pop()
other = threading.Thread(target=run_there)
other.start(); other.join()
nvtx.push(b"other"); run(); nvtx.pop()
nvtx.pop()
run()
started = nvtx.start(b"step")
other = threading.Thread(target=run_there)
other.start(); other.join()
nvtx.end(started)
run()
print(read(w))
""",
        TUI_PROBE_NVTX="step",
    )
    assert (run.status, run.stdout) == (0, "9\n"), run.stderr
    assert run.codes == ["outside-range"]
    passed = [int(number) for line in run.lines(r"\[exec\] backup") for number in re.findall(r"launch (\d+)", line)]
    assert passed == [0, 4, 6, 8]
