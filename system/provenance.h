/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where results come from: whatever it takes to run them again, in every file that -J writes.
 *
 *   "schema": 1            of the file (docs/results.md); rises when a key changes its meaning
 *   "run": { "command", "environment", "version", "commit", "files": [ { "path", "sha256", "text" } ],
 *            "date", "machine" }
 *
 * Results in virtual time depend on neither machine nor date: they leave both out, and are identical byte
 * for byte in every run.
 */
#ifndef TRIB_SYSTEM_PROVENANCE_H
#define TRIB_SYSTEM_PROVENANCE_H

#include <stdbool.h>

#define RESULT_SCHEMA 1

struct json_t;

struct provenance {
    struct json_t *command; /* the command line without -J FILE */
    struct json_t *files;
};

/* Records the command line. provenance_end() frees. */
void provenance_begin(struct provenance *p, int argc, const char *const *argv);
/* Adds a file that the run depends on (conf, faults, ...) as it is now; NULL or "": none. A file with 0
 * bytes, such as a shared object, gets no text; anything but a plain file gets no hash, either. If a file
 * has a secret (base/secret.h), text and hash are of the file without it and "secrets" is "hidden"; if the
 * secret cannot be located, text and hash are left out. */
void provenance_file(struct provenance *p, const char *path);
/* Adds "schema" and "run". p NULL: the schema only. real: with date and machine. */
void provenance_add(struct provenance *p, struct json_t *top, bool real);
void provenance_end(struct provenance *p);

#endif
