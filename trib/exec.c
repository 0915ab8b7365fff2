/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/commands.h"
#include "trib/conf_file.h"
#include "trib/run/die.h"
#include "trib/fabric_of.h"
#include "trib/find.h"
#include "trib/run/inherited_clock.h"
#include "trib/run/run.h"
#include "trib/answers.h"
#include "trib/run/text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_S 3
#define HOW      "[--isolate] [--clock fabric [--scale-waits]] [--no-nccl-env]"

static bool is_one_of(const char *word, const char *const *of)
{
    while (*of && strcmp(*of, word) != 0)
        of++;
    return *of;
}

/* Reads one of the leading options; returns its number of words, 0 if it is none. */
static int how_option(struct words *how, int n, char **words)
{
    static const char *const plain[] = {"--isolate", "--scale-waits", "--no-nccl-env", NULL};
    const char *clock;

    if (!text_begins(words[0], "--") || !words[0][2])
        return 0;
    if (is_one_of(words[0], plain)) {
        words_append(how, words[0]);
        return 1;
    }
    if (!strcmp(words[0], "--clock") && n < 2)
        die("found --clock at the end, expected --clock fabric or --clock wall");
    if (strcmp(words[0], "--clock") != 0 && !text_begins(words[0], "--clock="))
        die("found '%s', expected --isolate, --clock fabric, --scale-waits or --no-nccl-env",
            words[0]);
    clock = words[0][7] ? words[0] + 8 : words[1];
    if (strcmp(clock, "fabric") != 0 && strcmp(clock, "wall") != 0)
        die("found --clock '%s', expected fabric or wall", clock);
    words_append(how, text_of("--clock=%s", clock));
    return words[0][7] ? 1 : 2;
}

/* Reads the leading options of exec and shell; returns their number of words. */
static int how_of(struct words *how, int n, char **words)
{
    int i = 0, took;

    while (i < n && (took = how_option(how, n - i, words + i)) > 0)
        i += took;
    return i;
}

/* Says how much slower the fabric's time is than what the program sees. */
static void say_dilation(const char *dir, const struct words *how, const char *program)
{
    const struct telemetry_whom whom = {.seconds = ANSWER_S};
    json_int_t factor = answers_dilation(answers_ask_quietly(dir, "/trib/dilation", &whom));
    const char *inherited = inherited_clock_get();
    bool wall = words_have(how, "--clock=wall") || !strcmp(inherited, "wall");
    bool fabric = words_have(how, "--clock=fabric") || strstr(inherited, "fabric");

    if (!factor || factor == 1)
        return;
    if (fabric && !wall)
        fprintf(stderr,
                "trib: the clock of %s is fabric time, %" JSON_INTEGER_FORMAT
                " times slower than wall time\n",
                program, factor);
    else
        fprintf(stderr,
                "trib: fabric time runs %" JSON_INTEGER_FORMAT
                " times slower than the clock of %s\n",
                factor, program);
}

static unsigned words_before_dashes(int n, char **words)
{
    unsigned i = 0;

    while ((int)i < n && strcmp(words[i], "--") != 0)
        i++;
    return i;
}

static void host_enter(const struct fabric_of *f, const struct words *how, const char *host, int n,
                       char **words)
{
    struct words command = {0};
    const char *lib = find_library();

    words_append(&command, find_program("trib-enter"));
    words_append_n(&command, how->n, (char *const *)how->at);
    words_append_all(&command, host, lib);
    words_append_n(&command, (unsigned)n, words);
    say_dilation(f->dir, how, words[0]);
    inherited_clock_give_back();
    setenv("TRIB_RUN", f->dir, 1);
    run_become(&command);
}

static int exec_as(const struct words *how, int n, char **words)
{
    const char *host = text_env("TRIB_HOST");
    unsigned before = words_before_dashes(n, words);
    struct fabric_of f;
    bool taken;

    if (words_have(how, "--scale-waits") && !words_have(how, "--clock=fabric"))
        die("found --scale-waits, expected --clock fabric with it");
    if (before == 2)
        fabric_of_check_order("exec", n, words, "-- CMD [ARG...]");
    f = fabric_of_words(before == 2 && n > 2, n, words, &taken);
    n -= taken;
    words += taken;
    if (n && strcmp(words[0], "--") != 0) {
        host = words[0];
        n--;
        words++;
    } else if (!n) {
        host = "";
    }
    if (n < 2 || strcmp(words[0], "--") != 0)
        die("found '%s %s', expected: trib exec " HOW " [CONF] [HOST] -- CMD [ARG...]",
            host ? host : "", words_said(n, words));
    if (text_is_empty(host))
        die("found no HOST and no TRIB_HOST, expected a host of fabric %s", fabric_of_name(f.dir));
    host_enter(&f, how, host, n - 1, words + 1);
    return 1;
}

int command_exec(int n, char **words)
{
    struct words how = {0};
    int took = how_of(&how, n, words);

    return exec_as(&how, n - took, words + took);
}

int command_shell(int n, char **words)
{
    const char *shell = text_env("SHELL");
    struct words how = {0}, all = {0};
    int took = how_of(&how, n, words);

    n -= took;
    words += took;
    if (n != 1 && n != 2)
        die("found '%s', expected: trib shell " HOW " [CONF] HOST", words_said(n, words));
    words_append_n(&all, (unsigned)n, words);
    words_append_all(&all, "--", shell ? shell : "/bin/bash");
    return exec_as(&how, (int)all.n, (char **)all.at);
}
