/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers of telemetry as JSON, in place of DPDK's library, which keeps them from its callers, and the
 * commands that are registered with it. A program includes this once, after cmocka.h.
 */
#ifndef TRIB_TESTS_IO_TOLD_H
#define TRIB_TESTS_IO_TOLD_H

#include <errno.h>
#include <jansson.h>
#include <rte_log.h>
#include <rte_telemetry.h>
#include <rte_version.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_COMMANDS 64

struct rte_tel_data {
    json_t *v; /* NULL: nothing was said */
};

static struct told_command {
    const char *path, *help;
    telemetry_cb fn;
} told_commands[TOLD_COMMANDS];
static unsigned told_n;

int rte_telemetry_register_cmd(const char *cmd, telemetry_cb fn, const char *help)
{
    if (told_n == TOLD_COMMANDS)
        return -ENOENT;
    told_commands[told_n++] = (struct told_command){cmd, help, fn};
    return 0;
}

typedef int (*told_log_fn)(uint32_t level, uint32_t logtype, const char *format, ...);
int rte_telemetry_init(const char *dir, const char *version, rte_cpuset_t *cpus, told_log_fn log,
                       uint32_t type);
int rte_telemetry_init(const char *dir, const char *version, rte_cpuset_t *cpus, told_log_fn log,
                       uint32_t type)
{
    (void)dir, (void)version, (void)cpus, (void)log, (void)type;
    return 0;
}

struct rte_tel_data *rte_tel_data_alloc(void)
{
    return calloc(1, sizeof(struct rte_tel_data));
}

void rte_tel_data_free(struct rte_tel_data *d)
{
    json_decref(d->v);
    free(d);
}

static int told_begin(struct rte_tel_data *d, json_t *v)
{
    json_decref(d->v);
    d->v = v;
    return 0;
}

int rte_tel_data_start_array(struct rte_tel_data *d, enum rte_tel_value_type type)
{
    (void)type;
    return told_begin(d, json_array());
}

int rte_tel_data_start_dict(struct rte_tel_data *d)
{
    return told_begin(d, json_object());
}

int rte_tel_data_string(struct rte_tel_data *d, const char *str)
{
    return told_begin(d, json_string(str));
}

/* What DPDK has no room for it leaves out without a word, and no answer may have it. */
static int told_append(struct rte_tel_data *d, json_t *v)
{
    assert_true(json_is_array(d->v) && json_array_size(d->v) < RTE_TEL_MAX_ARRAY_ENTRIES);
    return json_array_append_new(d->v, v);
}

static int told_add(struct rte_tel_data *d, const char *name, json_t *v)
{
    assert_true(json_is_object(d->v) && json_object_size(d->v) < RTE_TEL_MAX_DICT_ENTRIES);
    return json_object_set_new(d->v, name, v);
}

int rte_tel_data_add_array_string(struct rte_tel_data *d, const char *str)
{
    assert_true(strlen(str) < RTE_TEL_MAX_STRING_LEN);
    return told_append(d, json_string(str));
}

int rte_tel_data_add_dict_string(struct rte_tel_data *d, const char *name, const char *val)
{
    assert_true(strlen(val) < RTE_TEL_MAX_STRING_LEN);
    return told_add(d, name, json_string(val));
}

int rte_tel_data_add_array_container(struct rte_tel_data *d, struct rte_tel_data *val, int keep)
{
    (void)keep;
    return told_append(d, json_incref(val->v));
}

int rte_tel_data_add_dict_container(struct rte_tel_data *d, const char *name,
                                    struct rte_tel_data *val, int keep)
{
    (void)keep;
    return told_add(d, name, json_incref(val->v));
}

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
int rte_tel_data_add_array_int(struct rte_tel_data *d, int64_t x)
{
    return told_append(d, json_integer(x));
}

int rte_tel_data_add_array_uint(struct rte_tel_data *d, uint64_t x)
{
    return told_append(d, json_integer((json_int_t)x));
}

int rte_tel_data_add_array_uint_hex(struct rte_tel_data *d, uint64_t val, uint8_t bits)
{
    (void)bits;
    return told_append(d, json_integer((json_int_t)val));
}

int rte_tel_data_add_dict_int(struct rte_tel_data *d, const char *name, int64_t val)
{
    return told_add(d, name, json_integer(val));
}

int rte_tel_data_add_dict_uint(struct rte_tel_data *d, const char *name, uint64_t val)
{
    return told_add(d, name, json_integer((json_int_t)val));
}

int rte_tel_data_add_dict_uint_hex(struct rte_tel_data *d, const char *name, uint64_t val,
                                   uint8_t bits)
{
    (void)bits;
    return told_add(d, name, json_integer((json_int_t)val));
}
#else
int rte_tel_data_add_array_int(struct rte_tel_data *d, int x)
{
    return told_append(d, json_integer(x));
}

int rte_tel_data_add_array_u64(struct rte_tel_data *d, uint64_t x)
{
    return told_append(d, json_integer((json_int_t)x));
}

int rte_tel_data_add_dict_int(struct rte_tel_data *d, const char *name, int val)
{
    return told_add(d, name, json_integer(val));
}

int rte_tel_data_add_dict_u64(struct rte_tel_data *d, const char *name, uint64_t val)
{
    return told_add(d, name, json_integer((json_int_t)val));
}
#endif

/* ---- what a test asks ---- */

/* Good until the next call. */
static const char *told_text(const json_t *v)
{
    static char text[16384];
    size_t n = v ? json_dumpb(v, text, sizeof(text) - 1, JSON_COMPACT | JSON_ENCODE_ANY) : 0;

    assert_true(n < sizeof(text));
    text[n] = 0;
    return text;
}

/* The same without counters that are 0. */
static const char *told_short(json_t *v)
{
    const char *key;
    void *next;
    json_t *e;

    json_object_foreach_safe(v, next, key, e) if (json_is_integer(e) && !json_integer_value(e))
        json_object_del(v, key);
    return told_text(v);
}

/* Rows of questions and whole answers; with `brief`, without counters that are 0. */
struct told_row {
    const char *cmd, *params, *says;
    bool brief;
};

static inline void told_rows(json_t *(*ask)(const char *cmd, const char *params),
                             const struct told_row *row, size_t n)
{
    unsigned bad = 0;

    for (size_t i = 0; i < n; i++) {
        json_t *v = ask(row[i].cmd, row[i].params);
        const char *said = row[i].brief ? told_short(v) : told_text(v);

        if (strcmp(said, row[i].says) != 0) {
            fprintf(stderr, "row %zu: %s,%s\n  found    %s\n  expected %s\n", i, row[i].cmd,
                    row[i].params ? row[i].params : "", said, row[i].says);
            bad += strcmp(row[i].says, "?") != 0;
        }
        json_decref(v);
    }
    assert_int_equal(bad, 0);
}
#define TOLD_ROWS(ask, rows) told_rows(ask, rows, sizeof(rows) / sizeof((rows)[0]))

/* By the registered command, as DPDK does it; NULL: it fails, or says nothing. The caller's. */
static inline json_t *told_by(const char *cmd, const char *params, int *rc)
{
    for (unsigned i = 0; i < told_n; i++) {
        struct rte_tel_data d = {NULL};

        if (strcmp(told_commands[i].path, cmd) != 0)
            continue;
        *rc = told_commands[i].fn(cmd, params, &d);
        return d.v;
    }
    *rc = -ENOSYS;
    return NULL;
}

#endif
