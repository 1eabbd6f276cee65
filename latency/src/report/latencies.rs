//! Durations between taps: from end to end and hop by hop, against the floor of the same run.

use serde::Serialize;
use types::Timestamp;

use super::order::{Child, Order};
use crate::histogram::{Percentiles, SAMPLES_BEYOND_MIN};
use crate::record::{Floor, FloorLeg, Protocol};
use crate::tap::Tap;

/// What a duration runs between, and what its floor is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// Key in files.
    pub(super) key: &'static str,
    /// For people.
    pub(super) title: &'static str,
    /// What happens in it, for people.
    pub(super) what: &'static str,
    pub(super) part: Part,
    from: From,
    to: Tap,
    of: Of,
    /// Half round trips on each leg that it cannot do without.
    floor: &'static [(FloorLeg, u64)],
}

/// Whose time it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// A network with its sockets.
    Network,
    /// The client.
    Client,
    /// The gateway.
    Gateway,
    /// The exchange.
    Exchange,
    /// Several of them.
    Whole,
}

impl Part {
    /// For people and styles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Client => "client",
            Self::Gateway => "gateway",
            Self::Exchange => "exchange",
            Self::Whole => "whole",
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum From {
    Plan,
    Tap(Tap),
    /// Of each child of an order that was kept; every other span is of orders that were not.
    Release,
}

/// Which orders count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    All,
    Acknowledged,
    Refused,
}

const FEED: FloorLeg = FloorLeg::Feed;
const CLIENT: FloorLeg = FloorLeg::Client;
const VENUE: FloorLeg = FloorLeg::Venue;

/// From end to end.
pub(super) const TOTALS: [Span; 8] = [
    Span {
        key: "tick_to_trade",
        title: "tick to trade",
        what: "the exchange sends a tick → it receives the order that the tick caused",
        part: Part::Whole,
        from: From::Tap(Tap::TickSent),
        to: Tap::ExchangeReceived,
        of: Of::All,
        floor: &[(FEED, 1), (CLIENT, 1), (VENUE, 1)],
    },
    Span {
        key: "order_to_acknowledgement",
        title: "order to acknowledgement",
        what: "the client sends an order → it has the exchange's acknowledgement",
        part: Part::Whole,
        from: From::Tap(Tap::OrderSent),
        to: Tap::ReportReceived,
        of: Of::Acknowledged,
        floor: &[(CLIENT, 2), (VENUE, 2)],
    },
    Span {
        key: "gateway_share",
        title: "gateway's own share",
        what: "the gateway has the order's bytes → the venue's bytes are handed to the socket",
        part: Part::Gateway,
        from: From::Tap(Tap::GatewayReceived),
        to: Tap::VenueSent,
        of: Of::All,
        floor: &[],
    },
    Span {
        key: "order_to_refusal",
        title: "order to refusal",
        what: "the client sends an order → it has the refusal",
        part: Part::Whole,
        from: From::Tap(Tap::OrderSent),
        to: Tap::ReportReceived,
        of: Of::Refused,
        floor: &[],
    },
    Span {
        key: "plan_to_acknowledgement",
        title: "plan to acknowledgement",
        what: "the order's planned time → the client has the acknowledgement: what it waited behind others counts",
        part: Part::Whole,
        from: From::Plan,
        to: Tap::ReportReceived,
        of: Of::Acknowledged,
        floor: &[(CLIENT, 2), (VENUE, 2)],
    },
    Span {
        key: "plan_lag",
        title: "client's lag",
        what: "the order's planned time → the client sends it",
        part: Part::Client,
        from: From::Plan,
        to: Tap::OrderSent,
        of: Of::All,
        floor: &[],
    },
    Span {
        key: "release_to_venue",
        title: "release to venue",
        what: "what kept an order in the gateway is over → the venue's bytes are handed to the socket",
        part: Part::Gateway,
        from: From::Release,
        to: Tap::VenueSent,
        of: Of::All,
        floor: &[],
    },
    Span {
        key: "release_to_trade",
        title: "release to trade",
        what: "what kept an order in the gateway is over → the exchange receives what goes out for it",
        part: Part::Whole,
        from: From::Release,
        to: Tap::ExchangeReceived,
        of: Of::All,
        floor: &[(VENUE, 1)],
    },
];

const fn hop(to: Tap, from: Tap, part: Part, what: &'static str, floor: &'static [(FloorLeg, u64)]) -> Span {
    Span {
        key: to.name(),
        title: to.name(),
        what,
        part,
        from: From::Tap(from),
        to,
        of: Of::All,
        floor,
    }
}

/// From each tap to the next. A hop has the name of the tap that it ends at. Those that begin with a stamp after a send have
/// no floor: the send, which is part of the floor, is behind them.
pub(super) const HOPS: [Span; Tap::COUNT - 1] = {
    use Part::{Client, Exchange, Gateway, Network};
    use Tap::{
        Decoded, ExchangeReceived, ExchangeReported, GatewayReceived, Matched, OrderSent, ReportEncoded,
        ReportReceived, ReportSent, RiskChecked, Routed, TickReceived, TickSent, VenueReceived, VenueSent,
    };
    [
        hop(
            TickReceived,
            TickSent,
            Network,
            "market data, exchange to client",
            &[(FEED, 1)],
        ),
        hop(OrderSent, TickReceived, Client, "the client decides and encodes", &[]),
        hop(GatewayReceived, OrderSent, Network, "client to gateway", &[(CLIENT, 1)]),
        hop(Decoded, GatewayReceived, Gateway, "session, sequence, decode", &[]),
        hop(RiskChecked, Decoded, Gateway, "reserve room, pre-trade risk", &[]),
        hop(Matched, RiskChecked, Gateway, "self-match screen", &[]),
        hop(Routed, Matched, Gateway, "route, state, journal", &[]),
        hop(VenueSent, Routed, Gateway, "encode, send to the venue", &[]),
        hop(ExchangeReceived, VenueSent, Network, "gateway to exchange", &[]),
        hop(ExchangeReported, ExchangeReceived, Exchange, "match, report", &[]),
        hop(
            VenueReceived,
            ExchangeReported,
            Network,
            "exchange to gateway",
            &[(VENUE, 1)],
        ),
        hop(ReportEncoded, VenueReceived, Gateway, "order state, encode", &[]),
        hop(ReportSent, ReportEncoded, Gateway, "journal, send to the client", &[]),
        hop(ReportReceived, ReportSent, Network, "gateway to client", &[]),
    ]
};

/// One line of a table: a duration, measured.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Such as `tick_to_trade`; a hop has the name of the tap that it ends at.
    pub key: &'static str,
    /// For people.
    pub title: &'static str,
    /// What happens in it, for people.
    pub what: &'static str,
    /// Whose time it is.
    pub part: Part,
    /// Count and percentiles.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// Orders that passed the second tap before the first.
    pub negative: u64,
    /// Median of the floor: the bare round trips, or halves of them, that it is made of, ns.
    pub floor_p50_ns: Option<u64>,
    /// Its median against the floor's.
    pub ratio: Option<f64>,
    /// The percentile curve: percentile and ns, as far as there are samples enough. Only of totals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(f64, i64)>,
}

/// One order, tap by tap.
#[derive(Clone, Debug, Serialize)]
pub struct Example {
    /// The gateway's number for it.
    pub order_id: u64,
    /// The client's session.
    pub session: u16,
    /// The client's number for it.
    pub client_order_id: u64,
    /// The tick that caused it, as feed and sequence number.
    pub trigger: String,
    /// The taps that it passed.
    pub taps: Vec<Passed>,
}

/// When an order passed a tap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Passed {
    /// Which.
    pub tap: &'static str,
    /// UTC, ns.
    pub time_ns: u64,
    /// Since the first tap that it passed, ns.
    pub since_first_ns: i64,
    /// Since the tap before, ns.
    pub hop_ns: i64,
}

/// A floor that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct FloorRow {
    /// `feed`, `client` or `venue`.
    pub leg: &'static str,
    /// Such as `TCP loopback`.
    pub transport: String,
    /// The round trip.
    #[serde(flatten)]
    pub percentiles: Percentiles,
}

/// The durations between two taps, over some orders.
pub(super) fn row(span: &Span, orders: &[&Order], floors: &[&Floor], with_curve: bool) -> Row {
    let mut samples: Vec<i64> = match span.from {
        From::Release => {
            let children = orders.iter().flat_map(|order| &order.children);
            children.filter_map(|child| span.of_child(child)).collect()
        }
        From::Plan | From::Tap(_) => orders.iter().filter_map(|order| span.of_order(order)).collect(),
    };
    samples.sort_unstable();
    let percentiles = Percentiles::of_sorted(&samples);
    let floor_p50_ns = floor_p50_ns(span, floors);
    Row {
        key: span.key,
        title: span.title,
        what: span.what,
        part: span.part,
        percentiles,
        negative: samples.partition_point(|&sample| sample < 0) as u64,
        floor_p50_ns,
        ratio: floor_p50_ns
            .zip(percentiles.p50_ns)
            .map(|(floor, p50)| ratio(p50, floor)),
        curve: if with_curve { curve(&samples) } else { Vec::new() },
    }
}

/// The median and the worst of the orders, by the first total that any of them has.
pub(super) fn examples(orders: &[&Order]) -> Option<(&'static str, Example, Example)> {
    TOTALS.iter().find_map(|span| {
        let mut timed: Vec<(i64, &&Order)> = orders
            .iter()
            .filter_map(|order| Some((span.of_order(order)?, order)))
            .collect();
        timed.sort_by_key(|&(ns, order)| (ns, order.order_id));
        let (_, worst) = timed.last()?;
        let (_, median) = timed[(timed.len() - 1) / 2];
        Some((span.title, example(median), example(worst)))
    })
}

/// The floors of a protocol's legs. Of several measurements of one leg the lowest is the floor.
pub(super) fn floors_of(floors: &[Floor], protocol: Protocol) -> Vec<&Floor> {
    let of_leg = |leg| {
        floors
            .iter()
            .filter(move |floor| floor.leg == leg && floor.protocol == protocol && floor.p50_ns > 0)
    };
    [FEED, CLIENT, VENUE]
        .into_iter()
        .filter_map(|leg| of_leg(leg).min_by_key(|floor| floor.p50_ns))
        .collect()
}

impl FloorRow {
    pub(super) fn new(floor: &Floor) -> Self {
        let told = |ns: u64| (ns > 0).then(|| ns.cast_signed());
        Self {
            leg: match floor.leg {
                FloorLeg::Feed => "feed",
                FloorLeg::Client => "client",
                FloorLeg::Venue => "venue",
            },
            transport: floor.transport.as_str().to_owned(),
            percentiles: Percentiles {
                count: floor.count,
                p50_ns: told(floor.p50_ns),
                p90_ns: told(floor.p90_ns),
                p99_ns: told(floor.p99_ns),
                p999_ns: told(floor.p999_ns),
                max_ns: told(floor.max_ns),
            },
        }
    }
}

impl Span {
    /// How long it took this order; `None` when the order does not count or did not pass both taps.
    fn of_order(&self, order: &Order) -> Option<i64> {
        let acknowledged = order.outcome.acknowledgements > 0;
        let counts = match self.of {
            Of::All => true,
            Of::Acknowledged => acknowledged,
            Of::Refused => !acknowledged && order.outcome.refusals > 0,
        };
        if !counts || order.kept {
            return None;
        }
        match self.from {
            From::Release => None,
            From::Tap(from) => order.between(from, self.to),
            From::Plan if order.planned == Timestamp::NONE || order.at(self.to) == Timestamp::NONE => None,
            From::Plan => Some(order.at(self.to).0.cast_signed() - order.planned.0.cast_signed()),
        }
    }

    /// How long it took this child after what kept its order was over.
    const fn of_child(&self, child: &Child) -> Option<i64> {
        let to = match self.to {
            Tap::VenueSent => child.venue_sent,
            _ => child.exchange_received,
        };
        if child.released.0 == 0 || to.0 == 0 {
            return None;
        }
        Some(to.0.cast_signed() - child.released.0.cast_signed())
    }
}

/// The sum of the medians of the half round trips; `None` when one of them was not measured.
fn floor_p50_ns(span: &Span, floors: &[&Floor]) -> Option<u64> {
    if span.floor.is_empty() {
        return None;
    }
    let mut half_ns = 0;
    for (leg, halves) in span.floor {
        half_ns += floors.iter().find(|floor| floor.leg == *leg)?.p50_ns * halves;
    }
    Some(half_ns / 2)
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn ratio(measured_ns: i64, floor_ns: u64) -> f64 {
    let ratio = measured_ns as f64 / floor_ns as f64;
    (ratio * 1_000.0).round() / 1_000.0
}

/// Points evenly spaced on an axis that gives each further nine of the percentile the same room.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "points of a picture"
)]
fn curve(samples: &[i64]) -> Vec<(f64, i64)> {
    let count = samples.len() as f64;
    let mut points = Vec::new();
    for step in 0.. {
        let beyond = 10_f64.powf(-f64::from(step) / CURVE_POINTS_PER_NINE) * count;
        if beyond < SAMPLES_BEYOND_MIN as f64 {
            break;
        }
        let exact = |value: f64| (value * 1e6).round() / 1e6;
        let rank = (exact(count - beyond).ceil() as usize).max(1);
        points.push((exact(100.0 * (1.0 - beyond / count)), samples[rank - 1]));
    }
    points
}

/// Points of a curve between, say, 99 and 99.9.
const CURVE_POINTS_PER_NINE: f64 = 16.0;

fn example(order: &Order) -> Example {
    let mut taps: Vec<Passed> = Vec::new();
    let mut times = Tap::ALL
        .iter()
        .map(|&tap| (tap, order.at(tap).0))
        .filter(|&(_, time)| time != 0)
        .peekable();
    let first = times.peek().map_or(0, |&(_, time)| time);
    let mut before = first;
    for (tap, time_ns) in times {
        taps.push(Passed {
            tap: tap.name(),
            time_ns,
            since_first_ns: time_ns.cast_signed() - first.cast_signed(),
            hop_ns: time_ns.cast_signed() - before.cast_signed(),
        });
        before = time_ns;
    }
    Example {
        order_id: order.order_id.0,
        session: order.session.0,
        client_order_id: order.client_order_id.0,
        trigger: order.trigger.to_string(),
        taps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hops_lead_from_each_tap_to_the_next() {
        for (hop, pair) in HOPS.iter().zip(Tap::ALL.windows(2)) {
            assert!(matches!(hop.from, From::Tap(from) if from == pair[0]), "{hop:?}");
            assert_eq!(hop.to, pair[1]);
        }
    }

    #[test]
    fn a_curve_ends_where_ten_samples_are_left() {
        let samples: Vec<i64> = (1..=10_000).collect();
        let points = curve(&samples);
        assert_eq!(points[0], (0.0, 1));
        assert_eq!(points[16], (90.0, 9_000));
        assert_eq!(*points.last().unwrap(), (99.9, 9_990));
        assert!(curve(&samples[..9]).is_empty());
    }
}
