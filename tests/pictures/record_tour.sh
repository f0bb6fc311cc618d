#!/usr/bin/env bash
# Records tour.svg: a trace of the demo's kernels on the simulated GPU, from the list of kernels to the costly line.
# Needs tmux, and tui-probe on PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r tui_probe/simgpu/examples/. "$work"
cd "$work"
tui-probe run --sim --no-ui --no-report -- python demo.py --repeat 2 >/dev/null
PYTHONPATH=$here python -m tests.pictures.take --size 110x30 --title "tui-probe open trace" --out "$here/tests/pictures/tour.svg" \
  --keys "'until:sectors, ide' frame:2 ! sleep:1 frame:2 Enter sleep:2 frame:3 2 sleep:1 frame:3 6 sleep:1 frame:3 4 sleep:1 frame:3" \
  -- tui-probe open trace
