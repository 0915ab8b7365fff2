/* SPDX-License-Identifier: BSD-3-Clause */
/* The process that runs the NIC: finds it, rings its bell, waits until it accepts this process. */
#include "host/hca/io/process_priv.h"
#include "machine/silent.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define UP_WAIT_MS      5000
#define LOOK_MS         100 /* interval of looks at the state of the NIC's process */
#define STOPPED_WAIT_MS 1000
#define BUSY_WAIT_MS                                                                               \
    15000 /* if it listens: on a machine of many more processes than cores it answers late */

/* Held around shared_refresh(), which is not thread-safe. */
static pthread_mutex_t view_lock = PTHREAD_MUTEX_INITIALIZER;

void process_nic_forked(void)
{
    pthread_mutex_init(&view_lock, NULL);
}

void process_find_nic(struct process_hca *p)
{
    uint16_t node = fabric_node_index(p->fab, p->host);
    uint16_t link = p->host->ports[p->dev.port].link;
    const struct switch_view *nic;

    pthread_mutex_lock(&view_lock);
    if (p->nic)
        shared_forget(p->rd->sh, p->nic);
    shared_refresh(p->rd->sh, p->rd->path);
    nic = shared_switch_of(p->rd->sh, node);
    pthread_mutex_unlock(&view_lock);
    pthread_mutex_lock(&p->lock);
    p->nic = nic;
    if (nic && link != FAB_NONE) {
        p->link_down = &nic->page->link_down[link];
        p->link_cut = &nic->page->cut[link];
    }
    pthread_mutex_unlock(&p->lock);
}

bool process_link_is_up(const struct process_hca *p)
{
    return !atomic_load(p->link_down) && !(atomic_load(p->link_cut) & 1);
}

/* Wakes the NIC's loop, without new frames. */
static void process_wake_nic(struct process_hca *p)
{
    if (p->nic)
        loop_bell_ring(p->nic->page, p->nic->bell, &p->nic_rung);
}

void process_ring_nic(struct process_hca *p)
{
    bell_stamp(&p->page->rung_ns);
    process_wake_nic(p);
}

void process_wake(struct process_hca *p)
{
    bell_wake(p->bell);
    if (p->sleep_bell != p->bell)
        bell_wake(p->sleep_bell);
}

/* The trib-switch that runs the NIC; NULL: not known. */
static const char *process_nic_name(const struct process_hca *p)
{
    return p->nic                            ? p->nic->name
           : p->host->proc < p->fab->n_procs ? p->fab->procs[p->host->proc].name
                                             : NULL;
}

/* Total time to wait for the NIC. It depends on the present state of the NIC's process. */
static int wait_ms(const struct process_hca *p)
{
    const char *name = process_nic_name(p);

    if (name && silent_has_died(p->rd->path, name))
        return 0;
    if (name && silent_is_stopped(p->rd->path, name))
        return STOPPED_WAIT_MS;
    return io_port_fd(p->port) < 0 ? UP_WAIT_MS : BUSY_WAIT_MS;
}

static void say_no_nic(const struct process_hca *p)
{
    const char *why, *name = process_nic_name(p);
    char silent[SILENT_WHY];

    (void)io_port_refused(p->port, &why);
    if (why) {
        fprintf(stderr, "tributary: %s: the NIC refuses this process: %s\n", p->host->name, why);
        return;
    }
    fprintf(stderr,
            "tributary: %s: no NIC answers at %s, expected a running trib-switch (is the fabric "
            "up?)\n",
            p->host->name, p->sock);
    if (name) {
        silent_why(p->rd->path, name, -EAGAIN, silent, sizeof(silent));
        fprintf(stderr, "tributary: %s\n", silent);
    }
}

/* The NIC accepts the connection in its loop; the bell wakes that loop. */
int process_wait_nic(struct process_hca *p)
{
    int64_t start = clock_mono_ns(), looked = start;

    while (!io_port_up(p->port)) {
        int64_t now = clock_mono_ns();

        if (now > looked + LOOK_MS * 1000000LL) {
            looked = now;
            if (now > start + wait_ms(p) * 1000000LL) {
                say_no_nic(p);
                return -ETIMEDOUT;
            }
        }
        process_wake_nic(p);
        usleep(1000);
    }
    p->up = p->connected = true;
    process_find_nic(p);
    return 0;
}
