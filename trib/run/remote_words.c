/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/run/remote_words.h"

#include "trib/run/text.h"

#include <string.h>

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

bool remote_words_read(const char *hex, struct words *w)
{
    size_t n = strlen(hex);
    char *text = text_room(n / 2 + 1, 1);

    if (n < 2 || strcmp(hex + n - 2, "00") != 0)
        return false;
    for (size_t i = 0; i < n; i += 2) {
        int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);

        if (high < 0 || low < 0)
            return false;
        text[i / 2] = (char)(16 * high + low);
    }
    for (char *at = text; at < text + n / 2; at += strlen(at) + 1)
        words_append(w, at);
    return true;
}
