#include "check.h"

#include "sidecar/trigger.h"

static void print_proof(const struct cr_sidecar_material *material, FILE *out)
{
    for (size_t i = 0; i < material->proof.endpoints_len; i++) {
        const struct cr_proof_endpoint *endpoint = &material->proof.endpoints[i];
        fprintf(out, "  proof:   what %s port %d serves%s%s\n", endpoint->address, endpoint->port,
                endpoint->server_name ? " as " : "", endpoint->server_name ? endpoint->server_name : "");
    }
    if (!material->proof.endpoints_len)
        fputs("  proof:   none: a trigger that succeeds is all that is known\n", out);
}

static void print_material(const struct cr_sidecar_material *material, FILE *out)
{
    const char *const files[] = {material->certificate, material->private_key, material->trust};
    fprintf(out, "%s\n", material->name);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i])
            fprintf(out, "  reads:   %s\n", files[i]);
    for (size_t i = 0; i < material->outputs_len; i++)
        fprintf(out, "  writes:  %s, mode %04o\n", material->outputs[i].path, (unsigned)material->outputs[i].mode);
    for (size_t i = 0; i < material->triggers_len; i++) {
        char name[256];
        cr_trigger_name(&material->triggers[i], name, sizeof name);
        fprintf(out, "  trigger: %s\n", name);
    }
    if (!material->triggers_len)
        fputs("  trigger: none: the program sees its files change by itself\n", out);
    print_proof(material, out);
}

void check_print(const struct cr_sidecar_config *config, FILE *out)
{
    for (size_t i = 0; i < config->materials_len; i++)
        print_material(&config->materials[i], out);
    if (config->envoy_admin)
        fprintf(out, "relays /certs of %s\n", config->envoy_admin);
}
