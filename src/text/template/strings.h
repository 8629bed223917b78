/* Python's string operations, used by both filters and methods. */
#ifndef SK_TEMPLATE_STRINGS_H
#define SK_TEMPLATE_STRINGS_H

#include "eval.h"

enum letter_case { CASE_UPPER, CASE_LOWER, CASE_CAPITALIZE, CASE_TITLE };

bool string_case(struct render *r, int line, struct sk_str s, enum letter_case how, struct value *out);
/* Without the characters of `set` (white space if set.p is NULL) at the ends. */
struct sk_str string_strip(struct sk_str s, struct sk_str set, bool left, bool right);
bool string_replace(struct render *r, int line, struct sk_str s, struct sk_str from, struct sk_str to, int64_t limit,
                    struct value *out);
bool string_join(struct render *r, int line, const struct list *l, struct sk_str separator, struct value *out);
bool is_space_char(int32_t c);

#endif
