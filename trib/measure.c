/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/measure.h"

#include "trib/commands.h"
#include "trib/conf_file.h"
#include "trib/run/die.h"
#include "trib/fabric_of.h"
#include "trib/find.h"
#include "trib/launch.h"
#include "trib/life.h"
#include "trib/run/run.h"
#include "trib/run/signals.h"
#include "trib/run/text.h"
#include "trib/where.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Becomes the program if any word asks for its help or version: then nothing else is read. */
static void answer_for_itself(const char *program, int n, char **words)
{
    struct words command = {0};

    for (int i = 0; i < n; i++)
        if (!strcmp(words[i], "-h") || !strcmp(words[i], "--help") ||
            !strcmp(words[i], "--version")) {
            words_append_all(&command, program, words[i]);
            run_become(&command);
        }
}

int command_plan(int n, char **words)
{
    const char *program = find_program("trib-plan");
    struct words command = {0};
    bool option = false;
    unsigned files = 0;

    words_append(&command, program);
    for (int i = 0; i < n; i++) {
        bool is_option = *words[i] == '-';

        option |= is_option;
        files += !is_option;
        words_append(&command, is_option ? words[i] : conf_file_or_die(words[i], NULL, 1));
    }
    if (!option && files != 1)
        die("found %u files, expected: trib plan [OPTION...] CONF", files);
    run_become(&command);
}

/* ---- perf ---- */

/* Returns the fabric that is up when the words name none. The program refuses a mistyped
 * collective. */
static struct fabric_of perf_up(int n, char **words)
{
    struct words names = conf_file_names(NULL);
    struct fabric_of f;

    if (n && *words[0] != '-' &&
        (measure_names_conf(n - 1, words + 1) ||
         (*conf_file_hint(words[0], &names) && !measure_is_collective(words[0]))))
        measure_refuse_word("perf", n, words);
    f = fabric_of_none(false);
    if (!fabric_of_alive(f.dir))
        fabric_of_not_up(f.dir);
    return f;
}

/* Appends --rsh if the fabric or TRIB_RSH names a launcher, and no option does. */
static void append_launcher(struct words *args, const char *dir)
{
    for (unsigned i = 0; i < args->n; i++)
        if (strstr(text_of(" %s", args->at[i]), " --rsh"))
            return;
    if (where_is_own(text_of("%s/launch", dir)) || text_env("TRIB_RSH"))
        words_append_all(args, "--rsh", launch_how(dir, NULL));
}

static void check_options(const char *perf, const char *conf, const struct words *args)
{
    struct words command = {0};
    int rc;

    words_append_all(&command, perf, "--check-options", conf);
    words_append_n(&command, args->n, (char *const *)args->at);
    rc = run_whole(&command, false);
    if (rc)
        exit(rc);
}

static void make_ready(const struct fabric_of *f)
{
    struct life_start start = {.stays = false};

    if (!fabric_of_alive(f->dir)) {
        life_begin(f, &start);
        return;
    }
    if (where_is_file(text_of("%s/fabric.conf", f->dir)) && !fabric_of_same_conf(f))
        die("the fabric %s that is up was started from another conf than %s is now; trib down "
            "stops it, trib perf "
            "without CONF measures it",
            fabric_of_name(f->dir), f->conf);
    life_wait_ready(f->dir);
}

/* Runs trib-perf by trib-keep, which ends it if this command is killed. */
static int perf_run(const struct fabric_of *f, const char *perf, const struct words *args)
{
    struct words command = {0};
    int rc, asked;

    words_append_all(&command, find_program("trib-keep"), "with", text_of("%d", (int)getpid()),
                     perf, f->conf);
    words_append_n(&command, args->n, (char *const *)args->at);
    setenv("TRIB_RUN", f->dir, 1);
    signals_hold();
    rc = signals_pass(run_beside(&command), SIGHUP, &asked);
    signals_release();
    if (rc > 128 && rc != SIGNALS_CODE(SIGHUP) && rc != SIGNALS_CODE(SIGINT) &&
        rc != SIGNALS_CODE(SIGTERM))
        fprintf(stderr, "trib: trib-perf was killed by signal %d (%s)\n", rc - 128,
                sigabbrev_np(rc - 128) ? sigabbrev_np(rc - 128) : "?");
    return rc;
}

int command_perf(int n, char **words)
{
    const char *perf = find_program("trib-perf");
    bool conf = n && conf_file_is_conf(words[0]);
    struct fabric_of f;
    struct words args;

    answer_for_itself(perf, n, words);
    f = conf ? fabric_of_conf(words[0]) : perf_up(n, words);
    args = conf_file_beside(n - conf, words + conf);
    append_launcher(&args, f.dir);
    check_options(perf, f.conf, &args);
    make_ready(&f);
    return perf_run(&f, perf, &args);
}

/* ---- sim ---- */

int command_sim(int n, char **words)
{
    const char *sim = find_program("trib-sim");
    struct words command = {0}, args;

    answer_for_itself(sim, n, words);
    words_append(&command, sim);
    if (n && text_begins(words[0], "--chaos")) {
        words_append_n(&command, (unsigned)n, words);
        run_become(&command);
    }
    if (!n || !conf_file_is_conf(words[0]))
        measure_refuse_word("sim", n, words);
    words_append(&command, conf_file_or_die(words[0], NULL, 1));
    args = conf_file_beside(n - 1, words + 1);
    words_append_n(&command, args.n, (char *const *)args.at);
    /* The memory of thousands of ranks is read in no order: a heap in pages of 2 MiB takes a fifth
     * less CPU time. */
    if (!text_env("GLIBC_TUNABLES"))
        setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1);
    run_become(&command);
}

/* ---- model ---- */

/* Whether a word behind `before` is a file that the program reads: a bare name is not the value of an option. */
static bool model_takes_conf(const char *before, const char *word)
{
    static const char *const outputs[] = {"--json", "--output_file", "-J"};

    if (!strcmp(before, "--workload"))
        return true;
    if (!conf_file_is_conf(word))
        return false;
    if (*before != '-')
        return true;
    for (unsigned i = 0; i < 3; i++)
        if (!strcmp(before, outputs[i]))
            return false;
    return strchr(word, '/') || text_ends(word, ".conf");
}

int command_model(int n, char **words)
{
    static const char workload[] = "--workload=";
    struct words command = {0};
    const char *before = "";

    words_append(&command, find_program("trib-model"));
    if (n && *words[0] != '-' && !where_is_there(words[0]) && !conf_file_is_conf(words[0]))
        measure_refuse_word("model", n, words);
    for (int i = 0; i < n; before = words[i++]) {
        const char *word = words[i];

        if (model_takes_conf(before, word))
            word = conf_file_or_die(word, NULL, 1);
        else if (text_begins(word, workload))
            word =
                text_of("%s%s", workload, conf_file_or_die(word + sizeof(workload) - 1, NULL, 1));
        words_append(&command, word);
    }
    run_become(&command);
}
