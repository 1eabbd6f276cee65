//! The client's own book-keeping: what became of every order. It believes nobody: each report must fit what is known.

use types::{ClientOrderId, ExecReport, ExecType, Price, Quantity, Reason, Side};

/// All orders of a run and what became of them. Memory is allocated at the start.
#[derive(Debug)]
pub(super) struct Ledger {
    orders: Vec<Order>,
    /// The order that a number belongs to, by its distance from the first. A request's number belongs to its order.
    by_number: Vec<u32>,
    first: u64,
    capacity: usize,
    requests: Requests,
    unknown_reports: u64,
    inconsistent_reports: u64,
    fills: u64,
    refused_by: [u64; Reason::ALL.len()],
    /// Orders and requests that are not answered.
    unanswered: usize,
    /// Orders that end at once, and have not yet.
    ending: usize,
}

/// One order as the client sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    /// Its place in the client's list of instruments.
    pub(super) instrument: usize,
    pub(super) side: Side,
    /// The number it has now.
    pub(super) number: ClientOrderId,
    pub(super) price: Price,
    /// Total, lots.
    pub(super) quantity: Quantity,
    pub(super) cumulative: Quantity,
    pub(super) state: State,
    /// The request that is not answered.
    pub(super) pending: Option<ClientOrderId>,
    /// It never rests: its end follows its acknowledgement.
    ends_at_once: bool,
}

/// State of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Unanswered,
    Open,
    Filled,
    Canceled,
    Expired,
    Refused,
}

/// How many cancels and replaces there were, and what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Requests {
    /// Sent.
    pub sent: u64,
    /// Done as asked.
    pub accepted: u64,
    /// Refused, or overtaken by the order's end.
    pub rejected: u64,
}

/// What became of every order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accounting {
    /// New orders sent.
    pub sent: u64,
    /// Those that the gateway accepted.
    pub acknowledged: u64,
    /// Those that it refused.
    pub refused: u64,
    /// Those without an answer.
    pub unanswered: u64,
    /// Accepted and traded in full.
    pub filled: u64,
    /// Accepted and cancelled, after trading in part or not at all.
    pub canceled: u64,
    /// Accepted and ended with the day.
    pub expired: u64,
    /// Accepted and alive.
    pub open: u64,
    /// Trades.
    pub fills: u64,
    /// Cancels and replaces.
    pub requests: Requests,
    /// Reports of orders that were never sent.
    pub unknown_reports: u64,
    /// Reports that do not fit what was known of their order.
    pub inconsistent_reports: u64,
    /// Refused orders by reason, in the order of [`Reason::ALL`].
    pub refused_by: [u64; Reason::ALL.len()],
}

impl Ledger {
    /// Room for `orders` orders, and for `REQUESTS_PER_ORDER` numbers each for what is asked of them. The first number
    /// given is `first`.
    pub(super) fn new(orders: usize, first: ClientOrderId) -> Self {
        Self {
            orders: Vec::with_capacity(orders),
            by_number: Vec::with_capacity(orders * (1 + REQUESTS_PER_ORDER)),
            first: first.0,
            capacity: orders,
            requests: Requests::default(),
            unknown_reports: 0,
            inconsistent_reports: 0,
            fills: 0,
            refused_by: [0; Reason::ALL.len()],
            unanswered: 0,
            ending: 0,
        }
    }

    /// Whether one more order finds room.
    pub(super) const fn has_room(&self) -> bool {
        self.orders.len() < self.capacity
    }

    /// Orders sent.
    pub(super) const fn sent(&self) -> usize {
        self.orders.len()
    }

    /// Orders and requests that are not answered.
    pub(super) const fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// Enters a new order and gives its place and number. Room was seen before.
    pub(super) fn add(
        &mut self,
        instrument: usize,
        side: Side,
        price: Price,
        quantity: Quantity,
    ) -> (usize, ClientOrderId) {
        assert!(self.has_room(), "an order without room in the ledger");
        let place = self.orders.len();
        let number = self.number_for(place);
        self.orders.push(Order {
            instrument,
            side,
            number,
            price,
            quantity,
            cumulative: Quantity::ZERO,
            state: State::Unanswered,
            pending: None,
            ends_at_once: false,
        });
        self.unanswered += 1;
        (place, number)
    }

    /// The order that was just entered never rests: whether it traded is known soon after it is acknowledged.
    pub(super) fn ends_at_once(&mut self, place: usize) {
        self.orders[place].ends_at_once = true;
        self.ending += 1;
    }

    /// Orders whose end follows by itself and has not come yet.
    pub(super) const fn ending(&self) -> usize {
        self.ending
    }

    /// Enters a cancel or replace of an open order that has none under way, and gives its number. `None` when the order
    /// is not in that state, or has had all its requests.
    pub(super) fn request(&mut self, place: usize) -> Option<ClientOrderId> {
        let order = self.orders.get(place)?;
        let used = self.by_number.len() - self.orders.len();
        if order.state != State::Open || order.pending.is_some() || used >= self.capacity * REQUESTS_PER_ORDER {
            return None;
        }
        let number = self.number_for(place);
        self.orders[place].pending = Some(number);
        self.requests.sent += 1;
        self.unanswered += 1;
        Some(number)
    }

    /// An order by its place, which [`Ledger::add`] gave.
    pub(super) fn order(&self, place: usize) -> &Order {
        &self.orders[place]
    }

    /// Takes a report.
    pub(super) fn on_report(&mut self, report: &ExecReport) {
        let Some(place) = self.place_of(report.client_order_id) else {
            self.unknown_reports += 1;
            return;
        };
        let before = self.orders[place];
        let order = &mut self.orders[place];
        let fits = match report.exec_type {
            ExecType::New => order.acknowledge(report),
            ExecType::Fill => order.fill(report),
            ExecType::Canceled => order.end(State::Canceled, report),
            ExecType::Expired => order.end(State::Expired, report),
            ExecType::Rejected => order.refuse(report),
            ExecType::Replaced => order.replace(report),
            ExecType::RequestRejected => order.reject_request(report),
            ExecType::Restated => order.restate(report),
            // Never sent to a client that asks for neither stops nor how its orders stand.
            ExecType::MassCancelAccepted | ExecType::Triggered | ExecType::Status | ExecType::StatusEnd => false,
        };
        if !fits {
            *order = before;
            self.inconsistent_reports += 1;
            return;
        }
        self.count(&before, place, report);
    }

    /// What became of every order, counted anew.
    pub(super) fn accounting(&self) -> Accounting {
        let count = |state| self.orders.iter().filter(|order| order.state == state).count() as u64;
        let (filled, canceled) = (count(State::Filled), count(State::Canceled));
        let (expired, open) = (count(State::Expired), count(State::Open));
        Accounting {
            sent: self.orders.len() as u64,
            acknowledged: filled + canceled + expired + open,
            refused: count(State::Refused),
            unanswered: count(State::Unanswered),
            filled,
            canceled,
            expired,
            open,
            fills: self.fills,
            requests: self.requests,
            unknown_reports: self.unknown_reports,
            inconsistent_reports: self.inconsistent_reports,
            refused_by: self.refused_by,
        }
    }

    fn count(&mut self, before: &Order, place: usize, report: &ExecReport) {
        let after = &self.orders[place];
        if before.state == State::Unanswered && after.state != State::Unanswered {
            self.unanswered -= 1;
        }
        if after.ends_at_once && !before.is_over() && after.is_over() {
            self.ending -= 1;
        }
        match report.exec_type {
            ExecType::Fill => self.fills += 1,
            ExecType::Rejected => {
                let index = Reason::ALL.iter().position(|&reason| reason == report.reason);
                self.refused_by[index.unwrap_or(0)] += 1;
            }
            _ => (),
        }
        if before.pending.is_some() && after.pending.is_none() {
            self.unanswered -= 1;
            let accepted = match report.exec_type {
                ExecType::Replaced => true,
                ExecType::Canceled => before.pending == Some(report.client_order_id),
                _ => false,
            };
            if accepted {
                self.requests.accepted += 1;
            } else {
                self.requests.rejected += 1;
            }
        }
    }

    /// The next number, for the order at `place`.
    #[allow(clippy::cast_possible_truncation, reason = "the config bounds the number of orders")]
    fn number_for(&mut self, place: usize) -> ClientOrderId {
        let number = ClientOrderId(self.first + self.by_number.len() as u64);
        self.by_number.push(place as u32);
        number
    }

    fn place_of(&self, number: ClientOrderId) -> Option<usize> {
        let distance = usize::try_from(number.0.checked_sub(self.first)?).ok()?;
        self.by_number.get(distance).map(|&place| place as usize)
    }
}

impl Order {
    const fn is_over(&self) -> bool {
        !matches!(self.state, State::Unanswered | State::Open)
    }

    fn acknowledge(&mut self, report: &ExecReport) -> bool {
        let fits = self.state == State::Unanswered && report.client_order_id == self.number;
        self.state = State::Open;
        fits
    }

    fn fill(&mut self, report: &ExecReport) -> bool {
        let alive = matches!(self.state, State::Unanswered | State::Open);
        let Some(cumulative) = self.cumulative.0.checked_add(report.last_quantity.0).map(Quantity) else {
            return false;
        };
        self.cumulative = cumulative;
        self.state = State::Open;
        let total = Quantity(cumulative.0.saturating_add(report.leaves.0));
        if report.leaves.is_zero() {
            self.state = State::Filled;
        }
        alive && !report.last_quantity.is_zero() && total == self.quantity
    }

    /// A request that the order's end overtook is still answered by itself.
    fn end(&mut self, state: State, report: &ExecReport) -> bool {
        let alive = matches!(self.state, State::Unanswered | State::Open);
        self.state = state;
        self.pending = self.pending.filter(|&pending| pending != report.client_order_id);
        alive
    }

    fn refuse(&mut self, report: &ExecReport) -> bool {
        let fits = self.state == State::Unanswered && report.client_order_id == self.number;
        self.state = State::Refused;
        fits
    }

    fn replace(&mut self, report: &ExecReport) -> bool {
        let fits = self.state == State::Open && self.pending == Some(report.client_order_id);
        self.number = report.client_order_id;
        self.pending = None;
        self.price = report.price;
        self.quantity = report.quantity;
        if report.leaves.is_zero() {
            self.state = State::Filled;
        }
        fits
    }

    /// A pending replace stays pending.
    fn restate(&mut self, report: &ExecReport) -> bool {
        let fits = self.state == State::Open && self.cumulative < report.quantity && report.quantity < self.quantity;
        self.quantity = report.quantity;
        fits
    }

    fn reject_request(&mut self, report: &ExecReport) -> bool {
        let fits = self.pending == Some(report.client_order_id);
        self.pending = None;
        fits
    }
}

impl Accounting {
    /// Whether every order is accounted for: sent = acknowledged + refused, acknowledged = filled + cancelled + expired +
    /// open, and no report was out of place.
    #[must_use]
    pub const fn is_balanced(&self) -> bool {
        self.sent == self.acknowledged + self.refused
            && self.acknowledged == self.filled + self.canceled + self.expired + self.open
            && self.requests.sent == self.requests.accepted + self.requests.rejected
            && self.unknown_reports == 0
            && self.inconsistent_reports == 0
    }

    /// Why orders were refused, and how many.
    pub fn refusals(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL
            .iter()
            .copied()
            .zip(self.refused_by)
            .filter(|&(_, count)| count > 0)
    }
}

/// Numbers kept for cancels and replaces, an order on average.
const REQUESTS_PER_ORDER: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use types::{AccountId, ExecId, InstrumentId, OrderId, SessionId};

    const FIRST: ClientOrderId = ClientOrderId(1_000);

    fn report(exec_type: ExecType, number: ClientOrderId, last: u64, leaves: u64) -> ExecReport {
        ExecReport {
            exec_type,
            order_id: OrderId(1),
            client_order_id: number,
            orig_client_order_id: ClientOrderId(0),
            exec_id: ExecId(1),
            instrument: InstrumentId(1),
            account: AccountId(1),
            session: SessionId(1),
            side: Side::Buy,
            price: Price(10),
            quantity: Quantity(5),
            last_price: Price::NULL,
            last_quantity: Quantity(last),
            leaves: Quantity(leaves),
            cumulative: Quantity::ZERO,
            reason: Reason::MaxQuantity,
        }
    }

    fn with_order() -> (Ledger, usize, ClientOrderId) {
        let mut ledger = Ledger::new(2, FIRST);
        let (place, number) = ledger.add(0, Side::Buy, Price(10), Quantity(5));
        (ledger, place, number)
    }

    #[test]
    fn numbers_rise_from_the_first() {
        let (mut ledger, place, number) = with_order();
        assert_eq!(number, FIRST);
        ledger.on_report(&report(ExecType::New, number, 0, 5));
        assert_eq!(ledger.request(place), Some(ClientOrderId(1_001)));
        assert_eq!(ledger.request(place), None, "one request at a time");
        assert_eq!(
            ledger.add(0, Side::Sell, Price(10), Quantity(1)).1,
            ClientOrderId(1_002)
        );
        assert!(!ledger.has_room());
        assert_eq!(ledger.unanswered(), 2);
    }

    #[test]
    fn a_filled_order_is_accounted_for() {
        let (mut ledger, _, number) = with_order();
        assert!(!ledger.accounting().is_balanced(), "it is not answered");
        ledger.on_report(&report(ExecType::New, number, 0, 5));
        ledger.on_report(&report(ExecType::Fill, number, 2, 3));
        assert_eq!(ledger.accounting().open, 1);
        ledger.on_report(&report(ExecType::Fill, number, 3, 0));
        let accounting = ledger.accounting();
        assert_eq!(
            (accounting.filled, accounting.fills, accounting.acknowledged),
            (1, 2, 1)
        );
        assert!(accounting.is_balanced());
    }

    #[test]
    fn an_order_that_does_not_rest_is_awaited_until_it_ended() {
        for (last, end) in [(5, ExecType::Fill), (0, ExecType::Canceled)] {
            let (mut ledger, place, number) = with_order();
            ledger.ends_at_once(place);
            ledger.on_report(&report(ExecType::New, number, 0, 5));
            assert_eq!((ledger.unanswered(), ledger.ending()), (0, 1));
            ledger.on_report(&report(end, number, last, 0));
            assert_eq!(ledger.ending(), 0);
        }
        let (mut ledger, place, number) = with_order();
        ledger.ends_at_once(place);
        ledger.on_report(&report(ExecType::Rejected, number, 0, 0));
        assert_eq!(ledger.ending(), 0);
    }

    #[test]
    fn a_refused_order_has_its_reason() {
        let (mut ledger, _, number) = with_order();
        ledger.on_report(&report(ExecType::Rejected, number, 0, 0));
        let accounting = ledger.accounting();
        assert_eq!(accounting.refusals().collect::<Vec<_>>(), [(Reason::MaxQuantity, 1)]);
        assert!(accounting.is_balanced());
    }

    #[test]
    fn an_order_goes_by_the_number_of_its_last_replace() {
        let (mut ledger, place, number) = with_order();
        ledger.on_report(&report(ExecType::New, number, 0, 5));
        let replace = ledger.request(place).unwrap();
        ledger.on_report(&report(ExecType::Replaced, replace, 0, 5));
        assert_eq!(ledger.order(place).number, replace);
        let cancel = ledger.request(place).unwrap();
        ledger.on_report(&report(ExecType::Canceled, cancel, 0, 0));
        let accounting = ledger.accounting();
        assert_eq!(accounting.canceled, 1);
        assert_eq!(
            accounting.requests,
            Requests {
                sent: 2,
                accepted: 2,
                rejected: 0
            }
        );
        assert!(accounting.is_balanced());
    }

    #[test]
    fn a_fill_that_ends_an_order_leaves_its_cancel_to_be_answered() {
        let (mut ledger, place, number) = with_order();
        ledger.on_report(&report(ExecType::New, number, 0, 5));
        let cancel = ledger.request(place).unwrap();
        ledger.on_report(&report(ExecType::Fill, number, 5, 0));
        assert_eq!(ledger.unanswered(), 1);
        ledger.on_report(&report(ExecType::RequestRejected, cancel, 0, 0));
        let accounting = ledger.accounting();
        assert_eq!((accounting.filled, accounting.requests.rejected), (1, 1));
        assert!(accounting.is_balanced());
    }

    #[test]
    fn an_end_that_nobody_asked_for_leaves_the_request_to_be_answered() {
        let (mut ledger, place, number) = with_order();
        ledger.on_report(&report(ExecType::New, number, 0, 5));
        let replace = ledger.request(place).unwrap();
        ledger.on_report(&report(ExecType::Expired, number, 0, 0));
        assert!(!ledger.accounting().is_balanced());
        ledger.on_report(&report(ExecType::RequestRejected, replace, 0, 0));
        assert!(ledger.accounting().is_balanced());
    }

    #[test]
    fn reports_that_do_not_fit_are_counted_and_change_nothing() {
        let (mut ledger, _, number) = with_order();
        ledger.on_report(&report(ExecType::New, number, 0, 5));
        let before = ledger.accounting();
        for wrong in [
            report(ExecType::New, number, 0, 5),
            report(ExecType::Rejected, number, 0, 0),
            report(ExecType::Fill, number, 6, 0),
            report(ExecType::Fill, number, 0, 5),
            report(ExecType::Fill, number, 2, 2),
            report(ExecType::Replaced, number, 0, 5),
            report(ExecType::RequestRejected, number, 0, 5),
        ] {
            let count = ledger.accounting().inconsistent_reports;
            ledger.on_report(&wrong);
            assert_eq!(ledger.accounting().inconsistent_reports, count + 1, "{wrong:?}");
        }
        ledger.on_report(&report(ExecType::New, ClientOrderId(5), 0, 5));
        ledger.on_report(&report(ExecType::New, ClientOrderId(u64::MAX), 0, 5));
        let after = ledger.accounting();
        assert_eq!(after.unknown_reports, 2);
        assert!(!after.is_balanced());
        assert_eq!((after.open, after.fills), (before.open, before.fills));
    }

    fn exec_type() -> impl Strategy<Value = ExecType> {
        (1_u8..=8).prop_map(|value| ExecType::from_u8(value).unwrap())
    }

    proptest! {
        #[test]
        fn any_reports_leave_the_sums_right(
            steps in proptest::collection::vec((exec_type(), 0_u64..12, 0_u64..6, 0_u64..6), 0..200),
        ) {
            let mut ledger = Ledger::new(8, FIRST);
            for (exec_type, distance, last, leaves) in steps {
                if distance == 11 && ledger.has_room() {
                    ledger.add(0, Side::Buy, Price(10), Quantity(5));
                } else if distance == 10 && ledger.sent() > 0 {
                    ledger.request(ledger.sent() - 1);
                } else {
                    ledger.on_report(&report(exec_type, ClientOrderId(FIRST.0 + distance), last, leaves));
                }
                let sums = ledger.accounting();
                prop_assert_eq!(sums.sent, sums.acknowledged + sums.refused + sums.unanswered);
                let requests_open = sums.requests.sent - sums.requests.accepted - sums.requests.rejected;
                prop_assert_eq!(ledger.unanswered() as u64, sums.unanswered + requests_open);
                prop_assert_eq!(sums.refusals().map(|(_, count)| count).sum::<u64>(), sums.refused);
                for order in &ledger.orders {
                    prop_assert!(order.cumulative <= Quantity(5));
                }
            }
        }
    }
}
