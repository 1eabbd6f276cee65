//! Memory that a peer may reach: named parts of the owner's one arena.

use alloc::boxed::Box;
use alloc::vec;

/// A part of the arena and who may do what to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// The key that a peer names it by. An owner takes a new random one for each connection, so that a peer of the past
    /// has none.
    pub remote_key: u32,
    /// Where it begins in the peer's eyes.
    pub address: u64,
    /// Where it begins in the arena.
    pub offset: usize,
    /// Bytes.
    pub length: usize,
    /// What a peer may do.
    pub access: Access,
}

/// What a peer may do to a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// RDMA READ.
    pub remote_read: bool,
    /// RDMA WRITE.
    pub remote_write: bool,
}

/// What is asked of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Want {
    Read,
    Write,
}

/// The regions of one arena.
#[derive(Debug)]
pub struct Regions {
    regions: Box<[Option<Region>]>,
    arena_length: usize,
}

/// Why a region cannot be registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionError {
    /// There are as many as there may be.
    Full,
    /// It does not lie in the arena, or its addresses wrap.
    Bounds,
    /// Another one has the key.
    KeyTaken,
}

impl Regions {
    /// Room for at most `capacity` regions of an arena of `arena_length` bytes; this allocates.
    #[must_use]
    pub fn new(capacity: usize, arena_length: usize) -> Self {
        Self {
            regions: vec![None; capacity].into(),
            arena_length,
        }
    }

    /// Lets peers reach a part of the arena.
    ///
    /// # Errors
    /// It cannot be registered.
    pub fn register(&mut self, region: Region) -> Result<(), RegionError> {
        let end = region.offset.checked_add(region.length);
        if end.is_none_or(|end| end > self.arena_length) || region.address.checked_add(region.length as u64).is_none() {
            return Err(RegionError::Bounds);
        }
        if self.find(region.remote_key).is_some() {
            return Err(RegionError::KeyTaken);
        }
        let free = self.regions.iter_mut().find(|slot| slot.is_none());
        *free.ok_or(RegionError::Full)? = Some(region);
        Ok(())
    }

    /// No peer reaches it any more. `false`: none has the key.
    pub fn deregister(&mut self, remote_key: u32) -> bool {
        let is_it = |slot: &&mut Option<Region>| slot.is_some_and(|region| region.remote_key == remote_key);
        self.regions.iter_mut().find(is_it).and_then(Option::take).is_some()
    }

    /// Where in the arena a peer may do this. `None`: it may not.
    pub(super) fn check(&self, remote_key: u32, address: u64, length: usize, want: Want) -> Option<usize> {
        let region = self.find(remote_key)?;
        let is_allowed = match want {
            Want::Read => region.access.remote_read,
            Want::Write => region.access.remote_write,
        };
        let inside = usize::try_from(address.checked_sub(region.address)?).ok()?;
        let fits = inside.checked_add(length)? <= region.length;
        (is_allowed && fits).then_some(region.offset + inside)
    }

    /// Whether an owner's own part lies in the arena.
    pub(super) fn holds(&self, offset: usize, length: usize) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.arena_length)
    }

    fn find(&self, remote_key: u32) -> Option<&Region> {
        // There are a handful.
        self.regions
            .iter()
            .flatten()
            .find(|region| region.remote_key == remote_key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: Region = Region {
        remote_key: 7,
        address: 1_000,
        offset: 64,
        length: 32,
        access: Access {
            remote_read: false,
            remote_write: true,
        },
    };

    #[test]
    fn only_what_lies_inside_is_reached_and_only_as_allowed() {
        let mut regions = Regions::new(2, 128);
        regions.register(REGION).unwrap();
        let write = |key, address, length| regions.check(key, address, length, Want::Write);
        assert_eq!(write(7, 1_000, 32), Some(64));
        assert_eq!(write(7, 1_031, 1), Some(95));
        assert_eq!(write(7, 1_032, 0), Some(96));
        for (key, address, length) in [
            (8, 1_000, 1),
            (7, 999, 1),
            (7, 1_031, 2),
            (7, 1_000, 33),
            (7, 1_033, 0),
            (7, u64::MAX, 1),
            (7, 1_001, usize::MAX),
            (7, 0, 1_064),
        ] {
            assert_eq!(write(key, address, length), None, "{key} {address} {length}");
        }
        assert_eq!(regions.check(7, 1_000, 1, Want::Read), None);
        assert!(regions.deregister(7) && !regions.deregister(7));
        assert_eq!(regions.check(7, 1_000, 1, Want::Write), None);
    }

    #[test]
    fn a_region_outside_the_arena_or_under_a_taken_key_is_refused() {
        let mut regions = Regions::new(1, 128);
        for (offset, length, address) in [(100, 29, 0), (usize::MAX, 2, 0), (0, 2, u64::MAX)] {
            let region = Region {
                offset,
                length,
                address,
                ..REGION
            };
            assert_eq!(regions.register(region), Err(RegionError::Bounds));
        }
        regions.register(REGION).unwrap();
        assert_eq!(regions.register(REGION), Err(RegionError::KeyTaken));
        let other = Region {
            remote_key: 8,
            ..REGION
        };
        assert_eq!(regions.register(other), Err(RegionError::Full));
    }
}
