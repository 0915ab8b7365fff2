/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/telemetry/telemetry_link.h"

#include "io/link_change.h"
#include "io/loop_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <rte_telemetry.h>
#include <stdio.h>
#include <string.h>

#define LINE RTE_TEL_MAX_STRING_LEN
_Static_assert(FAB_MAX_LINKS <= SHARED_LINKS, "every link has its place in the shared page");
#define MAX_LINES (RTE_TEL_MAX_ARRAY_ENTRIES - 1)

void telemetry_say(struct rte_tel_data *d, const char *what, const char *text)
{
    char line[LINE];

    snprintf(line, sizeof(line), "%s", text);
    for (char *c = line; *c; c++)
        if (*c == '"' || *c == '\\' || *c < ' ')
            *c = '?';
    rte_tel_data_start_dict(d);
    rte_tel_data_add_dict_string(d, what, line);
}

/* Queue of a direction (0: a to b); NULL: its sender runs elsewhere. */
static struct egress *direction(struct loop *l, unsigned link, unsigned dir)
{
    const struct fab_link *k = &loop_fabric(l)->links[link];

    return dir ? net_egress(loop_net(l), k->b, k->b_port)
               : net_egress(loop_net(l), k->a, k->a_port);
}

/* ---- faults ---- */

/* "down loss=0.01"; empty: no fault. */
static void describe(struct loop *l, unsigned link, const struct egress *e, char *buf, size_t size)
{
    bool up = net_link_up(loop_net(l), link);
    char faults[LINE] = "";

    if (e)
        link_faults_print(egress_faults(e), faults, sizeof(faults));
    snprintf(buf, size, "%s%s%s", up ? "" : "down", !up && *faults ? " " : "", faults);
}

/* Lists each link with faults once; only processes that have an end of it list it. */
static void list(struct loop *l, struct rte_tel_data *d)
{
    const struct fabric *f = loop_fabric(l);
    char what[LINE], line[2 * LINE];
    unsigned n = 0;

    rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
    for (unsigned i = 0; i < f->n_links && n < MAX_LINES; i++) {
        const struct egress *e = direction(l, i, 0);

        e = e ? e : direction(l, i, 1);
        if (!e)
            continue;
        describe(l, i, e, what, sizeof(what));
        if (!*what)
            continue;
        snprintf(line, sizeof(line), "%s: %s", f->links[i].name, what);
        line[LINE - 1] = 0;
        rte_tel_data_add_array_string(d, line);
        n++;
    }
}

/* ---- one link ---- */

static void add_counts(const struct egress *e, char *buf, size_t size)
{
    const struct egress_stats s = egress_stats(e);
    const struct {
        const char *name;
        uint64_t n;
    } c[] = {{"lost", s.lost},
             {"doubled", s.duplicated},
             {"reordered", s.reordered},
             {"corrupted", s.corrupted},
             {"dropped while down", s.down_drops}};
    size_t len = (size_t)snprintf(buf, size, "%" PRIu64 " frames", s.frames);

    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
        if (c[i].n && len < size)
            len += (size_t)snprintf(buf + len, size - len, ", %" PRIu64 " %s", c[i].n, c[i].name);
}

/* A line for each direction whose sender runs here. */
static void show(struct loop *l, unsigned link, struct rte_tel_data *d)
{
    const struct fabric *f = loop_fabric(l);
    const struct fab_link *k = &f->links[link];
    char what[LINE], counts[LINE], line[4 * LINE];
    const struct egress *e[2] = {direction(l, link, 0), direction(l, link, 1)};

    if (!e[0] && !e[1]) {
        telemetry_say(d, "elsewhere", k->name);
        return;
    }
    rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
    for (unsigned dir = 0; dir < 2; dir++) {
        if (!e[dir])
            continue;
        describe(l, link, e[dir], what, sizeof(what));
        add_counts(e[dir], counts, sizeof(counts));
        snprintf(line, sizeof(line), "%s:%u to %s:%u: %s; %s", f->nodes[dir ? k->b : k->a].name,
                 (unsigned)(dir ? k->b_port : k->a_port), f->nodes[dir ? k->a : k->b].name,
                 (unsigned)(dir ? k->a_port : k->b_port), *what ? what : "up", counts);
        line[LINE - 1] = 0;
        rte_tel_data_add_array_string(d, line);
    }
}

static int change(struct loop *l, unsigned link, const struct link_change *c)
{
    int rc = 0;

    for (unsigned dir = 0; dir < 2; dir++) {
        struct egress *e = direction(l, link, dir);
        struct egress_faults f;

        if (!e)
            continue;
        f = link_change_apply(c, egress_faults(e), 2 * link + dir);
        egress_set_faults(e, &f);
    }
    if (c->state != LINK_AS_IT_IS)
        rc = net_set_link(loop_net(l), link, c->state == LINK_UP, net_now(loop_net(l)));
    /* The HCAs behind a NIC report the link's state to their programs. */
    if (!rc && c->state != LINK_AS_IT_IS)
        atomic_store(&l->page->link_down[link], c->state == LINK_DOWN);
    return rc;
}

void telemetry_link(struct loop *l, const char *params, struct rte_tel_data *d)
{
    struct link_change c = {0};
    char name[LINE], why[LINE];
    const char *words;
    int link;

    if (!params) {
        list(l, d);
        return;
    }
    words = strchr(params, ',');
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(params, ","), params);
    link = fabric_link_by_name(loop_fabric(l), name);
    if (link < 0) {
        snprintf(why, sizeof(why), "found %.40s, expected %s", name,
                 link == -EINVAL ? "one link; that fits several, so name its ports too: A:0-B:0"
                                 : "a link that trib plan shows");
        telemetry_say(d, "error", why);
        return;
    }
    if (words && link_change_parse(&c, words + 1, why, sizeof(why))) {
        telemetry_say(d, "error", why);
        return;
    }
    if (change(l, (unsigned)link, &c)) {
        snprintf(why, sizeof(why), "no memory to change %.40s", name);
        telemetry_say(d, "error", why);
        return;
    }
    show(l, (unsigned)link, d);
}
