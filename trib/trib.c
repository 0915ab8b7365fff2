/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib: brings an emulated fabric up, runs programs on its hosts, takes it down. The front door of all else.
 */
#include "fabric/fabric.h"
#include "system/atomic_output.h"
#include "trib/command_table.h"
#include "trib/conf_file.h"
#include "trib/run/die.h"
#include "trib/fabric_names.h"
#include "trib/fabric_of.h"
#include "trib/find.h"
#include "trib/run/inherited_clock.h"
#include "trib/run/remote_words.h"
#include "trib/run/signals.h"
#include "trib/run/text.h"
#include "trib/usage.h"
#include "trib/where.h"

#include <stdlib.h>
#include <string.h>

/* ---- what trib says of itself ---- */

static int about_help(int n, char **words)
{
    if (!n) {
        usage_all(stdout);
        return 0;
    }
    if (!command_table_find(words[0]))
        usage_unknown(words[0]);
    return usage_of(words[0]);
}

static int about_version(int n, char **words)
{
    (void)n;
    (void)words;
    usage_version();
    return 0;
}

static int about_man(int n, char **words)
{
    (void)n;
    (void)words;
    usage_man();
    return 0;
}

static int about_complete(int n, char **words)
{
    (void)n;
    (void)words;
    usage_complete();
    return 0;
}

static int names_print(struct words names)
{
    for (unsigned i = 0; i < names.n; i++)
        puts(names.at[i]);
    return 0;
}

static int about_confs(int n, char **words)
{
    return names_print(conf_file_names(n ? words[0] : NULL));
}

/* Hosts, nodes or links of the fabric that is up; nothing where that is not one fabric. */
static int about_names(int n, char **words)
{
    struct fabric_of f;
    struct fabric *fabric;
    struct words names;

    if (!n || (strcmp(words[0], "hosts") != 0 && strcmp(words[0], "nodes") != 0 &&
               strcmp(words[0], "links") != 0))
        die_with(EXIT_WRONG, "--help=names: found '%s', expected hosts, nodes or links",
                 n ? words[0] : "");
    where_check_quietly();
    f = fabric_of_none_quietly();
    if (!f.dir)
        return 0;
    fabric = fabric_of_load(f.conf);
    names = fabric_names(fabric, words[0]);
    fabric_free(fabric);
    return names_print(names);
}

/* For other scripts: the path of a CONF, or why there is none. */
static int about_conf_file(int n, char **words)
{
    puts(conf_file_or_die(n ? words[0] : "", n > 1 ? words[1] : NULL, 1));
    return 0;
}

static const struct {
    const char *name;
    command_fn *run;
} about[] = {
    {"help", about_help},
    {"-h", about_help},
    {"--help", about_help},
    {"version", about_version},
    {"-V", about_version},
    {"--version", about_version},
    {"--help=man", about_man},
    {"--help=complete", about_complete},
    {"--help=confs", about_confs},
    {"--help=names", about_names},
    {"--conf-file", about_conf_file},
};

/* ---- commands ---- */

static bool asks_for_help(int n, char **words)
{
    for (int i = 0; i < n && strcmp(words[i], "--") != 0; i++)
        if (!strcmp(words[i], "-h") || !strcmp(words[i], "--help"))
            return true;
    return false;
}

static int command_run(const char *name, int n, char **words)
{
    const struct command_row *row;

    for (unsigned i = 0; i < sizeof(about) / sizeof(about[0]); i++)
        if (!strcmp(about[i].name, name))
            return about[i].run(n, words);
    row = command_table_find(name);
    if (!row)
        usage_unknown(name);
    if (row->answers && asks_for_help(n, words))
        return usage_of(name);
    if (row->looks && !(!strcmp(name, "status") && n == 1 && !strcmp(words[0], "--all")))
        where_check(name);
    return command_table_run(row, n, words);
}

/* The words of the command line, or those that another machine has sent. */
static struct words words_given(int argc, char **argv)
{
    struct words given = {0};

    if (argc < 2 || !text_begins(argv[1], REMOTE_WORDS)) {
        words_append_n(&given, argc > 1 ? (unsigned)argc - 1 : 0, argv + 1);
        return given;
    }
    if (argc != 2 || !remote_words_read(argv[1] + strlen(REMOTE_WORDS), &given))
        die("found '%s', expected --words=HEX and no other word", words_said(argc - 1, argv + 1));
    return given;
}

int main(int argc, char **argv)
{
    struct words given;
    int code;

    inherited_clock_begin(argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    signals_begin();
    find_begin(argc ? argv[0] : "");
    given = words_given(argc, argv);
    where_begin();
    if (!given.n || !*given.at[0]) {
        usage_all(stderr);
        return EXIT_WRONG;
    }
    code = command_run(given.at[0], (int)given.n - 1, (char **)given.at + 1);
    return atomic_output_end("trib") && !code ? 1 : code;
}
