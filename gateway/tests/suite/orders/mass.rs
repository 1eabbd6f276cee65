//! OrderMassCancelRequest (q) and its report (r).

use super::{Trader, told};
use types::{ExecType, Reason};

const TIME: &str = "60=20261130-08:00:00|";

#[test]
fn a_mass_cancel_is_taken_and_the_cancels_follow() {
    for (fields, which) in [("530=7|", "7"), ("530=1|55=ALFA|", "1")] {
        let mut trader = Trader::new();
        trader.working("A");
        let answer = trader.send("q", &format!("11=Q|{fields}{TIME}"));
        assert_eq!(
            told(&answer, "35 11 530 531 532"),
            [format!("35=r|11=Q|530={which}|531={which}")]
        );
        let cancel = trader.number();
        let canceled = trader.venue(cancel, ExecType::Canceled, Reason::Requested, [0, 0, 0]);
        assert_eq!(
            told(&canceled, "35 11 41 150 39 58"),
            ["35=8|11=A|150=4|39=4|58=mass cancel"]
        );
    }
}

#[test]
fn a_mass_cancel_that_cannot_be_is_refused_with_its_code() {
    for (fields, code) in [
        ("530=1|55=NOPE|", "1"),
        ("530=1|", "1"),
        ("530=3|", "0"),
        ("530=7|54=1|", "0"),
    ] {
        let mut trader = Trader::new();
        trader.working("A");
        let answer = trader.send("q", &format!("11=Q|{fields}{TIME}"));
        assert_eq!(
            told(&answer, "35 11 531 532"),
            [format!("35=r|11=Q|531=0|532={code}")],
            "{fields}"
        );
        assert_eq!(trader.fixture.sent().0, 1, "{fields}: no cancel goes out");
    }
    let mut trader = Trader::new();
    let other = trader.send("q", &format!("11=P|530=3|{TIME}"));
    let why = "only all orders (530=7) or those of a security (530=1) are cancelled, of both sides";
    assert_eq!(told(&other, "530 531 58"), [format!("530=3|531=0|58={why}")]);
    trader.working("A");
    let again = trader.send("q", &format!("11=A|530=7|{TIME}"));
    assert_eq!(told(&again, "35 11 531 532"), ["35=r|11=A|531=0|532=99"]);
}
