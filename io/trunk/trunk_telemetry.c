/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs in DPDK's telemetry thread, under the trunk's lock. Commands that clients send to every process
 * of a fabric but only switch processes can answer have empty answers here.
 */
#include "io/trunk/trunk_priv.h"
#include "machine/link_reader.h"
#include "io/telemetry/telemetry_number.h"

#include <errno.h>
#include <rte_common.h>
#include <rte_telemetry.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>

#define CHANGE_NS 1000000000
#define LOOK_US   2000
#define AGAIN_NS  200000000

static struct trunk *serving;
static pthread_mutex_t serving_lock = PTHREAD_MUTEX_INITIALIZER;

struct trunk_sums {
    uint64_t sent, received, again, overflow;
    unsigned up, n;
};

static struct trunk_sums ends_of(const struct trunk *t, unsigned machine)
{
    struct trunk_sums s = {0};

    for (unsigned i = 0; i < t->n_ends; i++) {
        const struct trunk_end *e = &t->end[i];

        if (e->peer != machine)
            continue;
        s.n++;
        s.up += e->up;
        s.sent += e->sent;
        s.received += e->received;
        s.again += e->again;
        s.overflow += e->overflow;
    }
    return s;
}

static const char *state_of(const struct trunk *t, unsigned machine)
{
    const struct trunk_peer *p = &t->peer[machine];

    return machine == t->me ? "this one"
           : !peer_alive(p) ? p->odd ? "says what cannot be" : "not there"
           : p->other_conf  ? "has another conf"
           : p->far         ? "its clock is not set yet"
           : p->send_failed ? "there, with errors of sending"
           : t->carrier && !carrier_reaches(t, machine) ? "there, frames by UDP"
                                                        : "there";
}

static void machine(const struct trunk *t, unsigned i, struct rte_tel_data *d)
{
    const struct trunk_peer *p = &t->peer[i];
    struct trunk_sums s = ends_of(t, i);
    struct follow_line l;

    rte_tel_data_add_dict_string(d, "state", state_of(t, i));
    telemetry_add(d, "links", s.n);
    telemetry_add(d, "links_up", s.up);
    telemetry_add(d, "frames_sent", s.sent);
    telemetry_add(d, "frames_received", s.received);
    telemetry_add(d, "frames_sent_again", s.again);
    telemetry_add(d, "frames_overflow", s.overflow);
    telemetry_add(d, "send_failed", p->send_failed);
    telemetry_add(d, "port_sent", p->by_port.sent);
    telemetry_add(d, "port_received", p->by_port.received);
    if (i != t->me && follow_line(&p->follow, clock_mono_ns(), &l)) {
        rte_tel_data_add_dict_int(d, "offset_us", (int)(l.offset_ns / 1000));
        rte_tel_data_add_dict_int(d, "drift_ppb", (int)(l.drift * 1e9));
        rte_tel_data_add_dict_int(d, "unsure_ns", (int)l.unsure_ns);
    }
}

static void all_machines(const struct trunk *t, struct rte_tel_data *d)
{
    rte_tel_data_add_dict_string(d, "machine", t->fab->machines[t->me].name);
    rte_tel_data_add_dict_string(d, "clock", t->fab->machines[t->owner].name);
    rte_tel_data_add_dict_string(d, "frames_by", carrier_device(t));
    telemetry_add(d, "clock_unsure_ns", (uint64_t)atomic_load(&t->sh->own_clock->unsure_ns));
    for (unsigned i = 0; i < t->n; i++)
        if (i != t->me)
            rte_tel_data_add_dict_string(d, t->fab->machines[i].name, state_of(t, i));
    for (unsigned r = TRUNK_FINE + 1; r < TRUNK_REFUSALS; r++) {
        char name[32];

        snprintf(name, sizeof(name), "refused_%s", trunk_refusal_name[r]);
        telemetry_add(d, name, t->refused[r]);
    }
}

static void machines(struct trunk *t, const char *params, struct rte_tel_data *d)
{
    int i = params ? 0 : -1;

    rte_tel_data_start_dict(d);
    while (i >= 0 && i < (int)t->n && strcmp(t->fab->machines[i].name, params))
        i++;
    if (i < 0)
        all_machines(t, d);
    else if (i == (int)t->n)
        rte_tel_data_add_dict_string(d, "error", "no such machine");
    else
        machine(t, (unsigned)i, d);
}

/* Waits until the clock has this dilation, at most a second. Repeats the request, which may be lost. */
static void wait_for_change(struct trunk *t, uint32_t dilation)
{
    int64_t now = clock_mono_ns(), until = now + CHANGE_NS, asked = now;
    struct clock_state s = clock_state_of(t->sh->clock);

    while ((s.dilation != dilation || s.change_ns > now) && now < until) {
        pthread_mutex_unlock(&t->lock);
        usleep(LOOK_US);
        pthread_mutex_lock(&t->lock);
        s = clock_state_of(t->sh->clock);
        now = clock_mono_ns();
        if (s.dilation != dilation && now - asked > AGAIN_NS) {
            trunk_clock_dilate(t, dilation);
            asked = now;
        }
    }
}

static void trunk_telemetry_dilation(struct trunk *t, const char *params, struct rte_tel_data *d)
{
    char *end = NULL;
    unsigned long n = params ? strtoul(params, &end, 10) : 0;

    rte_tel_data_start_dict(d);
    if (params && (end == params || *end || !n || n > UINT32_MAX || *params == '-')) {
        rte_tel_data_add_dict_string(d, "error", "expected a dilation of 1 to 4294967295");
        return;
    }
    if (params) {
        trunk_clock_dilate(t, (uint32_t)n);
        wait_for_change(t, (uint32_t)n);
    }
    telemetry_add(d, "dilation", clock_dilation(t->sh));
}

/* Says which machines were told: no local process has an end of the link, so none would answer. */
static void say_told(const struct trunk *t, const char *link, size_t len, struct rte_tel_data *d)
{
    const struct fab_link *l;
    char name[128], said[192];
    int i;

    snprintf(name, sizeof(name), "%.*s", (int)len, link);
    i = fabric_link_by_name(t->fab, name);
    l = i >= 0 ? &t->fab->links[i] : NULL;
    if (!l || t->fab->nodes[l->a].machine == t->me || t->fab->nodes[l->b].machine == t->me) {
        rte_tel_data_start_dict(d);
        rte_tel_data_add_dict_string(d, "elsewhere", "told the other machines");
        return;
    }
    snprintf(said, sizeof(said), "%s: told machines %s and %s, which have its ends", l->name,
             t->fab->machines[t->fab->nodes[l->a].machine].name,
             t->fab->machines[t->fab->nodes[l->b].machine].name);
    rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
    rte_tel_data_add_array_string(d, said);
}

/* Passes a change of a link on to the other machines. The client asks the local switch processes itself. */
static void change_link(struct trunk *t, const char *params, struct rte_tel_data *d)
{
    const char *comma = params ? strchr(params, ',') : NULL;
    char why[192];

    if (!comma) {
        rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
        return;
    }
    if (orders_check(t, params, why, sizeof(why))) {
        rte_tel_data_start_dict(d);
        rte_tel_data_add_dict_string(d, "error", why);
        return;
    }
    if (strlen(params) < TRUNK_ORDER_TEXT)
        orders_give(t, TRUNK_LINK, params);
    say_told(t, params, (size_t)(comma - params), d);
}

static void take_down(struct trunk *t, const char *params, struct rte_tel_data *d)
{
    (void)params;
    orders_give(t, TRUNK_DOWN, "");
    rte_tel_data_start_dict(d);
    rte_tel_data_add_dict_string(d, "told", "the other machines");
}

static void no_strings(struct trunk *t, const char *params, struct rte_tel_data *d)
{
    (void)t, (void)params;
    rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
}

/* Answers as a switch process does, for nodes on other machines. The first page asks their trunks. */
static void link_bytes(struct trunk *t, const char *params, struct rte_tel_data *d)
{
    unsigned long first = params ? strtoul(params, NULL, 10) : 0;
    uint64_t bytes;
    unsigned n = 0;

    if (!first)
        counts_refresh(t);
    rte_tel_data_start_array(d, TELEMETRY_NUMBERS);
    for (unsigned long i = first; i < 2ul * t->fab->n_links && n < LINK_READER_PAGE; i++) {
        if (!counts_of(t, (unsigned)i, &bytes))
            continue;
        telemetry_append(d, i);
        telemetry_append(d, bytes);
        n++;
    }
}

/* A table without rows (telemetry_tables.h): the time, no further row, a mask of one column. */
static void no_rows(struct trunk *t, const char *params, struct rte_tel_data *d)
{
    (void)params;
    rte_tel_data_start_array(d, TELEMETRY_NUMBERS);
    telemetry_append(d, (uint64_t)clock_fabric_ps(t->sh));
    telemetry_append(d, 0);
    telemetry_append(d, 1);
}

static void no_counters(struct trunk *t, const char *params, struct rte_tel_data *d)
{
    (void)t, (void)params;
    rte_tel_data_start_dict(d);
}

#define COMMANDS(X)                                                                                \
    X(machines, "/trib/machines",                                                                  \
      "The fabric's machines as this one sees them; counters of one. Parameters: name")            \
    X(trunk_telemetry_dilation, "/trib/dilation",                                                  \
      "Fabric time runs N times slower. Parameters: N, a new one")                                 \
    X(no_strings, "/trib/nodes", "None here")                                                      \
    X(no_strings, "/trib/ports", "None here")                                                      \
    X(no_strings, "/trib/links", "None here")                                                      \
    X(no_strings, "/trib/an", "None here")                                                         \
    X(change_link, "/trib/link",                                                                   \
      "Passes a change of a link on to all machines. Parameters: LINK,...")                        \
    X(take_down, "/trib/down", "Takes the fabric down on the other machines. Takes no parameters") \
    X(no_strings, "/trib/offenders", "None here")                                                  \
    X(link_bytes, "/trib/link_bytes",                                                              \
      "Bytes on links into which nodes of other machines send. Parameters: the first direction")   \
    X(no_rows, "/trib/table/ports", "None here")                                                   \
    X(no_rows, "/trib/table/groups", "None here")                                                  \
    X(no_rows, "/trib/table/slots", "None here")                                                   \
    X(no_rows, "/trib/table/lag", "None here")                                                     \
    X(no_strings, "/trib/table/kinds", "None here")                                                \
    X(no_counters, "/trib/totals", "None here")

static const struct {
    const char *path;
    void (*answer)(struct trunk *t, const char *params, struct rte_tel_data *d);
} commands[] = {
#define X(fn, path, help) {path, fn},
    COMMANDS(X)
#undef X
};

static int trunk_telemetry_answer(const char *cmd, const char *params, struct rte_tel_data *d)
{
    int rc = -ENOENT;

    pthread_mutex_lock(&serving_lock);
    for (size_t i = 0; serving && i < RTE_DIM(commands); i++) {
        if (strcmp(cmd, commands[i].path) != 0)
            continue;
        pthread_mutex_lock(&serving->lock);
        commands[i].answer(serving, params && *params ? params : NULL, d);
        pthread_mutex_unlock(&serving->lock);
        rc = 0;
    }
    pthread_mutex_unlock(&serving_lock);
    return rc;
}

void trunk_telemetry(struct trunk *t)
{
    pthread_mutex_lock(&serving_lock);
    serving = t;
    pthread_mutex_unlock(&serving_lock);
    if (!t)
        return;
#define X(fn, path, help) rte_telemetry_register_cmd(path, trunk_telemetry_answer, help);
    COMMANDS(X)
#undef X
}
