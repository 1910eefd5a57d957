/* Command lines, by a table: "--name=value", "--name value", "-n value", "-nvalue". Pure: nothing is printed and no
 * state is kept, unlike getopt, so that the command line of another pod can be read as well. */
#ifndef CR_BASE_FLAGS_H
#define CR_BASE_FLAGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum cr_flag_kind {
    CR_FLAG_TEXT,      /* const char *: borrowed from argv */
    CR_FLAG_TEXTS,     /* struct cr_strvec: may be given several times; each text once */
    CR_FLAG_SWITCH,    /* bool: true; has no value */
    CR_FLAG_BOOL,      /* bool: --x, --x=true, --x=false; the value is never the next argument */
    CR_FLAG_DURATION,  /* int64_t: milliseconds (cr_duration_parse) */
    CR_FLAG_SECONDS,   /* the same; a plain number is seconds */
    CR_FLAG_NUMBER,    /* int: from least to most */
    CR_FLAG_CHOICE,    /* int or an enum: the index in choices */
    CR_FLAG_LOG_LEVEL, /* enum cr_log_level */
    CR_FLAG_OWN,       /* what take makes of it */
    CR_FLAG_IGNORED,   /* has a value that only check reads */
    CR_FLAG_NOTHING,   /* has no value, and does nothing */
};

/* A row; a flag with another name is another row of the same field. */
struct cr_flag {
    const char *name; /* without its dashes */
    char letter;      /* '\0': none */
    enum cr_flag_kind kind;
    size_t offset;              /* of its field in the caller's struct */
    int least;                  /* of a number; of a time, in milliseconds */
    int most;                   /* of a number */
    const char *const *choices; /* NULL at the end */
    /* Before the value is taken; it is NULL where there is none. flag: with its dashes. NULL: any value will do. */
    bool (*check)(const char *flag, const char *value, struct cr_error *err);
    bool (*take)(void *field, const char *flag, const char *value, struct cr_error *err);
    unsigned tag; /* the caller's own */
};

/* CR_FLAG(TEXT, "config", struct flags, config): the kind is held against the type of the field. */
#define CR_FLAG(KIND, NAME, TYPE, FIELD, ...)                                                                          \
    {                                                                                                                  \
        .name = (NAME), .kind = CR_FLAG_##KIND, .offset = CR_FLAG_FIELD_##KIND(TYPE, FIELD) __VA_OPT__(, ) __VA_ARGS__ \
    }

#define CR_FLAG_OFFSET_(TYPE, FIELD, OF)                                                                               \
    (offsetof(TYPE, FIELD) + 0 * sizeof(char[_Generic(&((TYPE *)0)->FIELD, OF * : 1)]))
#define CR_FLAG_FIELD_TEXT(TYPE, FIELD)     CR_FLAG_OFFSET_(TYPE, FIELD, const char *)
#define CR_FLAG_FIELD_TEXTS(TYPE, FIELD)    CR_FLAG_OFFSET_(TYPE, FIELD, struct cr_strvec)
#define CR_FLAG_FIELD_SWITCH(TYPE, FIELD)   CR_FLAG_OFFSET_(TYPE, FIELD, bool)
#define CR_FLAG_FIELD_BOOL(TYPE, FIELD)     CR_FLAG_OFFSET_(TYPE, FIELD, bool)
#define CR_FLAG_FIELD_DURATION(TYPE, FIELD) CR_FLAG_OFFSET_(TYPE, FIELD, int64_t)
#define CR_FLAG_FIELD_SECONDS(TYPE, FIELD)  CR_FLAG_OFFSET_(TYPE, FIELD, int64_t)
#define CR_FLAG_FIELD_NUMBER(TYPE, FIELD)   CR_FLAG_OFFSET_(TYPE, FIELD, int)
#define CR_FLAG_FIELD_CHOICE(TYPE, FIELD)                                                                              \
    (offsetof(TYPE, FIELD) + 0 * sizeof(char[sizeof(((TYPE *)0)->FIELD) == sizeof(int) ? 1 : -1]))
#define CR_FLAG_FIELD_LOG_LEVEL(TYPE, FIELD) CR_FLAG_OFFSET_(TYPE, FIELD, enum cr_log_level)
#define CR_FLAG_FIELD_OWN(TYPE, FIELD)       offsetof(TYPE, FIELD)

struct cr_flags {
    const char *program; /* that has the help: "see certroll-operator --help" */
    const struct cr_flag *table;
    size_t len;
    /* Called for an argument that is no flag. NULL: there is none. */
    bool (*word)(void *out, const char *word, struct cr_error *err);
    /* Called for each flag, before its value is taken. NULL: nothing. */
    bool (*seen)(void *out, const struct cr_flag *flag, struct cr_error *err);
    /* Called for each error, which then ends nothing: what is wrong counts as not given. NULL: the first error ends the
     * parsing.
     */
    void (*wrong)(void *out, const struct cr_error *wrong);
};

/* argv as main has it. out: the caller's struct, with its defaults. *rest: the index of what stands behind "--", argc
 * when nothing does; NULL: that are words, too. The last value of a flag that is given again counts. Errors: Invalid,
 * with the flag's name. */
bool cr_flags_parse(const struct cr_flags *flags, int argc, char **argv, void *out, int *rest,
                    struct cr_error *err) CR_MUST_USE;

#endif
