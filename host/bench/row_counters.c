/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/row_counters.h"

#include "base/table.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Index of the counter; r->n: there is none. */
static unsigned row_counters_find(const struct row_counters *r, const char *name)
{
    unsigned i = 0;

    while (i < r->n && strcmp(r->c[i].name, name) != 0)
        i++;
    return i;
}

void row_counters_add(struct row_counters *r, const char *name, uint64_t v, bool level)
{
    unsigned i = row_counters_find(r, name);

    if (i == ROW_COUNTERS)
        return;
    if (i == r->n) {
        snprintf(r->c[i].name, sizeof(r->c[i].name), "%s", name);
        r->c[i].level = level;
        r->c[i].v = 0;
        r->n++;
    }
    if (!level)
        r->c[i].v += v;
    else if (v > r->c[i].v)
        r->c[i].v = v;
}

void row_counters_add_ranks(struct row_counters *r, enum coll_algo a,
                            const uint64_t v[TRIB_COUNTERS])
{
    const struct trib_protocol *p = coll_protocol(a);

    for (unsigned i = 0; p && p->rank->counters && i < TRIB_COUNTERS && p->rank->counters[i]; i++)
        row_counters_add(r, p->rank->counters[i], v[i], false);
}

void row_counters_since(struct row_counters *r, const struct row_counters *before)
{
    for (unsigned i = 0; i < r->n; i++) {
        unsigned k = row_counters_find(before, r->c[i].name);

        if (k < before->n && !r->c[i].level)
            r->c[i].v -= before->c[k].v;
    }
}

void row_counters_print(const struct row_counters *r, bool wide, FILE *out)
{
    char line[ROW_COUNTERS * 72] = "# protocol:";
    size_t at = strlen(line), begin = at;

    for (unsigned i = 0; i < r->n && at < sizeof(line); i++)
        if (r->c[i].v)
            at +=
                (size_t)snprintf(line + at, sizeof(line) - at, "%s %s %llu", at > begin ? "," : "",
                                 r->c[i].name, (unsigned long long)r->c[i].v);
    if (at > begin)
        table_line(out, wide, "%s", line);
}

json_t *row_counters_json(const struct row_counters *r)
{
    json_t *j = r->n ? json_object() : NULL;

    for (unsigned i = 0; j && i < r->n; i++)
        json_object_set_new(j, r->c[i].name, json_integer((json_int_t)r->c[i].v));
    return j;
}
