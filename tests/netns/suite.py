"""The links over a wire that loses: two network namespaces, a veth pair, and one in a hundred packets gone each way.

    suite.py TICKGATE TESTS

First `tickgate lat`: every link without loss and with it, in every mode, and LTP in each of its redundancy modes. What is
checked is what arrives, what is sent again and what is told of it, never a time (but that TCP waits for its timer at least).
Then gateway and exchange, each in a namespace, of which one is killed and started again in mid-flow (tests/netns.rs): every
order is accounted for by its number at both ends. TESTS is the program that tests/main.rs becomes.
"""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import namespaces
from lat import LINKS, NOT_ONE_WAY, UNREPAIRED, Lat, show

SECONDS = "1"
RATE = 5000
LOSS_PERCENT = 1

# What every rung has in JSON.
FIELDS = """bytes_per_second count cpu failure far_cpu far_idle header idle kernel key link lost max_ns messages_per_second mode
options p50_ns p90_ns p999_ns p99_ns partial place planned rate_offered ratio_to_floor redundancy retransmits
retransmits_spurious rounds rounds_whole rto_min seconds sent size version what""".split()

# The columns of the table, and the socket options as they are read back, in their order.
COLUMNS = "link p50 p99 p99.9 max count resent spurious lost messages/s MB/s to floor".split()
SOCKET_OPTIONS = """no_delay quick_ack rto_min_us user_timeout_ms notsent_lowat_bytes busy_poll_us prefer_busy_poll incoming_cpu
send_buffer_bytes receive_buffer_bytes""".split()

checks = 0


def check(holds, what):
    global checks
    checks += 1
    if not holds:
        print(f"FAILED: {what}", flush=True)
        sys.exit(1)


def check_rung(rung, mode, redundancy="off", header="full", key=False, rto_min="lowest"):
    """What holds of every rung, with loss and without."""
    name = f"{rung['link']}, {mode}"
    check(sorted(rung) == FIELDS, f"{name} has its fields: {sorted(rung)}")
    check(rung["mode"] == mode and rung["size"] == 64, f"{name} is what was asked for: {rung}")
    check(not rung["partial"] and rung["failure"] is None, f"{name} is whole: {rung['failure']}")
    check(rung["rounds_whole"] == rung["rounds"], f"{name} has all its rounds")
    check(rung["count"] > 0 and rung["sent"] == rung["count"] + rung["lost"], f"{name} adds up: {rung}")
    check(rung["link"] in UNREPAIRED or rung["lost"] == 0, f"{name} brings every message: {rung}")
    is_ltp = rung["link"] in ("ltp", "afxdp")
    of_ltp = [rung["redundancy"], rung["header"], rung["key"]]
    check(of_ltp == ([redundancy, header, key] if is_ltp else [None] * 3), f"{name} has LTP's options: {of_ltp}")
    is_tuned = rung["link"] in ("tcp", "tcp-bare")
    check(rung["rto_min"] == (rto_min if is_tuned else None), f"{name} has its timeout: {rung['rto_min']}")
    options = [pair.split("=")[0] for pair in (rung["options"] or "").split() if "=" in pair]
    wanted = SOCKET_OPTIONS if rung["link"].startswith("tcp") else []
    check(options == wanted, f"{name} has the socket options: {options}")
    check(rung["idle"] == rung["far_idle"] == "spin", f"{name} tells of both ends: {rung}")
    # Who sends copies cannot be told which of them were one too many, and RoCEv2 does not tell.
    is_told = redundancy not in ("twice", "paths") and not rung["link"].startswith("roce")
    spurious = rung["retransmits_spurious"]
    check((spurious is not None) == is_told, f"{name} tells of spurious ones, or cannot: {spurious}")
    check((spurious or 0) <= rung["retransmits"], f"{name} has no more spurious ones than all: {rung}")
    check(rung["link"] not in UNREPAIRED or rung["retransmits"] == 0, f"{name} sends nothing again: {rung}")
    check(mode != "one-way" or rung["max_ns"] is not None, f"{name} has the times of one clock")
    plan = int(RATE * float(SECONDS)) if mode == "open-loop" else rung["sent"]
    check(rung["planned"] == plan, f"{name} has its plan: {rung['planned']}")


def ladder(lat, title, mode, *arguments):
    ladder = lat.json("--all", "--seconds", SECONDS, *arguments)
    rungs = [(rung["link"], rung) for rung in ladder["rungs"]]
    show(title, rungs)
    left_out = NOT_ONE_WAY if mode == "one-way" else []
    check(ladder["skipped"] == [] and ladder["floor"] == "udp", f"nothing is left out: {ladder['skipped']}")
    wanted = [name for name in LINKS if name not in left_out]
    check([name for name, _ in rungs] == wanted, f"the ladder has its order: {rungs}")
    key = "messages_per_second" if mode == "one-way" else "p50_ns"
    floor = dict(rungs)["udp"][key]
    for name, rung in rungs:
        check_rung(rung, mode)
        # Too few samples, on a machine that is busy, have no median.
        if floor and rung[key]:
            check(abs(rung["ratio_to_floor"] - rung[key] / floor) < 1e-9, f"{name} is held against the floor: {rung}")


def without_loss(lat):
    ladder(lat, "ping-pong over veth, no loss", "ping-pong")
    ladder(lat, "one way over veth, no loss", "one-way", "--one-way")
    status, text, errors = lat.run("--all", "--seconds", "0.3")
    lines = text.splitlines()
    check(status == 0, f"the table is printed: {errors}")
    heads = [number for number, line in enumerate(lines) if line.split() == COLUMNS]
    check(len(heads) == 1, f"it has one line of columns: {text}")
    rows = [line.split()[0] for line in lines[heads[0] + 1 :][: len(LINKS)]]
    check(rows == LINKS, f"its rows have the order of the ladder: {text}")


def with_loss(lat):
    runs = [
        ("tcp-untuned", ["--link", "tcp-untuned"], {}),
        ("tcp default", ["--link", "tcp", "--rto-min", "default"], {"rto_min": "default"}),
        ("tcp lowest", ["--link", "tcp", "--rto-min", "lowest"], {}),
        ("udp", ["--link", "udp"], {}),
        ("ltp off", ["--link", "ltp"], {}),
        ("ltp twice", ["--link", "ltp", "--redundancy", "twice"], {"redundancy": "twice"}),
        ("ltp paths", ["--link", "ltp", "--redundancy", "paths"], {"redundancy": "paths"}),
        ("ltp repeat", ["--link", "ltp", "--redundancy", "repeat"], {"redundancy": "repeat"}),
        ("ltp compact", ["--link", "ltp", "--header", "compact", "--key"], {"header": "compact", "key": True}),
        ("afxdp", ["--link", "afxdp"], {}),
    ]
    for mode, extra in [("ping-pong", []), ("open-loop", ["--rate", str(RATE)])]:
        rungs = [(name, lat.json("--seconds", SECONDS, *extra, *link), options) for name, link, options in runs]
        show(f"{mode} over veth, {LOSS_PERCENT} % loss each way", [rung[:2] for rung in rungs])
        for name, rung, options in rungs:
            check_rung(rung, mode, **options)
            if name == "udp":
                check(rung["lost"] > 0, "the wire loses")
            # What is sent twice, or with the next message, is lost too rarely for a short run.
            elif not options.get("redundancy"):
                check(rung["retransmits"] > 0, f"{name} repairs something")
        # That the loss is behind the sender's stack: it waits for its timer, where nothing follows that could show the gap.
        waits = dict(rung[:2] for rung in rungs)["tcp-untuned"]["max_ns"] > 190_000_000
        check(waits or extra, "TCP waits for its timer")
    stream = lat.json("--link", "ltp", "--one-way", "--seconds", SECONDS)
    show(f"one way over veth, {LOSS_PERCENT} % loss each way", [("ltp", stream)])
    check_rung(stream, "one-way")
    check(stream["retransmits"] > 0, "a stream is repaired")


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
        with Lat(tickgate, net) as lat:
            without_loss(lat)
            net.loss(LOSS_PERCENT)
            with_loss(lat)
        kills(tests, net)
    print(f"checks: {checks}")


main()
