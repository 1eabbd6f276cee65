//! Numbers of a config that must be in a range. Zero is refused wherever it would be a slip of the pen.

use super::ConfigError;
use std::fmt::Display;

/// The number, when it is one of those that are possible.
pub(super) fn in_range<N: PartialOrd + Display>(
    key: impl Display,
    number: N,
    least: N,
    most: N,
) -> Result<N, ConfigError> {
    if (&least..=&most).contains(&&number) {
        return Ok(number);
    }
    Err(ConfigError(format!(
        "{key} = {number} is not possible; {least} to {most}"
    )))
}

/// The same of a number that may be left out.
pub(super) fn if_there<N: PartialOrd + Display>(
    key: impl Display,
    number: Option<N>,
    least: N,
    most: N,
) -> Result<Option<N>, ConfigError> {
    number.map(|number| in_range(key, number, least, most)).transpose()
}
