"""Hypothesis strategies: PTX that is right, nearly right, and not at all."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.ptx.corpus import HEADER, NAMES, corpus

TOKENS = r"""
{ } ( ) [ ] < > ; , : @ ! + - = | . % _ $ /* */ // " \ "nounroll" k f x a: %r1 %rd2 %p1 %tid .x %r<5> WARP_SZ
0 1 -1 0x1F 0f3F800000 1.5 07 0b1 3U ld st bra call ret mov .u32 .to::y .foo::bar function_name inlined_at
.reg .b32 .pred .v4 .global .param .shared .local .const .align 4 .ptr .entry .func .visible .extern .weak .loc
.file .section .pragma .branchtargets .callprototype .alias .attribute .reqntid .noreturn .version .target
"""
WORDS = TOKENS.split()
GAPS = ["", " ", " ", "\n", "\t", " /* c */ ", "// c\n"]


@st.composite
def soup(draw: st.DrawFn) -> str:
    """Tokens in any order, with any gaps."""
    tokens = draw(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), max_size=60))
    text = "".join(word + gap for word, gap in tokens)
    frame = draw(
        st.sampled_from(["{}", HEADER + "{}", HEADER + ".entry k()\n{{ {} }}", HEADER + ".func (.param .b32 r) f {}"])
    )
    return frame.format(text)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A file of the corpus with pieces cut, doubled, replaced or swapped in from elsewhere."""
    text = corpus(draw(st.sampled_from(NAMES)))
    text = text[: draw(st.sampled_from([600, 2500, 12000]))] if draw(st.booleans()) else text
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        patch = (
            draw(st.sampled_from(["", text[start:end] * 2, *WORDS]))
            if draw(st.booleans())
            else draw(st.text(max_size=5))
        )
        text = text[:start] + patch + text[end:]
    return text


def operands() -> st.SearchStrategy[str]:
    """Operand lists of every form of the tree, as text."""
    name = st.sampled_from(["%r1", "%rd12", "%p3", "_", "foo", "$L__BB0_1", "WARP_SZ", "bare", "n3", "n9"])
    number = st.sampled_from(["0", "16", "-1", "0x1F", "-0x8", "0f3F800000", "1.5", "017", "3U", "2e3"])
    special = st.sampled_from(["%tid.x", "%clock64", "bare.x", "%r1.b0"])
    offset = st.sampled_from(["", "+4", "+-4", "-8", " + 0x10", "+x"])
    address = st.builds("[{}{}]".format, name | number, offset)
    tensor = st.builds("[{}, {{{}, {}}}]".format, name, name, number)
    atom = name | number | special | address | tensor | st.builds("!{}".format, name) | st.builds("{}+8".format, name)

    def nest(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        several = st.lists(inner, max_size=3).map(", ".join)
        return (
            st.builds("{{{}}}".format, several)
            | st.builds("({})".format, several)
            | st.builds("{}|{}".format, inner, inner)
        )

    return st.lists(st.recursive(atom, nest, max_leaves=6), max_size=4).map(",".join)
