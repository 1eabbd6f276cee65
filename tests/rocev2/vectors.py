"""Makes tests/vectors/rocev2.json with scapy, which knows nothing of our code.

scapy builds the base header, the acknowledgement header, the congestion notification and the ICRC over IPv4 and IPv6. It
has no RDMA extended header and no immediate: those are packed here, and its ICRC covers them as payload.

    vectors.py          compares the file with what scapy makes, and prints how many checks that were
    vectors.py --write  writes the file

Run by `.ci/extended rocev2`, which installs what requirements.txt lists.
"""

import json
import random
import struct
import sys
from pathlib import Path

from scapy.contrib.roce import AETH, BTH, cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw

VECTORS = Path(__file__).parent.parent / "vectors" / "rocev2.json"
PORT = 4791

# Opcode, extended headers behind the first one: r = RETH, a = AETH, i = immediate.
OPCODES = [
    (0x00, ""), (0x01, ""), (0x02, ""), (0x03, "i"), (0x04, ""), (0x05, "i"),
    (0x06, "r"), (0x07, ""), (0x08, ""), (0x09, "i"), (0x0A, "r"), (0x0B, "ri"),
    (0x0C, "r"), (0x0D, "a"), (0x0E, ""), (0x0F, "a"), (0x10, "a"), (0x11, "a"),
]  # fmt: skip
SYNDROMES = [0x1F, 0x21, 0x3F, 0x60, 0x61, 0x62, 0x63]
LENGTHS = [0, 1, 2, 3, 48]
LONG = [1024, 4096]


def headers(kinds, random):
    """Extended headers and their fields."""
    packed, fields = b"", {}
    if "r" in kinds:
        fields |= {"address": random.getrandbits(64), "key": random.getrandbits(32), "length": random.getrandbits(32)}
        packed += struct.pack("!QII", fields["address"], fields["key"], fields["length"])
    if "a" in kinds:
        fields |= {"syndrome": random.choice(SYNDROMES), "msn": random.getrandbits(24)}
        packed += bytes(AETH(syndrome=fields["syndrome"], msn=fields["msn"]))
    if "i" in kinds:
        fields["immediate"] = random.getrandbits(32)
        packed += struct.pack("!I", fields["immediate"])
    return packed, fields


def below(random, is_v6):
    """Network and UDP headers, and what of them the ICRC covers and a test has to know."""
    sport = random.randrange(0xC000, 0x10000) if random.random() < 0.5 else PORT
    if is_v6:
        source, destination = "fd00::%x" % random.getrandbits(16), "fd00:1::%x" % random.getrandbits(16)
        network = IPv6(src=source, dst=destination, tc=random.getrandbits(8), fl=random.getrandbits(20), hlim=64)
        identification = 0
    else:
        source, destination = "10.9.0.%d" % random.randrange(1, 255), "10.8.1.%d" % random.randrange(1, 255)
        identification = random.choice([0, random.getrandbits(16)])
        network = IP(src=source, dst=destination, id=identification, flags="DF", ttl=64, tos=random.getrandbits(8))
    where = {"source": source, "destination": destination, "source_port": sport, "identification": identification}
    return network / UDP(sport=sport, dport=PORT, chksum=0), where


def vector(packet, where, fields):
    payload = bytes(bytes(packet[UDP])[8:])
    return where | {"fields": fields, "payload": payload.hex()}


def vectors():
    source = random.Random(4791)
    made = []
    for is_v6 in [False, True]:
        for opcode, kinds in OPCODES:
            lengths = [0] if opcode in (0x0C, 0x11) else LENGTHS
            for length in lengths + (LONG if opcode == 0x0B else []):
                network, where = below(source, is_v6)
                packed, fields = headers(kinds, source)
                data = source.randbytes(length)
                pad = -length % 4
                fields |= {
                    "opcode": opcode,
                    "destination": source.getrandbits(24),
                    "psn": source.getrandbits(24),
                    "ack_request": source.random() < 0.5,
                    "data_length": length,
                }
                bth = BTH(
                    opcode=opcode,
                    migreq=1,
                    padcount=pad,
                    dqpn=fields["destination"],
                    ackreq=fields["ack_request"],
                    psn=fields["psn"],
                )
                made.append(vector(network / bth / Raw(packed + data + bytes(pad)), where, fields))
        network, where = below(source, is_v6)
        made.append(
            vector(
                network / cnp(0x654321),
                where,
                {"opcode": 0x81, "destination": 0x654321, "psn": 0, "ack_request": False, "data_length": 16},
            )
        )
    return made


def main():
    made = vectors()
    text = "[\n" + ",\n".join("  " + json.dumps(vector) for vector in made) + "\n]\n"
    if sys.argv[1:] == ["--write"]:
        VECTORS.write_text(text)
        return
    if VECTORS.read_text() != text:
        sys.exit(f"{VECTORS} is not what scapy makes; {sys.argv[0]} --write writes it")
    print(f"checks: {len(made)}")


main()
