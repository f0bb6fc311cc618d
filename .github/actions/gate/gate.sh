#!/usr/bin/env bash
# Runs the gate; its Markdown becomes a part of the job's summary, its SARIF a file for upload-sarif.
set -euo pipefail
read -ra options <<<"$OPTIONS"
markdown=$(mktemp)
trap 'rm -f "$markdown"' EXIT
status=0
tui-probe gate "$BASELINE" "${options[@]}" --markdown "$markdown" --junit tui-probe-gate.xml --sarif tui-probe-gate.sarif \
  -- bash -c "$COMMAND" || status=$?
cat "$markdown" >>"$GITHUB_STEP_SUMMARY"
exit "$status"
