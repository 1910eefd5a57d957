#include "net/page_fetch.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "net/http_memory.h"

enum { CONNECT_SHARE = 2 /* of a page's time */, ALL_GOOD = 200 };

/* One page under way. */
struct fetching {
    CURL *easy; /* NULL: the slot is free */
    size_t index;
    struct cr_page page;
    struct round *round;
    bool large;  /* it may grow beyond CR_PAGE_SMALL: one of the round's few */
    bool paused; /* it would, and waits until it may */
};

struct round {
    const struct cr_page_target *targets;
    size_t count;
    size_t next;
    int64_t deadline_ms;
    CURLM *multi;
    struct fetching slots[CR_PAGES_AT_ONCE];
    size_t running;
    size_t large; /* of the slots */
    size_t held;  /* bytes of all pages */
    size_t most_held;
    void (*on_page)(void *arg, size_t index, const struct cr_page *page);
    void *arg;
};

static void explain(struct cr_page *page, const char *text)
{
    snprintf(page->problem, sizeof page->problem, "%s", text);
}

static void notify(struct round *round, size_t index, struct cr_page *page)
{
    static pthread_mutex_t one_reader = PTHREAD_MUTEX_INITIALIZER;
    if (page->problem[0])
        cr_buf_dispose(&page->body);
    pthread_mutex_lock(&one_reader);
    round->on_page(round->arg, index, page);
    pthread_mutex_unlock(&one_reader);
    cr_buf_dispose(&page->body);
    *page = (struct cr_page){0};
}

/* --- one page --- */

/* It becomes part of a request line. */
static bool is_path(const char *path)
{
    if (!path || path[0] != '/')
        return false;
    for (const char *c = path; *c; c++)
        if (*c <= 0x20 || *c >= 0x7f)
            return false;
    return true;
}

/* An address, never a name that a resolver would look up. */
static bool is_target(const struct cr_page_target *target)
{
    unsigned char ignored[sizeof(struct in6_addr)];
    const char *address = target->address;
    if (target->unix_socket)
        return target->unix_socket[0] == '/' && is_path(target->path);
    return address && (inet_pton(AF_INET, address, ignored) == 1 || inet_pton(AF_INET6, address, ignored) == 1) &&
           target->port > 0 && target->port <= UINT16_MAX && is_path(target->path);
}

/* Whether a page may have so many bytes now. */
static bool may_grow_to(struct fetching *fetching, size_t len)
{
    struct round *round = fetching->round;
    if (len <= CR_PAGE_SMALL || fetching->large)
        return true;
    if (round->large == CR_PAGES_LARGE)
        return false;
    round->large++;
    return fetching->large = true;
}

/* What is not taken now comes again. */
static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct fetching *fetching = arg;
    struct cr_buf *body = &fetching->page.body;
    size_t len = size * count;
    if (len > body->max - body->len) {
        snprintf(fetching->page.problem, sizeof fetching->page.problem, "it is longer than the %zu bytes that are read",
                 body->max);
        return 0;
    }
    fetching->paused = !may_grow_to(fetching, body->len + len);
    if (fetching->paused)
        return CURL_WRITEFUNC_PAUSE;
    if (!cr_buf_append(body, data, len))
        return 0;
    fetching->round->held += len;
    if (fetching->round->held > fetching->round->most_held)
        fetching->round->most_held = fetching->round->held;
    return len;
}

/* One more may become large. */
static void resume(struct round *round)
{
    for (size_t i = 0; i < CR_PAGES_AT_ONCE && round->large < CR_PAGES_LARGE; i++) {
        struct fetching *fetching = &round->slots[i];
        if (fetching->easy && fetching->paused)
            curl_easy_pause(fetching->easy, CURLPAUSE_CONT); /* calls on_body */
    }
}

static void write_url(const struct cr_page_target *target, char *url, size_t size)
{
    const char *address = target->unix_socket ? "localhost" : target->address; /* there it is only the Host */
    int port = target->unix_socket ? 80 : target->port;
    bool ip6 = strchr(address, ':') != NULL;
    snprintf(url, size, "http://%s%s%s:%d/", ip6 ? "[" : "", address, ip6 ? "]" : "", port);
}

static void set_options(struct fetching *fetching, const struct cr_page_target *target, int64_t allowed_ms)
{
    CURL *easy = fetching->easy;
    char url[128];
    write_url(target, url, sizeof url);
    long ms = (long)(allowed_ms > 1 ? allowed_ms : 1); /* 0 would be for ever */
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, target->unix_socket);
    curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, target->path); /* so that it cannot lead elsewhere */
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "certroll");
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, ms);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, ms > CONNECT_SHARE ? ms / CONNECT_SHARE : ms);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetching);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, fetching);
}

/* False: it cannot be begun, and why is in the page. */
static bool begin(struct round *round, struct fetching *fetching, const struct cr_page_target *target,
                  int64_t allowed_ms)
{
    fetching->page = (struct cr_page){.body = CR_BUF_INIT(target->max ? target->max : CR_PAGE_MAX)};
    fetching->round = round;
    fetching->large = fetching->paused = false;
    if (!is_target(target)) {
        explain(&fetching->page, "it has no address with a port and a path");
        return false;
    }
    fetching->easy = curl_easy_init();
    if (fetching->easy)
        set_options(fetching, target, allowed_ms);
    if (fetching->easy && curl_multi_add_handle(round->multi, fetching->easy) == CURLM_OK)
        return true;
    curl_easy_cleanup(fetching->easy);
    fetching->easy = NULL;
    explain(&fetching->page, "HTTP cannot be initialised here");
    return false;
}

static void end(struct round *round, struct fetching *fetching, CURLcode result)
{
    long status = 0;
    struct cr_page *page = &fetching->page;
    curl_easy_getinfo(fetching->easy, CURLINFO_RESPONSE_CODE, &status);
    if (!page->problem[0] && result == CURLE_UNSUPPORTED_PROTOCOL)
        explain(page, "it answered with something that is not HTTP");
    else if (!page->problem[0] && result != CURLE_OK)
        explain(page, curl_easy_strerror(result));
    else if (!page->problem[0] && status != ALL_GOOD)
        snprintf(page->problem, sizeof page->problem, "it answered HTTP %ld", status);
    curl_multi_remove_handle(round->multi, fetching->easy);
    curl_easy_cleanup(fetching->easy);
    fetching->easy = NULL;
    round->running--;
    round->large -= fetching->large;
    round->held -= page->body.len;
    notify(round, fetching->index, page);
}

/* --- all of them --- */

/* What remains is divided by the waves still to come, so who never answers costs the others only its own share. */
static int64_t fair_share_ms(const struct round *round)
{
    int64_t left = round->deadline_ms - cr_clock_monotonic_ms();
    int64_t waves = (int64_t)((round->count - round->next + CR_PAGES_AT_ONCE - 1) / CR_PAGES_AT_ONCE);
    return left > 0 ? left / waves : 0;
}

static void fill_slots(struct round *round)
{
    for (size_t i = 0; i < CR_PAGES_AT_ONCE; i++) {
        struct fetching *fetching = &round->slots[i];
        while (!fetching->easy && round->next < round->count) {
            int64_t share_ms = fair_share_ms(round);
            fetching->index = round->next++;
            if (begin(round, fetching, &round->targets[fetching->index], share_ms))
                round->running++;
            else
                notify(round, fetching->index, &fetching->page);
        }
    }
}

static void collect(struct round *round)
{
    int left = 0;
    for (const CURLMsg *message; (message = curl_multi_info_read(round->multi, &left));) {
        void *fetching = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode result = message->data.result; /* message goes with the handle */
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&fetching);
        end(round, fetching, result);
    }
}

static void run(struct round *round)
{
    enum { LONGEST_POLL_MS = 1000 }; /* libcurl knows when it wants to go on before that */
    for (fill_slots(round); round->running; fill_slots(round)) {
        int ignored = 0;
        bool works = curl_multi_perform(round->multi, &ignored) == CURLM_OK;
        collect(round);
        resume(round);
        works = works && (!round->running || curl_multi_poll(round->multi, NULL, 0, LONGEST_POLL_MS, NULL) == CURLM_OK);
        for (size_t i = 0; !works && i < CR_PAGES_AT_ONCE; i++)
            if (round->slots[i].easy)
                end(round, &round->slots[i], CURLE_OUT_OF_MEMORY);
    }
}

size_t cr_page_fetch(const struct cr_page_target *targets, size_t count, int timeout_ms,
                     void (*on_page)(void *arg, size_t index, const struct cr_page *page), void *arg)
{
    if (!count)
        return 0;
    cr_http_global_init();
    struct round round = {.targets = targets,
                          .count = count,
                          .deadline_ms = cr_clock_monotonic_ms() + timeout_ms,
                          .multi = curl_multi_init(),
                          .on_page = on_page,
                          .arg = arg};
    run(&round);
    curl_multi_cleanup(round.multi);
    return round.most_held;
}
