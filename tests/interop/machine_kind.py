"""What of a virtual machine is its architecture's: of Debian's, and of qemu's words."""
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    architecture: str  # as Debian calls it
    triplet: str
    kernel: str  # package
    modules: tuple  # besides those that all have
    qemu: str
    qemu_package: str
    words: tuple
    console: str
    kernel_words: str
    emulator: tuple = ()  # words that run one of its programs here

    def library_folder(self):
        return f"usr/lib/{self.triplet}"


# no_timer_check: on a busy host the kernel would believe that the emulated timer does not work, and stop.
AMD64 = Kind("amd64", "x86_64-linux-gnu", os.environ.get("ROCEMU_INTEROP_KERNEL", "linux-image-amd64"),
             ("crc32_pclmul", "dummy", "libcrc32c"), os.environ.get("ROCEMU_INTEROP_QEMU", "qemu-system-x86_64"),
             "qemu-system-x86", ("-cpu", "max", "-machine", "q35"), "ttyS0", "mitigations=off no_timer_check")
# pauth-impdef: signatures of pointers by a cheap algorithm, since the architecture's own is slow to emulate.
ARM64 = Kind("arm64", "aarch64-linux-gnu", "linux-image-arm64", (), "qemu-system-aarch64", "qemu-system-arm",
             ("-cpu", "max,pauth-impdef=on", "-machine", "virt"), "ttyAMA0", "mitigations=off", ("qemu-aarch64",))
