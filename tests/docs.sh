#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs every command block of README.md, docs/, and scripts/docs_links.py. usage: tests/docs.sh [FILE...]
#
# A block fenced as ```sh is run by `bash -eu -o pipefail` with a time limit; it must exit with 0 and leave no fabric up, and so must all
# that it starts with & and waits for: `wait` alone fails where one of them did. Its working
# directory has the checkout's files by link, so that files written there stay out of the checkout; `trib` is on the PATH and
# XDG_RUNTIME_DIR is its own. ```sh skip: REASON marks a block that cannot be run here. A block of another kind must not begin with a
# command.
#
# ```output after a block that was run has what it printed: every line of it must be among the printed ones, in this order; runs of
# blanks count as one, and a line ... stands for any. A claim that stands in a sentence is checked likewise by a command that readers do
# not see, between lines "<!-- sh" and "-->", and "<!-- output" and "-->".
#
# BUILD= programs (build); LIMIT= seconds of a block (60); ONLY=REGEX runs those blocks whose FILE:LINE matches.
set -u
cd "$(dirname "$0")/.." || exit 1
root=$PWD
build=$(cd "${BUILD:-build}" 2>/dev/null && pwd) || { echo "docs: found no ${BUILD:-build}; run make first" >&2; exit 1; }
limit=${LIMIT:-60}
docs=("$@")
[ ${#docs[@]} -gt 0 ] || docs=(README.md docs/*.md docs/labs/*.md docs/decisions/*.md)
tmp=$(mktemp -d /tmp/td.XXXXXX)
failed=0 ran=0 skipped=0 compared=0
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

bad() {
    echo "FAILED  $*"
    failed=$((failed + 1))
}

# ---- blocks: "LINE<tab>INFO" of each into $tmp/blocks, its text into $tmp/block.LINE ----

split() { # split FILE
    rm -f "$tmp"/block.*
    awk -v tmp="$tmp" '
        /^<!-- (sh|output)/ && !on {
            on = NR; hidden = 1; info = $0; sub(/^<!-- /, "", info); print NR "\t" info; f = tmp "/block." NR; printf "" >f; next }
        hidden && /^-->/ { close(f); on = hidden = 0; next }
        /^ *```/ && !hidden {
            if (!on) { on = NR; info = $0; sub(/^ *```[ \t]*/, "", info); sub(/[ \t]+$/, "", info)
                       print NR "\t" info; f = tmp "/block." NR; printf "" >f }
            else { close(f); on = 0 }
            next }
        on { print >f }
        END { if (on) print on "\tunclosed" }' "$1" >"$tmp/blocks"
}

# What the last block printed has the lines of an ```output block?
check_output() { # check_output FILE LINE
    local missing
    [ -e "$tmp/out" ] || { bad "$1:$2: found \`\`\`output, expected a block before it that was run"; return; }
    compared=$((compared + 1))
    missing=$(awk '
        function plain(s) { gsub(/[ \t]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s); return s }
        FILENAME == ARGV[1] { out[++n] = plain($0); next }
        plain($0) == "..." || plain($0) == "" { next }
        { for (found = 0; at < n && !found;) found = out[++at] == plain($0)
          if (!found) { print; exit } }' "$tmp/out" "$tmp/block.$2")
    [ -z "$missing" ] || {
        bad "$1:$2: this line is not in what the block above printed, or not in this order: $missing"
        tail -n 60 "$tmp/out" | sed 's/^/        /'
    }
}

command='^[[:space:]]*(\$ +)?([A-Z_]+=[^ ]* +)*(make|trib|trib-[a-z]+|sudo|mpirun|srun|sbatch|mpicc|ib_[a-z_]+|ibv_[a-z_]+|ucx_[a-z]+|apt-get|git|cd|export|bash|sh|python3|tshark|\./[^ ]+|(scripts|tests|build)/[^ ]+)([[:space:]]|$)'

# One line, so that it moves those of a block by one.
waiting='wait() { if [ $# -gt 0 ]; then builtin wait "$@"; return; fi; local job rc=0; for job in $(jobs -p); do builtin wait "$job" || rc=$?; done; return $rc; }'

# A checkout by links, and a run directory with a short path, as unix sockets want.
run_block() { # run_block FILE LINE
    local dir=$tmp/w xdg rc t0 f left
    xdg=$(mktemp -d /tmp/tdx.XXXXXX)
    mkdir "$dir"
    for f in "$root"/* "$root"/.ci; do
        [[ "${f##*/}" == build* ]] || ln -s "$f" "$dir/"
    done
    ln -s "$build" "$dir/build"
    { echo "$waiting"; cat "$tmp/block.$2"; } >"$tmp/script"
    t0=$(date +%s%N)
    (cd "$dir" && exec env -u TRIB_RUN -u TRIB_HOST -u TRIB_ALGO XDG_RUNTIME_DIR="$xdg" TRIB_BUILD="$build" PATH="$root/scripts:$PATH" \
        timeout -k 5 "$limit" bash -eu -o pipefail "$tmp/script") >"$tmp/out" 2>&1 </dev/null
    rc=$?
    t0=$((($(date +%s%N) - t0) / 1000000))
    left=$(find "$xdg" -path '*/proc/*.pid' 2>/dev/null)
    for f in "$xdg"/tributary-*/*/; do
        [ -d "$f" ] && XDG_RUNTIME_DIR=$xdg TRIB_BUILD=$build "$root/scripts/trib" down "$(basename "$f")" >/dev/null 2>&1
    done
    ran=$((ran + 1))
    if [ $rc = 0 ] && [ -z "$left" ]; then
        printf 'ok      %-36s %4d.%03d s  %s\n' "$1:$2" $((t0 / 1000)) $((t0 % 1000)) "$(grep -m1 . "$tmp/block.$2" | cut -c 1-60)"
    else
        [ $rc = 0 ] && bad "$1:$2: a fabric is still up at its end"
        [ $rc = 124 ] && bad "$1:$2: did not end within $limit s"
        [ $rc = 0 ] || [ $rc = 124 ] || bad "$1:$2: exit code $rc"
        sed 's/^/        > /' "$tmp/block.$2"
        tail -n 20 "$tmp/out" | sed 's/^/        /'
    fi
    rm -rf "$dir" "$xdg"
}

begin=$(date +%s%N)
for file in "${docs[@]}"; do
    [ -f "$file" ] || { bad "$file: no such file"; continue; }
    split "$file"
    while IFS=$'\t' read -r line info; do
        case "$info" in
        unclosed) bad "$file:$line: the block does not end" ;;
        sh)
            rm -f "$tmp/out"
            past=$line
            ! [[ "$file:$line" =~ ${ONLY:-} ]] || run_block "$file" "$line"
            ;;
        output) ! [[ "$file:${past:-}" =~ ${ONLY:-} ]] || check_output "$file" "$line" ;;
        'sh skip: '?*)
            rm -f "$tmp/out"
            skipped=$((skipped + 1))
            printf 'skipped %-36s %s\n' "$file:$line" "${info#sh skip: }"
            ;;
        sh*) bad "$file:$line: found '\`\`\`$info', expected '\`\`\`sh' or '\`\`\`sh skip: REASON'" ;;
        *)
            first=$(grep -m1 '[^[:space:]]' "$tmp/block.$line")
            ! [[ "$first" =~ $command ]] || bad "$file:$line: begins with a command and is not '\`\`\`sh': $first"
            ;;
        esac
    done <"$tmp/blocks"
done
took=$((($(date +%s%N) - begin) / 1000000))

scripts/docs_links.py || bad "scripts/docs_links.py"

printf '%d blocks run in %d.%01d s, %d skipped, %d outputs compared, %d failed\n' $ran $((took / 1000)) $((took % 1000 / 100)) \
    $skipped $compared $failed
[ $failed = 0 ] && [ $ran -gt 0 ]
