/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of GOAL's collectives: the members of one a line, whose index is the group's number. */
#include "trace/grow.h"
#include "trace/formats/trace_readers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct group_line {
    uint32_t *rank;
    uint32_t n;
    size_t room;
};

static int group_word(struct trace_input *in, const char *word, struct group_line *l)
{
    uint64_t v = 0;
    size_t n = strlen(word);

    if (!l->n && !strcmp(word, "Grp"))
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (word[i] < '0' || word[i] > '9' || v >= APP_RANKS_MOST)
            return trace_refuse(in, word, n, "a rank below 1048576");
        v = 10 * v + (unsigned)(word[i] - '0');
    }
    if (v >= APP_RANKS_MOST)
        return trace_refuse(in, word, n, "a rank below 1048576");
    GROW(l->rank, l->n + 1u, &l->room);
    l->rank[l->n++] = (uint32_t)v;
    return 0;
}

static int group_enter(struct app_graph *g, struct trace_input *in, const struct group_line *l)
{
    uint32_t twice = 0;
    char found[32];
    int rc = app_graph_group(g, g->n_groups, l->rank, l->n, &twice);

    if (rc == -EINVAL) {
        snprintf(found, sizeof(found), "rank %u twice", twice);
        return trace_refuse(in, found, strlen(found), "each member once");
    }
    return rc ? trace_refuse_at(in, "", "found more than %u groups, expected fewer",
                                APP_GROUPS_MOST)
              : 0;
}

int goal_groups_read(struct app_graph *g, struct trace_input *in)
{
    struct group_line l = {.n = 0};
    char *line, *word;
    size_t n;
    int rc;

    while (!(rc = trace_input_line(in, &line, &n))) {
        bool any = false;

        line[strcspn(line, "#")] = 0;
        for (l.n = 0; !rc && (word = strsep(&line, " \t")) != NULL;)
            if (*word) {
                any = true;
                rc = group_word(in, word, &l);
            }
        if (!rc && any && !l.n)
            rc = trace_refuse(in, "", 0, "members of a group");
        if (!rc && any)
            rc = group_enter(g, in, &l);
        if (rc)
            break;
    }
    free(l.rank);
    return rc == 1 ? 0 : rc;
}
