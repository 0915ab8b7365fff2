/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/token.h"

#include "system/credential.h"
#include "system/own_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH     (RUN_PATH + 64)
#define FD_FIRST 700 /* shells and loops over descriptors use low ones */

/* Reads a token from fd, whose number may name any file by now: accepts only a regular file of this user,
 * or of the owner of rd if that is not NULL, that looks like a token. */
static int read_token(const struct rundir *rd, int fd, char token[TOKEN_BYTES])
{
    struct stat st;

    if (fstat(fd, &st))
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size != TOKEN_BYTES ||
        (st.st_uid != geteuid() && !(rd && own_dir_is_of(rd->path, st.st_uid))) ||
        pread(fd, token, TOKEN_BYTES, 0) != TOKEN_BYTES || token[TOKEN_BYTES - 1] ||
        strspn(token, "0123456789abcdef") != TOKEN_BYTES - 1)
        return -EINVAL;
    return 0;
}

static int open_file(const struct rundir *rd, const char *host, int flags)
{
    return rundir_file_quiet(rd, flags, "port/%s/host.token", host);
}

static int read_file(const struct rundir *rd, const char *host, char token[TOKEN_BYTES])
{
    int fd = open_file(rd, host, O_RDONLY), rc;

    if (fd < 0)
        return fd;
    rc = read_token(rd, fd, token);
    close(fd);
    return rc;
}

int token_make(const struct rundir *rd, const char *host, char token[TOKEN_BYTES])
{
    static const char digit[] = "0123456789abcdef";
    uint8_t random[TOKEN_BYTES - 1];
    char path[PATH];
    int fd, rc = rundir_port_dir(rd, host);

    if (rc)
        return rc;
    if (!read_file(rd, host, token))
        return 0;
    if (rundir_path(rd, path, sizeof(path), "port/%s/host.token", host))
        return -ENAMETOOLONG;
    (void)rundir_unlink(rd, "port/%s/host.token", host);
    if (credential_random(random, sizeof(random)))
        return -EIO;
    for (unsigned i = 0; i < sizeof(random); i++)
        token[i] = digit[random[i] & 15];
    token[TOKEN_BYTES - 1] = 0;
    fd = open_file(rd, host, O_CREAT | O_EXCL | O_WRONLY);
    if (fd < 0)
        return fd;
    errno = ENOSPC; /* of a short write */
    if (write(fd, token, TOKEN_BYTES) != TOKEN_BYTES) {
        rc = -errno;
        fprintf(stderr, "tributary: cannot write %s: %s\n", path, strerror(errno));
    }
    close(fd);
    return rc;
}

int token_find(const struct rundir *rd, const char *host, char token[TOKEN_BYTES])
{
    const char *fd = getenv(TOKEN_ENV);

    if (fd && *fd && !read_token(NULL, atoi(fd), token))
        return 0;
    return read_file(rd, host, token);
}

/* Makes a copy that nobody can change; all processes of the host share the file. */
static int sealed_copy(const char token[TOKEN_BYTES])
{
    int fd = memfd_create("token", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

    if (fd < 0)
        return -errno;
    if (write(fd, token, TOKEN_BYTES) == TOKEN_BYTES &&
        !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
        return fd;
    err = errno;
    close(fd);
    return err ? -err : -EIO;
}

int token_hand_over(const struct rundir *rd, const char *host)
{
    char token[TOKEN_BYTES], text[16];
    int rc = read_file(rd, host, token), fd, high;

    fd = rc ? rc : sealed_copy(token);
    if (fd < 0)
        return fd;
    high = fcntl(fd, F_DUPFD, FD_FIRST);
    if (high < 0) /* the limit of descriptors is too low */
        high = fcntl(fd, F_DUPFD, 3);
    close(fd);
    if (high < 0)
        return -errno;
    snprintf(text, sizeof(text), "%d", high);
    return setenv(TOKEN_ENV, text, 1) ? -errno : 0;
}
