/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes a fabric that is up: links, nodes, or by a plan of such changes. */
#include "trib/commands.h"
#include "trib/conf_file.h"
#include "trib/run/die.h"
#include "trib/fabric_of.h"
#include "trib/find.h"
#include "trib/launch.h"
#include "trib/run/run.h"
#include "trib/answers.h"
#include "trib/run/text.h"
#include "trib/where.h"

#include <stdlib.h>
#include <string.h>

/* ---- links ---- */

static bool is_change(const char *word)
{
    return !strcmp(word, "down") || !strcmp(word, "up") || !strcmp(word, "clear") ||
           strchr(word, '=');
}

/* Whether the first word is a CONF. A single word is one if a run directory has that name, else a
 * link. */
static bool begins_with_name(int n, char **words)
{
    if (n >= 2)
        return !is_change(words[1]) && (conf_file_is_conf(words[0]) || strchr(words[1], '-'));
    return n == 1 && conf_file_is_name(words[0]) &&
           where_is_dir(text_of("%s/%s", where_base(), words[0]));
}

static bool has_machines(const struct fabric_of *f)
{
    return where_is_file(text_of("%s/machine", f->dir));
}

/* Prints what other machines say of the link. */
static int link_elsewhere(const struct fabric_of *f, const char *link)
{
    struct words command = launch_command("link", NULL, launch_how(f->dir, NULL), f);

    words_append(&command, link);
    return run_whole(&command, false);
}

static int links_with_faults(const struct fabric_of *f)
{
    bool ok;
    json_t *said = answers_ask(f->dir, "/trib/link", NULL, &ok);

    if (!ok)
        return 1;
    answers_print_lines(
        answers_lines(said),
        text_of("no link of %s is down or has faults; trib status --links shows all",
                fabric_of_name(f->dir)));
    return 0;
}

static int say_all_links(const struct fabric_of *f, int n, struct words lines)
{
    if (!has_machines(f)) {
        answers_print_lines(lines,
                            text_of("no link of %s is down or has faults", fabric_of_name(f->dir)));
        return 0;
    }
    answers_print_lines(lines, "no link at this machine is down or has faults");
    return n > 1 ? 0 : link_elsewhere(f, "all");
}

static int say_link(const struct fabric_of *f, int n, const char *link, const struct words *lines)
{
    if (!lines->n && n == 1 && has_machines(f)) /* it has no end here */
        return link_elsewhere(f, link);
    puts(words_join(lines->n, lines->at, "\n"));
    return 0;
}

/* Asks every process, even without an end of the link: all of them reroute around a link that is down. */
int command_link(int n, char **words)
{
    struct fabric_of f;
    struct words lines;
    json_t *said;
    bool taken, ok;

    if (n < 2 || !strchr(words[1], '=')) /* a rate has a slash, too */
        fabric_of_check_order("link", n, words, "");
    f = fabric_of_words(begins_with_name(n, words), n, words, &taken);
    f.conf = text_of("%s/fabric.conf", f.dir);
    n -= taken;
    words += taken;
    if (!n)
        return links_with_faults(&f);
    said = answers_ask(
        f.dir, text_of("/trib/link,%s", words_join((unsigned)n, (const char *const *)words, ",")),
        NULL, &ok);
    if (!ok)
        die("link %s: %s", words[0], answers_why(said));
    lines = answers_lines(said);
    if (!strcmp(words[0], "all"))
        return say_all_links(&f, n, lines);
    return say_link(&f, n, words[0], &lines);
}

/* ---- nodes ---- */

static bool is_node_change(const char *word)
{
    return !strcmp(word, "down") || !strcmp(word, "up") || !strcmp(word, "restart");
}

static json_t *node_ask(const char *dir, const char *node, const char *change)
{
    bool ok;
    json_t *said =
        answers_ask(dir, text_of("/trib/node,%s%s%s", node, *change ? "," : "", change), NULL, &ok);

    if (!ok)
        die("node %s: %s", node, answers_why(said));
    return said;
}

/* Restarts a node as a fault plan does: down, without memory of its groups, up again. */
static json_t *node_restart(const char *dir, const char *node)
{
    node_ask(dir, node, "forget"); /* a host is refused before anything is down */
    node_ask(dir, node, "down");
    node_ask(dir, node, "forget");
    return node_ask(dir, node, "up");
}

/* Shows or changes all links of a node. */
int command_node(int n, char **words)
{
    const char *change;
    struct fabric_of f;
    struct words lines;
    bool taken;

    fabric_of_check_order("node", n, words, "");
    f = fabric_of_words(n >= 2 && !is_node_change(words[1]) && conf_file_is_conf(words[0]), n,
                        words, &taken);
    n -= taken;
    words += taken;
    if (n < 1 || n > 2)
        die("found '%s', expected: trib node [CONF] NODE [down|up|restart]", words_said(n, words));
    change = n > 1 ? words[1] : "";
    if (*change && !is_node_change(change))
        die("found '%s', expected down, up or restart", change);
    if (has_machines(&f))
        die("found a fabric of several machines, expected one of this machine: trib link changes "
            "each link of %s",
            words[0]);
    lines = answers_lines(!strcmp(change, "restart") ? node_restart(f.dir, words[0])
                                                     : node_ask(f.dir, words[0], change));
    words_sort_once(&lines);
    for (unsigned i = 0; i < lines.n; i++)
        puts(lines.at[i]);
    return 0;
}

/* ---- plans ---- */

/* Plays the events of a fault plan at their fabric times. */
int command_faults(int n, char **words)
{
    struct words command = {0};
    struct fabric_of f;
    bool taken;

    words_append(&command, find_program("trib-faults"));
    if (n < 1 || n > 2)
        die("found '%s', expected: trib faults [CONF] PLAN", words_said(n, words));
    fabric_of_check_order("faults", n, words, "");
    f = fabric_of_words(n == 2, n == 2 ? 1 : 0, words, &taken);
    words_append_all(&command, f.dir, conf_file_or_die(words[n - 1], "faults", 1));
    run_become(&command);
}
