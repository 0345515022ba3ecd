"""A section of a document in Markdown, of the kinds of blocks that docs/ uses, as roff."""

import re

from roff import bold, escaped, item, literal


def spans(text):
    """`code` is bold; of a link there remains its text, and the document's name where it is another's."""
    text = re.sub(r"\[([^\]]*)\]\((\w[^)#]*)(?:#[^)]*)?\)", lambda link: link[1] if link[1] == link[2] else
                  f"{link[1]} ({link[2]})", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    parts = re.split(r"`([^`]*)`", text)
    return "".join(bold(part) if number % 2 else escaped(part) for number, part in enumerate(parts))


def table(lines):
    """The first column are terms. Two tables side by side, with an empty column between them, are two tables."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    head, body = rows[0], rows[2:]
    empty = [column for column in range(len(head)) if not any(row[column] for row in [head, *body])]
    width = empty[0] if empty else len(head)
    items = [row[start:start + width] for start in range(0, len(head), width + 1) for row in body]
    result = []
    for term, *cells in items:
        if len(cells) > 1 and cells[0]:
            cells[0] = f"{head[1]}: {cells[0]}"
        result += item(spans(term), spans("; ".join(cell for cell in cells if cell)))
    return result


def section(text, title):
    """What stands under the heading of that title, with those below it as subsections."""
    heading = re.search(rf"^(#+) {re.escape(title)}\n", text, re.MULTILINE)
    end = re.search(rf"^#{{1,{len(heading[1])}}} ", text[heading.end():], re.MULTILINE)
    result, block = [], []
    in_code = False
    for line in [*text[heading.end():][:end.start() if end else None].splitlines(), ""]:
        if line.startswith("```"):
            result += [".PP", *literal(block)] if in_code else []
            in_code, block = not in_code, []
        elif in_code or line.strip():
            block.append(line)
        elif block:
            result += converted(block)
            block = []
    return result


def converted(block):
    """Lines without an empty one between them."""
    if block[0].startswith("#"):
        return [f".SS {spans(block[0].lstrip('# '))}", *(converted(block[1:]) if block[1:] else [])]
    if block[0].startswith("|"):
        return table(block)
    if re.match(r"\d\. ", block[0]):
        return [part for line in block for part in item(line[:2], spans(line[3:]))]
    return [".PP", *map(spans, block)]
