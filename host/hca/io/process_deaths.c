/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names each trib-switch that dies on the program's standard error, once. Verbs cannot report it:
 * IBV_EVENT_PORT_ERR covers only the processes that run this host's NIC and the switch next to it,
 * and retries to others end long after a death.
 *
 * The keeper thread of the port that was opened first looks, because it may open files. A thread
 * that has the program's descriptors prints (process_check_port). A launcher that looks itself sets
 * PROCESS_MONITOR_ENV, and then nobody looks here.
 */
#include "host/hca/io/process_priv.h"
#include "machine/process_monitor.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_NS 1000000000LL

static struct {
    _Atomic(struct process_hca *) by; /* the port whose keeper looks; NULL: none yet */
    struct process_monitor *watch;    /* NULL: nothing can be seen (in a sandbox) or nobody looks */
    int64_t looked_ns;
} deaths;

void process_deaths_forked(void)
{
    atomic_store(&deaths.by, NULL);
    deaths.watch = NULL; /* leaked, as the parent's thread may have been changing it at the fork */
}

static void process_deaths_begin(struct process_hca *p)
{
    unsigned h = 0;
    uint16_t host;

    while (h < p->fab->n_hosts && &p->fab->nodes[p->fab->hosts[h]] != p->host)
        h++;
    host = (uint16_t)h;
    if (getenv(PROCESS_MONITOR_ENV) || !log_on("hca", LOG_WARN) || h == p->fab->n_hosts)
        return;
    if (process_monitor_start(&deaths.watch, p->rd, p->fab, &host, 1)) {
        process_monitor_stop(deaths.watch);
        deaths.watch = NULL;
    }
}

void process_look_for_deaths(struct process_hca *p)
{
    struct process_hca *nobody = NULL;
    int64_t now = clock_mono_ns();
    char text[PROCESS_DEATH];
    bool needed;

    if (atomic_compare_exchange_strong(&deaths.by, &nobody, p))
        process_deaths_begin(p);
    if (nobody && nobody != p)
        return;
    if (!deaths.watch || now - deaths.looked_ns < LOOK_NS)
        return;
    deaths.looked_ns = now;
    pthread_mutex_lock(&p->lock);
    needed = !*p->death; /* the last death has been printed */
    pthread_mutex_unlock(&p->lock);
    if (!needed || !process_monitor_died(deaths.watch, text, sizeof(text), &needed))
        return;
    if (access(p->rd->path, F_OK))
        snprintf(text, sizeof(text), "the fabric %s is down: its run directory %s is gone",
                 p->fab->name, p->rd->path);
    pthread_mutex_lock(&p->lock);
    memcpy(p->death, text, sizeof(p->death));
    pthread_mutex_unlock(&p->lock);
    if (access(p->rd->path, F_OK)) { /* the fabric is down: name no further process */
        process_monitor_stop(deaths.watch);
        deaths.watch = NULL;
    }
    process_wake(p);
}

void process_say_death(struct process_hca *p)
{
    if (!*p->death)
        return;
    fprintf(stderr, "tributary: %s: %s\n", p->host->name, p->death);
    *p->death = 0;
}
