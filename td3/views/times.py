"""Times as people write them: of a step in milliseconds, of a run in minutes and hours."""


def brief_time(seconds: float) -> str:
    """Writes a short time in two digits: 0.031 ms, 5.2 ms, 1.5 s."""
    if seconds >= 1:
        return f"{seconds:,.1f} s"
    milliseconds = float(f"{1_000 * seconds:.2g}")
    return f"{milliseconds:g} ms"


def duration(seconds: float) -> str:
    """Writes a long time in its two largest units, as an estimate: 40 s, 25 min, 3 h 20 min, 2 days 5 h."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if minutes < 90:
        return f"{minutes} min"
    if minutes < 24 * 60:
        tens = round(minutes / 10) * 10
        return f"{tens // 60} h {tens % 60:02d} min"
    hours = round(minutes / 60)
    days, rest = divmod(hours, 24)
    return f"{days} day{'s' if days > 1 else ''} {rest} h"
