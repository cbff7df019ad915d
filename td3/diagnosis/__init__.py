"""Says why an agent does not learn: collects the evidence of a run, and holds rules against it."""

from td3.diagnosis.environment import may_never_end
from td3.diagnosis.evidence import Evidence
from td3.diagnosis.reading import diagnose, read_evidence
from td3.diagnosis.rules import RULES, findings, findings_before, news, sickness

__all__ = [
    "RULES",
    "Evidence",
    "diagnose",
    "findings",
    "findings_before",
    "may_never_end",
    "news",
    "read_evidence",
    "sickness",
]
