/* Fills a namespace for the benchmark, with many requests at a time. What exists is left as it is.
 *
 * bench-fill NAMESPACE secrets|deployments|policies FIRST COUNT [BYTES]
 * BYTES: so many of padding in each Secret, for the large one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "clock.h"
#include "material.h"

struct fill {
    struct bench_api *api;
    const char *ns;
    struct bench_material *material;
    size_t bytes;
};

static void on_done(void *arg, size_t index, long status, const char *body)
{
    (void)arg;
    if (status >= 300 && status != 409)
        bench_fail("object %zu: the API server: %ld %s", index, status, body);
}

static char *padding(size_t bytes)
{
    /* Base64 of zeros, so that any multiple of four characters is text of bytes. */
    size_t len = bytes / 3 * 4;
    char *text = malloc(len + 1);
    if (!text)
        bench_fail("out of memory");
    memset(text, 'A', len);
    text[len] = '\0';
    return text;
}

static char *secret(struct fill *fill, size_t index)
{
    char *data = bench_material_data(fill->material, index), *body = NULL;
    char *pad = fill->bytes ? padding(fill->bytes) : NULL;
    data[strlen(data) - 1] = '\0'; /* its brace */
    if (asprintf(&body,
                 "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"type\":\"kubernetes.io/tls\","
                 "\"metadata\":{\"name\":\"s-%05zu\"},\"data\":%s%s%s%s}}",
                 index, data, pad ? ",\"padding\":\"" : "", pad ? pad : "", pad ? "\"" : "") < 0)
        bench_fail("out of memory");
    free(pad);
    free(data);
    return body;
}

/* Software that nobody knows, without replicas: a change is answered by a restart, and nothing runs. */
static char *deployment(struct fill *fill, size_t index)
{
    (void)fill;
    char *body = NULL;
    if (asprintf(
            &body,
            "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d-%05zu\"},"
            "\"spec\":{\"replicas\":0,\"revisionHistoryLimit\":1,\"selector\":{\"matchLabels\":{\"app\":\"d-%05zu\"}},"
            "\"template\":{\"metadata\":{\"labels\":{\"app\":\"d-%05zu\"}},\"spec\":{\"containers\":[{\"name\":\"app\","
            "\"image\":\"example.com/app:1.0\",\"volumeMounts\":[{\"name\":\"tls\",\"mountPath\":\"/tls\"}]}],"
            "\"volumes\":[{\"name\":\"tls\",\"secret\":{\"secretName\":\"s-%05zu\"}}]}}}}",
            index, index, index, index) < 0)
        bench_fail("out of memory");
    return body;
}

/* Limits off: no waiting for other changes, no bound to restarts at a time or in an hour. */
static char *policy(struct fill *fill, size_t index)
{
    (void)fill;
    char *body = NULL;
    if (asprintf(&body,
                 "{\"apiVersion\":\"certroll.dev/v1alpha1\",\"kind\":\"CertRotationPolicy\","
                 "\"metadata\":{\"name\":\"p-%05zu\"},\"spec\":{\"secrets\":[{\"name\":\"s-%05zu\"}],"
                 "\"consumers\":[{\"name\":\"app\",\"targetRef\":{\"kind\":\"Deployment\",\"name\":\"d-%05zu\"}}],"
                 "\"restart\":{\"coalesce\":\"0s\",\"maxConcurrent\":100,\"breaker\":{\"within\":\"0s\"}}}}",
                 index, index, index) < 0)
        bench_fail("out of memory");
    return body;
}

static const struct kind {
    const char *name, *api, *resource;
    char *(*body)(struct fill *fill, size_t index);
} kinds[] = {
    {"secrets", "/api/v1", "secrets", secret},
    {"deployments", "/apis/apps/v1", "deployments", deployment},
    {"policies", "/apis/certroll.dev/v1alpha1", "certrotationpolicies", policy},
};

static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    bench_fail("there is nothing to fill called %s", name);
}

static void fill_all(struct fill *fill, const struct kind *kind, size_t first, size_t count)
{
    char path[256];
    snprintf(path, sizeof path, "%s/namespaces/%s/%s", kind->api, fill->ns, kind->resource);
    for (size_t i = first; i < first + count; i++) {
        char *body = kind->body(fill, i);
        bench_api_send(fill->api, "POST", path, "application/json", body, on_done, NULL, i);
        free(body);
        while (bench_api_pending(fill->api) >= BENCH_AT_ONCE)
            bench_api_poll(fill->api, 1000);
    }
    while (bench_api_pending(fill->api))
        bench_api_poll(fill->api, 1000);
}

int main(int argc, char **argv)
{
    if (argc < 5)
        bench_fail("usage: bench-fill NAMESPACE secrets|deployments|policies FIRST COUNT [BYTES]");
    struct fill fill = {.api = bench_api_new(),
                        .ns = argv[1],
                        .material = bench_material_new(),
                        .bytes = argc > 5 ? strtoul(argv[5], NULL, 10) : 0};
    fill_all(&fill, kind_of(argv[2]), strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10));
    bench_material_free(fill.material);
    bench_api_free(fill.api);
    return 0;
}
