"""Makes loopback.pcap, loopback.pcapng and loopback.counts: a real capture and tshark's own packet counts.

Needs Linux, root, Python 3.9 or later (standard library only), tcpdump (here 4.99.3, libpcap 1.10.3) and tshark with dumpcap
(here 4.0.17). Run `python3 make_loopback.py` in this folder. Ports differ from run to run, so all three files change together.

The traffic is TCP and UDP over 127.0.0.1 and ::1, and two pings. The pcap is taken on the pseudo-interface `any` (Linux cooked v2),
the pcapng on `lo` (Ethernet) and `any` (Linux cooked v1) at once, so it holds each packet twice. The snap length of 68 bytes
cuts TCP headers in two but keeps all ports. Lines of loopback.counts: packets, tab, flow.
"""
import collections, socket, struct, subprocess, threading, time

FILTER = "host 127.0.0.1 or host ::1"
NAMES = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmpv6"}


def echo(family, address):
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, 18080))
    listener.listen()
    while True:
        connection, _ = listener.accept()
        while data := connection.recv(4096):
            connection.sendall(data)
        connection.close()


def traffic():
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        threading.Thread(target=echo, args=(family, address), daemon=True).start()
        time.sleep(0.2)
        for rounds in (1, 3):
            with socket.socket(family) as client:
                client.connect((address, 18080))
                for _ in range(rounds):
                    client.sendall(b"x" * 20)
                    client.recv(4096)
        with socket.socket(family, socket.SOCK_DGRAM) as server:
            server.bind((address, 15353))
            for packets in (1, 4):
                with socket.socket(family, socket.SOCK_DGRAM) as client:
                    for _ in range(packets):
                        client.sendto(b"q" * 10, (address, 15353))
                        server.recv(100)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
        for request in (b"\x08\x00\xf7\xfd\x00\x01\x00\x01", b"\x08\x00\xf7\xfc\x00\x01\x00\x02"):
            icmp.sendto(request, ("127.0.0.1", 0))


def without_options(capture):
    """Drops the options of pcapng section and interface blocks: they describe the machine."""
    data, kept = open(capture, "rb").read(), b""
    while data:
        kind, length = struct.unpack("<II", data[:8])
        body, data = data[8 : length - 4], data[length:]
        body = body[: {0x0A0D0D0A: 16, 1: 8}.get(kind, len(body))]
        kept += struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
    open(capture, "wb").write(kept)


def flows(capture):
    fields = ["ip.src", "ip.dst", "ip.proto", "ipv6.src", "ipv6.dst", "ipv6.nxt"]
    fields += ["tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport"]
    command = ["tshark", "-n", "-r", capture, "-T", "fields"] + [word for field in fields for word in ("-e", field)]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        src, dst, proto, src6, dst6, proto6, tcp_s, tcp_d, udp_s, udp_d = line.split("\t")
        source, destination = (src, dst) if src else (f"[{src6}]", f"[{dst6}]")
        ports = (tcp_s or udp_s or "0", tcp_d or udp_d or "0")
        yield f"{source}:{ports[0]} > {destination}:{ports[1]} {NAMES[int(proto or proto6)]}"


captures = [
    ["tcpdump", "-i", "any", "-s", "68", "-w", "loopback.pcap", FILTER],
    ["dumpcap", "-i", "lo", "-f", FILTER, "-s", "68", "-i", "any", "-f", FILTER, "-s", "68", "-w", "loopback.pcapng"],
]
running = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for command in captures]
time.sleep(2)
traffic()
time.sleep(2)
for process in running:
    process.terminate()
    process.wait()
without_options("loopback.pcapng")
once, twice = collections.Counter(flows("loopback.pcap")), collections.Counter(flows("loopback.pcapng"))
assert {flow: 2 * n for flow, n in once.items()} == dict(twice), "the two captures differ: run again"
with open("loopback.counts", "w") as out:
    for flow, n in sorted(once.items()):
        out.write(f"{n}\t{flow}\n")
