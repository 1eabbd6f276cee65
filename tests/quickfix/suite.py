"""QuickFIX C++ initiators of FIX 4.2, 4.4 and 5.0 SP2 against the running gateway and exchange.

    python3 suite.py TICKGATE INITIATOR DICTIONARIES

TICKGATE is the program, INITIATOR what initiator.cpp compiles to, DICTIONARIES the directory with QuickFIX's own
FIX42.xml, FIX44.xml, FIX50SP2.xml and FIXT11.xml: the initiators check all that comes from the gateway against them, and
what is wrong in it would show as a Reject that they send. Between both sides stands a relay that cuts connections and
loses what is under way. Prints how many checks were made.
"""

import pathlib
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
# Longer than anything takes: reconnects wait a second, sessions recover for two.
PATIENCE_S = 30

checks = 0
# Processes, so that none outlives the suite.
started = []


def check(holds, what):
    global checks
    checks += 1
    if not holds:
        raise SystemExit(f"not true: {what}")


def main():
    tickgate, initiator, dictionaries = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        try:
            run(Market(pathlib.Path(directory), tickgate), initiator, dictionaries)
        finally:
            for process in started:
                process.kill()
    print(f"checks: {checks}")


def run(market, initiator, dictionaries):
    relay = Relay(market.ports["fix"])
    sessions = {name: Session(name, version, place) for place, (name, version) in enumerate(VERSIONS.items())}
    market.start(sessions.values())
    client = Client(initiator, market.directory, dictionaries, relay.port, sessions)
    for session in sessions.values():
        session.until("it is logged on", lambda session=session: session.logons == 1)
    pairs = list(zip(sessions.values(), [*sessions.values()][1:] + [*sessions.values()][:1]))
    for session, other in pairs:
        orders_live_and_die(session, other)
    for session, other in pairs:
        reports_wait_for_a_lost_client(session, other, relay)
        orders_of_a_lost_client_come_later(session, relay)
        skipped_numbers_are_asked_for(session)
    first, second, third = sessions.values()
    a_killed_gateway_sends_again_what_it_sent(market, [first, second], third, relay)
    a_killed_gateway_sends_again_what_it_sent(market, [third], first, relay)
    for session in sessions.values():
        session.command("logout")
        session.until("it is logged out", lambda session=session: not session.is_on)
    client.stop()
    market.stop()
    for session in sessions.values():
        nothing_was_wrong(session)


# Name of the client, its BeginString and its dictionaries.
VERSIONS = {"QF42": "FIX.4.2", "QF44": "FIX.4.4", "QF50": "FIX.5.0SP2"}

# An instrument for each client, and a price near its reference price.
OWN = {"QF42": ("ALFA", "101.40"), "QF44": ("BRVO", "42.20"), "QF50": ("CHRL", "256.80")}


def orders_live_and_die(session, other):
    """An order rests, is replaced and cancelled; another is filled; wrong ones are refused."""
    resting = session.order(side=1, price="101.00", quantity=100)
    session.expect("it rests", {"11": resting, "150": "0", "39": "0", "151": "100", "14": "0"})
    replaced = session.request("G", resting, side=1, price="101.10", quantity=80)
    session.expect("it is replaced", {"11": replaced, "41": resting, "150": "5", "151": "80", "44": "101.1"})
    cancelled = session.request("F", replaced, side=1, quantity=80)
    session.expect("it is cancelled", {"11": cancelled, "41": replaced, "150": "4", "39": "4", "151": "0"})
    again = session.request("F", replaced, side=1, quantity=80)
    # The refusal names the last id that was accepted, which is the cancel's.
    session.expect("what is done cannot be cancelled", {"35": "9", "11": again, "41": cancelled, "434": "1"})
    unknown = session.request("G", "nothing", side=1, price="101.00", quantity=10)
    session.expect("what never was cannot be replaced", {"35": "9", "11": unknown, "434": "2", "102": "1"})

    offered = other.order(side=2, price="101.30", quantity=50)
    other.expect("the offer rests", {"11": offered, "150": "0"})
    taken = session.order(side=1, price="101.30", quantity=70)
    session.expect("it is accepted", {"11": taken, "150": "0", "39": "0"})
    fill = {"150": session.trade_type(partial=True), "39": "1", "31": "101.3", "32": "50", "14": "50", "151": "20"}
    session.expect("it is filled in part", {"11": taken, **fill})
    other.expect("the offer is filled", {"11": offered, "150": other.trade_type(), "39": "2", "151": "0"})
    rest = session.request("F", taken, side=1, quantity=70)
    session.expect("its rest is cancelled", {"11": rest, "150": "4", "14": "50"})

    immediate = session.order(side=1, price="100.00", quantity=10, more={59: 3})
    session.expect("it is accepted", {"11": immediate, "150": "0"})
    session.expect("what cannot trade at once is cancelled", {"11": immediate, "150": "4", "39": "4"})
    refused = session.order(side=1, price="101.00", quantity=100, symbol="NONE")
    session.expect("an unknown symbol is refused", {"11": refused, "150": "8", "39": "8", "103": "1"})
    twice = session.order(side=1, price="101.00", quantity=100, cl_ord_id=resting)
    session.expect("an id is good once", {"11": twice, "150": "8", "103": "6"})
    session.send({35: "R", 131: "quote", 146: 1, 55: "ALFA"})
    session.expect("what is not supported is refused so", {"35": "j", "372": "R", "380": "3"})


def reports_wait_for_a_lost_client(session, other, relay):
    """A fill that happens while a client is away comes with the resend, once."""
    resting = session.order(side=1, price="101.20", quantity=30)
    session.expect("it rests", {"11": resting, "150": "0"})
    logons = session.logons
    relay.refuse(session.name)
    session.until("its connection is cut", lambda: not session.is_on)
    hit = other.order(side=2, price="101.20", quantity=30)
    other.expect("it is accepted", {"11": hit, "150": "0"})
    other.expect("it trades with the one who is away", {"11": hit, "150": other.trade_type(), "39": "2"})
    relay.accept(session.name)
    session.until("it is back", lambda: session.logons == logons + 1)
    report = session.expect("the fill comes again", {"11": resting, "150": session.trade_type(), "39": "2"})
    check(report.get("43") == "Y" and "122" in report, f"{session.name}: a report sent again says so: {report}")


def orders_of_a_lost_client_come_later(session, relay):
    """What a client sends while it is away is asked for when it is back."""
    logons = session.logons
    relay.refuse(session.name)
    session.until("its connection is cut", lambda: not session.is_on)
    sent = [session.order(side=1, price="99.50", quantity=10) for _ in range(3)]
    relay.accept(session.name)
    for cl_ord_id in sent:
        session.expect("the order arrives", {"11": cl_ord_id, "150": "0"})
    for cl_ord_id in sent:
        done = session.request("F", cl_ord_id, side=1, quantity=10)
        session.expect("and can be cancelled", {"11": done, "150": "4"})


def skipped_numbers_are_asked_for(session):
    """A client that skips numbers fills the gap with a sequence reset, and its order is handled."""
    before = session.count("in", {"35": "2"})
    session.command("skip", 5)
    order = session.order(side=1, price="99.00", quantity=10)
    session.expect("the order behind the gap is handled", {"11": order, "150": "0"})
    check(session.count("in", {"35": "2"}) == before + 1, f"{session.name}: the gap is asked for once")
    check(session.count("out", {"35": "4", "123": "Y"}) > 0, f"{session.name}: and filled")
    done = session.request("F", order, side=1, quantity=10)
    session.expect("numbers go on", {"11": done, "150": "4"})


def a_killed_gateway_sends_again_what_it_sent(market, losers, other, relay):
    """Reports that left a gateway and reached nobody come again byte for byte from the one that takes its place."""
    resting, lost = {}, {}
    for session in losers:
        symbol, price = OWN[session.name]
        orders = [session.order(side=1, price=price, quantity=20, symbol=symbol) for _ in range(2)]
        for cl_ord_id in orders:
            session.expect("it rests", {"11": cl_ord_id, "150": "0"})
        lost[session] = relay.lose(session)
        hit = other.order(side=2, price=price, quantity=20, symbol=symbol)
        other.expect("it is accepted", {"11": hit, "150": "0"})
        other.expect("it trades", {"11": hit, "150": other.trade_type(), "39": "2"})
        session.until("its fill left the gateway", lambda session=session: lost[session].reports())
        relay.refuse(session.name)
        resting[session] = orders
    market.kill_gateway()
    market.start_gateway()
    for session in losers:
        relay.accept(session.name)
    for session in losers:
        first, second = resting[session]
        report = session.expect("the fill comes", {"11": first, "150": session.trade_type(), "39": "2"})
        check(report.get("43") == "Y", f"{session.name}: and says that it comes again: {report}")
        sent = [body(message) for message in lost[session].reports()]
        check(body(report) in sent, f"{session.name}: as it was sent: {body(report)} is none of {sent}")
        done = session.request("F", second, side=1, quantity=20, symbol=OWN[session.name][0])
        session.expect("the other order is still there", {"11": done, "41": second, "150": "4"})


def nothing_was_wrong(session):
    """No Reject either way, one first answer an order, no report twice."""
    for direction in ("in", "out"):
        rejects = session.all(direction, {"35": "3"})
        check(not rejects, f"{session.name}: no Reject {direction}: {rejects}")
    check(session.count("in", {"35": "j"}) == 1, f"{session.name}: one BusinessMessageReject")
    texts = [logout for logout in session.all("in", {"35": "5"}) if "58" in logout]
    check(not texts, f"{session.name}: no Logout with a complaint: {texts}")
    reports = session.all("in", {"35": "8"})
    ids = [report["17"] for report in reports]
    check(len(ids) == len(set(ids)), f"{session.name}: no ExecID twice")
    firsts = [report["11"] for report in reports if report["150"] in "08" and report.get("103") != "6"]
    check(sorted(firsts) == sorted(session.orders), f"{session.name}: {len(session.orders)} orders, one answer each")
    numbers = [int(message["34"]) for message in session.all("in", {}) if "43" not in message]
    check(numbers == sorted(set(numbers)), f"{session.name}: numbers only rise")
    print(f"{session.name}: {len(session.orders)} orders, {len(reports)} reports, {session.logons} logons")


# Fields that differ when a message comes again: length, PossDupFlag, SendingTime, OrigSendingTime, checksum.
AGAIN = {"9", "43", "52", "122", "10"}


def body(message):
    return sorted((tag, value) for tag, value in message.items() if tag not in AGAIN)


class Session:
    """One session of the client: what it saw, and what it sends."""

    def __init__(self, name, version, place):
        self.name, self.version, self.place = name, version, place
        self.client = None
        self.changed = threading.Condition()
        self.is_on, self.logons = False, 0
        self.messages = []
        self.unread = []
        self.orders = []
        self.ids = 0

    def on_event(self, event, message):
        with self.changed:
            if event == "logon":
                self.is_on = True
                self.logons += 1
            elif event == "logout":
                # Also when a logon was refused.
                self.is_on = False
            else:
                fields = parse(message)
                self.messages.append((event, fields))
                if event == "in" and fields["35"] in "89j":
                    self.unread.append(fields)
            self.changed.notify_all()

    def until(self, what, holds):
        with self.changed:
            self.changed.wait_for(holds, PATIENCE_S)
            last = [fields for _, fields in self.messages[-3:]]
            check(holds(), f"{self.name}: {what}; last were {last}")

    def expect(self, what, fields):
        """The next report, with these fields among others."""
        with self.changed:
            self.changed.wait_for(lambda: self.unread, PATIENCE_S)
            check(self.unread, f"{self.name}: {what}: {fields}, but nothing came; last were {self.messages[-5:]}")
            message = self.unread.pop(0)
        expected = {"35": "8", **fields}
        found = {tag: message.get(tag) for tag in expected}
        check(found == expected, f"{self.name}: {what}: {expected}, but it was {message}")
        return message

    def all(self, direction, fields):
        with self.changed:
            return [
                message
                for way, message in self.messages
                if way == direction and fields.items() <= message.items()
            ]

    def count(self, direction, fields):
        return len(self.all(direction, fields))

    def trade_type(self, partial=False):
        """ExecType of a fill. Until 4.2 it repeats the status."""
        if self.version == "FIX.4.2":
            return "1" if partial else "2"
        return "F"

    def order(self, side, price, quantity, symbol="ALFA", cl_ord_id=None, more=None):
        if cl_ord_id is None:
            cl_ord_id = self.next_id()
            self.orders.append(cl_ord_id)
        terms = {40: 2, 38: quantity, 44: price, **(more or {})}
        self.send({35: "D", 11: cl_ord_id, 21: 1, 55: symbol, 54: side, 60: now(), **terms})
        return cl_ord_id

    def request(self, msg_type, orig_cl_ord_id, side, quantity, price=None, symbol="ALFA"):
        cl_ord_id = self.next_id()
        fields = {35: msg_type, 41: orig_cl_ord_id, 11: cl_ord_id, 55: symbol, 54: side, 60: now(), 38: quantity}
        if msg_type == "G":
            fields |= {21: 1, 40: 2, 44: price}
        self.send(fields)
        return cl_ord_id

    def next_id(self):
        self.ids += 1
        return f"{self.name}-{self.ids}"

    def send(self, fields):
        self.command("send", "|".join(f"{tag}={value}" for tag, value in fields.items()))

    def command(self, command, *words):
        self.client.write(" ".join([command, self.name, *map(str, words)]))


class Client:
    """The initiator with all sessions."""

    def __init__(self, program, directory, dictionaries, port, sessions):
        settings = directory / "client.cfg"
        settings.write_text(client_settings(directory, dictionaries, port, sessions.values()))
        self.process = subprocess.Popen(
            [program, settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        started.append(self.process)
        for session in sessions.values():
            session.client = self
        threading.Thread(target=self.read, args=(sessions,), daemon=True).start()

    def read(self, sessions):
        for line in self.process.stdout:
            event, name, message = line.rstrip("\n").split(" ", 2)
            sessions[name].on_event(event, message)

    def write(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def stop(self):
        self.process.stdin.close()
        check(self.process.wait(PATIENCE_S) == 0, "the initiator ends well")


def client_settings(directory, dictionaries, port, sessions):
    text = f"""[DEFAULT]
ConnectionType=initiator
HeartBtInt=30
ReconnectInterval=1
StartTime=00:00:00
EndTime=00:00:00
FileStorePath={directory}/store
SocketConnectHost=127.0.0.1
SocketConnectPort={port}
SocketNodelay=Y
TargetCompID=TICKGATE
UseDataDictionary=Y
ValidateFieldsOutOfOrder=Y
ValidateFieldsHaveValues=Y
ValidateUserDefinedFields=Y
"""
    for session in sessions:
        text += f"[SESSION]\nSenderCompID={session.name}\n"
        if session.version.startswith("FIX.5"):
            text += (
                f"BeginString=FIXT.1.1\nDefaultApplVerID={session.version}\n"
                f"TransportDataDictionary={dictionaries}/FIXT11.xml\n"
                f"AppDataDictionary={dictionaries}/{session.version.replace('.', '')}.xml\n"
            )
        else:
            text += (
                f"BeginString={session.version}\n"
                f"DataDictionary={dictionaries}/{session.version.replace('.', '')}.xml\n"
            )
    return text


class Relay:
    """Stands between the client and the gateway; knows a connection by the SenderCompID of its first message."""

    def __init__(self, gateway_port):
        self.gateway_port = gateway_port
        self.lock = threading.Lock()
        self.refused = set()
        self.connections = {}
        self.lost = {}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, client):
        try:
            first = client.recv(4096)
            name = parse(readable(first)).get("49")
            with self.lock:
                is_refused = name is None or name in self.refused
            gateway = None if is_refused else socket.create_connection(("127.0.0.1", self.gateway_port))
        except OSError:
            gateway = None
        if gateway is None:
            client.close()
            return
        for end in (client, gateway):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.lock:
            self.connections[name] = (client, gateway)
        threading.Thread(target=self.pass_on, args=(name, gateway, client), daemon=True).start()
        try:
            gateway.sendall(first)
        except OSError:
            pass
        self.pass_on(None, client, gateway)

    def pass_on(self, name, source, sink):
        """Bytes from one to the other until one of them ends. Those to a named client may be lost."""
        try:
            while data := source.recv(65536):
                with self.lock:
                    lost = self.lost.get(name)
                if lost:
                    lost.add(data)
                else:
                    sink.sendall(data)
        except OSError:
            pass
        cut(source, sink)

    def refuse(self, name):
        """Cuts a client's connection and refuses new ones."""
        with self.lock:
            self.refused.add(name)
            self.lost.pop(name, None)
            ends = self.connections.pop(name, ())
        cut(*ends)

    def accept(self, name):
        with self.lock:
            self.refused.discard(name)

    def lose(self, session):
        """From now on nothing that the gateway sends to a session arrives, until its connection is cut."""
        with self.lock:
            lost = self.lost[session.name] = Lost(session)
        return lost


class Lost:
    """What the gateway sent and the relay lost."""

    def __init__(self, session):
        self.session = session
        self.bytes = b""

    def add(self, data):
        with self.session.changed:
            self.bytes += data
            self.session.changed.notify_all()

    def reports(self):
        messages = [parse("8=" + message) for message in readable(self.bytes).removeprefix("8=").split("|8=")]
        return [message for message in messages if message.get("35") == "8"]


def cut(*ends):
    for end in ends:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        end.close()


class Market:
    """Gateway and exchange."""

    def __init__(self, directory, tickgate):
        self.directory, self.tickgate = directory, tickgate
        self.ports = {"fix": free_port(socket.SOCK_STREAM)}
        self.ports |= {name: free_port(socket.SOCK_DGRAM) for name in ("ltp", "feed", "prices")}
        self.exchange = self.gateway = None

    def start(self, sessions):
        values = {"root": ROOT, "work": self.directory, **self.ports}
        values["accounts"] = "\n".join(ACCOUNT.format(id=session.place + 1) for session in sessions)
        values["sessions"] = "\n".join(
            SESSION.format(id=session.place + 1, name=session.name, version=session.version) for session in sessions
        )
        for name in ("gateway.toml", "exchange.toml"):
            text = (HERE / name).read_text()
            for key, value in values.items():
                text = text.replace("{" + key + "}", str(value))
            (self.directory / name).write_text(text)
        self.exchange = self.program("exchange")
        self.start_gateway()

    def start_gateway(self):
        self.gateway = self.program("gateway")

    def program(self, subcommand):
        """Starts it and waits until it says that it runs."""
        process = subprocess.Popen(
            [self.tickgate, subcommand, "-c", self.directory / f"{subcommand}.toml"],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        printed = queue.Queue()
        threading.Thread(target=lambda: [*map(printed.put, process.stdout), printed.put(None)], daemon=True).start()
        lines = []
        while True:
            line = printed.get(timeout=PATIENCE_S)
            if line is None:
                raise SystemExit(f"{subcommand} ended: {lines}")
            lines.append(line)
            if "running; interrupt to stop" in line:
                return process

    def kill_gateway(self):
        self.gateway.kill()
        self.gateway.wait()

    def stop(self):
        for process in (self.gateway, self.exchange):
            process.send_signal(signal.SIGINT)
            check(process.wait(PATIENCE_S) == 0, f"{process.args[1]} ends well")


ACCOUNT = """[[accounts]]
id = {id}
max_quantity_lots = 10_000
max_notional = "5000000"
max_open_orders = 100
max_open_notional = "50000000"
"""

# Orders stay when a client is lost: the suite trades with them.
SESSION = """[[sessions]]
id = {id}
protocol = "fix"
shard = 0
client_comp_id = "{name}"
our_comp_id = "TICKGATE"
versions = ["{version}"]
accounts = [{id}]
owner = {id}
max_open_orders = 100
cancel_on_disconnect = false
resend_messages = 4_096
cl_ord_ids = 4_096
send_buffer_bytes = 1_048_576
"""


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def readable(data):
    return data.decode("latin1").replace("\1", "|")


def parse(message):
    """Fields of a message by tag, as text. What is no field is left out."""
    fields = (field.partition("=") for field in message.split("|"))
    return {tag: value for tag, equals, value in fields if equals}


def now():
    return time.strftime("%Y%m%d-%H:%M:%S", time.gmtime())


if __name__ == "__main__":
    main()
