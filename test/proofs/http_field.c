/* Each line of an HTTP head is read or refused without a step beyond it. */
#include "wire/http_field.h"

#include <string.h>

#include "proof.h"

void status_line(void)
{
    size_t len;
    const char *line = any_text(MAX, &len);
    struct cr_error err = {0};
    int status = 0;
    bool is_1_0 = false;
    bool ok = cr_http_status_line(line, len, &status, &is_1_0, &err);
    require(ok == (err.kind == CR_ERR_NONE));
    require(!ok || (status >= 100 && status <= 999));
    require(!ok || cr_http_may_be_status_line(line, len));
}

void field(void)
{
    size_t len;
    char *line = any_text(MAX, &len);
    struct cr_error err = {0};
    size_t name_len = 0;
    const char *value = NULL;
    bool ok = cr_http_field(line, len, &name_len, &value, &err);
    require(ok == (err.kind == CR_ERR_NONE));
    require(!ok || (name_len && name_len < len && line[name_len] == ':'));
    require(!ok || (value > line + name_len && value <= line + len));
}
