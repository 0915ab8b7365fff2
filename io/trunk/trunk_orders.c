/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Orders of one machine to all: to change a link, which every switch process of the fabric has to know,
 * or to take the fabric down. An order is sent several times, because datagrams may be lost, and is
 * carried out once. A later order replaces one that is still being repeated.
 */
#include "fabric/link_terms.h"
#include "io/link_change.h"
#include "machine/telemetry_client.h"
#include "system/process.h"
#include "io/trunk/trunk_priv.h"

#include <endian.h>
#include <errno.h>
#include <jansson.h>
#include <rte_common.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMES    5
#define ANSWER_S 2

/* Repeats an order only in the session that first had it: a later session would carry it out again. */
static bool may_tell(struct trunk_peer *p)
{
    if (!peer_alive(p) || (p->told_in && p->told_in != p->session.mine))
        return false;
    p->told_in = p->session.mine;
    return true;
}

static void trunk_orders_say(struct trunk *t)
{
    uint8_t m[sizeof(struct trunk_header) + sizeof(struct trunk_order) + TRUNK_ORDER_TEXT];

    for (unsigned i = 0; i < t->n; i++) {
        if (i == t->me || !may_tell(&t->peer[i]))
            continue;
        memcpy(trunk_body(m), &t->given.order, sizeof(t->given.order));
        memcpy(trunk_body(m) + sizeof(t->given.order), t->given.text, t->given.bytes);
        peers_send(t, i, TRUNK_ORDER, m,
                   sizeof(struct trunk_header) + sizeof(t->given.order) + t->given.bytes);
    }
    t->given.left--;
}

void orders_give(struct trunk *t, enum trunk_what what, const char *text)
{
    uint32_t number = be32toh(t->given.order.number) + 1;

    t->given.order = (struct trunk_order){htobe32(number), htobe32(what)};
    t->given.left = TIMES;
    for (unsigned i = 0; i < t->n; i++)
        t->peer[i].told_in = 0;
    t->given.bytes = strnlen(text, TRUNK_ORDER_TEXT);
    memcpy(t->given.text, text, t->given.bytes);
    trunk_orders_say(t);
}

void orders_tick(struct trunk *t)
{
    if (t->given.left)
        trunk_orders_say(t);
}

/* ---- rates and latencies ---- */

int orders_create(struct trunk *t)
{
    t->terms = calloc(t->fab->n_links + 1u, sizeof(*t->terms));
    for (unsigned i = 0; t->terms && i < t->fab->n_links; i++)
        t->terms[i] = link_terms_of_conf(t->fab, i);
    return t->terms ? 0 : -ENOMEM;
}

/* Where all links are changed, links to the outside keep their terms. */
static int check_link(const struct trunk *t, unsigned link, bool all, const struct link_change *c,
                      char *why, size_t size)
{
    const struct link_terms conf = link_terms_of_conf(t->fab, link);
    const struct link_terms after = link_change_terms(c, &t->terms[link], &conf);
    char what[LINK_TERMS_WHY];

    if (!link_change_sets_terms(c) || (all && link_terms_fixed(t->fab, link)) ||
        !link_terms_check(t->fab, link, &after, what, sizeof(what)))
        return 0;
    if (all)
        snprintf(why, size, "%s (%s)", what, t->fab->links[link].name);
    else
        snprintf(why, size, "%s", what);
    return -EINVAL;
}

int orders_check(struct trunk *t, const char *params, char *why, size_t size)
{
    const size_t len = strcspn(params, ",");
    struct link_change c = {0};
    char name[128];
    int link, rc = 0;
    bool all;

    snprintf(name, sizeof(name), "%.*s", (int)len, params);
    all = !strcmp(name, "all");
    link = all ? 0 : fabric_link_by_name(t->fab, name);
    if (link < 0 || !params[len]) /* the local processes refuse it */
        return 0;
    if (link_change_parse(&c, params + len + 1, why, size))
        return -EINVAL;
    for (unsigned i = all ? 0 : (unsigned)link; !rc && i < (all ? t->fab->n_links : link + 1u); i++)
        rc = check_link(t, i, all, &c, why, size);
    for (unsigned i = all ? 0 : (unsigned)link; !rc && i < (all ? t->fab->n_links : link + 1u);
         i++) {
        const struct link_terms conf = link_terms_of_conf(t->fab, i);

        if (!link_terms_fixed(t->fab, i))
            t->terms[i] = link_change_terms(&c, &t->terms[i], &conf);
    }
    return rc;
}

/* ---- carrying out, in a thread: switch processes may take a while to answer ---- */

/* A copy of all that the thread reads: the trunk and its fabric may end first. */
struct change {
    char dir[RUN_PATH], text[TRUNK_ORDER_TEXT + 1];
    unsigned n;
    char proc[][FAB_NAME]; /* the switch processes of this machine */
};

static void *change_link(void *arg)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    struct change *c = arg;

    pthread_mutex_lock(&one);
    for (unsigned i = 0; i < c->n; i++) {
        int fd = telemetry_client_open(c->dir, c->proc[i], ANSWER_S);

        if (fd < 0)
            continue;
        json_decref(telemetry_client_ask(fd, "/trib/link", c->text));
        close(fd);
    }
    pthread_mutex_unlock(&one);
    free(c);
    return NULL;
}

static void begin_change(const struct trunk *t, const uint8_t *text, size_t bytes)
{
    struct change *c = calloc(1, sizeof(*c) + t->fab->n_procs * sizeof(c->proc[0]));
    pthread_t thread;

    if (!c)
        return;
    for (unsigned i = 0; i < t->fab->n_procs; i++)
        if (t->fab->procs[i].machine == t->me)
            snprintf(c->proc[c->n++], FAB_NAME, "%s", t->fab->procs[i].name);
    memcpy(c->dir, t->cfg.rd->path, sizeof(c->dir));
    memcpy(c->text, text, RTE_MIN(bytes, (size_t)TRUNK_ORDER_TEXT));
    if (pthread_create(&thread, NULL, change_link, c))
        free(c);
    else
        pthread_detach(thread);
}

/* Stops the keeper, which ends all processes of its fabric (host/keep). Without one, `trib down` must. */
static void take_down(const struct trunk *t, unsigned from)
{
    char name[PROCESS_NAME];

    process_file(getppid(), "comm", name, sizeof(name));
    fprintf(stderr, "trib-switch: machine %s takes the fabric down\n", t->fab->machines[from].name);
    if (!strncmp(name, "trib-keep", 9))
        kill(getppid(), SIGTERM);
}

void orders_heard(struct trunk *t, unsigned from, const uint8_t *body, size_t bytes)
{
    struct trunk_peer *p = &t->peer[from];
    struct trunk_order o;

    memcpy(&o, body, sizeof(o));
    if (!t->sh || be32toh(o.number) <= p->order || p->other_conf)
        return;
    p->order = be32toh(o.number);
    if (be32toh(o.what) == TRUNK_LINK) {
        char text[TRUNK_ORDER_TEXT + 1], why[192];

        snprintf(text, sizeof(text), "%.*s",
                 (int)RTE_MIN(bytes - sizeof(o), (size_t)TRUNK_ORDER_TEXT),
                 (const char *)body + sizeof(o));
        (void)orders_check(t, text, why, sizeof(why)); /* the machine that gave it reports errors */
        begin_change(t, body + sizeof(o), bytes - sizeof(o));
    } else if (be32toh(o.what) == TRUNK_DOWN)
        take_down(t, from);
}
