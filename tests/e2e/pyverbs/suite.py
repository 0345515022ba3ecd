#!/usr/bin/python3 -B
"""suite.py FOLDER DEVICE GID_INDEX MODULE... --without [TEST...]: runs modules of the pyverbs test suite that lies in
FOLDER and prints what each test came to as one line of JSON: {"results": [[id, outcome, why]…]}. The outcome is
passed, skipped, failed or error. To be run inside a NIC."""
import json
import multiprocessing
import sys
import unittest
from importlib.machinery import SourceFileLoader


class Collector(unittest.TextTestResult):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.results = []

    def note(self, test, outcome, why=""):
        self.results.append((test.id().removeprefix("tests."), outcome, why))

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed", str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "error", str(err[1]))


def flatten(suite):
    for entry in suite:
        yield from flatten(entry) if isinstance(entry, unittest.TestSuite) else [entry]


def main():
    folder, device, gid_index, *modules = sys.argv[1:]
    split = modules.index("--without")
    modules, without = modules[:split], set(modules[split + 1:])
    # What the suite gives its processes passes a fork only, which Python 3.14 no longer starts them by.
    multiprocessing.set_start_method("fork")
    sys.path.insert(0, folder)
    sys.argv[1:] = ["--dev", device, "--gid", gid_index]
    from args_parser import parser
    SourceFileLoader("tests", f"{folder}/__init__.py").load_module()
    parser.parse_args()
    suites = unittest.defaultTestLoader.loadTestsFromNames(f"tests.{module}" for module in modules)
    tests = unittest.TestSuite(test for test in flatten(suites) if test.id().removeprefix("tests.") not in without)
    runner = unittest.TextTestRunner(stream=sys.stderr, verbosity=2, resultclass=Collector)
    print(json.dumps({"results": runner.run(tests).results}))


if __name__ == "__main__":
    main()
