#include "strings.h"

#include <utf8proc.h>

#include "base/utf8.h"

bool is_space_char(int32_t c) {
    if (c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f) || c == 0x85) return true;
    if (c < 0x80) return false;
    const utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_ZS || k == UTF8PROC_CATEGORY_ZL || k == UTF8PROC_CATEGORY_ZP;
}

static bool is_letter(int32_t c) {
    const utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT;
}

bool string_case(struct render *r, int line, struct sk_str s, enum letter_case how, struct value *out) {
    struct sk_buf b = {0};
    bool first = true, after_letter = false;
    for (size_t i = 0, len; i < s.n; i += len) {
        const int32_t c = sk_utf8_decode(s.p + i, s.n - i, &len);
        if (c < 0) {
            len = 1;
            sk_buf_putc(&b, s.p[i]);
            continue;
        }
        const bool upper =
            how == CASE_UPPER || (how == CASE_CAPITALIZE && first) || (how == CASE_TITLE && !after_letter);
        if (c == 0xDF && upper && how == CASE_UPPER) {
            sk_buf_puts(&b, "SS");
        } else {
            char utf8[4];
            const int32_t changed =
                upper ? (how == CASE_UPPER ? utf8proc_toupper(c) : utf8proc_totitle(c)) : utf8proc_tolower(c);
            sk_buf_append(&b, utf8, sk_utf8_encode((uint32_t)changed, utf8));
        }
        after_letter = is_letter(c);
        first = false;
    }
    return take_string(r, line, &b, out);
}

static bool strips(int32_t c, struct sk_str at, struct sk_str set) {
    if (!set.p) return c >= 0 && is_space_char(c);
    return sk_str_find(set, at, 0) != SIZE_MAX;
}

struct sk_str string_strip(struct sk_str s, struct sk_str set, bool left, bool right) {
    size_t len;
    while (left && s.n) {
        const int32_t c = sk_utf8_decode(s.p, s.n, &len);
        if (c < 0) len = 1;
        if (!strips(c, (struct sk_str){s.p, len}, set)) break;
        s.p += len;
        s.n -= len;
    }
    while (right && s.n) {
        size_t start = s.n - 1;
        while (start && s.n - start < 4 && ((unsigned char)s.p[start] & 0xC0) == 0x80) start--;
        const int32_t c = sk_utf8_decode(s.p + start, s.n - start, &len);
        if (c < 0) start = s.n - 1;
        if (!strips(c, (struct sk_str){s.p + start, s.n - start}, set)) break;
        s.n = start;
    }
    return s;
}

bool string_replace(struct render *r, int line, struct sk_str s, struct sk_str from, struct sk_str to, int64_t limit,
                    struct value *out) {
    struct sk_buf b = {.limit = 64 * 1024 * 1024};
    size_t at = 0;
    for (int64_t done = 0; limit < 0 || done < limit; done++) {
        const size_t hit = sk_str_find(s, from, at);
        if (hit == SIZE_MAX) break;
        sk_buf_append(&b, s.p + at, hit - at);
        sk_buf_str(&b, to);
        at = hit + from.n;
        if (from.n) continue;
        if (at >= s.n) { /* an empty string is found between all characters */
            at = s.n;
            break;
        }
        const size_t next = at + chars_offset((struct sk_str){s.p + at, s.n - at}, 1);
        sk_buf_append(&b, s.p + at, next - at);
        at = next;
    }
    sk_buf_append(&b, s.p + at, s.n - at);
    return take_string(r, line, &b, out);
}

bool string_join(struct render *r, int line, const struct list *l, struct sk_str separator, struct value *out) {
    struct sk_buf b = {.limit = 64 * 1024 * 1024};
    for (size_t i = 0; i < l->n; i++) {
        if (i) sk_buf_str(&b, separator);
        value_show(l->items[i], &b);
    }
    return take_string(r, line, &b, out);
}
