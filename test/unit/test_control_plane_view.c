/* Reports as they may come: thousands of them, and with anything in them. */
#include "support/controlplanescene.h"

#include <time.h>

#include "base/buffer.h"
#include "support/chance.h"

static struct scene_cluster cluster;
static const struct scene_object roots[SCENE_OBJECTS] = {{.ns = "one", .prints = "a"}, {.ns = "two", .prints = "a"}};

/* --- many --- */

enum { WORKERS = 5000, NODES = WORKERS + SCENE_NODES };
/* Four times as many nodes take four times as long; sixteen times, were each compared with each. What is added is for a
 * busy machine. 5,000 nodes take some 20 ms, and a hundred times that with sanitizers or in an emulator. */
enum { FEWER = NODES / 4, TIMES = 10, ADDED_MS = 100 };

static bool is_of_kubelet(size_t i)
{
    return cr_streq(scene_parameters[i].component, "kubelet");
}

/* Its kubelet only, with a bundle that has not been loaded and a leaf of its own. */
static void worker(struct cr_node_report *out, char *name, size_t n)
{
    struct cr_node_report report;
    char leaf[SCENE_TEXT];
    snprintf(leaf, sizeof leaf, "%zua", n);
    for (size_t i = 0; i < SCENE_PARAMETERS; i++)
        if (is_of_kubelet(i) && scene_parameters[i].kind == LEAF)
            scene_set_row(&cluster, 0, i, leaf, leaf);
    scene_report(&cluster, 0, &report);
    *out = (struct cr_node_report){.node = cr_strdup(name), .seen_ms = report.seen_ms};
    out->components = cr_calloc(1, sizeof *out->components);
    out->files = cr_calloc(report.files_len, sizeof *out->files);
    for (size_t i = 0; i < report.files_len; i++)
        if (is_of_kubelet(i)) {
            out->files[out->files_len++] = report.files[i];
            report.files[i] = (struct cr_node_file){0};
        }
    out->components[out->components_len++] = report.components[4];
    report.components[4] = (struct cr_node_component){0};
    out->tokens_known = true;
    cr_node_report_dispose(&report);
}

static struct cr_node_report *make_many(struct cr_control_plane_node *nodes, char (*names)[16])
{
    struct cr_node_report *reports = cr_calloc(NODES, sizeof *reports);
    scene_cluster_init(&cluster);
    for (size_t n = 0; n < SCENE_NODES; n++)
        scene_report(&cluster, n, &reports[n]);
    scene_edits(&cluster, "* file kubelet.conf ab a");
    for (size_t n = 0; n < NODES; n++) {
        snprintf(names[n], sizeof names[n], "%s-%zu", n < SCENE_NODES ? "control" : "worker", n);
        if (n >= SCENE_NODES)
            worker(&reports[n], names[n], n);
        nodes[n] = (struct cr_control_plane_node){.name = names[n], .report = &reports[n]};
    }
    return reports;
}

static int64_t cpu_ms(void)
{
    return (int64_t)clock() * 1000 / CLOCKS_PER_SEC;
}

/* How long it took. */
static int64_t plan_nodes(struct scene_world *w, size_t count, struct cr_control_plane_plan *out)
{
    w->world.nodes_len = count;
    int64_t before_ms = cpu_ms();
    cr_control_plane_plan(&w->world, out);
    return cpu_ms() - before_ms;
}

static void thousands_of_kubelets_are_planned_at_once(void **state)
{
    (void)state;
    static struct cr_control_plane_node nodes[NODES];
    static char names[NODES][16];
    static struct scene_world w;
    const struct cr_control_plane_policy policy = scene_policy();
    const struct cr_control_plane_status status = {0};
    struct cr_node_report *reports = make_many(nodes, names);
    scene_world_make(&cluster, roots, NULL, &policy, &status, NULL, &w);
    w.world.nodes = nodes;
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan fewer;
    int64_t fewer_ms = plan_nodes(&w, FEWER, &fewer);
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    int64_t took_ms = plan_nodes(&w, NODES, &plan);
    print_message("%d nodes: %lld ms, %d nodes: %lld ms\n", FEWER, (long long)fewer_ms, NODES, (long long)took_ms);
    assert_true(plan.has_order);
    assert_string_equal(plan.order.component, "kubelet");
    assert_int_equal(plan.status.nodes.total, NODES);
    assert_int_equal(plan.status.nodes.converged, SCENE_NODES);
    assert_true(took_ms < TIMES * fewer_ms + ADDED_MS);
    scene_world_cleanup(&w);
    for (size_t n = 0; n < NODES; n++)
        cr_node_report_dispose(&reports[n]);
    free(reports);
}

/* --- anything --- */

enum { ODD_WORLDS = 200 };

static const char *const odd_texts[] = {"",     ",",    "etcd",     "kubelet",  "kube-apiserver", "--client-ca-file",
                                        "%s%n", "Host", "Embedded", "\xff\xfe", "node-1"};

static void odd_text(char **text)
{
    cr_strset(text, draw(3) ? odd_texts[draw((unsigned)cr_array_len(odd_texts))] : NULL);
}

static void odd_prints(struct cr_strvec *prints)
{
    for (unsigned i = draw(40); i > 0; i--) {
        char print[CR_SHA256_HEX];
        char number[16];
        snprintf(number, sizeof number, "%u", draw(400));
        cr_sha256_hex(number, strlen(number), print);
        cr_strvec_add(prints, draw(4) ? print : odd_texts[draw((unsigned)cr_array_len(odd_texts))]);
    }
}

static void odd_file(struct cr_node_file *file)
{
    char **texts[] = {&file->component, &file->parameter, &file->via, &file->place,
                      &file->path,      &file->problem,   &file->why};
    switch (draw(5)) {
    case 0:
        odd_text(texts[draw((unsigned)cr_array_len(texts))]);
        break;
    case 1:
        odd_prints(draw(2) ? &file->prints : draw(2) ? &file->has : &file->issuers);
        break;
    case 2:
        file->kind = (enum cr_node_file_kind)draw(5);
        file->role = (enum cr_role)draw(CR_ROLE_COUNT);
        break;
    case 3:
        file->loaded = (enum cr_node_loaded)draw(4);
        file->has_known = draw(2);
        file->changed_ms = (int64_t)(draw(2) ? INT32_MAX : 0) * draw(3000);
        file->due_ms = file->changed_ms;
        break;
    default:
        file->own = draw(2);
        file->more = draw(2);
        file->signs_and_trusts = draw(2);
    }
}

static void odd_report(struct cr_node_report *report)
{
    for (unsigned i = draw(8); i > 0; i--)
        odd_file(&report->files[draw((unsigned)report->files_len)]);
    for (unsigned i = draw(3); i > 0; i--) {
        struct cr_node_component *component = &report->components[draw((unsigned)report->components_len)];
        odd_text(draw(2) ? &component->name : draw(2) ? &component->process : &component->restart);
        component->running = draw(2);
        component->health = (enum cr_node_health)draw(3);
        component->started_ms = draw(2) ? 0 : scene_now + SCENE_HOUR;
    }
    if (!draw(3))
        odd_text(&report->order.token);
    if (!draw(3)) {
        odd_text(&report->act.token);
        odd_text(&report->act.component);
        report->act.phase = (enum cr_node_act_phase)draw(7);
    }
    if (!draw(4))
        odd_text(&report->tokens[0].key);
    report->seen_ms = draw(5) ? report->seen_ms : draw(2) ? 0 : scene_now + SCENE_HOUR;
}

static void has_only_prints(const char *list)
{
    size_t len = strlen(list);
    if (!len)
        return;
    assert_int_equal((len + 1) % CR_SHA256_HEX, 0);
    for (size_t i = 0; i < len; i++)
        assert_true(i % CR_SHA256_HEX == CR_SHA256_HEX - 1 ? list[i] == ','
                                                           : strchr("0123456789abcdef", list[i]) != NULL);
}

static void judge(const struct cr_control_plane_plan *plan)
{
    const struct cr_control_plane_authority *all[] = {&plan->status.cluster, &plan->status.etcd,
                                                      &plan->status.front_proxy};
    for (size_t i = 0; i < cr_array_len(all); i++) {
        has_only_prints(all[i]->trusted);
        has_only_prints(all[i]->pending);
        has_only_prints(all[i]->removable);
    }
    assert_false(plan->has_order && plan->clear);
    assert_true(!plan->has_order || cr_streq(plan->status.restarting_token, plan->order.token));
    assert_non_null(plan->status.next);
    for (size_t i = 0; i < CR_CONTROL_PLANE_CONDITIONS; i++)
        assert_non_null(plan->status.conditions[i].reason);
}

static void reports_may_have_anything_in_them(void **state)
{
    (void)state;
    const struct cr_control_plane_policy policy = scene_policy();
    for (int i = 0; i < ODD_WORLDS; i++) {
        static struct scene_world w;
        const struct cr_control_plane_status status = {0};
        scene_cluster_init(&cluster);
        scene_edits(&cluster, "* file etcd-ca ef e; * file sa.pub xy x; * file kubelet.conf ab a");
        scene_world_make(&cluster, roots, NULL, &policy, &status, NULL, &w);
        for (size_t n = 0; n < SCENE_NODES; n++)
            odd_report(&w.reports[n]);
        CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
        cr_control_plane_plan(&w.world, &plan);
        judge(&plan);
        scene_world_cleanup(&w);
    }
}

/* More CAs than there is room for: nothing of them is known. */
static void of_too_many_authorities_none_is_trusted(void **state)
{
    (void)state;
    static struct scene_world w;
    const struct cr_control_plane_policy policy = scene_policy();
    const struct cr_control_plane_status status = {0};
    scene_cluster_init(&cluster);
    scene_world_make(&cluster, roots, NULL, &policy, &status, NULL, &w);
    for (int i = 0; i < 100; i++) {
        char print[CR_SHA256_HEX];
        cr_sha256_hex(&i, sizeof i, print);
        cr_strvec_add(&w.reports[0].files[7].prints, print); /* --client-ca-file */
        cr_strvec_add(&w.reports[0].files[7].has, print);
    }
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    cr_control_plane_plan(&w.world, &plan);
    assert_string_equal(plan.status.cluster.trusted, "");
    assert_string_equal(plan.status.cluster.removable, "");
    assert_string_equal(plan.status.cluster.known, "");
    assert_string_not_equal(plan.status.etcd.trusted, "");
    scene_world_cleanup(&w);
}

/* Each node has what a rotation has come to: both CAs, and all leaves of the new one. */
static void rotate(void)
{
    scene_cluster_init(&cluster);
    scene_edits(&cluster,
                "* file ca ab ab; * file cm.conf ab ab; * file scheduler.conf ab ab; * file kubelet.conf ab ab; "
                "* file apiserver 2b 2b; * file kubelet-client 2b 2b; * file cm.leaf 2b 2b; * file signing b b; "
                "* file scheduler.leaf 2b 2b; * file kubelet.leaf 2b 2b; * file kubelet-serving 2b 2b");
    for (size_t n = 0; n < SCENE_NODES; n++)
        cluster.nodes[n].started_ms[4] = cluster.now_ms;
}

/* The pair in a kubeconfig by which a kubelet joined stays there, of the old CA. It counts while there is no other. */
static void the_pair_that_a_kubelet_joined_with_is_not_in_use(void **state)
{
    (void)state;
    static const struct scene_object both[SCENE_OBJECTS] = {{.ns = "one", .prints = "ab"}};
    const struct cr_control_plane_policy policy = scene_policy();
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status status = {0};
    for (int has_pair = 0; has_pair < 2; has_pair++) {
        static struct scene_world w;
        char removable[8];
        rotate();
        scene_world_make(&cluster, both, NULL, &policy, &status, NULL, &w);
        struct cr_node_file *last = &w.reports[0].files[SCENE_PARAMETERS - 1]; /* tlsCertFile becomes that pair */
        cr_strset(&last->parameter, "kubeconfig client-certificate");
        cr_strset(&last->place, "Embedded");
        last->role = CR_ROLE_CLIENT_LEAF;
        last->own = true;
        last->changed_ms = 0;
        cr_strvec_dispose(&last->issuers);
        scene_add_prints(&last->issuers, "a");
        w.reports[0].files[SCENE_PARAMETERS - 2].own = has_pair;
        scene_record(&w.world, &status);
        CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
        cr_control_plane_plan(&w.world, &plan);
        scene_letters(plan.status.cluster.removable, removable, sizeof removable);
        assert_string_equal(removable, has_pair ? "a" : "");
        scene_world_cleanup(&w);
    }
}

static void a_cluster_without_nodes_is_not_converged(void **state)
{
    (void)state;
    const struct cr_control_plane_policy policy = scene_policy();
    const struct cr_control_plane_status status = {0};
    const struct cr_control_plane_world world = {.policy = &policy, .status = &status, .now_ms = scene_now};
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    cr_control_plane_plan(&world, &plan);
    assert_string_equal(plan.status.cluster.trusted, "");
    assert_false(plan.status.conditions[0].status);
    assert_false(plan.status.conditions[1].status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thousands_of_kubelets_are_planned_at_once),
        cmocka_unit_test(reports_may_have_anything_in_them),
        cmocka_unit_test(of_too_many_authorities_none_is_trusted),
        cmocka_unit_test(the_pair_that_a_kubelet_joined_with_is_not_in_use),
        cmocka_unit_test(a_cluster_without_nodes_is_not_converged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
