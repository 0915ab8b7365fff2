/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles a run directory by its descriptor, because its path may name another one at any moment.
 */
#include "base/assert.h"
#include "system/own_clear.h"
#include "system/own_path.h"
#include "host/keep/keep.h"
#include "host/session/store_secret.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAIL  4096
#define LINES 20

static DIR *open_again(int fd)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);

    if (!d && copy >= 0)
        close(copy);
    return d;
}

static bool is_dot(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Whether proc/ holds nothing but files that a fabric's processes leave there. */
static bool only_ours(int fd)
{
    static const char *const ours[] = {".log", ".pid", ".ready", ".ended", ".page", NULL};
    int sub = openat(fd, "proc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = sub < 0 ? NULL : fdopendir(sub);
    bool only = true;
    struct dirent *e;

    while (d && (e = readdir(d))) {
        const char *dot = strrchr(e->d_name, '.');
        bool known = is_dot(e->d_name);

        for (unsigned i = 0; dot && ours[i]; i++)
            known = known || !strcmp(dot, ours[i]);
        only = only && known;
    }
    if (d)
        closedir(d);
    return only;
}

static bool dir_has_file(int fd, const char *name)
{
    return !faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

int dir_kind(int fd)
{
    struct stat st;
    bool proc = !fstatat(fd, "proc", &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode), rest = false;
    struct dirent *e;
    DIR *d;

    if ((proc && (dir_has_file(fd, "shared") || dir_has_file(fd, KEEP_FILE))) ||
        (dir_has_file(fd, "shared") && dir_has_file(fd, "fabric.path")))
        return DIR_OURS;
    d = open_again(fd);
    while (d && (e = readdir(d)))
        rest = rest || (!is_dot(e->d_name) && strcmp(e->d_name, "proc") != 0 &&
                        strcmp(e->d_name, KEEP_FILE) != 0);
    if (d)
        closedir(d);
    return d && !rest && only_ours(fd) ? DIR_EMPTY : DIR_FOREIGN;
}

/* Removes the directory of the user's fabrics, with the ranks' secret (host/session), if no fabric
 * is left in it. */
static void drop_base(const char *base)
{
    int fd = open(base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    bool others = !d;
    struct dirent *e;

    while (d && (e = readdir(d)))
        others |= e->d_name[0] != '.' && strcmp(e->d_name, STORE_SECRET_FILE) != 0;
    if (!others)
        (void)own_unlink(fd, STORE_SECRET_FILE);
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    (void)own_rmdir(AT_FDCWD, base);
}

int dir_drop(const char *dir)
{
    char base[KEEP_PATH], *slash;
    int rc = own_rmdir(AT_FDCWD, dir);

    rc = rc == -ENOENT || rc == -ENOTEMPTY ? 0 : rc;
    snprintf(base, sizeof(base), "%s", dir);
    slash = strrchr(base, '/');
    if (!slash)
        return rc;
    *slash = 0;
    slash = strrchr(base, '/');
    if (slash && !strncmp(slash, "/tributary-", 11))
        drop_base(base);
    return rc;
}

int dir_remove(const char *dir, int fd)
{
    int rc;

    T_ASSERT(fd >= 0, "a directory is removed that is not open");
    rc = own_clear(fd, KEEP_FILE);
    /* Remove the lock file last. A command that claims the directory afterwards creates a new one,
     * and then the directory cannot be removed. */
    (void)own_unlink(fd, KEEP_FILE);
    if (own_dir_is(dir, fd)) {
        int dropped = dir_drop(dir);

        rc = rc ? rc : dropped;
    }
    return rc;
}

void dir_write(int fd, const char *name, const char *text)
{
    int file = own_file_open(fd, name, O_CREAT | O_TRUNC | O_WRONLY);

    if (file < 0)
        return;
    if (write(file, text, strlen(text)) < 0)
        (void)own_unlink(fd, name);
    close(file);
}

bool dir_tail(int fd, const char *name)
{
    int file = own_file_open(fd, name, O_RDONLY), lines = 0;
    char buf[TAIL];
    struct stat st;
    ssize_t n = 0, at;

    if (file >= 0 && !fstat(file, &st))
        n = pread(file, buf, sizeof(buf), st.st_size > TAIL ? st.st_size - TAIL : 0);
    if (file >= 0)
        close(file);
    while (n > 0 && (buf[n - 1] == '\n' || buf[n - 1] == ' '))
        n--;
    if (n <= 0)
        return false;
    for (at = n; at && lines < LINES; at--)
        lines += buf[at - 1] == '\n';
    if (lines == LINES)
        at++;
    T_ASSERT(at >= 0 && at < n, "the last lines are beyond the text");
    fprintf(stderr, "%.*s\n", (int)(n - at), buf + at);
    return true;
}
