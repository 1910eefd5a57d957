/* `certroll-node-agent inspect`: what would be reported, for a person or as JSON. */
#ifndef CERTROLL_NODE_AGENT_INSPECT_H
#define CERTROLL_NODE_AGENT_INSPECT_H

#include <stdbool.h>
#include <stdio.h>

#include "api/node_report.h"

void inspect_print(const struct cr_node_report *report, int64_t now_ms, FILE *out);
/* The report's status, indented by nothing: `| jq .` is at hand. */
void inspect_print_json(const struct cr_node_report *report, FILE *out);

#endif
