#include "controlplane/agent/loaded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

/* A file over time, as looks find it, and what is said of it each time. Times are seconds; a letter is a fingerprint,
 * or a process: a later letter began later. */
enum { STEPS = 8 };

struct step {
    int now;
    const char *file; /* "": cannot be read; "!A": the key of the other file does not fit */
    int ctime;
    const char *process; /* NULL: none runs */
    int started;
    const char *serves; /* of a leaf: what the port shows; of a bundle: the names that it announces; NULL: no port was
                           asked; "-": no answer */
    const char *want;   /* "<loaded> <evidence> <has>", "?" when it is not known; behind Soon, "due <s>" */
};

struct story {
    const char *rule;
    enum cr_method method;
    int delay;
    enum cr_role role;
    const char *words; /* "alone", "own", "memory", "embedded", "elsewhere", "probe", "one name" */
    struct step steps[STEPS];
};

#define WATCH   CR_METHOD_WATCH, 5
#define POLL    CR_METHOD_POLL, 300
#define RESTART CR_METHOD_RESTART, 0
#define SERVER  CR_ROLE_SERVER_LEAF
#define CLIENT  CR_ROLE_CLIENT_LEAF
#define TRUST   CR_ROLE_SERVER_CA
#define CLIENTS CR_ROLE_CLIENT_CA

/* clang-format off */
static const struct story stories[] = {
    /* --- the first look --- */
    {"a process that began after the file has it", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "A", 10, "p", 20, NULL, "Loaded Inferred A"}}},
    {"one that began before has what nobody knows", RESTART, TRUST, "",
     {{100, "A", 30, "p", 20, NULL, "RestartNeeded Inferred ?"}, {200, "A", 30, "p", 20, NULL, "RestartNeeded Inferred ?"}}},
    {"in the same moment is not after", RESTART, TRUST, "", {{100, "A", 20, "p", 20, NULL, "RestartNeeded Inferred ?"}}},
    {"it takes it up by itself, within its delay", POLL, TRUST, "",
     {{100, "A", 30, "p", 20, NULL, "Soon Inferred ? due 345"}, {344, "A", 30, "p", 20, NULL, "Soon Inferred ? due 345"},
      {345, "A", 30, "p", 20, NULL, "Loaded Inferred A"}}},
    {"which is over", WATCH, TRUST, "", {{100, "A", 30, "p", 20, NULL, "Loaded Inferred A"}}},
    {"a ctime to come is of a clock that was set: it counts as now", RESTART, TRUST, "",
     {{100, "A", 4000, "p", 20, NULL, "RestartNeeded Inferred ?"}}},
    {"and is not waited for", WATCH, TRUST, "", {{100, "A", 4000, "p", 20, NULL, "Soon Inferred ? due 105"}}},

    /* --- a change --- */
    {"a change that is read once at start", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "AB", 199, "p", 20, NULL, "RestartNeeded Inferred A"},
      {300, "AB", 199, "p", 20, NULL, "RestartNeeded Inferred A"}, {400, "AB", 199, "q", 390, NULL, "Loaded Inferred AB"}}},
    {"and that was taken back", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 199, "p", 20, NULL, "RestartNeeded Inferred A"},
      {300, "A", 299, "p", 20, NULL, "Loaded Inferred A"}}},
    {"one that is taken up, and taken back: it may have had the other in between", POLL, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 199, "p", 20, NULL, "Soon Inferred A due 514"},
      {300, "A", 299, "p", 20, NULL, "Soon Inferred A due 614"}, {400, "A", 299, "p", 20, NULL, "Soon Inferred A due 614"}, {614, "A", 299, "p", 20, NULL, "Loaded Inferred A"}}},
    {"each change has its own delay", WATCH, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 200, "p", 20, NULL, "Soon Inferred A due 205"},
      {203, "C", 203, "p", 20, NULL, "Soon Inferred A due 208"}, {205, "C", 203, "p", 20, NULL, "Soon Inferred A due 208"},
      {208, "C", 203, "p", 20, NULL, "Loaded Inferred C"}}},
    {"the same again is no change, whoever touched it", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "A", 199, "p", 20, NULL, "Loaded Inferred A"}}},
    {"a folder that was renamed brings files with an old ctime: they are new here", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 5, "p", 20, NULL, "RestartNeeded Inferred A"}}},

    {"and have all of their time to be taken up", WATCH, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 5, "p", 20, NULL, "Soon Inferred A due 205"}}},

    /* --- processes --- */
    {"changed and restarted while nobody looked: the ctime tells", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {900, "B", 150, "q", 200, NULL, "Loaded Inferred B"}}},
    {"restarted and then changed", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {900, "B", 250, "q", 200, NULL, "RestartNeeded Inferred ?"}}},
    {"what the process before had is no memory of the next", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 150, "p", 20, NULL, "RestartNeeded Inferred A"},
      {300, "A", 280, "q", 250, NULL, "RestartNeeded Inferred ?"}}},
    {"it was something else while the process began, and was put back", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {300, "A", 290, "q", 250, NULL, "RestartNeeded Inferred ?"}}},
    {"no process has nothing", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "A", 10, NULL, 0, NULL, "Unknown None ?"},
      {300, "A", 10, "q", 250, NULL, "Loaded Inferred A"}}},
    {"one that began before another that was taken for it is no successor", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 199, "p", 20, NULL, "RestartNeeded Inferred A"},
      {220, "B", 199, "q", 215, NULL, "Loaded Inferred B"}, {240, "B", 199, "p", 20, NULL, "RestartNeeded Inferred ?"},
      {260, "B", 199, "r", 250, NULL, "Loaded Inferred B"}}},
    {"nor is one that was not seen for a moment", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 199, "p", 20, NULL, "RestartNeeded Inferred A"},
      {220, "B", 199, NULL, 0, NULL, "Unknown None ?"}, {240, "B", 199, "p", 20, NULL, "RestartNeeded Inferred ?"}}},
    {"a program that a probe starts reads all of it anew", RESTART, TRUST, "probe",
     {{100, "A", 90, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 199, "p", 20, NULL, "Loaded Inferred B"}}},

    /* --- clocks --- */
    {"a clock that was set back changes nothing of the same process", RESTART, TRUST, "",
     {{5000, "A", 4000, "p", 4100, NULL, "Loaded Inferred A"}, {1000, "A", 4000, "p", 100, NULL, "Loaded Inferred A"}}},
    {"nor makes it a restart's end too long", RESTART, TRUST, "",
     {{5000, "A", 4000, "p", 4100, NULL, "Loaded Inferred A"}, {5100, "B", 5050, "p", 4100, NULL, "RestartNeeded Inferred A"},
      {1000, "B", 5050, "q", 900, NULL, "Loaded Inferred B"}, {1100, "B", 5050, "q", 900, NULL, "Loaded Inferred B"},
      {5200, "B", 5050, "q", 900, NULL, "Loaded Inferred B"}}},
    {"nor keeps anybody waiting for hours", WATCH, TRUST, "",
     {{5000, "A", 4000, "p", 4100, NULL, "Loaded Inferred A"}, {5001, "B", 5000, "p", 4100, NULL, "Soon Inferred A due 5005"},
      {1000, "B", 5000, "p", 100, NULL, "Soon Inferred A due 1005"}, {1005, "B", 5000, "p", 100, NULL, "Loaded Inferred B"}}},
    {"one that was set forward makes no process younger than a change that was seen", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 199, "p", 20, NULL, "RestartNeeded Inferred A"},
      {9200, "B", 199, "p", 9020, NULL, "RestartNeeded Inferred A"}}},

    /* --- what cannot be read --- */
    {"a file that is away for a moment", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "", 0, "p", 20, NULL, "Unknown None A"},
      {300, "A", 250, "p", 20, NULL, "Loaded Inferred A"}}},
    {"or comes back as another", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "", 0, "p", 20, NULL, "Unknown None A"},
      {300, "B", 250, "p", 20, NULL, "RestartNeeded Inferred A"}}},
    {"in a folder that was moved here, with an old ctime", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "", 0, "p", 20, NULL, "Unknown None A"},
      {220, "B", 5, "p", 20, NULL, "RestartNeeded Inferred A"}, {240, "B", 5, "p", 20, NULL, "RestartNeeded Inferred A"},
      {260, "", 0, "p", 20, NULL, "Unknown None A"}, {280, "B", 5, "p", 20, NULL, "RestartNeeded Inferred A"},
      {300, "", 0, "p", 20, NULL, "Unknown None A"}, {320, "A", 10, "p", 20, NULL, "Loaded Inferred A"}}},
    {"which has all of its time to be taken up", WATCH, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "", 0, "p", 20, NULL, "Unknown None A"},
      {220, "B", 5, "p", 20, NULL, "Soon Inferred A due 225"}, {225, "B", 5, "p", 20, NULL, "Loaded Inferred B"}}},
    {"and of which nobody knows what was there before", RESTART, TRUST, "",
     {{100, "A", 30, "p", 20, NULL, "RestartNeeded Inferred ?"}, {200, "", 0, "p", 20, NULL, "Unknown None ?"},
      {220, "B", 5, "p", 20, NULL, "RestartNeeded Inferred ?"}}},
    {"what can be read at last is as at first sight", RESTART, TRUST, "",
     {{100, "", 0, "p", 20, NULL, "Unknown None ?"}, {200, "A", 10, "p", 20, NULL, "Loaded Inferred A"}}},
    {"and meanwhile another process began", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "", 0, "q", 150, NULL, "Unknown None ?"},
      {300, "A", 250, "q", 150, NULL, "RestartNeeded Inferred ?"}}},
    {"certificate and key are written one after the other", WATCH, SERVER, "",
     {{100, "A", 10, "p", 20, "A", "Loaded Verified A"}, {200, "!B", 200, "p", 20, "A", "Unknown None A"},
      {201, "B", 200, "p", 20, "B", "Loaded Verified B"}}},
    {"what does not fit is not restarted for", RESTART, CLIENT, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "!B", 150, "p", 20, NULL, "Unknown None A"},
      {300, "!B", 150, "p", 20, NULL, "Unknown None A"}, {400, "B", 150, "p", 20, NULL, "RestartNeeded Inferred A"}}},

    {"what did not fit yet when it was seen to change is changed since then", RESTART, CLIENT, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "!B", 199, "q", 150, NULL, "Unknown None ?"},
      {300, "B", 199, "q", 150, NULL, "RestartNeeded Inferred ?"}}},
    {"also in a folder that was moved here, while no process was seen", RESTART, TRUST, "",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 5, NULL, 0, NULL, "Unknown None ?"},
      {220, "B", 5, "p", 20, NULL, "RestartNeeded Inferred ?"}, {240, "B", 5, "q", 230, NULL, "Loaded Inferred B"}}},

    /* --- methods and places --- */
    {"from memory only is not believed", WATCH, TRUST, "memory",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 199, "p", 20, NULL, "RestartNeeded Inferred A"}}},
    {"mounted as a file by itself, the process keeps the inode", WATCH, TRUST, "alone",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 199, "p", 20, NULL, "RestartNeeded Inferred A"},
      {900, "B", 199, "p", 20, NULL, "RestartNeeded Inferred A"}, {990, "B", 199, "q", 950, NULL, "Loaded Inferred B"}}},
    {"unless it is seen to serve it", WATCH, SERVER, "alone",
     {{100, "A", 10, "p", 20, "A", "Loaded Verified A"}, {200, "B", 199, "p", 20, "B", "Loaded Verified B"}}},
    {"embedded is read with its kubeconfig", RESTART, TRUST, "embedded",
     {{100, "A", 10, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 199, "p", 20, NULL, "RestartNeeded Inferred A"}}},
    {"no file of the node", WATCH, TRUST, "elsewhere", {{100, "", 0, "p", 20, NULL, "Unknown None ?"}}},
    {"its own pair it has before its file has it", RESTART, CLIENT, "own",
     {{100, "A", 30, "p", 20, NULL, "Loaded Inferred A"}, {200, "B", 199, "p", 20, NULL, "Loaded Inferred B"}}},
    {"and what it serves of it tells", RESTART, SERVER, "own",
     {{100, "A", 30, "p", 20, "A", "Loaded Verified A"}, {200, "B", 199, "p", 20, "A", "Unknown Verified A"},
      {300, "B", 199, "p", 20, "B", "Loaded Verified B"}}},

    /* --- leaves that are served --- */
    {"what is served is what it has, at once", POLL, SERVER, "",
     {{100, "A", 10, "p", 20, "A", "Loaded Verified A"}, {200, "B", 199, "p", 20, "A", "Soon Verified A due 514"},
      {210, "B", 199, "p", 20, "B", "Loaded Verified B"}}},
    {"and stays seen when nobody asks again", WATCH, SERVER, "",
     {{100, "A", 10, "p", 20, "A", "Loaded Verified A"}, {200, "A", 10, "p", 20, NULL, "Loaded Verified A"},
      {300, "A", 10, "p", 20, "-", "Loaded Verified A"}}},
    {"a busy machine has time, then only a restart is believed to help", WATCH, SERVER, "",
     {{100, "A", 10, "p", 20, "A", "Loaded Verified A"}, {200, "B", 200, "p", 20, "A", "Soon Verified A due 205"},
      {210, "B", 200, "p", 20, "A", "Soon Verified A due 260"}, {259, "B", 200, "p", 20, NULL, "Soon Verified A due 260"},
      {260, "B", 200, "p", 20, "A", "RestartNeeded Verified A"}, {270, "B", 200, "p", 20, NULL, "RestartNeeded Verified A"},
      {280, "B", 200, "p", 20, "B", "Loaded Verified B"}}},
    {"time alone is not believed where a port could show it", WATCH, SERVER, "",
     {{100, "A", 10, "p", 20, "A", "Loaded Verified A"}, {200, "B", 200, "p", 20, "-", "Soon Inferred A due 205"},
      {210, "B", 200, "p", 20, "-", "Soon Inferred A due 260"}, {220, "B", 200, "p", 20, "B", "Loaded Verified B"}}},
    {"neither the file's nor the one of before: somebody else listens there", WATCH, SERVER, "",
     {{100, "A", 10, "p", 20, "A", "Loaded Verified A"}, {200, "B", 200, "p", 20, "X", "Soon Verified ? due 205"},
      {300, "B", 200, "p", 20, "X", "Unknown Verified ?"}, {400, "B", 200, "p", 20, NULL, "Unknown Verified ?"}}},
    {"a file that was loaded, and now something else is served", WATCH, SERVER, "",
     {{100, "A", 10, "p", 20, "A", "Loaded Verified A"}, {200, "A", 10, "p", 20, "X", "Unknown Verified ?"}}},
    {"a new process that serves another: a restart would not help", RESTART, SERVER, "",
     {{100, "A", 10, "p", 20, "A", "Loaded Verified A"}, {200, "B", 190, "p", 20, "A", "RestartNeeded Verified A"},
      {300, "B", 190, "q", 250, "A", "Unknown Verified A"}}},
    {"at first sight what is served is what was before", RESTART, SERVER, "",
     {{100, "B", 90, "p", 20, "A", "RestartNeeded Verified A"}}},
    {"a restart was thought to be needed, and it serves it all the same", RESTART, SERVER, "",
     {{100, "A", 90, "p", 20, NULL, "RestartNeeded Inferred ?"}, {200, "A", 90, "p", 20, "A", "Loaded Verified A"},
      {300, "A", 90, "p", 20, NULL, "Loaded Verified A"}}},
    {"what the file had before is what was before, whoever has it", RESTART, SERVER, "",
     {{100, "A", 90, "p", 20, NULL, "RestartNeeded Inferred ?"}, {200, "B", 199, "p", 20, "A", "RestartNeeded Verified A"}}},

    /* --- CAs that are announced --- */
    {"a CA that is not announced is not loaded", WATCH, CLIENTS, "",
     {{100, "A", 10, "p", 20, "AX", "Loaded Inferred A"}, {200, "AB", 200, "p", 20, "AX", "Soon Verified A due 205"},
      {230, "AB", 200, "p", 20, "AX", "Soon Verified A due 260"}, {231, "AB", 200, "p", 20, "ABX", "Loaded Inferred AB"}}},
    {"nor after its time", WATCH, CLIENTS, "",
     {{100, "A", 10, "p", 20, "A", "Loaded Inferred A"}, {300, "AB", 200, "p", 20, "A", "RestartNeeded Verified A"},
      {310, "AB", 200, "p", 20, NULL, "RestartNeeded Verified A"}, {400, "AB", 200, "q", 350, "AB", "Loaded Inferred AB"}}},
    {"two of one name stand there twice", WATCH, CLIENTS, "one name",
     {{100, "A", 10, "p", 20, "N", "Loaded Inferred A"}, {300, "AB", 290, "p", 20, "N", "Soon Verified A due 350"},
      {310, "AB", 290, "p", 20, "NN", "Loaded Inferred AB"}}},
    {"that it is announced proves nothing", RESTART, CLIENTS, "one name",
     {{100, "A", 10, "p", 20, "N", "Loaded Inferred A"}, {200, "B", 199, "p", 20, "N", "RestartNeeded Inferred A"}}},
    {"a restart does not help who announces none of them", RESTART, CLIENTS, "",
     {{100, "A", 10, "p", 20, "X", "Unknown Verified ?"}}},
    {"who names none says nothing", RESTART, CLIENTS, "", {{100, "A", 10, "p", 20, "", "Loaded Inferred A"}}},
};
/* clang-format on */

/* --- the world of a step --- */

static const unsigned char *name_of(char letter)
{
    static unsigned char name[32];
    memset(name, letter, sizeof name);
    return name;
}

static bool says(const struct story *story, const char *word)
{
    return strstr(story->words, word) != NULL;
}

static struct cr_node_parameter parameter_of(const struct story *story)
{
    static char component[] = "kube-apiserver", name[] = "--file", host[] = "/pki/file", why[] = "is below no mount";
    return (struct cr_node_parameter){
        .component = component,
        .parameter = name,
        .role = story->role,
        .place = says(story, "embedded")    ? CR_NODE_PLACE_EMBEDDED
                 : says(story, "elsewhere") ? CR_NODE_PLACE_ELSEWHERE
                                            : CR_NODE_PLACE_HOST,
        .host = host,
        .why = why,
        .alone = says(story, "alone"),
        .own = says(story, "own"),
        .capability = {.method = story->method,
                       .max_delay_ms = (int64_t)story->delay * 1000,
                       .verified = !says(story, "memory"),
                       .why = "kube-apiserver does what it does"},
    };
}

/* The letters of text as fingerprints. */
static void add_letters(struct cr_strvec *to, const char *text)
{
    for (; *text; text++)
        cr_strvec_add(to, (char[]){*text, '\0'});
}

static void add_names(const struct story *story, const char *file, struct cr_strvec *names)
{
    for (; *file; file++) {
        const unsigned char *name = name_of(says(story, "one name") ? 'N' : *file);
        char hex[65];
        for (size_t i = 0; i < 32; i++)
            snprintf(hex + 2 * i, 3, "%02x", name[i]);
        cr_strvec_add(names, hex);
    }
}

static struct cr_node_proof proof_of(const struct story *story, const char *serves)
{
    struct cr_node_proof proof = {.len = 1};
    struct cr_node_proof_port *port = &proof.ports[0];
    bool trust = story->role == CR_ROLE_CLIENT_CA;
    port->port = (struct cr_node_port){.port = 6443, .tls = true, .parameter = trust ? "--leaf" : "--file"};
    port->port.ca_parameter = trust ? "--file" : NULL;
    port->probe.outcome = cr_streq(serves, "-") ? CR_PROBE_UNREACHABLE : CR_PROBE_SERVED;
    if (!trust)
        snprintf(port->probe.leaf, sizeof port->probe.leaf, "%s", serves);
    port->probe.announced.asked = trust;
    for (; trust && *serves; serves++)
        memcpy(port->probe.announced.names[port->probe.announced.len++], name_of(*serves), 32);
    return proof;
}

static char *in_words(const struct cr_node_file *file)
{
    struct cr_buf buf = CR_BUF_INIT(0);
    cr_autofree char *has = cr_strvec_join(&file->has, "");
    cr_buf_printf(&buf, "%s %s %s", cr_node_loaded_name(file->loaded), cr_node_evidence_name(file->evidence),
                  file->has_known ? has : "?");
    if (file->loaded == CR_NODE_LOADED_SOON)
        cr_buf_printf(&buf, " due %d", (int)(file->due_ms / 1000));
    return cr_buf_steal(&buf);
}

static void file_dispose(struct cr_node_file *file)
{
    free(file->problem);
    free(file->why);
    cr_strvec_dispose(&file->prints);
    cr_strvec_dispose(&file->has);
}

static struct cr_node_file file_of(const struct story *story, const struct step *step)
{
    struct cr_node_file file = {.role = story->role};
    bool misfit = step->file[0] == '!';
    bool trust = story->role == CR_ROLE_CLIENT_CA || story->role == CR_ROLE_SERVER_CA;
    file.kind = !*step->file ? CR_NODE_FILE_UNREAD : trust ? CR_NODE_FILE_TRUST : CR_NODE_FILE_LEAF;
    if (misfit || !*step->file)
        file.problem = cr_strdup(misfit ? "the key does not fit" : "it is not there");
    add_letters(&file.prints, step->file + misfit);
    return file;
}

/* The memory is what cr_node_report_make would give. */
static void look(const struct story *story, size_t at, struct cr_node_file *row)
{
    const struct step *step = &story->steps[at];
    const struct step *last = at ? step - 1 : NULL;
    const struct cr_node_parameter parameter = parameter_of(story);
    struct cr_node_content content = {.exists = *step->file, .ctime_ms = (int64_t)step->ctime * 1000};
    add_names(story, step->file, &content.material.names);
    const struct cr_node_program program = {.running = step->process, .started_ms = (int64_t)step->started * 1000};
    const struct cr_node_proof proof = step->serves ? proof_of(story, step->serves) : (struct cr_node_proof){0};
    bool began = last && last->process && step->process;
    const struct cr_node_memory memory = {.row = last ? row : NULL,
                                          .seen_ms = last ? (int64_t)last->now * 1000 : 0,
                                          .same_process = began && strcmp(step->process, last->process) == 0,
                                          .later_process = began && strcmp(step->process, last->process) > 0};
    struct cr_node_file file = file_of(story, step);
    cr_node_loaded_judge(&parameter, &content, says(story, "probe") ? NULL : &program, &memory,
                         step->serves ? &proof : NULL, (int64_t)step->now * 1000, &file);
    cr_strvec_dispose(&content.material.names);
    file_dispose(row);
    *row = file;
}

static void each_story_is_judged_as_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(stories); i++) {
        struct cr_node_file row = {0};
        for (size_t k = 0; k < STEPS && stories[i].steps[k].want; k++) {
            look(&stories[i], k, &row);
            cr_autofree char *is = in_words(&row);
            if (!cr_streq(is, stories[i].steps[k].want))
                fail_msg("%s, look %zu: want %s, is %s (%s)", stories[i].rule, k, stories[i].steps[k].want, is,
                         cr_or_empty(row.why));
            assert_non_null(row.why);
            if (row.loaded == CR_NODE_LOADED_YES)
                assert_true(cr_strvec_equal(&row.has, &row.prints));
        }
        file_dispose(&row);
    }
}

/* Only the beginning of a long bundle is remembered, so that any touch counts. */
static void a_bundle_that_is_too_long_is_judged_by_its_ctime(void **state)
{
    (void)state;
    const struct story story = {"", RESTART, TRUST, "", {{0}}};
    const struct cr_node_parameter parameter = parameter_of(&story);
    const struct cr_node_program program = {.running = true, .started_ms = 20};
    struct cr_node_content content = {.exists = true, .ctime_ms = 10};
    struct cr_node_file first = {.kind = CR_NODE_FILE_TRUST, .more = true};
    struct cr_node_file next = {.kind = CR_NODE_FILE_TRUST, .more = true};
    add_letters(&first.prints, "A");
    add_letters(&next.prints, "A");
    cr_node_loaded_judge(&parameter, &content, &program, NULL, NULL, 100, &first);
    assert_int_equal(first.loaded, CR_NODE_LOADED_YES);
    content.ctime_ms = 150;
    const struct cr_node_memory memory = {.row = &first, .seen_ms = 100, .same_process = true};
    cr_node_loaded_judge(&parameter, &content, &program, &memory, NULL, 200, &next);
    assert_int_equal(next.loaded, CR_NODE_LOADED_NO);
    assert_int_equal(next.changed_ms, 150);
    file_dispose(&first);
    file_dispose(&next);
}

/* If there are several ports, the one that does not have it decides: etcd's loopback and its node's address. */
static void each_port_has_to_serve_it(void **state)
{
    (void)state;
    static const char *const orders[][2] = {{"A", "B"}, {"B", "A"}};
    for (size_t i = 0; i < cr_array_len(orders); i++) {
        const struct story story = {"", WATCH, SERVER, "", {{100, "B", 98, "p", 20, NULL, NULL}}};
        const struct cr_node_parameter parameter = parameter_of(&story);
        const struct cr_node_program program = {.running = true, .started_ms = 20 * 1000};
        const struct cr_node_content content = {.exists = true, .ctime_ms = 98 * 1000};
        struct cr_node_proof proof = proof_of(&story, orders[i][0]);
        proof.ports[proof.len++] = proof_of(&story, orders[i][1]).ports[0];
        struct cr_node_file row = file_of(&story, &story.steps[0]);
        cr_node_loaded_judge(&parameter, &content, &program, NULL, &proof, 100 * 1000, &row);
        assert_int_equal(row.loaded, CR_NODE_LOADED_SOON);
        assert_int_equal(row.evidence, CR_NODE_EVIDENCE_VERIFIED);
        file_dispose(&row);
    }
}

static void words_say_why(void **state)
{
    (void)state;
    static const struct {
        enum cr_method method;
        const char *words;
        const char *want;
    } rows[] = {
        {CR_METHOD_RESTART, "", "kube-apiserver does what it does and runs since before the change"},
        {CR_METHOD_WATCH, "memory",
         "kube-apiserver does what it does, but that is from memory only, and it runs since before the change"},
        {CR_METHOD_WATCH, "alone",
         "/pki/file is mounted as a file by itself, so kube-apiserver keeps what it was started with"},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        const struct story story = {"", rows[i].method, 5, TRUST, rows[i].words, {{100, "A", 90, "p", 20, NULL, NULL}}};
        struct cr_node_file row = {0};
        look(&story, 0, &row);
        assert_string_equal(row.why, rows[i].want);
        file_dispose(&row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_story_is_judged_as_it_is),
        cmocka_unit_test(a_bundle_that_is_too_long_is_judged_by_its_ctime),
        cmocka_unit_test(each_port_has_to_serve_it),
        cmocka_unit_test(words_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
