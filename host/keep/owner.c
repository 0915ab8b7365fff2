/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/own_path.h"
#include "host/keep/claim.h"
#include "host/keep/keep.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAY = 0, MAY_NOT = 1, OTHERS = 3, OTHERS_AND_ROOT = 4 };

const char *owner_name(uid_t uid)
{
    static char name[64];
    struct passwd *pw = getpwuid(uid);

    if (pw)
        snprintf(name, sizeof(name), "%s", pw->pw_name);
    else
        snprintf(name, sizeof(name), "%u", (unsigned)uid);
    return name;
}

/* Whether this user may use the directory, as that of a service which lets it. */
static bool may_use(const char *dir)
{
    char why[OWN_WHY];
    int fd = own_dir_open(dir, false, why, sizeof(why));

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool is_other(const char *dir, bool root_too, bool to_end, uid_t *uid)
{
    return procs_owner(dir, uid) && *uid != geteuid() && (root_too || geteuid()) &&
           (to_end || !may_use(dir));
}

bool owner_is_other(const char *dir, bool root_too, bool to_end)
{
    uid_t uid;

    if (!is_other(dir, root_too, to_end, &uid))
        return false;
    fprintf(stderr, "trib: the fabric of run directory %s is user %s's", dir, owner_name(uid));
    fprintf(stderr, ", and user %s cannot use it\n", owner_name(geteuid()));
    return true;
}

int owner_become(const char *dir)
{
    struct passwd *pw;
    uid_t uid;
    gid_t gid;

    if (geteuid() || !procs_owner(dir, &uid) || !uid)
        return 0;
    pw = getpwuid(uid);
    gid = pw ? pw->pw_gid : (gid_t)uid;
    if (!setgroups(1, &gid) && !setegid(gid) && !seteuid(uid))
        return 0;
    say("cannot take the rights of user %s, whose fabric %s is: %s", owner_name(uid), dir,
        strerror(errno));
    return -EPERM;
}

bool owner_may_look(const char *dir)
{
    char why[OWN_WHY];
    int fd = own_dir_open(dir, false, why, sizeof(why));

    if (fd >= 0)
        close(fd);
    return fd != -EPERM; /* the caller that opens it reports other errors */
}

int owner_check(const char *dir)
{
    char why[OWN_WHY];
    int fd;
    uid_t uid;

    if (owner_may_look(dir))
        return MAY;
    if (procs_owner(dir, &uid) && uid && !geteuid())
        return OTHERS_AND_ROOT;
    if (owner_is_other(dir, true, false))
        return OTHERS;
    fd = own_dir_open(dir, false, why, sizeof(why));
    if (fd >= 0)
        close(fd);
    say("cannot use the run directory %s: %s; XDG_RUNTIME_DIR or TRIB_RUN names another place", dir,
        why);
    return MAY_NOT;
}

int owner_alive(const char *dir, bool quiet)
{
    struct procs p;
    uid_t uid;
    int rc;

    if (quiet ? is_other(dir, true, false, &uid) : owner_is_other(dir, true, false))
        return OTHERS;
    if (procs_find(&p, dir, false))
        return MAY_NOT;
    rc = p.n ? MAY : MAY_NOT;
    procs_free(&p);
    return rc;
}
