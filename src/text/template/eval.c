/* The tree, walked. Every step is counted and nesting is bounded, so that no template can run or recurse without end.
 */
#include "eval.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/template.h"

enum {
    MAX_STEPS = 20 * 1000 * 1000,
    MAX_DEPTH = 400,
    MAX_MEMORY = 512 * 1024 * 1024,
    MAX_OUTPUT = 64 * 1024 * 1024,
};

enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE, FLOW_FAILED };

static enum flow run_body(struct render *r, struct scope *s, const struct node *list);

/* ---- helpers ------------------------------------------------------------------------------------------- */

bool fail_at(struct render *r, int line, const char *format, ...) {
    char message[500];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    sk_fail(r->err, SK_EINVAL, "line %d: %s", line, message);
    return false;
}

bool out_of_memory(struct render *r, int line) {
    return fail_at(r, line, "the template needs more memory than the limit of %d bytes", MAX_MEMORY);
}

static bool step(struct render *r, int line) {
    if (++r->steps > MAX_STEPS) return fail_at(r, line, "the template ran for more than %d steps", MAX_STEPS);
    return true;
}

static bool enter(struct render *r, int line) {
    if (++r->depth > MAX_DEPTH) return fail_at(r, line, "the template nests or recurses more than %d deep", MAX_DEPTH);
    return step(r, line);
}

const struct value *argument(const struct arguments *a, size_t index, const char *name) {
    if (index < a->n) return &a->items[index];
    for (size_t i = 0; i < a->n_keywords; i++)
        if (sk_str_is(a->keywords[i].name, name)) return &a->keywords[i].value;
    return NULL;
}

bool take_string(struct render *r, int line, struct sk_buf *b, struct value *out) {
    const struct sk_str view = sk_buf_view(b);
    const char *copy = b->failed ? NULL : sk_arena_copy(r->arena, view);
    *out = value_str((struct sk_str){copy, view.n});
    sk_buf_free(b);
    return copy ? true : out_of_memory(r, line);
}

static struct scope *scope_create(struct render *r, struct scope *parent) {
    struct scope *s = sk_arena_alloc(r->arena, sizeof *s);
    if (s) s->parent = parent;
    return s;
}

static bool scope_set(struct render *r, int line, struct scope *s, struct sk_str name, struct value v) {
    for (size_t i = 0; i < s->n; i++) {
        if (!sk_str_eq(s->names[i].name, name)) continue;
        s->names[i].value = v;
        return true;
    }
    if (s->n == s->cap) {
        const size_t cap = s->cap ? s->cap * 2 : 8;
        struct binding *names = sk_arena_array(r->arena, cap, sizeof *names);
        if (!names) return out_of_memory(r, line);
        if (s->n) memcpy(names, s->names, s->n * sizeof *names);
        s->names = names;
        s->cap = cap;
    }
    s->names[s->n++] = (struct binding){name, v};
    return true;
}

static bool scope_get(const struct scope *s, struct sk_str name, struct value *out) {
    for (; s; s = s->parent)
        for (size_t i = 0; i < s->n; i++)
            if (sk_str_eq(s->names[i].name, name)) {
                *out = s->names[i].value;
                return true;
            }
    return false;
}

bool to_list(struct render *r, int line, struct value v, struct list **out) {
    if (v.kind == V_LIST) {
        *out = v.list;
        return true;
    }
    struct list *l = *out = list_create(r->arena);
    if (!l) return out_of_memory(r, line);
    switch (v.kind) {
    case V_UNDEFINED: return true;
    case V_DICT:
        for (size_t i = 0; i < v.dict->n; i++)
            if (!list_push(r->arena, l, v.dict->entries[i].key)) return out_of_memory(r, line);
        return true;
    case V_STRING:
        for (size_t i = 0; i < v.s.n;) {
            const size_t n = chars_offset((struct sk_str){v.s.p + i, v.s.n - i}, 1);
            if (!list_push(r->arena, l, value_str((struct sk_str){v.s.p + i, n}))) return out_of_memory(r, line);
            i += n;
        }
        return true;
    default: return fail_at(r, line, "a value of type %s cannot be walked", value_type_name(v));
    }
}

/* ---- attributes, items, slices -------------------------------------------------------------------------- */

bool get_attribute(struct render *r, int line, struct value object, struct sk_str name, struct value *out) {
    if (object.kind == V_UNDEFINED)
        return fail_at(r, line, "'%.*s' is undefined, so it has no '%.*s'", (int)object.s.n, object.s.p, (int)name.n,
                       name.p);
    if (object.kind == V_NAMESPACE || (object.kind == V_DICT && !has_method(object, name))) {
        const struct value *member = dict_get(object.dict, value_str(name));
        *out = member ? *member : value_undefined(name);
        return true;
    }
    *out = value_undefined(name);
    if (!has_method(object, name)) return true;
    struct method *m = sk_arena_alloc(r->arena, sizeof *m);
    if (!m) return out_of_memory(r, line);
    *m = (struct method){object, name};
    *out = (struct value){.kind = V_METHOD, .method = m};
    return true;
}

bool get_item(struct render *r, int line, struct value object, struct value key, struct value *out) {
    if (object.kind == V_UNDEFINED)
        return fail_at(r, line, "'%.*s' is undefined, so it has no items", (int)object.s.n, object.s.p);
    if (object.kind == V_DICT || object.kind == V_NAMESPACE) {
        const struct value *member = dict_get(object.dict, key);
        if (member) {
            *out = *member;
            return true;
        }
    }
    if (key.kind == V_STRING) return get_attribute(r, line, object, key.s, out);
    *out = value_undefined(sk_str_of("item"));
    if (key.kind != V_INT && key.kind != V_BOOL) return true;
    const size_t n = object.kind == V_LIST ? object.list->n : (object.kind == V_STRING ? chars_count(object.s) : 0);
    int64_t i = key.kind == V_BOOL ? key.b : key.i;
    if (i < 0) i += (int64_t)n;
    if (i < 0 || (uint64_t)i >= n) return true;
    if (object.kind == V_LIST) {
        *out = object.list->items[i];
        return true;
    }
    const size_t start = chars_offset(object.s, (size_t)i), end = chars_offset(object.s, (size_t)i + 1);
    *out = value_str((struct sk_str){object.s.p + start, end - start});
    return true;
}

static bool slice_bound(struct render *r, struct scope *s, const struct node *n, int64_t fallback, int64_t *out) {
    struct value v = value_none();
    if (n && !evaluate(r, s, n, &v)) return false;
    if (v.kind == V_NONE) {
        *out = fallback;
        return true;
    }
    if (v.kind != V_INT && v.kind != V_BOOL)
        return fail_at(r, n->line, "a slice needs whole numbers, not %s", value_type_name(v));
    *out = v.kind == V_INT ? v.i : v.b;
    return true;
}

static int64_t clamp(int64_t i, int64_t n, int64_t low, int64_t high) {
    if (i < 0) i = i < -n ? low : i + n;
    return i < low ? low : (i > high ? high : i);
}

static bool slice(struct render *r, struct scope *s, const struct node *n, struct value *out) {
    struct value object;
    if (!evaluate(r, s, n->a, &object)) return false;
    if (object.kind != V_LIST && object.kind != V_STRING)
        return fail_at(r, n->line, "a value of type %s cannot be sliced", value_type_name(object));
    const int64_t length = (int64_t)(object.kind == V_LIST ? object.list->n : chars_count(object.s));
    int64_t step_by, start, stop;
    if (!slice_bound(r, s, n->d, 1, &step_by)) return false;
    if (step_by == 0) return fail_at(r, n->line, "a slice cannot have the step 0");
    const bool forward = step_by > 0;
    if (!slice_bound(r, s, n->b, forward ? 0 : INT64_MAX, &start) ||
        !slice_bound(r, s, n->c, forward ? INT64_MAX : INT64_MIN, &stop))
        return false;
    start = clamp(start, length, forward ? 0 : -1, forward ? length : length - 1);
    stop = n->c || forward ? clamp(stop, length, forward ? 0 : -1, forward ? length : length - 1) : -1;
    if (object.kind == V_STRING && step_by == 1) {
        const size_t from = chars_offset(object.s, (size_t)start),
                     to = stop > start ? chars_offset(object.s, (size_t)stop) : from;
        *out = value_str((struct sk_str){object.s.p + from, to - from});
        return true;
    }
    struct list *source, *picked = list_create(r->arena);
    if (!to_list(r, n->line, object, &source)) return false;
    if (!picked) return out_of_memory(r, n->line);
    for (int64_t i = start; forward ? i < stop : i > stop;) {
        if (!list_push(r->arena, picked, source->items[i])) return out_of_memory(r, n->line);
        if (__builtin_add_overflow(i, step_by, &i)) break;
    }
    if (object.kind == V_LIST) {
        *out = (struct value){.kind = V_LIST, .tuple = object.tuple, .list = picked};
        return true;
    }
    struct sk_buf b = {.limit = MAX_OUTPUT};
    for (size_t i = 0; i < picked->n; i++) sk_buf_str(&b, picked->items[i].s);
    return take_string(r, n->line, &b, out);
}

/* ---- operators ------------------------------------------------------------------------------------------ */

static bool concatenate(struct render *r, int line, struct value a, struct value b, struct value *out) {
    struct sk_buf text = {.limit = MAX_OUTPUT};
    value_show(a, &text);
    value_show(b, &text);
    return take_string(r, line, &text, out);
}

static bool repeat(struct render *r, int line, struct value v, int64_t times, struct value *out) {
    const size_t size = v.kind == V_STRING ? v.s.n : v.list->n;
    if (times < 0) times = 0;
    if (size && (uint64_t)times > (uint64_t)MAX_OUTPUT / size) return out_of_memory(r, line);
    if (v.kind == V_STRING) {
        struct sk_buf text = {.limit = MAX_OUTPUT};
        for (int64_t i = 0; i < times && size; i++) sk_buf_str(&text, v.s);
        return take_string(r, line, &text, out);
    }
    struct list *l = list_create(r->arena);
    if (!l) return out_of_memory(r, line);
    for (int64_t i = 0; i < times && size; i++)
        for (size_t j = 0; j < size; j++)
            if (!list_push(r->arena, l, v.list->items[j])) return out_of_memory(r, line);
    *out = (struct value){.kind = V_LIST, .list = l};
    return true;
}

static bool integer_operation(struct render *r, int line, char op, int64_t x, int64_t y, struct value *out) {
    int64_t result = 0;
    bool overflow = false;
    switch (op) {
    case '+': overflow = __builtin_add_overflow(x, y, &result); break;
    case '-': overflow = __builtin_sub_overflow(x, y, &result); break;
    case '*': overflow = __builtin_mul_overflow(x, y, &result); break;
    case 'D':
    case '%':
        if (y == 0) return fail_at(r, line, "division by zero");
        if (y == -1) { /* INT64_MIN / -1 does not fit */
            overflow = op == 'D' && __builtin_sub_overflow((int64_t)0, x, &result);
            break;
        }
        result = op == 'D' ? x / y - (x % y != 0 && (x % y < 0) != (y < 0))
                           : x % y + (x % y != 0 && (x % y < 0) != (y < 0) ? y : 0);
        break;
    default: /* power */
        if (y < 0) {
            *out = value_float(pow((double)x, (double)y));
            return true;
        }
        result = 1;
        for (int64_t i = 0; i < y && !overflow; i++) {
            overflow = __builtin_mul_overflow(result, x, &result);
            if (x == 0 || x == 1 || x == -1) { /* the rest changes nothing but the sign */
                result = x == -1 && y % 2 == 0 ? 1 : x;
                break;
            }
        }
    }
    if (overflow) return fail_at(r, line, "the number is too large");
    *out = value_int(result);
    return true;
}

static bool float_operation(struct render *r, int line, char op, double x, double y, struct value *out) {
    if ((op == '/' || op == 'D' || op == '%') && y == 0.0) return fail_at(r, line, "division by zero");
    double result = 0.0;
    switch (op) {
    case '+': result = x + y; break;
    case '-': result = x - y; break;
    case '*': result = x * y; break;
    case '/': result = x / y; break;
    case 'D': result = floor(x / y); break;
    case '%': result = x - y * floor(x / y); break;
    default: result = pow(x, y); break;
    }
    *out = value_float(result);
    return true;
}

static bool binary(struct render *r, int line, char op, struct value a, struct value b, struct value *out) {
    if (op == '~') return concatenate(r, line, a, b, out);
    if (value_is_number(a) && value_is_number(b)) {
        if (op == '/' || a.kind == V_FLOAT || b.kind == V_FLOAT)
            return float_operation(r, line, op, value_number(a), value_number(b), out);
        return integer_operation(r, line, op, a.kind == V_BOOL ? a.b : a.i, b.kind == V_BOOL ? b.b : b.i, out);
    }
    if (op == '+' && a.kind == V_STRING && b.kind == V_STRING) return concatenate(r, line, a, b, out);
    if (op == '+' && a.kind == V_LIST && b.kind == V_LIST) {
        struct list *l = list_create(r->arena);
        bool ok = l != NULL;
        for (size_t i = 0; ok && i < a.list->n; i++) ok = list_push(r->arena, l, a.list->items[i]);
        for (size_t i = 0; ok && i < b.list->n; i++) ok = list_push(r->arena, l, b.list->items[i]);
        *out = (struct value){.kind = V_LIST, .list = l, .tuple = a.tuple};
        return ok ? true : out_of_memory(r, line);
    }
    if (op == '*' && (a.kind == V_STRING || a.kind == V_LIST) && b.kind == V_INT) return repeat(r, line, a, b.i, out);
    if (op == '*' && (b.kind == V_STRING || b.kind == V_LIST) && a.kind == V_INT) return repeat(r, line, b, a.i, out);
    if (op == '%' && a.kind == V_STRING)
        return fail_at(r, line, "formatting with %% is not supported: use ~ or the format filter");
    const struct value *undefined = a.kind == V_UNDEFINED ? &a : (b.kind == V_UNDEFINED ? &b : NULL);
    if (undefined) return fail_at(r, line, "'%.*s' is undefined", (int)undefined->s.n, undefined->s.p);
    const char *name = op == 'D' ? "//" : (op == '^' ? "**" : (char[]){op, '\0'});
    return fail_at(r, line, "%s %s %s is not possible", value_type_name(a), name, value_type_name(b));
}

bool contains(struct render *r, int line, struct value needle, struct value hay, bool *out) {
    *out = false;
    switch (hay.kind) {
    case V_UNDEFINED: return true;
    case V_STRING:
        if (needle.kind != V_STRING)
            return fail_at(r, line, "only a string can be in a string, not %s", value_type_name(needle));
        *out = sk_str_find(hay.s, needle.s, 0) != SIZE_MAX;
        return true;
    case V_LIST:
        for (size_t i = 0; i < hay.list->n && !*out; i++) *out = value_equal(hay.list->items[i], needle);
        return true;
    case V_DICT:
    case V_NAMESPACE: *out = dict_get(hay.dict, needle) != NULL; return true;
    default: return fail_at(r, line, "nothing can be in a value of type %s", value_type_name(hay));
    }
}

static bool compare(struct render *r, int line, char op, struct value a, struct value b, bool *out) {
    int order;
    switch (op) {
    case '=': *out = value_equal(a, b); return true;
    case '!': *out = !value_equal(a, b); return true;
    case 'i': return contains(r, line, a, b, out);
    case 'n': return contains(r, line, a, b, out) && ((*out = !*out), true);
    default: break;
    }
    if (!value_compare(a, b, &order))
        return fail_at(r, line, "%s and %s cannot be ordered", value_type_name(a), value_type_name(b));
    *out = op == '<' ? order < 0 : (op == '>' ? order > 0 : (op == 'l' ? order <= 0 : order >= 0));
    return true;
}

static bool compare_chain(struct render *r, struct scope *s, const struct node *n, struct value *out) {
    struct value left, right;
    bool holds = true;
    if (!evaluate(r, s, n->a, &left)) return false;
    for (const struct node *operand = n->list; operand && holds; operand = operand->next, left = right) {
        if (!evaluate(r, s, operand->a, &right)) return false;
        if (!compare(r, operand->line, operand->op, left, right, &holds)) return false;
    }
    *out = value_bool(holds);
    return true;
}

static bool negate(struct render *r, int line, struct value v, struct value *out) {
    if (!value_is_number(v)) return fail_at(r, line, "a value of type %s has no sign", value_type_name(v));
    *out = v.kind == V_FLOAT ? value_float(-v.f) : value_int((int64_t)(0 - (uint64_t)(v.kind == V_BOOL ? v.b : v.i)));
    return true;
}

/* ---- calls ---------------------------------------------------------------------------------------------- */

static bool evaluate_arguments(struct render *r, struct scope *s, const struct node *list, struct arguments *out) {
    size_t n = 0;
    *out = (struct arguments){0};
    for (const struct node *a = list; a; a = a->next) n++;
    if (n == 0) return true;
    out->items = sk_arena_array(r->arena, n, sizeof *out->items);
    out->keywords = sk_arena_array(r->arena, n, sizeof *out->keywords);
    if (!out->items || !out->keywords) return out_of_memory(r, list->line);
    for (const struct node *a = list; a; a = a->next) {
        struct value v;
        if (!evaluate(r, s, a->kind == N_KEYWORD ? a->a : a, &v)) return false;
        if (a->kind == N_KEYWORD)
            out->keywords[out->n_keywords++] = (struct keyword){a->name, v};
        else
            out->items[out->n++] = v;
    }
    return true;
}

/* Runs a body with its output going to a string. */
static bool capture(struct render *r, struct scope *s, const struct node *body, int line, struct value *out) {
    struct sk_buf text = {.limit = MAX_OUTPUT}, *outer = r->out;
    r->out = &text;
    const enum flow flow = run_body(r, s, body);
    r->out = outer;
    if (flow == FLOW_FAILED) {
        sk_buf_free(&text);
        return false;
    }
    return take_string(r, line, &text, out);
}

static bool call_macro(struct render *r, int line, const struct closure *c, const struct arguments *a,
                       struct value *out) {
    struct scope *s = scope_create(r, c->scope);
    if (!s) return out_of_memory(r, line);
    size_t i = 0, used = 0;
    for (const struct node *parameter = c->node->c; parameter; parameter = parameter->next, i++) {
        struct value v = value_undefined(parameter->name);
        const struct value *given = i < a->n ? &a->items[i] : NULL;
        for (size_t k = 0; !given && k < a->n_keywords; k++)
            if (sk_str_eq(a->keywords[k].name, parameter->name)) given = &a->keywords[k].value;
        if (given) {
            v = *given;
            used++;
        } else if (parameter->a && !evaluate(r, s, parameter->a, &v)) {
            return false;
        }
        if (!scope_set(r, line, s, parameter->name, v)) return false;
    }
    for (size_t k = 0; k < a->n_keywords; k++) {
        if (!sk_str_is(a->keywords[k].name, "caller")) continue;
        used++;
        if (!scope_set(r, line, s, a->keywords[k].name, a->keywords[k].value)) return false;
    }
    if (used < a->n + a->n_keywords)
        return fail_at(r, line, "the macro '%.*s' was given more arguments than it takes", (int)c->node->name.n,
                       c->node->name.p);
    return capture(r, s, c->node->list, line, out);
}

bool call_value(struct render *r, int line, struct value function, const struct arguments *a, struct value *out) {
    if (function.kind == V_UNDEFINED)
        return fail_at(r, line, "'%.*s' is undefined: it cannot be called", (int)function.s.n, function.s.p);
    if (!enter(r, line)) return false;
    bool ok;
    switch (function.kind) {
    case V_MACRO: ok = call_macro(r, line, function.macro, a, out); break;
    case V_FUNCTION: ok = call_function(r, line, function.function, a, out); break;
    case V_METHOD: ok = call_method(r, line, function.method, a, out); break;
    default: ok = fail_at(r, line, "a value of type %s cannot be called", value_type_name(function)); break;
    }
    r->depth--;
    return ok;
}

/* ---- expressions ---------------------------------------------------------------------------------------- */

static bool evaluate_name(struct scope *s, const struct node *n, struct value *out) {
    const char *function;
    if (scope_get(s, n->name, out)) return true;
    *out = is_function(n->name, &function) ? (struct value){.kind = V_FUNCTION, .function = function}
                                           : value_undefined(n->name);
    return true;
}

static bool evaluate_list(struct render *r, struct scope *s, const struct node *n, struct value *out) {
    struct list *l = list_create(r->arena);
    if (!l) return out_of_memory(r, n->line);
    for (const struct node *item = n->list; item; item = item->next) {
        struct value v;
        if (!evaluate(r, s, item, &v)) return false;
        if (!list_push(r->arena, l, v)) return out_of_memory(r, n->line);
    }
    *out = (struct value){.kind = V_LIST, .tuple = n->constant.tuple, .list = l};
    return true;
}

static bool evaluate_dict(struct render *r, struct scope *s, const struct node *n, struct value *out) {
    struct dict *d = dict_create(r->arena);
    if (!d) return out_of_memory(r, n->line);
    for (const struct node *key = n->list; key; key = key->next->next) {
        struct value k, v;
        if (!evaluate(r, s, key, &k) || !evaluate(r, s, key->next, &v)) return false;
        if (!dict_set(r->arena, d, k, v)) return out_of_memory(r, n->line);
    }
    *out = (struct value){.kind = V_DICT, .dict = d};
    return true;
}

static bool evaluate_filter(struct render *r, struct scope *s, const struct node *n, struct value *out) {
    struct value input;
    struct arguments a;
    return evaluate(r, s, n->a, &input) && evaluate_arguments(r, s, n->list, &a) && apply_filter(r, n, input, &a, out);
}

static bool evaluate_test(struct render *r, struct scope *s, const struct node *n, struct value *out) {
    struct value input;
    struct arguments a;
    bool holds;
    if (!evaluate(r, s, n->a, &input) || !evaluate_arguments(r, s, n->list, &a) ||
        !apply_test(r, n->line, n->name, input, &a, &holds))
        return false;
    *out = value_bool(holds);
    return true;
}

static bool evaluate_call(struct render *r, struct scope *s, const struct node *n, struct value *out) {
    struct value function;
    struct arguments a;
    return evaluate(r, s, n->a, &function) && evaluate_arguments(r, s, n->list, &a) &&
           call_value(r, n->line, function, &a, out);
}

static bool evaluate_inner(struct render *r, struct scope *s, const struct node *n, struct value *out) {
    struct value a, b;
    switch (n->kind) {
    case N_CONST: *out = n->constant; return true;
    case N_NAME: return evaluate_name(s, n, out);
    case N_LIST: return evaluate_list(r, s, n, out);
    case N_DICT: return evaluate_dict(r, s, n, out);
    case N_NOT:
        if (!evaluate(r, s, n->a, &a)) return false;
        *out = value_bool(!value_is_true(a));
        return true;
    case N_NEGATE: return evaluate(r, s, n->a, &a) && negate(r, n->line, a, out);
    case N_PLUS: return evaluate(r, s, n->a, out);
    case N_AND: return evaluate(r, s, n->a, out) && (!value_is_true(*out) || evaluate(r, s, n->b, out));
    case N_OR: return evaluate(r, s, n->a, out) && (value_is_true(*out) || evaluate(r, s, n->b, out));
    case N_BINARY: return evaluate(r, s, n->a, &a) && evaluate(r, s, n->b, &b) && binary(r, n->line, n->op, a, b, out);
    case N_COMPARE: return compare_chain(r, s, n, out);
    case N_COND:
        if (!evaluate(r, s, n->b, &b)) return false;
        if (value_is_true(b)) return evaluate(r, s, n->a, out);
        *out = value_undefined(sk_str_of("inline if"));
        return !n->c || evaluate(r, s, n->c, out);
    case N_ATTRIBUTE: return evaluate(r, s, n->a, &a) && get_attribute(r, n->line, a, n->name, out);
    case N_ITEM: return evaluate(r, s, n->a, &a) && evaluate(r, s, n->b, &b) && get_item(r, n->line, a, b, out);
    case N_SLICE: return slice(r, s, n, out);
    case N_CALL: return evaluate_call(r, s, n, out);
    case N_FILTER: return evaluate_filter(r, s, n, out);
    case N_TEST: return evaluate_test(r, s, n, out);
    default: return fail_at(r, n->line, "this is not an expression");
    }
}

bool evaluate(struct render *r, struct scope *s, const struct node *n, struct value *out) {
    if (!enter(r, n->line)) return false;
    const bool ok = evaluate_inner(r, s, n, out);
    r->depth--;
    return ok;
}

/* ---- statements ----------------------------------------------------------------------------------------- */

static bool assign(struct render *r, struct scope *s, const struct node *target, struct value v) {
    if (target->kind == N_NAME) return scope_set(r, target->line, s, target->name, v);
    struct value object;
    if (!evaluate(r, s, target->a, &object)) return false;
    if (object.kind != V_NAMESPACE) return fail_at(r, target->line, "only attributes of a namespace can be set");
    return dict_set(r->arena, object.dict, value_str(target->name), v) ? true : out_of_memory(r, target->line);
}

/* One target takes the value, several take its items. */
static bool assign_all(struct render *r, struct scope *s, const struct node *targets, struct value v) {
    if (!targets) return true;
    if (!targets->next) return assign(r, s, targets, v);
    struct list *items;
    size_t n = 0;
    for (const struct node *t = targets; t; t = t->next) n++;
    if (!to_list(r, targets->line, v, &items)) return false;
    if (items->n != n) return fail_at(r, targets->line, "%zu values cannot go to %zu names", items->n, n);
    for (size_t i = 0; i < n; i++, targets = targets->next)
        if (!assign(r, s, targets, items->items[i])) return false;
    return true;
}

static bool set_member(struct render *r, int line, struct dict *d, const char *name, struct value v) {
    return dict_set(r->arena, d, value_str(sk_str_of(name)), v) ? true : out_of_memory(r, line);
}

static bool fill_loop(struct render *r, int line, struct dict *loop, const struct list *items, size_t i, int depth) {
    const int64_t n = (int64_t)items->n, index = (int64_t)i;
    return set_member(r, line, loop, "index", value_int(index + 1)) &&
           set_member(r, line, loop, "index0", value_int(index)) &&
           set_member(r, line, loop, "revindex", value_int(n - index)) &&
           set_member(r, line, loop, "revindex0", value_int(n - index - 1)) &&
           set_member(r, line, loop, "first", value_bool(i == 0)) &&
           set_member(r, line, loop, "last", value_bool(i + 1 == items->n)) &&
           set_member(r, line, loop, "length", value_int(n)) && set_member(r, line, loop, "depth", value_int(depth)) &&
           set_member(r, line, loop, "depth0", value_int(depth - 1)) &&
           set_member(r, line, loop, "previtem", i ? items->items[i - 1] : value_undefined(sk_str_of("previtem"))) &&
           set_member(r, line, loop, "nextitem",
                      i + 1 < items->n ? items->items[i + 1] : value_undefined(sk_str_of("nextitem")));
}

/* The items that pass the loop's condition; loop.length and the like count only these. */
static bool loop_items(struct render *r, struct scope *s, const struct node *n, struct list **out) {
    struct value iterable, condition;
    struct list *all;
    if (!evaluate(r, s, n->a, &iterable) || !to_list(r, n->line, iterable, &all)) return false;
    struct list *kept = *out = list_create(r->arena);
    if (!kept) return out_of_memory(r, n->line);
    for (size_t i = 0; i < all->n; i++) {
        if (n->d) {
            struct scope *inner = scope_create(r, s);
            if (!inner) return out_of_memory(r, n->line);
            if (!assign_all(r, inner, n->c, all->items[i]) || !evaluate(r, inner, n->d, &condition)) return false;
            if (!value_is_true(condition)) continue;
        }
        if (!list_push(r->arena, kept, all->items[i])) return out_of_memory(r, n->line);
    }
    return true;
}

static enum flow run_for(struct render *r, struct scope *s, const struct node *n) {
    struct list *items;
    if (!loop_items(r, s, n, &items)) return FLOW_FAILED;
    if (items->n == 0) return n->b ? run_body(r, s, n->b->list) : FLOW_ON;
    struct dict *loop = dict_create(r->arena);
    if (!loop) return out_of_memory(r, n->line), FLOW_FAILED;
    for (size_t i = 0; i < items->n; i++) {
        struct scope *inner = scope_create(r, s);
        if (!inner) return out_of_memory(r, n->line), FLOW_FAILED;
        if (!fill_loop(r, n->line, loop, items, i, 1) || !assign_all(r, inner, n->c, items->items[i]))
            return FLOW_FAILED;
        if (!scope_set(r, n->line, inner, sk_str_of("loop"), (struct value){.kind = V_NAMESPACE, .dict = loop}))
            return FLOW_FAILED;
        const enum flow flow = run_body(r, inner, n->list);
        if (flow == FLOW_FAILED) return flow;
        if (flow == FLOW_BREAK) break;
    }
    return FLOW_ON;
}

static enum flow run_if(struct render *r, struct scope *s, const struct node *n) {
    struct value condition;
    if (!evaluate(r, s, n->a, &condition)) return FLOW_FAILED;
    if (value_is_true(condition)) return run_body(r, s, n->list);
    return n->b ? run_body(r, s, n->b->list) : FLOW_ON;
}

static bool write_out(struct render *r, int line, struct value v) {
    value_show(v, r->out);
    if (r->out->failed) return fail_at(r, line, "the template's output passes the limit of %d bytes", MAX_OUTPUT);
    return true;
}

static bool make_closure(struct render *r, struct scope *s, const struct node *n, struct value *out) {
    struct closure *c = sk_arena_alloc(r->arena, sizeof *c);
    if (!c) return out_of_memory(r, n->line);
    *c = (struct closure){n, s};
    *out = (struct value){.kind = V_MACRO, .macro = c};
    return true;
}

static bool run_call_block(struct render *r, struct scope *s, const struct node *n) {
    struct value function, caller, text;
    struct arguments a;
    if (!evaluate(r, s, n->a->a, &function) || !evaluate_arguments(r, s, n->a->list, &a) ||
        !make_closure(r, s, n, &caller))
        return false;
    struct keyword *keywords = sk_arena_array(r->arena, a.n_keywords + 1, sizeof *keywords);
    if (!keywords) return out_of_memory(r, n->line);
    if (a.n_keywords) memcpy(keywords, a.keywords, a.n_keywords * sizeof *keywords);
    keywords[a.n_keywords] = (struct keyword){sk_str_of("caller"), caller};
    a.keywords = keywords;
    a.n_keywords++;
    return call_value(r, n->line, function, &a, &text) && write_out(r, n->line, text);
}

/* A block's text through a filter chain, whose innermost input is the name "". */
static bool run_filtered(struct render *r, struct scope *s, const struct node *filters, const struct node *body,
                         int line, struct value *out) {
    struct scope *inner = scope_create(r, s);
    if (!inner) return out_of_memory(r, line);
    if (!capture(r, inner, body, line, out)) return false;
    return !filters || (scope_set(r, line, inner, sk_str_of(""), *out) && evaluate(r, inner, filters, out));
}

static enum flow run_statement(struct render *r, struct scope *s, const struct node *n) {
    struct value v;
    bool ok;
    switch (n->kind) {
    case N_TEXT: ok = write_out(r, n->line, value_str(n->name)); break;
    case N_OUTPUT: ok = evaluate(r, s, n->a, &v) && write_out(r, n->line, v); break;
    case N_IF: return run_if(r, s, n);
    case N_FOR: return run_for(r, s, n);
    case N_BODY: return run_body(r, s, n->list);
    case N_BREAK: return FLOW_BREAK;
    case N_CONTINUE: return FLOW_CONTINUE;
    case N_SET: ok = evaluate(r, s, n->a, &v) && assign_all(r, s, n->c, v); break;
    case N_SET_BLOCK: ok = run_filtered(r, s, n->b, n->list, n->line, &v) && assign(r, s, n->c, v); break;
    case N_FILTER_BLOCK: ok = run_filtered(r, s, n->a, n->list, n->line, &v) && write_out(r, n->line, v); break;
    case N_MACRO: ok = make_closure(r, s, n, &v) && scope_set(r, n->line, s, n->name, v); break;
    case N_CALL_BLOCK: ok = run_call_block(r, s, n); break;
    default: ok = fail_at(r, n->line, "this is not a statement"); break;
    }
    return ok ? FLOW_ON : FLOW_FAILED;
}

static enum flow run_body(struct render *r, struct scope *s, const struct node *list) {
    if (list && !enter(r, list->line)) return FLOW_FAILED;
    enum flow flow = FLOW_ON;
    for (const struct node *n = list; n && flow == FLOW_ON; n = n->next)
        flow = step(r, n->line) ? run_statement(r, s, n) : FLOW_FAILED;
    if (list) r->depth--;
    return flow;
}

/* ---- the public face ------------------------------------------------------------------------------------ */

sk_status sk_template_compile(struct sk_str source, struct sk_template **out, struct sk_error *err) {
    struct sk_template *t = calloc(1, sizeof *t);
    if (!t) return sk_fail_memory(err, sizeof *t, "a template");
    t->arena.limit_bytes = MAX_MEMORY;
    struct lexeme *tokens;
    size_t n;
    const struct sk_str copy = {sk_arena_copy(&t->arena, source), source.n};
    sk_status st =
        copy.p ? template_lex(&t->arena, copy, &tokens, &n, err) : sk_fail_memory(err, source.n, "a template");
    if (!st) st = template_parse(&t->arena, tokens, n, &t->body, err);
    if (st) {
        sk_template_free(t);
        return st;
    }
    *out = t;
    return SK_OK;
}

void sk_template_free(struct sk_template *t) {
    if (!t) return;
    sk_arena_free(&t->arena);
    free(t);
}

sk_status sk_template_render(const struct sk_template *t, json_t *globals, int64_t now, struct sk_buf *out,
                             struct sk_error *err) {
    struct sk_error local = {0};
    struct sk_arena arena = {.limit_bytes = MAX_MEMORY};
    struct sk_buf text = {.limit = MAX_OUTPUT};
    struct render r = {.arena = &arena, .out = &text, .now = now, .err = err ? err : &local};
    const char *key;
    json_t *member;
    bool ok = (r.globals = scope_create(&r, NULL)) != NULL || out_of_memory(&r, 1);
    json_object_foreach(globals, key, member) {
        struct value v;
        if (!ok) break;
        ok = (value_from_json(&arena, member, 0, &v) ||
              fail_at(&r, 1, "the variable '%s' is too large or nested too deeply", key)) &&
             scope_set(&r, 1, r.globals, sk_str_of(key), v);
    }
    r.err->status = SK_OK;
    if (ok) ok = run_body(&r, r.globals, t->body->list) != FLOW_FAILED;
    if (ok) sk_buf_str(out, sk_buf_view(&text));
    if (ok && out->failed) ok = out_of_memory(&r, 1);
    sk_buf_free(&text);
    sk_arena_free(&arena);
    return ok ? SK_OK : (r.err->status ? r.err->status : SK_EINVAL);
}
