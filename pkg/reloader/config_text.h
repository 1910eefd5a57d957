/* Texts of the configuration that go elsewhere: into a request, a socket, a command line. Private to pkg/reloader. */
#ifndef CR_RELOADER_CONFIG_TEXT_H
#define CR_RELOADER_CONFIG_TEXT_H

#include "api/node.h"
#include "reloader/config.h"

/* Every ${…} of text is one that config.h names, and the material has what it stands for. Errors: Invalid, with
 * node.key. */
bool cr_config_check_text(const struct cr_node *node, const char *key, const char *text,
                          const struct cr_reloader_material *material, struct cr_error *err) CR_MUST_USE;
/* The same, of paths alone. */
bool cr_config_check_paths(const struct cr_node *node, const char *key, const char *text,
                           const struct cr_reloader_material *material, struct cr_error *err) CR_MUST_USE;
/* The private key would be in it. */
bool cr_config_text_has_key(const char *text);

/* "Name: value" (RFC 9110, section 5). */
bool cr_config_is_header(const char *text);
/* http or https with a host, of printable ASCII; no user, which would be logged. */
bool cr_config_is_url(const char *text);
/* No other host can read what is sent there: https, or an IP literal of loopback or localhost. */
bool cr_config_url_is_private(const char *url);
/* One word of a command line. */
bool cr_config_is_word(const char *text);

#endif
