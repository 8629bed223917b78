/* Filters. */
#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "eval.h"
#include "strings.h"

struct filter_call {
    struct render *r;
    int line;
    struct sk_str name;
    struct value in;
    const struct arguments *a;
    struct value *out;
};

static bool give(struct filter_call *f, struct value v) {
    *f->out = v;
    return true;
}
static bool wrong(struct filter_call *f, const char *wanted) {
    return fail_at(f->r, f->line, "the filter '%.*s' needs %s, not %s", (int)f->name.n, f->name.p, wanted,
                   value_type_name(f->in));
}
static bool walk(struct filter_call *f, struct list **out) {
    return to_list(f->r, f->line, f->in, out);
}
static bool new_list(struct filter_call *f, struct list **l) {
    *l = list_create(f->r->arena);
    *f->out = (struct value){.kind = V_LIST, .list = *l};
    return *l ? true : out_of_memory(f->r, f->line);
}
static bool push(struct filter_call *f, struct list *l, struct value v) {
    return list_push(f->r->arena, l, v) ? true : out_of_memory(f->r, f->line);
}

/* The input as text, as filters on strings take it. */
static bool text_of(struct filter_call *f, struct sk_str *out) {
    struct value v = f->in;
    struct sk_buf b = {0};
    if (v.kind != V_STRING) {
        value_show(f->in, &b);
        if (!take_string(f->r, f->line, &b, &v)) return false;
    }
    *out = v.s;
    return true;
}

static bool flag(const struct filter_call *f, size_t i, const char *name, bool fallback) {
    const struct value *v = argument(f->a, i, name);
    return v ? value_is_true(*v) : fallback;
}
static int64_t number(const struct filter_call *f, size_t i, const char *name, int64_t fallback) {
    const struct value *v = argument(f->a, i, name);
    return v && v->kind == V_INT ? v->i : fallback;
}
static struct sk_str string(const struct filter_call *f, size_t i, const char *name, const char *fallback) {
    const struct value *v = argument(f->a, i, name);
    return v && v->kind == V_STRING ? v->s : sk_str_of(fallback);
}

/* ---- strings -------------------------------------------------------------------------------------------- */

static bool filter_case(struct filter_call *f) {
    struct sk_str s;
    const enum letter_case how =
        f->name.p[0] == 'u' ? CASE_UPPER
                            : (f->name.p[0] == 'l' ? CASE_LOWER : (f->name.p[0] == 't' ? CASE_TITLE : CASE_CAPITALIZE));
    return text_of(f, &s) && string_case(f->r, f->line, s, how, f->out);
}

static bool filter_trim(struct filter_call *f) {
    struct sk_str s;
    const struct value *set = argument(f->a, 0, "chars");
    return text_of(f, &s) &&
           give(f, value_str(
                       string_strip(s, set && set->kind == V_STRING ? set->s : (struct sk_str){NULL, 0}, true, true)));
}

static bool filter_replace(struct filter_call *f) {
    struct sk_str s;
    if (f->a->n < 2) return wrong(f, "two strings");
    return text_of(f, &s) && string_replace(f->r, f->line, s, string(f, 0, "old", ""), string(f, 1, "new", ""),
                                            number(f, 2, "count", -1), f->out);
}

static bool filter_string(struct filter_call *f) {
    struct sk_str s;
    return text_of(f, &s) && give(f, value_str(s));
}

static bool filter_indent(struct filter_call *f) {
    struct sk_str s, pad;
    struct sk_buf b = {.limit = 64 * 1024 * 1024};
    const struct value *width = argument(f->a, 0, "width");
    const bool first = flag(f, 1, "first", false), blank = flag(f, 2, "blank", false);
    char spaces[128];
    if (!text_of(f, &s)) return false;
    const int64_t n = width && width->kind == V_INT ? width->i : 4;
    if (n < 0 || n > (int64_t)sizeof spaces) return wrong(f, "a width from 0 to 128");
    memset(spaces, ' ', sizeof spaces);
    pad = width && width->kind == V_STRING ? width->s : (struct sk_str){spaces, (size_t)n};
    for (size_t start = 0, number_of = 0; start <= s.n; number_of++) {
        size_t end = sk_str_find(s, sk_str_of("\n"), start);
        if (end == SIZE_MAX) end = s.n;
        if ((number_of || first) && (end > start || blank)) sk_buf_str(&b, pad);
        sk_buf_append(&b, s.p + start, end - start);
        if (end < s.n) sk_buf_putc(&b, '\n');
        start = end + 1;
    }
    return take_string(f->r, f->line, &b, f->out);
}

static bool filter_escape(struct filter_call *f) {
    struct sk_str s;
    struct sk_buf b = {0};
    if (!text_of(f, &s)) return false;
    for (size_t i = 0; i < s.n; i++) {
        switch (s.p[i]) {
        case '&': sk_buf_puts(&b, "&amp;"); break;
        case '<': sk_buf_puts(&b, "&lt;"); break;
        case '>': sk_buf_puts(&b, "&gt;"); break;
        case '"': sk_buf_puts(&b, "&#34;"); break;
        case '\'': sk_buf_puts(&b, "&#39;"); break;
        default: sk_buf_putc(&b, s.p[i]);
        }
    }
    return take_string(f->r, f->line, &b, f->out);
}

static bool filter_wordcount(struct filter_call *f) {
    struct sk_str s;
    int64_t n = 0;
    bool inside = false;
    if (!text_of(f, &s)) return false;
    for (size_t i = 0; i < s.n; i++) {
        const bool space = is_space_char((unsigned char)s.p[i]);
        n += !space && !inside;
        inside = !space;
    }
    return give(f, value_int(n));
}

static bool filter_tojson(struct filter_call *f) {
    struct sk_buf b = {.limit = 64 * 1024 * 1024};
    const struct value *indent = argument(f->a, 1, "indent");
    /* transformers' own tojson takes (ensure_ascii, indent, separators, sort_keys); Jinja's first argument is indent.
     */
    if (!indent && f->a->n == 1 && f->a->items[0].kind == V_INT) indent = &f->a->items[0];
    if (argument(f->a, 2, "separators")) return fail_at(f->r, f->line, "tojson's separators are not supported");
    const int width = indent && indent->kind == V_INT && indent->i >= 0 && indent->i <= 64 ? (int)indent->i : -1;
    if (value_to_json(f->in, width, flag(f, 3, "sort_keys", false), 0, &b))
        return take_string(f->r, f->line, &b, f->out);
    sk_buf_free(&b);
    return wrong(f, "something that JSON can hold");
}

/* ---- numbers -------------------------------------------------------------------------------------------- */

static bool filter_int(struct filter_call *f) {
    const int64_t fallback = number(f, 0, "default", 0);
    if (f->in.kind == V_INT || f->in.kind == V_BOOL) return give(f, value_int(f->in.kind == V_INT ? f->in.i : f->in.b));
    if (f->in.kind == V_FLOAT && fabs(f->in.f) < 9e18) return give(f, value_int((int64_t)f->in.f));
    if (f->in.kind != V_STRING) return give(f, value_int(fallback));
    const struct sk_str s = string_strip(f->in.s, (struct sk_str){NULL, 0}, true, true);
    char digits[64], *end;
    if (s.n == 0 || s.n >= sizeof digits) return give(f, value_int(fallback));
    memcpy(digits, s.p, s.n);
    digits[s.n] = '\0';
    const long long i = strtoll(digits, &end, 10);
    if (*end == '\0') return give(f, value_int(i));
    const double d = strtod(digits, &end);
    return give(f, value_int(*end == '\0' && fabs(d) < 9e18 ? (int64_t)d : fallback));
}

static bool filter_float(struct filter_call *f) {
    const struct value *fallback = argument(f->a, 0, "default");
    if (value_is_number(f->in)) return give(f, value_float(value_number(f->in)));
    char digits[64], *end;
    if (f->in.kind == V_STRING && f->in.s.n && f->in.s.n < sizeof digits) {
        memcpy(digits, f->in.s.p, f->in.s.n);
        digits[f->in.s.n] = '\0';
        const double d = strtod(digits, &end);
        if (*end == '\0') return give(f, value_float(d));
    }
    return give(f, fallback ? *fallback : value_float(0.0));
}

static bool filter_abs(struct filter_call *f) {
    if (!value_is_number(f->in)) return wrong(f, "a number");
    if (f->in.kind == V_FLOAT) return give(f, value_float(fabs(f->in.f)));
    return give(f, value_int(f->in.kind == V_INT && f->in.i < 0 ? (int64_t)(0 - (uint64_t)f->in.i)
                                                                : (f->in.kind == V_INT ? f->in.i : f->in.b)));
}

static bool filter_round(struct filter_call *f) {
    if (!value_is_number(f->in)) return wrong(f, "a number");
    const int64_t digits = number(f, 0, "precision", 0);
    const struct sk_str method = string(f, 1, "method", "common");
    const double scale = pow(10.0, (double)digits), x = value_number(f->in) * scale;
    const double rounded = sk_str_is(method, "ceil") ? ceil(x) : (sk_str_is(method, "floor") ? floor(x) : nearbyint(x));
    return give(f, value_float(rounded / scale));
}

/* ---- sequences ------------------------------------------------------------------------------------------ */

static bool filter_length(struct filter_call *f) {
    switch (f->in.kind) {
    case V_STRING: return give(f, value_int((int64_t)chars_count(f->in.s)));
    case V_LIST: return give(f, value_int((int64_t)f->in.list->n));
    case V_DICT: return give(f, value_int((int64_t)f->in.dict->n));
    case V_UNDEFINED: return give(f, value_int(0));
    default: return wrong(f, "something with a length");
    }
}

static bool filter_end(struct filter_call *f) {
    struct list *l;
    if (!walk(f, &l)) return false;
    return give(f,
                l->n ? l->items[f->name.p[0] == 'f' ? 0 : l->n - 1] : value_undefined(sk_str_of("an item of nothing")));
}

static bool filter_list(struct filter_call *f) {
    struct list *l, *copy;
    if (!walk(f, &l) || !new_list(f, &copy)) return false;
    for (size_t i = 0; i < l->n; i++)
        if (!push(f, copy, l->items[i])) return false;
    return true;
}

static bool filter_reverse(struct filter_call *f) {
    struct list *l, *reversed;
    struct sk_buf b = {0};
    if (!walk(f, &l) || !new_list(f, &reversed)) return false;
    for (size_t i = l->n; i-- > 0;)
        if (!push(f, reversed, l->items[i])) return false;
    if (f->in.kind != V_STRING) return true;
    for (size_t i = 0; i < reversed->n; i++) sk_buf_str(&b, reversed->items[i].s);
    return take_string(f->r, f->line, &b, f->out);
}

/* item.a.b for an attribute "a.b"; the item itself for none. */
static bool attribute_of(struct filter_call *f, struct value item, const struct value *path, struct value *out) {
    *out = item;
    if (!path || path->kind == V_NONE) return true;
    if (path->kind == V_INT) return get_item(f->r, f->line, item, *path, out);
    if (path->kind != V_STRING) return wrong(f, "an attribute's name");
    for (struct sk_str rest = path->s; rest.n;) {
        size_t dot = sk_str_find(rest, sk_str_of("."), 0);
        if (dot == SIZE_MAX) dot = rest.n;
        const struct sk_str part = {rest.p, dot};
        if (!get_item(f->r, f->line, *out, value_str(part), out)) return false;
        rest = dot < rest.n ? (struct sk_str){rest.p + dot + 1, rest.n - dot - 1} : (struct sk_str){"", 0};
    }
    return true;
}

static bool filter_join(struct filter_call *f) {
    struct list *l, *picked;
    const struct value *path = argument(f->a, 1, "attribute");
    if (!walk(f, &l) || !new_list(f, &picked)) return false;
    for (size_t i = 0; i < l->n; i++) {
        struct value v;
        if (!attribute_of(f, l->items[i], path, &v) || !push(f, picked, v)) return false;
    }
    return string_join(f->r, f->line, picked, string(f, 0, "d", ""), f->out);
}

/* How two strings compare where case does not count. */
static bool folded(struct filter_call *f, struct value v, bool case_sensitive, struct value *out) {
    *out = v;
    return case_sensitive || v.kind != V_STRING || string_case(f->r, f->line, v.s, CASE_LOWER, out);
}

/* A stable merge sort: keys[i] belongs to items[i]. */
static bool sort(struct filter_call *f, struct value *items, struct value *keys, size_t n, bool reverse) {
    struct value *other_items = sk_arena_array(f->r->arena, n, sizeof *items),
                 *other_keys = sk_arena_array(f->r->arena, n, sizeof *keys);
    if (!other_items || !other_keys) return out_of_memory(f->r, f->line);
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t start = 0; start < n; start += 2 * width) {
            const size_t mid = start + width < n ? start + width : n,
                         end = start + 2 * width < n ? start + 2 * width : n;
            for (size_t i = start, j = mid, k = start; k < end; k++) {
                int order = 0;
                if (i < mid && j < end && !value_compare(keys[i], keys[j], &order))
                    return fail_at(f->r, f->line, "%s and %s cannot be ordered", value_type_name(keys[i]),
                                   value_type_name(keys[j]));
                const bool left = j >= end || (i < mid && (reverse ? order >= 0 : order <= 0));
                other_items[k] = left ? items[i] : items[j];
                other_keys[k] = left ? keys[i++] : keys[j++];
            }
        }
        memcpy(items, other_items, n * sizeof *items);
        memcpy(keys, other_keys, n * sizeof *keys);
    }
    return true;
}

static bool filter_sort(struct filter_call *f) {
    struct list *l, *sorted, *keys = list_create(f->r->arena);
    const bool reverse = flag(f, 0, "reverse", false), sensitive = flag(f, 1, "case_sensitive", false);
    const struct value *path = argument(f->a, 2, "attribute");
    if (!keys) return out_of_memory(f->r, f->line);
    if (!walk(f, &l) || !new_list(f, &sorted)) return false;
    for (size_t i = 0; i < l->n; i++) {
        struct value key;
        if (!attribute_of(f, l->items[i], path, &key) || !folded(f, key, sensitive, &key)) return false;
        if (!push(f, sorted, l->items[i]) || !push(f, keys, key)) return false;
    }
    return sorted->n < 2 || sort(f, sorted->items, keys->items, sorted->n, reverse);
}

static bool pairs_of(struct filter_call *f, struct list **out) {
    if (f->in.kind != V_DICT) return wrong(f, "a dict");
    if (!new_list(f, out)) return false;
    for (size_t i = 0; i < f->in.dict->n; i++) {
        struct list *pair = list_create(f->r->arena);
        if (!pair || !list_push(f->r->arena, pair, f->in.dict->entries[i].key) ||
            !list_push(f->r->arena, pair, f->in.dict->entries[i].value))
            return out_of_memory(f->r, f->line);
        if (!push(f, *out, (struct value){.kind = V_LIST, .tuple = true, .list = pair})) return false;
    }
    return true;
}

static bool filter_items(struct filter_call *f) {
    struct list *pairs;
    if (f->in.kind == V_UNDEFINED) return new_list(f, &pairs);
    return pairs_of(f, &pairs);
}

static bool filter_dictsort(struct filter_call *f) {
    struct list *pairs, *keys = list_create(f->r->arena);
    const bool sensitive = flag(f, 0, "case_sensitive", false),
               by_value = sk_str_is(string(f, 1, "by", "key"), "value"), reverse = flag(f, 2, "reverse", false);
    if (!keys) return out_of_memory(f->r, f->line);
    if (!pairs_of(f, &pairs)) return false;
    for (size_t i = 0; i < pairs->n; i++) {
        struct value key;
        if (!folded(f, pairs->items[i].list->items[by_value], sensitive, &key) || !push(f, keys, key)) return false;
    }
    return pairs->n < 2 || sort(f, pairs->items, keys->items, pairs->n, reverse);
}

static bool filter_unique(struct filter_call *f) {
    struct list *l, *kept, *seen = list_create(f->r->arena);
    const bool sensitive = flag(f, 0, "case_sensitive", false);
    const struct value *path = argument(f->a, 1, "attribute");
    if (!seen) return out_of_memory(f->r, f->line);
    if (!walk(f, &l) || !new_list(f, &kept)) return false;
    for (size_t i = 0; i < l->n; i++) {
        struct value key;
        bool known = false;
        if (!attribute_of(f, l->items[i], path, &key) || !folded(f, key, sensitive, &key)) return false;
        for (size_t j = 0; j < seen->n && !known; j++) known = value_equal(seen->items[j], key);
        if (!known && (!push(f, seen, key) || !push(f, kept, l->items[i]))) return false;
    }
    return true;
}

static bool filter_extreme(struct filter_call *f) {
    struct list *l;
    const struct value *path = argument(f->a, 1, "attribute");
    struct value best = value_undefined(sk_str_of("the extreme of nothing")), best_key = best;
    if (!walk(f, &l)) return false;
    for (size_t i = 0; i < l->n; i++) {
        struct value key;
        int order = 0;
        if (!attribute_of(f, l->items[i], path, &key)) return false;
        if (i && !value_compare(key, best_key, &order))
            return fail_at(f->r, f->line, "%s and %s cannot be ordered", value_type_name(key),
                           value_type_name(best_key));
        if (i == 0 || (sk_str_is(f->name, "max") ? order > 0 : order < 0)) best = l->items[i], best_key = key;
    }
    return give(f, best);
}

static bool filter_sum(struct filter_call *f) {
    struct list *l;
    const struct value *path = argument(f->a, 0, "attribute"), *start = argument(f->a, 1, "start");
    struct value total = start ? *start : value_int(0);
    if (!walk(f, &l)) return false;
    for (size_t i = 0; i < l->n; i++) {
        struct value v;
        if (!attribute_of(f, l->items[i], path, &v)) return false;
        if (!value_is_number(v) || !value_is_number(total)) return wrong(f, "numbers");
        total = total.kind == V_INT && v.kind == V_INT ? value_int((int64_t)((uint64_t)total.i + (uint64_t)v.i))
                                                       : value_float(value_number(total) + value_number(v));
    }
    return give(f, total);
}

static struct arguments rest_of(const struct arguments *a, size_t skip) {
    struct arguments rest = *a;
    const size_t n = skip < a->n ? skip : a->n;
    if (n) rest.items += n;
    rest.n -= n;
    return rest;
}

/* map('filter', …) or map(attribute='name', default=…) */
static bool filter_map(struct filter_call *f) {
    struct list *l, *mapped;
    struct value path = {0};
    const struct value *fallback = NULL;
    for (size_t i = 0; i < f->a->n_keywords; i++) {
        if (sk_str_is(f->a->keywords[i].name, "attribute")) path = f->a->keywords[i].value;
        if (sk_str_is(f->a->keywords[i].name, "default")) fallback = &f->a->keywords[i].value;
    }
    if (!walk(f, &l) || !new_list(f, &mapped)) return false;
    const struct value result = *f->out;
    if (path.kind == V_UNDEFINED && (f->a->n == 0 || f->a->items[0].kind != V_STRING))
        return wrong(f, "a filter's name or attribute=");
    for (size_t i = 0; i < l->n; i++) {
        struct value v;
        if (path.kind != V_UNDEFINED) {
            if (!attribute_of(f, l->items[i], &path, &v)) return false;
            if (v.kind == V_UNDEFINED && fallback) v = *fallback;
        } else {
            const struct node n = {.kind = N_FILTER, .line = f->line, .name = f->a->items[0].s};
            const struct arguments rest = rest_of(f->a, 1);
            if (!apply_filter(f->r, &n, l->items[i], &rest, &v)) return false;
        }
        if (!push(f, mapped, v)) return false;
    }
    return give(f, result);
}

/* select, reject: [test, arguments…]; selectattr, rejectattr: attribute, [test, arguments…] */
static bool filter_select(struct filter_call *f) {
    struct list *l, *kept;
    const bool by_attribute = f->name.n > 6, wanted = f->name.p[0] == 's';
    const struct value *path = by_attribute && f->a->n ? &f->a->items[0] : NULL;
    if (by_attribute && !path) return wrong(f, "an attribute's name");
    if (!walk(f, &l) || !new_list(f, &kept)) return false;
    const struct arguments test = rest_of(f->a, by_attribute ? 1 : 0), rest = rest_of(&test, 1);
    for (size_t i = 0; i < l->n; i++) {
        struct value v;
        bool holds;
        if (!attribute_of(f, l->items[i], path, &v)) return false;
        holds = value_is_true(v);
        if (test.n && (test.items[0].kind != V_STRING || !apply_test(f->r, f->line, test.items[0].s, v, &rest, &holds)))
            return test.items[0].kind == V_STRING ? false : wrong(f, "a test's name");
        if (holds == wanted && !push(f, kept, l->items[i])) return false;
    }
    return true;
}

/* ---- others --------------------------------------------------------------------------------------------- */

static bool filter_default(struct filter_call *f) {
    const struct value *fallback = argument(f->a, 0, "default_value");
    const bool also_false = flag(f, 1, "boolean", false);
    const bool use = f->in.kind == V_UNDEFINED || (also_false && !value_is_true(f->in));
    return give(f, use ? (fallback ? *fallback : value_str(sk_str_of(""))) : f->in);
}

static bool filter_attr(struct filter_call *f) {
    if (f->a->n != 1 || f->a->items[0].kind != V_STRING) return wrong(f, "an attribute's name");
    return get_attribute(f->r, f->line, f->in, f->a->items[0].s, f->out);
}

static bool filter_same(struct filter_call *f) {
    return give(f, f->in);
}

/* "%s, %d" as far as %s and %d go. */
static bool filter_format(struct filter_call *f) {
    struct sk_buf b = {0};
    size_t used = 0;
    if (f->in.kind != V_STRING) return wrong(f, "a string");
    for (size_t i = 0; i < f->in.s.n; i++) {
        const char c = f->in.s.p[i], next = i + 1 < f->in.s.n ? f->in.s.p[i + 1] : 0;
        if (c != '%') {
            sk_buf_putc(&b, c);
        } else if (next == '%') {
            sk_buf_putc(&b, '%'), i++;
        } else if ((next == 's' || next == 'd') && used < f->a->n) {
            value_show(f->a->items[used++], &b), i++;
        } else {
            sk_buf_free(&b);
            return fail_at(f->r, f->line, "the filter 'format' knows %%s and %%d, each with an argument");
        }
    }
    return take_string(f->r, f->line, &b, f->out);
}

static const struct {
    const char *name;
    bool (*apply)(struct filter_call *);
} filters[] = {
    {"upper", filter_case},
    {"lower", filter_case},
    {"title", filter_case},
    {"capitalize", filter_case},
    {"trim", filter_trim},
    {"replace", filter_replace},
    {"string", filter_string},
    {"indent", filter_indent},
    {"escape", filter_escape},
    {"e", filter_escape},
    {"wordcount", filter_wordcount},
    {"tojson", filter_tojson},
    {"int", filter_int},
    {"float", filter_float},
    {"abs", filter_abs},
    {"round", filter_round},
    {"length", filter_length},
    {"count", filter_length},
    {"first", filter_end},
    {"last", filter_end},
    {"list", filter_list},
    {"reverse", filter_reverse},
    {"join", filter_join},
    {"sort", filter_sort},
    {"items", filter_items},
    {"dictsort", filter_dictsort},
    {"unique", filter_unique},
    {"min", filter_extreme},
    {"max", filter_extreme},
    {"sum", filter_sum},
    {"map", filter_map},
    {"select", filter_select},
    {"reject", filter_select},
    {"selectattr", filter_select},
    {"rejectattr", filter_select},
    {"default", filter_default},
    {"d", filter_default},
    {"attr", filter_attr},
    {"safe", filter_same},
    {"format", filter_format},
};

bool apply_filter(struct render *r, const struct node *n, struct value input, const struct arguments *a,
                  struct value *out) {
    struct filter_call f = {r, n->line, n->name, input, a, out};
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (sk_str_is(n->name, filters[i].name)) return filters[i].apply(&f);
    return fail_at(r, n->line, "the filter '%.*s' is not supported", (int)n->name.n, n->name.p);
}
