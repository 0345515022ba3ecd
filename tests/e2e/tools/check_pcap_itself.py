#!/usr/bin/python3 -B
"""check_pcap_itself.py FILE...: check_pcap.py must accept these captures of a known good NIC, and must
notice each single wrong byte that the invariant CRC or a length or checksum covers."""
import sys

import check_pcap

# Offsets in the IP packet that nothing protects: UDP checksum (0 is allowed) and BTH's FECN and BECN.
IPV4_FREE = {26, 27, 32}
IPV6_FREE = {0, 1, 2, 3, 7, 46, 47, 52}  # and version, traffic class, flow label, hop limit


def accepted(frame):
    try:
        check_pcap.check_frame(frame)
        return True
    except check_pcap.Bad:
        return False


def main():
    unnoticed, changed = 0, 0
    for path in sys.argv[1:]:
        if not check_pcap.check_file(path, [], with_tshark=False):
            return 1
        for number, frame in enumerate(check_pcap.frames(path), 1):
            free = IPV4_FREE if frame[12:14] == b"\x08\x00" else IPV6_FREE
            for at in range(len(frame) - 14):
                if at in free:
                    continue
                spoiled = bytearray(frame)
                spoiled[14 + at] ^= 1 + (at * 7 + number) % 255
                changed += 1
                if accepted(bytes(spoiled)):
                    unnoticed += 1
                    print(f"FAIL {path}: frame {number}: byte {at} of the IP packet was changed unnoticed")
    print(f"{'FAIL' if unnoticed or not changed else 'PASS'} {changed} changed bytes, {unnoticed} unnoticed")
    return 1 if unnoticed or not changed else 0


if __name__ == "__main__":
    sys.exit(main())
