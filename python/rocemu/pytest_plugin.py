"""pytest: the fixture `rocemu_nic` makes NICs for a test.

    @pytest.mark.rocemu(devices=3, impair="loss=1%")
    def test_transfer(rocemu_nic):
        nic = rocemu_nic()

pytest finds this where the package is installed; elsewhere: pytest -p rocemu.pytest_plugin.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ._findings import Finding
from ._owned import Nic
from .errors import FindingsReported

_LOG_LINES_SHOWN = 100
_PCAP_LIMIT_MB = 64  # of each NIC, from its start on

_Hook = TypeVar("_Hook", bound=Callable[..., object])


class NicFactory:
    """Makes NICs that end with the test. What a call does not say is as the test's marker says, and
    then as rocemu.Nic has it; but the wire is recorded, to a file that stays when the test fails.
    `pcap=False` is for tests of speed."""

    def __init__(self, options: dict[str, Any], folder: Path) -> None:
        self._options = options
        self._folder = folder
        self.nics: list[Nic] = []
        self.failed = False

    def __call__(self, **options: Any) -> Nic:
        given: dict[str, Any] = {"pcap": True, **self._options, **options}
        if given["pcap"] is True:
            given["pcap"] = self._folder / f"nic{len(self.nics)}.pcap"
            given.setdefault("pcap_limit_mb", _PCAP_LIMIT_MB)
        nic = Nic(**given)
        self.nics.append(nic)
        return nic

    def take_findings(self) -> list[Finding]:
        return [finding for nic in self.nics if nic.checks for finding in nic.take_findings()]

    def close(self) -> None:
        """Ends the NICs. Raises FindingsReported for what was found at last."""
        for nic in self.nics:
            nic.close()
        findings = self.take_findings()
        if findings:
            self.failed = True
        self._remove_recordings()
        if findings:
            raise FindingsReported(describe(findings), findings)

    def _remove_recordings(self) -> None:
        for nic in self.nics:
            if nic.pcap is not None and not self.failed and self._folder in nic.pcap.parents:
                nic.pcap.unlink()

    def sections(self) -> Iterator[tuple[str, str]]:
        """What is shown with a test that failed."""
        for nic in self.nics:
            lines = nic.log().splitlines()
            yield f"log of the NIC {nic.name}", "\n".join(lines[-_LOG_LINES_SHOWN:])
            if nic.pcap is not None:
                yield f"wire of the NIC {nic.name}", f"recorded in {nic.pcap}"


def describe(findings: Sequence[Finding]) -> str:
    noun = "finding" if len(findings) == 1 else "findings"
    return "\n".join([f"the checker has {len(findings)} {noun} (docs/check.md)", *map(str, findings)])


# By test, for as long as pytest keeps that.
_factories: weakref.WeakKeyDictionary[pytest.Item, NicFactory] = weakref.WeakKeyDictionary()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rocemu", "NICs of the tests (rocemu)")
    group.addoption("--rocemu-check", nargs="?", const=True, default=False, metavar="NAMES",
                    help="check the programs of all NICs, as `rocemu run --check` does; findings fail "
                         "the test")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "rocemu(**options): what rocemu_nic() makes, by the options of "
                            "rocemu.Nic")


@pytest.fixture
def rocemu_nic(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NicFactory]:
    """Makes a NIC at each call, by the options of rocemu.Nic."""
    options: dict[str, Any] = {"check": request.config.getoption("--rocemu-check")}
    for marker in reversed(list(request.node.iter_markers("rocemu"))):  # the closest one last
        options.update(marker.kwargs)
    factory = NicFactory(options, tmp_path)
    _factories[request.node] = factory
    try:
        yield factory
    finally:
        factory.close()


_wrapper: Callable[[_Hook], _Hook] = pytest.hookimpl(hookwrapper=True)


@_wrapper
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    factory = _factories.get(item)
    if factory is None:
        return
    if report.when == "call":
        findings = factory.take_findings()
        if findings and report.passed:
            report.outcome = "failed"
            report.longrepr = describe(findings)
        elif findings:
            report.sections.append(("findings", describe(findings)))
    if report.failed:
        factory.failed = True
        report.sections += factory.sections()
