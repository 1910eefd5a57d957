#include "evidence/trust_memory.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/strings.h"

/* Enough for two policies. */
enum { ENDPOINTS_MAX = 2 * CR_VERIFY_ENDPOINTS_MAX, PAGES_MAX = 2 };

struct endpoint_record {
    int64_t at_ms; /* 0: free */
    int64_t started_ms;
    enum cr_probe_protocol protocol;
    int port;
    char *server_name;
    struct cr_endpoint_trust trust;
};

struct page_record {
    int64_t at_ms; /* 0: free */
    int64_t started_ms;
    int port;
    char *path;
    struct cr_trust_sighting page; /* without endpoints */
};

struct cr_trust_memory {
    struct endpoint_record *endpoints; /* as many as there are */
    size_t endpoints_len;
    struct page_record pages[PAGES_MAX];
};

static void drop_endpoint(struct endpoint_record *record)
{
    free(record->server_name);
    *record = (struct endpoint_record){0};
}

static void drop_page(struct page_record *record)
{
    free(record->path);
    cr_trust_sighting_dispose(&record->page);
    *record = (struct page_record){0};
}

void cr_trust_memory_free(struct cr_trust_memory *memory)
{
    if (!memory)
        return;
    for (size_t i = 0; i < memory->endpoints_len; i++)
        drop_endpoint(&memory->endpoints[i]);
    for (size_t i = 0; i < PAGES_MAX; i++)
        drop_page(&memory->pages[i]);
    free(memory->endpoints);
    free(memory);
}

static struct cr_trust_memory *begun(struct cr_trust_memory **memory)
{
    if (!*memory)
        *memory = cr_new(struct cr_trust_memory);
    return *memory;
}

/* --- endpoints --- */

static struct endpoint_record *find_endpoint(const struct cr_trust_memory *memory,
                                             const struct cr_verify_endpoint *endpoint)
{
    for (size_t i = 0; i < memory->endpoints_len; i++) {
        struct endpoint_record *record = &memory->endpoints[i];
        if (record->at_ms && record->port == endpoint->port && record->protocol == endpoint->protocol &&
            cr_streq(record->server_name, endpoint->server_name))
            return record;
    }
    return NULL;
}

/* Free ones are the oldest of all. */
static struct endpoint_record *room_for_endpoint(struct cr_trust_memory *memory)
{
    struct endpoint_record *oldest = memory->endpoints;
    for (size_t i = 0; i < memory->endpoints_len; i++)
        if (memory->endpoints[i].at_ms < oldest->at_ms)
            oldest = &memory->endpoints[i];
    if (memory->endpoints_len == ENDPOINTS_MAX || (oldest && !oldest->at_ms)) {
        drop_endpoint(oldest);
        return oldest;
    }
    memory->endpoints = cr_reallocarray(memory->endpoints, memory->endpoints_len + 1, sizeof *memory->endpoints);
    return &memory->endpoints[memory->endpoints_len++];
}

void cr_trust_memory_keep_endpoint(struct cr_trust_memory **memory, int64_t started_ms,
                                   const struct cr_verify_endpoint *endpoint, const struct cr_endpoint_trust *trust,
                                   int64_t at_ms)
{
    struct endpoint_record *record = find_endpoint(begun(memory), endpoint);
    if (!record) {
        record = room_for_endpoint(*memory);
        *record = (struct endpoint_record){.protocol = endpoint->protocol,
                                           .port = endpoint->port,
                                           .server_name = cr_strdup_or_null(endpoint->server_name)};
    }
    record->at_ms = at_ms;
    record->started_ms = started_ms;
    record->trust = *trust;
}

/* --- pages --- */

static struct page_record *find_page(struct cr_trust_memory *memory, const struct cr_policy_verify *verify)
{
    for (size_t i = 0; i < PAGES_MAX; i++) {
        struct page_record *record = &memory->pages[i];
        if (record->at_ms && record->port == verify->certs_port && cr_streq(record->path, verify->certs_path))
            return record;
    }
    return NULL;
}

static struct page_record *room_for_page(struct cr_trust_memory *memory)
{
    struct page_record *oldest = memory->pages;
    for (size_t i = 1; i < PAGES_MAX; i++)
        if (memory->pages[i].at_ms < oldest->at_ms)
            oldest = &memory->pages[i];
    return oldest;
}

void cr_trust_memory_keep_page(struct cr_trust_memory **memory, int64_t started_ms,
                               const struct cr_policy_verify *verify, struct cr_trust_sighting *page, int64_t at_ms)
{
    struct page_record *record = find_page(begun(memory), verify);
    if (!record)
        record = room_for_page(*memory);
    drop_page(record);
    *record = (struct page_record){.at_ms = at_ms,
                                   .started_ms = started_ms,
                                   .port = verify->certs_port,
                                   .path = cr_strdup_or_null(verify->certs_path),
                                   .page = {.page_read = page->page_read,
                                            .contexts = cr_steal(&page->contexts),
                                            .contexts_len = page->contexts_len}};
    page->contexts_len = 0;
    snprintf(record->page.words, sizeof record->page.words, "%s", page->words);
}

/* --- what is known --- */

static void forget_old(struct cr_trust_memory *memory, int64_t now_ms)
{
    for (size_t i = 0; i < memory->endpoints_len; i++)
        if (now_ms - memory->endpoints[i].at_ms > CR_TRUST_KEPT_MS || memory->endpoints[i].at_ms > now_ms)
            drop_endpoint(&memory->endpoints[i]);
    for (size_t i = 0; i < PAGES_MAX; i++)
        if (now_ms - memory->pages[i].at_ms > CR_TRUST_KEPT_MS || memory->pages[i].at_ms > now_ms)
            drop_page(&memory->pages[i]);
}

static bool is_empty(const struct cr_trust_memory *memory)
{
    for (size_t i = 0; i < memory->endpoints_len; i++)
        if (memory->endpoints[i].at_ms)
            return false;
    for (size_t i = 0; i < PAGES_MAX; i++)
        if (memory->pages[i].at_ms)
            return false;
    return true;
}

static void copy_page(const struct cr_trust_sighting *from, struct cr_trust_sighting *to)
{
    to->page_read = from->page_read;
    snprintf(to->words, sizeof to->words, "%s", from->words);
    to->contexts = cr_calloc(from->contexts_len, sizeof *to->contexts);
    to->contexts_len = from->contexts_len;
    for (size_t i = 0; i < from->contexts_len; i++) {
        cr_strvec_copy(&to->contexts[i].cas, &from->contexts[i].cas);
        cr_strvec_copy(&to->contexts[i].leaves, &from->contexts[i].leaves);
        to->contexts[i].ca_path = cr_strdup_or_null(from->contexts[i].ca_path);
    }
}

/* False: some part was not seen. The whole is as old as its oldest part. */
static bool note_age(struct cr_trust_sighting *out, int64_t started_ms, int64_t part_started_ms, int64_t at_ms)
{
    if (!at_ms || part_started_ms != started_ms)
        return false;
    if (!out->at_ms || at_ms < out->at_ms)
        out->at_ms = at_ms;
    return true;
}

static bool recall_endpoints(const struct cr_trust_memory *memory, int64_t started_ms,
                             const struct cr_policy_verify *verify, struct cr_trust_sighting *out)
{
    out->endpoints = cr_calloc(verify->endpoints_len, sizeof *out->endpoints);
    out->endpoints_len = verify->endpoints_len;
    for (size_t i = 0; i < verify->endpoints_len; i++) {
        const struct endpoint_record *record = find_endpoint(memory, &verify->endpoints[i]);
        if (!record || !note_age(out, started_ms, record->started_ms, record->at_ms))
            return false;
        out->endpoints[i] = record->trust;
    }
    return true;
}

static bool recall_page(struct cr_trust_memory *memory, int64_t started_ms, const struct cr_policy_verify *verify,
                        struct cr_trust_sighting *out)
{
    if (!verify->certs_port)
        return true;
    const struct page_record *record = find_page(memory, verify);
    if (!record || !note_age(out, started_ms, record->started_ms, record->at_ms))
        return false;
    copy_page(&record->page, out);
    return true;
}

void cr_trust_memory_recall(struct cr_trust_memory **memory, int64_t started_ms, const struct cr_policy_verify *verify,
                            int64_t now_ms, struct cr_trust_sighting *out)
{
    *out = (struct cr_trust_sighting){0};
    if (!*memory)
        return;
    forget_old(*memory, now_ms);
    if (!recall_endpoints(*memory, started_ms, verify, out) || !recall_page(*memory, started_ms, verify, out))
        cr_trust_sighting_dispose(out);
    if (is_empty(*memory)) {
        cr_trust_memory_free(*memory);
        *memory = NULL;
    }
}
