#!/usr/bin/env python3
"""The action as a workflow uses it: steps.py CASE RELEASE LEAVER. RELEASE is a folder with a tarball, LEAVER a program whose
leaks a checker finds. Each case is a job."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SKIP = 77
try:
    import yaml
    from runner import Runner, evaluate, let_runner_use_sudo
except ImportError as error:
    print(f"SKIP: {error} (Debian package python3-yaml)")
    sys.exit(SKIP)

SOURCE = pathlib.Path(__file__).resolve().parents[3]
FINISH = SOURCE / "action/finish"
TARBALL, = pathlib.Path(sys.argv[2]).glob("*.tar.gz")
LEAVER = sys.argv[3]
NAME = f"ci-{os.getpid()}"
PORT = 20000 + os.getpid() % 10000

# A later step of some project: it knows nothing of the NIC.
PINGPONG = f"""
ibv_rc_pingpong -p {PORT} -d rocemu0 -g 1 -n 100 &
until ss --listening --numeric --tcp | grep :{PORT} > /dev/null; do :; done
ibv_rc_pingpong -p {PORT} -d rocemu1 -g 1 -n 100 localhost
wait $!
"""


@contextlib.contextmanager
def job(user="confined", **variables):
    """A runner, whose NIC is gone afterwards in any case."""
    with tempfile.TemporaryDirectory(prefix="rocemu-action-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        runner = Runner(folder, user, variables)
        try:
            yield runner
        finally:
            if "ROCEMU_DIR" in runner.variables:
                runner.run(f"rocemu down --name {NAME} || true")


def start(runner, **inputs):
    return runner.uses(SOURCE, name=NAME, tarball=str(TARBALL), **inputs)


def expect(condition, what):
    assert condition, what


def works_for(user):
    with job(user) as runner:
        # No losses where the pingpong runs: of its last acknowledgement nobody takes care.
        _, outputs = start(runner, devices="3", impair="rocemu2:loss=1%\nrocemu1.rx:delay=5us")
        devices, _ = runner.run("ibv_devices")
        expect("rocemu2" in devices and "rocemu3" not in devices, devices)
        pingpong, _ = runner.run(PINGPONG)
        expect("1638400 bytes" in pingpong or "819200 bytes" in pingpong, pingpong)
        links, _ = runner.run("rocemu link show")
        expect("loss=1%" in links and "delay=5us" in links, links)
        expect((pathlib.Path(outputs["prefix"]) / "bin/rocemu").is_file(), outputs)
        expect(runner.variables["ROCEMU_DIR"] == outputs["state-directory"], outputs)
        summary = runner.summary.read_text()
        expect("rocemu0 rocemu1 rocemu2" in summary and "loss=1%" in summary and "GID" in summary, summary)
        runner.uses(FINISH)
        runner.run(f"rocemu status --name {NAME}", expect=3)
        expect(not pathlib.Path(outputs["state-directory"]).exists(), "the state is gone")


def works_beside_sudo():
    """What a step does as root has no environment of the step, and says which NIC it means."""
    with tempfile.TemporaryDirectory() as folder:
        let_runner_use_sudo(pathlib.Path(folder))
        with job("runner") as runner:
            start(runner)
            runner.run(PINGPONG.replace("ibv_rc_pingpong", "sudo \"$(command -v rocemu)\" exec --socket "
                                        "\"$ROCEMU_DIR/nic.sock\" -- ibv_rc_pingpong", 1))
            expect(runner.run("sudo id -u")[0].strip() == "0", "sudo works")
            runner.uses(FINISH)


def shows_findings():
    with job(GITHUB_WORKSPACE=str(SOURCE)) as runner:
        start(runner, check="true")
        runner.run(PINGPONG)
        runner.run(LEAVER)
        printed, _ = runner.uses(FINISH, expect=66)
        expect("::error file=tests/e2e/check/leaver.c,line=" in printed, printed)
        expect("title=rocemu check, leaks::" in printed and "make_region_that_stays" in printed, printed)
        summary = runner.summary.read_text()
        expect("2 findings: leaks 2" in summary, summary)
        suite = xml.etree.ElementTree.parse(runner.temp / "rocemu-findings.xml").getroot().find("testsuite")
        expect(suite.get("failures") == "2", "the report")
    with job() as runner:
        start(runner, check="leaks,limits")
        runner.run(LEAVER)
        report = runner.workspace / "found.json"
        _, outputs = runner.uses(FINISH, fail_on_findings="false", report=str(report))
        expect(outputs["report"] == str(report) and '"leaks"' in report.read_text(), outputs)
    with job() as runner:
        start(runner, check="all,-leaks")
        runner.run(LEAVER)
        expect("0 findings" in runner.uses(FINISH)[0], "no findings are success")


def shows_the_nic_to_commands_alone():
    with job() as runner:
        start(runner, show="command", check="true", share_memory="true", arguments="--shake\n--log-level debug --devices 3")
        expect("LD_PRELOAD" not in runner.variables and runner.variables["ROCEMU_SHARE_MEMORY"] == "1", "the environment")
        expect("rocemu0" not in runner.run("ibv_devices || true")[0], "without rocemu")
        expect("rocemu2" in runner.run("rocemu exec -- ibv_devices")[0], "arguments of all lines")
        runner.run("rocemu exec -- bash -c '" + PINGPONG + "'")
        expect("make_region_that_stays" in runner.run(f"rocemu exec -- {LEAVER}", expect=66)[0], "checked")
        expect("2 findings: leaks 2" in runner.uses(FINISH, expect=66)[0], "those of rocemu exec, too")


def downloads():
    version = TARBALL.name.split("-")[1]
    with tempfile.TemporaryDirectory() as folder:
        server = pathlib.Path(folder)
        server.chmod(0o755)
        release = server / f"someone/rocemu/releases/download/v{version}"
        release.mkdir(parents=True)
        for suffix in ("", ".sha256"):
            shutil.copy(f"{TARBALL}{suffix}", release)
        here = {"action_repository": "someone/rocemu", "repository": "another/project"}
        by_curl = {"GITHUB_SERVER_URL": f"file://{server}"}
        outer = {"action_repository": "someone/their-own-action"}
        for github, inputs in ((here, {}), (here, {"version": f"v{version}"}), (here, {"sha256": sha256(TARBALL)}),
                               (outer, {"repository": "someone/rocemu"})):
            with job(**by_curl) as runner:
                runner.uses(SOURCE, github, name=NAME, **inputs)
                expect("rocemu1" in runner.run("ibv_devices")[0], "downloaded by curl")
        with job(**by_curl) as runner:
            printed, _ = runner.uses(SOURCE, here, name=NAME, version="99.9", expect=1)
            expect("::error title=rocemu::release 99.9 for " in printed and "someone/rocemu" in printed, printed)
        with job() as runner:
            programs = runner.folder / "bin"
            programs.mkdir()
            gh = programs / "gh"
            gh.write_text(f'#!/bin/sh\n[ "$1 $2 $3 $5" = "release download v{version} someone/rocemu" ] && '
                          f'[ "$GH_TOKEN" = secret ] && cp {release}/* "$7"\n')
            gh.chmod(0o755)
            runner.variables["PATH"] = f"{programs}:{runner.variables['PATH']}"
            runner.uses(SOURCE, {**here, "token": "secret"}, name=NAME)
            expect("rocemu1" in runner.run("ibv_devices")[0], "downloaded by gh")


def runs_the_projects_own_workflow():
    """The steps that the project's workflow has for this, but for those that get the sources, the release and packages."""
    workflow = yaml.safe_load((SOURCE / ".github/workflows/tests.yml").read_text())
    steps = workflow["jobs"]["action"]["steps"]
    first = next(i for i, step in enumerate(steps) if step.get("id") == "release")
    steps = [step for step in steps[first:] if "apt-get" not in step.get("run", "")]
    with job() as runner:
        (runner.workspace / "release").symlink_to(TARBALL.parent)
        outputs = {}
        for step in steps:
            if "run" in step:
                _, given = runner.run(step["run"])
                outputs.update({f"steps.{step.get('id')}.outputs.{name}": value for name, value in given.items()})
            else:
                inputs = {name: evaluate(str(value), outputs) for name, value in step.get("with", {}).items()}
                named = {"name": NAME} if step["uses"] == "./" else {}
                runner.uses(SOURCE / step["uses"], **named, **inputs)
        expect("0 findings" in runner.summary.read_text(), "the NIC was used, and checked")


def snippets():
    """(system, the commands of each of its shells) of docs/ci.md."""
    page = (SOURCE / "docs/ci.md").read_text()
    blocks = dict(re.findall(r"^### (.+?)\n.*?^```\w+\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    gitlab = yaml.safe_load(blocks["GitLab CI"])["rdma"]
    yield "GitLab CI", ["\n".join([*gitlab["before_script"], *gitlab["script"]])]
    yield "Jenkins", re.findall(r"sh '''(.*?)'''", blocks["Jenkins"], re.DOTALL)
    buildkite, = yaml.safe_load(blocks["Buildkite"])["steps"]
    yield "Buildkite", ["\n".join(buildkite["commands"]).replace("$$", "$")]


def runs_what_the_page_has_for_other_systems():
    for system, shells in snippets():
        with job() as runner:
            runner.variables.update(ROCEMU_RELEASES=f"file://{TARBALL.parent}", RELEASE=TARBALL.name.removesuffix(".tar.gz"))
            program = runner.workspace / "my_test"
            program.write_text("#!/bin/bash -e\n" + PINGPONG)
            program.chmod(0o755)
            printed = "".join(runner.run(re.sub(r"^apt-get .*", "", shell, flags=re.MULTILINE))[0] for shell in shells)
            expect("100 iters" in printed, f"{system}: {printed}")
            report = xml.etree.ElementTree.parse(runner.workspace / "findings.xml").getroot().find("testsuite")
            expect(report.get("failures") == "0", f"{system}: the report")


def sha256(path):
    return subprocess.run(["sha256sum", path], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[0]


def refuses(message, status=1, **inputs):
    with job() as runner:
        printed, _ = runner.uses(SOURCE, name=NAME, expect=status, **inputs)
        expect(f"::error title=rocemu::{message}" in printed, printed)
        expect("ROCEMU_DIR" not in runner.variables, "nothing is handed on")
        runner.uses(FINISH)  # as `if: always()` has it


def refuses_what_cannot_be():
    tarball = str(TARBALL)
    refuses("where is the release?", status=2)
    refuses("there is no release /nowhere.tar.gz", tarball="/nowhere.tar.gz")
    refuses(f"the checksum of {tarball} is {sha256(TARBALL)}, not 1234", tarball=tarball, sha256="1234")
    refuses("the NIC does not start: rocemu: --impair: ", tarball=tarball, impair="loss=lots")
    refuses("the NIC does not start: ", tarball=tarball, check="leeks")
    refuses("show is environment or command, not 'all'", status=2, tarball=tarball, show="all")
    refuses("the NIC does not start: rocemu: --impair: ", tarball=tarball, impair="$(touch /tmp/made)")
    with tempfile.TemporaryDirectory() as folder:
        broken = pathlib.Path(folder) / "broken.tar.gz"
        pathlib.Path(folder).chmod(0o755)
        broken.write_bytes(TARBALL.read_bytes()[:100000])
        refuses(f"there is no checksum {broken}.sha256", tarball=str(broken))
        refuses(f"{broken} cannot be unpacked", tarball=str(broken), sha256=sha256(broken))
    with job() as runner:
        start(runner)
        expect("is up already" in start(runner, expect=1)[0], "two NICs need two names")
        printed = runner.uses(FINISH, expect=2, fail_on_findings="yes")[0]
        expect("is true or false, not 'yes'" in printed and "is down" in printed, printed)
    with job() as runner:
        start(runner)
        runner.run('kill -9 "$(cat "$ROCEMU_DIR/pid")"; while kill -0 "$(cat "$ROCEMU_DIR/pid")"; do :; done 2> /dev/null')
        expect("had ended by itself" in runner.uses(FINISH, expect=1)[0], "a NIC that has died is told")
    for script in ("start", "finish"):
        shown = subprocess.run([SOURCE / f"action/{script}.sh", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        expect(f"action/{script}.sh" in shown and "set -" not in shown, shown)


CASES = {"confined": lambda: works_for("confined"), "root": lambda: works_for("root"), "sudo": works_beside_sudo,
         "findings": shows_findings, "command": shows_the_nic_to_commands_alone, "download": downloads,
         "workflow": runs_the_projects_own_workflow, "snippets": runs_what_the_page_has_for_other_systems,
         "refusals": refuses_what_cannot_be}

case = sys.argv[1]
if os.geteuid() != 0 and case in ("root", "sudo"):
    print("SKIP: only root can")
    sys.exit(SKIP)
if case == "sudo" and "ROCEMU_MOUNTS_APART" not in os.environ:
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        print("SKIP: no mount namespace can be made here")
        sys.exit(SKIP)
    os.environ["ROCEMU_MOUNTS_APART"] = "yes"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])
for program in ("ibv_rc_pingpong", "ss", *{"sudo": ["sudo"], "download": ["curl"], "snippets": ["curl"], "workflow": ["ib_write_bw"]}.get(case, [])):
    if shutil.which(program) is None:
        print(f"SKIP: {program} is missing")
        sys.exit(SKIP)
CASES[case]()
