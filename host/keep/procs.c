/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/keep/procs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TERM_MS 5000 /* from SIGTERM to SIGKILL */
#define KILL_MS 5000
#define ROUNDS  3 /* the next round finds processes that were started meanwhile */

/* ---- one process ---- */

static ssize_t read_proc(pid_t pid, const char *file, char *buf, size_t size)
{
    char path[64];
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, buf, size - 1);
        close(fd);
    }
    buf[n > 0 ? n : 0] = 0;
    return n;
}

uint64_t procs_start_time(pid_t pid)
{
    unsigned long long start = 0;
    char buf[1024], *p;

    /* The name may hold any characters; behind it field 22 of proc(5) is the 20th. */
    if (read_proc(pid, "stat", buf, sizeof(buf)) <= 0 || !(p = strrchr(buf, ')')))
        return 0;
    for (int field = 2; field < 22 && (p = strchr(p + 1, ' ')); field++)
        ;
    return p && sscanf(p, "%llu", &start) == 1 ? start : 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Arguments of a process, and not its exe, which a process of another user namespace cannot read. A
 * zombie has none. */
static ssize_t arguments(pid_t pid, char *buf, size_t size)
{
    return read_proc(pid, "cmdline", buf, size);
}

static bool runs_switch(pid_t pid)
{
    char args[KEEP_PATH];

    return arguments(pid, args, sizeof(args)) > 0 && !strcmp(base_name(args), "trib-switch");
}

/* The run directory that these arguments name; NULL: not the arguments of a fabric's process. */
static const char *dir_in(const char *args, size_t len, bool *keeper)
{
    const char *end = args + len, *a = args;
    unsigned i = 0;
    bool is_switch = !strcmp(base_name(args), "trib-switch");

    *keeper = !strcmp(base_name(args), "trib-keep");
    if (!is_switch && !*keeper)
        return NULL;
    for (; a < end; a += strlen(a) + 1, i++) {
        const char *next = a + strlen(a) + 1;

        if (next >= end)
            return NULL;
        if (is_switch ? !strcmp(a, "--run") : i == 1 && !strcmp(a, "start"))
            return next;
        if (*keeper && i >= 1)
            return NULL;
    }
    return NULL;
}

static bool same_dir(const char *a, const char *b)
{
    size_t la = strlen(a), lb = strlen(b);

    while (la > 1 && a[la - 1] == '/')
        la--;
    while (lb > 1 && b[lb - 1] == '/')
        lb--;
    return la == lb && !memcmp(a, b, la);
}

static bool runs_in(pid_t pid, const char *dir, bool *keeper, const char **proc, char *args,
                    size_t size)
{
    ssize_t n = arguments(pid, args, size);
    const char *d = n > 0 ? dir_in(args, (size_t)n, keeper) : NULL;

    if (!d || !same_dir(d, dir))
        return false;
    *proc = "?";
    for (const char *a = args; a < args + n; a += strlen(a) + 1)
        if (!strcmp(a, "--proc") && a + 7 < args + n)
            *proc = a + 7;
    return true;
}

pid_t procs_lock_holder(const char *path)
{
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), rc;

    if (fd < 0)
        return 0;
    rc = fcntl(fd, F_GETLK, &lk);
    close(fd);
    return rc || lk.l_type == F_UNLCK || lk.l_pid <= 0 ? 0 : lk.l_pid;
}

/* ---- all of a directory ---- */

static bool has(const struct procs *p, pid_t pid)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->at[i].pid == pid)
            return true;
    return false;
}

static int add(struct procs *p, const char *name, pid_t pid, int fd)
{
    if (p->n == p->cap) {
        unsigned room = p->cap ? 2 * p->cap : 16;
        struct proc *at = realloc(p->at, room * sizeof(*at));

        if (!at) {
            close(fd);
            return -ENOMEM;
        }
        p->at = at;
        p->cap = room;
    }
    p->at[p->n] = (struct proc){.pid = pid, .fd = fd};
    snprintf(p->at[p->n++].name, KEEP_NAME, "%s", name);
    return 0;
}

static int pidfd(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static uint64_t number_in(const char *path)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char buf[32];
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);

    if (fd >= 0)
        close(fd);
    buf[n > 0 ? n : 0] = 0;
    return strtoull(buf, NULL, 10);
}

static void note_foreign(struct procs *p, const char *path, pid_t pid)
{
    char args[KEEP_NAME];

    if (pid == getpid() || arguments(pid, args, sizeof(args)) <= 0)
        return;
    if (!p->foreign++)
        snprintf(p->first_foreign, sizeof(p->first_foreign),
                 "%.1000s names process %d (%.100s), which is not the "
                 "fabric's and is left alone",
                 path, (int)pid, args);
}

/* Adds the process that holds the lock on proc/<name>.pid. */
static int add_locked(struct procs *p, const char *dir, const char *name)
{
    char path[KEEP_PATH], started[KEEP_PATH];
    pid_t pid;
    uint64_t start;
    int fd;

    if (snprintf(path, sizeof(path), "%s/proc/%s.pid", dir, name) >= (int)sizeof(path) ||
        snprintf(started, sizeof(started), "%s/proc/%s.start", dir, name) >= (int)sizeof(started))
        return 0;
    pid = procs_lock_holder(path);
    if (!pid) {
        pid = (pid_t)number_in(path);
        if (pid > 0)
            note_foreign(p, path, pid);
        return 0;
    }
    start = number_in(started);
    fd = pidfd(pid);
    if (fd < 0)
        return 0;
    /* The pid still holds the lock, so the pidfd is of that process. */
    if (procs_lock_holder(path) != pid || !runs_switch(pid) ||
        (start && procs_start_time(pid) != start)) {
        note_foreign(p, path, pid);
        close(fd);
        return 0;
    }
    return add(p, name, pid, fd);
}

static int add_keeper(struct procs *p, const char *dir)
{
    char path[KEEP_PATH], args[KEEP_PATH];
    pid_t pid;
    int fd;

    if (snprintf(path, sizeof(path), "%s/" KEEP_FILE, dir) >= (int)sizeof(path))
        return 0;
    pid = procs_lock_holder(path);
    fd = pid ? pidfd(pid) : -1;
    if (fd < 0)
        return 0;
    if (procs_lock_holder(path) != pid || arguments(pid, args, sizeof(args)) <= 0 ||
        strcmp(base_name(args), "trib-keep") != 0) {
        close(fd);
        return 0;
    }
    return add(p, "", pid, fd);
}

static pid_t pid_of(const char *name)
{
    char *end;
    long n = strtol(name, &end, 10);

    return *end || n <= 0 ? 0 : (pid_t)n;
}

static uid_t owner_of_pid(pid_t pid)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &st) ? (uid_t)-1 : st.st_uid;
}

/* Adds this user's processes that the directory has no file of. */
static int add_unlisted(struct procs *p, const char *dir, bool keepers)
{
    char args[KEEP_PATH];
    const char *proc;
    struct dirent *e;
    int rc = 0;
    DIR *d = opendir("/proc");

    while (d && !rc && (e = readdir(d))) {
        pid_t pid = pid_of(e->d_name);
        bool keeper;
        int fd;

        if (!pid || pid == getpid() || has(p, pid) || owner_of_pid(pid) != geteuid() ||
            !runs_in(pid, dir, &keeper, &proc, args, sizeof(args)) || (keeper && !keepers))
            continue;
        fd = pidfd(pid);
        if (fd < 0)
            continue;
        if (runs_in(pid, dir, &keeper, &proc, args, sizeof(args)))
            rc = add(p, keeper ? "" : proc, pid, fd);
        else
            close(fd);
    }
    if (d)
        closedir(d);
    return rc;
}

int procs_find(struct procs *p, const char *dir, bool keeper)
{
    char path[KEEP_PATH], name[KEEP_NAME];
    struct dirent *e;
    int rc;
    DIR *d;

    memset(p, 0, sizeof(*p));
    rc = keeper ? add_keeper(p, dir) : 0;
    snprintf(path, sizeof(path), "%s/proc", dir);
    d = opendir(path);
    while (d && !rc && (e = readdir(d))) {
        size_t len = strlen(e->d_name);

        if (len < 5 || len >= sizeof(name) || strcmp(e->d_name + len - 4, ".pid") != 0)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)len - 4, e->d_name);
        rc = add_locked(p, dir, name);
    }
    if (d)
        closedir(d);
    return rc ? rc : add_unlisted(p, dir, keeper);
}

void procs_free(struct procs *p)
{
    for (unsigned i = 0; i < p->n; i++)
        close(p->at[i].fd);
    free(p->at);
    memset(p, 0, sizeof(*p));
}

/* ---- signals ---- */

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A zombie counts as ended, whether or not its parent has reaped it. */
bool procs_wait(const struct procs *p, int ms)
{
    int64_t until = now_ms() + ms;

    for (unsigned i = 0; i < p->n; i++) {
        struct pollfd f = {.fd = p->at[i].fd, .events = POLLIN};
        int64_t left = until - now_ms();

        while (poll(&f, 1, left > 0 ? (int)left : 0) < 0 && errno == EINTR)
            ;
        if (!(f.revents & POLLIN))
            return false;
    }
    return true;
}

int procs_signal(const struct procs *p, int sig)
{
    int rc = 0;

    for (unsigned i = 0; i < p->n; i++)
        if (syscall(SYS_pidfd_send_signal, p->at[i].fd, sig, NULL, 0) && errno != ESRCH && !rc)
            rc = -errno;
    return rc;
}

/* The keeper comes first in the list and is signalled first, so that it expects its processes to
 * end. */
int procs_stop(const char *dir, bool keeper)
{
    struct procs p;
    int rc = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        bool none;

        rc = procs_find(&p, dir, keeper);
        none = !p.n;
        if (!rc && !none)
            rc = procs_signal(&p, SIGTERM);
        if (!rc && !none && !procs_wait(&p, TERM_MS)) {
            rc = procs_signal(&p, SIGKILL);
            if (!rc && !procs_wait(&p, KILL_MS))
                rc = -ETIMEDOUT;
        }
        procs_free(&p);
        if (rc || none)
            break;
    }
    return rc;
}

/* ---- fabrics of all users ---- */

void procs_scan(procs_seen_fn fn, void *ctx)
{
    static char args[KEEP_PATH];
    struct fabric_seen f;
    struct dirent *e;
    DIR *d = opendir("/proc");

    while (d && (e = readdir(d))) {
        pid_t pid = pid_of(e->d_name);
        ssize_t n = pid ? arguments(pid, args, sizeof(args)) : 0;
        bool keeper;
        const char *dir = n > 0 ? dir_in(args, (size_t)n, &keeper) : NULL;

        if (!dir)
            continue;
        f.uid = owner_of_pid(pid);
        f.pid = pid;
        snprintf(f.dir, sizeof(f.dir), "%s", dir);
        for (char *c = f.dir; *c; c++) /* untrusted text, on its way to a terminal */
            if ((unsigned char)*c < 32 || *c == 127)
                *c = '?';
        if (f.uid != (uid_t)-1)
            fn(ctx, &f);
    }
    if (d)
        closedir(d);
}

struct owner {
    const char *dir;
    uid_t *uid;
    bool found;
};

static void look_for_owner(void *ctx, const struct fabric_seen *f)
{
    struct owner *o = ctx;

    if (o->found || !same_dir(f->dir, o->dir))
        return;
    *o->uid = f->uid;
    o->found = true;
}

bool procs_owner(const char *dir, uid_t *uid)
{
    struct owner o = {dir, uid, false};
    struct stat st;

    if (!lstat(dir, &st)) {
        *uid = st.st_uid;
        return true;
    }
    procs_scan(look_for_owner, &o);
    return o.found;
}
