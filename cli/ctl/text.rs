//! A gateway's answers for people: lists as tables, the rest as sentences.

use crate::journal::utc;
use ::gateway::control::{LinkReply, Reply, Source};
use std::io::{self, Write};
use types::Timestamp;

/// Rows that wait until it is clear how wide their columns are.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    /// Of each column so far, characters.
    widths: Vec<usize>,
    has_header: bool,
}

/// So many rows are laid out together: a long list is shown as it comes.
const ROWS_TOGETHER: usize = 64;

impl Table {
    /// One answer. The last one says nothing more than that a request was carried out, or is the reason why not, which the
    /// program ends with.
    pub(super) fn reply(&mut self, reply: &Reply, out: &mut impl Write) -> io::Result<()> {
        match reply {
            Reply::Order { .. } => self.row(&ORDER, order(reply), out),
            Reply::Session { .. } => self.row(&SESSION, session(reply), out),
            Reply::Link(reply) => link(reply, out),
            Reply::Limit {
                scope,
                limit,
                value,
                from,
            } => {
                let row = vec![scope.to_string(), limit.clone(), value.clone(), source(from)];
                self.row(&["SCOPE", "LIMIT", "VALUE", "FROM"], row, out)
            }
            Reply::Killed { killed, reduce_only } => {
                let state = match (killed, reduce_only) {
                    (true, _) => "on",
                    (false, true) => "on, and lets pass what reduces",
                    (false, false) => "off",
                };
                writeln!(out, "the kill switch is {state}")
            }
            Reply::Audit {
                shard,
                open_orders,
                difference,
            } => {
                let difference = difference.as_deref().unwrap_or("nothing");
                writeln!(out, "shard {shard}: {open_orders} open orders, {difference} differs")
            }
            Reply::Prefilter { .. } => prefilter(reply, out),
            Reply::Done { number: Some(number) } => writeln!(out, "done: order {number} of the desk"),
            Reply::Done { number: None } | Reply::Refused { .. } => Ok(()),
        }
    }

    fn row(&mut self, header: &[&str], row: Vec<String>, out: &mut impl Write) -> io::Result<()> {
        if !self.has_header {
            self.has_header = true;
            self.push(header.iter().map(|&name| name.to_owned()).collect());
        }
        self.push(row);
        if self.rows.len() >= ROWS_TOGETHER {
            self.flush(out)?;
        }
        Ok(())
    }

    fn push(&mut self, row: Vec<String>) {
        self.widths.resize(row.len().max(self.widths.len()), 0);
        for (width, text) in self.widths.iter_mut().zip(&row) {
            *width = (*width).max(text.chars().count());
        }
        self.rows.push(row);
    }

    /// Prints the rows that wait.
    pub(super) fn flush(&mut self, out: &mut impl Write) -> io::Result<()> {
        for row in self.rows.drain(..) {
            let cells = row.iter().zip(&self.widths);
            let line = cells
                .map(|(text, &width)| format!("{text:width$}  "))
                .collect::<String>();
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A pre-filter: how it stands, and what it counted.
fn prefilter(reply: &Reply, out: &mut impl Write) -> io::Result<()> {
    let Reply::Prefilter {
        shard,
        backend,
        generation,
        fault,
        received,
        passed,
        refused,
        reasons,
        refused_unjudged,
        left_to_software,
        unjudged,
    } = reply
    else {
        return Ok(());
    };
    let health = fault
        .as_ref()
        .map_or_else(|| "sound".to_owned(), |fault| format!("AT FAULT: it {fault}"));
    writeln!(
        out,
        "shard {shard}, {backend}: {health}; limits of generation {generation}"
    )?;
    writeln!(out, "  {received} judged, {passed} passed, {refused} refused")?;
    for (reason, count) in reasons.iter().filter(|&(_, &count)| count > 0) {
        writeln!(out, "  {reason:8} {count}")?;
    }
    if refused_unjudged + left_to_software > 0 {
        writeln!(
            out,
            "  not judged: {refused_unjudged} refused, {left_to_software} left to the software; {unjudged} of them came past it while sound"
        )?;
    }
    Ok(())
}

const ORDER: [&str; 12] = [
    "ORDER",
    "CLIENT",
    "SESSION",
    "ACCOUNT",
    "INSTRUMENT",
    "VENUE",
    "SIDE",
    "TYPE",
    "PRICE",
    "LOTS",
    "TRADED",
    "STATE",
];

fn order(reply: &Reply) -> Vec<String> {
    let Reply::Order {
        order_id,
        client_order_id,
        session,
        account,
        instrument,
        venue,
        side,
        order_type,
        price,
        quantity,
        cumulative,
        state,
        in_doubt,
        accepted,
    } = reply
    else {
        return Vec::new();
    };
    let doubt = if *in_doubt { ", in doubt" } else { "" };
    vec![
        order_id.to_string(),
        client_order_id.to_string(),
        session.to_string(),
        account.to_string(),
        instrument.to_string(),
        venue.to_string(),
        side.clone(),
        order_type.clone(),
        price.clone().unwrap_or_else(none),
        quantity.to_string(),
        cumulative.to_string(),
        format!("{state}{doubt} since {}", utc(Timestamp(*accepted))),
    ]
}

const SESSION: [&str; 10] = [
    "SESSION",
    "PROTOCOL",
    "CLIENT",
    "SHARD",
    "STATE",
    "SENT",
    "RECEIVED",
    "OPEN",
    "REFUSED",
    "CONNECTED",
];

fn session(reply: &Reply) -> Vec<String> {
    let Reply::Session {
        session,
        protocol,
        name,
        our_comp_id,
        shard,
        enabled,
        logged_on,
        connected,
        since,
        next_sent,
        next_received,
        open_orders,
        refused,
    } = reply
    else {
        return Vec::new();
    };
    let client = our_comp_id
        .as_ref()
        .map_or_else(|| name.clone(), |ours| format!("{name}>{ours}"));
    let state = match (enabled, logged_on) {
        (false, false) => "disabled",
        (false, true) => "disabled, here",
        (true, true) => "logged on",
        (true, false) => "away",
    };
    let number = |next: &Option<u64>| next.map_or_else(none, |next| next.saturating_sub(1).to_string());
    let connected = match (connected, since) {
        (Some(from), Some(since)) => format!("{from} since {}", utc(Timestamp(*since))),
        _ => none(),
    };
    vec![
        session.to_string(),
        protocol.clone(),
        client,
        shard.to_string(),
        state.to_owned(),
        number(next_sent),
        number(next_received),
        open_orders.to_string(),
        refused.to_string(),
        connected,
    ]
}

/// A link has too many numbers for a row: a line of what it is, and lines of figures.
fn link(link: &LinkReply, out: &mut impl Write) -> io::Result<()> {
    let far_end = match (&link.venue, link.client) {
        (Some(venue), _) => format!("venue {venue}"),
        (None, Some(client)) => format!("client of session {client}"),
        (None, None) => none(),
    };
    let carrier = link
        .carrier
        .as_ref()
        .map_or(String::new(), |carrier| format!(" over {carrier}"));
    let since = utc(Timestamp(link.since));
    writeln!(
        out,
        "shard {}, {far_end}: {} since {since}, {}{carrier}, session {}, epoch {}, peer {}",
        link.shard,
        link.state,
        link.transport,
        link.session,
        link.epoch.map_or_else(none, |epoch| epoch.to_string()),
        link.peer.clone().unwrap_or_else(none),
    )?;
    for (what, told) in [("last down", &link.last_down), ("last refused", &link.last_refused)] {
        if let Some(told) = told {
            writeln!(out, "  {what}: {told}")?;
        }
    }
    let shown = |name: &str, number: Option<u64>| {
        number.map_or_else(|| format!("{name}=-"), |number| format!("{name}={number}"))
    };
    let numbers = link.numbers.iter().map(|(name, number)| shown(name, *number));
    let more = [
        ("room", Some(link.room)),
        ("credits_used", link.credits_used.map(u64::from)),
        ("cancel_reserve", link.cancel_reserve),
    ];
    let more = more.into_iter().map(|(name, number)| shown(name, number));
    writeln!(out, "  {}", numbers.chain(more).collect::<Vec<_>>().join(" "))?;
    let counters = link.counters.iter().map(|(name, count)| format!("{name}={count}"));
    writeln!(out, "  {}", counters.collect::<Vec<_>>().join(" "))
}

fn source(from: &Source) -> String {
    match from {
        Source::Config => "config".to_owned(),
        Source::Class(name) => format!("class {name}"),
        Source::Change { number, operator, time } => {
            format!("order {number} of user {operator} at {}", utc(Timestamp(*time)))
        }
    }
}

fn none() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::gateway::control::LimitScopeName;

    #[test]
    fn a_prefilter_at_fault_says_why_and_what_became_of_orders() {
        let reply = Reply::Prefilter {
            shard: 1,
            backend: "rtl".to_owned(),
            generation: 7,
            fault: Some("was reset".to_owned()),
            received: 9,
            passed: 6,
            refused: 3,
            reasons: [("KILL", 0), ("QTY", 3)]
                .map(|(name, count)| (name.to_owned(), count))
                .into(),
            refused_unjudged: 4,
            left_to_software: 0,
            unjudged: 1,
        };
        let mut out = Vec::new();
        Table::default().reply(&reply, &mut out).unwrap();
        let lines = [
            "shard 1, rtl: AT FAULT: it was reset; limits of generation 7",
            "  9 judged, 6 passed, 3 refused",
            "  QTY      3",
            "  not judged: 4 refused, 0 left to the software; 1 of them came past it while sound",
        ];
        assert_eq!(String::from_utf8(out).unwrap().lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them_and_a_long_list_is_shown_as_it_comes() {
        let limit = |id: u32, value: &str| Reply::Limit {
            scope: LimitScopeName::Account(id),
            limit: "max_notional".to_owned(),
            value: value.to_owned(),
            from: Source::Config,
        };
        let (mut table, mut out) = (Table::default(), Vec::new());
        table.reply(&limit(1, "5"), &mut out).unwrap();
        table.reply(&limit(20, "1000000"), &mut out).unwrap();
        assert!(out.is_empty());
        table.flush(&mut out).unwrap();
        let text = String::from_utf8(std::mem::take(&mut out)).unwrap();
        let lines = [
            "SCOPE       LIMIT         VALUE    FROM",
            "account 1   max_notional  5        config",
            "account 20  max_notional  1000000  config",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
        for id in 0..70 {
            table.reply(&limit(id, "5"), &mut out).unwrap();
        }
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), ROWS_TOGETHER);
    }
}
