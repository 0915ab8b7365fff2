/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/atomic_output.h"

#include "system/own_path.h"
#include "system/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where to write. dir: descriptor of the directory; -1: the path is opened and appended to. */
struct output_target {
    int dir;
    char name[NAME_MAX + 1];
    struct temp_file tmp; /* renamed to name at the end */
};

bool atomic_output_is_file(const char *path)
{
    struct stat st;

    /* Such a path may lead to a regular file (standard output may be one), but not one to
     * replace. */
    if (own_output_is_special(path))
        return false;
    return stat(path, &st) || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

static void target_close(const struct output_target *p)
{
    if (p->dir >= 0)
        close(p->dir);
}

static int target_of(struct output_target *p, const char *path)
{
    struct stat st;
    int rc;

    p->dir = -1;
    if (own_output_is_special(path))
        return 0;
    p->dir = own_output_dir(path, p->name, sizeof(p->name)); /* follows links */
    if (p->dir < 0)
        return p->dir;
    rc = own_output_is_foreign(p->dir, p->name) ? -EPERM : 0;
    if (!rc && !fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW)) {
        if (S_ISDIR(st.st_mode)) {
            rc = -EISDIR;
        } else if (!S_ISREG(st.st_mode)) {
            target_close(p);
            p->dir = -1;
            return 0;
        }
    }
    if (rc)
        target_close(p);
    return rc;
}

/* Opens the temporary file. NULL: errno says why. */
static FILE *target_open(struct output_target *p)
{
    int fd = temp_file_open(&p->tmp, p->dir, p->name, TEMP_MODE_THERE);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    if (!f && fd >= 0) {
        close(fd);
        temp_file_drop(&p->tmp);
    }
    errno = fd < 0 ? -fd : errno;
    return f;
}

int atomic_output_can_write(const char *path)
{
    struct output_target p;
    int rc = target_of(&p, path);
    FILE *f;

    if (rc)
        return rc;
    if (p.dir < 0)
        return access(path, W_OK) ? -errno : 0;
    f = target_open(&p);
    rc = f ? 0 : -errno;
    if (f) {
        fclose(f);
        temp_file_drop(&p.tmp);
    }
    target_close(&p);
    return rc;
}

/* What to write: JSON with jansson's flags, the content of a file, or text. */
struct content {
    const struct json_t *j;
    size_t flags;
    FILE *from;
    const char *text;
};

static bool content_copy(FILE *from, FILE *f)
{
    char buf[65536];
    size_t n;

    if (fflush(from)) /* rewind() would not report an error */
        return false;
    rewind(from);
    while ((n = fread(buf, 1, sizeof(buf), from)) > 0)
        if (fwrite(buf, 1, n, f) != n)
            return false;
    return !ferror(from);
}

static bool content_put(const struct content *c, FILE *f)
{
    if (c->j)
        return !json_dumpf(c->j, f, c->flags) && fputc('\n', f) >= 0;
    return c->from ? content_copy(c->from, f) : fputs(c->text, f) >= 0;
}

static int write_out(const char *path, const struct content *c)
{
    struct output_target p;
    int rc = target_of(&p, path);
    FILE *f;

    if (rc)
        return rc;
    fflush(stdout); /* path may be standard output */
    f = p.dir >= 0 ? target_open(&p) : fopen(path, "ae");
    if (!f) {
        rc = -errno;
        target_close(&p);
        return rc;
    }
    errno = 0;
    rc = content_put(c, f) ? 0 : errno ? -errno : -EIO;
    if (fclose(f) && !rc) /* a full disk may show only here */
        rc = -errno;
    if (p.dir < 0)
        return rc;
    if (rc)
        temp_file_drop(&p.tmp); /* incomplete */
    else
        rc = temp_file_publish(&p.tmp, p.name, false);
    target_close(&p);
    return rc;
}

int atomic_output_json(const char *path, const struct json_t *j, size_t flags)
{
    return write_out(path, &(struct content){.j = j, .flags = flags});
}

int atomic_output_copy(const char *path, FILE *from)
{
    return write_out(path, &(struct content){.from = from});
}

int atomic_output_text(const char *path, const char *text)
{
    return write_out(path, &(struct content){.text = text});
}

const char *atomic_output_path(const char *path)
{
    static char results[32]; /* /dev/fd/N, after the first "-" */

    if (strcmp(path, "-") != 0)
        return path;
    if (!*results) {
        int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

        fflush(stdout);
        if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
            return NULL;
        snprintf(results, sizeof(results), "/dev/fd/%d", fd);
    }
    return results;
}

int atomic_output_end(const char *program)
{
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout))
        return 0;
    /* errno is 0 if only an earlier write knew the reason. */
    fprintf(stderr, "%s: cannot write to standard output%s%s\n", program, errno ? ": " : "",
            errno ? strerror(errno) : "");
    return -EIO;
}
