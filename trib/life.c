/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/life.h"

#include "trib/commands.h"
#include "trib/conf_file.h"
#include "trib/run/die.h"
#include "trib/find.h"
#include "trib/launch.h"
#include "trib/machine_choice.h"
#include "trib/run/run.h"
#include "trib/run/signals.h"
#include "trib/answers.h"
#include "trib/run/text.h"
#include "trib/where.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_ADDRESSES 256
#define LOOK_MS     200
#define READY_LOOKS 300
#define SAID_MS     300 /* by then the trunk has sent an order to all machines several times */

/* Chooses the processes that run on this machine. False: *why has the reason. */
static bool processes_choose(struct machine_choice *m, const char *conf, const char *named,
                             char **why)
{
    uint32_t addresses[N_ADDRESSES];
    unsigned n = machine_choice_addresses(addresses, N_ADDRESSES);
    struct fabric *f = fabric_of_load(conf);
    bool chosen = machine_choice_make(m, f, conf, named, addresses, n, why);

    fabric_free(f);
    return chosen;
}

/* ---- start ---- */

static struct words start_command(const struct fabric_of *f, struct life_start *s)
{
    struct words command = {0};
    struct machine_choice m;
    char *why;

    words_append_all(&command, find_program("trib-keep"), "start", f->dir,
                     s->stays ? "up" : "while", text_of("%d", (int)getpid()),
                     find_program("trib-switch"), f->conf);
    if (!processes_choose(&m, f->conf, s->machine, &why)) {
        fprintf(stderr, "%s\n", why);
        exit(1);
    }
    s->machine = m.machine;
    words_append_n(&command, m.procs.n, (char *const *)m.procs.at);
    if (s->dilation || s->machine)
        words_append(&command, "--");
    if (s->dilation)
        words_append_all(&command, "--dilation", s->dilation);
    if (s->machine)
        words_append_all(&command, "--machine", s->machine);
    return command;
}

void life_begin(const struct fabric_of *f, struct life_start *s)
{
    struct words command = start_command(f, s);
    int rc, asked;

    signals_hold();
    rc = signals_pass(run_beside(&command), SIGTERM, &asked); /* trib-keep takes no SIGHUP */
    if (!rc)
        signals_stop_at_end(command.at[0], f->dir);
    signals_release();
    if (rc || asked)
        exit(asked ? asked : rc);
}

static struct words list_command(const char *dir)
{
    struct words command = {0};

    words_append_all(&command, find_program("trib-keep"), "list", dir);
    return command;
}

/* Whether a line ends with "not ready yet". */
static bool some_not_ready(const char *lines)
{
    static const char late[] = "not ready yet";
    size_t n = sizeof(late) - 1;

    for (const char *at = lines; (at = strstr(at, late)) != NULL; at += n)
        if (!at[n] || at[n] == '\n')
            return true;
    return false;
}

void life_wait_ready(const char *dir)
{
    struct words command = list_command(dir);
    char *lines = NULL;

    for (unsigned i = 0; i < READY_LOOKS; i++) {
        run_output(&command, true, &lines);
        if (!some_not_ready(lines))
            return;
        usleep(1000 * LOOK_MS);
    }
    for (char *at = lines; *at; at++)
        if (*at == '\t' || *at == '\n')
            *at = ' ';
    die("the fabric %s is not ready after a minute: %s ", fabric_of_name(dir), lines);
}

int life_wait_gone(const char *dir, double seconds)
{
    struct timespec t0, t;
    int sig = 0;

    signals_hold();
    clock_gettime(CLOCK_MONOTONIC, &t0);
    while (!sig && fabric_of_alive(dir)) {
        double left;

        clock_gettime(CLOCK_MONOTONIC, &t);
        left = seconds - (double)(t.tv_sec - t0.tv_sec) - (double)(t.tv_nsec - t0.tv_nsec) * 1e-9;
        if (seconds >= 0 && left <= 0)
            break;
        sig = signals_next(seconds >= 0 && left < LOOK_MS * 1e-3 ? (int)(left * 1e3) + 1 : LOOK_MS);
    }
    return sig ? sig : signals_next(0);
}

/* ---- up ---- */

struct up {
    struct life_start start;
    const char *launch;
    bool wait;
};

static const char *value_of(int n, char **words)
{
    return n > 1 ? words[1] : "";
}

static bool is_count(const char *word)
{
    if (*word < '1' || *word > '9')
        return false;
    while (isdigit((unsigned char)*word))
        word++;
    return !*word;
}

/* Reads an option; returns its number of words. */
static int up_option(struct up *u, int n, char **words)
{
    const char *value = value_of(n, words);

    if (!strcmp(words[0], "--wait")) {
        u->wait = true;
        return 1;
    }
    if (!strcmp(words[0], "--dilation")) {
        if (!is_count(value))
            die("found --dilation '%s', expected an integer of 1 or more", value);
        u->start.dilation = value;
    } else if (!strcmp(words[0], "--machine")) {
        if (!conf_file_is_name(value))
            die("found --machine '%s', expected the name of a machine", value);
        u->start.machine = value;
    } else if (!strcmp(words[0], "--launch")) {
        if (!*value)
            die("found no launcher, expected --launch ssh, mpirun, srun, or a command that is "
                "followed by an address");
        u->launch = value;
    } else {
        die("found '%s', expected --dilation N, --machine NAME, --launch HOW or --wait", words[0]);
    }
    return 2;
}

/* The machine of the fabric that this one is; NULL: it is none. */
static const char *machine_here(const char *conf)
{
    struct machine_choice m;
    char *why;

    return processes_choose(&m, conf, NULL, &why) ? m.machine : NULL;
}

static int up_everywhere(const struct fabric_of *f, const struct up *u)
{
    struct fabric *fabric = fabric_of_load(f->conf);
    bool machines = fabric->n_machines;
    struct words command;
    int rc;

    fabric_free(fabric);
    if (!machines)
        die("found --launch, expected a conf with machines: %s has none", f->conf);
    if (u->start.machine || u->wait)
        die("found --launch with --machine or --wait, expected one of them");
    if (where_run())
        die("found --launch and TRIB_RUN, expected the run directory that each machine takes by "
            "itself");
    command = launch_command("up", machine_here(f->conf), launch_how(f->dir, u->launch), f);
    if (u->start.dilation)
        words_append_all(&command, "--dilation", u->start.dilation);
    rc = run_whole(&command, false);
    if (!rc && where_is_dir(f->dir))
        launch_note(f->dir, u->launch);
    return rc;
}

/* Files of the fabric's processes that end with `end`, sorted. */
static struct words files_of(const char *dir, const char *end)
{
    struct words files = {0};
    struct dirent *e;
    DIR *d = opendir(text_of("%s/proc", dir));

    while (d && (e = readdir(d)))
        if (*e->d_name != '.' && text_ends(e->d_name, end))
            words_append(&files, text_of("proc/%s", e->d_name));
    if (d)
        closedir(d);
    words_sort(&files);
    return files;
}

/* Prints why ports did not open, or what is wrong with their interfaces. */
static void say_ports(const char *dir)
{
    static const char said[] = "tributary: port";
    struct words logs = files_of(dir, ".log");

    for (unsigned i = 0; i < logs.n; i++) {
        char *rest = text_of("%s", fabric_of_file(dir, logs.at[i])), *line;

        while ((line = strsep(&rest, "\n")) != NULL)
            if (text_begins(line, said))
                printf("  port%s\n", line + sizeof(said) - 1);
    }
}

static int fabric_stop(const char *dir, bool quiet)
{
    struct words command = {0};

    words_append_all(&command, find_program("trib-keep"), "stop", dir);
    return run_whole(&command, quiet);
}

static int fabric_down(const char *dir)
{
    if (fabric_stop(dir, false))
        return 1;
    printf("fabric %s is down\n", fabric_of_name(dir));
    return 0;
}

/* Tells the service manager that the fabric is up. */
static void tell_service(const char *dir)
{
    struct words command = {0};
    char *path = text_of("%s", text_env("PATH") ? text_env("PATH") : ""), *at;

    while (text_env("NOTIFY_SOCKET") && (at = strsep(&path, ":")) != NULL) {
        const char *program = text_of("%s/systemd-notify", *at ? at : ".");

        if (access(program, X_OK))
            continue;
        words_append_all(&command, program, "--ready",
                         text_of("--status=fabric %s is up", fabric_of_name(dir)));
        run_whole(&command, false);
        return;
    }
}

/* Waits until the fabric is down, which is an error, or a signal asks to take it down. */
static int stay_up(const char *dir)
{
    int sig;

    signals_hold(); /* before anybody is told that it is up */
    tell_service(dir);
    sig = life_wait_gone(dir, -1);
    signals_stop_at_end(NULL, NULL);
    if (!sig)
        die("the fabric %s is down", fabric_of_name(dir));
    if (fabric_of_alive(dir))
        return fabric_down(dir);
    fabric_stop(dir, true); /* the signal has ended its processes, too: this clears what they
                             * left */
    printf("fabric %s is down\n", fabric_of_name(dir));
    return 0;
}

int command_up(int n, char **words)
{
    struct up u = {.start = {.stays = true}};
    struct fabric_of f;
    int rc = 0;

    if (n < 1)
        die("found no CONF, expected: trib up CONF [--dilation N] [--machine NAME] [--launch HOW] "
            "[--wait]");
    f = fabric_of_conf(words[0]);
    for (int i = 1; i < n;)
        i += up_option(&u, n - i, words + i);
    if (u.launch)
        return up_everywhere(&f, &u);
    life_begin(&f, &u.start);
    printf("fabric %s is up%s%s: %u switch process(es), run directory %s\n", fabric_of_name(f.dir),
           u.start.machine ? " on machine " : "", u.start.machine ? u.start.machine : "",
           files_of(f.dir, ".ready").n, f.dir);
    say_ports(f.dir);
    if (u.wait)
        rc = stay_up(f.dir);
    signals_stop_at_end(NULL, NULL);
    return rc;
}

/* ---- down ---- */

/* Removes --machines if it is the first word, or the second, then with all words behind it. True:
 * it was there. */
static bool down_everywhere(int *n, char ***words)
{
    bool found = false;

    if (*n > 0 && !strcmp((*words)[0], "--machines")) {
        found = true;
        ++*words;
        --*n;
    }
    if (*n > 1 && !strcmp((*words)[1], "--machines")) {
        found = true;
        *n = 1;
    }
    return found;
}

static void order_down(const char *dir)
{
    static const struct telemetry_whom trunk = {.proc = FAB_TRUNK};
    bool ok;

    if (!where_is_file(text_of("%s/machine", dir)))
        die("found --machines, expected a fabric of several machines: %s is on this one alone",
            fabric_of_name(dir));
    answers_ask(dir, "/trib/down", &trunk, &ok);
    if (!ok)
        exit(1);
    usleep(1000 * SAID_MS);
}

int command_down(int n, char **words)
{
    bool everywhere = down_everywhere(&n, &words);
    struct fabric_of f;

    if (n > 1 || (n && *words[0] == '-'))
        die("found '%s', expected: trib down [CONF] [--machines]", words_said(n, words));
    if (!n) {
        f = fabric_of_none(true);
    } else {
        f = fabric_of_conf(words[0]);
        if (fabric_of_alive(f.dir)) /* once: its last process may end meanwhile */
            fabric_of_check_conf(&f);
        else if (!where_is_dir(f.dir))
            fabric_of_not_up(f.dir);
    }
    if (everywhere)
        order_down(f.dir);
    return fabric_down(f.dir);
}
