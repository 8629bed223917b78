/* The scalar table: every kernel as it is defined, for any processor. */
#include "isa.h"
#include "portable_table.h"

void sk_kernels_init_scalar(struct sk_kernels *k) {
    *k = (struct sk_kernels){.name = "scalar", .row_cost = 1.0f};
    fill_portable(k);
    for (int i = 0; i < SK_N_FORMATS; i++) k->matmul[i] = sk_format_at((enum sk_format_index)i)->matmul;
}
