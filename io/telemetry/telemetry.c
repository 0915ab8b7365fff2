/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK calls the handlers in its own thread. loop_call() runs each in the loop's thread, so no lock is
 * needed and all counters of an answer are of one moment.
 */
#include "io/telemetry/telemetry.h"
#include "io/telemetry/capture.h"
#include "machine/link_reader.h"
#include "io/telemetry/telemetry_link.h"
#include "io/telemetry/telemetry_number.h"
#include "io/telemetry/telemetry_tables.h"
#include "switch/net/net_stats.h"
#include "switch/protocol/protocol_node.h"
#include "switch/reduce/an.h"

#include <errno.h>
#include <limits.h>
#include <rte_telemetry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct loop *serving; /* see telemetry_serve() */
static const bool *loop_mine;
static struct captures captures; /* used in the loop's thread only */

struct telemetry_question {
    void (*answer)(struct loop *l, const char *params, struct rte_tel_data *d);
    const char *params;
    struct rte_tel_data *d;
};

static void ask_loop(struct loop *l, void *arg)
{
    struct telemetry_question *q = arg;

    q->answer(l, q->params, q->d);
}

static int telemetry_ask(void (*answer)(struct loop *l, const char *params, struct rte_tel_data *d),
                         const char *params, struct rte_tel_data *d)
{
    struct telemetry_question q = {answer, params && *params ? params : NULL, d};

    return serving ? loop_call(serving, ask_loop, &q) : -ENOENT;
}

static bool here(uint16_t node)
{
    return !loop_mine || loop_mine[node];
}

/* ---- nodes and ports ---- */

static void nodes(struct loop *l, const char *params, struct rte_tel_data *d)
{
    const struct fabric *f = loop_fabric(l);

    (void)params;
    rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
    for (uint16_t i = 0; i < f->n_nodes; i++)
        if (here(i))
            rte_tel_data_add_array_string(d, f->nodes[i].name);
}

static void add_counters(struct rte_tel_data *d, const struct node_port_counters *c,
                         const struct net_port_stats *sent)
{
    char name[64];

    telemetry_add(d, "rx_frames", c->rx_frames);
    telemetry_add(d, "rx_bytes", c->rx_bytes);
    telemetry_add(d, "tx_frames", sent->frames);
    telemetry_add(d, "tx_bytes", sent->bytes);
    telemetry_add(d, "ecn_marks", sent->ecn_marks);
    telemetry_add(d, "pauses_sent", c->pauses_sent);
    telemetry_add(d, "pauses_received", c->pauses_received);
    telemetry_add(d, "watchdog_trips", c->watchdog_trips);
    for (unsigned r = 0; r < DROP_REASONS; r++) {
        snprintf(name, sizeof(name), "drop_%s", drop_name(r));
        telemetry_add(d, name, c->drops[r]);
    }
}

static void add_egress(struct rte_tel_data *d, const struct egress *e, int64_t now_ps)
{
    const struct egress_stats s = egress_stats(e);

    telemetry_add(d, "egress_frames", s.frames);
    telemetry_add(d, "egress_link_bytes", s.link_bytes);
    telemetry_add(d, "egress_lost", s.lost);
    telemetry_add(d, "egress_lost_bytes", s.lost_bytes);
    telemetry_add(d, "egress_duplicated", s.duplicated);
    telemetry_add(d, "egress_reordered", s.reordered);
    telemetry_add(d, "egress_corrupted", s.corrupted);
    telemetry_add(d, "egress_down_drops", s.down_drops);
    telemetry_add(d, "egress_watchdog_drops", s.discarded);
    telemetry_add(d, "egress_peak_bytes", s.peak_bytes);
    telemetry_add(d, "egress_peak_lossless_bytes", s.class_peak_bytes[FRAME_LOSSLESS]);
    telemetry_add(d, "egress_busy_us", (uint64_t)(s.busy_ps / PS_PER_US));
    telemetry_add(d, "egress_paused_us", (uint64_t)(egress_paused_ps(e, now_ps) / PS_PER_US));
}

/* The port "NODE:PORT" of a node that runs here. */
static struct node *find_port(struct loop *l, const char *name, uint16_t *port)
{
    const struct fabric *f = loop_fabric(l);
    const char *colon = strrchr(name, ':');
    char node[FAB_NAME], *end;
    const struct fab_node *nd;
    unsigned long n;

    if (!colon || (size_t)(colon - name) >= sizeof(node))
        return NULL;
    snprintf(node, sizeof(node), "%.*s", (int)(colon - name), name);
    nd = fabric_node(f, node);
    n = strtoul(colon + 1, &end, 10);
    if (!nd || colon[1] < '0' || colon[1] > '9' || *end || n >= nd->n_ports)
        return NULL;
    *port = (uint16_t)n;
    return net_node(loop_net(l), fabric_node_index(f, nd));
}

static void ports(struct loop *l, const char *params, struct rte_tel_data *d)
{
    const struct fabric *f = loop_fabric(l);
    struct net_port_stats sent = {0};
    char name[FAB_NAME + 8];
    uint16_t port;
    struct node *nd;

    if (params) {
        nd = find_port(l, params, &port);
        if (!nd) {
            telemetry_say(d, "error", "no such port here, expected NODE:PORT");
            return;
        }
        rte_tel_data_start_dict(d);
        net_port_stats(loop_net(l), nd->id, port, &sent);
        add_counters(d, &nd->cnt[port], &sent);
        if (net_egress(loop_net(l), nd->id, port))
            add_egress(d, net_egress(loop_net(l), nd->id, port), net_now(loop_net(l)));
        return;
    }
    rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
    for (uint16_t i = 0; i < f->n_nodes; i++)
        for (uint16_t p = 0; here(i) && p < f->nodes[i].n_ports; p++) {
            snprintf(name, sizeof(name), "%s:%u", f->nodes[i].name, p);
            rte_tel_data_add_array_string(d, name);
        }
}

/* Pairs of direction (link * 2 + 0 or 1) and bytes, from direction FIRST on, of senders that run here. */
static void link_bytes(struct loop *l, const char *params, struct rte_tel_data *d)
{
    const struct fabric *f = loop_fabric(l);
    char *end = NULL;
    unsigned long first = params ? strtoul(params, &end, 10) : 0;
    uint64_t bytes;
    unsigned n = 0;

    if (end && (end == params || *end || *params == '-')) {
        telemetry_say(d, "error", "expected the first direction as a number, link * 2 + direction");
        return;
    }
    rte_tel_data_start_array(d, TELEMETRY_NUMBERS);
    for (unsigned long i = first; i < 2ul * f->n_links && n < LINK_READER_PAGE; i++) {
        if (!net_sent_bytes(loop_net(l), f, (uint32_t)i, &bytes))
            continue;
        telemetry_append(d, i);
        telemetry_append(d, bytes);
        n++;
    }
}

static void totals(struct loop *l, const char *params, struct rte_tel_data *d)
{
    const struct fabric *f = loop_fabric(l);
    struct node_port_counters sum = {0};
    struct net_port_stats all;
    struct link_io_info c;
    uint64_t overflow = 0, bad = 0, nobuf = 0, refused = 0;

    (void)params;
    for (uint16_t i = 0; i < f->n_nodes; i++) {
        struct node *nd = here(i) ? net_node(loop_net(l), i) : NULL;

        /* The struct consists of 64-bit counters only. */
        for (uint16_t p = 0; nd && p < nd->n_ports; p++)
            for (size_t k = 0; k < sizeof(sum) / sizeof(uint64_t); k++)
                ((uint64_t *)&sum)[k] += ((const uint64_t *)&nd->cnt[p])[k];
    }
    for (unsigned i = 0; loop_link_io(l, i, &c); i++) {
        overflow += c.overflow;
        bad += c.rx_bad + c.tx_bad;
        nobuf += c.rx_nobuf;
        refused += c.refused;
    }
    rte_tel_data_start_dict(d);
    net_total_stats(loop_net(l), f, &all);
    add_counters(d, &sum, &all);
    telemetry_add(d, "paused_us", (uint64_t)(all.paused_ps / PS_PER_US));
    telemetry_add(d, "peak_lossless_bytes", all.class_peak_bytes[FRAME_LOSSLESS]);
    telemetry_add(d, "cable_overflow", overflow);
    telemetry_add(d, "cable_bad_frames", bad);
    telemetry_add(d, "cable_no_buffer", nobuf);
    telemetry_add(d, "refused_connections", refused);
}

static void emit_counter(void *ctx, const char *name, uint64_t v)
{
    telemetry_add(ctx, name, v);
}

static void ans(struct loop *l, const char *params, struct rte_tel_data *d)
{
    const struct fabric *f = loop_fabric(l);

    if (!params)
        rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
    for (uint16_t i = 0; i < f->n_nodes; i++) {
        struct an *an = net_an(loop_net(l), i);

        if (!an)
            continue;
        if (!params) {
            rte_tel_data_add_array_string(d, f->nodes[i].name);
        } else if (!strcmp(params, f->nodes[i].name)) {
            rte_tel_data_start_dict(d);
            an_counters_print(an, emit_counter, d);
            if (net_protocols(loop_net(l), i))
                protocol_node_print(net_protocols(loop_net(l), i), emit_counter, d);
            return;
        }
    }
    if (params)
        telemetry_say(d, "error", "no such aggregation node here");
}

/* ---- links that leave the process ---- */

static void link_io_name(const struct fabric *f, const struct link_io_info *c, char *buf,
                         size_t size)
{
    const struct fab_node *nd = &f->nodes[c->node];

    if (c->kind == LINK_IO_SLOT)
        snprintf(buf, size, "%s.%u.%u", nd->name, c->port, c->slot);
    else if (c->kind == LINK_IO_LINK)
        snprintf(buf, size, "%s", f->links[nd->ports[c->port].link].name);
    else
        snprintf(buf, size, "%s:%u", nd->name, c->port);
}

static void telemetry_links(struct loop *l, const char *params, struct rte_tel_data *d)
{
    static const char *const kinds[] = {"process", "link", "outside"};
    char name[128];
    struct link_io_info c;

    if (!params)
        rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
    for (unsigned i = 0; loop_link_io(l, i, &c); i++) {
        link_io_name(loop_fabric(l), &c, name, sizeof(name));
        if (!params) {
            /* Leaves out process slots that were never used. */
            if (c.kind != LINK_IO_SLOT || c.connects || c.refused)
                rte_tel_data_add_array_string(d, name);
            continue;
        }
        if (strcmp(params, name))
            continue;
        rte_tel_data_start_dict(d);
        rte_tel_data_add_dict_string(d, "kind", kinds[c.kind]);
        rte_tel_data_add_dict_string(d, "state", c.up ? "up" : "down");
        telemetry_add(d, "connects", c.connects);
        telemetry_add(d, "refused", c.refused);
        telemetry_add(d, "rx_frames", c.rx);
        telemetry_add(d, "tx_frames", c.tx);
        telemetry_add(d, "rx_bad", c.rx_bad);
        telemetry_add(d, "tx_bad", c.tx_bad);
        telemetry_add(d, "no_buffer", c.rx_nobuf);
        telemetry_add(d, "overflow", c.overflow);
        if (c.kind == LINK_IO_SLOT)
            telemetry_add(d, "drop_slot_stalled", c.stall_drops);
        return;
    }
    if (params)
        telemetry_say(d, "error", "no such link leaves this process");
}

/* ---- capture ---- */

/* Captures both directions in one process: that of the link's end a, or of end b if a is outside. */
static void capture_link(struct loop *l, const char *link, const char *filter, const char *file,
                         long owner, struct rte_tel_data *d)
{
    const struct fabric *f = loop_fabric(l);
    int i = fabric_link_by_name(f, link);
    char why[320] = "", hint[FABRIC_HINT] = "";

    if (i < 0) {
        if (i != -EINVAL)
            fabric_link_hint(f, link, hint, sizeof(hint));
        snprintf(why, sizeof(why), "found %.40s, %s%s", link,
                 i == -EINVAL ? "which fits several links, expected its ports too: A:0-B:0"
                              : "expected a link that trib plan shows",
                 hint);
        telemetry_say(d, "error", why);
        return;
    }
    if (!here(f->nodes[f->links[i].a].outside ? f->links[i].b : f->links[i].a)) {
        telemetry_say(d, "elsewhere", f->links[i].name);
        return;
    }
    captures.loop = l;
    if (capture_start(&captures, &(struct capture_cfg){(unsigned)i, file, filter, (pid_t)owner},
                      why, sizeof(why)))
        telemetry_say(d, "error", why);
    else
        telemetry_say(d, "capturing", f->links[i].name);
}

/* The text comes last: FILE and FILTER may contain commas, the numbers before them cannot. */
static void capture_begin(struct loop *l, const char *params, struct rte_tel_data *d)
{
    const char *comma = params ? strchr(params, ',') : NULL;
    char link[128], *file = NULL;
    long owner = comma ? strtol(comma + 1, &file, 10) : 0;

    if (!comma || (size_t)(comma - params) >= sizeof(link) || owner < 1 || owner > INT_MAX ||
        *file != ',') {
        telemetry_say(d, "error", "expected LINK,PID,FILE");
        return;
    }
    snprintf(link, sizeof(link), "%.*s", (int)(comma - params), params);
    capture_link(l, link, NULL, file + 1, owner, d);
}

static void capture_filtered(struct loop *l, const char *params, struct rte_tel_data *d)
{
    const char *comma = params ? strchr(params, ',') : NULL;
    char link[128], filter[512], *at = NULL;
    long owner = comma ? strtol(comma + 1, &at, 10) : 0;
    unsigned long n = comma && *at == ',' ? strtoul(at + 1, &at, 10) : 0;

    if (!comma || (size_t)(comma - params) >= sizeof(link) || owner < 1 || owner > INT_MAX || !n ||
        n >= sizeof(filter) || *at != ',' || strlen(at + 1) < n + 2 || at[n + 1] != ',') {
        telemetry_say(d, "error",
                      "expected LINK,PID,LENGTH,FILTER,FILE, a filter of at most 511 "
                      "characters");
        return;
    }
    snprintf(link, sizeof(link), "%.*s", (int)(comma - params), params);
    snprintf(filter, sizeof(filter), "%.*s", (int)n, at + 1);
    capture_link(l, link, filter, at + n + 2, owner, d);
}

static void capture_flushed(struct loop *l, const char *params, struct rte_tel_data *d)
{
    int rc = params ? capture_flush(&captures, params) : -ENOENT;

    (void)l;
    telemetry_say(d,
                  rc == -ENOENT ? "elsewhere"
                  : rc          ? "error"
                                : "flushed",
                  rc == -ENOENT ? "no such capture"
                  : rc          ? strerror(-rc)
                                : params);
}

static void capture_end(struct loop *l, const char *params, struct rte_tel_data *d)
{
    char why[256] = "no such capture";
    uint64_t frames;
    int rc = params ? capture_stop(&captures, params, &frames, why, sizeof(why)) : -ENOENT;

    (void)l;
    if (rc) {
        telemetry_say(d, rc == -ENOENT ? "elsewhere" : "error", why);
        return;
    }
    rte_tel_data_start_dict(d);
    telemetry_add(d, "frames", frames);
}

/* ---- the clock ---- */

/* Changes the dilation; only the process that made the clock can. */
static void telemetry_dilation(struct loop *l, const char *params, struct rte_tel_data *d)
{
    struct shared *sh = loop_shared(l);
    char *end = NULL;
    unsigned long n = params ? strtoul(params, &end, 10) : 0;

    if (params && (end == params || *end || !n || n > UINT32_MAX || *params == '-')) {
        telemetry_say(d, "error", "expected a dilation of 1 to 4294967295");
        return;
    }
    if (params && !sh->own_clock) {
        telemetry_say(d, "elsewhere", "another process has the clock");
        return;
    }
    if (params)
        clock_set_dilation(sh->own_clock, (uint32_t)n);
    rte_tel_data_start_dict(d);
    telemetry_add(d, "dilation", clock_dilation(sh));
}

/* ---- DPDK's side ---- */

#define TABLE_HELP(what) what ", as numbers: telemetry_tables.h. Parameters: first row"

#define COMMANDS(X)                                                                                \
    X(nodes, "/trib/nodes", "Nodes of this process. Takes no parameters")                          \
    X(ports, "/trib/ports", "Ports; counters of one. Parameters: NODE:PORT")                       \
    X(telemetry_links, "/trib/links",                                                              \
      "Links to other processes; counters of one. Parameters: name")                               \
    X(ans, "/trib/an", "Aggregation nodes; counters of one. Parameters: NODE")                     \
    X(telemetry_link, "/trib/link",                                                                \
      "Links with faults; one or all, or change it. Parameters: LINK,down|up|clear|loss=0.1%")     \
    X(telemetry_node, "/trib/node",                                                                \
      "Links of a node; take them down or up. Parameters: NODE[,down|up|forget]")                  \
    X(telemetry_offenders, "/trib/offenders",                                                      \
      "Processes that have sent what they may not send. Takes no parameters")                      \
    X(link_bytes, "/trib/link_bytes",                                                              \
      "Bytes sent into links: pairs of link * 2 + direction, bytes. Parameters: first of them")    \
    X(telemetry_ports, "/trib/table/ports", TABLE_HELP("Ports with links"))                        \
    X(telemetry_groups, "/trib/table/groups", TABLE_HELP("Children of groups"))                    \
    X(telemetry_slots, "/trib/table/slots", TABLE_HELP("Slots of hosts' processes"))               \
    X(telemetry_lag, "/trib/table/lag", TABLE_HELP("Lateness of hand-offs"))                       \
    X(telemetry_kinds, "/trib/table/kinds", "Kinds of groups, by number. Takes no parameters")     \
    X(totals, "/trib/totals", "Counters of all ports, added up. Takes no parameters")              \
    X(telemetry_dilation, "/trib/dilation",                                                        \
      "Fabric time runs N times slower. Parameters: N, a new one")                                 \
    X(capture_begin, "/trib/capture/start",                                                        \
      "Writes a link's frames while PID runs. Parameters: LINK,PID,FILE")                          \
    X(capture_filtered, "/trib/capture/filtered",                                                  \
      "The same of frames that pass libpcap's FILTER. Parameters: LINK,PID,LENGTH,FILTER,FILE")    \
    X(capture_flushed, "/trib/capture/flush",                                                      \
      "Puts what has been captured so far into the file. Parameters: FILE")                        \
    X(capture_end, "/trib/capture/stop", "Ends a capture. Parameters: FILE")

#define X(fn, path, help)                                                                          \
    static int tel_##fn(const char *cmd, const char *params, struct rte_tel_data *d)               \
    {                                                                                              \
        (void)cmd;                                                                                 \
        return telemetry_ask(fn, params, d);                                                       \
    }
COMMANDS(X)
#undef X

void telemetry_answer(struct loop *l, const char *cmd, const char *params, struct rte_tel_data *d)
{
#define X(fn, path, help)                                                                          \
    if (!strcmp(cmd, path))                                                                        \
        fn(l, params &&*params ? params : NULL, d);
    COMMANDS(X)
#undef X
}

void telemetry_serve(struct loop *l, const bool *mine)
{
    static bool registered;

    if (!l) /* captures that still run keep their frames */
        capture_stop_all(&captures);
    serving = l;
    loop_mine = mine;
    if (registered || !l)
        return;
    registered = true;
#define X(fn, path, help) rte_telemetry_register_cmd(path, tel_##fn, help);
    COMMANDS(X)
#undef X
}
