"""Optional maps: kernels without an instruction at which they are saved are probed as if the probe had no such map."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.engine.kernels import entry, probed, toml_probe
from tui_probe.engine.insertion import build_probed_ptx
from tui_probe.engine.kernel import Kernel
from tui_probe.errors import ProbeFileError
from tui_probe.probe_files.loading import load_probe
from tui_probe.probe_model.probe import Probe
from tui_probe.ptx.parser import parse

PROBE = '''
[map.life]
level = "warp"
regs = { smid = "u32" }
[map.loads]
level = "thread"
cap = 4
optional = true
regs = { lanes = "u32" }
[probe.entry]
position = "kernel"
before = "SAVE [ life ] {%smid};"
[probe.load]
position = "ld.global"
before = """
.reg .b32 %lanes;
activemask.b32 %lanes;
SAVE [ loads ] {%lanes};
"""
'''
STORE = entry(".reg .b64 %rd<2>; ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], 1; ret;", ".param .u64 out")
LOAD = STORE.replace("st.global.u32", ".reg .b32 %r<2>; ld.global.u32 %r1, [%rd1]; st.global.u32")


def info_of(text: str, probe: Probe) -> list[str]:
    return build_probed_ptx(Kernel.of(parse(text), "kernel"), probe).info.splitlines()


def test_kernel_without_such_an_instruction_has_no_map() -> None:
    probe = toml_probe(PROBE)
    without = replace(probe, maps=probe.maps[:1], points=probe.points[:1], registers={})
    assert probed(STORE, probe=probe) == probed(STORE, probe=without)
    assert info_of(STORE, probe)[2:4] == ["1", "1,4"]
    assert info_of(LOAD, probe)[2:6] == ["3", "1,4", "0,16", "0,4"]


def test_probe_with_an_optional_map_is_not_fused() -> None:
    probe = toml_probe(PROBE)
    assert not probe.counts
    assert replace(probe, maps=tuple(replace(own_map, optional=False) for own_map in probe.maps)).counts


def test_dmat_has_a_map_of_boxes_for_bulk_copies_only() -> None:
    probe = load_probe("dmat")
    assert [own_map.name for own_map in probe.without_optional_maps().maps] == ["warps", "dmat"]
    assert probe.without_optional_maps().registers.keys() < probe.registers.keys()


OTHER_ORDER = PROBE.replace('level = "warp"', 'level = "warp"\noptional = true').replace(
    "cap = 4\noptional = true", "cap = 4"
)
TWO_MAPS = PROBE.replace("SAVE [ loads ]", "SAVE [ life ] {%smid};\nSAVE [ loads ]")


@pytest.mark.parametrize(("text", "problem"), [(OTHER_ORDER, "must be last"), (TWO_MAPS, "split it into two")])
def test_optional_map_that_would_move_or_hide_others_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ProbeFileError, match=problem):
        toml_probe(text)
