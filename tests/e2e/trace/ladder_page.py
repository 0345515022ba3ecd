#!/usr/bin/env python3
"""The page of a ladder in a headless browser: drawn, walked through by keys, searched, filtered, printed, and nothing in
its console. Usage: ladder_page.py SIM_SCENARIOS [FOLDER FOR PICTURES]; 77 where there is no browser."""
import os
import subprocess
import sys
import tempfile
import time
from xml.etree import ElementTree

from browser import Browser, find

# A scenario with losses, NAKs, RNR NAKs, timeouts and copies, on three connections.
SEED = "4"


def check(condition, what):
    if not condition:
        sys.exit(f"ladder_page.py: {what}")


def colours(page, canvas="ladder"):
    """How many different colours a canvas shows."""
    return page.value(f"""(() => {{
        const c = document.getElementById("{canvas}");
        const data = new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer);
        return new Set(data).size; }})()""")


def walk(page):
    spoken = lambda: page.value('document.getElementById("spoken").textContent')
    page.value('document.getElementById("ladder").focus()')
    page.key("ArrowDown")
    first = spoken()
    check(first != "", "the first event is not read out")
    page.key("ArrowDown")
    check(spoken() != first, "the arrow key stays where it is")
    page.key("ArrowUp")
    check(spoken() == first, "the way back leads elsewhere")
    page.key("End")
    check(page.value("view.top + seenHeight() >= view.height - 1"), "End is not the end")
    page.key("Home")
    check(page.value("view.top") == 0, "Home is not the beginning")
    page.key("e")
    check(page.value("view.chosen.isBad || view.chosen.again"), "e leads to no problem")
    page.key("Enter")
    check(page.value('!document.getElementById("details").hidden'), "Enter shows no fields")
    check(page.value('document.querySelectorAll("#details th").length > 3'), "there are no fields")
    page.key("Escape")
    check(page.value('document.getElementById("details").hidden'), "Esc leaves the fields")
    page.key("?")
    check(page.value('document.getElementById("help").open'), "? shows no keys")
    page.key("Escape")
    before = page.value("view.height")
    page.key("+")
    check(page.value("view.height") > before, "+ does not zoom")
    page.key("0")
    check(page.value("view.height <= seenHeight() * 1.2"), "0 does not show all")
    page.key("t")
    check(page.value("view.scale") == "true", "t leaves the scale")
    page.key("t")


def search(page):
    page.key("/")
    check(page.value("document.activeElement.id") == "search", "/ does not search")
    for letter in "rnr":
        page.key(letter)
    found = page.value("view.found.size")
    check(0 < found < page.value("view.items.length"), f"{found} events are found")
    page.key("Enter")
    check("RNR" in page.value('document.getElementById("spoken").textContent').upper(), "the wrong event is found")
    page.value('document.getElementById("search").value = ""; find()')


def choose_connection(page):
    everything = page.value("view.packets.length")
    page.value("""(() => { const s = document.getElementById("connection");
                  s.value = "0"; s.dispatchEvent(new Event("change")); })()""")
    page.drawn()
    check(0 < page.value("view.packets.length") < everything, "the filter takes nothing away")
    check(page.value("view.packets.every((p) => p.connection === 0)"), "others are shown")


def check_saved(page, folder):
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=folder)
    page.key("s")
    for _ in range(100):
        if files := [name for name in os.listdir(folder) if name.endswith(".svg")]:
            break
        time.sleep(0.1)
    check(files, "s saves nothing")
    with open(os.path.join(folder, files[0]), encoding="utf-8") as file:
        svg = file.read()
    check(ElementTree.fromstring(svg).tag.endswith("}svg"), "what is saved is no SVG")
    check(svg.count("<text") > 20 and "prefers-color-scheme" in svg, "the saved picture is blank")


def main(program, pictures):
    if find() is None:
        print("SKIPPED: there is no Chromium here (Debian: chromium)")
        return 77
    with tempfile.TemporaryDirectory() as folder, Browser() as page:
        file = os.path.join(folder, "ladder.html")
        subprocess.run([program, "--seed", SEED, "--ladder", file], check=True, stdout=subprocess.DEVNULL)
        page.dark(False)
        page.open(file)
        page.drawn()
        check(colours(page) > 20, "the ladder is blank")
        check(colours(page, "overview") > 2, "the overview is blank")
        page.picture(os.path.join(pictures or folder, "light.png"))
        light = page.value("colours.paper")
        page.dark(True)
        check(page.value("colours.paper") != light, "the dark page is light")
        page.picture(os.path.join(pictures or folder, "dark.png"))
        page.dark(False)
        walk(page)
        search(page)
        choose_connection(page)
        page.click(600, 400)
        check_saved(page, folder)
        check(page.value("colours.paper") == light, "a saved picture changes the page's colours")
        paper = os.path.join(pictures or folder, "paper.pdf")
        page.paper(paper)
        check(page.value('document.querySelectorAll("#pages img").length') > 0, "nothing is printed")
        check(os.path.getsize(paper) > 20000, "the paper is blank")
        check(not page.problems, "the console says: " + "; ".join(page.problems))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
