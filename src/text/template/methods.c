/* Methods of strings, lists and dicts. */
#include <ctype.h>

#include "base/utf8.h"
#include "eval.h"
#include "strings.h"
#include <utf8proc.h>

struct call {
    struct render *r;
    int line;
    struct value self;
    struct sk_str name;
    const struct arguments *a;
    struct value *out;
};

static bool give(struct call *c, struct value v) {
    *c->out = v;
    return true;
}

static bool wrong(struct call *c, const char *wanted) {
    return fail_at(c->r, c->line, "%s.%.*s needs %s", value_type_name(c->self), (int)c->name.n, c->name.p, wanted);
}

/* A string argument; an absent one gives `fallback`. */
static bool string_argument(struct call *c, size_t i, const char *name, struct sk_str fallback, struct sk_str *out) {
    const struct value *v = argument(c->a, i, name);
    *out = fallback;
    if (!v || (v->kind == V_NONE && fallback.p == NULL)) return true;
    if (v->kind != V_STRING) return wrong(c, "a string");
    *out = v->s;
    return true;
}

static bool int_argument(struct call *c, size_t i, const char *name, int64_t fallback, int64_t *out) {
    const struct value *v = argument(c->a, i, name);
    *out = fallback;
    if (!v) return true;
    if (v->kind != V_INT) return wrong(c, "a whole number");
    *out = v->i;
    return true;
}

/* ---- strings -------------------------------------------------------------------------------------------- */

static const struct sk_str NOTHING = {NULL, 0};

static bool strip(struct call *c) {
    struct sk_str set;
    if (!string_argument(c, 0, "chars", NOTHING, &set)) return false;
    return give(c, value_str(string_strip(c->self.s, set, c->name.p[0] != 'r', c->name.p[0] != 'l')));
}

static bool push_piece(struct call *c, struct list *l, const char *p, size_t n) {
    return list_push(c->r->arena, l, value_str((struct sk_str){p, n})) ? true : out_of_memory(c->r, c->line);
}

/* Words between white space. */
static bool split_words(struct call *c, struct list *l, int64_t limit) {
    struct sk_str rest = string_strip(c->self.s, NOTHING, true, false);
    while (rest.n) {
        size_t end = 0, len = 1;
        if (limit >= 0 && (int64_t)l->n >= limit) {
            rest = string_strip(rest, NOTHING, false, true);
            return push_piece(c, l, rest.p, rest.n);
        }
        for (; end < rest.n; end += len) {
            const int32_t ch = sk_utf8_decode(rest.p + end, rest.n - end, &len);
            if (ch < 0) len = 1;
            if (ch >= 0 && is_space_char(ch)) break;
        }
        if (!push_piece(c, l, rest.p, end)) return false;
        rest = string_strip((struct sk_str){rest.p + end, rest.n - end}, NOTHING, true, false);
    }
    return true;
}

static size_t find_last(struct sk_str hay, struct sk_str needle) {
    size_t last = SIZE_MAX;
    for (size_t at = 0; (at = sk_str_find(hay, needle, at)) != SIZE_MAX; at++) last = at;
    return last;
}

static bool split(struct call *c) {
    struct sk_str separator;
    int64_t limit;
    struct list *l = list_create(c->r->arena);
    if (!l) return out_of_memory(c->r, c->line);
    if (!string_argument(c, 0, "sep", NOTHING, &separator) || !int_argument(c, 1, "maxsplit", -1, &limit)) return false;
    *c->out = (struct value){.kind = V_LIST, .list = l};
    if (!separator.p) return split_words(c, l, limit);
    if (separator.n == 0) return wrong(c, "a separator that is not empty");
    struct sk_str rest = c->self.s;
    if (c->name.p[0] == 'r' && limit >= 0) {
        /* From the right: collect the pieces backwards, then turn them round. */
        for (size_t hit; (int64_t)l->n < limit && (hit = find_last(rest, separator)) != SIZE_MAX; rest.n = hit)
            if (!push_piece(c, l, rest.p + hit + separator.n, rest.n - hit - separator.n)) return false;
        if (!push_piece(c, l, rest.p, rest.n)) return false;
        for (size_t i = 0, j = l->n - 1; i < j; i++, j--) {
            const struct value swap = l->items[i];
            l->items[i] = l->items[j];
            l->items[j] = swap;
        }
        return true;
    }
    for (size_t hit; (limit < 0 || (int64_t)l->n < limit) && (hit = sk_str_find(rest, separator, 0)) != SIZE_MAX;) {
        if (!push_piece(c, l, rest.p, hit)) return false;
        rest = (struct sk_str){rest.p + hit + separator.n, rest.n - hit - separator.n};
    }
    return push_piece(c, l, rest.p, rest.n);
}

static bool splitlines(struct call *c) {
    const struct sk_str s = c->self.s;
    const struct value *keep = argument(c->a, 0, "keepends");
    struct list *l = list_create(c->r->arena);
    if (!l) return out_of_memory(c->r, c->line);
    *c->out = (struct value){.kind = V_LIST, .list = l};
    for (size_t start = 0; start < s.n;) {
        size_t end = start;
        while (end < s.n && s.p[end] != '\n' && s.p[end] != '\r') end++;
        size_t next = end < s.n ? end + 1 : end;
        if (end + 1 < s.n && s.p[end] == '\r' && s.p[end + 1] == '\n') next++;
        if (!push_piece(c, l, s.p + start, (keep && value_is_true(*keep) ? next : end) - start)) return false;
        start = next;
    }
    return true;
}

/* With a tuple any of its strings will do. */
static bool affix(struct call *c) {
    const struct value *v = argument(c->a, 0, "prefix");
    const struct sk_str s = c->self.s;
    if (!v) return wrong(c, "a string");
    struct list one = {.items = (struct value *)(uintptr_t)v, .n = 1};
    const struct list *any = v->kind == V_LIST ? v->list : &one;
    bool holds = false;
    for (size_t i = 0; i < any->n && !holds; i++) {
        if (any->items[i].kind != V_STRING) return wrong(c, "strings");
        const struct sk_str x = any->items[i].s;
        holds = x.n <= s.n && memcmp(c->name.p[0] == 's' ? s.p : s.p + s.n - x.n, x.p, x.n) == 0;
    }
    return give(c, value_bool(holds));
}

static bool remove_affix(struct call *c) {
    struct sk_str x, s = c->self.s;
    if (!string_argument(c, 0, "prefix", sk_str_of(""), &x)) return false;
    const bool prefix = sk_str_is(c->name, "removeprefix");
    if (x.n && x.n <= s.n && memcmp(prefix ? s.p : s.p + s.n - x.n, x.p, x.n) == 0)
        s = (struct sk_str){prefix ? s.p + x.n : s.p, s.n - x.n};
    return give(c, value_str(s));
}

static bool find(struct call *c) {
    struct sk_str x;
    if (!string_argument(c, 0, "sub", sk_str_of(""), &x)) return false;
    const size_t hit = c->name.p[0] == 'r' ? find_last(c->self.s, x) : sk_str_find(c->self.s, x, 0);
    if (hit == SIZE_MAX && sk_str_is(c->name, "index")) return fail_at(c->r, c->line, "the substring was not found");
    return give(c, value_int(hit == SIZE_MAX ? -1 : (int64_t)chars_count((struct sk_str){c->self.s.p, hit})));
}

static bool count(struct call *c) {
    struct sk_str x;
    int64_t n = 0;
    if (!string_argument(c, 0, "sub", sk_str_of(""), &x)) return false;
    if (x.n == 0) return give(c, value_int((int64_t)chars_count(c->self.s) + 1));
    for (size_t at = 0; (at = sk_str_find(c->self.s, x, at)) != SIZE_MAX; at += x.n) n++;
    return give(c, value_int(n));
}

static bool replace(struct call *c) {
    struct sk_str from, to;
    int64_t limit;
    if (c->a->n < 2) return wrong(c, "two strings");
    if (!string_argument(c, 0, "old", sk_str_of(""), &from) || !string_argument(c, 1, "new", sk_str_of(""), &to))
        return false;
    if (!int_argument(c, 2, "count", -1, &limit)) return false;
    return string_replace(c->r, c->line, c->self.s, from, to, limit, c->out);
}

static bool join(struct call *c) {
    struct list *l;
    const struct value *v = argument(c->a, 0, "iterable");
    if (!v) return wrong(c, "a list");
    return to_list(c->r, c->line, *v, &l) && string_join(c->r, c->line, l, c->self.s, c->out);
}

static bool change_case(struct call *c) {
    const enum letter_case how =
        c->name.p[0] == 'u' ? CASE_UPPER
                            : (c->name.p[0] == 'l' ? CASE_LOWER : (c->name.p[0] == 't' ? CASE_TITLE : CASE_CAPITALIZE));
    return string_case(c->r, c->line, c->self.s, how, c->out);
}

static bool in_class(struct sk_str name, int32_t c) {
    const utf8proc_category_t k = utf8proc_category(c);
    const bool letter = k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO, digit = k == UTF8PROC_CATEGORY_ND;
    if (sk_str_is(name, "isdigit") || sk_str_is(name, "isnumeric") || sk_str_is(name, "isdecimal")) return digit;
    if (sk_str_is(name, "isalpha")) return letter;
    if (sk_str_is(name, "isalnum")) return letter || digit;
    return is_space_char(c);
}

static bool class_of(struct call *c) {
    const struct sk_str s = c->self.s;
    bool holds = s.n > 0;
    for (size_t i = 0, len; i < s.n && holds; i += len) {
        const int32_t ch = sk_utf8_decode(s.p + i, s.n - i, &len);
        if (ch < 0) len = 1;
        holds = ch >= 0 && in_class(c->name, ch);
    }
    return give(c, value_bool(holds));
}

static bool cased(struct call *c) {
    bool upper = false, lower = false;
    for (size_t i = 0, len; i < c->self.s.n; i += len) {
        const int32_t ch = sk_utf8_decode(c->self.s.p + i, c->self.s.n - i, &len);
        if (ch < 0) len = 1;
        upper |= ch >= 0 && utf8proc_category(ch) == UTF8PROC_CATEGORY_LU;
        lower |= ch >= 0 && utf8proc_category(ch) == UTF8PROC_CATEGORY_LL;
    }
    return give(c, value_bool(sk_str_is(c->name, "isupper") ? upper && !lower : lower && !upper));
}

/* ---- lists ---------------------------------------------------------------------------------------------- */

static bool list_append(struct call *c) {
    if (c->a->n != 1) return wrong(c, "one value");
    if (!list_push(c->r->arena, c->self.list, c->a->items[0])) return out_of_memory(c->r, c->line);
    return give(c, value_none());
}

static bool list_extend(struct call *c) {
    struct list *more;
    if (c->a->n != 1) return wrong(c, "one list");
    if (!to_list(c->r, c->line, c->a->items[0], &more)) return false;
    for (size_t i = 0, n = more->n; i < n; i++)
        if (!list_push(c->r->arena, c->self.list, more->items[i])) return out_of_memory(c->r, c->line);
    return give(c, value_none());
}

static bool list_insert(struct call *c) {
    int64_t at;
    struct list *l = c->self.list;
    if (c->a->n != 2 || !int_argument(c, 0, "index", 0, &at)) return wrong(c, "a place and a value");
    if (at < 0) at = at < -(int64_t)l->n ? 0 : at + (int64_t)l->n;
    if ((uint64_t)at > l->n) at = (int64_t)l->n;
    if (!list_push(c->r->arena, l, value_none())) return out_of_memory(c->r, c->line);
    memmove(l->items + at + 1, l->items + at, (l->n - 1 - (size_t)at) * sizeof *l->items);
    l->items[at] = c->a->items[1];
    return give(c, value_none());
}

static bool list_pop(struct call *c) {
    int64_t at;
    struct list *l = c->self.list;
    if (!int_argument(c, 0, "index", -1, &at)) return false;
    if (at < 0) at += (int64_t)l->n;
    if (at < 0 || (uint64_t)at >= l->n) return fail_at(c->r, c->line, "pop from a place that the list does not have");
    *c->out = l->items[at];
    memmove(l->items + at, l->items + at + 1, (l->n - 1 - (size_t)at) * sizeof *l->items);
    l->n--;
    return true;
}

static bool list_index(struct call *c) {
    int64_t n = 0;
    if (c->a->n != 1) return wrong(c, "one value");
    for (size_t i = 0; i < c->self.list->n; i++) {
        if (!value_equal(c->self.list->items[i], c->a->items[0])) continue;
        if (c->name.p[0] == 'i') return give(c, value_int((int64_t)i));
        n++;
    }
    return c->name.p[0] == 'i' ? fail_at(c->r, c->line, "the value is not in the list") : give(c, value_int(n));
}

static bool list_reverse(struct call *c) {
    struct list *l = c->self.list;
    for (size_t i = 0; i + 1 < l->n - i; i++) {
        const struct value swap = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = swap;
    }
    return give(c, value_none());
}

/* ---- dicts ---------------------------------------------------------------------------------------------- */

static bool dict_list(struct call *c) {
    struct list *l = list_create(c->r->arena);
    if (!l) return out_of_memory(c->r, c->line);
    for (size_t i = 0; i < c->self.dict->n; i++) {
        const struct dict_entry *e = &c->self.dict->entries[i];
        struct value v = c->name.p[0] == 'k' ? e->key : e->value;
        if (c->name.p[0] == 'i') {
            struct list *pair = list_create(c->r->arena);
            if (!pair || !list_push(c->r->arena, pair, e->key) || !list_push(c->r->arena, pair, e->value))
                return out_of_memory(c->r, c->line);
            v = (struct value){.kind = V_LIST, .tuple = true, .list = pair};
        }
        if (!list_push(c->r->arena, l, v)) return out_of_memory(c->r, c->line);
    }
    return give(c, (struct value){.kind = V_LIST, .list = l});
}

static bool dict_lookup(struct call *c) {
    if (c->a->n < 1) return wrong(c, "a key");
    const struct value *v = dict_get(c->self.dict, c->a->items[0]);
    if (v) return give(c, *v);
    const struct value *fallback = argument(c->a, 1, "default");
    *c->out = fallback ? *fallback : value_none();
    if (sk_str_is(c->name, "setdefault") && !dict_set(c->r->arena, c->self.dict, c->a->items[0], *c->out))
        return out_of_memory(c->r, c->line);
    return true;
}

static bool dict_pop(struct call *c) {
    struct dict *d = c->self.dict;
    if (c->a->n < 1) return wrong(c, "a key");
    for (size_t i = 0; i < d->n; i++) {
        if (!value_equal(d->entries[i].key, c->a->items[0])) continue;
        *c->out = d->entries[i].value;
        memmove(d->entries + i, d->entries + i + 1, (d->n - 1 - i) * sizeof *d->entries);
        d->n--;
        return true;
    }
    if (c->a->n < 2) return fail_at(c->r, c->line, "pop of a key that the dict does not have");
    return give(c, c->a->items[1]);
}

static bool dict_update(struct call *c) {
    if (c->a->n && c->a->items[0].kind != V_DICT) return wrong(c, "a dict");
    for (size_t i = 0; c->a->n && i < c->a->items[0].dict->n; i++)
        if (!dict_set(c->r->arena, c->self.dict, c->a->items[0].dict->entries[i].key,
                      c->a->items[0].dict->entries[i].value))
            return out_of_memory(c->r, c->line);
    for (size_t i = 0; i < c->a->n_keywords; i++)
        if (!dict_set(c->r->arena, c->self.dict, value_str(c->a->keywords[i].name), c->a->keywords[i].value))
            return out_of_memory(c->r, c->line);
    return give(c, value_none());
}

static bool copy(struct call *c) {
    if (c->self.kind == V_LIST) {
        struct list *l = list_create(c->r->arena);
        bool ok = l != NULL;
        for (size_t i = 0; ok && i < c->self.list->n; i++) ok = list_push(c->r->arena, l, c->self.list->items[i]);
        return ok ? give(c, (struct value){.kind = V_LIST, .list = l}) : out_of_memory(c->r, c->line);
    }
    struct dict *d = dict_create(c->r->arena);
    bool ok = d != NULL;
    for (size_t i = 0; ok && i < c->self.dict->n; i++)
        ok = dict_set(c->r->arena, d, c->self.dict->entries[i].key, c->self.dict->entries[i].value);
    return ok ? give(c, (struct value){.kind = V_DICT, .dict = d}) : out_of_memory(c->r, c->line);
}

/* ---- the table ------------------------------------------------------------------------------------------ */

static const struct {
    enum value_kind kind;
    const char *name;
    bool (*call)(struct call *);
} methods[] = {
    {V_STRING, "strip", strip},
    {V_STRING, "lstrip", strip},
    {V_STRING, "rstrip", strip},
    {V_STRING, "split", split},
    {V_STRING, "rsplit", split},
    {V_STRING, "splitlines", splitlines},
    {V_STRING, "startswith", affix},
    {V_STRING, "endswith", affix},
    {V_STRING, "removeprefix", remove_affix},
    {V_STRING, "removesuffix", remove_affix},
    {V_STRING, "find", find},
    {V_STRING, "rfind", find},
    {V_STRING, "index", find},
    {V_STRING, "count", count},
    {V_STRING, "replace", replace},
    {V_STRING, "join", join},
    {V_STRING, "upper", change_case},
    {V_STRING, "lower", change_case},
    {V_STRING, "title", change_case},
    {V_STRING, "capitalize", change_case},
    {V_STRING, "isdigit", class_of},
    {V_STRING, "isnumeric", class_of},
    {V_STRING, "isdecimal", class_of},
    {V_STRING, "isalpha", class_of},
    {V_STRING, "isalnum", class_of},
    {V_STRING, "isspace", class_of},
    {V_STRING, "isupper", cased},
    {V_STRING, "islower", cased},
    {V_LIST, "append", list_append},
    {V_LIST, "extend", list_extend},
    {V_LIST, "insert", list_insert},
    {V_LIST, "pop", list_pop},
    {V_LIST, "index", list_index},
    {V_LIST, "count", list_index},
    {V_LIST, "reverse", list_reverse},
    {V_LIST, "copy", copy},
    {V_DICT, "items", dict_list},
    {V_DICT, "keys", dict_list},
    {V_DICT, "values", dict_list},
    {V_DICT, "get", dict_lookup},
    {V_DICT, "setdefault", dict_lookup},
    {V_DICT, "pop", dict_pop},
    {V_DICT, "update", dict_update},
    {V_DICT, "copy", copy},
};

bool has_method(struct value object, struct sk_str name) {
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].kind == object.kind && sk_str_is(name, methods[i].name)) return true;
    return false;
}

bool call_method(struct render *r, int line, struct method *m, const struct arguments *a, struct value *out) {
    struct call c = {r, line, m->self, m->name, a, out};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].kind == m->self.kind && sk_str_is(m->name, methods[i].name)) return methods[i].call(&c);
    return fail_at(r, line, "%s has no method '%.*s'", value_type_name(m->self), (int)m->name.n, m->name.p);
}
