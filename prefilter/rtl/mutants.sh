#!/usr/bin/env bash
# Mistakes in the RTL that the golden script must notice, one after the other. Prints `checks: N`.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=0

# WHAT FROM TO: in pf_judge.sv.
mutant() {
  cp prefilter/rtl/*.sv "$work"
  sed -i "s/$2/$3/" "$work/pf_judge.sv"
  if cmp -s prefilter/rtl/pf_judge.sv "$work/pf_judge.sv"; then
    echo "$1: nothing was changed" >&2
    exit 1
  fi
  if ! PREFILTER_RTL="$work" cargo test --quiet -p prefilter --features rtl-sim --test suite --no-run; then
    echo "$1: does not build" >&2
    exit 1
  fi
  if PREFILTER_RTL="$work" cargo test --quiet -p prefilter --features rtl-sim --test suite rtl::the_golden > "$work/log" 2>&1; then
    echo "$1: not noticed" >&2
    exit 1
  fi
  # It failed because verdicts differ, and for no other reason.
  grep -q 'expected sequence' "$work/log"
  echo "$1: noticed, $(grep -m 1 -o '[0-9]* differ' "$work/log")"
  checks=$((checks + 1))
}

mutant 'quantity at the limit refused' 'quantity > max_quantity' 'quantity >= max_quantity'
mutant 'bounds swapped' 'max_quantity, highest, lowest} =' 'max_quantity, lowest, highest} ='
mutant 'edge of the rate refused' 'due_lo_gt <= due_kept\[31:0\] > until' 'due_lo_gt <= due_kept[31:0] >= until'
mutant 'price without its sign' '\$signed(price\[63:32\]) < \$signed(lowest\[63:32\])' 'price[63:32] < lowest[63:32]'
echo "checks: $checks"
