/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/keep/claim.h"

#include "base/assert.h"
#include "system/own_clear.h"
#include "system/own_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES    50 /* attempts to lock a directory that another command is removing */
#define RETRY_US 20000
#define UP_WORD  "up"

const char *fabric_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

int say(const char *fmt, ...)
{
    va_list ap;

    fputs("trib: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return 1;
}

/* Describes a process. The text is valid until the next call. */
static const char *who(pid_t pid)
{
    static char text[64];

    if (pid == PROCESS_AWAY)
        return "a process of another PID namespace";
    snprintf(text, sizeof(text), "process %d", (int)pid);
    return text;
}

/* Reports the holder of the directory and returns 1. -EAGAIN, without a message: its processes have
 * ended, and its keeper is about to end. */
static int say_taken(const struct claim *c, pid_t holder)
{
    char state[16] = "";
    struct procs p;
    bool none;

    if (pread(c->lock, state, sizeof(state) - 1, 0) < 0)
        state[0] = 0;
    if (!strncmp(state, UP_WORD, sizeof(UP_WORD) - 1)) {
        if (procs_find(&p, c->path, false))
            return say(KEEP_NOT_KNOWN, c->path);
        none = !p.n;
        procs_free(&p);
        if (none)
            return -EAGAIN;
        return say(
            "the fabric %s is up already (%s keeps it, run directory %s); trib down %sstops it",
            fabric_name(c->path), who(holder), c->path, holder == PROCESS_AWAY ? "there " : "");
    }
    return say("the fabric %s is being started by another command (%s, run directory %s)",
               fabric_name(c->path), who(holder), c->path);
}

/* 0: this process holds the lock; -EAGAIN: the directory was removed meanwhile; 1: refused, with a
 * message. */
static int lock_dir(struct claim *c)
{
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[KEEP_PATH], why[OWN_WHY];
    int rc = 0;

    T_ASSERT(c->dir < 0 && c->lock < 0, "a directory is locked twice");
    c->dir = own_dir_open(c->path, true, why, sizeof(why));
    if (c->dir == -ENOENT)
        return -EAGAIN;
    if (c->dir == -EPERM)
        return say("cannot use the run directory %s: %s; XDG_RUNTIME_DIR or TRIB_RUN names another "
                   "place",
                   c->path, why);
    if (c->dir < 0)
        return say(
            "cannot make the run directory %s: %s; XDG_RUNTIME_DIR or TRIB_RUN names another "
            "place",
            c->path, *why ? why : strerror(-c->dir));
    if (dir_kind(c->dir) == DIR_FOREIGN)
        return say("found files in %s that are no fabric's, expected TRIB_RUN to name an empty or "
                   "new directory",
                   c->path);
    c->lock = own_file_open(c->dir, KEEP_FILE, O_CREAT | O_RDWR);
    if (c->lock == -EPERM) {
        own_file_why(c->dir, KEEP_FILE, why, sizeof(why));
        return say("cannot use %s/%s", c->path, why);
    }
    if (c->lock < 0)
        return c->lock == -ENOENT ? -EAGAIN
                                  : say("cannot make %s/" KEEP_FILE
                                        ": %s; XDG_RUNTIME_DIR or TRIB_RUN names another place",
                                        c->path, strerror(-c->lock));
    if (fcntl(c->lock, F_SETLK, &lk)) {
        rc = errno;
        if (rc != EACCES && rc != EAGAIN)
            return say("cannot lock %s/" KEEP_FILE ": %s", c->path, strerror(rc));
        rc = process_lock_holder(c->lock);
        return rc > 0 ? say_taken(c, rc) : -EAGAIN;
    }
    snprintf(path, sizeof(path), "%s/" KEEP_FILE, c->path);
    return own_dir_is(path, c->lock) ? 0 : -EAGAIN;
}

void claim_release(struct claim *c)
{
    if (c->lock >= 0)
        close(c->lock);
    if (c->dir >= 0)
        close(c->dir);
    c->lock = c->dir = -1;
}

int claim_take(struct claim *c)
{
    struct procs p;
    int rc = -EAGAIN;

    for (unsigned i = 0; i < TRIES && rc == -EAGAIN; i++) {
        if (i)
            usleep(RETRY_US);
        claim_release(c);
        rc = lock_dir(c);
    }
    if (rc == -EAGAIN)
        return say("the run directory %s is being removed by another command", c->path);
    if (rc)
        return rc;
    T_ASSERT(c->dir >= 0 && c->lock >= 0, "a claim has no directory or no lock");
    /* A fabric may run on without its keeper. */
    if (procs_find(&p, c->path, false))
        return say(KEEP_NOT_KNOWN, c->path);
    rc = p.n ? say("the fabric %s is up already (%s, run directory %s); trib down %sstops it",
                   fabric_name(c->path), who(p.at[0].pid), c->path,
                   p.at[0].pid == PROCESS_AWAY ? "there " : "")
             : 0;
    procs_free(&p);
    return rc;
}

bool claim_is_lost(const struct claim *c)
{
    struct stat mine, now;
    char path[KEEP_PATH];

    T_ASSERT(c->lock >= 0, "a claim that is not held is looked at");
    return snprintf(path, sizeof(path), "%s/" KEEP_FILE, c->path) < (int)sizeof(path) &&
           !fstat(c->lock, &mine) && !lstat(path, &now) &&
           (mine.st_dev != now.st_dev || mine.st_ino != now.st_ino);
}

void claim_mark_up(const struct claim *c)
{
    T_ASSERT(c->lock >= 0, "a fabric is up without its lock");
    if (pwrite(c->lock, UP_WORD "\n", sizeof(UP_WORD), 0) < 0)
        say("cannot write %s/" KEEP_FILE ": %s", c->path, strerror(errno));
}

void claim_abandon(struct claim *c)
{
    if (c->dir >= 0 && dir_kind(c->dir) == DIR_EMPTY && own_dir_is(c->path, c->dir))
        dir_drop(c->path);
    else if (c->dir < 0) /* the one above it may have been made */
        dir_drop_base(c->path);
    claim_release(c);
}

/* Opens and locks a directory that a keeper has left behind. 0; 1: there is none, or another
 * command has claimed it; -errno. */
static int take_over(struct claim *c)
{
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[KEEP_PATH], why[OWN_WHY];

    c->dir = own_dir_open(c->path, false, why, sizeof(why));
    if (c->dir < 0)
        return c->dir == -ENOENT ? 1 : c->dir;
    snprintf(path, sizeof(path), "%s/" KEEP_FILE, c->path);
    c->lock = own_file_open(c->dir, KEEP_FILE, O_CREAT | O_RDWR);
    if (c->lock == -EPERM) /* not a plain file of this user: dir_remove() removes it */
        return 0;
    if (c->lock < 0) /* the disk is full (0), or the directory was removed (1) */
        return c->lock == -ENOENT;
    return fcntl(c->lock, F_SETLK, &lk) || !own_dir_is(path, c->lock);
}

int claim_remove(const char *path)
{
    struct claim c = {path, -1, -1};
    int rc = take_over(&c);

    rc = rc ? rc : dir_remove(path, c.dir);
    claim_release(&c);
    return rc > 0 ? 0 : rc;
}

int claim_undo(const char *path, bool claimed)
{
    struct claim c = {path, -1, -1};
    int rc = take_over(&c);

    if (!rc && claimed)
        rc = procs_stop(path, false);
    if (!rc && (claimed || dir_kind(c.dir) == DIR_EMPTY))
        rc = dir_remove(path, c.dir);
    claim_release(&c);
    return rc > 0 ? 0 : rc;
}
