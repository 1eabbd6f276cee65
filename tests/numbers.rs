//! Every number that a config may have: one that is too high, zero or below is refused in words that name its key, or it is
//! one that means something, and neither the check of the config nor the sums over it overflow.

use gateway::Config;
use sim::client::ClientConfig;
use sim::exchange::ExchangeConfig;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("configs")
}

fn text(name: &str) -> String {
    fs::read_to_string(configs().join(name)).expect("a config that is shipped")
}

/// Replaces parts that must be there.
fn with(text: &str, parts: &[(&str, &str)]) -> String {
    parts.iter().fold(text.to_owned(), |text, (part, other)| {
        assert!(text.contains(part), "{part}");
        text.replacen(part, other, 1)
    })
}

/// The gateway's example with every number that it leaves out.
fn gateway() -> String {
    with(
        &text("gateway.toml"),
        &[
            ("credentials = ", "# credentials = "),
            (
                "watermark = \"appended\"  ",
                "watermark = \"appended\"\ndrainer_cpu = 0\n#",
            ),
            (
                "request = \"127.0.0.1:7100\"\n",
                "request = \"127.0.0.1:7100\"\ncpu = 0\n",
            ),
            (
                "order_types = { stop = \"venue\", stop_limit = \"venue\", iceberg = \"venue\", peg_primary = \"venue\", peg_mid = \"venue\" }",
                "order_types = { stop = \"emulate\", stop_limit = \"emulate\", iceberg = \"emulate\", peg_primary = \"emulate\", peg_mid = \"emulate\" }",
            ),
            (
                "dead_after_ms = 1000            # of silence: then the link is down, and orders for it are refused\n",
                "dead_after_ms = 1000\nreorder_allowance_us = 50\nudp = { busy_poll_us = 1, incoming_cpu = 0, send_buffer_bytes = 65536, receive_buffer_bytes = 65536 }\n\
              [[venues]]\nname = \"tcp\"\n[[venues.links]]\nshard = 0\ntransport = \"tcp\"\nsession = 1\npeer = \"127.0.0.1:7202\"\nuser = \"gate\"\npassword = \"secret\"\n\
              window_messages = 4096\ncancel_reserve_messages = 512\nheartbeat_ms = 10\ndead_after_ms = 1000\n\
              tcp = { no_delay = true, rto_min_us = 2000, user_timeout_ms = 1000, notsent_lowat_bytes = 1000, busy_poll_us = 1, incoming_cpu = 0, send_buffer_bytes = 65536, receive_buffer_bytes = 65536 }\n\
              [[venues]]\nname = \"roce\"\n[[venues.links]]\nshard = 0\ntransport = \"roce\"\nsession = 1\npeer = \"127.0.0.1:7203\"\nwindow_messages = 4096\ncancel_reserve_messages = 512\n\
              heartbeat_ms = 10\ndead_after_ms = 1000\nroce = { local = \"127.0.0.2\", peer = \"127.0.0.3\", mtu_bytes = 1024, dscp = 1, priority = 1, rate_control_line_mbit_s = 10000 }\n\
              [[venues]]\nname = \"xdp\"\n[[venues.links]]\nshard = 0\ntransport = \"ltp\"\nsession = 1\npeer = \"127.0.0.1:7204\"\nwindow_messages = 4096\ncancel_reserve_messages = 512\n\
              heartbeat_ms = 10\ndead_after_ms = 1000\ncarrier = \"afxdp\"\nafxdp = { interface = \"lo\", queue = 0, mode = \"copy\", neighbour = \"kernel\", frames = 8192, fallback = true }\n",
            ),
            (
                "max_open_notional = \"500000000\" # over all shards\n",
                "max_open_notional = \"500000000\"\nmax_position_lots = 100\nmax_long_lots = 100\nmax_short_lots = 100\nmax_gross_notional = \"5000000\"\nmax_net_notional = \"5000000\"\n\
              max_loss = \"5000000\"\nmax_orders_per_second = 100\nmax_orders_at_once = 10\nrate_action = \"queue\"\n",
            ),
            (
                "send_buffer_bytes = 1_048_576\n",
                "send_buffer_bytes = 1_048_576\nmax_quantity_lots = 100\nmax_notional = \"5000000\"\nmax_orders_per_second = 100\nmax_orders_at_once = 10\nrate_action = \"reject\"\n\
              max_repeats = 3\nrepeats_within_ms = 1000\nresend_chunk = 100\n\
              [[sessions]]\nid = 10\nprotocol = \"fix\"\nshard = 0\nclient_comp_id = \"*\"\ninstances = 2\nour_comp_id = \"TICKGATE\"\naccounts = [1]\nowner = 1\nmax_open_orders = 10\n\
              resend_messages = 1000\ncl_ord_ids = 1000\nsend_buffer_bytes = 65536\n\
              [[sessions]]\nid = 5\nprotocol = \"native\"\nshard = 0\nuser = \"linked\"\naccounts = [2]\nowner = 3\ncrossing = true\nmax_open_orders = 100\n\
              [sessions.link]\nlisten = \"127.0.0.1:7300\"\nwindow_messages = 16384\nheartbeat_ms = 10\ndead_after_ms = 500\n",
            ),
            (
                "# book = { ticks = 10, missing = \"refuse\" } ",
                "book = { ticks = 10, basis_points = 100, missing = \"refuse\" }\nmax_orders_per_second = 100\nmax_orders_at_once = 10\nrate_action = \"queue\"\nauction_max_quantity_lots = 100\n\
              auction_max_notional = \"5000000\"\nauction_collar = { basis_points = 100, ticks = 10 }\n#",
            ),
            (
                "collar = { basis_points = 1000 }",
                "collar = { basis_points = 1000, ticks = 10 }",
            ),
            (
                "[capacity]",
                "[risk.firm]\nmax_open_notional = \"500000000\"\nmax_open_orders = 1000\n[risk.rate_queue]\norders = 64\nwait_ms = 100\n\
              [risk.instruments.ALFA]\nmax_quantity_lots = 100\nmax_notional = \"5000000\"\nreference_max_age_ms = 1000\nmax_orders_per_second = 100\nmax_orders_at_once = 10\n\
              [first_stage]\nown_cancel_wait_ms = 250\nwaiting_orders = 64\nheld_orders = 1024\npeg_interval_ms = 50\n[first_stage.crossing]\nsymbols = [\"ALFA\"]\nrest_ms = 20\n[capacity]",
            ),
        ],
    )
}

/// The exchange's example with every number that it leaves out.
fn exchange() -> String {
    with(
        &text("exchange.toml"),
        &[
            ("idle = ", "cpu = 0\nidle = "),
            ("watermark = ", "drainer_cpu = 0\nwatermark = "),
            (
                "cancel_on_disconnect = true ",
                "open_orders_max = 100\nreorder_allowance_us = 50\n#",
            ),
        ],
    )
}

/// The client's example over a link.
fn client_link() -> String {
    with(
        &text("client-native.toml"),
        &[(
            "[native]                        # or [fix]\nuser = \"trader\"                 # at most 6 characters\npassword = \"secret\"             # at most 10\n",
            "[link]\njournal = \"journal\"\nwindow_messages = 16384\nheartbeat_ms = 10\ndead_after_ms = 500\n",
        )],
    )
}

/// A number of a config.
#[derive(Clone, Debug)]
struct Number {
    key: String,
    /// Of the file.
    line: usize,
    /// Where its digits stand in the text; with the quotes, where it has some.
    from: usize,
    to: usize,
}

/// All of a text's numbers.
fn numbers(text: &str) -> Vec<Number> {
    let mut all = Vec::new();
    let mut start = 0;
    for (line, content) in (1..).zip(text.split_inclusive('\n')) {
        let code = content.split('#').next().expect("a first part");
        for (at, _) in code.match_indices(" = ") {
            let key = code[..at].rsplit([' ', '{', ',']).next().expect("a key");
            let value = &code[at + 3..];
            let quote = usize::from(value.starts_with('"'));
            let digits = value[quote..]
                .find(|c: char| !c.is_ascii_digit() && c != '_')
                .unwrap_or(value.len() - quote);
            let ends = &value[quote + digits..];
            let is_number = digits > 0
                && (if quote == 1 {
                    ends.starts_with('"')
                } else {
                    !ends.starts_with(['.', ':'])
                });
            if is_number {
                let from = start + at + 3;
                all.push(Number {
                    key: key.to_owned(),
                    line,
                    from,
                    to: from + digits + 2 * quote,
                });
            }
        }
        start += content.len();
    }
    all
}

/// Keys whose number is a name, a place or a seed, or of which any number means something: any is as good as another.
const NAMES: [&str; 8] = [
    "id",
    "session",
    "account",
    "owner",
    "shard",
    "seed",
    "every_ticks",
    "resend_chunk",
];

/// Keys that may be as high as their type, and what keeps sums over them in bounds.
const HIGH: [&str; 13] = [
    // Compared with a count that other maxima bound.
    "max_open_orders",
    "open_orders_max",
    "max_position_lots",
    "max_long_lots",
    "max_short_lots",
    // A rate's sum is of 32 bits times a second, in 64 bits.
    "max_orders_per_second",
    "max_orders_at_once",
    // Widths are multiplied in 128 bits.
    "basis_points",
    "ticks",
    // What one order may have: 32 bits.
    "max_quantity_lots",
    "auction_max_quantity_lots",
    "lots_max",
    "oversize_lots",
];

/// Keys that may be zero: nothing is there, at once, or none is let through.
const ZERO: [&str; 28] = [
    "cpu",
    "drainer_cpu",
    "incoming_cpu",
    "queue",
    "dscp",
    "priority",
    "busy_poll_us",
    "reorder_allowance_us",
    "user_timeout_ms",
    "notsent_lowat_bytes",
    "max_short_lots",
    "resend_messages",
    "cl_ord_ids",
    "basis_points",
    "ticks",
    "reference_max_age_ms",
    "own_cancel_wait_ms",
    "waiting_orders",
    "crossing_messages",
    "special_orders",
    "window_messages",
    "open_orders_max",
    "heartbeat_s",
    "orders_per_s",
    "ioc_percent",
    "oversize_lots",
    "held_orders",
    "rate_control_line_mbit_s",
];

/// What stands in the place of each number.
const TRIED: [&str; 7] = [
    "18446744073709551615",
    "9223372036854775807",
    "100000000000001",
    "4294967295",
    "4000000000",
    "0",
    "-1",
];

/// Whether a key may have a number: it is one that means something.
fn may_be(key: &str, value: &str) -> bool {
    match value {
        "0" => NAMES.contains(&key) || ZERO.contains(&key),
        "-1" => false,
        // Of a day in milliseconds, or of bytes and lots, these are more than anyone means; money is another matter.
        _ => NAMES.contains(&key) || HIGH.contains(&key) || key.ends_with("notional") || key == "max_loss",
    }
}

/// Loads the config with each of its numbers replaced, and says what is wrong.
fn wrong_in(name: &str, text: &str, load: &dyn Fn(&str) -> Result<(), String>) -> Vec<String> {
    load(text).expect("with its own numbers it loads");
    let numbers = numbers(text);
    assert!(numbers.len() > 10, "{name}");
    let mut wrong = Vec::new();
    for Number { key, line, from, to } in numbers {
        let quote = if text[from..].starts_with('"') { "\"" } else { "" };
        for value in TRIED {
            let changed = format!("{}{quote}{value}{quote}{}", &text[..from], &text[to..]);
            let says = match catch_unwind(AssertUnwindSafe(|| load(&changed))) {
                Err(_) => "panics".to_owned(),
                Ok(Ok(())) if may_be(&key, value) => continue,
                Ok(Ok(())) => "loads".to_owned(),
                // In some tables a number of the wrong type is told as it stands, with the line of its table.
                Ok(Err(error)) if error.contains(&key) || error.contains(&format!("integer `{value}`")) => continue,
                // Others refer to it by its number.
                Ok(Err(_)) if NAMES.contains(&&*key) => continue,
                Ok(Err(error)) => error,
            };
            wrong.push(format!("{name}, line {line}: {key} = {value}: {says}"));
        }
    }
    wrong
}

#[test]
fn every_number_of_a_gateway_is_bounded_and_what_is_refused_is_named() {
    let load = |text: &str| {
        let config = Config::parse(text, &configs()).map_err(|error| error.to_string())?;
        // What a start prints first: a sum that overflows panics here.
        let bytes: usize = gateway::memory::memory(&config).iter().map(|(_, bytes)| bytes).sum();
        assert!(bytes > 0);
        Ok(())
    };
    let wrong = wrong_in("gateway", &gateway(), &load);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_number_of_an_exchange_is_bounded_and_what_is_refused_is_named() {
    let load = |text: &str| {
        let config = ExchangeConfig::parse(text, &configs()).map_err(|error| error.to_string())?;
        let bytes = config.memory(&config.core(Vec::new())) + config.link_memory();
        assert!(bytes > 0);
        Ok(())
    };
    let wrong = wrong_in("exchange", &exchange(), &load);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_number_of_a_client_is_bounded_and_what_is_refused_is_named() {
    let load = |text: &str| match ClientConfig::parse(text, &configs()) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    for (name, text) in [
        ("client-fix", text("client-fix.toml")),
        ("client-native", text("client-native.toml")),
        ("client-link", client_link()),
    ] {
        let wrong = wrong_in(name, &text, &load);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// A user that no login can name would be refused by every logon, or end in a panic.
#[test]
fn a_native_user_that_cannot_log_on_is_refused() {
    let text = text("gateway.toml").replacen("credentials = ", "# credentials = ", 1);
    for user in ["seventeen", "a b", "", "é"] {
        let changed = text.replacen("user = \"trader\"", &format!("user = \"{user}\""), 1);
        let error = Config::parse(&changed, &configs())
            .expect_err("nobody is called that")
            .to_string();
        assert!(
            error.contains("session 2: user") && error.contains("at most 6"),
            "{error}"
        );
    }
}
