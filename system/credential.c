/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/credential.h"

#include "system/input.h"
#include "system/own_path.h"
#include "system/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((format(printf, 3, 4))) static int refuse(char *why, int rc, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(why, CREDENTIAL_WHY, format, ap);
    va_end(ap);
    return rc;
}

/* ---- bytes ---- */

int credential_random(void *to, size_t bytes)
{
    uint8_t *p = to;

    while (bytes) {
        ssize_t n = getrandom(p, bytes, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -EIO;
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}

bool credential_same(const void *a, const void *b, size_t bytes)
{
    const volatile uint8_t *x = a, *y = b;
    uint8_t differ = 0;

    for (size_t i = 0; i < bytes; i++)
        differ |= x[i] ^ y[i];
    return !differ;
}

void credential_wipe(void *p, size_t bytes)
{
    explicit_bzero(p, bytes);
}

/* ---- texts ---- */

/* Takes the secret from n bytes found in `from`, without the end of the line. */
static int take_text(const char *found, size_t n, const char *from, char text[CREDENTIAL_TEXT],
                     char *why)
{
    while (n && (found[n - 1] == '\n' || found[n - 1] == '\r'))
        n--;
    if (n < CREDENTIAL_LEAST || n >= CREDENTIAL_TEXT)
        return refuse(why, -EINVAL, "%s: found a secret of %zu characters%s, expected %u to %u",
                      from, n, n > CREDENTIAL_TEXT ? " and more" : "", CREDENTIAL_LEAST,
                      CREDENTIAL_TEXT - 1);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)found[i] < ' ' || found[i] == 127)
            return refuse(why, -EINVAL,
                          "%s: found a control character as number %zu of a secret, expected a "
                          "line of text",
                          from, i + 1);
    memcpy(text, found, n);
    text[n] = 0;
    return 0;
}

static int read_text(int fd, const char *path, char text[CREDENTIAL_TEXT], char *why)
{
    char found[CREDENTIAL_TEXT + 2]; /* the longest secret, its line end, one byte more */
    struct stat st;
    ssize_t n;
    int rc;

    if (fstat(fd, &st))
        return refuse(why, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
        return refuse(why, -EPERM,
                      "%s: found %s of user %u with mode %04o, expected a plain file of user %u "
                      "with mode 0600",
                      path, S_ISREG(st.st_mode) ? "a file" : "something", (unsigned)st.st_uid,
                      (unsigned)st.st_mode & 07777, (unsigned)geteuid());
    n = pread(fd, found, sizeof(found), 0);
    rc = n < 0 ? refuse(why, -errno, "%s: %s", path, strerror(errno))
               : take_text(found, (size_t)n, path, text, why);
    credential_wipe(found, sizeof(found));
    return rc;
}

int credential_from_env(const char *name, char text[CREDENTIAL_TEXT], char why[CREDENTIAL_WHY])
{
    const char *value = getenv(name), *path;
    char file[64];
    int fd, rc;

    *why = 0;
    if (value)
        return take_text(value, strnlen(value, CREDENTIAL_TEXT + 1), name, text, why);
    snprintf(file, sizeof(file), "%s_FILE", name);
    path = getenv(file);
    if (!path)
        return -ENOENT;
    fd = input_open(path); /* follows links: the file's owner is checked, not the link's */
    if (fd < 0)
        return refuse(why, fd == -ENOENT ? -EINVAL : fd, "%s: cannot read %s: %s", file, path,
                      fd == -EINVAL ? "it is no plain file" : strerror(-fd));
    rc = read_text(fd, path, text, why);
    close(fd);
    return rc;
}

/* ---- a file of the user's own ---- */

/* Makes the file at once, so that nobody reads half of it; of several processes the first one wins. */
static int make_file(int dir, const char *name)
{
    static const char digit[] = "0123456789abcdef";
    uint8_t random[32];
    char text[2 * 32 + 1];
    struct temp_file t;
    int fd, rc = credential_random(random, sizeof(random));

    for (unsigned i = 0; i < 64; i++)
        text[i] = digit[random[i / 2] >> (i % 2 ? 0 : 4) & 15];
    text[64] = '\n';
    fd = rc ? rc : temp_file_open(&t, dir, name, 0600);
    if (fd >= 0) {
        errno = ENOSPC; /* for a short write, which sets none */
        rc = write(fd, text, sizeof(text)) == (ssize_t)sizeof(text) ? 0 : -errno;
        close(fd);
        if (rc)
            temp_file_drop(&t);
        else
            rc = temp_file_publish(&t, name, true);
        rc = rc == -EEXIST ? 0 : rc;
    } else {
        rc = fd;
    }
    credential_wipe(text, sizeof(text));
    credential_wipe(random, sizeof(random));
    return rc;
}

int credential_own(const char *dir, const char *name, char text[CREDENTIAL_TEXT],
                   char why[CREDENTIAL_WHY])
{
    char path[512], about[OWN_WHY];
    int at = own_dir_open(dir, true, about, sizeof(about)), fd, rc = 0;

    if (at < 0)
        return refuse(why, at, "%.300s%s%s", *about ? about : dir, *about ? "" : ": ",
                      *about ? "" : strerror(-at));
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = own_file_open(at, name, O_RDONLY);
    if (fd == -ENOENT) {
        rc = make_file(at, name);
        fd = rc ? rc : own_file_open(at, name, O_RDONLY);
    }
    if (fd == -EPERM)
        own_file_why(at, name, about, sizeof(about));
    close(at);
    if (fd < 0)
        return refuse(why, fd, "%.120s%s%.200s", fd == -EPERM ? dir : path,
                      fd == -EPERM ? "/" : ": ", fd == -EPERM ? about : strerror(-fd));
    rc = read_text(fd, path, text, why);
    close(fd);
    return rc;
}
