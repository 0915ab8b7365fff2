/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where results come from: what it takes to run them again, in every file that -J writes.
 *
 *   "schema": 1            of the file (docs/results.md); rises when a key changes its meaning
 *   "run": { "command", "environment", "version", "commit", "files": [ { "path", "sha256", "text" } ],
 *            "date", "machine" }
 *
 * Virtual time depends on neither machine nor date; its results leave both out, and are the same to
 * the byte in every run.
 */
#ifndef TRIB_SYSTEM_PROVENANCE_H
#define TRIB_SYSTEM_PROVENANCE_H

#include <stdbool.h>

#define RESULT_SCHEMA 1

struct json_t;

struct provenance {
    struct json_t *command; /* as it was called, without -J FILE */
    struct json_t *files;
};

/* The command line that results are of; provenance_end() frees. */
void provenance_begin(struct provenance *p, int argc, const char *const *argv);
/* A file that the run depends on, as it is now: conf, faults, ...; NULL or "": none. A file with bytes
 * of 0, as a shared object, is named without its text; what is no plain file without its hash, too.
 * Of a file with a secret (base/secret.h) text and hash are those without it, and "secrets" is
 * "hidden"; where nobody knows where it is, both are left out. */
void provenance_file(struct provenance *p, const char *path);
/* Adds "schema" and "run". p NULL: the schema only. real: with date and machine. */
void provenance_add(struct provenance *p, struct json_t *top, bool real);
void provenance_end(struct provenance *p);

#endif
