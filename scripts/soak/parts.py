"""The parts of a soak. Each is a function of its Steps: it counts figures and adds failures until the time is over."""
import os
import re
import shutil
import tempfile
import time

SCENARIOS = 10_000_000
SCENARIOS_AT_ONCE = 100_000
KILLS = 10_000
KILLS_AT_ONCE = 50
FUZZ_TARGETS = ["frame", "gso", "transport", "services", "control", "cm", "rings", "ip_host", "script"]
HOSTILE_KINDS = ["lingering-sockets", "fuse-files", "userfaultfd", "userfaultfd-before", "userfaultfd-heir", "userfaultfd-again",
                 "fuse-memory", "long-queues", "huge-rings", "many-objects", "doorbells", "all-queues", "unread-events",
                 "cm-flood"]
HOSTILE_ATTEMPTS = 3
# Tests at a time: those with programs wait more than they compute, and become unsteady among many.
PARALLEL = min(os.cpu_count() + 1, 8)
LOSSY = "loss=1%,reorder=1%,dup=0.5%,corrupt=0.1%"
TEST_RESULT = re.compile(r"Test +#\d+: (.+?) \.*(?: +|\*\*\*)(Passed|Skipped|Not Run|Failed|Timeout|Exception|\w+ aborted|"
                         r"Subprocess \w+)")
# Options of the NIC, and of stress.
STRESS = [
    ([], ["--processes", "4"]),
    ([], ["--processes", "8", "--qps", "4"]),
    (["--impair", LOSSY], ["--processes", "4"]),
    (["--impair", LOSSY + ",delay=20us,jitter=10us"], ["--processes", "6", "--srq"]),
    (["--share-memory"], ["--processes", "4"]),
    (["--share-memory", "--impair", LOSSY, "--devices", "3"], ["--processes", "6", "--srq", "--max-size", "1000000"]),
    (["--config", "tests/e2e/configs/parallel.toml"], ["--processes", "4", "--srq"]),
    (["--config", "tests/e2e/configs/parallel.toml", "--impair", LOSSY], ["--processes", "8"]),
    (["--config", "tests/e2e/configs/parallel_programs.toml"], ["--processes", "8"]),
    (["--devices", "4"], ["--processes", "8", "--max-size", "4096"]),
]


def ordinary_build(steps):
    """The folder of a build without a sanitizer, or nothing when it fails."""
    if steps.options.build:
        return steps.options.build
    return "build/release" if steps.build("release") else None


def last_lines(output, count=3):
    return " / ".join(output.strip().splitlines()[-count:])


def tests(steps, preset, *selection):
    """ctest, until the time is over: what has failed by then counts, what was stopped does not."""
    if not steps.build(preset):
        return
    stop = time.strftime("%H:%M:%S", time.localtime(time.time() + steps.left()))
    command = ["ctest", "--preset", preset, "--no-tests=error", "--parallel", str(PARALLEL), "--stop-time", stop, *selection]
    ends_at = time.monotonic() + steps.left()
    code, output = steps.run(command, steps.left() + 30)
    in_time = time.monotonic() < ends_at - 1
    results = TEST_RESULT.findall(output)
    for name, result in results:
        kind = "passed" if result == "Passed" else "skipped" if result in ("Skipped", "Not Run") else "failed"
        # ctest calls it a timeout, too, when it stops those that run at the end of the time.
        if kind == "failed" and not in_time and (name, result) in results[-PARALLEL:]:
            continue
        steps.count(f"tests {kind}", 1)
        if kind == "failed":
            steps.failures.append(f"{name}: {result}")
    if not in_time:
        steps.cut("the time was over")
    elif code != 0 and not steps.failures:
        steps.failures.append(f"ctest ended with {code}: {last_lines(output)}")


def asan(steps):
    """All tests with AddressSanitizer and UBSan; then those too long for every day."""
    tests(steps, "asan")
    if steps.left() > 0:
        tests(steps, "asan", "-C", "long", "-L", "long")


def tsan(steps):
    """Unit tests with ThreadSanitizer, and the stress over NICs with it whose devices have turns of their own, or whose programs."""
    whole = steps.seconds
    steps.seconds = whole / 2
    tests(steps, "tsan", "-R", "^unit/")
    steps.seconds = whole
    build = ordinary_build(steps)
    if build is None or steps.failures:
        return
    for how, share in (("always", 2), ("programs", 1)):
        seconds = max(1, int(steps.left() / share) - 20)
        with tempfile.TemporaryDirectory() as folder:
            log = f"{folder}/log"
            script = (f"build/tsan/bin/rocemud --dir {folder} --parallel {how} > {log} 2>&1 & nic=$!; "
                      f"until [ -S {folder}/nic.sock ]; do kill -0 $nic || {{ cat {log}; exit 1; }}; done; "
                      f"{build}/bin/rocemu exec --socket {folder}/nic.sock -- {build}/tests/e2e/stress "
                      f"--seconds {seconds} --processes 4 --seed {steps.options.seed}; code=$?; "
                      f"kill $nic; wait $nic; nic_code=$?; cat {log}; [ $code$nic_code = 00 ]")
            code, output = steps.run(["bash", "-c", script], seconds + 80)
        note_stress(steps, code, output, f"over a NIC with ThreadSanitizer and --parallel {how}")
        if "WARNING: ThreadSanitizer" in output:
            steps.failures.append(re.search(r"WARNING: ThreadSanitizer.*", output).group())


def scenarios(steps):
    """Random scenarios of the transport in virtual time, to 10,000,000."""
    build = ordinary_build(steps)
    # Goes on after the seeds of a run before, unless that had come to its end.
    done = steps.before.get("scenarios", 0) % SCENARIOS
    first = steps.before.get("first seed", steps.options.seed) if done else steps.options.seed
    steps.figures = {"scenarios": done, "first seed": first}
    many = min(SCENARIOS_AT_ONCE, max(1000, int(steps.seconds) * 100))
    while build and done < SCENARIOS and steps.left() > 0:
        code, output = steps.run([f"{build}/bin/sim_scenarios", "--scenarios", str(many), "--seed", str(first + done),
                                  "--jobs", str(os.cpu_count())])
        if code is None:
            break
        if code != 0:
            steps.failures.append(last_lines(output))
            return
        done += many
        steps.figures["scenarios"] = done
    if done < SCENARIOS:
        steps.cut(f"{done:,} of {SCENARIOS:,}")


def fuzz(steps):
    """Each fuzz target for an equal part of the time; the corpus of earlier runs is in build/fuzz."""
    if shutil.which("clang++") is None:
        steps.failures.append("no clang++ (scripts/packages.sh fuzz)")
        return
    if not steps.build("fuzz", *(f"fuzz_{target}" for target in FUZZ_TARGETS)):
        return
    minutes = max(1, int(steps.seconds / 60 / len(FUZZ_TARGETS)))
    for target in FUZZ_TARGETS:
        if steps.left() <= 0:
            steps.cut(f"not {target} and what comes after it")
            return
        code, output = steps.run(["scripts/fuzz.sh", target, str(minutes)], minutes * 60 + 120)
        found = re.search(r"stat::number_of_executed_units: *(\d+)", output)
        steps.count("inputs", int(found.group(1)) if found else 0)
        steps.count("targets", 1)
        if code is None:
            steps.cut(f"{target} was ended")
        elif code != 0:
            steps.failures.append(f"{target}: {last_lines(output)}")


def kills(steps):
    """One end of a pair of programs is killed in traffic, 10,000 times."""
    build = ordinary_build(steps)
    killed = steps.before.get("kills", 0) % KILLS
    steps.figures = {"kills": killed}
    many = min(KILLS_AT_ONCE, max(1, int(steps.seconds / 10)))
    seed = steps.options.seed
    while build and killed < KILLS and steps.left() > 0:
        code, output = steps.run(["tests/e2e/programs/kill_storm.py", "-n", str(many), "--seed", str(seed + killed)],
                                 environment={"ROCEMU": os.path.abspath(f"{build}/bin/rocemu")})
        if code is None:
            break
        if code != 0:
            steps.failures.append(last_lines(output))
            return
        killed += many
        steps.figures["kills"] = killed
    if killed < KILLS:
        steps.cut(f"{killed:,} of {KILLS:,}")


def note_stress(steps, code, output, what):
    passed = re.search(r"PASS (\d+) operations, (\d+) bytes", output)
    if passed:
        steps.count("operations", int(passed.group(1)))
        steps.count("bytes", int(passed.group(2)))
    if code != 0 or not passed:
        steps.failures.append(f"{what}: {last_lines(output)}")


def stress(steps):
    """Every byte among processes: impairments, shared receives, shared memory, turns on two threads."""
    build = ordinary_build(steps)
    if build is None:
        return
    seconds = max(1, int(steps.seconds / len(STRESS)) - 2)
    for number, (nic, program) in enumerate(STRESS):
        command = [f"{build}/bin/rocemu", "run", *nic, "--", f"{build}/tests/e2e/stress", "--seconds", str(seconds),
                   "--seed", str(steps.options.seed + number), *program]
        # Longer than the program needs to find that nothing goes on.
        steps.seconds = max(steps.seconds, steps.used_seconds + seconds + 150)
        code, output = steps.run(command)
        note_stress(steps, code, output, " ".join(nic + program))
        steps.count("settings", 1)


def hostile(steps):
    """What an honest pair keeps beside a hostile program of each kind; of three attempts one is within the bounds."""
    build = ordinary_build(steps)
    if build is None:
        return
    seconds = max(1, int(steps.seconds / len(HOSTILE_KINDS) / 3))
    for kind in HOSTILE_KINDS:
        for _ in range(HOSTILE_ATTEMPTS):
            # Each attempt lasts about twice as long as the hostile program.
            steps.seconds = max(steps.seconds, steps.used_seconds + 3 * seconds + 60)
            code, output = steps.run([f"{build}/bin/rocemu", "run", "--", f"{build}/tests/e2e/hostile", kind, str(seconds),
                                      "--bounds"])
            if code in (0, 77):
                break
        steps.count({0: "kinds passed", 77: "kinds skipped"}.get(code, "kinds failed"), 1)
        if code not in (0, 77):
            steps.failures.append(f"{kind}: {last_lines(output)}")


def applications(steps):
    """Those whose packages are too large for the tests, once each."""
    build = ordinary_build(steps)
    if build is None:
        return
    for words in (["ceph"], ["ceph:impaired"], ["--user", "ceph"]):
        steps.seconds = max(steps.seconds, steps.used_seconds + 300)
        code, output = steps.run(["tests/e2e/applications/ceph.py", *words],
                                 environment={"ROCEMU": os.path.abspath(f"{build}/bin/rocemu")})
        steps.count({0: "passed", 77: "skipped"}.get(code, "failed"), 1)
        if code not in (0, 77):
            steps.failures.append(f"{' '.join(words)}: {last_lines(output)}")


PARTS = {part.__name__: part for part in (asan, tsan, scenarios, fuzz, kills, stress, hostile, applications)}
SHARES = {"asan": 0.2, "tsan": 0.1, "scenarios": 0.2, "fuzz": 0.2, "kills": 0.12, "stress": 0.15, "hostile": 0.02,
          "applications": 0.01}
