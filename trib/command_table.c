/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/command_table.h"

#include "trib/find.h"
#include "trib/run/run.h"
#include "trib/usage.h"

#include <stdlib.h>
#include <string.h>

static const struct command_row rows[] = {
    {.name = "plan",
     .args = "[OPTION...] CONF",
     .options = "",
     .text = "print nodes, links, addresses and aggregation trees; starts nothing",
     .run = command_plan,
     .program = "trib-plan"},
    {.name = "import",
     .args = "FILE... [OPTION...]",
     .options = "",
     .text = "write the conf of a fabric that exists, from the output of ibnetdiscover or "
             "iblinkinfo, or from NCCL topologies",
     .program = "trib-import"},
    {.name = "up",
     .args = "CONF [--dilation N] [--machine NAME] [--launch HOW] [--wait]",
     .options = "--dilation --machine --launch --wait",
     .text = "start the fabric's switch processes; fabric time runs N times slower than wall "
             "time; --machine: of a conf with machines, those of this one, by default of the one "
             "that has an address of this machine; --launch: those of all machines, or none, by "
             "ssh, mpirun, srun, or a command as --rsh of trib perf; --wait: end when they do, "
             "and take them down at a signal, as a service does",
     .run = command_up,
     .looks = true,
     .answers = true},
    {.name = "status",
     .args = "[CONF] [--all] [--machines] [--links] [--groups] [--watch [SECONDS]] [-n N] "
             "[--json]",
     .options = "--all --machines --links --groups --watch -n --json",
     .text = "print which fabrics are up, the state of their links, and counters that are not "
             "zero; --all: those of all users, with processes, nodes and since when; --machines: "
             "as all machines of the conf say it, each by the launcher of trib up or TRIB_RSH, "
             "with the other options too; --links: rate, utilisation, queue, pauses and drops of "
             "each; --groups: members, slots, job and owner of each; --watch: again every "
             "second, or every SECONDS; -n: N times; --json: all of that as JSON",
     .run = command_status,
     .looks = true,
     .answers = true},
    {.name = "metrics",
     .args = "[CONF] [OPTION...]",
     .options = "",
     .text = "print metrics of the fabrics that are up, or serve them with --listen "
             "ADDRESS:PORT, as OpenMetrics text for Prometheus",
     .run = command_metrics,
     .program = "trib-metrics",
     .looks = true,
     .answers = true},
    {.name = "top",
     .args = "[CONF] [OPTION...]",
     .options = "",
     .text = "show links, queues, groups, jobs and processes of a fabric while it runs; h is the "
             "help",
     .run = command_top,
     .program = "trib-top",
     .looks = true,
     .answers = true},
    {.name = "exec",
     .args = "[--isolate] [--clock fabric [--scale-waits]] [--no-nccl-env] [CONF] [HOST] -- CMD "
             "[ARG...]",
     .options = "--isolate --clock --scale-waits --no-nccl-env",
     .text = "run a verbs program as a host of the fabric: HOST, else TRIB_HOST; @rank: by the "
             "rank that mpirun, srun or torchrun gave it; --isolate: it sees no other process, "
             "and of the fabric only this host; --clock fabric: the system's clocks are fabric "
             "time for it, so that it prints the fabric's bandwidths; --scale-waits: its waits "
             "and timeouts too; --clock wall: neither, inside of a CMD that has them; "
             "--no-nccl-env: NCCL's variables stay as they are",
     .run = command_exec,
     .looks = true,
     .answers = true},
    {.name = "shell",
     .args = "[--isolate] [--clock fabric [--scale-waits]] [--no-nccl-env] [CONF] HOST",
     .options = "--isolate --clock --scale-waits --no-nccl-env",
     .text = "start a shell in which every program runs as that host",
     .run = command_shell,
     .looks = true,
     .answers = true},
    {.name = "perf",
     .args = "[CONF] [COLLECTIVE] [OPTION...]",
     .options = "",
     .text = "measure collectives; starts a fabric that is not up and stops it again",
     .run = command_perf,
     .program = "trib-perf",
     .looks = true},
    {.name = "sim",
     .args = "CONF [COLLECTIVE] [OPTION...]",
     .options = "",
     .text = "the same in virtual time, for any conf; --workload FILE: a training step; --jobs "
             "FILE: several jobs; --chaos SEED: a drawn case that is checked",
     .run = command_sim,
     .program = "trib-sim"},
    {.name = "model",
     .args = "CONF [COLLECTIVE] [OPTION...]",
     .options = "",
     .text = "print predictions by closed forms: levels, times, rooflines of training; --bom "
             "GPUS: a bill of materials",
     .run = command_model,
     .program = "trib-model"},
    {.name = "trace",
     .args = "FILE [OPTION...]",
     .options = "",
     .text = "say what is in an application's trace and what is wrong with it: ranks, "
             "operations, bytes, critical path, messages and collectives that do not fit",
     .program = "trib-trace"},
    {.name = "nccl",
     .args = "CONF [OPTION...] [-- PROGRAM [ARG...]]",
     .options = "",
     .text = "time NCCL on the fabric, its ring and SHARP in the switches, beside trib sim and "
             "theory; or run an NCCL program as its ranks, a host each; needs a GPU, which all "
             "ranks may share",
     .program = "trib-nccl"},
    {.name = "calibrate",
     .args = "CONF FILE... [-o OUT]",
     .options = "",
     .text = "fit a conf's costs to results of nccl-tests, trib, perftest or OSU, and write a "
             "conf with them",
     .program = "trib-calibrate"},
    {.name = "report",
     .args = "RESULT... [-o FILE]",
     .options = "",
     .text = "make one page of HTML of files of results and time lines: figures, what binds, "
             "fidelity, how to run it again",
     .program = "trib-report"},
    {.name = "explain",
     .args = "FILE [--json]",
     .options = "",
     .text = "say why an operation was slow, from the time line that trib sim or trib perf wrote "
             "with --timeline FILE",
     .program = "trib-explain"},
    {.name = "check-protocol",
     .args = "PROTOCOL [KEY=VALUE...] [OPTION...]",
     .options = "",
     .text = "check an aggregation protocol, FILE.so or the name of a built-in one, in a network "
             "of its own: exactness, loss, duplication, reordering, several jobs, leaks, work, "
             "and what others may send",
     .program = "trib-check-protocol"},
    {.name = "check-nccl-plugin",
     .args = "FILE [-c CONF] [OPTION...]",
     .options = "",
     .text = "check a network plug-in of NCCL's by all its tables, without NCCL and GPUs: "
             "messages, groups, memory, reductions, ranks that die; -c: its ranks are hosts of a "
             "fabric",
     .program = "trib-check-nccl-plugin"},
    {.name = "capture",
     .args = "[CONF] LINK... -o FILE [-t SECONDS] [--filter EXPRESSION]",
     .options = "-o -t --filter",
     .text = "write frames as they are on a link, as pcap; ends with Ctrl-C, or after SECONDS. "
             "Several links, and a FILE.pcapng, are one pcapng with an interface for each; -o -: "
             "to standard output, as they come, for Wireshark. EXPRESSION is one of "
             "pcap-filter(7)",
     .run = command_capture,
     .looks = true,
     .answers = true},
    {.name = "link",
     .args = "[CONF] [LINK|all [CHANGE...]]",
     .options = "",
     .text = "list links with faults, or show or change one or all; CHANGE is down, up, "
             "rate=100Gb/s, latency=600ns, loss=0.1%, dup=, reorder=, corrupt=, jitter=2us, "
             "seed=7 (of these draws), or clear: all as in the conf",
     .run = command_link,
     .looks = true,
     .answers = true},
    {.name = "node",
     .args = "[CONF] NODE [down|up|restart]",
     .options = "",
     .text = "show or change all links of a node; restart: a switch is down for a moment and "
             "then has no memory of its groups",
     .run = command_node,
     .looks = true,
     .answers = true},
    {.name = "faults",
     .args = "[CONF] PLAN",
     .options = "",
     .text = "play a fault plan, as of trib sim --faults, on a fabric that is up: links and "
             "nodes change at its fabric times from now on",
     .run = command_faults,
     .looks = true,
     .answers = true},
    {.name = "telemetry",
     .args = "[CONF] [PROCESS] [COMMAND]",
     .options = "",
     .text = "send a telemetry command to the fabric's switch processes, or to one; /, the "
             "default, lists the commands",
     .run = command_telemetry,
     .looks = true,
     .answers = true},
    {.name = "down",
     .args = "[CONF] [--machines]",
     .options = "--machines",
     .text = "stop the fabric; nothing is left behind; --machines: on all machines of the conf "
             "that are there",
     .run = command_down,
     .looks = true,
     .answers = true},
    {.name = "help",
     .args = "[COMMAND]",
     .options = "",
     .text = "print this text, or that of a command"},
    {.name = "version", .args = "", .options = "", .text = "print the version"},
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

const struct command_row *command_table_row(unsigned i)
{
    return i < N_ROWS ? &rows[i] : NULL;
}

const struct command_row *command_table_find(const char *name)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

struct words command_table_names(void)
{
    struct words names = {0};

    for (unsigned i = 0; i < N_ROWS; i++)
        words_append(&names, rows[i].name);
    return names;
}

int command_table_run(const struct command_row *row, int n, char **words)
{
    struct words command = {0};

    if (row->run)
        return row->run(n, words);
    if (row->program[0] && !strcmp(row->name, "check-nccl-plugin"))
        setenv("TRIB_COMMAND", find_myself(), 1);
    words_append(&command, find_program(row->program));
    words_append_n(&command, (unsigned)n, words);
    run_become(&command);
}
