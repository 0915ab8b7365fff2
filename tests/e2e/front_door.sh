#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What trib says, word for word, to command lines right and wrong (front_door/words), while no fabric is up and while one is: exit code, standard
# output, standard error. EXPECTED=write writes front_door/expected/said anew. TRIB: another trib than that of the checkout.
# load: any
. "$(dirname "$0")/lib.sh"
here=$root/tests/e2e/front_door
export COLUMNS=100

# Paths, process numbers and versions are those of a machine and a day.
plain() {
    sed -E "s|$TRIB_BUILD|BUILD|g; s|$root|ROOT|g; s|$run|RUN|g; s|$tmp|TMP|g; s/(pid|process) [0-9]+/\1 N/g; s/\(Tributary\) [0-9.]+/(Tributary) X/; s/Tributary [0-9]+\.[0-9]+\.[0-9]+/Tributary X/; s/user $(id -un)/user ME/g;
        /^  fabric .* is up( elsewhere)?: run directory/d; /^  and [0-9]+ more$/d" # of others
}

say() { # say STATE: what trib says to the lines of that state
    local state line words i code
    while read -r state line; do
        [ "$state" = - ] || [ "$state" = "$1" ] || continue
        read -ra words <<<"$line"
        for i in "${!words[@]}"; do
            [ "${words[i]}" != '""' ] || words[i]=
            words[i]=$(printf '%b' "${words[i]}")
        done
        (cd "$tmp" && timeout 60 "${TRIB:-$root/scripts/trib}" "${words[@]}" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null)
        code=$?
        printf '== %s: trib %s\n-- exit code %s\n' "$1" "$line" $code
        plain <"$tmp/stdout"
        [ ! -s "$tmp/stderr" ] || { echo '-- stderr' && plain <"$tmp/stderr"; }
    done < <(grep -v '^#' "$here/words")
}

cp "$conf/leaf-spine-8.conf" "$tmp/machines.conf"
cat >>"$tmp/machines.conf" <<'END'
machines = ( { name = "a"; address = "198.51.100.1"; nodes = ( "leaf0", "spine0" ); }, { name = "b"; address = "198.51.100.2"; nodes = ( "leaf1", "spine1" ); } );
trunk_key = "of a fabric that is never up";
END
say d >"$tmp/said"
trib up leaf-spine-8 --dilation 50 >/dev/null || fail "no fabric"
say u >>"$tmp/said"
if [ "${EXPECTED:-}" = write ]; then
    cp "$tmp/said" "$here/expected/said"
else
    diff -u "$here/expected/said" "$tmp/said" >"$tmp/diff.out" || fail "trib says something else: $(head -n 60 "$tmp/diff.out")"
fi
