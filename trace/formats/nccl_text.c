/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NCCL's log with NCCL_DEBUG_SUBSYS=INIT,COLL. Other lines, and what launchers put before one, are passed over:
 *   HOST:PID:TID [DEV] NCCL INFO OP: opCount HEX .. count N datatype D op R root Q comm P [nranks=N] stream P
 *   HOST:PID:TID [DEV] NCCL INFO CALL comm P rank R nranks N .. commId 0xH - Init COMPLETE
 *   .. comm P rank R nranks N .. parent P childCount C color C key K - Init COMPLETE
 */
#include "trace/formats/nccl_log.h"
#include "trace/formats/trace_readers.h"
#include "trace/grow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MARK         " NCCL INFO "
#define NAME         256
#define MEMBERS_MOST (1u << 26)

static const struct {
    const char *word;
    enum app_kind kind;
    enum app_coll coll;
} kinds[] = {
    {"AllGather", APP_COLL, APP_ALL_GATHER},
    {"AllReduce", APP_COLL, APP_ALL_REDUCE},
    {"AlltoAll", APP_COLL, APP_ALL_TO_ALL},
    {"Broadcast", APP_COLL, APP_BROADCAST},
    {"Gather", APP_COLL, APP_GATHER},
    {"Reduce", APP_COLL, APP_REDUCE},
    {"ReduceScatter", APP_COLL, APP_REDUCE_SCATTER},
    {"Scatter", APP_COLL, APP_SCATTER},
    {"Send", APP_SEND, 0},
    {"Recv", APP_RECV, 0},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Bytes of an element by the number of its type. */
static const uint8_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

struct nccl_line {
    struct nccl_log *l;
    struct app_graph *g;
    struct trace_input *in;
    const char *text; /* behind the mark */
    uint32_t process, file;
};

/* ---- words of a line ---- */

/* What is behind " KEY " in the line; NULL: it has none. */
static const char *value_of(const struct nccl_line *n, const char *key)
{
    size_t k = strlen(key);
    const char *at = n->text;

    while ((at = strstr(at, key)) != NULL) {
        if ((at == n->text || at[-1] == ' ') && at[k] == ' ')
            return at + k + 1;
        at += k;
    }
    return NULL;
}

static int line_refuse(struct nccl_line *n, const char *found, const char *expected)
{
    return trace_refuse(n->in, found ? found : "", found ? strcspn(found, " ") : 0, expected);
}

static int value_number(struct nccl_line *n, const char *key, int base, uint64_t most, uint64_t *to)
{
    const char *at = value_of(n, key);
    char expected[64], *end = NULL;

    snprintf(expected, sizeof(expected), "%s and a number", key);
    if (!at || !((*at >= '0' && *at <= '9') || (base == 16 && *at >= 'a' && *at <= 'f')))
        return line_refuse(n, at, expected);
    errno = 0;
    *to = strtoull(at, &end, base);
    if (errno || *to > most || (*end && *end != ' '))
        return line_refuse(n, at, expected);
    return 0;
}

/* ---- processes and communicators ---- */

/* "HOST:PID" of "HOST:PID:TID [DEV]" before the mark. False: the line has none. */
static bool line_process(struct nccl_line *n, char *line, const char *mark)
{
    char *end = line + (mark - line), *name, *tid;

    while (end > line && end[-1] != '[')
        end--;
    for (end -= end > line; end > line && end[-1] == ' ';)
        end--;
    for (name = end; name > line && name[-1] != ' ' && name[-1] != '\t';)
        name--;
    tid = memrchr(name, ':', (size_t)(end - name));
    if (!tid || tid == name || !memchr(name, ':', (size_t)(tid - name)))
        return false;
    n->process = label_map_find(&n->l->names, name, (size_t)(tid - name));
    if (n->process != NUMBER_NONE)
        return true;
    GROW(n->l->process, n->l->n_processes + 1u, &n->l->process_room);
    n->process = n->l->n_processes++;
    n->l->process[n->process] = (struct nccl_process){
        .file = n->file, .rank = NCCL_NONE, .first = NCCL_NONE, .last = NCCL_NONE};
    label_map_enter(&n->l->names, name, (size_t)(tid - name), n->process);
    return true;
}

/* The number of the communicator of this name over all processes. */
static int all_of(struct nccl_line *n, const char *name, uint64_t ranks, uint32_t *id)
{
    struct nccl_all *a;

    *id = label_map_find(&n->l->ids, name, strlen(name));
    if (*id != NUMBER_NONE)
        return n->l->all[*id].n == ranks
                   ? 0
                   : trace_refuse_at(n->in, "",
                                     "line %u: found %" PRIu64 " ranks of %s, expected %u",
                                     n->in->line, ranks, name, n->l->all[*id].n);
    n->l->members += ranks;
    if (n->l->members > MEMBERS_MOST)
        return trace_refuse_at(n->in, "",
                               "line %u: found more than %u members of communicators, "
                               "expected fewer",
                               n->in->line, MEMBERS_MOST);
    GROW(n->l->all, n->l->n_all + 1u, &n->l->all_room);
    *id = n->l->n_all++;
    a = &n->l->all[*id];
    *a = (struct nccl_all){.n = (uint32_t)ranks,
                           .process = enough_memory(ranks, sizeof(*a->process))};
    for (uint32_t i = 0; i < a->n; i++)
        a->process[i] = NCCL_NONE;
    label_map_enter(&n->l->ids, name, strlen(name), *id);
    return 0;
}

/* What names a communicator in every process: its id, or the parent's and the split. */
static int comm_name(struct nccl_line *n, char *name)
{
    const char *id = value_of(n, "commId"), *color = value_of(n, "color");
    uint64_t parent = 0, child = 0;
    uint32_t handle;
    int rc;

    if (id) {
        snprintf(name, NAME, "id %.*s", (int)(strcspn(id, " ") < 100 ? strcspn(id, " ") : 100), id);
        return 0;
    }
    rc = value_number(n, "parent", 16, UINT64_MAX, &parent);
    if (!rc)
        rc = value_number(n, "childCount", 10, UINT32_MAX, &child);
    if (rc || !color)
        return rc ? rc : line_refuse(n, NULL, "commId, or parent, childCount and color");
    handle = number_map_find(&n->l->handles, n->process, parent);
    if (handle == NUMBER_NONE)
        return line_refuse(n, value_of(n, "parent"), "a communicator of this process");
    snprintf(name, NAME, "split %u %" PRIu64 " %.*s", n->l->comm[handle].id, child,
             (int)(strcspn(color, " ") < 20 ? strcspn(color, " ") : 20), color);
    return 0;
}

static int line_init(struct nccl_line *n)
{
    struct nccl_process *p = &n->l->process[n->process];
    uint64_t pointer = 0, rank = 0, ranks = 0;
    uint32_t id = 0, handle, old = n->l->handles.n;
    char name[NAME];
    int rc = value_number(n, "comm", 16, UINT64_MAX, &pointer);

    if (!rc)
        rc = value_number(n, "nranks", 10, APP_RANKS_MOST, &ranks);
    if (!rc)
        rc = value_number(n, "rank", 10, ranks ? ranks - 1 : 0, &rank);
    if (!rc && !ranks)
        return line_refuse(n, value_of(n, "nranks"), "ranks");
    if (!rc)
        rc = comm_name(n, name);
    if (!rc)
        rc = all_of(n, name, ranks, &id);
    if (rc)
        return rc;
    if (n->l->all[id].process[rank] != NCCL_NONE && n->l->all[id].process[rank] != n->process)
        return trace_refuse_at(n->in, "",
                               "line %u: found rank %" PRIu64 " of communicator %s again, "
                               "expected one process",
                               n->in->line, rank, name);
    n->l->all[id].process[rank] = n->process;
    handle = number_map_enter(&n->l->handles, n->process, pointer);
    GROW(n->l->comm, n->l->handles.n, &n->l->comm_room);
    (void)old;
    n->l->comm[handle] = (struct nccl_comm){id, (uint32_t)rank};
    if (p->rank == NCCL_NONE || ranks > p->world) {
        p->rank = (uint32_t)rank;
        p->world = (uint32_t)ranks;
    }
    return 0;
}

/* ---- operations ---- */

static int op_numbers(struct nccl_line *n, struct nccl_op *op)
{
    uint64_t elements = 0, type = 0, peer = 0, pointer = 0, stream = 0, ranks;
    uint32_t handle;
    int rc = value_number(n, "opCount", 16, UINT64_MAX, &op->count);

    if (!rc)
        rc = value_number(n, "count", 10, UINT64_MAX / 8, &elements);
    if (!rc)
        rc = value_number(n, "datatype", 10, sizeof(sizes) - 1, &type);
    if (!rc)
        rc = value_number(n, "root", 10, APP_RANKS_MOST - 1, &peer);
    if (!rc)
        rc = value_number(n, "comm", 16, UINT64_MAX, &pointer);
    if (!rc)
        rc = value_number(n, "stream", 16, UINT64_MAX, &stream);
    if (rc)
        return rc;
    handle = number_map_find(&n->l->handles, n->process, pointer);
    if (handle == NUMBER_NONE)
        return line_refuse(n, value_of(n, "comm"), "a communicator whose Init COMPLETE is before");
    ranks = n->l->all[n->l->comm[handle].id].n;
    if (peer >= ranks)
        return line_refuse(n, value_of(n, "root"), "a rank of the communicator");
    op->bytes = elements * sizes[type];
    op->peer = (uint32_t)peer;
    op->comm = n->l->comm[handle].id;
    op->stream = number_map_enter(&n->l->streams, n->process, stream);
    return 0;
}

static int line_op(struct nccl_line *n, size_t kind)
{
    struct nccl_op op = {.line = n->in->line,
                         .kind = (uint8_t)kinds[kind].kind,
                         .coll = (uint8_t)kinds[kind].coll,
                         .next = NCCL_NONE};
    struct nccl_process *p = &n->l->process[n->process];
    int rc = op_numbers(n, &op);

    if (rc)
        return rc;
    if (n->l->n_ops >= APP_OPS_MOST)
        return line_refuse(n, NULL, "fewer operations");
    GROW(n->l->op, n->l->n_ops + 1u, &n->l->op_room);
    n->l->op[n->l->n_ops] = op;
    if (p->last == NCCL_NONE)
        p->first = n->l->n_ops;
    else
        n->l->op[p->last].next = n->l->n_ops;
    p->last = n->l->n_ops++;
    return 0;
}

static int line_read(struct nccl_line *n, char *line)
{
    const char *mark = strstr(line, MARK);
    size_t i = 0, k = mark ? strcspn(mark + strlen(MARK), ":") : 0;

    if (!mark || !line_process(n, line, mark))
        return 0;
    n->text = mark + strlen(MARK);
    while (i < KINDS && (strlen(kinds[i].word) != k || strncmp(n->text, kinds[i].word, k) != 0))
        i++;
    if (i < KINDS)
        return strncmp(n->text + k, ": opCount ", 10) ? 0 : line_op(n, i);
    return strstr(n->text, "- Init COMPLETE") && value_of(n, "comm") ? line_init(n) : 0;
}

bool nccl_text_is(const char *at, size_t n)
{
    return memmem(at, n, MARK, strlen(MARK)) != NULL;
}

int nccl_text_read(struct app_graph *g, struct trace_input *in, uint32_t rank)
{
    struct nccl_line n = {.l = nccl_log_of(g), .g = g, .in = in};
    char *line;
    size_t k;
    int rc;

    (void)rank;
    g->format = "NCCL log";
    n.file = app_graph_file(g, in->name, false);
    while (!(rc = trace_input_line(in, &line, &k)))
        if ((rc = line_read(&n, line)) != 0)
            break;
    return rc == 1 ? 0 : rc;
}
