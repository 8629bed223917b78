/* Values of the template language: Python's, as far as templates see them. All memory is the render's arena. */
#ifndef SK_TEMPLATE_VALUE_H
#define SK_TEMPLATE_VALUE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

#include <jansson.h>

enum value_kind {
    V_UNDEFINED,
    V_NONE,
    V_BOOL,
    V_INT,
    V_FLOAT,
    V_STRING,
    V_LIST,
    V_DICT,
    V_NAMESPACE,
    V_MACRO,
    V_FUNCTION,
    V_METHOD
};

struct value {
    enum value_kind kind;
    bool tuple; /* of a list: shown with parentheses */
    union {
        bool b;
        int64_t i;
        double f;
        struct sk_str s; /* also an undefined value's name */
        struct list *list;
        struct dict *dict; /* V_DICT and V_NAMESPACE */
        const struct closure *macro;
        const char *function;
        struct method *method;
    };
};

struct list {
    struct value *items;
    size_t n, cap;
};

struct dict_entry {
    struct value key, value;
};
struct dict {
    struct dict_entry *entries; /* in insertion order */
    size_t n, cap;
};

/* A method taken from an object: value.name, not called yet. */
struct method {
    struct value self;
    struct sk_str name;
};

static inline struct value value_none(void) {
    return (struct value){.kind = V_NONE};
}
static inline struct value value_undefined(struct sk_str name) {
    return (struct value){.kind = V_UNDEFINED, .s = name};
}
static inline struct value value_bool(bool b) {
    return (struct value){.kind = V_BOOL, .b = b};
}
static inline struct value value_int(int64_t i) {
    return (struct value){.kind = V_INT, .i = i};
}
static inline struct value value_float(double f) {
    return (struct value){.kind = V_FLOAT, .f = f};
}
static inline struct value value_str(struct sk_str s) {
    return (struct value){.kind = V_STRING, .s = s};
}

/* NULL / false when the arena is exhausted. */
struct list *list_create(struct sk_arena *arena);
bool list_push(struct sk_arena *arena, struct list *l, struct value v);
struct dict *dict_create(struct sk_arena *arena);
bool dict_set(struct sk_arena *arena, struct dict *d, struct value key, struct value v);
struct value *dict_get(const struct dict *d, struct value key); /* NULL if absent */

bool value_from_json(struct sk_arena *arena, json_t *json, int depth, struct value *out);

bool value_is_true(struct value v);
bool value_equal(struct value a, struct value b);
/* -1, 0, 1; false if the two cannot be ordered. */
bool value_compare(struct value a, struct value b, int *out);
static inline bool value_is_number(struct value v) {
    return v.kind == V_INT || v.kind == V_FLOAT || v.kind == V_BOOL;
}
double value_number(struct value v);
const char *value_type_name(struct value v);

/* str(v) and repr(v) */
void value_show(struct value v, struct sk_buf *out);
void value_repr(struct value v, struct sk_buf *out, int depth);
/* json.dumps(v, ensure_ascii=False); indent < 0: on one line. False if v holds something that JSON lacks. */
bool value_to_json(struct value v, int indent, bool sort_keys, int depth, struct sk_buf *out);

/* Characters (code points) of a string, and the byte offset of one; bad bytes count as one each. */
size_t chars_count(struct sk_str s);
size_t chars_offset(struct sk_str s, size_t index);

#endif
