//! Packet sequence numbers: 24 bits on the wire, 64 in memory.

/// How many numbers the wire has.
const WIRE: u64 = 1 << 24;

/// What a wire number is in memory at the start of a connection: high enough that numbers may lie below it.
pub(super) const fn start(wire: u32) -> u64 {
    WIRE + (wire as u64 & (WIRE - 1))
}

/// As the wire has it.
#[allow(clippy::cast_possible_truncation, reason = "24 bits are kept on purpose")]
pub(super) const fn wire(number: u64) -> u32 {
    (number & (WIRE - 1)) as u32
}

/// The number nearest to `reference` with these 24 bits; of two equally near, the lower one.
pub(super) const fn expand(wire: u32, reference: u64) -> u64 {
    let ahead = (wire as u64).wrapping_sub(reference) & (WIRE - 1);
    if ahead < WIRE / 2 {
        reference + ahead
    } else {
        (reference + ahead).saturating_sub(WIRE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_on_either_side_of_a_wrap() {
        let half = WIRE / 2;
        for reference in [start(0), start(0xff_ffff), 5 * WIRE - 1, 5 * WIRE, 5 * WIRE + 7] {
            for number in [
                reference - half,
                reference - 1,
                reference,
                reference + 1,
                reference + half - 1,
            ] {
                assert_eq!(expand(wire(number), reference), number, "{number} from {reference}");
            }
            assert_eq!(expand(wire(reference + half), reference), reference - half);
        }
    }
}
