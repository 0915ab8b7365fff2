#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib trace: operations and bytes of samples against independent counts, what is said of a trace, exit codes, groups beside it, gzip.
# TRACES=DIR: the samples of DIR too, FORMAT/SAMPLE/counts.json.
# clock: virtual
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
samples=("$root"/tests/trace/samples/*/*)
[ -z "${TRACES:-}" ] || samples+=("$TRACES"/*/*)
python3 "$root/tests/trace/counts.py" "$TRIB_BUILD/trib-trace" "${samples[@]}" >counts.out || fail "operations by rank differ:"$'\n'"$(cat counts.out)"

code() { # code CODE WORDS ARG...
    local code=$1 words=$2 rc
    shift 2
    trib trace "$@" >said.out 2>&1
    rc=$?
    [ $rc = "$code" ] || fail "trib trace $*: exit code $rc, expected $code"
    has "$words" said.out
}

# a collective on the group of the file beside it, of another file, of none
printf 'num_ranks 2\nrank 0 {\ncoll allreduce 64b 0 1 -1\n}\nrank 1 {\ncoll allreduce 64b 0 1 -1\n}\n' >c.goal
echo '0 1' >c.groups
echo '1 0 2' >three
code 0 '^Nothing is wrong$' c.goal --check
code 1 'c.goal:3: found all_reduce of 64 B by 2 ranks, expected the 3 of its group: rank 2 lacks it' c.goal --check --groups three
code 0 '^Wrong: 1 collectives that members lack$' c.goal --groups three
gzip -k c.goal && mv c.goal.gz packed.goal
code 0 '^Wrong: 2 collectives on groups that do not exist$' packed.goal
code 1 'none: No such file' c.goal --groups none
code 1 "^trib-trace: no.goal: No such file" no.goal
mkdir empty
code 1 '^trib-trace: empty: found no file, expected a trace$' empty
code 2 'found no FILE, expected' --check
echo 'num_ranks 1000000000' >many.goal
code 1 '^trib-trace: many.goal:1: found "1000000000", expected a number of ranks up to 1048576$' many.goal --check

# a folder, a prefix, one file of it; a rank that is not there
cp "$root"/tests/trace/samples/chakra-et/syn-quirks-4/* .
mkdir et && mv quirks.*.et comm_group.json et && echo x >et/README.md
code 0 '^Trace et: Chakra ET, 4 ranks, 4 groups$' et --check
code 0 '^Trace et/quirks: Chakra ET, 4 ranks, 4 groups$' et/quirks --check
code 0 '^Nothing is wrong$' et/quirks.2.et --check
gzip -c et/quirks.1.et >et/quirks.1.et.gz && rm et/quirks.1.et
code 0 '^Trace et: Chakra ET, 4 ranks, 4 groups$' et --check
rm et/quirks.1.et.gz
code 1 'et: found no rank 1, expected all of 4$' et --check
cp c.goal et
code 1 'et/quirks.0.et: found Chakra ET, expected GOAL text as in the files before|found GOAL text among several files' et --check

# files of processes, one of them; what repairs are counted
code 0 '^Trace .*: NCCL log, 8 ranks, 7 groups$' "$root/tests/trace/samples/nccl-log/syn-8-ranks" --check
has '^Repaired stream_order: [1-9]' said.out
code 0 '^Nothing is wrong$' "$root/tests/trace/samples/nccl-log/syn-8-ranks/nccl.node00.41001.log" --check

# by rank, as JSON, with nothing else on standard output
trib trace c.goal -J - 2>/dev/null | jq -e '.ranks == 2 and .per_rank[1].collectives.all_reduce == {"count": 1, "bytes": 64} and .wrong == [] and
    .groups == [[0, 1]] and .totals.operations.collective.bytes == 128' >/dev/null || fail "JSON"
before=$(sha256sum c.goal)
[ "$before" = "$(sha256sum c.goal)" ] || fail "the trace is not what it was"
