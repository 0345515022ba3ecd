/* Variables and files by which the command that starts a checked program tells the checker in it
 * what to do and hears of it. */
#ifndef ROCEMU_VERBS_SHIM_ABI_CHECK_FILES_H
#define ROCEMU_VERBS_SHIM_ABI_CHECK_FILES_H

/* Names of detectors to be on, by commas; "all", and "-name" for one that is to be off. */
#define ROCEMU_ENV_CHECK "ROCEMU_CHECK"
/* Where findings are appended, a JSON document a line, to findings.jsonl. Without it they go to
 * standard error alone. */
#define ROCEMU_ENV_CHECK_DIR "ROCEMU_CHECK_DIR"
/* A file of suppressions (docs/check.md). */
#define ROCEMU_ENV_CHECK_SUPPRESSIONS "ROCEMU_CHECK_SUPPRESSIONS"

#define ROCEMU_CHECK_LIBRARY "librocemu-check.so"
/* Loaded with LD_PRELOAD, beside the preload library. */
#define ROCEMU_CHECK_MEMORY_WATCH "librocemu-memory-watch.so"
#define ROCEMU_CHECK_FINDINGS_FILE "findings.jsonl"

#endif
