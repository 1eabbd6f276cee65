//! CRC-32 of zlib, eight bytes a step: what each byte contributes behind those that follow it is looked up.
//!
//! Packets are short, and `crc32fast` takes a byte at a time below 64; it is what the tests hold this to.

/// Runs the register over some bytes.
pub(super) fn update(mut register: u32, bytes: &[u8]) -> u32 {
    let (eights, rest) = bytes.as_chunks::<8>();
    for &[a, b, c, d, e, f, g, h] in eights {
        let [a, b, c, d] = (register ^ u32::from_le_bytes([a, b, c, d])).to_le_bytes();
        register =
            look(7, a) ^ look(6, b) ^ look(5, c) ^ look(4, d) ^ look(3, e) ^ look(2, f) ^ look(1, g) ^ look(0, h);
    }
    let (fours, rest) = rest.as_chunks::<4>();
    for &four in fours {
        let [a, b, c, d] = (register ^ u32::from_le_bytes(four)).to_le_bytes();
        register = look(3, a) ^ look(2, b) ^ look(1, c) ^ look(0, d);
    }
    for byte in rest {
        let [low, ..] = register.to_le_bytes();
        register = register >> 8 ^ look(0, low ^ byte);
    }
    register
}

/// What a byte contributes to a register that runs over so many others behind it, for each byte.
pub(super) const fn contributions(behind: usize) -> [u32; 256] {
    let mut table = FORWARD;
    let mut byte = 0;
    while byte < table.len() {
        let mut step = 0;
        while step < behind {
            table[byte] = table[byte] >> 8 ^ FORWARD[(table[byte] & 0xff) as usize];
            step += 1;
        }
        byte += 1;
    }
    table
}

#[inline]
fn look(behind: usize, byte: u8) -> u32 {
    TABLES[behind][usize::from(byte)]
}

/// What the register takes up for each byte that leaves it.
pub(super) const FORWARD: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0u32;
    while byte < 256 {
        let mut register = byte;
        let mut bit = 0;
        while bit < 8 {
            register = register >> 1 ^ if register & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[byte as usize] = register;
        byte += 1;
    }
    table
};

static TABLES: [[u32; 256]; 8] = [
    contributions(0),
    contributions(1),
    contributions(2),
    contributions(3),
    contributions(4),
    contributions(5),
    contributions(6),
    contributions(7),
];

/// Least bit first.
const POLYNOMIAL: u32 = 0xedb8_8320;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_crc_of_zlib_however_the_bytes_are_cut(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            cut in 0_usize..200,
        ) {
            let (front, back) = bytes.split_at(cut.min(bytes.len()));
            let register = update(update(u32::MAX, front), back);
            prop_assert_eq!(!register, crc32fast::hash(&bytes));
        }
    }
}
