//! The credentials file: for each user a hash of its password, never the password.
//!
//! A line is `user:$argon2id$…`, the hash as a PHC string; `tickgate password USER` makes one. Empty lines and lines that
//! begin with `#` are skipped.

use super::ConfigError;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, Params};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// All users that can prove who they are.
#[derive(Clone, Default, Debug)]
pub struct Credentials(BTreeMap<String, Arc<Secret>>);

/// What is known of one user's password.
pub(crate) struct Secret {
    hash: PasswordHash,
    memory_kib: u32,
}

/// Most memory that a hash may need, KiB: several checks run at a time.
const MEMORY_KIB_MAX: u32 = 256 << 10;

/// Most passes over it that a hash may need: a check takes tens of milliseconds, not seconds.
const PASSES_MAX: u32 = 16;

impl Credentials {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or a line is none; the message names it, and never what is in it.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::new(path, error))?;
        let mut users = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |what: &str| ConfigError::new(path, format!("line {number}: {what}"));
            let (user, hash) = line
                .split_once(':')
                .ok_or_else(|| bad("not of the form user:hash; `tickgate password USER` makes a line"))?;
            let secret = Secret::parse(hash).map_err(|what| bad(&what))?;
            if users.insert(user.to_owned(), Arc::new(secret)).is_some() {
                return Err(bad(&format!("user {user} stands twice")));
            }
        }
        Ok(Self(users))
    }

    pub(crate) fn get(&self, user: &str) -> Option<&Arc<Secret>> {
        self.0.get(user)
    }

    /// Most bytes that one check needs.
    pub(crate) fn check_bytes(&self) -> usize {
        let most = self.0.values().map(|secret| secret.memory_kib).max();
        most.unwrap_or(0) as usize * 1_024
    }
}

impl Secret {
    fn parse(text: &str) -> Result<Self, String> {
        let hash = PasswordHash::new(text).map_err(|error| format!("the hash is no PHC string: {error}"))?;
        if hash.algorithm.as_str() != "argon2id" || hash.salt.is_none() || hash.hash.is_none() {
            return Err("the hash is none of argon2id".to_owned());
        }
        let params = Params::try_from(&hash).map_err(|error| format!("the hash's parameters: {error}"))?;
        let memory_kib = params.m_cost();
        if memory_kib > MEMORY_KIB_MAX || params.t_cost() > PASSES_MAX {
            return Err(format!(
                "the hash needs {memory_kib} KiB and {} passes; at most {MEMORY_KIB_MAX} and {PASSES_MAX}",
                params.t_cost()
            ));
        }
        Ok(Self { hash, memory_kib })
    }

    /// Whether it is the hash of this password. Takes tens of milliseconds.
    pub(crate) fn is_of(&self, password: &[u8]) -> bool {
        Argon2::default().verify_password(password, &self.hash).is_ok()
    }
}

/// Without the hash.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The line of a credentials file for a user and its password, with a salt of its own.
///
/// # Errors
/// The name cannot stand in such a file, or the system gives no random numbers.
pub fn line(user: &str, password: &[u8]) -> Result<String, ConfigError> {
    if user.is_empty()
        || !user
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b':' && byte != b'#')
    {
        return Err(ConfigError(format!(
            "user \"{user}\": printable ASCII without blanks, ':' and '#' is possible"
        )));
    }
    let hash: PasswordHash = Argon2::default()
        .hash_password(password)
        .map_err(|error| ConfigError(format!("hashing the password: {error}")))?;
    Ok(format!("{user}:{hash}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Credentials, ConfigError> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("it can be written");
        Credentials::load(file.path())
    }

    #[test]
    fn a_line_is_of_its_password_and_no_other_and_is_never_shown() {
        let line = line("desk7", b"open sesame").expect("a line");
        assert!(line.starts_with("desk7:$argon2id$"), "{line}");
        let credentials = load(&format!("# a comment\n\n{line}\n")).expect("it loads");
        let secret = credentials.get("desk7").expect("a user");
        assert!(secret.is_of(b"open sesame"));
        assert!(!secret.is_of(b"open says me") && !secret.is_of(b""));
        assert!(credentials.get("desk8").is_none());
        let shown = format!("{credentials:?}");
        assert!(shown.contains("desk7") && !shown.contains("argon2"), "{shown}");
    }

    #[test]
    fn a_line_that_is_none_is_named_and_not_repeated() {
        let weak = "x:$argon2i$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$8s0mLpUZGtTmP5kKmqUeGyhJzKyqZfQ4Q0Zl0PT8S9c";
        let dear = "x:$argon2id$v=19$m=9999999,t=2,p=1$c2FsdHNhbHQ$8s0mLpUZGtTmP5kKmqUeGyhJzKyqZfQ4Q0Zl0PT8S9c";
        for (text, words) in [
            ("# fine\nuser\n", ["line 2", "user:hash"]),
            ("user:password\n", ["line 1", "PHC"]),
            (weak, ["line 1", "argon2id"]),
            (dear, ["line 1", "9999999 KiB"]),
        ] {
            let error = load(text).expect_err("it does not load").to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
            assert!(!error.contains("password\n") && !error.contains("8s0m"), "{error}");
        }
        let one = line("twice", b"x").expect("a line");
        let error = load(&format!("{one}\n{one}\n"))
            .expect_err("it does not load")
            .to_string();
        assert!(error.contains("line 2") && error.contains("twice"), "{error}");
    }

    #[test]
    fn a_name_that_would_break_the_file_is_refused() {
        for name in ["", "a b", "a:b", "#a", "ä"] {
            assert!(line(name, b"x").is_err(), "{name}");
        }
    }
}
