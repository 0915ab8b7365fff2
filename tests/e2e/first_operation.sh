#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clock: virtual
# The first operation of a run takes as long as the model says, also where it is short and its links have just carried what made the
# connections.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "no jq"

for link in 'hosts = 4; host_link = { rate = "10Gb/s"; latency = "300ns"; };' 'hosts = 16; host_link = { rate = "1Gb/s"; latency = "1us"; };' \
    'hosts = 32; host_link = { rate = "400Gb/s"; latency = "30ns"; };'; do
    echo "single_switch = { $link }; reduce = { };" >"$tmp/star.conf"
    trib sim "$tmp/star.conf" --algo sharp -b 8 -e 8 -w 0 -n 1 --place out -J "$tmp/first.json" >"$tmp/sim.out" 2>&1 || fail "$link"
    jq -e '.results[0] | .time_us / .predicted_us | . > 0.999 and . < 1.001' "$tmp/first.json" >"$tmp/jq.out" ||
        fail "$link $(jq -c '.results[0] | [.time_us, .predicted_us]' "$tmp/first.json")"
done
