/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/report/trace.h"

#include "base/nearest.h"
#include "roce/frame.h"
#include "roce/wire.h"
#include "sim/report/pcapng.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_TRACED UINT32_MAX

struct trace {
    struct pcapng *file;
    uint64_t frames;
    uint32_t interface[]; /* [n_links] */
};

/* ---- which links ---- */

static int trace_choose_named(const struct fabric *f, const char *name, bool *chosen, char *err)
{
    const struct fab_node *nd = fabric_node(f, name);
    int link = nd ? 0 : fabric_link_by_name(f, name);

    if (link < 0) {
        const char *near = fabric_near_node(f, name, false);
        char hint[FABRIC_HINT] = "";

        if (near && !strchr(name, '-'))
            nearest_hint(near, hint, sizeof(hint));
        else if (link != -EINVAL)
            fabric_link_hint(f, name, hint, sizeof(hint));
        snprintf(err, TRACE_ERR, "--links: found \"%.64s\", expected %s%.100s", name,
                 link == -EINVAL ? "one link; that fits several, so name its ports too: A:0-B:0"
                                 : "a link or a node that trib plan shows",
                 hint);
        return -EINVAL;
    }
    if (!nd)
        chosen[link] = true;
    for (uint16_t p = 0; nd && p < nd->n_ports; p++)
        if (nd->ports[p].link != FAB_NONE)
            chosen[nd->ports[p].link] = true;
    return 0;
}

int trace_choose(const struct fabric *f, const char *list, bool *chosen, char *err)
{
    char *copy, *save = NULL;
    int rc = 0;

    memset(chosen, !list, f->n_links * sizeof(*chosen));
    if (!list)
        return 0;
    copy = strdup(list);
    if (!copy || !*copy) {
        snprintf(err, TRACE_ERR, "--links: found \"\", expected a list of links or nodes");
        rc = -EINVAL;
    }
    for (char *s = rc ? NULL : strtok_r(copy, ",", &save); !rc && s; s = strtok_r(NULL, ",", &save))
        rc = trace_choose_named(f, s, chosen, err);
    free(copy);
    return rc;
}

/* ---- the file ---- */

/* Bytes to write: of a frame whose payload is a length its headers alone, since padding and ICRC
 * would be at the wrong offset. */
static uint32_t carried(struct rte_mbuf *m)
{
    struct roce_pkt k;

    if (!(frame_meta(m)->flags & FRAME_F_VIRTUAL) || roce_parse(m, &k) != ROCE_OK)
        return m->pkt_len;
    return m->pkt_len - k.pad - ROCE_ICRC_BYTES;
}

void trace_frame(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now_ps)
{
    struct trace *t = ctx;
    uint32_t i = t->interface[dirlink / 2];

    if (i == NOT_TRACED)
        return;
    pcapng_frame(t->file, i, now_ps, dirlink & 1 ? PCAPNG_INBOUND : PCAPNG_OUTBOUND, m, carried(m),
                 m->pkt_len + frame_meta(m)->virt_len);
    t->frames++;
}

static void add_interfaces(struct trace *t, const struct fabric *f, const bool *chosen)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];
        char way[2 * FAB_NAME + 64];

        t->interface[i] = chosen[i] ? n++ : NOT_TRACED;
        if (!chosen[i])
            continue;
        snprintf(way, sizeof(way), "outbound: %s:%u to %s:%u", f->nodes[l->a].name,
                 (unsigned)l->a_port, f->nodes[l->b].name, (unsigned)l->b_port);
        pcapng_interface(t->file, l->name, way, l->rate_bps);
    }
}

int trace_create(struct trace **out, const struct fabric *f, const bool *chosen, const char *path,
                 const char *application, char *err)
{
    struct trace *t = calloc(1, sizeof(*t) + f->n_links * sizeof(t->interface[0]));
    int rc = t ? pcapng_create(&t->file, path, application, f->name) : -ENOMEM;

    *out = NULL;
    if (rc) {
        snprintf(err, TRACE_ERR, "--trace: cannot write %.160s: %s", path, strerror(-rc));
        free(t);
        return rc;
    }
    add_interfaces(t, f, chosen);
    *out = t;
    return 0;
}

int trace_close(struct trace *t, uint64_t *frames)
{
    int rc;

    if (!t)
        return 0;
    *frames = t->frames;
    rc = pcapng_close(t->file);
    free(t);
    return rc;
}
