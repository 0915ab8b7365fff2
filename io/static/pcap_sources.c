/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For make static: libpcap's archive can capture from D-Bus and from RDMA sniffers, which need
 * libraries that have no archives. Only files and network devices are used here, so these stubs
 * replace the two entries in libpcap's table of sources.
 */
int dbus_findalldevs(void *list, char *err);
void *dbus_create(const char *device, char *err, int *is_ours);
int rdmasniff_findalldevs(void *list, char *err);
void *rdmasniff_create(const char *device, char *err, int *is_ours);

int dbus_findalldevs(void *list, char *err)
{
    (void)list;
    (void)err;
    return 0;
}

void *dbus_create(const char *device, char *err, int *is_ours)
{
    (void)device;
    (void)err;
    *is_ours = 0;
    return 0;
}

int rdmasniff_findalldevs(void *list, char *err)
{
    return dbus_findalldevs(list, err);
}

void *rdmasniff_create(const char *device, char *err, int *is_ours)
{
    return dbus_create(device, err, is_ours);
}
