/* What text from outside may cost: for each parser the worst input that its caps allow, and next to it one that passes
 * them, with what it took in steps, allocations and bytes of memory. Nothing here measures time. A new parser is a row,
 * and so is each kind of object that a user may write, and that is read on the thread that serves all watches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "codec/cron.h"
#include "codec/json.h"
#include "codec/tz_rule.h"
#include "codec/tzif.h"
#include "codec/yaml.h"
#include "cluster/project.h"
#include "cluster/secret_view.h"
#include "kube/object.h"
#include "kube/watch_frames.h"
#include "net/page_fetch.h"
#include "evidence/certs_page.h"
#include "evidence/sidecar_page.h"
#include "wire/http_parse.h"

/* --- counting memory --- */

/* Of the sanitizers' runtime (sanitizer/allocator_interface.h); NULL in a build without one. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                              void (*on_free)(const volatile void *)) __attribute__((weak));
size_t __sanitizer_get_allocated_size(const volatile void *p) __attribute__((weak));

static struct {
    bool on;
    size_t allocations;
    size_t bytes;
    size_t most;
} memory;

static void on_malloc(const volatile void *p, size_t size)
{
    (void)p;
    if (!memory.on)
        return;
    memory.allocations++;
    memory.bytes += size;
    if (memory.bytes > memory.most)
        memory.most = memory.bytes;
}

static void on_free(const volatile void *p)
{
    size_t size = p && memory.on ? __sanitizer_get_allocated_size(p) : 0;
    memory.bytes -= size < memory.bytes ? size : memory.bytes;
}

/* --- counting comparisons --- */

static size_t comparisons;

/* Called by the sanitizers' runtime for each strcmp: all look-ups by name are made of them. A build without one counts
 * none. */
void __sanitizer_weak_hook_strcmp(void *caller, const char *a, const char *b, int result);
void __sanitizer_weak_hook_strcmp(void *caller, const char *a, const char *b, int result)
{
    (void)caller;
    (void)a;
    (void)b;
    (void)result;
    comparisons++;
}

/* --- texts --- */

/* Up to len bytes: before, then as many of each as fit, with a comma between them, then behind. Owned. */
static struct cr_buf filled(const char *before, const char *each, const char *behind, size_t count, size_t len)
{
    struct cr_buf text = CR_BUF_INIT(0);
    size_t ends = strlen(behind) + strlen(each) + 1;
    cr_buf_puts(&text, before);
    for (size_t i = 0; i < count && text.len + ends <= len; i++)
        cr_buf_printf(&text, "%s%s", i ? "," : "", each);
    cr_buf_puts(&text, behind);
    return text;
}

static struct cr_buf json_values(void)
{
    return filled("[", "0", "]", CR_JSON_VALUES_MAX - 1, SIZE_MAX);
}

static struct cr_buf json_members(void)
{
    return filled("{", "\"\":\"\"", "}", CR_JSON_VALUES_MAX - 1, SIZE_MAX);
}

static struct cr_buf json_too_many(void)
{
    return filled("[", "0", "]", SIZE_MAX, CR_PAGE_MAX);
}

static struct cr_buf page_most(void)
{
    return filled("{\"certificates\":[],\"x\":[", "{\"\":\"\"}", "]}", (CR_CERTS_VALUES_MAX - 3) / 2, CR_PAGE_MAX);
}

static struct cr_buf sidecar_most(void)
{
    return filled("{\"apiVersion\":\"" CR_SIDECAR_PAGE_VERSION "\",\"materials\":[],\"x\":[", "{\"\":\"\"}", "]}",
                  (CR_SIDECAR_VALUES_MAX - 4) / 2, CR_SIDECAR_PAGE_MAX);
}

static struct cr_buf sidecar_too_many(void)
{
    return filled("[", "0", "]", SIZE_MAX, CR_SIDECAR_PAGE_MAX);
}

static struct cr_buf yaml_nodes(void)
{
    return filled("[", "0", "]", CR_YAML_MAX_NODES - 1, CR_YAML_MAX_BYTES);
}

static struct cr_buf yaml_too_many(void)
{
    return filled("[", "0", "]", SIZE_MAX, CR_YAML_MAX_BYTES);
}

/* Mappings that are as long as may be. */
static struct cr_buf yaml_keys(void)
{
    CR_CLEANUP(cr_buf) struct cr_buf mapping = CR_BUF_INIT(0);
    for (int i = 0; i < CR_YAML_MAX_KEYS; i++)
        cr_buf_printf(&mapping, "%sk%d: 0", i ? "," : "{", i);
    cr_buf_puts(&mapping, "}");
    return filled("[", cr_buf_text(&mapping), "]", CR_YAML_MAX_NODES / (2 * CR_YAML_MAX_KEYS + 1), CR_YAML_MAX_BYTES);
}

static struct cr_buf secret_of(size_t keys)
{
    struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_puts(&text, "{\"metadata\":{\"name\":\"s\",\"namespace\":\"ns\"},\"data\":{");
    for (size_t i = keys; i; i--)
        cr_buf_printf(&text, "\"%zu\":\"\"%s", i, i > 1 ? "," : "}}");
    return text;
}

static struct cr_buf secret_most(void)
{
    return secret_of(CR_SECRET_KEYS_MAX);
}

static struct cr_buf secret_too_many(void)
{
    return secret_of(7 * CR_SECRET_KEYS_MAX);
}

enum { SECRET_BYTES = 1024 * 1024 /* Kubernetes' MaxSecretSize */ };

static struct cr_buf base64_most(void)
{
    struct cr_buf text = CR_BUF_INIT(0);
    while (text.len < SECRET_BYTES / 3 * 4)
        cr_buf_puts(&text, "QUFB");
    return text;
}

enum { CRON_BYTES = 64 * 1024 };

static struct cr_buf cron_most(void)
{
    return filled("", "0-59/1", " * * * *", SIZE_MAX, CRON_BYTES);
}

static struct cr_buf tz_most(void)
{
    struct cr_buf text = CR_BUF_INIT(0);
    while (text.len < 64 * 1024)
        cr_buf_puts(&text, "A");
    cr_buf_puts(&text, "-1B,M3.5.0,M10.5.0/3");
    return text;
}

/* A file of version 1 with as many changes as its bytes hold: big-endian counts of the header in the order isutc,
 * isstd, leap, time, type, char (RFC 9636, section 3.1). */
static struct cr_buf tzif_most(void)
{
    enum { HEADER = 44, TYPE = 6, CHARS = 4 };
    uint32_t changes = (CR_TZIF_MAX - HEADER - TYPE - CHARS) / 5;
    unsigned char header[HEADER] = "TZif";
    struct cr_buf text = CR_BUF_INIT(0);
    for (int i = 0; i < 4; i++)
        header[32 + i] = (unsigned char)(changes >> (24 - 8 * i));
    header[39] = 1;
    header[43] = CHARS;
    assert_true(cr_buf_append(&text, header, sizeof header));
    for (uint32_t i = 0; i < changes; i++)
        assert_true(cr_buf_append(&text, (unsigned char[]){0, i >> 16 & 0xff, i >> 8 & 0xff, i & 0xff}, 4));
    for (uint32_t i = 0; i < changes; i++)
        assert_true(cr_buf_append(&text, "", 1));
    assert_true(cr_buf_append(&text, (unsigned char[TYPE + CHARS]){0, 0, 0, 0, 0, 0, 'U', 'T', 'C'}, TYPE + CHARS));
    return text;
}

static struct cr_buf head_of(size_t len)
{
    struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_puts(&text, "HTTP/1.1 200 OK\r\n");
    while (text.len + 6 + 2 <= len)
        cr_buf_puts(&text, "a:b\r\n");
    cr_buf_puts(&text, "\r\n");
    return text;
}

static struct cr_buf head_most(void)
{
    return head_of(CR_HTTP_HEAD_MAX);
}

static struct cr_buf head_too_long(void)
{
    return head_of(64 * CR_HTTP_HEAD_MAX);
}

enum { FRAME_MAX = 256 * 1024 };

/* Its name comes last, so that its head is looked for all the time. */
static struct cr_buf frame_of(size_t len)
{
    return filled("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"labels\":{", "\"a\":\"\"",
                  "},\"name\":\"n\",\"namespace\":\"ns\",\"resourceVersion\":\"1\"}}}\n", SIZE_MAX, len);
}

static struct cr_buf frame_most(void)
{
    return frame_of(FRAME_MAX);
}

static struct cr_buf frame_too_long(void)
{
    return frame_of(8 * FRAME_MAX);
}

/* --- objects of users, with as many values as an object may have --- */

enum { VALUES_BESIDE = 50 /* beside those of which there are many */ };

/* As many pieces as there are values for, with a comma between them; # is the number of the piece. */
static void add_pieces(struct cr_buf *text, const char *before, const char *each, size_t values_each,
                       const char *behind)
{
    cr_buf_puts(text, before);
    for (size_t i = 0; i < (CR_JSON_VALUES_MAX - VALUES_BESIDE) / values_each; i++) {
        cr_buf_puts(text, i ? "," : "");
        for (const char *p = each; *p; p++) {
            if (*p == '#')
                cr_buf_printf(text, "%zu", i);
            else
                assert_true(cr_buf_append(text, p, 1));
        }
    }
    cr_buf_puts(text, behind);
}

/* A volume and its mount. */
enum { MOUNTED_VALUES = 6 };

static struct cr_buf workload_of_mounts(void)
{
    struct cr_buf text = CR_BUF_INIT(0);
    add_pieces(&text, "{\"kind\":\"Deployment\",\"spec\":{\"template\":{\"spec\":{\"volumes\":[",
               "{\"name\":\"v#\",\"secret\":{\"secretName\":\"s#\"}}", MOUNTED_VALUES, "],");
    add_pieces(&text, "\"containers\":[{\"volumeMounts\":[", "{\"name\":\"v#\"}", MOUNTED_VALUES, "]}]}}}}");
    return text;
}

static struct cr_buf workload_of_sources(void)
{
    struct cr_buf text = CR_BUF_INIT(0);
    add_pieces(&text,
               "{\"kind\":\"Deployment\",\"spec\":{\"template\":{\"spec\":{\"volumes\":[{\"name\":\"v0\",\"projected\":"
               "{\"sources\":[",
               "{\"secret\":{\"name\":\"s#\"}}", 5, "]}}],");
    add_pieces(&text, "\"containers\":[{\"volumeMounts\":[", "{\"name\":\"v0\"}", 5, "]}]}}}}");
    return text;
}

static struct cr_buf workload_of_variables(void)
{
    struct cr_buf text = CR_BUF_INIT(0);
    add_pieces(&text, "{\"kind\":\"Deployment\",\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"envFrom\":[",
               "{\"secretRef\":{\"name\":\"s#\"}}", 3, "]}]}}}}");
    return text;
}

static struct cr_buf pod_of_volumes(void)
{
    struct cr_buf text = CR_BUF_INIT(0);
    add_pieces(&text, "{\"kind\":\"Pod\",\"spec\":{\"volumes\":[", "{\"secret\":{\"secretName\":\"s#\"}}", 3, "]}}");
    return text;
}

static struct cr_buf ingress_of_secrets(void)
{
    struct cr_buf text = CR_BUF_INIT(0);
    add_pieces(&text, "{\"kind\":\"Ingress\",\"spec\":{\"tls\":[", "{\"secretName\":\"s#\"}", 2, "]}}");
    return text;
}

static struct cr_buf gateway_of_secrets(void)
{
    struct cr_buf text = CR_BUF_INIT(0);
    add_pieces(&text, "{\"kind\":\"Gateway\",\"spec\":{\"listeners\":[{\"tls\":{\"certificateRefs\":[",
               "{\"name\":\"s#\"}", 2, "]}}]}}");
    return text;
}

/* --- who takes them; each returns the steps that can be counted --- */

static size_t take_json(const struct cr_buf *text, bool *taken)
{
    struct cr_json_budget budget = {.values = CR_JSON_VALUES_MAX};
    CR_CLEANUP(cr_json) struct cr_json *j = cr_json_parse_within(text->data, text->len, &budget, NULL);
    *taken = j != NULL;
    return CR_JSON_VALUES_MAX - budget.values;
}

static size_t take_page(const struct cr_buf *text, bool *taken)
{
    CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen = {0};
    *taken = cr_certs_page_read(text->data, text->len, &seen, NULL);
    return 0;
}

static size_t take_sidecar(const struct cr_buf *text, bool *taken)
{
    CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting seen = {0};
    *taken = cr_sidecar_page_read(text->data, text->len, &seen, NULL);
    return seen.len;
}

static size_t nodes_of(const struct cr_json *j)
{
    size_t nodes = 1;
    for (const struct cr_json *c = cr_json_first(j); c; c = cr_json_next(c))
        nodes += nodes_of(c) + (cr_json_key(c) != NULL);
    return nodes;
}

static size_t take_yaml(const struct cr_buf *text, bool *taken)
{
    CR_CLEANUP(cr_json) struct cr_json *j = cr_yaml_parse(text->data, text->len, NULL);
    *taken = j != NULL;
    return j ? nodes_of(j) : 0;
}

static size_t take_secret(const struct cr_buf *text, bool *taken)
{
    static const char *const data[] = {"data", NULL};
    const struct cr_policy_secret names = {.certificate = (char[]){"1"}};
    CR_CLEANUP(cr_json) struct cr_json *secret = cr_json_parse_apart(text->data, text->len, data, NULL);
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = cr_secret_view_read(secret, &names, NULL);
    *taken = view->problem != CR_MATERIAL_TOO_COSTLY;
    return 0;
}

static void count_piece(void *arg, const void *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    ++*(size_t *)arg;
}

static size_t take_base64(const struct cr_buf *text, bool *taken)
{
    size_t pieces = 0;
    *taken = cr_base64_decode_pieces(text->data, text->len, count_piece, &pieces, NULL);
    return pieces;
}

static size_t take_cron(const struct cr_buf *text, bool *taken)
{
    struct cr_cron cron;
    *taken = cr_cron_parse(text->data, &cron, NULL);
    return 0;
}

static size_t take_tz(const struct cr_buf *text, bool *taken)
{
    struct cr_tz_rule rule;
    *taken = cr_tz_rule_parse(text->data, &rule, NULL);
    return 0;
}

static size_t take_tzif(const struct cr_buf *text, bool *taken)
{
    CR_CLEANUP(cr_tzif) struct cr_tzif *zone = cr_tzif_parse(text->data, text->len, NULL);
    *taken = zone != NULL;
    return 0;
}

/* A byte at a time. */
static size_t take_head(const struct cr_buf *text, bool *taken)
{
    CR_CLEANUP(cr_http_parse) struct cr_http_parse parse;
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    size_t fed = 0;
    cr_http_parse_init(&parse, "GET", 0);
    for (*taken = true; *taken && fed < text->len; fed++)
        *taken = cr_http_parse_feed(&parse, text->data + fed, 1, &body, NULL);
    return fed;
}

struct frames_seen {
    size_t asked;
    size_t whole;
};

static bool frame_came(void *arg, const char *frame, size_t len, struct cr_error *err)
{
    struct frames_seen *seen = arg;
    (void)frame;
    (void)len;
    (void)err;
    seen->whole++;
    return true;
}

static bool frame_wanted(void *arg, const struct cr_watch_head *head)
{
    (void)head;
    ((struct frames_seen *)arg)->asked++;
    return true;
}

/* In small pieces. */
static size_t take_frame(const struct cr_buf *text, bool *taken)
{
    enum { PIECE = 16 };
    struct frames_seen seen = {0};
    CR_CLEANUP(cr_frames) struct cr_frames frames;
    const struct cr_frames_handler handler = {.on_frame = frame_came, .wants = frame_wanted, .arg = &seen};
    cr_frames_init(&frames, FRAME_MAX, false, &handler);
    *taken = true;
    for (size_t at = 0; *taken && at < text->len; at += PIECE)
        *taken = cr_frames_feed(&frames, text->data + at, text->len - at < PIECE ? text->len - at : PIECE, NULL);
    *taken = *taken && seen.whole == 1;
    return seen.asked;
}

/* What the cache makes of it. */
static size_t take_object(const struct cr_buf *text, bool *taken)
{
    CR_CLEANUP(cr_json) struct cr_json *object = cr_json_parse(text->data, text->len, NULL);
    *taken = object != NULL;
    if (!object)
        return 0;
    cr_autofree char *kind = cr_strdup(cr_json_string_at(object, "kind"));
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(cr_steal(&object));
    comparisons = 0;
    if (cr_streq(kind, "Pod"))
        cr_project_pod(snapshot->json, snapshot);
    else
        cr_project_user(kind, snapshot->json, snapshot);
    return comparisons;
}

/* --- the table --- */

/* Of an object that a user wrote: comparisons, allocations and bytes for each of its values. */
enum { OBJECT_STEPS = 10, OBJECT_ALLOCATIONS = 4, OBJECT_BYTES = 150 };
#define OBJECT_MOST                                                                                                    \
    CR_JSON_VALUES_MAX *OBJECT_STEPS, CR_JSON_VALUES_MAX *OBJECT_ALLOCATIONS, CR_JSON_VALUES_MAX *OBJECT_BYTES

/* Bytes as they are asked for. What has 128 KiB and more in a struct cr_buf is not among them (base/buffer.h). */
static const struct cost {
    const char *rule;
    struct cr_buf (*make)(void);
    size_t (*take)(const struct cr_buf *text, bool *taken);
    bool taken;
    size_t steps; /* at most, as the next */
    size_t allocations;
    size_t bytes;
} costs[] = {
    {"JSON: as many values as may be", json_values, take_json, true, CR_JSON_VALUES_MAX, 3 * CR_JSON_VALUES_MAX,
     CR_JSON_VALUES_MAX *CR_JSON_VALUE_BYTES},
    {"JSON: with a key and a string each", json_members, take_json, true, CR_JSON_VALUES_MAX, 3 * CR_JSON_VALUES_MAX,
     CR_JSON_VALUES_MAX *CR_JSON_VALUE_BYTES},
    {"JSON: 2 MiB of values", json_too_many, take_json, false, 0, 0, 0},
    {"page of certificates: as many values as may be", page_most, take_page, true, 0, 3 * CR_CERTS_VALUES_MAX,
     CR_CERTS_VALUES_MAX *CR_JSON_VALUE_BYTES},
    {"page of certificates: 2 MiB of values", json_too_many, take_page, false, 0, 0, 0},
    {"sidecar's page: as many values as may be", sidecar_most, take_sidecar, true, CR_SIDECAR_ENTRIES_MAX,
     3 * CR_SIDECAR_VALUES_MAX, CR_SIDECAR_VALUES_MAX *CR_JSON_VALUE_BYTES},
    {"sidecar's page: 64 KiB of values", sidecar_too_many, take_sidecar, false, 0, 0, 0},
    {"YAML: as many nodes as may be", yaml_nodes, take_yaml, true, CR_YAML_MAX_NODES, 8 * CR_YAML_MAX_NODES,
     CR_YAML_MAX_NODES *CR_JSON_VALUE_BYTES},
    {"YAML: mappings as long as may be", yaml_keys, take_yaml, true, CR_YAML_MAX_NODES, 8 * CR_YAML_MAX_NODES,
     CR_YAML_MAX_NODES *CR_JSON_VALUE_BYTES},
    {"YAML: 1 MiB of nodes", yaml_too_many, take_yaml, false, 0, 8 * CR_YAML_MAX_NODES,
     CR_YAML_MAX_NODES *CR_JSON_VALUE_BYTES},
    {"Secret: as many keys as may be", secret_most, take_secret, true, 0, 10 * CR_SECRET_KEYS_MAX,
     500 * CR_SECRET_KEYS_MAX},
    {"Secret: seven times as many", secret_too_many, take_secret, false, 0, 2 * CR_SECRET_KEYS_MAX,
     200 * CR_SECRET_KEYS_MAX},
    {"base64 of a whole Secret", base64_most, take_base64, true, SECRET_BYTES / 64, 0, 0},
    {"cron: a long list", cron_most, take_cron, true, 0, 1, CRON_BYTES},
    {"rule of a time zone: a long name", tz_most, take_tz, false, 0, 0, 0},
    {"file of a time zone: as many changes as may be", tzif_most, take_tzif, true, 0, 16, 4 * CR_TZIF_MAX},
    {"HTTP: a head as long as may be, byte by byte", head_most, take_head, true, CR_HTTP_HEAD_MAX, 16,
     2 * CR_HTTP_HEAD_MAX},
    {"HTTP: a head without an end", head_too_long, take_head, false, CR_HTTP_HEAD_MAX + 1, 16, 2 * CR_HTTP_HEAD_MAX},
    {"watch: an event as long as may be, its name last", frame_most, take_frame, true, 1, 16, 2 * FRAME_MAX},
    {"watch: an event that is longer", frame_too_long, take_frame, false, 1, 16, 2 * FRAME_MAX},
    {"workload: a Secret in each volume, each mounted", workload_of_mounts, take_object, true, OBJECT_MOST},
    {"workload: many Secrets in a volume with many mounts", workload_of_sources, take_object, true, OBJECT_MOST},
    {"workload: a Secret for each variable", workload_of_variables, take_object, true, OBJECT_MOST},
    {"pod of no workload: a Secret in each volume", pod_of_volumes, take_object, true, OBJECT_MOST},
    {"Ingress: a Secret in each entry", ingress_of_secrets, take_object, true, OBJECT_MOST},
    {"Gateway: a Secret in each reference", gateway_of_secrets, take_object, true, OBJECT_MOST},
};

static void what_text_from_outside_costs_is_bounded(void **state)
{
    (void)state;
    bool counts = __sanitizer_install_malloc_and_free_hooks && __sanitizer_get_allocated_size;
    if (counts)
        (void)__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    size_t failed = 0;
    for (size_t i = 0; i < cr_array_len(costs); i++) {
        const struct cost *c = &costs[i];
        CR_CLEANUP(cr_buf) struct cr_buf text = c->make();
        bool taken = false;
        memset(&memory, 0, sizeof memory);
        memory.on = counts;
        size_t steps = c->take(&text, &taken);
        memory.on = false;
        bool within =
            taken == c->taken && steps <= c->steps && memory.allocations <= c->allocations && memory.most <= c->bytes;
        print_message("%-52s %8zu bytes: %s, %zu steps of %zu, %zu allocations of %zu, %zu bytes of %zu%s\n", c->rule,
                      text.len, taken ? "taken" : "refused", steps, c->steps, memory.allocations, c->allocations,
                      memory.most, c->bytes, within ? "" : "  <-- not as it should be");
        failed += !within;
    }
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_text_from_outside_costs_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
