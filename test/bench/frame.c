#include "frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bench_frame_index(const char *frame, const char *prefix, size_t *index)
{
    static const char field[] = "\"name\":\"";
    const char *at = strstr(frame, field);
    if (!at || strncmp(at + sizeof field - 1, prefix, strlen(prefix)) != 0)
        return false;
    const char *digits = at + sizeof field - 1 + strlen(prefix);
    char *end = NULL;
    *index = strtoul(digits, &end, 10);
    return end != digits && *end == '"';
}

bool bench_frame_is_initial_end(const char *frame)
{
    return strstr(frame, "\"type\":\"BOOKMARK\"") && strstr(frame, "k8s.io/initial-events-end");
}

long long bench_frame_number(const char *frame, const char *key)
{
    char field[64];
    int len = snprintf(field, sizeof field, "\"%s\":", key);
    const char *at = strstr(frame, field);
    if (!at)
        return 0;
    at += len;
    return strtoll(*at == '"' ? at + 1 : at, NULL, 10);
}
