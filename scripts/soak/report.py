"""The report: what each part did last, as JSON and as a table."""
import json
import os
import subprocess
import time


def commit():
    try:
        return subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True,
                              check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


class Report:
    def __init__(self, folder):
        self.json_path = os.path.join(folder, "report.json")
        self.markdown_path = os.path.join(folder, "report.md")
        self.parts = {}
        if os.path.exists(self.json_path):
            with open(self.json_path, encoding="utf-8") as file:
                self.parts = json.load(file)["parts"]

    def before(self, name):
        return self.parts.get(name, {}).get("figures", {})

    def add(self, name, steps):
        self.parts[name] = {"commit": commit(), "ended": time.strftime("%Y-%m-%d %H:%M:%S"),
                            "seconds": round(steps.used_seconds), "complete": steps.complete,
                            "figures": steps.figures, "failures": steps.failures, "log": steps.log_path}
        with open(self.json_path, "w", encoding="utf-8") as file:
            json.dump({"parts": self.parts, "failed": self.failed()}, file, indent=1)
        with open(self.markdown_path, "w", encoding="utf-8") as file:
            file.write(self.text() + "\n")

    def failed(self):
        return any(part["failures"] for part in self.parts.values())

    def line(self, name):
        part = self.parts[name]
        figures = ", ".join(f"{value:,} {what}" for what, value in part["figures"].items())
        outcome = f"{len(part['failures'])} FAILED" if part["failures"] else "well" if part["complete"] else "well, not whole"
        return f"| {name} | {outcome} | {figures} | {part['seconds']} s | {part['commit']} | {part['ended']} |"

    def text(self):
        lines = ["| part | outcome | figures | time | commit | ended |", "|---|---|---|---|---|---|"]
        lines += [self.line(name) for name in self.parts]
        for name, part in self.parts.items():
            lines += [f"\n{name} (log {part['log']}):\n"] if part["failures"] else []
            lines += [f"* {failure}" for failure in part["failures"]]
        return "\n".join(lines)
