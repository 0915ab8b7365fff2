/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles a run directory by its descriptor, because its path may name another one at any moment.
 */
#include "base/assert.h"
#include "system/own_clear.h"
#include "system/own_path.h"
#include "system/temp_file.h"
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
    static const char *const ours[] = {".log", ".pid", ".ready", ".ended", ".page", ".tmp", NULL};
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

/* Names of a run directory (machine/rundir.h), but for proc and the keeper's file. */
static bool is_ours(const char *name)
{
    static const char *const ours[] = {"port",           "link",    "shared",   "fabric.conf",
                                       "fabric.path",    "machine", "machines", "dpdk",
                                       "dilation.fixed", "launch",  NULL};

    for (unsigned i = 0; ours[i]; i++)
        if (!strcmp(name, ours[i]))
            return true;
    return false;
}

/* Of one that is half removed some names are left, and proc/ or the keeper's file. */
int dir_kind(int fd)
{
    struct stat st;
    bool proc = !fstatat(fd, "proc", &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
    bool shared = dir_has_file(fd, "shared"), keeper = dir_has_file(fd, KEEP_FILE);
    bool more = false, others = false;
    struct dirent *e;
    DIR *d;

    if ((proc && (shared || keeper)) || (shared && dir_has_file(fd, "fabric.path")))
        return DIR_OURS;
    d = open_again(fd);
    while (d && (e = readdir(d))) {
        bool ours = is_ours(e->d_name);

        more |= ours;
        others |= !ours && !is_dot(e->d_name) && strcmp(e->d_name, "proc") != 0 &&
                  strcmp(e->d_name, KEEP_FILE) != 0;
    }
    if (d)
        closedir(d);
    if (!d || others || !only_ours(fd) || (more && !proc && !keeper))
        return DIR_FOREIGN;
    return more ? DIR_OURS : DIR_EMPTY;
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

void dir_drop_base(const char *dir)
{
    char base[KEEP_PATH], *slash;

    snprintf(base, sizeof(base), "%s", dir);
    slash = strrchr(base, '/');
    if (!slash)
        return;
    *slash = 0;
    slash = strrchr(base, '/');
    if (slash && !strncmp(slash, "/tributary-", 11))
        drop_base(base);
}

int dir_drop(const char *dir)
{
    int rc = own_rmdir(AT_FDCWD, dir);

    dir_drop_base(dir);
    return rc == -ENOENT || rc == -ENOTEMPTY ? 0 : rc;
}

int dir_remove(const char *dir, int fd)
{
    int rc;

    T_ASSERT(fd >= 0, "a directory is removed that is not open");
    rc = own_clear(fd, KEEP_FILE);
    /* Remove the lock file last. A command that claims the directory afterwards creates a new one,
     * and then the directory cannot be removed. If something stays, the file tells whose it is. */
    if (!rc)
        (void)own_unlink(fd, KEEP_FILE);
    if (own_dir_is(dir, fd)) {
        int dropped = dir_drop(dir);

        rc = rc ? rc : dropped;
    }
    return rc;
}

void dir_write(int fd, const char *name, const char *text)
{
    const char *last = strrchr(name, '/');
    size_t n = strlen(text);
    char folder[KEEP_NAME];
    struct temp_file tmp;
    int dir, file;

    snprintf(folder, sizeof(folder), "%.*s", last ? (int)(last - name) : 1, last ? name : ".");
    dir = own_subdir_open(fd, folder);
    name = last ? last + 1 : name;
    file = dir < 0 ? dir : temp_file_open(&tmp, dir, name, 0600);
    if (file >= 0) {
        bool whole = write(file, text, n) == (ssize_t)n; /* a full file system takes a part */

        close(file);
        if (whole)
            (void)temp_file_publish(&tmp, name, false);
        else
            temp_file_drop(&tmp);
    }
    if (dir >= 0)
        close(dir);
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
