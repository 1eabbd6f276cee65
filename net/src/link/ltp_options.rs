//! What a config may say of an LTP link beside the obligatory, as it is written there.

use super::keys::read_key;
use proto::ltp::{Config, HeaderForm, Redundancy};
use std::path::Path;
use types::Duration;

/// All absent: the defaults of [`Config::new`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LtpOptions<'a> {
    /// `key_id`: which key of the file authenticates datagrams.
    pub key_id: Option<u32>,
    /// `key_file`; it stands with `key_id`.
    pub key_file: Option<&'a Path>,
    /// `header`: `full` or `compact`.
    pub header: Option<&'a str>,
    /// `redundancy`: `off`, `paths`, `twice` or `repeat`.
    pub redundancy: Option<&'a str>,
    /// `reorder_allowance_us`: how long a gap may fill by itself, µs.
    pub reorder_allowance_us: Option<u64>,
}

impl LtpOptions<'_> {
    /// Puts what is given into `config`. `base`: where a relative `key_file` begins.
    ///
    /// # Errors
    /// The option that is none, by its name.
    pub fn apply(&self, config: &mut Config, base: &Path) -> Result<(), String> {
        config.key = match (self.key_id, self.key_file) {
            (Some(id), Some(file)) => Some(read_key(&base.join(file), id)?),
            (None, None) => None,
            _ => return Err("key_id and key_file stand together".to_owned()),
        };
        if let Some(name) = self.header {
            config.header = HeaderForm::from_name(name).ok_or("header is \"full\" or \"compact\"")?;
        }
        if let Some(name) = self.redundancy {
            config.redundancy =
                Redundancy::from_name(name).ok_or("redundancy is \"off\", \"paths\", \"twice\" or \"repeat\"")?;
        }
        if let Some(allowance) = self.reorder_allowance_us {
            config.reorder_allowance = Duration::from_micros(allowance);
        }
        config.check().map_err(|error| error.to_string())
    }

    /// That a link which is not LTP has none of them.
    ///
    /// # Errors
    /// It has.
    pub fn none(&self) -> Result<(), String> {
        if *self == Self::default() {
            Ok(())
        } else {
            Err("key_id, key_file, header, redundancy and reorder_allowance_us are for LTP".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::SessionId;

    fn applied(options: LtpOptions<'_>) -> Result<Config, String> {
        let mut config = Config::new(SessionId(1), 64, 64);
        options.apply(&mut config, Path::new("/nowhere"))?;
        Ok(config)
    }

    #[test]
    fn what_is_absent_stays_as_it_is_and_what_is_given_is_taken() {
        assert_eq!(applied(LtpOptions::default()), Ok(Config::new(SessionId(1), 64, 64)));
        let config = applied(LtpOptions {
            header: Some("compact"),
            redundancy: Some("repeat"),
            reorder_allowance_us: Some(20),
            ..LtpOptions::default()
        });
        let config = config.unwrap();
        assert_eq!(
            (config.header, config.redundancy),
            (HeaderForm::Compact, Redundancy::Repeat)
        );
        assert_eq!(config.reorder_allowance, Duration::from_micros(20));
    }

    #[test]
    fn what_is_no_option_is_told_by_name() {
        let bad = |options| applied(options).unwrap_err();
        let none = LtpOptions::default();
        let half = LtpOptions {
            key_id: Some(1),
            ..none
        };
        assert_eq!(bad(half), "key_id and key_file stand together");
        let key_file = Some(Path::new("keys"));
        assert!(bad(LtpOptions { key_file, ..half }).starts_with("key file /nowhere/keys: "));
        let header = Some("short");
        assert!(bad(LtpOptions { header, ..none }).starts_with("header is"));
        let redundancy = Some("thrice");
        assert!(bad(LtpOptions { redundancy, ..none }).starts_with("redundancy is"));
        assert!(half.none().is_err() && none.none().is_ok());
    }
}
