/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The run directory. Files that several processes may create at once (the conf copy) are written
 * under a temporary name and renamed to the real one, unless that is there: renameat2(2) decides which
 * process is first, and no process sees half a file, or one with two names (base/own_path.h).
 */
#include "io/rundir.h"
#include "base/own_path.h"
#include "base/process.h"
#include "io/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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

int rundir_port_dir(const struct rundir *rd, const char *host)
{
    char path[2 * RUN_PATH];

    if (rundir_path(rd, path, sizeof(path), "port/%s", host))
        return complain(ENAMETOOLONG, "run directory %s", rd->path);
    return mkdir(path, 0700) && errno != EEXIST ? complain(errno, "cannot make %s", path) : 0;
}

int rundir_own_dir(const struct rundir *rd, const char *name)
{
    char path[2 * RUN_PATH], why[OWN_WHY];
    int fd, rc = rundir_path(rd, path, sizeof(path), "%s", name);

    if (rc || (mkdir(path, 0755) && errno != EEXIST))
        return complain(rc ? -rc : errno, "cannot make %s/%s", rd->path, name);
    fd = own_dir_open(path, false, why, sizeof(why));
    if (fd < 0) {
        complain(*why ? 0 : -fd, "cannot use %s", *why ? why : path);
        return fd;
    }
    close(fd);
    return 0;
}

int rundir_link_sock(const struct rundir *rd, const char *link, char *buf, size_t size)
{
    return rundir_path(rd, buf, size, "link/%s.sock", link);
}

int rundir_default(char *buf, size_t size, const char *parent, const char *fabric)
{
    const char *xdg = getenv("XDG_RUNTIME_DIR");
    int n;

    parent = parent ? parent : xdg && *xdg ? xdg : "/tmp";
    n = snprintf(buf, size, "%s/tributary-%u%s%s", parent, (unsigned)getuid(), fabric ? "/" : "",
                 fabric ? fabric : "");
    return n < (int)size ? 0 : -ENAMETOOLONG;
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

/* Opens the directory and those above it, and refuses what other users could exchange: -EPERM, with a
 * message. The path is as good as the descriptor afterwards. */
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
        else if (at != -ENOENT && (create || at != -EACCES)) /* a service's, not for its users */
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

/* silent: no message, whatever the error. */
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

int rundir_file(const struct rundir *rd, int flags, const char *fmt, ...)
{
    char name[RUN_PATH + 64];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(name, sizeof(name), fmt, ap);
    va_end(ap);
    return n < 0 || n >= (int)sizeof(name) ? -ENAMETOOLONG : open_in(rd, flags, name, false);
}

/* ---- files that are created once ---- */

/* Gives tmp its real name. 0: this process was first; 1: another one was. */
static int publish(const char *tmp, const char *path)
{
    int rc = renameat2(AT_FDCWD, tmp, AT_FDCWD, path, RENAME_NOREPLACE) ? errno : 0;

    if (rc == EINVAL || rc == ENOSYS) /* NFS: for a moment the file has two names */
        rc = link(tmp, path) ? errno : 0;
    unlink(tmp);
    if (rc == EEXIST)
        return 1;
    return rc ? complain(rc, "cannot make %s", path) : 0;
}

static int write_once(const char *path, const void *data, size_t len)
{
    char tmp[RUN_PATH + 64];
    int fd, rc = 0;

    snprintf(tmp, sizeof(tmp), "%s.%d", path, (int)getpid());
    fd = open(tmp, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return complain(errno, "cannot make %s", tmp);
    for (size_t off = 0; off < len;) {
        ssize_t k = write(fd, (const char *)data + off, len - off);

        if (k <= 0) {
            rc = complain(k ? errno : ENOSPC, "cannot write %s", tmp);
            unlink(tmp);
            break;
        }
        off += (size_t)k;
    }
    close(fd);
    return rc ? rc : publish(tmp, path);
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

/* Unix socket paths have at most 107 characters; the longest one depends on the fabric's names. */
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
    char path[RUN_PATH + 32], full[4096];
    char *text, *there = NULL;
    size_t len = 0, there_len = 0;
    int rc = check_lengths(rd, f);

    if (rc)
        return rc;
    if (f->n_dests > bell_room(f))
        return complain(E2BIG,
                        "%s: found %u addresses of %u processes each, expected at most %u in real "
                        "time (a smaller slots_per_host allows more)",
                        f->path, f->n_dests, f->slots_per_host, bell_room(f));
    text = read_file(fopen(f->path, "re"), &len);
    if (!text)
        return complain(errno ? errno : EIO, "cannot read %s", f->path);
    if (!realpath(f->path, full))
        snprintf(full, sizeof(full), "%s", f->path);
    snprintf(path, sizeof(path), "%s/fabric.path", rd->path);
    rc = write_once(path, full, strlen(full));
    if (rc >= 0) {
        snprintf(path, sizeof(path), "%s/fabric.conf", rd->path);
        rc = write_once(path, text, len);
    }
    if (rc == 1) {
        there = read_own(rd, "fabric.conf", &there_len);
        rc = 0;
        if (!there || there_len != len || memcmp(there, text, len))
            rc = complain(EEXIST, "%s: found another fabric's conf, expected that of %s", path,
                          f->path);
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
    char path[2 * RUN_PATH];
    int fd;

    if (rundir_path(rd, path, sizeof(path), "machines") || (mkdir(path, 0700) && errno != EEXIST) ||
        rundir_path(rd, path, sizeof(path), "machines/%s", name))
        return;
    fd = there ? rundir_file(rd, O_CREAT | O_WRONLY, "machines/%s", name) : unlink(path);
    if (there && fd >= 0)
        close(fd);
}

bool rundir_machine_there(const struct rundir *rd, const char *name)
{
    char path[2 * RUN_PATH];

    return !rundir_path(rd, path, sizeof(path), "machines/%s", name) && !access(path, F_OK);
}

/* ---- locks ---- */

/* flock, not fcntl: two claims of one process must collide, and closing another file must not give
 * a slot back. */
int rundir_claim_slot(const struct rundir *rd, const char *host, unsigned port, unsigned slots,
                      int *fd)
{
    bool shared = own_dir_is_service(rd->path);
    char name[RUN_PATH + 64];
    int rc = rundir_port_dir(rd, host);
    unsigned denied = 0;

    *fd = -1;
    for (unsigned s = 0; s < slots && !rc; s++) {
        snprintf(name, sizeof(name), "port/%.*s/%u.%u.lock", RUN_PATH, host, port, s);
        *fd = open_in(rd, O_CREAT | O_RDWR, name, shared);
        if (shared && (*fd == -EACCES || *fd == -EPERM || *fd == -EISDIR)) { /* another user's */
            denied++;
            continue;
        }
        if (*fd < 0)
            return *fd;
        if (!flock(*fd, LOCK_EX | LOCK_NB))
            return (int)s;
        close(*fd);
    }
    *fd = -1;
    if (denied == slots)
        return complain(EACCES, "host %s is not this user's (access in the conf)", host);
    return rc ? rc : -EBUSY;
}

/* ---- pid files ---- */

/* In clock ticks since boot, field 22 of /proc/PID/stat (after the name, which may have any
 * characters): tells a process from a later one with the same pid. */
static unsigned long long start_time(void)
{
    FILE *f = fopen("/proc/self/stat", "re");
    char buf[1024], *p = NULL;

    if (f && fgets(buf, sizeof(buf), f))
        p = strrchr(buf, ')');
    if (f)
        fclose(f);
    for (int field = 2; field < 22 && p; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p, NULL, 10) : 0;
}

/* fcntl, so that F_GETLK returns the holder's pid even when the file is stale. */
int rundir_claim_proc(const struct rundir *rd, const char *name, int *fd)
{
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int pid;

    *fd = rundir_file(rd, O_CREAT | O_RDWR, "proc/%s.pid", name);
    if (*fd < 0)
        return *fd;
    if (fcntl(*fd, F_SETLK, &lk)) {
        pid = rundir_proc_pid(rd, name);
        close(*fd);
        *fd = -1;
        if (pid == PROCESS_AWAY)
            fprintf(stderr, "tributary: %s runs already in %s, in another PID namespace\n", name,
                    rd->path);
        else
            fprintf(stderr, "tributary: %s runs already in %s as process %d\n", name, rd->path,
                    pid > 0 ? pid : 0);
        return -EBUSY;
    }
    if (ftruncate(*fd, 0) || dprintf(*fd, "%d\n%llu\n", (int)getpid(), start_time()) < 0) {
        int err = errno;

        close(*fd);
        *fd = -1;
        fprintf(stderr, "tributary: cannot write %s/proc/%s.pid: %s\n", rd->path, name,
                strerror(err));
        return -err;
    }
    return 0;
}

int rundir_proc_pid(const struct rundir *rd, const char *name)
{
    char file[RUN_PATH];
    int n = snprintf(file, sizeof(file), "proc/%s.pid", name), fd, rc;

    fd = n < 0 || n >= (int)sizeof(file) ? -ENAMETOOLONG : open_in(rd, O_RDONLY, file, true);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    rc = process_lock_holder(fd);
    close(fd);
    return rc;
}
