//! Against `gen_itch.py`, a generator in Python that tells in JSON what its feed holds: counts by type, final best prices
//! and depth, live orders, executed shares. `TICKGATE_TOOLS` names the folder it is in.

use feeds::{BinaryFile, Ending, Inspection};
use proto::itch::{BookCounters, BookLimits, Books, Message, parse};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use types::{Price, Quote, Side, Symbol};

/// A feed and what its generator says of it; `None` when the generator cannot be run.
fn generate(directory: &Path, arguments: &[&str]) -> Option<(PathBuf, Value)> {
    let Some(tools) = std::env::var_os("TICKGATE_TOOLS") else {
        eprintln!("skipped: TICKGATE_TOOLS does not name the folder of gen_itch.py");
        return None;
    };
    let (feed, summary) = (directory.join("feed"), directory.join("summary.json"));
    let run = Command::new("python3")
        .arg(Path::new(&tools).join("gen_itch.py"))
        .arg(&feed)
        .args(arguments)
        .arg("--summary")
        .arg(&summary)
        .stderr(Stdio::null())
        .status();
    match run {
        Ok(status) if status.success() => {}
        other => {
            eprintln!("skipped: gen_itch.py of TICKGATE_TOOLS cannot be run with python3: {other:?}");
            return None;
        }
    }
    let summary = std::fs::read(summary).expect("summary");
    Some((feed, serde_json::from_slice(&summary).expect("JSON")))
}

#[test]
fn books_agree_with_the_generator() {
    let directory = tempfile::tempdir().expect("directory");
    let arguments = ["--messages", "150000", "--symbols", "40", "--seed", "7", "--gzip"];
    let Some((feed, summary)) = generate(directory.path(), &arguments) else {
        return;
    };
    let mut books = Books::new(&BookLimits {
        instruments: 40,
        orders: 1 << 16,
        levels: 512,
    });
    let mut counts = BTreeMap::<String, u64>::new();
    let mut executed = vec![0; 40];
    let mut file = BinaryFile::open(&feed).expect("feed");
    while let Some(bytes) = file.next_message().expect("message") {
        let message = parse(bytes).expect("valid");
        if let Message::StockDirectory(directory) = message {
            books.add(directory.stock.symbol().expect("symbol"));
        }
        *counts.entry(char::from(bytes[0]).to_string()).or_default() += 1;
        let change = books.apply(&message);
        let shares = match message {
            Message::OrderExecuted(executed) => executed.shares.get(),
            Message::OrderExecutedWithPrice(at_price) => at_price.executed.shares.get(),
            _ => continue,
        };
        let locate = message.header().stock_locate.get();
        assert!(change.is_none_or(|change| Some(change.index) == books.at_locate(locate)));
        executed[books.at_locate(locate).expect("named")] += u64::from(shares);
    }
    assert_eq!(file.ending(), Some(Ending::EndOfFile));
    assert_eq!(serde_json::to_value(counts).expect("JSON"), summary["counts"]);
    assert_eq!(books.live_orders() as u64, summary["live_orders"]);
    assert_eq!(books.counters(), BookCounters::default());
    for (symbol, expected) in summary["books"].as_object().expect("books") {
        let locate = expected["locate"].as_u64().expect("locate");
        let index = books.at_locate(locate.try_into().expect("16 bits")).expect("named");
        assert_eq!(books.symbol(index), Symbol::new(symbol.as_bytes()).expect("symbol"));
        let bbo = books.bbo(index);
        assert_eq!(bbo.bid, quote(&expected["bid"], &expected["bid_qty"]), "{symbol}");
        assert_eq!(bbo.ask, quote(&expected["ask"], &expected["ask_qty"]), "{symbol}");
        let levels = [Side::Buy, Side::Sell].map(|side| books.depth(index, side).count());
        assert_eq!(
            serde_json::to_value(levels).expect("JSON"),
            expected["levels"],
            "{symbol}"
        );
        assert_eq!(executed[index], expected["executed"], "{symbol}");
    }
}

#[test]
fn an_inspection_agrees_with_the_generator() {
    let directory = tempfile::tempdir().expect("directory");
    let Some((feed, summary)) = generate(directory.path(), &["--messages", "20000", "--symbols", "5"]) else {
        return;
    };
    let mut inspection = Inspection::new(None);
    let mut file = BinaryFile::open(&feed).expect("feed");
    while let Some(bytes) = file.next_message().expect("message") {
        inspection.on_message(bytes);
    }
    assert_eq!(inspection.messages(), summary["messages"]);
    assert_eq!(
        (
            inspection.unknown_types(),
            inspection.malformed(),
            inspection.steps_back()
        ),
        (0, 0, 0)
    );
    assert_eq!(inspection.time_range(), Some((10_800_000_000_000, 72_000_000_000_000)));
    let (rows, left_out) = inspection.instrument_rows("default", "sim");
    assert_eq!((rows.len(), left_out), (5, 0));
    for (row, facts) in rows.iter().zip(inspection.symbols()) {
        let expected = &summary["books"][row.symbol.as_str()];
        assert_eq!(facts.bbo.bid, quote(&expected["bid"], &expected["bid_qty"]));
        assert!(row.reference_price.is_multiple_of(row.tick_size), "{row}");
    }
}

fn quote(price_e4: &Value, shares: &Value) -> Quote {
    match price_e4.as_i64() {
        Some(price_e4) => Quote {
            price: Price::from_e4(price_e4).expect("price"),
            quantity: types::Quantity(shares.as_u64().expect("shares")),
        },
        None => Quote::default(),
    }
}
