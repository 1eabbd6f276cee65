//! The instrument master: `configs/instruments.csv`, one instrument a line.
//!
//! ```text
//! id,symbol,tick_size,lot_size,reference_price,limit_class,shard,venue
//! 1,ALFA,0.01,1,101.37,default,0,sim
//! ```
//! Empty lines and lines that begin with `#` are skipped. Limit class and venue are names here; the gateway's config knows
//! which they are.

use crate::limits::MAX_INSTRUMENTS;
use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::hash::Hash;
use std::io;
use std::path::Path;
use types::{InstrumentId, Price, ShardId, Symbol};

/// The columns, as the first line names them.
pub const HEADER: &str = "id,symbol,tick_size,lot_size,reference_price,limit_class,shard,venue";

/// One line of the instrument master.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstrumentRow {
    /// Identifies the instrument; not 0.
    pub id: InstrumentId,
    /// Its symbol on FIX, OUCH and feeds.
    pub symbol: Symbol,
    /// Smallest price step, more than 0.
    pub tick_size: Price,
    /// Units in a lot, more than 0.
    pub lot_size: u32,
    /// Price that stands in where no feed gives one; more than 0.
    pub reference_price: Price,
    /// Name of the limit class.
    pub limit_class: String,
    /// The shard that owns its orders.
    pub shard: ShardId,
    /// Name of the venue its orders go to.
    pub venue: String,
}

/// Why a file is no instrument master.
#[derive(Debug)]
pub struct InstrumentsError {
    file: String,
    /// 0: the file as a whole.
    line: usize,
    what: String,
}

/// Reads an instrument master.
///
/// # Errors
/// The file cannot be read, or a line is wrong: which, and what is wrong with it.
pub fn read(path: &Path) -> Result<Vec<InstrumentRow>, InstrumentsError> {
    let file = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => parse(&text, &file),
        Err(error) => {
            let advice = match error.kind() {
                io::ErrorKind::NotFound => "; `tickgate replay FEED --instruments FILE` writes one from a feed",
                _ => "",
            };
            Err(InstrumentsError {
                file,
                line: 0,
                what: format!("reading the instrument master: {error}{advice}"),
            })
        }
    }
}

/// Reads an instrument master from text; errors call it `file`.
///
/// # Errors
/// A line is wrong: which, and what is wrong with it.
pub fn parse(text: &str, file: &str) -> Result<Vec<InstrumentRow>, InstrumentsError> {
    let error = |line, what| InstrumentsError {
        file: file.to_owned(),
        line,
        what,
    };
    let mut lines = (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    match lines.next() {
        Some((_, HEADER)) => {}
        Some((number, other)) => {
            return Err(error(
                number,
                format!("the first line is '{other}' in place of '{HEADER}'"),
            ));
        }
        None => return Err(error(0, "there are no lines".to_owned())),
    }
    let mut rows = Vec::new();
    let mut ids = HashMap::new();
    let mut symbols = HashMap::new();
    for (number, line) in lines {
        let row = InstrumentRow::parse(line).map_err(|what| error(number, what))?;
        once(&mut ids, "id", row.id, number).map_err(|what| error(number, what))?;
        once(&mut symbols, "symbol", row.symbol, number).map_err(|what| error(number, what))?;
        rows.push(row);
        if rows.len() > MAX_INSTRUMENTS {
            return Err(error(
                number,
                format!("there are more than {MAX_INSTRUMENTS} instruments"),
            ));
        }
    }
    if rows.is_empty() {
        return Err(error(0, "there are no instruments".to_owned()));
    }
    Ok(rows)
}

/// Remembers the line of a value and refuses its second appearance.
fn once<T: Copy + Eq + Hash + fmt::Display>(
    seen: &mut HashMap<T, usize>,
    name: &str,
    value: T,
    line: usize,
) -> Result<(), String> {
    match seen.insert(value, line) {
        None => Ok(()),
        Some(earlier) => Err(format!("{name} {value} is on line {earlier} already")),
    }
}

/// Writes an instrument master.
///
/// # Errors
/// The output cannot be written.
pub fn write(rows: &[InstrumentRow], mut output: impl io::Write) -> io::Result<()> {
    writeln!(output, "{HEADER}")?;
    for row in rows {
        writeln!(output, "{row}")?;
    }
    Ok(())
}

impl InstrumentRow {
    fn parse(line: &str) -> Result<Self, String> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [
            id,
            symbol,
            tick_size,
            lot_size,
            reference_price,
            limit_class,
            shard,
            venue,
        ] = fields[..]
        else {
            return Err(format!("{} fields in place of 8 ({HEADER})", fields.len()));
        };
        Ok(Self {
            id: InstrumentId(positive("id", id)?),
            symbol: Symbol::new(symbol.as_bytes()).ok_or_else(|| {
                format!(
                    "symbol '{symbol}' is not 1 to {} printable characters without blanks",
                    Symbol::MAX_LENGTH
                )
            })?,
            tick_size: price("tick_size", tick_size)?,
            lot_size: positive("lot_size", lot_size)?,
            reference_price: price("reference_price", reference_price)?,
            limit_class: name("limit_class", limit_class)?,
            shard: ShardId(
                shard
                    .parse()
                    .map_err(|_| format!("shard '{shard}' is not a whole number from 0 to 255"))?,
            ),
            venue: name("venue", venue)?,
        })
    }
}

fn positive(field: &str, text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(value @ 1..) => Ok(value),
        _ => Err(format!("{field} '{text}' is not a whole number from 1 to {}", u32::MAX)),
    }
}

fn price(field: &str, text: &str) -> Result<Price, String> {
    match Price::parse(text.as_bytes()) {
        Some(price) if price > Price(0) => Ok(price),
        _ => Err(format!(
            "{field} '{text}' is not a price above 0 with at most 9 decimals"
        )),
    }
}

fn name(field: &str, text: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if text.is_empty() || !text.bytes().all(is_name) {
        return Err(format!(
            "{field} '{text}' is not a name of letters, digits, '_' and '-'"
        ));
    }
    Ok(text.to_owned())
}

impl fmt::Display for InstrumentRow {
    /// The line, without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{},{},{},{},{},{},{},{}",
            self.id,
            self.symbol,
            self.tick_size,
            self.lot_size,
            self.reference_price,
            self.limit_class,
            self.shard,
            self.venue
        )
    }
}

impl fmt::Display for InstrumentsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.what),
            line => write!(f, "{}:{line}: {}", self.file, self.what),
        }
    }
}

impl std::error::Error for InstrumentsError {}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "1,ALFA,0.01,1,101.37,default,0,sim";

    fn parse_lines(lines: &[&str]) -> Result<Vec<InstrumentRow>, String> {
        let text = [&[HEADER], lines].concat().join("\n");
        parse(&text, "x.csv").map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_is_read_back() {
        let rows = parse_lines(&[
            LINE,
            "# a comment",
            "",
            "2,BRAVO,0.0001,100,0.5,small-caps,3,other_venue",
        ])
        .expect("rows");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].to_string(), LINE);
        assert_eq!((rows[1].lot_size, rows[1].shard), (100, ShardId(3)));
        let mut text = Vec::new();
        write(&rows, &mut text).expect("written");
        assert_eq!(parse(&String::from_utf8_lossy(&text), "x.csv").expect("rows"), rows);
    }

    #[test]
    fn a_wrong_line_is_named_with_what_is_wrong() {
        for (line, what) in [
            ("2,B,0.01,1,1,default,0", "x.csv:3: 7 fields in place of 8"),
            ("0,B,0.01,1,1,default,0,sim", "x.csv:3: id '0' is not a whole number"),
            ("2,B B,0.01,1,1,default,0,sim", "x.csv:3: symbol 'B B' is not"),
            (
                "2,B,0,1,1,default,0,sim",
                "x.csv:3: tick_size '0' is not a price above 0",
            ),
            ("2,B,0.01,0,1,default,0,sim", "x.csv:3: lot_size '0' is not"),
            ("2,B,0.01,1,-1,default,0,sim", "x.csv:3: reference_price '-1' is not"),
            ("2,B,0.01,1,1,,0,sim", "x.csv:3: limit_class '' is not a name"),
            ("2,B,0.01,1,1,default,256,sim", "x.csv:3: shard '256' is not"),
            ("2,B,0.01,1,1,default,0,s/m", "x.csv:3: venue 's/m' is not a name"),
            ("1,B,0.01,1,1,default,0,sim", "x.csv:3: id 1 is on line 2 already"),
            (
                "2,ALFA,0.01,1,1,default,0,sim",
                "x.csv:3: symbol ALFA is on line 2 already",
            ),
        ] {
            let error = parse_lines(&[LINE, line]).expect_err(line);
            assert!(error.starts_with(what), "{error}");
        }
    }

    #[test]
    fn a_file_without_header_or_instruments_is_refused() {
        assert!(parse("", "x.csv").is_err());
        assert!(parse_lines(&[]).is_err());
        let error = parse(LINE, "x.csv").expect_err("no header").to_string();
        assert!(error.starts_with("x.csv:1: the first line is '1,ALFA"), "{error}");
    }

    #[test]
    fn a_missing_file_says_how_to_make_one() {
        let error = read(Path::new("/nowhere/instruments.csv"))
            .expect_err("missing")
            .to_string();
        assert!(
            error.contains("/nowhere/instruments.csv") && error.contains("--instruments"),
            "{error}"
        );
    }
}
