#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch's backend "trib" (tests/tools/torch_ddp.py) on 8 hosts: every call; DDP and ZeRO of a small transformer by SHARP and by rings,
# with the same weights in every run; PowerSGD, whose callbacks call collectives; a killed rank; calls that one rank cannot make; torchrun's
# restarts; the time of an all-reduce beside that of `trib sim`. With 2.x (TORCH_PYTHON=) FSDP too.
# tier: thirdparty
. "$(dirname "$0")/lib.sh"
python=${TORCH_PYTHON:-/usr/bin/python3}
"$python" -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' 2>/dev/null ||
    skip "no torch for $python (make torch installs Debian's)"
export PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
hosts=h0,h1,h2,h3,h4,h5,h6,h7
ranks() { timeout -k 5 150 "$root/scripts/trib" exec h0 -- "$python" "$root/tests/tools/torch_ddp.py" "$hosts" "$@" >>"$tmp/torch.out" 2>&1 || fail "$*: exit code $?"; }
fsdp=()
"$python" -c 'import importlib.metadata as m, sys; sys.exit(m.version("torch").startswith("1."))' 2>/dev/null && fsdp=(fsdp sharp,ring fsdp2 ring)

# Rank 0 may end first and take the store along: the reason is still the communicator's.
"$python" "$root/tests/tools/torch_store_gone.py" >"$tmp/gone.out" 2>&1
[ "$(cat "$tmp/gone.out")" = $'fails: all_reduce: rank 2 (h2): its process has ended\ngoes well: well' ] || fail "a store that is gone: $(cat "$tmp/gone.out")"

# A dilation that leaves time for a machine with more ranks than cores.
trib up leaf-spine-8 --dilation 20 >/dev/null || fail up
ranks calls sharp,ring faulty sharp,ring differ sharp,ring hooks sharp,ring ddp sharp ddp ring ddp sharp ddp ring zero sharp psgd sharp,ring psgd sharp,ring \
    ${fsdp[@]+"${fsdp[@]}"} die ring die_psgd ring
for job in calls faulty differ hooks; do has "$job sharp,ring: all right" "$tmp/torch.out"; done
weights() { grep "^$1 $2: weights" "$tmp/torch.out" | sort -u | wc -l; }
for algo in sharp ring; do
    [ "$(weights ddp $algo)" = 1 ] && [ "$(grep -c "^ddp $algo: weights" "$tmp/torch.out")" = 2 ] || fail "ddp $algo: two runs differ"
done
[ "$(weights psgd sharp,ring)" = 1 ] && [ "$(grep -c "^psgd sharp,ring: weights" "$tmp/torch.out")" = 2 ] || fail "psgd: two runs differ"
# Sums in another order, so other last bits; and the optimizer's parts give the same as the whole.
python3 - "$tmp/torch.out" <<'EOF' || fail "losses"
import re, sys
runs = re.findall(r"^(\w+) (\S+): weights (\w+) losses (.*)$", open(sys.argv[1]).read(), re.M)
by = {(how, algo): (weights, [float(v) for v in losses.split()]) for how, algo, weights, losses in runs}
first = by["ddp", "sharp"]
assert by["zero", "sharp"][0] == first[0], "zero and ddp by sharp differ"
for name, (_, losses) in by.items():
    near = 0.1 if name[0] == "psgd" else 1e-4  # compressed
    assert len(losses) == 4 and all(abs(a - b) < near for a, b in zip(losses, first[1])), (name, losses, first[1])
EOF
[ "$(grep -c 'rank [0-7] after [0-9].[0-9] s in [a-z ]*: .*rank 2 .h2.' "$tmp/torch.out")" = 14 ] || fail "a killed rank"
[ "$(grep -c 'rank [0-7] after .* in backward' "$tmp/torch.out")" -ge 4 ] || fail "no error in backward"
[ "$(trib telemetry leaf-spine-8 /trib/an,leaf0 | jq .fabric.bytes_in)" -gt 1000000 ] || fail "leaf0 has reduced nothing"

# torchrun starts all ranks again when one has died: after some operations, and before its group has met.
timeout -k 5 300 "$python" -m torch.distributed.run --nproc_per_node 4 --max_restarts 2 --monitor_interval 0.2 --master_port $port --redirects 1 --tee 1 \
    --no_python "$root/scripts/trib" exec @rank -- "$python" "$root/tests/tools/torch_elastic.py" >"$tmp/elastic.out" 2>&1 || fail "torchrun: exit code $?"
[ "$(grep -c 'attempt 2 rank [0-3] on h[0-3]: 14$' "$tmp/elastic.out")" = 4 ] || fail "torchrun: $(grep attempt "$tmp/elastic.out")"
trib down >/dev/null

# Outside of a fabric.
MASTER_ADDR=127.0.0.1 MASTER_PORT=$port RANK=0 WORLD_SIZE=1 "$python" -c 'import torch.distributed as d, tributary.torch; d.init_process_group("trib")' >"$tmp/outside.out" 2>&1 && fail "without a fabric"
has 'found no TRIB_RUN and TRIB_HOST, expected a program that is run by trib exec CONF HOST' "$tmp/outside.out"

# In fabric time, at a dilation at which this machine keeps up with 8 ranks: what it does not reach at one is tried at the next.
late='sharp ring'
for dilation in 20000 60000 200000; do
    trib up leaf-spine-8 --dilation $dilation >/dev/null || fail "up at $dilation"
    again=
    for algo in $late; do
        trib sim leaf-spine-8 all_reduce -b 1M -e 1M --algo $algo --payload none -w 0 -J "$tmp/sim.json" >"$tmp/sim.out" 2>&1 || fail "trib sim: exit code $?"
        sim=$(jq .results[0].time_us "$tmp/sim.json")
        ranks time $algo
        us=$(sed -n "s/^time $algo: 1048576 bytes \(.*\) us/\1/p" "$tmp/torch.out" | tail -n 1)
        echo "all-reduce of 1 MiB by $algo at dilation $dilation: $us us, trib sim $sim us"
        [ "$(jq -n "$us > 0.97 * $sim and $us < 1.05 * $sim")" = true ] || again+=" $algo"
    done
    trib down >/dev/null
    late=$again
    [ -n "$late" ] || exit 0
done
fail "all-reduce by$late: other times than those of trib sim"
