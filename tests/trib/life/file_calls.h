/* SPDX-License-Identifier: BSD-3-Clause */
/* What trib and trib-keep ask of the C library about descriptors and files, answered for the task of simulated_tasks.h whose code runs. */
#ifndef TRIB_TESTS_TRIB_LIFE_FILE_CALLS_H
#define TRIB_TESTS_TRIB_LIFE_FILE_CALLS_H

#include "signal_calls.h"

#include <dirent.h>
#include <limits.h>
#include <sys/socket.h>

static void oracle_unlinks(const struct task *t, const struct sim_file *f);

static int fail_with(int err)
{
    errno = err;
    return -1;
}

/* ---- descriptors ---- */

int close(int fd)
{
    return SIMULATED ? fd_close(call_begin(), fd) : REAL(close)(fd);
}

void closefrom(int from)
{
    struct task *t = call_begin();

    for (int fd = from; fd < FDS; fd++)
        if (t->open[fd] >= 0)
            fd_close(t, fd);
}

int dup(int fd)
{
    struct sim_open *o;

    if (!SIMULATED)
        return REAL(dup)(fd);
    o = open_of(call_begin(), fd);
    return o ? fd_of_new(sim->current, o, false) : -1;
}

int dup2(int fd, int to)
{
    struct task *t;
    struct sim_open *o;

    if (!SIMULATED)
        return REAL(dup2)(fd, to);
    t = call_begin();
    o = open_of(t, fd);
    if (!o || fd == to)
        return o ? to : -1;
    o->refs++;
    if (t->open[to] >= 0)
        fd_close(t, to);
    t->open[to] = t->open[fd];
    t->on_exec[to] = false;
    return to;
}

int pipe2(int p[2], int flags)
{
    struct task *t = call_begin();
    struct sim_open *r, *w;

    if (CALL_FAILS(EMFILE, ENFILE))
        return -1;
    r = open_new(OPEN_PIPE);
    r->in = pipe_new();
    p[0] = fd_of_new(t, r, flags & O_CLOEXEC);
    w = open_new(OPEN_PIPE);
    w->out = r->in;
    p[1] = fd_of_new(t, w, flags & O_CLOEXEC);
    return 0;
}

int socketpair(int domain, int type, int protocol, int p[2])
{
    struct task *t;
    struct sim_open *a, *b;

    if (!SIMULATED)
        return REAL(socketpair)(domain, type, protocol, p);
    t = call_begin();
    if (CALL_FAILS(EMFILE, ENOMEM))
        return -1;
    a = open_new(OPEN_PIPE);
    p[0] = fd_of_new(t, a, type & SOCK_CLOEXEC);
    b = open_new(OPEN_PIPE);
    p[1] = fd_of_new(t, b, type & SOCK_CLOEXEC);
    a->in = b->out = pipe_new();
    a->out = b->in = pipe_new();
    return 0;
}

int shutdown(int fd, int how)
{
    struct sim_open *o;

    if (!SIMULATED)
        return REAL(shutdown)(fd, how);
    o = open_of(call_begin(), fd);
    if (!o)
        return -1;
    if (how != SHUT_RD)
        o->out->writer = false;
    if (how != SHUT_WR)
        o->in->writer = false;
    return 0;
}

/* ---- what goes through them ---- */

static ssize_t pipe_read(struct sim_pipe *p, void *to, size_t n)
{
    n = n < p->n ? n : p->n;
    memcpy(to, p->data, n);
    memmove(p->data, p->data + n, p->n - n);
    p->n -= n;
    return (ssize_t)n;
}

static ssize_t pipe_write(struct sim_pipe *p, const void *from, size_t n)
{
    if (!p->reader || !p->writer)
        return fail_with(EPIPE);
    n = n < PIPE_BYTES - p->n ? n : PIPE_BYTES - p->n;
    memcpy(p->data + p->n, from, n);
    p->n += n;
    return (ssize_t)n;
}

static ssize_t signals_read(struct task *t, const struct sim_open *o, void *to)
{
    struct signalfd_siginfo *si = to;

    for (int sig = 1; sig < 32; sig++)
        if (sigismember(&t->pending, sig) == 1 && sigismember(&o->signals, sig)) {
            sigdelset(&t->pending, sig);
            memset(si, 0, sizeof(*si));
            si->ssi_signo = (uint32_t)sig;
            return sizeof(*si);
        }
    return fail_with(EAGAIN);
}

static ssize_t bytes_read(const char *data, size_t size, size_t at, void *to, size_t n)
{
    n = at >= size ? 0 : n < size - at ? n : size - at;
    memcpy(to, data + at, n);
    return (ssize_t)n;
}

static ssize_t task_read(struct task *t, int fd, void *to, size_t n)
{
    struct sim_open *o = open_of(t, fd);
    ssize_t k = 0;

    if (!o)
        return -1;
    if (o->kind == OPEN_SIGNALS)
        return signals_read(t, o, to);
    if (o->kind == OPEN_PIPE) {
        t->fd = fd;
        if (!call_wait(READS, INT64_MAX))
            return fail_with(EINTR);
        return pipe_read(o->in, to, n);
    }
    if (o->kind == OPEN_FILE && S_ISDIR(o->file->mode))
        return fail_with(EISDIR);
    if (o->kind == OPEN_FILE)
        k = bytes_read(o->file->data, o->file->size, o->at, to, n);
    else if (o->kind == OPEN_TEXT)
        k = bytes_read(o->text, o->size, o->at, to, n);
    o->at += (size_t)k;
    return k;
}

ssize_t read(int fd, void *to, size_t n)
{
    return SIMULATED ? task_read(call_begin(), fd, to, n) : REAL(read)(fd, to, n);
}

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    const struct sim_open *o;

    if (!SIMULATED)
        return REAL(pread)(fd, to, n, at);
    o = open_of(call_begin(), fd);
    return o ? bytes_read(o->file->data, o->file->size, (size_t)at, to, n) : -1;
}

ssize_t recv(int fd, void *to, size_t n, int flags)
{
    return SIMULATED ? task_read(call_begin(), fd, to, n) : REAL(recv)(fd, to, n, flags);
}

/* A file system that is full takes a part of it, or nothing. */
static ssize_t file_write(struct sim_file *f, const void *from, size_t n, size_t at)
{
    if (sim->full || in_ten_thousand(sim->faults)) {
        n = (size_t)draw(n + 1);
        if (!n)
            return fail_with(ENOSPC);
    }
    if (at + n > FILE_BYTES)
        n = at < FILE_BYTES ? FILE_BYTES - at : 0;
    memcpy(f->data + at, from, n);
    f->size = at + n > f->size ? at + n : f->size;
    return (ssize_t)n;
}

static void says_append(struct sim_says *s, const char *from, size_t n)
{
    n = n < sizeof(s->text) - 1 - s->n ? n : sizeof(s->text) - 1 - s->n;
    memcpy(s->text + s->n, from, n);
    sim_trace("%d says %.*s", sim->current->pid, (int)n, from);
    s->n += n;
    s->text[s->n] = 0;
}

static ssize_t task_write(struct task *t, int fd, const void *from, size_t n)
{
    struct sim_open *o = open_of(t, fd);
    ssize_t k;

    if (!o)
        return -1;
    if (o->kind == OPEN_SAYS)
        says_append(o->says, from, n);
    if (o->kind == OPEN_PIPE)
        return pipe_write(o->out, from, n);
    if (o->kind != OPEN_FILE)
        return (ssize_t)n;
    if (o->flags & O_APPEND)
        o->at = o->file->size;
    k = file_write(o->file, from, n, o->at);
    o->at += k > 0 ? (size_t)k : 0;
    return k;
}

ssize_t write(int fd, const void *from, size_t n)
{
    return SIMULATED ? task_write(call_begin(), fd, from, n) : REAL(write)(fd, from, n);
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
    const struct sim_open *o;

    if (!SIMULATED)
        return REAL(pwrite)(fd, from, n, at);
    o = open_of(call_begin(), fd);
    return o ? file_write(o->file, from, n, (size_t)at) : -1;
}

ssize_t send(int fd, const void *from, size_t n, int flags)
{
    return SIMULATED ? task_write(call_begin(), fd, from, n) : REAL(send)(fd, from, n, flags);
}

int dprintf(int fd, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return (int)write(fd, text, (size_t)n);
}

static int lock_set(struct task *t, struct sim_open *o, int cmd, struct flock *lk)
{
    struct sim_file *f = o->file;
    pid_t holder = f->lock && f->lock != t->pid ? f->lock : 0;

    if (cmd == F_GETLK) {
        lk->l_type = holder ? F_WRLCK : F_UNLCK;
        lk->l_pid = holder;
        return 0;
    }
    if ((o->flags & O_ACCMODE) == O_RDONLY)
        return fail_with(EBADF);
    if (holder)
        return fail_with(EAGAIN);
    if (CALL_FAILS(ENOLCK))
        return -1;
    f->lock = lk->l_type == F_UNLCK ? 0 : t->pid;
    return 0;
}

int fcntl(int fd, int cmd, ...)
{
    struct sim_open *o;
    struct task *t;
    va_list ap;
    void *arg;

    va_start(ap, cmd);
    arg = va_arg(ap, void *);
    va_end(ap);
    if (!SIMULATED)
        return REAL(fcntl)(fd, cmd, arg);
    t = call_begin();
    o = open_of(t, fd);
    if (!o)
        return -1;
    if (cmd == F_SETFD)
        t->on_exec[fd] = (uintptr_t)arg & FD_CLOEXEC;
    return cmd == F_SETLK || cmd == F_GETLK ? lock_set(t, o, cmd, arg) : 0;
}

int ftruncate(int fd, off_t size)
{
    struct sim_open *o;

    if (!SIMULATED)
        return REAL(ftruncate)(fd, size);
    o = open_of(call_begin(), fd);
    if (!o)
        return -1;
    o->file->size = (size_t)size;
    return 0;
}

int fallocate(int fd, int mode, off_t at, off_t n)
{
    if (!SIMULATED)
        return REAL(fallocate)(fd, mode, at, n);
    call_begin();
    if (sim->full || in_ten_thousand(sim->faults))
        return fail_with(ENOSPC);
    return 0;
}

int isatty(int fd)
{
    (void)fd;
    return 0;
}

/* ---- /proc ---- */

static struct sim_open *text_open(const char *text, size_t n)
{
    struct sim_open *o = open_new(OPEN_TEXT);

    o->text = sim_room(n + 1);
    memcpy(o->text, text, n);
    o->size = n;
    return o;
}

/* A file of /proc/PID. */
static struct sim_open *proc_open(const char *path)
{
    char text[512], name[16] = "";
    int n = 0;
    const struct task *t;
    int pid = 0;

    if (!strcmp(path, "/proc/vmstat")) {
        n = snprintf(text, sizeof(text), "nr_dirty 7\noom_kill %llu\n",
                     (unsigned long long)sim->oom_kills);
        return text_open(text, (size_t)n);
    }
    if (sscanf(path, "/proc/%d/%15s", &pid, name) != 2)
        sscanf(path, "/proc/self/%15s", name);
    t = pid ? task_of(pid) : sim->current;
    if (!t)
        return NULL;
    if (!strcmp(name, "cmdline"))
        return text_open(t->args, task_lives(t) ? t->args_size : 0);
    if (!strcmp(name, "stat"))
        n = snprintf(text, sizeof(text),
                     "%d (%.15s) %c %d %d %d 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 %lld 0\n", t->pid,
                     t->program->name,
                     t->state == TASK_ZOMBIE ? 'Z'
                     : t->stopped            ? 'T'
                                             : 'S',
                     t->parent, t->group, t->session, (long long)(t->start_ns / TICK_NS + 1));
    else if (!strcmp(name, "status"))
        n = snprintf(text, sizeof(text), "Name:\t%s\nUid:\t%d\t%d\t%d\t%d\nNSpid:\t%d\n",
                     t->program->name, USER, USER, USER, USER, t->pid);
    return n ? text_open(text, (size_t)n) : NULL;
}

/* ---- files ---- */

static struct sim_file *dir_of(struct task *t, int fd, const char *path)
{
    const struct sim_open *o;

    if (*path == '/' || fd == AT_FDCWD)
        return file_of("/home/u");
    o = open_of(t, fd);
    return o ? o->file : NULL;
}

static bool may_write(const struct sim_file *dir)
{
    return dir->uid == USER || dir->mode & S_IWOTH;
}

/* A new one, in the directory of a path; NULL with errno. */
static struct sim_file *file_make(struct task *t, struct sim_file *from, const char *path,
                                  mode_t mode)
{
    char last[FILE_NAME];
    struct sim_file *dir = file_walk(from, path, last, sizeof(last));

    (void)t;
    if (!dir)
        return NULL;
    errno = !*last || file_in(dir, last)   ? EEXIST
            : !S_ISDIR(dir->mode)          ? ENOTDIR
            : !dir->linked                 ? ENOENT
            : !may_write(dir)              ? EACCES
            : sim->full && draw(2)         ? ENOSPC
            : in_ten_thousand(sim->faults) ? ENOSPC
                                           : 0;
    return errno ? NULL : file_new(dir, last, mode, USER);
}

static int file_open(struct task *t, int fd, const char *path, int flags, mode_t mode)
{
    struct sim_file *from, *f;
    struct sim_open *o;

    if (CALL_FAILS(EMFILE, ENFILE, ENOMEM))
        return -1;
    if (!strncmp(path, "/proc/", 6)) {
        o = proc_open(path);
        return o ? fd_of_new(t, o, flags & O_CLOEXEC) : fail_with(ENOENT);
    }
    if (!strcmp(path, "/dev/null"))
        return fd_of_new(t, open_new(OPEN_NULL), flags & O_CLOEXEC);
    from = dir_of(t, fd, path);
    f = from ? file_at(from, path) : NULL;
    if (f && flags & O_CREAT && flags & O_EXCL)
        return fail_with(EEXIST);
    if (!f && errno == ENOENT && flags & O_CREAT)
        f = file_make(t, from, path, S_IFREG | mode);
    if (!f)
        return -1;
    if (flags & O_DIRECTORY && !S_ISDIR(f->mode))
        return fail_with(ENOTDIR);
    if (S_ISDIR(f->mode) && (flags & O_ACCMODE) != O_RDONLY)
        return fail_with(EISDIR);
    if (flags & O_TRUNC)
        f->size = 0;
    o = open_new(OPEN_FILE);
    o->file = f;
    o->flags = flags;
    f->opened++;
    return fd_of_new(t, o, flags & O_CLOEXEC);
}

int open(const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start(ap, flags);
    mode = va_arg(ap, mode_t);
    va_end(ap);
    return SIMULATED ? file_open(call_begin(), AT_FDCWD, path, flags, mode)
                     : REAL(open)(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start(ap, flags);
    mode = va_arg(ap, mode_t);
    va_end(ap);
    return SIMULATED ? file_open(call_begin(), dir, path, flags, mode)
                     : REAL(openat)(dir, path, flags, mode);
}

#endif
