/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes on links into which nodes of other machines send. Clients ask the trunk for these as they ask a
 * switch process (/trib/link_bytes), so that a row counts the whole fabric. The trunk asks the other
 * trunks, repeatedly until all have answered; each reads its own switch processes in a thread.
 */
#include "machine/link_reader.h"
#include "machine/telemetry_client.h"
#include "io/trunk/trunk_priv.h"

#include <endian.h>
#include <errno.h>
#include <rte_common.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_NS  1000000000
#define AGAIN_NS 200000000
#define LOOK_US  1000
#define CLIENT_S 2
#define AT_ONCE  256u /* trunk_counts in a message */
#define UNREAD   UINT64_MAX

static unsigned sender_machine(const struct fabric *f, unsigned d)
{
    return f->nodes[d & 1 ? f->links[d / 2].b : f->links[d / 2].a].machine;
}

int counts_create(struct trunk *t)
{
    t->counts.bytes = calloc(2u * t->fab->n_links + 1, sizeof(*t->counts.bytes));
    t->counts.as_of = calloc(2u * t->fab->n_links + 1, sizeof(*t->counts.as_of));
    return t->counts.bytes && t->counts.as_of ? 0 : -ENOMEM;
}

void counts_destroy(struct trunk *t)
{
    if (t->counts.begun)
        pthread_join(t->counts.thread, NULL);
    free(t->counts.bytes);
    free(t->counts.as_of);
}

/* ---- asking ---- */

static void trunk_counts_ask(struct trunk *t)
{
    uint8_t m[sizeof(struct trunk_header) + sizeof(struct trunk_counts)];
    struct trunk_counts c = {htobe32(t->counts.number)};

    for (unsigned i = 0; i < t->n; i++) {
        if (i == t->me || !peer_usable(&t->peer[i]))
            continue;
        memcpy(trunk_body(m), &c, sizeof(c));
        peers_send(t, i, TRUNK_COUNT, m, sizeof(m));
    }
}

static bool counts_known(const struct trunk *t, unsigned d)
{
    unsigned from = sender_machine(t->fab, d);

    return from == t->me || !peer_usable(&t->peer[from]) || t->counts.as_of[d] == t->counts.number;
}

static bool all_known(const struct trunk *t)
{
    for (unsigned d = 0; d < 2u * t->fab->n_links; d++)
        if (!counts_known(t, d))
            return false;
    return true;
}

void counts_refresh(struct trunk *t)
{
    int64_t now = clock_mono_ns(), until = now + WAIT_NS, asked = now;

    t->counts.number++;
    trunk_counts_ask(t);
    while (!all_known(t) && now < until) {
        pthread_mutex_unlock(&t->lock);
        usleep(LOOK_US);
        pthread_mutex_lock(&t->lock);
        now = clock_mono_ns();
        if (now - asked > AGAIN_NS) {
            trunk_counts_ask(t);
            asked = now;
        }
    }
}

bool counts_of(const struct trunk *t, unsigned d, uint64_t *bytes)
{
    unsigned from = sender_machine(t->fab, d);

    *bytes = peer_usable(&t->peer[from]) ? t->counts.bytes[d] : 0; /* a machine that is gone: 0 */
    return from != t->me && counts_known(t, d);
}

void counts_told(struct trunk *t, unsigned from, const uint8_t *body, size_t bytes)
{
    struct trunk_counts c;
    struct trunk_count p;

    memcpy(&c, body, sizeof(c));
    for (size_t at = sizeof(c); at + sizeof(p) <= bytes; at += sizeof(p)) {
        memcpy(&p, body + at, sizeof(p));
        if (be32toh(p.direction) >= 2u * t->fab->n_links ||
            sender_machine(t->fab, be32toh(p.direction)) != from)
            continue;
        t->counts.bytes[be32toh(p.direction)] = be64toh(p.bytes);
        t->counts.as_of[be32toh(p.direction)] = be32toh(c.number);
    }
}

/* ---- answering ---- */

/* Sends the counts of the local processes, in as many messages as they need. */
static void trunk_counts_tell(struct trunk *t, const uint64_t *sent)
{
    uint8_t m[sizeof(struct trunk_header) + sizeof(struct trunk_counts) +
              AT_ONCE * sizeof(struct trunk_count)];
    struct trunk_counts c = {htobe32(t->counts.asked)};
    const size_t before = sizeof(struct trunk_header) + sizeof(c);
    size_t n = 0;

    for (unsigned d = 0; d <= 2u * t->fab->n_links; d++) {
        bool end = d == 2u * t->fab->n_links;
        struct trunk_count p = {htobe32(d), htobe64(end ? 0 : sent[d])};

        if (n == AT_ONCE || (end && n)) {
            memcpy(trunk_body(m), &c, sizeof(c));
            peers_send(t, t->counts.asker, TRUNK_COUNTS, m, before + n * sizeof(p));
            n = 0;
        }
        if (!end && sent[d] != UNREAD)
            memcpy(m + before + n++ * sizeof(p), &p, sizeof(p));
    }
}

static void *trunk_counts_thread(void *arg)
{
    struct trunk *t = arg;
    uint64_t *sent = malloc((2u * t->fab->n_links + 1) * sizeof(*sent));

    for (unsigned d = 0; sent && d < 2u * t->fab->n_links; d++)
        sent[d] = UNREAD;
    for (unsigned i = 0; sent && i < t->fab->n_procs; i++) {
        int fd = t->fab->procs[i].machine == t->me
                     ? telemetry_client_open(t->cfg.rd->path, t->fab->procs[i].name, CLIENT_S)
                     : -1;

        if (fd < 0)
            continue;
        (void)link_reader_ask(fd, t->fab, sent); /* a process that does not answer stays UNREAD */
        close(fd);
    }
    pthread_mutex_lock(&t->lock);
    if (sent)
        trunk_counts_tell(t, sent);
    t->counts.counts = false;
    pthread_mutex_unlock(&t->lock);
    free(sent);
    return NULL;
}

/* One count at a time: a machine that asks meanwhile will ask again. */
void counts_asked(struct trunk *t, unsigned from, const uint8_t *body)
{
    struct trunk_counts c;

    memcpy(&c, body, sizeof(c));
    if (!t->sh || t->counts.counts)
        return;
    if (t->counts.begun)
        pthread_join(t->counts.thread, NULL); /* it has ended, or is about to */
    t->counts.asker = from;
    t->counts.asked = be32toh(c.number);
    t->counts.begun = t->counts.counts =
        !pthread_create(&t->counts.thread, NULL, trunk_counts_thread, t);
}
