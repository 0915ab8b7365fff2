#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# manuals.sh BUILD: builds the manual pages and the completion for bash and zsh from the option tables that the programs in BUILD
# print: BUILD/man/*.1, BUILD/completion/trib.bash and BUILD/completion/_trib.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
export TRIB_BUILD=$build
programs='trib-perf trib-sim trib-plan trib-model trib-trace trib-switch trib-telemetry trib-status trib-metrics trib-top trib-faults trib-keep trib-enter trib-check-protocol trib-check-nccl-plugin'
pages='trib-perf trib-sim trib-plan trib-model trib-trace trib-switch trib-telemetry trib-status trib-metrics trib-top trib-faults trib-check-protocol trib-check-nccl-plugin'
mkdir -p "$build/man" "$build/completion"

# print FILE CMD...: replaces FILE completely or not at all.
print() {
    local file=$1 new
    shift
    new=$(mktemp "$file.XXXXXXXXXX")
    "$@" >"$new" || { rm -f "$new"; echo "manuals: $* failed" >&2; exit 1; }
    chmod 644 "$new"
    mv -fT "$new" "$file"
}

# Options and arguments of a program, a line each: long;short;value;values[;help].
rows() { # rows PROGRAM FIELDS
    local complete=("$build/$1")
    case "$1" in trib-sweep | trib-calibrate | trib-explain | trib-report | trib-import | trib-nccl) complete=("$here/$1") ;; esac
    "${complete[@]}" --help=complete | cut -f"$2" | tr ';' ',' | tr '\t' ';'
}

# The table of a shell, in single quotes.
table() { printf "_trib_options_%s='%s\n'\n" "${1//-/_}" "$(rows "$1" "$2" | sed "s/'/'\\\\''/g")"; }

tables() { # tables FIELDS
    local p
    for p in $programs trib-sweep trib-calibrate trib-explain trib-report trib-import trib-nccl; do table "$p" "$1"; done
    # sections that only trib itself has
    "$build/trib" --help=complete | awk -F'|' '$(NF - 1) != "" {
        printf "_trib_options_trib_%s='\''", $1
        n = split($(NF - 1), o, " ")
        for (i = 1; i <= n; i++) printf "%s;%s;%s;\n", o[i] ~ /^--/ ? o[i] : "", o[i] ~ /^--/ ? "" : o[i], o[i] == "-o" ? "FILE" : "N"
        print "'\''" }'
    printf "_trib_commands='%s'\n" "$("$build/trib" --help=complete | cut -d'|' -f1 | paste -sd' ')"
}

bash_file() {
    echo '# SPDX-License-Identifier: BSD-3-Clause'
    tables 1-4
    tail -n +2 "$here/completion.bash"
    echo "complete -o filenames -F _trib trib $programs trib-sweep trib-calibrate trib-explain trib-report trib-import trib-nccl"
}

zsh_file() {
    echo "#compdef trib $programs trib-sweep trib-calibrate trib-explain trib-report trib-import trib-nccl"
    echo '# SPDX-License-Identifier: BSD-3-Clause'
    tables 1-5
    tail -n +2 "$here/completion.zsh"
    echo '_trib "$@"'
}

print "$build/man/trib.1" "$build/trib" --help=man
print "$build/man/trib-sweep.1" "$here/trib-sweep" --help=man
print "$build/man/trib-calibrate.1" "$here/trib-calibrate" --help=man
print "$build/man/trib-explain.1" "$here/trib-explain" --help=man
print "$build/man/trib-report.1" "$here/trib-report" --help=man
print "$build/man/trib-import.1" "$here/trib-import" --help=man
print "$build/man/trib-nccl.1" "$here/trib-nccl" --help=man
for p in $pages; do print "$build/man/$p.1" "$build/$p" --help=man; done
print "$build/completion/trib.bash" bash_file
print "$build/completion/_trib" zsh_file
