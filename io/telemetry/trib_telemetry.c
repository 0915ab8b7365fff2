/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-telemetry DIR [COMMAND]: queries the telemetry of running trib-switch processes.
 */
#include "system/atomic_output.h"
#include "base/options.h"
#include "machine/telemetry_client.h"

struct client_opts {
    const char *dir, *command;
    struct telemetry_whom whom;
};

#define AT(f) .offset = offsetof(struct client_opts, f)

static const struct option_row which[] = {
    {.name = "proc",
     .arg = "NAME",
     AT(whom.proc),
     .type = OPTION_TEXT,
     .shown = "all",
     .help = "send the command to this process alone"},
    {.name = "skip",
     .arg = "NAMES",
     AT(whom.skip),
     .type = OPTION_TEXT,
     .shown = "none",
     .help = "processes that are not asked, between commas"},
    {.name = "seconds",
     .arg = "N",
     AT(whom.seconds),
     .type = OPTION_UINT,
     .initial = "10",
     .min = 1,
     .max = 3600,
     .help = "wait so long for processes that do not answer, all of them together"},
};
static const struct option_row words[] = {
    {.arg = "DIR",
     AT(dir),
     .type = OPTION_TEXT,
     .how = OPTION_REQUIRED,
     .help = "run directory of a fabric that is up"},
    {.arg = "COMMAND",
     AT(command),
     .type = OPTION_TEXT,
     .initial = "/",
     .help = "/ lists the commands; /trib/ports, /trib/links, /trib/an, /trib/totals, "
             "/trib/link,LINK,CHANGE, /trib/link_bytes and those of DPDK, such as /eal/heap_list"},
};
static const struct option_group groups[] = {{"Processes", which, 3}, {NULL, NULL, 0}};
static const struct option_note exits[] = {
    {"0", "a process executed the command"},
    {"1", "none did, or none runs"},
    {"2", "the command line is wrong"},
    {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-telemetry",
    .summary = "send a telemetry command to the switch processes of a fabric",
    .synopsis = "[OPTION...] DIR [COMMAND]",
    .text = "Sends COMMAND to the telemetry sockets of the fabric's trib-switch processes, which "
            "are those of DPDK, and prints a JSON object with the answer of each. trib telemetry "
            "finds the run directory.",
    .words = words,
    .n_words = 2,
    .groups = groups,
    .exits = exits,
    .see = "trib(1), trib-switch(1)",
};

int main(int argc, char **argv)
{
    struct client_opts o = {.dir = NULL};
    struct option_result r;
    int rc;

    if (!options_begin(&program, (void *[]){&o}, argc, argv, &r, &rc))
        return rc;
    rc = telemetry_client_query("trib-telemetry", o.dir, o.command, &o.whom);
    return atomic_output_end("trib-telemetry") && !rc ? 1 : rc;
}
