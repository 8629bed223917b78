#include "value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

enum { MAX_DEPTH = 100 };

struct list *list_create(struct sk_arena *arena) {
    return sk_arena_alloc(arena, sizeof(struct list));
}
struct dict *dict_create(struct sk_arena *arena) {
    return sk_arena_alloc(arena, sizeof(struct dict));
}

static void *grown(struct sk_arena *arena, const void *old, size_t n, size_t *cap, size_t size) {
    const size_t bigger = *cap ? *cap * 2 : 4;
    void *p = sk_arena_array(arena, bigger, size);
    if (!p) return NULL;
    if (n) memcpy(p, old, n * size);
    *cap = bigger;
    return p;
}

bool list_push(struct sk_arena *arena, struct list *l, struct value v) {
    if (l->n == l->cap) {
        struct value *items = grown(arena, l->items, l->n, &l->cap, sizeof *items);
        if (!items) return false;
        l->items = items;
    }
    l->items[l->n++] = v;
    return true;
}

struct value *dict_get(const struct dict *d, struct value key) {
    for (size_t i = 0; i < d->n; i++)
        if (value_equal(d->entries[i].key, key)) return &d->entries[i].value;
    return NULL;
}

bool dict_set(struct sk_arena *arena, struct dict *d, struct value key, struct value v) {
    struct value *old = dict_get(d, key);
    if (old) {
        *old = v;
        return true;
    }
    if (d->n == d->cap) {
        struct dict_entry *entries = grown(arena, d->entries, d->n, &d->cap, sizeof *entries);
        if (!entries) return false;
        d->entries = entries;
    }
    d->entries[d->n++] = (struct dict_entry){key, v};
    return true;
}

bool value_from_json(struct sk_arena *arena, json_t *json, int depth, struct value *out) {
    if (depth > MAX_DEPTH) return false;
    switch (json_typeof(json)) {
    case JSON_OBJECT: {
        struct dict *d = dict_create(arena);
        const char *key;
        json_t *member;
        if (!d) return false;
        json_object_foreach(json, key, member) {
            struct value v;
            const struct sk_str name = sk_str_of(key);
            const char *copy = sk_arena_copy(arena, name);
            if (!copy || !value_from_json(arena, member, depth + 1, &v)) return false;
            if (!dict_set(arena, d, value_str((struct sk_str){copy, name.n}), v)) return false;
        }
        *out = (struct value){.kind = V_DICT, .dict = d};
        return true;
    }
    case JSON_ARRAY: {
        struct list *l = list_create(arena);
        size_t i;
        json_t *item;
        if (!l) return false;
        json_array_foreach(json, i, item) {
            struct value v;
            if (!value_from_json(arena, item, depth + 1, &v) || !list_push(arena, l, v)) return false;
        }
        *out = (struct value){.kind = V_LIST, .list = l};
        return true;
    }
    case JSON_STRING: {
        const struct sk_str s = {json_string_value(json), json_string_length(json)};
        const char *copy = sk_arena_copy(arena, s);
        *out = value_str((struct sk_str){copy, s.n});
        return copy != NULL;
    }
    case JSON_INTEGER: *out = value_int(json_integer_value(json)); return true;
    case JSON_REAL: *out = value_float(json_real_value(json)); return true;
    case JSON_TRUE: *out = value_bool(true); return true;
    case JSON_FALSE: *out = value_bool(false); return true;
    default: *out = value_none(); return true;
    }
}

bool value_is_true(struct value v) {
    switch (v.kind) {
    case V_UNDEFINED:
    case V_NONE: return false;
    case V_BOOL: return v.b;
    case V_INT: return v.i != 0;
    case V_FLOAT: return v.f != 0.0;
    case V_STRING: return v.s.n != 0;
    case V_LIST: return v.list->n != 0;
    case V_DICT: return v.dict->n != 0;
    default: return true;
    }
}

double value_number(struct value v) {
    return v.kind == V_FLOAT ? v.f : (v.kind == V_BOOL ? (double)v.b : (double)v.i);
}

static int64_t as_int(struct value v) {
    return v.kind == V_BOOL ? v.b : v.i;
}

bool value_equal(struct value a, struct value b) {
    if (value_is_number(a) && value_is_number(b))
        return a.kind == V_FLOAT || b.kind == V_FLOAT ? value_number(a) == value_number(b) : as_int(a) == as_int(b);
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case V_STRING: return sk_str_eq(a.s, b.s);
    case V_LIST:
        if (a.list == b.list) return true;
        if (a.list->n != b.list->n) return false;
        for (size_t i = 0; i < a.list->n; i++)
            if (!value_equal(a.list->items[i], b.list->items[i])) return false;
        return true;
    case V_DICT:
        if (a.dict == b.dict) return true;
        if (a.dict->n != b.dict->n) return false;
        for (size_t i = 0; i < a.dict->n; i++) {
            const struct value *other = dict_get(b.dict, a.dict->entries[i].key);
            if (!other || !value_equal(a.dict->entries[i].value, *other)) return false;
        }
        return true;
    case V_NAMESPACE: return a.dict == b.dict;
    case V_MACRO: return a.macro == b.macro;
    case V_FUNCTION: return a.function == b.function;
    case V_METHOD: return a.method == b.method;
    default: return true; /* none, undefined */
    }
}

bool value_compare(struct value a, struct value b, int *out) {
    if (value_is_number(a) && value_is_number(b)) {
        const double x = value_number(a), y = value_number(b);
        *out = (x > y) - (x < y);
        return true;
    }
    if (a.kind == V_STRING && b.kind == V_STRING) { /* byte order of UTF-8 is code point order */
        const int c = sk_str_compare(a.s, b.s);
        *out = (c > 0) - (c < 0);
        return true;
    }
    if (a.kind == V_LIST && b.kind == V_LIST) {
        for (size_t i = 0; i < a.list->n && i < b.list->n; i++) {
            if (value_equal(a.list->items[i], b.list->items[i])) continue;
            return value_compare(a.list->items[i], b.list->items[i], out);
        }
        *out = (a.list->n > b.list->n) - (a.list->n < b.list->n);
        return true;
    }
    return false;
}

const char *value_type_name(struct value v) {
    static const char *const names[] = {"undefined", "None", "bool",      "int",   "float",    "str",
                                        "list",      "dict", "namespace", "macro", "function", "method"};
    return names[v.kind];
}

/* ---- text ---------------------------------------------------------------------------------------------- */

/* Python's repr of a float: the shortest digits that read back, with an exponent from 1e16 on and below 1e-4. */
static void show_float(double f, struct sk_buf *out) {
    if (isnan(f) || isinf(f)) {
        sk_buf_puts(out, isnan(f) ? "nan" : (f < 0 ? "-inf" : "inf"));
        return;
    }
    char digits[40];
    int precision = 1;
    for (; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*e", precision - 1, f);
        if (strtod(digits, NULL) == f) break;
    }
    const char *e = strchr(digits, 'e');
    const int exponent = e ? atoi(e + 1) : 0;
    if (exponent < -4 || exponent >= 16) {
        snprintf(digits, sizeof digits, "%.*e", precision - 1, f);
        sk_buf_puts(out, digits);
        return;
    }
    const int decimals = precision - 1 - exponent;
    snprintf(digits, sizeof digits, "%.*f", decimals > 0 ? decimals : 1, f);
    sk_buf_puts(out, digits);
}

void value_show(struct value v, struct sk_buf *out) {
    if (v.kind == V_UNDEFINED) return;
    if (v.kind == V_STRING)
        sk_buf_str(out, v.s);
    else
        value_repr(v, out, 0);
}

static void repr_string(struct sk_str s, struct sk_buf *out) {
    const bool single = memchr(s.p, '\'', s.n) != NULL, twice = memchr(s.p, '"', s.n) != NULL;
    const char quote = single && !twice ? '"' : '\'';
    sk_buf_putc(out, quote);
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.p[i];
        if (c == '\n')
            sk_buf_puts(out, "\\n");
        else if (c == '\r')
            sk_buf_puts(out, "\\r");
        else if (c == '\t')
            sk_buf_puts(out, "\\t");
        else if (c == '\\' || c == (unsigned char)quote)
            sk_buf_printf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            sk_buf_printf(out, "\\x%02x", c);
        else
            sk_buf_putc(out, (char)c);
    }
    sk_buf_putc(out, quote);
}

void value_repr(struct value v, struct sk_buf *out, int depth) {
    if (depth > MAX_DEPTH) {
        sk_buf_puts(out, "...");
        return;
    }
    switch (v.kind) {
    case V_UNDEFINED: sk_buf_puts(out, "Undefined"); return;
    case V_NONE: sk_buf_puts(out, "None"); return;
    case V_BOOL: sk_buf_puts(out, v.b ? "True" : "False"); return;
    case V_INT: sk_buf_printf(out, "%" PRId64, v.i); return;
    case V_FLOAT: show_float(v.f, out); return;
    case V_STRING: repr_string(v.s, out); return;
    case V_LIST:
        sk_buf_putc(out, v.tuple ? '(' : '[');
        for (size_t i = 0; i < v.list->n; i++) {
            if (i) sk_buf_puts(out, ", ");
            value_repr(v.list->items[i], out, depth + 1);
        }
        if (v.tuple && v.list->n == 1) sk_buf_putc(out, ',');
        sk_buf_putc(out, v.tuple ? ')' : ']');
        return;
    case V_DICT:
        sk_buf_putc(out, '{');
        for (size_t i = 0; i < v.dict->n; i++) {
            if (i) sk_buf_puts(out, ", ");
            value_repr(v.dict->entries[i].key, out, depth + 1);
            sk_buf_puts(out, ": ");
            value_repr(v.dict->entries[i].value, out, depth + 1);
        }
        sk_buf_putc(out, '}');
        return;
    default: sk_buf_printf(out, "<%s>", value_type_name(v)); return;
    }
}

static void write_string(struct sk_str s, struct sk_buf *out) {
    sk_buf_putc(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.p[i];
        switch (c) {
        case '"': sk_buf_puts(out, "\\\""); break;
        case '\\': sk_buf_puts(out, "\\\\"); break;
        case '\n': sk_buf_puts(out, "\\n"); break;
        case '\r': sk_buf_puts(out, "\\r"); break;
        case '\t': sk_buf_puts(out, "\\t"); break;
        case '\b': sk_buf_puts(out, "\\b"); break;
        case '\f': sk_buf_puts(out, "\\f"); break;
        default:
            if (c < 0x20)
                sk_buf_printf(out, "\\u%04x", c);
            else
                sk_buf_putc(out, (char)c);
        }
    }
    sk_buf_putc(out, '"');
}

static void new_line(struct sk_buf *out, int indent, int depth) {
    if (indent < 0) return;
    sk_buf_putc(out, '\n');
    for (int i = 0; i < indent * depth; i++) sk_buf_putc(out, ' ');
}

static bool json_key(struct value key, struct sk_buf *out) {
    if (key.kind == V_STRING) {
        write_string(key.s, out);
        return true;
    }
    if (key.kind != V_NONE && !value_is_number(key)) return false;
    sk_buf_putc(out, '"');
    const bool ok = value_to_json(key, -1, false, 0, out);
    sk_buf_putc(out, '"');
    return ok;
}

static int by_key(const void *a, const void *b) {
    const struct dict_entry *x = a, *y = b;
    int c = 0;
    value_compare(x->key, y->key, &c);
    return c;
}

bool value_to_json(struct value v, int indent, bool sort_keys, int depth, struct sk_buf *out) {
    if (depth > MAX_DEPTH) return false;
    switch (v.kind) {
    case V_NONE: sk_buf_puts(out, "null"); return true;
    case V_BOOL: sk_buf_puts(out, v.b ? "true" : "false"); return true;
    case V_INT: sk_buf_printf(out, "%" PRId64, v.i); return true;
    case V_FLOAT:
        if (isnan(v.f) || isinf(v.f))
            sk_buf_puts(out, isnan(v.f) ? "NaN" : (v.f < 0 ? "-Infinity" : "Infinity"));
        else
            show_float(v.f, out);
        return true;
    case V_STRING: write_string(v.s, out); return true;
    case V_LIST:
        sk_buf_putc(out, '[');
        for (size_t i = 0; i < v.list->n; i++) {
            if (i) sk_buf_puts(out, indent < 0 ? ", " : ",");
            new_line(out, indent, depth + 1);
            if (!value_to_json(v.list->items[i], indent, sort_keys, depth + 1, out)) return false;
        }
        if (v.list->n) new_line(out, indent, depth);
        sk_buf_putc(out, ']');
        return true;
    case V_DICT: {
        struct dict_entry *entries = v.dict->entries, *sorted = NULL;
        if (sort_keys && v.dict->n) {
            if (!(sorted = malloc(v.dict->n * sizeof *sorted))) return false;
            memcpy(sorted, entries, v.dict->n * sizeof *sorted);
            qsort(sorted, v.dict->n, sizeof *sorted, by_key);
            entries = sorted;
        }
        bool ok = true;
        sk_buf_putc(out, '{');
        for (size_t i = 0; i < v.dict->n && ok; i++) {
            if (i) sk_buf_puts(out, indent < 0 ? ", " : ",");
            new_line(out, indent, depth + 1);
            ok = json_key(entries[i].key, out);
            sk_buf_puts(out, ": ");
            ok = ok && value_to_json(entries[i].value, indent, sort_keys, depth + 1, out);
        }
        free(sorted);
        if (v.dict->n) new_line(out, indent, depth);
        sk_buf_putc(out, '}');
        return ok;
    }
    default: return false;
    }
}

size_t chars_count(struct sk_str s) {
    size_t n = 0;
    for (size_t i = 0, len; i < s.n; i += len, n++)
        if (sk_utf8_decode(s.p + i, s.n - i, &len) < 0) len = 1;
    return n;
}

size_t chars_offset(struct sk_str s, size_t index) {
    size_t i = 0;
    for (size_t len; index && i < s.n; i += len, index--)
        if (sk_utf8_decode(s.p + i, s.n - i, &len) < 0) len = 1;
    return i;
}
