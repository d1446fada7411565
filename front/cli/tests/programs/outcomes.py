"""Runs test modules of CPython's own and writes what became of each test, one line each."""
import sys
import time
import unittest


class Outcomes(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.lines = {}

    def startTest(self, test):
        super().startTest(test)
        self.lines.setdefault(test.id(), "passed")

    def addError(self, test, err):
        super().addError(test, err)
        self.lines[test.id()] = "failed"

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.lines[test.id()] = "failed"

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.lines[test.id()] = "skipped"

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.lines[test.id()] = "expected failure"

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.lines[test.id()] = "failed"


outcomes = Outcomes()
unittest.defaultTestLoader.loadTestsFromNames(sys.argv[2:]).run(outcomes)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    for name, outcome in sorted(outcomes.lines.items()):
        file.write(f"{outcome}\t{name}\n")
    for test, trace in outcomes.failures + outcomes.errors:
        print(test.id(), trace, file=sys.stderr)
