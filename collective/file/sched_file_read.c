/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a schedule's text. Unlike all other files of Tributary it is not libconfig but lines of
 * words: a schedule is generated, has thousands of steps, and people read one step per line.
 */
#include "collective/file/sched_file_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define WORDS    8u /* of a line */
#define SCRATCH  (16u * SCHED_FILE_CHUNKS)
#define PARTS    (1u << 20)
#define NO_VALUE UINT32_MAX

enum header {
    HEAD_SCHEDULE,
    HEAD_COLLECTIVE,
    HEAD_RANKS,
    HEAD_CHUNKS,
    HEAD_SCRATCH,
    HEAD_ROOT,
    HEAD_PLACE
};
static const char *const head_names[] = {"schedule", "collective", "ranks", "chunks",
                                         "scratch",  "root",       "place"};
#define HEADS (sizeof(head_names) / sizeof(*head_names))

static const struct {
    const char *name, *form;
    unsigned refs;
    bool peer;
} ops[FILE_OPS] = {
    [FILE_SEND] = {"send", "send RANK FROM", 1, true},
    [FILE_RECV] = {"recv", "recv RANK TO", 1, true},
    [FILE_RECV_REDUCE] = {"recv_reduce", "recv_reduce RANK WITH TO", 2, true},
    [FILE_REDUCE] = {"reduce", "reduce A B TO", 3, false},
    [FILE_COPY] = {"copy", "copy FROM TO", 2, false},
};

struct file_reader {
    struct build *b;
    struct sched_file *f;
    uint32_t line, head_line[HEADS]; /* 0: not given */
    unsigned rank;                   /* ranks begun */
    bool body, failed_header;
    bool skip; /* skip steps, which belong to an unexpected rank */
    uint32_t room_steps, room_after;
    char *word[WORDS + 1];
    unsigned n_words;
    int rc; /* -ENOMEM */
};

#define bad(r, ...) build_error((r)->b, (int)(r)->line, __VA_ARGS__)

static void *grow(struct file_reader *r, void *p, uint32_t n, uint32_t *room, size_t size)
{
    uint32_t more = *room ? 2 * *room : 256;

    if (n < *room)
        return p;
    void *q = realloc(p, more * size);
    if (!q) {
        r->rc = -ENOMEM;
        return p;
    }
    *room = more;
    return q;
}

/* ---- words ---- */

static uint32_t number(const char *s, const char *end)
{
    uint64_t v = 0;

    if (s == end)
        return NO_VALUE;
    for (; s < end; s++) {
        if (*s < '0' || *s > '9' || v > INT32_MAX)
            return NO_VALUE;
        v = 10 * v + (uint64_t)(*s - '0');
    }
    return v > INT32_MAX ? NO_VALUE : (uint32_t)v;
}

static uint32_t word_number(const char *w)
{
    return number(w, w + strlen(w));
}

/* Splits the line at *s into words, without comments, and moves *s to the next line. */
static void line_split(struct file_reader *r, char **s)
{
    char *end = *s + strcspn(*s, "\n"), *p = *s, *save = NULL;

    *s = *end ? end + 1 : end;
    *end = 0;
    p[strcspn(p, "#")] = 0;
    r->line++;
    r->n_words = 0;
    for (char *w = strtok_r(p, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save))
        if (r->n_words <= WORDS)
            r->word[r->n_words++] = w;
}

/* ---- header ---- */

static bool is_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

    return n && !s[n] && n < SCHED_FILE_NAME;
}

static void take_name(struct file_reader *r, const char *w)
{
    if (!is_name(w))
        bad(r, "schedule: found \"%.40s\", expected a name of 1 to %u letters, digits, _ . -", w,
            SCHED_FILE_NAME - 1);
    else
        snprintf(r->f->name, sizeof(r->f->name), "%s", w);
    for (int a = 0; a <= ALGO_AUTO; a++)
        if (!strcmp(w, sched_algo_name((enum coll_algo)a)))
            bad(r, "schedule: found %s, expected a name that no algorithm has", w);
}

static void take_collective(struct file_reader *r, const char *w)
{
    for (unsigned k = 0; k < COLL_KINDS; k++)
        if (k != COLL_SENDRECV && k != COLL_BARRIER && !strcmp(w, coll_name(k))) {
            r->f->kind = (enum coll_kind)k;
            return;
        }
    bad(r,
        "collective: found \"%.40s\", expected all_reduce, reduce, broadcast, all_gather, "
        "reduce_scatter, alltoall, gather or scatter",
        w);
    r->failed_header = true;
}

static uint32_t take_number(struct file_reader *r, const char *w, uint32_t min, uint32_t max)
{
    uint32_t v = word_number(w);

    if (v != NO_VALUE && v >= min && v <= max)
        return v;
    bad(r, "%s: found \"%.40s\", expected a number from %u to %u", r->word[0], w, min, max);
    r->failed_header = true;
    return min;
}

static void take_place(struct file_reader *r, const char *w)
{
    r->f->place[1] = strcmp(w, "both") == 0;
    if (!r->f->place[1] && strcmp(w, "out") != 0)
        bad(r, "place: found \"%.40s\", expected both or out", w);
}

static void header_line(struct file_reader *r)
{
    struct sched_file *f = r->f;
    unsigned k = 0;

    while (k < HEADS && strcmp(r->word[0], head_names[k]) != 0)
        k++;
    if (k == HEADS) {
        bad(r,
            "found \"%.40s\", expected schedule, collective, ranks, chunks, scratch, root, place "
            "or the first rank",
            r->word[0]);
        return;
    }
    if (r->n_words != 2) {
        bad(r, "%s: found %u words, expected one value", head_names[k], r->n_words - 1);
        r->failed_header = true;
    } else if (r->head_line[k]) {
        bad(r, "found %s twice, expected the one of line %u", head_names[k], r->head_line[k]);
    } else if (k == HEAD_SCHEDULE) {
        take_name(r, r->word[1]);
    } else if (k == HEAD_COLLECTIVE) {
        take_collective(r, r->word[1]);
    } else if (k == HEAD_RANKS) {
        f->nranks = take_number(r, r->word[1], 2, SCHED_FILE_RANKS);
    } else if (k == HEAD_CHUNKS) {
        f->chunks = take_number(r, r->word[1], 1, SCHED_FILE_CHUNKS);
    } else if (k == HEAD_SCRATCH) {
        f->scratch = take_number(r, r->word[1], 0, SCRATCH);
    } else if (k == HEAD_ROOT) {
        f->root = take_number(r, r->word[1], 0, SCHED_FILE_RANKS - 1);
    } else {
        take_place(r, r->word[1]);
    }
    r->head_line[k] = r->line;
}

/* Checks the header before the first rank: for missing lines, and for values that contradict. */
static void end_header(struct file_reader *r)
{
    struct sched_file *f = r->f;
    uint64_t cells = 0;
    bool whole = f->kind == COLL_ALLTOALL;

    r->body = true;
    for (unsigned k = 0; k <= HEAD_CHUNKS; k++)
        if (!r->head_line[k]) {
            bad(r, "found no %s before the first rank, expected one", head_names[k]);
            r->failed_header = true;
        }
    if (r->failed_header)
        return;
    if (coll_rooted(f->kind) != (r->head_line[HEAD_ROOT] != 0)) {
        bad(r, "found %s root, expected %s with %s", r->head_line[HEAD_ROOT] ? "a" : "no",
            coll_rooted(f->kind) ? "one" : "none", coll_name(f->kind));
        r->failed_header = true;
    } else if (f->root >= f->nranks) {
        bad(r, "root: found %u, expected a rank below %u", f->root, f->nranks);
        r->failed_header = true;
    }
    if (whole && f->place[1]) {
        f->place[1] = false;
        if (r->head_line[HEAD_PLACE])
            bad(r, "place: found both, expected out with alltoall");
    }
    for (unsigned rank = 0; rank < f->nranks; rank++)
        cells += file_cells(f, rank);
    cells *= coll_reduces(f->kind) ? (f->nranks + 63) / 64 : 1;
    if (cells > SCHED_FILE_MEMBERS) {
        bad(r,
            "found %u chunks and %u of scratch for each of %u ranks, expected fewer: at most %u "
            "in all",
            f->chunks, f->scratch, f->nranks, SCHED_FILE_MEMBERS);
        r->failed_header = true;
    }
}

/* ---- steps ---- */

static void rank_line(struct file_reader *r)
{
    struct sched_file *f = r->f;
    uint32_t v = r->n_words == 2 ? word_number(r->word[1]) : NO_VALUE;

    if (!r->body)
        end_header(r);
    if (r->failed_header)
        return;
    if (v == NO_VALUE || v >= f->nranks || v != r->rank) {
        if (r->rank < f->nranks)
            bad(r, "found rank %.40s, expected rank %u: each of 0 to %u, in order",
                r->n_words > 1 ? r->word[1] : "", r->rank, f->nranks - 1);
        else
            bad(r, "found rank %.40s, expected no more: there are %u ranks",
                r->n_words > 1 ? r->word[1] : "", f->nranks);
        r->skip = v == NO_VALUE || v >= f->nranks || v < r->rank;
        if (r->skip)
            return;
        while (r->rank < v) /* go on, to find mistakes in the other ranks */
            f->first[r->rank++] = f->n_steps;
    }
    f->first[r->rank++] = f->n_steps;
    r->skip = false;
}

/* BUF:N or BUF:N-M; *n: how many chunks. */
static bool take_ref(struct file_reader *r, const char *w, struct file_ref *ref, uint32_t *n)
{
    const char *colon = strchr(w, ':'), *dash = colon ? strchr(colon, '-') : NULL;
    const char *end = w + strlen(w);
    uint32_t last, have;

    *ref = (struct file_ref){0};
    for (enum file_buf b = FILE_IN; colon && b <= FILE_SCRATCH; b++)
        if (strlen(file_buf_name(b)) == (size_t)(colon - w) &&
            !strncmp(w, file_buf_name(b), (size_t)(colon - w)))
            ref->buf = b;
    ref->first = colon ? number(colon + 1, dash ? dash : end) : NO_VALUE;
    last = dash ? number(dash + 1, end) : ref->first;
    if (!ref->buf || ref->first == NO_VALUE || last == NO_VALUE || last < ref->first) {
        bad(r, "found \"%.40s\", expected chunks such as in:3, out:0-7 or scratch:1", w);
        return false;
    }
    have = file_chunks(r->f, r->rank - 1, ref->buf);
    if (last >= have && !have)
        bad(r, "found %.40s, expected another buffer: rank %u has no %s", w, r->rank - 1,
            file_buf_name(ref->buf));
    else if (last >= have)
        bad(r, "found %.40s, expected a chunk from 0 to %u of %s", w, have - 1,
            file_buf_name(ref->buf));
    *n = last - ref->first + 1;
    return last < have;
}

/* Reads the references of a step, in the order of the line. */
static bool take_refs(struct file_reader *r, struct file_step *s, unsigned at)
{
    struct file_ref *all[FILE_OPS][3] = {
        [FILE_SEND] = {&s->a},
        [FILE_RECV] = {&s->dst},
        [FILE_RECV_REDUCE] = {&s->b, &s->dst},
        [FILE_REDUCE] = {&s->a, &s->b, &s->dst},
        [FILE_COPY] = {&s->a, &s->dst},
    };
    uint32_t n = 0;

    for (unsigned i = 0; i < ops[s->op].refs; i++) {
        if (!take_ref(r, r->word[at + i], all[s->op][i], &n))
            return false;
        if (i && n != s->n) {
            bad(r, "found %u chunk%s in %s and %u in %s, expected the same count", s->n,
                s->n > 1 ? "s" : "", r->word[at], n, r->word[at + i]);
            return false;
        }
        s->n = n;
    }
    if (s->dst.buf == FILE_IN) {
        bad(r, "found %s, expected out or scratch to write to: in is read only",
            r->word[at + ops[s->op].refs - 1]);
        return false;
    }
    return true;
}

static void take_after(struct file_reader *r, struct file_step *s, char *list, uint32_t own)
{
    struct sched_file *f = r->f;
    char *save = NULL;
    uint32_t before = NO_VALUE;

    s->first_after = f->n_after;
    for (char *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        uint32_t v = word_number(w);

        if (v == NO_VALUE || v >= own || (before != NO_VALUE && v <= before)) {
            bad(r,
                "after: found \"%.40s\", expected numbers of steps of rank %u before step %u, "
                "ascending",
                w, s->rank, own);
            return;
        }
        if (s->n_after == SCHED_FILE_AFTER) {
            bad(r, "after: found more than %u steps, expected at most so many", SCHED_FILE_AFTER);
            return;
        }
        before = v;
        f->after = grow(r, f->after, f->n_after, &r->room_after, sizeof(*f->after));
        if (r->rc)
            return;
        f->after[f->n_after++] = v;
        s->n_after++;
    }
}

static void add_step(struct file_reader *r, const struct file_step *s)
{
    struct sched_file *f = r->f;

    if (f->n_parts + s->n > PARTS) {
        bad(r, "found more than %u chunks in the steps of all ranks, expected at most so many",
            PARTS);
        r->rc = -EINVAL;
        return;
    }
    f->step = grow(r, f->step, f->n_steps, &r->room_steps, sizeof(*f->step));
    if (r->rc)
        return;
    f->step[f->n_steps] = *s;
    f->step[f->n_steps++].first_part = f->n_parts;
    f->n_parts += s->n;
}

static bool take_peer(struct file_reader *r, struct file_step *s, const char *w)
{
    s->peer = word_number(w);
    if (s->peer < r->f->nranks && s->peer != s->rank)
        return true;
    bad(r, "found \"%.40s\", expected another rank than %u, from 0 to %u", w, s->rank,
        r->f->nranks - 1);
    return false;
}

/* A wrong step keeps its number, so that those after it can be read. */
static void step_line(struct file_reader *r)
{
    struct sched_file *f = r->f;
    struct file_step s = {.rank = r->rank - 1, .line = r->line, .op = FILE_OPS, .n = 1};
    uint32_t own = f->n_steps - f->first[s.rank], at = 2;
    unsigned words;

    if (word_number(r->word[0]) != own)
        bad(r, "found \"%.40s\", expected %u, the number of the step, or a rank", r->word[0], own);
    for (enum file_op op = 0; r->n_words > 1 && op < FILE_OPS; op++)
        if (!strcmp(r->word[1], ops[op].name))
            s.op = op;
    if (s.op == FILE_OPS) {
        bad(r, "found \"%.40s\", expected send, recv, recv_reduce, reduce or copy",
            r->n_words > 1 ? r->word[1] : "");
    } else {
        words = 2 + ops[s.op].peer + ops[s.op].refs;
        if (r->n_words != words &&
            (r->n_words != words + 2 || strcmp(r->word[words], "after") != 0))
            bad(r, "found %u words, expected %u %s [after STEP,...]", r->n_words, own,
                ops[s.op].form);
        else if ((!ops[s.op].peer || take_peer(r, &s, r->word[at++])) && take_refs(r, &s, at) &&
                 r->n_words > words)
            take_after(r, &s, r->word[words + 1], own);
    }
    if (own == SCHED_FILE_STEPS) {
        bad(r, "found more steps, expected at most %u of a rank", SCHED_FILE_STEPS);
        r->rc = -EINVAL;
    } else {
        add_step(r, &s);
    }
}

static void end_of_file(struct file_reader *r)
{
    struct sched_file *f = r->f;

    if (!r->body) {
        end_header(r);
        r->failed_header = true;
    }
    if (r->failed_header)
        return;
    if (r->rank < f->nranks)
        bad(r, "found the end of the file after %u ranks, expected rank %u: there are %u ranks",
            r->rank, r->rank, f->nranks);
    while (r->rank <= f->nranks)
        f->first[r->rank++] = f->n_steps;
}

int file_read(struct sched_file *f, struct build *b, char *text)
{
    struct file_reader r = {.b = b, .f = f};

    while (*text && !r.rc) {
        line_split(&r, &text);
        if (!r.n_words)
            continue;
        if (!strcmp(r.word[0], "rank"))
            rank_line(&r);
        else if (!r.body)
            header_line(&r);
        else if (r.rank && !r.failed_header && !r.skip)
            step_line(&r);
    }
    if (!r.rc)
        end_of_file(&r);
    return r.rc;
}
