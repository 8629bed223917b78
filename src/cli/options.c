#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void options_add(struct option_list *list, const struct option *rows) {
    const size_t most = sizeof list->items / sizeof *list->items - 1;
    for (; rows->name && list->n < most; rows++) list->items[list->n++] = *rows;
}

static const struct option *find(const struct option *options, const char *name, size_t n, char letter) {
    for (const struct option *o = options; o->name; o++) {
        if (name && strlen(o->name) == n && strncmp(o->name, name, n) == 0) return o;
        if (!name && letter && o->letter == letter) return o;
    }
    return NULL;
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
    case OPTION_SEED:
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

sk_status options_parse(const struct option *options, int argc, char **argv, const char **positional,
                        size_t max_positional, size_t *n_positional, bool *help, struct sk_error *err) {
    bool only_positional = false;
    *n_positional = 0;
    *help = false;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i], *value = NULL;
        const struct option *o;
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
        if (arg[1] == '-') {
            const char *equals = strchr(arg, '=');
            o = find(options, arg + 2, equals ? (size_t)(equals - arg - 2) : strlen(arg + 2), 0);
            if (equals) value = equals + 1;
        } else {
            o = find(options, NULL, 0, arg[1]);
            if (arg[2]) value = arg + 2; /* -t2 */
        }
        if (!o) return sk_fail(err, SK_EINVAL, "the option '%s' is not known; --help lists all", arg);
        if (o->kind == OPTION_FLAG && value) return sk_fail(err, SK_EINVAL, "--%s takes no value", o->name);
        if (o->kind != OPTION_FLAG && !value) {
            if (i + 1 >= argc) return sk_fail(err, SK_EINVAL, "--%s needs a value (%s)", o->name, o->argument);
            value = argv[++i];
        }
        const sk_status st = store(o, value, err);
        if (st) return st;
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
    printf("  -h, --help                       this text\n");
}

int fail_command(const struct sk_error *err) {
    fflush(stdout);
    fprintf(stderr, "skipstone: %s\n", err->message[0] ? err->message : "failed");
    return 1;
}
