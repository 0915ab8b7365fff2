/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/keep/procs.h"

#include "base/assert.h"
#include "system/own_path.h"
#include "system/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Remembers that a look has failed for want of memory or descriptors: nobody was seen, and somebody may be there. */
static int look(struct procs *p, int rc)
{
    if (p && (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE))
        p->missed = rc;
    return rc;
}

/* ---- one process ---- */

uint64_t procs_start_time(pid_t pid)
{
    char stat[PROCESS_STAT];
    const char *start;

    if (process_file(pid, "stat", stat, sizeof(stat)) <= 0)
        return 0;
    start = process_stat_field(stat, PROCESS_STAT_START);
    return start ? strtoull(start, NULL, 10) : 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Reads the arguments of a process. A zombie has none. /proc/PID/exe will not do, because a process
 * of another user namespace cannot read it. */
static ssize_t arguments(struct procs *p, pid_t pid, char *buf, size_t size)
{
    return look(p, (int)process_file(pid, "cmdline", buf, size));
}

static bool runs_switch(struct procs *p, pid_t pid)
{
    char args[KEEP_PATH];

    return arguments(p, pid, args, sizeof(args)) > 0 && !strcmp(base_name(args), "trib-switch");
}

/* The value behind --proc; "?": there is none. */
static const char *proc_in(const char *args, size_t len)
{
    const char *end = args + len;

    for (const char *a = args; a < end; a += strlen(a) + 1)
        if (!strcmp(a, "--proc") && a + 7 < end)
            return a + 7;
    return "?";
}

/* The run directory that the arguments name; NULL: they are not of a fabric's process. */
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

static bool runs_in(struct procs *p, pid_t pid, const char *dir, bool *keeper, const char **proc,
                    char *args, size_t size)
{
    ssize_t n = arguments(p, pid, args, size);
    const char *d = n > 0 ? dir_in(args, (size_t)n, keeper) : NULL;

    if (!d || !same_dir(d, dir))
        return false;
    *proc = proc_in(args, (size_t)n);
    return true;
}

static pid_t lock_holder(struct procs *p, int dir, const char *name)
{
    int fd = look(p, own_file_open(dir, name, O_RDONLY));
    pid_t pid;

    if (fd < 0)
        return 0;
    pid = process_lock_holder(fd);
    close(fd);
    return pid < 0 ? 0 : pid;
}

/* ---- all of a directory ---- */

static bool procs_has(const struct procs *p, pid_t pid)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->at[i].pid == pid)
            return true;
    return false;
}

static int procs_add(struct procs *p, const char *name, pid_t pid, int fd)
{
    if (p->n == p->cap) {
        unsigned room = p->cap ? 2 * p->cap : 16;
        struct proc *at = realloc(p->at, room * sizeof(*at));

        if (!at) {
            if (fd >= 0)
                close(fd);
            return -ENOMEM;
        }
        p->at = at;
        p->cap = room;
    }
    T_ASSERT(pid && p->n < p->cap, "no process, or one without room");
    p->at[p->n] = (struct proc){.pid = pid, .fd = fd};
    snprintf(p->at[p->n++].name, KEEP_NAME, "%s", name);
    return 0;
}

static int pidfd(struct procs *p, pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    return look(p, fd < 0 ? -errno : fd);
}

/* Reads a pid file: pid and start time, a line each. Returns 0 if it has no pid. */
static pid_t read_pid_file(int dir, const char *name, uint64_t *start)
{
    int fd = own_file_open(dir, name, O_RDONLY);
    char buf[64], *end;
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);
    long pid;

    if (fd >= 0)
        close(fd);
    buf[n > 0 ? n : 0] = 0;
    pid = strtol(buf, &end, 10);
    *start = strtoull(end, NULL, 10);
    return pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

static void note_foreign(struct procs *p, const char *path, pid_t pid)
{
    char args[KEEP_NAME];

    if (pid == getpid() || arguments(p, pid, args, sizeof(args)) <= 0)
        return;
    if (!p->foreign++)
        snprintf(p->first_foreign, sizeof(p->first_foreign),
                 "%.1000s names process %d (%.100s), which is not the "
                 "fabric's and is left alone",
                 path, (int)pid, args);
    procs_printable(p->first_foreign);
}

/* The pid of a process in its own PID namespace, as it writes it to its file: the last number of
 * the line NSpid. */
static pid_t own_number(pid_t pid)
{
    char buf[4096], *line, *last;

    if (process_file(pid, "status", buf, sizeof(buf)) <= 0 || !(line = strstr(buf, "\nNSpid:")))
        return pid;
    line++;
    line[strcspn(line, "\n")] = 0;
    last = strrchr(line, '\t');
    return last ? (pid_t)strtol(last, NULL, 10) : pid;
}

/* Adds the process that holds the lock on NAME.pid. `at` is open on proc/. */
static int add_locked(struct procs *p, const char *dir, int at, const char *name)
{
    char file[KEEP_NAME + 8], path[KEEP_PATH];
    uint64_t start;
    pid_t pid, said;
    int fd;

    T_ASSERT(*name && !strchr(name, '/'), "a process's file is one of the folder");
    if (snprintf(file, sizeof(file), "%s.pid", name) >= (int)sizeof(file) ||
        snprintf(path, sizeof(path), "%s/proc/%s", dir, file) >= (int)sizeof(path))
        return 0;
    said = read_pid_file(at, file, &start);
    pid = lock_holder(p, at, file);
    if (!pid) {
        if (said)
            note_foreign(p, path, said);
        return 0;
    }
    if (pid == PROCESS_AWAY)
        return procs_add(p, name, pid, -1);
    fd = pidfd(p, pid);
    if (fd < 0)
        return 0;
    /* Check the lock again: if the pid still holds it, the pidfd is of that process. The file is
     * empty (said is 0) between a process's claim and its first write. */
    if (lock_holder(p, at, file) != pid || !runs_switch(p, pid) ||
        (said && (said != own_number(pid) || procs_start_time(pid) != start))) {
        note_foreign(p, path, said && said != own_number(pid) ? said : pid);
        close(fd);
        return 0;
    }
    return procs_add(p, name, pid, fd);
}

static int add_keeper(struct procs *p, int at)
{
    pid_t pid = lock_holder(p, at, KEEP_FILE);
    int fd = pid && pid != PROCESS_AWAY ? pidfd(p, pid) : -1;
    char args[KEEP_PATH];
    bool keeper;
    ssize_t n;

    if (pid == PROCESS_AWAY)
        return procs_add(p, "", pid, -1);
    if (fd < 0)
        return 0;
    n = arguments(p, pid, args, sizeof(args));
    /* trib-keep stop holds the lock, too, while it removes the directory. */
    if (lock_holder(p, at, KEEP_FILE) != pid || n <= 0 || !dir_in(args, (size_t)n, &keeper) ||
        !keeper) {
        close(fd);
        return 0;
    }
    return procs_add(p, "", pid, fd);
}

/* Adds the processes of which the directory has files, unless other users could write to it. */
static int add_listed(struct procs *p, const char *dir, bool keeper)
{
    char why[OWN_WHY], name[KEEP_NAME];
    int at = look(p, own_dir_open(dir, false, why, sizeof(why))), sub, rc;
    struct dirent *e;
    DIR *d;

    if (at < 0)
        return 0;
    rc = keeper ? add_keeper(p, at) : 0;
    sub = look(p, own_subdir_open(at, "proc"));
    close(at);
    d = sub < 0 ? NULL : fdopendir(sub);
    if (!d && sub >= 0) {
        look(p, -errno);
        close(sub);
    }
    while (d && !rc && (e = readdir(d))) {
        size_t len = strlen(e->d_name);

        if (len < 5 || len >= sizeof(name) || strcmp(e->d_name + len - 4, ".pid") != 0)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)len - 4, e->d_name);
        rc = add_locked(p, dir, sub, name);
    }
    if (d)
        closedir(d);
    return rc;
}

static pid_t pid_of(const char *name)
{
    char *end;
    long n = strtol(name, &end, 10);

    return *end || n <= 0 ? 0 : (pid_t)n;
}

/* The real user of a process. The owner of /proc/PID will not do: it is root if the process is not
 * dumpable. */
static uid_t owner_of_pid(struct procs *p, pid_t pid)
{
    char buf[4096], *line;
    unsigned uid;

    if (look(p, (int)process_file(pid, "status", buf, sizeof(buf))) <= 0 ||
        !(line = strstr(buf, "\nUid:")) || sscanf(line, "\nUid: %u", &uid) != 1)
        return (uid_t)-1;
    return uid;
}

/* Adds this user's processes of which the directory has no file. */
static int add_unlisted(struct procs *p, const char *dir, bool keepers)
{
    char args[KEEP_PATH];
    const char *proc;
    struct dirent *e;
    int rc = 0;
    DIR *d = opendir("/proc");

    if (!d)
        look(p, -errno);
    while (d && !rc && (e = readdir(d))) {
        pid_t pid = pid_of(e->d_name);
        bool keeper;
        int fd;

        if (!pid || pid == getpid() || procs_has(p, pid) || owner_of_pid(p, pid) != geteuid() ||
            !runs_in(p, pid, dir, &keeper, &proc, args, sizeof(args)) || (keeper && !keepers))
            continue;
        fd = pidfd(p, pid);
        if (fd < 0)
            continue;
        if (runs_in(p, pid, dir, &keeper, &proc, args, sizeof(args)))
            rc = procs_add(p, keeper ? "" : proc, pid, fd);
        else
            close(fd);
    }
    if (d)
        closedir(d);
    return rc;
}

int procs_find(struct procs *p, const char *dir, bool keeper)
{
    int rc;

    memset(p, 0, sizeof(*p));
    rc = add_listed(p, dir, keeper);
    rc = rc ? rc : add_unlisted(p, dir, keeper);
    rc = rc ? rc : p->missed;
    if (rc)
        procs_free(p);
    return rc;
}

void procs_free(struct procs *p)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->at[i].fd >= 0)
            close(p->at[i].fd);
    free(p->at);
    memset(p, 0, sizeof(*p));
}

unsigned procs_away(const struct procs *p)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->n; i++)
        n += p->at[i].pid == PROCESS_AWAY;
    return n;
}

/* ---- fabrics of all users ---- */

void procs_printable(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 32 || (unsigned char)*c >= 127)
            *c = '?';
}

void procs_scan(procs_seen_fn fn, void *ctx)
{
    static char args[KEEP_PATH];
    struct fabric_seen f;
    struct dirent *e;
    DIR *d = opendir("/proc");

    while (d && (e = readdir(d))) {
        pid_t pid = pid_of(e->d_name);
        ssize_t n = pid ? arguments(NULL, pid, args, sizeof(args)) : 0;
        const char *dir = n > 0 ? dir_in(args, (size_t)n, &f.keeper) : NULL;

        if (!dir)
            continue;
        f.uid = owner_of_pid(NULL, pid);
        f.pid = pid;
        f.start = procs_start_time(pid);
        snprintf(f.dir, sizeof(f.dir), "%s", dir);
        snprintf(f.proc, sizeof(f.proc), "%s", proc_in(args, (size_t)n));
        procs_printable(f.dir);
        procs_printable(f.proc);
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

    if (!lstat(dir, &st) && S_ISDIR(st.st_mode)) {
        *uid = st.st_uid;
        return true;
    }
    procs_scan(look_for_owner, &o);
    return o.found;
}
