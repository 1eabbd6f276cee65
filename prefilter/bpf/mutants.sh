#!/usr/bin/env bash
# Mistakes in the program for the kernel that tests must notice, one after the other. Needs root. Prints `checks: N`.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=0

# WHAT TEST FROM TO.
mutant() {
  local built
  sed "s/$3/$4/" prefilter/bpf/prefilter.c > "$work/prefilter.c"
  if cmp -s prefilter/bpf/prefilter.c "$work/prefilter.c"; then
    echo "$1: nothing was changed" >&2
    exit 1
  fi
  built=$(PREFILTER_BPF="$work/prefilter.c" cargo test --quiet -p prefilter --features xdp --test suite --no-run \
    --message-format=json | sed -n '/"kind":\["test"\]/s/.*"executable":"\([^"]*\)".*/\1/p')
  [ -x "$built" ] || { echo "$1: does not build" >&2; exit 1; }
  if "$built" --ignored --exact "xdp::$2" > "$work/log" 2>&1; then
    echo "$1: not noticed" >&2
    exit 1
  fi
  # It failed because verdicts differ, and for no other reason.
  grep -q 'differ\|left == right' "$work/log" || { cat "$work/log" >&2; exit 1; }
  echo "$1: noticed"
  checks=$((checks + 1))
}

golden=the_golden_script_gives_its_verdicts
mutant 'quantity at the limit refused' "$golden" 'quantity > symbol->max_quantity' 'quantity >= symbol->max_quantity'
mutant 'price without its sign' "$golden" 'order->price < symbol->lowest' '(u64)order->price < (u64)symbol->lowest'
mutant 'edge of the rate refused' "$golden" 'before > order->now' 'before >= order->now'
mutant 'a repeat is charged' a_number_that_was_judged_is_neither_judged_nor_charged_again \
  '\*judged == (1ull' '*judged == (2ull'
mutant 'anybody may send' orders_over_a_wire_are_judged_as_software_does_in_native_mode \
  '|| frame->source_port != flow->port' ''
echo "checks: $checks"
