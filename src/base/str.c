#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int sk_str_compare(struct sk_str a, struct sk_str b) {
    const size_t n = a.n < b.n ? a.n : b.n;
    const int c = n ? memcmp(a.p, b.p, n) : 0;
    if (c) return c;
    return (a.n > b.n) - (a.n < b.n);
}

size_t sk_str_find(struct sk_str hay, struct sk_str needle, size_t from) {
    if (from > hay.n) return SIZE_MAX;
    if (needle.n == 0) return from;
    const char *at = memmem(hay.p + from, hay.n - from, needle.p, needle.n);
    return at ? (size_t)(at - hay.p) : SIZE_MAX;
}

static bool buf_reserve(struct sk_buf *b, size_t extra) {
    if (b->failed) return false;
    size_t need;
    if (__builtin_add_overflow(b->len, extra, &need) || need == SIZE_MAX || (b->limit && need > b->limit)) {
        b->failed = true;
        return false;
    }
    if (need + 1 <= b->cap) return true;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need + 1)
        if (__builtin_mul_overflow(cap, (size_t)2, &cap)) cap = need + 1;
    char *grown = realloc(b->data, cap);
    if (!grown) {
        b->failed = true;
        return false;
    }
    b->data = grown;
    b->cap = cap;
    return true;
}

void sk_buf_append(struct sk_buf *b, const void *data, size_t n) {
    if (!buf_reserve(b, n)) return;
    if (n) memcpy(b->data + b->len, data, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void sk_buf_puts(struct sk_buf *b, const char *c_string) {
    sk_buf_append(b, c_string, strlen(c_string));
}
void sk_buf_putc(struct sk_buf *b, char c) {
    sk_buf_append(b, &c, 1);
}
void sk_buf_str(struct sk_buf *b, struct sk_str s) {
    sk_buf_append(b, s.p, s.n);
}

void sk_buf_printf(struct sk_buf *b, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !buf_reserve(b, (size_t)n)) {
        if (n < 0) b->failed = true;
        va_end(again);
        return;
    }
    vsnprintf(b->data + b->len, (size_t)n + 1, format, again);
    va_end(again);
    b->len += (size_t)n;
}

void sk_buf_free(struct sk_buf *b) {
    free(b->data);
    *b = (struct sk_buf){0};
}
