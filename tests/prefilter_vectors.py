#!/usr/bin/env python3
"""Writes tests/vectors/prefilter.txt: the golden script of the pre-filter, from a model of its own.

The model follows docs/prefilter.md and shares nothing with the Rust and the RTL that are held to the script. `--check`
compares the file with what is made anew.
"""

import random
import struct
import sys
from pathlib import Path

SEED = 20240607
FRAMES = 2400
FILE = Path(__file__).parent / "vectors" / "prefilter.txt"

LEN, FIELD, KILL, SESSION, SYMBOL, QTY, PRICE, RATE, TOUCH = (1 << bit for bit in range(9))
REFUSE, MARKETABLE, CLOSED = 1, 2, 4
NEW, CANCEL, REPLACE, MASS_CANCEL = 1, 2, 3, 4
MARKET, LIMIT = 1, 2
NO_PRICE = -(2**63)
TOP = 2**63 - 1
TIMES_IN_FORCE = (0, 1, 2, 3, 4, 6, 7)


class Model:
    """What docs/prefilter.md says, in the plainest words."""

    def __init__(self):
        self.enable = self.kill = False
        self.symbols, self.sessions = {}, {}
        self.staged = []
        self.bids, self.asks, self.due = {}, {}, {}

    def commit(self):
        for table, key, value in self.staged:
            table.pop(key, None)
            if value is not None:
                table[key] = value
        self.staged = []

    def judge(self, now, post_only, message):
        closed = 0 if self.enable else CLOSED
        if len(message) != 48:
            return LEN, REFUSE | closed, 0
        block, template, schema, version = struct.unpack_from("<HHHH", message, 0)
        instrument, quantity, price, number = struct.unpack_from("<IIqQ", message, 8)
        session, side, flags = struct.unpack_from("<HBB", message, 36)
        order_type, time_in_force = flags >> 4, flags & 15

        formed = (block, schema, version) == (40, 0x4754, 0) and template in (NEW, CANCEL, REPLACE, MASS_CANCEL)
        formed = formed and number != 0
        if template != MASS_CANCEL:
            formed = formed and side in (1, 2)
        if template in (NEW, REPLACE):
            formed = formed and 0 < quantity < 2**32 - 1
        if template == NEW:
            formed = formed and order_type in (MARKET, LIMIT) and time_in_force in TIMES_IN_FORCE
            formed = formed and (price == NO_PRICE) == (order_type == MARKET)
        if template == REPLACE:
            formed = formed and price != NO_PRICE
        is_cancel = formed and template in (CANCEL, MASS_CANCEL)

        reasons, action, route = 0, closed, 0
        if not self.enable or (self.kill and not is_cancel):
            reasons |= KILL
        if session not in self.sessions:
            reasons |= SESSION
        if not formed:
            return reasons | FIELD, action | REFUSE, 0
        limits = self.symbols.get(instrument)
        if limits:
            route = limits[3]
        if not is_cancel:
            if not limits:
                reasons |= SYMBOL
            else:
                most, lowest, highest, _ = limits
                if quantity > most:
                    reasons |= QTY
                marketable = True
                if price != NO_PRICE:
                    if not lowest <= price <= highest:
                        reasons |= PRICE
                    if side == 1:
                        marketable = price >= self.asks.get(instrument, TOP)
                    else:
                        marketable = price <= self.bids.get(instrument, NO_PRICE)
                if marketable:
                    action |= MARKETABLE
                    if post_only:
                        reasons |= TOUCH
            if session in self.sessions:
                interval, ahead = self.sessions[session]
                due = self.due.get(session, 0)
                if due - now > ahead:
                    reasons |= RATE
                elif reasons == 0:
                    self.due[session] = max(due, now) + interval
        return reasons, action | (REFUSE if reasons else 0), route


class Script:
    """Steps with what the model makes of them."""

    def __init__(self, rng):
        self.rng, self.model, self.lines = rng, Model(), []
        self.now = 1_700_000_000_000_000_000
        self.number = 1
        self.seen = [0] * 9
        self.passed = 0

    def control(self, enable, kill):
        self.model.enable, self.model.kill = enable, kill
        self.lines.append(f"control {int(enable)} {int(kill)}")

    def symbol(self, key, limits):
        self.model.staged.append((self.model.symbols, key, limits))
        self.lines.append(f"symbol {key} " + (" ".join(map(str, limits)) if limits else "none"))

    def session(self, key, limits):
        self.model.staged.append((self.model.sessions, key, limits))
        self.lines.append(f"session {key} " + (" ".join(map(str, limits)) if limits else "none"))

    def touch(self, key, side, price):
        table = self.model.bids if side == "bid" else self.model.asks
        table.pop(key, None)
        if price != NO_PRICE:
            table[key] = price
        self.lines.append(f"touch {key} {side} {price}")

    def commit(self):
        self.model.commit()
        self.lines.append("commit")

    def frame(self, message, post_only=False):
        reasons, action, route = self.model.judge(self.now, post_only, message)
        for bit in range(9):
            self.seen[bit] += reasons >> bit & 1
        self.passed += reasons == 0
        text = message.hex() or "-"
        self.lines.append(f"frame {self.now} {int(post_only)} {text} {reasons} {action} {route}")

    def message(self, template=NEW, instrument=1, quantity=1, price=0, session=1, side=1, flags=LIMIT << 4, number=None,
                header=(40, 0x4754, 0)):
        self.number += 1
        number = self.number if number is None else number
        block, schema, version = header
        return struct.pack("<HHHHIIqQIHBBQ", block, template, schema, version, instrument, quantity, price, number, 7,
                           session, side, flags, self.number)


def around(rng, *values):
    """One of the values, or a neighbour of it."""
    return max(NO_PRICE, min(TOP, rng.choice(values) + rng.choice((-1, 0, 0, 1))))


def limits_of(rng):
    middle = rng.choice((0, 1, 100 * 10**9, -5 * 10**9, 2**32, -(2**32), 2**40 - 1, TOP // 2, -(TOP // 2)))
    width = rng.choice((0, 1, 10**9, 2**32, 2**33 + 5))
    most = rng.choice((1, 2, 100, 2**16, 2**31 - 1, 2**31, 2**32 - 1, rng.randrange(1, 2**32)))
    lowest, highest = middle - width, middle + width
    if rng.random() < 0.1:
        lowest, highest = NO_PRICE, TOP
    return most, lowest, highest, rng.randrange(256)


def random_order(script):
    rng, model = script.rng, script.model
    known = rng.choice(sorted(model.symbols)) if model.symbols else 1
    # Those beyond every table have the low bits of one that is known.
    instrument = rng.choice([known] * 12 + [0, 63, known + 2**20, known + 2**31, 2**32 - 1])
    session = rng.choice([*range(1, 9)] * 3 + [0, 15, 2**15 + 1, 2**16 - 1])
    most, lowest, highest, _ = model.symbols.get(instrument, limits_of(rng))
    template = rng.choice([NEW] * 8 + [REPLACE] * 3 + [CANCEL] * 2 + [MASS_CANCEL])
    side = rng.choice((1, 2))
    quantity = min(2**32 - 2, max(1, around(rng, 1, most, most // 2, most // 2)))
    spread = [lowest, highest, (lowest + highest) // 2, (lowest + highest) // 2]
    spread += [model.asks.get(instrument, 0), model.bids.get(instrument, 0)]
    price = around(rng, *spread)
    order_type = LIMIT
    if template == NEW and rng.random() < 0.1:
        order_type, price = MARKET, NO_PRICE
    flags = order_type << 4 | rng.choice(TIMES_IN_FORCE)
    number, header = None, (40, 0x4754, 0)
    if rng.random() < 0.12:  # one thing wrong
        match rng.randrange(8):
            case 0: number = 0
            case 1: quantity = rng.choice((0, 2**32 - 1))
            case 2: side = rng.choice((0, 3, 255))
            case 3: flags = rng.randrange(256)
            case 4: price = NO_PRICE if order_type == LIMIT else rng.choice((0, NO_PRICE + 1))
            case 5: template = rng.choice((0, 5, 8, 11, 256 + 1))
            case 6: header = rng.choice(((39, 0x4754, 0), (40, 0x4755, 0), (40, 0x4754, 1), (40 + 256, 0x4754, 0)))
            case 7: side, flags, quantity = 0, 0, 0
    message = script.message(template, instrument, quantity, price, session, side, flags, number, header)
    if rng.random() < 0.03:
        length = rng.choice((0, 1, 7, 8, 9, 16, 40, 47, 49, 55, 56, 57, 64, 96, 200))
        message = (message + rng.randbytes(200))[:length]
    script.frame(message, rng.random() < 0.3)


def make():
    rng = random.Random(SEED)
    script = Script(rng)
    script.commit()
    script.lines.append("# Closed until it is enabled.")
    script.frame(script.message())
    script.frame(script.message(CANCEL))
    script.frame(b"")

    script.lines.append("# Every limit at its edge.")
    script.symbol(1, (100, -5, 2**32, 9))
    script.session(1, (1000, 2000))
    script.control(True, False)
    script.frame(script.message(quantity=1))
    script.commit()
    for quantity in (99, 100, 101):
        script.frame(script.message(quantity=quantity))
        script.now += 10_000
    for price in (-6, -5, -1, 0, 2**32 - 1, 2**32, 2**32 + 1, TOP, NO_PRICE + 1):
        script.frame(script.message(price=price))
        script.now += 10_000
    for gap in (0, 0, 0, 0, 999, 1, 0, 1000, 999, 2001, 0, 0, 0):
        script.now += gap
        script.frame(script.message())
    script.now += 10_000
    script.touch(1, "bid", 10)
    script.touch(1, "ask", 12)
    for side in (1, 2):
        for price in (9, 10, 11, 12, 13):
            for post_only in (False, True):
                script.now += 10_000
                script.frame(script.message(side=side, price=price), post_only)
    script.control(True, True)
    for template in (NEW, CANCEL, REPLACE, MASS_CANCEL):
        script.frame(script.message(template))
    script.control(False, False)
    for template in (NEW, CANCEL, REPLACE, MASS_CANCEL):
        script.frame(script.message(template))
    script.control(True, False)

    script.lines.append("# At random.")
    for _ in range(FRAMES):
        chance = rng.random()
        if chance < 0.03 or not script.model.symbols:
            for _ in range(rng.randrange(1, 4)):
                script.symbol(rng.randrange(64), None if rng.random() < 0.15 else limits_of(rng))
                limits = (rng.choice((1, 7, 1000, 10**9, 2**32 - 1)), rng.choice((0, 1, 2999, 2**33, 2**48 - 1)))
                script.session(rng.randrange(16), None if rng.random() < 0.15 else limits)
            if rng.random() < 0.8:
                script.commit()
        elif chance < 0.06:
            script.control(rng.random() < 0.8, rng.random() < 0.3)
        elif chance < 0.15:
            key = rng.choice(sorted(script.model.symbols))
            _, lowest, highest, _ = script.model.symbols[key]
            price = rng.choice((NO_PRICE, around(rng, lowest, highest, (lowest + highest) // 2)))
            script.touch(key, rng.choice(("bid", "ask")), price)
        if not script.model.enable and rng.random() < 0.5:
            script.control(True, False)
        script.now += rng.choice((0, 0, 1, 1, 6, 7, 999, 1000, 1001, 10**9, 2**32, 2**34))
        random_order(script)

    assert min(script.seen) > 20 and script.passed > 300, (script.seen, script.passed)
    head = ["# The golden script of the pre-filter. Written by tests/prefilter_vectors.py; see prefilter/src/conformance.rs."]
    return "\n".join(head + script.lines) + "\n", script


if __name__ == "__main__":
    text, script = make()
    if sys.argv[1:] == ["--check"]:
        if FILE.read_text() != text:
            sys.exit(f"{FILE.name} is not what {Path(__file__).name} writes")
        print("checks: 1")
    else:
        FILE.write_text(text)
        print(f"{sum(line.startswith('frame') for line in script.lines)} orders, {script.passed} pass, reasons {script.seen}")
