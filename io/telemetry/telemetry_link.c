/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/telemetry/telemetry_link.h"

#include "io/link_change.h"
#include "io/loop_impl.h"
#include "switch/nic.h"

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

/* The queue of a direction (0: a to b); NULL: its sender runs elsewhere. */
static struct egress *direction(struct loop *l, unsigned link, unsigned dir)
{
    const struct fab_link *k = &loop_fabric(l)->links[link];

    return dir ? net_egress(loop_net(l), k->b, k->b_port)
               : net_egress(loop_net(l), k->a, k->a_port);
}

/* ---- faults ---- */

/* Rate and latency of a direction's queue; the conf's if the queue is elsewhere or of a fixed link. */
static struct link_terms terms_of(struct loop *l, unsigned link, const struct egress *e)
{
    const struct fab_link *k = &loop_fabric(l)->links[link];
    struct link_terms t = link_terms_of_conf(loop_fabric(l), link);
    unsigned dir = e && e == direction(l, link, 1);
    int64_t of_port = fabric_latency(loop_fabric(l), 2 * link + dir);

    if (e && !link_terms_fixed(loop_fabric(l), link))
        t = (struct link_terms){egress_rate_bps(e),
                                egress_latency_ps(e) - (of_port - k->latency_ps)};
    return t;
}

static void add_words(char *buf, size_t size, const char *words)
{
    size_t len = strlen(buf);

    if (*words)
        snprintf(buf + len, size - len, "%s%s", len ? " " : "", words);
}

/* Prints differences from the conf, and faults: "down rate=100Gb/s loss=0.01"; empty if none. */
static void telemetry_link_describe(struct loop *l, unsigned link, const struct egress *e,
                                    char *buf, size_t size)
{
    bool up = net_link_up(loop_net(l), link);
    struct link_terms t = terms_of(l, link, e);
    char faults[LINE] = "", terms[LINE];

    link_terms_print(loop_fabric(l), link, &t, terms, sizeof(terms));
    if (e)
        link_faults_print(egress_faults(e), faults, sizeof(faults));
    snprintf(buf, size, "%s", up ? "" : "down");
    add_words(buf, size, terms);
    add_words(buf, size, faults);
}

/* Lists each changed link once. Only processes with an end of it list it. */
static void telemetry_link_list(struct loop *l, struct rte_tel_data *d)
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
        telemetry_link_describe(l, i, e, what, sizeof(what));
        if (!*what)
            continue;
        snprintf(line, sizeof(line), "%s: %s", f->links[i].name, what);
        line[LINE - 1] = 0;
        rte_tel_data_add_array_string(d, line);
        n++;
    }
}

/* ---- offenders ---- */

static struct node *nic_here(const struct loop *l, uint16_t node)
{
    return l->fab->nodes[node].kind == FAB_HOST ? net_node(l->net, node) : NULL;
}

/* The link's name for `trib link`: "h3-leaf0" if only one link has it. */
static void link_of(const struct loop *l, uint16_t node, uint16_t port, char *buf, size_t size)
{
    const struct fab_port *p = &l->fab->nodes[node].ports[port];

    if (p->link == FAB_NONE)
        snprintf(buf, size, "LINK");
    else
        snprintf(buf, size, "%s-%s", l->fab->nodes[node].name, l->fab->nodes[p->peer_node].name);
    if (p->link != FAB_NONE && fabric_link_by_name(l->fab, buf) != p->link)
        snprintf(buf, size, "%s", l->fab->links[p->link].name);
}

/* Drops the backlog mark of a shut slot: the loop must not wait until its process takes frames. */
static void let_go(struct loop *l, uint16_t node, uint16_t port, unsigned slot)
{
    for (unsigned i = 0; i < l->n_ios; i++) {
        struct link_io *c = &l->io[i];

        if (c->kind == LINK_IO_SLOT && c->node == node && c->port == port && c->slot == slot)
            c->blocked = false;
    }
}

static void offended(void *ctx, uint16_t node, uint16_t port, unsigned slot)
{
    struct loop *l = ctx;
    const char *host = l->fab->nodes[node].name;
    struct nic_offender o;
    unsigned long long held;
    char link[LINE];

    if (!nic_offences(nic_here(l, node), port, slot, &o))
        return;
    if (o.shut) {
        let_go(l, node, port, slot);
        link_of(l, node, port, link, sizeof(link));
        fprintf(stderr,
                "trib-switch: %s.%u.%u: its slot is shut%s: %u frames within a second that it may "
                "not send, the last one: %s (%s); trib link %s up opens it\n",
                host, port, slot,
                nic_port_is_shut(nic_here(l, node), port) ? ", and with it the port" : "",
                NIC_OFFENCES, drop_text(o.why), drop_name(o.why), link);
        return;
    }
    if (!log_may(&l->offences[o.why], &held))
        return;
    fprintf(stderr, "trib-switch: %s.%u.%u: a frame was dropped: %s (%s", host, port, slot,
            drop_text(o.why), drop_name(o.why));
    if (held)
        fprintf(stderr, "; %llu more since the last line", held);
    fputs(")\n", stderr);
}

void offenders_watch(struct loop *l)
{
    for (uint16_t i = 0; i < l->fab->n_nodes; i++)
        if (nic_here(l, i))
            nic_on_offence(nic_here(l, i), offended, l);
}

void offenders_window(struct loop *l, int64_t ps)
{
    for (uint16_t i = 0; i < l->fab->n_nodes; i++)
        if (nic_here(l, i))
            nic_set_offence_window(nic_here(l, i), ps);
}

static void offenders_open(struct loop *l, unsigned link)
{
    const struct fab_link *k = &l->fab->links[link];

    net_open_port(l->net, k->a, k->a_port, net_now(l->net));
    if (k->b != FAB_NONE)
        net_open_port(l->net, k->b, k->b_port, net_now(l->net));
}

static void list_port(struct loop *l, uint16_t node, uint16_t port, struct rte_tel_data *d)
{
    struct node *nd = nic_here(l, node);
    bool all = nic_port_is_shut(nd, port);
    struct nic_offender o;
    char line[2 * LINE], link[LINE];

    if (all) {
        link_of(l, node, port, link, sizeof(link));
        snprintf(line, sizeof(line), "%s.%u is shut for all processes; trib link %s up opens it",
                 l->fab->nodes[node].name, port, link);
        line[LINE - 1] = 0;
        rte_tel_data_add_array_string(d, line);
    }
    for (unsigned s = 0; s < l->fab->slots_per_host; s++) {
        if (!nic_offences(nd, port, s, &o) || !o.frames)
            continue;
        snprintf(line, sizeof(line), "%s.%u.%u %s%" PRIu64 " frames that it may not send: %s",
                 l->fab->nodes[node].name, port, s,
                 o.shut       ? "is shut: "
                 : o.was_shut ? "was shut: "
                              : "sent ",
                 o.frames, drop_name(o.why));
        line[LINE - 1] = 0;
        rte_tel_data_add_array_string(d, line);
    }
}

void telemetry_offenders(struct loop *l, const char *params, struct rte_tel_data *d)
{
    (void)params;
    rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
    for (uint16_t i = 0; i < l->fab->n_nodes; i++)
        for (uint16_t p = 0; nic_here(l, i) && p < l->fab->nodes[i].n_ports; p++)
            list_port(l, i, p, d);
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

/* One line for each direction whose sender runs here. */
static void telemetry_link_show(struct loop *l, unsigned link, struct rte_tel_data *d)
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
        telemetry_link_describe(l, link, e[dir], what, sizeof(what));
        add_counts(e[dir], counts, sizeof(counts));
        snprintf(line, sizeof(line), "%s:%u to %s:%u: %s; %s", f->nodes[dir ? k->b : k->a].name,
                 (unsigned)(dir ? k->b_port : k->a_port), f->nodes[dir ? k->a : k->b].name,
                 (unsigned)(dir ? k->a_port : k->b_port), *what ? what : "up", counts);
        line[LINE - 1] = 0;
        rte_tel_data_add_array_string(d, line);
    }
}

/* Publishes the link's state, which the HCAs behind a NIC report to their programs. */
void telemetry_link_changed(struct loop *l, unsigned link, bool up)
{
    if (up)
        offenders_open(l, link);
    atomic_store(&l->page->link_down[link], !up);
    cuts_show_port(l, link); /* for programs that read sysfs, not libibverbs */
}

/* The terms that a change gives a link. A term that it does not set stays as in the local queue. */
static struct link_terms terms_after(struct loop *l, unsigned link, const struct link_change *c)
{
    const struct egress *e = direction(l, link, 0);
    struct link_terms now = terms_of(l, link, e ? e : direction(l, link, 1));
    struct link_terms conf = link_terms_of_conf(loop_fabric(l), link);

    return link_change_terms(c, &now, &conf);
}

/* Whether the change is allowed. If it is for all links, links to the outside keep their terms. */
static bool may_change(struct loop *l, unsigned link, bool all, const struct link_change *c,
                       char *why, size_t size)
{
    struct link_terms t = terms_after(l, link, c);
    bool here = direction(l, link, 0) || direction(l, link, 1);

    return !link_change_sets_terms(c) || (!all && !here) ||
           (all && link_terms_fixed(loop_fabric(l), link)) ||
           !link_terms_check(loop_fabric(l), link, &t, why, size);
}

static void change_terms(struct loop *l, unsigned link, const struct link_change *c)
{
    struct link_terms t = terms_after(l, link, c);

    if ((c->conf || link_change_sets_terms(c)) && !link_terms_fixed(loop_fabric(l), link))
        net_set_link_terms(loop_net(l), link, &t, net_now(loop_net(l)));
}

/* Applies rate, latency and faults; not the state. */
static void change_faults(struct loop *l, unsigned link, const struct link_change *c)
{
    change_terms(l, link, c);
    for (unsigned dir = 0; dir < 2; dir++) {
        struct egress *e = direction(l, link, dir);
        struct egress_faults f;

        if (!e)
            continue;
        f = link_change_apply(c, egress_faults(e), 2 * link + dir);
        egress_set_faults(e, &f);
    }
}

static int change(struct loop *l, unsigned link, const struct link_change *c)
{
    int rc = 0;

    change_faults(l, link, c);
    if (c->state != LINK_AS_IT_IS)
        rc = net_set_link(loop_net(l), link, c->state == LINK_UP, net_now(loop_net(l)));
    if (!rc && c->state != LINK_AS_IT_IS)
        telemetry_link_changed(l, link, c->state == LINK_UP);
    return rc;
}

/* Changes all links that have an end here or are rerouted here. First checks all of them, in every
 * process alike, so that all processes refuse what one of them would. */
static void change_all(struct loop *l, const struct link_change *c, struct rte_tel_data *d)
{
    char why[LINK_TERMS_WHY], said[2 * LINE];

    for (unsigned i = 0; i < loop_fabric(l)->n_links; i++)
        if (!may_change(l, i, true, c, why, sizeof(why))) {
            snprintf(said, sizeof(said), "%s (%s)", why, loop_fabric(l)->links[i].name);
            telemetry_say(d, "error", said);
            return;
        }
    if (c->state != LINK_AS_IT_IS &&
        net_set_all_links(loop_net(l), c->state == LINK_UP, net_now(loop_net(l)))) {
        telemetry_say(d, "error", "no memory to change all links");
        return;
    }
    for (unsigned i = 0; i < loop_fabric(l)->n_links; i++) {
        change_faults(l, i, c);
        if (c->state != LINK_AS_IT_IS)
            telemetry_link_changed(l, i, c->state == LINK_UP);
    }
    telemetry_link_list(l, d);
}

void telemetry_link(struct loop *l, const char *params, struct rte_tel_data *d)
{
    struct link_change c = {0};
    char name[LINE], why[2 * LINE], hint[FABRIC_HINT] = "";
    const char *words;
    bool all;
    int link;

    if (!params) {
        telemetry_link_list(l, d);
        return;
    }
    words = strchr(params, ',');
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(params, ","), params);
    all = !strcmp(name, "all");
    link = all ? 0 : fabric_link_by_name(loop_fabric(l), name);
    if (link < 0) {
        if (link != -EINVAL)
            fabric_link_hint(loop_fabric(l), name, hint, sizeof(hint));
        snprintf(why, sizeof(why), "found %.40s, expected %s%.130s", name,
                 link == -EINVAL ? "one link; that fits several, so name its ports too: A:0-B:0"
                                 : "a link that trib plan shows, or all",
                 hint);
        telemetry_say(d, "error", why);
        return;
    }
    if (words && link_change_parse(&c, words + 1, why, sizeof(why))) {
        telemetry_say(d, "error", why);
        return;
    }
    if (all) {
        change_all(l, &c, d);
        return;
    }
    if (!may_change(l, (unsigned)link, false, &c, why, sizeof(why))) {
        telemetry_say(d, "error", why);
        return;
    }
    if (change(l, (unsigned)link, &c)) {
        snprintf(why, sizeof(why), "no memory to change %.40s", name);
        telemetry_say(d, "error", why);
        return;
    }
    telemetry_link_show(l, (unsigned)link, d);
}
