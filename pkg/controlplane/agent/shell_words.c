#include "controlplane/agent/shell_words.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

/* A simple command while it is read, and the best one so far. */
struct command {
    struct cr_strvec words;
    bool plain; /* every word is what the program gets */
    bool exec;
};

static void command_dispose(struct command *command)
{
    cr_strvec_dispose(&command->words);
    *command = (struct command){.plain = true};
}
CR_DEFINE_DISPOSE(command, struct command, command_dispose)

struct reader {
    const char *p;
    struct command now;
    struct command best;
    bool best_is_last; /* nothing came behind it */
    bool simple;       /* nothing but plain commands, one after the other */
    bool skip_word;    /* what comes next is the target of a redirection */
    size_t words;
};

static void reader_cleanup(struct reader *r)
{
    command_dispose(&r->now);
    command_dispose(&r->best);
}

/* --- commands --- */

/* unquoted: how many of the word's first bytes are not quoted. A="b c" is one, 'A'=b is none. */
static bool is_assignment(const char *word, size_t unquoted)
{
    size_t name = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return name && word[name] == '=' && name < unquoted;
}

/* Words that make of commands something that is not one after the other (2.4), and builtins that change how those that
 * follow are found or end the script. */
static bool is_beyond(const char *word)
{
    static const char *const words[] = {"if",   "then", "else",  "elif",     "fi",     "for",  "while", "until", "do",
                                        "done", "case", "esac",  "function", "select", "{",    "}",     "!",     "[[",
                                        "eval", ".",    "alias", "source",   "return", "exit", "trap",  "cd"};
    for (size_t i = 0; i < cr_array_len(words); i++)
        if (cr_streq(word, words[i]))
            return true;
    return false;
}

static void end_command(struct reader *r)
{
    struct command *now = &r->now;
    if (now->words.len) {
        bool better = now->exec != r->best.exec ? now->exec : now->exec || now->words.len > r->best.words.len;
        r->best_is_last = better;
        if (better) {
            command_dispose(&r->best);
            r->best = *now;
            *now = (struct command){.plain = true};
        }
    }
    command_dispose(now);
    r->skip_word = false;
}

/* expanded: the shell makes something else of it. */
static void take_word(struct reader *r, const char *word, size_t unquoted, bool expanded)
{
    struct command *now = &r->now;
    bool first = !now->words.len;
    if (r->skip_word) {
        r->skip_word = false;
        return;
    }
    if (++r->words > CR_SHELL_WORDS_MAX) {
        r->simple = false;
        return;
    }
    if (first && is_assignment(word, unquoted))
        return;
    /* Quotes make a keyword a name, but not a builtin. "exec -a name program" begins with an option. */
    if (first && (is_beyond(word) || *word == '-'))
        r->simple = false;
    if (first && !now->exec && cr_streq(word, "exec")) {
        now->exec = true;
        return;
    }
    now->plain = now->plain && !expanded;
    cr_strvec_add(&now->words, word);
}

/* --- words --- */

static void put(struct cr_buf *word, char c)
{
    cr_buf_printf(word, "%c", c);
}

/* From behind the quote on; both false when it has no end. */
static bool single_quoted(const char **p, struct cr_buf *word)
{
    for (; **p && **p != '\''; (*p)++)
        put(word, **p);
    return **p && (*p)++;
}

static bool double_quoted(const char **p, struct cr_buf *word, bool *expanded)
{
    for (; **p && **p != '"'; (*p)++) {
        if (**p == '\\' && (*p)[1] && strchr("$`\"\\\n", (*p)[1])) {
            (*p)++;
            if (**p == '\n')
                continue;
        } else if (strchr("$`", **p)) {
            *expanded = true;
        }
        put(word, **p);
    }
    return **p && (*p)++;
}

/* One word up to where an unquoted blank or operator begins. */
static void read_word(struct reader *r)
{
    CR_CLEANUP(cr_buf) struct cr_buf word = CR_BUF_INIT(0);
    size_t unquoted = SIZE_MAX;
    bool expanded = *r->p == '~';
    while (*r->p && !strchr(" \t\r\n;&|<>()", *r->p)) {
        char c = *r->p++;
        if (c == '\'' || c == '"') {
            unquoted = unquoted < word.len ? unquoted : word.len;
            bool whole = c == '"' ? double_quoted(&r->p, &word, &expanded) : single_quoted(&r->p, &word);
            r->simple = r->simple && whole;
        } else if (c == '\\') {
            unquoted = unquoted < word.len ? unquoted : word.len;
            r->simple = r->simple && *r->p;
            if (*r->p && *r->p != '\n')
                put(&word, *r->p);
            r->p += *r->p != '\0';
        } else {
            /* Parameters, commands, patterns, and the braces of bash. */
            expanded = expanded || (strchr("$`*?[", c) != NULL) || (c == '{' && *r->p && *r->p != ' ');
            put(&word, c);
        }
    }
    /* "2>" is a redirection of a descriptor, no word. */
    const char *text = cr_buf_text(&word);
    bool number = unquoted == SIZE_MAX && *text && !text[strspn(text, "0123456789")];
    if (number && (*r->p == '<' || *r->p == '>'))
        return;
    take_word(r, text, unquoted, expanded);
}

/* ">file", "2>&1", ">>file": what follows is its target; a text in the script ("<<EOF") is beyond us. */
static void read_redirection(struct reader *r)
{
    if (strncmp(r->p, "<<", 2) == 0 || strncmp(r->p, "<(", 2) == 0 || strncmp(r->p, ">(", 2) == 0)
        r->simple = false;
    r->p += strspn(r->p, "<>&|");
    r->skip_word = true;
}

static void read_operator(struct reader *r)
{
    size_t len = strspn(r->p, ";&|()");
    bool and_then = len == 2 && strncmp(r->p, "&&", 2) == 0;
    bool next = len == 1 && *r->p == ';';
    /* "&>file" is bash's redirection of both. */
    if (*r->p == '&' && r->p[1] == '>') {
        r->simple = false;
        r->p++;
        return;
    }
    r->simple = r->simple && (and_then || next);
    r->p += len;
    end_command(r);
}

static void step(struct reader *r)
{
    if (strchr(" \t\r", *r->p))
        r->p++;
    else if (strncmp(r->p, "\\\n", 2) == 0)
        r->p += 2;
    else if (*r->p == '\n') {
        r->p++;
        end_command(r);
    } else if (*r->p == '#')
        r->p += strcspn(r->p, "\n");
    else if (strchr(";&|()", *r->p))
        read_operator(r);
    else if (strchr("<>", *r->p))
        read_redirection(r);
    else
        read_word(r);
}

bool cr_shell_words(const char *script, struct cr_strvec *out)
{
    __attribute__((cleanup(reader_cleanup))) struct reader r = {
        .p = script, .now = {.plain = true}, .best = {.plain = true}, .simple = true};
    while (*r.p)
        step(&r);
    end_command(&r);
    *out = r.best.words;
    r.best.words = (struct cr_strvec){0};
    return r.simple && r.best_is_last && r.best.plain && out->len > 0;
}
