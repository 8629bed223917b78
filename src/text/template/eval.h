/* Evaluation: the state of one render, and what built-in functions are given. */
#ifndef SK_TEMPLATE_EVAL_H
#define SK_TEMPLATE_EVAL_H

#include "ast.h"

struct binding {
    struct sk_str name;
    struct value value;
};

/* Names visible in a block; a loop's or macro's scope hides, and is gone with, its block. */
struct scope {
    struct scope *parent;
    struct binding *names;
    size_t n, cap;
};

/* A macro and the scope it was defined in. */
struct closure {
    const struct node *node; /* N_MACRO or N_CALL_BLOCK: name, c, list */
    struct scope *scope;
};

struct render {
    struct sk_arena *arena; /* of values: freed with the render */
    struct scope *globals;
    struct sk_buf *out; /* where statements write: the result, or a block's text */
    int64_t now;
    size_t steps, output_bytes;
    int depth;
    struct sk_error *err;
};

struct keyword {
    struct sk_str name;
    struct value value;
};
struct arguments {
    struct value *items;
    size_t n;
    struct keyword *keywords;
    size_t n_keywords;
};
/* The argument at `index` or called `name`; NULL if not given. */
const struct value *argument(const struct arguments *a, size_t index, const char *name);

/* Fails with "line N: …"; always false. */
bool fail_at(struct render *r, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool out_of_memory(struct render *r, int line);

bool evaluate(struct render *r, struct scope *s, const struct node *n, struct value *out);
bool call_value(struct render *r, int line, struct value function, const struct arguments *a, struct value *out);
/* value.name as an attribute: a method, a dict's member, … Undefined if there is none. */
bool get_attribute(struct render *r, int line, struct value object, struct sk_str name, struct value *out);
bool get_item(struct render *r, int line, struct value object, struct value key, struct value *out);
/* What a for loop would walk: a list's items, a dict's keys, a string's characters. */
bool to_list(struct render *r, int line, struct value v, struct list **out);
/* A string value that owns a copy of the buffer, which is freed. */
bool take_string(struct render *r, int line, struct sk_buf *b, struct value *out);
bool contains(struct render *r, int line, struct value needle, struct value hay, bool *out);

/* builtins */
bool apply_filter(struct render *r, const struct node *n, struct value input, const struct arguments *a,
                  struct value *out);
bool apply_test(struct render *r, int line, struct sk_str name, struct value input, const struct arguments *a,
                bool *out);
bool has_method(struct value object, struct sk_str name);
bool call_method(struct render *r, int line, struct method *m, const struct arguments *a, struct value *out);
bool is_function(struct sk_str name, const char **canonical);
bool call_function(struct render *r, int line, const char *name, const struct arguments *a, struct value *out);

#endif
