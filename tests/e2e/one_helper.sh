#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/one_helper.py, a part of make lint, finds what maps, removes, renames or makes temporary files, or handles a secret, outside of its helper, and nothing in
# what is alike.
# clock: virtual
. "$(dirname "$0")/lib.sh"
finds() { # finds FILE TEXT
    printf '%s\n' "$2" >"$tmp/$1"
    "$root/scripts/one_helper.py" "$tmp/$1" >"$tmp/found.out" && fail "does not find: $2"
    [ "$(grep -c '^one_helper: .*: found ' "$tmp/found.out")" = 1 ] || fail "$2: $(cat "$tmp/found.out")"
}
passes() { # passes FILE TEXT
    printf '%s\n' "$2" >"$tmp/$1"
    "$root/scripts/one_helper.py" "$tmp/$1" >"$tmp/found.out" || fail "finds: $2: $(cat "$tmp/found.out")"
}
finds a.c '    at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);'
finds a.c '    at = mmap(NULL, size,
              PROT_READ, MAP_SHARED, fd, (off_t)(a - b));'
finds a.c '    int fd = memfd_create("x", 0);'
finds a.c '    if (x) unlink(path);'
finds a.c '    return unlinkat(dir, name, 0) ? -errno : 0;'
finds a.h '    (void)rmdir (path);'
finds a.c '    remove(path);'
finds a.c '    rc = rename(a, b);'
finds a.c '    fd = mkstemp(name);'
finds a.c '    snprintf(tmp, sizeof(tmp), "%s.%d", path, (int)getpid());'
passes a.c '    at = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
              -1, 0);'
passes a.c '/* rename(2) and unlink(path) */ own_unlink(dir, name); x->remove(y); puts("unlink(x)"); // rmdir(x)'
finds a.c '    if (getrandom(key, sizeof(key), 0) < 0)'
finds a.c '    same = !CRYPTO_memcmp(a, b, 32);'
finds a.c '    explicit_bzero(text, sizeof(text));'
finds a.c '    if (memcmp(m->secret, mine, 16))'
finds a.c '    return !strncmp(s->token,
                    text, 33);'
finds a.c '    differ |= a->secret[i] ^ b->secret[i];'
finds a.c '    v = getenv("TRIB_STORE_SECRET");'
passes a.c '    if (memcmp(mac, other, 6) || credential_same(a->secret, b->secret, 16) || !text_token[0]) /* memcmp(secret, x, 3) */'
finds a.py 'import os; os.replace(a, b)'
finds a.py 'new.replace(target)'
finds a.py 'new.rename(target)'
finds a.py 'os.unlink(a)'
finds a.py 'path.unlink(missing_ok=True)'
finds a.py 'shutil.rmtree(a)'
finds a.py 'open(path, "w")'
finds a.py 'open(path, mode="xb")'
finds a.py 'path.write_text(x)'
finds a.py 'os.open(path, os.O_WRONLY | os.O_CREAT)'
finds a.py 'shutil.copyfile(a, b)'
passes a.py 'open(path); open(path, "rb"); text.replace("a", "b"); tempfile.TemporaryDirectory()'
# shellcheck disable=SC2016
finds a.sh 'cat x >"$file.new"'
# shellcheck disable=SC2016
finds a.sh 'echo x >>/tmp/x.$$'
# shellcheck disable=SC2016
passes a.sh 'new=$(mktemp "$file.XXXXXX"); cat x >"$new" # >x.new'
"$root/scripts/one_helper.py" >"$tmp/all.out" || fail "$(cat "$tmp/all.out")"
