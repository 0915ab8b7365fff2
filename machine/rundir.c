/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The run directory. A file that several processes may create at once (the copy of the conf) is written
 * under a temporary name and renamed without replacing (system/temp_file.h): renameat2(2) decides which
 * process is first, and no process sees an incomplete file or one with two names.
 */
#include "machine/rundir.h"
#include "system/input.h"
#include "system/own_clear.h"
#include "system/own_path.h"
#include "system/temp_file.h"
#include "machine/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int complain(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int complain(int err, const char *fmt, ...)
{
    va_list ap;

    fputs("tributary: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    if (err)
        fprintf(stderr, ": %s", strerror(err));
    fputc('\n', stderr);
    return -err;
}

/* ---- paths ---- */

int rundir_path(const struct rundir *rd, char *buf, size_t size, const char *fmt, ...)
{
    va_list ap;
    int n = snprintf(buf, size, "%s/", rd->path), k;

    va_start(ap, fmt);
    k = vsnprintf(n < (int)size ? buf + n : NULL, n < (int)size ? size - (size_t)n : 0, fmt, ap);
    va_end(ap);
    return n + k < (int)size ? 0 : -ENAMETOOLONG;
}

int rundir_port_sock(const struct rundir *rd, const char *host, unsigned port, unsigned slot,
                     char *buf, size_t size)
{
    return rundir_path(rd, buf, size, "port/%s/%u.%u.sock", host, port, slot);
}

/* Makes a directory; one that is there must be this user's and no link. 0 or -errno, with a message. */
static int make_dir(const struct rundir *rd, const char *name, mode_t mode)
{
    char why[OWN_WHY];
    int dir = own_dir_open(rd->path, false, why, sizeof(why)), fd;

    if (dir < 0) {
        complain(*why ? 0 : -dir, "run directory %s", *why ? why : rd->path);
        return dir;
    }
    fd = own_subdir_make(dir, name, mode);
    if (fd == -EPERM) {
        own_subdir_why(dir, name, why, sizeof(why));
        complain(0, "cannot use %s/%s", rd->path, why);
    } else if (fd < 0) {
        complain(-fd, "cannot make %s/%s", rd->path, name);
    }
    close(dir);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

int rundir_port_dir(const struct rundir *rd, const char *host)
{
    char name[RUN_PATH];

    if (snprintf(name, sizeof(name), "port/%s", host) >= (int)sizeof(name))
        return complain(ENAMETOOLONG, "run directory %s", rd->path);
    return make_dir(rd, name, 0700);
}

int rundir_own_dir(const struct rundir *rd, const char *name)
{
    return make_dir(rd, name, 0755);
}

int rundir_dir(const struct rundir *rd, const char *name)
{
    char why[OWN_WHY];
    int dir = own_dir_open(rd->path, false, why, sizeof(why));
    int fd = dir < 0 ? dir : own_subdir_open(dir, name);

    if (dir >= 0)
        close(dir);
    return fd;
}

int rundir_link_sock(const struct rundir *rd, const char *link, char *buf, size_t size)
{
    return rundir_path(rd, buf, size, "link/%s.sock", link);
}

static int find_path(char *buf, size_t size, const char *fabric_name)
{
    const char *run = getenv("TRIB_RUN");
    int rc;

    if (run && *run)
        rc = snprintf(buf, size, "%s", run) < (int)size ? 0 : -ENAMETOOLONG;
    else if (fabric_name)
        rc = rundir_default(buf, size, NULL, fabric_name);
    else
        return complain(EINVAL, "no run directory: set TRIB_RUN or name a fabric");
    return rc ? complain(ENAMETOOLONG, "run directory %.60s...", buf) : 0;
}

/* Opens the directory and those above it. -EPERM, with a message: another user could replace one of
 * them. If not, the path is afterwards as safe as a descriptor. */
static int own_dir(const struct rundir *rd, bool create)
{
    static const char *const sub[] = {"proc", "port", "link"};
    int fd, at, rc = 0;
    char why[OWN_WHY];

    fd = own_dir_open(rd->path, create, why, sizeof(why));
    if (fd == -ENOENT)
        return complain(ENOENT, create ? "cannot make %s" : "no fabric is up in %s", rd->path);
    if (fd < 0) {
        complain(*why ? 0 : -fd, "run directory %s", *why ? why : rd->path);
        return fd;
    }
    for (unsigned i = 0; !rc && i < 3; i++) {
        if (create && mkdirat(fd, sub[i], 0700) && errno != EEXIST) {
            rc = complain(errno, "cannot make directory %s/%s", rd->path, sub[i]);
            break;
        }
        at = own_subdir_open(fd, sub[i]);
        if (at >= 0)
            close(at);
        else if (at != -ENOENT && (create || at != -EACCES)) /* a service's users have no access */
            rc = complain(-at,
                          "%s/%s: found something that is not ours alone, expected a directory of "
                          "user %u to which nobody else can write",
                          rd->path, sub[i], (unsigned)geteuid());
    }
    close(fd);
    return rc;
}

/* ---- files of the directory ---- */

static int say_why(const struct rundir *rd, int err, const char *why)
{
    fprintf(stderr, "tributary: %s/%s%s%s\n", rd->path, why, err == EPERM ? "" : ": ",
            err == EPERM ? "" : strerror(err));
    return -err;
}

/* silent: prints no message, whatever the error. */
static int open_in(const struct rundir *rd, int flags, const char *name, bool silent)
{
    char why[OWN_WHY];
    int dir = own_dir_open(rd->path, false, why, sizeof(why)), fd;

    if (dir < 0) {
        if (dir != -ENOENT && !silent)
            fprintf(stderr, "tributary: run directory %s\n", why);
        return dir;
    }
    fd = own_file_open(dir, name, flags);
    if (fd == -EPERM)
        own_file_why(dir, name, why, sizeof(why));
    close(dir);
    if (fd < 0 && fd != -ENOENT && fd != -EEXIST && !silent)
        say_why(rd, -fd, fd == -EPERM ? why : name);
    return fd;
}

static int open_by(const struct rundir *rd, int flags, bool silent, const char *fmt, va_list ap)
{
    char name[RUN_PATH + 64];
    int n = vsnprintf(name, sizeof(name), fmt, ap);

    return n < 0 || n >= (int)sizeof(name) ? -ENAMETOOLONG : open_in(rd, flags, name, silent);
}

int rundir_file(const struct rundir *rd, int flags, const char *fmt, ...)
{
    va_list ap;
    int fd;

    va_start(ap, fmt);
    fd = open_by(rd, flags, false, fmt, ap);
    va_end(ap);
    return fd;
}

int rundir_file_quiet(const struct rundir *rd, int flags, const char *fmt, ...)
{
    va_list ap;
    int fd;

    va_start(ap, fmt);
    fd = open_by(rd, flags, true, fmt, ap);
    va_end(ap);
    return fd;
}

int rundir_unlink(const struct rundir *rd, const char *fmt, ...)
{
    char name[RUN_PATH + 64], why[OWN_WHY];
    int dir = own_dir_open(rd->path, false, why, sizeof(why)), n, rc;
    va_list ap;

    if (dir < 0)
        return dir;
    va_start(ap, fmt);
    n = vsnprintf(name, sizeof(name), fmt, ap);
    va_end(ap);
    rc = n < 0 || n >= (int)sizeof(name) ? -ENAMETOOLONG : own_unlink(dir, name);
    close(dir);
    return rc;
}

/* ---- files that are created once ---- */

static int write_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t k = write(fd, data, len);

        if (k <= 0)
            return k ? -errno : -ENOSPC;
        data += k;
        len -= (size_t)k;
    }
    return 0;
}

/* Creates a file. 0: this process was first; 1: another process was; -errno, with a message. */
static int write_once(const struct rundir *rd, const char *name, const char *data, size_t len)
{
    char why[OWN_WHY];
    int dir = own_dir_open(rd->path, false, why, sizeof(why)), fd, rc;
    struct temp_file tmp;

    fd = dir < 0 ? dir : temp_file_open(&tmp, dir, name, 0600);
    rc = fd < 0 ? fd : write_all(fd, data, len);
    if (fd >= 0) {
        close(fd);
        if (rc)
            temp_file_drop(&tmp);
        else
            rc = temp_file_publish(&tmp, name, true);
    }
    if (dir >= 0)
        close(dir);
    return rc == -EEXIST ? 1 : rc ? complain(-rc, "cannot make %s/%s", rd->path, name) : 0;
}

int rundir_open(struct rundir *rd, const char *dir, const char *fabric_name, bool create)
{
    size_t len;
    int rc;

    memset(rd, 0, sizeof(*rd));
    if (dir)
        rc = snprintf(rd->path, sizeof(rd->path), "%s", dir) < (int)sizeof(rd->path)
                 ? 0
                 : complain(ENAMETOOLONG, "run directory %.60s...", dir);
    else
        rc = find_path(rd->path, sizeof(rd->path), fabric_name);
    for (len = strlen(rd->path); len > 1 && rd->path[len - 1] == '/'; len--)
        rd->path[len - 1] = 0;
    rc = rc ? rc : own_dir(rd, create);
    return rc || create ? rc : shared_join(&rd->sh, rd->path);
}

void rundir_close(struct rundir *rd)
{
    shared_free(rd->sh);
    rd->sh = NULL;
}

/* ---- the conf ---- */

static char *read_file(FILE *f, size_t *len)
{
    char *text = NULL;
    long n;

    if (!f)
        return NULL;
    if (!fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET) &&
        (text = malloc((size_t)n + 1))) {
        *len = fread(text, 1, (size_t)n, f);
        text[*len] = 0;
    }
    fclose(f);
    return text;
}

static char *read_own(const struct rundir *rd, const char *name, size_t *len)
{
    int fd = rundir_file(rd, O_RDONLY, "%s", name);

    errno = fd < 0 ? -fd : 0;
    return read_file(fd < 0 ? NULL : fdopen(fd, "r"), len);
}

/* Refuses a path so long that a socket's would exceed 107 characters; that depends on the fabric's names. */
static int check_lengths(const struct rundir *rd, const struct fabric *f)
{
    const size_t max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
    char buf[2 * RUN_PATH];
    size_t longest = 0;

    for (unsigned i = 0; i < f->n_links; i++) {
        rundir_link_sock(rd, f->links[i].name, buf, sizeof(buf));
        longest = strlen(buf) > longest ? strlen(buf) : longest;
    }
    for (unsigned i = 0; i < f->n_hosts; i++) {
        const struct fab_node *h = &f->nodes[f->hosts[i]];

        rundir_port_sock(rd, h->name, h->n_ports, FAB_MAX_SLOTS, buf, sizeof(buf));
        longest = strlen(buf) > longest ? strlen(buf) : longest;
    }
    if (longest <= max)
        return 0;
    return complain(ENAMETOOLONG,
                    "run directory %s: found %zu characters, expected at most %zu for this "
                    "fabric's names (set TRIB_RUN to a shorter one)",
                    rd->path, strlen(rd->path),
                    strlen(rd->path) > longest - max ? strlen(rd->path) - (longest - max) : 0);
}

int rundir_install(const struct rundir *rd, const struct fabric *f)
{
    char full[4096], why[INPUT_WHY], *text, *there = NULL;
    size_t len = 0, there_len = 0;
    int rc = check_lengths(rd, f);

    if (rc)
        return rc;
    if (f->n_dests > bell_room(f))
        return complain(E2BIG,
                        "%s: found %u addresses of %u processes each, expected at most %u in real "
                        "time (a smaller slots_per_host allows more)",
                        f->path, f->n_dests, f->slots_per_host, bell_room(f));
    text = input_file(f->path, INPUT_MOST, &len, why);
    if (!text)
        return complain(errno, "cannot read %s", f->path);
    if (!realpath(f->path, full))
        snprintf(full, sizeof(full), "%s", f->path);
    rc = write_once(rd, "fabric.path", full, strlen(full));
    if (rc >= 0)
        rc = write_once(rd, "fabric.conf", text, len);
    if (rc == 1) {
        there = read_own(rd, "fabric.conf", &there_len);
        rc = 0;
        if (!there || there_len != len || memcmp(there, text, len))
            rc =
                complain(EEXIST, "%s/fabric.conf: found another fabric's conf, expected that of %s",
                         rd->path, f->path);
    }
    free(there);
    free(text);
    return rc;
}

struct fabric *rundir_fabric(const struct rundir *rd)
{
    struct fab_errors *errs = calloc(1, sizeof(*errs));
    char path[RUN_PATH + 32];
    char *text, *origin;
    size_t len;
    struct fabric *f = NULL;

    origin = read_own(rd, "fabric.path", &len);
    snprintf(path, sizeof(path), "%s/fabric.conf", rd->path);
    text = read_own(rd, "fabric.conf", &len);
    if (!text || !errs)
        complain(text ? ENOMEM : errno, "cannot read %s", path);
    else if (!(f = fabric_load_string(text, origin ? origin : path, errs)))
        fab_errors_print(errs, stderr);
    free(text);
    free(origin);
    free(errs);
    return f;
}

/* ---- the machine ---- */

int rundir_set_machine(const struct rundir *rd, const char *name)
{
    int fd = rundir_file(rd, O_CREAT | O_TRUNC | O_WRONLY, "machine");
    int rc = fd < 0 ? fd : dprintf(fd, "%s", name) < 0 ? -errno : 0;

    if (fd >= 0)
        close(fd);
    return rc < 0 ? complain(-rc, "cannot write %s/machine", rd->path) : 0;
}

uint16_t rundir_machine(const struct rundir *rd, const struct fabric *f)
{
    size_t len;
    char *name = f->n_machines ? read_own(rd, "machine", &len) : NULL;
    uint16_t m = 0;

    while (name && m < f->n_machines && strcmp(f->machines[m].name, name))
        m++;
    m = name && m < f->n_machines ? m : FAB_NONE;
    free(name);
    return m;
}

void rundir_note_machine(const struct rundir *rd, const char *name, bool there)
{
    int fd = make_dir(rd, "machines", 0700);

    if (fd)
        return;
    fd = there ? rundir_file(rd, O_CREAT | O_WRONLY, "machines/%s", name)
               : rundir_unlink(rd, "machines/%s", name);
    if (there && fd >= 0)
        close(fd);
}

bool rundir_machine_there(const struct rundir *rd, const char *name)
{
    char path[2 * RUN_PATH];

    return !rundir_path(rd, path, sizeof(path), "machines/%s", name) && !access(path, F_OK);
}
