//! ClOrdIDs of one FIX session and day: text to the rising number that the order logic knows it by, and back.
//!
//! Orders may outlive the day: their ids stay, with their numbers, in the first places of the table, and the numbers of the
//! new day go on from those of the last.

use std::hash::{BuildHasher, RandomState};
use types::{ClientOrderId, ExecReport, ExecType, Reason};

/// A bounded table. Nothing is ever taken out during a day: a ClOrdID must not come twice.
#[derive(Debug)]
pub(crate) struct ClOrdIds {
    /// Those that were kept from days before, then those of this day by number.
    texts: Box<[Text]>,
    count: usize,
    /// Numbers of those that were kept, rising.
    kept: Vec<u64>,
    /// Numbers given in days before.
    base: u64,
    /// Counts how often the session's sequence numbers have started anew.
    numbering: u16,
    /// Open addressing with linear probing, at most half full. Ids that differ in their last byte only have their places
    /// in one group: most clients count, so most ids find their place in the cache.
    index: Box<[Slot]>,
    /// Of the hash: drawn at random, so that a client cannot choose ids that collide. Nothing that is decided depends on
    /// them.
    keys: [u64; 2],
}

/// Why a ClOrdID got no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// It was used before.
    Duplicate,
    /// The session has used all that `cl_ord_ids` allows a day.
    Full,
    /// Empty, or longer than [`MAX_LENGTH`].
    Length,
}

/// Most ids that a table holds: what its index can count.
pub(crate) const CL_ORD_IDS_MAX: usize = 1 << 30;

/// Longest ClOrdID, bytes: room for a UUID in text.
pub(crate) const MAX_LENGTH: usize = 38;

/// What a ClOrdID was given to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A new order.
    Order,
    /// A cancel.
    Cancel,
    /// A replace.
    Replace,
    /// A mass cancel.
    MassCancel,
}

/// What became of whatever a ClOrdID was given to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// It may still be asked about: an order that lives, a request without an answer.
    Open,
    /// An order that ended under this id.
    Over,
    /// An order that ended with its day: its venue may still tell of a trade.
    Expired,
    /// The same, and another day has begun.
    Late,
    /// A request that was refused, an id that was replaced by another: it names no order.
    Void,
}

#[derive(Clone, Copy, Debug)]
struct Text {
    kind: Kind,
    state: State,
    /// Whatever whoever gave the id wants to find with it.
    note: u8,
    length: u8,
    /// The numbering of the session that its last answer was in.
    numbering: u16,
    /// Of a cancel that was accepted: the place of the order's id, plus one; the cancel's names the order from then on. Of
    /// that order's id: the place of the cancel's. 0 of any other.
    other: u32,
    bytes: [u8; MAX_LENGTH],
}

/// A place of the index.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Of the id's hash, so that the texts of others need not be looked at.
    tag: u32,
    /// Place of the text, plus one; 0: empty.
    place: u32,
}

/// Places of ids that differ in their last byte only; the ten digits have one each.
const GROUP: usize = 16;

impl ClOrdIds {
    /// A table of `capacity` ids.
    ///
    /// # Panics
    /// When the capacity does not fit the index: [`CL_ORD_IDS_MAX`].
    pub(crate) fn new(capacity: usize) -> Self {
        assert!(
            capacity <= CL_ORD_IDS_MAX,
            "{capacity} ClOrdIDs are more than a table holds"
        );
        let mut index = vec![Slot::EMPTY; Self::index_length(capacity)].into_boxed_slice();
        // Written, not only reserved: else an order would wait for the kernel wherever it is the first to touch a page.
        std::hint::black_box(&mut index).fill(Slot::EMPTY);
        Self {
            texts: vec![
                Text {
                    kind: Kind::Order,
                    state: State::Void,
                    note: 0,
                    length: 0,
                    numbering: 0,
                    other: 0,
                    bytes: [0; MAX_LENGTH]
                };
                capacity
            ]
            .into_boxed_slice(),
            count: 0,
            kept: Vec::new(),
            base: 0,
            numbering: 0,
            index,
            keys: random_keys(),
        }
    }

    /// Bytes that a table of this capacity takes.
    pub(crate) const fn memory_bytes(capacity: usize) -> usize {
        capacity * size_of::<Text>() + Self::index_length(capacity) * size_of::<Slot>()
    }

    const fn index_length(capacity: usize) -> usize {
        (capacity * 2).next_power_of_two()
    }

    /// Gives a new id its number, and keeps a note with it.
    pub(crate) fn insert(&mut self, text: &[u8], kind: Kind, note: u8) -> Result<ClientOrderId, Refused> {
        if text.is_empty() || text.len() > MAX_LENGTH {
            return Err(Refused::Length);
        }
        let (slot, tag) = match self.probe(text) {
            Err(free) => free,
            Ok(place) => {
                self.texts[place].numbering = self.numbering;
                return Err(Refused::Duplicate);
            }
        };
        let Some(place) = self.texts.get_mut(self.count) else {
            return Err(Refused::Full);
        };
        (place.kind, place.state, place.note) = (kind, State::Open, note);
        (place.numbering, place.other) = (self.numbering, 0);
        place.length = u8::try_from(text.len()).expect("it was compared with MAX_LENGTH");
        place.bytes[..text.len()].copy_from_slice(text);
        let number = self.number_at(self.count);
        self.count += 1;
        let place = u32::try_from(self.count).expect("the capacity is bounded");
        self.index[slot] = Slot { tag, place };
        Ok(number)
    }

    /// The session's sequence numbers have started anew: what was answered before cannot be asked for any more.
    pub(crate) const fn renumbered(&mut self) {
        self.numbering = self.numbering.wrapping_add(1);
    }

    /// Whether an id was used, and the answer can still be asked for.
    pub(crate) fn is_answered(&self, text: &[u8]) -> bool {
        self.probe(text)
            .is_ok_and(|place| self.texts[place].numbering == self.numbering)
    }

    /// The number of an id seen before; of a cancel that was accepted, that of the order.
    pub(crate) fn find(&self, text: &[u8]) -> Option<ClientOrderId> {
        self.probe(text).ok().map(|place| self.named_at(place))
    }

    /// The number of an id that names an order: one that was not refused, nor replaced by another.
    pub(crate) fn find_valid(&self, text: &[u8]) -> Option<ClientOrderId> {
        let place = self.probe(text).ok()?;
        (self.texts[place].state != State::Void).then(|| self.named_at(place))
    }

    /// The text of a number; empty for one that was never given.
    pub(crate) fn text(&self, number: ClientOrderId) -> &[u8] {
        self.get(number).map_or(b"", Text::as_bytes)
    }

    /// The last id that was accepted of the order whose id has this number: that of its cancel, once it is cancelled.
    pub(crate) fn last_accepted(&self, number: ClientOrderId) -> &[u8] {
        match self.get(number) {
            Some(text) if text.kind != Kind::Cancel && text.other > 0 => self.texts[text.other as usize - 1].as_bytes(),
            Some(text) => text.as_bytes(),
            None => b"",
        }
    }

    /// What a number was given to.
    pub(crate) fn kind(&self, number: ClientOrderId) -> Option<Kind> {
        self.get(number).map(|text| text.kind)
    }

    /// The note that was kept with a number; 0 for one that was never given.
    pub(crate) fn note(&self, number: ClientOrderId) -> u8 {
        self.get(number).map_or(0, |text| text.note)
    }

    /// Notes what a report says of the ids in it.
    pub(crate) fn on_report(&mut self, report: &ExecReport) {
        let (id, orig) = (report.client_order_id, report.orig_client_order_id);
        match report.exec_type {
            ExecType::Rejected | ExecType::RequestRejected | ExecType::MassCancelAccepted => self.set(id, State::Void),
            ExecType::Canceled if orig != ClientOrderId(0) => {
                self.set(id, State::Over);
                self.set(orig, State::Over);
                self.pair(id, orig);
            }
            ExecType::Replaced => {
                self.set(orig, State::Void);
                if report.leaves.is_zero() {
                    self.set(id, State::Over);
                }
            }
            ExecType::Canceled => self.set(id, State::Over),
            ExecType::Expired => self.set(id, State::Expired),
            // The order ended with its day.
            ExecType::Fill if matches!(report.reason, Reason::DayEnded | Reason::Expired) => {}
            ExecType::Fill if report.leaves.is_zero() => self.set(id, State::Over),
            ExecType::Fill
            | ExecType::New
            | ExecType::Triggered
            | ExecType::Status
            | ExecType::StatusEnd
            | ExecType::Restated => {}
        }
    }

    /// The session's numbers begin a day: all ids may come again but those that are open.
    pub(crate) fn new_day(&mut self) {
        self.begin_day(|state| matches!(state, State::Open | State::Expired | State::Late).then_some(state));
    }

    /// The same for a trading day. Ids of orders that ended with the last one are known on, for trades that are told late.
    pub(crate) fn new_trading_day(&mut self) {
        self.begin_day(|state| match state {
            State::Open => Some(State::Open),
            State::Expired => Some(State::Late),
            State::Over | State::Late | State::Void => None,
        });
    }

    /// The session is another client's: nothing more is told of orders that ended.
    pub(crate) fn forget_ended(&mut self) {
        for text in &mut self.texts[..self.count] {
            if matches!(text.state, State::Expired | State::Late) {
                (text.state, text.length) = (State::Void, 0);
            }
        }
    }

    /// Keeps ids that have a state in the new day.
    fn begin_day(&mut self, state: impl Fn(State) -> Option<State>) {
        let given = self.count - self.kept.len();
        let mut kept = Vec::new();
        for place in 0..self.count {
            let text = self.texts[place];
            if let Some(state) = state(text.state) {
                self.texts[kept.len()] = Text { state, ..text };
                kept.push(self.number_at(place).0);
            }
        }
        self.base += given as u64;
        self.count = kept.len();
        self.kept = kept;
        self.index.fill(Slot::EMPTY);
        for place in 0..self.count {
            let text = self.texts[place];
            if text.state == State::Open
                && let Err((slot, tag)) = self.probe(text.as_bytes())
            {
                let place = u32::try_from(place + 1).expect("the capacity is bounded");
                self.index[slot] = Slot { tag, place };
            }
        }
    }

    fn set(&mut self, number: ClientOrderId, state: State) {
        if let Some(place) = self.place_of(number) {
            self.texts[place].state = state;
        }
    }

    /// The cancel with the first number was accepted, for the order with the other.
    fn pair(&mut self, cancel: ClientOrderId, order: ClientOrderId) {
        if let (Some(cancel), Some(order)) = (self.place_of(cancel), self.place_of(order)) {
            let one_more = |place: usize| u32::try_from(place + 1).expect("the capacity is bounded");
            self.texts[cancel].other = one_more(order);
            self.texts[order].other = one_more(cancel);
        }
    }

    /// The number of what the id in a place names.
    fn named_at(&self, place: usize) -> ClientOrderId {
        let text = &self.texts[place];
        match text.kind {
            Kind::Cancel if text.other > 0 => self.number_at(text.other as usize - 1),
            _ => self.number_at(place),
        }
    }

    fn get(&self, number: ClientOrderId) -> Option<&Text> {
        self.place_of(number).map(|place| &self.texts[place])
    }

    fn number_at(&self, place: usize) -> ClientOrderId {
        match self.kept.get(place) {
            Some(&number) => ClientOrderId(number),
            None => ClientOrderId(self.base + (place - self.kept.len()) as u64 + 1),
        }
    }

    fn place_of(&self, number: ClientOrderId) -> Option<usize> {
        let Some(of_day) = number.0.checked_sub(self.base + 1) else {
            return self.kept.binary_search(&number.0).ok();
        };
        let place = self.kept.len().checked_add(usize::try_from(of_day).ok()?)?;
        (place < self.count).then_some(place)
    }

    /// The place of a text, or the free slot where it belongs and its tag.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a hash is cut into the bits that are needed"
    )]
    fn probe(&self, text: &[u8]) -> Result<usize, (usize, u32)> {
        let mask = self.index.len() - 1;
        let (&last, group) = text.split_last().unwrap_or((&0, b""));
        let hash = hash(self.keys, group);
        let tag = ((hash >> 32) as u32).wrapping_add(u32::from(last));
        let mut slot = (hash as usize & !(GROUP - 1) | usize::from(last) & (GROUP - 1)) & mask;
        loop {
            let found = self.index[slot];
            let Some(place) = (found.place as usize).checked_sub(1) else {
                return Err((slot, tag));
            };
            if found.tag == tag && self.texts[place].as_bytes() == text {
                return Ok(place);
            }
            slot = (slot + 1) & mask;
        }
    }
}

impl Text {
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl Slot {
    const EMPTY: Self = Self { tag: 0, place: 0 };
}

/// Two numbers that nobody outside can know.
fn random_keys() -> [u64; 2] {
    // The standard library's source of keys; what it hashes does not matter.
    let source = RandomState::new();
    [source.hash_one(0), source.hash_one(1)]
}

/// A keyed hash by multiplication and folding: ClOrdIDs are short, and SipHash would cost as much as the rest of the look-up.
fn hash([first, second]: [u64; 2], text: &[u8]) -> u64 {
    let (words, tail) = text.as_chunks::<8>();
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    let start = first ^ text.len() as u64;
    let mixed = words.iter().chain([&last]).fold(start, |state, &word| {
        fold_multiply(state ^ u64::from_le_bytes(word), second | 1)
    });
    fold_multiply(mixed, first | 1)
}

/// Both halves of the product, so that every bit of the operands reaches the low bits of the result.
#[allow(clippy::cast_possible_truncation, reason = "the halves are taken apart")]
const fn fold_multiply(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_texts_come_back() {
        let mut ids = ClOrdIds::new(3);
        assert_eq!(ids.insert(b"A", Kind::Order, 0), Ok(ClientOrderId(1)));
        assert_eq!(ids.insert(b"order-2", Kind::Order, 0), Ok(ClientOrderId(2)));
        assert_eq!(ids.insert(b"A", Kind::Order, 0), Err(Refused::Duplicate));
        assert_eq!(ids.text(ClientOrderId(2)), b"order-2");
        assert_eq!(ids.find(b"order-2"), Some(ClientOrderId(2)));
        assert_eq!(ids.find(b"B"), None);
        assert_eq!(ids.text(ClientOrderId(0)), b"");
        assert_eq!(ids.text(ClientOrderId(9)), b"");
    }

    #[test]
    fn ids_of_one_group_and_of_many_are_all_found_and_come_once() {
        let mut ids = ClOrdIds::new(2_000);
        let texts = (0..1_750_u32)
            .map(|n| format!("C{n}").into_bytes())
            .chain((1..=250).map(|last| vec![b'X', last]));
        let texts = texts.collect::<Vec<_>>();
        for (place, text) in (1..).zip(&texts) {
            assert_eq!(ids.insert(text, Kind::Order, 0), Ok(ClientOrderId(place)));
        }
        for (place, text) in (1..).zip(&texts) {
            assert_eq!(ids.find(text), Some(ClientOrderId(place)));
            assert_eq!(ids.insert(text, Kind::Order, 0), Err(Refused::Duplicate));
        }
        assert_eq!(ids.find(b""), None);
    }

    #[test]
    fn an_answer_can_be_asked_for_until_the_numbers_start_anew() {
        let mut ids = ClOrdIds::new(2);
        assert!(!ids.is_answered(b"A"));
        ids.insert(b"A", Kind::Order, 0).unwrap();
        assert!(ids.is_answered(b"A"));
        ids.renumbered();
        assert!(!ids.is_answered(b"A"));
        // Its refusal is an answer too.
        assert_eq!(ids.insert(b"A", Kind::Order, 0), Err(Refused::Duplicate));
        assert!(ids.is_answered(b"A"));
    }

    #[test]
    fn a_full_table_and_a_wrong_length_are_refused() {
        let mut ids = ClOrdIds::new(1);
        assert_eq!(ids.insert(b"", Kind::Order, 0), Err(Refused::Length));
        assert_eq!(
            ids.insert(&[b'x'; MAX_LENGTH + 1], Kind::Order, 0),
            Err(Refused::Length)
        );
        assert_eq!(ids.insert(&[b'x'; MAX_LENGTH], Kind::Order, 0), Ok(ClientOrderId(1)));
        assert_eq!(ids.insert(b"y", Kind::Order, 0), Err(Refused::Full));
    }

    #[test]
    fn an_id_whose_order_ended_with_its_day_is_known_by_its_number_for_one_more_and_may_come_again() {
        let mut ids = ClOrdIds::new(3);
        let number = ids.insert(b"A", Kind::Order, 7).unwrap();
        ids.set(number, State::Expired);
        ids.new_trading_day();
        ids.new_day();
        assert_eq!(
            (ids.text(number), ids.note(number), ids.find(b"A")),
            (&b"A"[..], 7, None)
        );
        let again = ids.insert(b"A", Kind::Order, 0).unwrap();
        assert_eq!((ids.find(b"A"), ids.text(again)), (Some(again), &b"A"[..]));
        ids.new_trading_day();
        assert_eq!((ids.text(number), ids.text(again)), (&b""[..], &b"A"[..]));
        ids.set(again, State::Expired);
        ids.new_trading_day();
        ids.forget_ended();
        assert_eq!(ids.text(again), b"");
    }

    #[test]
    fn what_is_open_outlives_the_day_with_its_number() {
        let mut ids = ClOrdIds::new(3);
        for text in [b"A", b"B", b"C"] {
            ids.insert(text, Kind::Order, 7).unwrap();
        }
        ids.set(ClientOrderId(1), State::Over);
        ids.set(ClientOrderId(3), State::Void);
        assert_eq!(
            (ids.find_valid(b"A"), ids.find_valid(b"C")),
            (Some(ClientOrderId(1)), None)
        );
        for (day, number) in [(1, 4), (2, 6)] {
            ids.new_day();
            assert_eq!(
                (ids.find(b"A"), ids.find(b"B")),
                (None, Some(ClientOrderId(2))),
                "day {day}"
            );
            assert_eq!((ids.text(ClientOrderId(2)), ids.note(ClientOrderId(2))), (&b"B"[..], 7));
            assert_eq!(
                (ids.text(ClientOrderId(1)), ids.text(ClientOrderId(3))),
                (&b""[..], &b""[..])
            );
            assert_eq!(ids.insert(b"B", Kind::Order, 0), Err(Refused::Duplicate));
            assert_eq!(ids.insert(b"A", Kind::Order, 0), Ok(ClientOrderId(number)));
            assert_eq!(ids.insert(b"C", Kind::Order, 0), Ok(ClientOrderId(number + 1)));
            assert_eq!(ids.insert(b"D", Kind::Order, 0), Err(Refused::Full));
            assert_eq!(ids.text(ClientOrderId(number + 1)), b"C");
            ids.set(ClientOrderId(number), State::Over);
            ids.set(ClientOrderId(number + 1), State::Void);
        }
    }
}
