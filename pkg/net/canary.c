#include "net/canary.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/probe_client.h"

/* RFC 8446, section 6.2. */
enum {
    BAD_CERTIFICATE = 42,
    CERTIFICATE_UNKNOWN = 46,
    UNKNOWN_CA = 48,
    ACCESS_DENIED = 49,
    DECRYPT_ERROR = 51,
};

enum { UNAUTHORIZED = 401 };

/* --- the rule --- */

/* What a server may say of a certificate that it does not like, whatever the reason: Java says certificate_unknown of
 * an unknown CA, Envoy of a name; Go said bad_certificate of both for long. */
static bool is_of_certificate(int alert)
{
    return alert == BAD_CERTIFICATE || alert == CERTIFICATE_UNKNOWN || alert == ACCESS_DENIED;
}

/* The alert is about the CA itself. decrypt_error: the server tried another CA of the same subject (OpenSSL and
 * BoringSSL do, when the leaf names no key), which has not made the signature. */
static bool is_of_ca(int alert)
{
    return alert == UNKNOWN_CA || alert == DECRYPT_ERROR;
}

static bool is_refused_in_tls(const struct cr_probe_answer *answer)
{
    return answer->presented && (is_of_ca(answer->alert) || is_of_certificate(answer->alert));
}

/* An alert that only the comparison with the stranger explains: the same alert to both says nothing; another one to the
 * stranger, about its CA, means that the canary got further. */
static enum cr_probe_trust judge_alert(const struct cr_probe_answer *canary, const struct cr_probe_answer *stranger)
{
    if (is_of_ca(canary->alert))
        return CR_PROBE_UNTRUSTED;
    bool further = stranger && stranger->presented && stranger->alert == UNKNOWN_CA;
    return is_of_certificate(canary->alert) && further ? CR_PROBE_TRUSTED : CR_PROBE_TRUST_UNKNOWN;
}

/* Both got through TLS: what does HTTP make of them? */
static enum cr_probe_trust judge_answers(const struct cr_probe_answer *canary, const struct cr_probe_answer *stranger,
                                         const struct cr_probe_answer *anonymous)
{
    bool distinguished = stranger->of_certificate || stranger->status == UNAUTHORIZED;
    bool refused = canary->status == UNAUTHORIZED;
    if (distinguished && canary->status && !refused)
        return CR_PROBE_TRUSTED;
    /* A server that says 401 to all clients wants something else than a certificate. */
    bool by_certificate = anonymous && anonymous->status && anonymous->status != UNAUTHORIZED;
    return refused && stranger->status == UNAUTHORIZED && by_certificate ? CR_PROBE_UNTRUSTED : CR_PROBE_TRUST_UNKNOWN;
}

enum cr_probe_trust cr_canary_judge(const struct cr_probe_answer *canary, const struct cr_probe_answer *stranger,
                                    const struct cr_probe_answer *anonymous, bool *more)
{
    *more = false;
    if (!canary->presented)
        return CR_PROBE_TRUST_UNKNOWN;
    if (canary->alert >= 0) {
        *more = is_of_certificate(canary->alert) && !stranger;
        return judge_alert(canary, stranger);
    }
    if (canary->of_certificate)
        return CR_PROBE_UNTRUSTED;
    if (!canary->data)
        return CR_PROBE_TRUST_UNKNOWN;
    if (!stranger || (canary->status == UNAUTHORIZED && !anonymous)) {
        *more = true;
        return CR_PROBE_TRUST_UNKNOWN;
    }
    if (is_refused_in_tls(stranger))
        return CR_PROBE_TRUSTED;
    return stranger->presented && stranger->data ? judge_answers(canary, stranger, anonymous) : CR_PROBE_TRUST_UNKNOWN;
}

/* --- the connections --- */

/* One server, and how far it is. */
struct question {
    struct cr_probe_target target;    /* with the canary */
    struct cr_probe_client *stranger; /* owned */
    struct cr_probe_result answers[3];
};
enum { CANARY, STRANGER, ANONYMOUS };

struct asking {
    struct question *questions;
    size_t count;
    int64_t deadline_ms;
    int waves; /* still to come, and this one */
    struct cr_probe_strangers strangers;
    /* The targets of this wave. */
    struct cr_probe_target *targets;
    struct cr_probe_result *results;
    struct cr_probe_result **answers; /* parallel: where it belongs */
    size_t len;
};

static void add(struct asking *asking, struct question *question, int who)
{
    struct cr_probe_target target = question->target;
    if (who != CANARY)
        target.client = who == STRANGER ? question->stranger : NULL;
    asking->targets[asking->len] = target;
    asking->answers[asking->len++] = &question->answers[who];
}

static void run_wave(struct asking *asking)
{
    int64_t left_ms = asking->deadline_ms - cr_clock_monotonic_ms();
    int share_ms = (int)(left_ms > 0 ? left_ms / asking->waves : 0);
    asking->waves--;
    if (asking->len)
        cr_tls_probe(asking->targets, asking->len, share_ms, asking->results);
    for (size_t i = 0; i < asking->len; i++)
        *asking->answers[i] = asking->results[i];
    asking->len = 0;
}

/* Nothing at all came back: it may support HTTP/2 only, and close what does not offer that. */
static bool is_mute(const struct cr_probe_result *result)
{
    const struct cr_probe_answer *answer = &result->answer;
    return result->outcome == CR_PROBE_SERVED && answer->presented && answer->alert < 0 && !answer->data;
}

static void ask_canaries(struct asking *asking)
{
    for (size_t i = 0; i < asking->count; i++)
        if (asking->questions[i].target.protocol == CR_PROBE_TLS)
            add(asking, &asking->questions[i], CANARY);
    run_wave(asking);
    for (size_t i = 0; i < asking->count; i++)
        if (is_mute(&asking->questions[i].answers[CANARY])) {
            asking->questions[i].target.request = CR_PROBE_HTTP2;
            add(asking, &asking->questions[i], CANARY);
        }
    run_wave(asking);
}

static void ask_others(struct asking *asking)
{
    for (size_t i = 0; i < asking->count; i++) {
        struct question *question = &asking->questions[i];
        const struct cr_probe_answer *canary = &question->answers[CANARY].answer;
        bool more = false;
        (void)cr_canary_judge(canary, NULL, NULL, &more);
        bool in_time = cr_clock_monotonic_ms() < asking->deadline_ms;
        question->stranger =
            more && in_time ? cr_probe_client_stranger(question->target.client, &asking->strangers) : NULL;
        if (!question->stranger)
            continue;
        add(asking, question, STRANGER);
        if (canary->status == UNAUTHORIZED)
            add(asking, question, ANONYMOUS);
    }
    run_wave(asking);
}

static const struct cr_probe_answer *answer_of(const struct question *question, int who)
{
    return question->answers[who].outcome == CR_PROBE_SERVED ? &question->answers[who].answer : NULL;
}

static enum cr_probe_trust judge(const struct question *question)
{
    const struct cr_probe_answer *canary = answer_of(question, CANARY);
    bool ignored = false;
    if (!canary)
        return CR_PROBE_TRUST_UNKNOWN;
    if (!question->answers[CANARY].announced.asked)
        return CR_PROBE_TRUST_UNASKED;
    return cr_canary_judge(canary, answer_of(question, STRANGER), answer_of(question, ANONYMOUS), &ignored);
}

void cr_canary_probe(const struct cr_probe_target *targets, size_t count, int timeout_ms, enum cr_probe_trust *trusts)
{
    enum { WAVES = 3, AT_MOST = 2 /* of one question in one wave */ };
    cr_autofree struct question *questions = cr_calloc(count, sizeof *questions);
    cr_autofree struct cr_probe_target *wave = cr_calloc(AT_MOST * count, sizeof *wave);
    cr_autofree struct cr_probe_result *results = cr_calloc(AT_MOST * count, sizeof *results);
    cr_autofree struct cr_probe_result **answers = cr_calloc(AT_MOST * count, sizeof *answers);
    struct asking asking = {.questions = questions,
                            .count = count,
                            .deadline_ms = cr_clock_monotonic_ms() + timeout_ms,
                            .waves = WAVES,
                            .targets = wave,
                            .results = results,
                            .answers = answers};
    for (size_t i = 0; i < count; i++) {
        questions[i].target = targets[i];
        questions[i].target.request = CR_PROBE_HTTP1;
        for (int who = CANARY; who <= ANONYMOUS; who++)
            questions[i].answers[who] = (struct cr_probe_result){.outcome = CR_PROBE_UNREACHABLE, .answer.alert = -1};
    }
    ask_canaries(&asking);
    ask_others(&asking);
    cr_probe_strangers_dispose(&asking.strangers);
    for (size_t i = 0; i < count; i++) {
        trusts[i] = judge(&questions[i]);
        cr_probe_client_free(questions[i].stranger);
    }
}
