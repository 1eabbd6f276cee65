#!/usr/bin/env bash
# Mistakes in the RTL that the golden script must notice, one after the other. Prints `checks: N`.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=0

# WHAT FILE TEST FROM TO.
mutant() {
  cp prefilter/rtl/*.sv "$work"
  sed -i "s/$4/$5/" "$work/$2"
  if cmp -s "prefilter/rtl/$2" "$work/$2"; then
    echo "$1: nothing was changed" >&2
    exit 1
  fi
  if ! PREFILTER_RTL="$work" cargo test --quiet -p prefilter --features rtl-sim --test suite --no-run; then
    echo "$1: does not build" >&2
    exit 1
  fi
  if PREFILTER_RTL="$work" cargo test --quiet -p prefilter --features rtl-sim --test suite "$3" > "$work/log" 2>&1; then
    echo "$1: not noticed" >&2
    exit 1
  fi
  # It failed because verdicts differ or do not come, and for no other reason.
  grep -q 'expected sequence\|sound: ' "$work/log" || { cat "$work/log" >&2; exit 1; }
  echo "$1: noticed, $(grep -m 1 -o '[0-9]* differ\|sound: .*' "$work/log")"
  checks=$((checks + 1))
}

judge='pf_judge.sv rtl::the_golden'
rings='pf_rings.sv board::the_golden'
mutant 'quantity at the limit refused' $judge 'quantity > max_quantity' 'quantity >= max_quantity'
mutant 'bounds swapped' $judge 'max_quantity, highest, lowest} <=' 'max_quantity, lowest, highest} <='
mutant 'edge of the rate refused' $judge "majority\[30:0\], 1'b1" "majority[30:0], 1'b0"
mutant 'price without its sign' $judge '\$signed(price\[63:32\]) < \$signed(lowest\[63:32\])' 'price[63:32] < lowest[63:32]'
mutant 'a phase that never turns' $rings '!given\[size_log2\]' "1'b1"
mutant 'a length that is not looked at' $rings 'word_data\[47:32\] != 48' "1'b0"
mutant 'the time of another order' $rings "3'd6, 3'd0" "3'd5, 3'd0"
echo "checks: $checks"
