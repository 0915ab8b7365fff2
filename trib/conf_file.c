/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/conf_file.h"

#include "base/nearest.h"
#include "trib/run/die.h"
#include "trib/find.h"
#include "trib/run/text.h"
#include "trib/where.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static const struct conf_kind {
    const char *folder, *what, *such; /* as messages name it, and an example */
} kinds[] = {
    {"", "conf file", "conf/two-hosts.conf"},
    {"workloads", "workload file", "conf/workloads/llama3-70b.conf"},
    {"faults", "fault plan", "conf/faults/flap.conf"},
    {"jobs", "file of jobs", "conf/jobs/two.conf"},
    {"schedules", "schedule file", "conf/schedules/ring-8.sched"},
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const struct conf_kind *kind_of(const char *folder)
{
    for (unsigned i = 1; folder && i < N_KINDS; i++)
        if (!strcmp(kinds[i].folder, folder))
            return &kinds[i];
    return &kinds[0];
}

/* A file's name without .conf or .sched at its end. */
static char *stem_of(const char *file)
{
    static const char *const ends[] = {".conf", ".sched"};
    size_t n = strlen(file);

    for (unsigned i = 0; i < 2; i++)
        if (n >= strlen(ends[i]) && !strncmp(file + n - strlen(ends[i]), ends[i], strlen(ends[i])))
            n -= strlen(ends[i]);
    return text_part(file, n);
}

static const char *real_of(const char *path)
{
    char *real = realpath(path, NULL), *kept = real ? text_of("%s", real) : NULL;

    free(real);
    return kept;
}

/* A file of conf/FOLDER/ by its name. */
static const char *shipped_find(const char *folder, const char *name)
{
    static const char *const ends[] = {"", ".conf", ".sched"};
    const struct words *tops = find_tops();

    for (unsigned i = 0; i < tops->n; i++)
        for (unsigned e = 0; e < 3; e++) {
            char *path =
                text_of("%s/conf%s%s/%s%s", tops->at[i], *folder ? "/" : "", folder, name, ends[e]);

            if (where_is_file(path))
                return real_of(path);
        }
    return NULL;
}

static const char *by_name(const char *word, const char *kind)
{
    const char *name = text_begins(word, "./") ? word + 2 : word, *found = NULL;

    if (*word == '/')
        return NULL;
    name += text_begins(name, "conf/") ? 5 : 0;
    if (*kind) {
        size_t n = strlen(kind);

        name += text_begins(name, kind) && name[n] == '/' ? n + 1 : 0;
        return shipped_find(kind, name);
    }
    for (unsigned i = 0; !found && i < N_KINDS; i++)
        found = shipped_find(kinds[i].folder, name);
    return found;
}

static char *why_none(const char *word, const char *kind)
{
    const struct conf_kind *k = kind_of(kind);
    struct words names = conf_file_names(kind);

    if (where_is_dir(word))
        return text_of("found the directory '%s', expected a conf file such as %s", word,
                       kinds[0].such);
    return text_of("found no %s '%s', expected a path such as %s or a name such as %s%s", k->what,
                   word, k->such, stem_of(text_last(k->such)),
                   conf_file_hint(stem_of(text_last(word)), &names));
}

const char *conf_file_find(const char *word, const char *kind, char **why)
{
    const char *found = where_is_file(word) ? real_of(word) : by_name(word, kind ? kind : "");

    if (!found && why)
        *why = why_none(word, kind ? kind : "");
    return found;
}

const char *conf_file_or_die(const char *word, const char *kind, int code)
{
    char *why;
    const char *found = conf_file_find(word, kind, &why);

    if (!found)
        die_with(code, "%s", why);
    return found;
}

bool conf_file_is_name(const char *word)
{
    if (!isalnum((unsigned char)*word) && *word != '_')
        return false;
    while (isalnum((unsigned char)*word) || (*word && strchr("_.-", *word)))
        word++;
    return !*word;
}

bool conf_file_is_conf(const char *word)
{
    const struct words *tops = find_tops();

    if (text_ends(word, ".conf") || strchr(word, '/'))
        return true;
    if (!conf_file_is_name(word))
        return false;
    for (unsigned i = 0; i < tops->n; i++)
        if (where_is_file(text_of("%s/conf/%s.conf", tops->at[i], word)))
            return true;
    return where_is_dir(text_of("%s/%s", where_base(), word)) || where_is_dir(where_service(word));
}

static void names_append(struct words *names, const char *folder)
{
    struct dirent *e;
    DIR *d = opendir(folder);

    while (d && (e = readdir(d)))
        if (*e->d_name != '.' &&
            (text_ends(e->d_name, ".conf") || text_ends(e->d_name, ".sched")) &&
            where_is_file(text_of("%s/%s", folder, e->d_name)))
            words_append(names, stem_of(e->d_name));
    if (d)
        closedir(d);
}

struct words conf_file_names(const char *kind)
{
    const struct words *tops = find_tops();
    struct words names = {0}, up = {0};

    for (unsigned i = 0; i < tops->n; i++)
        names_append(&names, text_of("%s/conf/%s", tops->at[i], kind ? kind : ""));
    if (text_is_empty(kind))
        up = where_fabrics();
    for (unsigned i = 0; i < up.n; i++)
        if (conf_file_is_name(text_last(up.at[i])))
            words_append(&names, text_last(up.at[i]));
    words_sort_once(&names);
    return names;
}

char *conf_file_hint(const char *word, const struct words *names)
{
    const char *near = nearest_of(*word ? word : " ", names->at, names->n);

    return near ? text_of("; did you mean %s?", near) : text_of("%s", "");
}

static const char *argument_path(const char *kind, const char *word)
{
    const char *found = conf_file_find(word, kind, NULL);

    if (found)
        return found;
    return where_is_there(word) || !*word || *word == '-'
               ? word
               : conf_file_or_die(word, kind, EXIT_WRONG);
}

/* The kind of file that an option takes, with the length of the option; NULL: it takes none. */
static const char *kind_taken(const char *word, size_t *length)
{
    static const struct {
        const char *option, *kind;
    } takes[] = {{"--workload", "workloads"},
                 {"--faults", "faults"},
                 {"--jobs", "jobs"},
                 {"--schedule", "schedules"}};

    *length = strcspn(word, "=");
    for (unsigned i = 0; i < 4; i++)
        if (strlen(takes[i].option) == *length && !strncmp(word, takes[i].option, *length))
            return takes[i].kind;
    return NULL;
}

struct words conf_file_beside(int n, char *const *words)
{
    struct words all = {0};
    const char *before = "";

    for (int i = 0; i < n; i++) {
        const char *word = words[i], *kind;
        size_t length;

        kind = kind_taken(word, &length);
        if (kind && word[length] == '=')
            word = text_of("%.*s=%s", (int)length, word, argument_path(kind, word + length + 1));
        kind = kind_taken(before, &length);
        if (kind && !before[length])
            word = argument_path(kind, word);
        words_append(&all, word);
        before = word;
    }
    return all;
}
