#include "controlplane/agent/loaded.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/agent/loaded_internal.h"

/* What a component's ports show, against what was inferred of its files. */

/* --- what is seen --- */

static bool shows_leaf_of(const struct cr_node_proof_port *port, const struct cr_node_judging *j)
{
    return port->port.tls && port->probe.outcome == CR_PROBE_SERVED &&
           cr_streq(port->port.parameter, j->parameter->parameter);
}

/* The port that serves the leaf of the file: of several, one with another leaf. NULL: none. */
static const struct cr_node_proof_port *leaf_port(const struct cr_node_judging *j)
{
    const struct cr_node_proof_port *found = NULL;
    bool leaf = j->parameter->role == CR_ROLE_SERVER_LEAF && j->file->kind == CR_NODE_FILE_LEAF;
    for (size_t i = 0; leaf && j->proof && i < j->proof->len; i++) {
        const struct cr_node_proof_port *port = &j->proof->ports[i];
        if (!shows_leaf_of(port, j))
            continue;
        if (!cr_streq(port->probe.leaf, j->file->prints.items[0]))
            return port;
        found = found ? found : port;
    }
    return found;
}

static bool is_name(const unsigned char digest[32], const char *hex)
{
    char text[2 * 32 + 1];
    for (size_t i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return cr_streq(text, hex);
}

/* How often a name is announced. */
static size_t count_announced(const struct cr_probe_announced *announced, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < announced->len; i++)
        count += is_name(announced->names[i], name);
    return count;
}

static size_t count_of(const struct cr_strvec *names, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < names->len; i++)
        count += cr_streq(names->items[i], name);
    return count;
}

/* Go announces each certificate of its pool, so two CAs of one name stand there twice (crypto/x509 CertPool.Subjects).
 */
static bool lacks_a_name(const struct cr_node_proof_port *port, const struct cr_node_judging *j)
{
    const struct cr_probe_announced *announced = &port->probe.announced;
    const struct cr_strvec *names = &j->content->material.names;
    bool complete = port->port.tls && port->probe.outcome == CR_PROBE_SERVED && announced->asked && !announced->more &&
                    announced->len && cr_node_port_announces(&port->port, j->parameter->parameter);
    for (size_t i = 0; complete && i < names->len; i++)
        if (count_announced(announced, names->items[i]) < count_of(names, names->items[i]))
            return true;
    return false;
}

/* NULL: no port lacks a name, or none announces names. */
static const struct cr_node_proof_port *lacking_port(const struct cr_node_judging *j)
{
    bool trust = j->parameter->role == CR_ROLE_CLIENT_CA && j->file->kind == CR_NODE_FILE_TRUST;
    for (size_t i = 0; trust && j->proof && i < j->proof->len; i++)
        if (lacks_a_name(&j->proof->ports[i], j))
            return &j->proof->ports[i];
    return NULL;
}

/* --- what it means --- */

/* What the process had before, and that was something else; NULL: not known. */
static const struct cr_strvec *remembered(const struct cr_node_judging *j)
{
    const struct cr_node_file *row = j->memory->row;
    bool other = row && j->memory->same_process && row->has_known && !cr_strvec_equal(&row->has, &j->file->prints);
    return other ? &row->has : NULL;
}

/* What is served is what was there before, or what was there before is not known. */
static bool was_before(const struct cr_node_judging *j, const char *leaf)
{
    const struct cr_node_file *row = j->memory->row;
    if (!row || !row->prints.len)
        return true;
    return (row->has_known && cr_strvec_has(&row->has, leaf)) ||
           (!j->same_content && cr_strvec_has(&row->prints, leaf));
}

static int64_t patience_ends_ms(const struct cr_node_judging *j)
{
    int64_t twice = 2 * cr_node_loaded_delay_ms(j->parameter);
    return j->file->changed_ms + (twice > CR_NODE_LOADED_PATIENCE_MS ? twice : CR_NODE_LOADED_PATIENCE_MS);
}

/* Also when its longest delay was over and it was taken for loaded. */
static bool is_since_start(const struct cr_node_judging *j)
{
    if (j->parameter->own)
        return false;
    return j->changed_since_start || (j->program && j->file->changed_ms >= j->program->started_ms);
}

/* seen: in words what refutes the file; of_before: it is what the process had before. */
static void refute(struct cr_node_judging *j, const char *seen, bool of_before)
{
    struct cr_node_file *file = j->file;
    bool since = is_since_start(j);
    bool reloads = cr_node_parameter_reloads(j->parameter) && since;
    if (reloads && j->now_ms < patience_ends_ms(j)) {
        if (file->loaded != CR_NODE_LOADED_SOON)
            file->due_ms = patience_ends_ms(j);
        cr_node_loaded_say(j, CR_NODE_LOADED_SOON, CR_NODE_EVIDENCE_VERIFIED, "%s; %s", j->parameter->capability.why,
                           seen);
    } else if (since && of_before) {
        cr_node_loaded_say(j, CR_NODE_LOADED_NO, CR_NODE_EVIDENCE_VERIFIED, "%s%s",
                           reloads ? "it was not taken up in time: " : "", seen);
    } else {
        cr_node_loaded_say(j, CR_NODE_LOADED_UNKNOWN, CR_NODE_EVIDENCE_VERIFIED, "%s", seen);
    }
}

static void judge_leaf(struct cr_node_judging *j, const struct cr_node_proof_port *port)
{
    const char *leaf = port->probe.leaf;
    if (cr_streq(leaf, j->file->prints.items[0])) {
        cr_node_loaded_say(j, CR_NODE_LOADED_YES, CR_NODE_EVIDENCE_VERIFIED, "port %d serves it", port->port.port);
        return;
    }
    bool of_before = was_before(j, leaf);
    CR_CLEANUP(cr_strvec) struct cr_strvec has = {0};
    cr_strvec_add(&has, leaf);
    cr_node_loaded_has(j, of_before ? &has : NULL);
    cr_autofree char *seen =
        cr_asprintf("port %d serves %s", port->port.port,
                    of_before ? "the leaf of before" : "a leaf that is neither the file's nor the one of before");
    refute(j, seen, of_before);
}

static void judge_announced(struct cr_node_judging *j, const struct cr_node_proof_port *port)
{
    cr_node_loaded_has(j, remembered(j));
    cr_autofree char *seen = cr_asprintf("port %d does not announce all of its CAs", port->port.port);
    refute(j, seen, true);
}

/* Where its port could show it, time alone is not believed. */
static void wait_for_port(struct cr_node_judging *j)
{
    bool by_time = j->changed_since_start && j->file->loaded == CR_NODE_LOADED_YES &&
                   j->file->evidence == CR_NODE_EVIDENCE_INFERRED && cr_node_parameter_reloads(j->parameter);
    const struct cr_node_file *row = j->memory->row;
    bool as_before = row && row->loaded == CR_NODE_LOADED_YES && j->same_content;
    for (size_t i = 0; by_time && !as_before && j->proof && i < j->proof->len; i++) {
        const struct cr_node_port *port = &j->proof->ports[i].port;
        if (!port->tls || !cr_streq(port->parameter, j->parameter->parameter) ||
            j->parameter->role != CR_ROLE_SERVER_LEAF)
            continue;
        cr_node_loaded_has(j, remembered(j));
        j->file->due_ms = patience_ends_ms(j);
        cr_node_loaded_say(j, CR_NODE_LOADED_SOON, CR_NODE_EVIDENCE_INFERRED, "%s; port %d does not answer",
                           j->parameter->capability.why, port->port);
        return;
    }
}

/* A handshake has refuted it, and this time no port was asked. */
static bool stays_refuted(const struct cr_node_judging *j)
{
    const struct cr_node_file *row = j->memory->row;
    return row && j->memory->same_process && j->same_content && row->evidence == CR_NODE_EVIDENCE_VERIFIED &&
           row->loaded != CR_NODE_LOADED_YES;
}

static bool has_announcing_port(const struct cr_node_judging *j)
{
    for (size_t i = 0; j->proof && i < j->proof->len; i++)
        if (j->proof->ports[i].probe.outcome == CR_PROBE_SERVED && j->proof->ports[i].port.tls &&
            cr_node_port_announces(&j->proof->ports[i].port, j->parameter->parameter))
            return true;
    return false;
}

/* --- what was seen in handshakes, against what was inferred --- */
static void loaded_override(struct cr_node_judging *j)
{
    const struct cr_node_proof_port *leaf = leaf_port(j);
    const struct cr_node_proof_port *lacking = lacking_port(j);
    const struct cr_node_file *row = j->memory->row;
    if (leaf)
        judge_leaf(j, leaf);
    else if (lacking)
        judge_announced(j, lacking);
    else if (stays_refuted(j) && !has_announcing_port(j)) {
        cr_node_loaded_has(j, row->has_known ? &row->has : NULL);
        j->file->due_ms = row->due_ms;
        cr_node_loaded_say(j, row->loaded, CR_NODE_EVIDENCE_VERIFIED, "%s", cr_or_empty(row->why));
    } else
        wait_for_port(j);
}

/* --- verdicts --- */

void cr_node_loaded_say(struct cr_node_judging *j, enum cr_node_loaded loaded, enum cr_node_evidence evidence,
                        const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    free(j->file->why);
    j->file->why = cr_vasprintf(fmt, args);
    va_end(args);
    j->file->loaded = loaded;
    j->file->evidence = evidence;
    if (loaded != CR_NODE_LOADED_SOON)
        j->file->due_ms = 0;
    if (loaded == CR_NODE_LOADED_YES)
        cr_node_loaded_has(j, &j->file->prints);
}

void cr_node_loaded_has(struct cr_node_judging *j, const struct cr_strvec *what)
{
    struct cr_strvec has = {0};
    if (what)
        cr_strvec_copy(&has, what);
    cr_strvec_dispose(&j->file->has);
    j->file->has = has;
    j->file->has_known = what != NULL;
}

/* As it was said the last time, of the same process and the same content. */
static void say_again(struct cr_node_judging *j)
{
    const struct cr_node_file *row = j->memory->row;
    cr_node_loaded_has(j, row->has_known ? &row->has : NULL);
    j->file->due_ms = row->due_ms;
    cr_node_loaded_say(j, row->loaded, row->evidence, "%s", cr_or_empty(row->why));
}

/* --- what is known --- */

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A ctime in the future says nothing: the clock was set. */
static int64_t past_ctime(const struct cr_node_judging *j)
{
    int64_t ctime = j->content->ctime_ms;
    return ctime > 0 && ctime <= j->now_ms ? ctime : j->now_ms;
}

static bool is_read(const struct cr_node_file *row)
{
    return row && row->kind != CR_NODE_FILE_UNREAD && row->prints.len > 0;
}

/* Only the beginning of a file with more than a row can list is compared: any touch of such a file counts. */
static bool is_same_content(const struct cr_node_judging *j)
{
    const struct cr_node_file *row = j->memory->row;
    return is_read(row) && cr_strvec_equal(&row->prints, &j->file->prints) && row->more == j->file->more &&
           !(row->more && j->content->ctime_ms > row->changed_ms);
}

/* It was put back to what it was between two looks, around the start of this process: what the process has read is not
 * known. */
static bool was_touched_since_start(const struct cr_node_judging *j)
{
    int64_t ctime = j->content->ctime_ms;
    return ctime <= j->now_ms && ctime >= j->program->started_ms && ctime > j->memory->row->changed_ms;
}

/* Between the last look and now, if the ctime says so: else it is of a clock that was set, or a folder was renamed. */
static int64_t seen_to_change(const struct cr_node_judging *j)
{
    int64_t ctime = past_ctime(j);
    return ctime >= j->memory->seen_ms ? ctime : j->now_ms;
}

/* Nothing is remembered of what it was, but for this process since when it was so. */
static int64_t changed_unread_ms(const struct cr_node_judging *j)
{
    const struct cr_node_file *row = j->memory->row;
    int64_t before = row && j->memory->same_process ? row->changed_ms : 0;
    return longer(past_ctime(j), before < j->now_ms ? before : j->now_ms);
}

static int64_t changed_ms(const struct cr_node_judging *j)
{
    const struct cr_node_file *row = j->memory->row;
    bool read = is_read(row);
    if (!read && !remembered(j))
        return changed_unread_ms(j);
    if (!read || !j->same_content)
        return seen_to_change(j);
    if (j->program && !j->memory->same_process && was_touched_since_start(j))
        return past_ctime(j);
    return row->changed_ms < j->now_ms ? row->changed_ms : j->now_ms;
}

/* --- inference --- */

/* Whether the process may have read something else than what is there now. */
static bool is_changed_since_start(const struct cr_node_judging *j)
{
    const struct cr_node_file *row = j->memory->row;
    bool known = is_read(row);
    if (remembered(j)) /* also when it could not be read the last time: a folder was moved away, another is there now */
        return true;
    if (known && j->memory->same_process) {
        if (!j->same_content || row->loaded == CR_NODE_LOADED_SOON || row->loaded == CR_NODE_LOADED_NO)
            return true;
        if (row->has_known)
            return false;
    }
    if (known && j->memory->later_process && j->same_content && !was_touched_since_start(j))
        return false;
    return j->program->started_ms <= j->file->changed_ms;
}

int64_t cr_node_loaded_delay_ms(const struct cr_node_parameter *parameter)
{
    enum { POLL_DRIFT = 20 };
    int64_t delay = longer(parameter->capability.max_delay_ms, 0);
    return parameter->capability.method == CR_METHOD_POLL ? delay + delay / POLL_DRIFT : delay;
}

static bool is_by_itself(enum cr_method method)
{
    return method == CR_METHOD_WATCH || method == CR_METHOD_PER_HANDSHAKE || method == CR_METHOD_POLL;
}

static void say_no(struct cr_node_judging *j)
{
    const struct cr_node_parameter *parameter = j->parameter;
    if (parameter->alone)
        cr_node_loaded_say(j, CR_NODE_LOADED_NO, CR_NODE_EVIDENCE_INFERRED,
                           "%s is mounted as a file by itself, so %s keeps what it was started with",
                           cr_or_empty(parameter->host), parameter->component);
    else if (is_by_itself(parameter->capability.method) && !parameter->capability.verified)
        cr_node_loaded_say(j, CR_NODE_LOADED_NO, CR_NODE_EVIDENCE_INFERRED,
                           "%s, but that is from memory only, and it runs since before the change",
                           parameter->capability.why);
    else
        cr_node_loaded_say(j, CR_NODE_LOADED_NO, CR_NODE_EVIDENCE_INFERRED, "%s and runs since before the change",
                           parameter->capability.why);
}

static void infer_reload(struct cr_node_judging *j)
{
    j->file->due_ms = j->file->changed_ms + cr_node_loaded_delay_ms(j->parameter);
    if (j->now_ms < j->file->due_ms)
        cr_node_loaded_say(j, CR_NODE_LOADED_SOON, CR_NODE_EVIDENCE_INFERRED, "%s", j->parameter->capability.why);
    else
        cr_node_loaded_say(j, CR_NODE_LOADED_YES, CR_NODE_EVIDENCE_INFERRED, "%s, and its longest delay is over",
                           j->parameter->capability.why);
}

/* It was changed and changed back; what it had then is known whole. */
static bool has_it_again(const struct cr_node_judging *j)
{
    return j->memory->same_process && j->file->has_known && !j->file->more &&
           cr_strvec_equal(&j->file->has, &j->file->prints);
}

static void infer(struct cr_node_judging *j)
{
    const struct cr_node_file *row = j->memory->row;
    bool as_before = j->same_content && j->memory->same_process;
    if (as_before && row->loaded == CR_NODE_LOADED_YES)
        say_again(j);
    else if (!j->changed_since_start)
        cr_node_loaded_say(j, CR_NODE_LOADED_YES, CR_NODE_EVIDENCE_INFERRED, "%s began after it was changed last",
                           j->parameter->component);
    else if (cr_node_parameter_reloads(j->parameter))
        infer_reload(j);
    else if (has_it_again(j))
        cr_node_loaded_say(j, CR_NODE_LOADED_YES, CR_NODE_EVIDENCE_INFERRED, "it is again what %s has",
                           j->parameter->component);
    else
        say_no(j);
}

/* --- those that hang on no process --- */

static void judge_own(struct cr_node_judging *j)
{
    bool as_before = j->same_content && j->memory->same_process && j->memory->row->loaded == CR_NODE_LOADED_YES;
    if (as_before)
        say_again(j);
    else
        cr_node_loaded_say(j, CR_NODE_LOADED_YES, CR_NODE_EVIDENCE_INFERRED,
                           "%s asks for it itself, and writes what it has", j->parameter->component);
    loaded_override(j);
}

/* Says in words why nothing is known; NULL: something is. Static, or of the row. */
static const char *why_unknown(const struct cr_node_judging *j)
{
    const struct cr_node_parameter *parameter = j->parameter;
    if (parameter->place != CR_NODE_PLACE_HOST && parameter->place != CR_NODE_PLACE_EMBEDDED)
        return parameter->why ? parameter->why : "it is no file of the node";
    if (j->program && !j->program->running)
        return "its program does not run";
    if (j->file->problem)
        return j->file->problem;
    return is_read(j->file) ? NULL : "it could not be read";
}

void cr_node_loaded_judge(const struct cr_node_parameter *parameter, const struct cr_node_content *content,
                          const struct cr_node_program *program, const struct cr_node_memory *memory,
                          const struct cr_node_proof *proof, int64_t now_ms, struct cr_node_file *file)
{
    static const struct cr_node_memory none = {0};
    struct cr_node_judging j = {.parameter = parameter,
                                .content = content,
                                .program = program,
                                .memory = memory ? memory : &none,
                                .proof = proof,
                                .now_ms = now_ms,
                                .file = file};
    const struct cr_node_file *row = j.memory->row;
    bool remembers = row && j.memory->same_process && row->has_known;
    cr_node_loaded_has(&j, remembers ? &row->has : NULL);
    file->due_ms = 0;
    bool read = is_read(file);
    j.same_content = read && is_same_content(&j);
    file->changed_ms = read ? changed_ms(&j) : row ? row->changed_ms : 0;
    const char *why = why_unknown(&j);
    if (why) {
        cr_node_loaded_say(&j, CR_NODE_LOADED_UNKNOWN, CR_NODE_EVIDENCE_NONE, "%s", why);
        return;
    }
    if (parameter->own) {
        judge_own(&j);
        return;
    }
    if (!program) {
        cr_node_loaded_say(&j, CR_NODE_LOADED_YES, CR_NODE_EVIDENCE_INFERRED, "%s reads it anew at each start",
                           parameter->component);
        return;
    }
    j.changed_since_start = is_changed_since_start(&j);
    infer(&j);
    loaded_override(&j);
}
