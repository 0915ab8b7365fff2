/*
 * The ring's time by simulation of its messages: each waits for the steps that its own depends on
 * (the schedule says which), then for every link of its path. A link serves whole messages in turn;
 * a message goes on to the next link as soon as its first frame is there. ACKs are small and
 * regular: they lengthen the messages that go their way.
 *
 * Long vectors and many ranks are extrapolated, both being steady states: time and bytes grow
 * linearly with the slices of a chunk, and with the steps.
 */
#include "host/coll/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET      65536u /* messages simulated in one go */
#define MANY_SLICES 64u    /* enough to be steady; of the largest size */
#define FEW_SLICES  16u

struct ring_sim {
    struct model *m;
    struct model_path *path, *back; /* [nranks] of data to the right, of its ACKs */
    struct sched *s;                /* [nranks] */
    int64_t *arrival;               /* [nranks][messages] */
    uint64_t messages;              /* simulated of each rank */
};

/* Sends the message along its path; returns when its last bit is there. */
static int64_t carry(struct model *m, const struct model_path *path, int64_t ready, uint64_t len)
{
    struct model_msg msg = model_message(len, m->in.mtu, true);
    int64_t head = ready, tail = ready;

    for (unsigned h = 0; h < path->n; h++) {
        uint32_t d = path->link[h];
        uint64_t acks = MODEL_ACK_WIRE * m->acks[d] / m->data[d];
        int64_t start = head > m->free_ps[d] ? head : m->free_ps[d];
        int64_t end = start + model_ps(m, d, msg.wire);
        int64_t late = h ? tail + model_ps(m, d, msg.tail) : 0;

        end = end > late ? end : late;
        m->free_ps[d] = end + model_ps(m, d, acks); /* ACKs overtake the next message */
        m->bytes[d] += (double)(msg.wire + acks);
        head = start + model_ps(m, d, msg.frame) + model_latency(m, d);
        tail = end + model_latency(m, d);
    }
    return tail;
}

static int64_t ack_time(const struct model *m, const struct model_path *back)
{
    int64_t t = 0;

    for (unsigned h = 0; h < back->n; h++)
        t += model_ps(m, back->link[h], MODEL_ACK_WIRE) + model_latency(m, back->link[h]);
    return t;
}

/* When the step's needs are met; a reduction takes no time, so it is done when its message is
 * there. */
static int64_t ready_time(const struct ring_sim *g, unsigned rank, const struct step *st)
{
    const int64_t *a = &g->arrival[rank * g->messages];
    int64_t t = 0;

    if (st->need[LANE_RECV])
        t = a[st->need[LANE_RECV] - 1];
    if (st->need[LANE_CPU] && a[st->need[LANE_CPU] - 1] > t)
        t = a[st->need[LANE_CPU] - 1];
    return t;
}

/* When message i is everywhere, and known to be. */
static int64_t time_at(const struct ring_sim *g, uint64_t i)
{
    unsigned n = g->m->in.nranks;
    int64_t t = 0;

    for (unsigned r = 0; r < n; r++) {
        int64_t there = g->arrival[(r + 1) % n * g->messages + i] + ack_time(g->m, &g->back[r]);

        t = there > t ? there : t;
    }
    return t;
}

static void run(struct ring_sim *g, uint64_t from, uint64_t to)
{
    unsigned n = g->m->in.nranks;

    for (uint64_t i = from; i < to; i++)
        for (unsigned r = 0; r < n; r++) {
            struct step st;

            sched_step(&g->s[r], LANE_SEND, i, &st);
            g->arrival[st.peer * g->messages + i] =
                carry(g->m, &g->path[r], ready_time(g, r, &st), st.len);
        }
}

/* Bytes of links grow with the steps: what was simulated stands for `factor` as much. */
static void scale_bytes(struct model *m, double factor)
{
    for (uint32_t d = 0; d < m->n_dir; d++)
        m->bytes[d] *= factor;
}

/* One vector of `count` elements: time, and bytes of every link in m->bytes. */
static int simulate(struct ring_sim *g, uint64_t count, double *time_ps)
{
    struct model *m = g->m;
    unsigned n = m->in.nranks;
    uint64_t all, k, half;

    m->in.count = count;
    memset(m->free_ps, 0, m->n_dir * sizeof(*m->free_ps));
    memset(m->bytes, 0, m->n_dir * sizeof(*m->bytes));
    for (unsigned r = 0; r < n; r++) {
        int rc;

        m->in.rank = r;
        rc = sched_init(&g->s[r], &m->in);
        if (rc)
            return rc;
    }
    all = g->s[0].n[LANE_SEND];
    k = g->s[0].slices;
    half = all / k / 2; /* steps */
    if (all * n > BUDGET)
        half = BUDGET / n / k / 2;
    half = half < 4 ? 4 : half;
    g->messages = 2 * half * k < all ? 2 * half * k : all;
    free(g->arrival);
    g->arrival = calloc(g->messages * n, sizeof(*g->arrival));
    if (!g->arrival)
        return -ENOMEM;
    run(g, 0, g->messages);
    *time_ps = (double)time_at(g, g->messages - 1);
    if (g->messages < all) {
        double step = (*time_ps - (double)time_at(g, half * k - 1)) / (double)half;

        *time_ps += step * (double)((all - g->messages) / k);
        scale_bytes(m, (double)all / (double)g->messages);
    }
    return 0;
}

static int long_vector(struct ring_sim *g, uint64_t count, uint64_t many, double *time_ps)
{
    struct model *m = g->m;
    double *few = malloc((m->n_dir + 1) * sizeof(*few)), t_few, t_many, f;
    int rc = few ? simulate(g, many / 2, &t_few) : -ENOMEM;

    if (!rc) {
        memcpy(few, m->bytes, m->n_dir * sizeof(*few));
        rc = simulate(g, many, &t_many);
    }
    if (!rc) {
        f = (double)(count - many) / (double)(many - many / 2);
        *time_ps = t_many + f * (t_many - t_few);
        for (uint32_t d = 0; d < m->n_dir; d++)
            m->bytes[d] += f * (m->bytes[d] - few[d]);
    }
    free(few);
    return rc;
}

static void find_paths(struct ring_sim *g, struct coll_prediction *p)
{
    struct model *m = g->m;
    unsigned n = m->in.nranks, sum = 0, least = ~0u;

    for (unsigned r = 0; r < n; r++) {
        uint16_t at = model_node(m, r), to = model_node(m, (r + 1) % n);
        unsigned crossings;

        model_path(m->fab, at, to, &g->path[r]);
        model_path(m->fab, to, at, &g->back[r]);
        for (unsigned h = 0; h < g->path[r].n; h++)
            m->data[g->path[r].link[h]]++;
        for (unsigned h = 0; h < g->back[r].n; h++)
            m->acks[g->back[r].link[h]]++;
        /* A step: host to switch process, on to others, to the host. */
        crossings = 2 + model_crossings(m->fab, at, &g->path[r]);
        sum += crossings;
        least = crossings < least ? crossings : least;
    }
    p->handoffs = 2 * (sum - least); /* 2(N-1) steps: twice around but for one edge each time */
}

int model_ring(struct model *m, struct coll_prediction *p)
{
    unsigned n = m->in.nranks;
    uint64_t count = m->in.count, slices = BUDGET / (2ULL * (n - 1) * n), many;
    struct ring_sim g = {.m = m};
    double t = 0;
    int rc = -ENOMEM;

    slices = slices < FEW_SLICES ? FEW_SLICES : slices > MANY_SLICES ? MANY_SLICES : slices;
    many = n * slices * SCHED_SLICE_MAX / dtype_size(m->in.type);
    g.path = calloc(n, sizeof(*g.path));
    g.back = calloc(n, sizeof(*g.back));
    g.s = calloc(n, sizeof(*g.s));
    if (g.path && g.back && g.s) {
        find_paths(&g, p);
        rc = count > many ? long_vector(&g, count, many, &t) : simulate(&g, count, &t);
    }
    if (!rc)
        p->time_ps = (int64_t)t;
    free(g.path);
    free(g.back);
    free(g.s);
    free(g.arrival);
    return rc;
}
