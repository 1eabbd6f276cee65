//! What a limit may be: how it is written in a config, on the screen and in a journal.

use crate::config::{BookLimit, Collar, MissingBook, MissingReference, RateAction, ReferenceChoice, ShortSales};
use crate::limits::{AGE_MAX_MS, RESTRICTED_CLASSES_MAX};
use core::fmt;
use types::{Duration, Notional, Quantity};

/// What a limit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitValue {
    /// There is no such limit.
    None,
    /// Of an instrument: what its class has.
    OfClass,
    /// Lots or orders.
    Count(u64),
    /// Money, 1e-9.
    Amount(Notional),
    /// How old something may be.
    Age(Duration),
    /// Whether something is allowed.
    Switch(bool),
    /// What holds without a reference price.
    MissingReference(MissingReference),
    /// The widths of a collar; `None`: it is off.
    Collar(Option<Collar>),
    /// How far a limit may reach through the book.
    Book(BookLimit),
    /// Which price is the reference.
    Reference(ReferenceChoice),
    /// Whether an account may sell short.
    ShortSales(ShortSales),
    /// What happens to an order that comes too fast.
    RateAction(RateAction),
}

/// Why a limit stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitError {
    /// The scope does not exist.
    UnknownScope,
    /// There is no such limit at this scope.
    NotHere,
    /// The value is none of this limit.
    Form {
        /// What would be.
        form: &'static str,
        /// Whether there may be no such limit.
        or_none: bool,
    },
    /// The value is zero or too high, or lacks another limit that belongs to it.
    Invalid,
    /// The config has no queue for orders that come too fast.
    NoRateQueue,
    /// A class beyond the first [`RESTRICTED_CLASSES_MAX`](crate::RESTRICTED_CLASSES_MAX) cannot be closed to single accounts
    /// and sessions.
    ClassTooHigh,
    /// As much is closed to accounts and sessions as there is room for.
    NoRoom,
}

/// The type of a limit in the structs of the config.
pub(crate) trait Field: Sized {
    /// What a text must be.
    const FORM: &'static str;

    /// What a value that is none of this limit is told.
    const WRONG: LimitError = LimitError::Form {
        form: Self::FORM,
        or_none: false,
    };

    fn value(&self) -> LimitValue;

    /// From the form in which it is kept; `None` when it is another limit's.
    fn from_value(value: LimitValue) -> Option<Self>;

    /// From a config's text without quotes.
    fn parse(text: &str) -> Option<Self>;

    /// Puts a value in the place of this one.
    fn set(&mut self, value: LimitValue) -> Result<(), LimitError> {
        *self = Self::from_value(value).ok_or(Self::WRONG)?;
        Ok(())
    }
}

/// What ends an instrument's own limit.
pub(crate) const OF_CLASS: &str = "class";

/// Reads the type of a field.
pub(crate) fn parse_as<L, F: Field>(_: impl Fn(&L) -> &F, text: &str) -> Result<LimitValue, LimitError> {
    let field = F::parse(unquoted(text)).ok_or(F::WRONG)?;
    Ok(field.value())
}

/// A string of a config, or what has no quotes there.
pub(crate) fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(text)
}

/// A whole number as TOML has it: `1_000`.
fn count(text: &str) -> Option<u64> {
    if text.starts_with('_') || text.ends_with('_') || text.contains("__") {
        return None;
    }
    let mut value: u64 = 0;
    for byte in text.bytes().filter(|&byte| byte != b'_') {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    (!text.is_empty()).then_some(value)
}

impl Field for u32 {
    const FORM: &'static str = "a whole number, such as 10_000";

    fn value(&self) -> LimitValue {
        LimitValue::Count((*self).into())
    }

    fn from_value(value: LimitValue) -> Option<Self> {
        match value {
            LimitValue::Count(count) => count.try_into().ok(),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        count(text)?.try_into().ok()
    }
}

impl Field for Quantity {
    const FORM: &'static str = "lots, such as 10_000";

    fn value(&self) -> LimitValue {
        LimitValue::Count(self.0)
    }

    fn from_value(value: LimitValue) -> Option<Self> {
        match value {
            LimitValue::Count(count) => Some(Self(count)),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        count(text).map(Self)
    }
}

impl Field for Notional {
    const FORM: &'static str = "an amount in currency units, such as \"1000000\" or \"250000.50\"";

    fn value(&self) -> LimitValue {
        LimitValue::Amount(*self)
    }

    fn from_value(value: LimitValue) -> Option<Self> {
        match value {
            LimitValue::Amount(amount) => Some(amount),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::parse(text.as_bytes())
    }
}

impl Field for Duration {
    const FORM: &'static str = "milliseconds of a day at most, such as 60_000";

    fn value(&self) -> LimitValue {
        LimitValue::Age(*self)
    }

    fn from_value(value: LimitValue) -> Option<Self> {
        match value {
            LimitValue::Age(age) => Some(age),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        count(text).filter(|&ms| ms <= AGE_MAX_MS).map(Self::from_millis)
    }
}

impl Field for bool {
    const FORM: &'static str = "true or false";

    fn value(&self) -> LimitValue {
        LimitValue::Switch(*self)
    }

    fn from_value(value: LimitValue) -> Option<Self> {
        match value {
            LimitValue::Switch(is_on) => Some(is_on),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Field for MissingReference {
    const FORM: &'static str = "\"master\" or \"refuse\"";

    fn value(&self) -> LimitValue {
        LimitValue::MissingReference(*self)
    }

    fn from_value(value: LimitValue) -> Option<Self> {
        match value {
            LimitValue::MissingReference(missing) => Some(missing),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "refuse" => Some(Self::Refuse),
            "master" => Some(Self::UseMaster),
            _ => None,
        }
    }
}

impl Field for ReferenceChoice {
    const FORM: &'static str = "\"mid\", \"last\" or \"master\"";

    fn value(&self) -> LimitValue {
        LimitValue::Reference(*self)
    }

    fn from_value(value: LimitValue) -> Option<Self> {
        match value {
            LimitValue::Reference(reference) => Some(reference),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == text)
    }
}

impl Field for ShortSales {
    const FORM: &'static str = "\"never\", \"with_locate\" or \"allowed\"";

    fn value(&self) -> LimitValue {
        LimitValue::ShortSales(*self)
    }

    fn from_value(value: LimitValue) -> Option<Self> {
        match value {
            LimitValue::ShortSales(rule) => Some(rule),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == text)
    }
}

impl Field for RateAction {
    const FORM: &'static str = "\"reject\", \"queue\" or \"disconnect\"";

    fn value(&self) -> LimitValue {
        LimitValue::RateAction(*self)
    }

    fn from_value(value: LimitValue) -> Option<Self> {
        match value {
            LimitValue::RateAction(action) => Some(action),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == text)
    }
}

impl Field for Option<Collar> {
    const FORM: &'static str = "\"off\", or { basis_points = 500, ticks = 100 } with one or both";

    fn value(&self) -> LimitValue {
        LimitValue::Collar(*self)
    }

    fn from_value(value: LimitValue) -> Option<Self> {
        match value {
            LimitValue::Collar(collar) => Some(collar),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "off" {
            return Some(None);
        }
        let mut collar = NO_WIDTH;
        for (key, width) in entries(text)? {
            collar.set_width(key, width)?;
        }
        Some(Some(collar))
    }
}

impl Field for BookLimit {
    const FORM: &'static str =
        "{ basis_points = 50, ticks = 10, missing = \"refuse\" or \"skip\" } with one or both widths";

    fn value(&self) -> LimitValue {
        LimitValue::Book(*self)
    }

    fn from_value(value: LimitValue) -> Option<Self> {
        match value {
            LimitValue::Book(book) => Some(book),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (mut width, mut missing) = (NO_WIDTH, None);
        for (key, value) in entries(text)? {
            if key != "missing" {
                width.set_width(key, value)?;
                continue;
            }
            let named = MissingBook::ALL
                .into_iter()
                .find(|missing| missing.name() == unquoted(value))?;
            if missing.replace(named).is_some() {
                return None;
            }
        }
        Some(Self {
            width,
            missing: missing?,
        })
    }
}

const NO_WIDTH: Collar = Collar {
    basis_points: None,
    ticks: None,
};

/// The keys and values of an inline table; `None` when it is none.
fn entries(text: &str) -> Option<impl Iterator<Item = (&str, &str)>> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    // What has no key gets one that nobody knows.
    Some(inner.split(',').map(|part| {
        let (key, value) = part.split_once('=').unwrap_or(("", part));
        (key.trim(), value.trim())
    }))
}

impl Collar {
    /// Takes one width of a text; `None` when it is none, or there already.
    fn set_width(&mut self, key: &str, width: &str) -> Option<()> {
        let place = match key {
            "basis_points" => &mut self.basis_points,
            "ticks" => &mut self.ticks,
            _ => return None,
        };
        place.replace(u32::parse(width)?).is_none().then_some(())
    }

    /// For a journal: each width and one, so that 0 is none.
    fn to_amount(self) -> i128 {
        let width = |width: Option<u32>| width.map_or(0, |width| i128::from(width) + 1);
        width(self.basis_points) << 64 | width(self.ticks)
    }

    fn from_amount(amount: i128) -> Option<Self> {
        let width = |width: i128| match width {
            0 => Some(None),
            width => u32::try_from(width - 1).ok().map(Some),
        };
        Some(Self {
            basis_points: width(amount >> 64)?,
            ticks: width(amount & i128::from(u64::MAX))?,
        })
    }
}

/// As a config has it, without the braces.
impl fmt::Display for Collar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.basis_points, self.ticks) {
            (Some(points), Some(ticks)) => write!(f, "basis_points = {points}, ticks = {ticks}"),
            (Some(points), None) => write!(f, "basis_points = {points}"),
            (None, Some(ticks)) => write!(f, "ticks = {ticks}"),
            (None, None) => Ok(()),
        }
    }
}

/// A limit that may be absent.
impl<F: Field> Field for Option<F> {
    const FORM: &'static str = F::FORM;
    const WRONG: LimitError = LimitError::Form {
        form: F::FORM,
        or_none: true,
    };

    fn value(&self) -> LimitValue {
        self.as_ref().map_or(LimitValue::None, Field::value)
    }

    fn from_value(value: LimitValue) -> Option<Self> {
        match value {
            LimitValue::None => Some(None),
            value => F::from_value(value).map(Some),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => Some(None),
            text => F::parse(text).map(Some),
        }
    }
}

impl LimitValue {
    /// For a journal: what it is, and how much.
    #[must_use]
    pub fn to_parts(self) -> (u8, i128) {
        match self {
            Self::None => (0, 0),
            Self::OfClass => (1, 0),
            Self::Count(count) => (2, count.into()),
            Self::Amount(amount) => (3, amount.0),
            Self::Age(age) => (4, age.0.into()),
            Self::Switch(is_on) => (5, is_on.into()),
            Self::MissingReference(MissingReference::Refuse) => (6, 0),
            Self::MissingReference(MissingReference::UseMaster) => (6, 1),
            Self::Reference(reference) => (9, reference as i128),
            Self::ShortSales(rule) => (10, rule as i128),
            Self::RateAction(action) => (13, action as i128),
            Self::Collar(None) => (7, 0),
            Self::Collar(Some(collar)) => (8, collar.to_amount()),
            Self::Book(book) => match book.missing {
                MissingBook::Refuse => (11, book.width.to_amount()),
                MissingBook::Skip => (12, book.width.to_amount()),
            },
        }
    }

    /// From what [`to_parts`](Self::to_parts) gave; `None` for anything else.
    #[must_use]
    pub fn from_parts(kind: u8, amount: i128) -> Option<Self> {
        let value = match (kind, amount) {
            (0, _) => Self::None,
            (1, _) => Self::OfClass,
            (2, _) => Self::Count(amount.try_into().ok()?),
            (3, _) => Self::Amount(Notional(amount)),
            (4, _) => Self::Age(Duration(amount.try_into().ok()?)),
            (5, _) => Self::Switch(amount == 1),
            (6, 0) => Self::MissingReference(MissingReference::Refuse),
            (6, _) => Self::MissingReference(MissingReference::UseMaster),
            (9, place) => Self::Reference(*ReferenceChoice::ALL.get(usize::try_from(place).ok()?)?),
            (10, place) => Self::ShortSales(*ShortSales::ALL.get(usize::try_from(place).ok()?)?),
            (13, place) => Self::RateAction(*RateAction::ALL.get(usize::try_from(place).ok()?)?),
            (7, _) => Self::Collar(None),
            (8, _) => Self::Collar(Some(Collar::from_amount(amount)?)),
            (11, _) => Self::Book(BookLimit {
                width: Collar::from_amount(amount)?,
                missing: MissingBook::Refuse,
            }),
            (12, _) => Self::Book(BookLimit {
                width: Collar::from_amount(amount)?,
                missing: MissingBook::Skip,
            }),
            _ => return None,
        };
        // Whatever has another form was written by nobody.
        (value.to_parts() == (kind, amount)).then_some(value)
    }
}

/// As a config has it, without quotes.
impl fmt::Display for LimitValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::OfClass => f.pad(OF_CLASS),
            Self::Count(count) => count.fmt(f),
            Self::Amount(amount) => amount.fmt(f),
            Self::Age(age) => (age.0 / NANOSECONDS_A_MILLISECOND).fmt(f),
            Self::Switch(is_on) => is_on.fmt(f),
            Self::MissingReference(MissingReference::Refuse) => f.pad("refuse"),
            Self::MissingReference(MissingReference::UseMaster) => f.pad("master"),
            Self::Reference(reference) => f.pad(reference.name()),
            Self::ShortSales(rule) => f.pad(rule.name()),
            Self::RateAction(action) => f.pad(action.name()),
            Self::Collar(None) => f.pad("off"),
            Self::Collar(Some(collar)) => write!(f, "{{ {collar} }}"),
            Self::Book(book) => write!(f, "{{ {}, missing = \"{}\" }}", book.width, book.missing.name()),
        }
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownScope => f.write_str("the config has none such"),
            Self::NotHere => f.write_str("there is no such limit here"),
            Self::Form { form, or_none } => write!(f, "it must be {form}{}", if *or_none { "; or none" } else { "" }),
            Self::Invalid => {
                f.write_str("it is zero or too high, or a rate without its max_orders_at_once or rate_action")
            }
            Self::NoRateQueue => f.write_str("nothing can be queued, the config has no [risk.rate_queue]"),
            Self::ClassTooHigh => write!(
                f,
                "only the first {RESTRICTED_CLASSES_MAX} classes by name can be closed to single accounts and sessions"
            ),
            Self::NoRoom => {
                f.write_str("no more can be closed to accounts and sessions, the table is full; open something first")
            }
        }
    }
}

const NANOSECONDS_A_MILLISECOND: u64 = 1_000_000;
