/* The syntax of labels
 * (kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set): the API server refuses
 * a list whose selector breaks it. */
#ifndef CR_API_LABEL_H
#define CR_API_LABEL_H

#include <stdbool.h>

/* "name" or "prefix/name", the prefix a DNS subdomain (RFC 1123). */
bool cr_label_key_is_valid(const char *key);
/* May be empty. */
bool cr_label_value_is_valid(const char *value);

#endif
