# SPDX-License-Identifier: BSD-3-Clause
# mutations_table.sh: reads a table of planted bugs ($table, see tests/mutations.txt) into arrays, and ends where a text is not at one place
# of its file. Sourced by mutations.sh and protocols/mutations.sh.
# shellcheck shell=bash disable=SC2034,SC2154
label=() file=() old=() new=() by=() line_of=()
n=0 number=0
while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    case $line in
    '' | '#'*) ;;
    '< '*) line=${line#< } file[n]=${line%%: *} old[n]=${line#*: } ;;
    '> '*) new[n]=${line#> } ;;
    '= '*)
        by[n]=${line#= }
        [ -n "${label[n]-}" ] && [ -n "${file[n]-}" ] && [ -n "${new[n]-}" ] || {
            echo "$table:$number: found =, expected a name, < and > before it" >&2
            exit 2
        }
        n=$((n + 1))
        ;;
    *', '*': '*) label[n]=$line line_of[n]=$number ;;
    *) echo "$table:$number: found \"$line\", expected ROOM OR PROTOCOL, OPERATOR: NAME" >&2; exit 2 ;;
    esac
done <"$table"
missed=0
for ((i = 0; i < n; i++)); do
    found=$(grep -cF -- "${old[i]}" "${file[i]}" 2>/dev/null)
    [ "$found" = 1 ] || {
        echo "$table:${line_of[i]}: found \"${old[i]}\" in ${found:-0} lines of ${file[i]}, expected 1" >&2
        missed=$((missed + 1))
    }
done
[ $missed = 0 ] || { echo "mutations.sh: $missed lines of the table do not fit the code" >&2; exit 1; }
[ -z "${CHECK-}" ] || { echo "$n bugs, each at one place"; exit 0; }
