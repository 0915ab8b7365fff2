# SPDX-License-Identifier: BSD-3-Clause
# Completion of trib and its programs for bash. The lists above are printed from the programs' own tables.

# The lines of a program's options, or of a command that only trib has.
_trib_rows() { # _trib_rows PROGRAM
    local name=_trib_options_${1//-/_}
    printf '%s' "${!name-}"
}

# Sets row to the line of an option by its long or short name; false: there is none.
_trib_row() { # _trib_row PROGRAM OPTION
    local line long short rest
    while IFS= read -r line; do
        IFS=';' read -r long short rest <<<"$line"
        if [ -n "$2" ] && { [ "$2" = "$long" ] || [ "$2" = "$short" ]; }; then
            row=$line
            return 0
        fi
    done < <(_trib_rows "$1")
    return 1
}

# What can stand behind an option: names of a list, a file, or nothing that is known.
_trib_value() { # _trib_value PROGRAM ROW CURRENT
    local long short arg values before=
    IFS=';' read -r long short arg values <<<"$2"
    if [ -n "$values" ]; then
        [[ "$3" == *,* ]] && before=${3%,*},
        mapfile -t COMPREPLY < <(compgen -P "$before" -W "$values" -- "${3##*,}")
    elif [[ " --workload --faults --jobs --schedule " == *" $long "* ]]; then
        long=${long#--}
        mapfile -t COMPREPLY < <(compgen -W "$(trib --help=confs "${long%s}s" 2>/dev/null)" -- "$3"; compgen -f -- "$3")
    elif [[ "$arg" == FILE* || "$arg" == DIR* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$3")
    fi
}

# Arguments: names from the tables, confs, files.
_trib_word() { # _trib_word PROGRAM CURRENT
    local long short arg values all=
    while IFS=';' read -r long short arg values; do
        [ -z "$long$short" ] && all+=" $values"
    done < <(_trib_rows "$1")
    case "$1" in
    trib-keep | trib-enter | trib-sweep | trib-check-protocol | trib-check-nccl-plugin) ;;
    *) all+=" $(trib --help=confs 2>/dev/null)" ;;
    esac
    case "$1" in # of the fabric that is up
    trib-exec | trib-shell) all+=" $(trib --help=names hosts 2>/dev/null)" ;;
    trib-node) all+=" $(trib --help=names nodes 2>/dev/null) down up restart" ;;
    trib-faults) all+=" $(trib --help=confs faults 2>/dev/null)" ;;
    trib-link | trib-capture) all+=" $(trib --help=names links 2>/dev/null)" ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$all" -- "$2"; compgen -f -- "$2")
}

_trib() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]##*/} row names
    COMPREPLY=()
    if [ "$program" = trib ]; then
        if [ "$COMP_CWORD" = 1 ] || { [ "$COMP_CWORD" = 2 ] && [ "$prev" = help ]; }; then
            mapfile -t COMPREPLY < <(compgen -W "$_trib_commands" -- "$cur")
            return
        fi
        program=trib-${COMP_WORDS[1]}
    fi
    # --algo=ring is three words
    if [ "$cur" = = ]; then
        cur=
    elif [ "$prev" = = ]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if _trib_row "$program" "$prev" && [[ "$row" != *';;' ]]; then
        _trib_value "$program" "$row" "$cur"
    elif [[ "$cur" == -* ]]; then
        names=$(_trib_rows "$program" | cut -d';' -f1,2 | tr ';' ' ')
        mapfile -t COMPREPLY < <(compgen -W "$names" -- "$cur")
    else
        _trib_word "$program" "$cur"
    fi
}
