"""What is published, and what came out."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """`deviation`: why it is known to come out otherwise; such a claim is reported, and fails nothing."""
    what: str
    published: str
    seen: str
    comes_out: bool
    deviation: str = ""

    @property
    def verdict(self):
        if self.comes_out:
            return "as published"
        return f"otherwise: {self.deviation}" if self.deviation else "OTHERWISE"

    @property
    def fails(self):
        return not self.comes_out and not self.deviation


def table(claims):
    """Markdown, to be read in a terminal as well."""
    rows = [("what", "published", "seen", "")]
    rows += [(claim.what, claim.published, claim.seen, claim.verdict) for claim in claims]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]

    def line(cells):
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |"

    return "\n".join([line(rows[0]), "|" + "|".join("-" * (width + 2) for width in widths) + "|"] + [line(row) for row in rows[1:]])
