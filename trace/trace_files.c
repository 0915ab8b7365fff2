/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/trace_files.h"

#include "trace/app_graph.h"
#include "trace/grow.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* N of "x.N.et", "x.N.json" and these with .gz. */
static uint32_t name_rank(const char *name)
{
    const char *end = strrchr(name, '.'), *dot;
    uint64_t v = 0;

    if (end && !strcmp(end, ".gz"))
        end = memrchr(name, '.', (size_t)(end - name));
    if (!end || (strncmp(end, ".et", 3) != 0 && strncmp(end, ".json", 5) != 0))
        return APP_ANY;
    dot = memrchr(name, '.', (size_t)(end - name));
    if (!dot || dot + 1 == end || end - dot > 8)
        return APP_ANY;
    for (const char *at = dot + 1; at < end; at++) {
        if (*at < '0' || *at > '9')
            return APP_ANY;
        v = 10 * v + (unsigned)(*at - '0');
    }
    return (uint32_t)v;
}

static char *path_join(const char *dir, const char *name)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = enough_memory(n, 1);

    snprintf(path, n, "%s%s%s", dir, *dir ? "/" : "", name);
    return path;
}

static void files_enter(struct trace_files *f, const char *dir, const char *name)
{
    GROW(f->file, f->n + 1, &f->room);
    f->file[f->n++] = (struct trace_name){path_join(dir, name), name_rank(name)};
}

static bool name_is_groups(const char *name)
{
    return !strcmp(name, "comm_group.json");
}

static int entry_wanted(const struct dirent *e)
{
    return e->d_name[0] != '.' && e->d_type != DT_DIR;
}

/* Of a folder: all files, or those of a prefix with a rank. */
static int files_scan(struct trace_files *f, const char *dir, const char *prefix)
{
    struct dirent **entry;
    int n = scandir(*dir ? dir : ".", &entry, entry_wanted, versionsort);

    if (n < 0)
        return -errno;
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name;
        size_t k = prefix ? strlen(prefix) : 0;

        if (name_is_groups(name))
            f->groups = path_join(dir, name);
        else if (!prefix || (!strncmp(name, prefix, k) && name[k] == '.' &&
                             name_rank(name + k) != APP_ANY && !strchr(name + k + 1, '/')))
            files_enter(f, dir, name);
        free(entry[i]);
    }
    free(entry);
    return 0;
}

/* comm_group.json in the folder of the file. */
static void groups_find(struct trace_files *f, const char *dir)
{
    struct stat st;

    f->groups = path_join(dir, "comm_group.json");
    if (stat(f->groups, &st)) {
        free(f->groups);
        f->groups = NULL;
    }
}

int trace_files_find(struct trace_files *f, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char dir[PATH_MAX];
    struct stat st;
    int rc;

    *f = (struct trace_files){.n = 0};
    if ((size_t)snprintf(dir, sizeof(dir), "%.*s", (int)(slash ? slash - path : 0), path) >=
        sizeof(dir))
        return -ENAMETOOLONG;
    if (slash == path)
        snprintf(dir, sizeof(dir), "/");
    rc = stat(path, &st) ? -errno : 0;
    if (!rc && S_ISDIR(st.st_mode)) {
        f->folder = true;
        return files_scan(f, path, NULL);
    }
    if (rc != -ENOENT || !*name) {
        files_enter(f, dir, name);
        groups_find(f, dir);
        return 0;
    }
    f->folder = true;
    if (files_scan(f, dir, name) || !f->n)
        files_enter(f, dir, name); /* which says that it is not there */
    return 0;
}

void trace_files_free(struct trace_files *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->file[i].path);
    free(f->file);
    free(f->groups);
}
