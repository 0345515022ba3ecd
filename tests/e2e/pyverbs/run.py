#!/usr/bin/python3 -B
"""run.py [--user] [--write]: the vendor-neutral modules of the pyverbs suite of Debian's python3-pyverbs over
a private NIC, against what expected.txt says of each test.

run.py --any-release [--suite FOLDER]: the suite of whatever rdma-core is here, or of a source tree's folder tests, and
what did not pass. Fails when a test failed.

The traffic tests ask `ip -j addr` in child processes, which no preload library reaches through: so all
of it runs in a network namespace with an interface that is called as the device's netdev is and has
its addresses. ROCEMU names the rocemu command, PYVERBS_LEAVE_OUT tests that would pass and are not to be run. Exit
code 77: something is missing here."""
import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SUITE = Path("/usr/share/doc/rdma-core/tests")
HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected.txt"
DEVICE, NETDEV, MAC = "rocemu0", "roce0", "02:52:4f:43:00:01"
ADDRESSES = ["10.77.0.1/24", "fd52:4f43:4500::1/64"]
GID_INDEX = "1"  # of the first address
MODULES = """test_device test_pd test_mr test_cq test_cqex test_cq_events test_qp test_qpex test_addr test_atomic
             test_odp test_parent_domain test_relaxed_ordering test_shared_pd test_fork test_rss_traffic
             test_flow test_tag_matching test_rdmacm""".split()
NEWER_MODULES = "test_srq test_dmah test_buf".split()  # of releases behind Debian 12's
IN_NAMESPACE = "--in-namespace"
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
SKIPPED = 77


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(SKIPPED)


def unpack(suite, folder):
    """The suite lies compressed in part."""
    for source in filter(Path.is_file, suite.iterdir()):
        target = folder / source.name.removesuffix(".gz")
        opener = gzip.open if source.suffix == ".gz" else open
        with opener(source, "rb") as compressed, open(target, "wb") as plain:
            shutil.copyfileobj(compressed, plain)
    folder.chmod(0o755)


def make_interface():
    """Not every kernel has every kind of interface."""
    run = lambda *words: subprocess.run(["ip", *words], capture_output=True, text=True)
    kinds = (["dummy"], ["veth", "peer", "name", f"{NETDEV}p"], ["bridge"])
    if all(run("link", "add", NETDEV, "type", *kind).returncode != 0 for kind in kinds):
        skip("this kernel makes no network interface in a namespace")
    run("link", "set", NETDEV, "address", MAC, "up")
    for address in ADDRESSES:
        run("addr", "add", address, "dev", NETDEV, "nodad")


def flawed_tests(folder):
    """Before rdma-core 40 a client of the multicast tests may take its own message for the server's (mended there by "tests:
    Move RDMACM tests to be in one direction")."""
    utilities = Path(folder, "rdmacm_utils.py")
    if not utilities.exists() or "_cmid_client_multicast_traffic" in utilities.read_text():
        return []
    return [f"test_rdmacm.CMTestCase.test_rdmacm_async_{name}" for name in ("multicast_traffic", "ex_multicast_traffic")]


def run_suite(folder):
    make_interface()
    rocemu = os.environ.get("ROCEMU", "rocemu")
    command = [rocemu, "run", "--", "/usr/bin/python3", "-B", str(HERE / "suite.py"), folder, DEVICE, GID_INDEX]
    _, tests = read_expected()
    without = [name for name, (kind, _) in tests.items() if kind == "leave-out"] + flawed_tests(folder)
    modules = [module for module in MODULES + NEWER_MODULES if Path(folder, f"{module}.py").exists()]
    os.execvp(command[0], [*command, *modules, "--without", *without])


def results_in_namespace(suite, user):
    with tempfile.TemporaryDirectory(prefix="rocemu-pyverbs-") as folder:
        unpack(suite, Path(folder))
        prefix = [*NOBODY, "unshare", "-Urn"] if user else ["unshare", "-n" if os.geteuid() == 0 else "-Urn"]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            skip("no network namespaces here")
        run = subprocess.run([*prefix, sys.executable, "-B", __file__, IN_NAMESPACE, folder],
                             stdout=subprocess.PIPE, text=True, cwd="/")
    if run.returncode == SKIPPED:
        print(run.stdout, end="")
        sys.exit(SKIPPED)
    lines = [line for line in run.stdout.splitlines() if line.startswith('{"results"')]
    if run.returncode != 0 or not lines:
        print(run.stdout)
        sys.exit(f"FAIL the suite did not come to an end (exit code {run.returncode})")
    return json.loads(lines[-1])["results"]


def read_expected():
    """Passes of each module, and tests that do not simply pass: {name: (kind, why)}."""
    passed, skips = {}, {}
    for line in EXPECTED.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        kind, name, rest = line.split(maxsplit=2)
        if kind == "passed":
            passed[name] = int(rest)
        else:
            skips[name] = (kind, rest)
    for name in os.environ.get("PYVERBS_LEAVE_OUT", "").split():
        skips[name] = ("leave-out", "asked for")
        passed[module_of(name)] -= 1
    return passed, skips


def module_of(name):
    return name.split(".")[0]


def count_passes(results, skips):
    """Of tests that have to pass or be skipped always: those that depend on the machine are left out."""
    passed = dict.fromkeys(MODULES, 0)
    for name, outcome, _ in results:
        if outcome == "passed" and skips.get(name, ("skip",))[0] != "may-skip":
            passed[module_of(name)] += 1
    return passed


def complaints(results, passed, skips):
    for name, outcome, why in results:
        expected, _ = skips.get(name, ("pass", ""))
        if outcome in ("failed", "error"):
            yield f"{name}: {outcome}: {why}"
        elif outcome == "skipped" and expected == "pass":
            yield f"{name}: skipped: {why}"
        elif outcome == "passed" and expected == "skip":
            yield f"{name}: passed, but expected.txt says it skips"
    found = {name for name, _, _ in results}
    for name, (kind, _) in skips.items():
        if name not in found and kind != "leave-out":
            yield f"{name}: in expected.txt, but there is no such test"
    for module, count in count_passes(results, skips).items():
        if passed.get(module, 0) != count:
            yield f"{module}: {count} passed, but expected.txt says {passed.get(module, 0)}"


def write_expected(results, skips):
    """Keeps the reasons that are there."""
    header = [line for line in EXPECTED.read_text().splitlines() if line.startswith("#")]
    kept = [f"{kind} {name} {why}" for name, (kind, why) in skips.items() if kind == "leave-out"]
    lines = [f"passed {module} {count}" for module, count in count_passes(results, skips).items()]
    for name, outcome, why in results:
        if outcome == "skipped" or skips.get(name, ("",))[0] == "may-skip":
            kind, reason = skips.get(name, ("skip", why))
            lines.append(f"{kind} {name} {reason}")
    EXPECTED.write_text("\n".join([*header, "", *lines, *kept, ""]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--user", action="store_true", help="as an ordinary user (to be started by root)")
    parser.add_argument("--write", action="store_true", help="writes expected.txt anew")
    parser.add_argument("--any-release", action="store_true", help="holds nothing against expected.txt, and fails when a test fails")
    parser.add_argument("--suite", type=Path, default=SUITE, help="the suite's folder (default: %(default)s)")
    parser.add_argument(IN_NAMESPACE, metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_namespace:
        run_suite(arguments.in_namespace)
    if not arguments.suite.is_dir():
        skip("the pyverbs suite is missing (Debian package python3-pyverbs)")
    if shutil.which("ip") is None:
        skip("ip is missing (Debian package iproute2)")
    results = results_in_namespace(arguments.suite, arguments.user)
    if arguments.any_release:
        problems = [f"{name}: {outcome}: {why}" for name, outcome, why in results if outcome in ("failed", "error")]
        print(*(f"skipped {name}: {why}" for name, outcome, why in results if outcome == "skipped"), sep="\n")
    else:
        if arguments.write:
            write_expected(results, read_expected()[1])
        problems = list(complaints(results, *read_expected()))
    for problem in problems:
        print(f"FAIL {problem}")
    count = lambda wanted: sum(outcome == wanted for _, outcome, _ in results)
    print(f"{len(results)} tests: {count('passed')} passed, {count('skipped')} skipped, "
          f"{count('failed') + count('error')} failed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
