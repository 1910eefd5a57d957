/* Words that are said to be known are what a shell makes of them: quoted one by one, they read as themselves. */
#include "fuzz.h"

#include <string.h>

#include "base/buffer.h"
#include "controlplane/agent/shell_words.h"

static void quote(struct cr_buf *out, const char *word)
{
    cr_buf_puts(out, " '");
    for (; *word; word++)
        cr_buf_printf(out, *word == '\'' ? "'\\%c'" : "%c", *word);
    cr_buf_puts(out, "'");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CR_CLEANUP(cr_buf) struct cr_buf script = CR_BUF_INIT(0);
    require(cr_buf_append(&script, data, size));
    CR_CLEANUP(cr_strvec) struct cr_strvec words = {0};
    bool known = cr_shell_words(cr_buf_text(&script), &words);
    require(words.len <= CR_SHELL_WORDS_MAX && (!known || words.len));
    if (!known)
        return 0;
    CR_CLEANUP(cr_buf) struct cr_buf quoted = CR_BUF_INIT(0);
    cr_buf_puts(&quoted, "exec");
    for (size_t i = 0; i < words.len; i++)
        quote(&quoted, words.items[i]);
    CR_CLEANUP(cr_strvec) struct cr_strvec again = {0};
    bool still_known = cr_shell_words(quoted.data, &again);
    /* A program that is called as an option is of exec, and no other way. */
    require(words.items[0][0] == '-' || (still_known && cr_strvec_equal(&words, &again)));
    return 0;
}
