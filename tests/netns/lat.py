"""`tickgate lat` between two namespaces, as the suite and the figures run it."""

import json
import subprocess

PORT = 7300

# The ladder, from the plainest to the fastest. The bare carriers of datagrams lose for good what is lost.
LINKS = ["tcp-untuned", "tcp-bare", "tcp", "udp", "ltp", "roce", "roce-send", "roce-read", "afxdp-bare", "afxdp"]
UNREPAIRED = ["udp", "afxdp-bare"]
# Of a read nothing goes one way.
NOT_ONE_WAY = ["roce-read"]


class Lat:
    """The far end in its namespace, as a context, and runs of the near end against it."""

    def __init__(self, tickgate, net):
        self.tickgate = tickgate
        self.net = net
        self.address = f"{net.addresses[1]}:{PORT}"
        self.listener = None

    def __enter__(self):
        command = self.net.command(1, self.tickgate, "lat", "--listen", self.address)
        self.listener = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.listener.stdout.readline()
        if not line.startswith(f"listening on {self.address}"):
            self.__exit__()
            raise RuntimeError(f"the far end does not listen: {line}")
        return self

    def __exit__(self, *_):
        self.listener.kill()
        self.listener.wait()

    def run(self, *arguments, timeout=180):
        """One run of the near end: its status, what it printed, and its complaints."""
        command = self.net.command(0, self.tickgate, "lat", "--connect", self.address, *arguments)
        ran = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        return ran.returncode, ran.stdout, ran.stderr

    def json(self, *arguments, timeout=180):
        """The figures of a run that ends as it should."""
        status, text, errors = self.run("--json", *arguments, timeout=timeout)
        if status != 0:
            raise RuntimeError(f"lat {' '.join(arguments)}: {errors}")
        return json.loads(text)


def us(ns):
    return "-" if ns is None else f"{ns / 1e3:.1f}"


def show(title, rungs):
    """A table of named rungs."""
    print(f"\n{title}; µs")
    columns = "".join(f"{name:>10}" for name in ("p50", "p99", "p99.9", "max", "count", "resent", "spurious", "lost"))
    print(f"{'':<14}{columns}{'per second':>12}{'to udp':>8}")
    for name, rung in rungs:
        times = "".join(f"{us(rung[key]):>10}" for key in ("p50_ns", "p99_ns", "p999_ns", "max_ns"))
        spurious = "-" if rung["retransmits_spurious"] is None else rung["retransmits_spurious"]
        counts = f"{rung['count']:>10}{rung['retransmits']:>10}{spurious:>10}{rung['lost']:>10}"
        ratio = "-" if rung["ratio_to_floor"] is None else f"{rung['ratio_to_floor']:.3f}"
        print(f"{name:<14}{times}{counts}{rung['messages_per_second']:>12.0f}{ratio:>8}", flush=True)
