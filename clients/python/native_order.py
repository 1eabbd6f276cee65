#!/usr/bin/env python3
"""Log in to a tickgate gateway by the native protocol, ask for the instruments, send one order, print what comes back.

Only the standard library. The formats are in docs/native.md. With the gateway and the exchange of configs/ running:

    python3 clients/python/native_order.py 127.0.0.1:7002 trader secret --session 2 --account 2
"""

import argparse
import socket
import struct
import sys
import time

SCHEMA = 18260
NEW_ORDER = struct.Struct("<4H I I q Q I H B B Q")  # 48 bytes
REPORT = struct.Struct("<4H Q Q q Q I I I I H H B B H")  # 64 bytes
DEFINITION = struct.Struct("<4H I I q q 16s I I")  # 56 bytes
TYPES = "? New Fill Canceled Replaced Rejected Expired RequestRejected MassCancelAccepted".split()
DAY, LIMIT, BUY = 0, 2, 1


def packet(kind, payload=b""):
    """A SoupBinTCP packet: length (big-endian, of what follows), type, payload."""
    return struct.pack(">Hc", 1 + len(payload), kind) + payload


def packets(stream):
    """The server's packets, as (type, payload), until it hangs up."""
    while True:
        head = stream.read(3)
        if len(head) < 3:
            return
        length, kind = struct.unpack(">Hc", head)
        yield kind, stream.read(length - 1)


def show(message):
    """A report or definition as a line. Gives its template."""
    template = struct.unpack_from("<H", message, 2)[0]
    if template == 11:
        (*_, number, order, price, _exec, quantity, leaves, done, _instrument, _session, reason, kind, _side, _) = (
            REPORT.unpack(message)
        )
        print(f"{TYPES[kind]}: number {number}, order {order}, {quantity} lots at {price / 1e9:.2f}, "
              f"{leaves} open, {done} traded, reason {reason}")
    elif template == 13:
        *_, instrument, lot, tick, reference, symbol, _left, _ = DEFINITION.unpack(message)
        print(f"instrument {instrument}: {symbol.rstrip(bytes(1)).decode()}, lot {lot}, tick {tick / 1e9}, "
              f"reference {reference / 1e9:.2f}")
    else:
        print(f"template {template}: {message.hex(' ')}")
    return template


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("user")
    parser.add_argument("password")
    parser.add_argument("--session", type=int, required=True, help="the number that the gateway's config gives the login")
    parser.add_argument("--account", type=int, required=True)
    parser.add_argument("--instrument", type=int, default=1)
    parser.add_argument("--price", type=float, default=98.0)
    args = parser.parse_args()
    host, port = args.address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    # Sequence number 0: only what is new. A client that keeps its number sends the next one, and misses nothing.
    login = f"{args.user:<6}{args.password:<10}{'':<10}{0:>20}".encode()
    connection.sendall(packet(b"L", login))
    received = packets(connection.makefile("rb"))
    kind, payload = next(received, (b"", b""))
    if kind != b"A":
        sys.exit(f"the login is refused: {kind.decode()} {payload.decode()}")
    print(f"logged in; the server's next number is {payload[10:].decode().strip()}")

    connection.sendall(packet(b"U", struct.pack("<4H I I", 8, 5, SCHEMA, 0, 0, 0)))
    # Numbers rise strictly within a day; the time does, also from run to run.
    order = NEW_ORDER.pack(
        40, 1, SCHEMA, 0, args.instrument, 10, round(args.price * 100) * 10_000_000, time.time_ns() // 1_000,
        args.account, args.session, BUY, LIMIT << 4 | DAY, 0,
    )  # the last field is the trigger: 0, no tick caused this order
    connection.sendall(packet(b"U", order))
    for kind, payload in received:
        # H is a heartbeat; a client that stays sends R when it has nothing to say for a second.
        if kind == b"S" and show(payload) in (11, 12):
            break
    connection.sendall(packet(b"O"))  # leave: the gateway cancels what is open


if __name__ == "__main__":
    main()
