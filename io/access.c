/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A list is the file's attribute system.posix_acl_access in the layout of acl(5) and the kernel's
 * include/uapi/linux/posix_acl_xattr.h: entries sorted by tag, then by number.
 */
#include "io/access.h"

#include "system/own_path.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LIST "system.posix_acl_access"

enum { VERSION = 2 };
enum acl_tag { USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, GROUP = 8, MASK = 16, OTHER = 32 };
enum { R = 4, W = 2, X = 1 };

struct acl_entry {
    uint16_t tag, perm; /* little endian, like all fields */
    uint32_t id;
};
struct acl {
    uint32_t version;
    struct acl_entry at[];
};
_Static_assert(sizeof(struct acl_entry) == 8, "as the kernel reads it");

struct who {
    enum acl_tag tag;
    uint32_t id;
    const struct fab_access *access;
};

struct giving {
    const struct rundir *rd;
    unsigned n;
    struct who *who; /* sorted by tag and number; may contain duplicates */
    struct acl *acl; /* large enough for all of them and the four fixed entries */
};

static int access_failed(const char *what, const char *name, int err)
{
    fprintf(stderr, "tributary: access: %s %s: %s\n", what, name, strerror(err));
    return -err;
}

static int look_up(const struct fab_access *a, struct who *w)
{
    struct passwd *pw = a->group ? NULL : getpwnam(a->name);
    struct group *gr = a->group ? getgrnam(a->name) : NULL;

    if (!pw && !gr) {
        fprintf(stderr, "tributary: access: found %s \"%s\", which this machine does not know\n",
                a->group ? "group" : "user", a->name);
        return -ENOENT;
    }
    *w = (struct who){.tag = a->group ? GROUP : USER,
                      .id = a->group ? (uint32_t)gr->gr_gid : (uint32_t)pw->pw_uid,
                      .access = a};
    return 0;
}

static int access_compare(const void *x, const void *y)
{
    const struct who *a = x, *b = y;

    if (a->tag != b->tag)
        return a->tag < b->tag ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static bool access_has(const struct fab_access *a, int host)
{
    bool yes = a->all || host < 0;

    for (unsigned i = 0; i < a->n_hosts && !yes; i++)
        yes = a->hosts[i] == host;
    return yes;
}

static void acl_put(struct acl *l, unsigned *n, enum acl_tag tag, unsigned perm, uint32_t id)
{
    l->at[(*n)++] =
        (struct acl_entry){htole16((uint16_t)tag), htole16((uint16_t)perm), htole32(id)};
}

/*
 * Sets the list on the file itself. Refuses a symbolic link, and a file that is not ours or has other
 * names: they could lead to a file that must stay closed. 0, -ENOENT, or -errno.
 */
static int set_list(const char *path, const void *list, size_t size)
{
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc;
    char self[32];
    struct stat st;

    if (fd < 0)
        return -errno;
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    if (fstat(fd, &st))
        rc = -errno;
    else if (st.st_uid != geteuid() || S_ISLNK(st.st_mode) ||
             (!S_ISDIR(st.st_mode) && st.st_nlink != 1))
        rc = -EPERM;
    else
        rc = setxattr(self, LIST, list, size, 0) ? -errno : 0;
    close(fd);
    return rc;
}

/* Grants `perm` on a file to the users of a host; host -1: to all users. */
static int giving_give(const struct giving *g, const char *file, int host, unsigned own,
                       unsigned perm)
{
    char path[2 * RUN_PATH];
    const struct who *last = NULL;
    bool groups = false;
    unsigned n = 0;
    int rc;

    if (rundir_path(g->rd, path, sizeof(path), "%s", file))
        return -ENAMETOOLONG;
    g->acl->version = htole32(VERSION);
    acl_put(g->acl, &n, USER_OBJ, own, UINT32_MAX);
    for (unsigned i = 0; i < g->n; i++) {
        const struct who *w = &g->who[i];

        if (!access_has(w->access, host) || (last && !access_compare(last, w)))
            continue;
        if (w->tag == GROUP && !groups) {
            acl_put(g->acl, &n, GROUP_OBJ, 0, UINT32_MAX);
            groups = true;
        }
        acl_put(g->acl, &n, w->tag, perm, w->id);
        last = w;
    }
    if (!last) /* no user has this host */
        return 0;
    if (!groups)
        acl_put(g->acl, &n, GROUP_OBJ, 0, UINT32_MAX);
    acl_put(g->acl, &n, MASK, perm, UINT32_MAX);
    acl_put(g->acl, &n, OTHER, 0, UINT32_MAX);
    rc = set_list(path, g->acl, sizeof(*g->acl) + n * sizeof(g->acl->at[0]));
    return rc && rc != -ENOENT ? access_failed("cannot give", path, -rc) : 0;
}

static int give_host(const struct giving *g, const char *name, int host)
{
    char path[2 * RUN_PATH], file[2 * RUN_PATH];
    struct dirent *e;
    int rc;
    DIR *d;

    snprintf(file, sizeof(file), "port/%s", name);
    if (rundir_path(g->rd, path, sizeof(path), "%s", file))
        return -ENAMETOOLONG;
    d = opendir(path);
    rc = d ? 0 : access_failed("cannot open", path, errno);
    while (d && !rc && (e = readdir(d))) {
        size_t len = strlen(e->d_name);
        bool sock = len > 5 && !strcmp(e->d_name + len - 5, ".sock");

        snprintf(file, sizeof(file), "port/%s/%.64s", name, e->d_name);
        if (sock || !strcmp(e->d_name, "host.token"))
            rc = giving_give(g, file, host, sock ? R | W | X : R | W, sock ? R | W : R);
    }
    if (d)
        closedir(d);
    snprintf(file, sizeof(file), "port/%s", name);
    if (!rc && chmod(path, S_ISVTX | 0700))
        rc = access_failed("cannot change", path, errno);
    return rc ? rc : giving_give(g, file, host, R | W | X, R | W | X);
}

static int give_process(const struct giving *g, const char *name)
{
    static const struct {
        const char *file, *suffix; /* suffix: names the file proc/NAME<suffix> */
        unsigned own, perm;
    } files[] = {
        {"", NULL, R | W | X, R | X},      {"proc", NULL, R | W | X, R | X},
        {"port", NULL, R | W | X, R | X},  {"fabric.conf", NULL, R | W, R},
        {"fabric.path", NULL, R | W, R},   {NULL, ".pid", R | W, R},
        {NULL, ".page", R | W | X, R | W},
    };
    char file[128];
    int rc = 0;

    for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]) && !rc; i++) {
        if (files[i].file)
            snprintf(file, sizeof(file), "%s", files[i].file);
        else
            snprintf(file, sizeof(file), "proc/%.64s%s", name, files[i].suffix);
        rc = giving_give(g, file, -1, files[i].own, files[i].perm);
    }
    return rc;
}

int access_give_slot(const struct rundir *rd, const char *host, unsigned port, unsigned slot)
{
    char from[RUN_PATH], to[RUN_PATH];
    char list[sizeof(struct acl) + (FAB_MAX_ACCESS + 4) * sizeof(struct acl_entry)];
    ssize_t n;
    int rc;

    if (!slot || !own_dir_is_service(rd->path))
        return 0;
    rc = rundir_port_sock(rd, host, port, 0, from, sizeof(from));
    rc = rc ? rc : rundir_port_sock(rd, host, port, slot, to, sizeof(to));
    if (rc)
        return rc;
    n = getxattr(from, LIST, list, sizeof(list));
    if (n < 0)
        return errno == ENODATA || errno == ENOTSUP ? 0 : access_failed("cannot read", from, errno);
    rc = set_list(to, list, (size_t)n);
    return rc ? access_failed("cannot give", to, -rc) : 0;
}

static int give_all(const struct giving *g, const struct fabric *f, const bool *mine,
                    const char *name)
{
    int rc = 0;

    if (!mine) {
        char file[128];

        snprintf(file, sizeof(file), "proc/%.64s.ready", name);
        return giving_give(g, file, -1, R | W, R);
    }
    for (unsigned h = 0; h < f->n_hosts && !rc; h++)
        if (mine[f->hosts[h]] && !f->nodes[f->hosts[h]].outside)
            rc = give_host(g, f->nodes[f->hosts[h]].name, f->hosts[h]);
    return rc ? rc : give_process(g, name); /* opens the directories on the way last */
}

int access_give(const struct rundir *rd, const struct fabric *f, const bool *mine, const char *name)
{
    struct giving g = {.rd = rd, .n = f->n_access};
    int rc = 0;

    if (!g.n || (!mine && !own_dir_is_service(rd->path)))
        return 0;
    if (!own_dir_is_service(rd->path)) {
        fprintf(stderr,
                "tributary: access: found run directory %s, which nobody else can reach; it is for "
                "one below " OWN_SERVICES " (a service)\n",
                rd->path);
        return 0;
    }
    g.who = calloc(g.n, sizeof(*g.who));
    g.acl = calloc(1, sizeof(*g.acl) + (g.n + 4) * sizeof(g.acl->at[0]));
    rc = g.who && g.acl ? 0 : -ENOMEM;
    for (unsigned i = 0; i < g.n && !rc; i++)
        rc = look_up(&f->access[i], &g.who[i]);
    if (!rc)
        qsort(g.who, g.n, sizeof(*g.who), access_compare);
    rc = rc ? rc : give_all(&g, f, mine, name);
    free(g.who);
    free(g.acl);
    return rc;
}
