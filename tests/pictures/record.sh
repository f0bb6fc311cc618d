#!/usr/bin/env bash
# Records commands and keys in a shell, on the simulated GPU:
#     tests/pictures/record.sh [demo] [tour] [compare]
# demo.svg: the live screen, and the finding of a kernel. tour.svg: the steps of the tutorial. compare.svg: two runs,
# before and after a fix. Needs tmux, nvcc, and tui-probe with its development packages on PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD
work=$(mktemp -d)
trap 'sleep 2; rm -rf "$work"' EXIT # a screen that was closed may still write
cp -r tui_probe/simgpu/examples/. "$work"
cd "$work"
export HOME=$work CUDA_VISIBLE_DEVICES=

# record NAME TITLE SIZE WORDS
record() {
  PYTHONPATH=$here python -m tests.pictures.take --size "$3" --title "$2" --out "$here/tests/pictures/$1.svg" --keys "'until:$ ' $4" \
    -- env 'PS1=$ ' bash --norc --noprofile -i
  wc -c "$here/tests/pictures/$1.svg"
}

demo() {
  record demo "tui-probe demo" 100x28 \
    "'type:tui-probe demo' 'film:exit 0' frame:2 ! frame:3 Enter sleep:1 frame:4 2 sleep:1 frame:4 q frame:2"
}

tour() {
  record tour "Tutorial" 100x28 \
    "'type:tui-probe demo --no-ui --tracedir demo' 'film:trace in' prompt frame:1 'type:clear' frame:0.5 \
    'type:tui-probe report demo --brief' prompt frame:6 'type:clear' 'type:tui-probe open demo' 'film:sectors, ide' \
    frame:2 ! frame:2 Enter sleep:1 frame:4 6 sleep:1 frame:4 2 sleep:1 frame:5"
}

# A matrix multiply whose second tile is stored transposed: its loads have bank conflicts, which a padded row avoids.
compare() {
  sed -i -e 's/tile_b\[threadIdx.y\]\[threadIdx.x\]/tile_b[threadIdx.x][threadIdx.y]/' \
    -e 's/tile_b\[i\]\[threadIdx.x\]/tile_b[threadIdx.x][i]/' kernels/matmul.cu
  kernels/compile.sh
  tui-probe run --sim --no-ui --no-report --name before -- python demo.py --kernel matmul
  record compare "Compare two runs" 110x36 \
    "'type:tui-probe report before --brief' prompt frame:5 type:clear \
    'type:sed -i \"s/tile_b\[TILE\]\[TILE\]/tile_b[TILE][TILE + 1]/\" kernels/matmul.cu && kernels/compile.sh' prompt frame:1 \
    'type:tui-probe run --sim --no-ui --no-report --name after -- python demo.py --kernel matmul' 'film:trace in' prompt frame:1 \
    type:clear 'type:tui-probe compare before after' prompt frame:8"
}

for name in "${@:-demo tour compare}"; do
  for recording in $name; do "$recording"; done
done
