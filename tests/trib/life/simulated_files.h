/* SPDX-License-Identifier: BSD-3-Clause */
/* Files, pipes and sockets of the machine of simulated_tasks.h: what open(2), unlink(2), fcntl(2) and pipe(7) promise of them, as far as run
 * directories need it. A lock goes with any close of its file by the process that holds it. */
#ifndef TRIB_TESTS_TRIB_LIFE_SIMULATED_FILES_H
#define TRIB_TESTS_TRIB_LIFE_SIMULATED_FILES_H

#include "simulated_tasks.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FILE_BYTES 2048u
#define FILE_NAME  64
#define PIPE_BYTES 8192u

struct sim_file {
    struct sim_file *parent, *children, *next;
    char name[FILE_NAME];
    mode_t mode; /* with its type */
    uid_t uid;
    unsigned long number; /* 0: it is free */
    unsigned opened;
    bool linked;
    pid_t lock;  /* 0: none */
    bool theirs; /* somebody else's: nobody may remove it */
    size_t size;
    char data[FILE_BYTES];
};

struct sim_pipe {
    unsigned ends; /* open, of both */
    bool reader, writer;
    size_t n;
    char data[PIPE_BYTES];
};

enum open_kind {
    OPEN_NONE,
    OPEN_FILE,
    OPEN_NULL,
    OPEN_TEXT,
    OPEN_SAYS,
    OPEN_PIPE,
    OPEN_SIGNALS,
    OPEN_PID
};

/* What a command and those that it has started say. */
struct sim_says {
    char text[4096];
    size_t n;
};

struct sim_open {
    enum open_kind kind;
    unsigned refs;
    int flags;
    struct sim_file *file;
    size_t at;
    struct sim_pipe *in, *out; /* of a socket both */
    sigset_t signals;
    int id; /* of a task */
    struct sim_says *says;
    char *text; /* of /proc */
    size_t size;
};

/* ---- pipes ---- */

static struct sim_pipe *pipe_new(void)
{
    for (unsigned i = 0; i < SIM_PIPES; i++)
        if (!sim->pipe[i].ends) {
            sim->pipe[i] = (struct sim_pipe){.ends = 2, .reader = true, .writer = true};
            return &sim->pipe[i];
        }
    HOLDS(false, "more than %u pipes", SIM_PIPES);
    return &sim->pipe[0];
}

/* ---- files ---- */

static struct sim_file *file_new(struct sim_file *parent, const char *name, mode_t mode, uid_t uid)
{
    static const struct sim_file none;
    struct sim_file *f = NULL;

    for (unsigned i = 0; i < SIM_FILES && !f; i++)
        if (!sim->file[i].number)
            f = &sim->file[i];
    if (!f) {
        HOLDS(false, "more than %u files", SIM_FILES);
        f = &sim->file[SIM_FILES - 1];
    }
    memcpy(f, &none, offsetof(struct sim_file, data));
    snprintf(f->name, sizeof(f->name), "%s", name);
    f->mode = mode;
    f->uid = uid;
    f->number = ++sim->n_files;
    f->linked = true;
    f->parent = parent;
    if (parent && (!parent->children || draw(2))) {
        f->next = parent->children;
        parent->children = f;
    } else if (parent) {
        f->next = parent->children->next;
        parent->children->next = f;
    }
    return f;
}

static void file_drop(struct sim_file *f)
{
    if (!f->linked && !f->opened)
        f->number = 0;
}

static void file_unlink(struct sim_file *f)
{
    struct sim_file **at = &f->parent->children;

    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    f->linked = false;
    file_drop(f);
}

static struct sim_file *file_in(const struct sim_file *dir, const char *name)
{
    struct sim_file *f = dir->children;

    while (f && strcmp(f->name, name) != 0)
        f = f->next;
    return f;
}

/* The last name of a path goes to `last`; its directory, or NULL with errno. */
static struct sim_file *file_walk(struct sim_file *at, const char *path, char *last, size_t room)
{
    *last = 0;
    if (*path == '/')
        at = &sim->file[0];
    for (;;) {
        size_t n;

        path += strspn(path, "/");
        n = strcspn(path, "/");
        if (!n)
            return at;
        if (n >= room) {
            errno = ENAMETOOLONG;
            return NULL;
        }
        if (*last && !(at = file_in(at, last))) {
            errno = ENOENT;
            return NULL;
        }
        if (!S_ISDIR(at->mode)) {
            errno = ENOTDIR;
            return NULL;
        }
        memcpy(last, path, n);
        last[n] = 0;
        path += n;
        if (!strcmp(last, ".") || !strcmp(last, ".."))
            at = last[1] && at->parent ? at->parent : at, *last = 0;
    }
}

static struct sim_file *file_at(struct sim_file *from, const char *path)
{
    char last[FILE_NAME];
    struct sim_file *dir = file_walk(from, path, last, sizeof(last)), *f;

    if (!dir || !*last)
        return dir;
    f = dir->linked || !dir->parent ? file_in(dir, last) : NULL;
    if (!f)
        errno = S_ISDIR(dir->mode) ? ENOENT : ENOTDIR;
    return f;
}

static inline struct sim_file *file_of(const char *path)
{
    return file_at(NULL, path);
}

/* Made by the test, with the directories above it. */
static struct sim_file *file_put(const char *path, const char *text)
{
    struct sim_file *at = &sim->file[0];
    char part[FILE_NAME];

    while (*(path += strspn(path, "/"))) {
        size_t n = strcspn(path, "/");
        struct sim_file *f;

        snprintf(part, sizeof(part), "%.*s", (int)n, path);
        path += n;
        f = file_in(at, part);
        at = f ? f : file_new(at, part, *path || !text ? S_IFDIR | 0700 : S_IFREG | 0600, USER);
    }
    if (text)
        at->size = (size_t)snprintf(at->data, FILE_BYTES, "%s", text);
    return at;
}

/* Of the test: all of it, as rm -rf does. */
static inline void file_erase(struct sim_file *f)
{
    while (f->children)
        file_erase(f->children);
    file_unlink(f);
}

static inline bool file_says(const char *path, const char *text)
{
    const struct sim_file *f = file_of(path);

    return f && f->size == strlen(text) && !memcmp(f->data, text, f->size);
}

/* ---- open files ---- */

static struct sim_open *open_new(enum open_kind kind)
{
    for (unsigned i = 0; i < SIM_OPEN; i++)
        if (!sim->opened[i].kind) {
            sim->opened[i] = (struct sim_open){.kind = kind, .refs = 0};
            return &sim->opened[i];
        }
    HOLDS(false, "more than %u open files", SIM_OPEN);
    return &sim->opened[0];
}

static int fd_of_new(struct task *t, struct sim_open *o, bool on_exec)
{
    for (int fd = 0; fd < FDS; fd++)
        if (t->open[fd] < 0) {
            t->open[fd] = (int)(o - sim->opened);
            t->on_exec[fd] = on_exec;
            o->refs++;
            return fd;
        }
    HOLDS(false, "process %d has more than %d descriptors", t->pid, FDS);
    return -1;
}

static struct sim_open *open_of(const struct task *t, int fd)
{
    if (fd >= 0 && fd < FDS && t->open[fd] >= 0)
        return &sim->opened[t->open[fd]];
    errno = EBADF;
    return NULL;
}

static void open_drop(struct sim_open *o)
{
    if (--o->refs)
        return;
    if (o->file) {
        o->file->opened--;
        file_drop(o->file);
    }
    if (o->in) {
        o->in->reader = false;
        o->in->ends--;
    }
    if (o->out) {
        o->out->writer = false;
        o->out->ends--;
    }
    if (o->text)
        sim_free(o->text);
    o->kind = OPEN_NONE;
}

static int fd_close(struct task *t, int fd)
{
    struct sim_open *o = open_of(t, fd);

    if (!o)
        return -1;
    t->open[fd] = -1;
    if (o->file && o->file->lock == t->pid)
        o->file->lock = 0;
    open_drop(o);
    return 0;
}

static short open_events(const struct task *t, const struct sim_open *o)
{
    const struct task *of;
    sigset_t both;

    if (o->kind == OPEN_PIPE) {
        if (!o->in)
            return POLLOUT;
        return (short)((o->in->n || !o->in->writer ? POLLIN : 0) | (o->in->writer ? 0 : POLLHUP));
    }
    if (o->kind == OPEN_SIGNALS) {
        sigandset(&both, &t->pending, &o->signals);
        return sigisemptyset(&both) ? 0 : POLLIN;
    }
    if (o->kind == OPEN_PID) {
        of = task_by_id(o->id);
        return task_lives(of) ? 0 : POLLIN;
    }
    return POLLIN | POLLOUT;
}

static bool is_polled(struct task *t)
{
    bool any = false;

    for (unsigned i = 0; i < t->n_polled; i++) {
        struct pollfd *p = &t->polled[i];
        const struct sim_open *o = p->fd < 0 ? NULL : open_of(t, p->fd);

        p->revents = o ? open_events(t, o) & (p->events | POLLHUP) : p->fd < 0 ? 0 : POLLNVAL;
        any |= p->revents != 0;
    }
    return any;
}

#endif
