/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists the fabrics of all users. Names, processes and start times come from the machine's process
 * table, which everybody may read (unless /proc is mounted with hidepid). The nodes come from the
 * run directory, which only its owner and root may read.
 */
#include "base/assert.h"
#include "system/own_path.h"
#include "host/keep/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READ_S      5    /* limit for reading another user's directory */
#define NODES_SHOWN 6    /* names printed for a process */
#define READY_MOST  4096 /* bytes read of a .ready file */

struct list {
    unsigned n, cap;
    struct fabric_seen *at;
    bool failed;
};

static void all_take_seen(void *ctx, const struct fabric_seen *f)
{
    struct list *l = ctx;

    if (l->n == l->cap) {
        unsigned cap = l->cap ? 2 * l->cap : 16;
        struct fabric_seen *at = realloc(l->at, cap * sizeof(*at));

        if (!at) {
            l->failed = true;
            return;
        }
        l->at = at;
        l->cap = cap;
    }
    T_ASSERT(l->n < l->cap, "there is no room for a process");
    l->at[l->n++] = *f;
}

static bool is_same(const struct fabric_seen *a, const struct fabric_seen *b)
{
    return a->uid == b->uid && !strcmp(a->dir, b->dir);
}

/* Sorts by user, directory and pid, with keepers after the other processes of their directory. */
static int all_compare(const void *x, const void *y)
{
    const struct fabric_seen *a = x, *b = y;
    int dir = strcmp(a->dir, b->dir);

    if (a->uid != b->uid)
        return a->uid < b->uid ? -1 : 1;
    if (dir)
        return dir;
    if (a->keeper != b->keeper)
        return a->keeper ? 1 : -1;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static time_t time_of(uint64_t ticks)
{
    long hz = sysconf(_SC_CLK_TCK);
    struct timespec boot, now;

    clock_gettime(CLOCK_BOOTTIME, &boot);
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - boot.tv_sec + (time_t)(ticks / (uint64_t)(hz > 0 ? hz : 100));
}

/* Formats "N nodes: h0 h1 ..." from the line "nodes ..." of the process's .ready file. False: there
 * is no such line. */
static bool describe_nodes(int dir, const char *proc, char *text, size_t size)
{
    char file[KEEP_NAME + 16], buf[READY_MOST], names[KEEP_NAME] = "", *line, *save = NULL;
    ssize_t n = -1;
    unsigned count = 0;
    int fd = -1;

    if (snprintf(file, sizeof(file), "proc/%s.ready", proc) < (int)sizeof(file))
        fd = own_file_open(dir, file, O_RDONLY);
    if (fd >= 0) {
        n = read(fd, buf, sizeof(buf) - 1);
        close(fd);
    }
    buf[n > 0 ? n : 0] = 0;
    line = strstr(buf, "\nnodes");
    if (!line)
        return false;
    line += strlen("\nnodes");
    line[strcspn(line, "\n")] = 0;
    procs_printable(line);
    for (char *t = strtok_r(line, " ", &save); t; t = strtok_r(NULL, " ", &save))
        if (count++ < NODES_SHOWN)
            snprintf(names + strlen(names), sizeof(names) - strlen(names), " %.32s", t);
    snprintf(text, size, "%s%u nodes:%s%s", n == READY_MOST - 1 ? "more than " : "", count, names,
             count > NODES_SHOWN ? " ..." : "");
    return true;
}

/* Runs with the owner's rights. */
static void print_processes(const struct list *l, unsigned from, unsigned to)
{
    char why[OWN_WHY], text[KEEP_NAME + 64];
    int dir = own_dir_open(l->at[from].dir, false, why, sizeof(why));

    T_ASSERT(from < to && to <= l->n, "a fabric has no processes");
    for (unsigned i = from; i < to; i++) {
        const struct fabric_seen *f = &l->at[i];

        if (f->keeper)
            printf("  trib-keep: pid %d\n", (int)f->pid);
        else if (dir >= 0 && describe_nodes(dir, f->proc, text, sizeof(text)))
            printf("  trib-switch %s: pid %d, %s\n", f->proc, (int)f->pid, text);
        else
            printf("  trib-switch %s: pid %d, nodes not known (%s)\n", f->proc, (int)f->pid,
                   dir >= 0              ? "not ready, or of an earlier version"
                   : f->uid != geteuid() ? "the run directory is its user's"
                   : dir == -ENOENT      ? "the run directory is gone"
                                         : why);
    }
    if (dir >= 0)
        close(dir);
    fflush(stdout);
}

/* For root: forks a child that takes the owner's rights for good, and prints there. */
static void print_as_owner(const struct list *l, unsigned from, unsigned to)
{
    uid_t uid = l->at[from].uid, owner;
    pid_t pid;

    signal(SIGCHLD, SIG_DFL); /* if the caller left it ignored, waitpid() would report no child */
    fflush(NULL);
    pid = geteuid() || !uid ? -1 : fork();
    if (!pid) {
        alarm(READ_S);
        /* A process can claim to run in somebody else's directory. */
        if (!procs_owner(l->at[from].dir, &owner) || owner != uid || owner_become(l->at[from].dir))
            _exit(1);
        print_processes(l, from, to);
        _exit(0);
    }
    if (pid > 0) {
        int status;

        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (WIFEXITED(status) && !WEXITSTATUS(status))
            return;
        for (unsigned i = from; i < to; i++)
            if (l->at[i].keeper)
                printf("  trib-keep: pid %d\n", (int)l->at[i].pid);
            else
                printf("  trib-switch %s: pid %d, nodes not known (the run directory is not its "
                       "user's)\n",
                       l->at[i].proc, (int)l->at[i].pid);
        return;
    }
    print_processes(l, from, to);
}

static void print_fabric(const struct list *l, unsigned from, unsigned to)
{
    const struct fabric_seen *f = &l->at[from];
    const char *slash = strrchr(f->dir, '/');
    uint64_t start = f->start;
    char since[64] = "?";
    time_t t;
    struct tm tm;

    for (unsigned i = from; i < to; i++)
        start = l->at[i].start < start ? l->at[i].start : start;
    t = time_of(start);
    if (localtime_r(&t, &tm))
        strftime(since, sizeof(since), "%Y-%m-%d %H:%M:%S", &tm);
    printf("fabric %s of user %s: run directory %s, since %s\n", slash ? slash + 1 : f->dir,
           owner_name(f->uid), f->dir, since);
    print_as_owner(l, from, to);
}

int all_print(void)
{
    struct list l = {.n = 0};
    unsigned to;

    procs_scan(all_take_seen, &l);
    if (l.failed) {
        free(l.at);
        fputs("trib: out of memory\n", stderr);
        return 1;
    }
    if (l.n)
        qsort(l.at, l.n, sizeof(*l.at), all_compare);
    for (unsigned from = 0; from < l.n; from = to) {
        for (to = from + 1; to < l.n && is_same(&l.at[from], &l.at[to]); to++)
            ;
        print_fabric(&l, from, to);
    }
    if (!l.n)
        puts("no fabric is up");
    free(l.at);
    return l.n ? 0 : 1;
}
