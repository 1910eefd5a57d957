#include "controlplane/agent/loaded.h"

#include <stdarg.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/agent/loaded_internal.h"

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

static int64_t changed_ms(const struct cr_node_judging *j)
{
    const struct cr_node_file *row = j->memory->row;
    if (!is_read(row))
        return past_ctime(j);
    if (!j->same_content)
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
    if (known && j->memory->same_process) {
        if (!j->same_content || row->loaded == CR_NODE_LOADED_SOON || row->loaded == CR_NODE_LOADED_NO)
            return true;
        if (row->has_known)
            return !cr_strvec_equal(&row->has, &j->file->prints);
    }
    if (known && !j->memory->same_process && j->same_content && !was_touched_since_start(j))
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
    cr_node_loaded_override(j);
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
    const char *why = why_unknown(&j);
    if (why) {
        file->changed_ms = row ? row->changed_ms : 0;
        cr_node_loaded_say(&j, CR_NODE_LOADED_UNKNOWN, CR_NODE_EVIDENCE_NONE, "%s", why);
        return;
    }
    j.same_content = is_same_content(&j);
    file->changed_ms = changed_ms(&j);
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
    cr_node_loaded_override(&j);
}
