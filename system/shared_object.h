/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of files before dlopen(). */
#ifndef TRIB_SYSTEM_SHARED_OBJECT_H
#define TRIB_SYSTEM_SHARED_OBJECT_H

#include <stddef.h>

/* Finds files at which dlopen() would wait, or of which it would say too little: returns a sentence in text.
 * NULL: dlopen() may try. A name without a / is left to dlopen()'s search. */
const char *shared_object_unfit(const char *path, char *text, size_t size);

#endif
