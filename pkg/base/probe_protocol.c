#include "base/probe_protocol.h"

const char *const cr_probe_protocol_names[CR_PROBE_PROTOCOLS] = {
    [CR_PROBE_TLS] = "TLS",
    [CR_PROBE_POSTGRESQL] = "PostgreSQL",
    [CR_PROBE_MYSQL] = "MySQL",
};

const char *cr_probe_protocol_name(enum cr_probe_protocol protocol)
{
    return (unsigned)protocol < CR_PROBE_PROTOCOLS ? cr_probe_protocol_names[protocol] : "";
}
