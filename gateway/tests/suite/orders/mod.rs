//! Orders by FIX, one rule a test: bytes in, bytes out. A file a topic.

mod chains;
mod days;
mod entry;
mod mass;
mod states;
mod status;

use crate::fix::Logon;
use crate::fixture::{FIX, Fixture};
use proto::fix::{Body, Encoder};
use types::{ClientOrderId, ExecType, Reason, Request};

/// A client that writes its messages as text.
struct Trader {
    fixture: Fixture,
}

/// A message body from text, `|` between fields.
struct Plain<'a> {
    msg_type: &'static str,
    fields: &'a str,
}

impl Body for Plain<'_> {
    fn msg_type(&self) -> &'static [u8] {
        self.msg_type.as_bytes()
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.raw(self.fields.replace('|', "\u{1}").as_bytes());
    }
}

/// A buy of 10 ALFA at 100 for the day, without its ClOrdID.
const ORDER: &str = "38=10|40=2|44=100|54=1|55=ALFA|60=20261130-08:00:00|";
/// What a cancel says of it.
const OF_ORDER: &str = "54=1|55=ALFA|60=20261130-08:00:00|";

impl Trader {
    /// Logged on.
    fn new() -> Self {
        let mut fixture = Fixture::new();
        fixture.fix(&Logon);
        Self { fixture }
    }

    /// A message; gives what came back.
    fn send(&mut self, msg_type: &'static str, fields: &str) -> Vec<String> {
        self.fixture.fix(&Plain { msg_type, fields })
    }

    /// The buy with this ClOrdID, which goes to the venue. Gives the number that the venue knows it by.
    fn order(&mut self, id: &str) -> ClientOrderId {
        assert_eq!(self.send("D", &format!("11={id}|{ORDER}")), [""; 0]);
        self.number()
    }

    /// As [`Self::order`], and the venue takes it.
    fn working(&mut self, id: &str) -> ClientOrderId {
        let number = self.order(id);
        let reports = self.venue(number, ExecType::New, Reason::None, [0, 10, 0]);
        assert_eq!(told(&reports, "11 150 39"), [format!("11={id}|150=0|39=0")]);
        number
    }

    /// A cancel that goes to the venue.
    fn cancel(&mut self, id: &str, orig: &str) -> ClientOrderId {
        assert_eq!(self.send("F", &format!("11={id}|41={orig}|{OF_ORDER}")), [""; 0]);
        self.number()
    }

    /// A replace to so many units that goes to the venue.
    fn replace(&mut self, id: &str, orig: &str, units: u64) -> ClientOrderId {
        let fields = format!("11={id}|41={orig}|38={units}|40=2|44=100|{OF_ORDER}");
        assert_eq!(self.send("G", &fields), [""; 0]);
        self.number()
    }

    /// A report of the venue about a number: lots traded, open, traded so far. Gives what the client hears.
    fn venue(
        &mut self,
        number: ClientOrderId,
        exec_type: ExecType,
        reason: Reason,
        [last, leaves, cumulative]: [u64; 3],
    ) -> Vec<String> {
        self.fixture
            .venue_about(number, exec_type, reason, last, leaves, cumulative);
        self.fixture.fix_messages()
    }

    /// The number of the last request that went to the venue.
    fn number(&self) -> ClientOrderId {
        self.sent().client_order_id()
    }

    /// The last request that went to the venue.
    fn sent(&self) -> Request {
        self.fixture.sent().1.expect("something went to the venue")
    }

    /// The client's connection is lost.
    fn lose(&mut self) {
        self.fixture.shard.disconnect(FIX);
    }
}

/// What messages say in these tags, those that are there.
fn told(messages: &[String], tags: &str) -> Vec<String> {
    let of_message = |message: &String| {
        let of_tag = |tag: &str| {
            let start = format!("{tag}=");
            message.split('|').find(|field| field.starts_with(&start))
        };
        tags.split(' ').filter_map(of_tag).collect::<Vec<_>>().join("|")
    };
    messages.iter().map(of_message).collect()
}
