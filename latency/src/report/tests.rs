//! Runs made up by hand, so that every figure of their report is known.

use std::collections::BTreeSet;

use types::{
    ClientOrderId, ExecType, InstrumentId, OrderId, Price, Quantity, Reason, SessionId, ShardId, Side, Trigger,
};

use super::*;
use crate::histogram::Percentiles;
use crate::record::{
    ClientOrder, ClientReport, ClientRequest, Counter, ExchangeOpen, ExchangeOrder, ExchangeReport, Floor, FloorLeg,
    GatewayChild, GatewayOpen, GatewayOrder, GatewayReport, Name, OPEN_ORDERS, Phase, Record, RequestKind, TickSent,
};
use crate::recorder::{Header, Host, Placement, Recording};
use crate::tap::{Stamps, Tap};

/// Start of every run, UTC ns.
const START: u64 = 1_767_225_600_000_000_000;

/// Lots of every order.
const LOTS: Quantity = Quantity(100);

/// From each tap to the next, ns: 1,100 to 2,400.
fn hop_ns(tap: Tap) -> u64 {
    1_000 + 100 * tap.index() as u64
}

/// What becomes of an order in a made-up run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Filled,
    Cancelled,
    Expired,
    Open,
    RefusedByGateway,
    RefusedByVenue,
    /// The acknowledgement never reaches the client.
    Lost,
    /// Acknowledged, and the exchange does not list it at the end.
    Vanished,
}

/// A made-up run: the records of each component.
#[derive(Default)]
struct Run {
    client: Vec<Record>,
    gateway: Vec<Record>,
    exchange: Vec<Record>,
    orders: u64,
    open: u64,
}

impl Run {
    /// An order that is sent `at` ns after the start; the first or last tick of a packet of ten causes it.
    fn order(&mut self, protocol: Protocol, at: u64, fate: Fate) -> &mut Self {
        self.orders += 1;
        let number = self.orders;
        let order_id = OrderId::new(ShardId(1), number);
        let trigger = Trigger::new(1, number * 10 + if number.is_multiple_of(2) { 0 } else { 9 });
        let mut times = [Timestamp::NONE; Tap::COUNT];
        let mut time = START + at - hop_ns(Tap::TickReceived) - hop_ns(Tap::OrderSent);
        for tap in Tap::ALL {
            time += if *tap == Tap::TickSent { 0 } else { hop_ns(*tap) };
            times[tap.index()] = Timestamp(time);
        }
        let of = |tap: Tap| times[tap.index()];
        let session = SessionId(protocol as u16);
        let client_order_id = ClientOrderId(number);

        self.exchange.push(
            TickSent {
                trigger: Trigger::new(1, number * 10),
                count: 10,
                time: of(Tap::TickSent),
            }
            .into(),
        );
        self.client.push(
            ClientOrder {
                protocol,
                side: Side::Buy,
                session,
                instrument: InstrumentId(7),
                client_order_id,
                trigger,
                planned: Timestamp::NONE,
                tick_received: of(Tap::TickReceived),
                order_sent: of(Tap::OrderSent),
                quantity: LOTS,
                price: Price(12_500_000_000),
            }
            .into(),
        );
        let refused = fate == Fate::RefusedByGateway;
        let mut stamps = Stamps::received(of(Tap::GatewayReceived));
        let reached = if refused { Tap::Decoded } else { Tap::VenueSent };
        for &tap in Tap::ALL
            .iter()
            .filter(|&&tap| tap > Tap::GatewayReceived && tap <= reached)
        {
            stamps.mark(tap, of(tap));
        }
        self.gateway.push(
            GatewayOrder {
                protocol,
                reason: if refused { Reason::MaxQuantity } else { Reason::None },
                session,
                instrument: InstrumentId(7),
                client_order_id,
                order_id,
                trigger,
                kernel_received: Timestamp::NONE,
                stamps,
            }
            .into(),
        );
        if !refused {
            self.exchange.push(
                ExchangeOrder {
                    order_id,
                    time: of(Tap::ExchangeReceived),
                }
                .into(),
            );
        }
        let acknowledged = !matches!(fate, Fate::RefusedByGateway | Fate::RefusedByVenue);
        let first = if acknowledged {
            ExecType::New
        } else {
            ExecType::Rejected
        };
        let leaves = if acknowledged { LOTS } else { Quantity::ZERO };
        let reason = match fate {
            Fate::RefusedByGateway => Reason::MaxQuantity,
            Fate::RefusedByVenue => Reason::BookFull,
            _ => Reason::None,
        };
        self.report(session, client_order_id, order_id, first, reason, leaves, &times, fate);
        let last = |exec_type, reason| Some((exec_type, reason));
        let end = match fate {
            Fate::Filled => last(ExecType::Fill, Reason::None),
            Fate::Cancelled => last(ExecType::Canceled, Reason::Unfilled),
            Fate::Expired => last(ExecType::Expired, Reason::DayEnded),
            _ => None,
        };
        if let Some((exec_type, reason)) = end {
            let later = times.map(|time| Timestamp(time.0 + 50_000));
            self.report(
                session,
                client_order_id,
                order_id,
                exec_type,
                reason,
                Quantity::ZERO,
                &later,
                fate,
            );
        }
        if fate == Fate::Open {
            self.open += 1;
            self.exchange.push(ExchangeOpen { order_id, leaves: LOTS }.into());
        }
        self
    }

    #[allow(clippy::too_many_arguments, reason = "a test's own short form of three records")]
    fn report(
        &mut self,
        session: SessionId,
        client_order_id: ClientOrderId,
        order_id: OrderId,
        exec_type: ExecType,
        reason: Reason,
        leaves: Quantity,
        times: &[Timestamp; Tap::COUNT],
        fate: Fate,
    ) {
        let of = |tap: Tap| times[tap.index()];
        let (last_quantity, last_price) = match exec_type {
            ExecType::Fill => (LOTS, Price(12_500_000_000)),
            _ => (Quantity::ZERO, Price::NULL),
        };
        let by_gateway = fate == Fate::RefusedByGateway;
        if !by_gateway {
            self.exchange.push(
                ExchangeReport {
                    exec_type,
                    order_id,
                    time: of(Tap::ExchangeReported),
                }
                .into(),
            );
        }
        self.gateway.push(
            GatewayReport {
                exec_type,
                reason,
                order_id,
                venue_received: if by_gateway {
                    Timestamp::NONE
                } else {
                    of(Tap::VenueReceived)
                },
                report_encoded: of(Tap::ReportEncoded),
                report_sent: of(Tap::ReportSent),
                last_quantity,
                last_price,
                leaves,
            }
            .into(),
        );
        if fate == Fate::Lost {
            return;
        }
        self.client.push(
            ClientReport {
                exec_type,
                reason,
                session,
                client_order_id,
                order_id,
                time: of(Tap::ReportReceived),
                last_quantity,
                last_price,
                leaves,
            }
            .into(),
        );
    }

    fn floor(&mut self, leg: FloorLeg, p50_ns: u64) -> &mut Self {
        for &protocol in Protocol::ALL {
            let round_trips = Percentiles {
                count: 1_000,
                p50_ns: Some(p50_ns.cast_signed()),
                ..Default::default()
            };
            self.client
                .push(Floor::of_round_trips(leg, protocol, "TCP loopback", &round_trips).into());
        }
        self
    }

    /// The exchange says that it has listed its open orders.
    fn list_open_orders(&mut self) -> &mut Self {
        let counter = Counter {
            time: Timestamp(START),
            value: self.open,
            name: Name::new(OPEN_ORDERS),
        };
        self.exchange.push(counter.into());
        self
    }

    fn write(&self) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, records) in [
            ("client", &self.client),
            ("gateway", &self.gateway),
            ("exchange", &self.exchange),
        ] {
            if !records.is_empty() {
                write_recording(dir.path(), name, records);
            }
        }
        dir
    }

    fn load(&self) -> Report {
        let dir = self.write();
        Report::load(&[dir.path().to_owned()], false).unwrap()
    }
}

fn write_recording(dir: &Path, name: &str, records: &[Record]) {
    let header = Header {
        component: name.into(),
        commit: "0.1.0 (test)".into(),
        started: START,
        host: Host {
            name: "bench".into(),
            cpu: "A <fast> CPU".into(),
            cores: 2,
            kernel: "Linux 6.1".into(),
        },
        placement: vec![Placement {
            thread: format!("{name} thread"),
            core: Some(u32::from(name != "gateway")),
        }],
        idle: "spin".into(),
        ..Header::default()
    };
    let mut recording = Recording::create(dir, name, &header).unwrap();
    for record in records {
        recording.write(*record).unwrap();
    }
    recording.finish(Timestamp(START)).unwrap();
}

fn row<'a>(rows: &'a [Row], key: &str) -> &'a Row {
    rows.iter()
        .find(|row| row.key == key)
        .unwrap_or_else(|| panic!("no row {key}"))
}

#[test]
fn latencies_of_a_known_run_are_exact() {
    let mut run = Run::default();
    for number in 0..1_000 {
        run.order(Protocol::Fix, 1_000_000 * number + 10_000, Fate::Filled);
    }
    run.floor(FloorLeg::Feed, 2_000)
        .floor(FloorLeg::Client, 4_000)
        .floor(FloorLeg::Venue, 3_000);
    run.list_open_orders();
    let report = run.load();
    assert!(report.complete, "{:?}", report.problems);
    assert_eq!(report.phases.len(), 1);
    let fix = &report.phases[0].protocols[0];
    assert_eq!((fix.protocol, report.phases[0].protocols.len()), ("FIX", 1));

    for (from, to, key, floor) in [
        (Tap::TickSent, Tap::ExchangeReceived, "tick_to_trade", Some(4_500)),
        (
            Tap::OrderSent,
            Tap::ReportReceived,
            "order_to_acknowledgement",
            Some(7_000),
        ),
        (Tap::GatewayReceived, Tap::VenueSent, "gateway_share", None),
    ] {
        let between = Tap::ALL.iter().filter(|&&tap| tap > from && tap <= to);
        let expected: i64 = between.map(|&tap| hop_ns(tap).cast_signed()).sum();
        let row = row(&fix.totals, key);
        assert_eq!(
            (row.percentiles.count, row.percentiles.p50_ns),
            (1_000, Some(expected)),
            "{key}"
        );
        assert_eq!(
            (row.percentiles.p99_ns, row.percentiles.p999_ns),
            (Some(expected), None),
            "{key}"
        );
        assert_eq!(
            (row.percentiles.max_ns, row.floor_p50_ns, row.negative),
            (Some(expected), floor, 0),
            "{key}"
        );
        #[allow(clippy::cast_precision_loss, reason = "small")]
        let ratio = floor.map(|floor: u64| (expected as f64 / floor as f64 * 1_000.0).round() / 1_000.0);
        assert_eq!(row.ratio, ratio, "{key}");
    }
    assert_eq!(fix.hops.len(), Tap::COUNT - 1);
    for hop in &fix.hops {
        let expected = hop_ns(Tap::from_name(hop.key).unwrap()).cast_signed();
        assert_eq!(
            (hop.percentiles.count, hop.percentiles.p50_ns),
            (1_000, Some(expected)),
            "{}",
            hop.key
        );
    }
    assert_eq!(row(&fix.hops, "gateway_received").floor_p50_ns, Some(2_000));
    assert_eq!(fix.orders_per_second, Some(1_000.0));
}

#[test]
fn the_median_and_the_worst_order_are_told_tap_by_tap() {
    let mut run = Run::default();
    for number in 0..21 {
        run.order(Protocol::Native, 1_000_000 * (number + 1), Fate::Open);
    }
    // Order 5 reaches the exchange late, and all that follows comes later too.
    for record in &mut run.exchange {
        if let Record::ExchangeOrder(order) = record
            && order.order_id == OrderId::new(ShardId(1), 5)
        {
            order.time = Timestamp(order.time.0 + 30_000);
        }
    }
    let report = run.load();
    let native = &report.phases[0].protocols[0];
    let (median, worst) = (native.median.as_ref().unwrap(), native.worst.as_ref().unwrap());
    assert_eq!(worst.order_id, OrderId::new(ShardId(1), 5).0);
    assert_ne!(median.order_id, worst.order_id);
    assert_eq!(median.taps.len(), Tap::COUNT);
    let late = worst
        .taps
        .iter()
        .find(|passed| passed.tap == "exchange_received")
        .unwrap();
    assert_eq!(late.hop_ns, hop_ns(Tap::ExchangeReceived).cast_signed() + 30_000);
    // The exchange's report was stamped before its late receipt: told as it is.
    assert_eq!(row(&native.hops, "exchange_reported").negative, 1);
}

#[test]
fn every_fate_is_counted_and_both_sums_hold() {
    let mut run = Run::default();
    let fates = [
        (Fate::Filled, 5),
        (Fate::Cancelled, 4),
        (Fate::Expired, 3),
        (Fate::Open, 2),
        (Fate::RefusedByGateway, 2),
        (Fate::RefusedByVenue, 1),
    ];
    let mut at = 0;
    for (fate, count) in fates {
        for _ in 0..count {
            at += 1_000_000;
            run.order(
                if at % 2_000_000 == 0 {
                    Protocol::Fix
                } else {
                    Protocol::Native
                },
                at,
                fate,
            );
        }
    }
    let report = run.list_open_orders().load();
    assert!(report.complete, "{:?}", report.problems);
    let sums = &report.accounting;
    assert_eq!(
        (sums.sent, sums.acknowledged, sums.refused, sums.unanswered),
        (17, 14, 3, 0)
    );
    assert_eq!(
        (sums.filled, sums.cancelled, sums.expired, sums.open, sums.vanished),
        (5, 4, 3, 2, 0)
    );
    assert_eq!(sums.lots_traded, 500);
    let refusals: Vec<_> = sums
        .refusals
        .iter()
        .map(|one| (one.by, one.reason, one.count))
        .collect();
    assert_eq!(
        refusals,
        [
            ("gateway", Reason::MaxQuantity.text(), 2),
            ("venue", Reason::BookFull.text(), 1)
        ]
    );
    assert_eq!(
        (sums.cancels[0].reason, sums.cancels[0].count),
        (Reason::Unfilled.text(), 4)
    );
    let both: u64 = report.phases[0]
        .protocols
        .iter()
        .map(|protocol| protocol.accounting.sent)
        .sum();
    assert_eq!(both, sums.sent);
}

#[test]
fn a_lost_order_is_named_with_the_last_tap_it_passed() {
    let mut run = Run::default();
    run.order(Protocol::Fix, 1_000_000, Fate::Filled)
        .order(Protocol::Fix, 2_000_000, Fate::Lost);
    let report = run.load();
    assert!(!report.complete);
    assert_eq!(report.accounting.unanswered, 1);
    let lost = &report.lost_orders[0];
    assert_eq!(
        (lost.client_order_id, lost.status, lost.last_tap),
        (2, "unanswered", Some("report_sent"))
    );
    assert!(
        report.text().contains("unaccounted for: 1 of 2 orders"),
        "{}",
        report.text()
    );
    assert!(report.html().contains("Unaccounted for: 1 of 2 orders"));
}

#[test]
fn an_order_that_the_exchange_no_longer_has_is_lost_when_it_listed_what_it_has() {
    let mut run = Run::default();
    run.order(Protocol::Fix, 1_000_000, Fate::Open)
        .order(Protocol::Fix, 2_000_000, Fate::Vanished);
    let unlisted = run.load();
    assert_eq!(
        (
            unlisted.accounting.open,
            unlisted.accounting.vanished,
            unlisted.complete
        ),
        (2, 0, true)
    );
    let listed = run.list_open_orders().load();
    assert_eq!(
        (listed.accounting.open, listed.accounting.vanished, listed.complete),
        (1, 1, false)
    );
    assert_eq!(listed.lost_orders[0].status, "vanished");
}

#[test]
fn an_order_that_was_cancelled_because_its_client_had_gone_is_cancelled() {
    let mut run = Run::default();
    run.order(Protocol::Fix, 1_000_000, Fate::Vanished).list_open_orders();
    let canceled = GatewayReport {
        exec_type: ExecType::Canceled,
        reason: Reason::Disconnected,
        order_id: OrderId::new(ShardId(1), 1),
        venue_received: Timestamp(START + 9_000_000),
        report_encoded: Timestamp(START + 9_001_000),
        report_sent: Timestamp(START + 9_002_000),
        last_quantity: Quantity::ZERO,
        last_price: Price::NULL,
        leaves: Quantity::ZERO,
    };
    run.gateway.push(canceled.into());
    let report = run.load();
    assert_eq!(
        (report.accounting.cancelled, report.accounting.vanished, report.complete),
        (1, 0, true)
    );
}

#[test]
fn a_story_that_contradicts_itself_is_a_problem() {
    let told = |change: &dyn Fn(&mut Run)| {
        let mut run = Run::default();
        run.order(Protocol::Fix, 1_000_000, Fate::Filled).list_open_orders();
        change(&mut run);
        let report = run.load();
        assert!(!report.complete);
        report.problems.join("\n")
    };
    let first_report = |run: &Run| {
        *run.client
            .iter()
            .find(|record| matches!(record, Record::ClientReport(_)))
            .unwrap()
    };
    assert!(told(&|run| run.client.insert(1, first_report(run))).contains("acknowledged more than once"));
    assert!(told(&|run| run.client.push(*run.client.last().unwrap())).contains("after their end"));
    let no_acknowledgement = told(&|run| {
        run.client.remove(1);
    });
    assert!(
        no_acknowledgement.contains("without an acknowledgement"),
        "{no_acknowledgement}"
    );
    let other_lots = |lots: u64| {
        told(&move |run| {
            if let Some(Record::ClientReport(fill)) = run.client.last_mut() {
                fill.last_quantity = Quantity(lots);
            }
        })
    };
    assert!(other_lots(101).contains("more lots than they had"));
    assert!(other_lots(99).contains("another number of lots"));
    let order_id = OrderId::new(ShardId(1), 1);
    let still_open = told(&|run| run.exchange.push(ExchangeOpen { order_id, leaves: LOTS }.into()));
    assert!(still_open.contains("open at the exchange"));
    let unknown = OrderId::new(ShardId(1), 99);
    let stray = told(&|run| {
        run.exchange.push(
            ExchangeOrder {
                order_id: unknown,
                time: Timestamp(START),
            }
            .into(),
        )
    });
    assert!(stray.contains("in no other"));
    let missed = told(&|run| {
        run.exchange
            .retain(|record| !matches!(record, Record::ExchangeOrder(_)))
    });
    assert!(missed.contains("not in the exchange's recording"));
    let unasked = told(&|run| {
        run.order(Protocol::Fix, 2_000_000, Fate::Filled);
        let last = run
            .client
            .iter()
            .rposition(|record| matches!(record, Record::ClientOrder(_)))
            .unwrap();
        run.client.remove(last);
    });
    assert!(unasked.contains("not in their client's"), "{unasked}");
}

/// A run of one order that the gateway kept: the venue knew it by these numbers, one after the other.
fn kept(children: &[u64]) -> Run {
    let mut run = Run::default();
    run.order(Protocol::Fix, 1_000_000, Fate::Open);
    let order_id = OrderId::new(ShardId(1), 1);
    run.exchange.retain(|record| matches!(record, Record::TickSent(_)));
    for record in &mut run.gateway {
        if let Record::GatewayOrder(order) = record {
            order.stamps.mark(Tap::VenueSent, Timestamp::NONE);
        }
    }
    for (&child, at) in children.iter().zip((START + 500_000_000..).step_by(1_000_000)) {
        let child_id = OrderId::new(ShardId(1), child);
        run.gateway.push(
            GatewayChild {
                order_id,
                child_id,
                released: Timestamp(at),
                venue_sent: Timestamp(at + 700),
            }
            .into(),
        );
        run.exchange.push(
            ExchangeOrder {
                order_id: child_id,
                time: Timestamp(at + 5_000),
            }
            .into(),
        );
    }
    run.list_open_orders();
    run
}

fn row_of<'a>(report: &'a Report, key: &str) -> Option<&'a Row> {
    let rows = &report.phases[0].protocols[0].totals;
    rows.iter().find(|row| row.key == key)
}

#[test]
fn an_order_that_the_gateway_kept_is_known_by_its_children_and_timed_from_their_release() {
    let open = |order_id| Record::from(ExchangeOpen { order_id, leaves: LOTS });
    let mut run = kept(&[3, 2]);
    run.exchange.push(open(OrderId::new(ShardId(1), 3)));
    let report = run.load();
    assert_eq!(report.problems, [""; 0]);
    assert!(report.complete);
    let order = &report.orders[0];
    assert_eq!(order.status(true), Status::Open);
    let numbers: Vec<_> = order.children.iter().map(|child| child.child_id.0).collect();
    assert_eq!(numbers, [2, 3].map(|child| OrderId::new(ShardId(1), child).0));
    let row = row_of(&report, "release_to_venue").expect("its children are timed");
    assert_eq!((row.percentiles.count, row.percentiles.max_ns), (2, Some(700)));
    let row = row_of(&report, "release_to_trade").expect("its children are timed");
    assert_eq!((row.percentiles.count, row.percentiles.max_ns), (2, Some(5_000)));
    for key in ["tick_to_trade", "order_to_acknowledgement", "gateway_share"] {
        assert!(
            row_of(&report, key).is_none(),
            "{key}: how long it was kept is nobody's speed"
        );
    }

    let mut run = kept(&[2, 3]);
    run.gateway.retain(|record| !matches!(record, Record::GatewayChild(_)));
    assert!(
        run.load().problems.join("; ").contains("in no other"),
        "nobody says whose they are"
    );

    let mut run = kept(&[2, 3]);
    let first = OrderId::new(ShardId(1), 2);
    run.exchange
        .retain(|record| !matches!(record, Record::ExchangeOrder(order) if order.order_id == first));
    assert!(run.load().problems.join("; ").contains("have a child that is not in"));
}

#[test]
fn an_order_that_is_open_in_the_gateway_alone_has_not_vanished() {
    let mut run = kept(&[]);
    assert_eq!(run.load().accounting.vanished, 1);
    let open = GatewayOpen {
        order_id: OrderId::new(ShardId(1), 1),
        leaves: LOTS,
    };
    run.gateway.push(open.into());
    let report = run.load();
    assert_eq!((report.accounting.open, report.accounting.vanished), (1, 0));
    assert!(report.complete, "{:?}", report.problems);
}

#[test]
fn a_request_without_an_answer_is_a_problem() {
    let mut run = Run::default();
    run.order(Protocol::Fix, 1_000_000, Fate::Open);
    let request = ClientRequest {
        protocol: Protocol::Fix,
        request: RequestKind::Cancel,
        session: SessionId(Protocol::Fix as u16),
        client_order_id: ClientOrderId(50),
        orig_client_order_id: ClientOrderId(1),
        time: Timestamp(START + 2_000_000),
    };
    run.client.push(request.into());
    let report = run.load();
    assert_eq!(report.requests, Requests { sent: 1, answered: 0 });
    assert!(report.problems[0].contains("not answered"));

    let answer = ClientReport {
        exec_type: ExecType::Canceled,
        reason: Reason::Requested,
        session: request.session,
        client_order_id: request.client_order_id,
        order_id: OrderId::new(ShardId(1), 1),
        time: Timestamp(START + 3_000_000),
        last_quantity: Quantity::ZERO,
        last_price: Price::NULL,
        leaves: Quantity::ZERO,
    };
    run.client.push(answer.into());
    run.exchange.retain(|record| !matches!(record, Record::ExchangeOpen(_)));
    let report = run.load();
    assert_eq!(report.requests, Requests { sent: 1, answered: 1 });
    assert_eq!((report.accounting.cancelled, report.complete), (1, true));
}

#[test]
fn orders_and_counters_fall_into_their_phases() {
    let mut run = Run::default();
    for number in 0..30 {
        run.order(Protocol::Fix, 1_000_000 * (number + 1), Fate::Filled);
    }
    let phase = |start: u64, end: u64, name: &str| {
        Record::from(Phase {
            start: Timestamp(START + start),
            end: Timestamp(START + end),
            name: Name::new(name),
        })
    };
    // Out of order, as two components may write them.
    run.client.push(phase(20_500_000, 25_500_000, "1 % loss"));
    run.client.push(phase(10_500_000, 20_500_000, "normal"));
    for (at, value) in [(5_000_000, 7), (20_500_000, 7), (25_500_000, 19), (30_000_000, 20)] {
        let time = Timestamp(START + at);
        run.gateway.push(
            Counter {
                time,
                value,
                name: Name::new("link.retransmits"),
            }
            .into(),
        );
    }
    let report = run.load();
    let sent: Vec<_> = report
        .phases
        .iter()
        .map(|phase| (phase.name.as_str(), phase.protocols[0].accounting.sent))
        .collect();
    assert_eq!(sent, [("normal", 10), ("1 % loss", 5), ("outside the phases", 15)]);
    let counter = &report.counters[0];
    assert_eq!(
        (counter.name.as_str(), counter.component.as_str()),
        ("link.retransmits", "gateway")
    );
    assert_eq!((counter.by_phase.as_slice(), counter.total), (&[0, 12][..], 20));
}

#[test]
fn a_gateways_recording_alone_accounts_for_what_it_received() {
    let mut run = Run::default();
    run.order(Protocol::Fix, 1_000_000, Fate::Filled)
        .order(Protocol::Fix, 2_000_000, Fate::RefusedByGateway);
    run.order(Protocol::Fix, 3_000_000, Fate::Cancelled);
    run.client.clear();
    run.exchange.clear();
    let report = run.load();
    assert!(report.complete, "{:?}", report.problems);
    let sums = &report.accounting;
    assert_eq!((sums.sent, sums.filled, sums.cancelled, sums.refused), (3, 1, 1, 1));
    let totals: Vec<_> = report.phases[0].protocols[0].totals.iter().map(|row| row.key).collect();
    assert_eq!(totals, ["gateway_share"]);
}

#[test]
fn records_that_were_dropped_or_cut_off_leave_the_report_incomplete() {
    let mut run = Run::default();
    run.order(Protocol::Fix, 1_000_000, Fate::Filled);
    let dir = run.write();
    let path = dir.path().join("gateway.rec");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - crate::RECORD_LENGTH]).unwrap();
    let paths = [dir.path().to_owned()];
    assert!(matches!(
        Report::load(&paths, false),
        Err(ReportError::Truncated { records: 3, .. })
    ));
    let report = Report::load(&paths, true).unwrap();
    assert!(
        !report.complete && report.problems[0].contains("gateway.rec: is cut off"),
        "{:?}",
        report.problems
    );

    let dir = tempfile::tempdir().unwrap();
    let mut recording = Recording::create(dir.path(), "client", &Header::default()).unwrap();
    let mut recorder = recording.recorder(1);
    for &record in &run.client {
        recorder.push(record);
    }
    recording.finish(Timestamp(START)).unwrap();
    let report = Report::load(&[dir.path().to_owned()], false).unwrap();
    assert!(
        report.problems[0].contains("2 records found the ring full"),
        "{:?}",
        report.problems
    );
}

#[test]
fn recordings_of_two_runs_are_not_mixed() {
    let mut run = Run::default();
    run.order(Protocol::Fix, 1_000_000, Fate::Filled);
    let (first, second) = (run.write(), run.write());
    let error = Report::load(&[first.path().to_owned(), second.path().to_owned()], false).unwrap_err();
    assert!(
        matches!(error, ReportError::SeveralRuns { client_order_id: 1, .. }),
        "{error}"
    );
    let empty = tempfile::tempdir().unwrap();
    write_recording(empty.path(), "gateway", &[]);
    assert!(matches!(
        Report::load(&[empty.path().to_owned()], false),
        Err(ReportError::NoOrders)
    ));
}

#[test]
fn components_that_share_a_core_are_warned_of() {
    let mut run = Run::default();
    run.order(Protocol::Fix, 1_000_000, Fate::Filled);
    let report = run.load();
    assert_eq!(report.warnings.len(), 1, "{:?}", report.warnings);
    assert!(report.warnings[0].contains("core 1 is shared by client thread, exchange thread"));
}

#[test]
fn the_csv_has_one_line_an_order_with_every_tap() {
    let mut run = Run::default();
    run.order(Protocol::Fix, 1_000_000, Fate::Filled)
        .order(Protocol::Native, 2_000_000, Fate::RefusedByGateway);
    let mut csv = Vec::new();
    run.load().write_orders_csv(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3);
    let columns = lines[0].split(',').count();
    let sent = START + 1_000_000;
    assert!(
        lines[1].contains(",FIX,whole run,1:19,7,buy,100,12.5,filled,,100,0,100@12.5,"),
        "{}",
        lines[1]
    );
    assert!(lines[1].contains(&format!(",{sent},")), "{}", lines[1]);
    assert!(
        lines[2].contains(",refused,quantity is above the limit for one order,0,"),
        "{}",
        lines[2]
    );
    assert!(lines[1..].iter().all(|line| line.split(',').count() == columns));
}

#[test]
fn the_page_needs_no_network_and_runs_nothing_and_escapes_what_others_wrote() {
    let mut run = Run::default();
    for number in 0..40 {
        run.order(Protocol::Fix, 1_000_000 * (number + 1), Fate::Filled);
        run.order(Protocol::Native, 1_000_000 * (number + 1) + 500, Fate::Open);
    }
    let name = Name::new("<script>alert(1)</script> & co");
    run.client.push(
        Phase {
            start: Timestamp(START),
            end: Timestamp(START + 20_000_000),
            name,
        }
        .into(),
    );
    run.gateway.push(
        Counter {
            time: Timestamp(START),
            value: 1,
            name,
        }
        .into(),
    );
    let mut report = run.load();
    report.add_fact("journal <replayed>", "identical & \"whole\"");
    report.add_next("tickgate demo --link tcp > x");
    report.add_warning("<i>cores</i>");
    let page = report.html();
    for forbidden in [
        "<script",
        "http:",
        "https:",
        "src=",
        "href=",
        "@import",
        "url(",
        "<i>",
        "<fast>",
        "<replayed>",
    ] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("A &lt;fast&gt; CPU"));
    assert!(page.contains("&lt;script&gt;alert(1)"));
    for needed in [
        "Method",
        "tick_sent",
        "Accounting",
        "Tick to trade: FIX",
        "<svg",
        "prefers-color-scheme",
    ] {
        assert!(page.contains(needed), "{needed}");
    }
    for element in [
        "table", "section", "svg", "figure", "div", "p", "tr", "td", "th", "ul", "li", "code",
    ] {
        let opened = page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
        assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
    }
}

#[test]
fn the_page_on_reports_names_every_key_of_the_json() {
    let mut run = Run::default();
    for number in 0..40 {
        run.order(Protocol::Fix, 1_000_000 * (number + 1), Fate::Filled);
    }
    run.order(Protocol::Fix, 50_000_000, Fate::Cancelled)
        .order(Protocol::Fix, 51_000_000, Fate::RefusedByVenue);
    run.order(Protocol::Fix, 52_000_000, Fate::Lost);
    run.floor(FloorLeg::Feed, 1_000)
        .floor(FloorLeg::Client, 1_000)
        .floor(FloorLeg::Venue, 1_000);
    let mut report = run.list_open_orders().load();
    report.add_fact("journal replayed", "identical");
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    let mut keys = BTreeSet::new();
    collect_keys(&json, &mut keys);
    let page = include_str!("../../../docs/report.md");
    for key in keys {
        assert!(page.contains(&format!("| `{key}` |")), "docs/report.md lacks `{key}`");
    }
    assert_eq!(json["schema"], SCHEMA);
    assert!(page.contains(SCHEMA));
}

fn collect_keys(json: &serde_json::Value, keys: &mut BTreeSet<String>) {
    match json {
        serde_json::Value::Object(object) => {
            for (key, value) in object {
                keys.insert(key.clone());
                collect_keys(value, keys);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect_keys(value, keys)),
        _ => {}
    }
}
