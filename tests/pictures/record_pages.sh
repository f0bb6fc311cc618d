#!/usr/bin/env bash
# Takes the pictures of single pages: the demo on the simulated GPU, and traces of an H200 in tests/data.
# Needs tmux, and tui-probe and its development packages on PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for trace in dmat attention_sectors demo; do
  PYTHONPATH=$here python -c "import sys, pathlib; from tests.recorded import H200, unpacked
unpacked(H200 / sys.argv[1], pathlib.Path(sys.argv[2]))" "$trace" "$work"
done
cd "$work/h200"

# take NAME KEYS COMMAND...: one picture
take() {
  PYTHONPATH=$here python -m tests.pictures.take --size 120x34 --title "${*:3}" --out "$here/tests/pictures/$1.svg" --keys "$2" -- "${@:3}"
}

take live "until:exit sleep:20" tui-probe demo
take source "until:flash_att Enter sleep:2 2 sleep:2 ! sleep:1" tui-probe open attention_sectors
take diff "until:flash_att Enter sleep:2 4 sleep:2 . sleep:1" tui-probe open attention_sectors
take timeline "until:softmax End sleep:1 Enter sleep:2 7 sleep:3" tui-probe open demo
take dmat "until:matmul sleep:2 0 sleep:1 d sleep:4" tui-probe open dmat:matmul
