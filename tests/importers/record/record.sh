#!/usr/bin/env bash
# Records what the tests of .ncu-rep files read, on a machine with a GPU, nvcc and ncu:  record.sh DIRECTORY
# stores.ncu-rep has source and line information, plain.ncu-rep has neither; stores_trace is a trace of the same program.
# Each report is at most 300 KB: tests/data/ncu/ has them, of an H100 and ncu 2025.3. Clocks stay as they are. With
# -arch=native nvcc 13.0 leaves line information out of the PTX, so the trace would have no lines.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$here/stores.cu" .
nvcc -O2 -arch=${ARCH:-sm_90} -lineinfo -o stores stores.cu
nvcc -O2 -arch=${ARCH:-sm_90} -o plain stores.cu
sections="--section SourceCounters --section SpeedOfLight --section LaunchStats"
metrics=gpu__time_duration.sum,dram__bytes.sum,lts__t_bytes.sum,l1tex__t_bytes.sum
for op in ld st; do
    for what in requests sectors; do
        metrics+=,l1tex__t_${what}_pipe_lsu_mem_global_op_$op.sum
    done
done
ncu --clock-control none -f -o "$out/stores" $sections --metrics "$metrics" --import-source yes ./stores
ncu --clock-control none -f -o "$out/plain" $sections --metrics "$metrics" ./plain
for name in stores plain; do
    ncu --import "$out/$name.ncu-rep" --page raw --csv >"$out/$name.csv"
    ncu --import "$out/$name.ncu-rep" --page source --csv >"$out/${name}_source.csv" || true
done
if command -v "${TUI_PROBE:-tui-probe}" >/dev/null; then
    "${TUI_PROBE:-tui-probe}" run --no-ui --launches all --tracedir "$work/trace" -p gmem_sectors_by_line -- ./stores
    cp -r "$work"/trace/*_* "$out/stores_trace"
fi
ls -la "$out"
