"""The links over a wire that loses: two network namespaces, a veth pair, and one in a hundred packets gone each way.

    suite.py TICKGATE TESTS

First `tickgate lat`: round trips over every link without loss and with it, and LTP in each of its redundancy modes. Then
gateway and exchange, each in a namespace, of which one is killed and started again in mid-flow (tests/netns.rs): every order
is accounted for by its number at both ends. TESTS is the program that tests/main.rs becomes.
"""

import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import namespaces

PORT = 7300
SECONDS = "3"
LOSS_PERCENT = 1

checks = 0


def check(holds, what):
    global checks
    checks += 1
    if not holds:
        print(f"FAILED: {what}", flush=True)
        sys.exit(1)


def lat(tickgate, net, *arguments):
    """One run of the near end; the far one listens already."""
    target = f"{net.addresses[1]}:{PORT}"
    command = net.command(0, tickgate, "lat", "--connect", target, "--json", *arguments)
    ran = subprocess.run(command, capture_output=True, text=True, timeout=180)
    check(ran.returncode == 0, f"lat {' '.join(arguments)}: {ran.stderr}")
    return json.loads(ran.stdout)


def show(title, rungs):
    print(f"\n{title}; µs")
    print(f"{'':<14}{'p50':>9}{'p99':>10}{'p99.9':>10}{'max':>10}{'count':>9}{'resent':>8}{'lost':>6}{'to udp':>8}")
    for name, rung in rungs:
        us = ["-" if rung[key] is None else f"{rung[key] / 1e3:.1f}" for key in ("p50_ns", "p99_ns", "p999_ns", "max_ns")]
        ratio = rung.get("ratio_to_floor")
        ratio = "-" if ratio is None else f"{ratio:.3f}"
        counts = f"{rung['count']:>9}{rung['retransmits']:>8}{rung['lost']:>6}"
        print(f"{name:<14}{us[0]:>9}{us[1]:>10}{us[2]:>10}{us[3]:>10}{counts}{ratio:>8}", flush=True)


def without_loss(tickgate, net):
    ladder = lat(tickgate, net, "--all", "--seconds", SECONDS)
    rungs = [(rung["link"], rung) for rung in ladder["rungs"]]
    show("ping-pong over veth, no loss", rungs)
    for rung in ladder["skipped"]:
        print(f"{rung['link']:<14}skipped: {rung['why']}")
    for name in ("tcp-untuned", "tcp-bare", "tcp", "udp", "ltp"):
        rung = dict(rungs).get(name)
        check(rung is not None and rung["count"] > 0, f"{name} is measured")
        check(rung["lost"] == 0 or name == "udp", f"{name} loses nothing")


def with_loss(tickgate, net):
    runs = [
        ("tcp-untuned", ["--link", "tcp-untuned"]),
        ("tcp default", ["--link", "tcp", "--rto-min", "default"]),
        ("tcp lowest", ["--link", "tcp", "--rto-min", "lowest"]),
        ("ltp off", ["--link", "ltp"]),
        ("ltp twice", ["--link", "ltp", "--redundancy", "twice"]),
        ("ltp paths", ["--link", "ltp", "--redundancy", "paths"]),
        ("ltp repeat", ["--link", "ltp", "--redundancy", "repeat"]),
        ("ltp compact", ["--link", "ltp", "--header", "compact", "--key"]),
    ]
    for title, extra in [("ping-pong", []), ("5,000 a second by plan", ["--rate", "5000"])]:
        rungs = [(name, lat(tickgate, net, "--seconds", SECONDS, *extra, *link)) for name, link in runs]
        show(f"{title} over veth, {LOSS_PERCENT} % loss each way", rungs)
        for name, rung in rungs:
            check(rung["count"] > 0 and rung["lost"] == 0, f"{name} brings every message")
            check(rung["retransmits"] > 0, f"{name} repairs something")
        # That the loss is behind the sender's stack: it waits for its timer, where nothing follows that could show the gap.
        waits = dict(rungs)["tcp-untuned"]["max_ns"] > 190_000_000
        check(waits or extra, "TCP waits for its timer")


def kills(tests, net):
    environment = dict(os.environ, TICKGATE_NETNS=" ".join([net.names[1], *net.addresses]))
    command = net.command(0, tests, "--ignored", "netns::", "--test-threads", "1")
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    print(ran.stdout[-2000:], flush=True)
    check(ran.returncode == 0, f"gateway and exchange are killed and come back: {ran.stderr[-4000:]}")
    check("4 passed" in ran.stdout, "four kills were made")


def main():
    tickgate, tests = map(os.path.abspath, sys.argv[1:3])
    reason = namespaces.why_not()
    if reason is not None:
        print(f"FAILED: {reason}")
        sys.exit(1)
    # A signal ends this like an error does, so that the namespaces go.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    with namespaces.Namespaces() as net:
        listen = net.command(1, tickgate, "lat", "--listen", f"{net.addresses[1]}:{PORT}")
        listener = subprocess.Popen(listen, stdout=subprocess.PIPE, text=True)
        try:
            check("listening" in listener.stdout.readline(), "the far end listens")
            without_loss(tickgate, net)
            net.loss(LOSS_PERCENT)
            with_loss(tickgate, net)
        finally:
            listener.kill()
            listener.wait()
        kills(tests, net)
    print(f"checks: {checks}")


main()
