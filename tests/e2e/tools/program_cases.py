"""What scripts of named cases have in common: the command to use, how they end, and running as an ordinary user."""
import os
import shutil
import subprocess
import sys

SKIPPED = 77
ROCEMU = os.environ.get("ROCEMU", "rocemu")
ORDINARY_USER = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set=-all",
                 "--inh-caps=-all", "--no-new-privs", "env", "-u", "XDG_RUNTIME_DIR", "HOME=/"]


def fail(text):
    sys.exit(f"FAIL {text}")


def skip(text):
    print(f"SKIP: {text}")
    sys.exit(SKIPPED)


def need_ucx_over_verbs():
    """Skips where UCX has no verbs: in some distributions it lacks that module (sid's 1.23.0~rc1, say)."""
    if shutil.which("ucx_info") is None:
        return  # whoever needs UCX's programs says so
    settings = subprocess.run(["ucx_info", "-f", "-c"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if "UCX_RC_VERBS_" not in settings.stdout:
        skip("UCX has no verbs here: its module libuct_ib is missing")


def as_ordinary_user(script, arguments):
    """The script once more, without root and without any capability."""
    if os.getuid() != 0:
        skip("not root: everything runs as an ordinary user already")
    if subprocess.run([*ORDINARY_USER, "test", "-r", script]).returncode != 0:
        skip(f"an ordinary user cannot read {script}")
    return subprocess.run([*ORDINARY_USER, script, *arguments]).returncode


def run_cases(names, cases, run):
    """The exit code of all of them: of the first that failed, or that one was skipped."""
    if not names or any(name not in cases for name in names):
        fail("no such case; see --list")
    codes = [run(name) for name in names]
    return next((code for code in codes if code not in (0, SKIPPED)), max(codes))


def main(script, arguments, cases, run, run_inside):
    """A script whose cases run inside a NIC of their own: `run` starts that and the script in it with --inside, which is
    `run_inside`. The exit code."""
    if arguments[:1] == ["--list"]:
        print("\n".join(cases))
        return 0
    if arguments[:1] == ["--inside"]:
        return run_inside(arguments[1])
    if arguments[:1] == ["--user"]:
        return as_ordinary_user(script, arguments[1:])
    return run_cases(arguments, cases, run)
