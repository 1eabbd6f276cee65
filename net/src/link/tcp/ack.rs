//! Acknowledgements: the native message RequestsReceived as unsequenced data, in both directions.

pub(super) const ACK_LENGTH: usize = 16;

pub(super) fn write_ack(count: u64, out: &mut [u8]) -> usize {
    out[..8].copy_from_slice(&[8, 0, 14, 0, 0x47, 0x54, 0, 0]);
    out[8..16].copy_from_slice(&count.to_le_bytes());
    ACK_LENGTH
}

pub(super) fn parse_ack(bytes: &[u8]) -> Option<u64> {
    if bytes.len() != ACK_LENGTH || bytes[..8] != [8, 0, 14, 0, 0x47, 0x54, 0, 0] {
        return None;
    }
    Some(u64::from_le_bytes(bytes[8..].try_into().ok()?))
}
