/* SPDX-License-Identifier: BSD-3-Clause */
/* htsim's connection matrices: flows between nodes, which start at a time or by a trigger, and atlahs-inc's collectives. */
#include "trace/grow.h"
#include "trace/formats/htsim_flow.h"
#include "trace/formats/trace_readers.h"
#include "trace/formats/words_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PS_NS 1000

static const struct {
    const char *word;
    enum app_coll coll;
} kinds[] = {
    {"bcast", APP_BROADCAST},      {"reduce", APP_REDUCE},
    {"allreduce", APP_ALL_REDUCE}, {"reduce_scatter", APP_REDUCE_SCATTER},
    {"allgather", APP_ALL_GATHER},
};

struct matrix_said {
    uint64_t connections, triggers; /* UINT64_MAX: not said */
};

static int number_u32(struct words_line *w, const char *expected, uint32_t *to)
{
    uint64_t v = 0;
    int rc = words_number(w, UINT32_MAX - 1, false, expected, &v);

    *to = (uint32_t)v;
    return rc;
}

/* The place of a trigger of this id. */
static uint32_t trigger_of(struct htsim_matrix *m, uint32_t id)
{
    uint32_t old = m->ids.n, i = number_map_enter(&m->ids, id, 0);

    GROW(m->trigger, m->ids.n, &m->trigger_room);
    if (m->ids.n != old)
        m->trigger[i] = (struct htsim_trigger){.there = false};
    return i;
}

static int trigger_number(struct htsim_matrix *m, struct words_line *w, uint32_t *to)
{
    uint32_t id = 0;
    int rc = number_u32(w, "the id of a trigger", &id);

    if (!rc)
        *to = trigger_of(m, id);
    return rc;
}

/* "start T", "trigger ID", and these of a collective: start_bcast T, trigger_bcast ID. */
static int flow_begins(struct htsim_matrix *m, struct words_line *w, struct htsim_flow *f)
{
    bool starts = !strncmp(w->word, "start", 5);
    const char *kind = w->word + (starts ? 5 : 7);
    uint64_t ps = 0;
    size_t i = 0;
    int rc;

    while (*kind && i < sizeof(kinds) / sizeof(kinds[0]) && strcmp(kind + 1, kinds[i].word) != 0)
        i++;
    if (*kind && (*kind != '_' || i == sizeof(kinds) / sizeof(kinds[0])))
        return words_refuse(w, "start, trigger or these with a kind, as start_bcast");
    if (f->trigger != HTSIM_NONE || f->start_ns != UINT64_MAX)
        return words_refuse(w, "one start or trigger");
    f->is_coll = *kind != 0;
    f->coll = f->is_coll ? (uint8_t)kinds[i].coll : 0;
    words_next(w);
    if (!starts)
        return trigger_number(m, w, &f->trigger);
    rc = words_number(w, UINT64_MAX, true, "a time in ps", &ps);
    f->start_ns = ps / PS_NS;
    return rc;
}

static int flow_word(struct htsim_matrix *m, struct words_line *w, struct htsim_flow *f)
{
    uint64_t v;

    if (!strncmp(w->word, "start", 5) || !strncmp(w->word, "trigger", 7))
        return flow_begins(m, w, f);
    if (words_is(w, "id")) {
        words_next(w);
        return number_u32(w, "the id of a flow", &f->id);
    }
    if (words_is(w, "size")) {
        words_next(w);
        return words_number(w, UINT64_MAX, false, "a size in bytes", &f->bytes);
    }
    if (words_is(w, "send_done_trigger")) {
        words_next(w);
        return trigger_number(m, w, &f->send_done);
    }
    if (words_is(w, "recv_done_trigger")) {
        words_next(w);
        return trigger_number(m, w, &f->recv_done);
    }
    if (words_is(w, "prio") || words_is(w, "addon")) {
        words_next(w);
        return words_number(w, UINT64_MAX, false, "a number", &v);
    }
    return words_refuse(w,
                        "id, start, trigger, size, send_done_trigger, recv_done_trigger or prio");
}

static int flow_ends(struct htsim_matrix *m, struct words_line *w, const struct htsim_flow *f)
{
    uint32_t most = f->is_coll ? app_group_size(m->g, f->to) : m->nodes;
    char expected[64];

    if (f->start_ns == UINT64_MAX && f->trigger == HTSIM_NONE)
        return words_refuse(w, "start or trigger");
    if (f->bytes == UINT64_MAX)
        return words_refuse(w, "a size");
    snprintf(expected, sizeof(expected),
             f->is_coll ? "a member of %u of group %u" : "nodes below %u", most, f->to);
    if (f->from >= most || (!f->is_coll && f->to >= most))
        return trace_refuse_at(m->in, "", "line %u: found %u->%u, expected %s", m->in->line,
                               f->from, f->to, expected);
    return 0;
}

/* "S->D" and pairs of words. */
static int matrix_flow(struct htsim_matrix *m, struct words_line *w)
{
    struct htsim_flow f = {.start_ns = UINT64_MAX,
                           .bytes = UINT64_MAX,
                           .trigger = HTSIM_NONE,
                           .send_done = HTSIM_NONE,
                           .recv_done = HTSIM_NONE,
                           .line = m->in->line};
    unsigned long from, to;
    char *end = NULL;
    int rc = 0;

    from = strtoul(w->word, &end, 10);
    if (end == w->word || strncmp(end, "->", 2) != 0 || from >= APP_RANKS_MOST)
        return words_refuse(w, "Nodes, Connections, Triggers, Grp, trigger or S->D");
    to = end[2] >= '0' && end[2] <= '9' ? strtoul(end + 2, &end, 10) : APP_RANKS_MOST;
    if (*end || to >= APP_RANKS_MOST)
        return words_refuse(w, "two nodes, as 3->7");
    f.from = (uint32_t)from;
    f.to = (uint32_t)to;
    for (words_next(w); !rc && *w->word;)
        rc = flow_word(m, w, &f);
    if (!rc)
        rc = flow_ends(m, w, &f);
    if (rc)
        return rc;
    if (f.trigger != HTSIM_NONE)
        f.start_ns = 0;
    if (m->n == HTSIM_NONE - 1)
        return words_refuse(w, "fewer flows");
    GROW(m->flow, m->n + 1u, &m->room);
    m->flow[m->n++] = f;
    return 0;
}

/* "trigger id N oneshot", multishot, or barrier count K. */
static int matrix_trigger(struct htsim_matrix *m, struct words_line *w)
{
    struct htsim_trigger t = {.there = true, .line = m->in->line};
    uint32_t at = 0;
    int rc;

    words_next(w);
    if (!words_is(w, "id"))
        return words_refuse(w, "id of the trigger");
    words_next(w);
    rc = trigger_number(m, w, &at);
    if (rc)
        return rc;
    if (words_is(w, "oneshot"))
        t.how = HTSIM_ONESHOT;
    else if (words_is(w, "multishot"))
        t.how = HTSIM_MULTISHOT;
    else if (words_is(w, "barrier"))
        t.how = HTSIM_BARRIER;
    else
        return words_refuse(w, "oneshot, multishot or barrier");
    words_next(w);
    if (t.how == HTSIM_BARRIER) {
        if (!words_is(w, "count"))
            return words_refuse(w, "count of the barrier");
        words_next(w);
        rc = number_u32(w, "a number of flows", &t.count);
    }
    if (!rc && m->trigger[at].there)
        return trace_refuse_at(m->in, "",
                               "line %u: found the trigger of line %u again, expected another",
                               m->in->line, m->trigger[at].line);
    m->trigger[at] = t;
    m->n_triggers++;
    return rc ? rc : *w->word ? words_refuse(w, "the end of the line") : 0;
}

static int matrix_group(struct htsim_matrix *m, struct words_line *w)
{
    uint32_t *rank = NULL, n = 0, twice = 0;
    size_t room = 0;
    int rc = 0;

    for (words_next(w); !rc && *w->word;) {
        GROW(rank, n + 1u, &room);
        rc = number_u32(w, "a node", &rank[n]);
        if (!rc && rank[n++] >= m->nodes)
            rc = trace_refuse_at(m->in, "", "line %u: found node %u, expected one below %u",
                                 m->in->line, rank[n - 1], m->nodes);
    }
    if (!rc && !n)
        rc = words_refuse(w, "members of a group");
    if (!rc && app_graph_group(m->g, m->g->n_groups, rank, n, &twice))
        rc = trace_refuse_at(m->in, "", "line %u: found node %u twice, expected each member once",
                             m->in->line, twice);
    free(rank);
    return rc;
}

static int matrix_said(struct words_line *w, uint64_t most, uint64_t *to)
{
    int rc;

    words_next(w);
    rc = words_number(w, most, false, "a number", to);
    return rc ? rc : *w->word ? words_refuse(w, "the end of the line") : 0;
}

static int matrix_line(struct htsim_matrix *m, struct words_line *w, struct matrix_said *said)
{
    uint64_t v = 0;
    int rc;

    if (words_is(w, "Nodes")) {
        if (m->nodes)
            return words_refuse(w, "Nodes once");
        rc = matrix_said(w, APP_RANKS_MOST, &v);
        m->nodes = (uint32_t)v;
        return rc;
    }
    if (!m->nodes)
        return words_refuse(w, "Nodes");
    if (words_is(w, "Connections"))
        return matrix_said(w, UINT64_MAX - 1, &said->connections);
    if (words_is(w, "Triggers"))
        return matrix_said(w, UINT64_MAX - 1, &said->triggers);
    if (words_is(w, "Failures"))
        return matrix_said(w, UINT64_MAX - 1, &v);
    if (words_is(w, "failure")) /* of a switch's link: no operation */
        return 0;
    if (words_is(w, "Grp"))
        return matrix_group(m, w);
    return words_is(w, "trigger") ? matrix_trigger(m, w) : matrix_flow(m, w);
}

static void said_check(struct htsim_matrix *m, const char *what, uint64_t said, uint32_t is)
{
    if (said != UINT64_MAX && said != is)
        finding_note(&m->g->found, FINDING_COUNT,
                     "%s: found %u %s, expected the %" PRIu64 " that it says", m->in->name, is,
                     what, said);
}

int htsim_matrix_read(struct app_graph *g, struct trace_input *in, uint32_t rank)
{
    struct htsim_matrix m = {.g = g, .in = in};
    struct matrix_said said = {UINT64_MAX, UINT64_MAX};
    uint32_t file = app_graph_file(g, in->name, false);
    struct words_line w;
    int rc;

    (void)rank;
    g->format = "htsim matrix";
    while (!(rc = words_line_next(&w, in, '#')))
        if ((rc = matrix_line(&m, &w, &said)) != 0)
            break;
    if (rc == 1)
        rc = m.nodes ? htsim_flow_build(&m, file)
                     : trace_refuse_at(in, "", "found no Nodes, expected a connection matrix");
    if (!rc) {
        said_check(&m, "connections", said.connections, m.n);
        said_check(&m, "triggers", said.triggers, m.n_triggers);
    }
    number_map_free(&m.ids);
    free(m.flow);
    free(m.trigger);
    return rc;
}
