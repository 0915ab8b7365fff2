/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/find.h"

#include "trib/run/die.h"
#include "trib/run/text.h"
#include "trib/where.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "libtribverbs.so"

static struct words
    heres; /* directories of the script that called this program, if one did, and of the program */
static struct words tops;
static const char *myself;

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? text_part(path, (size_t)(slash - path)) : text_of(".");
}

static void here_append(const char *path)
{
    char *here = folder_of(path);

    if (words_have(&heres, here))
        return;
    words_append(&heres, here);
    words_append(&tops, text_of("%s/..", here));
    words_append(&tops, text_of("%s/../share/tributary", here));
}

void find_begin(const char *argv0)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

    path[n > 0 ? n : 0] = 0;
    myself = text_of("%s", path);
    if (strchr(argv0, '/') && realpath(argv0, path))
        here_append(path);
    here_append(myself);
}

const char *find_myself(void)
{
    return myself;
}

const struct words *find_tops(void)
{
    return &tops;
}

/* The program where `dir` has one; else NULL. */
static const char *program_in(const char *dir, const char *name)
{
    char *path = where_absolute(text_of("%s/%s", dir, name));

    return where_is_file(path) && !access(path, X_OK) ? path : NULL;
}

const char *find_program_quietly(const char *name)
{
    const char *build = text_env("TRIB_BUILD"), *found = build ? program_in(build, name) : NULL;

    for (unsigned i = 0; !found && i < heres.n; i++) {
        found = program_in(heres.at[i], name);
        found = found ? found : program_in(text_of("%s/../libexec/tributary", heres.at[i]), name);
        found = found ? found : program_in(text_of("%s/../build", heres.at[i]), name);
        found = found ? found : program_in(text_of("%s/../scripts", heres.at[i]), name);
    }
    return found;
}

const char *find_program(const char *name)
{
    const char *found = find_program_quietly(name);

    if (!found)
        die("found no program %s beside %s or in its build folder; run make first", name,
            heres.at[0]);
    return found;
}

const char *find_library(void)
{
    const char *lib = text_env("TRIB_LIB"), *build = text_env("TRIB_BUILD");
    struct words dirs = {0};

    if (lib)
        words_append(&dirs, lib);
    if (build)
        words_append(&dirs, build);
    for (unsigned i = 0; i < heres.n; i++)
        words_append_all(&dirs, heres.at[i], text_of("%s/../build", heres.at[i]),
                         text_of("%s/../lib/tributary", heres.at[i]));
    for (unsigned i = 0; i < dirs.n; i++) {
        char *path = where_absolute(text_of("%s/" LIBRARY, dirs.at[i]));

        if (where_is_file(path))
            return path;
        if (where_is_file(dirs.at[i])) /* absolute: programs that have it in LD_PRELOAD may
                                        * change their directory */
            return where_absolute(dirs.at[i]);
    }
    die("found no " LIBRARY "; run make first");
}
