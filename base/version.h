/* SPDX-License-Identifier: BSD-3-Clause */
/* The version of Tributary: programs, documents and the library have the same one. */
#ifndef TRIB_BASE_VERSION_H
#define TRIB_BASE_VERSION_H

#ifndef TRIB_VERSION /* CFLAGS may give another one, to compare outputs of two versions */
#define TRIB_VERSION "0.2.0"
#endif

#endif
