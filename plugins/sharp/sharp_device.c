/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/sharp/sharp_priv.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#define MOST_DEVICES 64

static bool sharp_device_has(const char *s, size_t bytes, const char *const *name, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (strlen(name[i]) == bytes && !strncmp(name[i], s, bytes))
            return true;
    return false;
}

static void list_names(char *text, size_t bytes, const char *const *name, unsigned n)
{
    size_t used = 0;

    *text = 0;
    for (unsigned i = 0; i < n && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", name[i]);
}

int sharp_devices_check(const char *list, const char *const *name, unsigned n, char *why)
{
    char names[SHARP_TEXT / 2];

    while (list && *list) {
        size_t bytes = strcspn(list, ","), device = strcspn(list, ":,");

        list_names(names, sizeof(names), name, n);
        if (!sharp_device_has(list, device, name, n)) {
            snprintf(why, SHARP_TEXT,
                     "ib_dev_list: found '%.*s', expected a device of this host: %s",
                     device < 40 ? (int)device : 40, list, names);
            return SHARP_COLL_EDEV;
        }
        if (device < bytes && (bytes - device != 2 || list[device + 1] != '1')) {
            snprintf(why, SHARP_TEXT, "ib_dev_list: found '%.*s', expected port 1 of the device",
                     bytes < 40 ? (int)bytes : 40, list);
            return SHARP_COLL_EDEV;
        }
        list += bytes + (list[bytes] == ',');
    }
    return SHARP_COLL_SUCCESS;
}

int sharp_devices_open(const char *list, char *why)
{
    const char *name[MOST_DEVICES];
    int n = 0, rc;
    struct ibv_device **devices = ibv_get_device_list(&n);

    if (!devices || n < 1) {
        if (devices)
            ibv_free_device_list(devices);
        snprintf(
            why, SHARP_TEXT,
            "found no RDMA device, expected the emulated one: is the program run by trib exec?");
        return SHARP_COLL_ESESS_INIT;
    }
    if (n > MOST_DEVICES)
        n = MOST_DEVICES;
    for (int i = 0; i < n; i++)
        name[i] = ibv_get_device_name(devices[i]);
    rc = sharp_devices_check(list, name, (unsigned)n, why);
    ibv_free_device_list(devices);
    return rc;
}
