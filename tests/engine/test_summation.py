"""ADD: the sums of what lanes counted, no matter what way they leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.kernels import entry, inserted, probed, toml_probe
from tests.engine.test_execution import INDEX, run_probed
from tui_probe.errors import ProbeFileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.probe_model.probe import Probe

DTYPE = np.dtype([("total", "<u8"), ("long", "<u8"), ("half", "<u4"), ("threads", "<u4")])


def summing_probe(level: str = "warp") -> Probe:
    """Adds what each ``ld.global`` loaded, as 32 bits into 64, as 64 bits, as 32 bits, and the threads."""
    return toml_probe(
        f'''
[map.sums]
level = "{level}"
regs = {{ total = "u64", half = "u32", long = "u64", threads = "u32" }}
[probe.frame]
position = "kernel"
before = ".reg .b32 %a; .reg .b64 %b; mov.u32 %a, 0; mov.u64 %b, 0;"
after = "ADD [ sums ] {{%a, %a, %b, 1}};"
[probe.load]
position = "ld.global"
after = """
add.u32 %a, %a, OUT;
mad.wide.u32 %b, OUT, 1000000, %b;
"""
'''
    )


BODY = f"""{INDEX}
ld.param.u64 %rd4, [values];
add.s64 %rd4, %rd4, %rd2;
ld.global.u32 %r8, [%rd4];
and.b32 %r9, %r8, 1;
setp.eq.u32 %p1, %r9, 1;
@%p1 ret;
ld.global.u32 %r9, [%rd4];
add.u32 %r8, %r8, %r9;
st.global.u32 [%rd3], %r8;
exit;"""


@pytest.mark.parametrize("target", ["sm_80", "sm_75"])
@given(picked=st.lists(st.integers(0, 2**32 - 1), min_size=48, max_size=48))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
def test_lanes_of_two_exits_add_up(target: str, picked: list[int]) -> None:
    """Odd values leave by the first exit, even ones are loaded twice. Sums of 32-bit values need 37 bits."""
    values = np.array(picked, np.uint32)
    text = entry(BODY, ".param .u64 out, .param .u64 values").replace("sm_80", target)
    (raw,) = run_probed(text, summing_probe(), np.zeros(64, np.uint32), values, block=(48,))
    loaded = values.astype(np.uint64) * np.where(values % 2, np.uint64(1), np.uint64(2))
    for record, part in zip(raw.view(DTYPE)[:, 0], (loaded[:32], loaded[32:]), strict=True):
        assert record["long"] == part.sum() * np.uint64(1000000)
        assert record["total"] == sum(int(value) & 0xFFFFFFFF for value in part)
        assert record["half"] == int(part.sum()) & 0xFFFFFFFF
        assert record["threads"] == len(part)


def test_a_thread_adds_to_its_own_record() -> None:
    values = np.arange(48, dtype=np.uint32)
    text = entry(BODY, ".param .u64 out, .param .u64 values")
    (raw,) = run_probed(text, summing_probe("thread"), np.zeros(64, np.uint32), values, block=(48,))
    records = raw.view(DTYPE)[:, 0]
    np.testing.assert_array_equal(records["total"], values * np.where(values % 2, 1, 2))
    assert (records["threads"] == 1).all()


def test_uncounted_instructions_are_not_added(accepts: Callable[[str], int]) -> None:
    text = probed(entry("ret;"), probe=summing_probe())
    (line,) = [line for line in inserted(text) if "red.global" in line]
    assert line == "@!%tp__follows red.global.add.u32 [%tp__address+20], %tp__part;"
    accepts(text)


@given(picked=st.lists(st.integers(0, 2**32 - 1), min_size=48, max_size=48))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
def test_the_lean_form_adds_up_to_the_same(picked: list[int]) -> None:
    values = np.array(picked, np.uint32)
    text = entry(BODY, ".param .u64 out, .param .u64 values")
    plain, lean = (
        run_probed(text, form, np.zeros(64, np.uint32), values, block=(48,))[0]
        for form in (summing_probe(), summing_probe().lean_form())
    )
    np.testing.assert_array_equal(plain, lean)


def sparse_probe(fields: str = 'loads = "u32", low = "u32", high = "u32", threads = "u32"') -> Probe:
    """Adds the small values that lanes loaded, and the threads; lanes that loaded 0 add nothing."""
    values = ", ".join({"loads": "0", "threads": "1"}.get(field.split()[0], "%a") for field in fields.split(", "))
    return toml_probe(
        f"""
[map.sums]
level = "warp"
sparse = true
regs = {{ {fields} }}
[probe.frame]
position = "kernel"
before = ".reg .b32 %a; mov.u32 %a, 0;"
after = "ADD [ sums ] {{{values}}};"
[probe.load]
position = "ld.global"
after = "add.u32 %a, %a, OUT;"
"""
    )


@pytest.mark.parametrize("is_lean", [False, True])
@given(picked=st.lists(st.sampled_from([0, 0, 0, 1, 2, 70000]), min_size=48, max_size=48))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
def test_sparse_lanes_add_their_own_values(picked: list[int], *, is_lean: bool) -> None:
    values = np.array(picked, np.uint32)
    probe = sparse_probe().lean_form() if is_lean else sparse_probe()
    text = entry(BODY, ".param .u64 out, .param .u64 values")
    (raw,) = run_probed(text, probe, np.zeros(64, np.uint32), values, block=(48,))
    loaded = values * np.where(values % 2, np.uint32(1), np.uint32(2))
    for record, part in zip(raw.view("<u4").reshape(2, 4), (loaded[:32], loaded[32:]), strict=True):
        assert record.tolist() == [0, part.sum(), part.sum(), len(part)]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ('low = "u64", high = "u64"', "cap = 1 and only u32 fields"),
        ('low = "u32"', "needs an even number of fields"),
    ],
)
def test_sparse_maps_need_pairs_of_u32(fields: str, message: str) -> None:
    with pytest.raises(ProbeFileError, match=message):
        sparse_probe(fields)


def test_the_lean_form_needs_no_sums_over_lanes() -> None:
    """Numbers are added by one lane for all, registers by each lane."""
    lines = inserted(probed(entry(BODY, ".param .u64 out, .param .u64 values"), probe=summing_probe().lean_form()))
    assert not [line for line in lines if "redux" in line]
    additions = [line.partition("red.global")[0] for line in lines if "red.global" in line]
    assert additions == ["", "", "", "@!%tp__follows "] * 2


FRAME = """
[map.m]
level = "warp"
cap = {cap}
regs = {{ x = "u64", y = "u32" }}
[probe.p]
position = "kernel"
before = ".reg .b64 %a; .reg .b32 %b; .reg .f32 %f; .reg .b16 %h; mov.u64 %a, 0; mov.u32 %b, 0;"
after = "{after}"
"""


@pytest.mark.parametrize(
    ("after", "cap", "words"),
    [
        ("ADD [ m ] {%a, %a};", 1, "make the field y a u64"),
        ("ADD [ m ] {%a};", 1, "ADD takes a value for each field of map m"),
        ("ADD [ m ] {%f, %b};", 1, "add a .b32 or .b64 register"),
        ("ADD [ m ] {%h, %b};", 1, "add a .b32 or .b64 register"),
        ("ADD [ m ] {%smid, %b};", 1, "add a .b32 or .b64 register"),
        ("ADD [ m ] {-1, %b};", 1, "from 0 to 65535"),
        ("ADD [ m ] {%a, %b};", 4, "cap = 1"),
        ("ADD [ n ] {%a, %b};", 1, "no map n"),
        ("ADD {%a, %b};", 1, "is not a valid ADD; write"),
        ("ADD [ m ] {%a, };", 1, "empty value"),
        ("LOCATE [ m ]; ADD [ m ] {%a, %b};", 1, "remove LOCATE"),
    ],
)
def test_unsummable_maps_are_refused(after: str, cap: int, words: str) -> None:
    with pytest.raises(ProbeFileError, match=words.replace("[", r"\[")) as caught:
        toml_probe(FRAME.format(after=after, cap=cap))
    assert "own.toml" in str(caught.value)


def test_sums_are_written_by_the_lowest_lane_only() -> None:
    lines: list[Any] = inserted(probed(entry("ret;"), probe=toml_probe(FRAME.format(after="ADD [ m ] {3, 1};", cap=1))))
    reds = [line for line in lines if "red." in line]
    assert len(reds) == 2
    first = lines.index("setp.ne.u32 %tp__follows, %tp__lower, 0;")
    assert all(line.startswith("@!%tp__follows red.global.add.") for line in reds)
    assert first < lines.index(reds[0]) < lines.index(reds[1])


def test_sums_cost_no_register_each(accepts: Callable[[str], int]) -> None:
    """Eight sums need little more than the eight registers that are added up."""
    names = [f"%n{index}" for index in range(8)]
    fields = ", ".join(f'n{index} = "u32"' for index in range(8))
    start = f".reg .b32 {', '.join(names)}; " + " ".join(f"mov.u32 {name}, %clock;" for name in names)
    probe = toml_probe(
        f'''
[map.m]
level = "warp"
cap = 1
regs = {{ {fields} }}
[probe.p]
position = "kernel"
before = "{start}"
after = "ADD [ m ] {{{", ".join(names)}}};"
'''
    )
    assert accepts(probed(entry("ret;"), probe=probe)) <= 8 + 10
