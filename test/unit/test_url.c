#include "drain/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

static void a_url_is_an_address_and_a_target(void **state)
{
    static const struct {
        const char *text;
        const char *address;
        const char *target;
    } cases[] = {
        {"http://127.0.0.1:8080/drain", "127.0.0.1:8080", "/drain"},
        {"http://127.0.0.1:8080", "127.0.0.1:8080", "/"},
        {"http://127.0.0.1:8080/", "127.0.0.1:8080", "/"},
        {"http://127.0.0.1:8080?a=http://b:1/", "127.0.0.1:8080", "/?a=http://b:1/"},
        {"http://127.0.0.1/a:80/b?c=d&e=%20f", "127.0.0.1:80", "/a:80/b?c=d&e=%20f"},
        {"http://localhost:1/x", "localhost:1", "/x"},
        {"http://localhost", "localhost:80", "/"},
        {"http://[::1]:8080/drain", "[::1]:8080", "/drain"},
        {"http://[::1]/drain", "[::1]:80", "/drain"},
        {"http+unix:///run/app.sock:/drain", "/run/app.sock", "/drain"},
        {"http+unix:///run/app.sock:/a:/b?c", "/run/app.sock", "/a:/b?c"},
        {"http+unix:///run/app.sock", "/run/app.sock", "/"},
        {"http+unix://%2Frun%2fapp.sock/drain?x", "/run/app.sock", "/drain?x"},
        {"http+unix://%2Frun%2Fa%20b%3a.sock", "/run/a b:.sock", "/"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_drain_url) struct cr_drain_url url = {0};
        struct cr_error err = {0};
        if (!cr_drain_url_parse(cases[i].text, &url, &err) || !cr_streq(url.address, cases[i].address) ||
            !cr_streq(url.target, cases[i].target))
            fail_msg("%s: '%s' '%s' %s", cases[i].text, cr_or_empty(url.address), cr_or_empty(url.target), err.text);
    }
}

static void others_are_refused_with_what_is_allowed(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"https://127.0.0.1:8443/drain", "needs TLS, which this program has not"},
        {"127.0.0.1:8080/drain", "http://127.0.0.1:8080/drain"},
        {"/run/app.sock", "http+unix:///run/app.sock:/drain"},
        {"HTTP://127.0.0.1/", "no URL of a kind that is known"},
        {"ftp://127.0.0.1/", "no URL of a kind that is known"},
        {"", "no URL of a kind that is known"},
        {"http://", "has no address"},
        {"http://:80/", "has no address"},
        {"http:///run/app.sock", "has no address"},
        {"http://app:8080/", "neither the absolute path"},
        {"http://user:secret@127.0.0.1:80/", "neither the absolute path"},
        {"http://127.0.0.1:0/", "neither the absolute path"},
        {"http://127.0.0.1:65536/", "neither the absolute path"},
        {"http://::1:80/", "neither the absolute path"},
        {"http://127.0.0.1:80/a b", "blanks"},
        {"http://127.0.0.1:80/a\r\nX: y", "blanks"},
        {"http://127.0.0.1:80/#there", "fragment"},
        {"http://127.0.0.1:80/\xc3\xbc", "no URL has"},
        {"http+unix://", "no absolute path"},
        {"http+unix://run/app.sock", "no absolute path"},
        {"http+unix://127.0.0.1:80/", "no absolute path"},
        {"http+unix://%2Frun%2/x", "no absolute path"},
        {"http+unix://%2Frun%00/x", "no absolute path"},
        {"http+unix://%", "no absolute path"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_drain_url) struct cr_drain_url url = {0};
        struct cr_error err = {0};
        if (cr_drain_url_parse(cases[i].text, &url, &err) || err.kind != CR_ERR_INVALID || url.address || url.target ||
            !strstr(err.text, cases[i].words))
            fail_msg("%s: %s", cases[i].text, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_is_an_address_and_a_target),
        cmocka_unit_test(others_are_refused_with_what_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
