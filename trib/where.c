/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/where.h"

#include "host/keep/keep.h"
#include "machine/rundir_default.h"
#include "system/own_path.h"
#include "trib/run/die.h"
#include "trib/run/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_BASE "/nonexistent"

static const char *run, *base, *user;

void where_begin(void)
{
    char at[PATH_MAX];

    run = text_env("TRIB_RUN");
    if (run) {
        run = where_absolute(run);
        setenv("TRIB_RUN", run, 1);
    }
    base = rundir_default(at, sizeof(at), NULL, NULL) ? NO_BASE : text_of("%s", at);
}

const char *where_run(void)
{
    return run;
}

const char *where_base(void)
{
    return base;
}

bool where_is_in_base(const char *dir)
{
    return text_begins(dir, where_base()) && dir[strlen(where_base())] == '/';
}

const char *where_user(void)
{
    return user;
}

/* Leaves out this user's run directories if they may not be read. */
static void base_leave_out(void)
{
    if (!owner_may_look(base))
        base = NO_BASE;
}

void where_check(const char *command)
{
    int rc;

    if (!run) {
        if (owner_check(base))
            exit(1);
        return;
    }
    rc = owner_check(run);
    if (rc == 4)
        user = where_owner(run);
    else if (rc)
        exit(1);
    if (user && strcmp(command, "status") != 0 && strcmp(command, "down") != 0)
        die("the fabric of run directory %s is user %s's; root can use trib status and trib down "
            "with it",
            run, user);
    base_leave_out();
}

void where_check_quietly(void)
{
    base_leave_out();
    if (run && !owner_may_look(run))
        exit(1);
}

bool where_is_dir(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool where_is_file(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISREG(st.st_mode);
}

bool where_is_own(const char *path)
{
    struct stat st;

    return !stat(path, &st) && st.st_uid == geteuid();
}

bool where_is_there(const char *path)
{
    struct stat st;

    return !stat(path, &st);
}

const char *where_owner(const char *path)
{
    struct stat st;

    return stat(path, &st) ? "UNKNOWN" : text_of("%s", owner_name(st.st_uid));
}

/* Directories in `parent`, sorted, without hidden ones. */
static struct words dir_list(const char *parent)
{
    struct words found = {0};
    struct dirent *e;
    DIR *d = opendir(parent);

    while (d && (e = readdir(d)))
        if (*e->d_name != '.' && where_is_dir(text_of("%s/%s", parent, e->d_name)))
            words_append(&found, text_of("%s/%s", parent, e->d_name));
    if (d)
        closedir(d);
    words_sort(&found);
    return found;
}

struct words where_fabrics(void)
{
    return dir_list(base);
}

char *where_service(const char *name)
{
    return text_of(OWN_SERVICES "/%s/%s", name, name);
}

struct words where_services(void)
{
    struct words all = dir_list(OWN_SERVICES), found = {0};

    for (unsigned i = 0; i < all.n; i++) {
        const char *dir = where_service(text_last(all.at[i]));

        if (!faccessat(AT_FDCWD, text_of("%s/proc", dir), R_OK, AT_EACCESS) &&
            !faccessat(AT_FDCWD, text_of("%s/fabric.conf", dir), R_OK, AT_EACCESS))
            words_append(&found, dir);
    }
    return found;
}

char *where_absolute(const char *path)
{
    char cwd[PATH_MAX], *all, *to;
    const char *at;

    if (*path == '/' || !getcwd(cwd, sizeof(cwd)))
        cwd[0] = 0;
    at = text_of("%s/%s", cwd, path);
    all = to = text_room(strlen(at) + 2, 1);
    while (*at) {
        size_t n = strcspn(at, "/");

        if (n == 2 && !strncmp(at, "..", 2)) {
            while (to > all && *--to != '/')
                ;
        } else if (n && !(n == 1 && *at == '.')) {
            *to++ = '/';
            memcpy(to, at, n);
            to += n;
        }
        at += n + (at[n] == '/');
    }
    *to = 0;
    if (to == all)
        strcpy(all, "/");
    return all;
}
