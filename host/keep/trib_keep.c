/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-keep starts, supervises, finds and ends the processes of a fabric on this machine. The
 * command trib runs it.
 */
#include "base/options.h"
#include "system/own_path.h"
#include "host/keep/claim.h"
#include "host/keep/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_YES = 0, EXIT_NO = 1, EXIT_USAGE = 2, EXIT_OTHERS = 3 };

#define WAIT_US 200000

/* ---- the command line ---- */

enum verb { START, STOP, ALIVE, LIST, WAIT, FABRICS, ALL, CHECK, WITH, SHOW };

/* In order of enum verb; least and greatest number of arguments. */
static const struct {
    const char *name;
    int least, most;
} verbs[] = {
    [START] = {"start", 6, INT_MAX}, [STOP] = {"stop", 1, 1},   [ALIVE] = {"alive", 1, 1},
    [LIST] = {"list", 1, 1},         [WAIT] = {"wait", 2, 2},   [FABRICS] = {"fabrics", 0, 0},
    [ALL] = {"all", 0, 0},           [CHECK] = {"check", 1, 1}, [WITH] = {"with", 2, INT_MAX},
    [SHOW] = {"show", 2, 2},
};

static const char *list_verbs(unsigned i)
{
    return i <= SHOW ? verbs[i].name : NULL;
}

struct keep_opts {
    unsigned verb;
};

static const struct option_row words[] = {
    {.arg = "COMMAND",
     .offset = offsetof(struct keep_opts, verb),
     .type = OPTION_CHOICE,
     .how = OPTION_REQUIRED,
     .list = list_verbs,
     .help = "a command"},
    {.arg = "ARG...", .type = OPTION_TEXT, .how = OPTION_REST, .help = "its arguments"},
};
static const struct option_group groups[] = {{NULL, NULL, 0}};
static const struct option_note exits[] = {
    {"0", "fine; alive: a process lives"},      {"1", "it cannot be done; alive: none lives"},
    {"2", "the command line is wrong"},         {"3", "the fabric is another user's"},
    {"4", "check: the same, and this is root"}, {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-keep",
    .summary = "start, find and end the processes of a fabric",
    .synopsis = "start DIR up|while PID TRIB-SWITCH CONF PROCESS... [-- OPTION...]\n"
                "stop|alive|list|check DIR\n"
                "wait DIR SECONDS\n"
                "fabrics|all\n"
                "with PID CMD [ARG...]\n"
                "show DIR FILE",
    .text = "Looks after the processes of a fabric on this machine for trib(1).\n\nstart: these "
            "trib-switch processes in the run directory DIR; while: for as long as PID, which is "
            "the parent, lives.\n\nstop: ends them and removes DIR. alive: does any live? list: a "
            "line each, with name, pid (0: none) and state; tabs between. wait: until none lives, "
            "or so long; ends with its parent. check: can another user exchange anything there?\n\n"
            "fabrics: all of this machine, with user, pid and run directory. all: the same, to "
            "read. with: CMD, killed when PID, which is the parent, ends. show: the text of a file "
            "of DIR, through no link and without what controls a terminal.",
    .words = words,
    .n_words = 2,
    .words_end_options = true,
    .groups = groups,
    .exits = exits,
    .see = "trib(1), trib-switch(1)",
};

static void tell_foreign(const struct procs *p)
{
    if (p->foreign)
        fprintf(stderr, "trib: %s\n", p->first_foreign);
}

/* ---- stop ---- */

/* Removes the directory. If it was not there, a process that began late may have made it meanwhile. */
static int remove_stopped(const char *dir, bool was_there)
{
    char why[OWN_WHY];
    int fd = was_there ? -1 : own_dir_open(dir, false, why, sizeof(why));
    bool stays = !was_there && (fd < 0 || dir_kind(fd) == DIR_FOREIGN);

    if (fd >= 0)
        close(fd);
    return stays ? 0 : claim_remove(dir);
}

static int keep_stop(const char *dir)
{
    char why[OWN_WHY];
    struct procs p;
    bool any;
    int rc, fd;

    if (owner_is_other(dir, false, true))
        return EXIT_OTHERS;
    if (owner_become(dir))
        return EXIT_NO;
    fd = own_dir_open(dir, false, why, sizeof(why));
    if (fd == -EPERM) {
        fprintf(stderr, "trib: cannot use the run directory %s: %s\n", dir, why);
        return EXIT_NO;
    }
    if (procs_find(&p, dir, true)) {
        say(KEEP_NOT_KNOWN, dir);
        return EXIT_NO;
    }
    any = p.n;
    tell_foreign(&p);
    if (procs_away(&p)) {
        fprintf(stderr,
                "trib: the fabric of %s is up: %u of its %u processes run in another PID namespace "
                "(a container or pod), from where alone they can be ended; expected trib down "
                "there\n",
                dir, procs_away(&p), p.n);
        procs_free(&p);
        if (fd >= 0)
            close(fd);
        return EXIT_NO;
    }
    procs_free(&p);
    if (!any && fd < 0) {
        fprintf(stderr, "trib: no fabric is up in %s\n", dir);
        return EXIT_NO;
    }
    if (fd >= 0 && dir_kind(fd) == DIR_FOREIGN && !any) {
        fprintf(stderr,
                "trib: found no fabric in %s, expected TRIB_RUN to name a fabric's run directory\n",
                dir);
        return EXIT_NO;
    }
    rc = procs_stop(dir, true);
    if (rc) {
        fprintf(stderr, "trib: cannot end the processes of %s: %s\n", dir, strerror(-rc));
        return EXIT_NO;
    }
    rc = remove_stopped(dir, fd >= 0);
    if (own_dir_is_service(dir)) /* its users' files stay until systemd removes the directory */
        rc = 0;
    if (fd >= 0)
        close(fd);
    if (rc) {
        fprintf(stderr, "trib: cannot remove %s: %s\n", dir, strerror(-rc));
        return EXIT_NO;
    }
    return EXIT_YES;
}

/* ---- list ---- */

static bool exists(int proc, const char *name, const char *suffix)
{
    char file[KEEP_NAME + 8];

    return snprintf(file, sizeof(file), "%s%s", name, suffix) < (int)sizeof(file) &&
           !faccessat(proc, file, F_OK, AT_SYMLINK_NOFOLLOW);
}

static void how_it_ended(int proc, const char *name, char *text, size_t size)
{
    char file[KEEP_NAME + 8], line[256];
    ssize_t n = -1;
    int fd = -1;

    if (snprintf(file, sizeof(file), "%s.ended", name) < (int)sizeof(file))
        fd = own_file_open(proc, file, O_RDONLY);
    if (fd >= 0) {
        n = read(fd, line, sizeof(line) - 1);
        close(fd);
    }
    line[n > 0 ? n : 0] = 0;
    line[strcspn(line, "\n")] = 0;
    procs_printable(line);
    snprintf(text, size, "dead%s%.200s", *line ? ", " : "", line);
}

static bool lives(const struct procs *p, const char *name, pid_t *pid)
{
    for (unsigned i = 0; i < p->n; i++)
        if (!strcmp(p->at[i].name, name)) {
            *pid = p->at[i].pid;
            return true;
        }
    return false;
}

static void list_living(const struct proc *p, bool ready)
{
    bool away = p->pid == PROCESS_AWAY;

    printf("%s\t%d\t", p->name, away ? 0 : (int)p->pid);
    if (away)
        printf("%s in another PID namespace (a container or pod), where trib down ends it%s\n",
               ready ? "runs" : "starts", ready ? "" : ", not ready yet");
    else if (process_is_stopped(p->pid))
        printf("stopped by a signal or a debugger; kill -CONT %d lets it go on\n", (int)p->pid);
    else
        puts(ready ? "ready" : "not ready yet");
}

static int keep_list(const char *dir)
{
    char name[KEEP_NAME], how[256], why[OWN_WHY];
    struct procs p;
    struct dirent *e;
    int rc, at, sub;
    pid_t pid;
    DIR *d;

    if (owner_is_other(dir, false, false))
        return EXIT_OTHERS;
    if (owner_become(dir))
        return EXIT_NO;
    if (procs_find(&p, dir, false)) {
        say(KEEP_NOT_KNOWN, dir);
        return EXIT_NO;
    }
    at = own_dir_open(dir, false, why, sizeof(why));
    if (at == -EPERM)
        fprintf(stderr, "trib: cannot use the run directory %s: %s\n", dir, why);
    sub = at < 0 ? -1 : own_subdir_open(at, "proc");
    d = sub < 0 ? NULL : fdopendir(sub);
    tell_foreign(&p);
    rc = p.n ? EXIT_YES : EXIT_NO;
    for (unsigned i = 0; i < p.n; i++)
        list_living(&p.at[i], exists(sub, p.at[i].name, ".ready"));
    while (d && (e = readdir(d))) {
        size_t len = strlen(e->d_name);
        bool ended = len > 6 && !strcmp(e->d_name + len - 6, ".ended");

        if (!ended && (len <= 4 || strcmp(e->d_name + len - 4, ".pid") != 0))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)len - (ended ? 6 : 4), e->d_name);
        if (lives(&p, name, &pid) || (ended && exists(sub, name, ".pid")))
            continue;
        how_it_ended(sub, name, how, sizeof(how));
        procs_printable(name);
        printf("%s\t0\t%s\n", name, how);
    }
    if (d)
        closedir(d);
    if (at >= 0)
        close(at);
    procs_free(&p);
    return rc;
}

/* ---- show ---- */

/* Prints a file. Scripts read files of a run directory only so, because a host's program may put a
 * link in the place of one, or a FIFO that blocks the reader. */
static int keep_show(const char *dir, const char *file)
{
    char *text;
    size_t size;

    if (*file == '/' || strstr(file, "..")) {
        options_wrong(&program, "show: found another file, expected one of DIR");
        return EXIT_USAGE;
    }
    text = show_file(dir, file, false, &size);
    if (!text)
        return EXIT_NO;
    fwrite(text, 1, size, stdout);
    free(text);
    return EXIT_YES;
}

/* ---- the rest ---- */

static void print_seen(void *ctx, const struct fabric_seen *f)
{
    (void)ctx;
    printf("%s\t%u\t%d\t%s\n", owner_name(f->uid), (unsigned)f->uid, (int)f->pid, f->dir);
}

static int wait_gone(const char *dir, const char *seconds)
{
    double left = strcmp(seconds, "infinity") != 0 ? strtod(seconds, NULL) : 1e12;
    struct timespec t0, t;
    struct procs p;
    bool any = true;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    clock_gettime(CLOCK_MONOTONIC, &t0);
    for (;;) {
        double past;

        any = procs_find(&p, dir, false) || p.n; /* who is not seen may live */
        procs_free(&p);
        clock_gettime(CLOCK_MONOTONIC, &t);
        past = (double)(t.tv_sec - t0.tv_sec) + (double)(t.tv_nsec - t0.tv_nsec) * 1e-9;
        if (!any || past >= left)
            return any ? EXIT_YES : EXIT_NO;
        usleep(left - past < WAIT_US * 1e-6 ? (useconds_t)((left - past) * 1e6) : WAIT_US);
    }
}

static pid_t parent(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    return *end || n <= 0 || getppid() != (pid_t)n ? 0 : (pid_t)n;
}

static int run_with(char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!parent(argv[0]))
        return EXIT_NO;
    signal(SIGINT, SIG_DFL); /* a shell's background job ignores both, and trib forwards them */
    signal(SIGQUIT, SIG_DFL);
    execv(argv[1], argv + 1);
    fprintf(stderr, "trib: cannot run %s: %s\n", argv[1], strerror(errno));
    return 127;
}

static int keep_start_command(int argc, char **argv)
{
    struct keep_cfg c = {.dir = argv[0],
                         .lives_with = !strcmp(argv[1], "while"),
                         .with = parent(argv[2]),
                         .program = argv[3],
                         .conf = argv[4],
                         .procs = argv + 5};
    int i = 5;

    while (i < argc && strcmp(argv[i], "--") != 0)
        i++;
    c.n_procs = (unsigned)(i - 5);
    if (i < argc) {
        c.opts = argv + i + 1;
        c.n_opts = (unsigned)(argc - i - 1);
    }
    if (!c.n_procs || (!c.lives_with && strcmp(argv[1], "up") != 0)) {
        options_wrong(&program, "start: found other arguments, expected DIR up|while PID "
                                "TRIB-SWITCH CONF PROCESS... [-- OPTION...]");
        return EXIT_USAGE;
    }
    if (!c.with)
        return EXIT_NO;
    return keep_start(&c);
}

/* Runs the verb with its n arguments. */
static int keep_run(enum verb verb, int n, char **argv)
{
    switch (verb) {
    case START:
        return keep_start_command(n, argv);
    case STOP:
        return keep_stop(argv[0]);
    case ALIVE:
        return owner_alive(argv[0], false);
    case LIST:
        return keep_list(argv[0]);
    case WAIT:
        return wait_gone(argv[0], argv[1]);
    case FABRICS:
        procs_scan(print_seen, NULL);
        return EXIT_YES;
    case ALL:
        return all_print();
    case CHECK:
        return owner_check(argv[0]);
    case WITH:
        return run_with(argv);
    case SHOW:
        return keep_show(argv[0], argv[1]);
    }
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    struct keep_opts o = {.verb = START};
    struct option_result r;
    char err[OPTIONS_ERR];
    int code, n;

    if (!options_begin(&program, (void *[]){&o}, argc, argv, &r, &code))
        return code;
    n = argc - r.rest;
    if (n >= verbs[o.verb].least && n <= verbs[o.verb].most)
        return keep_run(o.verb, n, argv + r.rest);
    snprintf(err, sizeof(err), "%s: found %d arguments, expected %s%d", verbs[o.verb].name, n,
             verbs[o.verb].most == INT_MAX ? "at least " : "", verbs[o.verb].least);
    return options_wrong(&program, err);
}
