/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rejected: realpath(3) and stat(2) of each component. Somebody may exchange a component before it is used,
 * and realpath(3) reads links with readlink(2), to which fs.protected_symlinks does not apply.
 */
#include "system/own_path.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS  40 /* most links followed: the kernel's limit */
#define OTHERS (S_IWGRP | S_IWOTH)

struct own_walk {
    int fd; /* O_PATH of the directory reached */
    bool strict, make;
    bool service; /* fd is below OWN_SERVICES, in the directory of service_uid */
    uid_t service_uid;
    bool code; /* the file will run: the owner of this program is trusted, too */
    uid_t program_uid;
    unsigned links;
    char rest[2 * PATH_MAX]; /* components not walked yet */
    char at[PATH_MAX];       /* where fd is, for messages */
    char *why;
    size_t size;
};

bool own_trusts(uid_t uid)
{
    struct stat root;

    return uid == 0 || uid == geteuid() || (!stat("/", &root) && uid == root.st_uid);
}

static bool walk_trusts(const struct own_walk *w, uid_t uid)
{
    return own_trusts(uid) || (w->code && uid == w->program_uid);
}

/* Whether the group is the user's own, as Debian makes them: same name, no other member. */
static bool is_private_group(uid_t uid, gid_t gid)
{
    char user[2048], members[2048];
    struct passwd p, *pw = NULL;
    struct group g, *gr = NULL;

    if (getpwuid_r(uid, &p, user, sizeof(user), &pw) || !pw || pw->pw_gid != gid ||
        getgrgid_r(gid, &g, members, sizeof(members), &gr) || !gr ||
        strcmp(gr->gr_name, pw->pw_name))
        return false;
    for (char **m = gr->gr_mem; *m; m++)
        if (strcmp(*m, pw->pw_name) != 0)
            return false;
    return true;
}

/* Whether others than the owner can write. */
static bool others_write(const struct own_walk *w, const struct stat *st)
{
    if (w->code && !(st->st_mode & S_IWOTH) && is_private_group(st->st_uid, st->st_gid))
        return false;
    return st->st_mode & OTHERS;
}

static const char *kind(mode_t mode)
{
    return S_ISDIR(mode)    ? "a directory"
           : S_ISLNK(mode)  ? "a link"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISREG(mode)  ? "a file"
                            : "a device";
}

static int walk_refuse(const struct own_walk *w, const char *name, const struct stat *st,
                       const char *want)
{
    if (w->why)
        snprintf(w->why, w->size, "%.300s%s%.64s: found %s of user %u with mode %04o, expected %s",
                 w->at, *name && strcmp(w->at, "/") != 0 ? "/" : "", name, kind(st->st_mode),
                 (unsigned)st->st_uid, (unsigned)st->st_mode & 07777, want);
    return -EPERM;
}

static int walk_failed(const struct own_walk *w, const char *name, int err)
{
    if (w->why && err != ENOENT)
        snprintf(w->why, w->size, "%.300s/%.64s: %s", strcmp(w->at, "/") ? w->at : "", name,
                 strerror(err));
    return -err;
}

static void moved(struct own_walk *w, int fd, const char *name)
{
    size_t len = strlen(w->at);

    if (w->fd >= 0)
        close(w->fd);
    w->fd = fd;
    w->service &= *name != '/' && strcmp(name, "..") != 0;
    if (*name == '/')
        snprintf(w->at, sizeof(w->at), "/");
    else
        snprintf(w->at + len, sizeof(w->at) - len, "%s%s", len > 1 ? "/" : "", name);
}

/* Checks a directory on the way. */
static int check_dir(struct own_walk *w, const char *name, const struct stat *st)
{
    if (w->strict && !w->code &&
        !strcmp(w->at, OWN_SERVICES)) { /* checked: only root can make entries there */
        w->service = true;
        w->service_uid = st->st_uid;
    }
    if (!w->strict ||
        ((walk_trusts(w, st->st_uid) || (w->service && st->st_uid == w->service_uid)) &&
         (!others_write(w, st) || st->st_mode & S_ISVTX)))
        return 0;
    return walk_refuse(
        w, name, st, "a directory of this user or of root in which nobody else can exchange files");
}

static int go(struct own_walk *w, const char *name)
{
    int fd = openat(w->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc;
    struct stat st;

    if (fd < 0)
        return walk_failed(w, name, errno);
    rc = fstat(fd, &st) ? walk_failed(w, name, errno) : check_dir(w, name, &st);
    if (rc)
        close(fd);
    else
        moved(w, fd, name);
    return rc;
}

static int walk_start(struct own_walk *w, const char *path)
{
    w->fd = -1;
    if (*path != '/' && w->strict) {
        char cwd[PATH_MAX];

        if (!getcwd(cwd, sizeof(cwd)))
            return -errno;
        if (snprintf(w->rest, sizeof(w->rest), "%s/%s", cwd, path) >= PATH_MAX)
            return -ENAMETOOLONG;
    } else if (snprintf(w->rest, sizeof(w->rest), "%s", path) >= PATH_MAX) {
        return -ENAMETOOLONG;
    }
    w->fd = open(*w->rest == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(w->at, sizeof(w->at), "%s", *w->rest == '/' ? "/" : ".");
    return w->fd < 0 ? -errno : 0;
}

/* Removes the next component from w->rest. false: none is left. */
static bool next(struct own_walk *w, char *name, size_t size)
{
    char *s = w->rest + strspn(w->rest, "/"), *end = s + strcspn(s, "/");

    if (s == end || snprintf(name, size, "%.*s", (int)(end - s), s) >= (int)size)
        return false;
    memmove(w->rest, end, strlen(end) + 1);
    return true;
}

static bool may_follow(const struct own_walk *w, const struct stat *link)
{
    struct stat dir;

    if (walk_trusts(w, link->st_uid))
        return true;
    if (w->strict || fstat(w->fd, &dir))
        return false;
    return (dir.st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH) || dir.st_uid == link->st_uid;
}

static int follow(struct own_walk *w, const char *name, const struct stat *st)
{
    char to[PATH_MAX], rest[sizeof(w->rest)];
    ssize_t n;
    int fd;

    if (!may_follow(w, st))
        return walk_refuse(w, name, st, "no link of another user");
    n = readlinkat(w->fd, name, to, sizeof(to) - 1);
    if (n <= 0 || ++w->links > LINKS)
        return walk_failed(w, name, n < 0 ? errno : ELOOP);
    to[n] = 0;
    snprintf(rest, sizeof(rest), "%s", w->rest);
    if (snprintf(w->rest, sizeof(w->rest), "%s%s", to, rest) >= (int)sizeof(w->rest))
        return walk_failed(w, name, ENAMETOOLONG);
    if (*to != '/')
        return 0;
    fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return walk_failed(w, name, errno);
    moved(w, fd, "/");
    return 0;
}

/* Takes one component: follows a link, enters a directory, or makes a missing one. */
static int walk_step(struct own_walk *w, const char *name)
{
    struct stat st;

    if (!strcmp(name, "."))
        return 0;
    if (fstatat(w->fd, name, &st, AT_SYMLINK_NOFOLLOW)) {
        if (errno != ENOENT || !w->make)
            return walk_failed(w, name, errno);
        if (mkdirat(w->fd, name, 0700) && errno != EEXIST)
            return walk_failed(w, name, errno);
    } else if (S_ISLNK(st.st_mode)) {
        return follow(w, name, &st);
    }
    return go(w, name);
}

int own_dir_open(const char *path, bool make, char *why, size_t size)
{
    struct own_walk w = {.strict = true, .make = make, .why = why, .size = size};
    char name[NAME_MAX + 1];
    struct stat st;
    int rc, fd;

    if (size)
        *why = 0;
    rc = walk_start(&w, path);
    while (!rc && next(&w, name, sizeof(name)))
        rc = walk_step(&w, name);
    if (!rc && fstat(w.fd, &st))
        rc = -errno;
    if (!rc && ((st.st_uid != geteuid() && !(w.service && st.st_uid == w.service_uid)) ||
                (st.st_mode & OTHERS)))
        rc = walk_refuse(&w, "", &st, "a directory of this user to which nobody else can write");
    fd = rc ? rc : openat(w.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!rc && fd < 0)
        fd = walk_failed(&w, ".", errno);
    if (w.fd >= 0)
        close(w.fd);
    return fd;
}

bool own_dir_is_of(const char *path, uid_t uid)
{
    char why[OWN_WHY];
    int fd = own_dir_open(path, false, why, sizeof(why));
    struct stat st;
    bool is = fd >= 0 && !fstat(fd, &st) && st.st_uid == uid;

    if (fd >= 0)
        close(fd);
    return is;
}

bool own_dir_is_service(const char *path)
{
    return !strncmp(path, OWN_SERVICES "/", sizeof(OWN_SERVICES));
}

/* ---- below a directory that has passed ---- */

/* Whether the owner is this user or the owner of the directory (a service). */
static bool is_its(int dir, const struct stat *st)
{
    struct stat own;

    return st->st_uid == geteuid() || (!fstat(dir, &own) && st->st_uid == own.st_uid);
}

/* Opens a directory. name has one component. */
static int subdir_open(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return errno == ENOTDIR || errno == ELOOP ? -EPERM : -errno;
    /* In a sticky directory (a service lets its group write there) nobody can exchange others' files. */
    if (!fstat(fd, &st) && is_its(dir, &st) &&
        (!(st.st_mode & OTHERS) || (st.st_mode & S_ISVTX && !(st.st_mode & S_IWOTH))))
        return fd;
    close(fd);
    return -EPERM;
}

/* Opens the directory of the last component; *last points into name. Close the result unless it is dir. */
static int parent_of(int dir, const char *name, const char **last)
{
    const char *slash;
    char part[NAME_MAX + 1];
    int at = dir;

    while (at >= 0 && (slash = strchr(name, '/'))) {
        int sub =
            snprintf(part, sizeof(part), "%.*s", (int)(slash - name), name) >= (int)sizeof(part)
                ? -ENAMETOOLONG
                : subdir_open(at, part);

        if (at != dir)
            close(at);
        at = sub;
        name = slash + 1;
    }
    *last = name;
    return at;
}

int own_subdir_open(int dir, const char *name)
{
    int at = parent_of(dir, name, &name), fd = at < 0 ? at : subdir_open(at, name);

    if (at >= 0 && at != dir)
        close(at);
    return fd;
}

int own_subdir_make(int dir, const char *name, mode_t mode)
{
    int at = parent_of(dir, name, &name), fd;

    if (at < 0)
        return at;
    fd = mkdirat(at, name, mode) && errno != EEXIST ? -errno : subdir_open(at, name);
    if (at != dir)
        close(at);
    return fd;
}

static bool is_plain_file(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_nlink == 1 && !(st->st_mode & OTHERS);
}

int own_file_open(int dir, const char *name, int flags)
{
    const int fixed = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    struct stat st;
    int at = parent_of(dir, name, &name), fd, rc;

    if (at < 0)
        return at;
    fd = openat(at, name, (flags & ~O_TRUNC) | fixed, 0600);
    rc = fd < 0 ? -errno : 0;
    if (at != dir)
        close(at);
    if (rc) /* ELOOP: a link; ENXIO: a socket, or a FIFO without a reader */
        return rc == -ELOOP || rc == -ENXIO ? -EPERM : rc;
    if (fstat(fd, &st))
        rc = -errno;
    else if (!is_its(dir, &st) || !is_plain_file(&st))
        rc = -EPERM;
    else if ((flags & O_TRUNC) && ftruncate(fd, 0))
        rc = -errno;
    if (!rc)
        return fd;
    close(fd);
    return rc;
}

static void say_why(int dir, const char *name, const char *want, char *why, size_t size)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
        snprintf(why, size, "%s: %s", name, strerror(errno));
    else
        snprintf(why, size,
                 "%s: found %s of user %u with mode %04o and %u names, expected %s of user %u to "
                 "which nobody else can write",
                 name, kind(st.st_mode), (unsigned)st.st_uid, (unsigned)st.st_mode & 07777,
                 (unsigned)st.st_nlink, want, (unsigned)geteuid());
}

void own_subdir_why(int dir, const char *name, char *why, size_t size)
{
    say_why(dir, name, "a directory, and no link on the way,", why, size);
}

void own_file_why(int dir, const char *name, char *why, size_t size)
{
    say_why(dir, name, "a plain file with one name", why, size);
}

/* ---- code ---- */

static int check_code(const struct own_walk *w, const char *name, const struct stat *st)
{
    if (walk_trusts(w, st->st_uid) && !others_write(w, st))
        return 0;
    return walk_refuse(
        w, name, st,
        "a file of this user or of root to which nobody else can write: it is to run here");
}

int own_code_check(const char *path, char *why, size_t size)
{
    struct own_walk w = {.strict = true, .why = why, .size = size, .code = true};
    char name[NAME_MAX + 1];
    struct stat st;
    int rc = walk_start(&w, path);

    w.program_uid = stat("/proc/self/exe", &st) ? geteuid() : st.st_uid;
    if (size)
        *why = 0;
    while (!rc && next(&w, name, sizeof(name))) {
        if (w.rest[strspn(w.rest, "/")]) /* not the last one */
            rc = walk_step(&w, name);
        else if (fstatat(w.fd, name, &st, AT_SYMLINK_NOFOLLOW))
            rc = walk_failed(&w, name, errno);
        else
            rc = S_ISLNK(st.st_mode) ? follow(&w, name, &st) : check_code(&w, name, &st);
    }
    if (w.fd >= 0)
        close(w.fd);
    return rc;
}

/* ---- output ---- */

int own_output_dir(const char *path, char *last, size_t room)
{
    struct own_walk w = {.strict = false};
    char name[NAME_MAX + 1];
    struct stat st;
    int rc = walk_start(&w, path);

    *last = 0;
    while (!rc && next(&w, name, sizeof(name))) {
        if (w.rest[strspn(w.rest, "/")]) { /* not the last one */
            rc = walk_step(&w, name);
            continue;
        }
        if (!fstatat(w.fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode)) {
            rc = follow(&w, name, &st);
            continue;
        }
        if (snprintf(last, room, "%s", name) >= (int)room)
            rc = -ENAMETOOLONG;
        break;
    }
    if (!rc && (!*last || !strcmp(last, ".") || !strcmp(last, "..")))
        rc = -EISDIR;
    if (!rc)
        return w.fd;
    if (w.fd >= 0)
        close(w.fd);
    return rc;
}

bool own_output_is_foreign(int dir, const char *name)
{
    struct stat st, at;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || own_trusts(st.st_uid))
        return false;
    if (!S_ISREG(st.st_mode))
        return true;
    return !fstat(dir, &at) && (at.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH) &&
           st.st_uid != at.st_uid;
}

bool own_output_is_special(const char *path)
{
    return !strstr(path, "..") &&
           (!strncmp(path, "/proc/", 6) || !fnmatch("/dev/?(fd/|pts/)+([!/])", path, FNM_EXTMATCH));
}

int own_output_open(const char *path, int flags)
{
    char last[NAME_MAX + 1];
    int dir, fd;

    flags |= O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC;
    if (own_output_is_special(path)) {
        fd = open(path, flags | O_TRUNC, 0666);
        return fd < 0 ? -errno : fd;
    }
    dir = own_output_dir(path, last, sizeof(last));
    if (dir < 0)
        return dir;
    if (own_output_is_foreign(dir, last)) {
        close(dir);
        return -EPERM;
    }
    fd = openat(dir, last, flags | O_TRUNC | O_NOFOLLOW, 0666);
    if (fd < 0)
        fd = errno == ELOOP ? -EPERM : -errno; /* somebody has just put a link there */
    close(dir);
    return fd;
}
