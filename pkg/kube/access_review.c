#include "kube/access_review.h"

#include <stdlib.h>
#include <string.h>

static const char json_type[] = "application/json";
static const char token_reviews[] = "/apis/authentication.k8s.io/v1/tokenreviews";
static const char access_reviews[] = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

static struct cr_json *new_review(const char *api_version, const char *kind)
{
    struct cr_json *review = cr_json_new_object();
    cr_json_set_string(review, "apiVersion", api_version);
    cr_json_set_string(review, "kind", kind);
    return review;
}

/* The token stands in what is sent and in what comes back. */
static struct cr_json *send_token(struct cr_client *client, const char *token, struct cr_error *err)
{
    struct cr_json *review = new_review("authentication.k8s.io/v1", "TokenReview");
    cr_json_set_string(cr_json_object_in(review, "spec"), "token", token);
    char *body = cr_json_print(review);
    cr_json_free_secret(review);
    struct cr_json *answer = cr_client_raw(client, "POST", token_reviews, json_type, body, err);
    explicit_bzero(body, strlen(body));
    free(body);
    return answer;
}

/* *user: owned, NULL when no user has the token. */
static bool review_token(struct cr_client *client, const char *token, struct cr_json **user, struct cr_error *err)
{
    struct cr_json *answer = send_token(client, token, err);
    if (!answer)
        return false;
    struct cr_json *status = cr_json_edit(answer, "status");
    if (cr_json_bool_at(status, false, "authenticated"))
        *user = cr_json_take(status, "user");
    cr_json_free_secret(answer);
    return true;
}

/* All that the authenticator knows of the user goes to the authorizer. Takes parts of user. */
static struct cr_json *access_question(struct cr_json *user, const char *path)
{
    struct cr_json *review = new_review("authorization.k8s.io/v1", "SubjectAccessReview");
    struct cr_json *spec = cr_json_object_in(review, "spec");
    cr_json_set_string(spec, "user", cr_json_string_at(user, "username"));
    cr_json_set_string(spec, "uid", cr_json_string_at(user, "uid"));
    if (cr_json_get(user, "groups"))
        cr_json_set(spec, "groups", cr_json_take(user, "groups"));
    if (cr_json_get(user, "extra"))
        cr_json_set(spec, "extra", cr_json_take(user, "extra"));
    struct cr_json *attributes = cr_json_object_in(spec, "nonResourceAttributes");
    cr_json_set_string(attributes, "path", path);
    cr_json_set_string(attributes, "verb", "get");
    return review;
}

static bool review_access(struct cr_client *client, struct cr_json *user, const char *path, bool *allowed,
                          struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *question = access_question(user, path);
    cr_autofree char *body = cr_json_print(question);
    CR_CLEANUP(cr_json)
    struct cr_json *answer = cr_client_raw(client, "POST", access_reviews, json_type, body, err);
    if (!answer)
        return false;
    *allowed = cr_json_bool_at(answer, false, "status", "allowed");
    return true;
}

bool cr_access_review(struct cr_client *client, const char *token, const char *path, enum cr_access *access,
                      struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *user = NULL;
    bool allowed = false;
    if (!review_token(client, token, &user, err))
        return false;
    const char *name = cr_json_string_at(user, "username");
    if (!name || !*name) {
        *access = CR_ACCESS_UNKNOWN_USER;
        return true;
    }
    if (!review_access(client, user, path, &allowed, err))
        return false;
    *access = allowed ? CR_ACCESS_ALLOWED : CR_ACCESS_DENIED;
    return true;
}
