//! The credentials file: for each user a hash of its password, never the password.
//!
//! A line is `user:$argon2id$…`, the hash as a PHC string; `tickgate password USER` makes one. Empty lines and lines that
//! begin with `#` are skipped. A running gateway reads the file again when it has changed.

use super::ConfigError;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, Params};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// All users that can prove who they are.
#[derive(Clone, Default, Debug)]
pub struct Credentials {
    users: Users,
    file: Option<File>,
    /// Most bytes that one check needs, counted when the file was first read.
    check_bytes: usize,
}

/// Where credentials are from, and what was seen of the file last.
#[derive(Clone, PartialEq, Eq, Debug)]
struct File {
    path: PathBuf,
    modified: SystemTime,
    length: u64,
}

type Users = BTreeMap<String, Arc<Secret>>;

/// What is known of one user's password.
pub(crate) struct Secret {
    hash: PasswordHash,
    memory_kib: u32,
}

/// Most memory that a hash may need, KiB: several checks run at a time.
const MEMORY_KIB_MAX: u32 = 256 << 10;

/// A file that was written less than this ago may still be written.
const SETTLED: Duration = Duration::from_secs(1);

/// Most passes over it that a hash may need: a check takes tens of milliseconds, not seconds.
const PASSES_MAX: u32 = 16;

impl Credentials {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or a line is none; the message names it, and never what is in it.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let file = File::look(path).map_err(|error| ConfigError::new(path, error))?;
        let users = read(path)?;
        let memory_kib = users.values().map(|secret| secret.memory_kib).max();
        Ok(Self {
            users,
            file: Some(file),
            check_bytes: memory_kib.unwrap_or(0) as usize * 1_024,
        })
    }

    /// Reads the file again if it has changed and is not being written. Gives the users of now; when something is wrong
    /// with it, those of before and what it is. Takes time: the file is read.
    pub(crate) fn reload(&self) -> Option<(Self, Option<ConfigError>)> {
        let known = self.file.as_ref()?;
        // One that is away for a moment is about to be replaced.
        let file = File::look(&known.path).ok().filter(|file| file != known)?;
        if file.modified.elapsed().is_ok_and(|age| age < SETTLED) {
            return None;
        }
        let users = read(&known.path).and_then(|users| self.fits(users));
        let (users, error) = match users {
            Ok(users) => (users, None),
            Err(error) => (self.users.clone(), Some(error)),
        };
        let credentials = Self {
            users,
            file: Some(file),
            check_bytes: self.check_bytes,
        };
        Some((credentials, error))
    }

    /// Users whose checks need no more memory than was counted at start-up.
    fn fits(&self, users: Users) -> Result<Users, ConfigError> {
        let is_dearer = |(_, secret): &(&String, &Arc<Secret>)| secret.memory_kib as usize * 1_024 > self.check_bytes;
        match users.iter().find(is_dearer) {
            None => Ok(users),
            Some((user, secret)) => Err(ConfigError(format!(
                "the hash of {user} needs {} KiB, more than any did at start-up; restart the gateway to take it",
                secret.memory_kib
            ))),
        }
    }

    pub(crate) fn get(&self, user: &str) -> Option<&Arc<Secret>> {
        self.users.get(user)
    }

    /// Whether they are of a file: without one nobody needs a password.
    pub(crate) const fn are_of_a_file(&self) -> bool {
        self.file.is_some()
    }

    /// How many users there are.
    pub(crate) fn count(&self) -> usize {
        self.users.len()
    }

    /// Most bytes that one check needs.
    pub(crate) const fn check_bytes(&self) -> usize {
        self.check_bytes
    }
}

impl File {
    fn look(path: &Path) -> std::io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            modified: metadata.modified()?,
            length: metadata.len(),
        })
    }
}

/// The users of a file.
fn read(path: &Path) -> Result<Users, ConfigError> {
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
    Ok(users)
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

    /// The file's text is now this, and was written that many seconds ago.
    fn write(path: &Path, text: &str, ago: u64) {
        std::fs::write(path, text).expect("it can be written");
        let file = std::fs::File::options().write(true).open(path).expect("it is there");
        let then = SystemTime::now() - Duration::from_secs(ago);
        file.set_modified(then).expect("it is ours");
    }

    #[test]
    fn a_file_that_changes_is_read_again_and_a_bad_one_leaves_the_users_as_they_were() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path();
        let (one, two) = (line("one", b"x").expect("a line"), line("two", b"y").expect("a line"));
        write(path, &one, 100);
        let first = Credentials::load(path).expect("it loads");
        assert!(first.reload().is_none(), "nothing has changed");
        write(path, &format!("{one}\n{two}\n"), 0);
        assert!(first.reload().is_none(), "it may still be written");
        write(path, &format!("{one}\n{two}\n"), 50);
        let (second, error) = first.reload().expect("it has changed");
        assert!(error.is_none() && second.get("two").is_some());

        for bad in ["two", &two.replace("m=19456", "m=20000")] {
            write(path, bad, 40);
            let (third, error) = second.reload().expect("it has changed");
            assert!(error.is_some() && third.get("one").is_some(), "{bad}");
            assert!(third.reload().is_none(), "it is told once");
        }
        write(path, &two, 30);
        let (last, error) = second.reload().expect("it has changed");
        assert!(error.is_none() && last.get("one").is_none() && last.get("two").is_some());
        std::fs::remove_file(path).expect("it is there");
        assert!(last.reload().is_none(), "one that is away is no change");
        std::fs::write(path, "").expect("it can be written");
    }

    #[test]
    fn a_name_that_would_break_the_file_is_refused() {
        for name in ["", "a b", "a:b", "#a", "ä"] {
            assert!(line(name, b"x").is_err(), "{name}");
        }
    }
}
