/* SPDX-License-Identifier: BSD-3-Clause */
/* Version of the interface, to be compared as SHARP_API > SHARP_VERSION(3, 0). */
#ifndef SHARP_API_VERSION_H
#define SHARP_API_VERSION_H

#define SHARP_VERNO_MAJOR  3
#define SHARP_VERNO_MINOR  7
#define SHARP_VERNO_REV    "0"
#define SHARP_VERNO_STRING "3.7"

#define SHARP_MAJOR_BIT             24UL
#define SHARP_MINOR_BIT             16UL
#define SHARP_VERSION(major, minor) (((major) << SHARP_MAJOR_BIT) | ((minor) << SHARP_MINOR_BIT))
#define SHARP_API                   SHARP_VERSION(3L, 7L)

#endif
