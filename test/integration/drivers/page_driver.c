/* A command line over the page of certificates for tests: what one address says, as one JSON line on stdout. */
#include <stdio.h>
#include <stdlib.h>

#include "codec/json.h"
#include "net/page_fetch.h"
#include "evidence/certs_page.h"

static void add_all(struct cr_json *object, const char *key, const struct cr_strvec *words)
{
    struct cr_json *array = cr_json_array_in(object, key);
    for (size_t i = 0; i < words->len; i++)
        cr_json_add_string(array, words->items[i]);
}

static void print_page(const struct cr_trust_sighting *seen, const char *words)
{
    CR_CLEANUP(cr_json) struct cr_json *line = cr_json_new_object();
    cr_json_set_bool(line, "read", seen->page_read);
    cr_json_set_string(line, "words", words);
    struct cr_json *contexts = cr_json_array_in(line, "contexts");
    for (size_t i = 0; i < seen->contexts_len; i++) {
        struct cr_json *context = cr_json_add(contexts, cr_json_new_object());
        add_all(context, "cas", &seen->contexts[i].cas);
        add_all(context, "leaves", &seen->contexts[i].leaves);
        cr_json_set_string(context, "path", seen->contexts[i].ca_path);
    }
    cr_autofree char *text = cr_json_print(line);
    puts(text);
}

static void on_page(void *arg, size_t index, const struct cr_page *page)
{
    (void)arg;
    (void)index;
    struct cr_error err = {0};
    CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen = {0};
    bool read = !page->problem[0] && cr_certs_page_read(cr_buf_text(&page->body), page->body.len, &seen, &err);
    print_page(&seen, read ? "" : page->problem[0] ? page->problem : err.text);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: page_driver ADDRESS PORT PATH\n", stderr);
        return 2;
    }
    const struct cr_page_target target = {.address = argv[1], .port = atoi(argv[2]), .path = argv[3]};
    cr_page_fetch(&target, 1, 5000, on_page, NULL);
    return 0;
}
