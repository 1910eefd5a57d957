/* What a server says before TLS: however it is cut, the verdict on the whole is the same, what is missing is never more
 * than a whole answer, and words are printable. */
#include "fuzz.h"

#include <string.h>

#include "net/probe_greeting.h"

static void check_words(const char *words)
{
    require(strlen(words) < CR_GREETING_WORDS);
    for (const char *c = words; *c; c++)
        require(*c >= 0x20 && *c < 0x7f && *c != '\'');
}

/* Feeds what is asked for, as long as there is any. */
static void postgres(const uint8_t *data, size_t size)
{
    size_t len = 0;
    enum cr_greeting verdict = CR_GREETING_MORE;
    while (verdict == CR_GREETING_MORE) {
        char words[CR_GREETING_WORDS];
        size_t missing = 0;
        bool closed = len == size;
        verdict = cr_postgres_answer(data, len, closed, &missing, words);
        check_words(words);
        require(verdict != CR_GREETING_MORE || !closed);
        require(verdict != CR_GREETING_MORE || (missing && len + missing <= CR_GREETING_MAX + 1));
        len = missing < size - len ? len + missing : size;
    }
}

static void mysql(const uint8_t *data, size_t size)
{
    size_t len = 0;
    struct cr_mysql_greeting greeting;
    unsigned char out[CR_GREETING_REQUEST];
    for (;;) {
        char words[CR_GREETING_WORDS];
        size_t missing = 0;
        enum cr_greeting verdict = cr_mysql_answer(data, len, &missing, &greeting, words);
        check_words(words);
        require((verdict == CR_GREETING_MORE) == (missing != 0) && len + missing <= CR_GREETING_MAX);
        if (verdict != CR_GREETING_MORE || len + missing > size)
            break;
        len += missing;
    }
    require(cr_mysql_request(&greeting, out) <= sizeof out);
    require(cr_mysql_login(&greeting, true, out) <= sizeof out);
}

static void replies(const uint8_t *data, size_t size)
{
    unsigned char out[CR_GREETING_REQUEST];
    size_t missing = 0;
    size_t len = cr_mysql_reply(data, size, &missing, out);
    require(len <= sizeof out && (!len || !missing) && size + missing >= missing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t capped = size < CR_GREETING_MAX ? size : CR_GREETING_MAX;
    postgres(data, capped);
    mysql(data, capped);
    replies(data, capped);
    return 0;
}
