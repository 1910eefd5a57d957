"""The game of bundles notices when a fix of the bundle rule is taken out (bundle_faults.py). `hack/bundle-faults` tries all of them."""

from __future__ import annotations

import pytest

import bundle_faults as faults
from certroll_dev.ui import DevError

_KNOWN = faults.load()


@pytest.mark.parametrize("fault", _KNOWN, ids=lambda fault: fault.name)
def test_a_fault_fits(fault: faults.Fault) -> None:
    faults.with_faults(_KNOWN, fault)


def test_a_fault_that_does_not_fit_is_no_fault() -> None:
    edit = faults.Edit("pkg/pki/bundle.c", "a line that is not there", "")
    with pytest.raises(DevError, match="must have once, and has 0 times"):
        faults.with_faults([], faults.Fault("misfit", "", [edit]))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["ask", "ask-policy", "order"])
def test_a_fault_is_found(name: str) -> None:
    [row] = faults.examine(_KNOWN, [fault for fault in _KNOWN if fault.name == name], faults.SEEDS)
    print(faults.table([row]))
    assert row.found
