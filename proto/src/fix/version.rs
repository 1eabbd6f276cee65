//! Versions of FIX: what the peers say at the start of each message, and what differs between versions.

/// A version of the application layer, and with it of the session layer beneath.
///
/// Until 4.4 both are one and BeginString names it. From 5.0 on the session layer is FIXT.1.1 whatever the application's
/// version, and ApplVerID tells that (FIXT 1.1, volume 1, "DefaultApplVerID").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub enum Version {
    /// FIX 4.0.
    Fix40,
    /// FIX 4.1.
    Fix41,
    /// FIX 4.2.
    Fix42,
    /// FIX 4.3.
    Fix43,
    /// FIX 4.4.
    #[default]
    Fix44,
    /// FIX 5.0 over FIXT.1.1.
    Fix50,
    /// FIX 5.0 SP1 over FIXT.1.1.
    Fix50Sp1,
    /// FIX 5.0 SP2 over FIXT.1.1.
    Fix50Sp2,
}

impl Version {
    /// All versions, the oldest first.
    pub const ALL: [Self; 8] = [
        Self::Fix40,
        Self::Fix41,
        Self::Fix42,
        Self::Fix43,
        Self::Fix44,
        Self::Fix50,
        Self::Fix50Sp1,
        Self::Fix50Sp2,
    ];

    /// BeginString (8).
    #[must_use]
    pub const fn begin_string(self) -> &'static [u8] {
        match self {
            Self::Fix40 => b"FIX.4.0",
            Self::Fix41 => b"FIX.4.1",
            Self::Fix42 => b"FIX.4.2",
            Self::Fix43 => b"FIX.4.3",
            Self::Fix44 => b"FIX.4.4",
            Self::Fix50 | Self::Fix50Sp1 | Self::Fix50Sp2 => b"FIXT.1.1",
        }
    }

    /// Its code in ApplVerID (1128) and DefaultApplVerID (1137); `None` where BeginString says it all.
    #[must_use]
    pub const fn appl_ver_id(self) -> Option<u8> {
        match self {
            Self::Fix40 | Self::Fix41 | Self::Fix42 | Self::Fix43 | Self::Fix44 => None,
            Self::Fix50 => Some(b'7'),
            Self::Fix50Sp1 => Some(b'8'),
            Self::Fix50Sp2 => Some(b'9'),
        }
    }

    /// As people and configs write it: `FIX.4.2`, `FIX.5.0SP2`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fix40 => "FIX.4.0",
            Self::Fix41 => "FIX.4.1",
            Self::Fix42 => "FIX.4.2",
            Self::Fix43 => "FIX.4.3",
            Self::Fix44 => "FIX.4.4",
            Self::Fix50 => "FIX.5.0",
            Self::Fix50Sp1 => "FIX.5.0SP1",
            Self::Fix50Sp2 => "FIX.5.0SP2",
        }
    }

    /// From its name in a config.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// The version that a Logon names by BeginString (8) and, over FIXT.1.1, DefaultApplVerID (1137).
    #[must_use]
    pub fn of_logon(begin_string: &[u8], default_appl_ver_id: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|version| {
            let is_named = |code| default_appl_ver_id == [code];
            version.begin_string() == begin_string && version.appl_ver_id().is_none_or(is_named)
        })
    }

    /// Whether FIXT.1.1 is its session layer.
    #[must_use]
    pub const fn is_fixt(self) -> bool {
        self.appl_ver_id().is_some()
    }

    /// Whether a Reject names tag, type and reason (371, 372, 373): since 4.2.
    #[must_use]
    pub const fn rejects_name_the_tag(self) -> bool {
        !matches!(self, Self::Fix40 | Self::Fix41)
    }

    /// EndSeqNo (16) of a resend request for all there are: 999999 before 4.2, since then 0.
    #[must_use]
    pub const fn no_end(self) -> u64 {
        match self {
            Self::Fix40 | Self::Fix41 => 999_999,
            _ => 0,
        }
    }

    /// Whether a Logon may say which number is expected next (789): since 4.4.
    #[must_use]
    pub fn has_next_expected(self) -> bool {
        self >= Self::Fix44
    }

    /// Whether timestamps may have milliseconds: since 4.2.
    #[must_use]
    pub const fn has_milliseconds(self) -> bool {
        self.rejects_name_the_tag()
    }

    /// Whether there is a BusinessMessageReject: since 4.2. Before, a Reject says it.
    #[must_use]
    pub const fn has_business_reject(self) -> bool {
        self.rejects_name_the_tag()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn names_come_back_and_only_fixt_needs_an_appl_ver_id() {
        for version in Version::ALL {
            assert_eq!(Version::from_name(version.name()), Some(version));
            assert_eq!(version.is_fixt(), version.begin_string() == b"FIXT.1.1");
        }
        assert_eq!(Version::from_name("FIX.3.9"), None);
    }

    #[test]
    fn a_logon_names_its_version() {
        for version in Version::ALL {
            let code = version.appl_ver_id().map_or(Vec::new(), |code| vec![code]);
            assert_eq!(Version::of_logon(version.begin_string(), &code), Some(version));
        }
        assert_eq!(Version::of_logon(b"FIX.4.2", b"9"), Some(Version::Fix42));
        for (begin_string, code) in [(&b"FIXT.1.1"[..], &b""[..]), (b"FIXT.1.1", b"6"), (b"FIX.5.0", b"9")] {
            assert_eq!(Version::of_logon(begin_string, code), None);
        }
    }
}
