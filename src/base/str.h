/* Borrowed strings (pointer and length, NUL allowed inside) and growing byte buffers. */
#ifndef SK_BASE_STR_H
#define SK_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sk_str {
    const char *p;
    size_t n;
};

static inline struct sk_str sk_str_of(const char *c_string) {
    return (struct sk_str){c_string, strlen(c_string)};
}
static inline bool sk_str_eq(struct sk_str a, struct sk_str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline bool sk_str_is(struct sk_str a, const char *c_string) {
    return sk_str_eq(a, sk_str_of(c_string));
}
/* Byte order, shorter first among equals: a total order for sorting and bisection. */
int sk_str_compare(struct sk_str a, struct sk_str b);
/* First place of `needle` in `hay` at or after `from`; SIZE_MAX if none. An empty needle is found at once. */
size_t sk_str_find(struct sk_str hay, struct sk_str needle, size_t from);

/* A growing byte buffer. Zero-initialise; free with sk_buf_free. When memory runs out `failed` is set and stays
 * set, later appends do nothing: callers check once, at the end. The data is always NUL-terminated if non-NULL. */
struct sk_buf {
    char *data;
    size_t len, cap;
    size_t limit; /* bytes this buffer may hold; 0 = no limit */
    bool failed;
};

void sk_buf_append(struct sk_buf *b, const void *data, size_t n);
void sk_buf_puts(struct sk_buf *b, const char *c_string);
void sk_buf_putc(struct sk_buf *b, char c);
void sk_buf_printf(struct sk_buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sk_buf_str(struct sk_buf *b, struct sk_str s);
void sk_buf_free(struct sk_buf *b);
static inline struct sk_str sk_buf_view(const struct sk_buf *b) {
    return (struct sk_str){b->data ? b->data : "", b->len};
}

#endif
