/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the reader of jobs files; for sim/jobs/jobs_conf*.c only. */
#ifndef TRIB_SIM_JOBS_JOBS_CONF_PRIV_H
#define TRIB_SIM_JOBS_JOBS_CONF_PRIV_H

#include "fabric/build.h"
#include "sim/jobs/jobs.h"

struct jobs_reader {
    struct build b;
    const struct fabric *f;
    struct jobs_plan *p;
    uint16_t *taken; /* [n_hosts] processes of all jobs so far */
    int line[JOBS_MAX];
};

/* An operation, and a job with one operation, as read from the file. */
struct jobs_entry {
    char name[FAB_NAME];
    uint64_t size;
    uint32_t root, window, group;
    int64_t start_ps, die_ps;
};
#define ENTRY(f) offsetof(struct jobs_entry, f)

/* Keys of an operation, in an entry of `operations` or in a job that has one. */
extern const struct key *const jobs_op_keys;
#define JOBS_OP_KEYS 6

/* Names that a key takes. */
struct jobs_names {
    int (*find)(const char *name);
    const char *(*name)(unsigned i);
    unsigned n;
};
/* Algorithms without "auto", of a policy. */
extern const struct jobs_names jobs_policies;

/* A name of the list; -EINVAL with the mistake reported. */
int jobs_read_name(struct jobs_reader *r, const config_setting_t *s, const struct jobs_names *n);
/* The operations of a job whose hosts and trees are known; in: of the job. */
void jobs_read_ops(struct jobs_reader *r, config_setting_t *g, struct jobs_job *j,
                   const struct jobs_entry *in);

static inline int jobs_line(const config_setting_t *s)
{
    return (int)config_setting_source_line(s);
}

/* Of a key of a group, else of the group. */
static inline int jobs_key_line(config_setting_t *g, const char *key)
{
    const config_setting_t *s = config_setting_get_member(g, key);

    return jobs_line(s ? s : g);
}

#endif
