/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/status_lines.h"

#include "trib/run/text.h"

#include <stdlib.h>
#include <string.h>

struct status_processes status_lines_read(char *listed)
{
    struct status_processes all = {0, text_room(strlen(listed) / 2 + 1, sizeof(*all.at))};
    char *line;

    while ((line = strsep(&listed, "\n")) != NULL) {
        const char *name = strsep(&line, "\t"), *pid = strsep(&line, "\t");

        if (*name)
            all.at[all.n++] =
                (struct status_process){name, line ? line : "", pid ? atoi(pid) : 0, false};
    }
    return all;
}

char *status_lines_process(const struct status_process *p)
{
    if (!p->pid)
        return text_of("trib-switch %s: %s", p->name, p->how);
    if (strcmp(p->how, "ready") != 0)
        return text_of("trib-switch %s: pid %d, %s", p->name, p->pid, p->how);
    return text_of("trib-switch %s: pid %d%s", p->name, p->pid,
                   p->silent ? ", does not answer" : "");
}

static struct words sorted_keys(const json_t *object)
{
    struct words keys = {0};
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value)
    {
        words_append(&keys, key);
    }
    words_sort(&keys);
    return keys;
}

static char *value_text(const json_t *value)
{
    if (json_is_string(value))
        return text_of("%s", json_string_value(value));
    return text_of("%" JSON_INTEGER_FORMAT, json_integer_value(value));
}

static const char *member_text(const json_t *answer, const char *key)
{
    const json_t *value = json_object_get(answer, key);

    return value ? value_text(value) : "";
}

/* "its clock follows B's within 20 ns, frames by af_packet" */
static char *this_machine(const json_t *answer)
{
    const char *me = member_text(answer, "machine"), *clock = member_text(answer, "clock"),
               *by = member_text(answer, "frames_by");
    const char *frames = strcmp(by, "udp") != 0 && *by ? text_of(", frames by %s", by) : "";

    if (!strcmp(me, clock))
        return text_of("machine %s: this one, with the fabric's clock%s", me, frames);
    return text_of("machine %s: this one, its clock follows %s's within %s ns%s", me, clock,
                   member_text(answer, "clock_unsure_ns"), frames);
}

struct words status_lines_machines(const json_t *answer)
{
    static const char *const own[] = {"machine", "clock", "clock_unsure_ns", "frames_by"};
    const struct words known = {4, 4, (const char **)own};
    struct words keys = sorted_keys(answer), lines = {0};
    const char *refused = "";

    words_append(&lines, this_machine(answer));
    for (unsigned i = 0; i < keys.n; i++) {
        const json_t *value = json_object_get(answer, keys.at[i]);

        if (words_have(&known, keys.at[i]))
            continue;
        if (!text_begins(keys.at[i], "refused_"))
            words_append(&lines, text_of("machine %s: %s", keys.at[i], value_text(value)));
        else if (json_integer_value(value) > 0)
            refused =
                text_of("%s %s %s", refused, value_text(value), keys.at[i] + strlen("refused_"));
    }
    if (*refused)
        words_append(&lines, text_of("datagrams refused:%s", refused));
    return lines;
}

struct words status_lines_counters(const json_t *answers)
{
    struct words processes = sorted_keys(answers), lines = {0};

    for (unsigned p = 0; p < processes.n; p++) {
        const json_t *counters = json_object_get(answers, processes.at[p]);
        struct words keys = sorted_keys(counters);

        for (unsigned i = 0; i < keys.n; i++) {
            const json_t *value = json_object_get(counters, keys.at[i]);

            if (json_integer_value(value) > 0)
                words_append(&lines, text_of("%s: %s", keys.at[i], value_text(value)));
        }
    }
    return lines;
}
