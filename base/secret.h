/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Secrets in confs: the list of their names, and the one way to hide them in what others see (results,
 * pictures, messages, hashes). The setting is replaced in the parsed file, so no spelling of its value
 * gets by: strings in a row, escapes, comments in between, ':' for '=', groups around it.
 */
#ifndef TRIB_BASE_SECRET_H
#define TRIB_BASE_SECRET_H

#include <stdbool.h>

#define SECRET_HIDDEN "****************" /* long enough for the conf to load */

/*
 * Whether a text contains the name of a secret, in a setting or in a comment. Upper case, a missing '_' or
 * '-' in its place do not matter: a misspelt key holds a secret nevertheless. False: the text has no
 * secret.
 */
bool secret_named(const char *text);
/*
 * The text without its secrets, allocated: unchanged if it names none, otherwise as written anew from what
 * libconfig has read, without comments. NULL: out of memory, or the text names a secret and libconfig cannot
 * read it, so that nobody knows where the secret is.
 */
char *secret_hide(const char *text);

#endif
