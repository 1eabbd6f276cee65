//! The file with the keys of LTP links. The config has a key's id; its bits stand in a file of their own, so that a config
//! can be shown to anybody, and they appear in no log and no message.

use proto::ltp::Key;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Reads the key with this id from a file that has one a line, its id and 32 hexadecimal digits; `#` begins a comment.
/// (`echo 7 $(openssl rand -hex 16)` makes such a line.)
///
/// # Errors
/// What is wrong with the file: it cannot be read, anybody may read it, it is longer than [`FILE_MAX`], a line is no key, or the key is not in it.
pub(super) fn read_key(path: &Path, id: u32) -> Result<Key, String> {
    let in_file = |what: &str| format!("key file {}: {what}", path.display());
    let failed = |error: io::Error| in_file(&error.to_string());
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.permissions().mode() & MODE_OF_OTHERS != 0 {
        return Err(in_file("anybody may read it; chmod o-rwx"));
    }
    let text = read_all(file).map_err(failed)?;
    find(&text, id).map_err(|what| in_file(&what))
}

/// Reads to the end, or up to the limit: what has no end, as a device, is refused too.
fn read_all(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(FILE_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_MAX {
        let what = format!("it is longer than {FILE_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok(text)
}

fn find(text: &str, id: u32) -> Result<Key, String> {
    let mut found = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        // The line itself is not told: it may be a secret.
        let key = parse(line).ok_or_else(|| format!("line {number} is no id above 0 and 32 hexadecimal digits"))?;
        if key.id == id && found.replace(key).is_some() {
            return Err(format!("key {id} stands in it twice"));
        }
    }
    found.ok_or_else(|| format!("key {id} is not in it"))
}

fn parse(line: &str) -> Option<Key> {
    let (id, digits) = line.split_once(char::is_whitespace)?;
    let (id, digits) = (id.parse().ok()?, digits.trim());
    if id == 0 || digits.len() != 32 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let secret = u128::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some(Key { id, secret })
}

/// Longest file of keys, bytes: some 20,000 keys.
const FILE_MAX: u64 = 1 << 20;
/// Permissions of everybody else.
const MODE_OF_OTHERS: u32 = 0o007;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const TEXT: &str =
        "# of the links\n7 00112233445566778899aabbccddeeff # venue A\n\n8\tffffffffffffffffffffffffffffffff\n";

    #[test]
    fn a_key_is_found_by_its_id() {
        let key = find(TEXT, 7).unwrap();
        assert_eq!((key.id, key.secret[..3].to_vec()), (7, vec![0x00, 0x11, 0x22]));
        assert_eq!(find(TEXT, 8).unwrap().secret, [0xff; 16]);
        assert_eq!(find(TEXT, 9).unwrap_err(), "key 9 is not in it");
    }

    #[test]
    fn what_is_no_key_is_told_without_telling_it() {
        for bad in [
            "7",
            "7 0011",
            "0 00112233445566778899aabbccddeeff",
            "x 00112233445566778899aabbccddeeff",
        ] {
            let error = find(bad, 7).unwrap_err();
            assert_eq!(error, "line 1 is no id above 0 and 32 hexadecimal digits");
        }
        let twice = format!("{TEXT}{TEXT}");
        assert_eq!(find(&twice, 7).unwrap_err(), "key 7 stands in it twice");
    }

    #[test]
    fn a_file_without_an_end_is_refused() {
        let error = read_all(File::open("/dev/zero").unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 1048576 bytes");
        assert_eq!(read_all(TEXT.as_bytes()).unwrap(), TEXT);
        assert!(read_all(io::repeat(b'#').take(FILE_MAX)).is_ok());
    }

    #[test]
    fn a_file_that_anybody_may_read_is_refused() {
        let path = std::env::temp_dir().join(format!("ltp-keys-{}", std::process::id()));
        fs::write(&path, TEXT).unwrap();
        let read = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            read_key(&path, 7)
        };
        assert!(read(0o640).is_ok());
        let error = read(0o644).unwrap_err();
        assert!(error.ends_with("anybody may read it; chmod o-rwx"), "{error}");
        fs::remove_file(&path).unwrap();
        let error = read_key(&path, 7).unwrap_err();
        assert!(error.starts_with("key file "), "{error}");
    }
}
