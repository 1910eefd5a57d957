#include "api.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "frame.h"

enum { ANSWER_MAX = 4096, PATH_MAX_LEN = 512 };

struct exchange {
    struct bench_api *api;
    struct exchange *next; /* of the free ones */
    CURL *easy;
    struct curl_slist *headers;
    char *answer;
    size_t answer_len;
    bench_done done;
    void *arg;
    size_t index;
    /* of a watch */
    bench_frame frame;
    size_t keep;
    char *path, *query;
    long long version; /* resourceVersion to go on from; 0 until the initial state is there */
};

struct waiting {
    struct waiting *next;
    const char *method, *content_type;
    char *path, *body;
    bench_done done;
    void *arg;
    size_t index;
};

struct bench_api {
    CURLM *multi;
    const char *server;
    char *authorization; /* NULL with a client certificate */
    struct exchange *idle;
    struct waiting *first, **last;
    size_t under_way, queued;
};

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (!value || !*value)
        bench_fail("%s is not set: hack/bench runs this program", name);
    return value;
}

static void *must(void *memory)
{
    return memory ? memory : (bench_fail("out of memory"), NULL);
}

static char *read_authorization(void)
{
    if (!getenv("BENCH_TOKEN"))
        return NULL;
    FILE *file = fopen(getenv("BENCH_TOKEN"), "re");
    char token[8192];
    if (!file || !fgets(token, sizeof token, file))
        bench_fail("%s holds no token", getenv("BENCH_TOKEN"));
    fclose(file);
    token[strcspn(token, "\r\n")] = '\0';
    char *header = must(malloc(strlen(token) + 32));
    sprintf(header, "Authorization: Bearer %s", token);
    return header;
}

struct bench_api *bench_api_new(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    struct bench_api *api = must(calloc(1, sizeof *api));
    api->multi = must(curl_multi_init());
    curl_multi_setopt(api->multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
    api->server = setting("BENCH_SERVER");
    setting("BENCH_CA");
    api->authorization = read_authorization();
    api->last = &api->first;
    return api;
}

void bench_api_free(struct bench_api *api)
{
    for (struct exchange *each = api->idle, *next; each; each = next) {
        next = each->next;
        curl_easy_cleanup(each->easy);
        curl_slist_free_all(each->headers);
        free(each->answer);
        free(each);
    }
    curl_multi_cleanup(api->multi);
    free(api->authorization);
    free(api);
}

/* --- what comes --- */

static size_t on_answer(char *data, size_t size, size_t count, void *arg)
{
    struct exchange *exchange = arg;
    size_t len = size * count, room = ANSWER_MAX - 1 - exchange->answer_len;
    memcpy(exchange->answer + exchange->answer_len, data, len < room ? len : room);
    exchange->answer_len += len < room ? len : room;
    return len;
}

/* Only the head of a frame is kept; the rest is passed over up to the end of its line. */
static size_t on_watch(char *data, size_t size, size_t count, void *arg)
{
    struct exchange *exchange = arg;
    size_t len = size * count;
    for (char *at = data, *end = data + len; at < end;) {
        char *line_end = memchr(at, '\n', (size_t)(end - at));
        size_t part = (size_t)((line_end ? line_end : end) - at);
        size_t room = exchange->keep - exchange->answer_len;
        memcpy(exchange->answer + exchange->answer_len, at, part < room ? part : room);
        exchange->answer_len += part < room ? part : room;
        if (!line_end)
            break;
        exchange->answer[exchange->answer_len] = '\0';
        if (exchange->version || bench_frame_is_initial_end(exchange->answer))
            exchange->version = bench_frame_number(exchange->answer, "resourceVersion");
        exchange->frame(exchange->arg, exchange->answer, exchange->answer_len);
        exchange->answer_len = 0;
        at = line_end + 1;
    }
    return len;
}

/* --- what goes --- */

static void set_identity(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_CAINFO, getenv("BENCH_CA"));
    if (!getenv("BENCH_TOKEN")) {
        curl_easy_setopt(easy, CURLOPT_SSLCERT, setting("BENCH_CERT"));
        curl_easy_setopt(easy, CURLOPT_SSLKEY, setting("BENCH_KEY"));
    }
}

static struct exchange *make_exchange(struct bench_api *api, size_t keep)
{
    struct exchange *exchange = must(calloc(1, sizeof *exchange));
    exchange->api = api;
    exchange->easy = must(curl_easy_init());
    exchange->answer = must(malloc(keep + 1));
    exchange->keep = keep;
    CURL *easy = exchange->easy;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "certroll-bench");
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    set_identity(easy);
    return exchange;
}

static void begin(struct exchange *exchange, const char *path, const char *content_type)
{
    char url[PATH_MAX_LEN];
    if (snprintf(url, sizeof url, "%s%s", exchange->api->server, path) >= (int)sizeof url)
        bench_fail("the path is too long: %s", path);
    curl_easy_setopt(exchange->easy, CURLOPT_URL, url);
    curl_slist_free_all(exchange->headers);
    exchange->headers = NULL;
    if (exchange->api->authorization)
        exchange->headers = must(curl_slist_append(exchange->headers, exchange->api->authorization));
    if (content_type) {
        char header[128];
        snprintf(header, sizeof header, "Content-Type: %s", content_type);
        exchange->headers = must(curl_slist_append(exchange->headers, header));
    }
    curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->headers);
    exchange->answer_len = 0;
    if (curl_multi_add_handle(exchange->api->multi, exchange->easy) != CURLM_OK)
        bench_fail("libcurl does not take a request");
}

static void start(struct bench_api *api, const struct waiting *request)
{
    struct exchange *exchange = api->idle;
    if (exchange)
        api->idle = exchange->next;
    else
        exchange = make_exchange(api, ANSWER_MAX);
    exchange->done = request->done;
    exchange->arg = request->arg;
    exchange->index = request->index;
    curl_easy_setopt(exchange->easy, CURLOPT_CUSTOMREQUEST, request->method);
    if (request->body) {
        curl_easy_setopt(exchange->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(request->body));
        curl_easy_setopt(exchange->easy, CURLOPT_COPYPOSTFIELDS, request->body);
    } else {
        curl_easy_setopt(exchange->easy, CURLOPT_HTTPGET, 1L);
        curl_easy_setopt(exchange->easy, CURLOPT_CUSTOMREQUEST, request->method);
    }
    api->under_way++;
    begin(exchange, request->path, request->content_type);
}

static void start_waiting(struct bench_api *api)
{
    while (api->first && api->under_way < BENCH_AT_ONCE) {
        struct waiting *request = api->first;
        api->first = request->next;
        if (!api->first)
            api->last = &api->first;
        api->queued--;
        start(api, request);
        free(request->path);
        free(request->body);
        free(request);
    }
}

void bench_api_send(struct bench_api *api, const char *method, const char *path, const char *content_type,
                    const char *body, bench_done done, void *arg, size_t index)
{
    struct waiting *request = must(calloc(1, sizeof *request));
    request->method = method;
    request->content_type = content_type;
    request->path = must(strdup(path));
    request->body = body ? must(strdup(body)) : NULL;
    request->done = done;
    request->arg = arg;
    request->index = index;
    *api->last = request;
    api->last = &request->next;
    api->queued++;
}

/* Anew, or where it broke off: a busy API server ends watches. */
static void begin_watch(struct exchange *watch)
{
    char whole[PATH_MAX_LEN], from[96];
    snprintf(from, sizeof from, "resourceVersion=%lld", watch->version);
    snprintf(whole, sizeof whole, "%s?watch=1&allowWatchBookmarks=true&%s%s", watch->path,
             watch->version ? from : "sendInitialEvents=true&resourceVersionMatch=NotOlderThan", watch->query);
    begin(watch, whole, NULL);
}

void bench_api_watch(struct bench_api *api, const char *path, const char *query, size_t keep, bench_frame frame,
                     void *arg)
{
    struct exchange *exchange = make_exchange(api, keep);
    exchange->frame = frame;
    exchange->arg = arg;
    exchange->path = must(strdup(path));
    exchange->query = must(strdup(query));
    curl_easy_setopt(exchange->easy, CURLOPT_WRITEFUNCTION, on_watch);
    begin_watch(exchange);
}

/* --- both --- */

static void finish(struct bench_api *api, const CURLMsg *message)
{
    struct exchange *exchange = NULL;
    long status = 0;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&exchange);
    curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
    if (message->data.result != CURLE_OK)
        bench_fail("the API server: %s", curl_easy_strerror(message->data.result));
    exchange->answer[exchange->answer_len] = '\0';
    curl_multi_remove_handle(api->multi, exchange->easy);
    if (exchange->frame) {
        if (status != 200)
            bench_fail("watch %s: %ld %s", exchange->path, status, exchange->answer);
        fprintf(stderr, "watch %s: ended, goes on from %lld\n", exchange->path, exchange->version);
        begin_watch(exchange);
        return;
    }
    api->under_way--;
    exchange->next = api->idle;
    api->idle = exchange;
    if (exchange->done)
        exchange->done(exchange->arg, exchange->index, status, exchange->answer);
    else if (status >= 300)
        bench_fail("the API server: %ld %s", status, exchange->answer);
}

void bench_api_poll(struct bench_api *api, int ms)
{
    int running = 0, left = 0;
    bool finished = false;
    start_waiting(api);
    curl_multi_perform(api->multi, &running);
    for (CURLMsg *message; (message = curl_multi_info_read(api->multi, &left));) {
        if (message->msg == CURLMSG_DONE)
            finish(api, message);
        finished = true;
    }
    if (finished || (api->first && api->under_way < BENCH_AT_ONCE))
        return; /* the caller may have waited for just that, or there is room for more */
    curl_multi_poll(api->multi, NULL, 0, ms, NULL);
}

size_t bench_api_pending(const struct bench_api *api)
{
    return api->under_way + api->queued;
}
