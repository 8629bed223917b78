/* The architecture families this build knows. A new one is a line here and a file beside this one. */
#include "internal.h"

static const struct sk_architecture *const families[] = {&sk_architecture_llama, &sk_architecture_toy};

const struct sk_architecture *sk_architecture_named(struct sk_str name) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (sk_str_is(name, families[i]->name)) return families[i];
    return NULL;
}

const char *sk_architecture_names(void) {
    return "llama";
}
