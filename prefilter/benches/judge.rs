//! What the software filter costs an order: `cargo bench -p prefilter`; instructions:
//! `valgrind --tool=callgrind --toggle-collect='*one_order*' target/release/deps/judge-* 100000`.

use prefilter::{Caps, Control, PreFilter, SessionLimits, Software, SymbolLimits};
use std::hint::black_box;
use std::time::Instant;
use types::{InstrumentId, Price, SessionId, Timestamp};

const INSTRUMENTS: u32 = 1_000;
const SESSIONS: u16 = 100;

#[inline(never)]
fn one_order(filter: &mut Software, now: Timestamp, message: &[u8; 48]) -> u16 {
    filter.judge_message(now, black_box(message), false).reasons.0
}

fn main() {
    let orders = std::env::args()
        .find_map(|word| word.parse().ok())
        .unwrap_or(20_000_000_u64);
    let mut filter = Software::new(Caps {
        symbols: INSTRUMENTS,
        sessions: SESSIONS.into(),
    });
    for instrument in 0..INSTRUMENTS {
        let limits = SymbolLimits {
            max_quantity: 1_000,
            lowest: Price(90 * Price::UNIT),
            highest: Price(110 * Price::UNIT),
            route: 1,
        };
        filter.set_symbol(InstrumentId(instrument), Some(limits)).expect("fits");
    }
    for session in 0..SESSIONS {
        filter
            .set_session(SessionId(session), Some(SessionLimits::UNLIMITED))
            .expect("fits");
    }
    filter.commit().expect("software");
    let control = Control {
        enable: true,
        kill: false,
    };
    filter.set_control(control).expect("software");

    let mut message = [0; 48];
    message[..8].copy_from_slice(&[40, 0, 1, 0, 0x54, 0x47, 0, 0]);
    message[12] = 100;
    message[16..24].copy_from_slice(&(100 * Price::UNIT).to_le_bytes());
    message[24] = 1;
    message[38] = 1;
    message[39] = 0x20;
    let started = Instant::now();
    let mut refused = 0;
    for number in 0..orders {
        let instrument = u32::try_from(number * 7 % u64::from(INSTRUMENTS)).expect("small");
        message[8..12].copy_from_slice(&instrument.to_le_bytes());
        message[36] = u8::try_from(number % u64::from(SESSIONS)).expect("small");
        refused += u64::from(one_order(&mut filter, Timestamp(number * 20), &message) != 0);
    }
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let each = started.elapsed().as_nanos() as f64 / orders as f64;
    println!("software filter: {each:.2} ns an order, {orders} orders, {refused} refused");
    assert_eq!(refused, 0, "the orders of the bench pass");
}
