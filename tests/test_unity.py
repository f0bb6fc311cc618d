"""Groups of C files that are compiled as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unity import declared_names, groups


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;", {"mutex"}),
        ("static int first[3], last; /* and = none; */", {"first", "last"}),
        ("static _Thread_local struct a *spare __attribute__((tls_model(\"x\")));", {"spare"}),
        ("#define _GNU_SOURCE\n#define SIZE(x) \\\n    (other = x)\n", {"SIZE"}),
        ("enum { ONE, TWO = 2 };", {"ONE", "TWO"}),
        ("struct tag {\n    int member;\n};", {"tag"}),
        ("static void walk(const struct a *own, int n)\n{\n    int inner = 0;\n    call(inner);\n}", {"walk"}),
    ],
)  # fmt: skip
def test_names_outside_of_functions_are_declared(text: str, names: set[str]) -> None:
    assert declared_names(text) == names


def test_files_with_a_common_name_are_in_different_groups(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.c" for name in "abc"]
    for file, name in zip(files, ("mutex", "other", "mutex"), strict=True):
        file.write_text(f"static int {name};")
    assert groups(files) == [files[:2], files[2:]]
