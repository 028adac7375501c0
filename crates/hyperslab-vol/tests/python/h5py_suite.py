"""Runs the tests that h5py brings and writes the result of each as JSON: python h5py_suite.py REPORT"""

import json
import sys

import pytest


class Recorder:
    """Notes the worst of what happened to each test: its set-up, call and clean-up."""

    def __init__(self):
        self.results = {}

    def pytest_runtest_logreport(self, report):
        result = "error" if report.failed and report.when != "call" else report.outcome
        if getattr(report, "wasxfail", None) is not None:
            result = f"expected failure {report.outcome}"
        if report.when == "call" or result != "passed":
            self.results[report.nodeid] = result
            if report.failed:
                print(report.nodeid, report.longreprtext[-1500:], sep="\n")


recorder = Recorder()
arguments = ["--pyargs", "h5py", "-q", "-p", "no:cacheprovider", "--tb=native", "-W", "ignore", "--no-header"]
pytest.main(arguments, plugins=[recorder])
with open(sys.argv[1], "w") as file:
    json.dump(recorder.results, file)
