//! Gateway and exchange in two network namespaces with a wire between them that loses: whatever is killed comes back with
//! nothing lost and nothing doubled. `.ci/extended netns` makes the namespaces and the loss, and runs these in one of them.

use crate::market::Hosts;
use crate::processes::{Victim, kill_in};

/// The namespaces, from the environment: the other one's name, the address of this one, the address of the other one.
fn hosts() -> Hosts {
    let text = std::env::var("TICKGATE_NETNS").expect("run by `.ci/extended netns`");
    let words: Vec<&str> = text.split(' ').collect();
    let [namespace, here, there] = words[..] else {
        panic!("TICKGATE_NETNS is `{text}`");
    };
    Hosts {
        namespace: namespace.to_owned(),
        here: here.parse().expect("an address"),
        there: there.parse().expect("an address"),
    }
}

#[test]
#[ignore = "needs the namespaces of `.ci/extended netns`"]
fn a_gateway_that_is_killed_comes_back_over_ltp_that_loses() {
    kill_in(hosts(), "ltp", Victim::Gateway);
}

#[test]
#[ignore = "needs the namespaces of `.ci/extended netns`"]
fn a_gateway_that_is_killed_comes_back_over_tcp_that_loses() {
    kill_in(hosts(), "tcp", Victim::Gateway);
}

#[test]
#[ignore = "needs the namespaces of `.ci/extended netns`"]
fn an_exchange_that_is_killed_comes_back_over_ltp_that_loses() {
    kill_in(hosts(), "ltp", Victim::Exchange);
}

#[test]
#[ignore = "needs the namespaces of `.ci/extended netns`"]
fn an_exchange_that_is_killed_comes_back_over_tcp_that_loses() {
    kill_in(hosts(), "tcp", Victim::Exchange);
}
