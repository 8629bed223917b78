/* The syntax tree of a template, and the way from source to tree. */
#ifndef SK_TEMPLATE_AST_H
#define SK_TEMPLATE_AST_H

#include "value.h"

enum node_kind {
    /* statements; `list` is a body */
    N_TEXT,         /* name: the text */
    N_OUTPUT,       /* a */
    N_IF,           /* a: condition, list: then, b: else (N_BODY) or NULL */
    N_FOR,          /* c: targets (names by next), a: iterable, d: filter, list: body, b: else (N_BODY) or NULL */
    N_SET,          /* c: targets, a: value */
    N_SET_BLOCK,    /* c: target, list: body, b: filter chain over N_NAME "" or NULL */
    N_MACRO,        /* name, c: parameters (N_NAME, default in a), list: body */
    N_CALL_BLOCK,   /* a: call, c: caller's parameters, list: body */
    N_FILTER_BLOCK, /* a: filter chain over N_NAME "", list: body */
    N_BODY,         /* list */
    N_BREAK,
    N_CONTINUE,
    /* expressions */
    N_CONST,     /* constant */
    N_NAME,      /* name */
    N_LIST,      /* list: items; constant.tuple: written with parentheses */
    N_DICT,      /* list: key, value, key, value, … */
    N_NOT,       /* a */
    N_NEGATE,    /* a */
    N_PLUS,      /* a */
    N_AND,       /* a, b */
    N_OR,        /* a, b */
    N_BINARY,    /* op: + - * / % ^ (power) D (floor division) ~, a, b */
    N_COMPARE,   /* a; list: operands, each with op: = ! < > l g i n */
    N_COND,      /* a if b else c (c may be NULL) */
    N_ATTRIBUTE, /* a.name */
    N_ITEM,      /* a[b] */
    N_SLICE,     /* a[b:c:d] */
    N_CALL,      /* a(list) */
    N_FILTER,    /* a | name(list) */
    N_TEST,      /* a is name(list) */
    N_KEYWORD,   /* an argument name=a, inside list */
};

struct node {
    enum node_kind kind;
    char op;
    int line;
    struct sk_str name;
    struct value constant;
    struct node *a, *b, *c, *d;
    struct node *list, *next;
};

struct sk_template {
    struct sk_arena arena;
    struct node *body; /* N_BODY */
};

enum token_kind {
    T_END,
    T_TEXT,
    T_BLOCK_BEGIN,
    T_BLOCK_END,
    T_OUTPUT_BEGIN,
    T_OUTPUT_END,
    T_NAME,
    T_STRING,
    T_INT,
    T_FLOAT,
    T_OP
};

struct lexeme {
    enum token_kind kind;
    int line;
    struct sk_str text; /* of T_STRING: with escapes resolved */
    int64_t i;
    double f;
};

/* All tokens of a source, ending with T_END. */
sk_status template_lex(struct sk_arena *arena, struct sk_str source, struct lexeme **out, size_t *n,
                       struct sk_error *err);
sk_status template_parse(struct sk_arena *arena, const struct lexeme *tokens, size_t n, struct node **out,
                         struct sk_error *err);

#endif
