//! A program dies with its machine, and only what the disk has is left. With the watermark `synced` nothing that anyone was told
//! is lost, and nothing is done twice: what was received and acknowledged and is lost comes again out of the other end's
//! journal.

use crate::market::Market;
use crate::processes::{ORDERS_A_PHASE, Scene, Victim};
use crate::trader::Trader;
use std::time::Duration;

#[test]
fn an_exchange_that_loses_its_machine_has_every_order_once_over_ltp() {
    lose(Victim::Exchange, "ltp");
}

#[test]
fn an_exchange_that_loses_its_machine_has_every_order_once_over_tcp() {
    lose(Victim::Exchange, "tcp");
}

#[test]
fn an_exchange_that_loses_its_machine_has_every_order_once_over_rocev2() {
    lose(Victim::Exchange, "roce");
}

#[test]
fn a_gateway_that_loses_its_machine_has_every_report_once_over_ltp() {
    lose(Victim::Gateway, "ltp");
}

#[test]
fn a_gateway_that_loses_its_machine_has_every_report_once_over_tcp() {
    lose(Victim::Gateway, "tcp");
}

#[test]
fn a_gateway_that_loses_its_machine_has_every_report_once_over_rocev2() {
    lose(Victim::Gateway, "roce");
}

/// Takes the machine away from under one in mid-flow, a few times and until it has lost something that it had acknowledged, and
/// compares what everyone knows in the end.
fn lose(victim: Victim, transport: &'static str) {
    let market = Market::new(1, transport);
    let config = match victim {
        Victim::Gateway => "gateway.toml",
        _ => "exchange.toml",
    };
    market.change(config, "watermark = \"appended\"", "watermark = \"synced\"");
    // TCP links acknowledge as often.
    market.change(config, "heartbeat_ms = 10\n", "heartbeat_ms = 1\n");
    let taker = Trader::new("taker", 2, market.native[0]);
    let mut scene = Scene::new(market, taker);
    scene.begin();
    let mut recalls = 0;
    for times in 1..=LOSSES_MAX {
        scene.send(2 * ORDERS_A_PHASE);
        let (program, other) = match victim {
            Victim::Gateway => (&mut scene.gateway, &scene.exchange),
            _ => (&mut scene.exchange, &scene.gateway),
        };
        let before = other.printed().matches(RECALLED).count();
        let lost = program.lose_machine(PAUSE * u32::try_from(times % 8).expect("few"));
        scene.send(10);
        scene.come_back(victim, times);
        let traded_before = scene.traded();
        scene.trade(100);
        let other = match victim {
            Victim::Gateway => &scene.exchange,
            _ => &scene.gateway,
        };
        let recalled = other.printed().matches(RECALLED).count() - before;
        eprintln!("machine {times}: {lost} bytes lost, {recalled} recalls");
        recalls += recalled;
        if recalls > 0 && times >= LOSSES_MIN {
            scene.end(victim, traded_before);
            break;
        }
    }
    assert!(recalls > 0, "nothing acknowledged was lost");
}

/// What an end prints when its peer has lost something.
const RECALLED: &str = "what it has lost";

/// Machines that are lost at least: what is not made good of one loss shows at the next.
const LOSSES_MIN: usize = 8;

/// Machines that may be lost with nothing that was acknowledged.
const LOSSES_MAX: usize = 40;

/// How much longer orders flow before each loss than before the one before.
const PAUSE: Duration = Duration::from_micros(500);
