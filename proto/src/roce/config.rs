//! What a queue pair is built from.

use super::rate::RateConfig;
use super::requester::Requester;
use super::responder::Responder;
use super::timeout::doubled;
use super::wire::rnr_delay;
use core::fmt;
use types::Duration;

/// Settings of a queue pair; those of its peer may be others, but for the path's MTU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Payload of one packet, bytes: one of 256, 512, 1024, 2048, 4096.
    pub mtu: usize,
    /// Requests posted and not yet completed to the owner, at most.
    pub send_queue: usize,
    /// Receives posted and not yet completed to the owner, at most.
    pub receive_queue: usize,
    /// RDMA READs that are under way at once, each way, at most. The peer's must allow what we ask and the reverse.
    pub reads: usize,
    /// Longest message, bytes.
    pub max_message: usize,
    /// Packets in flight, at most: what a loss at the front may repeat.
    pub window: u64,
    /// An acknowledgement is asked for with every so manieth message (1: with each). In between the peer may acknowledge
    /// unasked, as a tickgate does after `ack_delay`; other devices do not, and want 1.
    pub ack_every: u32,
    /// How long executed requests may stay unacknowledged that did not ask.
    pub ack_delay: Duration,
    /// How long to wait for an acknowledgement before something is sent again, where round trips do not take longer; doubled at
    /// each try in a row.
    pub timeout: Duration,
    /// The longest that may grow to.
    pub timeout_max: Duration,
    /// Tries in a row without progress after which the queue pair breaks.
    pub retry_limit: u8,
    /// What a peer is told to wait when no receive is posted: a code of [`rnr_delay`].
    pub rnr_timer: u8,
    /// Tries in a row against a peer that has no receive posted, after which the queue pair breaks; 7: for ever.
    pub rnr_retry_limit: u8,
    /// The least time between two congestion notifications to the peer.
    pub cnp_interval: Duration,
    /// Slows down when the peer reports congestion. `None`: it does not, and counts the reports.
    pub rate: Option<RateConfig>,
}

/// What two ends agree on before they begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// This end's queue pair number, 24 bits.
    pub local_qpn: u32,
    /// The peer's.
    pub peer_qpn: u32,
    /// The first packet sequence number that this end sends, 24 bits; random, so that packets of the past miss.
    pub send_psn: u32,
    /// The first that the peer sends.
    pub receive_psn: u32,
}

/// Why settings cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// `mtu` is none of the five.
    Mtu,
    /// `send_queue` or `receive_queue` is 0 or above [`QUEUE_MAX`].
    Queue,
    /// `reads` is above [`READS_MAX`].
    Reads,
    /// `window` is 0, or with the longest message more than a quarter of all sequence numbers.
    Window,
    /// `ack_every` is 0, or above `send_queue`, so that a full queue might have asked for nothing.
    AckEvery,
    /// `timeout` is 0 or above `timeout_max`, or `ack_delay` is not below `timeout`.
    Timeout,
    /// A code above 31, or a limit above 7.
    Rnr,
    /// The rates are 0 or the lowest is above the highest, or a period is 0.
    Rate,
}

impl Config {
    /// The default for messages up to so many bytes.
    #[must_use]
    pub const fn new(queue: usize, max_message: usize) -> Self {
        Self {
            mtu: 1_024,
            send_queue: queue,
            receive_queue: queue,
            reads: 16,
            max_message,
            window: 1_024,
            ack_every: if queue < 32 { 1 } else { 16 },
            ack_delay: Duration::from_micros(20),
            timeout: Duration::from_micros(200),
            timeout_max: Duration::from_millis(100),
            retry_limit: 12,
            rnr_timer: 1,
            rnr_retry_limit: RNR_RETRY_FOREVER,
            cnp_interval: Duration::from_micros(50),
            rate: None,
        }
    }

    /// Whether these settings can work.
    ///
    /// # Errors
    /// They cannot.
    pub fn check(&self) -> Result<(), ConfigError> {
        if ![256, 512, 1_024, 2_048, 4_096].contains(&self.mtu) {
            return Err(ConfigError::Mtu);
        }
        if ![self.send_queue, self.receive_queue]
            .iter()
            .all(|queue| (1..=QUEUE_MAX).contains(queue))
        {
            return Err(ConfigError::Queue);
        }
        if self.reads > READS_MAX {
            return Err(ConfigError::Reads);
        }
        // A message that begins within the window may end behind it.
        let longest = (self.max_message / self.mtu) as u64 + 1;
        if self.window == 0 || self.window.saturating_add(longest) > IN_FLIGHT_MAX {
            return Err(ConfigError::Window);
        }
        if self.ack_every == 0 || self.ack_every as usize > self.send_queue {
            return Err(ConfigError::AckEvery);
        }
        if self.timeout.0 == 0 || self.timeout > self.timeout_max || self.ack_delay >= self.timeout {
            return Err(ConfigError::Timeout);
        }
        if self.rnr_timer > 31 || self.rnr_retry_limit > RNR_RETRY_FOREVER {
            return Err(ConfigError::Rnr);
        }
        match self.rate {
            Some(rate) if !rate.is_sound() => Err(ConfigError::Rate),
            _ => Ok(()),
        }
    }

    /// The timeout after so many tries in a row, at least.
    pub(super) fn timeout_after(&self, retries: u8) -> Duration {
        doubled(self.timeout, retries).min(self.timeout_max)
    }

    /// How long a peer that has stopped answering is waited for before the queue pair breaks, at least.
    #[must_use]
    pub fn patience(&self) -> Duration {
        let total = (0..=self.retry_limit)
            .map(|retries| self.timeout_after(retries).0)
            .sum();
        Duration(total)
    }

    /// Bytes of memory that a queue pair allocates.
    #[must_use]
    pub const fn memory(&self) -> usize {
        Requester::memory(self) + Responder::memory(self)
    }

    /// How long the peer is told to wait when no receive is posted.
    #[must_use]
    pub const fn rnr_delay(&self) -> Duration {
        rnr_delay(self.rnr_timer)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mtu => "mtu_bytes must be 256, 512, 1024, 2048 or 4096 bytes",
            Self::Queue => "send_queue and receive_queue must be from 1 to 131072",
            Self::Reads => "reads must be at most 128",
            Self::Window => "window must be at least 1 packet, and with the longest message at most 4194304",
            Self::AckEvery => "ack_every must be from 1 to send_queue",
            Self::Timeout => "timeout must be above ack_delay and at most timeout_max",
            Self::Rnr => "rnr_timer must be at most 31 and rnr_retry_limit at most 7",
            Self::Rate => "rates and periods must be above 0, and the lowest rate at most the line's",
        })
    }
}

impl core::error::Error for ConfigError {}

/// Most requests or receives of one queue pair.
pub const QUEUE_MAX: usize = 1 << 17;
/// Most RDMA READs under way at once.
pub const READS_MAX: usize = 128;
/// Most packets in flight: a quarter of all numbers, so that a packet of the past is told from one ahead.
const IN_FLIGHT_MAX: u64 = 1 << 22;
/// As verbs have it: no limit.
pub const RNR_RETRY_FOREVER: u8 = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_named() {
        let good = Config::new(64, 4_096);
        assert_eq!(good.check(), Ok(()));
        let bad = |change: fn(&mut Config)| {
            let mut config = good;
            change(&mut config);
            config.check().unwrap_err()
        };
        assert_eq!(bad(|config| config.mtu = 1_500), ConfigError::Mtu);
        assert_eq!(bad(|config| config.send_queue = 0), ConfigError::Queue);
        assert_eq!(bad(|config| config.receive_queue = QUEUE_MAX + 1), ConfigError::Queue);
        assert_eq!(bad(|config| config.reads = READS_MAX + 1), ConfigError::Reads);
        assert_eq!(bad(|config| config.window = 0), ConfigError::Window);
        assert_eq!(bad(|config| config.max_message = 1 << 33), ConfigError::Window);
        assert_eq!(bad(|config| config.ack_every = 0), ConfigError::AckEvery);
        assert_eq!(bad(|config| config.ack_every = 65), ConfigError::AckEvery);
        assert_eq!(bad(|config| config.timeout = Duration(0)), ConfigError::Timeout);
        assert_eq!(bad(|config| config.timeout_max = Duration(1)), ConfigError::Timeout);
        assert_eq!(bad(|config| config.ack_delay = config.timeout), ConfigError::Timeout);
        assert_eq!(bad(|config| config.rnr_timer = 32), ConfigError::Rnr);
        assert_eq!(bad(|config| config.rnr_retry_limit = 8), ConfigError::Rnr);
        let rate = RateConfig {
            lowest: 0,
            ..RateConfig::for_line(1_000_000)
        };
        assert_eq!(
            Config {
                rate: Some(rate),
                ..good
            }
            .check(),
            Err(ConfigError::Rate)
        );
    }

    #[test]
    fn a_timeout_doubles_up_to_its_maximum() {
        let config = Config::new(64, 64);
        assert_eq!(config.timeout_after(3), Duration::from_micros(1_600));
        assert_eq!(config.timeout_after(255), config.timeout_max);
    }
}
