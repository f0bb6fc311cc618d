"""Errors of the compiler: file, line, what is wrong, what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import golden
from tui_probe.errors import ProbeFileError
from tui_probe.probe_files.loading import read_probe
from tui_probe.ptx.instruction_facts import CLASSES

MAP = '@Map(level="thread")\nclass m:\n    a: u64\n    b: u32\n'
PROBE = '@probe(pos="kernel")\ndef leave():\n'
AT_LOAD = '@probe(pos="ld.global", before=True)\ndef load():\n'
SITES = '@Map(level="site")\nclass s:\n    n: u64\n'


def body(*lines: str, head: str = PROBE, before: str = "") -> str:
    """A file with one map (lines 1 to 4) and one function (its body begins with line 7, after ``before``)."""
    return MAP + before + head + "".join(f"    {line}\n" for line in lines)


WHOLE = body("m.save(1, 2)")
MISTAKES = {
    # the file
    "not Python": MAP + "def leave(:\n",
    "nul": "\0",
    "too deep": body(f"m.save({'-' * 5000}1, 2)"),
    "too deep for Python": body(f"m.save({'(' * 300}1{')' * 300}, 2)"),
    "empty": "",
    "no map": PROBE + "    pass\n",
    "import": "import os\n" + WHOLE,
    "import from": "from os import path\n" + WHOLE,
    "renamed": "from tui_probe.dsl import clock as c\n" + WHOLE,
    "code": "print(1)\n" + WHOLE,
    "undecorated": "def helper():\n    pass\n" + WHOLE,
    "no value": "x: u64\n" + WHOLE,
    "wrong type": "x: int = 0\n" + WHOLE,
    "not constant": "x: u64 = clock()\n" + WHOLE,
    "unknown constant": "N = M + 1\n" + WHOLE,
    "division by 0": "N = 1 // (2 - 2)\n" + WHOLE,
    "large": "N = 1 << 64\nM = 18446744073709551616\n" + WHOLE,
    "real": "N = 1.5\n" + WHOLE,
    "callback": "CALLBACK = 3\n" + WHOLE,
    "twice": "N = 1\nN: u64 = 2\n" + WHOLE,
    "reserved": "clock = 1\n" + WHOLE,
    "letters": "größe: u64 = 0\n" + WHOLE,
    # maps
    "level": WHOLE.replace('"thread"', '"block"'),
    "no level": WHOLE.replace('level="thread"', ""),
    "cap": WHOLE.replace('"thread"', '"thread", cap=0'),
    "large cap": WHOLE.replace('"thread"', '"thread", cap=1 << 30'),
    "larger cap": WHOLE.replace('"thread"', '"thread", cap=1073741824'),
    "size": WHOLE.replace('"thread"', '"thread", size=12'),
    "reduce": WHOLE.replace('"thread"', '"thread", reduce="grid"'),
    "reduce several": WHOLE.replace('"thread"', '"thread", cap=2, reduce="warp"'),
    "reduce to itself": WHOLE.replace('"thread"', '"warp", reduce="warp"'),
    "size type": WHOLE.replace('"thread"', '"thread", size="16"'),
    "map argument": WHOLE.replace('"thread"', '"thread", colour="red"'),
    "map by place": WHOLE.replace('level="thread"', '"thread"'),
    "base": WHOLE.replace("class m:", "class m(dict):"),
    "field type": WHOLE.replace("b: u32", "b: float"),
    "field value": WHOLE.replace("b: u32", "b: u32 = 0"),
    "field twice": WHOLE.replace("b: u32", "a: u32"),
    "no fields": WHOLE.replace("    a: u64\n    b: u32\n", '    "nothing"\n'),
    "unsaved": WHOLE.replace(
        "class m:", "class n:\n    a: u32\n" + MAP.replace("class m", "class m")[:21] + "class m:"
    ),
    # functions
    "no position": WHOLE.replace('pos="kernel"', 'level="thread"'),
    "position": WHOLE.replace('"kernel"', '"ld global"'),
    "before": WHOLE.replace('"kernel"', '"kernel", before=1'),
    "arguments": WHOLE.replace("leave()", "leave(x)"),
    "no effect": body("x = 1", before=PROBE.replace("leave", "first") + "    m.save(1, 2)\n"),
    "dead": body("m.save(1, 2)", before="x: u32 = 0\n" + AT_LOAD + "    global x\n    x = bytes\n"),
    # statements
    "while": body("while 1:", "    pass"),
    "return": body("return"),
    "call": body("print(1)"),
    "two targets": body("a = b = 1"),
    "tuple": body("a, b = 1, 2"),
    "attribute": body("m.x = 1"),
    "assigned helper": body("addr = 1"),
    "assigned map": body("m = 1"),
    "local type": body("x: float = 1"),
    "typed register": body("x: u64 = 1", before="x: u64 = 0\n"),
    "two types": body("x: u64 = 1", "x: u32 = 1"),
    "global": body("global x", "m.save(1, 2)"),
    "unset": body("if lane() > 3:", "    x = 1", "m.save(x, 2)"),
    "unknown": body("m.save(x, 2)"),
    "forward": body("m.save(x, 2)", "x = 1"),
    # loops
    "loop over": body("for i in m:", "    m.save(i, 2)"),
    "loop else": body("for i in range(4):", "    m.save(i, 2)", "else:", "    pass"),
    "bound": body("for i in range(lane()):", "    m.save(i, 2)"),
    "long loop": body("for i in range(1025):", "    m.save(i, 2)"),
    "long loops": body("for i in range(33):", "    for j in range(32):", "        m.save(i, j)"),
    "empty loop": body("for i in range(3, 3):", "    m.save(i, 2)"),
    "negative loop": body("for i in range(3, -2, -1):", "    m.save(i, 2)"),
    "step": body("for i in range(1, 2, 0):", "    m.save(i, 2)"),
    "counter": body("for i in range(4):", "    i = 2"),
    "counter twice": body("for i in range(4):", "    for i in range(2):", "        m.save(i, 2)"),
    "counter is a local": body("i = 3", "for i in range(4):", "    m.save(i, 2)"),
    "counter after": body("for i in range(4):", "    m.save(i, 2)", "m.save(i, 2)"),
    "break": body("for i in range(4):", "    break"),
    # expressions
    "division": body("m.save(1 / 2, 2)"),
    "power": body("m.save(2 ** lane(), 2)"),
    "divides by 0": body("m.save(lane() % 0, 2)"),
    "chain": body("m.save(1 < lane() < 5, 2)"),
    "is": body("m.save(lane() is 5, 2)"),
    "text": body("m.save('text', 2)"),
    "truth": body("m.save(True, 2)"),
    "list": body("m.save([1], 2)"),
    "unknown call": body("m.save(max(1, 2), 2)"),
    "not called": body("m.save(clock, 2)"),
    "clock of": body("m.save(clock(1), 2)"),
    "save in an expression": body("m.save(m.save(1, 2), 2)"),
    # saves
    "values": body("m.save(1)"),
    "named values": body("m.save(a=1, b=2)"),
    "starred": body("m.save(*[1, 2])"),
    "unknown map": body("n.save(1, 2)"),
    "other level": body("m.save(1, 2)", head=PROBE.replace('"kernel"', '"kernel", level="warp"')),
    "locate only": body("m.locate()"),
    "locate with": body("m.locate(1)"),
    "locate and if": body("m.locate()", "if lane() > 3:", "    m.save(1, 2)"),
    "locate and register": body("m.locate()", "x = 1", "m.save(1, 2)", before="x: u64 = 0\n"),
    "after locate": body("m.locate()", "x = 1", "m.save(x, 2)", "m.save(x, 2)"),
    # adds
    "added values": body("m.add(1)"),
    "named added values": body("m.add(a=1, b=2)"),
    "add to several": body("m.add(1, 2)").replace('"thread"', '"thread", cap=4'),
    "add to a dynamic map": body("m.add(1, 2)").replace('"thread"', '"thread", type="dynamic"'),
    "add an operand": body("m.add(in1, 2)", head=AT_LOAD.replace("ld.global", "st.global")),
    "add in an expression": body("m.save(m.add(1, 2), 2)"),
    "add after locate": body("m.locate()", "m.add(1, 2)"),
    # operands
    "instructions at an instruction": body("m.save(instructions, 2)", head=AT_LOAD),
    "instructions of a loop": body("m.save(instructions, 2)", head=AT_LOAD.replace("ld.global", "loop")),
    "bytes at a block": body("m.save(bytes, 2)", head=AT_LOAD.replace("ld.global", "block.load")),
    "line at kernel": body("m.save(line, 2)"),
    "after a block": body("m.save(line, 2)", head=PROBE.replace("kernel", "block")),
    "class of a block": body("m.save(line, 2)", head=AT_LOAD.replace("ld.global", "block.loads")),
    "left out of a block": body("m.save(line, 2)", head=AT_LOAD.replace("ld.global", "block.!load")),
    "left out of nothing": body("m.save(line, 2)", head=AT_LOAD.replace("ld.global", "!ld")),
    "addr at kernel": body("m.save(addr, 2)"),
    "out before": body("m.save(out, 2)", head=AT_LOAD),
    "width": body("m.save(in1 + 1, 2)", head=AT_LOAD.replace("ld.global", "st.global")),
    "vector": body("m.save(in1 + 1, 2)", head=AT_LOAD.replace("ld.global", "st.global.v4.f32")),
    "two widths": body("m.save(in1 + 1, 2)", head=AT_LOAD.replace("ld.global", "st.global.f32:st.global.f64")),
    # sites
    "sites saved": SITES + AT_LOAD + "    s.save(1)\n",
    "sites located": SITES + AT_LOAD + "    s.locate()\n    s.add(1)\n",
    "sites at the exits": SITES + PROBE + "    s.add(1)\n",
    "sites of 32 bits": SITES.replace("u64", "u32") + AT_LOAD + "    s.add(1)\n",
    "sites of many": SITES.replace('"site"', '"site", cap=4') + AT_LOAD + "    s.add(1)\n",
    "sites and a probe of warps": SITES
    + AT_LOAD.replace('"ld.global"', '"ld.global", level="warp"')
    + "    s.add(1)\n",
}


def message(source: str) -> str:
    with pytest.raises(ProbeFileError) as caught:
        read_probe(source.encode(), Path("own.py"))
    return str(caught.value)


def test_messages() -> None:
    messages = "".join(f"[{name}]\n{message(source)}\n" for name, source in MISTAKES.items())
    messages = messages.replace(", ".join(CLASSES), "CLASSES")
    golden("errors.txt", messages)


def test_the_file_is_named_in_every_message() -> None:
    assert all(message(source).startswith("own.py") for source in MISTAKES.values())


def test_templates_of_the_mistakes_are_valid() -> None:
    read_probe(WHOLE.encode(), Path("own.py"))


def test_a_file_that_is_not_utf_8() -> None:
    with pytest.raises(ProbeFileError, match=r"own\.py: byte 2 is not UTF-8"):
        read_probe(b"# \xff", Path("own.py"))
