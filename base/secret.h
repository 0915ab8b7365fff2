/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Secrets in confs: one list of their names, and one way to hide them from what is shown to others
 * (results, pictures, messages, hashes). The setting is replaced in the parsed file, so no spelling of
 * its value gets by: strings in a row, escapes, comments between, ':' for '=', groups around it.
 */
#ifndef TRIB_BASE_SECRET_H
#define TRIB_BASE_SECRET_H

#include <stdbool.h>

#define SECRET_HIDDEN "****************" /* of a length that a conf loads with */

/*
 * Whether the text of a file has the name of a secret, as a setting or in a comment; also in upper
 * case, without '_' or with '-' in its place: a key that is misspelt is one nevertheless. A file of
 * which this says no has none.
 */
bool secret_named(const char *text);
/*
 * The text without its secrets, malloced: as it is where it names none, else as libconfig writes what
 * it has read, without comments. NULL: it names one and is no conf that libconfig reads, so that
 * nobody knows where the secret is; or no memory.
 */
char *secret_hide(const char *text);

#endif
