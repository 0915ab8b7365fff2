/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that dlopen() is to load. */
#ifndef TRIB_SYSTEM_SHARED_OBJECT_H
#define TRIB_SYSTEM_SHARED_OBJECT_H

#include <stddef.h>

/* What dlopen() would wait at, or tell nothing about: a sentence in text. NULL: it may try. A name
 * without a / is looked up by it. */
const char *shared_object_unfit(const char *path, char *text, size_t size);

#endif
