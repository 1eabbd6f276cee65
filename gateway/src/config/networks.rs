//! Addresses that clients may come from.

use super::ConfigError;
use std::net::IpAddr;

/// Networks that may; empty lets everyone.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AllowList(Vec<Network>);

/// Addresses that begin alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Network {
    /// The first bits of the address, as the first of 128.
    bits: u128,
    mask: u128,
    is_v4: bool,
}

impl AllowList {
    /// From its addresses, such as `127.0.0.1`, and networks, such as `10.0.0.0/8`. `what` names it in an error.
    pub(super) fn parse(what: &str, texts: Option<&[String]>) -> Result<Self, ConfigError> {
        let network = |text: &String| {
            Network::parse(text).ok_or_else(|| {
                ConfigError(format!(
                    "{what}: \"{text}\" is neither an address nor a network such as 10.0.0.0/8"
                ))
            })
        };
        match texts {
            None => Ok(Self::default()),
            Some([]) => Err(ConfigError(format!("{what}: an empty list would let nobody in"))),
            Some(texts) => texts.iter().map(network).collect::<Result<_, _>>().map(Self),
        }
    }

    /// Whether a client may come from there.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        self.0.is_empty() || self.0.iter().any(|network| network.contains(address))
    }
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address.parse::<IpAddr>().ok()?, Some(length.parse::<u32>().ok()?)),
            None => (text.parse::<IpAddr>().ok()?, None),
        };
        let (bits, is_v4) = bits(address);
        let width = if is_v4 { 32 } else { 128 };
        let length = length.unwrap_or(width);
        if length > width {
            return None;
        }
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        // Bits behind the prefix would be a slip: which network was meant?
        (bits & !mask == 0).then_some(Self { bits, mask, is_v4 })
    }

    fn contains(&self, address: IpAddr) -> bool {
        // A v4 client at a v6 listener has a mapped address.
        let (bits, is_v4) = bits(address.to_canonical());
        is_v4 == self.is_v4 && bits & self.mask == self.bits
    }
}

/// An address as the first bits of 128, and whether it is of version 4.
fn bits(address: IpAddr) -> (u128, bool) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, true),
        IpAddr::V6(address) => (address.to_bits(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Result<AllowList, ConfigError> {
        let texts = texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        AllowList::parse("allow", Some(&texts))
    }

    fn allows(list: &AllowList, address: &str) -> bool {
        list.allows(address.parse().expect("an address"))
    }

    #[test]
    fn a_network_holds_what_begins_like_it() {
        let list = list(&["10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "::1"]).expect("networks");
        for inside in [
            "10.0.0.1",
            "10.255.255.255",
            "192.0.2.7",
            "2001:db8:1::5",
            "::1",
            "::ffff:10.1.1.1",
        ] {
            assert!(allows(&list, inside), "{inside}");
        }
        for outside in [
            "11.0.0.1",
            "192.0.2.8",
            "2001:db9::1",
            "::2",
            "::ffff:11.1.1.1",
            "0.0.0.1",
        ] {
            assert!(!allows(&list, outside), "{outside}");
        }
        assert!(allows(&AllowList::default(), "203.0.113.9"), "without a list, everyone");
        assert!(allows(&self::list(&["0.0.0.0/0"]).expect("a network"), "203.0.113.9"));
    }

    #[test]
    fn what_is_no_network_is_named() {
        for text in [
            "10.0.0.1/8",
            "10.0.0.0/33",
            "10.0.0",
            "localhost",
            "::/129",
            "10.0.0.0/-1",
        ] {
            let error = list(&[text]).expect_err("no network").to_string();
            assert!(error.contains(text), "{error}");
        }
        assert!(list(&[]).is_err(), "a list that lets nobody in is a slip");
    }
}
