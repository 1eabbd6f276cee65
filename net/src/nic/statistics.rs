//! What a card counts, under the driver's own names: what `ethtool -S` prints.

use super::command;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};

/// Commands of `linux/ethtool.h` that read.
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_SET_INFO: u32 = 0x37;

/// The set of names that the statistics have (ETH_SS_STATS).
const STATISTICS_SET: u32 = 1;

/// Bytes of a name (ETH_GSTRING_LEN).
const NAME_LENGTH: usize = 32;

/// A card that counts more is not read. The largest has some ten thousand, of 128 queues.
const COUNTERS_MAX: usize = 32_768;

/// The kernel writes as many as the card has at that moment, whatever it was asked for, and a card that gets queues gets
/// counters. So the buffers hold more than the card said a moment before.
const BUFFERED_MAX: usize = 4 * COUNTERS_MAX;

/// The counters of an interface, in the driver's order; empty when its driver counts nothing.
///
/// # Errors
/// There is no such interface, or its counters changed in number each time they were read.
pub fn statistics(interface: &str) -> io::Result<Vec<(String, u64)>> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // Names, then values: two requests, between which the card may get other counters.
    const TRIES: u32 = 3;
    for _ in 0..TRIES {
        let Some(count) = count(&socket, interface)? else {
            return Ok(Vec::new());
        };
        if count == 0 {
            return Ok(Vec::new());
        }
        if count > COUNTERS_MAX {
            break;
        }
        // cmd, string_set, len, names.
        let mut names = vec![0_u32; 3 + BUFFERED_MAX * NAME_LENGTH / 4];
        (names[0], names[1]) = (GET_STRINGS, STATISTICS_SET);
        command(&socket, interface, &mut names)?;
        // cmd, n_stats, values of 64 bits.
        let mut values = vec![0_u32; 2 + BUFFERED_MAX * 2];
        values[0] = GET_STATISTICS;
        command(&socket, interface, &mut values)?;
        if names[2] == values[1] && names[2] as usize == count {
            return Ok(named(&names[3..], &values[2..], count));
        }
    }
    Err(io::Error::other(
        "the card's counters change in number, or are too many",
    ))
}

/// How many counters the card has. `None`: its driver does not count.
fn count(socket: &UdpSocket, interface: &str) -> io::Result<Option<usize>> {
    // cmd, reserved, sset_mask of 64 bits, one length for each bit that the kernel left in the mask.
    let mut words = [0_u32; 5];
    words[0] = GET_SET_INFO;
    words[2..4].copy_from_slice(&words_of(1 << STATISTICS_SET));
    match command(socket, interface, &mut words) {
        Ok(()) if words[2..4] == words_of(0) => Ok(None),
        Ok(()) => Ok(Some(words[4] as usize)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Names and values brought together.
fn named(names: &[u32], values: &[u32], count: usize) -> Vec<(String, u64)> {
    let names = names.chunks_exact(NAME_LENGTH / 4).map(|words| {
        let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
        let text: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
        // Some drivers pad with blanks.
        String::from_utf8_lossy(&text).trim().to_owned()
    });
    let values = values.chunks_exact(2).map(|words| {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&words[0].to_ne_bytes());
        bytes[4..].copy_from_slice(&words[1].to_ne_bytes());
        u64::from_ne_bytes(bytes)
    });
    names.zip(values).take(count).collect()
}

/// A number of 64 bits as the two words that lie in its place.
fn words_of(value: u64) -> [u32; 2] {
    let bytes = value.to_ne_bytes();
    let half = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [half(0), half(4)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_brought_together_as_they_lie_in_memory() {
        let mut names = vec![0_u32; 16];
        for (word, text) in names.iter_mut().zip([*b"rx_p", *b"rio3", *b"_pau", *b"se\0\0"]) {
            *word = u32::from_ne_bytes(text);
        }
        names[8] = u32::from_ne_bytes(*b"no  ");
        let values = [words_of(u64::MAX - 1), words_of(7), words_of(9)].concat();
        assert_eq!(
            named(&names, &values, 2),
            [("rx_prio3_pause".to_owned(), u64::MAX - 1), ("no".to_owned(), 7)]
        );
        assert_eq!(named(&names, &values, 1).len(), 1);
    }

    #[test]
    fn loopback_counts_nothing_and_an_interface_that_is_not_there_is_an_error() {
        assert_eq!(statistics("lo").unwrap(), []);
        assert!(statistics("nosuchcard").is_err());
        assert!(statistics("a-name-that-is-longer-than-a-name").is_err());
    }
}
