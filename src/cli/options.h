/* Command-line options from a table, with --help made of the same table. */
#ifndef SK_CLI_OPTIONS_H
#define SK_CLI_OPTIONS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,
    OPTION_STRING,
    OPTION_SIZE,
    OPTION_U32,
    OPTION_LIMIT, /* a count, or -1 */
    OPTION_SEED,
    OPTION_FLOAT,
    OPTION_STRINGS
};

/* A seed, or none. */
struct option_seed {
    bool given;
    uint64_t value;
};
/* Values of an option that may be repeated. */
struct option_strings {
    const char *items[64];
    size_t n;
};

struct option {
    const char *name; /* without dashes */
    char letter;      /* 0 if none */
    enum option_kind kind;
    void *target; /* bool, const char *, size_t, uint32_t, int64_t, struct option_seed, float, struct option_strings */
    const char *argument; /* what --help calls it */
    const char *help;
};

/* Rows from several places. */
struct option_list {
    struct option items[64]; /* the first with a NULL name ends them */
    size_t n;
};
/* Adds rows up to the first with a NULL name. */
void options_add(struct option_list *list, const struct option *rows);

/* Parses argv[1..): long options by their name, the start of it that is no other's, or another program's name for it
 * (habits.h). What is no option goes to positional[*n_positional]. *help is set by --help. The options end at the
 * first with a NULL name. */
sk_status options_parse(const struct option *options, int argc, char **argv, const char **positional,
                        size_t max_positional, size_t *n_positional, bool *help, struct sk_error *err);
void options_help(const char *usage, const char *summary, const struct option *options);

/* Prints "skipstone: MESSAGE" to stderr and gives 1, the exit status of a command that failed. */
int fail_command(const struct sk_error *err);

#endif
