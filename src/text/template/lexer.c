/* Source to tokens, with Jinja's whitespace rules: trim_blocks (a newline after a block tag goes), lstrip_blocks
 * (spaces before a block tag that starts its line go), '-' (all space on that side goes) and '+' (nothing does). */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "ast.h"
#include "base/utf8.h"

struct lexer {
    struct sk_arena *arena;
    struct sk_str src;
    size_t at;
    int line;
    struct lexeme *tokens;
    size_t n, cap;
    struct sk_error *err;
    bool trim_next;    /* the tag before ended in '-': the following text loses its leading space */
    bool newline_next; /* a block tag ended: the following text loses one newline */
};

static sk_status no_memory(struct lexer *l) {
    return sk_fail(l->err, SK_ENOMEM, "line %d: the template is too large", l->line);
}

static sk_status push(struct lexer *l, struct lexeme t) {
    if (l->n == l->cap) {
        const size_t cap = l->cap ? l->cap * 2 : 64;
        struct lexeme *tokens = sk_arena_array(l->arena, cap, sizeof *tokens);
        if (!tokens) return no_memory(l);
        if (l->n) memcpy(tokens, l->tokens, l->n * sizeof *tokens);
        l->tokens = tokens;
        l->cap = cap;
    }
    l->tokens[l->n++] = t;
    return SK_OK;
}

static bool starts(const struct lexer *l, const char *s) {
    const size_t n = strlen(s);
    return l->src.n - l->at >= n && memcmp(l->src.p + l->at, s, n) == 0;
}

static void advance(struct lexer *l, size_t n) {
    for (size_t i = 0; i < n; i++) l->line += l->src.p[l->at + i] == '\n';
    l->at += n;
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/* Where the next tag starts; the end if there is none. */
static size_t find_tag(const struct lexer *l) {
    for (size_t i = l->at; i + 1 < l->src.n; i++)
        if (l->src.p[i] == '{' && (l->src.p[i + 1] == '{' || l->src.p[i + 1] == '%' || l->src.p[i + 1] == '#'))
            return i;
    return l->src.n;
}

/* The text up to a tag at `end`, shortened by the rules; `sign` is the character after the tag's opening. */
static sk_status emit_text(struct lexer *l, size_t end, bool tag_is_block, char sign) {
    size_t from = l->at, to = end;
    if (l->trim_next) {
        while (from < to && is_space(l->src.p[from])) from++;
    } else if (l->newline_next && from < to) {
        if (l->src.p[from] == '\r' && from + 1 < to && l->src.p[from + 1] == '\n') from++;
        if (l->src.p[from] == '\n') from++;
    }
    if (sign == '-') {
        while (to > from && is_space(l->src.p[to - 1])) to--;
    } else if (tag_is_block && sign != '+') {
        size_t line = to;
        while (line > from && (l->src.p[line - 1] == ' ' || l->src.p[line - 1] == '\t')) line--;
        /* Only if the tag is the first thing on its line; text already cut by a tag before is not a line's start. */
        if (line > from ? l->src.p[line - 1] == '\n' : (line == 0 || l->src.p[line - 1] == '\n')) to = line;
    }
    const struct lexeme t = {.kind = T_TEXT, .line = l->line, .text = {l->src.p + from, to - from}};
    advance(l, end - l->at);
    l->trim_next = l->newline_next = false;
    return to > from ? push(l, t) : SK_OK;
}

static sk_status lex_string(struct lexer *l) {
    const char quote = l->src.p[l->at];
    const int line = l->line;
    struct sk_buf b = {0};
    advance(l, 1);
    while (l->at < l->src.n && l->src.p[l->at] != quote) {
        char c = l->src.p[l->at];
        if (c != '\\' || l->at + 1 >= l->src.n) {
            sk_buf_putc(&b, c);
            advance(l, 1);
            continue;
        }
        c = l->src.p[l->at + 1];
        advance(l, 2);
        const int hex = c == 'x' ? 2 : (c == 'u' ? 4 : (c == 'U' ? 8 : 0));
        static const char from[] = "ntrbfva0\\'\"", to[] = "\n\t\r\b\f\v\a\0\\'\"";
        const char *known = memchr(from, c, sizeof from - 1);
        if (hex && l->src.n - l->at >= (size_t)hex) {
            char digits[9] = {0}, *end, utf8[4];
            memcpy(digits, l->src.p + l->at, (size_t)hex);
            const unsigned long cp = strtoul(digits, &end, 16);
            if (*end || cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) {
                sk_buf_free(&b);
                return sk_fail(l->err, SK_EFORMAT, "line %d: bad escape \\%c%s in a string", line, c, digits);
            }
            sk_buf_append(&b, utf8, sk_utf8_encode((uint32_t)cp, utf8));
            advance(l, (size_t)hex);
        } else if (known) {
            sk_buf_putc(&b, to[known - from]);
        } else if (c != '\n') { /* Python keeps an unknown escape as it is */
            sk_buf_putc(&b, '\\');
            sk_buf_putc(&b, c);
        }
    }
    if (l->at >= l->src.n) {
        sk_buf_free(&b);
        return sk_fail(l->err, SK_EFORMAT, "line %d: a string is not closed", line);
    }
    advance(l, 1);
    const struct sk_str view = sk_buf_view(&b);
    const char *copy = sk_arena_copy(l->arena, view);
    const size_t n = view.n;
    const bool failed = b.failed || !copy;
    sk_buf_free(&b);
    return failed ? no_memory(l) : push(l, (struct lexeme){.kind = T_STRING, .line = line, .text = {copy, n}});
}

static sk_status lex_number(struct lexer *l) {
    char digits[64];
    size_t n = 0;
    bool is_float = false;
    for (size_t i = l->at; i < l->src.n; i++) {
        const char c = l->src.p[i];
        const bool dot = c == '.' && !is_float && i + 1 < l->src.n && isdigit((unsigned char)l->src.p[i + 1]);
        const bool exponent =
            (c == 'e' || c == 'E') && i + 1 < l->src.n &&
            (isdigit((unsigned char)l->src.p[i + 1]) || l->src.p[i + 1] == '-' || l->src.p[i + 1] == '+');
        const bool sign = (c == '-' || c == '+') && n && (digits[n - 1] == 'e' || digits[n - 1] == 'E');
        if (!isdigit((unsigned char)c) && c != '_' && !dot && !exponent && !sign) break;
        is_float = is_float || dot || exponent;
        if (n + 1 >= sizeof digits) return sk_fail(l->err, SK_EFORMAT, "line %d: a number is too long", l->line);
        if (c != '_') digits[n++] = c;
        l->at = i + 1;
    }
    digits[n] = '\0';
    struct lexeme t = {.kind = is_float ? T_FLOAT : T_INT, .line = l->line};
    errno = 0;
    if (is_float)
        t.f = strtod(digits, NULL);
    else
        t.i = strtoll(digits, NULL, 10);
    if (errno == ERANGE) return sk_fail(l->err, SK_EFORMAT, "line %d: the number %s is too large", l->line, digits);
    return push(l, t);
}

static bool is_name_char(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* One token inside a tag. */
static sk_status lex_token(struct lexer *l) {
    const char c = l->src.p[l->at];
    if (c == '"' || c == '\'') return lex_string(l);
    if (isdigit((unsigned char)c)) return lex_number(l);
    const size_t start = l->at;
    if (is_name_char(c)) {
        while (l->at < l->src.n && is_name_char(l->src.p[l->at])) l->at++;
        return push(l, (struct lexeme){.kind = T_NAME, .line = l->line, .text = {l->src.p + start, l->at - start}});
    }
    static const char *const operators[] = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<",
                                            ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ".", ",", ":", "|"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!starts(l, operators[i])) continue;
        const size_t n = strlen(operators[i]);
        l->at += n;
        return push(l, (struct lexeme){.kind = T_OP, .line = l->line, .text = {l->src.p + start, n}});
    }
    return sk_fail(l->err, SK_EFORMAT, "line %d: unexpected character '%c'", l->line, c);
}

/* Tokens up to the tag's end; its '-' or '+' and the end itself are consumed. */
static sk_status lex_tag(struct lexer *l, bool block) {
    const char *end = block ? "%}" : "}}", *minus = block ? "-%}" : "-}}", *plus = block ? "+%}" : "+}}";
    const int line = l->line;
    int depth = 0; /* of braces: }} may close two dicts */
    sk_status st = push(l, (struct lexeme){.kind = block ? T_BLOCK_BEGIN : T_OUTPUT_BEGIN, .line = line});
    while (!st) {
        while (l->at < l->src.n && is_space(l->src.p[l->at])) advance(l, 1);
        if (l->at >= l->src.n) return sk_fail(l->err, SK_EFORMAT, "line %d: a tag is not closed with %s", line, end);
        if (starts(l, minus) || starts(l, plus) || (starts(l, end) && (block || depth == 0))) {
            l->trim_next = starts(l, minus);
            l->newline_next = block && !starts(l, plus);
            advance(l, starts(l, end) ? 2 : 3);
            return push(l, (struct lexeme){.kind = block ? T_BLOCK_END : T_OUTPUT_END, .line = l->line});
        }
        st = lex_token(l);
        const struct lexeme *t = &l->tokens[l->n - 1];
        if (!st && t->kind == T_OP) depth += sk_str_is(t->text, "{") ? 1 : (sk_str_is(t->text, "}") ? -1 : 0);
    }
    return st;
}

static sk_status skip_comment(struct lexer *l) {
    const int line = l->line;
    const size_t end = sk_str_find(l->src, sk_str_of("#}"), l->at);
    if (end == SIZE_MAX) return sk_fail(l->err, SK_EFORMAT, "line %d: a comment is not closed with #}", line);
    l->trim_next = end > l->at && l->src.p[end - 1] == '-';
    l->newline_next = !(end > l->at && l->src.p[end - 1] == '+');
    advance(l, end + 2 - l->at);
    return SK_OK;
}

/* If the tag just read was {% raw %}, the text up to {% endraw %} goes through as it is. */
static sk_status take_raw(struct lexer *l) {
    if (l->n < 3 || l->tokens[l->n - 3].kind != T_BLOCK_BEGIN || l->tokens[l->n - 2].kind != T_NAME ||
        !sk_str_is(l->tokens[l->n - 2].text, "raw"))
        return SK_OK;
    l->n -= 3;
    const int line = l->line;
    for (size_t i = l->at; i + 1 < l->src.n; i++) {
        if (l->src.p[i] != '{' || l->src.p[i + 1] != '%') continue;
        size_t j = i + 2;
        const char sign = j < l->src.n ? l->src.p[j] : ' ';
        if (sign == '-' || sign == '+') j++;
        while (j < l->src.n && is_space(l->src.p[j])) j++;
        if (l->src.n - j < 6 || memcmp(l->src.p + j, "endraw", 6) != 0) continue;
        sk_status st = emit_text(l, i, true, sign);
        if (st) return st;
        advance(l, j - i);
        const size_t before = l->n;
        st = lex_tag(l, true);
        l->n = before;
        return st;
    }
    return sk_fail(l->err, SK_EFORMAT, "line %d: {%% raw %%} is not closed with {%% endraw %%}", line);
}

sk_status template_lex(struct sk_arena *arena, struct sk_str source, struct lexeme **out, size_t *n,
                       struct sk_error *err) {
    /* Jinja drops one newline at the end of a template. */
    if (source.n && source.p[source.n - 1] == '\n') source.n--;
    struct lexer l = {.arena = arena, .src = source, .line = 1, .err = err};
    sk_status st = SK_OK;
    while (!st && l.at < l.src.n) {
        const size_t tag = find_tag(&l);
        const bool at_tag = tag < l.src.n;
        const char kind = at_tag ? l.src.p[tag + 1] : 0, sign = at_tag && tag + 2 < l.src.n ? l.src.p[tag + 2] : 0;
        st = emit_text(&l, tag, kind == '%' || kind == '#', at_tag ? sign : 0);
        if (st || !at_tag) break;
        advance(&l, sign == '-' || (sign == '+' && kind != '{') ? 3 : 2);
        st = kind == '#' ? skip_comment(&l) : lex_tag(&l, kind == '%');
        if (!st && kind == '%') st = take_raw(&l);
    }
    if (!st) st = push(&l, (struct lexeme){.kind = T_END, .line = l.line});
    *out = l.tokens;
    *n = l.n;
    return st;
}
