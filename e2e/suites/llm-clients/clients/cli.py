"""Agents of the command line: how they are run and stopped."""

import os
import re
import signal
import subprocess
import tempfile

from base import PLAN, NotApplicable

BINARIES = f"{PLAN['npm']}/node_modules"


class Rejected(Exception):
    """The agent reports an error of the API."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status_code = status


class Agent:
    """A home directory and an empty project for one conversation. Nothing of the user's own agent is read."""

    def __init__(self, env):
        self.home = tempfile.mkdtemp(prefix="agent-")
        self.project = os.path.join(self.home, "project")
        os.mkdir(self.project)
        self.env = {"PATH": os.environ["PATH"], "HOME": self.home, "LANG": "C.UTF-8", **env}

    def run(self, *command, stdin=None):
        done = subprocess.run(command, cwd=self.project, env=self.env, input=stdin or "", capture_output=True, text=True, timeout=90)
        return done.returncode, done.stdout, done.stderr

    def interrupt(self, is_started, *command):
        """Runs a command and stops it as a user does, after a line for which `is_started` holds."""
        child = subprocess.Popen(command, cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            seen = []
            for line in child.stdout:
                seen.append(line)
                if is_started(line):
                    break
            else:
                raise AssertionError(f"it ended: {''.join(seen)[-500:]}")
            child.send_signal(signal.SIGINT)
            child.wait(30)
        finally:
            child.kill()


def degrees_in(text):
    """What an answer says of the weather, in order of the cities: agents run commands at once, and add notes to their results."""
    cities = ("Paris", "Rome", "Oslo", "Bergen")
    return sorted(re.findall(r"\d+ degrees in \w+", text), key=lambda one: cities.index(one.split()[-1]))


def always_streams(_provider):
    raise NotApplicable("all requests of this agent are streams")
