/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helpers of plans: values as text, written to buf of n bytes, which is returned; and summaries.
 */
#ifndef TRIB_FABRIC_REPORT_PLAN_H
#define TRIB_FABRIC_REPORT_PLAN_H

#include "fabric/fabric.h"

#include <stddef.h>

const char *plan_rate(uint64_t bps, char *buf, size_t n); /* "400Gb/s" */
const char *plan_duration(int64_t ps, char *buf, size_t n);
const char *plan_size(uint64_t bytes, char *buf, size_t n);
const char *plan_address(uint32_t ip, char *buf, size_t n);
/* roce_mac_of_ip() as text; fabric/ must not include roce/. */
const char *plan_mac(uint32_t ip, char *buf, size_t n);
/* "loss 0.01 dup 0.001", empty for a link without faults. */
void plan_faults(const struct fab_link *l, char *buf, size_t n);

/* Properties of one link, or of several identical ones. */
struct table;
#define PLAN_LINK_HEADS "rate", "latency", "buffer", "frames", "ECN", "PFC", "faults"
void plan_link_cells(struct table *t, const struct fab_link *l);

/* plan_svg.c: the fabric as an SVG picture, or as a graph for Graphviz: nodes by tier, links by
 * rate, the first 8 aggregation trees in colour. -1: no memory. */
int plan_svg(const struct fabric *f, bool with_trees, FILE *out);
int plan_dot(const struct fabric *f, FILE *out);

/* plan_sums.c: identical nodes, links and trees as one line each. */
void plan_levels(const struct fabric *f, FILE *out);
void plan_node_sums(const struct fabric *f, FILE *out);
void plan_link_sums(const struct fabric *f, FILE *out);
void plan_tree_sums(const struct fabric *f, FILE *out);

/* plan_names.c: names a link by its nodes, "a-b", in buf; or with its ports if that is ambiguous. */
#define PLAN_LINK_NAME (2 * FAB_NAME + 2)
const char *plan_link_name(const struct fabric *f, unsigned i, char *buf, size_t size);
/* Whether the programs that run fabrics can run it; if not, why has the reason. */
#define PLAN_WHY 4352
bool plan_runs(const struct fabric *f, char *why, size_t size);

/* Hosts of a tree, and per node its children on it: count has n_nodes entries. */
unsigned plan_tree_counts(const struct fabric *f, const struct fab_tree *t, fab_id *count);
/* Whether some root has several trees, one for each port of hosts. */
bool plan_has_turns(const struct fabric *f);
/* The ports by which hosts are on the tree, as "0" or "0 1", into buf; returns buf. */
const char *plan_tree_ports(const struct fabric *f, const struct fab_tree *t, char *buf,
                            size_t size);

#endif
