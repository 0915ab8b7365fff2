# SPDX-License-Identifier: BSD-3-Clause
# Completion of trib and its programs for zsh. The lists above are printed from the programs' own tables.

_trib_value() { # _trib_value ROW: what can stand behind an option
    local -a field
    field=("${(@s:;:)1}")
    if [[ -n $field[4] ]]; then
        compset -P '*,'
        compadd -S '' -- ${=field[4]}
    elif [[ $field[1] == --(workload|faults|jobs|schedule) ]]; then
        compadd -- ${(f)"$(trib --help=confs ${${field[1]#--}%s}s 2>/dev/null)"}
        _files
    elif [[ $field[3] == (FILE|DIR)* ]]; then
        _files
    else
        _message "$field[3]"
    fi
}

_trib() {
    local program=${words[1]:t} name row long before
    local -a rows field names texts values
    if [[ $program == trib ]]; then
        if (( CURRENT == 2 )) || [[ $CURRENT == 3 && $words[2] == help ]]; then
            compadd -- ${=_trib_commands}
            return
        fi
        program=trib-$words[2]
    fi
    name=_trib_options_${program//-/_}
    rows=("${(@f)${(P)name}}")
    before=$words[CURRENT-1]
    if [[ $PREFIX == --*=* ]]; then
        before=${PREFIX%%=*}
        compset -P '*='
    fi
    for row in $rows; do
        field=("${(@s:;:)row}")
        [[ -n $field[1]$field[2] ]] || { values+=(${=field[4]}); continue }
        if [[ -n $field[3] && ( $before == $field[1] || $before == $field[2] ) ]]; then
            _trib_value "$row"
            return
        fi
        for long in $field[1] $field[2]; do
            [[ -n $long ]] && names+=($long) texts+=("$long  -- $field[5]")
        done
    done
    if [[ $PREFIX == -* ]]; then
        compadd -l -d texts -- $names
    else
        [[ $program == trib-(keep|enter|sweep|check-protocol|check-nccl-plugin) ]] || values+=(${(f)"$(trib --help=confs 2>/dev/null)"})
        case $program in # of the fabric that is up
        trib-(exec|shell)) values+=(${(f)"$(trib --help=names hosts 2>/dev/null)"}) ;;
        trib-node) values+=(${(f)"$(trib --help=names nodes 2>/dev/null)"} down up restart) ;;
        trib-faults) values+=(${(f)"$(trib --help=confs faults 2>/dev/null)"}) ;;
        trib-(link|capture)) values+=(${(f)"$(trib --help=names links 2>/dev/null)"}) ;;
        esac
        compadd -- $values
        _files
    fi
}
