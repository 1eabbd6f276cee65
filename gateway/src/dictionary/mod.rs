//! Data dictionaries in the QuickFIX XML form: the ones that come with the gateway, and those that a user brings.
//!
//! `gateway/dictionaries/` has one file a version, with the messages of an order gateway as the FIX specifications list
//! them. FIX 5.0 and later come in two files: `FIXT11.xml` is the session layer (header, trailer and administrative
//! messages) under all of them. A user who needs another field, group, value or message copies the file of his version,
//! changes it and names it in the config; the dictionaries that QuickFIX ships are read as they are.

mod reader;

#[cfg(test)]
mod tests;

use crate::limits::MAX_DICTIONARY_BYTES;
use proto::fix::Version;
use proto::fix::dictionary::Definition;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads the dictionary of a version: `file`, or the one that comes with the gateway. From FIX 5.0 on it is the
/// application's alone, see [`load_transport`].
///
/// # Errors
/// The file cannot be read, is longer than [`MAX_DICTIONARY_BYTES`], is no dictionary or is another version's.
pub fn load(version: Version, file: Option<&Path>) -> Result<Definition, DictionaryError> {
    read(layer_of(version), file)
}

/// Reads the session layer of FIX 5.0 and later, FIXT.1.1: `file`, or the one that comes with the gateway.
///
/// # Errors
/// As [`load`].
pub fn load_transport(file: Option<&Path>) -> Result<Definition, DictionaryError> {
    read(TRANSPORT, file)
}

fn read(layer: Layer, file: Option<&Path>) -> Result<Definition, DictionaryError> {
    let Some(path) = file else {
        return reader::read(layer.default, layer).map_err(|error| error.of_file(layer.default_name));
    };
    let name = path.display().to_string();
    let problem = |problem: String| DictionaryError::at(0, problem).of_file(&name);
    let mut text = String::new();
    // One byte more than is allowed tells a file that is too long.
    let read = File::open(path)
        .and_then(|file| file.take(MAX_DICTIONARY_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| problem(error.to_string()))?;
    if read as u64 > MAX_DICTIONARY_BYTES {
        return Err(problem(format!("is longer than {MAX_DICTIONARY_BYTES} bytes")));
    }
    reader::read(&text, layer).map_err(|error| error.of_file(&name))
}

/// What the root element of a dictionary must say, and the default of it.
#[derive(Clone, Copy, Debug)]
struct Layer {
    /// `FIX` or `FIXT`.
    kind: &'static str,
    major: u32,
    minor: u32,
    service_pack: u32,
    default: &'static str,
    default_name: &'static str,
}

impl Layer {
    /// The layer without a session layer of its own: FIX 5.0 and its service packs.
    fn is_application_only(self) -> bool {
        self.kind == "FIX" && self.major >= 5
    }
}

macro_rules! layer {
    ($kind:literal, $major:literal, $minor:literal, $service_pack:literal, $name:literal) => {
        Layer {
            kind: $kind,
            major: $major,
            minor: $minor,
            service_pack: $service_pack,
            default: include_str!(concat!("../../dictionaries/", $name)),
            default_name: $name,
        }
    };
}

const TRANSPORT: Layer = layer!("FIXT", 1, 1, 0, "FIXT11.xml");

const fn layer_of(version: Version) -> Layer {
    match version {
        Version::Fix40 => layer!("FIX", 4, 0, 0, "FIX40.xml"),
        Version::Fix41 => layer!("FIX", 4, 1, 0, "FIX41.xml"),
        Version::Fix42 => layer!("FIX", 4, 2, 0, "FIX42.xml"),
        Version::Fix43 => layer!("FIX", 4, 3, 0, "FIX43.xml"),
        Version::Fix44 => layer!("FIX", 4, 4, 0, "FIX44.xml"),
        Version::Fix50 => layer!("FIX", 5, 0, 0, "FIX50.xml"),
        Version::Fix50Sp1 => layer!("FIX", 5, 0, 1, "FIX50SP1.xml"),
        Version::Fix50Sp2 => layer!("FIX", 5, 0, 2, "FIX50SP2.xml"),
    }
}

/// Why a dictionary cannot be used, with the place in its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DictionaryError {
    file: String,
    /// From 1; 0 when it is about the file as a whole.
    line: u32,
    problem: String,
}

impl DictionaryError {
    fn at(line: u32, problem: String) -> Self {
        Self {
            file: String::new(),
            line,
            problem,
        }
    }

    fn of_file(mut self, file: &str) -> Self {
        file.clone_into(&mut self.file);
        self
    }
}

impl fmt::Display for DictionaryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, problem } = self;
        match line {
            0 => write!(formatter, "{file}: {problem}"),
            _ => write!(formatter, "{file}:{line}: {problem}"),
        }
    }
}

impl std::error::Error for DictionaryError {}
