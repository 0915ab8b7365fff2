#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shells.sh [FILE...]: fails on what hands a text to a shell: system(), popen(), wordexp() and sh -c in C, shell=True, os.system() and their
# like in Python, eval and sh -c "..." in scripts (sh -c '...' with
# words behind it is fine). A user's words go to other programs as words, and to other machines by plain_words() of
# python/tributary/machines/words.py or is_plain() of host/launch/job_start.c. Exceptions are single lines, each with its reason; one that is not needed
# fails too. FILEs: these alone, without exceptions.
set -u
cd "$(dirname "$0")/.." || exit 1

# FILE | what the line has | REASON
exceptions='
host/launch/job_start.c|execl("/bin/sh", "sh", "-c"|--rsh is a command of the user'"'"'s own, with arguments; the words behind it are plain
python/tributary/machines/machine.py|command = ["sh", "-c"|--launch is a command of the user'"'"'s own, with arguments; the words behind it are plain
packaging/container_test.sh|RUN) step sh -ec "$rest"|a step of packaging/Containerfile
packaging/deb_test.sh|sh -ec "cd; $1"|steps of this test
packaging/system_test.sh|sh -c "cd /src && make|numbers of cores
packaging/system_test.sh|sh -c "cd /src && exec build/tests/$t"|names of tests
'

declare -A of_kind=() # files, a line each
sort_files() { # sort_files FILE...
    local f k
    for f; do
        [ -f "$f" ] || continue
        case "${f##*/}" in
        *.c | *.h | *.cu) k=c ;;
        *.py) k=python ;;
        *.sh) k=shell ;;
        *.*) continue ;;
        *)
            IFS= read -r k <"$f" 2>/dev/null
            case "$k" in
            '#!'*python*) k=python ;;
            '#!'*sh) k=shell ;;
            *) continue ;;
            esac
            ;;
        esac
        of_kind[$k]+=$f$'\n'
    done
}
# What a file of each kind must not have, as a regular expression.
declare -A wrong=(
    [c]='(^|[^[:alnum:]_.>"])(system|popen|wordexp)[[:space:]]*\(([^3]|$)|"-c"'
    [python]='shell[[:space:]]*=[[:space:]]*True|os\.(system|popen)[[:space:]]*\(|getoutput[[:space:]]*\(|getstatusoutput[[:space:]]*\(|create_subprocess_shell|"-c"|'"'-c'"
    [shell]='(^|[;&|({[:space:]])eval[[:space:]]|(^|[^[:alnum:]_])(ba|da|z|k)?sh[[:space:]]+(-[a-z]+[[:space:]]+)*-[a-z]*c[[:space:]]+[^[:space:]'"'"']'
)

if [ $# -gt 0 ]; then
    files=("$@") exceptions=
else
    mapfile -t files < <(git ls-files --cached --others --exclude-standard | grep -v '^tests/\|^scripts/shells.sh$')
fi
sort_files "${files[@]}" 2>/dev/null
found=$(for k in "${!of_kind[@]}"; do
    mapfile -t files <<<"${of_kind[$k]%$'\n'}"
    grep -HnE -- "${wrong[$k]}" "${files[@]}" | grep -vE '^[^:]*:[0-9]+:[[:space:]]*(#|\*|/\*|//)'
done)
bad=0
while IFS='|' read -r file text reason; do
    [ -n "$file" ] || continue
    if grep "^$file:" <<<"$found" | grep -qF -- "$text"; then
        echo "shells: exception: $file: $reason"
        found=$(awk -v f="$file:" -v t="$text" 'index($0, f) != 1 || !index($0, t)' <<<"$found")
    else
        echo "shells: exception that nothing needs: $file: $text"
        bad=1
    fi
done <<<"$exceptions"
while IFS= read -r line; do
    [ -n "$line" ] || continue
    echo "shells: $line: found a text for a shell, expected words: exec and its like, or a list of arguments"
    bad=1
done <<<"$found"
exit $bad
