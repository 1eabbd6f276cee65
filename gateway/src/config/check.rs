//! From the config as it is written to the form that the program uses.

use super::range::{if_there, in_range};
use super::{
    AllowList, Config, ConfigError, Credentials, DoorConfig, FeedConfig, Idle, JournalConfig, LinkConfig,
    SessionConfig, ShardConfig, VenueConfig, drop_copy, fix, prefilter, raw, risk, sessions, structure::Structure, tls,
};
use crate::limits::{
    CANCEL_JOURNAL_BYTES, CANCELS_RESERVED, JOURNAL_RESERVE_BYTES, MARK_EVERY_MS, MAX_ACCOUNTS, MAX_CROSSING_MESSAGES,
    MAX_INSTRUMENTS, MAX_MARK_EVERY_MS, MAX_REPORT_LENGTH, MAX_RESTRICTIONS, MAX_SESSIONS, MAX_SHARDS, MAX_VENUES,
    MAX_WAIT_MS, NOTICES_RESERVED, RECORD_OVERHEAD_BYTES,
};
use feeds::instruments::{self, InstrumentRow};
use journal::Watermark;
use net::CarrierConfig;
use net::cpu::CPUS_MAX;
use net::link::{LinkEnd, Transport};
use orders::{
    AccountConfig, AccountLimits, BOOKS_MAX, Capacity, CrossingConfig, FirmLimits, Handling, Limit, LimitError,
    LimitScope, LimitValue, NOTIONAL_MAX, OPEN_ORDERS_MAX, OrderTypes, Orders, OrdersConfig, POSITIONS_MAX,
    RateQueueConfig, Route, RouteKey, ShortSales, VALUE_LIMIT_MAX,
};
use proto::native::MAX_MESSAGE_LENGTH;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use types::{
    AccountId, Duration, Instrument, InstrumentId, LimitClass, Notional, Quantity, SessionId, ShardId, TradingDay,
    VenueId,
};

/// Checks `raw`. Paths are relative to `base`.
pub(super) fn check(mut raw: raw::Gateway, base: &Path) -> Result<Config, ConfigError> {
    raw.sessions = sessions::instances(raw.sessions)?;
    at_most("[[shards]]", raw.shards.len(), MAX_SHARDS)?;
    at_most("[[venues]]", raw.venues.len(), MAX_VENUES)?;
    at_most("[[sessions]]", raw.sessions.len(), MAX_SESSIONS)?;
    at_most("[[accounts]]", raw.accounts.len(), MAX_ACCOUNTS)?;
    let names = Names {
        classes: raw.risk.classes.keys().cloned().collect(),
        venues: raw.venues.iter().map(|venue| venue.name.clone()).collect(),
        shards: raw.shards.len(),
    };
    let path = base.join(&raw.instruments);
    let instruments = instruments(&path, &names)?;
    let shards = raw
        .shards
        .iter()
        .enumerate()
        .map(shard)
        .collect::<Result<Vec<_>, _>>()?;
    let venues = raw
        .venues
        .iter()
        .enumerate()
        .map(|venue| self::venue(venue, shards.len(), base))
        .collect::<Result<Vec<_>, _>>()?;
    let credentials = match &raw.credentials {
        Some(file) => Some(Credentials::load(&base.join(file))?),
        None => None,
    };
    let door = door(&raw.door)?;
    let tls = tls(&raw, base)?;
    let sessions = sessions::check(&raw, &shards, &door, credentials.as_ref(), base)?;
    check_queues(&venues, &sessions)?;
    drop_copy::check(&raw.sessions, &raw.accounts)?;
    let (dictionaries, dictionaries_hash) = fix::dictionaries(&raw.fix, &sessions, base)?;
    let orders = shards
        .iter()
        .map(|shard| orders(&raw, shard.id, &instruments, &names))
        .collect::<Result<Vec<_>, _>>()?;
    let mut order_table_bytes = 0;
    for of_shard in &orders {
        // The order logic knows best what it cannot work with. What it allocated is given back at once.
        let built = Orders::new(of_shard).map_err(|error| ConfigError(error.to_string()))?;
        order_table_bytes += built.memory();
    }
    let prefilter = prefilter::check(raw.prefilter.as_ref(), &instruments, &sessions, shards.len())?;
    let crossing_messages = crossing_messages(raw.capacity.crossing_messages, shards.len())?;
    let mut config = Config {
        instruments,
        classes: names.classes,
        trading_day: trading_day(raw.trading_day).map_err(|error| ConfigError(format!("trading_day: {error}")))?,
        journal: journal(&raw.journal, &raw.capacity, &venues, base)?,
        feed: raw.feed.as_ref().map(feed).transpose()?,
        credentials: credentials.unwrap_or_default(),
        door,
        control: raw.control.as_ref().map(|control| base.join(&control.socket)),
        tls,
        shards,
        venues,
        sessions,
        prefilter,
        dictionaries,
        crossing_messages,
        mark_every: mark_every(raw.risk.mark_every_ms)?,
        orders,
        order_table_bytes,
        structure: Structure::default(),
    };
    config.structure = Structure::of(&config, dictionaries_hash);
    Ok(config)
}

/// The names that instruments and routes refer to.
struct Names {
    classes: Vec<String>,
    venues: Vec<String>,
    shards: usize,
}

impl Names {
    fn class(&self, name: &str) -> Result<LimitClass, ConfigError> {
        index(&self.classes, name)
            .map(LimitClass)
            .ok_or_else(|| unknown("limit class", name, &self.classes))
    }

    fn venue(&self, name: &str) -> Result<VenueId, ConfigError> {
        index(&self.venues, name)
            .map(VenueId)
            .ok_or_else(|| unknown("venue", name, &self.venues))
    }
}

fn index(names: &[String], name: &str) -> Option<u8> {
    names
        .iter()
        .position(|known| known == name)
        .and_then(|place| u8::try_from(place).ok())
}

fn unknown(what: &str, name: &str, known: &[String]) -> ConfigError {
    ConfigError(format!(
        "{what} \"{name}\" is not in the config; there are: {}",
        known.join(", ")
    ))
}

fn at_most(what: &str, count: usize, most: usize) -> Result<(), ConfigError> {
    if count == 0 {
        return Err(ConfigError(format!("{what} is empty; at least one is needed")));
    }
    if count > most {
        return Err(ConfigError(format!("{what} has {count} entries; {most} are possible")));
    }
    Ok(())
}

fn instruments(path: &Path, names: &Names) -> Result<Vec<Instrument>, ConfigError> {
    let rows = instruments::read(path).map_err(|error| ConfigError(error.to_string()))?;
    at_most("the instrument master", rows.len(), MAX_INSTRUMENTS)?;
    let mut instruments = rows
        .iter()
        .map(|row| instrument(row, names).map_err(|error| ConfigError::new(path, error.0)))
        .collect::<Result<Vec<_>, _>>()?;
    instruments.sort_by_key(|instrument| instrument.id);
    Ok(instruments)
}

fn instrument(row: &InstrumentRow, names: &Names) -> Result<Instrument, ConfigError> {
    if usize::from(row.shard.0) >= names.shards {
        let (id, shard, last) = (row.id, row.shard, names.shards - 1);
        return Err(ConfigError(format!(
            "instrument {id} is on shard {shard}, the last shard of the config is {last}"
        )));
    }
    Ok(Instrument {
        id: row.id,
        symbol: row.symbol,
        tick_size: row.tick_size,
        lot_size: row.lot_size,
        reference_price: row.reference_price,
        limit_class: names.class(&row.limit_class)?,
        shard: row.shard,
        venue: names.venue(&row.venue)?,
    })
}

pub(crate) fn trading_day(day: u32) -> Result<TradingDay, ConfigError> {
    TradingDay::from_yyyymmdd(day).ok_or_else(|| {
        ConfigError(format!(
            "{day} is no day of the calendar; write a trading day as yyyymmdd"
        ))
    })
}

fn journal(
    raw: &raw::Journal,
    capacity: &raw::Capacity,
    venues: &[VenueConfig],
    base: &Path,
) -> Result<JournalConfig, ConfigError> {
    let reserve = |venue: &VenueConfig| venue.links.iter().map(|link| link.cancel_reserve_messages).max();
    let cancels = venues.iter().filter_map(reserve).sum::<usize>();
    // At the end of a day every open order may be reported in one go.
    let least = JOURNAL_RESERVE_BYTES
        + capacity.open_orders as usize * (MAX_REPORT_LENGTH + RECORD_OVERHEAD_BYTES)
        + cancels * CANCEL_JOURNAL_BYTES;
    if raw.ring_bytes < least {
        let (bytes, orders) = (raw.ring_bytes, capacity.open_orders);
        return Err(ConfigError(format!(
            "[journal] ring_bytes = {bytes} is too little for the reports of {orders} open orders and what is set aside for \
             cancels; at least {least}"
        )));
    }
    journal::check_sizes(raw.ring_bytes, raw.segment_bytes).map_err(|what| ConfigError(format!("[journal] {what}")))?;
    Ok(JournalConfig {
        directory: base.join(&raw.directory),
        ring_bytes: raw.ring_bytes,
        segment_bytes: raw.segment_bytes,
        watermark: match raw.watermark {
            raw::Watermark::Appended => Watermark::Appended,
            raw::Watermark::Written => Watermark::Written,
            raw::Watermark::Synced => Watermark::Synced,
        },
        drainer_cpu: cpu("[journal] drainer_cpu", raw.drainer_cpu)?,
    })
}

fn cpu(key: &str, cpu: Option<usize>) -> Result<Option<usize>, ConfigError> {
    if_there(key, cpu, 0, CPUS_MAX - 1)
}

fn shard((place, raw): (usize, &raw::Shard)) -> Result<ShardConfig, ConfigError> {
    let id = ShardId(u8::try_from(place).map_err(|_| ConfigError(format!("shard {place} is one too many")))?);
    let idle = match raw.idle {
        raw::Idle::Spin => Idle::Spin,
        raw::Idle::Backoff => Idle::Backoff,
    };
    Ok(ShardConfig {
        id,
        cpu: cpu(&format!("shard {place}: cpu"), raw.cpu)?,
        idle,
        fix_listen: raw.fix_listen,
        fix_tls_listen: raw.fix_tls_listen,
        native_listen: raw.native_listen,
    })
}

fn feed(raw: &raw::Feed) -> Result<FeedConfig, ConfigError> {
    Ok(FeedConfig {
        listen: raw.listen,
        request: raw.request,
        cpu: cpu("[feed] cpu", raw.cpu)?,
    })
}

fn tls(raw: &raw::Gateway, base: &Path) -> Result<Option<Arc<rustls::ServerConfig>>, ConfigError> {
    let of_shards = raw.shards.iter().any(|shard| shard.fix_tls_listen.is_some());
    let is_used = of_shards || raw.door.fix_tls_listen.is_some();
    match &raw.tls {
        Some(tls) if is_used => tls::server(tls, base).map(Some),
        Some(_) => Err(ConfigError("[tls] is of no use without a fix_tls_listen".to_owned())),
        None if is_used => Err(ConfigError(
            "fix_tls_listen needs [tls] with certificate and key".to_owned(),
        )),
        None => Ok(None),
    }
}

fn door(raw: &raw::Door) -> Result<DoorConfig, ConfigError> {
    Ok(DoorConfig {
        fix_listen: raw.fix_listen,
        fix_tls_listen: raw.fix_tls_listen,
        native_listen: raw.native_listen,
        allow: AllowList::parse("[door] allow", raw.allow.as_deref())?,
    })
}

fn venue((place, raw): (usize, &raw::Venue), shards: usize, base: &Path) -> Result<VenueConfig, ConfigError> {
    let id = VenueId(u8::try_from(place).map_err(|_| ConfigError(format!("venue {place} is one too many")))?);
    let links = (0..shards)
        .map(|shard| {
            let mut of_shard = raw.links.iter().filter(|link| usize::from(link.shard) == shard);
            match (of_shard.next(), of_shard.next()) {
                (Some(link), None) if raw.grants_open_orders && link.of_venue.transport != Transport::Ltp => {
                    Err(ConfigError(format!(
                        "venue {}: grants_open_orders needs LTP; other links carry no grants",
                        raw.name
                    )))
                }
                (Some(link), None) => self::link(link, &raw.name, base),
                (None, _) => Err(ConfigError(format!("venue {} has no link for shard {shard}", raw.name))),
                _ => Err(ConfigError(format!(
                    "venue {} has two links for shard {shard}",
                    raw.name
                ))),
            }
        })
        .collect::<Result<_, _>>()?;
    Ok(VenueConfig {
        id,
        name: raw.name.clone(),
        states_order_types: raw.order_types.is_some(),
        links,
    })
}

/// A queue of an interface is of one thread.
fn check_queues(venues: &[VenueConfig], sessions: &[SessionConfig]) -> Result<(), ConfigError> {
    let of_venues = venues.iter().flat_map(|venue| {
        let links = (0..).map(ShardId).zip(&venue.links);
        links.map(|(shard, link)| {
            (
                shard,
                format!("link of venue {} for shard {shard}", venue.name),
                link.settings,
            )
        })
    });
    let of_sessions = sessions.iter().filter_map(|session| {
        let link = session.link?;
        Some((session.shard, format!("session {}: link", session.id), link))
    });
    let mut taken = BTreeMap::new();
    for (shard, name, link) in of_venues.chain(of_sessions) {
        let carriers = match link {
            net::link::LinkConfig::Ltp(ltp) => [Some(ltp.carrier), ltp.second.map(|second| second.carrier)],
            net::link::LinkConfig::Roce(roce) => [Some(roce.carrier), None],
            net::link::LinkConfig::Tcp(_) => continue,
        };
        for carrier in carriers {
            if let Some(CarrierConfig::Xdp(xdp)) = carrier
                && let other = *taken.entry((xdp.interface, xdp.queue)).or_insert(shard)
                && other != shard
            {
                return Err(ConfigError(format!(
                    "{name}: afxdp: queue {} of {} is shard {other}'s",
                    xdp.queue, xdp.interface
                )));
            }
        }
    }
    Ok(())
}

fn link(raw: &raw::Link, venue: &str, base: &Path) -> Result<LinkConfig, ConfigError> {
    let to = |peer| LinkEnd::Connect { peer, local: None };
    let (end, second, session) = (to(raw.peer), raw.second_peer.map(to), SessionId(raw.session));
    let settings = raw
        .of_venue
        .check(&raw.link, session, MAX_MESSAGE_LENGTH, end, second, base);
    let wrong = |what: String| ConfigError(format!("link of venue {venue} for shard {}: {what}", raw.shard));
    let settings = settings.map_err(wrong)?;
    let (reserve, window) = (raw.cancel_reserve_messages, raw.link.window_messages);
    if reserve == 0 || reserve >= window {
        return Err(wrong(format!(
            "cancel_reserve_messages = {reserve} is not possible; at least 1, and less than window_messages = {window}"
        )));
    }
    Ok(LinkConfig {
        session,
        cancel_reserve_messages: reserve,
        settings,
    })
}

/// The size of the rings between shards. Some of each is set aside, see [`NOTICES_RESERVED`] and [`CANCELS_RESERVED`]: a ring of no more than that
/// would never carry an order.
fn crossing_messages(count: usize, shards: usize) -> Result<usize, ConfigError> {
    in_range("capacity.crossing_messages", count, 0, MAX_CROSSING_MESSAGES)?;
    let least = 2 * (NOTICES_RESERVED + CANCELS_RESERVED);
    if shards > 1 && count < least {
        return Err(ConfigError(format!(
            "capacity.crossing_messages = {count}: several shards need at least {least}"
        )));
    }
    Ok(count)
}

/// How often positions are valued anew. An operator may set a limit by their value at any time, so it is always said.
fn mark_every(ms: Option<u64>) -> Result<Duration, ConfigError> {
    let ms = ms.unwrap_or(MARK_EVERY_MS);
    if !(1..=MAX_MARK_EVERY_MS).contains(&ms) {
        return Err(ConfigError(format!(
            "risk.mark_every_ms = {ms}: positions of accounts with max_gross_notional, max_net_notional or max_loss are valued at \
             the market's price each 1 to {MAX_MARK_EVERY_MS} ms"
        )));
    }
    Ok(Duration::from_millis(ms))
}

/// What the order logic of `shard` is told.
fn orders(
    raw: &raw::Gateway,
    shard: ShardId,
    instruments: &[Instrument],
    names: &Names,
) -> Result<OrdersConfig, ConfigError> {
    let first_stage = raw.first_stage.as_ref();
    // Where something needs it, zero is refused.
    let time = |key: &str, ms: Option<u64>| {
        let ms = if_there(format!("first_stage.{key}"), ms, 0, MAX_WAIT_MS)?;
        Ok::<_, ConfigError>(Duration::from_millis(ms.unwrap_or(0)))
    };
    let of_shard = instruments.iter().filter(|instrument| instrument.shard == shard);
    let accounts = raw.accounts.iter();
    let accounts = accounts.map(|account| self::account(account, &raw.risk, instruments, shard));
    let sessions = raw.sessions.iter();
    let sessions = sessions.map(|session| sessions::orders(session, &raw.risk, instruments, shard));
    let capacity = capacity(&raw.capacity, first_stage)?;
    let config = OrdersConfig {
        shard,
        instruments: of_shard.copied().collect(),
        classes: raw
            .risk
            .classes
            .iter()
            .map(|(name, class)| risk::limits(name, class))
            .collect::<Result<_, _>>()?,
        firm: firm(&raw.risk.firm)?,
        overrides: overrides(&raw.risk.instruments, instruments, shard)?,
        accounts: accounts.collect::<Result<_, _>>()?,
        sessions: sessions.collect::<Result<_, _>>()?,
        venues: raw.venues.iter().map(|venue| order_venue(venue, shard)).collect(),
        routes: raw
            .routes
            .iter()
            .map(|route| self::route(route, instruments, names))
            .collect::<Result<Vec<_>, _>>()?,
        own_cancel_wait: time(
            "own_cancel_wait_ms",
            first_stage.and_then(|stage| stage.own_cancel_wait_ms),
        )?,
        rate_queue: rate_queue(raw.risk.rate_queue.as_ref(), capacity.open_orders)?,
        peg_interval: time("peg_interval_ms", first_stage.and_then(|stage| stage.peg_interval_ms))?,
        crossing: crossing(raw, shard, instruments)?,
        capacity,
    };
    Ok(OrdersConfig {
        // Routes of instruments of other shards are the other shards' business.
        routes: config
            .routes
            .into_iter()
            .filter(|route| !matches!(route.key, RouteKey::Instrument(id) if !is_of(shard, id, instruments)))
            .collect(),
        ..config
    })
}

fn capacity(raw: &raw::Capacity, first_stage: Option<&raw::FirstStage>) -> Result<Capacity, ConfigError> {
    let open_orders = in_range("capacity.open_orders", raw.open_orders, 1, OPEN_ORDERS_MAX)?;
    let of_stage = |key: &str, orders: Option<u32>| {
        let orders = if_there(format!("first_stage.{key}"), orders, 0, open_orders)?;
        Ok::<_, ConfigError>(orders.unwrap_or(0))
    };
    Ok(Capacity {
        open_orders,
        waiting_orders: of_stage("waiting_orders", first_stage.and_then(|stage| stage.waiting_orders))?,
        held_orders: of_stage("held_orders", first_stage.and_then(|stage| stage.held_orders))?,
        positions: in_range("capacity.positions", raw.positions, 1, POSITIONS_MAX)?,
        books: in_range("capacity.own_books", raw.own_books, 1, BOOKS_MAX)?,
        restrictions: MAX_RESTRICTIONS,
    })
}

fn rate_queue(raw: Option<&raw::RateQueue>, open_orders: u32) -> Result<RateQueueConfig, ConfigError> {
    let Some(queue) = raw else {
        return Ok(RateQueueConfig::NONE);
    };
    let wait_ms = in_range("risk.rate_queue.wait_ms", queue.wait_ms, 1, MAX_WAIT_MS)?;
    Ok(RateQueueConfig {
        orders: in_range("risk.rate_queue.orders", queue.orders, 1, open_orders)?,
        wait: Duration::from_millis(wait_ms),
    })
}

/// What of the shard's instruments may trade inside the gateway.
fn crossing(raw: &raw::Gateway, shard: ShardId, instruments: &[Instrument]) -> Result<CrossingConfig, ConfigError> {
    let wants = raw.sessions.iter().find(|session| session.crossing);
    let Some(crossing) = raw.first_stage.as_ref().and_then(|stage| stage.crossing.as_ref()) else {
        return match wants {
            Some(session) => Err(ConfigError(format!(
                "session {}: crossing needs [first_stage.crossing]",
                session.id
            ))),
            None => Ok(CrossingConfig::NONE),
        };
    };
    if raw.feed.is_none() {
        return Err(ConfigError(
            "first_stage.crossing: orders trade at the live best bid and offer or between them, which needs a [feed]"
                .to_owned(),
        ));
    }
    let mut of_shard = Vec::new();
    for symbol in &crossing.symbols {
        let named = instruments.iter().find(|one| one.symbol.as_str() == symbol);
        let Some(instrument) = named else {
            return Err(ConfigError(format!(
                "first_stage.crossing names {symbol}, which is not in the instrument master"
            )));
        };
        if instrument.shard == shard {
            of_shard.push(instrument.id);
        }
    }
    Ok(CrossingConfig {
        instruments: of_shard,
        rest: Duration::from_millis(in_range(
            "first_stage.crossing.rest_ms",
            crossing.rest_ms,
            0,
            MAX_WAIT_MS,
        )?),
    })
}

fn is_of(shard: ShardId, id: InstrumentId, instruments: &[Instrument]) -> bool {
    let mut all = instruments.iter();
    all.any(|instrument| instrument.id == id && instrument.shard == shard)
}

fn account(
    raw: &raw::Account,
    raw_risk: &raw::Risk,
    instruments: &[Instrument],
    shard: ShardId,
) -> Result<AccountConfig, ConfigError> {
    let of = format!("account {}", raw.id);
    let (classes, symbols) = (&raw.restricted_classes, &raw.restricted_symbols);
    let held = |key: &str, lots| risk::held(&format!("{of}: {key}"), lots);
    let value = |key: &str, text| some_amount(VALUE_LIMIT_MAX, &format!("{of}: {key}"), text);
    Ok(AccountConfig {
        id: AccountId(raw.id),
        limits: AccountLimits {
            max_quantity: risk::lots(&format!("{of}: max_quantity_lots"), raw.max_quantity_lots)?,
            max_notional: notional(&format!("{of}: max_notional"), &raw.max_notional)?,
            max_open_orders: in_range(format!("{of}: max_open_orders"), raw.max_open_orders, 1, u32::MAX)?,
            max_position: held("max_position_lots", raw.max_position_lots)?,
            max_long: held("max_long_lots", raw.max_long_lots)?,
            max_short: raw.max_short_lots.map(Quantity),
            // Left out, nothing is sold short.
            short_sales: raw.short_sales.map_or(ShortSales::Never, Into::into),
            rate: sessions::rate(&of, raw.max_orders_per_second, raw.max_orders_at_once, raw.rate_action)?,
            max_open_notional: Some(notional(&format!("{of}: max_open_notional"), &raw.max_open_notional)?),
            max_gross: value("max_gross_notional", raw.max_gross_notional.as_ref())?,
            max_net: value("max_net_notional", raw.max_net_notional.as_ref())?,
            max_loss: value("max_loss", raw.max_loss.as_ref())?,
        },
        restrictions: risk::restrictions(&of, classes, symbols, &raw_risk.classes, instruments, shard)?,
    })
}

fn firm(raw: &raw::Firm) -> Result<FirmLimits, ConfigError> {
    let of = "risk.firm";
    let amount = |max, key: &str, text| some_amount(max, &format!("{of}.{key}"), text);
    Ok(FirmLimits {
        max_quantity: risk::some_lots(&format!("{of}.max_quantity_lots"), raw.max_quantity_lots)?,
        max_notional: amount(NOTIONAL_MAX, "max_notional", raw.max_notional.as_ref())?,
        max_open_notional: amount(NOTIONAL_MAX, "max_open_notional", raw.max_open_notional.as_ref())?,
        max_open_orders: if_there(format!("{of}.max_open_orders"), raw.max_open_orders, 1, u32::MAX)?,
        max_gross: amount(VALUE_LIMIT_MAX, "max_gross_notional", raw.max_gross_notional.as_ref())?,
        max_net: amount(VALUE_LIMIT_MAX, "max_net_notional", raw.max_net_notional.as_ref())?,
        max_loss: amount(VALUE_LIMIT_MAX, "max_loss", raw.max_loss.as_ref())?,
        rate: sessions::rate(of, raw.max_orders_per_second, raw.max_orders_at_once, raw.rate_action)?,
    })
}

/// The limits that instruments of `shard` have in the place of their class's.
fn overrides(
    raw: &BTreeMap<String, toml::Table>,
    instruments: &[Instrument],
    shard: ShardId,
) -> Result<Vec<(InstrumentId, Limit, LimitValue)>, ConfigError> {
    let mut overrides = Vec::new();
    for (symbol, limits) in raw {
        let Some(instrument) = instruments.iter().find(|known| known.symbol.as_str() == symbol) else {
            return Err(ConfigError(format!(
                "risk.instruments.{symbol} is not in the instrument master"
            )));
        };
        for (name, value) in limits {
            let wrong = |what: String| ConfigError(format!("risk.instruments.{symbol}.{name} = {value}: {what}"));
            let limit = Limit::from_name(name).ok_or_else(|| wrong(LimitError::NotHere.to_string()))?;
            let value = LimitScope::Class(instrument.limit_class)
                .parse(limit, &value.to_string())
                .map_err(|error| wrong(error.to_string()))?;
            if instrument.shard == shard {
                overrides.push((instrument.id, limit, value));
            }
        }
    }
    Ok(overrides)
}

/// What orders cost, in a config: decimal text, in currency units.
pub(super) fn notional(key: &str, text: &str) -> Result<Notional, ConfigError> {
    amount_up_to(NOTIONAL_MAX, key, text)
}

fn amount_up_to(max: Notional, key: &str, text: &str) -> Result<Notional, ConfigError> {
    match Notional::parse(text.as_bytes()) {
        Some(amount) if Notional(0) < amount && amount <= max => Ok(amount),
        Some(_) => Err(ConfigError(format!(
            "{key} = \"{text}\" must be more than 0 and at most {max}"
        ))),
        None => Err(ConfigError(format!(
            "{key} = \"{text}\" is no amount; write units, such as \"1000000\" or \"250000.50\""
        ))),
    }
}

/// The same, which may be left out.
pub(super) fn some_notional(key: &str, text: Option<&String>) -> Result<Option<Notional>, ConfigError> {
    some_amount(NOTIONAL_MAX, key, text)
}

fn some_amount(max: Notional, key: &str, text: Option<&String>) -> Result<Option<Notional>, ConfigError> {
    text.map(|text| amount_up_to(max, key, text)).transpose()
}

fn order_venue(raw: &raw::Venue, shard: ShardId) -> orders::VenueConfig {
    let link = raw.links.iter().find(|link| link.shard == shard.0);
    orders::VenueConfig {
        session: link.map_or(SessionId(0), |link| SessionId(link.session)),
        grants_slots: raw.grants_open_orders,
        decrements: raw.decrements,
        types: raw.order_types.map_or(OrderTypes::AT_VENUE, order_types),
    }
}

fn order_types(raw: raw::OrderTypes) -> OrderTypes {
    let handling = |raw| match raw {
        raw::Handling::Venue => Handling::Venue,
        raw::Handling::Emulate => Handling::Emulated,
        raw::Handling::Refuse => Handling::Refused,
    };
    OrderTypes {
        stop: handling(raw.stop),
        stop_limit: handling(raw.stop_limit),
        iceberg: handling(raw.iceberg),
        peg_primary: handling(raw.peg_primary),
        peg_mid: handling(raw.peg_mid),
    }
}

fn route(raw: &raw::Route, instruments: &[Instrument], names: &Names) -> Result<Route, ConfigError> {
    let key = match (&raw.symbol, raw.account, raw.session) {
        (Some(symbol), None, None) => {
            let found = instruments
                .iter()
                .find(|instrument| instrument.symbol.as_str() == symbol);
            let Some(instrument) = found else {
                return Err(ConfigError(format!(
                    "a route names {symbol}, which is not in the instrument master"
                )));
            };
            RouteKey::Instrument(instrument.id)
        }
        (None, Some(account), None) => RouteKey::Account(AccountId(account)),
        (None, None, Some(session)) => RouteKey::Session(SessionId(session)),
        _ => {
            return Err(ConfigError(
                "a route needs exactly one of symbol, account and session".to_owned(),
            ));
        }
    };
    Ok(Route {
        key,
        venue: names.venue(&raw.venue)?,
    })
}
