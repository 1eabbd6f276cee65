//! The optional tag behind each datagram that proves who wrote it: SipHash-2-4, 64 bits.
//!
//! It covers the session's epoch, the whole number of which the header has the low half, header and payload. Each session
//! and direction has a key of its own, made of the configured one, both nonces and the epoch: a datagram of another
//! session, of the other direction, or of an earlier incarnation does not fit. The handshake has a key a direction and
//! order session; what is recorded of it and played again is refused by nonces and epoch.
//!
//! A datagram of this very session that is played again does fit. Messages have numbers, so it brings none twice. The
//! other datagrams have a serial ([`Serials`](super::serials::Serials)) that is taken once. And only what is taken for the
//! first time shows that the peer lives.

use super::config::Role;
use super::wire::MAC_LENGTH;
use core::fmt;
use core::hash::Hasher;
use siphasher::sip::SipHasher24;

/// A secret that both ends share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Names it in the handshake. Not 0.
    pub id: u32,
    /// 128 random bits.
    pub secret: [u8; 16],
}

/// Makes and checks the tags of both directions.
#[derive(Clone, Debug)]
pub(super) struct Authenticator {
    ours: Mac,
    theirs: Mac,
}

/// A hash that has taken in its key and the epoch.
#[derive(Clone)]
struct Mac(SipHasher24);

/// What a key is made for.
#[derive(Clone, Copy)]
pub(super) struct Purpose {
    /// The order session.
    pub(super) session: u16,
    /// All 0: the handshake.
    pub(super) initiator_nonce: u64,
    pub(super) acceptor_nonce: u64,
    pub(super) epoch: u64,
}

impl Authenticator {
    pub(super) fn new(key: &Key, role: Role, purpose: Purpose) -> Self {
        let (initiator, acceptor) = (Mac::new(key, 0, purpose), Mac::new(key, 1, purpose));
        match role {
            Role::Initiator => Self {
                ours: initiator,
                theirs: acceptor,
            },
            Role::Acceptor => Self {
                ours: acceptor,
                theirs: initiator,
            },
        }
    }

    /// Writes the tag of the first `length` bytes behind them, and gives the length of both.
    #[inline]
    pub(super) fn sign(&self, sequence: u64, datagram: &mut [u8], length: usize) -> usize {
        let tag = self.ours.tag(sequence, &datagram[..length]);
        datagram[length..length + MAC_LENGTH].copy_from_slice(&tag.to_le_bytes());
        length + MAC_LENGTH
    }

    /// Whether the peer wrote the tag at the end of a datagram.
    #[inline]
    pub(super) fn verifies(&self, sequence: u64, datagram: &[u8]) -> bool {
        let Some((bytes, tag)) = datagram.split_last_chunk() else {
            return false;
        };
        // One comparison of two words: its time tells nothing of where they differ.
        self.theirs.tag(sequence, bytes) == u64::from_le_bytes(*tag)
    }
}

impl Mac {
    fn new(key: &Key, direction: u8, purpose: Purpose) -> Self {
        let mut derived = [0; 16];
        for (half, out) in (0..).zip(derived.chunks_exact_mut(8)) {
            let mut hash = SipHasher24::new_with_key(&key.secret);
            hash.write(&[half, direction]);
            hash.write(&purpose.session.to_le_bytes());
            hash.write(&key.id.to_le_bytes());
            hash.write(&purpose.initiator_nonce.to_le_bytes());
            hash.write(&purpose.acceptor_nonce.to_le_bytes());
            hash.write(&purpose.epoch.to_le_bytes());
            out.copy_from_slice(&hash.finish().to_le_bytes());
        }
        let mut hash = SipHasher24::new_with_key(&derived);
        hash.write(&purpose.epoch.to_le_bytes());
        Self(hash)
    }

    #[inline]
    fn tag(&self, sequence: u64, bytes: &[u8]) -> u64 {
        let mut hash = self.0;
        hash.write(&sequence.to_le_bytes());
        hash.write(bytes);
        hash.finish()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.id)
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mac")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    const KEY: Key = Key {
        id: 5,
        secret: *b"0123456789abcdef",
    };
    const SESSION: Purpose = Purpose {
        session: 7,
        initiator_nonce: 1,
        acceptor_nonce: 2,
        epoch: 3,
    };

    fn ends(key: &Key, purpose: Purpose) -> [Authenticator; 2] {
        [Role::Initiator, Role::Acceptor].map(|role| Authenticator::new(key, role, purpose))
    }

    #[test]
    fn a_tag_fits_the_other_end_and_no_other_number_byte_or_direction() {
        let [initiator, acceptor] = ends(&KEY, SESSION);
        let mut datagram = *b"header and payload........";
        assert_eq!(initiator.sign(9, &mut datagram, 18), 26);
        assert!(acceptor.verifies(9, &datagram));
        assert!(!acceptor.verifies(9 + (1 << 32), &datagram));
        assert!(!initiator.verifies(9, &datagram));
        assert!(!acceptor.verifies(9, &datagram[..7]));
        for at in 0..datagram.len() {
            let mut changed = datagram;
            changed[at] ^= 1;
            assert!(!acceptor.verifies(9, &changed), "byte {at}");
        }
    }

    #[test]
    fn every_part_of_a_purpose_makes_another_key() {
        let mut datagram = [0; 24];
        ends(&KEY, SESSION)[0].sign(1, &mut datagram, 16);
        let others = [
            Purpose { session: 8, ..SESSION },
            Purpose {
                initiator_nonce: 0,
                ..SESSION
            },
            Purpose {
                acceptor_nonce: 0,
                ..SESSION
            },
            Purpose { epoch: 4, ..SESSION },
        ];
        for other in others {
            assert!(!ends(&KEY, other)[1].verifies(1, &datagram));
        }
        let renamed = Key { id: 6, ..KEY };
        assert!(!ends(&renamed, SESSION)[1].verifies(1, &datagram));
        assert!(ends(&KEY, SESSION)[1].verifies(1, &datagram));
    }

    /// The first vector of the reference implementation's list for SipHash-2-4 with 64 bits of output.
    #[test]
    fn the_hash_is_siphash_2_4() {
        let key: [u8; 16] = core::array::from_fn(|at| u8::try_from(at).unwrap());
        let hash = SipHasher24::new_with_key(&key).finish();
        assert_eq!(hash.to_le_bytes(), [0x31, 0x0e, 0x0e, 0xdd, 0x47, 0xdb, 0x6f, 0x72]);
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{KEY:?}"), "Key(5)");
    }
}
