"""Every figure that the links are held to, in one run: two network namespaces, a veth pair, a spinning thread a side.

    figures.py TICKGATE [LTP_BENCH] [--quick]

On an idle machine it takes half an hour. `--quick` takes two minutes, and shows only that it works. LTP_BENCH is the program of
`cargo bench --bench ltp --no-run`: with it also what a datagram costs, and, where there is valgrind, its instructions.
Nothing here passes or fails: the table at the end has each figure beside what is wanted. A dash: too few samples.
"""

import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import namespaces
from lat import Lat, show

LOSS_PERCENT = 1
RATE = "5000"
DATAGRAMS = 25_600

# Seconds of each link. A plain TCP stands still for 200 ms after each loss: ten samples beyond p99.9 take it that long.
SECONDS = {"no loss": "30", "loss": "90", "open loop": "30", "redundancy": "30", "one way": "9"}


def ladder(lat, title, seconds, *arguments):
    timeout = 60 + 10 * float(seconds)
    print(f"\n$ tickgate lat --connect {lat.address} --all --seconds {seconds} {' '.join(arguments)}".rstrip())
    ladder = lat.json("--all", "--seconds", seconds, *arguments, timeout=timeout)
    rungs = {rung["link"]: rung for rung in ladder["rungs"]}
    show(title, rungs.items())
    for rung in ladder["skipped"]:
        print(f"{rung['link']:<14}skipped: {rung['why']}")
    return rungs


def redundant(lat, title, seconds):
    rungs = {}
    for redundancy in ("off", "twice", "paths", "repeat"):
        arguments = ["--link", "ltp", "--redundancy", redundancy, "--seconds", seconds]
        print(f"$ tickgate lat --connect {lat.address} {' '.join(arguments)}")
        rungs[redundancy] = lat.json(*arguments, timeout=60 + 2 * float(seconds))
    show(title, rungs.items())
    return rungs


def ratio(above, below, key):
    figures = [None if rung is None else rung[key] for rung in (above, below)]
    return None if None in figures or figures[1] == 0 else figures[0] / figures[1]


def links(lat, net, seconds):
    """Every figure of a link, and what is wanted of it."""
    quiet = ladder(lat, "no loss, ping-pong", seconds["no loss"])
    stream = ladder(lat, "no loss, one way, packed", seconds["one way"], "--one-way")
    both = redundant(lat, "no loss, ping-pong, LTP's redundancy", seconds["redundancy"])
    net.loss(LOSS_PERCENT)
    lossy = ladder(lat, "1 % loss each way, ping-pong", seconds["loss"])
    kernel = lat.json("--link", "tcp", "--rto-min", "default", "--seconds", seconds["loss"], timeout=600)
    show("1 % loss each way, ping-pong, our TCP link with the kernel's timeout", [("tcp default", kernel)])
    planned = ladder(lat, f"1 % loss each way, {RATE} a second by plan", seconds["open loop"], "--rate", RATE)
    copies = redundant(lat, "1 % loss each way, ping-pong, LTP's redundancy", seconds["redundancy"])
    net.loss(0)
    of = lambda rungs, link: rungs.get(link)
    above = None
    if None not in (lossy["ltp"]["p999_ns"], quiet["ltp"]["p999_ns"]):
        above = (lossy["ltp"]["p999_ns"] - quiet["ltp"]["p999_ns"]) / 1e3
    rows = [
        ("no loss, p50: LTP / UDP", ratio(quiet["ltp"], quiet["udp"], "p50_ns"), 1.10),
        ("no loss, p50: LTP / plain TCP", ratio(quiet["ltp"], quiet["tcp-untuned"], "p50_ns"), 1),
        ("no loss, p50: LTP / tuned TCP", ratio(quiet["ltp"], quiet["tcp-bare"], "p50_ns"), 1),
        ("no loss, p50: LTP over AF_XDP / UDP", ratio(of(quiet, "afxdp"), quiet["udp"], "p50_ns"), 0.65),
        ("no loss, p50: RoCEv2 by WRITE / UDP", ratio(of(quiet, "roce"), quiet["udp"], "p50_ns"), 1.25),
        ("no loss, p50: RoCEv2 by SEND / UDP", ratio(of(quiet, "roce-send"), quiet["udp"], "p50_ns"), 1.25),
        ("no loss, p50: RoCEv2 by READ / UDP", ratio(of(quiet, "roce-read"), quiet["udp"], "p50_ns"), 1.25),
        ("loss, p99.9: LTP / plain TCP", ratio(lossy["ltp"], lossy["tcp-untuned"], "p999_ns"), 1 / 1000),
        ("loss, p99.9: LTP / TCP at its lowest timeout", ratio(lossy["ltp"], lossy["tcp-bare"], "p999_ns"), 1 / 100),
        ("loss, p99.9: LTP above its own without, µs", above, 50),
        ("by plan, p99.9: LTP / TCP at its lowest timeout", ratio(planned["ltp"], planned["tcp-bare"], "p999_ns"), 1 / 4),
    ]
    for name in ("twice", "paths"):
        figure = ratio(copies[name], both[name], "p99_ns")
        rows.append((f"loss, p99: LTP, {name} / its own without", figure, 2))
    return rows, stream["ltp"]["messages_per_second"]


def instructions(bench, kind, key):
    """Instructions a datagram of this kind, by callgrind."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--toggle-collect=ltp::{kind}*", bench]
    ran = subprocess.run([*command, "--datagrams", str(DATAGRAMS), *key], capture_output=True, text=True)
    collected = re.search(r"Collected : (\d+)", ran.stderr)
    if collected is None:
        return f"? {ran.stderr[-300:]}"
    # Nothing is forged where there is no key.
    return f"{int(collected[1]) / DATAGRAMS:.0f}" if int(collected[1]) else "-"


def datagrams(bench):
    """What a datagram costs by itself; the tag is the difference that the key makes."""
    print("\n$ cargo bench --bench ltp", flush=True)
    subprocess.run([bench, "--bench"], check=True)
    if shutil.which("valgrind") is None:
        print("no valgrind: no instructions")
        return
    print(f"\ninstructions a datagram by callgrind\n{'':<18}{'without key':>12}{'with key':>12}")
    for kind in ("send_all", "receive_all", "drop_foreign", "drop_replayed", "drop_forged"):
        counts = "".join(f"{instructions(bench, kind, key):>12}" for key in ([], ["--key"]))
        print(f"{kind:<18}{counts}", flush=True)


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--quick"]
    seconds = SECONDS if len(arguments) == len(sys.argv) - 1 else dict.fromkeys(SECONDS, "1")
    reason = namespaces.why_not()
    if reason is not None:
        sys.exit(f"figures: {reason}")
    # A signal ends this like an error does, so that the namespaces go.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    with namespaces.Namespaces() as net, Lat(os.path.abspath(arguments[0]), net) as lat:
        rows, stream = links(lat, net, seconds)
    if len(arguments) > 1:
        datagrams(os.path.abspath(arguments[1]))
    print(f"\n{'':<52}{'is':>12}{'wanted':>16}")
    for name, figure, most in rows:
        is_met = "" if figure is None else "met" if figure <= most else "NOT MET"
        figure = "-" if figure is None else f"{figure:.4g}"
        print(f"{name:<52}{figure:>12}{f'at most {most:.4g}':>16}  {is_met}")
    is_met = "met" if stream >= 4e6 else "NOT MET"
    print(f"{'one way: messages of 64 bytes a second, LTP':<52}{stream:>12.4g}{'at least 4e+06':>16}  {is_met}")


main()
