/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator of the public interface. The ranks make three exchanges over their out-of-band
 * calls: their hosts, their blobs, and whether they are connected. A rank that has failed takes
 * part and sends its reason, so that nobody waits for it.
 */
#include "base/assert.h"
#include "collective/sched.h"
#include "host/bench/dilation_control.h"
#include "host/bench/trees.h"
#include "host/session/agree.h"
#include "host/session/comm_priv.h"
#include "host/session/oob.h"
#include "machine/shared.h"
#include "system/credential.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOSE_NS 2000000000LL
#define TELL_NS  300000000LL
/* Algorithms that need no switch: operations may use them beside those of the options. */
#define BY_HOSTS                                                                                   \
    (1u << ALGO_RING | 1u << ALGO_TREE | 1u << ALGO_CHAIN | 1u << ALGO_DIRECT | 1u << ALGO_PAIRWISE)

struct session_hello {
    int32_t rc;
    uint16_t host, pad;
    uint32_t group; /* all ranks use rank 0's; so of the key */
    uint64_t key;
    struct process_id process;
    char why[160];
};
struct session_blob {
    int32_t rc, pad;
    struct agreed agreed;
    uint8_t blob[COMM_BLOB];
    char why[160];
};
struct outcome {
    int32_t rc;
    char why[160];
};
_Static_assert(sizeof(struct session_blob) <= OOB_MESSAGE, "the public header's limit");

/* ---- options ---- */

static int take_algo(struct trib_comm *c, const char *name, char *err)
{
    for (unsigned a = 0; a < ALGO_SCHEDULE; a++) {
        if ((coll_is_protocol((enum coll_algo)a) && !coll_protocol((enum coll_algo)a)) ||
            strcmp(sched_algo_name((enum coll_algo)a), name) != 0)
            continue;
        for (unsigned i = 0; i < c->cfg.n_policy; i++)
            if (c->cfg.policy[i] == a)
                return session_say(err, -EINVAL, "algo: found %s twice", name);
        T_ASSERT(c->cfg.n_policy < ALGO_SCHEDULE, "more algorithms are listed than there are");
        c->cfg.policy[c->cfg.n_policy++] = (enum coll_algo)a;
        return 0;
    }
    return session_say(err, -EINVAL,
                       "algo: found '%s', expected auto or a list of algorithms (trib perf -h)",
                       name);
}

static int take_options(struct trib_comm *c, const struct trib_comm_options *o, char *err)
{
    const char *list = o && o->algo ? o->algo : "sharp,ring";
    char text[256], *save = NULL;

    c->cfg.window = o ? o->window : 0;
    c->automatic = !strcmp(list, "auto");
    snprintf(text, sizeof(text), "%s", c->automatic ? "sharp,ring" : list);
    for (char *s = strtok_r(text, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
        int rc = take_algo(c, s, err);

        if (rc)
            return rc;
    }
    return c->cfg.n_policy ? 0 : session_say(err, -EINVAL, "algo: found nothing, expected a list");
}

/* ---- creating ---- */

static int64_t now_ps(void *ctx)
{
    return clock_fabric_ps(((struct trib_comm *)ctx)->session->rd.sh);
}

void session_comm_drive(struct trib_comm *c)
{
    int64_t now = clock_mono_ns();
    uint32_t d = clock_dilation(c->session->rd.sh);

    T_ASSERT(now >= c->wall_ns, "the machine's clock has gone back");
    /* At a high dilation answers take longer, so retries wait longer. */
    c->patience_ns +=
        d > DILATION_CONTROL ? (now - c->wall_ns) * DILATION_CONTROL / d : now - c->wall_ns;
    c->wall_ns = now;
    comm_progress(c->comm);
    comm_tick(c->comm, c->patience_ns);
    deaths_look(c, now, d);
}

/* Formats the failure of rank r into err. Returns rc. */
static int session_comm_verdict(const struct trib_comm *c, uint32_t r, int rc, const char *why,
                                char *err)
{
    return session_say(
        err, rc, "rank %u (%s): %s", r,
        c->session ? c->session->fab->nodes[c->session->fab->hosts[c->host[r]]].name : "?", why);
}

static int exchange_hosts(struct trib_comm *c, int rc, const char *why, char *err)
{
    struct session_hello mine = {.rc = rc}, *all = calloc(c->cfg.nranks, sizeof(*all));
    uint32_t bad = c->cfg.nranks;

    if (!all)
        return session_say(err, -ENOMEM, "out of memory");
    snprintf(mine.why, sizeof(mine.why), "%.*s", (int)sizeof(mine.why) - 1, why);
    mine.host = c->session ? c->session->host : 0;
    mine.process = liveness_self();
    if (!rc && (credential_random(&mine.group, sizeof(mine.group)) ||
                credential_random(&mine.key, sizeof(mine.key)))) {
        mine.rc = -EIO;
        snprintf(mine.why, sizeof(mine.why), "the kernel has no random numbers");
    }
    if (oob_all_gather(&c->oob, &mine, all, sizeof(mine))) {
        free(all);
        return session_say(err, rc ? rc : -EIO, "%s", rc ? why : "an out-of-band call has failed");
    }
    for (uint32_t r = c->cfg.nranks; r-- > 0;) {
        c->host[r] = all[r].host;
        c->process[r] = all[r].process;
        if (r == c->cfg.rank || !liveness_sees(&c->process[r]))
            c->process[r].space = 0;
        if (all[r].rc)
            bad = r;
    }
    c->cfg.group = all[0].group;
    c->cfg.key = all[0].key;
    if (rc)
        session_say(err, rc, "%s", why);
    else if (bad < c->cfg.nranks)
        rc = session_say(err, all[bad].rc, "rank %u: %.*s", bad, (int)sizeof(mine.why) - 1,
                         all[bad].why);
    for (uint32_t r = 0; !rc && r < c->cfg.nranks; r++)
        if (c->host[r] >= c->session->fab->n_hosts)
            rc = session_say(err, -EINVAL, "rank %u is on another fabric", r);
    free(all);
    return rc;
}

/* Chooses the algorithms of the communicator: those that operations may use and that the fabric
 * supports between these ranks. */
static void session_comm_choose(struct trib_comm *c)
{
    const struct fabric *f = c->session->fab;
    struct coll_args a = {.kind = COLL_ALLREDUCE, .count = 64, .type = DT_FP32};
    unsigned asked = BY_HOSTS, n = 0;
    struct coll_prediction p;

    a.send = &a;
    a.recv = &p;
    c->cfg.n_trees = trees_choose(f, c->cfg.nranks, c->host, c->cfg.tree);
    T_ASSERT(c->cfg.n_trees <= COLL_TREES, "more trees are chosen than there is room for");
    for (unsigned i = 0; i < c->cfg.n_policy; i++)
        asked |= 1u << c->cfg.policy[i];
    if (c->automatic)
        asked |= ALGO_USUAL ? (1u << ALGO_USUAL) - 1 : 0;
    for (unsigned k = 0; k < ALGO_SCHEDULE; k++) {
        a.algo = (enum coll_algo)k;
        if (!(asked >> k & 1) || (k == ALGO_SHARP && !c->cfg.n_trees))
            continue;
        if (BY_HOSTS >> k & 1 || coll_predict_trees(f, &a, c->cfg.nranks, c->host, c->cfg.tree,
                                                    c->cfg.n_trees, c->cfg.window, &p) != -ENOTSUP)
            c->cfg.algos |= 1u << k;
    }
    for (unsigned i = 0; i < c->cfg.n_policy; i++)
        if (c->cfg.algos >> c->cfg.policy[i] & 1)
            c->cfg.policy[n++] = c->cfg.policy[i];
    if (!n)
        c->cfg.policy[n++] = ALGO_RING;
    T_ASSERT(c->cfg.algos & BY_HOSTS, "no algorithm needs no switch");
    c->cfg.n_policy = n;
}

/* Creates the communicator and gathers the blobs of all ranks, COMM_BLOB bytes each. If one rank
 * fails, all do. */
static int exchange_blobs(struct trib_comm *c, uint8_t *blobs, char *err)
{
    struct session_blob mine = {0}, *all = calloc(c->cfg.nranks, sizeof(*all));
    char why[COMM_TEXT] = "";
    int rc;

    if (!all)
        return session_say(err, -ENOMEM, "out of memory");
    mine.rc = comm_create(&c->comm, &c->cfg, mine.blob, why);
    snprintf(mine.why, sizeof(mine.why), "%.*s", (int)sizeof(mine.why) - 1, why);
    if (mine.rc)
        c->comm = NULL;
    T_ASSERT(!mine.rc == !!c->comm, "a communicator is there that was refused, or is not");
    mine.agreed.n_trees = (uint16_t)c->cfg.n_trees;
    memcpy(mine.agreed.tree, c->cfg.tree, c->cfg.n_trees * sizeof(c->cfg.tree[0]));
    rc = oob_all_gather(&c->oob, &mine, all, sizeof(mine))
             ? session_say(err, -EIO, "an out-of-band call has failed")
             : 0;
    for (uint32_t r = 0; !rc && r < c->cfg.nranks; r++)
        if (all[r].rc)
            rc = session_comm_verdict(c, r, all[r].rc, all[r].why, err);
        else if (!agree_with(&all[r].agreed, &all[0].agreed, why, sizeof(why)))
            rc = session_comm_verdict(c, r, -EINVAL, why, err);
        else
            memcpy(blobs + (size_t)r * COMM_BLOB, all[r].blob, COMM_BLOB);
    free(all);
    return rc;
}

/* Exchanges whether the ranks are connected. If one is not, all fail. */
static int exchange_outcome(struct trib_comm *c, int rc, char *err)
{
    struct outcome mine = {.rc = rc}, *all = calloc(c->cfg.nranks, sizeof(*all));

    if (!all)
        return session_say(err, -ENOMEM, "out of memory");
    if (rc && err)
        snprintf(mine.why, sizeof(mine.why), "%.*s", (int)sizeof(mine.why) - 1, err);
    if (oob_all_gather(&c->oob, &mine, all, sizeof(mine)))
        rc = session_say(err, -EIO, "an out-of-band call has failed");
    for (uint32_t r = 0; !rc && r < c->cfg.nranks; r++)
        if (all[r].rc)
            rc = session_comm_verdict(c, r, all[r].rc, all[r].why, err);
    free(all);
    return rc;
}

/* Aborts, and makes progress for a while so that ranks in their barriers learn of it. */
static void give_up(struct trib_comm *c, const char *why)
{
    int64_t until = clock_mono_ns() + TELL_NS;

    comm_abort(c->comm, why);
    while (clock_mono_ns() < until)
        session_comm_drive(c);
}

/* Connects, and ends with a barrier of the communicator itself: in it, ranks that are ready still
 * answer those that are not. In an out-of-band call they would not. */
static int connect_all(struct trib_comm *c, const uint8_t *blobs, char *err)
{
    struct coll_args a = {.kind = COLL_BARRIER, .algo = ALGO_DIRECT};
    char why[COMM_TEXT] = "";
    struct coll_req *req = NULL;
    int rc = comm_connect(c->comm, blobs, why);

    if (rc)
        return session_say(err, rc, "%s", why);
    while (comm_state(c->comm) == COMM_CONNECTING)
        session_comm_drive(c);
    if (comm_state(c->comm) == COMM_READY)
        rc = coll_start(c->comm, &a, &req, why);
    while (req && !coll_test(req))
        session_comm_drive(c);
    if (req)
        coll_free(req);
    while (comm_state(c->comm) == COMM_FAILED && !c->settled)
        session_comm_drive(c);
    if (comm_state(c->comm) == COMM_FAILED) {
        deaths_error(c, why, sizeof(why));
        rc = -EIO;
    }
    if (rc) {
        session_say(err, rc, "%s", why);
        give_up(c, err);
    }
    return rc;
}

static int session_comm_meet(struct trib_comm *c, char *err)
{
    uint8_t *blobs = calloc(c->cfg.nranks, COMM_BLOB);
    int rc;

    if (!blobs)
        return session_say(err, -ENOMEM, "out of memory");
    rc = exchange_blobs(c, blobs, err);
    if (!rc)
        rc = exchange_outcome(c, connect_all(c, blobs, err), err);
    free(blobs);
    return rc;
}

static int check_oob(const struct trib_oob *o, char *err)
{
    if (!o || !o->bcast || !o->gather || !o->barrier)
        return session_say(err, -EINVAL, "oob: found no bcast, gather or barrier");
    if (!o->size || o->rank >= o->size || o->size > FAB_MAX_MEMBERS)
        return session_say(err, -EINVAL, "oob: found rank %u of %u, expected a rank below 1 to %u",
                           o->rank, o->size, FAB_MAX_MEMBERS);
    return 0;
}

int trib_comm_create(struct trib_comm **comm, const struct trib_oob *oob,
                     const struct trib_comm_options *options, char *err)
{
    char text[TRIB_TEXT] = "";
    struct trib_comm *c;
    int rc = check_oob(oob, err);

    if (rc)
        return rc;
    c = calloc(1, sizeof(*c));
    if (c)
        c->process = calloc(oob->size, sizeof(*c->process));
    if (!c || !c->process) {
        free(c);
        return session_say(err, -ENOMEM, "out of memory");
    }
    pthread_mutex_init(&c->lock, NULL);
    c->magic = COMM_MAGIC;
    c->oob = *oob;
    c->wall_ns = clock_mono_ns();
    c->session = session_get(text);
    c->cfg = (struct comm_cfg){.rank = oob->rank,
                               .nranks = oob->size,
                               .host_of_rank = c->host,
                               .now_ps = now_ps,
                               .now_ctx = c};
    rc = c->session ? take_options(c, options, text) : -ENODEV;
    if (!comm) /* no return yet: the others must learn of it */
        rc = session_say(text, -EINVAL, "comm: found no place for the communicator");
    rc = exchange_hosts(c, rc, text, err);
    if (!rc) {
        if (process_monitor_start(&c->watch, &c->session->rd, c->session->fab, c->host,
                                  oob->size)) {
            process_monitor_stop(c->watch); /* as in a sandbox; there, retries find deaths */
            c->watch = NULL;
        }
        c->cfg.fab = c->session->fab;
        c->cfg.n_ctx = c->session->n_ctx;
        c->cfg.ctx = c->session->ctx;
        session_comm_choose(c);
        rc = session_comm_meet(c, text);
        if (rc)
            session_say(err, rc, "%s", text);
    }
    if (rc) {
        trib_comm_destroy(c);
        return rc;
    }
    session_add_comm(c);
    *comm = c;
    return 0;
}

/* Leaves the group, so that its aggregation slots are free for others. */
static void session_comm_leave(struct trib_comm *c)
{
    int64_t until = clock_mono_ns() + CLOSE_NS;

    comm_close(c->comm);
    while (!comm_closed(c->comm) && clock_mono_ns() < until)
        session_comm_drive(c);
    comm_destroy(c->comm);
}

void trib_comm_destroy(struct trib_comm *c)
{
    if (!session_is_comm(c))
        return;
    session_drop_comm(c);
    if (c->comm)
        session_comm_leave(c);
    session_ops_free(c);
    T_ASSERT(!c->ops && !c->borrowed, "a communicator goes before its operations");
    process_monitor_stop(c->watch);
    if (c->session)
        session_put();
    pthread_mutex_destroy(&c->lock);
    *(volatile uint64_t *)&c->magic = 0; /* volatile: the compiler must keep it before free() */
    free(c->process);
    free(c);
}

uint32_t trib_comm_rank(const struct trib_comm *c)
{
    return session_is_comm(c) ? c->cfg.rank : 0;
}

uint32_t trib_comm_size(const struct trib_comm *c)
{
    return session_is_comm(c) ? c->cfg.nranks : 0;
}

/* Copies a text to a buffer of this thread, because another thread may change the original. */
static const char *text_of(struct trib_comm *c, void (*of)(struct trib_comm *, char *, size_t))
{
    static _Thread_local char text[COMM_TEXT];

    if (!session_is_comm(c)) {
        snprintf(text, sizeof(text), SESSION_NO_COMM);
        return text;
    }
    pthread_mutex_lock(&c->lock);
    of(c, text, sizeof(text));
    pthread_mutex_unlock(&c->lock);
    return text;
}

const char *trib_comm_error(struct trib_comm *c)
{
    return text_of(c, deaths_error);
}

unsigned trib_comm_trees(struct trib_comm *c, char *why)
{
    struct coll_grant g;

    if (!session_is_comm(c)) {
        session_say(why, 0, SESSION_NO_COMM);
        return 0;
    }
    pthread_mutex_lock(&c->lock);
    comm_granted(c->comm, &g);
    pthread_mutex_unlock(&c->lock);
    session_say(why, 0, "%s", g.why);
    return g.trees;
}

static void fell_back(struct trib_comm *c, char *text, size_t size)
{
    const char *why = comm_fell_back(c->comm);

    snprintf(text, size, "%s", why ? why : "");
}

const char *trib_comm_fell_back(struct trib_comm *c)
{
    return text_of(c, fell_back);
}
