/* One annotation of a static pod's manifest set in its text, with every other byte as it was: so comments, order,
 * quotes and line ends of its author stay, and a `git diff` or kubeadm's own look at the file shows nothing else. The
 * kubelet makes a new pod of it, since it hashes the parsed pod; the same text again is the same pod
 * (docs/control-plane-measured.md). Pure.
 *
 * The new text is read again before it is handed out: it must be the Pod that the old one was but for the annotation,
 * else it is refused. */
#ifndef CR_CONTROLPLANE_AGENT_MANIFEST_EDIT_H
#define CR_CONTROLPLANE_AGENT_MANIFEST_EDIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

enum { CR_MANIFEST_VALUE_MAX = 256 };

/* name: an annotation's ("certroll.dev/restart"); value: at most CR_MANIFEST_VALUE_MAX printable ASCII characters.
 * - The annotation is there: its value is replaced, where it stands. Is it the same already, the text is as it was and
 *   *changed false.
 * - There are annotations: it comes before them; on a line of its own in block style, behind the brace in flow style.
 * - There are none, or null: they come first in metadata in the same way, or in the place of the null.
 * Appends the text to out. Errors: Invalid, with words that begin "the manifest" and nothing appended: for what
 * cr_static_pod_read refuses, for a value that is a block scalar or no text, and for styles in which a line cannot be
 * added without touching others ("? key", a key behind a tag on the same line). Thread-safe. */
bool cr_manifest_annotate(const char *text, size_t len, const char *name, const char *value, struct cr_buf *out,
                          bool *changed, struct cr_error *err) CR_MUST_USE;

#endif
