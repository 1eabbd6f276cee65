//! A [`Hello`] as short as the kernel's connection manager takes it: queue pair, packet number and addresses it tells by itself.

use super::hello::{Hello, MAGIC};
use crate::verbs::PRIVATE_DATA;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What does not fit is as in [`Hello`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Card {
    magic: [u8; 4],
    session: U32,
    remote_key: U32,
    max_message: U32,
    address: U64,
    next_receive: U64,
    oldest: U64,
    never_sent: U64,
    /// Two to this power.
    slots: u8,
    mtu: u8,
    operation: u8,
    verdict: u8,
}

const _: () = assert!(size_of::<Card>() == 52 && size_of::<Card>() <= PRIVATE_DATA);

/// What the manager knows of both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Known {
    /// Of whoever gave the card.
    pub(super) qpn: u32,
    pub(super) psn: u32,
    pub(super) gid: [u8; 16],
    /// The address that it speaks to.
    pub(super) peer_gid: [u8; 16],
}

impl Card {
    pub(super) fn of(hello: &Hello) -> Self {
        let narrow = |number: U32| u8::try_from(number.get()).unwrap_or(u8::MAX);
        let power = |number: U32| {
            number
                .get()
                .checked_ilog2()
                .map_or(u8::MAX, |power| power.to_le_bytes()[0])
        };
        Self {
            magic: hello.magic,
            session: hello.session,
            remote_key: hello.remote_key,
            max_message: hello.max_message,
            address: hello.address,
            next_receive: hello.next_receive,
            oldest: hello.oldest,
            never_sent: hello.never_sent,
            slots: power(hello.slots),
            mtu: power(hello.mtu),
            operation: narrow(hello.operation),
            verdict: narrow(hello.verdict),
        }
    }

    /// The first bytes of what came. `None`: somebody else speaks.
    pub(super) fn read(data: &[u8; PRIVATE_DATA]) -> Option<Self> {
        let (card, _) = Self::read_from_prefix(data).ok()?;
        (card.magic == MAGIC).then_some(card)
    }

    /// What whoever gave it says of its peer.
    pub(super) fn verdict(&self) -> u32 {
        self.verdict.into()
    }

    pub(super) fn hello(&self, known: &Known) -> Hello {
        // A power that cannot be is a size that fits nobody's.
        let size = |power: u8| U32::new(1_u32.checked_shl(power.into()).unwrap_or(0));
        Hello {
            magic: self.magic,
            verdict: U32::new(self.verdict.into()),
            session: self.session,
            qpn: U32::new(known.qpn),
            psn: U32::new(known.psn),
            remote_key: self.remote_key,
            address: self.address,
            slots: size(self.slots),
            max_message: self.max_message,
            mtu: size(self.mtu),
            operation: U32::new(self.operation.into()),
            gid: known.gid,
            peer_gid: known.peer_gid,
            next_receive: self.next_receive,
            oldest: self.oldest,
            never_sent: self.never_sent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_fits_no_card_the_manager_knows(
            (numbers, names) in (any::<[u64; 4]>(), any::<[u32; 5]>()),
            (slots, mtu, operation, verdict) in (0_u32..=20, 8_u32..=12, 1_u32..=2, 0_u32..=8),
            gids in any::<[[u8; 16]; 2]>(),
        ) {
            let hello = Hello {
                magic: MAGIC,
                verdict: U32::new(verdict),
                session: U32::new(names[0]),
                qpn: U32::new(names[1]),
                psn: U32::new(names[2]),
                remote_key: U32::new(names[3]),
                address: U64::new(numbers[0]),
                slots: U32::new(1 << slots),
                max_message: U32::new(names[4]),
                mtu: U32::new(1 << mtu),
                operation: U32::new(operation),
                gid: gids[0],
                peer_gid: gids[1],
                next_receive: U64::new(numbers[1]),
                oldest: U64::new(numbers[2]),
                never_sent: U64::new(numbers[3]),
            };
            let known = Known { qpn: names[1], psn: names[2], gid: gids[0], peer_gid: gids[1] };
            let mut data = [0; PRIVATE_DATA];
            data[..size_of::<Card>()].copy_from_slice(Card::of(&hello).as_bytes());
            prop_assert_eq!(Card::read(&data).unwrap().hello(&known), hello);
            data[0] ^= 1;
            prop_assert!(Card::read(&data).is_none());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in any::<[u8; 32]>(), more in any::<[u8; 24]>()) {
            let mut data = [0; PRIVATE_DATA];
            data[..4].copy_from_slice(&MAGIC);
            data[4..32].copy_from_slice(&bytes[4..]);
            data[32..].copy_from_slice(&more);
            let card = Card::read(&data).unwrap();
            let _ = card.hello(&Known { qpn: 0, psn: 0, gid: [0; 16], peer_gid: [0; 16] });
        }
    }
}
