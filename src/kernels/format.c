#include "kernels/format.h"

#include "formats/formats.h"

static const struct sk_format *const formats[SK_N_FORMATS] = {
    [SK_FMT_F32] = &sk_format_f32,   [SK_FMT_F16] = &sk_format_f16,   [SK_FMT_BF16] = &sk_format_bf16,
    [SK_FMT_Q4_0] = &sk_format_q4_0, [SK_FMT_Q4_1] = &sk_format_q4_1, [SK_FMT_Q5_0] = &sk_format_q5_0,
    [SK_FMT_Q5_1] = &sk_format_q5_1, [SK_FMT_Q8_0] = &sk_format_q8_0,
};

const struct sk_format *sk_format_at(enum sk_format_index index) {
    return formats[index];
}

const struct sk_format *sk_format_for_type(uint32_t type) {
    for (size_t i = 0; i < SK_N_FORMATS; i++)
        if (formats[i]->type == type) return formats[i];
    return NULL;
}
