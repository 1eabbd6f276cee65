//! Every config that is shipped loads, and one with something missing, unknown or impossible is refused in words that name it.

use crate::market::Market;
use orders::{Limit, LimitScope, LimitValue, Orders};
use sim::client::ClientConfig;
use sim::exchange::ExchangeConfig;
use std::fs;
use std::path::{Path, PathBuf};
use types::{Instrument, LimitClass, SessionId};

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("configs")
}

fn text(name: &str) -> String {
    fs::read_to_string(configs().join(name)).expect("a config that is shipped")
}

#[test]
fn every_config_that_is_shipped_loads() {
    let mut loaded = 0;
    for entry in fs::read_dir(configs()).expect("the folder of configs") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        // What a file is for is the first word of its name; one with another name has to be added here.
        let error = match name {
            _ if name.starts_with("gateway") => gateway::Config::load(&path).err().map(|error| error.to_string()),
            _ if name.starts_with("exchange") => ExchangeConfig::load(&path).err().map(|error| error.to_string()),
            _ if name.starts_with("client") => ClientConfig::load(&path).err().map(|error| error.to_string()),
            _ if name.starts_with("credentials") => gateway::config::Credentials::load(&path)
                .err()
                .map(|error| error.to_string()),
            _ if name.starts_with("instruments") => {
                feeds::instruments::read(&path).err().map(|error| error.to_string())
            }
            _ => panic!("nobody knows what {name} is for"),
        };
        assert_eq!(error, None, "{name}");
        loaded += 1;
    }
    assert!(loaded >= 6, "gateway, exchange, two clients, instruments, credentials");
}

#[test]
fn check_says_that_a_config_is_fine() {
    let market = Market::new(1, "ltp");
    for program in ["gateway", "exchange"] {
        let config = format!("{program}.toml");
        let (status, printed) = market.run(&[program, "-c", &config, "--check"]);
        assert!(status.success(), "{printed}");
        assert!(printed.contains("fine"), "{printed}");
        assert!(
            program == "exchange" || printed.contains("memory: session 1 "),
            "{printed}"
        );
        assert!(
            !market.path("gateway-journal").exists(),
            "a check leaves nothing behind"
        );
    }
}

/// A line of a config, what stands there instead, and what the refusal must name.
type Case = (&'static str, &'static str, &'static [&'static str]);

fn refused(name: &str, load: impl Fn(&str) -> Option<String>, cases: &[Case]) {
    let text = text(name);
    for (line, instead, words) in cases {
        assert!(text.contains(line), "{name} has {line:?}");
        let changed = text.replacen(line, instead, 1);
        let Some(error) = load(&changed) else {
            panic!("{name} with {instead:?} for {line:?} loads")
        };
        for word in *words {
            assert!(error.contains(word), "{line:?} → {instead:?}: {error}");
        }
    }
}

fn load_gateway(text: &str) -> Option<String> {
    gateway::Config::parse(text, &configs())
        .err()
        .map(|error| error.to_string())
}

#[test]
fn a_gateway_without_a_limit_does_not_start() {
    refused(
        "gateway.toml",
        load_gateway,
        &[
            // The first of each is the account's, the others the session's or the class's.
            ("max_quantity_lots = 10_000\n", "", &["max_quantity_lots"]),
            ("max_notional = \"5000000\"\n", "", &["max_notional"]),
            ("max_open_orders = 10_000\n", "", &["max_open_orders"]),
            (
                "max_open_notional = \"500000000\" # over all shards\n",
                "",
                &["max_open_notional"],
            ),
            (
                "owner = 1                       # orders of one owner never trade with each other\nmax_open_orders = 10_000\n",
                "owner = 1\n",
                &["max_open_orders"],
            ),
            (
                "cancel_reserve_messages = 512   # of these: orders leave them free, so that cancels always pass\n",
                "",
                &["cancel_reserve_messages"],
            ),
            ("max_quantity_lots = 1_000\n", "", &["max_quantity_lots"]),
            ("max_notional = \"1000000\"\n", "", &["max_notional"]),
            ("collar = { basis_points = 1000 }\n", "", &["collar"]),
            ("reference_max_age_ms = 60_000\n", "", &["reference_max_age_ms"]),
            ("market_orders = true\n", "", &["market_orders"]),
            (
                "mark_every_ms = 1_000",
                "mark_every_ms = 0",
                &["risk.mark_every_ms = 0", "1 to 3600000"],
            ),
            (
                "mark_every_ms = 1_000",
                "mark_every_ms = 3_600_001",
                &["risk.mark_every_ms = 3600001"],
            ),
            ("open_orders = 65_536\npositions", "positions", &["open_orders"]),
        ],
    );
}

#[test]
fn a_gateway_with_something_unknown_or_impossible_does_not_start() {
    refused(
        "gateway.toml",
        load_gateway,
        &[
            (
                "trading_day = 20261130",
                "trading_day = 20261130\ntrading_dya = 1",
                &["trading_dya", "unknown"],
            ),
            ("heartbeat_ms = 10", "heartbeat_s = 10", &["heartbeat_ms", "missing"]),
            (
                "heartbeat_ms = 10",
                "heartbeat_ms = 10\nheartbeat_s = 10",
                &["heartbeat_s", "unknown"],
            ),
            (
                "cancel_reserve_messages = 512",
                "cancel_reserve_messages = 4096",
                &["cancel_reserve_messages = 4096", "window_messages = 4096"],
            ),
            (
                "name = \"sim\"\n\n[[venues.links]]\nshard = 0\ntransport = \"ltp\"",
                "name = \"sim\"\ngrants_open_orders = true\n\n[[venues.links]]\nshard = 0\ntransport = \"tcp\"",
                &["grants_open_orders", "LTP"],
            ),
            ("trading_day = 20261130", "trading_day = 20261330", &["20261330"]),
            ("idle = \"spin\"", "idle = \"sleep\"", &["sleep", "spin"]),
            ("transport = \"ltp\"", "transport = \"tcp\"", &["user", "password"]),
            (
                "transport = \"ltp\"",
                "transport = \"ltp\"\nkey_id = 1",
                &["key_id", "key_file"],
            ),
            (
                "transport = \"ltp\"",
                "transport = \"ltp\"\nkey_id = 1\nkey_file = \"none.keys\"",
                &["none.keys"],
            ),
            (
                "transport = \"ltp\"",
                "transport = \"ltp\"\nredundancy = \"thrice\"",
                &["redundancy", "twice"],
            ),
            (
                "transport = \"ltp\"",
                "transport = \"ltp\"\nredundancy = \"paths\"",
                &["second_peer"],
            ),
            (
                "transport = \"ltp\"",
                "transport = \"ltp\"\nsecond_peer = \"127.0.0.1:7301\"",
                &["redundancy", "paths"],
            ),
            (
                "transport = \"ltp\"",
                "transport = \"ltp\"\nheader = \"short\"",
                &["header", "compact"],
            ),
            (
                "max_notional = \"1000000\"",
                "max_notional = \"much\"",
                &["max_notional", "much"],
            ),
            (
                "max_notional = \"1000000\"",
                "max_notional = \"-1\"",
                &["max_notional", "-1"],
            ),
            ("accounts = [1]", "accounts = [9]", &["account 9"]),
            (
                "cl_ord_ids = 1_048_576",
                "cl_ord_ids = 1_073_741_825",
                &["session 1", "cl_ord_ids", "1073741825"],
            ),
            (
                "resend_messages = 262_144",
                "resend_messages = 9_000_000_000_000_000_000",
                &["session 1", "resend_messages"],
            ),
            (
                "send_buffer_bytes = 1_048_576",
                "send_buffer_bytes = 9_000_000_000_000_000_000",
                &["session 1", "send_buffer_bytes"],
            ),
            ("id = 2\nprotocol", "id = 1\nprotocol", &["session 1", "twice"]),
            (
                "native_listen = \"127.0.0.1:7002\"\n",
                "",
                &["session 2", "native_listen"],
            ),
            (
                "shard = 0\nclient_comp_id",
                "shard = 3\nclient_comp_id",
                &["session 1", "shard 3"],
            ),
            ("user = \"trader\" ", "user = \"stranger\" ", &["session 2", "stranger"]),
            (
                "user = \"trader\" ",
                "password = \"plain\"\nuser = \"trader\" ",
                &["password", "unknown"],
            ),
            (
                "credentials = \"credentials.txt\"",
                "credentials = \"none.txt\"",
                &["none.txt"],
            ),
            (
                "our_comp_id = \"TICKGATE\"",
                "our_comp_id = \"TICKGATE\"\nuser = \"nobody\"",
                &["session 1", "nobody", "tickgate password"],
            ),
            (
                "our_comp_id = \"TICKGATE\"",
                "our_comp_id = \"TICKGATE\"\nallow = [\"10.0.0.1/8\"]",
                &["session 1: allow", "10.0.0.1/8"],
            ),
            ("[[shards]]", "[door]\nallow = []\n[[shards]]", &["[door] allow"]),
            (
                "our_comp_id = \"TICKGATE\"",
                "our_comp_id = \"TICKGATE\"\nschedule = { zone = \"Mars\", start = \"08:00:00\", end = \"17:00:00\" }",
                &["session 1", "schedule", "Mars"],
            ),
            (
                "our_comp_id = \"TICKGATE\"",
                "our_comp_id = \"TICKGATE\"\nclient_certificate = \"00\"",
                &["session 1", "client_certificate", "client_ca"],
            ),
            (
                "[[shards]]",
                "[door]\nfix_tls_listen = \"127.0.0.1:7443\"\n[[shards]]",
                &["fix_tls_listen", "[tls]"],
            ),
            (
                "[[shards]]",
                "[door]\nfix_tls_listen = \"127.0.0.1:7443\"\n[tls]\ncertificate = \"no.pem\"\nkey = \"no.key\"\n[[shards]]",
                &["no.pem", "certificate"],
            ),
            (
                "user = \"trader\" ",
                "versions = [\"FIX.4.4\"]\nuser = \"trader\" ",
                &["session 2", "versions"],
            ),
            ("[risk.classes.default]", "[risk.classes.other]", &["default"]),
            (
                "[capacity]",
                "[risk.instruments.NONE]\nmax_quantity_lots = 5\n[capacity]",
                &["risk.instruments.NONE", "instrument master"],
            ),
            (
                "[capacity]",
                "[risk.instruments.ALFA]\nmax_repeats = 5\n[capacity]",
                &["risk.instruments.ALFA.max_repeats", "no such limit here"],
            ),
            (
                "[capacity]",
                "[risk.instruments.ALFA]\ncollar = { basis_points = \"x\" }\n[capacity]",
                &["risk.instruments.ALFA.collar", "basis_points"],
            ),
            (
                "[capacity]",
                "[risk.instruments.ALFA]\nmax_quantity_lots = 0\n[capacity]",
                &["max_quantity_lots", "zero"],
            ),
            ("name = \"sim\"", "name = \"mars\"", &["sim"]),
            (
                "instruments = \"instruments.csv\"",
                "instruments = \"none.csv\"",
                &["none.csv"],
            ),
        ],
    );
}

#[test]
fn an_instrument_has_limits_in_the_place_of_its_class() {
    let own = "[risk.instruments.ALFA]\nmax_quantity_lots = 1_005\nmax_notional = \"12.50\"\ncollar = { ticks = 7 }\n\
               market_orders = false\nreference_missing = \"refuse\"\nreference_max_age_ms = 9\n[capacity]";
    let text = text("gateway.toml").replacen("[capacity]", own, 1);
    let config = gateway::Config::parse(&text, &configs()).expect("it loads");
    let orders = Orders::new(&config.orders[0]).expect("it was checked");
    let is_alfa = |instrument: &&Instrument| instrument.symbol.as_str() == "ALFA";
    let limits = |id| {
        let values = Limit::ALL
            .iter()
            .filter_map(|&limit| orders.limit(LimitScope::Instrument(id), limit));
        values.map(|value| value.to_string()).collect::<Vec<_>>()
    };
    let alfa = limits(config.instruments.iter().find(is_alfa).expect("it is there").id);
    let left_out = [&["none"; 5][..], &["mid", "false"], &["none"; 7]].concat();
    assert_eq!(alfa[..6], ["1005", "12.5", "{ ticks = 7 }", "9", "refuse", "false"]);
    let class = ["1000", "1000000", "{ basis_points = 1000 }", "60000", "master", "true"];
    assert_eq!(alfa[6..], left_out);
    let class = [&class[..], &left_out].concat();
    let others = config.instruments.iter().filter(|instrument| !is_alfa(instrument));
    assert_eq!(others.filter(|other| limits(other.id) != class).count(), 0);
}

#[test]
fn an_amount_may_be_larger_than_a_price() {
    let firm = |amount: &str| {
        let limits = format!("[risk.firm]\nmax_open_notional = \"{amount}\"\n[capacity]");
        gateway::Config::parse(&text("gateway.toml").replacen("[capacity]", &limits, 1), &configs())
    };
    for amount in [
        "9223372036.854775807",
        "9223372036.854775808",
        "20000000000.5",
        "79228162514264337593.543950336",
    ] {
        let orders = Orders::new(&firm(amount).expect("it loads").orders[0]).expect("it was checked");
        let value = orders
            .limit(LimitScope::Firm, Limit::MaxOpenNotional)
            .expect("it is there");
        assert_eq!(value.to_string(), amount);
        assert_eq!(LimitScope::Firm.parse(Limit::MaxOpenNotional, amount), Ok(value));
    }
    for amount in ["79228162514264337593.543950337", "0"] {
        let error = firm(amount).map(drop).expect_err("it is out of range").to_string();
        assert!(
            error.contains("risk.firm.max_open_notional") && error.contains("at most"),
            "{error}"
        );
    }
}

#[test]
fn a_template_gives_as_many_sessions_as_it_has_instances() {
    let template = text("gateway.toml").replacen(
        "client_comp_id = \"TRADER\"",
        "client_comp_id = \"*\"\ninstances = 3\nversions = [\"FIX.4.0\", \"FIX.5.0SP2\"]",
        1,
    );
    let template = template.replacen("id = 1\nprotocol", "id = 10\nprotocol", 1);
    let config = gateway::Config::parse(&template, &configs()).expect("it loads");
    let instances = config
        .sessions
        .iter()
        .filter(|session| session.template == Some(SessionId(10)))
        .map(|session| session.id.0)
        .collect::<Vec<_>>();
    assert_eq!(instances, [10, 11, 12]);
    let with_accounts = |id| {
        config.orders[0]
            .sessions
            .iter()
            .any(|session| session.id == SessionId(id))
    };
    assert!((10..13).all(with_accounts), "the order logic knows each of them");
    for (line, instead, words) in [
        ("instances = 3\n", "", &["session 10", "instances"]),
        ("instances = 3\n", "instances = 0\n", &["session 10", "instances = 0"]),
        ("\"*\"", "\"TRADER\"", &["session 10", "client_comp_id"]),
        ("FIX.4.0", "FIX.3.9", &["session 10", "FIX.3.9"]),
        ("id = 2\nprotocol", "id = 11\nprotocol", &["session 11", "twice"]),
    ] {
        assert!(template.contains(line));
        let error = load_gateway(&template.replacen(line, instead, 1)).unwrap_or_default();
        for word in words {
            assert!(error.contains(word), "{line:?} → {instead:?}: {error}");
        }
    }
}

#[test]
fn sessions_that_one_client_could_be_both_of_are_refused() {
    let shipped = text("gateway.toml");
    let start = shipped.find("[[sessions]]").expect("a session");
    let end = start + 1 + shipped[start + 1..].find("[[sessions]]").expect("another");
    let twin = shipped[start..end].replacen("id = 1", "id = 7", 1);
    let error = load_gateway(&format!("{shipped}\n{twin}")).unwrap_or_default();
    assert!(error.contains("sessions 1 and 7"), "{error}");
    let other_version = twin.replacen("shard = 0", "shard = 0\nversions = [\"FIX.4.2\"]", 1);
    assert_eq!(load_gateway(&format!("{shipped}\n{other_version}")), None);
}

#[test]
fn a_drop_copy_that_cannot_be_made_is_refused() {
    let watcher = |shard: u8, accounts: &str, drop_copy: &str| {
        format!(
            "[[sessions]]\nid = 9\nprotocol = \"fix\"\nshard = {shard}\nclient_comp_id = \"WATCHER\"\nour_comp_id = \
             \"TICKGATE\"\naccounts = {accounts}\ndrop_copy = {drop_copy}\nowner = 9\nmax_open_orders = 1\nresend_messages = \
             16\ncl_ord_ids = 16\nsend_buffer_bytes = 65_536\n"
        )
    };
    let shard = "[[shards]]\nidle = \"spin\"\nfix_listen = \"127.0.0.1:7003\"\n\n[[venues]]";
    let link = "\n[[venues.links]]\nshard = 1\ntransport = \"ltp\"\nsession = 2\npeer = \
                \"127.0.0.1:7202\"\nwindow_messages = 4096\ncancel_reserve_messages = 64\nheartbeat_ms = 10\ndead_after_ms = 100\n\n[[accounts]]\n";
    let two = text("gateway.toml")
        .replacen("[[venues]]", shard, 1)
        .replacen("[[accounts]]\n", link, 1);
    let load = |session: String| load_gateway(&format!("{two}\n{session}"));
    assert_eq!(load(watcher(0, "[]", "[1, 2]")), None);
    for (session, words) in [
        (
            watcher(1, "[]", "[1]"),
            ["session 9 on shard 1", "session 1 trades on shard 0"],
        ),
        (watcher(0, "[1]", "[2]"), ["session 9", "accounts must be []"]),
        (watcher(0, "[]", "[77]"), ["session 9", "account 77"]),
    ] {
        let error = load(session).expect("it is refused");
        for word in words {
            assert!(error.contains(word), "{error}");
        }
    }
    let native = text("gateway.toml").replacen("accounts = [2]\n", "accounts = [2]\ndrop_copy = [1]\n", 1);
    let error = load_gateway(&native).expect("it is refused");
    assert!(error.contains("drop_copy is for FIX"), "{error}");
}

#[test]
fn the_session_over_a_link_of_the_page_loads_and_what_cannot_be_is_refused() {
    let page = include_str!("../docs/connect.md");
    let (_, part) = page.split_once("## Native over a link").expect("the page has it");
    let mut blocks = part.split("```");
    let (session, client) = (blocks.nth(1), blocks.nth(1));
    let toml = |block: Option<&str>| {
        block
            .and_then(|block| block.strip_prefix("toml\n"))
            .expect("TOML")
            .to_owned()
    };
    let (session, client) = (toml(session), toml(client));
    let load = |session: &str| load_gateway(&format!("{}\n{session}", text("gateway.toml")));
    assert_eq!(load(&session), None);
    for (line, instead, words) in [
        (
            "protocol = \"native\"",
            "protocol = \"fix\"",
            &["session 3", "link is for native"][..],
        ),
        (
            "window_messages = 8_192",
            "window_messages = 7_999",
            &["session 3", "window_messages = 7999", "at least 8000"],
        ),
        (
            "window_messages = 8_192",
            "window_messages = 9_000_000",
            &["window_messages", "at most"],
        ),
        (
            "owner = 2",
            "owner = 2\nresend_messages = 16",
            &["session 3", "resend_messages is for TCP"],
        ),
        (
            "owner = 2",
            "owner = 2\nallow = [\"10.0.0.0/8\"]",
            &["session 3", "allow is for TCP"],
        ),
        ("heartbeat_ms = 10", "heartbeat_ms = 0", &["session 3", "heartbeat"]),
        ("heartbeat_ms = 10", "heartbeat_s = 10", &["heartbeat_ms", "missing"]),
        (
            "heartbeat_ms = 10",
            "heartbeat_ms = 10\nheartbeat_s = 10",
            &["heartbeat_s", "unknown"],
        ),
        ("user = \"fast\" ", "user = \"trader\" ", &["sessions 2 and 3"]),
    ] {
        assert!(session.contains(line), "{line}");
        let error = load(&session.replacen(line, instead, 1)).unwrap_or_default();
        for word in words {
            assert!(error.contains(word), "{line:?} → {instead:?}: {error}");
        }
    }
    let many = (3..20).map(|id| {
        let (own, user) = (format!("id = {id}"), format!("\"fast{id}\""));
        session.replacen("id = 3", &own, 1).replacen("\"fast\"", &user, 1)
    });
    let error = load(&many.collect::<String>()).unwrap_or_default();
    assert!(error.contains("17 sessions with a link"), "{error}");

    let native = text("client-native.toml");
    let (front, rest) = native.split_once("[gateway]").expect("a table");
    let (_, rest) = rest.split_once("[feed]").expect("a table");
    let whole = format!("{front}{client}\n[feed]{rest}");
    let config = ClientConfig::parse(&whole, Path::new("configs")).expect("the page is right");
    assert_eq!(config.session, SessionId(3));
}

#[test]
fn several_shards_need_rings_that_hold_more_than_is_set_aside() {
    let shard = "[[shards]]\nidle = \"spin\"\nnative_listen = \"127.0.0.1:7004\"\n\n[[venues]]";
    let link = "\n[[venues.links]]\nshard = 1\ntransport = \"ltp\"\nsession = 2\npeer = \
                \"127.0.0.1:7202\"\nwindow_messages = 4096\ncancel_reserve_messages = 64\nheartbeat_ms = 10\ndead_after_ms = 100\n\n[[accounts]]\n";
    let two = text("gateway.toml")
        .replacen("[[venues]]", shard, 1)
        .replacen("[[accounts]]\n", link, 1);
    assert_eq!(load_gateway(&two), None);
    let error = load_gateway(&two.replacen("crossing_messages = 1_024", "crossing_messages = 64", 1));
    assert!(
        error
            .as_deref()
            .is_some_and(|error| error.contains("crossing_messages")),
        "{error:?}"
    );
}

/// The table of a link over AF_XDP.
#[test]
fn a_prefilter_says_what_stands_there_and_what_holds_after_a_fault() {
    let with = |table: &str| load_gateway(&format!("{}\n[prefilter]\n{table}", text("gateway.toml")));
    assert_eq!(with("backend = \"software\"\n"), None);
    let refused = |table: &str, words: &[&str]| {
        let error = with(table).expect("it is refused");
        for word in words {
            assert!(error.contains(word), "{error}");
        }
    };
    refused("", &["backend"]);
    refused("backend = \"board\"\n", &["board", "software", "rtl", "xdp"]);
    refused(
        "backend = \"software\"\non_fault = \"reject\"\n",
        &["on_fault", "software"],
    );
    refused("backend = \"software\"\non_fault = \"pass\"\n", &["pass", "reject"]);
    let at = "[prefilter.xdp]\ninterface = \"lo\"\nmode = \"generic\"\n";
    refused(
        &format!("backend = \"software\"\n{at}"),
        &["table xdp", "backend = \"xdp\""],
    );
    if !cfg!(feature = "rtl-sim") {
        refused("backend = \"rtl\"\n", &["no backend \"rtl\"", "--features rtl-sim"]);
    }
    if cfg!(feature = "xdp") {
        refused("backend = \"xdp\"\n", &["table xdp", "interface", "mode"]);
        refused(&format!("backend = \"xdp\"\n{at}"), &["sessions with a link"]);
    } else {
        refused(
            &format!("backend = \"xdp\"\n{at}"),
            &["no backend \"xdp\"", "--features xdp"],
        );
    }
}

const AFXDP: &str = "interface = \"eth1\"\nqueue = 0\nmode = \"auto\"\nframes = 1024\nfallback = false\n";

#[test]
fn a_link_over_af_xdp_says_on_which_queue_and_how() {
    let with = |carrier: &str, table: &str| {
        text("gateway.toml")
            .replacen("session = 1\npeer", &format!("{carrier}session = 1\npeer"), 1)
            .replacen("[[accounts]]\n", &format!("{table}\n[[accounts]]\n"), 1)
    };
    let carrier = "carrier = \"afxdp\"\n";
    let table = format!("[venues.links.afxdp]\n{AFXDP}neighbour = \"kernel\"\n");
    assert_eq!(load_gateway(&with(carrier, &table)), None);
    let refused = |carrier: &str, table: &str, words: &[&str]| {
        let error = load_gateway(&with(carrier, table)).expect("it is refused");
        for word in words {
            assert!(error.contains(word), "{error}");
        }
    };
    refused(carrier, "", &["venue sim", "shard 0", "table afxdp"]);
    refused("", &table, &["carrier = \"afxdp\""]);
    refused("carrier = \"dpdk\"\n", "", &["dpdk", "udp", "afxdp"]);
    let without = |line: &str| table.replacen(line, "", 1);
    refused(carrier, &without("neighbour = \"kernel\"\n"), &["neighbour is missing"]);
    refused(carrier, &without("fallback = false\n"), &["fallback"]);
    refused(carrier, &without("mode = \"auto\"\n"), &["mode"]);
    refused(carrier, &without("frames = 1024\n"), &["frames"]);
    refused(
        carrier,
        &table.replacen("1024", "1000", 1),
        &["frames = 1000", "power of two"],
    );

    let paths = "carrier = \"afxdp\"\nredundancy = \"paths\"\nsecond_peer = \"127.0.0.2:7201\"\n";
    refused(paths, &table, &["second_afxdp", "wants a table"]);
    let two_tables = format!("{table}{}", table.replacen("afxdp", "second_afxdp", 1));
    refused(carrier, &two_tables, &["second_afxdp is for a second path"]);
    assert_eq!(load_gateway(&with(paths, &two_tables)), None);

    let shard = "[[shards]]\nidle = \"spin\"\nnative_listen = \"127.0.0.1:7004\"\n\n[[venues]]";
    let second = format!(
        "{table}[[venues.links]]\nshard = 1\ntransport = \"ltp\"\ncarrier = \"afxdp\"\nsession = 2\npeer = \
         \"127.0.0.1:7202\"\nwindow_messages = 4096\ncancel_reserve_messages = 64\nheartbeat_ms = 10\ndead_after_ms = 100\n{table}"
    );
    let two = with(carrier, &second).replacen("[[venues]]", shard, 1);
    let error = load_gateway(&two).expect("it is refused");
    assert!(error.contains("queue 0 of eth1 is shard 0's"), "{error}");
    assert_eq!(load_gateway(&replace_last(&two, "queue = 0", "queue = 1")), None);
}

#[test]
fn a_native_client_may_come_in_over_af_xdp() {
    let session = format!(
        "{}\n[[sessions]]\nid = 9\nprotocol = \"native\"\nshard = 0\nuser = \"fast\"\naccounts = [2]\nowner = 2\n\
         max_open_orders = 10\ncancel_on_disconnect = true\n[sessions.link]\ncarrier = \"afxdp\"\nlisten = \
         \"127.0.0.1:7003\"\nwindow_messages = 1024\nheartbeat_ms = 10\ndead_after_ms = 100\n[sessions.link.afxdp]\n{AFXDP}",
        text("gateway.toml")
    );
    assert_eq!(load_gateway(&session), None);
    let error = load_gateway(&session.replacen("frames = 1024\n", "", 1)).expect("it is refused");
    assert!(error.contains("frames"), "{error}");

    let client = text("client-native.toml");
    let native = "[native]                        # or [fix]\nuser = \"trader\"                 # at most 6 characters\n\
                  password = \"secret\"             # at most 10\n";
    assert!(client.contains(native));
    let link = format!(
        "[link]\ncarrier = \"afxdp\"\njournal = \"j\"\nwindow_messages = 1024\nheartbeat_ms = 10\ndead_after_ms = 100\n\
         [link.afxdp]\n{AFXDP}neighbour = \"02:00:5e:10:00:01\"\n"
    );
    let load = |text: &str| {
        ClientConfig::parse(text, &configs())
            .err()
            .map(|error| error.to_string())
    };
    let over_xdp = client.replacen(native, &link, 1);
    assert_eq!(load(&over_xdp), None);
    let error = load(&over_xdp.replacen("neighbour", "# neighbour", 1)).expect("it is refused");
    assert!(error.contains("link: afxdp: neighbour is missing"), "{error}");
}

fn replace_last(text: &str, from: &str, to: &str) -> String {
    let (before, after) = text.rsplit_once(from).expect("it is there");
    format!("{before}{to}{after}")
}

#[test]
fn an_exchange_may_listen_over_af_xdp_and_counts_its_frames() {
    let load = |text: &str| ExchangeConfig::parse(text, &configs());
    let plain = text("exchange.toml");
    let over_xdp = plain.replacen(
        "listen = \"127.0.0.1:7201\"",
        "carrier = \"afxdp\"\nlisten = \"127.0.0.1:7201\"",
        1,
    );
    let table = format!("\n[sessions.afxdp]\n{AFXDP}");
    let (before, after) = (
        load(&plain).expect("it loads"),
        load(&(over_xdp.clone() + &table)).expect("it loads"),
    );
    let grown = after.memory(&after.core(Vec::new())) - before.memory(&before.core(Vec::new()));
    assert!((1_024 * 2_048..1_024 * 2_200).contains(&grown), "{grown}");
    let with_neighbour = load(&(over_xdp + &table + "neighbour = \"kernel\"\n")).expect_err("it learns that");
    assert!(with_neighbour.to_string().contains("learns it"), "{with_neighbour}");
}

#[test]
fn an_exchange_with_something_missing_unknown_or_impossible_does_not_start() {
    refused(
        "exchange.toml",
        |text| {
            ExchangeConfig::parse(text, &configs())
                .err()
                .map(|error| error.to_string())
        },
        &[
            ("orders = 262_144 ", "ordres = 262_144 ", &["ordres", "unknown"]),
            ("client_orders = 65_536\n", "", &["client_orders"]),
            ("special_orders = 4_096 ", "# ", &["special_orders"]),
            ("idle = \"backoff\"", "idle = \"sleep\"", &["sleep"]),
            ("window_messages = 65_536 ", "", &["window_messages"]),
            (
                "transport = \"ltp\"",
                "transport = \"ltp\"\nheader = \"compact\"",
                &["16384"],
            ),
            (
                "transport = \"ltp\"",
                "transport = \"ltp\"\nredundancy = \"paths\"",
                &["second_listen"],
            ),
        ],
    );
}

#[test]
fn a_client_with_something_missing_unknown_or_impossible_does_not_start() {
    refused(
        "client-native.toml",
        |text| {
            ClientConfig::parse(text, &configs())
                .err()
                .map(|error| error.to_string())
        },
        &[
            ("seed = 2 ", "sede = 2 ", &["sede", "unknown"]),
            ("orders_max = 20_000\n", "", &["orders_max"]),
            ("ioc_percent = 60 ", "ioc_percent = 101 ", &["ioc_percent", "101"]),
            ("user = \"trader\" ", "user = \"seventeen\" ", &["user", "seventeen"]),
            ("every_ticks = 4 ", "every_ticks = 0 ", &["every_ticks", "orders_per_s"]),
        ],
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let market = Market::new(1, "ltp");
    for program in ["gateway", "exchange", "client"] {
        let (status, printed) = market.run(&[program, "-c", "nowhere.toml"]);
        assert_eq!(status.code(), Some(1));
        assert!(printed.contains("nowhere.toml"), "{printed}");
        assert_eq!(printed.trim_end().lines().count(), 1, "one line: {printed}");
    }
}

#[test]
fn listeners_and_defaults_are_the_safe_ones() {
    let config = gateway::Config::load(&configs().join("gateway.toml")).expect("it loads");
    for shard in &config.shards {
        for address in [shard.fix_listen, shard.native_listen].into_iter().flatten() {
            assert!(address.ip().is_loopback(), "{address}");
        }
    }
    let silent = text("gateway.toml").replace("cancel_on_disconnect = true\n", "");
    let config = gateway::Config::parse(&silent, &configs()).expect("it loads");
    let sessions = &config.orders[0].sessions;
    assert!(!sessions.is_empty() && sessions.iter().all(|session| session.cancel_on_disconnect));
}

#[test]
fn memory_is_computed_from_the_config_and_printed_at_start_up() {
    let market = Market::new(1, "ltp");
    let total = |name: &str| {
        let mut gateway = market.start(name, &["gateway", "-c", "gateway.toml"]);
        gateway.wait_for("running; interrupt to stop");
        let printed = gateway.printed();
        gateway.stop();
        let mut rows = printed
            .lines()
            .filter_map(|line| line.strip_prefix("memory: "))
            .map(|row| {
                let (what, bytes) = row.rsplit_once(' ').expect("a number in its row");
                (what.trim().to_owned(), bytes.parse::<usize>().expect("bytes"))
            });
        let sum = rows
            .by_ref()
            .take_while(|(what, _)| what != "total")
            .map(|(_, bytes)| bytes);
        let sum = sum.sum::<usize>();
        assert!(
            printed.contains(&format!("{sum}\n")),
            "the rows make the total: {printed}"
        );
        sum
    };
    let small = total("small");
    fs::remove_dir_all(market.path("gateway-journal")).expect("the journal");
    let larger = market
        .gateway_config()
        .replacen("ring_bytes = 8_388_608", "ring_bytes = 16_777_216", 1);
    market.write("gateway.toml", &larger);
    assert_eq!(total("large"), small + 8_388_608);
}

#[test]
fn memory_goes_by_the_number_of_instruments_and_not_by_their_ids() {
    let market = Market::new(1, "ltp");
    let path = market.path("instruments.csv");
    let instruments = fs::read_to_string(&path).expect("the instrument master");
    let memory = || {
        let (status, text) = market.run(&["gateway", "-c", "gateway.toml", "--check"]);
        assert!(status.success(), "{text}");
        let rows = text.lines().filter(|line| line.starts_with("memory: "));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    let dense = memory();
    for name in ["pre-filter", "instruments", "reference prices", "total"] {
        let start = format!("memory: {name} ");
        assert!(dense.iter().any(|row| row.starts_with(&start)), "{dense:?}");
    }
    let sparse = instruments.replacen("\n1,", "\n4294967295,", 1);
    assert_ne!(sparse, instruments);
    fs::write(&path, sparse).expect("the instrument master");
    assert_eq!(memory(), dense);
}

#[test]
fn a_table_without_a_maximum_is_refused() {
    refused(
        "gateway.toml",
        load_gateway,
        &[
            ("crossing_messages = 1_024\n", "", &["crossing_messages"]),
            ("positions = 1_024\n", "", &["positions"]),
            ("own_books = 1_024\n", "", &["own_books"]),
            ("window_messages = 4096\n", "", &["window_messages"]),
            ("resend_messages = 262_144\n", "", &["resend_messages"]),
            ("cl_ord_ids = 1_048_576          # a day\n", "", &["cl_ord_ids"]),
            ("send_buffer_bytes = 1_048_576\n", "", &["send_buffer_bytes"]),
            (
                "send_buffer_bytes = 1_048_576\n",
                "send_buffer_bytes = 1\n",
                &["send_buffer_bytes"],
            ),
            (
                "ring_bytes = 67_108_864         # in shared memory: survives a crash of the process, not of the machine\n",
                "",
                &["ring_bytes"],
            ),
        ],
    );
}

#[test]
fn half_a_rate_is_refused_and_limits_that_are_left_out_are_told() {
    let market = Market::new(1, "ltp");
    let (_, text) = market.run(&["gateway", "-c", "gateway.toml", "--check"]);
    assert!(text.contains("no position limit: 5 of 5 accounts\n"), "{text}");
    let config = market.gateway_config();
    let account = "max_open_orders = 20_000\n";
    let half = config.replacen(account, &format!("{account}max_orders_per_second = 100\n"), 1);
    market.write("gateway.toml", &half);
    let (status, text) = market.run(&["gateway", "-c", "gateway.toml", "--check"]);
    assert!(!status.success());
    assert!(
        text.contains("max_orders_per_second, max_orders_at_once and rate_action belong together"),
        "{text}"
    );
    let more =
        "max_orders_per_second = 100\nmax_orders_at_once = 10\nrate_action = \"reject\"\nmax_position_lots = 500\n";
    market.write(
        "gateway.toml",
        &config.replacen(account, &format!("{account}{more}"), 1),
    );
    let (_, text) = market.run(&["gateway", "-c", "gateway.toml", "--check"]);
    for told in [
        "no position limit: 4 of 5 accounts\n",
        "no rate limit: 4 of 5 accounts\n",
    ] {
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn every_limit_can_be_written_and_names_what_there_is() {
    let text = text("gateway.toml");
    let account = "max_open_notional = \"500000000\" # over all shards\n";
    assert!(text.contains(account), "the config changed");
    let load = |class: &str, of_account: &str, of_session: &str, end: &str| {
        let text = text.replacen("market_orders", &format!("{class}market_orders"), 1);
        let text = text.replacen(account, &format!("{account}{of_account}"), 1);
        let text = text.replacen("owner = ", &format!("{of_session}owner = "), 1);
        gateway::Config::parse(&text.replacen("[capacity]", &format!("{end}[capacity]"), 1), &configs())
    };
    let class = "reference = \"last\"\nrestricted = true\nauction_max_quantity_lots = 5\nauction_max_notional = \"9.5\"\n\
                 auction_collar = \"off\"\n\
                 max_open_orders = 90\nmax_open_notional = \"900\"\nmax_position_lots = 9\nmax_long_lots = 8\nmax_short_lots = 0\n\
                 book = { ticks = 2, missing = \"skip\" }\nmax_orders_per_second = 9\nmax_orders_at_once = 3\nrate_action = \"reject\"\n";
    let of_account = "restricted_classes = [\"default\"]\nrestricted_symbols = [\"ALFA\"]\nmax_long_lots = 5\n\
                      max_short_lots = 0\nshort_sales = \"with_locate\"\nmax_gross_notional = \"7\"\n\
                      max_net_notional = \"6\"\nmax_loss = \"5\"\n";
    let of_session = "max_open_notional = \"80\"\nmax_quantity_lots = 8\nmax_notional = \"8.5\"\nmax_repeats = 2\nrepeats_within_ms = 100\n\
                      restricted_classes = [\"default\"]\nrestricted_symbols = [\"ALFA\"]\n";
    let firm = "[risk.firm]\nmax_quantity_lots = 7\nmax_notional = \"70\"\nmax_open_notional = \"100\"\nmax_open_orders = 3\n\
                max_gross_notional = \"90\"\nmax_net_notional = \"80\"\nmax_loss = \"7\"\nmax_orders_per_second = 9\n\
                max_orders_at_once = 3\nrate_action = \"disconnect\"\n";
    let config = load(class, of_account, of_session, firm).expect("it loads");
    let orders = Orders::new(&config.orders[0]).expect("it was checked");
    let (account, session) = (config.orders[0].accounts[0].id, config.orders[0].sessions[0].id);
    for (scope, left_out) in [
        (LimitScope::Firm, 0),
        (LimitScope::Class(LimitClass(0)), 0),
        (LimitScope::Session(session), 3),
        (LimitScope::Account(account), 4),
    ] {
        let values = Limit::ALL.iter().filter_map(|&limit| orders.limit(scope, limit));
        let absent = values.filter(|value| *value == LimitValue::None).count();
        assert_eq!(absent, left_out, "{scope:?}: rates, and any position limit");
    }
    assert!(config.limits_left_out().iter().all(|left_out| left_out.whose != "firm"));
    for (class, account, session, told) in [
        (
            "",
            "restricted_classes = [\"none\"]\n",
            "",
            "names none, which is no limit class",
        ),
        (
            "",
            "restricted_symbols = [\"NONE\"]\n",
            "",
            "names NONE, which is not in the instrument master",
        ),
        (
            "",
            "",
            "max_repeats = 3\n",
            "max_repeats and repeats_within_ms belong together",
        ),
        (
            "",
            "",
            "max_repeats = 17\nrepeats_within_ms = 1\n",
            "max_repeats = 17 is not possible; 1 to 16",
        ),
        ("reference = \"best\"\n", "", "", "reference"),
        ("max_orders_at_once = 3\n", "", "", "belong together"),
        ("book = { ticks = 2 }\n", "", "", "missing"),
        ("book = { missing = \"skip\" }\n", "", "", "zero or too high"),
    ] {
        let error = load(class, account, session, "").expect_err(told).to_string();
        assert!(error.contains(told), "{told}: {error}");
    }
}
