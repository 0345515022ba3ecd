#!/usr/bin/env python3
"""`rocemu trace show` and `rocemu trace why`, with what reads their output: tshark, a JSON parser, a browser.

  show_formats.py ROCEMU text|perfetto|pcapng|why|selection|hostile|ladder_of_thousands

77 where a program is missing that the row needs.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import browser
import written_trace

ROCEMU = sys.argv[1]


def check(condition, what):
    if not condition:
        sys.exit(f"show_formats.py: {what}")


def rocemu(*words, code=0):
    done = subprocess.run([ROCEMU, "trace", *words], capture_output=True, text=True, check=False)
    check(done.returncode == code, f"rocemu trace {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done


def text(trace, _):
    lines = rocemu("show", trace, "--qp", "0x11").stdout.splitlines()
    check(any(line.endswith("rocemu0 QP 0x11 ack timeout: PSN 100, 1 of 7") for line in lines), "no timeout is told")
    check(len(lines) > 1000, "lines are missing")
    check(rocemu("show", trace, "--qp", "99").stdout == "", "another QP has events")


# What each kind of event has to have beside ph, name and pid (Trace Event Format, "Event Descriptions").
EVENT_FIELDS = {"M": {"args"}, "X": {"tid", "ts", "dur"}, "C": {"tid", "ts", "args"}, "i": {"tid", "ts", "s"},
                "s": {"tid", "ts", "id", "cat"}, "f": {"tid", "ts", "id", "cat", "bp"},
                "b": {"tid", "ts", "id", "cat"}, "e": {"tid", "ts", "id", "cat"}}


def check_event_format(events):
    """As a consumer of the format takes it: fields and their kinds, arrows and what lies beside tracks in pairs."""
    begun = {}
    for event in events:
        phase = event["ph"]
        check(phase in EVENT_FIELDS, f"no kind of event: {event}")
        missing = ({"name", "pid"} | EVENT_FIELDS[phase]) - set(event)
        check(not missing, f"{event} is without {missing}")
        check(all(isinstance(event.get(field, 0), int) for field in ("pid", "tid")), f"{event} is nowhere")
        check(all(isinstance(event.get(field, 0), (int, float)) and event.get(field, 0) >= 0 for field in ("ts", "dur")),
              f"{event} is at no time")
        if phase == "C":
            check(all(isinstance(value, (int, float)) for value in event["args"].values()), f"{event} counts nothing")
        if phase in "sbfe":
            key = event["cat"], event["id"], phase in "sf"
            begun[key] = begun.get(key, 0) + (1 if phase in "sb" else -1)
            check(begun[key] >= 0, f"{event} ends what has not begun")
    check(not any(begun.values()), "what begins does not end")
    tracks = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    used = {(event["pid"], event["tid"]) for event in events if event["ph"] in "Xisf"}
    check(used <= tracks, f"tracks without names: {used - tracks}")


def perfetto(trace, folder):
    out = os.path.join(folder, "trace.json")
    rocemu("show", trace, "--as=perfetto", "--out", out)
    with open(out, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    check_event_format(events)
    times = [event["ts"] for event in events if event["ph"] != "M"]
    check(times == sorted(times), "events are out of order")
    check({"X", "M", "s", "f", "C"} <= {event["ph"] for event in events}, "a kind of event is missing")


def pcapng(trace, folder):
    if shutil.which("tshark") is None:
        print("SKIPPED: there is no tshark here")
        sys.exit(77)
    out = os.path.join(folder, "trace.pcapng")
    rocemu("show", trace, "--as", "pcapng", "--out", out)
    said = subprocess.run(["tshark", "-r", out, "-T", "fields", "-e", "infiniband.bth.psn", "-e", "frame.interface_name",
                           "-e", "frame.comment", "-e", "infiniband.aeth.syndrome", "-e", "_ws.expert"],
                          capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in said.splitlines()]
    check(len(rows) == 2 * 1000 + 10, f"tshark sees {len(rows)} packets")
    comments = [row[2] for row in rows if row[0] == "100"]
    check(comments == ["lost: loss=1% (dropped)", "sent again: timeout 1 of 7", ""], f"of PSN 100 it says {comments}")
    check({row[1] for row in rows} == {"rocemu0", "rocemu1"}, "interfaces have other names")
    bad = subprocess.run(["tshark", "-r", out, "-Y", "_ws.malformed || _ws.short || _ws.expert.severity >= 6291456"],
                         capture_output=True, text=True, check=True).stdout.splitlines()
    check(not bad and not any("Malformed" in line for line in said.splitlines()), f"tshark finds fault with {bad[:3]}")
    listed = subprocess.run(["tshark", "-r", out], capture_output=True, text=True, check=True).stdout
    check("Malformed" not in listed and "size limited" not in listed, listed[:300])
    check("is of sender (100)" in rows[0][2], "the program is not named")


def why(trace, _):
    said = rocemu("why", trace, "--qp", "17").stdout
    check("1000 requests, 1010 packets sent, 10 of them lost, 10 sent again" in said, said)
    check("an ACK timeout ran" in said and "a smaller timeout" in said, said)
    rocemu("why", trace, "--qp", "99", code=1)


def selection(trace, folder):
    """One end of two, which often have the same number."""
    lines = rocemu("show", trace, "--device", "rocemu1").stdout.splitlines()
    check(lines and all(" rocemu1 QP 0x12 " in line for line in lines), "lines of another device")
    lines = rocemu("show", trace, "--program=sender").stdout.splitlines()
    check(lines and all(" rocemu0 QP 0x11 " in line for line in lines), "lines of another program")
    check(rocemu("show", trace, "--program", "100").stdout.splitlines() == lines, "a pid is another program")
    said = rocemu("why", trace, "--device", "rocemu1").stdout
    check(said.startswith("QP 0x12 of rocemu1") and "\nQP 0x11 of rocemu0" not in said, said)
    for form in ("ladder", "perfetto", "pcapng"):
        rocemu("show", trace, "--as", form, "--device", "rocemu0", "--qp", "17", "--program", "sender", "--out",
               os.path.join(folder, form))
    for words, answer in ((("--device", "mlx5_0"), "has no device 'mlx5_0', but rocemu0, rocemu1"),
                          (("--program", "perftest"), "has no program 'perftest', but sender")):
        for command in ("show", "why"):
            said = rocemu(command, trace, *words, code=1).stderr
            check(said.endswith(f"{answer}\n"), said)
    said = rocemu("why", trace, "--device", "rocemu0", "--qp", "0x12", code=1).stderr
    check("has nothing of QP 0x12 of rocemu0" in said, said)


def hostile(trace, folder):
    rocemu("show", "/nonexistent", code=1)
    rocemu("show", trace, "--as", "opera", code=2)
    rocemu("show", code=2)
    rocemu("show", trace, "--out", "/nonexistent/x", code=1)
    spoilt = os.path.join(folder, "spoilt.trace")
    with open(trace, "rb") as file:
        whole = file.read()
    for place in range(128, 128 + 30 * 64, 13):  # each byte of a record, in one record or another
        with open(spoilt, "wb") as file:
            file.write(whole[:place] + b"\xff\xfe\xfd" + whole[place + 3:4096 + place])
        for form in ("text", "ladder", "perfetto", "pcapng"):
            done = subprocess.run([ROCEMU, "trace", "show", spoilt, "--as", form], capture_output=True, check=False)
            check(done.returncode in (0, 1), f"{form} of a spoilt file ends with {done.returncode}")


def ladder_of_thousands(_, folder):
    if browser.find() is None:
        print("SKIPPED: there is no Chromium here (Debian: chromium)")
        sys.exit(77)
    trace, out = os.path.join(folder, "long.trace"), os.path.join(folder, "long.html")
    written_trace.write(trace, 10_000)
    rocemu("show", trace, "--as", "ladder", "--out", out)
    with browser.Browser() as page:
        page.open(out)
        page.drawn()
        check(page.value("view.packets.length") == 20_100, "packets are missing")
        # Of a frame at 60 Hz, on a machine that does other things as well.
        slowest = page.value("""(() => {
            const times = [];
            for (let i = 0; i < 50; ++i) {
                view.top = view.height * i / 50;
                const begin = performance.now();
                drawNow();
                times.push(performance.now() - begin);
            }
            times.sort((a, b) => a - b);
            return times[25]; })()""")
        print(f"a picture of 20,100 packets is drawn in {slowest:.1f} ms")
        check(slowest < 50, f"drawing takes {slowest} ms")
        page.key("e")
        check("lost" in page.value('document.getElementById("spoken").textContent'), "the first problem is another")
        check(not page.problems, "the console says: " + "; ".join(page.problems))
        page.picture(os.path.join(os.environ.get("ROCEMU_TEST_PICTURES", folder), "long.png"))


def main():
    rows = {row.__name__: row for row in (text, perfetto, pcapng, why, selection, hostile, ladder_of_thousands)}
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "a.trace")
        written_trace.write(trace, 1000)
        rows[sys.argv[2]](trace, folder)


if __name__ == "__main__":
    main()
