//! `orders.csv`: one line an order; `children.csv`: one line for each that went to the venue for an order that the gateway had
//! kept. Quoted as RFC 4180 has it. Times are UTC nanoseconds; what is not known is empty.

use std::io::{self, Write};

use types::{Reason, Side, Timestamp, Trigger};

use super::order::Order;
use super::{OUTSIDE, Report, WHOLE_RUN};
use crate::tap::Tap;

pub(super) fn write(report: &Report, to: &mut impl Write) -> io::Result<()> {
    write!(
        to,
        "order_id,session,client_order_id,protocol,phase,trigger,instrument,side,quantity,price,\
         status,reason,filled_quantity,open_quantity,fills,crossed_quantity,children,planned,kernel_received"
    )?;
    for tap in Tap::ALL {
        write!(to, ",{}", tap.name())?;
    }
    writeln!(to)?;
    for order in &report.orders {
        write_order(report, order, to)?;
    }
    Ok(())
}

pub(super) fn write_children(report: &Report, to: &mut impl Write) -> io::Result<()> {
    writeln!(
        to,
        "order_id,child_id,released,venue_sent,exchange_received,exchange_reported"
    )?;
    for order in &report.orders {
        for child in &order.children {
            write!(to, "{},{}", order.order_id, child.child_id)?;
            for at in [
                child.released,
                child.venue_sent,
                child.exchange_received,
                child.exchange_reported,
            ] {
                write!(to, ",{}", time(at))?;
            }
            writeln!(to)?;
        }
    }
    Ok(())
}

fn write_order(report: &Report, order: &Order, to: &mut impl Write) -> io::Result<()> {
    let outside = if report.phases.iter().all(|phase| phase.end_ns == 0) {
        WHOLE_RUN
    } else {
        OUTSIDE
    };
    let phase = order
        .phase
        .and_then(|index| report.phases.get(index))
        .map_or(outside, |phase| &phase.name);
    let side = match order.side {
        Some(Side::Buy) => "buy",
        Some(Side::Sell) => "sell",
        None => "",
    };
    let price = order.price.filter(|price| !price.is_null());
    let fills: Vec<String> = order
        .outcome
        .fills
        .iter()
        .map(|(quantity, price)| format!("{quantity}@{price}"))
        .collect();
    let children: Vec<String> = order.children.iter().map(|child| child.child_id.to_string()).collect();
    let fields = [
        order.order_id.to_string(),
        order.session.to_string(),
        order.client_order_id.to_string(),
        order.protocol.name().to_owned(),
        phase.to_owned(),
        if order.trigger == Trigger::NONE {
            String::new()
        } else {
            order.trigger.to_string()
        },
        order.instrument.to_string(),
        side.to_owned(),
        order.quantity.map_or_else(String::new, |quantity| quantity.to_string()),
        price.map_or_else(String::new, |price| price.to_string()),
        order.status(report.open_orders_listed).name().to_owned(),
        if order.outcome.reason == Reason::None {
            String::new()
        } else {
            order.outcome.reason.to_string()
        },
        order.filled().to_string(),
        order.outcome.leaves.to_string(),
        fills.join(";"),
        order.crossed.to_string(),
        children.join(";"),
        time(order.planned),
        time(order.kernel_received),
    ];
    for (index, field) in fields.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(to, "{comma}{}", quoted(field))?;
    }
    for &tap in Tap::ALL {
        write!(to, ",{}", time(order.at(tap)))?;
    }
    writeln!(to)
}

fn time(time: Timestamp) -> String {
    if time == Timestamp::NONE {
        String::new()
    } else {
        time.to_string()
    }
}

/// A field as RFC 4180 has it: in quotes when it must be, quotes doubled.
fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\r', '\n']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field.to_owned()
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_field_with_commas_or_quotes_is_quoted() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("too late, the order is done"), "\"too late, the order is done\"");
        assert_eq!(quoted("the \"loss\" phase"), "\"the \"\"loss\"\" phase\"");
    }
}
