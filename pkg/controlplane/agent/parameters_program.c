/* Which files the flags and variables of one program name. */
#include "controlplane/agent/parameters_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/agent/given_flags.h"
#include "catalogue/settings.h"

static const char from_elsewhere[] = "comes from elsewhere than the manifest";

/* A value in which a variable stays that the manifest does not show is none. */
static const char *known(const char *value)
{
    return strstr(value, "$(") ? NULL : value;
}

static void add_path(const struct cr_node_reader *program, const struct cr_known_parameter *parameter, const char *path)
{
    if (path && !*path)
        return;
    if (path && cr_node_reader_follow(program, parameter, path))
        return;
    cr_node_reader_add_roles(program,
                             &(struct cr_node_claim){.parameter = parameter->name, .path = path, .why = from_elsewhere},
                             parameter->roles);
}

/* "cert,key" or "cert,key:name,name", several by ";" (component-base cli/flag namedcertkey_flag.go). */
static void add_sni(const struct cr_node_reader *program, const struct cr_known_parameter *parameter, const char *value)
{
    for (const char *p = value; *p; p += strspn(p, ";")) {
        size_t len = strcspn(p, ";");
        cr_autofree char *one = cr_strndup(p, len);
        one[strcspn(one, ":")] = '\0';
        char *comma = strchr(one, ',');
        if (comma)
            *comma = '\0';
        add_path(program, parameter, one);
        if (comma)
            add_path(program, parameter, comma + 1);
        p += len;
    }
}

/* Those that may be given several times; of all others the last one counts. */
static bool adds_up(const char *name)
{
    return cr_streq(name, "--tls-sni-cert-key") || cr_streq(name, "--service-account-key-file");
}

static void add_flag(const struct cr_node_reader *program, const struct cr_known_parameter *parameter,
                     const struct cr_given_flag *flag)
{
    const char *value = known(cr_or_empty(flag->value));
    if (value && cr_streq(parameter->name, "--tls-sni-cert-key"))
        add_sni(program, parameter, value);
    else
        add_path(program, parameter, value);
}

static void add_flags(const struct cr_node_reader *program, const struct cr_known_parameter *parameter,
                      const struct cr_given_flags *flags)
{
    const char *name = parameter->name + strspn(parameter->name, "-");
    const struct cr_given_flag *last = cr_given_flags_find(flags, name);
    for (size_t i = 0; last && i < flags->len; i++)
        if (&flags->items[i] == last || (adds_up(parameter->name) && cr_streq(flags->items[i].name, name)))
            add_flag(program, parameter, &flags->items[i]);
}

/* "--cert-file" for ETCD_CERT_FILE: a flag is above its variable (etcd pkg/flags). */
static bool has_flag_of(const struct cr_given_flags *flags, const char *variable)
{
    const char *underscore = strchr(variable, '_');
    if (!underscore)
        return false;
    cr_autofree char *name = cr_strdup(underscore + 1);
    for (char *p = name; *p; p++)
        *p = (char)(*p == '_' ? '-' : *p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
    return cr_given_flags_find(flags, name) != NULL;
}

static void add_variable(const struct cr_node_reader *program, const struct cr_known_parameter *parameter,
                         const struct cr_given_flags *flags, const struct cr_settings *settings)
{
    if (has_flag_of(flags, parameter->name))
        return;
    for (size_t i = settings->len; i > 0; i--) {
        const struct cr_setting *setting = &settings->items[i - 1];
        if (setting->env && cr_streq(setting->name, parameter->name)) {
            add_path(program, parameter, setting->value);
            return;
        }
    }
}

static void add_all(const struct cr_node_reader *program, const struct cr_given_flags *flags,
                    const struct cr_settings *settings)
{
    struct cr_known_parameter one;
    for (size_t i = 0; cr_component_parameter(program->subject->component, i, &one); i++) {
        if (one.hands_on)
            continue;
        if (one.kind == CR_PARAMETER_FLAG)
            add_flags(program, &one, flags);
        if (one.kind == CR_PARAMETER_VARIABLE)
            add_variable(program, &one, flags, settings);
    }
}

/* What the manifest does not show may name files, too. */
static void add_troubles(const struct cr_node_reader *program, const struct cr_given_flags *flags,
                         const struct cr_settings *settings)
{
    if (!program->container->argv_known || flags->cut || settings->cut)
        cr_node_reader_trouble(program, "not all words that container %s starts it with can be told",
                               program->container->name);
    struct cr_known_parameter one;
    for (size_t i = 0; settings->hidden_env && cr_component_parameter(program->subject->component, i, &one); i++)
        if (one.kind == CR_PARAMETER_VARIABLE) {
            cr_node_reader_trouble(program, "container %s has variables from elsewhere (envFrom)",
                                   program->container->name);
            return;
        }
}

void cr_node_reader_read(const struct cr_node_reader *program)
{
    const struct cr_static_container *container = program->container;
    const struct cr_strvec *argv = &container->argv;
    size_t first = container->argv_has_name && argv->len ? 1 : 0;
    CR_CLEANUP(cr_given_flags) struct cr_given_flags flags;
    CR_CLEANUP(cr_settings) struct cr_settings settings;
    cr_given_flags_read(argv->len ? argv->items + first : NULL, argv->len - first, &flags);
    cr_settings_collect(container->json, &settings);
    add_troubles(program, &flags, &settings);
    if (!cr_node_reader_follow_config(program, &flags, &settings))
        add_all(program, &flags, &settings);
}
