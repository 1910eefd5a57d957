#include "codec/tzif.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/tz_rule.h"

enum {
    MAGIC_LEN = 4,
    RESERVED_LEN = 15,
    TYPE_LEN = 6, /* offset, daylight flag, index of the abbreviation */
    /* RFC 9636, section 3.2: "should be greater than -25 hours and less than 26 hours". */
    OFFSET_MIN_S = -25 * 60 * 60 + 1,
    OFFSET_MAX_S = 26 * 60 * 60 - 1,
};

struct cr_tzif {
    int64_t *changes; /* ascending */
    int32_t *offsets; /* parallel to it: from then on */
    size_t len;
    int32_t first_s; /* the offset before the first of them */
    bool has_rule;   /* for what comes after the last of them */
    struct cr_tz_rule rule;
};

void cr_tzif_free(struct cr_tzif *zone)
{
    if (!zone)
        return;
    free(zone->changes);
    free(zone->offsets);
    free(zone);
}

struct cr_tzif *cr_tzif_new_utc(void)
{
    return cr_new(struct cr_tzif);
}

/* --- the file --- */

struct cursor {
    const unsigned char *at;
    size_t left;
};

/* NULL: there are not as many. */
static const unsigned char *take(struct cursor *in, uint64_t n)
{
    if (n > in->left)
        return NULL;
    const unsigned char *taken = in->at;
    in->at += n;
    in->left -= n;
    return taken;
}

static uint32_t read_32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t read_time(const unsigned char *p, size_t size)
{
    return size == 8 ? (int64_t)((uint64_t)read_32(p) << 32 | read_32(p + 4)) : (int32_t)read_32(p);
}

struct header {
    unsigned char version;
    uint32_t utc_flags, standard_flags, leaps, changes, types, letters;
};

static bool read_header(struct cursor *in, struct header *out, struct cr_error *err)
{
    const unsigned char *magic = take(in, MAGIC_LEN);
    if (!magic || memcmp(magic, "TZif", MAGIC_LEN) != 0)
        return cr_error_set(err, CR_ERR_INVALID, "it is no TZif file (RFC 9636)");
    const unsigned char *rest = take(in, 1 + RESERVED_LEN + 6 * 4);
    if (!rest)
        return cr_error_set(err, CR_ERR_INVALID, "it is cut off in its header");
    const unsigned char *counts = rest + 1 + RESERVED_LEN;
    *out = (struct header){.version = rest[0],
                           .utc_flags = read_32(counts),
                           .standard_flags = read_32(counts + 4),
                           .leaps = read_32(counts + 8),
                           .changes = read_32(counts + 12),
                           .types = read_32(counts + 16),
                           .letters = read_32(counts + 20)};
    /* Later versions only add: RFC 9636, section 3.1. */
    if (out->version && out->version < '2')
        return cr_error_set(err, CR_ERR_INVALID, "it is of no known version (0x%02x)", out->version);
    return true;
}

/* What comes behind the changes and the types of a block, and says nothing about offsets. */
static uint64_t tail_len(const struct header *header, size_t time_size)
{
    return (uint64_t)header->letters + header->leaps * (uint64_t)(time_size + 4) + header->standard_flags +
           header->utc_flags;
}

static bool read_types(const struct header *header, const unsigned char *types, struct cr_error *err)
{
    for (uint32_t i = 0; i < header->types; i++) {
        int32_t offset = (int32_t)read_32(types + (size_t)i * TYPE_LEN);
        if (offset < OFFSET_MIN_S || offset > OFFSET_MAX_S)
            return cr_error_set(err, CR_ERR_INVALID, "its local time type %u is %d s away from UTC", i, offset);
    }
    return true;
}

static int32_t offset_of(const unsigned char *types, size_t type)
{
    return (int32_t)read_32(types + type * TYPE_LEN);
}

static bool read_block(struct cursor *in, const struct header *header, size_t time_size, struct cr_tzif *zone,
                       struct cr_error *err)
{
    const unsigned char *times = take(in, header->changes * (uint64_t)time_size);
    const unsigned char *indices = times ? take(in, header->changes) : NULL;
    const unsigned char *types = indices ? take(in, header->types * (uint64_t)TYPE_LEN) : NULL;
    if (!types || !take(in, tail_len(header, time_size)))
        return cr_error_set(err, CR_ERR_INVALID, "it is cut off");
    if (!header->types)
        return cr_error_set(err, CR_ERR_INVALID, "it has no local time type");
    if (header->leaps)
        return cr_error_set(err, CR_ERR_INVALID, "it counts leap seconds, which clocks here do not");
    if (!read_types(header, types, err))
        return false;
    zone->first_s = offset_of(types, 0);
    zone->changes = cr_calloc(header->changes + (size_t)1, sizeof *zone->changes);
    zone->offsets = cr_calloc(header->changes + (size_t)1, sizeof *zone->offsets);
    for (zone->len = 0; zone->len < header->changes; zone->len++) {
        size_t i = zone->len;
        if (indices[i] >= header->types)
            return cr_error_set(err, CR_ERR_INVALID, "its change %zu is to a local time type that it does not have", i);
        zone->changes[i] = read_time(times + i * time_size, time_size);
        zone->offsets[i] = offset_of(types, indices[i]);
        if (i && zone->changes[i] <= zone->changes[i - 1])
            return cr_error_set(err, CR_ERR_INVALID, "its change %zu is not after the one before", i);
    }
    return true;
}

/* "\n" rule "\n"; an empty rule: what comes after the last change is not known. */
static bool read_footer(struct cursor *in, struct cr_tzif *zone, struct cr_error *err)
{
    const unsigned char *start = take(in, 1);
    const unsigned char *end = start && *start == '\n' ? memchr(in->at, '\n', in->left) : NULL;
    if (!end)
        return cr_error_set(err, CR_ERR_INVALID, "it is cut off in its footer");
    cr_autofree char *text = cr_strndup((const char *)in->at, (size_t)(end - in->at));
    zone->has_rule = *text != '\0';
    return !zone->has_rule || cr_tz_rule_parse(text, &zone->rule, err) || cr_error_wrap(err, "its footer");
}

/* A file of version 1 has one block, of 32 bits. Later ones have it for old readers, and another behind it. */
static bool read_file(struct cursor *in, struct cr_tzif *zone, struct cr_error *err)
{
    struct header header = {0};
    if (!read_header(in, &header, err))
        return false;
    if (!header.version)
        return read_block(in, &header, 4, zone, err);
    if (!take(in, header.changes * (uint64_t)5 + header.types * (uint64_t)TYPE_LEN + tail_len(&header, 4)))
        return cr_error_set(err, CR_ERR_INVALID, "it is cut off");
    return read_header(in, &header, err) && read_block(in, &header, 8, zone, err) && read_footer(in, zone, err);
}

struct cr_tzif *cr_tzif_parse(const void *data, size_t len, struct cr_error *err)
{
    CR_CLEANUP(cr_tzif) struct cr_tzif *zone = cr_new(struct cr_tzif);
    if (len > CR_TZIF_MAX) {
        cr_error_set(err, CR_ERR_INVALID, "it is longer than %d bytes", CR_TZIF_MAX);
        return NULL;
    }
    struct cursor in = {.at = data, .left = len};
    return read_file(&in, zone, err) ? cr_steal(&zone) : NULL;
}

/* --- its answers --- */

/* How many of the changes are at or before that time. */
static size_t changes_until(const struct cr_tzif *zone, int64_t at_s)
{
    size_t low = 0;
    size_t high = zone->len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->changes[middle] <= at_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t cr_tzif_offset(const struct cr_tzif *zone, int64_t at_s)
{
    size_t before = changes_until(zone, at_s);
    if (before == zone->len && zone->has_rule)
        return cr_tz_rule_offset(&zone->rule, at_s);
    return before ? zone->offsets[before - 1] : zone->first_s;
}

/* The first change after at_s; INT64_MAX: there is none. */
static int64_t next_change(const struct cr_tzif *zone, int64_t at_s)
{
    size_t before = changes_until(zone, at_s);
    if (before < zone->len)
        return zone->changes[before];
    return zone->has_rule ? cr_tz_rule_next(&zone->rule, at_s) : INT64_MAX;
}

int64_t cr_tzif_from_local(const struct cr_tzif *zone, int64_t local_s)
{
    /* No clock shows it yet: that far east is none. */
    int64_t from = local_s - OFFSET_MAX_S - 1;
    for (;;) {
        int64_t shown = local_s - cr_tzif_offset(zone, from);
        int64_t until = next_change(zone, from);
        if (shown < from)
            return from;
        if (shown < until)
            return shown;
        from = until;
    }
}

bool cr_tzif_name_check(const char *name, struct cr_error *err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";
    size_t len = strlen(name);
    if (len == 0 || len > CR_TZIF_NAME_MAX || name[strspn(name, letters)] || name[0] == '/' || strstr(name, "//") ||
        cr_ends_with(name, "/"))
        return cr_error_set(err, CR_ERR_INVALID, "'%.64s' is no name of a time zone such as Europe/Paris", name);
    return true;
}
