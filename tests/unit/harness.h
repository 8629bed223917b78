/* What every unit test needs: cmocka, and files by their path in the repository. */
#ifndef SK_TESTS_HARNESS_H
#define SK_TESTS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/str.h"

/* The path of a file of the repository; a static buffer. */
static inline const char *repo_path(const char *relative) {
    static char path[4096];
    const char *root = getenv("SKIPSTONE_ROOT");
    snprintf(path, sizeof path, "%s/%s", root ? root : ".", relative);
    return path;
}

/* A whole file, which must exist. */
static inline struct sk_buf repo_file(const char *relative) {
    struct sk_buf out = {0};
    char chunk[65536];
    size_t n;
    FILE *f = fopen(repo_path(relative), "rb");
    if (!f) fail_msg("cannot open %s", repo_path(relative));
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0) sk_buf_append(&out, chunk, n);
    fclose(f);
    return out;
}

#define assert_sk_ok(call)                                                                                             \
    do {                                                                                                               \
        struct sk_error *const e_ = &err;                                                                              \
        e_->message[0] = '\0';                                                                                         \
        if ((call) != SK_OK) fail_msg("%s: %s", #call, e_->message);                                                   \
    } while (0)

/* A small generator for property tests: the same numbers everywhere (splitmix64). */
static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}
static inline size_t random_below(uint64_t *state, size_t n) {
    return (size_t)(next_random(state) % n);
}

#endif
