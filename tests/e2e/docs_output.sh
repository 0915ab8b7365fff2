#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# tests/docs.sh compares an output block with what the block before it printed: a number that differs, a line that is missing or out of
# order, and an output without a command fail, in sight or not.
# clock: virtual
. "$(dirname "$0")/lib.sh"

says() { # says CODE TEXT: of a page on standard input
    cat >"$tmp/page.md"
    BUILD=$TRIB_BUILD bash "$root/tests/docs.sh" "$tmp/page.md" >"$tmp/page.out" 2>&1
    local rc=$?
    [ $rc = "$1" ] || fail "exit code $rc, expected $1: $(cat "$tmp/page.md" "$tmp/page.out")"
    has "$2" "$tmp/page.out"
}

says 0 '2 blocks run .* 2 outputs compared' <<'END'
```sh
printf '# a  table\n  ring   1.75  us\n  sharp  1.00\n'
```

```output
# a table
...
sharp 1.00
```

<!-- sh
echo 4 of 4
-->
<!-- output
4 of 4
-->
END
says 1 '1 skipped, 4 outputs compared, 6 failed' <<'END'
```sh
echo ring 1.75
```
```output
ring 1.76
```
```sh
printf 'one\ntwo\n'
```
```output
two
one
```
<!-- sh
echo once
-->
<!-- output
twice
-->
```sh
true
```
```output
nothing
```
```sh skip: of another machine
echo three
```
```output
three
```
<!-- sh
echo four
END
has 'page.md:4: this line is not in .*: ring 1.76$' "$tmp/page.out"
has 'page.md:10: this line is not in .*: one$' "$tmp/page.out"
has 'page.md:17: this line is not in .*: twice$' "$tmp/page.out"
has 'page.md:23: this line is not in .*: nothing$' "$tmp/page.out"
has 'page.md:29: found ```output, expected a block before it that was run' "$tmp/page.out"
has 'page.md:32: the block does not end' "$tmp/page.out"
