/* Any text as a chat template, rendered over a small conversation. */
#include <stdint.h>

#include "text/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct sk_error err = {0};
    struct sk_template *t;
    if (sk_template_compile((struct sk_str){(const char *)data, n}, &t, &err)) return 0;
    json_t *globals = json_pack("{s:[{s:s,s:s},{s:s,s:n}], s:b, s:s}", "messages", "role", "user", "content", "Hi <b>",
                                "role", "assistant", "content", "add_generation_prompt", 1, "bos_token", "<s>");
    struct sk_buf out = {.limit = 1 << 20};
    sk_template_render(t, globals, 1700000000, &out, &err);
    sk_buf_free(&out);
    json_decref(globals);
    sk_template_free(t);
    return 0;
}
