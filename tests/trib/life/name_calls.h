/* SPDX-License-Identifier: BSD-3-Clause */
/* What trib and trib-keep ask of the C library about names of files, directories and streams, answered for the task of simulated_tasks.h whose
 * code runs. */
#ifndef TRIB_TESTS_TRIB_LIFE_NAME_CALLS_H
#define TRIB_TESTS_TRIB_LIFE_NAME_CALLS_H

#include "file_calls.h"

/* ---- what a name is ---- */

static int stat_of(const struct sim_file *f, struct stat *st)
{
    if (!f)
        return -1;
    *st = (struct stat){.st_dev = 1,
                        .st_ino = f->number,
                        .st_mode = f->mode,
                        .st_nlink = f->linked,
                        .st_uid = f->uid,
                        .st_size = (off_t)f->size};
    return 0;
}

int fstat(int fd, struct stat *st)
{
    const struct sim_open *o;

    if (!SIMULATED)
        return REAL(fstat)(fd, st);
    o = open_of(call_begin(), fd);
    if (o && !o->file) {
        *st = (struct stat){.st_mode = S_IFREG | 0444};
        return 0;
    }
    return o ? stat_of(o->file, st) : -1;
}

int stat(const char *path, struct stat *st)
{
    if (!SIMULATED)
        return REAL(stat)(path, st);
    return stat_of(file_at(dir_of(call_begin(), AT_FDCWD, path), path), st);
}

int lstat(const char *path, struct stat *st)
{
    return SIMULATED ? stat(path, st) : REAL(lstat)(path, st);
}

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
    const struct sim_file *from;

    if (!SIMULATED)
        return REAL(fstatat)(dir, path, st, flags);
    from = dir_of(call_begin(), dir, path);
    return from ? stat_of(file_at((struct sim_file *)(uintptr_t)from, path), st) : -1;
}

int faccessat(int dir, const char *path, int mode, int flags)
{
    struct stat st;

    return SIMULATED ? fstatat(dir, path, &st, 0) : REAL(faccessat)(dir, path, mode, flags);
}

/* Programs are there. */
int access(const char *path, int mode)
{
    struct stat st;

    return SIMULATED ? stat(path, &st) : REAL(access)(path, mode);
}

ssize_t readlink(const char *path, char *to, size_t n)
{
    if (!SIMULATED)
        return REAL(readlink)(path, to, n);
    return snprintf(to, n, "/opt/trib/%s", call_begin()->program->name);
}

ssize_t readlinkat(int dir, const char *path, char *to, size_t n)
{
    return SIMULATED ? fail_with(EINVAL) : REAL(readlinkat)(dir, path, to, n);
}

char *realpath(const char *path, char *to)
{
    struct stat st;

    if (!SIMULATED)
        /* cppcheck-suppress CastIntegerToAddressAtReturn */
        return REAL(realpath)(path, to);
    if (stat(path, &st))
        return NULL;
    return to ? strcpy(to, path) : strdup(path);
}

char *getcwd(char *to, size_t n)
{
    if (!SIMULATED)
        return REAL(getcwd)(to, n);
    snprintf(to, n, "/home/u");
    return to;
}

/* ---- names come and go ---- */

int mkdirat(int dir, const char *path, mode_t mode)
{
    struct sim_file *from;
    struct task *t;

    if (!SIMULATED)
        return REAL(mkdirat)(dir, path, mode);
    t = call_begin();
    from = dir_of(t, dir, path);
    return from && file_make(t, from, path, S_IFDIR | mode) ? 0 : -1;
}

int unlinkat(int dir, const char *path, int flags)
{
    struct sim_file *from, *f;
    struct task *t;

    if (!SIMULATED)
        return REAL(unlinkat)(dir, path, flags);
    t = call_begin();
    from = dir_of(t, dir, path);
    f = from ? file_at(from, path) : NULL;
    if (!f)
        return -1;
    if (!S_ISDIR(f->mode) != !(flags & AT_REMOVEDIR))
        return fail_with(S_ISDIR(f->mode) ? EISDIR : ENOTDIR);
    if (f->children)
        return fail_with(ENOTEMPTY);
    if (!may_write(f->parent))
        return fail_with(EACCES);
    oracle_unlinks(t, f);
    file_unlink(f);
    return 0;
}

int renameat2(int dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    struct sim_file *in, *f, *there;
    struct task *t;

    if (!SIMULATED)
        return REAL(renameat2)(dir, from, to_dir, to, flags);
    t = call_begin();
    in = dir_of(t, dir, from);
    f = in ? file_at(in, from) : NULL;
    if (!f || !in->linked)
        return fail_with(ENOENT);
    there = file_at(in, to);
    if (there && flags & RENAME_NOREPLACE)
        return fail_with(EEXIST);
    if (there)
        file_unlink(there);
    snprintf(f->name, sizeof(f->name), "%s", to);
    return 0;
}

int renameat(int dir, const char *from, int to_dir, const char *to)
{
    return SIMULATED ? renameat2(dir, from, to_dir, to, 0) : REAL(renameat)(dir, from, to_dir, to);
}

int fchmod(int fd, mode_t mode)
{
    struct sim_open *o;

    if (!SIMULATED)
        return REAL(fchmod)(fd, mode);
    o = open_of(call_begin(), fd);
    if (o)
        o->file->mode = (o->file->mode & S_IFMT) | mode;
    return o ? 0 : -1;
}

/* ---- directories ---- */

#define LISTED 96u

struct sim_dir {
    int fd;
    unsigned n, at;
    bool read;
    char name[LISTED][FILE_NAME];
    struct dirent e;
};

DIR *fdopendir(int fd)
{
    struct sim_dir *d;

    if (!SIMULATED)
        /* cppcheck-suppress CastIntegerToAddressAtReturn */
        return REAL(fdopendir)(fd);
    d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->fd = fd;
    return (DIR *)d;
}

DIR *opendir(const char *path)
{
    int fd;
    DIR *d;

    if (!SIMULATED)
        /* cppcheck-suppress CastIntegerToAddressAtReturn */
        return REAL(opendir)(path);
    if (strcmp(path, "/proc") != 0) {
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        d = fd < 0 ? NULL : fdopendir(fd);
        if (!d && fd >= 0)
            close(fd);
        return d;
    }
    call_begin();
    return fdopendir(-1);
}

static void dir_list(struct sim_dir *d)
{
    const struct sim_open *o = d->fd < 0 ? NULL : open_of(sim->current, d->fd);

    d->read = true;
    if (!o) {
        for (unsigned i = 0; i < sim->n_tasks && d->n < LISTED; i++)
            if (sim->task[i].state)
                snprintf(d->name[d->n++], FILE_NAME, "%d", sim->task[i].pid);
        return;
    }
    for (const struct sim_file *f = o->file->children; f; f = f->next) {
        HOLDS(d->n < LISTED, "a directory of more than %u", LISTED);
        if (d->n < LISTED)
            memcpy(d->name[d->n++], f->name, FILE_NAME);
    }
}

struct dirent *readdir(DIR *dir)
{
    struct sim_dir *d = (struct sim_dir *)dir;

    if (!SIMULATED)
        /* cppcheck-suppress CastIntegerToAddressAtReturn */
        return REAL(readdir)(dir);
    if (!d->read) {
        call_begin();
        dir_list(d);
    }
    if (d->at == d->n)
        return NULL;
    snprintf(d->e.d_name, sizeof(d->e.d_name), "%s", d->name[d->at++]);
    return &d->e;
}

int closedir(DIR *dir)
{
    struct sim_dir *d = (struct sim_dir *)dir;

    if (!SIMULATED)
        return REAL(closedir)(dir);
    if (d->fd >= 0)
        close(d->fd);
    free(d);
    return 0;
}

/* ---- streams ---- */

static ssize_t stream_read(void *cookie, char *to, size_t n)
{
    return SIMULATED ? read((int)(intptr_t)cookie, to, n) : 0;
}

static int stream_close(void *cookie)
{
    return SIMULATED ? close((int)(intptr_t)cookie) : 0;
}

FILE *fdopen(int fd, const char *mode)
{
    static const cookie_io_functions_t calls = {.read = stream_read, .close = stream_close};
    struct task *t;
    unsigned i = 0;

    if (!SIMULATED)
        /* cppcheck-suppress CastIntegerToAddressAtReturn */
        return REAL(fdopen)(fd, mode);
    t = call_begin();
    if (CALL_FAILS(ENOMEM))
        return NULL;
    while (i < FILES_OPEN - 1 && t->files[i])
        i++;
    HOLDS(!t->files[i], "more than %d streams", FILES_OPEN);
    sim->inside = true;
    t->files[i] = fopencookie((void *)(intptr_t)fd, mode, calls);
    setvbuf(t->files[i], NULL, _IONBF, 0);
    sim->inside = false;
    return t->files[i];
}

FILE *fopen(const char *path, const char *mode)
{
    int fd;
    FILE *f;

    if (!SIMULATED)
        /* cppcheck-suppress CastIntegerToAddressAtReturn */
        return REAL(fopen)(path, mode);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    f = fd < 0 ? NULL : fdopen(fd, mode);
    if (!f && fd >= 0)
        close(fd);
    return f;
}

int fclose(FILE *f)
{
    if (SIMULATED)
        for (unsigned i = 0; i < FILES_OPEN; i++)
            if (sim->current->files[i] == f)
                sim->current->files[i] = NULL;
    return REAL(fclose)(f);
}

/* Nothing is kept back: both streams of a task are without a buffer. */
int fflush(FILE *f)
{
    return SIMULATED ? 0 : REAL(fflush)(f);
}

int setvbuf(FILE *f, char *buf, int mode, size_t size)
{
    return SIMULATED ? 0 : REAL(setvbuf)(f, buf, mode, size);
}

static ssize_t out_write(void *cookie, const char *from, size_t n)
{
    if (SIMULATED)
        write((int)(intptr_t)cookie, from, n);
    return (ssize_t)n; /* an error would be one of all tasks */
}

static FILE *out_of(int fd)
{
    static const cookie_io_functions_t calls = {.write = out_write};
    FILE *f = fopencookie((void *)(intptr_t)fd, "w", calls);

    assert_non_null(f);
    setvbuf(f, NULL, _IONBF, 0);
    return f;
}

#endif
