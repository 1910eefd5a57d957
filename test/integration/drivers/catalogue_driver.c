/* What the catalogue and the rules decide for one workload, as JSON for tests that compare it with what real programs
 * do: per role that a Secret plays the capability, and the decision for the change given. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "policy/rules/decide.h"
#include "evidence/diff.h"
#include "catalogue/usage.h"

static const char help[] =
    "usage: catalogue_driver [--catalogue FILE] SECRET CERTIFICATE PRIVATE-KEY TRUST CHANGE... < PodSpec\n"
    "  --catalogue FILE   laid over the built-in one\n"
    "  SECRET             its name; then the names of its keys\n"
    "  CHANGE             LeafRenewed, TrustReplaced and so on: what happened to the Secret\n";

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "catalogue_driver: %s: %s\n", what, why);
    exit(2);
}

static char *read_all(FILE *file, size_t *len)
{
    struct cr_buf text = CR_BUF_INIT(16 * 1024 * 1024);
    char piece[65536];
    for (size_t n; (n = fread(piece, 1, sizeof piece, file)) > 0;)
        if (!cr_buf_append(&text, piece, n))
            fail("input", "longer than 16 MiB");
    *len = text.len;
    return cr_buf_steal(&text);
}

static struct cr_catalogue *load(const char *path)
{
    struct cr_error err = {0};
    struct cr_catalogue *catalogue = NULL;
    if (path) {
        FILE *file = fopen(path, "r");
        if (!file)
            fail(path, "cannot be opened");
        size_t len = 0;
        cr_autofree char *text = read_all(file, &len);
        fclose(file);
        struct cr_catalogue_text over = {.name = path, .yaml = text, .len = len};
        catalogue = cr_catalogue_override(&over, 1, &err);
    } else {
        catalogue = cr_catalogue_builtin(&err);
    }
    if (!catalogue)
        fail("catalogue", err.text);
    return catalogue;
}

static struct cr_json *read_pod_spec(void)
{
    struct cr_error err = {0};
    size_t len = 0;
    cr_autofree char *text = read_all(stdin, &len);
    struct cr_json *spec = cr_json_parse(text, len, &err);
    if (!spec)
        fail("stdin", err.text);
    return spec;
}

static unsigned parse_changes(char **words, int count)
{
    unsigned changes = 0;
    for (int i = 0; i < count; i++) {
        enum cr_change_bit change;
        if (!cr_change_parse(words[i], &change))
            fail(words[i], "no such change");
        changes |= change;
    }
    return changes;
}

static const struct cr_json *container_named(const struct cr_json *spec, const char *name)
{
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t i = 0; i < cr_array_len(lists); i++)
        for (const struct cr_json *c = cr_json_first(cr_json_get(spec, lists[i])); c; c = cr_json_next(c))
            if (cr_streq(cr_json_string_at(c, "name"), name))
                return c;
    return NULL;
}

static void print_role(const struct cr_decide_input *input, const struct cr_usage *usage,
                       const struct cr_parameter_use *use, struct cr_json *roles)
{
    const struct cr_component *component = cr_catalogue_by_image(input->catalogue, usage->image);
    const struct cr_json *container = container_named(input->pod_spec, usage->container);
    struct cr_program program = {.component = component, .pod_spec = input->pod_spec, .container = container};
    struct cr_capability capability;
    cr_catalogue_capability(&program, use->parameter, use->role, &capability);
    struct cr_json *role = cr_json_new_object();
    cr_json_set_string(role, "container", usage->container);
    cr_json_set_bool(role, "init", usage->init);
    cr_json_set_string(role, "usage", cr_usage_kind_name(usage->kind));
    cr_json_set_string(role, "component", component ? cr_component_name(component) : NULL);
    cr_json_set_string(role, "role", cr_role_name(use->role));
    cr_json_set_string(role, "parameter", use->parameter);
    cr_json_set_string(role, "key", use->key);
    cr_json_set_string(role, "method", cr_method_name(capability.method));
    cr_json_set_int(role, "maxDelayMs", capability.max_delay_ms);
    cr_json_set_string(role, "trigger", capability.signal);
    cr_json_set_bool(role, "verified", capability.verified);
    cr_json_set_string(role, "source", capability.source);
    cr_json_set_string(role, "why", capability.why);
    cr_json_add(roles, role);
}

static void print_roles(const struct cr_decide_input *input, struct cr_json *roles)
{
    const struct cr_policy_secret *secret = input->changes[0].secret;
    CR_CLEANUP(cr_usage_list) struct cr_usage_list usages = {0};
    cr_usage_collect(input->pod_spec, secret->name, &usages);
    for (size_t i = 0; i < usages.len; i++) {
        const struct cr_usage *one = &usages.items[i];
        CR_CLEANUP(cr_parameter_uses) struct cr_parameter_uses uses = {0};
        cr_catalogue_roles(cr_catalogue_by_image(input->catalogue, one->image),
                           container_named(input->pod_spec, one->container), one, secret, &uses);
        for (size_t k = 0; k < uses.len; k++)
            if (!uses.items[k].hands_on)
                print_role(input, one, &uses.items[k], roles);
    }
}

int main(int argc, char **argv)
{
    const char *file = NULL;
    if (argc > 2 && strcmp(argv[1], "--catalogue") == 0) {
        file = argv[2];
        argv += 2;
        argc -= 2;
    }
    if (argc < 6) {
        fputs(help, stderr);
        return 2;
    }
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = load(file);
    CR_CLEANUP(cr_json) struct cr_json *spec = read_pod_spec();
    struct cr_policy_secret secret = {
        .name = argv[1], .certificate = argv[2], .private_key = argv[3], .trust = argv[4]};
    struct cr_secret_change change = {.secret = &secret, .changes = parse_changes(argv + 5, argc - 5)};
    struct cr_policy_consumer consumer = {.name = argv[1]};
    struct cr_decide_input input = {
        .consumer = &consumer, .pod_spec = spec, .catalogue = catalogue, .changes = &change, .changes_len = 1};

    CR_CLEANUP(cr_decision) struct cr_decision decision = {0};
    cr_decide(&input, &decision);
    CR_CLEANUP(cr_json) struct cr_json *answer = cr_json_new_object();
    cr_json_set_string(answer, "decision", cr_decision_name(decision.kind));
    cr_json_set_string(answer, "reason", decision.reason);
    cr_json_set_string(answer, "component", decision.component);
    cr_json_set_int(answer, "maxDelayMs", decision.secrets[0].max_delay_ms);
    print_roles(&input, cr_json_array_in(answer, "roles"));
    cr_autofree char *text = cr_json_print(answer);
    puts(text);
    return 0;
}
