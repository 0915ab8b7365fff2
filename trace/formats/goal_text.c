/* SPDX-License-Identifier: BSD-3-Clause */
/* GOAL as text, with the operation `coll` of in-network reduction. Every statement ends its line. */
#include "trace/formats/goal_coll.h"
#include "trace/label_map.h"
#include "trace/number_map.h"
#include "trace/formats/trace_readers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SUFFIXES "b" /* of sizes */

struct goal {
    struct app_graph *g;
    struct trace_input *in;
    char *at; /* in the line, which a 0 ends */
    struct label_map labels;
    uint32_t file, n_ranks, ranks; /* as the file says; so far */
    bool header, inside, brace;    /* num_ranks is read; in a rank; its { is to come */
    bool comment;                  /* a comment has begun on a line before */
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void blanks_skip(struct goal *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

/* The length of the word at `at`: a name, a number, or one character. */
static size_t word_length(const char *at)
{
    size_t n = 0;

    if (*at == '-' && is_digit(at[1]))
        n = 1;
    while (is_letter(at[n]) || is_digit(at[n]) || at[n] == '_')
        n++;
    return n ? n : *at != 0;
}

static int goal_refuse(struct goal *p, const char *expected)
{
    return trace_refuse(p->in, p->at, word_length(p->at), expected);
}

static bool word_is(const char *at, size_t n, const char *word)
{
    return !strncmp(at, word, n) && !word[n];
}

/* Goes on behind this word, if it is the next one. */
static bool goal_word(struct goal *p, const char *word)
{
    size_t n;

    blanks_skip(p);
    n = word_length(p->at);
    if (!word_is(p->at, n, word))
        return false;
    p->at += n;
    return true;
}

static int goal_expect(struct goal *p, const char *word, const char *expected)
{
    return goal_word(p, word) ? 0 : goal_refuse(p, expected);
}

/* A number up to `most`; what is behind its digits stays. */
static int goal_number(struct goal *p, uint64_t most, uint64_t *value, const char *expected)
{
    char *end;
    uint64_t v = 0;

    blanks_skip(p);
    end = p->at;
    for (; is_digit(*end); end++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (unsigned)(*end - '0'), &v))
            return goal_refuse(p, expected);
    if (end == p->at || v > most || *end == '_')
        return goal_refuse(p, expected);
    p->at = end;
    *value = v;
    return 0;
}

/* The same, or -1 for any. */
static int goal_number_or_any(struct goal *p, uint64_t *value, const char *expected)
{
    if (goal_word(p, "-1")) {
        *value = APP_ANY;
        return 0;
    }
    return goal_number(p, UINT32_MAX, value, expected);
}

static int goal_size(struct goal *p, uint64_t *bytes)
{
    int rc = goal_number(p, UINT64_MAX, bytes, "a size in bytes, as 4096b");

    return rc ? rc : goal_expect(p, SUFFIXES, "b behind the size");
}

/* "tag N cpu N nic N", each of which may lack. */
static int goal_options(struct goal *p, struct app_op *op, bool with_tag, bool with_nic)
{
    uint64_t v = 0;
    int rc = 0;

    if (with_tag && goal_word(p, "tag")) {
        rc = op->kind == APP_RECV ? goal_number_or_any(p, &v, "a tag of 32 bits, or -1")
                                  : goal_number(p, UINT32_MAX, &v, "a tag of 32 bits");
        op->tag = (uint32_t)v;
    }
    if (!rc && goal_word(p, "cpu")) {
        rc = goal_number(p, UINT8_MAX, &v, "a cpu from 0 to 255");
        op->stream = (uint16_t)v;
    }
    if (!rc && with_nic && goal_word(p, "nic")) {
        rc = goal_number(p, UINT8_MAX, &v, "a nic from 0 to 255");
        op->nic = (uint8_t)v;
    }
    return rc;
}

static int goal_message(struct goal *p, struct app_op *op, const char *word)
{
    bool sends = op->kind == APP_SEND;
    uint64_t peer = 0;
    int rc = goal_size(p, &op->bytes);

    if (!rc)
        rc = goal_expect(p, word, sends ? "to RANK" : "from RANK");
    if (!rc)
        rc = sends ? goal_number(p, UINT32_MAX, &peer, "a rank")
                   : goal_number_or_any(p, &peer, "a rank, or -1");
    op->peer = (uint32_t)peer;
    return rc ? rc : goal_options(p, op, true, true);
}

static int goal_calc(struct goal *p, struct app_op *op)
{
    int rc = goal_number(p, UINT64_MAX, &op->ns, "a time in nanoseconds");

    return rc ? rc : goal_options(p, op, false, false);
}

static int goal_coll_kind(struct goal *p, struct app_op *op)
{
    for (unsigned i = 0; i < GOAL_COLLS; i++)
        if (goal_word(p, goal_colls[i].word)) {
            op->coll = goal_colls[i].coll;
            return 0;
        }
    return goal_refuse(p, "bcast, reduce, allreduce, reduce_scatter or allgather");
}

static int goal_coll_read(struct goal *p, struct app_op *op)
{
    uint64_t group = 0, instance = 0, root = 0;
    int rc = goal_coll_kind(p, op);

    if (!rc)
        rc = goal_size(p, &op->bytes);
    if (!rc)
        rc = goal_number(p, APP_GROUPS_MOST - 1, &group, "the number of a group");
    if (!rc)
        rc = goal_number(p, UINT32_MAX - 1, &instance, "the number of a collective");
    if (!rc)
        rc = goal_number_or_any(p, &root, "the root's rank, or -1");
    op->group = (uint32_t)group;
    op->tag = (uint32_t)instance;
    op->peer = (uint32_t)root;
    return rc ? rc : goal_options(p, op, true, true);
}

/* The operation at the cursor; 1: it is none. */
static int goal_op(struct goal *p, struct app_op *op)
{
    *op = (struct app_op){.line = p->in->line, .kind = APP_COMPUTE};
    if (goal_word(p, "calc"))
        return goal_calc(p, op);
    if (goal_word(p, "send")) {
        op->kind = APP_SEND;
        return goal_message(p, op, "to");
    }
    if (goal_word(p, "recv")) {
        op->kind = APP_RECV;
        return goal_message(p, op, "from");
    }
    if (goal_word(p, "coll")) {
        op->kind = APP_COLL;
        return goal_coll_read(p, op);
    }
    return 1;
}

static int goal_line_end(struct goal *p)
{
    blanks_skip(p);
    return *p->at ? goal_refuse(p, "the end of the line") : 0;
}

static int goal_enter(struct goal *p, const struct app_op *op, const char *label, size_t n)
{
    int64_t i;
    int rc = goal_line_end(p);

    if (rc)
        return rc;
    i = app_graph_op(p->g, op);
    if (i < 0)
        return trace_refuse_at(p->in, "", "found more than %u operations, expected fewer",
                               APP_OPS_MOST);
    if (label)
        label_map_enter(&p->labels, label, n, (uint32_t)i);
    return 0;
}

/* An operation that a dependency names; NUMBER_NONE, which is noted: there is none. */
static uint32_t goal_label(struct goal *p, const char *label, size_t n)
{
    uint32_t i = label_map_find(&p->labels, label, n);

    if (i == NUMBER_NONE)
        finding_note(&p->g->found, FINDING_DEPENDENCY,
                     "%s:%u: found the label \"%.*s\", expected one that the rank has before",
                     p->in->name, p->in->line, (int)(n < 40 ? n : 40), label);
    return i;
}

/* "A requires B", behind A. */
static int goal_dependency(struct goal *p, const char *label, size_t n)
{
    bool at_start = goal_word(p, "irequires");
    uint32_t waits, on;
    size_t m;
    int rc = 0;

    if (!at_start)
        rc = goal_expect(p, "requires", "\":\", requires or irequires behind a label");
    if (rc)
        return rc;
    blanks_skip(p);
    m = word_length(p->at);
    if (!is_letter(*p->at))
        return goal_refuse(p, "a label");
    waits = goal_label(p, label, n);
    on = goal_label(p, p->at, m);
    p->at += m;
    p->g->repaired[REPAIR_ABSENT] += waits == NUMBER_NONE || on == NUMBER_NONE;
    if (waits != NUMBER_NONE && on != NUMBER_NONE)
        app_graph_dep(p->g, waits, on, at_start);
    return goal_line_end(p);
}

static int goal_statement(struct goal *p)
{
    struct app_op op;
    const char *label;
    size_t n;
    int rc = goal_op(p, &op);

    if (rc <= 0)
        return rc ? rc : goal_enter(p, &op, NULL, 0);
    if (!is_letter(*p->at))
        return goal_refuse(p, "calc, send, recv, coll, a label or \"}\"");
    label = p->at;
    n = word_length(p->at);
    p->at += n;
    if (!goal_word(p, ":"))
        return goal_dependency(p, label, n);
    rc = goal_op(p, &op);
    if (rc > 0)
        return goal_refuse(p, "calc, send, recv or coll");
    return rc ? rc : goal_enter(p, &op, label, n);
}

static int goal_header(struct goal *p)
{
    uint64_t n = 0;
    int rc = goal_expect(p, "num_ranks", "num_ranks");

    if (!rc)
        rc = goal_number(p, APP_RANKS_MOST, &n, "a number of ranks up to 1048576");
    p->n_ranks = (uint32_t)n;
    p->header = true;
    return rc;
}

static int goal_rank(struct goal *p)
{
    uint64_t rank = 0;
    char expected[64];
    int rc = goal_expect(p, "rank", "rank");

    snprintf(expected, sizeof(expected), "rank %u of %u", p->ranks, p->n_ranks);
    if (!rc)
        blanks_skip(p);
    if (!rc && p->ranks == p->n_ranks)
        return goal_refuse(p, "no more ranks than num_ranks says");
    if (!rc)
        rc = goal_number(p, p->ranks, &rank, expected);
    if (!rc && rank != p->ranks)
        return trace_refuse_at(p->in, "", "line %u: found rank %u, expected %s", p->in->line,
                               (unsigned)rank, expected);
    if (rc)
        return rc;
    app_graph_rank(p->g, p->ranks++, p->file);
    p->brace = p->inside = true;
    return 0;
}

static int goal_brace(struct goal *p)
{
    p->brace = false;
    return goal_expect(p, "{", "\"{\"");
}

static int goal_close(struct goal *p)
{
    app_graph_rank_end(p->g);
    label_map_clear(&p->labels);
    p->inside = false;
    return 0;
}

/* Blanks and comments where a statement may begin. */
static void goal_skip(struct goal *p)
{
    for (;;) {
        char *end = p->comment ? strstr(p->at, "*/") : NULL;

        if (p->comment && !end)
            p->at += strlen(p->at);
        if (end) {
            p->at = end + 2;
            p->comment = false;
        }
        blanks_skip(p);
        if (p->at[0] == '/' && p->at[1] == '/')
            p->at += strlen(p->at);
        if (p->at[0] != '/' || p->at[1] != '*')
            return;
        p->at += 2;
        p->comment = true;
    }
}

static int goal_line(struct goal *p)
{
    int rc = 0;

    for (goal_skip(p); !rc && *p->at; goal_skip(p)) {
        if (!p->header)
            rc = goal_header(p);
        else if (p->brace)
            rc = goal_brace(p);
        else if (!p->inside)
            rc = goal_rank(p);
        else if (goal_word(p, "}"))
            rc = goal_close(p);
        else
            rc = goal_statement(p);
    }
    return rc;
}

static int goal_end(struct goal *p)
{
    char found[96];

    if (p->header && !p->inside && !p->comment && p->ranks == p->n_ranks)
        return app_graph_ranks(p->g, p->n_ranks);
    snprintf(found, sizeof(found), "found the end of the file after %u ranks%s", p->ranks,
             p->inside    ? ", the last without its end"
             : p->comment ? " inside of a comment"
                          : "");
    return p->header ? trace_refuse_at(p->in, "", "%s, expected %u", found, p->n_ranks)
                     : trace_refuse_at(p->in, "", "%s, expected num_ranks", found);
}

int goal_text_read(struct app_graph *g, struct trace_input *in, uint32_t rank)
{
    struct goal p = {.g = g, .in = in};
    size_t n;
    int rc;

    (void)rank;
    g->format = "GOAL text";
    p.file = app_graph_file(g, in->name, false);
    while (!(rc = trace_input_line(in, &p.at, &n)) && !(rc = n == strlen(p.at) ? 0 : -EINVAL))
        if ((rc = goal_line(&p)) != 0)
            break;
    if (rc == -EINVAL && !in->err[0])
        trace_refuse_at(in, "", "line %u: found a byte of 0, expected text", in->line);
    rc = rc == 1 ? goal_end(&p) : rc;
    if (p.inside)
        app_graph_rank_end(g);
    label_map_free(&p.labels);
    return rc;
}
