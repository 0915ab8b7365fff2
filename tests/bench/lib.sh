# SPDX-License-Identifier: BSD-3-Clause
# Shared by benchmarks. Sourced from the top of the repository.

# row NAME VALUE UNIT REFERENCE REFERENCE_VALUE TARGET [time]: one JSON object, one line. The ratio is the value over the reference's, for
# times the reference's over the value: more is better; 0: not measured. TARGET is the smallest acceptable ratio, or null.
row() {
    jq -nc --arg name "$1" --argjson value "$2" --arg unit "$3" --arg reference "$4" --argjson rv "$5" --argjson target "$6" \
        --arg time "${7:-}" '(if $time != "" then [$rv, $value] else [$value, $rv] end | if .[1] == 0 then 0 else .[0] / .[1] end) as $ratio |
        {name: $name, value: $value, unit: $unit, reference: $reference, reference_value: $rv, ratio: $ratio, target: $target,
         met: (if $target == null then null else $ratio >= $target end)}'
}
# figure NAME VALUE UNIT LIMIT: a figure that has a limit of its own instead of a reference: at most LIMIT, or null.
figure() {
    jq -nc --arg name "$1" --argjson value "$2" --arg unit "$3" --argjson limit "$4" \
        '{name: $name, value: $value, unit: $unit, reference: "the most there may be", reference_value: $limit, ratio: null, target: null,
          met: (if $limit == null then null else $value <= $limit end)}'
}
# skipped NAME REASON
skipped() { jq -nc --arg name "$1" --arg skipped "$2" '$ARGS.named'; }
# median: of the numbers on stdin, one a line
median() { sort -g | awk '{ a[NR] = $1 } END { if (NR) print a[int((NR + 1) / 2)] }'; }
# own_fabric: $dir and a run directory in it, for a fabric of this benchmark alone. At the end both are gone, and $job, a process in the
# background, too, where it is set.
own_fabric() {
    TRIB_BUILD=$(cd "${BUILD:-build}" && pwd)
    dir=$(mktemp -d)
    export TRIB_BUILD TRIB_RUN=$dir/run
    job=
    trap own_fabric_end EXIT
    trap 'exit 130' INT TERM
}
own_fabric_end() {
    [ -z "$job" ] || { kill "$job" && wait "$job"; } 2>/dev/null
    scripts/trib down >/dev/null 2>&1
    rm -rf "$dir"
}
