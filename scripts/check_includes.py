"""Checks who includes whom. Prints each violation with its rule; the exit code is 1 when there is one.

  check_includes.py [--tree] [ROOT]

--tree also draws the folders of product code by what they include, lowest first.

Rules:
  layers    A folder includes only the folders that its row in layers.txt gives it.
  circle    No circle of includes between folders of product code, nor between their files.
  crowded   A folder of product code has at most 30 files.
  pure      emulator/ (outside of daemon, cli, lab, experiment/command, script/live and script/agent), network/, impairment/
            and dpdk_io/ip_host/ know no DPDK, socket, thread or clock.
  abi       verbs_shim/abi includes nothing but the C library.
  no-rdma   dpdk_io knows Ethernet, so no RDMA header.
  no-dpdk   DPDK headers belong to dpdk_io and emulator/daemon.
  rooted    Quoted includes are written from the project's root.
  once      A header begins with #pragma once (include guards in what is plain C: verbs_shim/abi and
            emulator/congestion/include).
"""

import argparse
import collections
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MAX_FILES = 30
SOURCES = (".h", ".cc", ".c", ".inc")

PURE = ("emulator", "network", "impairment", "dpdk_io/ip_host")
IMPURE_WITHIN = ("emulator/daemon", "emulator/cli", "emulator/lab", "emulator/experiment/command", "emulator/script/live",
                 "emulator/script/agent")

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]*)[">]')
PLAIN_C = ["verbs_shim/abi", "emulator/congestion/include"]
GUARD = re.compile(r"^#ifndef ROCEMU_")
DPDK = re.compile(r"^(rte_|dpdk)")
RDMA = re.compile(r"^(infiniband|rdma|linux/(rdma|ib_))")
SYSTEM = re.compile(
    r"^(sys/socket|sys/un|netinet/|net/|arpa/|netdb|linux/if|boost/asio|"
    r"thread|mutex|shared_mutex|condition_variable|future|semaphore|latch|barrier|stop_token|"
    r"pthread|threads\.h|sched\.h|"
    r"chrono|ctime|time\.h|sys/time|sys/timerfd)")


def is_below(folder, tops):
    return any(folder == top or folder.startswith(top + "/") for top in tops)


class Layers:
    """The rows of layers.txt."""

    def __init__(self, path):
        self.rows = {}
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                folder, _, allowed = line.partition(":")
                self.rows[folder] = allowed.split()

    def tops(self):
        return sorted({folder.split("/")[0] for folder in self.rows})

    def row_of(self, folder):
        """The nearest folder that has a row; None for a folder that is below none."""
        while folder and folder not in self.rows:
            folder = os.path.dirname(folder)
        return folder or None

    def may_include(self, row, target):
        if row == target:
            return True
        for allowed in self.rows[row]:
            if allowed.endswith("/*"):
                if is_below(target, [allowed[:-2]]):
                    return True
            elif allowed == target:
                return True
        return False


class Check:
    def __init__(self, root, layers):
        self.root = root
        self.layers = layers
        self.violations = []
        self.files = {}  # product and tests: path -> quoted includes as (line, target)

    def complain(self, path, line, rule, text):
        self.violations.append(f"{path}:{line}: [{rule}] {text}")

    def read_all(self):
        for top in self.layers.tops() + ["tests"]:
            for path in sorted((self.root / top).rglob("*")):
                if path.suffix in SOURCES and path.is_file():
                    self.read(path.relative_to(self.root).as_posix(), path)

    def read(self, name, path):
        folder = os.path.dirname(name)
        is_test = is_below(folder, ["tests"])
        row = None if is_test else self.layers.row_of(folder)
        quoted = self.files[name] = []
        if row is None and not is_test:
            return self.complain(name, 1, "layers", f"{folder} has no row in scripts/layers.txt")
        guarded = False
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if line.startswith("#pragma once") or (row in PLAIN_C and GUARD.match(line)):
                guarded = True
            if include := INCLUDE.match(line):
                if include[1] == '"':
                    quoted.append((number, include[2]))
                    self.check_quoted(name, number, row, include[2])
                elif not is_test:
                    self.check_angled(name, number, folder, include[2])
        if name.endswith(".h") and not guarded:
            self.complain(name, 1, "once", "no #pragma once")

    def check_quoted(self, name, number, row, included):
        folder = os.path.dirname(included)
        if row is None and is_below(folder, ["tests"]):
            return
        target = self.layers.row_of(folder)
        if target is None:
            self.complain(name, number, "rooted",
                          f'"{included}" is not written from the root of the project')
        elif row is not None and not self.layers.may_include(row, target):
            self.complain(name, number, "layers",
                          f'{row} may not include {target} ("{included}"); it may: '
                          + " ".join(self.layers.rows[row]))

    def check_angled(self, name, number, folder, included):
        wrong = f"{folder} may not include <{included}>"
        if DPDK.match(included) and not is_below(folder, ["dpdk_io", "emulator/daemon"]) or \
                DPDK.match(included) and is_below(folder, ["dpdk_io/ip_host"]):
            self.complain(name, number, "no-dpdk", wrong)
        if SYSTEM.match(included) and is_below(folder, PURE) and not is_below(folder, IMPURE_WITHIN):
            self.complain(name, number, "pure", wrong)
        if RDMA.match(included) and is_below(folder, ["dpdk_io"]):
            self.complain(name, number, "no-rdma", wrong)
        if "/" in included and included != "sys/types.h" and is_below(folder, ["verbs_shim/abi"]):
            self.complain(name, number, "abi", wrong)

    # ---- the graph of product code ----

    def product(self):
        return [name for name in self.files if not is_below(name, ["tests"])]

    def file_graph(self):
        product = set(self.product())
        return {name: sorted({to for _, to in self.files[name] if to in product})
                for name in sorted(product)}

    def folder_graph(self):
        graph = collections.defaultdict(set)
        for name, targets in self.file_graph().items():
            graph[os.path.dirname(name)] |= {os.path.dirname(to) for to in targets}
        return {folder: sorted(targets - {folder}) for folder, targets in sorted(graph.items())}

    def check_circles(self):
        for circle in circles(self.folder_graph()):
            self.complain(circle[0], 1, "circle", self.explain(circle))
        for circle in circles(self.file_graph()):
            self.complain(circle[0], 1, "circle", "includes itself by way of " + ", ".join(circle[1:]))

    def explain(self, circle):
        """One include for each edge within the circle of folders."""
        edges = {}
        for name, targets in self.file_graph().items():
            for to in targets:
                edge = (os.path.dirname(name), os.path.dirname(to))
                if edge[0] != edge[1] and set(edge) <= set(circle):
                    edges.setdefault(edge, f"{name} includes {to}")
        return "these folders include each other: " + "; ".join(edges[key] for key in sorted(edges))

    def check_crowds(self):
        for folder, count in self.counts().items():
            if count > MAX_FILES:
                self.complain(folder, 1, "crowded", f"{count} files; at most {MAX_FILES}")

    def counts(self):
        return collections.Counter(os.path.dirname(name) for name in self.product())

    def draw_tree(self):
        """Prints each folder above all that it includes."""
        graph, counts, drawn, floor = self.folder_graph(), self.counts(), {}, 0
        in_circle = {folder: set(circle) for circle in circles(graph) for folder in circle}
        while len(drawn) < len(graph):
            ready = [folder for folder, targets in graph.items() if folder not in drawn and
                     all(to in drawn or to in in_circle.get(folder, ()) for to in targets)]
            ready += [folder for folder in graph if folder not in drawn and folder not in ready and
                      in_circle.get(folder, set()) & set(ready)]
            print(f"floor {floor}")
            for folder in sorted(ready):
                drawn[folder] = floor
                print(f"  {folder} ({counts[folder]} files)" + (": " if graph[folder] else "")
                      + " ".join(graph[folder]))
            floor += 1
        for circle in circles(graph):
            print("circle: " + self.explain(circle))


def circles(graph):
    """The strongly connected components of more than one node, or of one that points to itself (Tarjan)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for to in graph[node]:
            if to not in index:
                visit(to)
                low[node] = min(low[node], low[to])
            elif to in on_stack:
                low[node] = min(low[node], index[to])
        if low[node] == index[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
                on_stack.discard(component[-1])
            if len(component) > 1 or node in graph[node]:
                found.append(sorted(component))

    for node in graph:
        if node not in index:
            visit(node)
    return sorted(found)


def main():
    parser = argparse.ArgumentParser(description="Checks who includes whom.")
    parser.add_argument("--tree", action="store_true", help="draw the folders by what they include")
    parser.add_argument("root", nargs="?", type=Path, default=HERE.parent)
    arguments = parser.parse_args()
    check = Check(arguments.root, Layers(HERE / "layers.txt"))
    check.read_all()
    if not check.files:
        sys.exit(f"check_includes.py: there is no source folder in {arguments.root}")
    check.check_circles()
    check.check_crowds()
    if arguments.tree:
        check.draw_tree()
    for violation in check.violations:
        print(violation)
    print(f"{len(check.files)} files, {len(check.violations)} violations")
    sys.exit(1 if check.violations else 0)


main()
