/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/fabric_of.h"

#include "fabric/fabric.h"
#include "host/keep/keep.h"
#include "system/input.h"
#include "trib/conf_file.h"
#include "trib/run/die.h"
#include "trib/run/text.h"
#include "trib/where.h"

#include <stdlib.h>
#include <string.h>

static struct fab_errors mistakes;

struct fabric *fabric_of_load(const char *conf)
{
    struct fabric *f = fabric_load(conf, &mistakes);

    if (f)
        return f;
    fab_errors_print(&mistakes, stderr);
    exit(1);
}

/* The name in the conf; prints the mistakes of a conf that has some, and returns "". */
static const char *name_in(const char *conf)
{
    struct fabric *f = fabric_load(conf, &mistakes);
    const char *name = f ? text_of("%s", f->name) : "";

    if (f)
        fabric_free(f);
    else
        fab_errors_print(&mistakes, stderr);
    return name;
}

const char *fabric_of_name(const char *dir)
{
    return text_last(dir);
}

static const char *file_text(const char *dir, const char *file, bool quiet)
{
    size_t size;
    char *text = show_file(dir, file, quiet, &size), *kept = text_of("%s", text ? text : "");

    free(text);
    text_chop(kept);
    return kept;
}

const char *fabric_of_file(const char *dir, const char *file)
{
    return file_text(dir, file, false);
}

bool fabric_of_alive(const char *dir)
{
    return !owner_alive(dir, true);
}

void fabric_of_not_up(const char *dir)
{
    if (owner_alive(dir, false) == 3)
        exit(1); /* owner_alive() has said whose it is */
    fprintf(stderr, "trib: the fabric %s is not up\n", fabric_of_name(dir));
    fabric_of_others(fabric_of_name(dir), true);
    exit(1);
}

/* This user's run directories: of fabrics that are alive, or of those that are not. */
static struct words dirs_alive(bool live)
{
    struct words all = where_fabrics(), found = {0};

    for (unsigned i = 0; i < all.n; i++)
        if (fabric_of_alive(all.at[i]) == live)
            words_append(&found, all.at[i]);
    return found;
}

static struct fabric_of in_dir(const char *dir)
{
    return (struct fabric_of){dir, dir ? text_of("%s/fabric.conf", dir) : NULL};
}

static struct words all_up(bool remains)
{
    struct words up = {0};

    if (where_run()) {
        words_append(&up, where_run());
        return up;
    }
    up = dirs_alive(true);
    if (!up.n)
        up = remains ? dirs_alive(false) : where_services();
    return up;
}

struct fabric_of fabric_of_none(bool remains)
{
    struct words up = all_up(remains);

    if (up.n == 1)
        return in_dir(up.at[0]);
    if (!up.n) {
        fputs("trib: no fabric is up; expected a CONF, or trib up CONF first\n", stderr);
        fabric_of_others(NULL, true);
        exit(1);
    }
    for (unsigned i = 0; i < up.n; i++)
        up.at[i] = fabric_of_name(up.at[i]);
    die("several fabrics are up (%s); expected a CONF that says which",
        words_join(up.n, up.at, " "));
}

struct fabric_of fabric_of_none_quietly(void)
{
    struct words up = all_up(false);

    return in_dir(up.n == 1 ? up.at[0] : NULL);
}

/* Whether the word is the name of the fabric of `dir`, and that fabric is up. */
static bool is_up_by_name(const char *word, const char *dir)
{
    const char *conf = text_of("%s/fabric.conf", dir);

    return conf_file_is_name(word) && !where_is_file(word) && where_is_file(conf) &&
           fabric_of_alive(dir) && (!where_run() || !strcmp(name_in(conf), word));
}

/* The run directory of a fabric that was started from the conf of this path; NULL: there is none. */
static const char *started_from(const char *path)
{
    struct words dirs = {0}, mine = where_fabrics();

    if (where_run())
        words_append(&dirs, where_run());
    words_append_n(&dirs, mine.n, (char *const *)mine.at);
    for (unsigned i = 0; i < dirs.n; i++)
        if (where_is_file(text_of("%s/fabric.path", dirs.at[i])) &&
            !strcmp(file_text(dirs.at[i], "fabric.path", true), path))
            return dirs.at[i];
    return NULL;
}

/* The run directory of that name, of this user or of a service; NULL: there is none. */
static const char *left_by_name(const char *word)
{
    const char *dir = text_of("%s/%s", where_base(), word);

    if (where_run() || !conf_file_is_name(word))
        return NULL;
    if (where_is_dir(dir))
        return dir;
    dir = where_service(word);
    return where_is_dir(dir) ? dir : NULL;
}

struct fabric_of fabric_of_conf(const char *word)
{
    const char *dir = where_run() ? where_run() : text_of("%s/%s", where_base(), word), *conf;
    struct fabric *f;

    if (is_up_by_name(word, dir))
        return in_dir(dir);
    conf = conf_file_find(word, NULL, NULL);
    if (conf && where_run())
        return (struct fabric_of){where_run(), conf};
    if (conf) {
        f = fabric_of_load(conf);
        dir = text_of("%s/%s", where_base(), f->name);
        fabric_free(f);
        return (struct fabric_of){dir, conf};
    }
    dir = started_from(where_absolute(word));
    dir = dir ? dir : left_by_name(word);
    if (!dir)
        conf_file_or_die(word, NULL, 1); /* says what was found */
    return in_dir(dir);
}

/* Whether two files have the same bytes. */
static bool same_text(const char *a, const char *b)
{
    char why[INPUT_WHY], *x, *y;
    size_t n, m;
    bool same;

    x = input_text(a, INPUT_MOST, &n, why);
    y = x ? input_text(b, INPUT_MOST, &m, why) : NULL;
    same = y && n == m && !memcmp(x, y, n);
    free(x);
    free(y);
    return same;
}

bool fabric_of_same_conf(const struct fabric_of *f)
{
    return same_text(f->conf, text_of("%s/fabric.conf", f->dir));
}

void fabric_of_check_conf(const struct fabric_of *f)
{
    const char *from;

    if (!strcmp(f->conf, text_of("%s/fabric.conf", f->dir)))
        return;
    from = fabric_of_file(f->dir, "fabric.path");
    if (*from && strcmp(f->conf, from) != 0 && !fabric_of_same_conf(f))
        die("the fabric %s that is up was started from another conf (%s) than %s; trib down %s "
            "stops it",
            fabric_of_name(f->dir), from, f->conf, fabric_of_name(f->dir));
}

struct fabric_of fabric_of_conf_up(const char *word)
{
    struct fabric_of f = fabric_of_conf(word);

    if (!fabric_of_alive(f.dir))
        fabric_of_not_up(f.dir);
    fabric_of_check_conf(&f);
    return f;
}

struct fabric_of fabric_of_words(bool named, int n, char *const *words, bool *taken)
{
    struct fabric_of f;

    *taken = named || (n > 0 && (text_ends(words[0], ".conf") || strchr(words[0], '/')));
    if (*taken)
        return fabric_of_conf_up(words[0]);
    f = fabric_of_none(false);
    if (!fabric_of_alive(f.dir))
        fabric_of_not_up(f.dir);
    return f;
}

void fabric_of_check_order(const char *command, int n, char *const *words, const char *rest)
{
    if (n < 2 || !*words[0] || !*words[1] || *words[1] == '-' || conf_file_is_conf(words[0]) ||
        !conf_file_is_conf(words[1]))
        return;
    die("found '%s' before the conf '%s', expected: trib %s %s %s%s%s", words[0], words[1], command,
        words[1], words[0], *rest ? " " : "", rest);
}
