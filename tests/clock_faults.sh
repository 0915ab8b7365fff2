#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clock_faults.sh [NAME]: plants faults of arbitration, clock and pacing in real time, one at a time in a copy of the tree (those with NAME in
# their name only), and holds rows of trib perf against trib sim (clocks.sh): a fault makes rows lag, or puts one apart. Without a fault at
# least 70 % of the rows are ok, and none of these is apart. Needs an idle machine; three minutes.
set -u
cd "$(dirname "$0")/.." || exit 1
root=$PWD build=${BUILD:-build} filter=${1-}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
planted=0 missed=0

# Uses the existing build, so that only files that a fault touches are compiled.
git ls-files --cached --others --exclude-standard | while read -r f; do [ ! -f "$f" ] || echo "$f"; done | tar -cf - -T - | tar -xf - -C "$copy" || exit 2
mkdir "$copy/build" && (cd "$build" && find . -path ./tests -prune -o -type f -print | tar -cf - --no-recursion -T -) | tar -xf - -C "$copy/build" || exit 2
cd "$copy" || exit 2

# rows: says "APART OK N", the rows that are ok and more than 3 % apart, those that are ok, and all
rows() {
    BUILD=build CONFS="conf/single-switch-4.conf" SIZES="-b 128K -e 1M -f 8" MAX_WALL=6 tests/clocks.sh >rows.out 2>&1
    sed -n 's/^# \([0-9]*\) rows, \([0-9]*\) ok ([^)]*), of which \([0-9]*\) are.*/\3 \2 \1/p' rows.out
}

# plant NAME FILE TEXT REPLACEMENT: TEXT (fixed, within a line) is replaced wherever it is in FILE
plant() {
    local name=$1 file=$2 text=$3 instead=$4 apart ok n
    case $name in *"$filter"*) ;; *) return ;; esac
    planted=$((planted + 1))
    if [ "$file" ]; then
        grep -qF -- "$text" "$file" || { echo "$name: found no \"$text\" in $file"; missed=$((missed + 1)); return; }
        TEXT=$text INSTEAD=$instead awk '{ done = ""
            while ((i = index($0, ENVIRON["TEXT"]))) {
                done = done substr($0, 1, i - 1) ENVIRON["INSTEAD"]; $0 = substr($0, i + length(ENVIRON["TEXT"]))
            }
            print done $0 }' "$file" >planted && cat planted >"$file"
    fi
    make -s WARN=-w BUILD=build programs >log 2>&1 || { echo "$name: does not build: $(tail -n 3 log)"; missed=$((missed + 1)); return; }
    read -r apart ok n <<<"$(rows)"
    printf '%-58s %s of %s ok, %s of these apart' "$name" "${ok:-0}" "${n:-0}" "${apart:-0}"
    if [ "$file" ] && [ "${n:-0}" -gt 0 ] && [ "$apart" = 0 ] && [ $((10 * ok)) -ge $((7 * n)) ]; then
        missed=$((missed + 1))
        printf ': NOT SEEN'
    elif [ ! "$file" ] && { [ "${apart:-1}" != 0 ] || [ $((10 * ok)) -lt $((7 * n)) ]; }; then
        missed=$((missed + 1))
        printf ': expected 70 %% ok, and none apart\n%s' "$(tail -n 20 rows.out)"
    fi
    echo
    [ ! "$file" ] || cp "$root/$file" "$file"
}

plant "no fault" "" "" ""
plant "arbitration: a process fills its ring ahead of the link" host/hca/io/process_frames.c \
    "AHEAD_NS * PS_PER_NS / clock_dilation(p->sh)" "AHEAD_NS * PS_PER_NS * 1000"
plant "arbitration: a late process loses its turn" switch/nic_tx.c "np->owed_ps = now" "np->owed_ps = PS_NEVER"
plant "pacing: the NIC does not ring when it has taken a frame" host/hca/io/process_frames.c \
    "atomic_store(&p->bell->wants_room, 1)" "(void)0"
plant "clock: that of one process in two is 1 us ahead" machine/clock.c "return v->change_ps +" \
    "return (({ extern int getpid(void); getpid(); }) & 1) * 1000000LL + v->change_ps +"
plant "clock: it runs on at another rate after a change" machine/clock.c "ns * 1000 / v->dilation" "ns * 1000 / (v->dilation + v->dilation / 16 * (({ extern int getpid(void); getpid(); }) & 1))"

echo "$planted planted, $missed not as expected"
exit $((missed > 0))
