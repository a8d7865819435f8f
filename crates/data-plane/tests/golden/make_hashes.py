"""Prints the pinned positions and digests of src/hash.rs, src/key.rs and src/column/array.rs.

Written from the papers (SipHash; Aumasson and Bernstein 2012) and the module docs, not from the Rust code.
Run: python3 make_hashes.py
"""

M = (1 << 64) - 1


def rotl(x, b):
    return (x << b | x >> (64 - b)) & M


def siphash24(key, message, wide):
    k0, k1 = key & M, key >> 64
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    if wide:
        v[1] ^= 0xEE

    def rounds(n):
        for _ in range(n):
            v[0] = (v[0] + v[1]) & M
            v[1] = rotl(v[1], 13) ^ v[0]
            v[0] = rotl(v[0], 32)
            v[2] = (v[2] + v[3]) & M
            v[3] = rotl(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & M
            v[3] = rotl(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & M
            v[1] = rotl(v[1], 17) ^ v[2]
            v[2] = rotl(v[2], 32)

    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) % 256])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i : i + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE if wide else 0xFF
    rounds(4)
    out = v[0] ^ v[1] ^ v[2] ^ v[3]
    if wide:
        v[1] ^= 0xDD
        rounds(4)
        out |= (v[0] ^ v[1] ^ v[2] ^ v[3]) << 64
    return out


def secrets(seed):
    words = [siphash24(seed, i.to_bytes(8, "little"), False) for i in range(1, 9)]
    return words[:6], words[6] | words[7] << 64


def digest(seed, key):
    if len(key) <= 15:
        return int.from_bytes(key + bytes(15 - len(key)) + bytes([len(key)]), "little")
    return siphash24(secrets(seed)[1], key, True) | 1 << 127


def split_mix(x):
    z = (x + 0x9E3779B97F4A7C15) & M
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M
    return z ^ z >> 31


ROWS, x = [], 0x9E3779B97F4A7C15
for _ in range(16):
    x = split_mix(x)
    ROWS.append(x | 1)


def fold(x, y):
    return (x * y & M) ^ (x * y >> 64)


def positions(seed, key):
    a, b, c, d, e, f = secrets(seed)[0]
    low, high = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    x, y = low ^ a, high ^ b
    mixed = fold(x, y) ^ x ^ y
    columns, bloom = fold(mixed ^ c, d), fold(mixed ^ e, f) & 0xFFFFFFFF
    word = ((mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93 & M) >> 32

    def row(i, width):
        product = columns * ROWS[i] & M
        return (product >> 32) * width >> 32, bool(product & 1 << 31)

    product = bloom * 0xD1B54A32D192ED03 & M
    start, step = product >> 32, product & 0xFFFFFFFF | 1
    bit = (start + 7 * step & 0xFFFFFFFF) * 80_000 >> 32
    return word * 3000 >> 32, row(0, 1024)[0], row(3, 1024)[0], row(1, 9338), bit


assert siphash24(0x0F0E0D0C0B0A09080706050403020100, bytes(range(15)), False) == 0xA129CA6149BE45E5  # from the paper
for key in [(1).to_bytes(4, "little"), b"0123456789abc", b"0123456789abcdef"]:
    print("position", key, positions(42, key))
print("digest", hex(digest(7, b"GET /index.html?")))
