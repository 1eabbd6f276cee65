//! Property tests of what reads packets.

use super::*;
use crate::roce::wire::{Acknowledgement, Opcode, Reth, Syndrome};
use proptest::prelude::*;
use zerocopy::big_endian::{U32, U64};

fn opcode() -> impl Strategy<Value = Opcode> {
    any::<u8>().prop_filter_map("an opcode", Opcode::from_u8)
}

proptest! {
    #[test]
    fn any_bytes_are_a_packet_or_a_reason(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(packet) = wire::decode(&bytes) {
            prop_assert!(packet.payload.len() <= bytes.len() - 12);
            prop_assert!(packet.psn < 1 << 24 && packet.destination < 1 << 24);
        }
        let path = Path::new(address(A), address(B));
        prop_assert_eq!(path.open(&bytes, Identification::Known(0)), None);
    }

    #[test]
    fn a_packet_is_read_as_it_was_written(
        opcode in opcode(),
        numbers in any::<(u32, u32, u64, u32, u32, u8)>(),
        flags in any::<(bool, bool)>(),
        payload in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let (destination, psn, remote, key, immediate, syndrome) = numbers;
        let shape = opcode.shape();
        let packet = Packet {
            opcode,
            destination: destination >> 8,
            psn: psn >> 8,
            ack_request: flags.0,
            is_backward_congestion: flags.1,
            reth: shape.has_reth().then_some(Reth {
                address: U64::new(remote),
                remote_key: U32::new(key),
                length: U32::new(immediate),
            }),
            acknowledgement: shape.has_aeth().then_some(Acknowledgement {
                syndrome: Syndrome::from_u8(syndrome).unwrap_or(Syndrome::Ack),
                msn: key >> 8,
            }),
            immediate: shape.has_immediate.then_some(immediate),
            payload: &payload,
        };
        let mut out = [0; 400];
        let length = packet.encode(&mut out);
        prop_assert_eq!(length % 4, 0);
        prop_assert!(length <= wire::packet_length_max(payload.len().next_multiple_of(4)));
        prop_assert_eq!(wire::destination(&out), Some(packet.destination));
        prop_assert_eq!(wire::decode(&out[..length]), Ok(packet));
        for cut in 0..length {
            prop_assert!(wire::decode(&out[..cut]) != Ok(packet));
        }
    }

    /// Whatever the identification is, it is found to fit; damage is found, but for one part in 65,536.
    #[test]
    fn a_hidden_identification_fits_and_damage_does_not(
        id in any::<u16>(),
        length in 0..400usize,
        flips in any::<(u16, u16)>(),
    ) {
        let packet = pattern(12 + length.next_multiple_of(4), 9);
        let path = Path::new(address(A), address(B));
        let mut payload = [0; 500];
        let length = path.seal_with(&mut payload, &packet, id);
        let payload = &mut payload[..length];
        prop_assert_eq!(path.open(payload, Identification::Known(id)), Some(&packet[..]));
        prop_assert_eq!(path.open(payload, Identification::Hidden), Some(&packet[..]));
        if id != 0 {
            prop_assert_eq!(path.open(payload, Identification::Known(0)), None);
        }
        // Two bits: no CRC of this kind overlooks those, and the identification cannot make up for both.
        let [first, second] = [flips.0, flips.1].map(|flip| usize::from(flip) % (length * 8));
        if first != second && first / 8 != 4 && second / 8 != 4 {
            payload[first / 8] ^= 1 << (first % 8);
            payload[second / 8] ^= 1 << (second % 8);
            prop_assert_eq!(path.open(payload, Identification::Known(id)), None);
        }
    }
}

#[test]
fn random_damage_passes_a_hidden_identification_once_in_65536() {
    let path = Path::new(address(A), address(B));
    let packet = pattern(60, 1);
    let mut payload = [0; 80];
    let length = path.seal_with(&mut payload, &packet, 7);
    let mut passed = 0;
    let mut random: u32 = 1;
    for _ in 0..1 << 20 {
        random = random.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let mixed = (random >> 15 ^ random).wrapping_mul(0x2c1b_3c6d);
        payload[length - 4..length].copy_from_slice(&(mixed ^ mixed >> 12).to_le_bytes());
        passed += u32::from(path.open(&payload[..length], Identification::Hidden).is_some());
    }
    // 16 are expected of 2^20.
    assert!((4..40).contains(&passed), "{passed}");
}
