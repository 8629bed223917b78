/* Chat templates: an interpreter for the part of Jinja2 that models' templates use, with the environment that
 * transformers gives them (trim_blocks, lstrip_blocks, loop controls, tojson without ASCII escapes, raise_exception,
 * strftime_now).
 *
 * Statements: set (also of namespaces, of several names, of a block), for (filter, else, break, continue, loop.*), if,
 * macro, call, filter, generation, raw, comments. Anything else is refused by name and line, never skipped. Steps,
 * nesting, memory and output are bounded, so a hostile template ends with an error. docs/TEMPLATES.md lists filters,
 * tests and methods. */
#ifndef SK_TEXT_TEMPLATE_H
#define SK_TEXT_TEMPLATE_H

#include "base/error.h"
#include "base/str.h"

#include <jansson.h>
#include <stdint.h>

struct sk_template;

/* Errors name the line. `source` is copied. */
sk_status sk_template_compile(struct sk_str source, struct sk_template **out, struct sk_error *err);
void sk_template_free(struct sk_template *t);

/* Renders with the members of `globals` (a JSON object: messages, tools, add_generation_prompt, bos_token, …) as
 * variables, and appends to `out`. `now` is the time (seconds since 1970) that strftime_now shows, in local time. A
 * template that calls raise_exception fails with its message. */
sk_status sk_template_render(const struct sk_template *t, json_t *globals, int64_t now, struct sk_buf *out,
                             struct sk_error *err);

#endif
