/* Whole rotations of a control plane in a model of it: agents that report late, are silent, carry out orders and fail,
 * caches that lag behind the last write, an operator that is killed between any two writes, a person who writes files
 * node by node and goes on when the status says so. At every moment everybody verifies everybody, etcd has its
 * majority, one component is away at most, and in the end all is converged. */
#include "support/controlplanescene.h"

#include "codec/json.h"
#include "support/chance.h"

enum { GAMES = 4, MANY_GAMES = 100, TICK_MS = 2 * SCENE_SECOND, TROUBLE_TICKS = 700, TICKS_MAX = 6000 };
enum { ROOTS = 2, SECRETS = 2, WORKLOADS = 1, TOKENS_MAX = 512 };

/* --- the model --- */

struct agent {
    int silent_ticks; /* its agent, or the way to it, is away */
    int act_ticks;    /* of what is under way */
    bool fails;
};

struct game {
    struct scene_cluster truth;
    struct scene_cluster told; /* as the API server has it: reports, and orders in their specs */
    struct scene_cluster seen; /* as the operator's cache has it */
    struct agent agents[SCENE_NODES];
    struct scene_object roots[SCENE_OBJECTS], secrets[SCENE_OBJECTS];
    struct cr_control_plane_policy policy;
    struct cr_control_plane_workload workload;
    struct cr_control_plane_workload_view view;
    char workload_root[CR_SHA256_HEX], workload_key[CR_SHA256_HEX];
    char workload_token; /* the key of the one that its pods have read */
    int roll_ticks;
    struct cr_control_plane_status status; /* as the API server has it */
    char retry[16];
    int retries;
    char over[TOKENS_MAX][40]; /* tokens that are done */
    size_t over_len;
    int orders, revoked, failures;
    size_t step;
    size_t write_at; /* of the step: the next node that is written */
    int tick;
    bool calm;
};

static size_t row_of(const char *component, const char *parameter)
{
    for (size_t i = 0; i < SCENE_PARAMETERS; i++)
        if (cr_streq(scene_parameters[i].component, component) && cr_streq(scene_parameters[i].parameter, parameter))
            return i;
    fail_msg("no such row");
    return 0;
}

static size_t leader_of(const struct game *g)
{
    return (size_t)(g->truth.leader[5] - '1');
}

static bool serves(const struct scene_node *node, size_t component)
{
    return node->running[component] && !node->failing[component];
}

/* --- who verifies whom --- */

static bool meet(const char *leaf, const char *trust)
{
    for (const char *p = leaf; *p; p++)
        if (scene_is_ca(*p) && strchr(trust, *p))
            return true;
    return false;
}

static char pki_of(const struct scene_parameter *p)
{
    return p->content[p->kind == LEAF ? 1 : 0];
}

static void shake_hands(const struct game *g)
{
    for (size_t a = 0; a < SCENE_NODES * SCENE_PARAMETERS; a++) {
        const struct scene_parameter *leaf = &scene_parameters[a % SCENE_PARAMETERS];
        const char *shows = g->truth.nodes[a / SCENE_PARAMETERS].rows[a % SCENE_PARAMETERS].has;
        if (leaf->kind != LEAF)
            continue;
        for (size_t b = 0; b < SCENE_NODES * SCENE_PARAMETERS; b++) {
            const struct scene_parameter *trust = &scene_parameters[b % SCENE_PARAMETERS];
            const struct scene_node *node = &g->truth.nodes[b / SCENE_PARAMETERS];
            if (trust->kind != TRUST || pki_of(trust) != pki_of(leaf) ||
                meet(shows, node->rows[b % SCENE_PARAMETERS].has))
                continue;
            fail_msg("tick %d: %s of node-%zu does not verify %s of node-%zu: %s by %s", g->tick, trust->parameter,
                     b / SCENE_PARAMETERS + 1, leaf->parameter, a / SCENE_PARAMETERS + 1, shows,
                     node->rows[b % SCENE_PARAMETERS].has);
        }
        for (size_t i = 0; pki_of(leaf) == 'a' && i < ROOTS; i++)
            if (!meet(shows, g->roots[i].prints))
                fail_msg("tick %d: pods of %s do not verify %s", g->tick, g->roots[i].ns, leaf->parameter);
    }
}

static void verify_tokens(const struct game *g)
{
    size_t keys = row_of("kube-apiserver", "--service-account-key-file");
    for (size_t n = 0; n < SCENE_NODES; n++) {
        const char *verifies = g->truth.nodes[n].rows[keys].has;
        for (size_t k = 0; k < SCENE_NODES; k++)
            for (const char *p = g->truth.nodes[k].tokens; *p; p++)
                if (!strchr(verifies, *p))
                    fail_msg("tick %d: node-%zu does not verify tokens of node-%zu", g->tick, n + 1, k + 1);
        for (size_t i = 0; i < SECRETS; i++)
            if (g->secrets[i].key && !strchr(verifies, g->secrets[i].key))
                fail_msg("tick %d: node-%zu does not verify a token Secret", g->tick, n + 1);
        if (!strchr(verifies, g->workload_token))
            fail_msg("tick %d: node-%zu does not verify what a workload has read", g->tick, n + 1);
    }
}

static void count_away(const struct game *g)
{
    size_t away = 0;
    for (size_t i = 0; i < SCENE_COMPONENTS; i++)
        for (size_t n = 0; n < SCENE_NODES; n++)
            away += !serves(&g->truth.nodes[n], i);
    if (away > 1)
        fail_msg("tick %d: %zu components are away", g->tick, away);
    size_t orders = 0;
    for (size_t n = 0; n < SCENE_NODES; n++)
        orders += *g->told.nodes[n].order != '\0';
    if (orders > 1)
        fail_msg("tick %d: %zu orders are out", g->tick, orders);
}

/* What is said to be trusted, and is in every file, every process has. */
static void believe(const struct game *g)
{
    char trusted[16];
    scene_letters(g->status.cluster.trusted, trusted, sizeof trusted);
    for (const char *p = trusted; *p; p++) {
        bool everywhere = true;
        bool loaded = true;
        for (size_t n = 0; n < SCENE_NODES; n++)
            for (size_t i = 0; i < SCENE_PARAMETERS; i++) {
                const struct scene_row *row = &g->truth.nodes[n].rows[i];
                if (scene_parameters[i].kind != TRUST || pki_of(&scene_parameters[i]) != 'a')
                    continue;
                everywhere = everywhere && strchr(row->file, *p);
                loaded = loaded && strchr(row->has, *p);
            }
        for (size_t i = 0; i < ROOTS; i++)
            loaded = loaded && strchr(g->roots[i].prints, *p);
        if (everywhere && !loaded)
            fail_msg("tick %d: %c is said to be trusted by all, and is not", g->tick, *p);
    }
}

/* --- nodes --- */

static void load(struct scene_node *node, size_t component, int64_t now_ms)
{
    for (size_t i = 0; i < SCENE_PARAMETERS; i++)
        if (cr_streq(scene_parameters[i].component, scene_components[component]))
            memcpy(node->rows[i].has, node->rows[i].file, SCENE_TEXT);
    node->running[component] = true;
    node->process[component] += 1000;
    node->started_ms[component] = now_ms;
}

static void reload(struct game *g, struct scene_node *node)
{
    for (size_t i = 0; i < SCENE_PARAMETERS; i++) {
        struct scene_row *row = &node->rows[i];
        int delay = scene_parameters[i].delay;
        if (delay >= 0 && row->changed_ms + (int64_t)delay * SCENE_SECOND <= g->truth.now_ms)
            memcpy(row->has, row->file, SCENE_TEXT);
    }
}

static void finish(struct game *g, size_t n, enum cr_node_act_phase phase)
{
    struct scene_node *node = &g->truth.nodes[n];
    node->act.phase = phase;
    node->act.finished_ms = g->truth.now_ms;
    g->failures += phase == CR_NODE_ACT_FAILED;
    if (g->over_len < TOKENS_MAX)
        memcpy(g->over[g->over_len++], node->act_token, sizeof node->act_token);
}

static void come_back(struct game *g, size_t n, size_t component)
{
    struct scene_node *node = &g->truth.nodes[n];
    size_t signs = row_of("kube-apiserver", "--service-account-signing-key-file");
    load(node, component, g->truth.now_ms);
    if (component == scene_component("kubelet"))
        memcpy(node->tokens, node->rows[signs].has, sizeof node->tokens);
    node->act.phase = CR_NODE_ACT_PROVING;
}

static void act(struct game *g, size_t n)
{
    struct scene_node *node = &g->truth.nodes[n];
    struct agent *agent = &g->agents[n];
    const struct scene_node *told = &g->told.nodes[n];
    bool busy = node->act.phase == CR_NODE_ACT_RESTARTING || node->act.phase == CR_NODE_ACT_PROVING;
    if (!busy && *told->order && !cr_streq(told->order, node->act_token)) {
        size_t component = scene_component(told->order_component);
        memcpy(node->act_token, told->order, sizeof node->act_token);
        memcpy(node->act_component, told->order_component, sizeof node->act_component);
        agent->fails = !g->calm && one_in(12);
        agent->act_ticks = 2 + (int)draw(12);
        node->act.started_ms = g->truth.now_ms;
        if (agent->fails) { /* the manifest could not be written: nothing has changed */
            finish(g, n, CR_NODE_ACT_FAILED);
            return;
        }
        node->act.phase = CR_NODE_ACT_RESTARTING;
        node->running[component] = false;
        return;
    }
    if (!busy || --agent->act_ticks > 0)
        return;
    if (node->act.phase == CR_NODE_ACT_RESTARTING) {
        come_back(g, n, scene_component(node->act_component));
        agent->act_ticks = 1 + (int)draw(4);
    } else
        finish(g, n, CR_NODE_ACT_DONE);
}

static void report(struct game *g, size_t n)
{
    struct scene_node *told = &g->told.nodes[n];
    struct scene_node before = *told;
    *told = g->truth.nodes[n];
    memcpy(told->order, before.order, sizeof told->order);
    memcpy(told->order_component, before.order_component, sizeof told->order_component);
    told->seen_ms = g->truth.now_ms;
}

static void run_nodes(struct game *g)
{
    for (size_t n = 0; n < SCENE_NODES; n++) {
        struct agent *agent = &g->agents[n];
        reload(g, &g->truth.nodes[n]);
        if (agent->silent_ticks > 0) {
            agent->silent_ticks--;
            if (*g->truth.nodes[n].act_token) /* what is under way goes on, whoever hears of it */
                act(g, n);
            continue;
        }
        if (!g->calm && one_in(150))
            agent->silent_ticks = (int)draw(90);
        act(g, n);
        if (one_in(2))
            report(g, n);
    }
}

/* The leader hands out what it has. */
static void run_leader(struct game *g)
{
    const struct scene_node *node = &g->truth.nodes[leader_of(g)];
    size_t signs = row_of("kube-controller-manager", "--service-account-private-key-file");
    if (!node->running[scene_component("kube-controller-manager")]) {
        snprintf(g->truth.leader, sizeof g->truth.leader, "node-%u", 1 + draw(SCENE_NODES));
        return;
    }
    const char *root = node->rows[row_of("kube-controller-manager", "--root-ca-file")].has;
    for (size_t i = 0; i < ROOTS; i++)
        if (one_in(3))
            snprintf(g->roots[i].prints, sizeof g->roots[i].prints, "%s", root);
    for (size_t i = 0; i < SECRETS; i++) {
        if (one_in(3))
            snprintf(g->secrets[i].prints, sizeof g->secrets[i].prints, "%s", root);
        if (!g->secrets[i].key && one_in(3))
            g->secrets[i].key = node->rows[signs].has[0];
    }
}

static void run_workload(struct game *g)
{
    if (g->roll_ticks && !--g->roll_ticks) {
        g->view.rolling = false;
        g->view.pods_started_ms = g->truth.now_ms;
        g->workload_token =
            g->truth.nodes[0].rows[row_of("kube-apiserver", "--service-account-signing-key-file")].has[0];
    }
}

/* --- the operator --- */

/* Each write may be the last of this process. */
static bool survives(struct game *g)
{
    return g->calm || !one_in(10);
}

static void write_status(struct game *g, const struct cr_control_plane_status *status)
{
    CR_CLEANUP(cr_json) struct cr_json *json = cr_control_plane_status_encode(status);
    g->revoked += status->restarting_revoked && !g->status.restarting_revoked;
    cr_control_plane_status_dispose(&g->status);
    cr_control_plane_status_decode(json, &g->status);
}

static size_t node_at(const char *name)
{
    return (size_t)(name[5] - '1');
}

static void write_order(struct game *g, const struct cr_control_plane_restart_order *order)
{
    struct scene_node *node = &g->told.nodes[node_at(order->node)];
    for (size_t i = 0; i < g->over_len; i++)
        if (cr_streq(g->over[i], order->token) && !cr_streq(node->order, order->token) &&
            cr_streq(g->seen.nodes[node_at(order->node)].act_token, order->token))
            fail_msg("tick %d: %s was over, and is ordered again", g->tick, order->token);
    g->orders += !cr_streq(node->order, order->token);
    snprintf(node->order, sizeof node->order, "%s", order->token);
    snprintf(node->order_component, sizeof node->order_component, "%s", order->component);
}

static void write_workloads(struct game *g, const struct cr_control_plane_plan *plan)
{
    if (!plan->restart_workloads.len)
        return;
    g->view.rolling = true;
    g->roll_ticks = 3 + (int)draw(10);
    memcpy(g->workload_root, plan->root_ca, sizeof g->workload_root);
    memcpy(g->workload_key, plan->signing_key, sizeof g->workload_key);
    g->view.root_ca = *g->workload_root ? g->workload_root : NULL;
    g->view.token_key = *g->workload_key ? g->workload_key : NULL;
}

static void write_plan(struct game *g, const struct cr_control_plane_plan *plan)
{
    if (plan->has_order && plan->clear)
        fail_msg("an order and a clear in one plan");
    if (plan->clear) {
        g->told.nodes[node_at(plan->clear)].order[0] = '\0';
        if (!survives(g))
            return;
    }
    write_status(g, &plan->status);
    if (!survives(g))
        return;
    if (plan->has_order)
        write_order(g, &plan->order);
    for (size_t i = 0; i < plan->renew_tokens.len && survives(g); i++)
        for (size_t k = 0; k < SECRETS; k++)
            if (cr_starts_with(plan->renew_tokens.items[i], g->secrets[k].ns))
                g->secrets[k].key = '\0';
    if (survives(g))
        write_workloads(g, plan);
}

static void run_operator(struct game *g)
{
    static struct scene_world w;
    for (size_t n = 0; n < SCENE_NODES; n++)
        if (one_in(2) || g->calm)
            g->seen.nodes[n] = g->told.nodes[n];
    g->seen.now_ms = g->truth.now_ms;
    memcpy(g->seen.leader, g->truth.leader, sizeof g->seen.leader);
    if (one_in(3))
        return;
    scene_world_make(&g->seen, g->roots, g->secrets, &g->policy, &g->status, &g->view, &w);
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    cr_control_plane_plan(&w.world, &plan);
    write_plan(g, &plan);
    scene_world_cleanup(&w);
}

/* --- the person --- */

struct step {
    const char *writes[8]; /* "file content" */
    const char *field;     /* of the status that is waited for */
    const char *value;
};

static const struct step steps[] = {
    /* the cluster's CA */
    {{"ca ab", "cm.conf ab", "scheduler.conf ab", "kubelet.conf ab"}, "trusted", "ab"},
    {{"apiserver 2b", "kubelet-client 2b", "cm.leaf 2b", "scheduler.leaf 2b", "kubelet.leaf 2b", "kubelet-serving 2b",
      "signing b"},
     "removable",
     "a"},
    {{"ca b", "cm.conf b", "scheduler.conf b", "kubelet.conf b"}, "known", "b"},
    /* keys of service accounts */
    {{"sa.pub xy"}, "verifying", "xy"},
    {{"sa.key y"}, "keys removable", "x"},
    {{"sa.pub y"}, "keys known", "y"},
    /* etcd's CA */
    {{"etcd-ca ef"}, "etcd trusted", "ef"},
    {{"etcd-server 2f", "etcd-peer 2f", "etcd-client 2f"}, "etcd removable", "e"},
    {{"etcd-ca f"}, "etcd known", "f"},
};

static const char *field_of(const struct cr_control_plane_status *status, const char *field)
{
    const struct {
        const char *name, *value;
    } fields[] = {{"trusted", status->cluster.trusted},
                  {"removable", status->cluster.removable},
                  {"known", status->cluster.known},
                  {"verifying", status->service_accounts.verifying},
                  {"keys removable", status->service_accounts.removable},
                  {"keys known", status->service_accounts.known},
                  {"etcd trusted", status->etcd.trusted},
                  {"etcd removable", status->etcd.removable},
                  {"etcd known", status->etcd.known}};
    for (size_t i = 0; i < cr_array_len(fields); i++)
        if (cr_streq(fields[i].name, field))
            return fields[i].value;
    return NULL;
}

static void write_files(struct game *g, size_t n, const struct step *step)
{
    for (size_t i = 0; i < cr_array_len(step->writes) && step->writes[i]; i++) {
        char file[32];
        char content[SCENE_TEXT];
        sscanf(step->writes[i], "%31s %11s", file, content);
        for (size_t k = 0; k < SCENE_PARAMETERS; k++)
            if (cr_streq(scene_parameters[k].file, file)) {
                snprintf(g->truth.nodes[n].rows[k].file, SCENE_TEXT, "%s", content);
                g->truth.nodes[n].rows[k].changed_ms = g->truth.now_ms;
            }
    }
}

static void run_person(struct game *g)
{
    char is[16];
    if (g->status.failed_token && one_in(20)) {
        snprintf(g->retry, sizeof g->retry, "again-%d", ++g->retries);
        g->policy.retry = g->retry;
    }
    if (!g->calm && one_in(200))
        g->policy.suspend = true;
    else if (g->policy.suspend && (g->calm || one_in(20)))
        g->policy.suspend = false;
    if (g->step == cr_array_len(steps))
        return;
    if (g->write_at < SCENE_NODES) {
        if (one_in(3))
            write_files(g, g->write_at++, &steps[g->step]);
        return;
    }
    scene_letters(field_of(&g->status, steps[g->step].field), is, sizeof is);
    if (cr_streq(is, steps[g->step].value)) {
        g->step++;
        g->write_at = 0;
    }
}

/* --- the game --- */

static bool is_converged(const struct game *g)
{
    for (size_t i = 0; i < CR_CONTROL_PLANE_CONDITIONS; i++)
        if (cr_streq(cr_control_plane_condition_types[i], "Converged"))
            return g->status.conditions[i].status;
    return false;
}

static bool is_over(const struct game *g)
{
    for (size_t i = 0; i < SECRETS; i++)
        if (g->secrets[i].key != 'y')
            return false;
    return g->step == cr_array_len(steps) && is_converged(g) && !g->status.restarting_token && !g->view.rolling;
}

static char workload_name[] = "pods", workload_kind[] = "Deployment", workload_ns[] = "ns-0";

static void begin(struct game *g, uint64_t number)
{
    memset(g, 0, sizeof *g);
    seed = 0x9e3779b97f4a7c15u * (number + 1);
    scene_cluster_init(&g->truth);
    g->told = g->seen = g->truth;
    for (size_t i = 0; i < ROOTS; i++)
        g->roots[i] = (struct scene_object){.ns = {'n', 's', '-', (char)('0' + i)}, .prints = "a"};
    for (size_t i = 0; i < SECRETS; i++)
        g->secrets[i] =
            (struct scene_object){.ns = {'s', '-', (char)('0' + i)}, .name = "t", .prints = "a", .key = 'x'};
    g->workload = (struct cr_control_plane_workload){.name = workload_name,
                                                     .kind = workload_kind,
                                                     .ns = workload_ns,
                                                     .target = workload_name,
                                                     .reads_root_ca = true,
                                                     .reads_token = true};
    g->workload_token = 'x';
    g->view = (struct cr_control_plane_workload_view){.found = true, .pods_started_ms = scene_now - SCENE_HOUR};
    g->policy = scene_policy();
    g->policy.workloads = &g->workload;
    g->policy.workloads_len = WORKLOADS;
}

static void say(const struct game *g, uint64_t number)
{
    fprintf(stderr, "game %llu, tick %d, step %zu: next: %s\n", (unsigned long long)number, g->tick, g->step,
            cr_or_empty(g->status.next));
    for (size_t i = 0; i < CR_CONTROL_PLANE_CONDITIONS; i++)
        fprintf(stderr, "  %s %d: %s\n", cr_control_plane_condition_types[i], g->status.conditions[i].status,
                cr_or_empty(g->status.conditions[i].message));
}

static void play(struct game *g, uint64_t number)
{
    begin(g, number);
    for (g->tick = 0; g->tick < TICKS_MAX && !(g->calm && is_over(g)); g->tick++) {
        g->calm = g->tick >= TROUBLE_TICKS;
        g->truth.now_ms += TICK_MS;
        run_person(g);
        run_nodes(g);
        run_leader(g);
        run_workload(g);
        run_operator(g);
        shake_hands(g);
        verify_tokens(g);
        count_away(g);
        believe(g);
    }
    if (!is_over(g)) {
        say(g, number);
        fail_msg("game %llu does not come to its end", (unsigned long long)number);
    }
}

static void rotations_come_to_their_end_and_nobody_notices(void **state)
{
    (void)state;
    static struct game g;
    const char *is_long = getenv("CERTROLL_LONG");
    int games = is_long && *is_long ? MANY_GAMES : GAMES;
    int orders = 0;
    int revoked = 0;
    int failures = 0;
    for (int i = 0; i < games; i++) {
        play(&g, (uint64_t)i);
        orders += g.orders;
        revoked += g.revoked;
        failures += g.failures;
        cr_control_plane_status_dispose(&g.status);
    }
    print_message("%d orders, %d taken back, %d failed\n", orders, revoked, failures);
    assert_true(revoked > 0 && failures > 0); /* or the games show little */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rotations_come_to_their_end_and_nobody_notices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
