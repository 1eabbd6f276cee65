//! After start-up the path of an order allocates nothing. The allocator of this binary counts what the thread at hand asks
//! for while it is being watched; other tests, on other threads, do not notice.

use crate::first_stage;
use crate::fix::{Logon, order};
use crate::fixture::{ALFA, FIX, Fixture, NATIVE, VENUE, alfa, buy, config_with_venue};
use crate::held;
use crate::marks;
use gateway::executor::Component;
use gateway::gateway::Gateway;
use latency::Recorder;
use latency::clock::Clock;
use net::Link;
use net::link::{AnyLink, LinkConfig, LinkEnd, LinkEvent, Resume};
use proto::fix::OrderCancelRequest;
use proto::{native, soup};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{
    CancelOrder, ClientOrderId, ExecId, ExecReport, ExecType, MassCancel, NewOrder, OrderId, OrderTerms, Price,
    Quantity, Reason, ReplaceOrder, Request, SessionId, Side,
};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    // Constant and without a destructor, so that its first use allocates nothing.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

impl Counting {
    fn count() {
        if WATCHED.get() {
            COUNT.set(COUNT.get() + 1);
        }
    }
}

// SAFETY: every call goes to the system's allocator as it came; counting touches only cells of this thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: the caller keeps `alloc_zeroed`'s contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count();
        // SAFETY: the caller keeps `realloc`'s contract, and every block is the system's.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::count();
        // SAFETY: the caller keeps `dealloc`'s contract, and every block is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// How often the thread went to the allocator in there.
fn allocations(work: impl FnOnce()) -> u64 {
    COUNT.set(0);
    WATCHED.set(true);
    work();
    WATCHED.set(false);
    COUNT.get()
}

fn encoded(request: &Request) -> Vec<u8> {
    let mut buffer = [0; native::MAX_MESSAGE_LENGTH];
    let length = native::encode_request(request, &mut buffer);
    buffer[..length].to_vec()
}

#[test]
fn the_allocator_notices_an_allocation() {
    assert_eq!(allocations(|| {}), 0);
    let count = allocations(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(100))));
    assert_eq!(count, 2, "one asked for, one given back");
}

#[test]
fn marks_allocate_nothing() {
    let mut fixture = Fixture::changed(&[marks::LOSS]);
    fixture.native(&Request::New(buy(1)));
    let count = allocations(|| {
        for _ in 0..100 {
            fixture.now = fixture.now + types::Duration::from_secs(1);
            let mut book = alfa(fixture.now);
            book.bid.price = Price(book.bid.price.0 - i64::try_from(fixture.now.0 % 7_000_000_000).expect("small"));
            fixture.shard.set_now(fixture.now);
            fixture.shard.price(ALFA, &book);
            fixture.shard.turn();
        }
    });
    assert_eq!(count, 0);
    let marked = fixture.shard.shard().orders().exposure(buy(1).account, ALFA);
    assert!(marked.is_some_and(|one| one.mark != buy(1).price), "{marked:?}");
}

#[test]
fn the_path_of_a_native_order_allocates_nothing() {
    let mut fixture = Fixture::new();
    let of = |number: u64| {
        let (client_order_id, orig_client_order_id) = (ClientOrderId(3 * number + 2), ClientOrderId(3 * number + 1));
        let new = Request::New(buy(orig_client_order_id.0));
        let replace = Request::Replace(ReplaceOrder {
            client_order_id,
            orig_client_order_id,
            instrument: ALFA,
            session: NATIVE,
            side: Side::Buy,
            price: buy(1).price,
            quantity: Quantity(8),
            terms: OrderTerms::NONE,
        });
        let cancel = Request::Cancel(CancelOrder {
            client_order_id: ClientOrderId(3 * number + 3),
            orig_client_order_id: client_order_id,
            instrument: ALFA,
            session: NATIVE,
            side: Side::Buy,
        });
        [new, replace, cancel].map(|request| encoded(&request))
    };
    let requests = (0..200).map(of).collect::<Vec<_>>();
    let refused = encoded(&Request::New(NewOrder {
        quantity: Quantity(501),
        ..buy(1_000)
    }));
    let mass = encoded(&Request::MassCancel(MassCancel {
        client_order_id: ClientOrderId(1_001),
        session: NATIVE,
        instrument: None,
    }));
    let count = allocations(|| {
        for (place, [new, replace, cancel]) in requests.iter().enumerate() {
            fixture.shard.client(NATIVE, new);
            fixture.venue(ExecType::New, 0, 10, 0);
            fixture.venue(ExecType::Fill, 4, 6, 4);
            fixture.shard.client(NATIVE, replace);
            fixture.venue(ExecType::Replaced, 0, 4, 4);
            if place % 2 == 0 {
                fixture.shard.client(NATIVE, cancel);
                fixture.venue(ExecType::Canceled, 0, 0, 4);
            } else {
                fixture.venue(ExecType::Fill, 4, 0, 8);
            }
            fixture.shard.discard_client_output(NATIVE);
        }
        fixture.shard.client(NATIVE, b"no message");
        fixture.shard.client(NATIVE, &refused);
        fixture.shard.client(NATIVE, &mass);
        fixture.shard.discard_client_output(NATIVE);
    });
    assert_eq!(fixture.sent().0, 500, "all of them went out");
    assert_eq!(fixture.shard.shard().orders().open_orders(), 0);
    assert_eq!(count, 0);
}

#[test]
fn an_order_that_waits_for_an_own_one_allocates_nothing() {
    let mut fixture = first_stage::two_venues();
    first_stage::rest(&mut fixture, "A-1");
    let new = encoded(&Request::New(buy(1)));
    let count = allocations(|| {
        fixture.shard.client(NATIVE, &new);
        let (_, cancel) = first_stage::sent_to_other(&fixture);
        let cancel = cancel.expect("it was sent").client_order_id();
        first_stage::other(&mut fixture, cancel, ExecType::Canceled, 0);
    });
    assert_eq!(fixture.sent().0, 1, "it went out");
    assert_eq!(count, 0);
}

#[test]
fn held_orders_and_what_is_sent_for_them_allocate_nothing() {
    let mut fixture = held::plain_venue();
    let requests = (0..50).map(|number| {
        [
            Request::New(held::stop(4 * number + 2)),
            Request::New(held::iceberg(4 * number + 1)),
            Request::New(held::peg(4 * number + 3)),
            held::cancel(4 * number + 4, 4 * number + 3),
        ]
        .map(|request| encoded(&request))
    });
    let requests = requests.collect::<Vec<_>>();
    let count = allocations(|| {
        for [stop, iceberg, peg, cancel] in &requests {
            fixture.shard.client(NATIVE, iceberg);
            fixture.venue(ExecType::New, 0, 4, 0);
            for lots in [4, 4, 2] {
                fixture.venue(ExecType::Fill, lots, 0, lots);
            }
            fixture.shard.client(NATIVE, stop);
            fixture.trade_at("100.02");
            fixture.trade_at("100.03");
            fixture.venue(ExecType::Fill, 10, 0, 10);
            fixture.shard.client(NATIVE, peg);
            fixture.shard.turn();
            fixture.venue(ExecType::New, 0, 10, 0);
            fixture.shard.client(NATIVE, cancel);
            fixture.venue(ExecType::Canceled, 0, 0, 0);
            fixture.shard.discard_client_output(NATIVE);
        }
    });
    let counters = fixture.shard.shard().orders().counters();
    assert_eq!((counters.held, counters.children, counters.ended), (150, 250, 150));
    assert_eq!(count, 0);
}

#[test]
fn the_path_of_a_fix_order_allocates_nothing() {
    let mut fixture = Fixture::new();
    fixture.fix(&Logon);
    let names = (0..200)
        .map(|number| (format!("order-{number}"), format!("cancel-{number}")))
        .collect::<Vec<_>>();
    let requests = names
        .iter()
        .map(|(new, cancel)| {
            let new_order = fixture.fix_bytes(&order(new, "ALFA"));
            let cancel_order = fixture.fix_bytes(&OrderCancelRequest {
                cl_ord_id: cancel.as_bytes(),
                orig_cl_ord_id: new.as_bytes(),
                quantity: 10,
                side: b'1',
                symbol: b"ALFA",
                transact_time: fixture.now,
            });
            [new_order, cancel_order]
        })
        .collect::<Vec<_>>();
    let refused = fixture.fix_bytes(&order("unknown", "NONE"));
    let count = allocations(|| {
        for [new, cancel] in &requests {
            fixture.shard.client(FIX, new);
            fixture.venue(ExecType::New, 0, 10, 0);
            fixture.venue(ExecType::Fill, 4, 6, 4);
            fixture.shard.client(FIX, cancel);
            fixture.venue(ExecType::Canceled, 0, 0, 4);
            fixture.shard.discard_client_output(FIX);
        }
        fixture.shard.client(FIX, &refused);
        fixture.shard.discard_client_output(FIX);
    });
    assert_eq!(fixture.sent().0, 400, "all of them went out");
    assert_eq!(fixture.shard.shard().orders().open_orders(), 0);
    assert_eq!(count, 0);
}

#[test]
fn a_whole_worker_with_its_sockets_allocates_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let held = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = held.local_addr().expect("a port");
    drop(held);
    let config = config_with_venue(folder.path(), address);
    let LinkConfig::Ltp(mut settings) = config.venues[usize::from(VENUE.0)].links[0].settings else {
        panic!("the fixture's link is LTP")
    };
    settings.end = LinkEnd::Listen { local: address };
    let clock = Clock::start();
    let mut venue = AnyLink::with_datagrams(&LinkConfig::Ltp(settings), 1, Resume::START, |socket| socket)
        .expect("the venue's end of the link");
    let gateway = Gateway::prepare(config, clock).expect("the gateway starts");
    gateway.references().store(ALFA, &alfa(clock.now()));
    let status = Arc::clone(&gateway.statuses()[0]);
    let (_door, mut shards) = gateway.open().expect("free ports");
    let shard = shards.pop().expect("a shard");
    let mut worker = shard.build(Recorder::off(), |socket| socket).expect("a worker");

    let address = status.addresses().native;
    let mut client = TcpStream::connect(address.expect("it listens")).expect("it listens");
    client.set_nonblocking(true).expect("a socket");
    client.write_all(&login()).expect("it reads");
    let mut received = 0;
    turn_until("link and logon", |chunk| {
        worker.turn(clock.now());
        answer(&mut venue, &clock);
        received += client.read(chunk).unwrap_or(0);
        received > 0 && status.all_links_up()
    });
    let (mut count, mut bytes) = (0, Vec::with_capacity(4_096));
    for number in 1..=100 {
        let message = encoded(&Request::New(buy(number)));
        let mut packet = [0; soup::MAX_PACKET_LENGTH];
        let length = soup::write_unsequenced(&message, &mut packet);
        client.write_all(&packet[..length]).expect("it reads");
        bytes.clear();
        turn_until("an order and its fill", |chunk| {
            count += allocations(|| {
                worker.turn(clock.now());
            });
            answer(&mut venue, &clock);
            let length = client.read(chunk).unwrap_or(0);
            bytes.extend_from_slice(&chunk[..length]);
            // Each of the two reports is a packet of 64 bytes with its head.
            bytes.len() >= 2 * (soup::HEADER_LENGTH + native::MAX_ANSWER_LENGTH)
        });
    }
    assert_eq!(count, 0);
}

/// The packet that logs the native client on.
fn login() -> Vec<u8> {
    let login = soup::Login {
        user_name: soup::UserName::new(b"trader").expect("a name"),
        password: soup::Password::new(b"secret").expect("a password"),
        session: soup::SessionName::BLANK,
        sequence: 1,
    };
    let mut packet = [0; soup::MAX_PACKET_LENGTH];
    let length = soup::write_login_request(&login, &mut packet);
    packet[..length].to_vec()
}

fn turn_until(what: &str, mut turn: impl FnMut(&mut [u8]) -> bool) {
    let (start, mut chunk) = (Instant::now(), [0; 4_096]);
    while !turn(&mut chunk) {
        assert!(start.elapsed() < Duration::from_secs(30), "{what} does not come");
    }
}

/// The venue takes every order and fills it.
fn answer(link: &mut AnyLink, clock: &Clock) {
    let mut message = [0; native::MAX_MESSAGE_LENGTH];
    while let Some(event) = link.poll(clock.now(), &mut message) {
        let LinkEvent::Message { length, .. } = event else {
            continue;
        };
        let Ok(Request::New(order)) = native::decode_request(&message[..length]) else {
            continue;
        };
        let accepted = ExecReport {
            exec_type: ExecType::New,
            order_id: OrderId(order.client_order_id.0),
            client_order_id: order.client_order_id,
            orig_client_order_id: ClientOrderId(0),
            exec_id: ExecId(2 * order.client_order_id.0),
            instrument: order.instrument,
            account: order.account,
            session: SessionId(9),
            side: order.side,
            price: order.price,
            quantity: order.quantity,
            last_price: Price::NULL,
            last_quantity: Quantity(0),
            leaves: order.quantity,
            cumulative: Quantity(0),
            reason: Reason::None,
        };
        let filled = ExecReport {
            exec_type: ExecType::Fill,
            exec_id: ExecId(2 * order.client_order_id.0 + 1),
            last_price: order.price,
            last_quantity: order.quantity,
            leaves: Quantity(0),
            cumulative: order.quantity,
            ..accepted
        };
        for report in [accepted, filled] {
            let length = native::encode_report(&report, &mut message);
            link.send(&message[..length], 0);
        }
    }
    link.flush(clock.now(), u64::MAX);
}
