//! Joins the records of all recordings into orders.
//!
//! Each file is read three times, so that no order of files matters and only orders are held in memory: first what makes
//! orders (client, gateway), then what the gateway and clients say became of them, then what only knows the gateway's
//! number or the tick (exchange).

use std::collections::{HashMap, HashSet};

use types::{ClientOrderId, ExecType, OrderId, Quantity, Reason, SessionId, Timestamp, Trigger};

use super::load::ReportError;
use super::order::{Child, Order, Outcome, Report};
use crate::record::{
    ClientOrder, ClientReport, Counter, ExchangeReport, Floor, GatewayChild, GatewayOrder, GatewayReport, OPEN_ORDERS,
    Phase, Record, TickSent,
};
use crate::tap::Tap;

/// All that the recordings tell, joined.
#[derive(Debug, Default)]
pub(super) struct Join {
    pub(super) orders: Vec<Order>,
    /// Phases by their start.
    pub(super) phases: Vec<Phase>,
    /// Counters, each with the index of its file.
    pub(super) counters: Vec<(usize, Counter)>,
    pub(super) floors: Vec<Floor>,
    /// Cancels and replaces that clients sent.
    pub(super) requests_sent: u64,
    /// Those of them that were answered.
    pub(super) requests_answered: u64,
    /// Whether the exchange said which orders were open at the end.
    pub(super) open_orders_listed: bool,
    /// Whether an exchange was recorded.
    pub(super) exchange_recorded: bool,
    /// Reports to clients that belong to no order and no request.
    pub(super) stray_reports: u64,
    /// Orders that the exchange received and no gateway or client sent.
    pub(super) stray_exchange_orders: u64,
    /// Orders that the gateway received from a recorded client's session and the client did not record.
    pub(super) unsent_orders: u64,
    by_client: HashMap<(SessionId, ClientOrderId), usize>,
    by_order_id: HashMap<OrderId, usize>,
    /// What went to the venue for orders that were kept, as the files have it; joined before the third reading.
    children: Vec<GatewayChild>,
    /// The order of a child, and which of its children it is.
    by_child: HashMap<OrderId, (usize, usize)>,
    /// Whether the cancel or replace with this number was answered.
    requests: HashMap<(SessionId, ClientOrderId), bool>,
    /// Triggers and the orders they caused, sorted before the third reading.
    triggers: Vec<(Trigger, usize)>,
}

/// Which reading of the files is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pass {
    Orders,
    Reports,
    Exchange,
}

impl Join {
    /// Takes a record of the file with this index.
    pub(super) fn on_record(&mut self, pass: Pass, file: usize, record: &Record) -> Result<(), ReportError> {
        match (pass, record) {
            (Pass::Orders, Record::ClientOrder(order)) => return self.on_client_order(order),
            (Pass::Orders, Record::Phase(phase)) => self.phases.push(*phase),
            (Pass::Orders, Record::Counter(counter)) => self.on_counter(file, counter),
            (Pass::Orders, Record::Floor(floor)) => self.floors.push(*floor),
            (Pass::Orders, Record::ClientRequest(request)) => {
                self.requests.insert((request.session, request.client_order_id), false);
            }
            (Pass::Reports, Record::GatewayOrder(order)) => self.on_gateway_order(order),
            (Pass::Reports, Record::GatewayChild(child)) => self.children.push(*child),
            (Pass::Reports, Record::ClientReport(report)) => self.on_client_report(report),
            (Pass::Exchange, Record::GatewayReport(report)) => self.on_gateway_report(report),
            (Pass::Exchange, Record::TickSent(packet)) => self.on_tick_sent(packet),
            (Pass::Exchange, Record::ExchangeOrder(order)) => {
                self.exchange_recorded = true;
                if !self.pass_at_exchange(order.order_id, Tap::ExchangeReceived, order.time) {
                    self.stray_exchange_orders += 1;
                }
            }
            (Pass::Exchange, Record::ExchangeReport(report)) => self.on_exchange_report(report),
            (Pass::Exchange, Record::ExchangeOpen(open)) => {
                let child = || self.by_child.get(&open.order_id).map(|(index, _)| index);
                if let Some(&index) = self.by_order_id.get(&open.order_id).or_else(child) {
                    self.orders[index].outcome.open_at_exchange = true;
                }
            }
            (Pass::Exchange, Record::GatewayOpen(open)) => {
                if let Some(&index) = self.by_order_id.get(&open.order_id) {
                    self.orders[index].outcome.open_at_gateway = true;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A reading of all files is over.
    pub(super) fn end_pass(&mut self, pass: Pass) {
        match pass {
            Pass::Orders => self.phases.sort_by_key(|phase| phase.start),
            Pass::Reports => {
                self.triggers = (self.orders.iter().enumerate())
                    .filter(|(_, order)| order.trigger != Trigger::NONE)
                    .map(|(index, order)| (order.trigger, index))
                    .collect();
                self.triggers.sort_unstable();
                self.join_children();
            }
            Pass::Exchange => {
                self.requests_sent = self.requests.len() as u64;
                self.requests_answered = self.requests.values().filter(|&&answered| answered).count() as u64;
                for order in &mut self.orders {
                    let start = order.start();
                    order.phase = self
                        .phases
                        .iter()
                        .position(|phase| (phase.start..phase.end).contains(&start));
                }
                self.orders
                    .sort_by_key(|order| (order.start(), order.session, order.client_order_id));
                self.count_unsent_orders();
            }
        }
    }

    fn on_counter(&mut self, file: usize, counter: &Counter) {
        self.open_orders_listed |= counter.name.as_str() == OPEN_ORDERS;
        self.counters.push((file, *counter));
    }

    fn on_client_order(&mut self, sent: &ClientOrder) -> Result<(), ReportError> {
        let key = (sent.session, sent.client_order_id);
        if self.by_client.insert(key, self.orders.len()).is_some() {
            return Err(ReportError::SeveralRuns {
                session: sent.session.0,
                client_order_id: sent.client_order_id.0,
            });
        }
        let mut order = Order {
            protocol: sent.protocol,
            session: sent.session,
            client_order_id: sent.client_order_id,
            order_id: OrderId(0),
            trigger: sent.trigger,
            instrument: sent.instrument,
            side: Some(sent.side),
            quantity: Some(sent.quantity),
            price: Some(sent.price),
            planned: sent.planned,
            kernel_received: Timestamp::NONE,
            times: [Timestamp::NONE; Tap::COUNT],
            client_recorded: true,
            refused_by_gateway: false,
            kept: false,
            crossed: Quantity::ZERO,
            children: Vec::new(),
            outcome: Outcome::default(),
            phase: None,
        };
        order.pass(Tap::TickReceived, sent.tick_received);
        order.pass(Tap::OrderSent, sent.order_sent);
        self.orders.push(order);
        Ok(())
    }

    fn on_gateway_order(&mut self, received: &GatewayOrder) {
        let key = (received.session, received.client_order_id);
        let index = match self.by_client.get(&key) {
            // A number that was used before is refused, and must not stand for the order that used it first.
            Some(_) if received.reason == Reason::DuplicateClientOrderId => return,
            Some(&index) => index,
            None => self.order_of_foreign_client(received),
        };
        let order = &mut self.orders[index];
        order.order_id = received.order_id;
        order.instrument = received.instrument;
        order.kernel_received = received.kernel_received;
        order.refused_by_gateway = received.reason != Reason::None;
        order.kept = !order.refused_by_gateway && received.stamps.at(Tap::VenueSent) == Timestamp::NONE;
        if order.refused_by_gateway {
            order.outcome.reason = received.reason;
        }
        for &tap in Tap::ALL {
            order.pass(tap, received.stamps.at(tap));
        }
        if received.order_id != OrderId(0) {
            self.by_order_id.insert(received.order_id, index);
        }
    }

    /// An order that no client recorded: the client is somebody else's program, or its recording lacks the order.
    fn order_of_foreign_client(&mut self, received: &GatewayOrder) -> usize {
        let index = self.orders.len();
        self.by_client
            .insert((received.session, received.client_order_id), index);
        self.orders.push(Order {
            protocol: received.protocol,
            session: received.session,
            client_order_id: received.client_order_id,
            order_id: received.order_id,
            trigger: received.trigger,
            instrument: received.instrument,
            side: None,
            quantity: None,
            price: None,
            planned: Timestamp::NONE,
            kernel_received: received.kernel_received,
            times: [Timestamp::NONE; Tap::COUNT],
            client_recorded: false,
            refused_by_gateway: false,
            kept: false,
            crossed: Quantity::ZERO,
            children: Vec::new(),
            outcome: Outcome::default(),
            phase: None,
        });
        index
    }

    fn on_client_report(&mut self, received: &ClientReport) {
        let key = (received.session, received.client_order_id);
        let answers_request = self.requests.get_mut(&key).map(|answered| *answered = true).is_some();
        let by_number = || self.by_client.get(&key).copied();
        let by_order_id = || self.by_order_id.get(&received.order_id).copied();
        let index = match received.exec_type {
            ExecType::New | ExecType::Rejected => by_number().or_else(by_order_id),
            _ => by_order_id().or_else(by_number),
        };
        let Some(index) = index else {
            if !answers_request {
                self.stray_reports += 1;
            }
            return;
        };
        if received.order_id != OrderId(0) {
            // Without a gateway's recording the first report tells the gateway's number.
            self.by_order_id.entry(received.order_id).or_insert(index);
            self.orders[index].order_id = received.order_id;
        }
        let order = &mut self.orders[index];
        let mut reason = received.reason;
        if matches!(received.exec_type, ExecType::New | ExecType::Rejected) {
            order.pass(Tap::ReportReceived, received.time);
        }
        if received.exec_type == ExecType::Rejected && order.refused_by_gateway {
            // The gateway's own word is exact; a client may have read it from text.
            reason = order.outcome.reason;
        }
        order.outcome.on_report(&Report {
            exec_type: received.exec_type,
            reason,
            last_quantity: received.last_quantity,
            last_price: received.last_price,
            leaves: received.leaves,
        });
    }

    fn on_gateway_report(&mut self, sent: &GatewayReport) {
        let Some(&index) = self.by_order_id.get(&sent.order_id) else {
            return;
        };
        let order = &mut self.orders[index];
        if matches!(sent.exec_type, ExecType::New | ExecType::Rejected) {
            order.pass(Tap::VenueReceived, sent.venue_received);
            order.pass(Tap::ReportEncoded, sent.report_encoded);
            order.pass(Tap::ReportSent, sent.report_sent);
        }
        if matches!(sent.reason, Reason::CrossedTaking | Reason::CrossedResting) {
            order.crossed = Quantity(order.crossed.0.saturating_add(sent.last_quantity.0));
        }
        // A client whose session was lost hears nothing any more: what became of its order then is the gateway's to tell.
        let unheard = sent.exec_type == ExecType::Canceled
            && sent.reason == Reason::Disconnected
            && order.outcome.ended.is_none();
        if !order.client_recorded || unheard {
            order.outcome.on_report(&Report {
                exec_type: sent.exec_type,
                reason: sent.reason,
                last_quantity: sent.last_quantity,
                last_price: sent.last_price,
                leaves: sent.leaves,
            });
        }
    }

    fn on_exchange_report(&mut self, sent: &ExchangeReport) {
        self.exchange_recorded = true;
        if matches!(sent.exec_type, ExecType::New | ExecType::Rejected) {
            self.pass_at_exchange(sent.order_id, Tap::ExchangeReported, sent.time);
        }
    }

    /// The exchange knows an order by this number: the gateway's for it, or for a child of it. Whether there is one.
    fn pass_at_exchange(&mut self, number: OrderId, tap: Tap, time: Timestamp) -> bool {
        if let Some(&index) = self.by_order_id.get(&number) {
            self.orders[index].pass(tap, time);
        } else if let Some(&(index, child)) = self.by_child.get(&number) {
            self.orders[index].pass_child(child, tap, time);
        } else {
            return false;
        }
        true
    }

    /// Gives the orders that were kept what went to the venue for them, in the order of their numbers, which rise.
    fn join_children(&mut self) {
        self.children.sort_unstable_by_key(|child| child.child_id);
        for child in self.children.drain(..) {
            let Some(&index) = self.by_order_id.get(&child.order_id) else {
                continue;
            };
            let order = &mut self.orders[index];
            self.by_child.insert(child.child_id, (index, order.children.len()));
            order.pass(Tap::VenueSent, child.venue_sent);
            order.children.push(Child {
                child_id: child.child_id,
                // The turn in which it went had begun before the order itself was read.
                released: child.released.max(order.at(Tap::GatewayReceived)),
                venue_sent: child.venue_sent,
                exchange_received: Timestamp::NONE,
                exchange_reported: Timestamp::NONE,
            });
        }
    }

    fn on_tick_sent(&mut self, packet: &TickSent) {
        let first = packet.trigger;
        let last = Trigger(first.0.saturating_add(u64::from(packet.count.max(1)) - 1));
        let from = self.triggers.partition_point(|&(trigger, _)| trigger < first);
        for &(trigger, index) in &self.triggers[from..] {
            if trigger > last {
                break;
            }
            self.orders[index].pass(Tap::TickSent, packet.time);
        }
    }

    /// The gateway's orders that a recorded client ought to have recorded and did not.
    fn count_unsent_orders(&mut self) {
        let recorded: HashSet<SessionId> = self
            .orders
            .iter()
            .filter(|order| order.client_recorded)
            .map(|order| order.session)
            .collect();
        self.unsent_orders = self
            .orders
            .iter()
            .filter(|order| !order.client_recorded && recorded.contains(&order.session))
            .count() as u64;
    }
}
