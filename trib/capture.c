/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/commands.h"
#include "trib/conf_file.h"
#include "trib/run/die.h"
#include "trib/fabric_of.h"
#include "trib/find.h"
#include "trib/launch.h"
#include "trib/life.h"
#include "trib/run/run.h"
#include "trib/run/signals.h"
#include "trib/answers.h"
#include "trib/run/text.h"
#include "trib/where.h"

#include <ctype.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILTER_MOST 400
#define NONE_HERE   3 /* exit code of trib-machines: no link is on other machines alone */

struct capture_order {
    struct words links;
    const char *out, *seconds, *filter; /* "": none */
};

/* "5", "0.5" */
static bool is_seconds(const char *word)
{
    size_t n = strspn(word, "0123456789");

    if (!n || !word[n])
        return n;
    word += n + 1;
    n = strspn(word, "0123456789");
    return word[-1] == '.' && n && !word[n];
}

static void filter_set(struct capture_order *c, const char *filter)
{
    if (!*filter)
        die("found no filter, expected --filter EXPRESSION as of pcap-filter(7), such as 'udp port "
            "4791 and host "
            "10.0.0.1'");
    if (strlen(filter) >= FILTER_MOST)
        die("found a filter of %zu characters, expected less than %d", strlen(filter), FILTER_MOST);
    c->filter = filter;
}

/* Reads an option or a link; returns its number of words. */
static int capture_word(struct capture_order *c, int n, char **words)
{
    const char *word = words[0], *value = n > 1 ? words[1] : "";

    if (!strcmp(word, "-o")) {
        if (n < 2)
            die("found -o at the end, expected -o FILE");
        c->out = value;
        return 2;
    }
    if (!strcmp(word, "-t")) {
        if (!is_seconds(value))
            die("found -t '%s', expected -t SECONDS such as 5 or 0.5", value);
        c->seconds = value;
        return 2;
    }
    if (!strcmp(word, "--filter") || text_begins(word, "--filter=")) {
        filter_set(c, word[8] ? word + 9 : value);
        return word[8] || n < 2 ? 1 : 2;
    }
    if (*word == '-' && word[1])
        die("found '%s', expected -o FILE, -t SECONDS or --filter EXPRESSION", word);
    words_append(&c->links, word);
    return 1;
}

/* ---- by other programs ---- */

/* The command for scripts/trib-capture, which takes several links, pcapng and standard output. */
static struct words program_command(const struct capture_order *c, const char *dir)
{
    struct words command = {0};

    words_append_all(&command, find_program("trib-capture"), dir, find_program("trib-telemetry"),
                     c->filter, c->out, c->seconds);
    words_append_n(&command, c->links.n, (char *const *)c->links.at);
    return command;
}

/* Captures links that are on other machines alone, and ends the command; returns if there are
 * none. */
static void capture_elsewhere(const struct fabric_of *f, const struct words *program)
{
    struct words command;
    int rc, asked;

    if (!where_is_file(text_of("%s/machine", f->dir)))
        return;
    command = launch_command("capture", NULL, launch_how(f->dir, NULL), f);
    words_append_n(&command, program->n, (char *const *)program->at);
    signals_hold();
    rc = signals_pass(run_beside(&command), SIGTERM, &asked);
    signals_release();
    if (rc != NONE_HERE)
        exit(rc);
}

/* ---- one link into a file, by its switch ---- */

/* The path for the switch, which makes the file itself and follows no link of another user's. */
static const char *file_checked(const char *out)
{
    struct stat st;
    bool there = !stat(out, &st);

    /* a pipe could block the switch that writes to it */
    if (there && !S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
        die("cannot write %s: found no plain file", out);
    if (!where_is_dir(dirname(text_of("%s", out))))
        die("cannot write %s", out);
    return where_absolute(out);
}

static void capture_start(const struct capture_order *c, const char *dir, const char *link,
                          const char *out)
{
    const char *ask = text_of("/trib/capture/start,%s,%d,%s", link, (int)getpid(), out);
    json_t *said;
    bool ok;

    if (*c->filter)
        ask = text_of("/trib/capture/filtered,%s,%d,%zu,%s,%s", link, (int)getpid(),
                      strlen(c->filter), c->filter, out);
    said = answers_ask(dir, ask, NULL, &ok);
    if (!ok)
        die("cannot capture %s: %s (into %s)", link, answers_why(said), out);
}

static int capture_end(const char *dir, const char *out)
{
    json_t *said;
    bool ok;

    if (!fabric_of_alive(dir))
        die("the fabric %s is down; %s has the frames until then", fabric_of_name(dir), out);
    said = answers_ask(dir, text_of("/trib/capture/stop,%s", out), NULL, &ok);
    if (!ok)
        die("cannot write all frames into %s: %s", out, answers_why(said));
    if (!where_is_there(out))
        die("cannot write %s: the switch process made it, and it is not there (another mount "
            "namespace, or somebody "
            "has removed it)",
            out);
    fprintf(stderr, "%" JSON_INTEGER_FORMAT " frames in %s\n", answers_sum(said, "frames"), out);
    return 0;
}

static int capture_link(const struct capture_order *c, const char *dir)
{
    const char *link = c->links.at[0], *out = file_checked(c->out);
    bool limited = *c->seconds;

    capture_start(c, dir, link, out);
    signals_hold();
    fprintf(stderr, "capturing %s into %s%s%s%s; Ctrl-C ends it\n", link, out,
            limited ? " for " : "", c->seconds, limited ? " s" : "");
    life_wait_gone(dir, limited ? strtod(c->seconds, NULL) : -1);
    return capture_end(dir, out);
}

static struct capture_order capture_words(int n, char **words)
{
    struct capture_order c = {.out = "", .seconds = "", .filter = ""};

    for (int i = 0; i < n;)
        i += capture_word(&c, n - i, words + i);
    if (!c.links.n || !*c.out)
        die("expected: trib capture [CONF] LINK... -o FILE [-t SECONDS] [--filter EXPRESSION]");
    return c;
}

int command_capture(int n, char **words)
{
    bool named = n >= 2 && *words[0] != '-' && *words[1] != '-' && conf_file_is_conf(words[0]),
         taken;
    struct words command;
    struct fabric_of f;
    struct capture_order c;
    bool to_file;

    if (n && *words[0] != '-')
        fabric_of_check_order("capture", n, words, "-o FILE");
    f = fabric_of_words(named, n, words, &taken);
    c = capture_words(n - taken, words + taken);
    if (!strcmp(c.out, "-") && isatty(STDOUT_FILENO))
        die("found a terminal as standard output, expected a pipe or a file: trib capture ... -o - "
            "| wireshark -k -i -");
    command = program_command(&c, f.dir);
    f.conf = text_of("%s/fabric.conf", f.dir);
    capture_elsewhere(&f, &command);
    to_file = strcmp(c.out, "-") != 0 && !text_ends(c.out, ".pcapng");
    if (to_file && !where_is_own(f.dir))
        die("found -o %s, expected a FILE.pcapng or -: the fabric %s is a service's, whose "
            "processes cannot write there",
            c.out, fabric_of_name(f.dir));
    if (c.links.n != 1 || !to_file)
        run_become(&command);
    return capture_link(&c, f.dir);
}
