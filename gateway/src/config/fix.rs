//! `[fix]`: what FIX messages are checked against.

use super::fnv::Fnv;
use super::{ConfigError, ProtocolConfig, SessionConfig, raw};
use crate::dictionary;
use proto::fix::Version;
use proto::fix::dictionary::{Definition, Dictionaries, Dictionary, UserDefinedFields};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The session layer's dictionary under FIX 5.0 and later, as a config names it.
const TRANSPORT: &str = "FIXT.1.1";

/// The dictionaries of all versions that a session may speak, and a hash of what they say. None when messages are not to
/// be checked.
pub(super) fn dictionaries(
    raw: &raw::Fix,
    sessions: &[SessionConfig],
    base: &Path,
) -> Result<(Dictionaries, u64), ConfigError> {
    check_names(&raw.dictionaries)?;
    let mut hash = Fnv::new();
    let mut dictionaries = Dictionaries::default();
    if !raw.validate {
        return Ok((dictionaries, hash.0));
    }
    let user_defined = match raw.user_defined_fields {
        raw::UserDefinedFields::Accept => UserDefinedFields::Accept,
        raw::UserDefinedFields::Dictionary => UserDefinedFields::Refuse,
    };
    hash.add(&format!("{user_defined:?}"));
    for version in Version::ALL {
        if !sessions.iter().any(|session| speaks(session, version)) {
            continue;
        }
        let (session, application) = definitions(version, &raw.dictionaries, base)?;
        hash.add(&format!("{version:?} {session:?} {application:?}"));
        let dictionary = Dictionary::compile(&session, application.as_ref())
            .map_err(|error| ConfigError(format!("the dictionary of {} cannot be used: {error}", version.name())))?
            .with_user_defined_fields(user_defined);
        dictionaries = dictionaries.with(version, Arc::new(dictionary));
    }
    Ok((dictionaries, hash.0))
}

/// What the dictionary of a version says; from FIX 5.0 on that of the session layer first.
fn definitions(
    version: Version,
    files: &BTreeMap<String, PathBuf>,
    base: &Path,
) -> Result<(Definition, Option<Definition>), ConfigError> {
    let file = |name: &str| files.get(name).map(|path| base.join(path));
    let read = |definition: Result<Definition, dictionary::DictionaryError>| {
        definition.map_err(|error| ConfigError(error.to_string()))
    };
    let own = read(dictionary::load(version, file(version.name()).as_deref()))?;
    if !version.is_fixt() {
        return Ok((own, None));
    }
    let transport = read(dictionary::load_transport(file(TRANSPORT).as_deref()))?;
    Ok((transport, Some(own)))
}

fn check_names(files: &BTreeMap<String, PathBuf>) -> Result<(), ConfigError> {
    for name in files.keys() {
        if name != TRANSPORT && Version::from_name(name).is_none() {
            let names = Version::ALL.map(Version::name).join(", ");
            return Err(ConfigError(format!(
                "[fix] has a dictionary for {name:?}; possible are {names} and {TRANSPORT}"
            )));
        }
    }
    Ok(())
}

fn speaks(session: &SessionConfig, version: Version) -> bool {
    match &session.protocol {
        ProtocolConfig::Fix { versions, .. } => versions.contains(&version),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;
    use proto::fix::Version;
    use std::path::Path;

    /// The example's config with this `[fix]`. Its only FIX session speaks 4.4.
    fn config(fix: &str) -> Result<Config, String> {
        let text = include_str!("../../../configs/gateway.toml");
        let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
        Config::parse(&format!("{text}\n[fix]\n{fix}\n"), &base).map_err(|error| error.to_string())
    }

    #[test]
    fn messages_are_checked_unless_that_is_turned_off() {
        let checked = config("").expect("it loads");
        assert!(checked.dictionaries.get(Version::Fix44).is_some());
        assert!(checked.dictionaries.get(Version::Fix42).is_none(), "nobody speaks it");
        let unchecked = config("validate = false").expect("it loads");
        assert!(unchecked.dictionaries.get(Version::Fix44).is_none());
        assert_ne!(checked.structure, unchecked.structure);
    }

    #[test]
    fn a_users_file_takes_the_place_of_ours_and_is_part_of_the_fingerprint() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("own.xml");
        let ours = include_str!("../../dictionaries/FIX44.xml");
        let own = "<field number=\"6001\" name=\"Desk\" type=\"STRING\"/>\n  </fields>";
        std::fs::write(&path, ours.replace("</fields>", own)).expect("it is written");
        let named = format!("dictionaries = {{ \"FIX.4.4\" = {path:?} }}");
        let (with_own, with_ours) = (config(&named).expect("it loads"), config("").expect("it loads"));
        assert_ne!(with_own.structure, with_ours.structure);
        let refused = config(&format!("{named}\nuser_defined_fields = \"dictionary\"")).expect("it loads");
        assert_ne!(with_own.structure, refused.structure);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let error = config("dictionaries = { \"FIX.4.4\" = \"gateway.toml\" }").expect_err("it is no XML");
        assert!(error.contains("gateway.toml:"), "{error}");
        let error = config("dictionaries = { \"FIX.9\" = \"FIX9.xml\" }").expect_err("there is no FIX.9");
        assert!(
            error.contains("possible are FIX.4.0, ") && error.ends_with(", FIX.5.0SP2 and FIXT.1.1"),
            "{error}"
        );
    }
}
