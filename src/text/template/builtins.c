/* Tests and global functions. */
#include <math.h>
#include <time.h>

#include "base/utf8.h"
#include "eval.h"

/* ---- tests ---------------------------------------------------------------------------------------------- */

static bool all_chars(struct sk_str s, bool (*is)(int32_t)) {
    bool any = false;
    for (size_t i = 0, len; i < s.n; i += len) {
        const int32_t c = sk_utf8_decode(s.p + i, s.n - i, &len);
        if (c < 0) len = 1;
        if (is(c)) any = true;
    }
    return any;
}
static bool is_upper_char(int32_t c) {
    return c >= 'A' && c <= 'Z';
}
static bool is_lower_char(int32_t c) {
    return c >= 'a' && c <= 'z';
}

static bool integer_of(struct value v, int64_t *out) {
    *out = v.kind == V_BOOL ? v.b : v.i;
    return v.kind == V_INT || v.kind == V_BOOL;
}

bool apply_test(struct render *r, int line, struct sk_str name, struct value v, const struct arguments *a, bool *out) {
    const struct value *other = argument(a, 0, "other");
    int64_t x = 0, y = 0;
    int order;
    const struct {
        const char *name;
        bool holds;
    } plain[] = {
        {"defined", v.kind != V_UNDEFINED},
        {"undefined", v.kind == V_UNDEFINED},
        {"none", v.kind == V_NONE},
        {"boolean", v.kind == V_BOOL},
        {"true", v.kind == V_BOOL && v.b},
        {"false", v.kind == V_BOOL && !v.b},
        {"integer", v.kind == V_INT},
        {"float", v.kind == V_FLOAT},
        {"number", value_is_number(v)},
        {"string", v.kind == V_STRING},
        {"mapping", v.kind == V_DICT},
        {"sequence", v.kind == V_LIST || v.kind == V_STRING || v.kind == V_DICT || v.kind == V_UNDEFINED},
        {"iterable", v.kind == V_LIST || v.kind == V_STRING || v.kind == V_DICT || v.kind == V_UNDEFINED},
        {"callable", v.kind == V_MACRO || v.kind == V_FUNCTION || v.kind == V_METHOD},
        {"upper", v.kind == V_STRING && all_chars(v.s, is_upper_char) && !all_chars(v.s, is_lower_char)},
        {"lower", v.kind == V_STRING && all_chars(v.s, is_lower_char) && !all_chars(v.s, is_upper_char)},
        {"even", integer_of(v, &x) && x % 2 == 0},
        {"odd", integer_of(v, &x) && x % 2 != 0},
        {"escaped", false},
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (!sk_str_is(name, plain[i].name)) continue;
        *out = plain[i].holds;
        return true;
    }
    static const struct {
        const char *name;
        char op;
    } comparing[] = {{"eq", '='}, {"equalto", '='}, {"==", '='},       {"sameas", '='},     {"ne", '!'},
                     {"!=", '!'}, {"lt", '<'},      {"lessthan", '<'}, {"gt", '>'},         {"greaterthan", '>'},
                     {"le", 'l'}, {"ge", 'g'},      {"in", 'i'},       {"divisibleby", 'd'}};
    for (size_t i = 0; i < sizeof comparing / sizeof *comparing; i++) {
        if (!sk_str_is(name, comparing[i].name)) continue;
        if (!other) return fail_at(r, line, "the test '%s' needs an argument", comparing[i].name);
        switch (comparing[i].op) {
        case '=': *out = value_equal(v, *other); return true;
        case '!': *out = !value_equal(v, *other); return true;
        case 'i': return contains(r, line, v, *other, out);
        case 'd':
            if (!integer_of(v, &x) || !integer_of(*other, &y) || y == 0)
                return fail_at(r, line, "divisibleby needs whole numbers and no zero");
            *out = y == -1 || x % y == 0;
            return true;
        default: break;
        }
        if (!value_compare(v, *other, &order))
            return fail_at(r, line, "%s and %s cannot be ordered", value_type_name(v), value_type_name(*other));
        *out = comparing[i].op == '<'
                   ? order < 0
                   : (comparing[i].op == '>' ? order > 0 : (comparing[i].op == 'l' ? order <= 0 : order >= 0));
        return true;
    }
    return fail_at(r, line, "the test '%.*s' is not supported", (int)name.n, name.p);
}

/* ---- functions ------------------------------------------------------------------------------------------ */

static const char *const functions[] = {"range", "namespace", "dict", "raise_exception", "strftime_now"};

bool is_function(struct sk_str name, const char **canonical) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!sk_str_is(name, functions[i])) continue;
        *canonical = functions[i];
        return true;
    }
    return false;
}

static bool call_range(struct render *r, int line, const struct arguments *a, struct value *out) {
    int64_t bounds[3] = {0, 0, 1};
    if (a->n < 1 || a->n > 3) return fail_at(r, line, "range takes one to three numbers");
    for (size_t i = 0; i < a->n; i++)
        if (!integer_of(a->items[i], &bounds[a->n == 1 ? 1 : i]))
            return fail_at(r, line, "range takes whole numbers, not %s", value_type_name(a->items[i]));
    if (bounds[2] == 0) return fail_at(r, line, "range cannot have the step 0");
    struct list *l = list_create(r->arena);
    if (!l) return out_of_memory(r, line);
    for (int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1];) {
        if (l->n >= 100000) return fail_at(r, line, "range is limited to 100000 numbers");
        if (!list_push(r->arena, l, value_int(i))) return out_of_memory(r, line);
        if (__builtin_add_overflow(i, bounds[2], &i)) break;
    }
    *out = (struct value){.kind = V_LIST, .list = l};
    return true;
}

static bool call_dict(struct render *r, int line, const struct arguments *a, enum value_kind kind, struct value *out) {
    struct dict *d = dict_create(r->arena);
    bool ok = d != NULL;
    if (a->n && a->items[0].kind == V_DICT)
        for (size_t i = 0; ok && i < a->items[0].dict->n; i++)
            ok = dict_set(r->arena, d, a->items[0].dict->entries[i].key, a->items[0].dict->entries[i].value);
    for (size_t i = 0; ok && i < a->n_keywords; i++)
        ok = dict_set(r->arena, d, value_str(a->keywords[i].name), a->keywords[i].value);
    *out = (struct value){.kind = kind, .dict = d};
    return ok ? true : out_of_memory(r, line);
}

static bool call_strftime(struct render *r, int line, const struct arguments *a, struct value *out) {
    char format[256], text[512] = "";
    struct tm tm;
    const time_t now = (time_t)r->now;
    if (a->n != 1 || a->items[0].kind != V_STRING || a->items[0].s.n >= sizeof format)
        return fail_at(r, line, "strftime_now takes one short format string");
    memcpy(format, a->items[0].s.p, a->items[0].s.n);
    format[a->items[0].s.n] = '\0';
    if (!localtime_r(&now, &tm)) return fail_at(r, line, "the time cannot be told");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    strftime(text, sizeof text, format, &tm);
#pragma GCC diagnostic pop
    struct sk_buf b = {0};
    sk_buf_puts(&b, text);
    return take_string(r, line, &b, out);
}

bool call_function(struct render *r, int line, const char *name, const struct arguments *a, struct value *out) {
    const struct sk_str n = sk_str_of(name);
    if (sk_str_is(n, "range")) return call_range(r, line, a, out);
    if (sk_str_is(n, "namespace")) return call_dict(r, line, a, V_NAMESPACE, out);
    if (sk_str_is(n, "dict")) return call_dict(r, line, a, V_DICT, out);
    if (sk_str_is(n, "strftime_now")) return call_strftime(r, line, a, out);
    struct sk_buf message = {0};
    if (a->n) value_show(a->items[0], &message);
    fail_at(r, line, "the template says: %s", message.data ? message.data : "");
    sk_buf_free(&message);
    return false;
}
