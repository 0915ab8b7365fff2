/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/printable.h"

#include <stdio.h>
#include <string.h>

/* Bytes of the control character with which the text begins; 0: it begins with another one. */
static size_t control_bytes(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;

    if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
        return 2;
    return c[0] && (c[0] < ' ' || c[0] == 0x7f);
}

bool printable(const char *text)
{
    for (; *text; text++)
        if (control_bytes(text))
            return false;
    return true;
}

void printable_make(char *text, size_t size)
{
    size_t at = 0;

    while (text[at]) {
        size_t bytes = control_bytes(text + at), rest = strlen(text + at) - bytes;
        char shown[8];

        if (!bytes) {
            at++;
            continue;
        }
        snprintf(shown, sizeof(shown), "\\x%02x", (unsigned char)text[at + bytes - 1]);
        if (at + 4 >= size) {
            text[at] = 0;
            return;
        }
        rest = at + 4 + rest < size ? rest : size - at - 5;
        memmove(text + at + 4, text + at + bytes, rest);
        memcpy(text + at, shown, 4);
        text[at + 4 + rest] = 0;
        at += 4;
    }
}
