//! Limits as they are written, and what accounts and sessions may not trade.

use super::check::{notional, some_notional};
use super::range::{if_there, in_range};
use super::sessions::rate;
use super::{ConfigError, raw};
use orders::{
    AGE_MAX_MS, AuctionLimits, BookLimit, Collar, InstrumentLimits, MissingBook, MissingReference, QUANTITY_MAX,
    RateAction, ReferenceChoice, Restrictions, ShortSales,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use types::{Duration, Instrument, LimitClass, Quantity, ShardId};

/// `reference = "…"`: which price of the market counts.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reference {
    Mid,
    Last,
    Master,
}

/// `missing = "…"` of a limit by the book.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum BookMissing {
    Refuse,
    Skip,
}

/// `short_sales = "…"` of an account.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum ShortSaleRule {
    Never,
    WithLocate,
    Allowed,
}

/// `rate_action = "…"`: what happens to an order that comes too fast.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum RateActionName {
    Reject,
    Queue,
    Disconnect,
}

/// The limits of a class.
pub(super) fn limits(name: &str, raw: &raw::LimitClass) -> Result<InstrumentLimits, ConfigError> {
    let of = format!("risk.classes.{name}");
    let amount = |key: &str, text| some_notional(&format!("{of}.{key}"), text);
    let held = |key: &str, lots| held(&format!("{of}.{key}"), lots);
    Ok(InstrumentLimits {
        max_quantity: lots(&format!("{of}.max_quantity_lots"), raw.max_quantity_lots)?,
        max_notional: notional(&format!("{of}.max_notional"), &raw.max_notional)?,
        collar: raw.collar.width(),
        book: raw.book.as_ref().map(|book| BookLimit {
            width: Collar {
                basis_points: book.basis_points,
                ticks: book.ticks,
            },
            missing: match book.missing {
                BookMissing::Refuse => MissingBook::Refuse,
                BookMissing::Skip => MissingBook::Skip,
            },
        }),
        reference: raw.reference.map_or(ReferenceChoice::Mid, Into::into),
        stale_after: Duration::from_millis(in_range(
            format!("{of}.reference_max_age_ms"),
            raw.reference_max_age_ms,
            0,
            AGE_MAX_MS,
        )?),
        missing_reference: match raw.reference_missing {
            raw::ReferenceMissing::Refuse => MissingReference::Refuse,
            raw::ReferenceMissing::Master => MissingReference::UseMaster,
        },
        market_orders: raw.market_orders,
        restricted: raw.restricted.unwrap_or(false),
        auction: AuctionLimits {
            max_quantity: some_lots(
                &format!("{of}.auction_max_quantity_lots"),
                raw.auction_max_quantity_lots,
            )?,
            max_notional: amount("auction_max_notional", raw.auction_max_notional.as_ref())?,
            collar: raw.auction_collar.as_ref().map(raw::Collar::width),
        },
        max_open_orders: if_there(format!("{of}.max_open_orders"), raw.max_open_orders, 1, u32::MAX)?,
        max_open_notional: amount("max_open_notional", raw.max_open_notional.as_ref())?,
        max_position: held("max_position_lots", raw.max_position_lots)?,
        max_long: held("max_long_lots", raw.max_long_lots)?,
        max_short: raw.max_short_lots.map(Quantity),
        rate: rate(&of, raw.max_orders_per_second, raw.max_orders_at_once, raw.rate_action)?,
    })
}

/// The most lots of one order.
pub(super) fn lots(key: &str, lots: u64) -> Result<Quantity, ConfigError> {
    in_range(key, lots, 1, QUANTITY_MAX).map(Quantity)
}

/// The same, which may be left out.
pub(super) fn some_lots(key: &str, lots: Option<u64>) -> Result<Option<Quantity>, ConfigError> {
    lots.map(|most| self::lots(key, most)).transpose()
}

/// The most lots held, which may be left out.
pub(super) fn held(key: &str, lots: Option<u64>) -> Result<Option<Quantity>, ConfigError> {
    let lots = if_there(key, lots, 1, u64::MAX)?;
    Ok(lots.map(Quantity))
}

/// What an account or a session may not trade on `shard`.
pub(super) fn restrictions(
    of: &str,
    classes: &[String],
    symbols: &[String],
    known: &BTreeMap<String, raw::LimitClass>,
    instruments: &[Instrument],
    shard: ShardId,
) -> Result<Restrictions, ConfigError> {
    let class = |name: &String| {
        let place = known.keys().position(|known| known == name);
        place
            .and_then(|place| u8::try_from(place).ok())
            .map(LimitClass)
            .ok_or_else(|| {
                ConfigError(format!(
                    "{of}: restricted_classes names {name}, which is no limit class"
                ))
            })
    };
    let symbol = |symbol: &String| {
        let mut all = instruments.iter();
        let found = all.find(|instrument| instrument.symbol.as_str() == symbol);
        found.ok_or_else(|| {
            ConfigError(format!(
                "{of}: restricted_symbols names {symbol}, which is not in the instrument master"
            ))
        })
    };
    let named = symbols.iter().map(symbol).collect::<Result<Vec<_>, _>>()?;
    let of_shard = named.into_iter().filter(|instrument| instrument.shard == shard);
    Ok(Restrictions {
        classes: classes.iter().map(class).collect::<Result<_, _>>()?,
        instruments: of_shard.map(|instrument| instrument.id).collect(),
    })
}

impl raw::Collar {
    const fn width(&self) -> Option<Collar> {
        match self {
            Self::Off(_) => None,
            Self::On(width) => Some(Collar {
                basis_points: width.basis_points,
                ticks: width.ticks,
            }),
        }
    }
}

impl From<RateActionName> for RateAction {
    fn from(action: RateActionName) -> Self {
        match action {
            RateActionName::Reject => Self::Reject,
            RateActionName::Queue => Self::Queue,
            RateActionName::Disconnect => Self::Disconnect,
        }
    }
}

impl From<ShortSaleRule> for ShortSales {
    fn from(rule: ShortSaleRule) -> Self {
        match rule {
            ShortSaleRule::Never => Self::Never,
            ShortSaleRule::WithLocate => Self::WithLocate,
            ShortSaleRule::Allowed => Self::Allowed,
        }
    }
}

impl From<Reference> for ReferenceChoice {
    fn from(reference: Reference) -> Self {
        match reference {
            Reference::Mid => Self::Mid,
            Reference::Last => Self::Last,
            Reference::Master => Self::Master,
        }
    }
}
