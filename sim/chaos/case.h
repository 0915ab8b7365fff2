/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chaos case as a file (libconfig): all that a seed draws, written out, so that it stays the same
 * when the draws change. docs/virtual-time.md has the keys; tests/chaos/cases/ has cases that
 * failed once.
 */
#ifndef TRIB_SIM_CHAOS_CASE_H
#define TRIB_SIM_CHAOS_CASE_H

#include "sim/chaos/chaos_priv.h"

/* Fills a zeroed case, with its fabric and fault plan, which the caller frees as those of a drawn
 * one. A `conf` without a "/" is a preset in the conf_dir of k->cfg. 0, or -errno with the mistake
 * in why (CHAOS_TEXT bytes) as "FILE:LINE: found ..., expected ...". */
int case_load(struct chaos_case *k, const char *path, char *why);
int case_load_string(struct chaos_case *k, const char *text, const char *path, char *why);
/* Writes the case as far as it has been drawn. verdict: NULL if it still runs. 0 or -errno. */
int case_save(const struct chaos_case *k, const char *path, const char *verdict);
void case_print(const struct chaos_case *k, FILE *out, const char *verdict);

#endif
