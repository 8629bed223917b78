#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "habits.h"

enum { MAX_NAME = 64 };

void options_add(struct option_list *list, const struct option *rows) {
    const size_t most = sizeof list->items / sizeof *list->items - 1;
    for (; rows->name && list->n < most; rows++) list->items[list->n++] = *rows;
}

static const struct option *find_letter(const struct option *options, char letter) {
    for (const struct option *o = options; o->name; o++)
        if (o->letter == letter) return o;
    return NULL;
}

static const struct option *find_name(const struct option *options, const char *name, size_t n) {
    for (const struct option *o = options; o->name; o++)
        if (strlen(o->name) == n && strncmp(o->name, name, n) == 0) return o;
    return NULL;
}

/* The option whose name starts so; *second is another one. */
static const struct option *find_start(const struct option *options, const char *name, size_t n,
                                       const struct option **second) {
    const struct option *first = NULL;
    *second = NULL;
    for (const struct option *o = options; o->name && n; o++) {
        if (strncmp(o->name, name, n) != 0) continue;
        if (first) *second = o;
        if (!first) first = o;
    }
    return first;
}

static const struct option *find_nearest(const struct option *options, const char *name, size_t n) {
    const struct option *nearest = NULL;
    size_t least = SIZE_MAX;
    for (const struct option *o = options; o->name; o++) {
        const size_t d = word_distance(name, n, o->name);
        if (d < least) least = d, nearest = o;
    }
    size_t elsewhere;
    const char *ours = habit_nearest(name, n, &elsewhere);
    const struct option *theirs = elsewhere < least ? find_name(options, ours, strlen(ours)) : NULL;
    if (theirs) least = elsewhere, nearest = theirs;
    return may_be_slip(least, n) ? nearest : NULL;
}

/* The option that a word means (without dashes, n bytes; as it was written: arg); says why there is none. */
static sk_status find(const struct option *options, const char *arg, const char *word, size_t n,
                      const struct option **out, struct sk_error *err) {
    const struct option *second = NULL;
    const char *ours = habit_option(word, n), *refusal = habit_refusal(word, n);
    const int shown = (int)(n + 1 + (arg[1] == '-')); /* not its value */
    if ((*out = find_name(options, word, n))) return SK_OK;
    if (ours && (*out = find_name(options, ours, strlen(ours)))) return SK_OK;
    if (refusal) return sk_fail(err, SK_EINVAL, "%.*s %s", shown, arg, refusal);
    *out = find_start(options, word, n, &second);
    if (*out && second)
        return sk_fail(err, SK_EINVAL, "'%.*s' may mean --%s or --%s: write more of it", shown, arg, (*out)->name,
                       second->name);
    if (*out) return SK_OK;
    const struct option *nearest = find_nearest(options, word, n);
    if (nearest)
        return sk_fail(err, SK_EINVAL, "the option '%.*s' is not known; is --%s meant? --help lists all", shown, arg,
                       nearest->name);
    return sk_fail(err, SK_EINVAL, "the option '%.*s' is not known; --help lists all", shown, arg);
}

static sk_status parse_unsigned(const struct option *o, const char *text, uint64_t max, uint64_t *out,
                                struct sk_error *err) {
    char *end;
    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno == ERANGE || v > max)
        return sk_fail(err, SK_EINVAL, "--%s needs a whole number from 0 to %llu, not '%s'", o->name,
                       (unsigned long long)max, text);
    *out = v;
    return SK_OK;
}

static sk_status store(const struct option *o, const char *text, struct sk_error *err) {
    uint64_t number = 0;
    sk_status st = SK_OK;
    switch (o->kind) {
    case OPTION_FLAG: *(bool *)o->target = true; break;
    case OPTION_STRING: *(const char **)o->target = text; break;
    case OPTION_SIZE:
        st = parse_unsigned(o, text, 1ull << 40, &number, err);
        *(size_t *)o->target = (size_t)number;
        break;
    case OPTION_U32:
        st = parse_unsigned(o, text, UINT32_MAX, &number, err);
        *(uint32_t *)o->target = (uint32_t)number;
        break;
    case OPTION_LIMIT: {
        const bool none = strcmp(text, "-1") == 0;
        if (!none && parse_unsigned(o, text, INT32_MAX, &number, NULL))
            return sk_fail(err, SK_EINVAL, "--%s needs a whole number from -1 to %d, not '%s'", o->name, INT32_MAX,
                           text);
        *(int64_t *)o->target = none ? -1 : (int64_t)number;
        break;
    }
    case OPTION_SEED:
        if (strcmp(text, "-1") == 0) break; /* llama.cpp's way to ask for any */
        st = parse_unsigned(o, text, UINT64_MAX, &number, err);
        *(struct option_seed *)o->target = (struct option_seed){true, number};
        break;
    case OPTION_FLOAT: {
        char *end;
        const float f = strtof(text, &end);
        if (!*text || *end || !isfinite(f))
            return sk_fail(err, SK_EINVAL, "--%s needs a number, not '%s'", o->name, text);
        *(float *)o->target = f;
        break;
    }
    case OPTION_STRINGS: {
        struct option_strings *s = o->target;
        if (s->n == sizeof s->items / sizeof *s->items)
            return sk_fail(err, SK_EINVAL, "--%s was given more than %zu times", o->name, s->n);
        s->items[s->n++] = text;
        break;
    }
    }
    return st;
}

/* The option of one argument, and the value that may be part of it: --name=value, -t2. */
static sk_status read_option(const struct option *options, const char *arg, const struct option **o, const char **value,
                             struct sk_error *err) {
    char word[MAX_NAME + 1];
    const bool is_long = arg[1] == '-';
    const char *name = arg + 1 + is_long, *equals = strchr(name, '=');
    const size_t n = equals ? (size_t)(equals - name) : strlen(name);
    /* Words of one dash that another program has (-ngl) go before letters with a value (-n gl). */
    if (!is_long && !(n > 1 && (habit_option(name, n) || habit_refusal(name, n)))) {
        *value = arg[2] ? arg + 2 : NULL;
        *o = find_letter(options, arg[1]);
        return *o ? SK_OK : sk_fail(err, SK_EINVAL, "the option '%s' is not known; --help lists all", arg);
    }
    *value = equals ? equals + 1 : NULL;
    if (n > MAX_NAME) return sk_fail(err, SK_EINVAL, "the option '%s' is not known; --help lists all", arg);
    for (size_t i = 0; i < n; i++) word[i] = name[i] == '_' ? '-' : name[i]; /* --top_k */
    word[n] = '\0';
    return find(options, arg, word, n, o, err);
}

sk_status options_parse(const struct option *options, int argc, char **argv, const char **positional,
                        size_t max_positional, size_t *n_positional, bool *help, struct sk_error *err) {
    bool only_positional = false;
    *n_positional = 0;
    *help = false;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i], *value = NULL;
        const struct option *o;
        sk_status st;
        if (only_positional || arg[0] != '-' || arg[1] == '\0') {
            if (*n_positional == max_positional)
                return sk_fail(err, SK_EINVAL, "'%s' is not expected here; --help shows what is", arg);
            positional[(*n_positional)++] = arg;
            continue;
        }
        if (strcmp(arg, "--") == 0) {
            only_positional = true;
            continue;
        }
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            *help = true;
            return SK_OK;
        }
        if ((st = read_option(options, arg, &o, &value, err))) return st;
        if (o->kind == OPTION_FLAG && value) return sk_fail(err, SK_EINVAL, "--%s takes no value", o->name);
        if (o->kind != OPTION_FLAG && !value) {
            if (i + 1 >= argc) return sk_fail(err, SK_EINVAL, "--%s needs a value (%s)", o->name, o->argument);
            value = argv[++i];
        }
        if ((st = store(o, value, err))) return st;
    }
    return SK_OK;
}

void options_help(const char *usage, const char *summary, const struct option *options) {
    printf("usage: skipstone %s\n\n%s\n\noptions:\n", usage, summary);
    for (const struct option *o = options; o->name; o++) {
        char left[64];
        snprintf(left, sizeof left, "%c%c%s --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                 o->letter ? "," : " ", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
        printf("  %-32s %s\n", left, o->help);
    }
    printf(
        "  -h, --help                       this text\n\n"
        "Long options may be cut short where it is clear which is meant; the names that llama.cpp and others have for "
        "them\n(--temp, --n-predict, --ctx-size, --repeat-penalty ...) are understood.\n");
}

int fail_command(const struct sk_error *err) {
    fflush(stdout);
    fprintf(stderr, "skipstone: %s\n", err->message[0] ? err->message : "failed");
    return 1;
}
