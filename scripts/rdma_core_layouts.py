#!/usr/bin/env python3
"""The layouts of rdma-core's provider-private structures, release by release.

    scripts/rdma_core_layouts.py CLONE [--check]

CLONE is a git directory of rdma-core. A small program over each release's own libibverbs/driver.h
says where members are; what differs from the release before is written to
tests/unit/verbs_shim/release_layouts.h, which a unit test holds against the provider's layouts.h.
--check compares instead, and fails when the file says something else. Needs a C compiler.
"""

import io
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

OLDEST = 28  # Ubuntu 20.04; from 27 back the headers take other files
OUTPUT = pathlib.Path(__file__).parent.parent / "tests/unit/verbs_shim/release_layouts.h"

# What private_abi.h declares: the same in all releases, but for import_context, which moves what is behind it.
FIXED = {
    ("verbs_device_ops", "match_table"): 16, ("verbs_device_ops", "static_providers"): 24,
    ("verbs_device_ops", "match_device"): 32, ("verbs_device_ops", "alloc_context"): 40,
    ("verbs_match_ent", "vendor"): 16, ("verbs_match_ent", "kind"): 20, ("verbs_match_ent", ""): 24,
    ("verbs_device", "ops"): 664, ("verbs_device", "sysfs"): 696, ("verbs_device", "core_support"): 704,
    ("verbs_device", ""): 712, ("ibv_context", ""): 328, ("verbs_mr", ""): 56, ("verbs_mr", "mr_type"): 48,
}

CONFIG = """#define HAVE_STATEMENT_EXPR 1
#define HAVE_BUILTIN_TYPES_COMPATIBLE_P 1
#define HAVE_TYPEOF 1
#define HAVE_LITTLE_ENDIAN 1
#define VERBS_WRITE_ONLY 0
#define VERBS_IOCTL_ONLY 0
"""


def unpack(clone: str, revision: str, folder: pathlib.Path) -> None:
    parts = ["libibverbs", "kernel-headers", "ccan", "util", "buildlib", "CMakeLists.txt"]
    archive = subprocess.run(["git", "-C", clone, "archive", revision, *parts], check=True, capture_output=True)
    tarfile.open(fileobj=io.BytesIO(archive.stdout)).extractall(folder)


def arrange_headers(source: pathlib.Path) -> pathlib.Path:
    """As rdma-core's own build does it: headers under the names by which they include each other."""
    include = source / "arranged"
    for name, origin in (("infiniband", "libibverbs"), ("ccan", "ccan"), ("util", "util"), ("rdma", "kernel-headers/rdma")):
        (include / name).mkdir(parents=True)
        for header in (source / origin).glob("*.h"):
            (include / name / header.name).symlink_to(header.resolve())
    (include / "kernel-abi").mkdir()
    for header in (source / "kernel-headers/rdma").glob("*.h"):
        # These two are published beside verbs.h.
        if header.name in ("ib_user_ioctl_verbs.h", "rdma_user_ioctl_cmds.h"):
            target = include / "infiniband" / header.name
            if not target.exists():
                target.symlink_to(header.resolve())
        subprocess.run([sys.executable, source / "buildlib/make_abi_structs.py", header,
                        include / "kernel-abi" / header.name], check=True)
    (include / "config.h").write_text(CONFIG)
    return include


def function_pointers(header: str, structure: str) -> list[str]:
    body = re.search(r"struct %s \{(.*?)\n\};" % structure, header, re.S)
    assert body, structure
    return re.findall(r"\(\*\s*(\w+)\)\s*\(", body.group(1))


def offsets(include: pathlib.Path, wanted: list[tuple[str, str]]) -> dict[tuple[str, str], int]:
    lines = [f'printf("%zu\\n", {f"offsetof(struct {s}, {m})" if m else f"sizeof(struct {s})"});' for s, m in wanted]
    program = include / "offsets.c"
    program.write_text("#include <config.h>\n#include <stddef.h>\n#include <stdio.h>\n#include <infiniband/driver.h>\n"
                       "int main(void) {\n" + "\n".join(lines) + "\n}\n")
    subprocess.run(["cc", "-w", "-D_GNU_SOURCE", f"-I{include}", "-include", include / "config.h", program,
                    "-o", include / "offsets"], check=True)
    said = subprocess.run([include / "offsets"], check=True, capture_output=True, text=True).stdout.split()
    return dict(zip(wanted, map(int, said)))


def layout(clone: str, revision: str) -> tuple[int, list[str], int, int, bool]:
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder)
        unpack(clone, revision, source)
        include = arrange_headers(source)
        header = re.sub(r"/\*.*?\*/", "", (source / "libibverbs/driver.h").read_text(), flags=re.S)
        ops = function_pointers(header, "verbs_context_ops")
        imports = "import_context" in function_pointers(header, "verbs_device_ops")
        wanted = [("verbs_context_ops", op) for op in ops] + [("verbs_context", "context"), ("verbs_qp", "comp_mask")]
        behind = 8 if imports else 0
        fixed = FIXED | {("verbs_device_ops", "alloc_device"): 48 + behind, ("verbs_device_ops", ""): 64 + behind}
        found = offsets(include, wanted + list(fixed))
        number = re.search(r'IBVERBS_PABI_VERSION "(\d+)"', (source / "CMakeLists.txt").read_text())
    assert number
    assert ops == sorted(ops), f"{revision}: not in the order of the alphabet"
    assert [found["verbs_context_ops", op] for op in ops] == [8 * i for i in range(len(ops))], revision
    for member, offset in fixed.items():
        assert found[member] == offset, f"{revision}: {member} is {found[member]}, not {offset}"
    return (int(number.group(1)), ops, found["verbs_context", "context"], found["verbs_qp", "comp_mask"], imports)


def revisions(clone: str) -> list[tuple[int, str]]:
    tags = subprocess.run(["git", "-C", clone, "tag"], check=True, capture_output=True, text=True).stdout
    releases = sorted(int(tag) for tag in re.findall(r"^v(\d+)\.0$", tags, re.M) if int(tag) >= OLDEST)
    # What comes after them.
    return [(release, f"v{release}.0") for release in releases] + [(releases[-1] + 1, "HEAD")]


def rows(clone: str) -> str:
    text = ""
    before: tuple | None = None
    for release, revision in revisions(clone):
        now = layout(clone, revision)
        if now == before:
            continue
        number, ops, context, comp_mask, imports = now
        old_ops = before[1] if before else []
        changes = [f"-{op}" for op in old_ops if op not in ops] + [f"+{op}" for op in ops if op not in old_ops]
        text += f'    {{{release}, {number}, {context}, {comp_mask}, {str(imports).lower()}, "{" ".join(changes)}"}},\n'
        before = now
    return text


def header(clone: str) -> str:
    return f"""// Written by scripts/rdma_core_layouts.py from rdma-core's own headers, x86-64: each release that
// differs from the one before.
// clang-format off
#pragma once

#include <cstddef>

namespace rocemu::provider {{

struct ReleaseLayout {{
  int release;
  int private_abi;
  size_t context_offset;       // of struct verbs_context
  size_t comp_mask_offset;     // of struct verbs_qp
  bool has_import_context;     // struct verbs_device_ops
  const char* ops;             // of struct verbs_context_ops: which came and went
}};

inline constexpr ReleaseLayout kReleaseLayouts[] = {{
{rows(clone)}}};

}}  // namespace rocemu::provider
"""


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    text = header(sys.argv[1])
    if sys.argv[2:]:
        if OUTPUT.read_text() == text:
            return 0
        print(f"{OUTPUT} is not what these headers say; run this without --check", file=sys.stderr)
        return 1
    OUTPUT.write_text(text)
    return 0


sys.exit(main())
