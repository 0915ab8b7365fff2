#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Verbs programs over a spine link that loses frames, 0.1 % and 1 %, at dilation 1: RC results are exact, and loss and
# retransmission did happen. UC and UD lose messages by design, and most programs wait for each of them for ever: those are
# given a short time, and the fabric must carry on afterwards.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_programs.sh"

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
uplinks() { # uplinks WORD...: both of leaf0, so that every flow from h0 to h4 meets them
    local s
    for s in 0 1; do trib link leaf0-spine$s "$@" >"$tmp/link.out" || fail "trib link $*"; done
}

repeated=0
run_pair() {
    case $3 in ibv_*) pair_parting "$@" ;; *) pair "$@" ;; esac
    repeated=$((repeated + $(hca_count retransmits)))
}

for rate in 0.1% 1%; do
    uplinks clear loss=$rate seed=4
    before=$(link_count lost leaf0-spine0 leaf0-spine1)
    repeated=0
    for kind in rc srq; do
        run_pair h0 h4 ibv_${kind}_pingpong -g 0 -n 300 -c
        run_pair h0 h4 ibv_${kind}_pingpong -g 0 -n 300 -e
    done
    run_pair h0 h4 ibv_rc_pingpong -g 0 -n 100 -m 256 -c
    for test in send write read atomic; do
        run_pair h0 h4 ib_${test}_bw -x 0 -F -n 300
        run_pair h0 h4 ib_${test}_lat -x 0 -F -n 300
    done
    [ $rate = 1% ] || run_pair h0 h4 ib_send_bw -x 0 -F -n 10 -a # whose set-up takes seconds
    run_pair h0 h4 ib_write_bw -x 0 -F -n 300 -b
    run_pair h0 h4 ib_read_bw -x 0 -F -n 50 -q 8
    run_pair h0 h4 ib_send_bw -x 0 -F -n 300 -e
    run_pair h0 h4 ib_write_bw -x 0 -F -n 300 -c UC # whose end nobody waits for
    exact h0 h4 2
    repeated=$((repeated + $(hca_count retransmits)))
    lost=$(($(link_count lost leaf0-spine0 leaf0-spine1) - before))
    [ "$lost" -gt 0 ] || fail "no frame was lost at $rate"
    [ "$repeated" -gt 0 ] || fail "no packet was sent again at $rate"
    echo "$rate: $lost frames lost, $repeated packets sent again"
done

for kind in UC UD; do
    next_port
    timeout 3 "$root/scripts/trib" exec h0 -- ib_send_bw -x 0 -F -n 300 -c $kind -p $port >"$tmp/server.out" 2>&1 &
    until_true 10 listens || fail "ib_send_bw -c $kind does not listen"
    timeout 3 "$root/scripts/trib" exec h4 -- ib_send_bw -x 0 -F -n 300 -c $kind -p $port 127.0.0.1 >"$tmp/client.out" 2>&1
    wait $!
done
run_pair h0 h4 ibv_rc_pingpong -g 0 -n 100 -c

# Collectives by both algorithms: eight ranks over the same links.
perf_ok ring "$conf/leaf-spine-8.conf" -g 8 -b 64K -e 64K -n 2 -w 0 --algo ring
perf_ok sharp "$conf/leaf-spine-8.conf" -g 8 -b 64K -e 64K -n 2 -w 0 --algo sharp

# Every fault at once, then none: what was set is shown, and is gone.
uplinks clear loss=0.2% dup=0.5% reorder=0.5% corrupt=0.2% jitter=2us seed=9
trib link leaf0-spine0 >"$tmp/link.out"
has '^leaf0:[0-9]+ to spine0:[0-9]+: loss=0.002 dup=0.005 reorder=0.005 corrupt=0.002 jitter=2us; [0-9]+ frames' "$tmp/link.out"
exact h0 h4 1
trib status >"$tmp/status.out"
has '^  link leaf0:[0-9]+-spine0:[0-9]+: loss=' "$tmp/status.out"
uplinks clear
trib status >"$tmp/status.out"
has_not '^  link' "$tmp/status.out"

# Mistakes are named.
refused() { # refused PATTERN WORD...
    local want=$1
    shift
    trib link "$@" >"$tmp/refused.out" 2>&1 && fail "trib link $* was taken"
    has "$want" "$tmp/refused.out"
}
refused 'found nowhere, expected a link that trib plan shows' nowhere down
refused 'found loss=101%, expected loss=0.0 to 1.0, 1e-6, or 0% to 100%' leaf0-spine0 loss=101%
refused 'found dwon, expected down, up' leaf0-spine0 dwon
trib link >"$tmp/list.out"
has '^no link of leaf-spine-8 is down or has faults' "$tmp/list.out"
trib down >/dev/null

# The ends of a link in two processes: each owns its direction.
trib up "$conf/leaf-spine-8-procs.conf" --dilation 1 >/dev/null || fail "no fabric of processes"
uplinks loss=1% seed=3
run_pair h0 h4 ibv_rc_pingpong -g 0 -n 300 -c
trib link leaf0-spine0 >"$tmp/link.out"
has '^leaf0:[0-9]+ to spine0:[0-9]+: loss=0.01;' "$tmp/link.out"
has '^spine0:[0-9]+ to leaf0:[0-9]+: loss=0.01;' "$tmp/link.out"
[ "$(link_count lost leaf0-spine0 leaf0-spine1)" -gt 0 ] || fail "no frame was lost between processes"
