#!/usr/bin/env bash
# Proves what pf_formal.sv claims of the core, for ever (property directed reachability), shows that the cases it speaks of
# come, and that a core that takes a frame too many is noticed. Needs yosys and its abc. Prints `checks: N`.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=0

# FOLDER DEFINES: makes an AIG of the core, with its claims as outputs.
netlist() {
  yosys -q -p "
    read_verilog -sv -formal -I$1 -D FORMAL $2 $1/pf_ram.sv $1/pf_registers.sv $1/pf_judge.sv $1/pf_core.sv
    chparam -set SYMBOLS_LOG2 2 -set SESSIONS_LOG2 2 pf_core
    prep -top pf_core -flatten
    memory_map
    async2sync; dffunmap
    opt -full
    setundef -undriven -anyseq; setattr -unset keep; delete -output; opt -full
    techmap; opt -fast; dffunmap; simplemap; abc -g AND -fast; opt_clean
    write_aiger -I -B -zinit -no-startoffset $work/core.aig" > "$work/yosys.log" 2>&1 || { cat "$work/yosys.log"; exit 1; }
}

# WHAT PATTERN COMMAND: abc must say so.
abc_says() {
  yosys-abc -c "read_aiger $work/core.aig; fold; strash; $3" > "$work/abc.log" 2>&1 || true
  if ! grep -q "$2" "$work/abc.log"; then
    printf '%s: FAILED\n' "$1"
    cat "$work/abc.log"
    exit 1
  fi
  printf '%s: %s\n' "$1" "$(grep -m 1 "$2" "$work/abc.log")"
  checks=$((checks + 1))
}

netlist . ''
abc_says 'all claims' 'Property proved' 'pdr -T 600'
for case in 0 1 2 3 4 5; do
  netlist . "-D COVER=$case"
  abc_says "case $case comes" 'was asserted in frame' 'bmc3 -F 60 -T 120'
done

cp ./*.sv "$work"
sed -i 's/is_full <= told_behind\[SLOTS_LOG2\] || left_behind\[SLOTS_LOG2\]/is_full <= told_behind[SLOTS_LOG2]/' "$work/pf_core.sv"
! cmp -s pf_core.sv "$work/pf_core.sv"
netlist "$work" ''
abc_says 'a frame too many is noticed' 'was asserted in frame' 'bmc3 -F 60 -T 120'
cp pf_judge.sv pf_core.sv "$work"
sed -i 's/check_reasons\[KILL\] <= !end_open ||/check_reasons[KILL] <=/' "$work/pf_judge.sv"
! cmp -s pf_judge.sv "$work/pf_judge.sv"
netlist "$work" ''
abc_says 'a pass while closed is noticed' 'was asserted in frame' 'bmc3 -F 60 -T 120'
echo "checks: $checks"
