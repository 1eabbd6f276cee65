//! Reference prices: receives the exchange's market data and writes best bid and offer where the shards read them.

use crate::config::{Config, FeedConfig};
use crate::executor::Component;
use crate::references::References;
use feeds::{FeedInstrument, ReferenceFeed, ReferenceFeedConfig, UdpReceiverConfig};
use net::SetupError;
use std::net::{IpAddr, Ipv4Addr};
use types::Timestamp;

/// Follows the feed. Never on a shard's thread: its books are larger than a core's cache.
pub struct PriceFeed {
    feed: ReferenceFeed,
    references: References,
}

/// Live orders of all instruments that the books hold.
const MAX_BOOK_ORDERS: usize = 1 << 20;

/// Price levels on a side of an instrument.
const MAX_BOOK_LEVELS: usize = 4_096;

impl PriceFeed {
    /// Listens to the feed of a config; `None` when it has none.
    ///
    /// # Errors
    /// The sockets cannot be had.
    pub fn open(config: &Config, references: &References) -> Result<Option<Self>, SetupError> {
        let Some(feed) = &config.feed else { return Ok(None) };
        let instruments = config
            .instruments
            .iter()
            .map(|instrument| FeedInstrument {
                id: instrument.id,
                symbol: instrument.symbol,
                lot_size: instrument.lot_size,
            })
            .collect::<Vec<_>>();
        let feed = ReferenceFeed::open(&reference_feed(feed), &instruments)?;
        Ok(Some(Self {
            feed,
            references: references.clone(),
        }))
    }
}

impl Component for PriceFeed {
    fn turn(&mut self, now: Timestamp) -> bool {
        let Self { feed, references } = self;
        feed.turn(now, &mut |instrument, bbo| references.store(instrument, &bbo))
    }
}

fn reference_feed(feed: &FeedConfig) -> ReferenceFeedConfig {
    let interface = match feed.listen.ip() {
        IpAddr::V4(address) if !address.is_multicast() => address,
        _ => Ipv4Addr::LOCALHOST,
    };
    ReferenceFeedConfig {
        receiver: UdpReceiverConfig {
            listen: feed.listen,
            interface,
            requests: Some(feed.request),
            receiver: feeds::limits::RECEIVER,
        },
        max_orders: MAX_BOOK_ORDERS,
        max_levels: MAX_BOOK_LEVELS,
    }
}
