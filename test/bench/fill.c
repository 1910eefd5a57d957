/* Fills a namespace for the benchmark, with many requests at a time. What exists is left as it is.
 *
 * bench-fill NAMESPACE secrets FIRST COUNT [BYTES]              BYTES: of padding in each, for the large one
 * bench-fill NAMESPACE deployments FIRST COUNT [REPLICAS]       without any unless told
 * bench-fill NAMESPACE replicasets|statuses FIRST COUNT REPLICAS
 * bench-fill NAMESPACE budgets|budgetstatuses FIRST COUNT REPLICAS   of which none may go
 * bench-fill NAMESPACE pods FIRST COUNT REPLICAS NODES          FIRST and COUNT are of pods
 * bench-fill NAMESPACE podstatuses FIRST COUNT REPLICAS         they run, and are ready
 * bench-fill NAMESPACE policies FIRST COUNT
 *
 * Replica sets, pods, and the statuses of Deployments, budgets and pods are what controllers, the scheduler and
 * kubelets would have made of them, which do not run. */
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
    size_t bytes;           /* of padding */
    size_t replicas, nodes; /* of each Deployment; those that pods are spread over, kwok-0 and so on */
};

/* Of the one pod template that a Deployment has had, as its controller would name it. */
#define TEMPLATE_HASH "6c9d4f7b58"

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

/* Software that nobody knows: a change is answered by a restart. */
static char *pod_spec(size_t index, const char *more)
{
    char *text = NULL;
    if (asprintf(&text,
                 "{\"containers\":[{\"name\":\"app\",\"image\":\"example.com/app:1.0\","
                 "\"volumeMounts\":[{\"name\":\"tls\",\"mountPath\":\"/tls\"}]}],"
                 "\"volumes\":[{\"name\":\"tls\",\"secret\":{\"secretName\":\"s-%05zu\"}}]%s}",
                 index, more) < 0)
        bench_fail("out of memory");
    return text;
}

static char *deployment(struct fill *fill, size_t index)
{
    char *spec = pod_spec(index, ""), *body = NULL;
    if (asprintf(&body,
                 "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d-%05zu\"},"
                 "\"spec\":{\"replicas\":%zu,\"revisionHistoryLimit\":1,"
                 "\"selector\":{\"matchLabels\":{\"app\":\"d-%05zu\"}},"
                 "\"template\":{\"metadata\":{\"labels\":{\"app\":\"d-%05zu\"}},\"spec\":%s}}}",
                 index, fill->replicas, index, index, spec) < 0)
        bench_fail("out of memory");
    free(spec);
    return body;
}

/* What it says of itself when all of its pods are there. */
static char *status(struct fill *fill, size_t index)
{
    (void)index;
    char *body = NULL;
    size_t n = fill->replicas;
    if (asprintf(&body,
                 "{\"status\":{\"observedGeneration\":1,\"replicas\":%zu,\"updatedReplicas\":%zu,"
                 "\"readyReplicas\":%zu,\"availableReplicas\":%zu}}",
                 n, n, n, n) < 0)
        bench_fail("out of memory");
    return body;
}

static char *budget(struct fill *fill, size_t index)
{
    char *body = NULL;
    if (asprintf(&body,
                 "{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":\"d-%05zu\"},"
                 "\"spec\":{\"minAvailable\":%zu,\"selector\":{\"matchLabels\":{\"app\":\"d-%05zu\"}}}}",
                 index, fill->replicas, index) < 0)
        bench_fail("out of memory");
    return body;
}

/* One pod is missed already, so that none may go until it is there. */
static char *budget_status(struct fill *fill, size_t index)
{
    (void)index;
    char *body = NULL;
    size_t n = fill->replicas;
    if (asprintf(&body,
                 "{\"status\":{\"observedGeneration\":1,\"currentHealthy\":%zu,\"desiredHealthy\":%zu,"
                 "\"expectedPods\":%zu,\"disruptionsAllowed\":0}}",
                 n - 1, n, n) < 0)
        bench_fail("out of memory");
    return body;
}

/* "metadata" of what belongs to another object. Its UID is made up: nobody here compares it. */
static char *owned(const char *name, const char *owner_kind, const char *owner, size_t index)
{
    char *text = NULL;
    if (asprintf(&text,
                 "{\"name\":\"%s\",\"labels\":{\"app\":\"d-%05zu\",\"pod-template-hash\":\"" TEMPLATE_HASH "\"},"
                 "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\",\"name\":\"%s\","
                 "\"uid\":\"00000000-0000-4000-8000-%012zu\",\"controller\":true}]}",
                 name, index, owner_kind, owner, index) < 0)
        bench_fail("out of memory");
    return text;
}

static char *replica_set(struct fill *fill, size_t index)
{
    char name[64], owner[64], *body = NULL;
    snprintf(owner, sizeof owner, "d-%05zu", index);
    snprintf(name, sizeof name, "%s-" TEMPLATE_HASH, owner);
    char *metadata = owned(name, "Deployment", owner, index), *spec = pod_spec(index, "");
    const char *labels = "\"pod-template-hash\":\"" TEMPLATE_HASH "\"";
    if (asprintf(&body,
                 "{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"metadata\":%s,\"spec\":{\"replicas\":%zu,"
                 "\"selector\":{\"matchLabels\":{\"app\":\"d-%05zu\",%s}},"
                 "\"template\":{\"metadata\":{\"labels\":{\"app\":\"d-%05zu\",%s}},\"spec\":%s}}}",
                 metadata, fill->replicas, index, labels, index, labels, spec) < 0)
        bench_fail("out of memory");
    free(metadata);
    free(spec);
    return body;
}

static void name_pod(const struct fill *fill, size_t number, char *name, size_t size)
{
    snprintf(name, size, "d-%05zu-" TEMPLATE_HASH "-%zu", number / fill->replicas, number % fill->replicas);
}

static void name_deployment(const struct fill *fill, size_t index, char *name, size_t size)
{
    (void)fill;
    snprintf(name, size, "d-%05zu", index);
}

/* Bound to its node from the start. */
static char *pod(struct fill *fill, size_t number)
{
    size_t index = number / fill->replicas;
    char name[64], owner[64], node[64], *body = NULL;
    snprintf(owner, sizeof owner, "d-%05zu-" TEMPLATE_HASH, index);
    name_pod(fill, number, name, sizeof name);
    snprintf(node, sizeof node, ",\"nodeName\":\"kwok-%zu\"", number % fill->nodes);
    char *metadata = owned(name, "ReplicaSet", owner, index), *spec = pod_spec(index, node);
    if (asprintf(&body, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":%s,\"spec\":%s}", metadata, spec) < 0)
        bench_fail("out of memory");
    free(metadata);
    free(spec);
    return body;
}

/* The API server evicts one that does not run yet whatever its budget says. */
static char *pod_status(struct fill *fill, size_t number)
{
    (void)fill;
    (void)number;
    char *body = strdup("{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
                        "\"containerStatuses\":[{\"name\":\"app\",\"image\":\"example.com/app:1.0\",\"imageID\":\"\","
                        "\"ready\":true,\"restartCount\":0,"
                        "\"state\":{\"running\":{\"startedAt\":\"2026-01-01T00:00:00Z\"}}}]}}");
    if (!body)
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
    /* Of the object whose status is patched; NULL: an object is created. */
    void (*name_of)(const struct fill *fill, size_t index, char *name, size_t size);
    int numbers; /* that must be given after COUNT */
} kinds[] = {
    {"secrets", "/api/v1", "secrets", secret, NULL, 0},
    {"deployments", "/apis/apps/v1", "deployments", deployment, NULL, 0},
    {"replicasets", "/apis/apps/v1", "replicasets", replica_set, NULL, 1},
    {"pods", "/api/v1", "pods", pod, NULL, 2},
    {"podstatuses", "/api/v1", "pods", pod_status, name_pod, 1},
    {"statuses", "/apis/apps/v1", "deployments", status, name_deployment, 1},
    {"budgets", "/apis/policy/v1", "poddisruptionbudgets", budget, NULL, 1},
    {"budgetstatuses", "/apis/policy/v1", "poddisruptionbudgets", budget_status, name_deployment, 1},
    {"policies", "/apis/certroll.dev/v1alpha1", "certrotationpolicies", policy, NULL, 0},
};

static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    bench_fail("there is nothing to fill called %s", name);
}

static void fill_one(struct fill *fill, const struct kind *kind, size_t index)
{
    char path[256], name[64];
    char *body = kind->body(fill, index);
    int len = snprintf(path, sizeof path, "%s/namespaces/%s/%s", kind->api, fill->ns, kind->resource);
    if (kind->name_of) {
        kind->name_of(fill, index, name, sizeof name);
        snprintf(path + len, sizeof path - (size_t)len, "/%s/status", name);
    }
    bench_api_send(fill->api, kind->name_of ? "PATCH" : "POST", path,
                   kind->name_of ? "application/merge-patch+json" : "application/json", body, on_done, NULL, index);
    free(body);
}

static void fill_all(struct fill *fill, const struct kind *kind, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        fill_one(fill, kind, i);
        while (bench_api_pending(fill->api) >= BENCH_AT_ONCE)
            bench_api_poll(fill->api, 1000);
    }
    while (bench_api_pending(fill->api))
        bench_api_poll(fill->api, 1000);
}

static size_t number(int argc, char **argv, int at)
{
    return argc > at ? strtoul(argv[at], NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        bench_fail("usage: bench-fill NAMESPACE secrets|deployments|replicasets|pods|podstatuses|statuses|budgets|"
                   "budgetstatuses|policies FIRST COUNT ...");
    const struct kind *kind = kind_of(argv[2]);
    for (int i = 0; i < kind->numbers; i++)
        if (number(argc, argv, 5 + i) == 0)
            bench_fail("%s take %d more numbers, from 1 on", kind->name, kind->numbers);
    struct fill fill = {.api = bench_api_new(),
                        .ns = argv[1],
                        .material = bench_material_new(),
                        .bytes = number(argc, argv, 5),
                        .replicas = number(argc, argv, 5),
                        .nodes = number(argc, argv, 6)};
    fill_all(&fill, kind, number(argc, argv, 3), number(argc, argv, 4));
    bench_material_free(fill.material);
    bench_api_free(fill.api);
    return 0;
}
