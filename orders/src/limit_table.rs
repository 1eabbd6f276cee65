//! The limits by name: where each may stand, how it is written, read and changed. One table; a new limit is a line in it.

use crate::config::{AccountLimits, FirmLimits, InstrumentLimits, SessionLimits};
use crate::control::KillScope;
use crate::limit_value::{Field, LimitError, LimitValue, OF_CLASS, parse_as, unquoted};
use crate::restricted::{Party, Traded};
use types::{AccountId, InstrumentId, LimitClass, SessionId};

/// Where a limit stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LimitScope {
    /// For all orders.
    Firm,
    /// For each instrument of a class that has not its own in its place.
    Class(LimitClass),
    /// For one instrument, in the place of its class's.
    Instrument(InstrumentId),
    /// For one account.
    Account(AccountId),
    /// For one session.
    Session(SessionId),
    /// For what one account or session trades of a class or in an instrument: whether that is closed to it,
    /// [`Limit::Restricted`].
    Trade(Party, Traded),
}

/// A limit for each line: its number in journals, which never changes, the key of the config, and its field by scope. A class has
/// what an instrument has.
macro_rules! limits {
    ($(
        $name:ident = $number:literal, $key:literal,
        $(firm.$($firm:ident).+)?
        $(instrument.$($instrument:ident).+)?
        $(account.$($account:ident).+)?
        $(session.$($session:ident).+)?;
    )*) => {
        /// The limits that can be changed, by the key of the config.
        #[allow(missing_docs, reason = "the table has their keys, which docs/risk.md explains")]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Limit {
            $($name = $number,)*
        }

        impl Limit {
            /// All, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its key in the config.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $key,)*
                }
            }

            /// From its number in journals.
            #[must_use]
            pub const fn from_u8(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }
        }

        fields!(FirmLimits: $($(Limit::$name => $($firm).+;)?)*);
        fields!(InstrumentLimits: $($(Limit::$name => $($instrument).+;)?)*);
        fields!(AccountLimits: $($(Limit::$name => $($account).+;)?)*);
        fields!(SessionLimits: $($(Limit::$name => $($session).+;)?)*);
    };
}

/// Reads and writes the limits of one kind of scope by name.
macro_rules! fields {
    ($limits:ident: $($name:path => $($field:ident).+;)*) => {
        #[allow(
            unused_variables,
            unused_mut,
            unreachable_code,
            clippy::match_single_binding,
            clippy::missing_const_for_fn,
            reason = "a scope may have no limits yet"
        )]
        impl $limits {
            /// A limit; `None` when there is no such limit here.
            #[must_use]
            pub fn value(&self, limit: Limit) -> Option<LimitValue> {
                match limit {
                    $($name => Some(self.$($field).+.value()),)*
                    _ => None,
                }
            }

            /// These limits with some changed, together.
            pub(crate) fn with(
                mut self,
                changes: impl IntoIterator<Item = (Limit, LimitValue)>,
            ) -> Result<Self, LimitError> {
                for (limit, value) in changes {
                    match limit {
                        $($name => self.$($field).+.set(value)?,)*
                        _ => return Err(LimitError::NotHere),
                    }
                }
                if self.are_valid() { Ok(self) } else { Err(LimitError::Invalid) }
            }

            /// Reads a limit as the config has it.
            fn parse(limit: Limit, text: &str) -> Result<LimitValue, LimitError> {
                match limit {
                    $($name => parse_as(|limits: &Self| &limits.$($field).+, text),)*
                    _ => Err(LimitError::NotHere),
                }
            }
        }
    };
}

limits! {
    MaxQuantity = 1, "max_quantity_lots", firm.max_quantity instrument.max_quantity account.max_quantity session.max_quantity;
    MaxNotional = 2, "max_notional", firm.max_notional instrument.max_notional account.max_notional session.max_notional;
    Collar = 3, "collar", instrument.collar;
    ReferenceMaxAge = 4, "reference_max_age_ms", instrument.stale_after;
    ReferenceMissing = 5, "reference_missing", instrument.missing_reference;
    MarketOrders = 6, "market_orders", instrument.market_orders;
    MaxOpenOrders = 7, "max_open_orders", firm.max_open_orders instrument.max_open_orders account.max_open_orders session.max_open_orders;
    MaxOrdersPerSecond = 8, "max_orders_per_second", firm.rate.per_second instrument.rate.per_second account.rate.per_second session.rate.per_second;
    MaxOrdersAtOnce = 9, "max_orders_at_once", firm.rate.at_once instrument.rate.at_once account.rate.at_once session.rate.at_once;
    MaxPosition = 10, "max_position_lots", instrument.max_position account.max_position;
    MaxOpenNotional = 11, "max_open_notional", firm.max_open_notional instrument.max_open_notional account.max_open_notional session.max_open_notional;
    Reference = 12, "reference", instrument.reference;
    Restricted = 13, "restricted", instrument.restricted;
    AuctionMaxQuantity = 14, "auction_max_quantity_lots", instrument.auction.max_quantity;
    AuctionMaxNotional = 15, "auction_max_notional", instrument.auction.max_notional;
    AuctionCollar = 16, "auction_collar", instrument.auction.collar;
    MaxLong = 17, "max_long_lots", instrument.max_long account.max_long;
    MaxShort = 18, "max_short_lots", instrument.max_short account.max_short;
    ShortSales = 19, "short_sales", account.short_sales;
    MaxRepeats = 20, "max_repeats", session.repeats.orders;
    RepeatsWithin = 21, "repeats_within_ms", session.repeats.within;
    MaxGross = 22, "max_gross_notional", firm.max_gross account.max_gross;
    MaxNet = 23, "max_net_notional", firm.max_net account.max_net;
    MaxLoss = 24, "max_loss", firm.max_loss account.max_loss;
    Book = 25, "book", instrument.book;
    RateAction = 26, "rate_action", firm.rate.action instrument.rate.action account.rate.action session.rate.action;
}

impl Limit {
    /// From its key in the config.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|limit| limit.name() == name)
    }
}

impl From<KillScope> for LimitScope {
    fn from(scope: KillScope) -> Self {
        match scope {
            KillScope::Firm => Self::Firm,
            KillScope::Account(id) => Self::Account(id),
            KillScope::Session(id) => Self::Session(id),
        }
    }
}

impl LimitScope {
    /// The one instrument that it is of: such a limit is known where that is traded and nowhere else.
    #[must_use]
    pub const fn instrument(self) -> Option<InstrumentId> {
        match self {
            Self::Instrument(id) | Self::Trade(_, Traded::Instrument(id)) => Some(id),
            _ => None,
        }
    }

    /// Whether what stands at `scope` concerns this one: itself, and what is closed to it or of it.
    #[must_use]
    pub fn has(self, scope: Self) -> bool {
        let has_part = |party, traded| {
            let party = match party {
                Party::Account(id) => Self::Account(id),
                Party::Session(id) => Self::Session(id),
            };
            let traded = match traded {
                Traded::Class(class) => Self::Class(class),
                Traded::Instrument(id) => Self::Instrument(id),
            };
            self == party || self == traded
        };
        self == scope || matches!(scope, Self::Trade(party, traded) if has_part(party, traded))
    }

    /// Reads the value of a limit that stands here: as the config has it, with or without quotes; `none` where it may be
    /// absent; `class` for an instrument that is to have its class's again.
    ///
    /// # Errors
    /// The limit does not stand here, or the text is no value of it.
    pub fn parse(self, limit: Limit, text: &str) -> Result<LimitValue, LimitError> {
        match self {
            Self::Firm => FirmLimits::parse(limit, text),
            Self::Class(_) => InstrumentLimits::parse(limit, text),
            Self::Instrument(_) => match InstrumentLimits::parse(limit, text) {
                Err(LimitError::Form { .. }) if unquoted(text) == OF_CLASS => Ok(LimitValue::OfClass),
                other => other,
            },
            Self::Account(_) => AccountLimits::parse(limit, text),
            Self::Session(_) => SessionLimits::parse(limit, text),
            Self::Trade(..) if limit == Limit::Restricted => InstrumentLimits::parse(limit, text),
            Self::Trade(..) => Err(LimitError::NotHere),
        }
    }
}
