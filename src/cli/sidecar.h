/* Finding a model's multi-token-prediction block where it is in a file of its own (a sidecar). */
#ifndef SK_CLI_SIDECAR_H
#define SK_CLI_SIDECAR_H

#include "gguf/gguf.h"

/* Whether the model's own file says that it holds a block. */
bool sidecar_is_needless(const struct sk_gguf *model);

/* The path of the first sidecar that names the model's fingerprint, to be freed; NULL if there is none. Looked at, in
 * this order: files beside the model with "mtp" in their name, $XDG_DATA_HOME/skipstone/mtp (~/.local/share without it),
 * and the folder that comes with the program. Of each folder every *.gguf, by name; what cannot be read is passed over.
 */
char *sidecar_find(const struct sk_gguf *model, const char *model_path);

#endif
