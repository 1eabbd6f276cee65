"""Two network namespaces joined by a veth pair, with random loss at both ends.

The loss is a classic BPF program at the clsact ingress hook, so that it needs no compiler: the sender's stack has let go of
a packet by then. (A drop at egress is seen by a local TCP, which then repairs without waiting.) Kernels without netem do.
"""

import os
import shutil
import subprocess

# Ancillary offsets of classic BPF: the protocol of a packet, and a random number of 32 bits.
PROTOCOL = 0xFFFFF000
RANDOM = 0xFFFFF000 + 56
LOAD_HALF, LOAD_WORD, JUMP_EQUAL, JUMP_GREATER, RETURN = 40, 32, 21, 37, 6
PASS, DROP = 0, 2
IPV4 = 0x0800


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


def loss_program(percent):
    """Drops so many of a hundred IPv4 packets, each by itself."""
    threshold = int(percent / 100 * 0xFFFFFFFF)
    code = [
        (LOAD_HALF, 0, 0, PROTOCOL),
        (JUMP_EQUAL, 0, 3, IPV4),
        (LOAD_WORD, 0, 0, RANDOM),
        (JUMP_GREATER, 1, 0, threshold),
        (RETURN, 0, 0, DROP),
        (RETURN, 0, 0, PASS),
    ]
    return ",".join([str(len(code))] + [" ".join(map(str, step)) for step in code])


class Namespaces:
    """`near` and `far`, with addresses of a private network. A context: they are gone at its end, however it ends."""

    def __init__(self):
        own = os.getpid()
        self.names = (f"tg{own}a", f"tg{own}b")
        self.devices = (f"tg{own % 10000000}a", f"tg{own % 10000000}b")
        self.addresses = ("10.91.0.1", "10.91.0.2")

    def __enter__(self):
        try:
            for name in self.names:
                run("ip", "netns", "add", name)
            (near, far), (near_device, far_device) = self.names, self.devices
            run("ip", "link", "add", near_device, "netns", near, "type", "veth", "peer", "name", far_device, "netns", far)
            for name, device, address in zip(self.names, self.devices, self.addresses):
                run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", device)
                run("ip", "-n", name, "link", "set", "lo", "up")
                run("ip", "-n", name, "link", "set", device, "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            run("ip", "netns", "del", name, check=False)

    def loss(self, percent):
        """Loses so many of a hundred packets from now on, each way; 0 for none."""
        for name, device in zip(self.names, self.devices):
            enter = ("ip", "netns", "exec", name, "tc")
            run(*enter, "qdisc", "del", "dev", device, "clsact", check=False)
            if percent > 0:
                run(*enter, "qdisc", "add", "dev", device, "clsact")
                program = loss_program(percent)
                run(*enter, "filter", "add", "dev", device, "ingress", "bpf", "da", "bytecode", program)

    def command(self, side, *command):
        """The command line that runs a command on a side: 0 near, 1 far."""
        return ("ip", "netns", "exec", self.names[side], *command)


def why_not():
    """Why there can be no namespaces here; None when there can."""
    if os.geteuid() != 0:
        return "it needs root"
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            return f"it needs {program} (iproute2)"
    probe = f"tg{os.getpid()}p"
    made = run("ip", "netns", "add", probe, check=False)
    run("ip", "netns", "del", probe, check=False)
    if made.returncode != 0:
        return f"no network namespace can be made: {made.stderr.strip()}"
    return None
