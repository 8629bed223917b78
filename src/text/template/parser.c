/* Tokens to tree: recursive descent with Jinja's precedences. Nesting is bounded. */
#include <stdio.h>
#include <stdlib.h>

#include "ast.h"
#include "text/template.h"

enum { MAX_NESTING = 150 };

struct parser {
    struct sk_arena *arena;
    const struct lexeme *tokens;
    size_t at;
    int nesting;
    struct sk_error *err;
};

static struct node *parse_expression(struct parser *p);
static struct node *parse_unary(struct parser *p, bool with_filter);
static bool parse_body(struct parser *p, struct node **list, const char *const *ends);

/* All parse functions give NULL (or false) after the first error, which is in p->err. */
#define FAIL(p, ...) (sk_fail((p)->err, SK_EFORMAT, __VA_ARGS__), NULL)

static const struct lexeme *peek(const struct parser *p) {
    return &p->tokens[p->at];
}
static const struct lexeme *take(struct parser *p) {
    return &p->tokens[p->at++];
}
static bool is_op(const struct lexeme *t, const char *op) {
    return t->kind == T_OP && sk_str_is(t->text, op);
}
static bool is_name(const struct lexeme *t, const char *name) {
    return t->kind == T_NAME && sk_str_is(t->text, name);
}
static bool accept_op(struct parser *p, const char *op) {
    return is_op(peek(p), op) && take(p);
}
static bool accept_name(struct parser *p, const char *name) {
    return is_name(peek(p), name) && take(p);
}

static const char *describe(const struct lexeme *t, char out[64]) {
    static const char *const kinds[] = {"the end of the template",
                                        "text",
                                        "{%",
                                        "%}",
                                        "{{",
                                        "}}",
                                        "a name",
                                        "a string",
                                        "a number",
                                        "a number",
                                        "an operator"};
    if (t->kind == T_NAME || t->kind == T_OP)
        snprintf(out, 64, "'%.*s'", (int)(t->text.n < 50 ? t->text.n : 50), t->text.p);
    else
        snprintf(out, 64, "%s", kinds[t->kind]);
    return out;
}

static struct node *unexpected(struct parser *p, const char *wanted) {
    char found[64];
    return FAIL(p, "line %d: expected %s, found %s", peek(p)->line, wanted, describe(peek(p), found));
}

static struct node *make(struct parser *p, enum node_kind kind, int line) {
    struct node *n = sk_arena_alloc(p->arena, sizeof *n);
    if (!n) return FAIL(p, "line %d: the template is too large", line);
    n->kind = kind;
    n->line = line;
    return n;
}

static struct node *make_unary(struct parser *p, enum node_kind kind, int line, struct node *a) {
    struct node *n = a ? make(p, kind, line) : NULL;
    if (n) n->a = a;
    return n;
}

static struct node *make_binary(struct parser *p, enum node_kind kind, char op, struct node *a, struct node *b) {
    struct node *n = a && b ? make(p, kind, a->line) : NULL;
    if (!n) return NULL;
    n->op = op;
    n->a = a;
    n->b = b;
    return n;
}

static bool enter(struct parser *p) {
    if (++p->nesting <= MAX_NESTING) return true;
    sk_fail(p->err, SK_EFORMAT, "line %d: the template is nested too deeply", peek(p)->line);
    return false;
}

/* ---- expressions --------------------------------------------------------------------------------------- */

/* Arguments up to ')': positional and name=value. */
static bool parse_arguments(struct parser *p, struct node **list) {
    struct node **end = list;
    while (!is_op(peek(p), ")")) {
        const struct lexeme *t = peek(p);
        struct node *argument;
        if (is_op(t, "*") || is_op(t, "**")) {
            sk_fail(p->err, SK_EUNSUPPORTED, "line %d: unpacking arguments with %.*s is not supported", t->line,
                    (int)t->text.n, t->text.p);
            return false;
        }
        if (t->kind == T_NAME && is_op(&p->tokens[p->at + 1], "=")) {
            p->at += 2;
            argument = make_unary(p, N_KEYWORD, t->line, parse_expression(p));
            if (argument) argument->name = t->text;
        } else {
            argument = parse_expression(p);
        }
        if (!argument) return false;
        *end = argument;
        end = &argument->next;
        if (!accept_op(p, ",") && !is_op(peek(p), ")")) return unexpected(p, "',' or ')'") != NULL;
    }
    take(p);
    return true;
}

static struct node *constant(struct parser *p, struct value v) {
    struct node *n = make(p, N_CONST, peek(p)->line);
    if (n) n->constant = v;
    take(p);
    return n;
}

/* Items up to `close`, separated by commas. `first` may be an item already read. */
static struct node *parse_items(struct parser *p, struct node *first, const char *close, bool tuple) {
    struct node *list = make(p, N_LIST, peek(p)->line), **end = list ? &list->list : NULL;
    if (!list) return NULL;
    list->constant.tuple = tuple;
    if (first) {
        *end = first;
        end = &first->next;
    }
    while (!is_op(peek(p), close)) {
        struct node *item = parse_expression(p);
        if (!item) return NULL;
        *end = item;
        end = &item->next;
        if (!accept_op(p, ",") && !is_op(peek(p), close)) return unexpected(p, "',' or a closing bracket");
    }
    take(p);
    return list;
}

static struct node *parse_dict(struct parser *p) {
    struct node *dict = make(p, N_DICT, take(p)->line), **end = dict ? &dict->list : NULL;
    if (!dict) return NULL;
    while (!is_op(peek(p), "}")) {
        struct node *key = parse_expression(p);
        if (!key) return NULL;
        if (!accept_op(p, ":")) return unexpected(p, "':'");
        struct node *value = parse_expression(p);
        if (!value) return NULL;
        *end = key;
        key->next = value;
        end = &value->next;
        if (!accept_op(p, ",") && !is_op(peek(p), "}")) return unexpected(p, "',' or '}'");
    }
    take(p);
    return dict;
}

static struct node *parse_parenthesis(struct parser *p) {
    take(p);
    if (is_op(peek(p), ")")) return parse_items(p, NULL, ")", true);
    struct node *inner = parse_expression(p);
    if (!inner) return NULL;
    if (accept_op(p, ",")) return parse_items(p, inner, ")", true);
    return accept_op(p, ")") ? inner : unexpected(p, "')'");
}

/* Neighbouring strings are one string. */
static struct node *parse_strings(struct parser *p) {
    struct node *n = constant(p, value_str(peek(p)->text));
    while (n && peek(p)->kind == T_STRING) {
        const struct sk_str a = n->constant.s, b = take(p)->text;
        char *joined = sk_arena_alloc(p->arena, a.n + b.n + 1);
        if (!joined) return FAIL(p, "line %d: the template is too large", n->line);
        memcpy(joined, a.p, a.n);
        memcpy(joined + a.n, b.p, b.n);
        n->constant.s = (struct sk_str){joined, a.n + b.n};
    }
    return n;
}

static struct node *parse_primary(struct parser *p) {
    const struct lexeme *t = peek(p);
    if (t->kind == T_STRING) return parse_strings(p);
    if (t->kind == T_INT) return constant(p, value_int(t->i));
    if (t->kind == T_FLOAT) return constant(p, value_float(t->f));
    if (is_op(t, "(")) return parse_parenthesis(p);
    if (is_op(t, "[")) {
        take(p);
        return parse_items(p, NULL, "]", false);
    }
    if (is_op(t, "{")) return parse_dict(p);
    if (t->kind != T_NAME) return unexpected(p, "an expression");
    if (is_name(t, "true") || is_name(t, "True")) return constant(p, value_bool(true));
    if (is_name(t, "false") || is_name(t, "False")) return constant(p, value_bool(false));
    if (is_name(t, "none") || is_name(t, "None")) return constant(p, value_none());
    struct node *n = make(p, N_NAME, t->line);
    if (n) n->name = t->text;
    take(p);
    return n;
}

static struct node *parse_subscript(struct parser *p, struct node *object) {
    struct node *b = NULL, *c = NULL, *d = NULL;
    bool slice = false;
    if (!is_op(peek(p), ":") && !(b = parse_expression(p))) return NULL;
    if (accept_op(p, ":")) {
        slice = true;
        if (!is_op(peek(p), "]") && !is_op(peek(p), ":") && !(c = parse_expression(p))) return NULL;
        if (accept_op(p, ":") && !is_op(peek(p), "]") && !(d = parse_expression(p))) return NULL;
    }
    if (!accept_op(p, "]")) return unexpected(p, "']'");
    struct node *n = make(p, slice ? N_SLICE : N_ITEM, object->line);
    if (!n) return NULL;
    n->a = object, n->b = b, n->c = c, n->d = d;
    return n;
}

static struct node *parse_postfix(struct parser *p, struct node *n) {
    while (n) {
        const struct lexeme *t = peek(p);
        if (accept_op(p, ".")) {
            if (peek(p)->kind != T_NAME && peek(p)->kind != T_INT) return unexpected(p, "a name after '.'");
            if (peek(p)->kind == T_INT) {
                n = make_binary(p, N_ITEM, 0, n, constant(p, value_int(peek(p)->i)));
                continue;
            }
            n = make_unary(p, N_ATTRIBUTE, t->line, n);
            if (n) n->name = take(p)->text;
        } else if (accept_op(p, "[")) {
            n = parse_subscript(p, n);
        } else if (accept_op(p, "(")) {
            n = make_unary(p, N_CALL, t->line, n);
            if (n && !parse_arguments(p, &n->list)) return NULL;
        } else {
            break;
        }
    }
    return n;
}

static struct node *parse_filter(struct parser *p, struct node *n) {
    const struct lexeme *t = peek(p);
    if (t->kind != T_NAME) return unexpected(p, "a filter's name");
    take(p);
    n = make_unary(p, N_FILTER, t->line, n);
    if (!n) return NULL;
    n->name = t->text;
    return accept_op(p, "(") && !parse_arguments(p, &n->list) ? NULL : n;
}

/* After "is": an argument may follow without parentheses. */
static struct node *parse_test(struct parser *p, struct node *n) {
    const bool negated = accept_name(p, "not");
    const struct lexeme *t = peek(p);
    if (t->kind != T_NAME) return unexpected(p, "a test's name");
    take(p);
    n = make_unary(p, N_TEST, t->line, n);
    if (!n) return NULL;
    n->name = t->text;
    const struct lexeme *next = peek(p);
    const bool keyword = is_name(next, "else") || is_name(next, "or") || is_name(next, "and") || is_name(next, "is") ||
                         is_name(next, "if") || is_name(next, "not") || is_name(next, "in");
    if (accept_op(p, "(")) {
        if (!parse_arguments(p, &n->list)) return NULL;
    } else if ((next->kind == T_NAME && !keyword) || next->kind == T_STRING || next->kind == T_INT ||
               next->kind == T_FLOAT || is_op(next, "[") || is_op(next, "{")) {
        if (!(n->list = parse_postfix(p, parse_primary(p)))) return NULL;
    }
    return negated ? make_unary(p, N_NOT, t->line, n) : n;
}

static struct node *parse_filters_and_tests(struct parser *p, struct node *n) {
    while (n) {
        if (accept_op(p, "|"))
            n = parse_filter(p, n);
        else if (accept_name(p, "is"))
            n = parse_test(p, n);
        else if (accept_op(p, "(")) {
            n = make_unary(p, N_CALL, n->line, n);
            if (n && !parse_arguments(p, &n->list)) return NULL;
        } else
            break;
    }
    return n;
}

static struct node *parse_unary(struct parser *p, bool with_filter) {
    const int line = peek(p)->line;
    struct node *n;
    if (!enter(p)) return NULL;
    if (accept_op(p, "-"))
        n = make_unary(p, N_NEGATE, line, parse_unary(p, false));
    else if (accept_op(p, "+"))
        n = make_unary(p, N_PLUS, line, parse_unary(p, false));
    else
        n = parse_primary(p);
    n = parse_postfix(p, n);
    if (with_filter) n = parse_filters_and_tests(p, n);
    p->nesting--;
    return n;
}

static struct node *parse_power(struct parser *p) {
    struct node *n = parse_unary(p, true);
    while (n && accept_op(p, "**")) n = make_binary(p, N_BINARY, '^', n, parse_unary(p, true));
    return n;
}

static struct node *parse_product(struct parser *p) {
    struct node *n = parse_power(p);
    while (n) {
        if (accept_op(p, "*"))
            n = make_binary(p, N_BINARY, '*', n, parse_power(p));
        else if (accept_op(p, "/"))
            n = make_binary(p, N_BINARY, '/', n, parse_power(p));
        else if (accept_op(p, "//"))
            n = make_binary(p, N_BINARY, 'D', n, parse_power(p));
        else if (accept_op(p, "%"))
            n = make_binary(p, N_BINARY, '%', n, parse_power(p));
        else
            break;
    }
    return n;
}

static struct node *parse_concat(struct parser *p) {
    struct node *n = parse_product(p);
    while (n && accept_op(p, "~")) n = make_binary(p, N_BINARY, '~', n, parse_product(p));
    return n;
}

static struct node *parse_sum(struct parser *p) {
    struct node *n = parse_concat(p);
    while (n) {
        if (accept_op(p, "+"))
            n = make_binary(p, N_BINARY, '+', n, parse_concat(p));
        else if (accept_op(p, "-"))
            n = make_binary(p, N_BINARY, '-', n, parse_concat(p));
        else
            break;
    }
    return n;
}

static char comparison(struct parser *p) {
    static const struct {
        const char *text;
        char op;
    } ops[] = {{"==", '='}, {"!=", '!'}, {"<=", 'l'}, {">=", 'g'}, {"<", '<'}, {">", '>'}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (accept_op(p, ops[i].text)) return ops[i].op;
    if (accept_name(p, "in")) return 'i';
    if (is_name(peek(p), "not") && is_name(&p->tokens[p->at + 1], "in")) {
        p->at += 2;
        return 'n';
    }
    return 0;
}

static struct node *parse_compare(struct parser *p) {
    struct node *n = parse_sum(p), *compare = NULL, **end = NULL;
    for (char op; n && (op = comparison(p));) {
        struct node *operand = parse_sum(p);
        /* The operand's own op may be in use (a + b): wrap it. */
        operand = operand ? make_unary(p, N_COMPARE, operand->line, operand) : NULL;
        if (!operand) return NULL;
        operand->op = op;
        if (!compare) {
            if (!(compare = make_unary(p, N_COMPARE, n->line, n))) return NULL;
            end = &compare->list;
        }
        *end = operand;
        end = &operand->next;
    }
    return compare ? compare : n;
}

static struct node *parse_not(struct parser *p) {
    const int line = peek(p)->line;
    if (!accept_name(p, "not")) return parse_compare(p);
    struct node *n = enter(p) ? make_unary(p, N_NOT, line, parse_not(p)) : NULL;
    p->nesting--;
    return n;
}

static struct node *parse_and(struct parser *p) {
    struct node *n = parse_not(p);
    while (n && accept_name(p, "and")) n = make_binary(p, N_AND, 0, n, parse_not(p));
    return n;
}

static struct node *parse_or(struct parser *p) {
    struct node *n = parse_and(p);
    while (n && accept_name(p, "or")) n = make_binary(p, N_OR, 0, n, parse_and(p));
    return n;
}

static struct node *parse_expression(struct parser *p) {
    if (!enter(p)) return NULL;
    struct node *n = parse_or(p);
    while (n && accept_name(p, "if")) {
        n = make_binary(p, N_COND, 0, n, parse_or(p));
        if (n && accept_name(p, "else") && !(n->c = parse_expression(p))) return NULL;
    }
    p->nesting--;
    return n;
}

/* a, b, c without parentheses is a tuple. */
static struct node *parse_tuple(struct parser *p, const char *close) {
    struct node *first = parse_expression(p);
    if (!first || !is_op(peek(p), ",")) return first;
    struct node *list = make(p, N_LIST, first->line), *last = first;
    if (!list) return NULL;
    list->list = first;
    list->constant.tuple = true;
    while (accept_op(p, ",")) {
        if (peek(p)->kind == T_BLOCK_END || peek(p)->kind == T_OUTPUT_END || (close && is_name(peek(p), close))) break;
        struct node *item = parse_expression(p);
        if (!item) return NULL;
        last->next = item;
        last = item;
    }
    return list;
}

/* ---- statements ---------------------------------------------------------------------------------------- */

static bool end_tag(struct parser *p) {
    if (peek(p)->kind != T_BLOCK_END) return unexpected(p, "'%}'") != NULL;
    take(p);
    return true;
}

/* Names to assign to, separated by commas; with `attributes` also name.attribute. Parentheses around them are allowed.
 */
static struct node *parse_targets(struct parser *p, bool attributes) {
    struct node *first = NULL, **end = &first;
    const bool parenthesis = accept_op(p, "(");
    do {
        const struct lexeme *t = peek(p);
        if (t->kind != T_NAME) return unexpected(p, "a name");
        struct node *n = make(p, N_NAME, t->line);
        if (!n) return NULL;
        n->name = take(p)->text;
        if (attributes && accept_op(p, ".")) {
            if (peek(p)->kind != T_NAME) return unexpected(p, "a name after '.'");
            n = make_unary(p, N_ATTRIBUTE, t->line, n);
            if (!n) return NULL;
            n->name = take(p)->text;
        }
        *end = n;
        end = &n->next;
    } while (accept_op(p, ",") && !is_op(peek(p), "=") && !is_name(peek(p), "in"));
    if (parenthesis && !accept_op(p, ")")) return unexpected(p, "')'");
    return first;
}

static const char *const end_if[] = {"elif", "else", "endif", NULL}, *const end_for[] = {"else", "endfor", NULL},
                         *const end_set[] = {"endset", NULL}, *const end_macro[] = {"endmacro", NULL},
                         *const end_call[] = {"endcall", NULL}, *const end_filter[] = {"endfilter", NULL},
                         *const end_generation[] = {"endgeneration", NULL};

/* The body after a tag, and the tag that ends it (its name is consumed, not its '%}'). */
static bool body_after_tag(struct parser *p, struct node **list, const char *const *ends) {
    return end_tag(p) && parse_body(p, list, ends);
}

static struct node *parse_if(struct parser *p, int line) {
    struct node *n = make_unary(p, N_IF, line, parse_tuple(p, NULL));
    if (!n || !body_after_tag(p, &n->list, end_if)) return NULL;
    const struct lexeme *t = take(p);
    if (is_name(t, "elif")) {
        if (!enter(p)) return NULL;
        struct node *rest = parse_if(p, t->line);
        p->nesting--;
        n->b = rest ? make(p, N_BODY, t->line) : NULL;
        if (!n->b) return NULL;
        n->b->list = rest;
        return n;
    }
    if (is_name(t, "else")) {
        if (!(n->b = make(p, N_BODY, t->line)) || !body_after_tag(p, &n->b->list, end_if)) return NULL;
        if (!is_name(take(p), "endif")) return FAIL(p, "line %d: expected endif after else", t->line);
    }
    return end_tag(p) ? n : NULL;
}

static struct node *parse_for(struct parser *p, int line) {
    struct node *n = make(p, N_FOR, line);
    if (!n || !(n->c = parse_targets(p, false))) return NULL;
    if (!accept_name(p, "in")) return unexpected(p, "'in'");
    /* A condition after the iterable filters; an inline if would read it as its own. */
    struct node *iterable = parse_or(p);
    if (iterable && is_op(peek(p), ",")) iterable = FAIL(p, "line %d: a tuple to loop over needs parentheses", line);
    if (!(n->a = iterable)) return NULL;
    if (accept_name(p, "if") && !(n->d = parse_expression(p))) return NULL;
    if (accept_name(p, "recursive")) return FAIL(p, "line %d: recursive loops are not supported", line);
    if (!body_after_tag(p, &n->list, end_for)) return NULL;
    const struct lexeme *t = take(p);
    if (is_name(t, "else")) {
        if (!(n->b = make(p, N_BODY, t->line)) || !body_after_tag(p, &n->b->list, end_for)) return NULL;
        if (!is_name(take(p), "endfor")) return FAIL(p, "line %d: expected endfor after else", t->line);
    }
    return end_tag(p) ? n : NULL;
}

/* name|filter|filter over what a block gives. */
static struct node *parse_block_filter(struct parser *p, int line) {
    struct node *n = make(p, N_NAME, line);
    if (!n) return NULL;
    n->name = sk_str_of("");
    do n = parse_filter(p, n);
    while (n && accept_op(p, "|"));
    return n;
}

static struct node *parse_set(struct parser *p, int line) {
    struct node *n = make(p, N_SET, line);
    if (!n || !(n->c = parse_targets(p, true))) return NULL;
    if (accept_op(p, "=")) return (n->a = parse_tuple(p, NULL)) && end_tag(p) ? n : NULL;
    n->kind = N_SET_BLOCK;
    if (n->c->next) return unexpected(p, "'='");
    if (accept_op(p, "|") && !(n->b = parse_block_filter(p, line))) return NULL;
    if (!body_after_tag(p, &n->list, end_set)) return NULL;
    take(p);
    return end_tag(p) ? n : NULL;
}

static bool parse_parameters(struct parser *p, struct node **list) {
    if (!accept_op(p, "(")) return unexpected(p, "'('") != NULL;
    while (!is_op(peek(p), ")")) {
        const struct lexeme *t = peek(p);
        if (t->kind != T_NAME) return unexpected(p, "a parameter's name") != NULL;
        struct node *n = make(p, N_NAME, t->line);
        if (!n) return false;
        n->name = take(p)->text;
        if (accept_op(p, "=") && !(n->a = parse_expression(p))) return false;
        *list = n;
        list = &n->next;
        if (!accept_op(p, ",") && !is_op(peek(p), ")")) return unexpected(p, "',' or ')'") != NULL;
    }
    take(p);
    return true;
}

static struct node *parse_macro(struct parser *p, int line) {
    struct node *n = make(p, N_MACRO, line);
    if (!n) return NULL;
    if (peek(p)->kind != T_NAME) return unexpected(p, "a macro's name");
    n->name = take(p)->text;
    if (!parse_parameters(p, &n->c) || !body_after_tag(p, &n->list, end_macro)) return NULL;
    take(p);
    accept_name(p, "endmacro");
    if (peek(p)->kind == T_NAME) take(p); /* {% endmacro name %} */
    return end_tag(p) ? n : NULL;
}

static struct node *parse_call_block(struct parser *p, int line) {
    struct node *n = make(p, N_CALL_BLOCK, line);
    if (!n || (is_op(peek(p), "(") && !parse_parameters(p, &n->c))) return NULL;
    n->a = parse_unary(p, true);
    if (!n->a) return NULL;
    if (n->a->kind != N_CALL) return FAIL(p, "line %d: {%% call %%} needs a call of a macro", line);
    if (!body_after_tag(p, &n->list, end_call)) return NULL;
    take(p);
    return end_tag(p) ? n : NULL;
}

static struct node *parse_filter_block(struct parser *p, int line) {
    struct node *n = make_unary(p, N_FILTER_BLOCK, line, parse_block_filter(p, line));
    if (!n || !body_after_tag(p, &n->list, end_filter)) return NULL;
    take(p);
    return end_tag(p) ? n : NULL;
}

/* transformers marks the assistant's part so; it changes nothing in the text. */
static struct node *parse_generation(struct parser *p, int line) {
    struct node *n = make(p, N_BODY, line);
    if (!n || !body_after_tag(p, &n->list, end_generation)) return NULL;
    take(p);
    return end_tag(p) ? n : NULL;
}

static struct node *parse_statement(struct parser *p) {
    const struct lexeme *t = take(p);
    if (t->kind != T_NAME) {
        p->at--;
        return unexpected(p, "a statement");
    }
    if (is_name(t, "if")) return parse_if(p, t->line);
    if (is_name(t, "for")) return parse_for(p, t->line);
    if (is_name(t, "set")) return parse_set(p, t->line);
    if (is_name(t, "macro")) return parse_macro(p, t->line);
    if (is_name(t, "call")) return parse_call_block(p, t->line);
    if (is_name(t, "filter")) return parse_filter_block(p, t->line);
    if (is_name(t, "generation")) return parse_generation(p, t->line);
    if (is_name(t, "break") || is_name(t, "continue")) {
        struct node *n = make(p, is_name(t, "break") ? N_BREAK : N_CONTINUE, t->line);
        return n && end_tag(p) ? n : NULL;
    }
    if (is_name(t, "do")) {
        struct node *n = make_unary(p, N_SET, t->line, parse_tuple(p, NULL)); /* no targets: evaluated and dropped */
        return n && end_tag(p) ? n : NULL;
    }
    return sk_fail(p->err, SK_EUNSUPPORTED, "line %d: the statement '%.*s' is not supported", t->line,
                   (int)(t->text.n < 50 ? t->text.n : 50), t->text.p),
           NULL;
}

/* Statements up to a tag named in `ends` (left with its name as the next token), or to the end if ends is NULL. */
static bool parse_body(struct parser *p, struct node **list, const char *const *ends) {
    if (!enter(p)) return false;
    for (;;) {
        const struct lexeme *t = peek(p);
        struct node *n;
        if (t->kind == T_END) {
            p->nesting--;
            if (!ends) return true;
            for (size_t i = 0;; i++)
                if (!ends[i + 1])
                    return FAIL(p, "line %d: the template ends before {%% %s %%}", t->line, ends[i]) != NULL;
        }
        take(p);
        if (t->kind == T_TEXT) {
            if ((n = make(p, N_TEXT, t->line))) n->name = t->text;
        } else if (t->kind == T_OUTPUT_BEGIN) {
            n = make_unary(p, N_OUTPUT, t->line, parse_tuple(p, NULL));
            if (n && peek(p)->kind != T_OUTPUT_END) n = unexpected(p, "'}}'");
            if (n) take(p);
        } else {
            for (size_t i = 0; ends && ends[i]; i++) {
                if (!is_name(peek(p), ends[i])) continue;
                p->nesting--;
                return true;
            }
            n = parse_statement(p);
        }
        if (!n) return false;
        *list = n;
        list = &n->next;
    }
}

sk_status template_parse(struct sk_arena *arena, const struct lexeme *tokens, size_t n, struct node **out,
                         struct sk_error *err) {
    (void)n;
    struct sk_error local = {0};
    struct parser p = {.arena = arena, .tokens = tokens, .err = err ? err : &local};
    p.err->status = SK_OK;
    *out = make(&p, N_BODY, 1);
    if (*out && parse_body(&p, &(*out)->list, NULL)) return SK_OK;
    return p.err->status ? p.err->status : SK_EFORMAT;
}
