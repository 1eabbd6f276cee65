//! A session that watches accounts: it gets copies of their reports, and enters no orders.

use crate::fix::{Logon, field, order};
use crate::fixture::{FIX, Fixture, WATCHER, WATCHER_PARTS, buy};
use crate::resend::{ResendRequest, body, number};
use proto::fix::{Body, OrderCancelRequest, Version};
use types::{ExecType, NewOrder, Quantity, Request};

/// A trader's fixture, and a client that watches it.
struct Scene {
    traders: Fixture,
    next: u64,
}

impl Scene {
    fn new(version: &str) -> Self {
        let speaks = format!("drop_copy = [1]\nversions = [\"{version}\"]");
        let mut scene = Self {
            traders: Fixture::changed(&[WATCHER_PARTS, ("drop_copy = [1]", &speaks)]),
            next: 1,
        };
        scene.traders.fix(&Logon);
        scene.log_on(version);
        scene
    }

    fn log_on(&mut self, version: &str) -> String {
        self.traders.shard.connect(WATCHER);
        let answers = self.say(version, &Logon);
        answers
            .into_iter()
            .find(|answer| field(answer, 35) == Some("A"))
            .expect("an answer")
    }

    /// The watcher says something; gives what it hears.
    fn say(&mut self, version: &str, body: &impl Body) -> Vec<String> {
        let version = Version::from_name(version).expect("a version");
        let bytes = self.traders.fix_bytes_of("WATCHER", version, self.next, body);
        self.next += 1;
        self.traders.shard.client(WATCHER, &bytes);
        self.heard()
    }

    fn heard(&mut self) -> Vec<String> {
        let mut messages = self.traders.messages_of(WATCHER);
        while self.traders.shard.turn() {
            messages.extend(self.traders.messages_of(WATCHER));
        }
        messages
    }
}

#[test]
fn a_copy_says_what_the_order_s_client_heard_and_whose_order_it_is() {
    let mut scene = Scene::new("FIX.4.4");
    let mut heard = scene.traders.fix(&order("A-1", "ALFA"));
    scene.traders.venue(ExecType::New, 0, 10, 0);
    scene.traders.venue(ExecType::Fill, 4, 6, 4);
    heard.extend(scene.traders.fix_messages());
    let cancel = OrderCancelRequest {
        cl_ord_id: b"A-2",
        orig_cl_ord_id: b"A-1",
        quantity: 10,
        side: b'1',
        symbol: b"ALFA",
        transact_time: scene.traders.now,
    };
    heard.extend(scene.traders.fix(&cancel));
    scene.traders.venue(ExecType::Canceled, 0, 0, 4);
    heard.extend(scene.traders.fix(&order("A-1", "ALFA")));
    let copies = scene.heard();
    assert_eq!(copies.len(), heard.len(), "{copies:?}");
    assert!(heard.len() >= 4, "{heard:?}");
    for (copy, first) in copies.iter().zip(&heard) {
        assert_eq!(
            (field(copy, 115), field(copy, 797)),
            (Some("TRADER"), Some("Y")),
            "{copy}"
        );
        let of_copy = body(copy)
            .into_iter()
            .filter(|field| !["115=TRADER", "797=Y"].contains(field));
        assert_eq!(of_copy.collect::<Vec<_>>(), body(first));
    }
    let at = |message: &str, tag: &str| message.find(tag).expect("a field");
    assert!(
        at(&copies[0], "|115=") < at(&copies[0], "|37="),
        "it belongs to the header: {}",
        copies[0]
    );
}

#[test]
fn orders_of_native_clients_are_copied_in_the_watcher_s_version() {
    let mut scene = Scene::new("FIX.4.2");
    scene.traders.native(&Request::New(buy(1)));
    scene.traders.venue(ExecType::New, 0, 10, 0);
    scene.traders.native(&Request::New(NewOrder {
        quantity: Quantity(501),
        ..buy(2)
    }));
    let copies = scene.heard();
    let told = copies.iter().map(|copy| {
        assert!(copy.starts_with("8=FIX.4.2|"), "{copy}");
        [11, 115, 797, 39, 55].map(|tag| field(copy, tag).unwrap_or("none"))
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ["1", "trader", "none", "0", "ALFA"],
            ["2", "trader", "none", "8", "ALFA"]
        ]
    );
}

#[test]
fn a_watcher_enters_no_orders_and_hears_why() {
    let mut scene = Scene::new("FIX.4.4");
    let answers = scene.say("FIX.4.4", &order("W-1", "ALFA"));
    assert_eq!(answers.len(), 1, "{answers:?}");
    let refusal = [35, 39, 103].map(|tag| field(&answers[0], tag));
    assert_eq!(refusal, [Some("8"), Some("8"), Some("15")], "{}", answers[0]);
    let cancel = OrderCancelRequest {
        cl_ord_id: b"W-2",
        orig_cl_ord_id: b"A-1",
        quantity: 10,
        side: b'1',
        symbol: b"ALFA",
        transact_time: scene.traders.now,
    };
    let answers = scene.say("FIX.4.4", &cancel);
    assert_eq!(
        [35, 102].map(|tag| field(&answers[0], tag)),
        [Some("9"), Some("1")],
        "{answers:?}"
    );
    assert_eq!(scene.traders.sent().0, 0);
}

#[test]
fn copies_made_while_the_watcher_is_away_are_numbered_and_can_be_asked_for() {
    let mut scene = Scene::new("FIX.4.4");
    scene.traders.fix(&order("A-0", "ALFA"));
    scene.traders.venue(ExecType::New, 0, 10, 0);
    let before = scene.heard();
    scene.traders.shard.disconnect(WATCHER);
    for id in 1..=30 {
        scene.traders.fix(&order(&format!("A-{id}"), "ALFA"));
        scene.traders.venue(ExecType::New, 0, 10, 0);
    }
    scene.traders = scene.traders.restart();
    let answer = scene.log_on("FIX.4.4");
    assert_eq!(number(&answer), number(&before[0]) + 31);
    let begin = number(&before[0]);
    let copies = scene.say("FIX.4.4", &ResendRequest(begin));
    let reports = copies
        .iter()
        .filter(|copy| field(copy, 35) == Some("8"))
        .collect::<Vec<_>>();
    assert_eq!(reports.len(), 31, "{copies:?}");
    assert_eq!(body(reports[0]), body(&before[0]));
    for (id, copy) in reports.iter().enumerate() {
        let told = [11, 115, 797, 43].map(|tag| field(copy, tag));
        assert_eq!(
            told,
            [Some(&*format!("A-{id}")), Some("TRADER"), Some("Y"), Some("Y")],
            "{copy}"
        );
    }
    scene.traders.shard.disconnect(FIX);
}
