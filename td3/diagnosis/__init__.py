"""Says why an agent does not learn: collects the evidence of a run, and holds rules against it."""

from td3.diagnosis.evidence import Evidence
from td3.diagnosis.reading import diagnose, read_evidence
from td3.diagnosis.rules import CANNOT_RECOVER, RULES, findings, news

__all__ = ["CANNOT_RECOVER", "RULES", "Evidence", "diagnose", "findings", "news", "read_evidence"]
